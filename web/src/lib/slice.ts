// Elements of tensors, which travel as bytes.

/** The elements as a matrix; of a large tensor the means of blocks. */
export interface Slice {
  shape: [number, number];
  data: Float32Array | Float64Array;
  reduced: boolean;
}

const HEAD = 16;
const REDUCED = 1;
const WIDE = 2;

/** The number of the request and its elements: four words, and then floats, least bytes first. */
export function unpacked(bytes: ArrayBuffer): { id: number; slice: Slice } {
  const head = new DataView(bytes);
  const [id, rows, columns, flags] = [0, 4, 8, 12].map((at) => head.getUint32(at, true));
  const data = flags & WIDE ? new Float64Array(bytes, HEAD) : new Float32Array(bytes, HEAD);
  return { id, slice: { shape: [rows, columns], data, reduced: (flags & REDUCED) !== 0 } };
}
