// A send and its receive. Recordings do not say which belong together: it is the one of the same step, micro-batch and
// replica on the neighbouring stage that ends nearest to it.
import type {Cells} from './cells';
import {MESSAGE_LANE} from './kind';
import type {Part} from './report';
import {laneRange, type RunModel} from './rows';

const SF = 5, RF = 6, SB = 7, RB = 8;
const OTHER: Record<number, number> = {[SF]: RF, [RF]: SF, [SB]: RB, [RB]: SB};
export const isSend = (kind: number): boolean => kind === SF || kind === SB;

// −1: the cell is not a message, or nothing fits.
export function otherEnd(model: RunModel, cells: Cells, parts: Part[], cell: number): number {
  const kind = cells.kind[cell]!, wanted = OTHER[kind], own = parts[cells.part[cell]!]!,
    microBatch = cells.microBatch[cell]!;
  if (wanted === undefined || microBatch < 0 || own.stage < 0) return -1;
  const stages = Math.max(...parts.map(part => part.stage)) + 1;
  const to = (own.stage + (kind === SF || kind === RB ? 1 : stages - 1)) % stages; // chunks go round
  const end = cells.start[cell]! + cells.dur[cell]!, step = cells.step[cell]!;
  let best = -1, distance = Infinity;
  for (const row of model.rows) {
    const part = parts[row.part]!;
    if (part.stage !== to || part.dp !== own.dp) continue;
    const lane = row.lanes[MESSAGE_LANE]!, [begin, last] = laneRange(lane, cells, step, -Infinity, Infinity);
    for (let i = begin; i < last; ++i) {
      const other = lane.cells[i]!;
      if (cells.kind[other] !== wanted || cells.microBatch[other] !== microBatch) continue;
      const apart = Math.abs(cells.start[other]! + cells.dur[other]! - end);
      if (apart < distance) [best, distance] = [other, apart];
    }
  }
  return best;
}
