// The cells of a run: typed arrays over one buffer.
import {BACKWARD, FORWARD, INPUT_GRAD} from './kind';
import type {PayloadColumn} from './report';

export interface Cells {
  count: number;
  start: Float64Array;
  dur: Float64Array; // nanoseconds, exact; starts count from the part's zero
  step: Int32Array;
  part: Int32Array;
  chunk: Int32Array;
  microBatch: Int32Array;
  name: Uint32Array;
  kind: Uint8Array;
  pair: Int32Array; // other half of an overlapped forward and backward; −1: none
  linkFrom: Uint32Array;
  linkTo: Uint32Array; // ordered by linkFrom
  theoryStart: Float64Array | null; // where the schedule has the cell; NaN: nowhere; null: no schedule
  theoryDur: Float64Array | null;
}

// `base`: where the columns begin, a multiple of 8.
export function decodeCells(buffer: ArrayBuffer, columns: PayloadColumn[], count: number, base = 0): Cells {
  const types = {f64: Float64Array, i32: Int32Array, u32: Uint32Array, u8: Uint8Array};
  const column = (name: string): unknown => {
    const found = columns.find(c => c.name === name);
    if (!found) throw new Error(`the report has no column "${name}"`);
    return new types[found.type](buffer, base + found.offset, found.count);
  };
  const optional = (name: string): Float64Array | null =>
    columns.some(c => c.name === name) ? column(name) as Float64Array : null;
  const fromStep = column('link_from_step') as Uint32Array;
  const distance = column('link_distance') as Int32Array;
  const linkFrom = new Uint32Array(fromStep.length);
  const linkTo = new Uint32Array(fromStep.length);
  let from = 0;
  for (let i = 0; i < fromStep.length; ++i) {
    from += fromStep[i]!;
    linkFrom[i] = from;
    linkTo[i] = from + distance[i]!;
  }
  const cells = {
    count,
    start: column('start_ns') as Float64Array,
    dur: column('dur_ns') as Float64Array,
    step: column('step') as Int32Array,
    part: column('part') as Int32Array,
    chunk: column('chunk') as Int32Array,
    microBatch: column('micro_batch') as Int32Array,
    name: column('name') as Uint32Array,
    kind: column('kind') as Uint8Array,
    linkFrom,
    linkTo,
    pair: new Int32Array(count).fill(-1),
    theoryStart: optional('theory_start_ns'),
    theoryDur: optional('theory_dur_ns'),
  };
  findPairs(cells);
  return cells;
}

// An F and a B or I of one rank and step with the same times, longer than nothing: src/model/intervals.h.
// Sorted cells with the same times are neighbours.
export function findPairs(cells: Cells): void {
  const {pair, start, dur, part, step, kind} = cells;
  for (let i = 0; i < cells.count;) {
    let forward = -1, backward = -1, k = i;
    for (; k < cells.count && start[k] === start[i] && dur[k] === dur[i] && part[k] === part[i] && step[k] === step[i];
      ++k)
    {
      if (dur[k] === 0) continue;
      if (kind[k] === FORWARD) forward = k;
      else if (kind[k] === BACKWARD || kind[k] === INPUT_GRAD) backward = k;
      if (forward < 0 || backward < 0) continue;
      pair[forward] = backward;
      pair[backward] = forward;
      forward = backward = -1;
    }
    i = k;
  }
}

// Indexes [begin, end) of the links that leave `cell`.
export function linksFrom(cells: Cells, cell: number): number[] {
  let low = 0, high = cells.linkFrom.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cells.linkFrom[middle]! < cell) low = middle + 1;
    else high = middle;
  }
  const to: number[] = [];
  for (; low < cells.linkFrom.length && cells.linkFrom[low] === cell; ++low) to.push(cells.linkTo[low]!);
  return to;
}

// Links by where they lead, made when first asked: those of a cell are from[begin[cell]] to from[begin[cell + 1]].
interface Incoming {
  begin: Uint32Array;
  from: Uint32Array;
}
const incoming = new WeakMap<Uint32Array, Incoming>();
function byTarget({count, linkFrom, linkTo}: Cells): Incoming {
  const known = incoming.get(linkTo);
  if (known) return known;
  const begin = new Uint32Array(count + 1), from = new Uint32Array(linkTo.length);
  for (const to of linkTo) ++begin[to + 1]!;
  for (let i = 0; i < count; ++i) begin[i + 1]! += begin[i]!;
  const next = begin.slice();
  for (let i = 0; i < linkTo.length; ++i) from[next[linkTo[i]!]!++] = linkFrom[i]!;
  const made = {begin, from};
  incoming.set(linkTo, made);
  return made;
}

// Cells that link to `cell`.
export function linksTo(cells: Cells, cell: number): number[] {
  const {begin, from} = byTarget(cells);
  return [...from.subarray(begin[cell]!, begin[cell + 1]!)];
}
