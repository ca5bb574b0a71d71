// A backward pass by hand beside that of the tape. Code is run in the page; where the computation
// is another program's, on copies of its values, and its gradients go back as numbers.

import { engine, type Json } from './client.svelte';
import type { Comparison, Fault, Origin } from './protocol';

interface Written {
  claims: Record<string, Json>;
  lines: Record<string, number | null>;
  error: Fault | null;
}

/** The copies that the page's engine holds, by the connection and the computation. */
let held: { key: string; number: number } | null = null;

async function copies(given: number, anew: boolean): Promise<number> {
  const key = `${engine.session} ${given}`;
  if (anew || held?.key !== key) {
    const values = await engine.call<{ values: Record<string, Json> }>('values', { given });
    held = { key, number: (await engine.call<{ held: number }>('hold', values)).held };
  }
  return held.number;
}

async function written(given: number, backward: string): Promise<Written> {
  const run = async (anew: boolean) => engine.call<Written>('written', { held: await copies(given, anew), backward });
  // An engine that was loaded anew holds nothing.
  return run(false).catch(() => run(true));
}

export async function compared(origin: Origin, backward: string): Promise<Comparison> {
  const given = 'given' in origin ? engine.given.find((one) => one.given === origin.given) : undefined;
  if (given === undefined || typeof given.source === 'string') return engine.call<Comparison>('compare', { ...origin, backward });
  const { claims, lines, error } = await written(given.given, backward);
  const answer = await engine.call<Comparison>('claims', { given: given.given, claims });
  if (answer.finding) answer.finding.line = lines[answer.finding.name] ?? null;
  return { ...answer, error, all: answer.all && error === null };
}
