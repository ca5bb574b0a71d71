// The parts of a lesson. Texts and programs are stored; answers are not: the engine computes them.

/** Numbers drawn anew for each try, from a seed. */
export class Draw {
  #state: number;
  constructor(readonly seed: number) {
    this.#state = (seed * 2654435761 + 1013904223) >>> 0;
  }
  unit(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }
  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.unit() * (high - low + 1));
  }
  /** A whole number that is not 0, 1 or -1: with those, wrong rules give right answers. */
  big(high: number): number {
    const x = this.int(2, high);
    return this.unit() < 0.5 ? -x : x;
  }
  tenth(low: number, high: number): number {
    return this.int(low * 10, high * 10) / 10;
  }
  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)];
  }
  /** Different whole numbers. */
  apart(count: number, low: number, high: number): number[] {
    const all = Array.from({ length: high - low + 1 }, (_, i) => low + i);
    return Array.from({ length: count }, () => all.splice(this.int(0, all.length - 1), 1)[0]);
  }
  list(count: number, low: number, high: number): number[] {
    return Array.from({ length: count }, () => this.int(low, high));
  }
}

export interface Wrong {
  /** The wrong answer, from what the engine gave. */
  is: (v: Record<string, number[]>) => number | number[];
  why: string;
}

interface Asked {
  id: string;
  ask: string;
  /** The program of the question, in the language of the engine. */
  source: string;
  /** Said once the answer is right. */
  because: string;
}

export interface NumberQuestion extends Asked {
  kind: 'number' | 'shape';
  want: string;
  /** The element that is asked for, where the wanted tensor has several. */
  at?: number;
  /** Other expressions, from which wrong answers are told. */
  also: string[];
  wrong: Wrong[];
}

/** A choice between lines of code. The engine runs each: right ones give the reference's result. */
export interface CodeQuestion extends Omit<Asked, 'source'> {
  kind: 'code';
  setup: string;
  reference: string;
  want: string;
  options: { code: string; why: string }[];
}

export type Question = NumberQuestion | CodeQuestion;
export interface Quiz {
  id: string;
  make: (draw: Draw) => Question;
}

type Numbers = Omit<NumberQuestion, 'id' | 'kind' | 'also'> & { also?: string[] };

export function ask(id: string, make: (draw: Draw) => Numbers): Block {
  return { quiz: { id, make: (draw) => ({ id, kind: 'number', also: [], ...make(draw) }) } };
}
export function askShape(id: string, make: (draw: Draw) => Numbers): Block {
  return { quiz: { id, make: (draw) => ({ id, kind: 'shape', also: [], ...make(draw) }) } };
}
export function askCode(id: string, make: (draw: Draw) => Omit<CodeQuestion, 'id' | 'kind'>): Block {
  return { quiz: { id, make: (draw) => ({ id, kind: 'code', ...make(draw) }) } };
}

export interface Slider {
  name: string;
  label: string;
  min: number;
  max: number;
  step: number;
  value: number;
}

export type Picture =
  | { as: 'number'; want: string; label: string }
  | { as: 'map'; want: string; label: string }
  | { as: 'curve'; x: string; y: { want: string; label: string }[]; label: string; log?: boolean }
  | { as: 'bars'; wants: { want: string; label: string }[]; label: string; log?: boolean };

/** A program with sliders: `{name}` in its text stands for the slider's number. */
export interface Lab {
  source: string;
  sliders: Slider[];
  pictures: Picture[];
  choices?: { name: string; label: string; options: string[] }[];
}

/** The same training twice: a loop by hand that fills `losses`, and a step for autograd. */
export interface SideBySide {
  hand: string;
  autograd: string;
  losses: string;
  steps: number;
  /** One of them is the `rate`. */
  sliders: Slider[];
  choice: { name: string; label: string; options: string[] };
}

export interface Exercise {
  id: string;
  title: string;
  setup: string;
  start: string;
  reference: string;
  want: string[];
  /** An attempt with a usual mistake, for the tests. */
  slip: string;
  /** The expected way, where the reference takes another. */
  solution?: string;
  hint: string;
}

export type Block =
  | { text: string }
  | { code: string }
  | { lab: Lab }
  | { trace: { source: string; sliders: Slider[] } }
  | { broadcast: { a: number[]; b: number[] } }
  | { steps: { source: string } }
  | { arena: { source: string; sliders: Slider[] } }
  | { backward: { example: string } }
  | { film: { name: string } }
  | { hunt: { example: string } }
  | { sides: SideBySide }
  | { quiz: Quiz }
  | { exercise: Exercise };

/** The name under which a block is kept as solved, if there is something to solve. */
export function taskOf(block: Block): string | null {
  if ('quiz' in block) return block.quiz.id;
  if ('exercise' in block) return block.exercise.id;
  if ('backward' in block) return `backward-${block.backward.example}`;
  if ('hunt' in block) return `hunt-${block.hunt.example}`;
  return null;
}

export interface Page {
  title: string;
  blocks: Block[];
}

export interface Lesson {
  id: string;
  title: string;
  about: string;
  pages: Page[];
}

export function filled(source: string, numbers: Record<string, number | string>): string {
  return source.replace(/\{(\w+)\}/g, (all, name: string) => (name in numbers ? String(numbers[name]) : all));
}

/** A typed number: `-1.5`, `1/3`, `2e-3`. */
export function readNumber(text: string): number | null {
  const plain = text.trim().replace(/−/g, '-').replace(',', '.');
  const fraction = /^([-+]?[\d.]+(?:e[-+]?\d+)?)\s*\/\s*([-+]?[\d.]+(?:e[-+]?\d+)?)$/i.exec(plain);
  const found = fraction ? Number(fraction[1]) / Number(fraction[2]) : plain === '' ? NaN : Number(plain);
  return Number.isFinite(found) ? found : null;
}

/** A typed shape: `3, 4`, `[3, 4]`, `3 x 4`; a scalar is `[]` or `scalar`. */
export function readShape(text: string): number[] | null {
  const plain = text.trim().toLowerCase();
  if (plain === '') return null;
  if (plain === 'scalar' || /^[[(]\s*[\])]$/.test(plain)) return [];
  if (!/^[[(]?\s*\d+(\s*[,x× ]\s*\d+)*\s*,?\s*[\])]?$/.test(plain)) return null;
  return (plain.match(/\d+/g) ?? []).map(Number);
}

/** Equal as one reads numbers: to one percent, or to a few ten-thousandths near zero. */
export function near(a: number, b: number): boolean {
  return Math.abs(a - b) <= Math.max(0.01 * Math.abs(b), 6e-4);
}

export function same(a: number | readonly number[], b: number | readonly number[]): boolean {
  const x = typeof a === 'number' ? [a] : a;
  const y = typeof b === 'number' ? [b] : b;
  return x.length === y.length && x.every((v, i) => near(v, y[i]));
}

const KEY = 'chainrule-lessons';

export interface Progress {
  /** The last page of each lesson, and the questions that were solved. */
  place: Record<string, number>;
  solved: string[];
}

export function readProgress(): Progress {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Progress>;
    return { place: kept.place ?? {}, solved: kept.solved ?? [] };
  } catch {
    return { place: {}, solved: [] };
  }
}

export function keepProgress(progress: Progress) {
  localStorage.setItem(KEY, JSON.stringify(progress));
}
