// Round ticks for a time axis: 1, 2 or 5 times a power of ten, one unit for the whole axis.
export interface Ticks {
  values: number[];
  label: (ns: number) => string;
  between(t0: number, t1: number): number[]; // with the same steps, elsewhere
}

const UNITS: ReadonlyArray<readonly [number, string]> = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

export function timeTicks(t0: number, t1: number, zero: number, maxCount: number): Ticks {
  const rough = Math.max((t1 - t0) / Math.max(maxCount, 1), 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find(m => m * power >= rough) ?? 10);
  const between = (from: number, to: number): number[] => {
    const values: number[] = [];
    for (let v = Math.ceil((from - zero) / step) * step; v <= to - zero; v += step) values.push(v + zero);
    return values;
  };
  // The unit follows the numbers on the axis, the decimals follow the step.
  const largest = Math.max(Math.abs(t0 - zero), Math.abs(t1 - zero));
  const [size, unit] = UNITS.find(([s]) => largest >= s * 0.9999) ?? UNITS[3]!;
  const decimals = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / step) - 1e-9)));
  return {values: between(t0, t1), between,
    label: ns => `${((ns - zero) / size).toFixed(decimals).replace(/^-(0\.?0*)$/, '$1')}\u202f${unit}`};
}
