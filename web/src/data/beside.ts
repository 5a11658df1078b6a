// The thin cells under the rows that replace theory: the same step as recorded, or another one, moved to the start of
// this one.
import type {Cells} from './cells';
import {ghostsOf, laneRange, type Ghosts, type RunModel} from './rows';
import {spanOf} from '../state';

const ordersOf = (cells: Cells, model: RunModel, step: number): Uint32Array[] =>
  model.rows.map(row => row.lanes[0]!.cells.subarray(...laneRange(row.lanes[0]!, cells, step, -Infinity, Infinity)));

// The last one that was asked for: every move of a slider asks for the same.
const kept = new WeakMap<Cells, {step: number; ghosts: Ghosts}>();
export function recordedUnder(cells: Cells, model: RunModel, step: number): Ghosts {
  let last = kept.get(cells);
  if (last?.step !== step) kept.set(cells, last = {step, ghosts: ghostsOf(cells, ordersOf(cells, model, step))});
  return last.ghosts;
}

export function besideOf(cells: Cells, model: RunModel, step: number, other: number): Ghosts {
  const shift = spanOf(model, step).t0 - spanOf(model, other).t0, orders = ordersOf(cells, model, other);
  const count = orders.reduce((sum, list) => sum + list.length, 0), from = new Uint32Array(count);
  let next = 0;
  const own = orders.map(list => {
    const begin = next;
    from.set(list, begin);
    next += list.length;
    return Uint32Array.from(list, (_, i) => begin + i);
  });
  const pick = <T extends Int32Array | Uint32Array | Uint8Array>(column: T, made: T): T => {
    from.forEach((cell, i) => {
      made[i] = column[cell]!;
    });
    return made;
  };
  const ghosts: Cells = {
    ...cells,
    count,
    start: Float64Array.from(from, cell => cells.start[cell]! + shift),
    dur: Float64Array.from(from, cell => cells.dur[cell]!),
    step: new Int32Array(count).fill(step),
    part: pick(cells.part, new Int32Array(count)),
    chunk: pick(cells.chunk, new Int32Array(count)),
    microBatch: pick(cells.microBatch, new Int32Array(count)),
    kind: pick(cells.kind, new Uint8Array(count)),
    pair: new Int32Array(count).fill(-1),
  };
  return ghostsOf(ghosts, own);
}
