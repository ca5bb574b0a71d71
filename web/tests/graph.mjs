// Layout and folding of graphs: laws that hold for any graph.

import assert from 'node:assert/strict';
import { load } from './lessons.mjs';

const [{ place }, { fold, foldToFit, modules, repeats, toggled }] = await load('/src/lib/layout.ts', '/src/lib/fold.ts');

function graph(layers) {
  const nodes = [];
  const add = (op, module, inputs) => nodes.push({ id: nodes.length, name: null, label: `${op ?? 'leaf'}#${nodes.length}`, op, module, shape: [4, 4], dtype: 'f64', kind: op ? 'op' : 'leaf', source: null, inputs, requires_grad: true, value: null, backward: null });
  add(null, [], []);
  let last = 0;
  for (let i = 0; i < layers; i++) {
    const inside = [`block ${i}`, 'attention'];
    const before = last;
    for (const op of ['matmul', 'softmax', 'matmul']) {
      add(null, inside, []);
      const weight = nodes.length - 1;
      add(op, inside, [last, weight]);
      last = nodes.length - 1;
    }
    add('add', [`block ${i}`], [last, before]);
    last = nodes.length - 1;
  }
  return { session: 0, root: last, nodes, sources: [] };
}

for (const layers of [1, 3, 40, 286]) {
  const large = graph(layers);
  for (const folded of [new Set(), new Set(modules(large)), new Set(repeats(large).keys()), foldToFit(large, 140)]) {
    const seen = fold(large, folded);
    const counted = [...seen.shown.values()].reduce((sum, box) => sum + box.nodes.length, 0);
    assert.equal(counted, large.nodes.length, 'each node is in one box');
    const sizes = new Map([...seen.shown.keys()].map((key, i) => [key, { width: 60 + (i % 7) * 15, height: 42 }]));
    const began = performance.now();
    const layout = place(sizes, seen.edges);
    const took = performance.now() - began;
    assert.equal(layout.boxes.size, seen.shown.size);
    const rows = new Map();
    for (const box of layout.boxes.values()) (rows.get(box.y) ?? rows.set(box.y, []).get(box.y)).push(box);
    for (const row of rows.values()) {
      row.sort((a, b) => a.x - b.x);
      for (let i = 1; i < row.length; i++) assert.ok(row[i].x >= row[i - 1].x + row[i - 1].width, 'boxes of a row are apart');
    }
    if (folded.size === 0) {
      for (const { from, to } of layout.edges) assert.ok(layout.boxes.get(from).y < layout.boxes.get(to).y, 'edges go down');
      if (layers > 100) console.log(`${layout.boxes.size} boxes laid out in ${took.toFixed(0)} ms`);
    }
  }
  if (layers > 1) {
    const together = fold(large, new Set(repeats(large).keys()));
    assert.ok(together.shown.size <= 3, `${together.shown.size} boxes`);
    const box = [...together.shown.values()].find((b) => b.kind === 'module');
    assert.equal(fold(large, toggled(large, new Set(repeats(large).keys()), box)).shown.size > together.shown.size, true, 'a box opens');
  }
}
console.log('layout and folding hold');
