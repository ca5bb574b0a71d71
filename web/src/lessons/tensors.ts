// Shapes: matrix products, broadcasting, embeddings.

import { ask, askCode, askShape, type Lesson } from './kit';

const rows = (lists: number[][]) => `[${lists.map((l) => `[${l.map((x) => `${x}.0`).join(', ')}]`).join(', ')}]`;

export const matmul: Lesson = {
  id: 'matmul',
  title: 'Matrix products by shape-check',
  about: 'Only one way to put the factors together fits',
  pages: [
    {
      title: 'Shapes leave no choice',
      blocks: [
        { text: 'Let `Y = X @ W` with `X` of shape [n, in] and `W` of shape [in, out]. A gradient has the shape of its tensor: `dX` is [n, in], and it is made of `dY` [n, out] and `W` [in, out]. There is one product of the two that fits: `dY @ W.T`. In the same way `dW`, [in, out], can only be `X.T @ dY`.\n\nMove the sizes and read the shapes as you would in your head.' },
        {
          lab: {
            source: 'X = leaf(randn({n}, {i}))\nW = leaf(randn({i}, {o}))\nY = X @ W\ndY = randn({n}, {o})\nloss = sum(Y * dY)\ndX = dY @ W.T\ndW = X.T @ dY',
            sliders: [{ name: 'n', label: 'n', min: 1, max: 8, step: 1, value: 4 }, { name: 'i', label: 'in', min: 1, max: 8, step: 1, value: 3 }, { name: 'o', label: 'out', min: 1, max: 8, step: 1, value: 2 }],
            pictures: [{ as: 'map', want: 'dW', label: 'X.T @ dY' }, { as: 'map', want: 'W.grad', label: "autograd's gradient of W" }, { as: 'map', want: 'dX', label: 'dY @ W.T' }, { as: 'map', want: 'X.grad', label: "autograd's gradient of X" }],
          },
        },
        askShape('matmul-shape', (d) => {
          const [n, i, o] = d.apart(3, 2, 9);
          return {
            ask: 'The shape of the gradient of the weight:',
            source: `X = leaf(randn(${n}, ${i}))\nW = leaf(randn(${i}, ${o}))\nY = X @ W\nloss = sum(Y)`,
            want: 'W.grad.shape',
            also: ['Y.shape', 'X.grad.shape'],
            wrong: [
              { is: (v) => v['Y.shape'], why: 'That is the shape of the result and of its gradient. A gradient has the shape of its own tensor.' },
              { is: (v) => v['X.grad.shape'], why: 'That is the gradient of the other factor.' },
              { is: () => [o, i], why: 'Turned round: the gradient is not the transpose, it has the shape of the weight.' },
              { is: () => [], why: 'The loss is a scalar; its gradient with respect to $W$ has a number for each element of $W$.' },
            ],
            because: 'A gradient always has the shape of its tensor.',
          };
        }),
        askCode('matmul-line', (d) => {
          const [n, i, o] = d.apart(3, 2, 6);
          return {
            ask: 'The line for the gradient of the weight, where `Y = X @ W`:',
            setup: `X = randn(${n}, ${i})\nW = randn(${i}, ${o})\ndY = randn(${n}, ${o})`,
            reference: 'dW = sum(unsqueeze(X, 2) * unsqueeze(dY, 1), axis=0)',
            want: 'dW',
            options: [
              { code: 'dW = X.T @ dY', why: '' },
              { code: 'dW = dY.T @ X', why: 'That is the transpose of the gradient.' },
              { code: 'dW = dY @ W.T', why: 'That is the gradient of the other factor, $X$.' },
              { code: 'dW = X @ dY', why: 'The inner sizes do not meet: $X$ has to be turned.' },
            ],
            because: 'The sum over the batch runs inside the product.',
          };
        }),
      ],
    },
    {
      title: 'The numbers behind it',
      blocks: [
        { text: 'An element $W_{kj}$ moves $Y_{ij}$ in every row $i$, by $X_{ik}$. It is used once for each row, so its gradient is a sum over the rows:\n\n$$\\mathrm{d}W_{kj} = \\sum_i X_{ik} \\, \\mathrm{d}Y_{ij}$$\n\nThis sum is what $X^\\top \\mathrm{d}Y$ says in one line.' },
        ask('matmul-element', (d) => {
          const x = [d.list(2, 1, 5), d.list(2, 1, 5)];
          const g = [d.list(2, -3, 3), d.list(2, 1, 4)];
          const k = d.int(0, 1);
          return {
            ask: `The gradient of \`W\`, of shape [2, 2], at its element ${2 * k} (row ${k}, column 0). The gradient that comes in is \`dY\`.`,
            source: `X = ${rows(x)}\nW = leaf([[1.0, 2.0], [3.0, 4.0]])\ndY = ${rows(g)}\nloss = sum((X @ W) * dY)`,
            want: 'W.grad',
            at: 2 * k,
            wrong: [
              { is: () => x[0][k] * g[0][0], why: 'That is the first row of the batch only; the element is used in both.' },
              { is: () => x[1][k] * g[1][0], why: 'That is the second row of the batch only; the element is used in both.' },
              { is: () => x[k][0] * g[0][0] + x[k][1] * g[1][0], why: 'Row and column of $X$ are exchanged: it is a *column* of $X$ that meets a column of $dY$.' },
              { is: () => x[0][k] * g[0][1] + x[1][k] * g[1][1], why: 'That is the element beside it, of column 1.' },
              { is: () => (x[0][k] * g[0][0] + x[1][k] * g[1][0]) / 2, why: 'It is a sum over the batch, not a mean.' },
            ],
            because: 'Column of $X$ times column of $dY$, summed over the batch.',
          };
        }),
        askShape('matmul-chain', (d) => {
          const [n, a, b, c] = d.apart(4, 2, 9);
          return {
            ask: 'The shape of the gradient in the middle:',
            source: `X = randn(${n}, ${a})\nW1 = leaf(randn(${a}, ${b}))\nW2 = leaf(randn(${b}, ${c}))\nh = tanh(X @ W1)\ny = h @ W2\nloss = sum(y)`,
            want: 'h.grad.shape',
            also: ['W1.grad.shape', 'W2.grad.shape', 'y.shape'],
            wrong: [
              { is: (v) => v['W1.grad.shape'], why: 'That is the shape of the first weight.' },
              { is: (v) => v['W2.grad.shape'], why: 'That is the shape of the second weight.' },
              { is: (v) => v['y.shape'], why: 'That is the result; $h$ comes before the second product.' },
            ],
            because: 'It has a row for each example and a column for each hidden unit, like $h$.',
          };
        }),
        {
          exercise: {
            id: 'linear-tanh',
            title: 'A linear layer with tanh, backwards',
            setup: 'X = randn(5, 3)\nW = randn(3, 4)\nb = randn(4)\nh = tanh(X @ W + b)\ndh = randn(5, 4)',
            start: '# From dh to the gradients of the sum, the weight, the bias and the input.\ndn = \ndW = \ndb = \ndX = \n',
            reference: 'dn = dh * (1 - h**2)\ndW = X.T @ dn\ndb = dn.sum(0)\ndX = dn @ W.T',
            want: ['dn', 'dW', 'db', 'dX'],
            slip: 'dn = dh * (1 - h)\ndW = X.T @ dn\ndb = dn.sum(0)\ndX = dn @ W.T',
            hint: 'First through tanh, with $1 - h^2$. Then the shapes: `dW` is [3, 4], `dX` is [5, 3], and `b` was broadcast over the 5 rows.',
          },
        },
      ],
    },
  ],
};

