// Finds the cell under a point, and the neighbours of a cell.
import type {Cells} from '../data/cells';
import {FORWARD, KIND_LANE, LANE_COUNT} from '../data/kind';
import {laneRange, type Row, type RunModel} from '../data/rows';
import {LANE_BOX} from './layout';

// The cell of `row` at time t, `share` down the row (0 top, 1 bottom); `slack` nanoseconds of grace for
// cells thinner than a pointer. Lanes drawn last are asked first. −1: nothing.
export function hitRow(row: Row, cells: Cells, step: number | null, t: number, share: number, slack: number): number {
  for (const lane of [3, 1, 2, 0]) {
    const [top, height] = LANE_BOX[lane]!;
    if (share < top || share > top + height) continue;
    const [begin, end] = laneRange(row.lanes[lane]!, cells, step, t - slack, t + slack);
    let best = -1, distance = Infinity;
    for (let i = begin; i < end; ++i) {
      const cell = row.lanes[lane]!.cells[i]!;
      const t0 = cells.start[cell]!, t1 = t0 + cells.dur[cell]!;
      const d = t < t0 ? t0 - t : t > t1 ? t - t1 : 0;
      if (d <= slack && d <= distance) {
        best = cell;
        distance = d;
      }
    }
    if (best < 0) continue;
    const other = cells.pair[best]!; // the forward of a pair is the upper half
    return other >= 0 && (cells.kind[best] === FORWARD) !== (share < top + height / 2) ? other : best;
  }
  return -1;
}

// Neighbour in the same lane, `by` −1 or 1; −1 at the ends.
export function neighbour(model: RunModel, cells: Cells, cell: number, by: number, step: number | null): number {
  const lane = model.rows[model.rowOfPart[cells.part[cell]!]!]!.lanes[KIND_LANE[cells.kind[cell]!]!]!;
  const at = lane.cells.indexOf(cell) + by;
  const next = lane.cells[at];
  return next === undefined || (step !== null && cells.step[next] !== step) ? -1 : next;
}

// The cell of `row` nearest to time t, compute lane first.
export function nearest(row: Row, cells: Cells, step: number | null, t: number): number {
  for (let lane = 0; lane < LANE_COUNT; ++lane) {
    const [begin, end] = laneRange(row.lanes[lane]!, cells, step, -Infinity, Infinity);
    let best = -1, distance = Infinity;
    for (let i = begin; i < end; ++i) {
      const cell = row.lanes[lane]!.cells[i]!;
      const d = Math.abs(cells.start[cell]! + cells.dur[cell]! / 2 - t);
      if (d < distance) {
        best = cell;
        distance = d;
      }
    }
    if (best >= 0) return best;
  }
  return -1;
}
