// The engine behind the page: the same calls over a WebSocket or to WebAssembly in a worker.

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

interface Given {
  given: number;
  title: string;
}

interface Waiting {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
  message: string;
}

/** `starting` before the first answer, `live`, or `lost` while the page tries again. */
export type Connection = 'starting' | 'live' | 'lost';

const RETRY_FIRST_MS = 400;
const RETRY_LAST_MS = 5000;

class Client {
  state = $state<Connection>('starting');
  reason = $state('');
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

  start() {
    if (this.remote) this.#connect();
    else this.#load();
  }

  /** Asks the engine; over a lost connection the question waits for the next one. */
  call<T>(call: string, args: object = {}): Promise<T> {
    const id = this.#next++;
    const message = JSON.stringify({ id, call, args });
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject, message });
      this.#send(id, message);
    });
  }

  listen(listener: (event: PushedEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #send(id: number, message: string) {
    if (this.#worker) this.#worker.postMessage({ id, message });
    else if (this.#socket?.readyState === WebSocket.OPEN && this.state === 'live') this.#socket.send(message);
  }

  #receive(text: string) {
    const answer = JSON.parse(text) as {
      id?: number;
      ok?: unknown;
      error?: { message: string; line?: number | null } | string;
      event?: string;
    };
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
    if (answer.error === undefined) waiting.resolve(answer.ok);
    else if (typeof answer.error === 'string') waiting.reject(new EngineError(answer.error));
    else waiting.reject(new EngineError(answer.error.message, answer.error.line ?? null));
  }

  #ready() {
    this.state = 'live';
    this.reason = '';
    this.session += 1;
    for (const [id, waiting] of this.#waiting) this.#send(id, waiting.message);
  }

  #connect() {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/socket`);
    this.#socket = socket;
    socket.onopen = () => {
      socket.send(JSON.stringify({ token: this.token }));
    };
    socket.onmessage = (event) => this.#receive(String(event.data));
    socket.onclose = () => {
      this.state = 'lost';
      this.reason = 'The connection to the program is lost. The page goes on by itself once the program is there again; if it was ended, start it anew and open the address that it prints.';
      setTimeout(() => this.#connect(), this.#retry);
      this.#retry = Math.min(this.#retry * 1.6, RETRY_LAST_MS);
    };
  }

  #load() {
    const worker = new EngineWorker();
    worker.onmessage = (event: MessageEvent<{ ready?: true; failed?: string; answer?: string }>) => {
      const { ready, failed, answer } = event.data;
      if (ready) {
        this.#worker = worker;
        this.#retry = RETRY_FIRST_MS;
        this.#ready();
      } else if (answer !== undefined) {
        this.#receive(answer);
      } else if (failed !== undefined) {
        // A trap leaves the module unusable: the questions under way fail, and a new one is loaded.
        worker.terminate();
        const running = this.#worker !== null;
        this.#worker = null;
        this.state = 'lost';
        this.reason = failed;
        if (running) {
          for (const waiting of this.#waiting.values()) waiting.reject(new EngineError(failed));
          this.#waiting.clear();
        }
        setTimeout(() => this.#load(), this.#retry);
        this.#retry = Math.min(this.#retry * 1.6, RETRY_LAST_MS);
      }
    };
    worker.postMessage({ load: new URL('engine.wasm', document.baseURI).href });
  }
}

/** The token from the URL's fragment, kept for a reload of this tab and taken out of the address bar. */
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
