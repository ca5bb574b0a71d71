// Lifetimes of a program's values, packed into memory as the listing has them.

import type { Block, ProgramLine } from './protocol';

const SIZES: Record<string, number> = { f64: 8, i64: 8, f32: 4, f16: 2, bf16: 2, bool: 1, u8: 1 };
/** Ops whose result lies in the memory of their input. */
const VIEWS = new Set(['reshape', 'expand', 'permute', 'transpose', 'squeeze', 'unsqueeze', 'slice', 'narrow', 'flatten']);

export function bytesOf(line: ProgramLine): number {
  return line.shape.reduce((a, b) => a * b, 1) * (SIZES[line.dtype] ?? 8);
}

/** A block from the line that makes a value to the last that reads it or a view of it; the lowest
 * place that is free all that time. */
export function pack(lines: readonly ProgramLine[]): { blocks: Block[]; bytes: number } {
  const owner = new Map<string, number>();
  const last = lines.map((_, i) => i);
  lines.forEach((line, i) => {
    const viewed = VIEWS.has(line.op) ? owner.get(line.inputs[0]) : undefined;
    for (const input of line.inputs) {
      const made = owner.get(input);
      if (made !== undefined) last[made] = Math.max(last[made], i);
    }
    owner.set(line.name, viewed ?? i);
  });
  const blocks: Block[] = [];
  lines.forEach((line, i) => {
    if (owner.get(line.name) !== i) return;
    const bytes = bytesOf(line);
    const busy = blocks.filter((b) => b.to >= i && b.from <= last[i]).sort((a, b) => a.offset - b.offset);
    let offset = 0;
    for (const other of busy) {
      if (other.offset >= offset + bytes) break;
      offset = Math.max(offset, other.offset + other.bytes);
    }
    blocks.push({ line: i, name: line.name, offset, bytes, from: i, to: last[i] });
  });
  return { blocks, bytes: Math.max(0, ...blocks.map((b) => b.offset + b.bytes)) };
}
