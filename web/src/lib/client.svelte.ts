// The engines behind the page. WebAssembly in a worker runs all that is typed here; a local
// program, where there is one, answers over a WebSocket for its own computations and runs.

import { unpacked, type Slice } from './slice';
import EngineWorker from './worker?worker';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** An answer that says what is wrong, with the place in the learner's code where there is one. */
export class EngineError extends Error {
  constructor(
    message: string,
    readonly line: number | null = null,
  ) {
    super(message);
  }
}

export interface PushedEvent {
  event: string;
  [key: string]: unknown;
}

export interface Given {
  given: number;
  title: string;
  /** The program; none if it is not one of the small language. */
  source?: string | null;
  seed: number;
  /** The user's own backward pass by hand, from a file. */
  hand?: string | null;
}

type Answer = { id?: number; ok?: unknown; error?: { message: string; line?: number | null } | string; event?: string };

interface Waiting {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
  message: string;
  remote: boolean;
  since: number;
}

/** Arguments that are code: the program that serves the page gets none of them. */
const CODE = ['source', 'backward', 'attempt', 'setup', 'reference', 'want'];
/** Calls that run a program again and again. */
const HERE = /^(train\.|gradcheck$|eval$|compare$|judge$)/;
/** Numbers of the local program's engine: below 0, so that the two are never mixed up. */
const NUMBERED = ['session', 'plant'];
const across = (number: number) => -1 - number;

/** `starting` before the first answer, `live`, or `lost` while the page tries again. */
export type Connection = 'starting' | 'live' | 'lost';

/** The time after which a question of the program that serves the page is late. */
const LATE_MS = 6000;
const LOOK_MS = 1000;
const RETRY_FIRST_MS = 400;
const RETRY_LAST_MS = 5000;

class Client {
  state = $state<Connection>('starting');
  reason = $state('');
  /** Whether the program has left a question without an answer for long. */
  late = $state(false);
  /** Rises with each connection, so that pages ask anew. */
  session = $state(0);
  /** Computations that the user's program passed on. */
  given = $state<Given[]>([]);
  readonly token = takeToken();
  readonly remote = this.token !== '';

  #next = 1;
  #waiting = new Map<number, Waiting>();
  #listeners = new Set<(event: PushedEvent) => void>();
  #socket: WebSocket | null = null;
  #worker: Worker | null = null;
  #retry = RETRY_FIRST_MS;
  #loading = RETRY_FIRST_MS;

