// Training: one's own backward pass, depth, checks, clipping, memory.

import { ask, askCode, type Lesson, type Slider } from './kit';

const slider = (name: string, label: string, min: number, max: number, value: number, step = 0.1): Slider => ({ name, label, min, max, step, value });

export const ownTraining: Lesson = {
  id: 'own-training',
  title: 'Train with your own backward pass',
  about: 'A step is forward, backward, update',
  pages: [
    {
      title: 'Downhill, by hand',
      blocks: [
        { text: 'A gradient says where the loss grows; a step goes the other way: `w = w - rate * dw`. With a small rate it creeps, with a large one it overshoots, and beyond a border it flies apart. Find the border for this parabola.' },
        {
          lab: {
            source: 'w = 3.0\npath = zeros(30)\nfor i in range(30):\n  path[i] = w\n  dw = 2 * {c} * w\n  w = w - {rate} * dw\nsteps = arange(30)\nloss = leaf(w) * 1',
            sliders: [slider('rate', 'rate', 0, 1.2, 0.1, 0.01), slider('c', 'curvature', 0.2, 2, 1)],
            pictures: [{ as: 'curve', x: 'steps', y: [{ want: 'path', label: 'w' }], label: 'The parameter over the steps' }],
          },
        },
        ask('step-once', (d) => {
          const [w, x, y, r] = [d.int(1, 4), d.int(2, 4), d.int(1, 9), d.pick([0.1, 0.05, 0.2])];
          return {
            ask: `One step of gradient descent with rate ${r}. The weight after it, \`moved\`:`,
            source: `w = leaf(${w}.0)\ndw = 2 * (w * ${x} + ${y}) * ${x}\nmoved = w - ${r} * dw`,
            want: 'moved',
            also: ['w', 'dw'],
            wrong: [
              { is: (v) => v.w[0] + r * v.dw[0], why: 'That step goes uphill: the gradient points where the loss grows.' },
              { is: (v) => v.w[0] - v.dw[0], why: 'The rate is missing.' },
              { is: (v) => -r * v.dw[0], why: 'That is the step; it still has to be added to the weight.' },
              { is: (v) => v.dw[0], why: 'That is the gradient.' },
            ],
            because: 'Against the gradient, times the rate.',
          };
        }),
        ask('step-border', (d) => {
          const c = d.pick([0.5, 1, 2, 2.5, 4, 5]);
          return {
            ask: `The loss is $${c} w^2$. At this rate a step throws \`w\` to exactly the other side, $-w$; above it training flies apart.`,
            source: `c = leaf(${c})\ncurvature = 2 * c\nborder = 2 / curvature`,
            want: 'border',
            also: ['curvature'],
            wrong: [
              { is: (v) => 1 / v.curvature[0], why: 'That rate reaches the bottom in one step.' },
              { is: (v) => v.curvature[0], why: 'That is the curvature; a steeper valley needs a smaller rate.' },
              { is: () => 2 / c, why: 'The curvature of $c w^2$ is $2c$.' },
            ],
            because: 'Two over the curvature.',
          };
        }),
      ],
    },
    {
      title: 'A network of your own',
      blocks: [
        { text: 'The same unit is trained twice from the same start: by a loop with a backward pass of two lines by hand, and by autograd. The curves lie on each other, and the losses differ by rounding at most. Change the rate; then choose a wrong slope for tanh, and see that the loss still falls: a wrong gradient often learns, only worse.' },
        {
          sides: {
            hand: 't = linspace(-2, 2, 24)\nX = stack([t, t * t], 1)\ntarget = unsqueeze(sin(2 * t), 1)\nW = array([[0.3], [-0.2]])\nb = zeros(1)\nlosses = zeros(60)\nfor i in range(60):\n  h = tanh(X @ W + b)\n  losses[i] = ((h - target) ** 2).mean().item()\n  dh = 2 * (h - target) / 24\n  dn = dh * {slope}\n  W = W - {rate} * (X.T @ dn)\n  b = b - {rate} * dn.sum(0)\nloss = leaf(1.0) * losses[59]',
            autograd: 't = linspace(-2, 2, 24)\nX = stack([t, t * t], 1)\ntarget = unsqueeze(sin(2 * t), 1)\nW = leaf(array([[0.3], [-0.2]]))\nb = leaf(zeros(1))\nh = tanh(X @ W + b)\nloss = ((h - target) ** 2).mean()',
            losses: 'losses',
            steps: 60,
            sliders: [slider('rate', 'rate', 0.02, 1, 0.2, 0.02)],
            choice: { name: 'slope', label: 'slope of tanh', options: ['(1 - h**2)', '(1 - h)', '(1 - h**2) / 2', '1.0', '-(1 - h**2)'] },
          },
        },
        {
          exercise: {
            id: 'manual-training',
            title: 'Twenty steps without autograd',
            setup: 'X = randn(12, 3)\nt = randn(12, 1)\nW = zeros(3, 1)\nrate = 0.1',
            start: '# The loss is mean((X @ W - t)**2). Make 20 steps of gradient descent.\nfor i in range(20):\n  d = X @ W - t\n  dW = \n  W = \n',
            reference: 'for i in range(20):\n  W = W - rate * 2 / 12 * (X.T @ (X @ W - t))',
            want: ['W'],
            slip: 'for i in range(20):\n  d = X @ W - t\n  dW = X.T @ d / 12\n  W = W - rate * dW',
            hint: 'The mean divides by 12, the square brings a 2, and the shape of `dW` is [3, 1].',
          },
        },
        askCode('training-order', () => ({
          ask: 'The line that updates the weight:',
          setup: 'W = randn(3, 2)\ndW = W * 2 + 1\nrate = 0.1',
          reference: 'W = 0.8 * W - 0.1',
          want: 'W',
          options: [
            { code: 'W = W - rate * dW', why: '' },
            { code: 'W = W + rate * dW', why: 'That goes uphill.' },
            { code: 'W = W - dW', why: 'The rate is missing.' },
            { code: 'W = -rate * dW', why: 'The step is added to the weight; it does not take its place.' },
          ],
          because: 'Against the gradient.',
        })),
      ],
    },
  ],
};