export const broadcast: Lesson = {
  id: 'broadcast',
  title: 'Broadcasting, undone',
  about: 'Repeated on the way forward, summed on the way back',
  pages: [
    {
      title: 'Repeat forward, sum backward',
      blocks: [
        { text: 'In `x + b` with shapes [4, 3] and [3], each number of `b` is used four times, once a row. A value that is used several times has its gradients added: so the gradient of `b` is `dy` *summed over the axis along which it was repeated*.\n\nShapes are lined up at their last axis. Where one has 1, or has no axis, it is repeated. Choose the axes to sum over; try shapes of your own, and wrong axes.' },
        { broadcast: { a: [4, 3], b: [3] } },
        askShape('broadcast-result', (d) => {
          const [a, b, c] = d.apart(3, 2, 7);
          return {
            ask: 'The shape of the sum:',
            source: `x = leaf(randn(${a}, 1, ${c}))\nb = leaf(randn(${b}, 1))\ny = x + b\nloss = sum(y)`,
            want: 'y.shape',
            wrong: [
              { is: () => [a, 1, c], why: 'An axis of size 1 is stretched to the size of the other.' },
              { is: () => [a, b, 1], why: 'The last axis is stretched by $x$.' },
              { is: () => [b, 1, c], why: 'Shapes are lined up at the last axis, not at the first.' },
              { is: () => [a, b], why: 'The longer shape gives the rank.' },
            ],
            because: 'From the last axis: the size that is not 1.',
          };
        }),
        askShape('broadcast-grad', (d) => {
          const [n, k] = d.apart(2, 2, 9);
          return {
            ask: 'The shape of the gradient of the mean over the rows:',
            source: `x = leaf(randn(${n}, ${k}))\nm = x.mean(0, keepdims=True)\ny = x - m\nloss = sum(y * y)`,
            want: 'm.grad.shape',
            also: ['x.grad.shape'],
            wrong: [
              { is: (v) => v['x.grad.shape'], why: 'It was repeated to that shape, and on the way back it is summed again.' },
              { is: () => [k], why: '`keepdims` keeps the axis, with size 1.' },
              { is: () => [n, 1], why: 'The mean runs over axis 0, so that axis has size 1.' },
            ],
            because: 'Its own shape, with the axis of size 1.',
          };
        }),
      ],
    },
    {
      title: 'The numbers of a sum over rows',
      blocks: [
        {
          lab: {
            source: 'x = leaf(randn({n}, 4))\nb = leaf(randn(4))\ng = randn({n}, 4)\ny = x + b\nloss = sum(y * g)\nover_rows = g.sum(0)',
            sliders: [{ name: 'n', label: 'rows', min: 1, max: 8, step: 1, value: 3 }],
            pictures: [{ as: 'map', want: 'g', label: 'gradient of y' }, { as: 'map', want: 'over_rows', label: 'summed over the rows' }, { as: 'map', want: 'b.grad', label: "autograd's gradient of b" }],
          },
        },
        ask('broadcast-bias', (d) => {
          const g = [d.list(2, -4, 5), d.list(2, 1, 5), d.list(2, 1, 6)];
          const i = d.int(0, 1);
          return {
            ask: `Element ${i} of the gradient of the bias:`,
            source: `x = ${rows([[1, 2], [3, 4], [5, 6]])}\nb = leaf([0.0, 0.0])\ng = ${rows(g)}\nloss = sum((x + b) * g)`,
            want: 'b.grad',
            at: i,
            wrong: [
              { is: () => g[0][i], why: 'That is the first row only: the bias is used in each row.' },
              { is: () => g[2][i], why: 'That is the last row only, as if each had written over the one before.' },
              { is: () => (g[0][i] + g[1][i] + g[2][i]) / 3, why: 'A sum, not a mean: the mean belongs to the loss, if at all.' },
              { is: () => g[i][0] + g[i][1], why: 'That is a sum over the columns. The bias was repeated over the rows.' },
            ],
            because: 'The column of the gradient, summed over the rows.',
          };
        }),
        ask('broadcast-scale', (d) => {
          const x = d.list(3, 1, 6);
          const g = d.list(3, -3, 4);
          return {
            ask: 'A scalar that multiplies a vector gets one number back:',
            source: `x = [${x.map((v) => `${v}.0`).join(', ')}]\ns = leaf(${d.big(4)}.0)\ny = s * x\nloss = sum(y * [${g.map((v) => `${v}.0`).join(', ')}])`,
            want: 's.grad',
            wrong: [
              { is: () => g.reduce((a, b) => a + b, 0), why: 'Each part is multiplied by the other factor, $x$, before it is summed.' },
              { is: () => x.reduce((a, b) => a + b, 0), why: 'The gradient that comes in is missing.' },
              { is: () => x[0] * g[0], why: 'All three products count.' },
            ],
            because: 'The sum over $x_i g_i$: a product rule and a broadcast at once.',
          };
        }),
        askCode('broadcast-line', (d) => ({
          ask: 'The line for the gradient of `m`, where `y = x * m` and `m` has shape [n, 1]:',
          setup: `x = randn(${d.int(3, 5)}, 2)\nm = x.sum(1, keepdims=True)\ndy = x * 0.5 + 1`,
          reference: 'dm = unsqueeze(sum(dy * x, axis=1), 1)',
          want: 'dm',
          options: [
            { code: 'dm = (dy * x).sum(1, keepdims=True)', why: '' },
            { code: 'dm = dy * x', why: 'The sum over the repeated axis is missing.' },
            { code: 'dm = (dy * x).sum(0, keepdims=True)', why: '`m` was repeated along axis 1, not along axis 0.' },
            { code: 'dm = dy.sum(1, keepdims=True)', why: 'A product hands on the gradient times the other factor.' },
          ],
          because: 'First the product rule, then the sum over the axis that was repeated.',
        })),
      ],
    },
  ],
};

