// Rows of the chart (one per rank, ordered by replica, stage, rank) and their lanes.
import type {Cells} from './cells';
import {BACKWARD, INPUT_GRAD, KIND_LANE, LANE_COUNT, MESSAGE_LANE} from './kind';
import type {Part} from './report';

export interface Lane {
  cells: Uint32Array; // by (step, start)
  maxEnd: Float64Array; // largest end among cells[0..i]: finds what reaches into a window
  ordered: boolean; // by start alone as well: steps do not overlap in this lane
}
export interface Row {
  part: number;
  lanes: Lane[];
}
// Theory as cells of its own, so that what draws cells draws ghosts: times are theory's, all else is shared.
export interface Ghosts {
  cells: Cells;
  lanes: Lane[];
} // one lane a row
export interface StepSpan {
  step: number;
  t0: number;
  t1: number;
} // first start, last end of its cells but messages

export interface RunModel {
  rows: Row[];
  rowOfPart: Int32Array;
  steps: StepSpan[]; // known steps, ascending
  whole: StepSpan; // of all cells
  dps: number[]; // known replicas, ascending
  chunked: boolean;
  markInputs: boolean; // full backwards are there too: input gradients need a mark of their own
  ghosts: Ghosts | null;
}

const unknownLast = (n: number): number => (n < 0 ? Infinity : n);
const compare = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);

function rowOrder(parts: Part[]): number[] {
  return parts.map((_, i) => i).sort((a, b) =>
    compare(unknownLast(parts[a]!.dp), unknownLast(parts[b]!.dp)) ||
    compare(unknownLast(parts[a]!.stage), unknownLast(parts[b]!.stage)) ||
    compare(parts[a]!.rank, parts[b]!.rank)
  );
}

export function makeLane(cells: Cells, order: Uint32Array): Lane {
  const maxEnd = new Float64Array(order.length);
  let end = -Infinity, start = -Infinity, ordered = true;
  for (let i = 0; i < order.length; ++i) {
    const cell = order[i]!;
    ordered &&= cells.start[cell]! >= start;
    start = cells.start[cell]!;
    end = Math.max(end, start + cells.dur[cell]!);
    maxEnd[i] = end;
  }
  return {cells: order, maxEnd, ordered};
}

// Cells arrive sorted by (step, part, start), so picking them in order sorts every lane.
function makeRows(cells: Cells, parts: Part[], order: number[], rowOfPart: Int32Array): Row[] {
  const counts = new Uint32Array(parts.length * LANE_COUNT);
  const slot = (cell: number): number => rowOfPart[cells.part[cell]!]! * LANE_COUNT + KIND_LANE[cells.kind[cell]!]!;
  for (let i = 0; i < cells.count; ++i) counts[slot(i)]!++;
  const lanes = Array.from(counts, count => new Uint32Array(count));
  counts.fill(0);
  for (let i = 0; i < cells.count; ++i) {
    const s = slot(i);
    lanes[s]![counts[s]!++] = i;
  }
  return order.map((part, row) => ({
    part,
    lanes: lanes.slice(row * LANE_COUNT, (row + 1) * LANE_COUNT).map(list => makeLane(cells, list)),
  }));
}

function makeGhosts(cells: Cells, rows: Row[]): Ghosts | null {
  const {theoryStart, theoryDur} = cells;
  if (!theoryStart || !theoryDur) return null;
  return ghostsOf({...cells, start: theoryStart, dur: theoryDur}, rows.map(row => row.lanes[0]!.cells));
}

// Of `orders`, a list of cells a row, those that have a start.
export function ghostsOf(ghosts: Cells, orders: Uint32Array[]): Ghosts {
  const {start, step} = ghosts;
  return {cells: ghosts, lanes: orders.map(list => {
    const order = list.filter(cell => !Number.isNaN(start[cell]!));
    const before = (a: number, b: number): number => step[a]! - step[b]! || start[a]! - start[b]! || a - b;
    if (order.some((cell, i) => i > 0 && before(order[i - 1]!, cell) > 0)) order.sort(before);
    return makeLane(ghosts, order);
  })};
}