const deep = (layers: number) => {
  const lines = ['x = leaf(randn(32, 24))', 'g = {gain} / 24 ** 0.5', 'h0 = x'];
  for (let i = 1; i <= layers; i++) lines.push(`h${i} = {f}(h${i - 1} @ (randn(24, 24) * g))`);
  lines.push(`loss = sum(h${layers} * randn(32, 24))`);
  return lines.join('\n');
};
const DEPTH = 10;
const places = Array.from({ length: DEPTH }, (_, i) => i + 1);

export const saturation: Lesson = {
  id: 'saturation',
  title: 'Saturated, dead, vanishing, exploding',
  about: 'Gain, depth and activation on three sliders',
  pages: [
    {
      title: 'Flat places pass nothing on',
      blocks: [
        { text: 'Far from zero, tanh is flat: its slope $1 - y^2$ is near 0, and so is everything that it passes back. Such a unit is *saturated*. A relu whose input is negative for the whole batch passes exactly 0, in each step: it is *dead*, and never comes back by itself.' },
        {
          lab: {
            source: 'x = randn(200)\nn = leaf(x * {scale} + {shift})\nh = {f}(n)\nloss = sum(h)',
            sliders: [slider('scale', 'scale', 0.1, 6, 1), slider('shift', 'shift', -6, 6, 0)],
            choices: [{ name: 'f', label: 'activation', options: ['tanh', 'relu', 'sigmoid', 'gelu'] }],
            pictures: [{ as: 'map', want: 'h', label: 'outputs' }, { as: 'map', want: 'n.grad', label: 'slopes: what passes back' }],
          },
        },
        ask('saturated-slope', (d) => {
          const y = d.pick([0.9, 0.8, 0.99, 0.95]);
          return {
            ask: `The unit's output is ${y}. The share of the gradient that it passes on, \`slope\`:`,
            source: `y = leaf(${y})\nslope = 1 - y**2`,
            want: 'slope',
            wrong: [
              { is: () => 1 - y, why: 'The output is squared first.' },
              { is: () => y, why: 'That is the output.' },
              { is: () => y * (1 - y), why: 'That is the slope of a sigmoid.' },
            ],
            because: 'Little is left, and through several such layers almost nothing.',
          };
        }),
        ask('dead-relu', (d) => {
          const b = d.int(6, 12);
          return {
            ask: 'The gradient of the weight of this unit:',
            source: `w = leaf(1.5)\nx = [0.5, -1.0, ${d.int(1, 3)}.0]\nh = relu(w * x - ${b}.0)\nloss = sum((h - 1) ** 2)`,
            want: 'w.grad',
            also: ['loss'],
            wrong: [
              { is: (v) => v.loss[0], why: 'That is the loss.' },
              { is: () => 1, why: 'relu passes its gradient only where its input is positive, and here it nowhere is.' },
            ],
            because: 'All inputs of relu are negative: the unit is dead.',
          };
        }),
      ],
    },
    {
      title: 'Depth multiplies',
      blocks: [
        { text: 'A gradient that goes through ten layers is multiplied ten times. A factor of 0.6 leaves half a percent, a factor of 1.6 makes a hundred. The gain of the weights sets the factor. Find the gain at which the bars stay level: about 5/3 for tanh, $\\sqrt 2$ for relu, 1 without any activation.' },
        {
          lab: {
            source: deep(DEPTH),
            sliders: [slider('gain', 'gain', 0.3, 3, 1, 0.05)],
            choices: [{ name: 'f', label: 'activation', options: ['tanh', 'relu', 'gelu', 'sigmoid', 'sin'] }],
            pictures: [
              { as: 'bars', wants: places.map((i) => ({ want: `std(h${i})`, label: `h${i}` })), label: 'Standard deviation of the activations', log: true },
              { as: 'bars', wants: places.map((i) => ({ want: `h${i}.grad`, label: `dh${i}` })), label: 'Norm of the gradient', log: true },
            ],
          },
        },
        ask('vanish-power', (d) => {
          const [f, n] = [d.pick([0.5, 0.6, 2, 3]), d.int(3, 5)];
          return {
            ask: `Each of ${n} layers multiplies by ${f}. The factor of all of them:`,
            source: `x = leaf(1.0)\n${Array.from({ length: n }, (_, i) => `h${i} = ${i === 0 ? 'x' : `h${i - 1}`} * ${f}`).join('\n')}`,
            want: 'x.grad',
            wrong: [
              { is: () => f * n, why: 'Slopes in a row are multiplied, not added.' },
              { is: () => f, why: 'That is one layer.' },
              { is: () => f ** (n - 1), why: 'One layer is missing.' },
            ],
            because: 'A power: small factors vanish and large ones explode.',
          };
        }),
        ask('init-std', (d) => {
          const n = d.pick([16, 25, 36, 64, 100]);
          return {
            ask: 'A sum of $n$ products with numbers of variance 1 has variance $n$. The factor for the weights that brings it back to 1:',
            source: `n = leaf(${n}.0)\nfactor = n ** -0.5`,
            want: 'factor',
            also: ['n'],
            wrong: [
              { is: () => 1 / n, why: 'That is the factor for the variance; a factor on the numbers enters the variance squared.' },
              { is: () => Math.sqrt(n), why: 'The weights have to become smaller.' },
              { is: () => n, why: 'That would make the variance $n^3$.' },
            ],
            because: 'One over the root of the number of inputs.',
          };
        }),
      ],
    },
  ],
};

