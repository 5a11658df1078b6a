// Facts about a step that the reader needs before the chart: the replica that takes longest, and the cells that start
// before their input is ready.
import type {Cells} from '../../data/cells';
import type {Part} from '../../data/report';
import {firstIndex} from '../../data/rows';
import type {Loaded} from './load';

const LEAST_SHARE = 0.02; // a replica that takes so much longer than the usual one is slow

// Mean time of a replica's pipeline, busy and waiting, of one step or of all; by replica. O(ranks · steps), kept.
const spans = new WeakMap<object, Map<number | null, Map<number, number>>>();
function replicaSpans({sums, report}: Pick<Loaded, 'sums' | 'report'>, step: number | null): Map<number, number> {
  const known = spans.get(sums) ?? new Map<number | null, Map<number, number>>(), kept = known.get(step);
  spans.set(sums, known);
  if (kept) return kept;
  const made = new Map<number, [ns: number, count: number]>();
  for (let i = 0; i < sums.step.length; ++i) {
    const {dp} = report.parts[sums.part[i]!]!;
    if (dp < 0 || (step !== null && sums.step[i] !== step)) continue;
    const [ns, count] = made.get(dp) ?? [0, 0];
    made.set(dp, [ns + sums.ns.reduce((sum, column) => sum + column[i]!, 0), count + 1]);
  }
  const means = new Map([...made].map(([dp, [ns, count]]) => [dp, ns / count]));
  known.set(step, means);
  return means;
}

export interface Slowest {
  dp: number;
  ns: number;
  usualNs: number;
  count: number;
  spans: Map<number, number>;
}

// The replica whose pipeline takes longest, where that is more than chance and rounding; the usual one is their median.
export function slowestReplica(loaded: Pick<Loaded, 'sums' | 'report'>, step: number | null): Slowest | null {
  const found = replicaSpans(loaded, step), list = [...found].sort((a, b) => a[1] - b[1] || b[0] - a[0]),
    last = list.at(-1);
  if (list.length < 2 || !last) return null;
  const usualNs = list[list.length - 1 >> 1]![1];
  return last[1] - usualNs >= LEAST_SHARE * usualNs
    ? {dp: last[0], ns: last[1], usualNs, count: list.length, spans: found} : null;
}

export interface Early {
  count: number;
  of: number;
  worstNs: number;
}

// Dependencies between ranks of the step, and replica where one is named, that begin before what they wait for has
// ended.
let last: {cells: Cells; step: number; dp: number | null; early: Early} | null = null;
export function earlyCells(cells: Cells, parts: Part[], step: number, dp: number | null): Early {
  if (last?.cells === cells && last.step === step && last.dp === dp) return last.early;
  const early: Early = {count: 0, of: 0, worstNs: 0}, {linkFrom, linkTo, part, start, dur} = cells;
  const begin = firstIndex(0, cells.count, i => cells.step[i]! >= step),
    end = firstIndex(begin, cells.count, i => cells.step[i]! > step);
  for (let k = firstIndex(0, linkFrom.length, i => linkFrom[i]! >= begin); k < linkFrom.length && linkFrom[k]! < end;
    ++k)
  {
    const from = linkFrom[k]!, to = linkTo[k]!, own = parts[part[from]!]!.dp;
    if (part[from] === part[to] || (dp !== null && own >= 0 && own !== dp)) continue;
    const by = start[from]! + dur[from]! - start[to]!;
    ++early.of;
    if (by > 0) ++early.count;
    early.worstNs = Math.max(early.worstNs, by);
  }
  last = {cells, step, dp, early};
  return early;
}
