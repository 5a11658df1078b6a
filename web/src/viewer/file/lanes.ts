// A report's part of the run, ready for questions: the lanes' columns, and rows in which no two slices overlap. The
// same rules as src/server/timeline/row_index.cc, so that the same questions get the same answers
// (tests/web/onefile_test.mjs).
import type {Lane as LaneInfo, Run} from '../shell/api';

export const BLOCK = 64, MOST_ROWS = 200;

// Slices of a lane that do not overlap, by start; so their ends are in order too.
export interface Row {
  order: Uint32Array | null; // position → slice of the lane; null: the same
  count: number;
  kinds: number[]; // that it holds, ascending
  busy: Float64Array; // [block · kinds + k]: time of kind k before the block
  longest: Uint8Array; // by block: bits of the longest duration in it
}
// Numbers that few slices have, or that stay for long: value k holds from slice at[k] on.
export interface Spans {
  at: Uint32Array;
  value: Int32Array;
}
export interface Facts {
  slice: Uint32Array;
  microBatch: Int32Array;
  chunk: Int32Array;
}

export interface Parents {
  slice: Uint32Array;
  parent: Uint32Array;
} // as Lane.partner

export interface Lane {
  id: number;
  type: LaneInfo['type'];
  count: number;
  start: Float64Array;
  dur: Float64Array | Uint32Array; // the same in all lanes, as the longest of the run wants it
  place: Uint32Array | Uint16Array; // into Store.placeName, placeKind
  step: Spans; // −1: none
  microBatch: Int32Array | null; // of cells; −1: none
  chunk: Int32Array | null;
  facts: Facts; // of slices that say their micro-batch
  // Of device work its launch, of a launch its last device work, of a cell the slice it was read from:
  // Store.bases[lane] + slice + 1; 0: none.
  partner: Uint32Array | null;
  parents: Parents; // where they are not what the rows say
  value: Float64Array | null; // of counters
  rows: Row[];
  rangeRow: number; // streams: from this row on stand the user's ranges
  onlyKind: number; // −1: several
}

export interface Store {
  run: Run;
  lanes: Lane[];
  bases: number[]; // by lane: the number of slices in the lanes before it
  names: string[];
  placeName: Uint32Array;
  placeKind: Uint8Array;
  annotation: number; // the kind of the user's ranges; −1: none occur
  operator: number; // the kind of operators
  kindWords: [code: string, name: string, nameZh: string][]; // of all kinds there are, by number
  hasChunks: boolean;
  origins: string[]; // by lane: the stamp that is its 0
  links: Links;
  words: Words;
}
// Sentences, which a worker has none of.
export interface Words {
  noArguments: string;
}
// Arrows: lane and slice of both ends, and an index into FLOW_TYPES.
export interface Links {
  fromLane: Uint32Array;
  fromSlice: Uint32Array;
  toLane: Uint32Array;
  toSlice: Uint32Array;
  type: Uint8Array;
}
export const FLOW_TYPES = ['message', 'launch', 'forward-backward', 'flow'];

export const kindOf = (store: Store, lane: Lane, slice: number): number => store.placeKind[lane.place[slice]!]!;
export const nameOf = (store: Store, lane: Lane, slice: number): number => store.placeName[lane.place[slice]!]!;
export const endOf = (lane: Lane, slice: number): number => lane.start[slice]! + lane.dur[slice]!;
export const sliceAt = (row: Row, position: number): number => (row.order ? row.order[position]! : position);

