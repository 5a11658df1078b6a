// A report's part of the run, ready for questions: the lanes' columns, and the rows of their slices. The same rules as
// src/server/timeline/row_index.cc, so that the same questions get the same answers (tests/web/onefile_test.mjs).
import type {Lane as LaneInfo, Run} from '../shell/api';

export const BLOCK = 64, MOST_ROWS = 200, OVERLAP_NS = 1000;

export type Numbers = Int8Array | Int16Array | Int32Array | Uint32Array;
// Slices of a lane that overlap by less than OVERLAP_NS, by start; their ends are in order too.
export interface Row {
  order: Uint32Array | Uint16Array | null; // position → slice of the lane; null: the same
  count: number;
  clipped: number; // slices that are drawn up to the start of the next one
  kinds: number[]; // that it holds, ascending
  busy: Float64Array; // [block · kinds + k]: time of kind k before the block, as drawn
  longest: Uint8Array; // by block: bits of the longest duration in it
}
// Numbers that few slices have, or that stay for long: value k holds from slice at[k] on.
export interface Spans {
  at: Numbers;
  value: Numbers;
}
export interface Facts {
  slice: Numbers;
  microBatch: Numbers;
  chunk: Numbers;
}

export interface Parents {
  slice: Numbers;
  parent: Numbers;
} // as Lane.partner

export interface Lane {
  id: number;
  type: LaneInfo['type'];
  count: number;
  start: Float64Array | Uint32Array; // the same in all lanes, as the run's span wants it
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
// How long the slice at a position of its row is drawn.
export function drawnNs(lane: Lane, row: Row, position: number): number {
  const i = sliceAt(row, position);
  if (row.clipped === 0 || position + 1 === row.count) return lane.dur[i]!;
  return Math.min(lane.dur[i]!, lane.start[sliceAt(row, position + 1)]! - lane.start[i]!);
}
const DEVICE_KINDS = new Set(['compute', 'comm', 'memory']);
// Returns whether the time of a slice is not that of the call around it. Device work overlaps its thread's calls.
export const takesTime = (store: Store, lane: Lane, slice: number): boolean =>
  lane.type === 'thread' && !DEVICE_KINDS.has(store.kindWords[kindOf(store, lane, slice)]![0]);

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

// Finds the rows of slices that come in a lane's order: RowFinder of src/server/timeline/row_index.h.
class RowFinder {
  private kept = 0;
  private readonly starts: number[] = [];
  private readonly ends: number[] = [];
  private readonly open: {end: number; row: number; slice: number}[] = [];
  constructor(private readonly top: number, private readonly nests: boolean, private readonly overlapNs: number) {}

  find(start: number, end: number): number {
    const {open, starts, ends} = this;
    this.kept = open.length;
    while (this.kept > 0 && (open[this.kept - 1]!.end <= start || open[this.kept - 1]!.end < end)) --this.kept;
    let row = this.kept > 0 ? open[this.kept - 1]!.row + 1 - this.top : 0;
    while (row < ends.length && ends[row]! > start &&
      !(ends[row]! - start < this.overlapNs && starts[row]! < start && ends[row]! < end)) ++row;
    return this.top + row;
  }
  holder(): number {
    return this.kept > 0 ? this.open[this.kept - 1]!.slice : -1;
  }
  put(row: number, start: number, end: number, slice: number): boolean {
    const {open, starts, ends, top} = this;
    open.length = this.kept;
    if (this.nests) open.push({end, row, slice});
    for (; ends.length <= row - top; ends.push(-1)) starts.push(-1);
    const overlaps = ends[row - top]! > start;
    starts[row - top] = start;
    ends[row - top] = end;
    return overlaps;
  }
}
const overlapOf = (lane: Lane): number => lane.type === 'cells' ? 0 : OVERLAP_NS;
// Cells and a stream's work enclose nothing; ranges on a stream enclose ranges.
const nests = (lane: Lane, row: number): boolean =>
  lane.type === 'thread' || (lane.type === 'stream' && row >= lane.rangeRow);

// A stream's work is in its first rows, wherever the user's ranges are: white there is an idle device.
function layOut(store: Store, lane: Lane): void {
  const {count, start, place} = lane, rowOf = new Uint8Array(count).fill(255), counts: number[] = [],
    clipped: number[] = [];
  const lay = (top: number, nested: boolean, only: boolean | null): void => {
    const rows = new RowFinder(top, nested, overlapOf(lane));
    for (let i = 0; i < count; ++i) {
      if (only !== null && (store.placeKind[place[i]!] === store.annotation) !== only) continue;
      const row = rows.find(start[i]!, endOf(lane, i));
      if (row >= MOST_ROWS) continue;
      const overlaps = rows.put(row, start[i]!, endOf(lane, i), i);
      rowOf[i] = row;
      counts[row] = (counts[row] ?? 0) + 1;
      clipped[row] = (clipped[row] ?? 0) + Number(overlaps);
    }
  };
  if (lane.type === 'stream') {
    lay(0, false, false);
    lane.rangeRow = counts.length;
    lay(lane.rangeRow, true, true);
  } else {
    lay(0, lane.type === 'thread', null);
    lane.rangeRow = counts.length;
  }
  const orders = counts.map(own => new (count <= 65536 ? Uint16Array : Uint32Array)(own)), next = counts.map(() => 0);
  for (let i = 0; i < count; ++i) {
    const row = rowOf[i]!;
    if (row !== 255) orders[row]![next[row]!++] = i;
  }
  lane.rows = orders.map((order, row) => ({order, count: order.length, clipped: clipped[row]!, kinds: [],
    busy: new Float64Array(0), longest: new Uint8Array(0)})
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
      const i = sliceAt(row, p), k = slot[placeKind[place[i]!]!]!;
      sums[k] = sums[k]! + drawnNs(lane, row, p);
      if (dur[i]! > longest) longest = dur[i]!;
    }
    row.longest[b] = bitsOf(longest);
  }
}

