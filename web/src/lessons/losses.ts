// Softmax with cross-entropy, batch norm, and the names model by hand.

import { ask, askCode, askShape, type Lesson } from './kit';

export const softmax: Lesson = {
  id: 'softmax',
  title: 'Softmax with cross-entropy',
  about: 'Eleven steps that collapse to p − y',
  pages: [
    {
      title: 'Probabilities from logits',
      blocks: [
        { text: 'Softmax makes probabilities of any numbers: $p_i = e^{x_i} / \\sum_j e^{x_j}$. Cross-entropy is the negative logarithm of the probability of the right class. Pull one logit up and the others sink: they share a sum of 1.\n\nThe gradient of the logits is a force. Read it below: the right class is pulled up, all others are pushed down in proportion to their probability, and the forces balance.' },
        {
          lab: {
            source: 'logits = leaf([[{a}, {b}, {c}]])\np = softmax(logits, axis=1)\nloss = cross_entropy(logits, [0])',
            sliders: [{ name: 'a', label: 'logit 0 (right class)', min: -4, max: 4, step: 0.1, value: 1 }, { name: 'b', label: 'logit 1', min: -4, max: 4, step: 0.1, value: 2 }, { name: 'c', label: 'logit 2', min: -4, max: 4, step: 0.1, value: -1 }],
            pictures: [{ as: 'map', want: 'p', label: 'probabilities' }, { as: 'number', want: 'loss', label: 'loss' }, { as: 'map', want: 'logits.grad', label: 'gradient of the logits' }],
          },
        },
        ask('softmax-right', (d) => {
          const [a, b] = [d.int(-2, 2), d.int(-2, 2)];
          return {
            ask: 'The gradient of the logit of the *right* class, to two decimals. The probabilities are `p`; look at them in your head or with a calculator: $e^1 = 2.718$.',
            source: `logits = leaf([[${a}.0, ${b}.0]])\np = softmax(logits, axis=1)\nloss = cross_entropy(logits, [0])`,
            want: 'logits.grad',
            at: 0,
            also: ['p'],
            wrong: [
              { is: (v) => v.p[0], why: 'That is its probability. The 1 of the right class has to be taken off: $p - 1$.' },
              { is: (v) => 1 - v.p[0], why: 'The sign: the gradient is $p - y$; it points where the loss grows.' },
              { is: (v) => -1 / v.p[0], why: 'That is the gradient of the probability. The softmax is still to be passed.' },
              { is: (v) => v.p[1], why: 'That is the gradient of the wrong class.' },
            ],
            because: '$p - 1$ for the right class.',
          };
        }),
        ask('softmax-wrong', (d) => ({
          ask: 'The gradient of a *wrong* class, logit 1, to two decimals:',
          source: `logits = leaf([[${d.int(0, 2)}.0, ${d.int(0, 2)}.0, 0.0]])\np = softmax(logits, axis=1)\nloss = cross_entropy(logits, [0])`,
          want: 'logits.grad',
          at: 1,
          also: ['p'],
          wrong: [
            { is: (v) => v.p[1] - 1, why: 'The 1 is taken off the right class only.' },
            { is: () => 0, why: 'The wrong classes are pushed down, each by its probability.' },
            { is: (v) => v.p[0], why: 'That is the probability of another class.' },
          ],
          because: 'For a wrong class the gradient is its probability.',
        })),
        ask('softmax-sum', (d) => ({
          ask: 'All elements of the gradient of the logits, added:',
          source: `logits = leaf([[${d.int(-3, 3)}.0, ${d.int(-3, 3)}.0, ${d.int(-3, 3)}.0, 1.0]])\nshift = leaf(0.0)\nmoved = logits + shift\nloss = cross_entropy(moved, [2])`,
          want: 'shift.grad',
          wrong: [
            { is: () => 1, why: 'The probabilities add up to 1, but the right class has its 1 taken off.' },
            { is: () => -1, why: 'The right class has $p - 1$, and the others add the missing rest.' },
          ],
          because: 'The same number added to all logits changes no probability, so the forces balance.',
        })),
      ],
    },
    {
      title: 'The small steps, and their collapse',
      blocks: [
        { text: 'Taken apart, cross-entropy is: the row maximum, a difference, `exp`, a sum, its inverse, a product, `log`, and the choice of one element of each row. Each has a rule of one line. Put together they cancel, and what remains is `(p − y) / n`.\n\nThe film shows each rewrite; the numbers stay the same.' },
        { film: { name: 'softmax-ce' } },
        askCode('softmax-line', (d) => ({
          ask: 'The whole backward pass in one line, for a mean over the batch:',
          setup: `n = ${d.int(3, 6)}\nlogits = randn(n, 5)\ny = randint(0, 5, [n])\np = softmax(logits, axis=1)`,
          reference: 'dlogits = exp(logits - logits.max(1, keepdims=True))\ndlogits = dlogits / dlogits.sum(1, keepdims=True)\nfor i in range(n):\n  dlogits[i, y[i]] = dlogits[i, y[i]] - 1\ndlogits = dlogits / n',
          want: 'dlogits',
          options: [
            { code: 'dlogits = (p - one_hot(y, 5)) / n', why: '' },
            { code: 'dlogits = p - one_hot(y, 5)', why: 'The loss is a *mean* over the batch: each row counts $1/n$.' },
            { code: 'dlogits = (one_hot(y, 5) - p) / n', why: 'That is the direction in which the loss falls. The gradient points the other way.' },
            { code: 'dlogits = -one_hot(y, 5) / p / n', why: 'That is the gradient of the probabilities, before softmax.' },
          ],
          because: 'The right class has its 1 taken off, and the mean gives the $1/n$.',
        })),
        ask('softmax-max', (d) => ({
          ask: 'The row maximum is subtracted for safety only. The gradient of this shift:',
          source: `logits = leaf([[${d.int(1, 4)}.0, ${d.int(-3, 0)}.0]])\nm = leaf(${d.int(1, 5)}.0)\nnorm = logits - m\ncounts = exp(norm)\nprobs = counts / counts.sum(1, keepdims=True)\nloss = -log(probs[range(1), [0]]).mean()`,
          want: 'm.grad',
          wrong: [
            { is: () => -1, why: 'The minus would be right for one path. The paths over numerator and denominator cancel.' },
            { is: () => 1, why: 'The probabilities do not move with the shift.' },
          ],
          because: 'A shift of all logits changes no probability: the gradient is 0 but for rounding.',
        })),
        {
          exercise: {
            id: 'cross-entropy-line',
            title: 'Cross-entropy in one line',
            setup: 'logits = randn(6, 4)\ny = randint(0, 4, [6])\n# loss = cross_entropy(logits, y), the mean over 6 rows',
            start: 'dlogits = \n',
            reference: 'p = exp(logits) / exp(logits).sum(1, keepdims=True)\ndlogits = (p - one_hot(y, 4)) / 6',
            want: ['dlogits'],
            slip: 'dlogits = softmax(logits, axis=1) - one_hot(y, 4)',
            hint: 'Probabilities minus one-hot, and the mean over the rows.',
          },
        },
      ],
    },
  ],
};

