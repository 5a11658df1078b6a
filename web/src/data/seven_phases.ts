// DualPipeV's seven phases, 0 to 6, as MindSpeed numbers them and MindStudio colours them, for p stages and m
// micro-batches, on stage r:
//
//   phase  what runs                     forwards: chunk 0, chunk 1      backwards: chunk 1, chunk 0
//   0      warm-up                       2(p−1−r)
//   1      forwards of both chunks       r+1       r+1
//   2      backward, weight, forward               p−1−r                 p−1−r
//   3      forward beside backward       m−2p+r+1  m−2p+r+1              m−2p+r+1  m−2p+r+1
//   4      backward, then a pair                   p−1−r                 p−1−r     p−1−r
//   5      backwards of both chunks                                      r+1 in turn, chunk 1 first
//   6      cool-down                                                     the rest
import type {Cells} from './cells';
import {laneRange, type Row} from './rows';

export const hasSevenPhases = (schedule: string | undefined): boolean => schedule?.startsWith('dualpipe-v') ?? false;

const placed = (number: number, ends: readonly [phase: number, count: number][]): number => {
  let end = 0;
  for (const [phase, count] of ends) if (number < (end += count)) return phase;
  return -1;
};

// −1: it has none, as a collective, or the order is another one.
export function phaseOf(kind: number, chunk: number, microBatch: number, p: number, m: number, r: number): number {
  const head = p - 1 - r, both = m - 2 * p + r + 1;
  if (microBatch < 0 || both < 0) return -1;
  if (kind === 0)
    return placed(microBatch,
      chunk === 0 ? [[0, 2 * head], [1, r + 1], [3, both]] : [[1, r + 1], [2, head], [3, both], [4, head]]);
  if (kind !== 1 && kind !== 2 && kind !== 3) return -1;
  return placed(microBatch, chunk === 1 ? [[2, head], [3, both], [4, head], [5, Math.ceil((r + 1) / 2)], [6, m]]
    : [[3, both], [4, head], [5, Math.floor((r + 1) / 2)], [6, m]]);
}

export interface PhaseStretch {
  phase: number;
  start: number;
  end: number;
}
// Returns the phases of a rank's cells in one step, in order. O(its cells there).
export function phaseStretches(row: Row, cells: Cells, step: number, stages: number, stage: number): PhaseStretch[] {
  const lane = row.lanes[0]!, [begin, end] = laneRange(lane, cells, step, -Infinity, Infinity),
    out: PhaseStretch[] = [];
  let m = 0;
  for (let i = begin; i < end; ++i) m = Math.max(m, cells.microBatch[lane.cells[i]!]! + 1);
  for (let i = begin; i < end; ++i) {
    const cell = lane.cells[i]!,
      phase = phaseOf(cells.kind[cell]!, cells.chunk[cell]!, cells.microBatch[cell]!, stages, m, stage);
    const last = out.at(-1), until = cells.start[cell]! + cells.dur[cell]!;
    if (phase < 0) continue;
    if (last?.phase === phase) last.end = Math.max(last.end, until);
    else out.push({phase, start: cells.start[cell]!, end: until});
  }
  return out;
}
