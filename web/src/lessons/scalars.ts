// Scalars and graphs: the chain rule, accumulation, element-wise rules.

import { ask, askCode, type Lesson } from './kit';

const slider = (name: string, label: string, min: number, max: number, value: number, step = 0.1) => ({ name, label, min, max, step, value });

export const chainRule: Lesson = {
  id: 'chain-rule',
  title: 'From one slope to a graph',
  about: 'A derivative as a factor, and a chain of them',
  pages: [
    {
      title: 'A slope says how far a nudge goes',
      blocks: [
        { text: 'Nudge $x$ by a little $h$. The result moves by about $h$ times a factor, and that factor is the *slope* of $y$ at $x$. Move $x$ below; then make $h$ small and watch the difference quotient come close to the slope.' },
        {
          lab: {
            source: 'x = leaf({x})\ny = x**3 / 3 - x\nmoved = ({x} + {h})**3 / 3 - ({x} + {h})\nquotient = (moved - y) / {h}\nloss = y',
            sliders: [slider('x', 'x', -2, 2, 1.5), slider('h', 'h', 0.01, 1, 0.5, 0.01)],
            pictures: [
              { as: 'number', want: 'y', label: 'y' },
              { as: 'number', want: 'quotient', label: 'difference quotient' },
              { as: 'number', want: 'x.grad', label: 'slope, as autograd has it' },
            ],
          },
        },
        {
          lab: {
            source: 't = leaf(linspace(-2, 2, 81))\ncurve = t**3 / 3 - t * {a}\nloss = sum(curve)',
            sliders: [slider('a', 'a', -1, 2, 1)],
            pictures: [{ as: 'curve', x: 't', y: [{ want: 'curve', label: 'function' }, { want: 't.grad', label: 'its slope' }], label: 'A function and its slope at each place' }],
          },
        },
        ask('slope-polynomial', (d) => {
          const [a, b, x] = [d.int(2, 5), d.big(6), d.int(2, 4)];
          return {
            ask: 'The slope of $y$ with respect to $x$, at this $x$:',
            source: `x = leaf(${x}.0)\ny = ${a} * x**2 + ${b} * x`,
            want: 'x.grad',
            also: ['y'],
            wrong: [
              { is: (v) => v.y[0], why: 'That is the value of $y$. The slope says how fast it changes.' },
              { is: () => a * x + b, why: 'The 2 of the square is missing: the slope of $x^2$ is $2x$.' },
              { is: () => 2 * a * x, why: 'The second term has a slope, too: that of $bx$ is $b$.' },
              { is: () => 2 * a * x + b * x, why: 'The slope of $bx$ is $b$, without the $x$.' },
            ],
            because: `The slope of $${a}x^2$ is $${2 * a}x$, and that of the second term is $${b}$.`,
          };
        }),
      ],
    },
    {
      title: 'Slopes in a row are multiplied',
      blocks: [
        { text: 'If $u$ moves 3 times as fast as $x$, and $y$ moves 5 times as fast as $u$, then $y$ moves 15 times as fast as $x$. This is the chain rule, and all of backpropagation is made of it:\n\n$$\\frac{dy}{dx} = \\frac{dy}{du} \\cdot \\frac{du}{dx}$$\n\nStep through the program. The gradient starts with 1 at the end, and each line multiplies it with its own local slope.' },
        { trace: { source: 'x = leaf({x})\nu = x * {a}\nv = u + 1\ny = v ** 2', sliders: [slider('x', 'x', -2, 2, 1, 0.5), slider('a', 'a', -3, 3, 2, 0.5)] } },
        ask('chain-two', (d) => {
          const [a, b, x] = [d.big(4), d.int(1, 5), d.int(1, 4)];
          return {
            ask: 'Multiply the local slopes.',
            source: `x = leaf(${x}.0)\nu = ${a} * x + ${b}\ny = u**2`,
            want: 'x.grad',
            also: ['u'],
            wrong: [
              { is: (v) => 2 * v.u[0], why: 'That is the slope with respect to $u$. One factor is missing: how fast $u$ moves with $x$.' },
              { is: () => a, why: 'That is how fast $u$ moves with $x$; the slope of the square belongs to it, too.' },
              { is: (v) => a * v.u[0], why: 'The slope of $u^2$ is $2u$: the 2 is missing.' },
              { is: () => 2 * x * a, why: 'The slope of the square is taken at $u$, not at $x$.' },
              { is: (v) => 2 * v.u[0] + a, why: 'Slopes in a row are multiplied, not added.' },
            ],
            because: 'It is $2u$ for the square, times the slope of $u$.',
          };
        }),
        ask('chain-three', (d) => {
          const [a, b, x] = [d.int(2, 4), d.int(2, 5), d.int(1, 3)];
          return {
            ask: 'Three in a row, and the gradient of the value in the middle is asked for: $\\partial y / \\partial u$.',
            source: `x = leaf(${x}.0)\nu = x + ${a}\nv = u * ${b}\ny = v * v`,
            want: 'u.grad',
            also: ['v', 'x.grad'],
            wrong: [
              { is: (v) => 2 * v.v[0], why: 'That is the gradient of $v$. Go one line further up.' },
              { is: (v) => v.v[0] * b, why: 'Both factors of $v \\cdot v$ are $v$: each gives a part.' },
              { is: () => b, why: 'That is the local slope of the line of $v$ alone; the gradient that comes in from $y$ belongs to it.' },
            ],
            because: 'The square gives $2v$, and the product hands it on times its constant. The sum above it changes nothing.',
          };
        }),
      ],
    },
    {
      title: 'A neuron',
      blocks: [
        { text: 'A neuron multiplies inputs by weights, adds a bias, and bends the sum with tanh. Its local slopes are few: a product hands the gradient to each factor *times the other factor*, a sum hands it on unchanged, and tanh multiplies it by $1 - \\tanh^2$.\n\nMove the bias until the neuron saturates, and see the gradient fade.' },
        { trace: { source: 'x1 = leaf(2.0)\nw1 = leaf({w1})\nx2 = leaf(0.5)\nw2 = leaf(1.0)\nb = leaf({b})\nn = x1 * w1 + x2 * w2 + b\no = tanh(n)', sliders: [slider('w1', 'w1', -3, 3, -1), slider('b', 'bias', -4, 6, 2)] } },
        ask('neuron-weight', (d) => {
          const [x, w, b] = [d.big(4), d.tenth(-1, 1), d.tenth(-1, 1)];
          return {
            ask: 'The gradient of the weight. Two decimals are enough.',
            source: `x = leaf(${x}.0)\nw = leaf(${w})\nb = leaf(${b})\nn = x * w + b\no = tanh(n)`,
            want: 'w.grad',
            also: ['o', 'x.grad', 'b.grad'],
            wrong: [
              { is: (v) => v['x.grad'][0], why: 'That is the gradient of the input: a product hands on the gradient times the *other* factor.' },
              { is: (v) => v['b.grad'][0], why: 'That is the gradient at the sum, which the bias gets. For the weight it is multiplied by the input.' },
              { is: () => x, why: 'The slope of tanh is missing.' },
              { is: (v) => x * v.o[0], why: 'The slope of tanh is $1 - o^2$, not $o$.' },
              { is: (v) => x * (1 - v.o[0]), why: 'The slope of tanh is $1 - o^2$: the output is squared.' },
            ],
            because: 'It is $(1 - o^2) \\cdot x$.',
          };
        }),
        ask('neuron-sum', (d) => {
          const [x1, x2, w1, w2] = [d.big(4), d.big(5), d.big(3), d.big(3)];
          return {
            ask: 'A sum passes its gradient to both sides. Then this is the gradient of $w_2$:',
            source: `w1 = leaf(${w1}.0)\nw2 = leaf(${w2}.0)\ns = ${x1} * w1 + ${x2} * w2\ny = 3 * s`,
            want: 'w2.grad',
            also: ['w1.grad'],
            wrong: [
              { is: () => x2, why: 'The last line multiplies everything by 3.' },
              { is: (v) => v['w1.grad'][0], why: 'That is the gradient of the other weight.' },
              { is: () => 3 * (x1 + x2), why: 'The other product does not depend on this weight; its input is not added.' },
              { is: () => (3 * x2) / 2, why: 'A sum does not share the gradient out: each side gets all of it.' },
            ],
            because: 'The sum hands on all of the 3, and the product multiplies by its input.',
          };
        }),
      ],
    },
  ],
};