  start() {
    this.#load();
    if (!this.remote) return;
    this.#connect();
    setInterval(() => {
      const before = performance.now() - LATE_MS;
      this.late = this.state === 'live' && [...this.#waiting.values()].some((one) => one.remote && one.since < before);
    }, LOOK_MS);
  }

  /** Asks an engine; over a lost connection the question waits for the next one. */
  call<T>(call: string, args: object = {}): Promise<T> {
    const id = this.#next++;
    const asked = { ...args } as Record<string, unknown>;
    const isCode = HERE.test(call) || CODE.some((name) => name in asked);
    const numbered = NUMBERED.filter((name) => typeof asked[name] === 'number' && (asked[name] as number) < 0);
    const remote = this.remote && (call.startsWith('live.') || (!isCode && ('given' in asked || numbered.length > 0)));
    if (remote) {
      for (const name of numbered) asked[name] = across(asked[name] as number);
    } else if (typeof asked.given === 'number') {
      // Code that belongs to the program of the user is run beside a copy of it in the page.
      const given = this.given.find((one) => one.given === asked.given);
      if (typeof given?.source !== 'string') return Promise.reject(new EngineError('This computation was made by another program: it can be looked at, but nothing can be run beside it.'));
      delete asked.given;
      Object.assign(asked, { source: given.source, seed: asked.seed ?? given.seed });
    }
    const message = JSON.stringify({ id, call, args: asked });
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject, message, remote, since: performance.now() });
      this.#send(message, remote);
    });
  }

  listen(listener: (event: PushedEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #send(message: string, remote: boolean) {
    if (!remote) this.#worker?.postMessage({ message });
    else if (this.#socket?.readyState === WebSocket.OPEN && this.state === 'live') this.#socket.send(message);
  }

  /** The elements of a tensor that is looked at. */
  slice(args: object): Promise<Slice> {
    return this.call<Slice>('slice', args);
  }

  #receive(message: string | ArrayBuffer) {
    if (typeof message !== 'string') {
      const { id, slice } = unpacked(message);
      this.#waiting.get(id)?.resolve(slice);
      this.#waiting.delete(id);
      return;
    }
    const answer = JSON.parse(message) as Answer;
    if (answer.event === 'hello') {
      this.given = (answer as unknown as { given: Given[] }).given;
      this.#retry = RETRY_FIRST_MS;
      this.#ready();
    } else if (answer.event !== undefined) {
      for (const listener of this.#listeners) listener(answer as PushedEvent);
    }
    if (answer.event !== undefined) return;
    const waiting = answer.id === undefined ? undefined : this.#waiting.get(answer.id);
    if (!waiting || answer.id === undefined) return;
    this.#waiting.delete(answer.id);
    if (answer.error === undefined) {
      const found = answer.ok as Record<string, unknown> | null;
      if (waiting.remote && found) for (const name of NUMBERED) if (typeof found[name] === 'number') found[name] = across(found[name]);
      waiting.resolve(found);
    } else if (typeof answer.error === 'string') waiting.reject(new EngineError(answer.error));
    else waiting.reject(new EngineError(answer.error.message, answer.error.line ?? null));
  }

  #ready() {
    this.state = 'live';
    this.reason = '';
    this.session += 1;
    this.#resend(true);
  }

  #resend(remote: boolean) {
    for (const waiting of this.#waiting.values()) {
      if (waiting.remote !== remote) continue;
      waiting.since = performance.now();
      this.#send(waiting.message, remote);
    }
  }

  #connect() {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/socket`);
    this.#socket = socket;
    socket.onopen = () => {
      socket.send(JSON.stringify({ token: this.token }));
    };
    socket.binaryType = 'arraybuffer';
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => this.#receive(event.data);
    socket.onclose = () => {
      this.state = 'lost';
      this.reason = 'The connection to the program is lost. The page goes on by itself once the program is there again; if it was ended, start it anew and open the address that it prints.';
      setTimeout(() => this.#connect(), this.#retry);
      this.#retry = Math.min(this.#retry * 1.6, RETRY_LAST_MS);
    };
  }

  #load() {
    const worker = new EngineWorker();
    worker.onmessage = (event: MessageEvent<{ ready?: true; failed?: string; answer?: string | ArrayBuffer }>) => {
      const { ready, failed, answer } = event.data;
      if (ready) {
        this.#worker = worker;
        this.#loading = RETRY_FIRST_MS;
        this.#resend(false);
        if (this.remote) return;
        this.#ready();
      } else if (answer !== undefined) {
        this.#receive(answer);
      } else if (failed !== undefined) {
        this.#failed(worker, failed);
      }
    };
    compiled().then(
      (module) => worker.postMessage({ module }),
      (error: unknown) => this.#failed(worker, `The engine could not be loaded: ${error instanceof Error ? error.message : error}`),
    );
  }

  /** A trap leaves the module unusable: the questions under way fail, and a new one is loaded. */
  #failed(worker: Worker, why: string) {
    worker.terminate();
    const running = this.#worker !== null;
    this.#worker = null;
    if (!this.remote) {
      this.state = 'lost';
      this.reason = why;
    }
    if (running || this.remote) {
      for (const [id, waiting] of this.#waiting) {
        if (waiting.remote) continue;
        waiting.reject(new EngineError(why));
        this.#waiting.delete(id);
      }
    }
    setTimeout(() => this.#load(), this.#loading);
    this.#loading = Math.min(this.#loading * 1.6, RETRY_LAST_MS);
  }
}

/** The library in WebAssembly, compiled while it arrives and while the worker starts; a file server
 * that does not know the type of the file gets it whole. */
async function compiled(): Promise<WebAssembly.Module> {
  const response = await fetch(new URL('engine.wasm', document.baseURI));
  if (!response.ok) throw new Error(`the server answers ${response.status} for engine.wasm.`);
  const streams = response.headers.get('content-type')?.startsWith('application/wasm') ?? false;
  return streams ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

/** The token of the URL's fragment: kept for a reload of this tab, removed from the address bar. */
function takeToken(): string {
  const found = /^#(?:\/?)token=([A-Za-z0-9_-]+)(.*)$/.exec(location.hash);
  if (!found) return sessionStorage.getItem('chainrule-token') ?? '';
  sessionStorage.setItem('chainrule-token', found[1]);
  const rest = found[2].replace(/^&/, '');
  // The rest is a page, or what the page of the backward pass opens first.
  const page = rest === '' ? '' : rest.startsWith('/') ? `#${rest}` : `#/backward?${rest}`;
  history.replaceState(null, '', location.pathname + page);
  return found[1];
}

export const engine = new Client();