export const gradientCheck: Lesson = {
  id: 'gradcheck',
  title: 'Checking gradients',
  about: 'A difference as a judge, and its step size',
  pages: [
    {
      title: 'The V-shaped curve',
      blocks: [
        { text: 'A gradient can be checked without any rule: nudge an input, and see how far the output moves. The step must not be too large, for then the curve bends; nor too small, for then rounding eats the difference. Between the two lies the best step, and the error over the step size is a V.\n\nA central difference, $(f(x+h) - f(x-h)) / 2h$, has an error of $h^2$ and not of $h$: its V is deeper, and its best step larger. Change the program and watch.' },
        { steps: { source: 'x = leaf(randn(5))\ny = tanh(x) * exp(0.3 * x)\nloss = sum(y)\n' } },
        ask('difference-one', (d) => {
          const [x, h] = [d.int(2, 5), d.pick([0.1, 0.2, 0.5])];
          return {
            ask: 'The one-sided difference quotient of $x^2$, not the slope:',
            source: `x = leaf(${x}.0)\nh = ${h}\nq = ((x + h) ** 2 - x ** 2) / h`,
            want: 'q',
            wrong: [
              { is: () => 2 * x, why: 'That is the slope. The quotient is off by $h$.' },
              { is: () => 2 * x - h, why: 'The step goes forward: the error is $+h$.' },
              { is: () => (2 * x + h) * h, why: 'That is the difference; it is divided by $h$.' },
            ],
            because: '$2x + h$: the error of a one-sided difference is of the size of $h$.',
          };
        }),
        ask('difference-central', (d) => {
          const [x, h] = [d.int(2, 4), d.pick([0.1, 0.5, 1])];
          return {
            ask: 'The central difference quotient of $x^3$:',
            source: `x = leaf(${x}.0)\nh = ${h}\nq = ((x + h) ** 3 - (x - h) ** 3) / (2 * h)`,
            want: 'q',
            wrong: [
              { is: () => 3 * x * x, why: 'That is the slope. A cubic still has an error of $h^2$.' },
              { is: () => 3 * x * x + 3 * x * h + h * h, why: 'That is the one-sided quotient.' },
              { is: () => 2 * (3 * x * x + h * h), why: 'The two points are $2h$ apart.' },
            ],
            because: '$3x^2 + h^2$: the terms with $h$ cancel.',
          };
        }),
        ask('best-step', () => ({
          ask: 'Double precision rounds to about $10^{-16}$. The one-sided error is about $h + 10^{-16} / h$; it is least at the root of $10^{-16}$. The exponent of ten of that step:',
          source: 'epsilon = leaf(1e-16)\nh = sqrt(epsilon)\nexponent = log(h) / log(10.0)',
          want: 'exponent',
          wrong: [
            { is: () => -16, why: 'There the difference is nothing but rounding.' },
            { is: () => 8, why: 'The step is small: the sign of the exponent is minus.' },
            { is: () => -5, why: 'That is near the best step of a *central* difference, the cube root.' },
          ],
          because: 'About $10^{-8}$; for a central difference about $10^{-5}$.',
        })),
        {
          exercise: {
            id: 'gradient-checker',
            title: 'A gradient checker',
            setup: 'def f(x):\n  return sum(tanh(x) * x)\nx = randn(4)\nh = 1e-5',
            start: '# The gradient of f at x by central differences.\ng = zeros(4)\nfor i in range(4):\n  up = x.copy()\n  down = x.copy()\n  \n  g[i] = \n',
            reference: 'g = tanh(x) + x * (1 - tanh(x) ** 2)',
            want: ['g'],
            slip: 'g = zeros(4)\nfor i in range(4):\n  up = x.copy()\n  up[i] = up[i] + h\n  g[i] = (f(up) - f(x)) / (2 * h)',
            solution: 'g = zeros(4)\nfor i in range(4):\n  up = x.copy()\n  down = x.copy()\n  up[i] = up[i] + h\n  down[i] = down[i] - h\n  g[i] = (f(up) - f(down)) / (2 * h)',
            hint: 'Move one element up by `h` in one copy and down in the other; divide by the distance of the two, `2 * h`.',
          },
        },
      ],
    },
  ],
};

