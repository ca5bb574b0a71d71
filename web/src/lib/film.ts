// The marks of the graph after a number of steps of the backward pass. They follow from the number
// alone, so that going to the end and back gives the same picture.

import type { Marks } from './draw';
import type { Folded } from './fold';
import { engine } from './client.svelte';
import { value, values, type Step, type Value, type Values } from './protocol';

/** Rows and columns of a small picture of a gradient. */
const THUMBNAIL = 32;
const known = new WeakMap<Value, Values>();

/** The numbers of a gradient, the same object for the same gradient; none if they are not here. */
function numbers(of: Value): Values | null {
  const found = known.get(of) ?? values(of);
  if (found) known.set(of, found);
  return found;
}

/** Asks for the gradients that the graph shows after some steps and that did not come with them;
 * `arrived` is told of each, and says whether the rest is wanted still. */
export async function fetchShown(session: number, steps: readonly Step[], at: number, folded: Folded, arrived: () => boolean) {
  for (let i = 0; i < at; i++) {
    const box = folded.boxOf.get(steps[i].node);
    const of = steps[i].incoming;
    if (!box || folded.shown.get(box)?.kind === 'module' || of.shape.length === 0 || numbers(of)) continue;
    // The next step can ask for what was lost with a connection.
    const found = await engine.slice({ session, node: steps[i].node, of: 'gradient', max: THUMBNAIL }).catch(() => null);
    if (found) known.set(of, found);
    if (!arrived()) return;
  }
}

export function strengths(steps: readonly Step[]): number[] {
  const sizes = steps.map((step) => (step.incoming.rms === undefined ? null : value(step.incoming.rms)));
  const logs = sizes.map((x) => (x !== null && x > 0 && Number.isFinite(x) ? Math.log10(x) : null));
  const finite = logs.filter((x) => x !== null);
  const low = Math.min(...finite);
  const high = Math.max(...finite);
  return logs.map((x) => (x === null ? 0.15 : high > low ? 0.15 + (0.85 * (x - low)) / (high - low) : 1));
}

export function marks(steps: readonly Step[], strength: readonly number[], at: number, folded: Folded, selected: number | null): Marks {
  const reached = new Map<string, number>();
  const gradients = new Map<string, Values>();
  for (let i = 0; i < at; i++) {
    const box = folded.boxOf.get(steps[i].node);
    if (!box) continue;
    reached.set(box, Math.max(reached.get(box) ?? 0, strength[i]));
    const gradient = numbers(steps[i].incoming);
    const alone = folded.shown.get(box)?.kind !== 'module';
    if (alone && gradient && gradient.data.length > 1) gradients.set(box, gradient);
  }
  const step = at > 0 ? steps[at - 1] : null;
  const current = step ? (folded.boxOf.get(step.node) ?? null) : null;
  const flowing = new Set<string>();
  for (const out of step?.outgoing ?? []) {
    const to = folded.boxOf.get(out.to);
    if (to && current) flowing.add(`${to}>${current}`);
  }
  return { current, selected: selected === null ? null : (folded.boxOf.get(selected) ?? null), reached, gradients, flowing };
}
