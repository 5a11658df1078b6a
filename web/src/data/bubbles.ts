// Where ranks wait, and why: between two cells of a rank, cut by the parts of the waterfall. The parts of one bubble
// add up to its duration; one below 0 is work that closed a gap another part opened (docs/analyses/waterfall.md).
import type {Cells} from './cells';
import {laneRange, makeLane, type Lane, type Row} from './rows';

// In the order of the columns; also the names of their colours (--part-…).
export const BUBBLE_PARTS = ['bubble', 'imbalance', 'jitter', 'comm', 'rest'] as const;
export type BubblePart = typeof BUBBLE_PARTS[number];
export const BUBBLE_PART_COUNT = BUBBLE_PARTS.length;

export interface Bubbles {
  cells: Cells; // of them start, dur, step and part count
  parts: Float32Array[]; // [part][bubble], ns
  lanes: Lane[]; // a row
}

export function makeBubbles(start: Float64Array, dur: Float64Array, step: Int32Array, part: Int32Array,
  parts: Float32Array[], rows: Row[], rowOfPart: Int32Array): Bubbles
{
  const count = start.length, none = new Int32Array(0);
  const cells: Cells = {count, start, dur, step, part, chunk: none, microBatch: none, name: new Uint32Array(0),
    kind: new Uint8Array(0), pair: none, linkFrom: new Uint32Array(0), linkTo: new Uint32Array(0), theoryStart: null,
    theoryDur: null};
  const sizes = new Uint32Array(rows.length);
  for (let i = 0; i < count; ++i) sizes[rowOfPart[part[i]!]!]!++;
  const lists = Array.from(sizes, size => new Uint32Array(size));
  sizes.fill(0);
  for (let i = 0; i < count; ++i) {
    const row = rowOfPart[part[i]!]!;
    lists[row]![sizes[row]!++] = i;
  }
  return {cells, parts, lanes: lists.map(list => makeLane(cells, list))};
}

// The part that says most; −1 where none is above 0.
export function mainPart(bubbles: Bubbles, i: number): number {
  let best = -1;
  for (let k = 0; k < BUBBLE_PART_COUNT; ++k)
    if (bubbles.parts[k]![i]! > 0 && (best < 0 || bubbles.parts[k]![i]! > bubbles.parts[best]![i]!)) best = k;
  return best;
}

// The bubble of a row at a time; −1: none.
export function bubbleAt(bubbles: Bubbles, row: number, step: number | null, t: number): number {
  const lane = bubbles.lanes[row]!, [begin, end] = laneRange(lane, bubbles.cells, step, t, t);
  for (let i = begin; i < end; ++i) {
    const at = lane.cells[i]!, t0 = bubbles.cells.start[at]!;
    if (t >= t0 && t <= t0 + bubbles.cells.dur[at]!) return at;
  }
  return -1;
}
