// The exact slices of a stretch of time: src/server/timeline/slice_window.cc.
import {WireWriter} from '../shell/wire';
import {bitsOf, BLOCK, firstEndingAfter, firstInRowFrom, kindOf, nameOf, numbersOf, sliceAt, type Lane, type Row,
  type Store} from './lanes';
import {shortName} from './names';
import {lanesAsked, numberAsked, windowAsked, type Asked, type Window} from './query';

export const MOST_SLICES = 200_000;
export interface Found {
  lane: Uint32Array;
  slice: Uint32Array;
  row: Uint8Array;
  minNs: number;
  complete: boolean;
}

interface Stretch {
  lane: number;
  row: number;
  from: number;
  to: number;
}

function stretchesOf(store: Store, lanes: number[], window: Window): Stretch[] {
  return lanes.flatMap(id => {
    const lane = store.lanes[id]!;
    return lane.rows.flatMap((row, r) => {
      let from = firstEndingAfter(lane, row, window.from);
      // An instant at the left edge ends where it starts, and is seen.
      while (from > 0 && lane.start[sliceAt(row, from - 1)]! >= window.from) --from;
      const to = firstInRowFrom(lane, row, window.to);
      return from < to ? [{lane: id, row: r, from, to}] : [];
    });
  });
}

function forLong(lane: Lane, row: Row, {from, to}: Stretch, minNs: number, visit: (slice: number) => void): void {
  const least = bitsOf(Math.max(0, Math.floor(minNs)));
  for (let p = from; p < to;) {
    const end = Math.min(to, (Math.floor(p / BLOCK) + 1) * BLOCK);
    if (row.longest[Math.floor(p / BLOCK)]! >= least) {
      for (let q = p; q < end; ++q) {
        const i = sliceAt(row, q);
        if (lane.dur[i]! >= minNs) visit(i);
      }
    }
    p = end;
  }
}

// The least power of two at or above minNs at which at most `limit` slices are left.
function raisedMin(store: Store, stretches: Stretch[], minNs: number, limit: number): number {
  const sums = new Float64Array(65);
  for (const s of stretches) {
    const lane = store.lanes[s.lane]!;
    forLong(lane, lane.rows[s.row]!, s, minNs, i => {
      const bits = bitsOf(lane.dur[i]!);
      sums[bits] = sums[bits]! + 1;
    });
  }
  if (sums.reduce((sum, n) => sum + n, 0) <= limit) return minNs;
  let kept = 0, bits = 64;
  while (bits > 0 && kept + sums[bits - 1]! <= limit) kept += sums[--bits]!;
  if (kept === 0) return Math.max(minNs, bits <= 1 ? 0 : 2 ** (bits - 2));
  return bits === 0 ? 0 : 2 ** (bits - 1);
}

export function slicesWithin(store: Store, lanes: number[], window: Window, minNs: number, limit: number): Found {
  const stretches = stretchesOf(store, lanes, window), touched = stretches.reduce((sum, s) => sum + s.to - s.from, 0);
  const least = touched <= limit ? minNs : raisedMin(store, stretches, minNs, limit);
  const most = Math.min(limit, touched), lane = new Uint32Array(most), slice = new Uint32Array(most),
    row = new Uint8Array(most);
  let n = 0, complete = least === minNs;
  for (const s of stretches) {
    const own = store.lanes[s.lane]!;
    forLong(own, own.rows[s.row]!, s, least, i => {
      if (n >= limit) {
        complete = false;
        return;
      }
      lane[n] = s.lane;
      row[n] = s.row;
      slice[n++] = i;
    });
  }
  return {lane: lane.subarray(0, n), slice: slice.subarray(0, n), row: row.subarray(0, n), minNs: least, complete};
}

export function slicesWire(store: Store, found: Found): ArrayBuffer {
  const n = found.slice.length, start = new Float64Array(n), dur = new Float64Array(n), name = new Uint32Array(n),
    kind = new Uint8Array(n);
  const microBatch = new Int32Array(n), chunk = new Int32Array(n);
  for (let k = 0; k < n; ++k) {
    const lane = store.lanes[found.lane[k]!]!, i = found.slice[k]!;
    start[k] = lane.start[i]!;
    dur[k] = lane.dur[i]!;
    name[k] = nameOf(store, lane, i);
    kind[k] = kindOf(store, lane, i);
    [microBatch[k], chunk[k]] = numbersOf(lane, i);
  }
  const wire = new WireWriter();
  wire.add('start', 'f64', start);
  wire.add('dur', 'f64', dur);
  wire.add('name', 'u32', name);
  wire.add('kind', 'u8', kind);
  wire.add('row', 'u8', found.row);
  wire.add('lane', 'u32', found.lane);
  wire.add('slice', 'u32', found.slice);
  wire.add('micro_batch', 'i32', microBatch);
  wire.add('chunk', 'i32', chunk);
  const ids = [...new Set(name)].sort((a, b) => a - b);
  return wire.finish({count: n, min_ns: found.minNs, complete: found.complete, columns: wire.columns,
    names: ids.map(id => [id, shortName(store, id)])});
}

export function slicesAnswer(store: Store, asked: Asked): ArrayBuffer {
  const limit = Math.min(MOST_SLICES, Math.max(1, numberAsked(asked, 'limit', 50_000)));
  const minNs = Math.floor(Math.max(0, numberAsked(asked, 'min_ns', 0)));
  return slicesWire(store, slicesWithin(store, lanesAsked(store, asked), windowAsked(store, asked), minNs, limit));
}
