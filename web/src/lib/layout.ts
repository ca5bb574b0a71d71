// A graph in layers: inputs above, the loss below, few crossings.

export interface Box {
  id: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Edge {
  from: string;
  to: string;
}

export interface Route extends Edge {
  /** Centres of the places where a long edge passes other layers. */
  via: { x: number; y: number }[];
}

export interface Layout {
  boxes: Map<string, Box>;
  edges: Route[];
  width: number;
  height: number;
}

const GAP_X = 26;
const GAP_Y = 46;
const SWEEPS = 6;
const LONGEST_PASS = 60;

/** The layer of each node: below its lowest input; the graph's inputs right above their use. */
function layers(ids: readonly string[], inputs: Map<string, string[]>, outputs: Map<string, string[]>): Map<string, number> {
  const layer = new Map<string, number>();
  const open = new Map(ids.map((id) => [id, inputs.get(id)?.length ?? 0]));
  const ready = ids.filter((id) => open.get(id) === 0);
  for (let i = 0; i < ready.length; i++) {
    const id = ready[i];
    layer.set(id, Math.max(-1, ...(inputs.get(id) ?? []).map((x) => layer.get(x) ?? 0)) + 1);
    for (const next of outputs.get(id) ?? []) {
      const left = (open.get(next) ?? 0) - 1;
      open.set(next, left);
      if (left === 0) ready.push(next);
    }
  }
  for (const id of ids) {
    if (!layer.has(id)) layer.set(id, 0);
  }
  for (const id of ids) {
    const uses = outputs.get(id) ?? [];
    if ((inputs.get(id)?.length ?? 0) === 0 && uses.length > 0) {
      layer.set(id, Math.max(0, Math.min(...uses.map((x) => layer.get(x) ?? 0)) - 1));
    }
  }
  return layer;
}

/** Gives an edge over several layers a place in each, so that it goes round the boxes there. */
function pass(
  edge: Edge,
  layer: Map<string, number>,
  rows: string[][],
  inputs: Map<string, string[]>,
  outputs: Map<string, string[]>,
): string[] {
  const first = (layer.get(edge.from) ?? 0) + 1;
  const last = layer.get(edge.to) ?? 0;
  if (last - first < 1 || last - first > LONGEST_PASS) return [];
  const ids = Array.from({ length: last - first }, (_, i) => `~${edge.from}~${edge.to}~${i}`);
  const chain = [edge.from, ...ids, edge.to];
  const swap = (list: string[] | undefined, old: string, by: string) => {
    const at = list?.indexOf(old) ?? -1;
    if (list && at >= 0) list[at] = by;
  };
  swap(outputs.get(edge.from), edge.to, chain[1]);
  swap(inputs.get(edge.to), edge.from, chain[chain.length - 2]);
  ids.forEach((id, i) => {
    layer.set(id, first + i);
    rows[first + i].push(id);
    inputs.set(id, [chain[i]]);
    outputs.set(id, [chain[i + 2]]);
  });
  return ids;
}

export function place(sizes: Map<string, { width: number; height: number }>, edges: readonly Edge[]): Layout {
  const ids = [...sizes.keys()];
  const inputs = new Map<string, string[]>(ids.map((id) => [id, []]));
  const outputs = new Map<string, string[]>(ids.map((id) => [id, []]));
  const kept = edges.filter((e) => e.from !== e.to && sizes.has(e.from) && sizes.has(e.to));
  for (const { from, to } of kept) {
    if (inputs.get(to)?.includes(from)) continue;
    inputs.get(to)?.push(from);
    outputs.get(from)?.push(to);
  }
  const layer = layers(ids, inputs, outputs);
  const rows: string[][] = [];
  for (const id of ids) (rows[layer.get(id) ?? 0] ??= []).push(id);
  for (let i = 0; i < rows.length; i++) rows[i] ??= [];
  const passes = kept.map((edge) => pass(edge, layer, rows, inputs, outputs));

  // Order in a layer: the mean place of a node's neighbours, from above and from below in turn.
  const order = new Map<string, number>();
  const number = (row: string[]) => row.forEach((id, i) => order.set(id, i / Math.max(1, row.length - 1) - 0.5));
  rows.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : rows.toReversed()) {
      const wanted = new Map(
        row.map((id) => {
          const near = (down ? inputs : outputs).get(id) ?? [];
          const mean = near.reduce((sum, x) => sum + (order.get(x) ?? 0), 0) / near.length;
          return [id, near.length > 0 ? mean : (order.get(id) ?? 0)];
        }),
      );
      row.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0));
      number(row);
    }
  }

  const width = (id: string) => sizes.get(id)?.width ?? 0;
  const layerY: number[] = [];
  const x = new Map<string, number>();
  for (const row of rows) {
    const total = row.reduce((sum, id) => sum + width(id) + GAP_X, -GAP_X);
    let at = -total / 2;
    for (const id of row) {
      x.set(id, at + width(id) / 2);
      at += width(id) + GAP_X;
    }
  }
  for (let sweep = 0; sweep < 8; sweep++) {
    for (const row of sweep % 2 === 0 ? rows : rows.toReversed()) settle(row, x, width, inputs, outputs);
  }

  const boxes = new Map<string, Box>();
  let y = 0;
  let left = Infinity;
  let right = -Infinity;
  for (const [i, row] of rows.entries()) {
    const tall = Math.max(0, ...row.map((id) => sizes.get(id)?.height ?? 0));
    layerY[i] = y + tall / 2;
    for (const id of row) {
      const size = sizes.get(id);
      if (!size) continue;
      const at = (x.get(id) ?? 0) - size.width / 2;
      boxes.set(id, { id, x: at, y: y + (tall - size.height) / 2, ...size });
      left = Math.min(left, at);
      right = Math.max(right, at + size.width);
    }
    y += tall + GAP_Y;
  }
  for (const box of boxes.values()) box.x -= left;
  const routes = kept.map((edge, i) => ({
    ...edge,
    via: passes[i].map((id) => ({ x: (x.get(id) ?? 0) - left, y: layerY[layer.get(id) ?? 0] })),
  }));
  return { boxes, edges: routes, width: Math.max(0, right - left), height: Math.max(0, y - GAP_Y) };
}