export function firstNot(count: number, before: (at: number) => boolean): number {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
// These return, for a row, the first position whose slice ends after t, that starts at or after t, that is this slice
// or a later one.
export const firstEndingAfter = (lane: Lane, row: Row, t: number): number =>
  firstNot(row.count, p => endOf(lane, sliceAt(row, p)) <= t);
export const firstInRowFrom = (lane: Lane, row: Row, t: number): number =>
  firstNot(row.count, p => lane.start[sliceAt(row, p)]! < t);
export const firstSliceFrom = (row: Row, slice: number): number => firstNot(row.count, p => sliceAt(row, p) < slice);
// These search a lane, in all its rows.
export const firstStartingFrom = (lane: Lane, t: number): number => firstNot(lane.count, i => lane.start[i]! < t);

export const valueAt = ({at, value}: Spans, slice: number): number => {
  const k = firstNot(at.length, i => at[i]! <= slice) - 1;
  return k < 0 ? -1 : value[k]!;
};
// Returns micro-batch and chunk of a slice; −1: none.
export function numbersOf(lane: Lane, slice: number): [microBatch: number, chunk: number] {
  if (lane.microBatch) return [lane.microBatch[slice]!, lane.chunk![slice]!];
  const {facts} = lane;
  if (facts.slice.length === 0) return [-1, -1];
  const k = firstNot(facts.slice.length, i => facts.slice[i]! < slice);
  return facts.slice[k] === slice ? [facts.microBatch[k]!, facts.chunk[k]!] : [-1, -1];
}

export const bitsOf = (
  n: number,
): number => (n < 0x100000000 ? 32 - Math.clz32(n) : 64 - Math.clz32(Math.floor(n / 0x100000000)));

function isOneRow({start, dur, count}: Lane): boolean {
  for (let i = 1; i < count; ++i) if (start[i]! < start[i - 1]! + dur[i - 1]!) return false;
  return true;
}

// A slice goes into the first row that is free at its start. A stream's work is in its first rows, wherever the user's
// ranges are: white there is an idle device.
function layOut(store: Store, lane: Lane): void {
  const {count, start, dur, place} = lane, rowOf = new Uint8Array(count).fill(255), ends = new Float64Array(MOST_ROWS);
  const counts: number[] = [];
  const lay = (first: number, only: boolean | null): void => {
    for (let i = 0; i < count; ++i) {
      if (only !== null && (store.placeKind[place[i]!] === store.annotation) !== only) continue;
      const at = start[i]!;
      let row = first;
      while (row < counts.length && ends[row]! > at) ++row;
      if (row === counts.length) {
        if (row === MOST_ROWS) continue;
        counts.push(0);
      }
      ends[row] = at + dur[i]!;
      rowOf[i] = row;
      ++counts[row]!;
    }
  };
  if (lane.type === 'stream') {
    lay(0, false);
    lane.rangeRow = counts.length;
    lay(lane.rangeRow, true);
  } else {
    lay(0, null);
    lane.rangeRow = counts.length;
  }
  const orders = counts.map(own => new Uint32Array(own)), next = counts.map(() => 0);
  for (let i = 0; i < count; ++i) {
    const row = rowOf[i]!;
    if (row !== 255) orders[row]![next[row]!++] = i;
  }
  lane.rows = orders.map(order => ({order, count: order.length, kinds: [], busy: new Float64Array(0),
    longest: new Uint8Array(0)})
  );
}

function makeCheckpoints(store: Store, lane: Lane, row: Row): void {
  const {placeKind} = store, {place, dur} = lane, seen = new Uint8Array(256);
  for (let p = 0; p < row.count; ++p) seen[placeKind[place[sliceAt(row, p)]!]!] = 1;
  const slot = new Uint8Array(256);
  for (let kind = 0; kind < 256; ++kind)
    if (seen[kind]) {
      slot[kind] = row.kinds.length;
      row.kinds.push(kind);
    }
  const blocks = Math.ceil(row.count / BLOCK), kinds = row.kinds.length, sums = new Float64Array(kinds);
  row.busy = new Float64Array((blocks + 1) * kinds);
  row.longest = new Uint8Array(blocks);
  for (let b = 0; b <= blocks; ++b) {
    row.busy.set(sums, b * kinds);
    if (b === blocks) break;
    let longest = 0;
    for (let p = b * BLOCK; p < Math.min(row.count, (b + 1) * BLOCK); ++p) {
      const i = sliceAt(row, p), ns = dur[i]!, k = slot[placeKind[place[i]!]!]!;
      sums[k] = sums[k]! + ns;
      if (ns > longest) longest = ns;
    }
    row.longest[b] = bitsOf(longest);
  }
}

export function buildRows(store: Store, lane: Lane): void {
  if (lane.type === 'counter' || lane.count === 0) return;
  if (isOneRow(lane)) {
    lane.rows = [{order: null, count: lane.count, kinds: [], busy: new Float64Array(0), longest: new Uint8Array(0)}];
    lane.rangeRow = 1;
  } else {
    layOut(store, lane);
  }
  const kinds = new Set<number>();
  for (const row of lane.rows) {
    makeCheckpoints(store, lane, row);
    for (const kind of row.kinds) kinds.add(kind);
  }
  const drawn = lane.rows.reduce((sum, row) => sum + row.count, 0);
  lane.onlyKind = kinds.size === 1 && drawn === lane.count ? [...kinds][0]! : -1;
}

// Time of every kind (by slot of Row.kinds) of the whole slices [from, to) of a row, added to `sums`.
export function addBusy(store: Store, lane: Lane, row: Row, from: number, to: number, sums: Float64Array): void {
  const {kinds, busy} = row, {placeKind} = store;
  const scan = (begin: number, end: number): void => {
    for (let p = begin; p < end; ++p) {
      const i = sliceAt(row, p), k = kinds.indexOf(placeKind[lane.place[i]!]!);
      sums[k] = sums[k]! + lane.dur[i]!;
    }
  };
  const first = Math.ceil(from / BLOCK), last = Math.floor(to / BLOCK);
  if (first >= last) return scan(from, to);
  scan(from, first * BLOCK);
  for (let k = 0; k < kinds.length; ++k)
    sums[k] = sums[k]! + busy[last * kinds.length + k]! - busy[first * kinds.length + k]!;
  scan(last * BLOCK, to);
}

export function busyWithin(store: Store, lane: Lane, row: Row, t0: number, t1: number): number {
  if (t1 <= t0) return 0;
  const from = firstEndingAfter(lane, row, t0), to = firstInRowFrom(lane, row, t1);
  if (from >= to) return 0;
  const sums = new Float64Array(row.kinds.length);
  addBusy(store, lane, row, from, to, sums);
  return sums.reduce((sum, ns) => sum + ns, 0) - Math.max(0, t0 - lane.start[sliceAt(row, from)]!) -
    Math.max(0, endOf(lane, sliceAt(row, to - 1)) - t1);
}

// Row and position of a slice; null: deeper than rows are drawn.
export function rowPlace(lane: Lane, slice: number): {row: number; position: number} | null {
  for (let r = 0; r < lane.rows.length; ++r) {
    const row = lane.rows[r]!, position = firstSliceFrom(row, slice);
    if (position < row.count && sliceAt(row, position) === slice) return {row: r, position};
  }
  return null;
}

// The slice, rows above, that holds the one at this place whole; −1: none. Ranges on a stream hold ranges only, cells
// nothing: they ran side by side.
export function enclosing(lane: Lane, place: {row: number; position: number}): number {
  const slice = sliceAt(lane.rows[place.row]!, place.position),
    top = lane.type === 'cells' ? place.row : place.row >= lane.rangeRow ? lane.rangeRow : 0;
  for (let r = place.row - 1; r >= top; --r) {
    const row = lane.rows[r]!, after = firstNot(row.count, p => lane.start[sliceAt(row, p)]! <= lane.start[slice]!);
    if (after === 0) continue;
    const above = sliceAt(row, after - 1);
    if (endOf(lane, above) >= endOf(lane, slice)) return above;
  }
  return -1;
}

// Calls visit(slice, index of what holds it or −1) for the slices [from, to) of a lane that have a row, in order.
export function walk(store: Store, lane: Lane, from: number, to: number,
  visit: (slice: number, holder: number) => void): void
{
  const rows = lane.rows.length, open = new Int32Array(rows).fill(-1), ends = new Float64Array(rows).fill(-1);
  for (let r = 0; from > 0 && r < rows; ++r) {
    const position = firstSliceFrom(lane.rows[r]!, from);
    if (position === 0) continue;
    open[r] = sliceAt(lane.rows[r]!, position - 1);
    ends[r] = endOf(lane, open[r]!);
  }
  const isStream = lane.type === 'stream' && rows > 1;
  for (let i = from; i < to; ++i) {
    const start = lane.start[i]!, end = start + lane.dur[i]!;
    const isRange = isStream && kindOf(store, lane, i) === store.annotation;
    const top = isRange ? lane.rangeRow : 0, bottom = isRange ? rows : lane.rangeRow;
    let r = top;
    while (r < bottom && ends[r]! > start) ++r;
    if (r >= bottom) continue;
    let holder = -1;
    for (let above = lane.type === 'cells' ? -1 : r - 1; above >= top && holder < 0; --above)
      if (ends[above]! >= end) holder = open[above]!;
    visit(i, holder);
    open[r] = i;
    ends[r] = end;
  }
}
