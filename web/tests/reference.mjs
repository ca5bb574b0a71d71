// An evaluator of the studio's small language that knows no derivative: gradients are differences.
// The tests get the answers of quizzes from it, so that the engine is not its own judge.

const OPERATORS = { '+': 1, '-': 1, '*': 2, '/': 2, '@': 2, '**': 4 };

function tokens(text) {
  return text.match(/\d+\.?\d*(?:e[+-]?\d+)?|\.\d+|[A-Za-z_]\w*|\*\*|[-+*/@()[\],.=:<>]/g) ?? [];
}

/** A statement's right side as a tree. */
function parse(text) {
  const list = tokens(text);
  let at = 0;
  const next = () => list[at++];
  const eat = (t) => (list[at] === t ? (at++, true) : false);
  const need = (t) => {
    if (!eat(t)) throw new Error(`expected ${t} in ${text}`);
  };
  function items(end) {
    const found = [];
    while (!eat(end)) {
      if (/^[A-Za-z_]/.test(list[at] ?? '') && list[at + 1] === '=') {
        const name = next();
        next();
        found.push({ keyword: name, value: expression(0) });
      } else if (list[at] === ':') {
        next();
        found.push({ kind: 'all' });
      } else found.push(expression(0));
      if (list[at] !== end) need(',');
    }
    return found;
  }
  function atom() {
    const t = next();
    let node;
    if (t === '-') return { kind: 'call', name: 'neg', of: [expression(3)] };
    if (t === '(') {
      const inside = items(')');
      node = inside.length === 1 ? inside[0] : { kind: 'list', of: inside };
    } else if (t === '[') node = { kind: 'list', of: items(']') };
    else if (/^[\d.]/.test(t)) node = { kind: 'number', value: Number(t) };
    else if (eat('(')) node = { kind: 'call', name: t, of: items(')') };
    else node = { kind: 'name', name: t };
    for (;;) {
      if (eat('.')) {
        const name = next();
        if (eat('(')) node = { kind: 'call', name, of: [node, ...items(')')] };
        else if (name === 'T') node = { kind: 'call', name: 'T', of: [node] };
        else if (name === 'shape' || name === 'grad') node = { kind: name, of: node };
        else node = { kind: 'name', name };
      } else if (eat('[')) node = { kind: 'index', of: node, at: items(']') };
      else return node;
    }
  }
  function expression(least) {
    let left = atom();
    for (;;) {
      const power = OPERATORS[list[at]];
      if (power === undefined || power < least || power === 0) return left;
      const name = next();
      const right = expression(name === '**' ? power - 1 : power + 1);
      left = { kind: 'call', name, of: [left, right] };
    }
  }
  const tree = expression(0);
  if (at < list.length) throw new Error(`left over in ${text}: ${list.slice(at).join(' ')}`);
  return tree;
}

export const tensor = (shape, data) => ({ shape, data });
const count = (shape) => shape.reduce((a, b) => a * b, 1);
const scalar = (x) => tensor([], [x]);

function fromList(x) {
  if (!Array.isArray(x)) return x;
  const parts = x.map(fromList);
  return tensor([parts.length, ...parts[0].shape], parts.flatMap((p) => p.data));
}

export function broadcast(a, b) {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const x = a[i - rank + a.length] ?? 1;
    const y = b[i - rank + b.length] ?? 1;
    if (x !== y && x !== 1 && y !== 1) throw new Error(`shapes [${a}] and [${b}] do not fit`);
    return x === 1 ? y : x;
  });
}

function index(flat, shape, of) {
  let at = 0;
  let stride = 1;
  for (let i = shape.length - 1, j = of.length - 1; i >= 0; i--, j--) {
    const place = flat % shape[i];
    flat = Math.floor(flat / shape[i]);
    if (j >= 0) {
      if (of[j] !== 1) at += place * stride;
      stride *= of[j];
    }
  }
  return at;
}

function zip(f) {
  return (a, b) => {
    const shape = broadcast(a.shape, b.shape);
    return tensor(shape, Array.from({ length: count(shape) }, (_, i) => f(a.data[index(i, shape, a.shape)], b.data[index(i, shape, b.shape)])));
  };
}

const map = (f) => (a) => tensor(a.shape, a.data.map(f));