/** Moves the nodes of a row towards their neighbours, in order and apart: neighbours that would
 * overlap are moved as one block to the mean of their wishes. */
function settle(
  row: readonly string[],
  x: Map<string, number>,
  width: (id: string) => number,
  inputs: Map<string, string[]>,
  outputs: Map<string, string[]>,
) {
  interface Block {
    ids: string[];
    offsets: number[];
    sum: number;
    at: number;
    size: number;
  }
  const blocks: Block[] = [];
  for (const id of row) {
    const near = [...(inputs.get(id) ?? []), ...(outputs.get(id) ?? [])];
    const wish = near.length > 0 ? near.reduce((sum, n) => sum + (x.get(n) ?? 0), 0) / near.length : (x.get(id) ?? 0);
    const start = wish - width(id) / 2;
    let block: Block = { ids: [id], offsets: [0], sum: start, at: start, size: width(id) + GAP_X };
    for (let last = blocks.at(-1); last && last.at + last.size > block.at; last = blocks.at(-1)) {
      blocks.pop();
      const moved = block.offsets.map((o) => o + last.size);
      const count = last.ids.length + block.ids.length;
      const sum = last.sum + block.sum - last.size * block.ids.length;
      block = { ids: [...last.ids, ...block.ids], offsets: [...last.offsets, ...moved], sum, at: sum / count, size: last.size + block.size };
    }
    blocks.push(block);
  }
  for (const block of blocks) {
    block.ids.forEach((id, i) => x.set(id, block.at + block.offsets[i] + width(id) / 2));
  }
}