export const batchNorm: Lesson = {
  id: 'batch-norm',
  title: 'Batch norm and its three paths',
  about: 'Each example moves the mean and the variance of all',
  pages: [
    {
      title: 'Three ways from x to the loss',
      blocks: [
        { text: 'Batch norm takes off the mean of the batch and divides by its standard deviation. So one element of `x` reaches the loss on three paths: directly, over the mean, and over the variance. Its gradient is the sum of three parts.\n\nStep through, and look at the contributions where the paths meet, at `x` and at `diff`.' },
        { trace: { source: 'x = leaf([[1.0], [{b}], [4.0]])\nmean = x.mean(0, keepdims=True)\ndiff = x - mean\nvar = (diff ** 2).sum(0, keepdims=True) / 2\ninv = (var + 0.00001) ** -0.5\nraw = diff * inv\nloss = sum(raw * [[1.0], [-2.0], [0.5]])', sliders: [{ name: 'b', label: 'second example', min: -3, max: 6, step: 0.5, value: 2 }] } },
        ask('bn-total', (d) => ({
          ask: 'A shift of the whole batch is taken out again. The gradient of the shift:',
          source: `shift = leaf(${d.int(1, 5)}.0)\nx = [[1.0], [${d.int(2, 5)}.0], [7.0]] + shift\ndiff = x - x.mean(0, keepdims=True)\nraw = diff * ((diff ** 2).mean(0, keepdims=True) + 0.001) ** -0.5\nloss = sum(raw * [[1.0], [-2.0], [${d.int(3, 6)}.0]])`,
          want: 'shift.grad',
          wrong: [
            { is: () => 1, why: 'The mean moves along, and is taken off.' },
            { is: () => 3, why: 'Each of the three examples moves, and so does the mean: the difference stays.' },
          ],
          because: 'Batch norm does not see a shift. This is why a bias before it gets no gradient to speak of.',
        })),
        ask('bn-mean-path', (d) => {
          const g = d.list(3, -4, 6);
          const i = d.int(0, 2);
          return {
            ask: `Only the mean is taken off here. Element ${i} of the gradient of \`x\`: two paths.`,
            source: `x = leaf([1.0, 2.0, 5.0])\ndiff = x - x.mean(0, keepdims=True)\nloss = sum(diff * [${g.map((v) => `${v}.0`).join(', ')}])`,
            want: 'x.grad',
            at: i,
            wrong: [
              { is: () => g[i], why: 'That is the direct path. Each element also moves the mean, which all three share.' },
              { is: () => -(g[0] + g[1] + g[2]) / 3, why: 'That is the path over the mean alone.' },
              { is: () => g[i] - (g[0] + g[1] + g[2]), why: 'An element moves the mean by a third of itself.' },
              { is: () => g[i] + (g[0] + g[1] + g[2]) / 3, why: 'The mean is taken *off*: its path has a minus.' },
            ],
            because: 'The gradient with its own mean taken off: subtracting a mean is its own backward pass.',
          };
        }),
      ],
    },
    {
      title: 'The variance, and one line for all',
      blocks: [
        { text: 'The variance divides by $n - 1$ (unbiased) or by $n$. The backward pass has to use the same number; mixing them up is a mistake of a few percent, too small to see in a plot and large enough to spoil a comparison.\n\nAll steps together collapse to one line:\n\n$$\\mathrm{d}x = \\frac{\\gamma}{n \\, \\sigma} \\left( n \\, \\mathrm{d}y - \\sum \\mathrm{d}y - \\frac{n}{n-1} \\, \\hat{x} \\sum \\mathrm{d}y \\, \\hat{x} \\right)$$' },
        { film: { name: 'batch-norm' } },
        ask('bn-variance', (d) => {
          const x = d.apart(3, 0, 8).map((v) => v * 1);
          const mean = (x[0] + x[1] + x[2]) / 3;
          return {
            ask: 'The variance with $n - 1$. The gradient of the first element, two decimals:',
            source: `x = leaf([${x.map((v) => `${v}.0`).join(', ')}])\nv = x.var(0, ddof=1)`,
            want: 'x.grad',
            at: 0,
            also: ['v'],
            wrong: [
              { is: () => (2 * (x[0] - mean)) / 3, why: 'That divides by $n$. This variance divides by $n - 1$.' },
              { is: () => (x[0] - mean) / 2, why: 'The 2 of the square is missing.' },
              { is: () => x[0], why: 'The mean has to be taken off: $2 (x - \\bar x) / (n - 1)$.' },
              { is: (v) => v.v[0], why: 'That is the variance itself.' },
            ],
            because: '$2 (x_0 - \\bar x) / (n - 1)$. The path over the mean adds nothing, for the differences add up to 0.',
          };
        }),
        askShape('bn-gain', (d) => {
          const [n, k] = d.apart(2, 2, 9);
          return {
            ask: 'The shape of the gradient of the gain:',
            source: `x = leaf(randn(${n}, ${k}))\ngain = leaf(ones(1, ${k}))\nraw = (x - x.mean(0, keepdims=True)) * (x.var(0, keepdims=True) + 0.001) ** -0.5\ny = gain * raw\nloss = sum(y * y)`,
            want: 'gain.grad.shape',
            also: ['y.shape'],
            wrong: [
              { is: (v) => v['y.shape'], why: 'The gain was repeated over the rows; on the way back it is summed over them.' },
              { is: () => [k], why: 'The gain has two axes, the first of size 1.' },
            ],
            because: 'The shape of the gain, after a sum over the rows.',
          };
        }),
        {
          exercise: {
            id: 'batch-norm-line',
            title: 'Batch norm, backwards',
            setup: 'x = randn(8, 3)\nmean = x.mean(0, keepdims=True)\nvar = x.var(0, keepdims=True, ddof=1)\ninv = (var + 1e-5) ** -0.5\nraw = (x - mean) * inv\ndraw = randn(8, 3)',
            start: '# From draw to dx, in one line or in steps.\nn = 8\ndx = \n',
            reference: 'n = 8\ndinv = (draw * (x - mean)).sum(0, keepdims=True)\ndvar = -0.5 * (var + 1e-5) ** -1.5 * dinv\nddiff = draw * inv + 2 * (x - mean) / (n - 1) * dvar\ndx = ddiff - ddiff.sum(0, keepdims=True) / n',
            want: ['dx'],
            slip: 'n = 8\ndx = inv / n * (n * draw - draw.sum(0, keepdims=True) - raw * (draw * raw).sum(0, keepdims=True))',
            hint: 'In steps: `dinv` sums over the rows, then `dvar`, then the two parts of the difference, then its mean. In one line, mind the $n / (n - 1)$.',
          },
        },
      ],
    },
  ],
};

