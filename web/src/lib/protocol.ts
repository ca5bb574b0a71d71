// The shapes of calls and answers. `crates/chainrule-studio` says them in Rust.

/** A number, or the name of one that JSON cannot write. */
export type Numeral = number | 'nan' | 'inf' | '-inf';

export function value(x: Numeral): number {
  if (typeof x === 'number') return x;
  return x === 'nan' ? NaN : x === 'inf' ? Infinity : -Infinity;
}

/** A tensor; the numbers of a large one are asked for when they are looked at. */
export interface Value {
  shape: number[];
  dtype: string;
  data: Numeral[] | null;
  /** The root mean square and the largest magnitude of the finite elements. */
  rms?: Numeral;
  largest?: Numeral;
}

/** The elements that a tensor brings along in a graph and in its steps. */
export const INLINE = 64;

/** The subject of a call. */
export type Origin =
  | { example: string; seed?: number }
  | { source: string; seed?: number }
  | { session: number }
  | { given: number; seed?: number };

export interface Example {
  name: string;
  title: string;
  about: string;
  source: string | null;
}

export interface Examples {
  examples: Example[];
  functions: { name: string; formula: string; about: string }[];
  mistakes: { id: string; words: string }[];
}

export interface GraphNode {
  id: number;
  name: string | null;
  label: string;
  op: string | null;
  module: string[];
  /** None for a value that the tape did not keep. */
  shape: number[] | null;
  dtype: string | null;
  kind: 'leaf' | 'const' | 'op' | 'root';
  source: { file: number; line: number } | null;
  inputs: number[];
  requires_grad: boolean;
  value: Value | null;
  backward: number | null;
}

export interface Graph {
  session: number;
  root: number;
  nodes: GraphNode[];
  sources: { file: string; lines: string[] }[];
}

export interface Step {
  node: number;
  rule: string | null;
  rule_tex: string | null;
  /** The rule with the names of the program. */
  named_tex?: string | null;
  /** The rule with numbers put in: of tensors those of the largest element. */
  numbers_tex: string | null;
  incoming: Value;
  /** The gradients that arrived; `incoming` is their sum. */
  received: { from: number; position: number; line: number | null; gradient: Value }[];
  outgoing: { to: number; position: number; gradient: Value }[];
}

export interface Inspected {
  shape: number[];
  dtype: string;
  stats: { min: Numeral; max: Numeral; mean: Numeral; std: Numeral; norm: Numeral; zeros: number; nonfinite: number; count: number };
  histogram: { edges: number[]; counts: number[] };
  /** The matrix of the elements that `slice` gives. */
  slice: { shape: [number, number]; reduced: boolean };
  uses: number[];
}

export interface Row {
  name: string;
  verdict: 'exact' | 'approximate' | 'wrong' | 'missing' | 'shape';
  max_diff: Numeral | null;
  shape_found: number[] | null;
  shape: number[];
  difference?: Value | null;
}

export interface Fault {
  message: string;
  line: number | null;
  column: number | null;
}

export interface Comparison {
  rows: Row[];
  finding: { line: number | null; name: string; mistake: string; correction: string; certain: boolean } | null;
  error: Fault | null;
  all: boolean;
}

export interface Judged {
  rows: Row[];
  all: boolean;
  error: Fault | null;
}

export interface Evaluated {
  values: Record<string, Value>;
  errors: Record<string, string>;
}

export interface Frame {
  rule: string;
  words: string;
  /** The value of the program that the rewrite is about. */
  at: string;
  before: string;
  after: string;
  before_tex: string;
  after_tex: string;
  /** Element-wise operations that it saved. */
  saved: number;
}

export interface Cost {
  instructions: number;
  flops: number;
  bytes: number;
}

/** The result that is farthest from that of the traced program, beside what rounding explains. */
export interface Apart {
  name: string;
  by: Numeral;
  size: Numeral;
  allowed: Numeral;
  /** Whether it is farther than that. */
  parts: boolean;
}

export interface Algebra {
  title: string;
  /** Constants that the tape of another program does not keep; zeros stand in their place. */
  unknown: string[];
  frames: Frame[];
  /** The backward pass as the chain rule gives it, and at the end. */
  traced: string[];
  result: string[];
  result_tex: string[];
  /** Each gradient as one formula. */
  formulas_tex: string[];
  difference: Apart | null;
  cost: { traced: Cost; simplified: Cost };
}

export interface ProgramLine {
  name: string;
  op: string;
  code: string;
  inputs: string[];
  shape: number[];
  dtype: string;
  phase: string;
  rule: string | null;
  /** The part that it runs in, in the list of parts; none for a view, which takes no time. */
  part?: number;
}

/** A program as a listing; without a clock of the engine it has no time and no parts. */
export interface Listed {
  lines: ProgramLine[];
  /** Lines that run as one, and what they took. */
  parts: { lines: number[]; microseconds: number }[];
  cost: Cost;
  microseconds: number | null;
}

/** A value in the arena, in lines of the fused program. */
export interface Block {
  line: number;
  name: string;
  offset: number;
  bytes: number;
  from: number;
  to: number;
}

export interface Program {
  title: string;
  /** Constants that the tape of another program does not keep; zeros stand in their place. */
  unknown: string[];
  before: Listed;
  after: Listed;
  fused: Listed & { text: string; difference: Apart | null };
  arena: { bytes: number; lower_bound: number; blocks: Block[] };
}

/** Statistics of a tensor, as the table of `train names` has them. */
export interface Spread {
  mean: Numeral;
  std: Numeral;
  norm: Numeral;
  zeros: number;
}

export interface LayerReading {
  name: string;
  grad_norm: Numeral;
  grad_std: Numeral;
  value_std: Numeral;
  update_ratio: Numeral;
  shape?: number[];
  value?: Spread;
  gradient?: Spread | null;
  grad_histogram?: { edges: number[]; counts: number[] };
}

export interface ActivationReading {
  name: string;
  mean: Numeral;
  std: Numeral;
  op: string | null;
  /** None where the values are not bounded. */
  saturated: number | null;
  dead: number;
  shape?: number[];
  value?: Spread;
  gradient?: Spread | null;
  histogram?: { edges: number[]; counts: number[] };
}

export interface TrainEvent {
  step: number;
  loss: Numeral;
  rate: number;
  layers: LayerReading[];
  activations: ActivationReading[];
  findings: { kind: string; words: string }[];
}

/** The map of a small tensor as numbers. */
export interface Values {
  shape: number[];
  data: number[] | Float32Array | Float64Array;
}

export function values(of: Value | null | undefined): { shape: number[]; data: number[] } | null {
  return of?.data ? { shape: of.shape, data: of.data.map(value) } : null;
}
