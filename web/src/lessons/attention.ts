// Attention, layer norm, and the classic bugs.

import { ask, askCode, askShape, type Lesson } from './kit';

export const attention: Lesson = {
  id: 'attention',
  title: 'Multi-head attention',
  about: 'Two products, a softmax and a mask',
  pages: [
    {
      title: 'Who looks at whom',
      blocks: [
        { text: 'Each token asks (query), offers (key) and tells (value). Scores are products of queries and keys, divided by the root of their length; softmax makes weights of them; the output is the weighted sum of values. A causal mask sets the scores of later tokens to $-\\infty$: their weight is 0, and so is their gradient.\n\nBackwards there is nothing new: two matrix products and a softmax. See the triangle in both maps, and what the temperature does.' },
        {
          lab: {
            source: 'q = leaf(randn(6, 4))\nk = leaf(randn(6, 4))\nv = leaf(randn(6, 4))\nscores = q @ k.T / 4 ** 0.5 * {sharp}\nmasked = where(tril(ones(6, 6)) == 0, -1e9, scores)\nw = softmax(masked, axis=1)\nout = w @ v\nloss = sum(out * randn(6, 4))',
            sliders: [{ name: 'sharp', label: 'sharpness', min: 0, max: 6, step: 0.1, value: 1 }],
            pictures: [{ as: 'map', want: 'w', label: 'weights' }, { as: 'map', want: 'scores.grad', label: 'gradient of the scores' }, { as: 'map', want: 'v.grad', label: 'gradient of the values' }],
          },
        },
        askShape('attention-scores', (d) => {
          const [t, k] = d.apart(2, 3, 9);
          return {
            ask: 'The shape of the gradient of the scores:',
            source: `q = leaf(randn(${t}, ${k}))\nk = leaf(randn(${t}, ${k}))\nv = leaf(randn(${t}, ${k}))\nscores = q @ k.T\nw = softmax(scores)\nout = w @ v\nloss = sum(out)`,
            want: 'scores.grad.shape',
            also: ['out.shape'],
            wrong: [
              { is: (v) => v['out.shape'], why: 'That is the output: a row of features for each token.' },
              { is: () => [k, k], why: 'The features are summed over in the product; a score belongs to two tokens.' },
              { is: () => [t], why: 'There is a score for each *pair* of tokens.' },
            ],
            because: 'Token by token: this is why memory grows with the square of the length.',
          };
        }),
        askCode('attention-values', (d) => ({
          ask: 'The gradient of the values, where `out = w @ v`:',
          setup: `t = ${d.int(3, 5)}\nw = softmax(randn(t, t), axis=1)\nv = randn(t, 2)\ndout = randn(t, 2)`,
          reference: 'dv = zeros_like(v)\nfor i in range(t):\n  for j in range(t):\n    dv[j] = dv[j] + w[i, j] * dout[i]',
          want: 'dv',
          options: [
            { code: 'dv = w.T @ dout', why: '' },
            { code: 'dv = w @ dout', why: 'A value collects from all tokens that looked at it: the weights are turned.' },
            { code: 'dv = dout @ v.T', why: 'That is the gradient of the weights.' },
            { code: 'dv = w.T @ v', why: 'The gradient that comes in is missing.' },
          ],
          because: 'A matrix product like any other.',
        })),
        ask('attention-scale', (d) => {
          const k = d.pick([4, 9, 16, 25, 64]);
          return {
            ask: `A head has ${k} features. The gradient of the raw product, where 1 comes in at the scaled score:`,
            source: `raw = leaf(${d.int(1, 5)}.0)\nscaled = raw / ${k} ** 0.5`,
            want: 'raw.grad',
            wrong: [
              { is: () => 1, why: 'The scale is a factor on the way back, too. To forget it there is a classic mistake.' },
              { is: () => 1 / k, why: 'It is the root of the number of features.' },
              { is: () => Math.sqrt(k), why: 'The score was divided, so its gradient is, too.' },
            ],
            because: 'The same factor forward and backward.',
          };
        }),
      ],
    },
    {
      title: 'Layer norm',
      blocks: [
        { text: 'Layer norm is batch norm turned by a quarter: mean and variance of each *row*, over its features. The same three paths, over another axis, and no mixing of examples. Gain and bias are still summed over the rows.\n\nShift or scale a row: the output does not move, so the gradient has no part in these two directions.' },
        {
          lab: {
            source: 'x = leaf(randn(4, 6) * {scale} + {shift})\nmean = x.mean(1, keepdims=True)\nvar = x.var(1, keepdims=True)\ny = (x - mean) / sqrt(var + 1e-5)\nloss = sum(y * randn(4, 6))\nrow_sums = y.sum(1)',
            sliders: [{ name: 'scale', label: 'scale', min: 0.1, max: 4, step: 0.1, value: 1 }, { name: 'shift', label: 'shift', min: -3, max: 3, step: 0.1, value: 0 }],
            pictures: [{ as: 'map', want: 'y', label: 'output' }, { as: 'map', want: 'x.grad', label: 'gradient: each row adds up to 0' }],
          },
        },
        askShape('layer-norm-mean', (d) => {
          const [n, k] = d.apart(2, 2, 9);
          return {
            ask: 'The shape of the gradient of the mean in layer norm:',
            source: `x = leaf(randn(${n}, ${k}))\nmean = x.mean(1, keepdims=True)\ny = x - mean\nloss = sum(y * y * y)`,
            want: 'mean.grad.shape',
            wrong: [
              { is: () => [1, k], why: 'That is batch norm, whose mean runs over the rows.' },
              { is: () => [n, k], why: 'It was repeated to that shape; its gradient is summed again.' },
              { is: () => [n], why: '`keepdims` keeps the axis.' },
            ],
            because: 'One mean for each row.',
          };
        }),
        ask('layer-norm-scale', (d) => ({
          ask: 'A factor on the whole row is divided out again. Its gradient (the small eps is left out):',
          source: `s = leaf(${d.int(1, 4)}.0)\nx = [[1.0, ${d.int(2, 4)}.0, 7.0]] * s\nd = x - x.mean(1, keepdims=True)\ny = d / sqrt((d * d).mean(1, keepdims=True))\nloss = sum(y * [[1.0, -2.0, ${d.int(1, 5)}.0]])`,
          want: 's.grad',
          wrong: [
            { is: () => 1, why: 'The standard deviation grows by the same factor, and divides it out.' },
          ],
          because: 'Layer norm does not see the scale of its input.',
        })),
      ],
    },
  ],
};

