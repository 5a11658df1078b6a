// How busy each column of pixels of a row is, by kind: exact from prefix sums. The arithmetic of
// src/server/timeline/tiles.cc, step for step.
import {WireWriter} from '../shell/wire';
import {addBusy, BLOCK, drawnNs, endOf, firstEndingAfter, sliceAt, type Lane, type Row, type Store} from './lanes';
import {lanesAsked, numberAsked, refuse, windowAsked, type Asked} from './query';

const WALK = 2 * BLOCK, MOST_COLUMNS = 16384;
const slot = new Uint8Array(256); // by kind, of the row in work: a worker collects small arrays late

// The first position from `from` on that ends after t: steps that double, then halves.
function gallop(lane: Lane, row: Row, from: number, t: number, t0: number): number {
  const before = (p: number): boolean => endOf(lane, sliceAt(row, p)) - t0 <= t;
  let step = WALK, low = from;
  while (low + step < row.count && before(low + step)) {
    low += step;
    step *= 2;
  }
  let high = Math.min(row.count, low + step);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function rowCoverage(store: Store, lane: Lane, row: Row, t0: number, t1: number,
  columns: number): {kind: number; share: Uint8Array}[]
{
  const from = Math.floor(t0), skip = t0 - from, columnNs = (t1 - t0) / columns, {kinds, count, order} = row,
    {placeKind} = store;
  const {start, dur, place} = lane, busy = new Float64Array(kinds.length);
  kinds.forEach((kind, k) => {
    slot[kind] = k;
  });
  const carry = new Float64Array(kinds.length), shares: (Uint8Array | null)[] = kinds.map(() => null),
    sums = new Float64Array(kinds.length);
  let position = firstEndingAfter(lane, row, from);
  if (position >= count || start[sliceAt(row, position)]! >= t1) return [];
  // The first column from c on that the next slice may touch.
  const nextColumn = (c: number): number => {
    if (position >= count) return columns;
    // Rounding may be a column off.
    const at = Math.floor((start[sliceAt(row, position)]! - from - skip) / columnNs) - 1;
    return at <= c ? c : at >= columns ? columns : at;
  };
  const touched = new Uint8Array(kinds.length);
  for (let c = nextColumn(0); c < columns; c = nextColumn(c + 1)) {
    const left = skip + columnNs * c, right = skip + columnNs * (c + 1);
    let touches = 0; // kinds that `busy` holds something of
    for (let steps = 0; position < count; ++steps) {
      if (steps === WALK) {
        const to = gallop(lane, row, position, right, from);
        sums.fill(0);
        addBusy(store, lane, row, position, to, sums);
        for (let k = 0; k < kinds.length; ++k) {
          if (sums[k] === 0) continue;
          if (busy[k] === 0) touched[touches++] = k;
          busy[k]! += sums[k]!;
        }
        position = to;
        continue;
      }
      const i = order ? order[position]! : position, begin = start[i]! - from,
        end = begin + (row.clipped ? drawnNs(lane, row, position) : dur[i]!);
      if (begin >= right) break;
      const ns = (end < right ? end : right) - (begin > left ? begin : left);
      if (ns > 0) {
        const k = slot[placeKind[place[i]!]!]!;
        if (busy[k] === 0) touched[touches++] = k;
        busy[k]! += ns;
      }
      if (end > right) break;
      ++position;
    }
    for (let n = 0; n < touches; ++n) {
      const k = touched[n]!, own = shares[k] ??= new Uint8Array(columns);
      const exact = busy[k]! / columnNs * 255 + carry[k]!, round = Math.round(exact),
        drawn = round < 0 ? 0 : round > 255 ? 255 : round;
      carry[k] = exact - drawn;
      own[c] = drawn;
      busy[k] = 0;
    }
  }
  return kinds.flatMap((kind, k) => (shares[k] ? [{kind, share: shares[k]}] : []));
}

export function tilesAnswer(store: Store, asked: Asked): ArrayBuffer {
  const {t0, t1} = windowAsked(store, asked), n = numberAsked(asked, 'n', NaN);
  if (!(n >= 1 && n <= MOST_COLUMNS)) refuse(400, 'n is a whole number from 1 to 16384');
  const wire = new WireWriter();
  const rows = lanesAsked(store, asked).flatMap(id => {
    const lane = store.lanes[id]!;
    return lane.rows.map((row, r) => ({lane: id, row: r, kinds: rowCoverage(store, lane, row, t0, t1, n)
      .map(({kind, share}) => ({kind, offset: wire.bytes(share)}))})
    );
  });
  return wire.finish({t0, t1, n, rows});
}