export const accumulation: Lesson = {
  id: 'accumulation',
  title: 'Order, and adding up',
  about: 'Topological order, and a value used twice',
  pages: [
    {
      title: 'Used twice, added twice',
      blocks: [
        { text: 'In `y = x + x` the value `x` moves `y` along two paths. A nudge goes along both, so the two slopes are *added*: 1 + 1 = 2. A backward pass that writes the second gradient over the first says 1, the most common mistake there is.\n\nStep to `x` and look at its contributions.' },
        { trace: { source: 'x = leaf({x})\na = x * 3\nb = x ** 2\ny = a + b', sliders: [slider('x', 'x', -3, 3, 2, 0.5)] } },
        ask('twice-plain', (d) => {
          const k = d.int(2, 5);
          return {
            ask: 'All uses count.',
            source: `x = leaf(${d.big(9)}.0)\ny = ${Array(k).fill('x').join(' + ')}`,
            want: 'x.grad',
            also: ['y'],
            wrong: [
              { is: () => 1, why: 'That is the gradient of one use: the last one wrote over the others. They have to be added.' },
              { is: (v) => v.y[0], why: 'That is the value of $y$, not its slope.' },
            ],
            because: 'Each use brings a 1.',
          };
        }),
        ask('twice-paths', (d) => {
          const [x, a] = [d.int(2, 6), d.big(6)];
          return {
            ask: 'Two different paths from $x$ to $y$:',
            source: `x = leaf(${x}.0)\na = x * ${a}\nb = x**2\ny = a + b`,
            want: 'x.grad',
            wrong: [
              { is: () => a, why: 'The path over $b$ is missing.' },
              { is: () => 2 * x, why: 'The path over $a$ is missing.' },
              { is: () => a * 2 * x, why: 'Along a path slopes are multiplied; the two paths are added.' },
              { is: () => a + x, why: 'The slope of $x^2$ is $2x$.' },
            ],
            because: 'One path gives the constant, the other $2x$.',
          };
        }),
      ],
    },
    {
      title: 'Wait until all have arrived',
      blocks: [
        { text: 'A node may send its gradient on only after *every* use of it has sent its part. Take the nodes in the reverse of an order in which inputs come before results, a *topological order*, and this is always so. The order in which lines were run is such an order: chainrule numbers its nodes and always takes the largest number next.\n\nIn the diamond below, `u` waits for both `v` and `w`.' },
        { trace: { source: 'x = leaf({x})\nu = x * 2\nv = u ** 2\nw = u * 3\ny = v + w', sliders: [slider('x', 'x', -2, 2, 1, 0.5)] } },
        ask('diamond', (d) => {
          const [x, k, c] = [d.int(1, 4), d.int(2, 4), d.int(2, 6)];
          return {
            ask: 'The gradient of $x$, once $u$ has got both of its parts:',
            source: `x = leaf(${x}.0)\nu = ${k} * x\nv = u * u\nw = ${c} * u\ny = v + w`,
            want: 'x.grad',
            also: ['u', 'u.grad'],
            wrong: [
              { is: (v) => v['u.grad'][0], why: 'That is the gradient of $u$. One more line up.' },
              { is: (v) => k * 2 * v.u[0], why: '$u$ was sent on before the part over $w$ had arrived.' },
              { is: () => k * c, why: '$u$ was sent on before the part over $v$ had arrived.' },
              { is: (v) => k * (v.u[0] + c), why: 'In $u \\cdot u$ both factors are $u$, so the part is $2u$.' },
            ],
            because: 'The parts $2u$ and the constant are added first, and their sum is sent on.',
          };
        }),
        ask('reuse-deep', (d) => {
          const x = d.int(2, 5);
          return {
            ask: 'A value that is used by its own result:',
            source: `x = leaf(${x}.0)\na = x * x\ny = a * x`,
            want: 'x.grad',
            wrong: [
              { is: () => x * x, why: 'That is the last line alone. The path through $a$ is missing.' },
              { is: () => 2 * x * x, why: 'That is the path through $a$ alone; the last line uses $x$ directly, too.' },
              { is: () => 2 * x, why: 'That is the slope of $a$; it still has to be multiplied by the gradient of $a$.' },
            ],
            because: '$y$ is $x^3$, and $3x^2$ is $2x \\cdot x$ from one path and $x^2$ from the other.',
          };
        }),
      ],
    },
  ],
};

