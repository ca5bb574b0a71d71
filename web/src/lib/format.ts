/** A number as one reads it: few digits, powers of ten where the size asks for them. */
export function number(x: number | null | undefined, digits = 4): string {
  if (x === null || x === undefined) return '–';
  if (Number.isNaN(x)) return 'NaN';
  if (!Number.isFinite(x)) return x > 0 ? '∞' : '−∞';
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (size >= 1e5 || size < 1e-3) {
    const [front, power] = x.toExponential(Math.min(2, digits - 1)).split('e');
    return `${Number(front)}e${Number(power)}`.replace(/-/g, '−');
  }
  return String(Number(x.toPrecision(digits))).replace('-', '−');
}

export function shape(dims: readonly number[]): string {
  return dims.length === 0 ? 'scalar' : `[${dims.join(', ')}]`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  return `${(count / 1e6).toFixed(2)} MB`;
}

export function micros(us: number): string {
  return us < 1000 ? `${us.toFixed(us < 10 ? 2 : 1)} µs` : `${(us / 1000).toFixed(2)} ms`;
}
