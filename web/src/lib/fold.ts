// A large graph with some of its modules as one box each, and repeated modules as one box.

import { number } from './format';
import { value, type Graph, type GraphNode } from './protocol';

export interface Shown {
  key: string;
  label: string;
  detail: string;
  kind: GraphNode['kind'] | 'module';
  /** The nodes that the box stands for: one, or all of a module. */
  nodes: number[];
  /** The folded module, or the pattern of several. */
  module: string;
}

export interface Folded {
  shown: Map<string, Shown>;
  /** The box in which a node is to be seen. */
  boxOf: Map<number, string>;
  edges: { from: string; to: string }[];
}

const SEPARATOR = '/';
const ANY = '*';

/** All modules of a graph, outer ones first. */
export function modules(graph: Graph): string[] {
  const found = new Set<string>();
  for (const node of graph.nodes) for (const path of around(node)) found.add(path);
  const depth = (path: string) => path.split(SEPARATOR).length;
  return [...found].sort((a, b) => depth(a) - depth(b));
}

/** The modules round a node, outer ones first. */
function around(node: GraphNode): string[] {
  return node.module.map((_, i) => node.module.slice(0, i + 1).join(SEPARATOR));
}

/** `block 3` as `block *`. */
function pattern(path: string): string {
  return path.replace(/\d+(?=[^\d/]*$)/, ANY);
}

/** Patterns of modules that differ only in their number and have the same operations. */
export function repeats(graph: Graph): Map<string, string[]> {
  const operations = new Map<string, string[]>();
  for (const node of graph.nodes) {
    for (const path of around(node)) {
      const list = operations.get(path) ?? [];
      list.push(node.op ?? node.kind);
      operations.set(path, list);
    }
  }
  const alike = new Map<string, string[]>();
  for (const path of operations.keys()) {
    const key = pattern(path);
    if (key === path) continue;
    const group = alike.get(key) ?? [];
    group.push(path);
    alike.set(key, group);
  }
  const sorted = (path: string) => (operations.get(path) ?? []).toSorted().join(' ');
  for (const [key, group] of alike) {
    if (group.length < 2 || group.some((path) => sorted(path) !== sorted(group[0]))) alike.delete(key);
  }
  return alike;
}

/** The first folding, of at most `most` boxes: outer modules stay open while there is room. */
export function foldToFit(graph: Graph, most: number): Set<string> {
  const all = modules(graph);
  let folded = new Set<string>();
  if (graph.nodes.length <= most) return folded;
  const depth = (path: string) => path.split(SEPARATOR).length;
  for (let from = Math.max(0, ...all.map(depth)); from >= 1; from--) {
    folded = new Set(all.filter((path) => depth(path) >= from));
    if (fold(graph, folded).shown.size <= most) return folded;
  }
  return new Set([...folded, ...repeats(graph).keys()]);
}

/** The folding after a double click: a folded module opens, a node closes its module. */
export function toggled(graph: Graph, folded: ReadonlySet<string>, box: Shown): Set<string> {
  const next = new Set(folded);
  if (box.kind !== 'module') {
    const inside = graph.nodes.find((n) => n.id === box.nodes[0])?.module ?? [];
    if (inside.length > 0) next.add(inside.join(SEPARATOR));
    return next;
  }
  next.delete(box.module);
  for (const path of repeats(graph).get(box.module) ?? []) next.add(path);
  return next;
}

export function fold(graph: Graph, folded: ReadonlySet<string>): Folded {
  const shown = new Map<string, Shown>();
  const boxOf = new Map<number, string>();
  const together = repeats(graph);
  for (const node of graph.nodes) {
    const inside = around(node).flatMap((path) => {
      const key = pattern(path);
      return together.has(key) && folded.has(key) ? [key] : folded.has(path) ? [path] : [];
    })[0];
    const key = inside === undefined ? `n${node.id}` : `m${inside}`;
    boxOf.set(node.id, key);
    const there = shown.get(key);
    if (there) there.nodes.push(node.id);
    else {
      const kind = inside === undefined ? node.kind : 'module';
      shown.set(key, { key, label: inside ?? title(node), detail: describe(node), kind, nodes: [node.id], module: inside ?? '' });
    }
  }
  for (const box of shown.values()) {
    if (box.kind !== 'module') continue;
    const group = together.get(box.module) ?? [];
    box.detail = group.length > 0 ? `${group.length} times ${box.nodes.length / group.length} values` : `${box.nodes.length} values`;
  }
  const seen = new Set<string>();
  const edges: Folded['edges'] = [];
  for (const node of graph.nodes) {
    const to = boxOf.get(node.id) ?? '';
    for (const input of node.inputs) {
      const from = boxOf.get(input);
      if (from === undefined || from === to || seen.has(`${from}>${to}`)) continue;
      seen.add(`${from}>${to}`);
      edges.push({ from, to });
    }
  }
  return { shown, boxOf, edges };
}

function title(node: GraphNode): string {
  if (node.name !== null) return node.name;
  const data = node.value?.data;
  return node.kind === 'const' && data?.length === 1 ? number(value(data[0])) : node.label;
}

function describe(node: GraphNode): string {
  const dims = node.shape === null ? 'not kept' : node.shape.length === 0 ? 'scalar' : node.shape.join('×');
  return node.op === null ? dims : `${node.op} · ${dims}`;
}
