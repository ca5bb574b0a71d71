// Runs of the training page. The page asks for steps, so that a pause is not to ask.

import { engine } from './client.svelte';
import type { TrainEvent } from './protocol';

/** The readings of a run, thinned so that a long run stays light. */
const MOST = 4000;

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
  /** The program of a live run has ended. */
  ended = $state(false);
  problem = $state('');
  rate = $state(0);
  checkpoints = $state<{ checkpoint: number; step: number }[]>([]);

  constructor(
    readonly id: number | string,
    readonly title: string,
    readonly start: Start | null,
    rate: number,
    events: TrainEvent[] = [],
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
    const last = events[events.length - 1];
    if (last.activations.some((a) => a.histogram)) this.kept = [...this.kept, last].slice(-160);
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
      this.going = true;
      await this.control('go');
      return;
    }
    if (this.going) return;
    this.going = true;
    let count = 1;
    while (this.going) {
      const began = performance.now();
      await this.ask(count);
      const took = performance.now() - began;
      // As many steps as fit between two pictures, so that a quick model is not held up by drawing.
      count = Math.max(1, Math.min(50, Math.round((count * 60) / Math.max(1, took))));
      await new Promise((done) => setTimeout(done, 16));
    }
  }

  async pause() {
    this.going = false;
    if (this.live) await this.control('pause');
  }

  async one() {
    await this.pause();
    if (this.live) await this.control('step');
    else await this.ask(1);
  }

  async setRate(rate: number) {
    this.rate = rate;
    if (this.live) await this.control('go', rate);
    else await engine.call('train.rate', { run: this.id, rate });
  }

  async checkpoint() {
    this.checkpoints = [...this.checkpoints, await engine.call<{ checkpoint: number; step: number }>('train.checkpoint', { run: this.id })];
  }

  async fork(from: { checkpoint: number; step: number }, rate: number, title: string): Promise<Run> {
    const { run } = await engine.call<{ run: number }>('train.fork', { run: this.id, checkpoint: from.checkpoint, rate });
    return new Run(run, title, this.start, rate, this.events.filter((e) => e.step <= from.step));
  }

  async control(action: string, rate?: number) {
    await engine.call('live.control', rate === undefined ? { run: this.id, action } : { run: this.id, action, rate });
  }
}

export async function begin(start: Start, title: string): Promise<Run> {
  const { run } = await engine.call<{ run: number }>('train.start', { ...start });
  return new Run(run, title, start, start.rate);
}
