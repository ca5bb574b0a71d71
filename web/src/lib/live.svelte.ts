// Runs that the user's own program trains, or that are read from the folders of trainings.

import { engine, type PushedEvent } from './client.svelte';
import type { TrainEvent } from './protocol';
import { Run, type Checkpoint } from './training.svelte';

interface Told {
  step: number;
  title: string;
  text: string;
}
interface Measure {
  step: number;
  name: string;
  value: number | string;
}

class LiveRuns {
  runs = $state<Run[]>([]);

  constructor() {
    engine.listen((event) => this.#hear(event));
  }

  #hear(event: PushedEvent) {
    const id = event.run as string;
    const run = this.runs.find((r) => r.id === id);
    switch (event.event) {
      case 'run':
        void this.#watch(id, String(event.title), event.control !== false, event.branches === true);
        break;
      case 'train':
        run?.merge(event.events as TrainEvent[]);
        break;
      case 'held':
        if (run) run.going = !event.held;
        break;
      case 'checkpoints':
        if (run) run.checkpoints = event.checkpoints as Checkpoint[];
        break;
      case 'texts':
        run?.tell(event.texts as Told[], event.measures as Measure[]);
        break;
      case 'end':
        run?.end(typeof event.why === 'string' ? event.why : '');
        break;
      case 'again':
        run?.again();
        break;
    }
  }

  /** A run, also after the connection was lost: what it told before is asked for. */
  async #watch(id: string, title: string, control: boolean, branches: boolean) {
    let run = this.runs.find((r) => r.id === id);
    if (run) run.anew();
    else {
      run = new Run(id, title, null, 0, [], control);
      this.runs = [...this.runs, run];
      run = this.runs[this.runs.length - 1];
      run.going = true;
    }
    run.branches = branches;
    try {
      const found = await engine.call<{ events?: TrainEvent[]; ended?: string | null; held?: boolean; checkpoints?: Checkpoint[] }>('live.history', { run: id });
      run.merge(found.events ?? []);
      run.checkpoints = found.checkpoints ?? [];
      run.going = found.held !== true && !run.ended;
      if (typeof found.ended === 'string') run.end(found.ended);
    } catch (error) {
      run.problem = (error as Error).message;
    }
  }
}

export const live = new LiveRuns();
