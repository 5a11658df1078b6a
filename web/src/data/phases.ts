// When the phases of a rank change in one step: warm-up until its first backward, cool-down after its last forward.
import type {Cells} from './cells';
import {laneRange, type Row} from './rows';

export interface Phases {
  steady: number;
  coolDown: number;
}

// null: the rank has no forward or no backward there. A scan of the rank's cells in the step.
export function phasesOf(row: Row, cells: Cells, step: number): Phases | null {
  const lane = row.lanes[0]!, [begin, end] = laneRange(lane, cells, step, -Infinity, Infinity);
  let steady = Infinity, coolDown = -Infinity;
  for (let i = begin; i < end; ++i) {
    const cell = lane.cells[i]!, kind = cells.kind[cell]!;
    if (kind === 1 || kind === 2 || kind === 4) steady = Math.min(steady, cells.start[cell]!);
    if (kind === 0 || kind === 4) coolDown = Math.max(coolDown, cells.start[cell]! + cells.dur[cell]!);
  }
  return steady < Infinity && coolDown > -Infinity ? {steady, coolDown: Math.max(steady, coolDown)} : null;
}
