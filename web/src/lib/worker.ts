// The library in WebAssembly, away from the thread that draws.

interface Exports {
  memory: WebAssembly.Memory;
  alloc(length: number): number;
  free(pointer: number, length: number): void;
  request(pointer: number, length: number): number;
}

let engine: Exports | null = null;

/** The bit of a length that says that bytes follow, and no text. */
const BYTES = 0x8000_0000;

/** One call: JSON in, which the engine frees, and out a length of four bytes before the answer. */
function ask(exports: Exports, message: string): string | ArrayBuffer {
  const asked = new TextEncoder().encode(message);
  const at = exports.alloc(asked.length);
  new Uint8Array(exports.memory.buffer, at, asked.length).set(asked);
  const out = exports.request(at, asked.length);
  const head = new DataView(exports.memory.buffer).getUint32(out, true);
  const isBytes = head >= BYTES;
  const length = isBytes ? head - BYTES : head;
  const bytes = new Uint8Array(exports.memory.buffer, out + 4, length);
  const answer = isBytes ? bytes.slice().buffer : new TextDecoder().decode(bytes);
  exports.free(out, length + 4);
  return answer;
}

self.onmessage = async (event: MessageEvent<{ module?: WebAssembly.Module; message?: string }>) => {
  const { module, message } = event.data;
  try {
    if (module) {
      const instance = await WebAssembly.instantiate(module, { env: { now: () => performance.now() } });
      engine = instance.exports as unknown as Exports;
      self.postMessage({ ready: true });
    } else if (engine && message !== undefined) {
      const answer = ask(engine, message);
      self.postMessage({ answer }, typeof answer === 'string' ? [] : [answer]);
    }
  } catch (error) {
    self.postMessage({ failed: `The engine stopped: ${error instanceof Error ? error.message : error}` });
  }
};