export const names: Lesson = {
  id: 'names',
  title: 'A whole model by hand',
  about: 'The 26 gradients of the names model, checked line by line',
  pages: [
    {
      title: 'The model, and its shapes',
      blocks: [
        { text: 'A small model guesses the next letter of a name from the three before: a table of vectors, a linear layer, batch norm, tanh, and a linear layer to 27 logits. Written out in small steps it has 26 values whose gradients one can write by hand, each in a line.\n\nTwo rules carry through: a gradient has the shape of its value; and a value that is used twice gets two parts.' },
        {
          lab: {
            source: 'C = leaf(randn(27, {k}))\nX = randint(0, 27, [{n}, 3])\nW1 = leaf(randn(3 * {k}, 8) * 0.3)\nemb = C[X]\nembcat = emb.reshape({n}, 3 * {k})\nh = tanh(embcat @ W1)\nloss = (h ** 2).mean()',
            sliders: [{ name: 'n', label: 'examples', min: 1, max: 12, step: 1, value: 4 }, { name: 'k', label: 'numbers for a letter', min: 1, max: 10, step: 1, value: 6 }],
            pictures: [{ as: 'map', want: 'embcat.grad', label: 'gradient of embcat' }, { as: 'map', want: 'C.grad', label: 'gradient of the table: rows of letters that occur' }, { as: 'map', want: 'W1.grad', label: 'gradient of W1' }],
          },
        },
        askShape('names-emb', (d) => {
          const [n, t, k, h] = [d.int(3, 8), 3, d.int(2, 6), d.int(7, 12)];
          return {
            ask: 'The shape of the gradient of `emb`, before its rows are laid side by side:',
            source: `C = leaf(randn(27, ${k}))\nX = randint(0, 27, [${n}, ${t}])\nW1 = leaf(randn(${t * k}, ${h}))\nemb = C[X]\nembcat = emb.reshape(${n}, ${t * k})\nh = tanh(embcat @ W1)\nloss = sum(h)`,
            want: 'emb.grad.shape',
            also: ['embcat.shape'],
            wrong: [
              { is: (v) => v['embcat.shape'], why: 'That is `embcat`, after the reshape. The way back takes it apart again.' },
              { is: () => [27, k], why: 'That is the table.' },
            ],
            because: 'A vector for each letter of each context.',
          };
        }),
        ask('names-logprobs', (d) => {
          const n = d.pick([4, 5, 8, 10]);
          return {
            ask: 'The first line of the backward pass: the gradient of `logprobs` at the element that was picked.',
            source: `logprobs = leaf([${Array.from({ length: n }, (_, i) => `[-${1 + (i % 3)}.0, -2.0]`).join(', ')}])\nloss = -logprobs[range(${n}), [${Array(n).fill(0).join(', ')}]].mean()`,
            want: 'logprobs.grad',
            at: 0,
            wrong: [
              { is: () => -1, why: 'The mean divides by the number of rows.' },
              { is: () => 1 / n, why: 'The minus of the loss is missing.' },
              { is: () => -1 / (2 * n), why: 'One element of each row is picked: the mean is over the rows, not over all elements.' },
            ],
            because: '$-1/n$ where an element was picked, 0 elsewhere.',
          };
        }),
        ask('names-counts-sum', (d) => {
          const x = d.pick([2, 4, 5]);
          const g = d.big(5);
          return {
            ask: 'One of the lines: the inverse of a sum. The gradient of `counts_sum`:',
            source: `counts_sum = leaf(${x}.0)\ncounts_sum_inv = counts_sum ** -1\nloss = counts_sum_inv * ${g}`,
            want: 'counts_sum.grad',
            wrong: [
              { is: () => g / x / x, why: 'The exponent $-1$ comes down with its sign.' },
              { is: () => -g / x, why: 'The exponent falls from $-1$ to $-2$: the square of the sum.' },
              { is: () => -1 / x / x, why: 'The gradient that comes in is missing.' },
            ],
            because: '$-s^{-2}$ times the gradient that comes in.',
          };
        }),
        askCode('names-tanh', (d) => ({
          ask: 'A line in the middle, `h = tanh(hpreact)`:',
          setup: `hpreact = randn(${d.int(3, 6)}, 4)\nh = tanh(hpreact)\ndh = h * 2 - 1`,
          reference: 'c = 0.5 * (exp(hpreact) + exp(-hpreact))\ndhpreact = dh / c ** 2',
          want: 'dhpreact',
          options: [
            { code: 'dhpreact = (1.0 - h**2) * dh', why: '' },
            { code: 'dhpreact = (1.0 - hpreact**2) * dh', why: 'The rule uses the output `h`, not the input.' },
            { code: 'dhpreact = (1.0 - h)**2 * dh', why: 'The square is on $h$ alone: $1 - h^2$, not $(1 - h)^2$.' },
            { code: 'dhpreact = 1.0 - h**2', why: 'The gradient that comes in is missing.' },
          ],
          because: 'The output is at hand, so no tanh is computed again.',
        })),
      ],
    },
    {
      title: 'All 26, line by line',
      blocks: [
        { text: 'The forward pass is on the left. Write the gradient of each value in reverse order; the table compares each with the library\'s own after every line: *exact* is equal to the last bit, *approximate* equal but for rounding. If a line is wrong, the verdict says which mistake gives just these numbers.' },
        { backward: { example: 'names' } },
      ],
    },
  ],
};