export function buildRows(store: Store, lane: Lane): void {
  if (lane.type === 'counter' || lane.count === 0) return;
  if (isOneRow(lane)) {
    lane.rows = [{order: null, count: lane.count, clipped: 0, kinds: [], busy: new Float64Array(0),
      longest: new Uint8Array(0)}];
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

// Adds to `sums` the drawn time of every kind (by slot of Row.kinds) of the whole slices [from, to) of a row.
export function addBusy(store: Store, lane: Lane, row: Row, from: number, to: number, sums: Float64Array): void {
  const {kinds, busy} = row, {placeKind} = store;
  const scan = (begin: number, end: number): void => {
    for (let p = begin; p < end; ++p) {
      const k = kinds.indexOf(placeKind[lane.place[sliceAt(row, p)]!]!);
      sums[k] = sums[k]! + drawnNs(lane, row, p);
    }
  };
  const first = Math.ceil(from / BLOCK), last = Math.floor(to / BLOCK);
  if (first >= last) return scan(from, to);
  scan(from, first * BLOCK);
  for (let k = 0; k < kinds.length; ++k)
    sums[k] = sums[k]! + busy[last * kinds.length + k]! - busy[first * kinds.length + k]!;
  scan(last * BLOCK, to);
}

// Row and position of a slice; null: deeper than rows are drawn.
export function rowPlace(lane: Lane, slice: number): {row: number; position: number} | null {
  for (let r = 0; r < lane.rows.length; ++r) {
    const row = lane.rows[r]!, position = firstSliceFrom(row, slice);
    if (position < row.count && sliceAt(row, position) === slice) return {row: r, position};
  }
  return null;
}

// The slice that encloses the one at this place; −1: none.
export function enclosing(lane: Lane, place: {row: number; position: number}): number {
  let latest = -1;
  if (!nests(lane, place.row)) return latest;
  const slice = sliceAt(lane.rows[place.row]!, place.position);
  for (let r = lane.type === 'stream' ? lane.rangeRow : 0; r < place.row; ++r) {
    const row = lane.rows[r]!, after = firstSliceFrom(row, slice);
    if (after === 0) continue;
    const above = sliceAt(row, after - 1), end = endOf(lane, above);
    if (end >= endOf(lane, slice) && end > lane.start[slice]! && above > latest) latest = above;
  }
  return latest;
}

// Calls visit(slice, index of what holds it or −1) for the slices [from, to) of a lane that have a row, in order:
// src/server/timeline/lane_walk.h.
export function walk(store: Store, lane: Lane, from: number, to: number,
  visit: (slice: number, holder: number) => void): void
{
  const work = new RowFinder(0, nests(lane, 0), overlapOf(lane)),
    ranges = new RowFinder(lane.rangeRow, true, overlapOf(lane)),
    hasRanges = lane.type === 'stream' && lane.rows.length > 1;
  const rowsOf = (i: number): RowFinder => hasRanges && kindOf(store, lane, i) === store.annotation ? ranges : work;
  const last = from === 0 ? [] : lane.rows.flatMap((row, r) => {
    const position = firstSliceFrom(row, from);
    return position === 0 ? [] : [{slice: sliceAt(row, position - 1), row: r}];
  });
  for (const {slice, row} of last.sort((a, b) => a.slice - b.slice)) {
    rowsOf(slice).find(lane.start[slice]!, endOf(lane, slice));
    rowsOf(slice).put(row, lane.start[slice]!, endOf(lane, slice), slice);
  }
  for (let i = from; i < to; ++i) {
    const rows = rowsOf(i), row = rows.find(lane.start[i]!, endOf(lane, i));
    if (row >= MOST_ROWS) continue;
    visit(i, rows.holder());
    rows.put(row, lane.start[i]!, endOf(lane, i), i);
  }
}
