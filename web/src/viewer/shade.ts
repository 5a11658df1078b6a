// Area-true pixels. A tile says of every column of a row which share of it each kind is busy (0 … 255). A column of the
// picture is filled from the bottom with these shares, one kind above the other; what stays empty was idle:
//
//        ·  ▁▁ ██ ·           the height of a colour is the share of the column's time
//        █  ██ ██ ▁▁
//
// Slices wide enough to be drawn one by one are taken out of the shares first (`residual`), so that shares and
// rectangles together are the tile, and an edge that falls within a column is not drawn twice.
export interface Coverage { kinds: number[]; shares: Uint8Array[] }  // of one row, by column
export interface Spans { start: Float64Array; dur: Float64Array; kind: Uint8Array }

let scratch = new Uint8Array(0);

export const BIG_COLUMNS = 3;  // a slice this wide is a rectangle of its own

// What is left of `coverage` without the slices [begin, end) that last `leastNs`. Rows do not overlap, so columns that
// lie wholly within a slice hold nothing else. The answer is good until the next call: its columns are reused, as thousands
// of rows a second would else be left to the collector. O(columns).
export function residual(coverage: Coverage, slices: Spans, begin: number, end: number, leastNs: number, t0: number,
                         columnNs: number): Coverage {
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
      own[column] = left > 2 ? left : 0;  // what rounding alone may leave
    };
    take(first, Math.min(first + 1, x1) - x0);
    if (last > first) take(last, x1 - last);
    for (const share of shares) share.fill(0, Math.max(first + 1, 0), Math.max(Math.min(last, columns), 0));
  }
  return {kinds: coverage.kinds, shares};
}

// Columns [0, n) of a row into `pixels` (0xAABBGGRR), `height` lines of `n` pixels. `colours` are 0xBBGGRR by kind.
// Where two colours, or a colour and nothing, share a pixel, it is their mean by area. O(n · (kinds + lines touched)).
export function shadeRow(coverage: Coverage, n: number, height: number, colours: Uint32Array, pixels: Uint32Array): void {
  pixels.fill(0, 0, n * height);
  const {kinds, shares} = coverage, count = kinds.length;
  if (count === 0) return;
  const scale = height / 255;
  for (let x = 0; x < n; ++x) {
    let position = 0;                       // from the bottom, in lines
    let r = 0, g = 0, b = 0, a = 0;         // of the line that is being filled
    for (let k = 0; k < count; ++k) {
      const share = shares[k]![x]!;
      if (share === 0) continue;
      const colour = colours[kinds[k]!]!;
      let rest = share * scale;
      if (position + rest > height) rest = height - position;
      while (rest > 1e-6) {
        const line = Math.floor(position + 1e-9), room = Math.min(line + 1 - position, rest);
        if (room >= 0.999) {
          pixels[(height - 1 - line) * n + x] = (0xff000000 | colour) >>> 0;
        } else {
          r += room * (colour & 255);
          g += room * (colour >> 8 & 255);
          b += room * (colour >> 16 & 255);
          a += room;
          if (position + room >= line + 1 - 1e-6) {
            pixels[(height - 1 - line) * n + x] = pixelOf(r, g, b, a);
            r = g = b = a = 0;
          }
        }
        position += room;
        rest -= room;
      }
    }
    if (a > 0) {
      const line = Math.min(Math.floor(position), height - 1);
      pixels[(height - 1 - line) * n + x] = pixelOf(r, g, b, a);
    }
  }
}

function pixelOf(r: number, g: number, b: number, a: number): number {
  const alpha = Math.min(Math.round(a * 255), 255);
  return (alpha << 24 | Math.round(b / a) << 16 | Math.round(g / a) << 8 | Math.round(r / a)) >>> 0;
}

// Columns of `kind` that a row's picture holds: tests compare it with the busy time.
export function columnsOf(coverage: Coverage, kind: number): number {
  const share = coverage.shares[coverage.kinds.indexOf(kind)];
  return share ? share.reduce((sum, value) => sum + value, 0) / 255 : 0;
}