function reduce(f) {
  return (a, axis, keep) => {
    if (axis === undefined) return tensor(keep ? a.shape.map(() => 1) : [], [f(a.data)]);
    const k = axis < 0 ? axis + a.shape.length : axis;
    const inner = count(a.shape.slice(k + 1));
    const outer = count(a.shape.slice(0, k));
    const data = [];
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) data.push(f(Array.from({ length: a.shape[k] }, (_, n) => a.data[(o * a.shape[k] + n) * inner + i])));
    }
    return tensor(a.shape.flatMap((n, i) => (i !== k ? [n] : keep ? [1] : [])), data);
  };
}

function matmul(a, b) {
  const [n, m] = a.shape;
  const p = b.shape[1];
  if (b.shape[0] !== m) throw new Error(`matmul of [${a.shape}] and [${b.shape}]`);
  return tensor([n, p], Array.from({ length: n * p }, (_, i) => {
    let sum = 0;
    for (let k = 0; k < m; k++) sum += a.data[Math.floor(i / p) * m + k] * b.data[k * p + (i % p)];
    return sum;
  }));
}

const add = (list) => list.reduce((a, b) => a + b, 0);
const mean = (list) => add(list) / list.length;
const variance = (ddof) => (list) => add(list.map((x) => (x - mean(list)) ** 2)) / (list.length - ddof);
const sub = zip((a, b) => a - b);
const mul = zip((a, b) => a * b);
const softmax = (x) => {
  const e = map(Math.exp)(sub(x, reduce((l) => Math.max(...l))(x, -1, true)));
  return zip((a, b) => a / b)(e, reduce(add)(e, -1, true));
};
const rows = (x, at) => tensor([...at.shape, ...x.shape.slice(1)], at.data.flatMap((i) => x.data.slice(i * count(x.shape.slice(1)), (i + 1) * count(x.shape.slice(1)))));
const pick = (x, at) => tensor(at.shape, at.data.map((j, i) => x.data[i * x.shape[1] + j]));
const gelu = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

const OPS = {
  '+': zip((a, b) => a + b), '-': sub, '*': mul, '/': zip((a, b) => a / b), '**': zip((a, b) => a ** b), '@': matmul,
  maximum: zip(Math.max), minimum: zip(Math.min),
  neg: map((x) => -x), exp: map(Math.exp), log: map(Math.log), tanh: map(Math.tanh), sqrt: map(Math.sqrt), abs: map(Math.abs), gelu: map(gelu),
  relu: map((x) => Math.max(0, x)), sigmoid: map((x) => 1 / (1 + Math.exp(-x))), square: map((x) => x * x), sin: map(Math.sin), cos: map(Math.cos),
  T: (a) => tensor([a.shape[1], a.shape[0]], Array.from({ length: a.data.length }, (_, i) => a.data[(i % a.shape[0]) * a.shape[1] + Math.floor(i / a.shape[0])])),
  softmax, log_softmax: (x) => map(Math.log)(softmax(x)),
  cross_entropy: (x, y) => scalar(-mean(pick(softmax(x), y).data.map(Math.log))),
  mse_loss: (x, y) => scalar(mean(map((d) => d * d)(sub(x, y)).data)),
  embedding: rows, leaf: (x) => x, array: (x) => x, detach: (x) => x,
  norm: (x) => scalar(Math.hypot(...x.data)),
};
const REDUCTIONS = { sum: add, mean, max: (l) => Math.max(...l), min: (l) => Math.min(...l) };

