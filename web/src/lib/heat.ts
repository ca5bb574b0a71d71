// Colours of numbers: two hues from zero, which is the colour of the ground.

import type { Values } from './protocol';

type Rgb = readonly [number, number, number];

const LIGHT = { zero: [247, 247, 248] as Rgb, plus: [190, 70, 20] as Rgb, minus: [35, 85, 190] as Rgb };
const DARK = { zero: [30, 33, 42] as Rgb, plus: [255, 160, 90] as Rgb, minus: [105, 165, 255] as Rgb };
const NOT_A_NUMBER: Rgb = [214, 40, 160];

/** The colour of `value` on a scale that ends at `limit`. A square root lets small values show. */
export function colour(value: number, limit: number, dark: boolean): Rgb {
  if (Number.isNaN(value)) return NOT_A_NUMBER;
  const { zero, plus, minus } = dark ? DARK : LIGHT;
  const share = limit > 0 ? Math.sqrt(Math.min(1, Math.abs(value) / limit)) : 0;
  const end = value < 0 ? minus : plus;
  return [0, 1, 2].map((i) => Math.round(zero[i] + (end[i] - zero[i]) * share)) as unknown as Rgb;
}

export function css(rgb: Rgb): string {
  return `rgb(${rgb[0]} ${rgb[1]} ${rgb[2]})`;
}

/** Rows and columns of a tensor as a map: the last axis goes across, all others down. */
export function grid(shape: readonly number[]): { rows: number; columns: number } {
  const columns = shape.at(-1) ?? 1;
  const rows = shape.slice(0, -1).reduce((a, b) => a * b, 1);
  // A long vector is folded, so that it does not become a thread.
  if (rows === 1 && columns > 64) {
    const wide = Math.ceil(Math.sqrt(columns * 2));
    return { rows: Math.ceil(columns / wide), columns: wide };
  }
  return { rows, columns };
}

export function limitOf(data: Iterable<number>): number {
  let most = 0;
  for (const x of data) if (Number.isFinite(x)) most = Math.max(most, Math.abs(x));
  return most;
}

/** One pixel for each element. */
export function picture(data: Values['data'], rows: number, columns: number, dark: boolean, limit = limitOf(data)): ImageData {
  const image = new ImageData(Math.max(1, columns), Math.max(1, rows));
  for (let i = 0; i < data.length && i < rows * columns; i++) {
    const [r, g, b] = colour(data[i], limit, dark);
    image.data.set([r, g, b, 255], 4 * i);
  }
  return image;
}
