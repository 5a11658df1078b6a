// The work and the waits of the ranks of a stage in one step: the row of waterfall-stages, of that step and replica
// alone.
import {BUBBLE_PARTS} from './bubbles';
import type {Part} from './report';

// One entry for each rank in each step; busy, then the parts in the order of BUBBLE_PARTS.
export interface RankSums {
  step: Int32Array;
  part: Int32Array;
  ns: Float64Array[];
}
export interface StageSum {
  stage: number;
  ranks: number;
  busyNs: number;
  waitsNs: number[];
  pipelineNs: number;
}

// Means over a stage's ranks, of replica `dp` or of all; by stage. Empty where nothing is known of the step.
export function stageSums(sums: RankSums, parts: Part[], step: number, dp: number | null): StageSum[] {
  const byStage = new Map<number, StageSum>();
  for (let i = 0; i < sums.step.length; ++i) {
    const {stage, dp: own} = parts[sums.part[i]!]!;
    if (sums.step[i] !== step || stage < 0 || (dp !== null && own >= 0 && own !== dp)) continue;
    let sum = byStage.get(stage);
    if (!sum) byStage.set(stage, sum = {stage, ranks: 0, busyNs: 0, waitsNs: BUBBLE_PARTS.map(() => 0), pipelineNs: 0});
    ++sum.ranks;
    sum.busyNs += sums.ns[0]![i]!;
    sum.waitsNs = sum.waitsNs.map((ns, k) => ns + sums.ns[k + 1]![i]!);
  }
  return [...byStage.values()].sort((a, b) => a.stage - b.stage).map(sum => {
    const busyNs = sum.busyNs / sum.ranks, waitsNs = sum.waitsNs.map(ns => ns / sum.ranks);
    return {...sum, busyNs, waitsNs, pipelineNs: waitsNs.reduce((all, ns) => all + ns, busyNs)};
  });
}
