// The library in WebAssembly, away from the thread that draws.

interface Exports {
  memory: WebAssembly.Memory;
  alloc(length: number): number;
  free(pointer: number, length: number): void;
  request(pointer: number, length: number): number;
}

let engine: Exports | null = null;

/** One call: JSON in, which the engine frees, and out a length of four bytes before the JSON. */
function ask(exports: Exports, message: string): string {
  const bytes = new TextEncoder().encode(message);
  const at = exports.alloc(bytes.length);
  new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
  const out = exports.request(at, bytes.length);
  const length = new DataView(exports.memory.buffer).getUint32(out, true);
  const answer = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, out + 4, length));
  exports.free(out, length + 4);
  return answer;
}

async function load(address: string) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`The engine was not found (${response.status} for engine.wasm).`);
  const imports = { env: { now: () => performance.now() } };
  // Compiled while it arrives; a file server that does not know the type of the file gets it whole.
  const streams = response.headers.get('content-type')?.startsWith('application/wasm') ?? false;
  const { instance } = await (streams ? WebAssembly.instantiateStreaming(response, imports) : WebAssembly.instantiate(await response.arrayBuffer(), imports));
  engine = instance.exports as unknown as Exports;
}

self.onmessage = async (event: MessageEvent<{ load?: string; id?: number; message?: string }>) => {
  const { load: address, message } = event.data;
  try {
    if (address !== undefined) {
      await load(address);
      self.postMessage({ ready: true });
    } else if (engine && message !== undefined) {
      self.postMessage({ answer: ask(engine, message) });
    }
  } catch (error) {
    self.postMessage({ failed: `The engine stopped: ${error instanceof Error ? error.message : error}` });
  }
};
