// Small tasks to train on; `X` is what the decision boundary is drawn over.

export interface Task {
  name: string;
  title: string;
  source: string;
  rate: number;
  /** The expression whose sign is the class, where the task has two inputs. */
  boundary: string | null;
  range: number;
  /** The scores of the next letter, where the model makes up names. */
  letters?: string;
}

const net = (data: string, hidden: number, activation: string) => `X, y = ${data}
W1 = leaf(randn(2, ${hidden}) * 1.0)
b1 = leaf(zeros(${hidden}))
W2 = leaf(randn(${hidden}, ${hidden}) * ${(1 / Math.sqrt(hidden)).toFixed(2)})
b2 = leaf(zeros(${hidden}))
W3 = leaf(randn(${hidden}, 2) * 0.3)
b3 = leaf(zeros(2))
h1 = ${activation}(X @ W1 + b1)
h2 = ${activation}(h1 @ W2 + b2)
logits = h2 @ W3 + b3
loss = cross_entropy(logits, y)
`;

const NAMES = `X, Y = names_batch(32)
C = leaf(randn(27, 10))
W1 = leaf(randn(30, 64) * 0.30)
b1 = leaf(randn(64) * 0.1)
gain = leaf(ones(1, 64))
bias = leaf(zeros(1, 64))
W2 = leaf(randn(64, 27) * 0.1)
b2 = leaf(zeros(27))
emb = C[X].reshape(32, 30)
hpreact = batch_norm(emb @ W1 + b1, gain, bias, 1e-5)
h = tanh(hpreact)
logits = h @ W2 + b2
loss = cross_entropy(logits, Y)
`;

const BOUNDARY = 'logits[:, 1] - logits[:, 0]';

export const tasks: Task[] = [
  { name: 'moons', title: 'Two moons', source: net('moons(100)', 16, 'tanh'), rate: 0.5, boundary: BOUNDARY, range: 2.5 },
  { name: 'spiral', title: 'Two spirals', source: net('spiral(200)', 24, 'tanh'), rate: 0.5, boundary: BOUNDARY, range: 1.5 },
  { name: 'circles', title: 'Circle in a circle', source: net('circles(100)', 12, 'relu'), rate: 0.3, boundary: BOUNDARY, range: 1.6 },
  { name: 'names', title: 'Names, letter by letter', source: NAMES, rate: 0.1, boundary: null, range: 1, letters: 'logits' },
];