export const clipping: Lesson = {
  id: 'clipping',
  title: 'Clipping and watching',
  about: 'One bad batch, and the numbers to keep an eye on',
  pages: [
    {
      title: 'Clip the norm, keep the direction',
      blocks: [
        { text: 'One odd batch can give a gradient a hundred times as long as usual, and one step along it can ruin a run. Clipping by *norm* shortens all gradients by one common factor, so that the direction stays. Clipping each *value* bends the direction.' },
        {
          lab: {
            source: 'g = array([{a}, {b}]) / 1.0\nlimit = {c}\nlength = norm(g)\nby_norm = g * minimum(1.0, limit / length)\nby_value = clip(g, -limit, limit)\nloss = leaf(1.0) * length',
            sliders: [slider('a', 'first', -8, 8, 6), slider('b', 'second', -8, 8, 2), slider('c', 'limit', 0.5, 8, 2)],
            pictures: [{ as: 'number', want: 'length', label: 'norm' }, { as: 'map', want: 'g', label: 'gradient' }, { as: 'map', want: 'by_norm', label: 'clipped by norm: same direction' }, { as: 'map', want: 'by_value', label: 'clipped by value: another direction' }],
          },
        },
        ask('clip-norm', (d) => {
          const [k, c] = [d.int(2, 4), d.pick([1, 2, 2.5])];
          return {
            ask: 'The first element after clipping by norm:',
            source: `g = leaf([${3 * k}.0, ${4 * k}.0])\nlimit = ${c}\nlength = sqrt(sum(g * g))\nclipped = g * limit / length`,
            want: 'clipped',
            at: 0,
            also: ['length'],
            wrong: [
              { is: () => c, why: 'That is clipping by value. By norm all elements are shortened by the same factor.' },
              { is: (v) => v.length[0], why: 'That is the norm before clipping.' },
              { is: (v) => (3 * k) / v.length[0], why: 'That has norm 1; the limit is a factor.' },
              { is: () => (3 * k * c) / (7 * k), why: 'The norm is the root of the sum of squares, not the sum.' },
              { is: () => 0.8 * c, why: 'That is the second element.' },
            ],
            because: 'The gradient times limit over norm.',
          };
        }),
        ask('global-norm', (d) => {
          const [a, b] = d.pick([[3, 4], [6, 8], [5, 12], [8, 15]]);
          return {
            ask: 'Two parameters have gradients of these norms. The norm of all together:',
            source: `a = leaf(${a}.0)\nb = leaf(${b}.0)\ntotal = sqrt(a ** 2 + b ** 2)`,
            want: 'total',
            wrong: [
              { is: () => a + b, why: 'Squares are added, not norms.' },
              { is: () => Math.max(a, b), why: 'That is the larger one.' },
              { is: () => a * a + b * b, why: 'The root is missing.' },
            ],
            because: 'As if all parameters were one long vector.',
          };
        }),
        ask('update-ratio', (d) => {
          const [r, g, v] = [d.pick([0.1, 0.01]), d.pick([0.01, 0.1, 1]), d.pick([0.1, 1])];
          return {
            ask: 'The update ratio, as a power of ten: $\\log_{10}$ of (rate × std of gradient / std of value). About $-3$ is healthy.',
            source: `rate = ${r}\ngrad_std = leaf(${g})\nvalue_std = ${v}\nratio = log(rate * grad_std / value_std) / log(10.0)`,
            want: 'ratio',
            wrong: [
              { is: () => (r * g) / v, why: 'That is the ratio. Its exponent of ten is asked for.' },
              { is: () => Math.log10(g / v), why: 'The rate belongs to the update.' },
              { is: () => Math.log(r * g / v), why: 'That is the natural logarithm.' },
            ],
            because: 'Near $-1$ a parameter is thrown about, near $-6$ it stands still.',
          };
        }),
      ],
    },
  ],
};