export const elementwise: Lesson = {
  id: 'elementwise',
  title: 'Element-wise rules',
  about: 'Eight functions and the shape of their slopes',
  pages: [
    {
      title: 'A function and its slope',
      blocks: [
        { text: 'An element-wise function maps each number by itself, so its backward pass multiplies the gradient, element by element, by the slope. Good rules use the *output*, which is there already: $e^x$ is its own slope, and tanh has $1 - y^2$.\n\nChoose a function and compare.' },
        {
          lab: {
            source: 'x = leaf(linspace(0.05, 4, 100) * {k} - {shift})\ny = {f}(x)\nloss = sum(y)',
            sliders: [slider('k', 'width', 0.5, 3, 2), slider('shift', 'shift', 0, 5, 4)],
            choices: [{ name: 'f', label: 'function', options: ['tanh', 'sigmoid', 'relu', 'gelu', 'exp', 'sin', 'softplus', 'abs', 'silu'] }],
            pictures: [{ as: 'curve', x: 'x', y: [{ want: 'y', label: 'value' }, { want: 'x.grad', label: 'slope' }], label: 'Value and slope' }],
          },
        },
        ask('rule-exp', (d) => {
          const [a, x] = [d.int(2, 5), d.tenth(-1, 1)];
          return {
            ask: 'Two decimals are enough.',
            source: `x = leaf(${x})\ny = exp(${a} * x)`,
            want: 'x.grad',
            also: ['y'],
            wrong: [
              { is: (v) => v.y[0], why: 'The exponent is a product: its slope is a factor of its own.' },
              { is: (v) => a * x * v.y[0], why: 'The exponent comes down only for powers of $x$; for $e^u$ the slope is $e^u$ times the slope of $u$.' },
            ],
            because: '$e^u$ is its own slope, times that of $u$.',
          };
        }),
        ask('rule-log', (d) => {
          const [x, g] = [d.pick([2, 4, 5, 8]), d.int(2, 6)];
          return {
            ask: 'Fractions are fine.',
            source: `x = leaf(${x}.0)\ny = ${g} * log(x)`,
            want: 'x.grad',
            also: ['y'],
            wrong: [
              { is: (v) => v.y[0], why: 'That is the value.' },
              { is: () => g * x, why: 'The slope of the logarithm is $1/x$, not $x$.' },
              { is: () => 1 / x, why: 'The factor in front is missing.' },
            ],
            because: 'The slope of the logarithm is $1/x$.',
          };
        }),
        ask('rule-relu', (d) => {
          const list = d.list(4, -5, 5).map((x) => (x === 0 ? 3 : x));
          const i = d.int(0, 3);
          return {
            ask: `Element ${i} of the gradient:`,
            source: `x = leaf([${list.map((x) => `${x}.0`).join(', ')}])\ny = relu(x)\nloss = sum(y * [2.0, 3.0, 4.0, 5.0])`,
            want: 'x.grad',
            at: i,
            wrong: [
              { is: () => 1, why: 'The slope of relu is 1 where it is open, but the gradient that comes in is not 1.' },
              { is: () => i + 2, why: 'There the input is negative: relu is closed and passes nothing.' },
              { is: () => 0, why: 'There the input is positive: relu passes the gradient.' },
              { is: () => (i + 2) * list[i], why: 'The value does not matter, only its sign.' },
            ],
            because: 'relu passes the gradient where its input was positive, and 0 elsewhere.',
          };
        }),
      ],
    },
    {
      title: 'Division, roots and powers',
      blocks: [
        { text: 'A quotient is a product with a power of $-1$, and a root is a power of $\\tfrac12$. One rule does for all of them:\n\n$$\\frac{d}{dx} x^n = n \\, x^{n-1}$$' },
        {
          lab: {
            source: 'x = leaf(linspace(0.2, 3, 80))\ny = x ** {n}\nloss = sum(y)',
            sliders: [slider('n', 'exponent', -2, 3, -1, 0.5)],
            pictures: [{ as: 'curve', x: 'x', y: [{ want: 'y', label: 'power' }, { want: 'x.grad', label: 'slope' }], label: 'A power and its slope' }],
          },
        },
        ask('rule-inverse', (d) => {
          const [x, a] = [d.pick([2, 4, 5]), d.int(2, 9)];
          return {
            ask: 'Mind the sign.',
            source: `x = leaf(${x}.0)\ny = ${a} / x`,
            want: 'x.grad',
            wrong: [
              { is: () => a / x / x, why: 'The exponent $-1$ comes down with its sign.' },
              { is: () => -a / x, why: 'The exponent falls from $-1$ to $-2$.' },
              { is: () => a, why: 'That is the slope of $ax$.' },
            ],
            because: '$a x^{-1}$ has the slope $-a x^{-2}$.',
          };
        }),
        ask('rule-quotient', (d) => {
          const [a, b] = [d.int(2, 9), d.pick([2, 4, 5])];
          return {
            ask: 'The gradient of the denominator:',
            source: `a = leaf(${a}.0)\nb = leaf(${b}.0)\nq = a / b`,
            want: 'b.grad',
            also: ['a.grad', 'q'],
            wrong: [
              { is: (v) => v['a.grad'][0], why: 'That is the gradient of the numerator, $1/b$.' },
              { is: (v) => -v.q[0], why: 'One more division by $b$ is needed.' },
              { is: () => a / b / b, why: 'A larger denominator makes the quotient smaller: the sign is minus.' },
              { is: () => -1 / b / b, why: 'The numerator stays as a factor.' },
            ],
            because: 'It is $-a / b^2$, which is $-q / b$.',
          };
        }),
        askCode('rule-tanh-line', (d) => ({
          ask: 'The line that gives the gradient of `x` from `dy`, for `y = tanh(x)`:',
          setup: `x = randn(${d.int(2, 4)}, 3)\ny = tanh(x)\ndy = randn(1, 3) + 0 * x`,
          reference: 'dx = dy / (0.25 * (exp(x) + exp(-x)) ** 2)',
          want: 'dx',
          options: [
            { code: 'dx = (1 - y**2) * dy', why: '' },
            { code: 'dx = (1 - y) * dy', why: 'The output has to be squared: $1 - y^2$.' },
            { code: 'dx = (1 - x**2) * dy', why: 'The rule uses the *output* $y$; $x$ is the input.' },
            { code: 'dx = y * (1 - y) * dy', why: 'That is the slope of the sigmoid.' },
          ],
          because: 'The slope of tanh in terms of its output is $1 - y^2$.',
        })),
      ],
    },
  ],
};
