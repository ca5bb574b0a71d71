// Runs of the training page. The page asks for steps, so that a pause is not to ask.

import { engine } from './client.svelte';
import type { TrainEvent } from './protocol';

/** The readings of a run, thinned so that a long run stays light. */
const MOST = 4000;

/** A state that was kept; a live run keeps it in a folder. */
export interface Checkpoint {
  checkpoint: number;
  step: number;
  place?: string;
}

export interface Start {
  source: string;
  seed: number;
  optimizer: string;
  rate: number;
  clip: number | null;
}

export class Run {
  events = $state.raw<TrainEvent[]>([]);
  /** Histograms of some steps, oldest first. */
  kept = $state.raw<TrainEvent[]>([]);
  going = $state(false);
  /** The program of a live run has ended, and why. */
  ended = $state(false);
  why = $state('');
  /** Texts of the run, such as its report, and measures over its steps. */
  texts = $state.raw<{ step: number; title: string; text: string }[]>([]);
  measures = $state.raw<{ step: number; name: string; value: number | string }[]>([]);
  problem = $state('');
  rate = $state(0);
  checkpoints = $state<Checkpoint[]>([]);
  /** Whether states of it can be kept, and gone on from. */
  branches = $state(true);

  constructor(
    readonly id: number | string,
    readonly title: string,
    readonly start: Start | null,
    rate: number,
    events: TrainEvent[] = [],
    /** Whether it can be paused and stepped from here. */
    readonly control = true,
  ) {
    this.rate = rate;
    this.events = events;
  }

  get live(): boolean {
    return this.start === null;
  }

  get step(): number {
    return this.events.at(-1)?.step ?? 0;
  }

  add(events: TrainEvent[]) {
    if (events.length === 0) return;
    const all = [...this.events, ...events];
    this.events = all.length > MOST ? all.filter((_, i) => i % 2 === 0 || i > all.length - 200) : all;
    const looked = events.filter((e) => e.activations.some((a) => a.histogram));
    if (looked.length > 0) this.kept = [...this.kept, ...looked].slice(-160);
  }

  /** Readings that may be there already, or before those that are there. */
  merge(events: TrainEvent[]) {
    if (events.length === 0) return;
    const last = this.events.at(-1)?.step ?? -1;
    if (events[0].step > last) {
      this.add(events);
    } else {
      const all = new Map([...this.events, ...events].map((e) => [e.step, e]));
      this.events = [];
      this.kept = [];
      this.add([...all.values()].sort((a, b) => a.step - b.step));
    }
    const rate = this.events.at(-1)?.rate;
    if (typeof rate === 'number') this.rate = rate;
  }

  tell(texts: { step: number; title: string; text: string }[], measures: { step: number; name: string; value: number | string }[]) {
    this.texts = texts;
    this.measures = measures;
  }

  end(why: string) {
    this.going = false;
    this.ended = true;
    this.why = why;
  }

  again() {
    this.going = true;
    this.ended = false;
    this.why = '';
  }

  anew() {
    this.again();
    this.events = [];
    this.kept = [];
    this.texts = [];
    this.measures = [];
  }

  async ask(count: number) {
    try {
      const { events } = await engine.call<{ events: TrainEvent[] }>('train.step', { run: this.id, count, histograms: true });
      this.add(events);
      this.problem = '';
    } catch (error) {
      this.going = false;
      this.problem = (error as Error).message;
    }
  }

  async play() {
    if (this.live) {
      await this.order('go');
      return;
    }
    if (this.going) return;
    this.going = true;
    let count = 1;
    while (this.going) {
      const began = performance.now();
      await this.ask(count);
      const took = performance.now() - began;
      // Steps between two pictures: enough that drawing does not hold up a quick model.
      count = Math.max(1, Math.min(50, Math.round((count * 60) / Math.max(1, took))));
      await new Promise((done) => setTimeout(done, 16));
    }
  }

  async pause() {
    if (this.live) {
      if (this.control && !this.ended) await this.order('pause');
      return;
    }
    this.going = false;
  }

  async one() {
    if (this.live) {
      await this.order('step');
      return;
    }
    await this.pause();
    await this.ask(1);
  }

  async setRate(rate: number) {
    this.rate = rate;
    if (this.live) await this.order('rate', rate);
    else await engine.call('train.rate', { run: this.id, rate });
  }

  async checkpoint() {
    if (this.live) {
      await this.order('checkpoint');
      return;
    }
    this.checkpoints = [...this.checkpoints, await engine.call<{ checkpoint: number; step: number }>('train.checkpoint', { run: this.id })];
  }

  /** Goes on from a kept state with another rate, as another process, which tells of itself. */
  async forkLive(from: Checkpoint, rate: number) {
    await this.order('fork', rate, from.checkpoint);
  }

  async fork(from: Checkpoint, rate: number, title: string): Promise<Run> {
    const { run } = await engine.call<{ run: number }>('train.fork', { run: this.id, checkpoint: from.checkpoint, rate });
    return new Run(run, title, this.start, rate, this.events.filter((e) => e.step <= from.step));
  }

  async order(action: string, rate?: number, checkpoint?: number) {
    try {
      // Undefined fields are not sent.
      const { held } = await engine.call<{ held?: boolean }>('live.control', { run: this.id, action, rate, checkpoint });
      if (held !== undefined) this.going = !held;
      this.problem = '';
    } catch (error) {
      this.problem = (error as Error).message;
    }
  }

  /** Names that the model makes up; `logits` is the variable with their scores. */
  async sample(want: string) {
    const { names } = await engine.call<{ names: string[] }>('train.sample', { run: this.id, want });
    this.texts = [{ step: this.step, title: 'names that the model made up', text: names.join(', ') }];
  }
}

export async function begin(start: Start, title: string): Promise<Run> {
  const { run } = await engine.call<{ run: number }>('train.start', { ...start });
  return new Run(run, title, start, start.rate);
}