export const embeddings: Lesson = {
  id: 'embeddings',
  title: 'Embeddings and repeated tokens',
  about: 'Rows taken out, gradients added in',
  pages: [
    {
      title: 'A table of rows',
      blocks: [
        { text: 'An embedding takes rows of a table: `C[idx]`. On the way back each row of the gradient goes to the row of the table that it came from. A token that stands three times in the batch has its row used three times, so it gets three gradients, *added*; a token that does not occur gets zeros.\n\nChange the tokens and watch the rows.' },
        {
          lab: {
            source: 'C = leaf(randn(6, 4))\nidx = array([{a}, {b}, {c}])\nrows = C[idx]\ng = randn(3, 4)\nloss = sum(rows * g)',
            sliders: [{ name: 'a', label: 'first token', min: 0, max: 5, step: 1, value: 1 }, { name: 'b', label: 'second', min: 0, max: 5, step: 1, value: 4 }, { name: 'c', label: 'third', min: 0, max: 5, step: 1, value: 1 }],
            pictures: [{ as: 'map', want: 'g', label: 'gradient of the three rows' }, { as: 'map', want: 'C.grad', label: 'gradient of the table' }],
          },
        },
        ask('embedding-repeat', (d) => {
          const t = d.int(0, 2);
          const other = (t + 1) % 3;
          const g = d.list(4, 1, 9);
          return {
            ask: `The table has one column. The gradient of its row ${t}:`,
            source: `C = leaf([[0.1], [0.2], [0.3]])\nrows = C[[${t}, ${other}, ${t}, ${t}]]\nloss = sum(rows * ${rows(g.map((x) => [x]))})`,
            want: 'C.grad',
            at: t,
            wrong: [
              { is: () => g[3], why: 'The last use wrote over the two before: that is what `dC[idx] = g` does. The parts have to be added.' },
              { is: () => g[0], why: 'That is the first use only.' },
              { is: () => g[1], why: 'That is the gradient of the other token.' },
              { is: () => (g[0] + g[2] + g[3]) / 3, why: 'The parts are added, not averaged.' },
              { is: () => g.reduce((a, b) => a + b, 0), why: 'One of the four rows belongs to another token.' },
            ],
            because: 'All three uses are added.',
          };
        }),
        ask('embedding-unused', (d) => ({
          ask: 'The gradient of a row that no token asks for:',
          source: `C = leaf([[${d.int(1, 9)}.0], [${d.int(1, 9)}.0], [${d.int(1, 9)}.0]])\nrows = C[[0, 2, 2]]\nloss = sum(rows * rows)`,
          want: 'C.grad',
          at: 1,
          also: ['C'],
          wrong: [
            { is: (v) => v.C[1], why: 'That is its value.' },
            { is: (v) => 2 * v.C[1], why: 'That would be right if the row had been used.' },
            { is: () => 1, why: 'It moves nothing, so its gradient is not 1.' },
          ],
          because: 'The loss does not move with it. An optimizer with weight decay or momentum may move the row all the same.',
        })),
        askShape('embedding-shape', (d) => {
          const [v, k, n, t] = d.apart(4, 2, 9);
          return {
            ask: 'The shape of the gradient of the table:',
            source: `C = leaf(randn(${v}, ${k}))\nidx = randint(0, ${v}, [${n * t}])\nemb = C[idx].reshape(${n}, ${t * k})\nloss = sum(emb * emb)`,
            want: 'C.grad.shape',
            also: ['emb.shape'],
            wrong: [
              { is: (x) => x['emb.shape'], why: 'That is the shape of the rows laid side by side.' },
              { is: () => [n * t, k], why: 'That is one row for each token of the batch; they are added up in the rows of the table.' },
            ],
            because: 'It has the shape of the table, however many tokens there are.',
          };
        }),
        {
          exercise: {
            id: 'embedding-backward',
            title: 'The gradient of a table',
            setup: 'C = randn(5, 3)\nidx = randint(0, 5, [8])\nemb = C[idx]\ndemb = randn(8, 3)',
            start: 'dC = zeros_like(C)\nfor i in range(8):\n  dC[idx[i]] = \n',
            reference: 'dC = one_hot(idx, 5).T @ demb',
            want: ['dC'],
            slip: 'dC = zeros_like(C)\nfor i in range(8):\n  dC[idx[i]] = demb[i]',
            hint: 'A row may come again: add to what is there. `dC[k] = dC[k] + ..`; or a product with a one-hot matrix does it without a loop.',
          },
        },
      ],
    },
  ],
};
