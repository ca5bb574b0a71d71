// The computation that the pages look at; all pages share it.

import { engine } from './client.svelte';
import type { Example, Examples, Origin } from './protocol';
import { route } from './route.svelte';

class Chosen {
  examples = $state<Example[]>([]);
  functions = $state<Examples['functions']>([]);
  mistakes = $state<Examples['mistakes']>([]);
  /** The name of an example, `given 0`, or `own` for the code below. */
  choice = $state('');
  own = $state(localStorage.getItem('chainrule-own') ?? OWN);
  /** The seed of the random numbers; `null` for an example's own. */
  seed = $state<number | null>(null);
  #asked = -1;

  /** Asks for the list once for each connection. */
  async load() {
    if (this.#asked === engine.session || engine.session === 0) return;
    this.#asked = engine.session;
    const found = await engine.call<Examples>('examples');
    this.examples = found.examples;
    this.functions = found.functions;
    this.mistakes = found.mistakes;
    if (this.choice !== '') return;
    const wanted = route.query.example;
    if (wanted !== undefined && found.examples.some((e) => e.name === wanted)) this.choice = wanted;
    else if (engine.given.length > 0) this.choice = 'given 0';
    else this.choice = engine.remote ? 'names' : 'neuron';
  }

  get origin(): Origin | null {
    if (this.choice === '') return null;
    const seed = this.seed === null ? {} : { seed: this.seed };
    if (this.choice === 'own') return { source: this.own, ...seed };
    if (this.choice.startsWith('given ')) return { given: Number(this.choice.slice(6)), ...seed };
    return { example: this.choice, ...seed };
  }

  keepOwn(code: string) {
    this.own = code;
    localStorage.setItem('chainrule-own', code);
  }
}

const OWN = `# Any computation; leaf(..) makes a parameter.
x = randn(8, 3)
y = randint(0, 4, [8])
W = leaf(randn(3, 4) * 0.5)
b = leaf(zeros(4))
logits = x @ W + b
loss = cross_entropy(logits, y)
`;

export const chosen = new Chosen();