export const collapse: Lesson = {
  id: 'collapse',
  title: 'Collapse it yourself',
  about: 'A derivation on paper, checked line by line',
  pages: [
    {
      title: 'Each line has to give the same numbers',
      blocks: [
        { text: 'A derivation is a row of lines that all have the same value. That can be checked without any algebra: evaluate each line on random numbers. Below, write your derivation of the gradient of a softmax with a logarithm, one line after the other; each variable is compared with the gradient by its own name.' },
        {
          lab: {
            source: 'x = array([{a}, {b}, {c}]) / 1.0\np = exp(x) / sum(exp(x))\ny = array([1.0, 0.0, 0.0])\ndp = -y / p\nby_rule = p * (dp - sum(dp * p))\nmultiplied = -y + p * sum(y)\nshort = p - y\nv = leaf(x)\nloss = -log(softmax(v, axis=0)[0])',
            sliders: [{ name: 'a', label: 'x0', min: -3, max: 3, step: 0.1, value: 1 }, { name: 'b', label: 'x1', min: -3, max: 3, step: 0.1, value: 0.5 }, { name: 'c', label: 'x2', min: -3, max: 3, step: 0.1, value: -1 }],
            pictures: [{ as: 'map', want: 'by_rule', label: 'by the rule of softmax' }, { as: 'map', want: 'multiplied', label: 'multiplied out' }, { as: 'map', want: 'short', label: 'p − y' }, { as: 'map', want: 'v.grad', label: "autograd's" }],
          },
        },
        {
          exercise: {
            id: 'collapse-softmax',
            title: 'From the product rule to p − y, in four lines',
            setup: 'x = randn(5)\np = exp(x) / sum(exp(x))\ny = one_hot(array([2]), 5)[0]\n# loss = -log(p[2]), written -sum(y * log(p))',
            start: '# dp: through the logarithm\ndp = -y / p\n# line 1: softmax\'s rule, p * (dp - sum(dp * p))\nline1 = \n# line 2: the same with dp put in\nline2 = \n# line 3: multiplied out\nline3 = \n',
            reference: 'dp = -y / p\nline1 = p * (dp - sum(dp * p))\nline2 = line1\nline3 = line1',
            want: ['dp', 'line1', 'line2', 'line3'],
            slip: 'dp = -y / p\nline1 = p * (dp - sum(dp * p))\nline2 = p * (-y / p + sum(y))\nline3 = y - p',
            hint: '`sum(dp * p)` is `-sum(y)`, which is $-1$. So line 2 is `p * (-y / p + 1)`, and line 3 takes out the brackets.',
          },
        },
        ask('collapse-sum', (d) => ({
          ask: 'A sum that the derivation needs: $\\sum_i y_i$ for a one-hot $y$, times $-1$.',
          source: `p = leaf([0.2, 0.5, 0.3])\ny = [${[0, 1, 2].map((i) => (i === d.seed % 3 ? '1.0' : '0.0')).join(', ')}]\ndp = -y / p\ns = sum(dp * p)\nloss = s`,
          want: 's',
          wrong: [
            { is: () => 1, why: 'The gradient of the probability has a minus.' },
            { is: () => 0, why: 'One element of $y$ is 1.' },
            { is: () => -3, why: 'Two of the three elements of $y$ are 0.' },
          ],
          because: 'The probabilities cancel, and one 1 is left.',
        })),
        askCode('collapse-bn', (d) => ({
          ask: 'A collapse in batch norm: `diff = x − mean(x)`, backwards, in one line:',
          setup: `n = ${d.int(4, 7)}\nx = randn(n, 2)\nddiff = x ** 2 + 1`,
          reference: 'dmean = -ddiff.sum(0, keepdims=True)\ndx = ddiff + dmean / n',
          want: 'dx',
          options: [
            { code: 'dx = ddiff - ddiff.mean(0, keepdims=True)', why: '' },
            { code: 'dx = ddiff', why: 'The path over the mean is missing.' },
            { code: 'dx = ddiff - ddiff.sum(0, keepdims=True)', why: 'The mean divides by $n$, and so does its backward pass.' },
            { code: 'dx = ddiff - ddiff.mean(1, keepdims=True)', why: 'The mean runs over the rows of the batch, axis 0.' },
          ],
          because: 'To take off the mean is its own backward pass.',
        })),
        ask('collapse-logistic', (d) => ({
          ask: 'The same collapse for two classes: sigmoid with cross-entropy. The gradient of the logit, two decimals:',
          source: `z = leaf(${d.tenth(-2, 2)})\np = sigmoid(z)\nloss = -log(p)`,
          want: 'z.grad',
          also: ['p'],
          wrong: [
            { is: (v) => v.p[0], why: 'The label 1 has to be taken off: $p - 1$.' },
            { is: (v) => 1 - v.p[0], why: 'The sign: it is $p - y$.' },
            { is: (v) => -1 / v.p[0], why: 'That is the gradient of $p$. The sigmoid is still to be passed.' },
            { is: (v) => v.p[0] * (1 - v.p[0]), why: 'That is the slope of the sigmoid alone.' },
          ],
          because: '$-\\tfrac{1}{p} \\cdot p (1 - p) = p - 1$.',
        })),
      ],
    },
  ],
};
