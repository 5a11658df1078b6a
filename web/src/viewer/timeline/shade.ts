// Area-true pixels. A tile says of every column of a row which share of it each kind is busy (0 … 255). A column of the
// picture is filled from the bottom with these shares, one kind above the other; what stays empty was idle:
//
//        ·  ▁▁ ██ ·           the height of a colour is the share of the column's time
//        █  ██ ██ ▁▁
//
// Slices wide enough to be drawn one by one are removed from the shares first (`residual`). So shares and rectangles
// together are the tile, and an edge that falls within a column is not drawn twice.
export interface Coverage {
  kinds: number[];
  shares: Uint8Array[];
} // of one row, by column
export interface Spans {
  start: Float64Array;
  dur: Float64Array;
  kind: Uint8Array;
}

let scratch = new Uint8Array(0);

export const BIG_COLUMNS = 3; // a slice this wide is a rectangle of its own

// Returns the rest of `coverage` without the slices [begin, end) that last `leastNs`. Rows do not overlap, so columns
// that are wholly within a slice contain nothing else. The result is valid until the next call: its columns are reused,
// because thousands of rows per second would otherwise be left to the collector. O(columns).
export function residual(coverage: Coverage, slices: Spans, begin: number, end: number, leastNs: number, t0: number,
  columnNs: number): Coverage
{
  if (begin >= end) return coverage;
  const columns = coverage.shares[0]?.length ?? 0, needed = columns * coverage.shares.length;
  if (scratch.length < needed) scratch = new Uint8Array(needed);
  const shares = coverage.shares.map((share, k) => {
    const own = scratch.subarray(k * columns, (k + 1) * columns);
    own.set(share);
    return own;
  });
  for (let i = begin; i < end; ++i) {
    const dur = slices.dur[i]!;
    if (dur < leastNs || dur <= 0) continue;
    const x0 = (slices.start[i]! - t0) / columnNs, x1 = x0 + dur / columnNs;
    const first = Math.floor(x0), last = Math.ceil(x1) - 1;
    const own = shares[coverage.kinds.indexOf(slices.kind[i]!)];
    const take = (column: number, share: number): void => {
      if (!own || column < 0 || column >= columns) return;
      const left = own[column]! - Math.round(share * 255);
      own[column] = left > 2 ? left : 0; // what rounding alone may leave
    };
    take(first, Math.min(first + 1, x1) - x0);
    if (last > first) take(last, x1 - last);
    for (const share of shares) share.fill(0, Math.max(first + 1, 0), Math.max(Math.min(last, columns), 0));
  }
  return {kinds: coverage.kinds, shares};
}

// Columns [0, n) of a row into `pixels` (0xAABBGGRR), `height` lines of `n` pixels that are 0. `colours` are 0xBBGGRR
// by kind. Where two colours, or a colour and nothing, share a pixel, it is their mean by area. O(n · (kinds + lines
// touched)), in whole numbers: a line of a column is 255 parts, as a share is.
export function shadeRow(coverage: Coverage, n: number, height: number, colours: Uint32Array,
  pixels: Uint32Array): void
{
  const {kinds, shares} = coverage, count = kinds.length, most = 255 * height, bottom = (height - 1) * n;
  for (let x = 0; x < n; ++x) {
    let at = bottom + x, left = 255, filled = 0; // the pixel that is being filled, what of it is empty; of the column
    let r = 0, g = 0, b = 0; // of that pixel, by area
    for (let k = 0; k < count; ++k) {
      const share = shares[k]![x]!;
      if (share === 0) continue;
      const colour = colours[kinds[k]!]!;
      let rest = share * height;
      if (filled + rest > most) rest = most - filled;
      filled += rest;
      while (rest > 0) {
        if (left === 255 && rest >= 255) {
          pixels[at] = 0xff000000 | colour;
          rest -= 255;
          at -= n;
          continue;
        }
        const part = rest < left ? rest : left;
        r += part * (colour & 255);
        g += part * (colour >> 8 & 255);
        b += part * (colour >> 16 & 255);
        rest -= part;
        left -= part;
        if (left > 0) continue;
        pixels[at] = pixelOf(r, g, b, 255);
        at -= n;
        left = 255;
        r = g = b = 0;
      }
    }
    if (left < 255) pixels[at] = pixelOf(r, g, b, 255 - left);
  }
}

const pixelOf = (r: number, g: number, b: number, a: number): number =>
  a << 24 | (b / a + 0.5 | 0) << 16 | (g / a + 0.5 | 0) << 8 | (r / a + 0.5 | 0);

// Columns of `kind` that a row's picture holds: tests compare it with the busy time.
export function columnsOf(coverage: Coverage, kind: number): number {
  const share = coverage.shares[coverage.kinds.indexOf(kind)];
  return share ? share.reduce((sum, value) => sum + value, 0) / 255 : 0;
}