// Messages do not lengthen a step: a receive may be posted, and wait, while the step before still runs
// (src/model/pipeline_sums.h).
function stepSpans(cells: Cells): {steps: StepSpan[]; whole: StepSpan} {
  const spans = new Map<number, StepSpan>();
  const whole: StepSpan = {step: -1, t0: Infinity, t1: -Infinity};
  let current: StepSpan | undefined;
  for (let i = 0; i < cells.count; ++i) {
    const step = cells.step[i]!;
    if (!current || current.step !== step) {
      current = spans.get(step);
      if (!current) spans.set(step, current = {step, t0: Infinity, t1: -Infinity});
    }
    const t0 = cells.start[i]!, t1 = t0 + cells.dur[i]!;
    whole.t0 = Math.min(whole.t0, t0);
    whole.t1 = Math.max(whole.t1, t1);
    if (KIND_LANE[cells.kind[i]!] === MESSAGE_LANE) continue;
    if (t0 < current.t0) current.t0 = t0;
    if (t1 > current.t1) current.t1 = t1;
  }
  for (const span of spans.values()) {
    if (span.t1 === -Infinity) Object.assign(span, {t0: whole.t0, t1: whole.t1}); // nothing but messages
    if (span.t1 <= span.t0) span.t1 = span.t0 + 1;
  }
  if (spans.size === 0) Object.assign(whole, {t0: 0, t1: 1});
  return {steps: [...spans.values()].filter(s => s.step >= 0).sort((a, b) => a.step - b.step), whole};
}

const traitsOf = (cells: Cells): Pick<RunModel, 'chunked' | 'markInputs'> => ({
  chunked: cells.chunk.some(chunk => chunk > 0),
  markInputs: cells.kind.includes(BACKWARD) && cells.kind.includes(INPUT_GRAD),
});

export function makeModel(cells: Cells, parts: Part[]): RunModel {
  const order = rowOrder(parts);
  const rowOfPart = new Int32Array(parts.length);
  order.forEach((part, row) => {
    rowOfPart[part] = row;
  });
  const dps = [...new Set(parts.map(p => p.dp).filter(dp => dp >= 0))].sort((a, b) => a - b);
  const rows = makeRows(cells, parts, order, rowOfPart);
  return {rows, rowOfPart, ...stepSpans(cells), dps, ...traitsOf(cells), ghosts: makeGhosts(cells, rows)};
}

// Of other cells of the same ranks: rows, steps and replicas are the run's.
export function remadeModel(cells: Cells, parts: Part[], {rows, rowOfPart, steps, whole, dps}: RunModel): RunModel {
  const own = makeRows(cells, parts, rows.map(row => row.part), rowOfPart);
  return {rows: own, rowOfPart, steps, whole, dps, ...traitsOf(cells), ghosts: makeGhosts(cells, own)};
}

// The first i of [low, high) for which after(i) holds; after must stay true once it is.
export function firstIndex(low: number, high: number, after: (i: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (after(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Positions [begin, end) in the lane of the cells of `step` (null: all) that may touch [t0, t1].
export function laneRange(lane: Lane, cells: Cells, step: number | null, t0: number, t1: number): [number, number] {
  const {cells: order, maxEnd} = lane;
  let begin = 0, end = order.length;
  if (step !== null) {
    begin = firstIndex(0, end, i => cells.step[order[i]!]! >= step);
    end = firstIndex(begin, end, i => cells.step[order[i]!]! > step);
  } else if (!lane.ordered) {
    return [begin, end];
  }
  begin = firstIndex(begin, end, i => maxEnd[i]! >= t0);
  return [begin, firstIndex(begin, end, i => cells.start[order[i]!]! > t1)];
}