/** Runs a program; `change(i, value, op)` may replace the i-th value that an operation gives. */
export function run(source, change = (_, value) => value) {
  const names = new Map();
  const where = new Map();
  let made = 0;
  let line = 0;
  const record = (value, op, inputs) => {
    const kept = { ...change(made, value, op), op, inputs };
    kept.id = made++;
    kept.line = line;
    return kept;
  };
  function evaluate(tree) {
    if (tree.kind === 'number') return scalar(tree.value);
    if (tree.kind === 'list') return fromList(tree.of.map(evaluate).map((x) => x));
    if (tree.kind === 'shape') return tensor([evaluate(tree.of).shape.length], evaluate(tree.of).shape);
    if (tree.kind === 'name') {
      if (!names.has(tree.name)) throw new Error(`${tree.name} is not known`);
      return names.get(tree.name);
    }
    if (tree.kind === 'index') {
      const of = evaluate(tree.of);
      const at = evaluate(tree.at.at(-1));
      return record(tree.at.length === 2 ? pick(of, at) : rows(of, at), 'index', [of]);
    }
    const keywords = Object.fromEntries(tree.of.filter((x) => x.keyword).map((x) => [x.keyword, x.value.name ?? evaluate(x.value).data[0]]));
    const of = tree.of.filter((x) => !x.keyword).map(evaluate);
    const { name } = tree;
    if (name in REDUCTIONS || name === 'var' || name === 'std') {
      const plain = name === 'var' || name === 'std' ? variance(keywords.ddof ?? 0) : REDUCTIONS[name];
      const f = name === 'std' ? (l) => Math.sqrt(plain(l)) : plain;
      const keep = keywords.keepdims ?? keywords.keepdim ?? of[2]?.data[0];
      return record(reduce(f)(of[0], keywords.axis ?? keywords.dim ?? of[1]?.data[0], keep === 'True' || keep === true || keep === 1), name, of.slice(0, 1));
    }
    if (name === 'reshape') {
      const shape = of.slice(1).flatMap((x) => x.data);
      const known = shape.filter((n) => n > 0).reduce((a, b) => a * b, 1);
      return record(tensor(shape.map((n) => (n < 0 ? of[0].data.length / known : n)), of[0].data), name, of.slice(0, 1));
    }
    if (name === 'ones' || name === 'zeros') {
      const shape = of.flatMap((x) => x.data);
      return tensor(shape, Array(count(shape)).fill(name === 'ones' ? 1 : 0));
    }
    if (name === 'randn' || name === 'rand') {
      const shape = of.flatMap((x) => x.data);
      return tensor(shape, Array.from({ length: count(shape) }, (_, i) => Math.sin(12.9898 * (i + 1 + made)) * 1.3));
    }
    if (name === 'randint') {
      return tensor(of[2].data, Array.from({ length: count(of[2].data) }, (_, i) => (7 * i + 3) % of[1].data[0]));
    }
    if (name === 'range' || name === 'arange') return tensor([of[0].data[0]], Array.from({ length: of[0].data[0] }, (_, i) => i));
    if (!(name in OPS)) throw new Error(`the reference knows no ${name}`);
    return record(OPS[name](...of), name, of);
  }
  let root = null;
  source.split('\n').forEach((text, i) => {
    line = i + 1;
    const code = text.replace(/#.*/, '').trim();
    if (!code) return;
    const found = /^([A-Za-z_]\w*)\s*(\+|-|\*|\/)?=(?!=)(.*)$/.exec(code);
    if (!found) throw new Error(`the reference cannot read: ${code}`);
    let result = evaluate(parse(found[3]));
    if (found[2]) result = evaluate({ kind: 'call', name: found[2], of: [{ kind: 'name', name: found[1] }, parse(found[3])] });
    if (result.id === undefined) result = record(result, undefined, []);
    result.name ??= found[1];
    names.set(found[1], result);
    where.set(found[1], result.id);
    root = found[1];
  });
  if (names.has('loss')) root = 'loss';
  return { names, where, root, made, evaluate: (text) => evaluate(parse(text)) };
}

/** The gradient of the sum of the root with respect to the value numbered `id`, by central differences. */
export function gradient(source, id, of) {
  const h = 1e-5;
  // Values that were cut from the graph stay as they are.
  const cut = new Map();
  run(source, (at, value, op) => (op === 'detach' ? (cut.set(at, value), value) : value));
  const shifted = (i, by) => {
    const moved = run(source, (at, value) => {
      if (cut.has(at)) return cut.get(at);
      if (at !== id) return value;
      const data = value.data.slice();
      data[i] += by;
      return { ...value, data };
    });
    return add(moved.names.get(moved.root).data);
  };
  return tensor(of.shape, of.data.map((_, i) => (shifted(i, h) - shifted(i, -h)) / (2 * h)));
}

/** What the engine's `eval` answers: values, gradients (`x.grad`) and shapes (`x.grad.shape`). */
export function wanted(source, want) {
  const done = run(source);
  const plain = want.replace(/\.shape$/, '');
  const isGradient = plain.endsWith('.grad');
  let found;
  if (isGradient) {
    const name = plain.slice(0, -5);
    const value = done.names.get(name);
    if (!value) throw new Error(`${name} is not known`);
    found = want.endsWith('.shape') ? value : gradient(source, value.id, value);
  } else found = done.evaluate(plain);
  return want.endsWith('.shape') ? tensor([found.shape.length], found.shape) : found;
}