export const bugs: Lesson = {
  id: 'bugs',
  title: 'Four classic bugs, and the test for all',
  about: 'Planted mistakes to find',
  pages: [
    {
      title: 'Four that everybody writes once',
      blocks: [
        { text: 'Four mistakes account for most wrong backward passes: a gradient *written over* where it should be added; a broadcast that is *not summed* back; a mean whose *1/n* is lost; the *input* used in a rule that wants the output. None of them crashes, and a model with one of them often still learns, only worse.' },
        {
          lab: {
            source: 'X, y = moons(60)\nW1 = randn(2, 8)\nW2 = randn(8, 2) * 0.3\nlosses = zeros(80)\nfor i in range(80):\n  n = X @ W1\n  h = tanh(n)\n  logits = h @ W2\n  losses[i] = cross_entropy(logits, y).item()\n  dlogits = (softmax(logits, axis=1) - one_hot(y, 2)) {mean}\n  dn = (dlogits @ W2.T) * {slope}\n  W2 = W2 - {rate} * (h.T @ dlogits)\n  W1 = W1 - {rate} * (X.T @ dn)\nsteps = arange(80)\nloss = leaf(1.0) * losses[79]',
            sliders: [{ name: 'rate', label: 'rate', min: 0.05, max: 2, step: 0.05, value: 0.5 }],
            choices: [{ name: 'slope', label: 'slope of tanh', options: ['(1 - h**2)', '(1 - h)', '(1 - n**2)', '-(1 - h**2)', '1.0'] }, { name: 'mean', label: 'mean', options: ['/ 60', ''] }],
            pictures: [{ as: 'curve', x: 'steps', y: [{ want: 'losses', label: 'loss' }], label: 'Loss, with the slope and the mean that you choose' }],
          },
        },
        askCode('bug-overwrite', (d) => ({
          ask: '`x` is used twice: `y = x * a + x ** 2`. The correct line:',
          setup: `a = ${d.big(5)}.0\nx = randn(4)\ndy = randn(4)`,
          reference: 'dx = dy * a\ndx = dx + dy * x * 2',
          want: 'dx',
          options: [
            { code: 'dx = dy * a + 2 * x * dy', why: '' },
            { code: 'dx = 2 * x * dy', why: 'The second use wrote over the first.' },
            { code: 'dx = dy * a * 2 * x', why: 'Two uses are two paths: they are added.' },
            { code: 'dx = dy * a + x * dy', why: 'The 2 of the square is lost.' },
          ],
          because: 'Two uses, two parts, added.',
        })),
        ask('bug-mean', (d) => {
          const x = d.list(4, 1, 9);
          return {
            ask: 'The gradient of one element under a mean of squares:',
            source: `x = leaf([${x.map((v) => `${v}.0`).join(', ')}])\nloss = (x * x).mean()`,
            want: 'x.grad',
            at: 0,
            wrong: [
              { is: () => 2 * x[0], why: 'The $1/n$ of the mean is lost.' },
              { is: () => x[0] / 4, why: 'The 2 of the square is lost.' },
              { is: () => x[0], why: 'Both the 2 of the square and the $1/n$ count.' },
              { is: () => 0.25, why: 'That is the mean alone; the square comes before it.' },
            ],
            because: '$2x / n$.',
          };
        }),
        ask('bug-detach', (d) => {
          const [x, a] = [d.int(2, 5), d.big(5)];
          return {
            ask: 'A bug of another kind: a value that was cut from the graph. The gradient that arrives:',
            source: `x = leaf(${x}.0)\nu = x * x\nv = detach(u)\ny = v * ${a} + x`,
            want: 'x.grad',
            wrong: [
              { is: () => 2 * x * a + 1, why: 'That would be right without the cut. `detach` lets no gradient through.' },
              { is: () => 2 * x * a, why: 'The path through `detach` is cut; the other one is there.' },
              { is: () => 0, why: 'One path is not cut: `x` is added directly.' },
            ],
            because: 'Only the direct path is left.',
          };
        }),
      ],
    },
    {
      title: 'Find the planted mistake',
      blocks: [
        { text: 'One test catches them all: compare the gradient of *each* value, from the loss backwards, with an independent path. The first row that is wrong stands right above the mistake. Below, a mistake of the catalogue is planted; read the rows, and find the operation whose rule was changed.' },
        { hunt: { example: 'names' } },
        askCode('bug-test', (d) => ({
          ask: 'A test of a gradient by central differences, for `f(x) = sum(x**3)`. The correct line for the slope in the direction `u`:',
          setup: `x = randn(${d.int(3, 5)})\nu = x * 0 + 1\nh = 1e-4`,
          reference: 'slope = sum(3 * x ** 2 * u) + h * h * sum(u)',
          want: 'slope',
          options: [
            { code: 'slope = (sum((x + h*u)**3) - sum((x - h*u)**3)) / (2 * h)', why: '' },
            { code: 'slope = (sum((x + h*u)**3) - sum((x - h*u)**3)) / h', why: 'The two points are $2h$ apart.' },
            { code: 'slope = sum((x + h*u)**3) - sum(x**3)', why: 'The difference has to be divided by the step.' },
            { code: 'slope = sum(x**3) / h', why: 'Without a second point there is no slope.' },
          ],
          because: 'Two points, their distance, and no rule: an independent judge.',
        })),
        ask('bug-harmless', (d) => ({
          ask: 'Not each mistake can be seen in the parameters. A bias before batch norm gets this gradient, right or wrong:',
          source: `b = leaf(${d.int(1, 5)}.0)\nx = [1.0, ${d.int(3, 9)}.0, 4.0] + b\ny = x - x.mean()\nloss = sum(y * [1.0, 2.0, -5.0])`,
          want: 'b.grad',
          wrong: [
            { is: () => -2, why: 'That is the sum of the weights, without the path over the mean.' },
            { is: () => 1, why: 'The mean takes the bias off again.' },
          ],
          because: 'Zero: look at the intermediates, not at the parameters alone.',
        })),
      ],
    },
  ],
};