export const checkpointing: Lesson = {
  id: 'checkpointing',
  title: 'Checkpoints: memory for time',
  about: 'Values kept, values computed again',
  pages: [
    {
      title: 'The backward pass needs what the forward pass made',
      blocks: [
        { text: 'A rule often needs a value of the forward pass: tanh its output, a product its factors. So these values stay in memory until the backward pass has come back to them. The map below shows from which line to which each value of a compiled step lives: those that the backward pass waits for form the mountain. Add layers and see it grow, and the arena with it.' },
        { arena: { source: 'h = randn(64, 32)\nW = leaf(randn(32, 32) * 0.2)\nfor i in range({n}):\n  h = tanh(h @ W)\nloss = sum(h * h)', sliders: [slider('n', 'layers', 1, 16, 6, 1)] } },
        { text: 'A *checkpoint* keeps only some of the values, and computes the others again when the backward pass needs them. With a checkpoint after every $k$ of $n$ layers, about $n/k$ checkpoints and $k$ values of one stretch are in memory at once. The sum is least at $k = \\sqrt n$; the price is one more forward pass.' },
        {
          lab: {
            source: 'k = leaf(linspace(1, 64, 64))\nn = {n}\nkept = n / k + k\nloss = sum(kept)',
            sliders: [slider('n', 'layers', 4, 400, 100, 4)],
            pictures: [{ as: 'curve', x: 'k', y: [{ want: 'kept', label: 'values in memory' }], label: 'Values in memory, over the layers between checkpoints' }],
          },
        },
        ask('checkpoint-count', (d) => {
          const [n, k] = d.pick([[36, 4], [64, 16], [100, 20], [48, 8], [60, 10]]);
          return {
            ask: 'The number of values in memory at once, with this rule:',
            source: `n = ${n}\nk = leaf(${k}.0)\nkept = n / k + k`,
            want: 'kept',
            wrong: [
              { is: () => n, why: 'That is without checkpoints.' },
              { is: () => n / k, why: 'The values of the stretch that is computed again are in memory, too.' },
              { is: () => k, why: 'The checkpoints themselves are in memory, too.' },
              { is: () => n - k, why: 'There is a checkpoint for each stretch of $k$ layers.' },
            ],
            because: 'Checkpoints, and the values of one stretch.',
          };
        }),
        ask('checkpoint-best', (d) => {
          const n = d.pick([16, 25, 36, 64, 81, 100]);
          return {
            ask: `At the best $k$ for ${n} layers, this many values are in memory:`,
            source: `n = leaf(${n}.0)\nk = sqrt(n)\nkept = n / k + k`,
            want: 'kept',
            also: ['k'],
            wrong: [
              { is: (v) => v.k[0], why: 'That is $k$ itself. Checkpoints and one stretch are both in memory.' },
              { is: () => n / 2, why: 'The sum $n/k + k$ is least where both parts are equal.' },
              { is: () => n, why: 'That is without checkpoints.' },
            ],
            because: 'Twice the root: $n/k$ and $k$ are equal there.',
          };
        }),
        ask('checkpoint-cost', (d) => {
          const f = d.int(2, 9);
          return {
            ask: 'A backward pass costs twice a forward pass. The cost of a step with checkpoints, where each stretch is computed once more:',
            source: `forward = leaf(${f}.0)\nbackward = 2 * forward\nagain = forward\ntotal = forward + backward + again`,
            want: 'total',
            wrong: [
              { is: () => 3 * f, why: 'That is a step without checkpoints.' },
              { is: () => 2 * f, why: 'That is the backward pass alone.' },
              { is: () => 6 * f, why: 'Only the forward pass is run again.' },
            ],
            because: 'Four instead of three: a third more.',
          };
        }),
      ],
    },
  ],
};
