// Where a finding can be seen: the table its numbers are in, the ranks it names in the timeline, the step in the pipeline.
import type {Finding} from '../../data/report';
import type {Run, Step} from '../api';
import {familyOf} from '../answers/families';
import type {Shell} from '../page';
import {plainQuery} from '../route';
import {hasPipeline} from '../shell';
import {w} from '../words';

export interface Place { words: string; href: string }

const MOST_PINNED = 12;  // lanes that still leave room for others

// The step of median length: the first ones warm up, the longest one is an accident.
export const usualStep = (steps: readonly Step[]): Step | undefined =>
  [...steps].sort((a, b) => (a.end_ns - a.start_ns) - (b.end_ns - b.start_ns))[steps.length >> 1];
export const windowOf = (step: Step): string => `v=${Math.round(step.start_ns)},${Math.round(step.end_ns)}`;

// "stage:3", "rank:5", "link:1-2" (stages): the ranks meant; empty: all.
function ranksOf(run: Run, cause: string): number[] {
  const [what, which] = cause.split(':'), numbers = (which ?? '').split('-').map(Number);
  return run.ranks.flatMap((rank, i) => (what === 'rank' ? numbers.includes(rank.rank)
    : what === 'stage' || what === 'link' ? numbers.includes(rank.stage) : false) ? [i] : []);
}

const ranksNamed = (run: Run, finding: Finding): number[] => {
  const ranks = ranksOf(run, finding.cause ?? '');
  return ranks.length > 0 || typeof finding.rank !== 'number' ? ranks : ranksOf(run, `rank:${finding.rank}`);
};
// The replica that shows the first fault which is one rank's: in the others there is nothing but waiting. −1: any does.
export function replicaOf(run: Run, findings: readonly Finding[]): number {
  for (const finding of findings) {
    const ranks = ranksNamed(run, finding), dps = new Set(ranks.map(i => run.ranks[i]!.dp));
    if (ranks.length > 0 && dps.size === 1) return [...dps][0]!;
  }
  return -1;
}

function timelineOf(shell: Shell, finding: Finding, step: Step | undefined): string {
  const {run} = shell, query = new URLSearchParams(), ranks = ranksNamed(run, finding);
  if (step) query.set('v', windowOf(step).slice(2));
  const lanes = run.lanes.filter(lane => ranks.includes(lane.rank_index) && (lane.type === 'cells' || lane.type === 'stream'));
  if (lanes.length > 0)
    query.set('pin', lanes.slice(0, MOST_PINNED).map(lane => `${run.ranks[lane.rank_index]!.rank}/${lane.name}`).join('~'));
  return shell.href('timeline', {query: plainQuery(query)});
}

function answerPlace(shell: Shell, analysis: string, table: string): string {
  const query = new URLSearchParams({answer: analysis});
  if (table) query.set('table', table);
  return shell.href('answers', {rest: familyOf(analysis), query: plainQuery(query)});
}

// Tables of findings that name none: the first of these that the run has.
const TABLES: Record<string, readonly (readonly [analysis: string, table: string])[]> = {
  'device.idle': [['idle-time-breakdown', 'device-idle']], 'device.unused': [['temporal-breakdown', 'temporal-breakdown']],
  'comm.exposed': [['comm-comp-overlap', 'comm-comp-overlap']], 'comm.waiting': [['tb-distributed', 'waits']],
  'memory.exposed': [['temporal-breakdown', 'temporal-breakdown']], 'copies.pageable': [['gpu-kernel-breakdown', 'kernels']],
  'rank.late': [['potential-stragglers', 'potential-stragglers']], 'rank.slow': [['stragglers', 'straggler-workers'],
      ['temporal-breakdown', 'temporal-breakdown']],
  'launch.bound': [['cuda-kernel-launch-stats', 'outliers']], 'queue.full': [['time-spent-blocked-on-full-queue', '']],
  'step.outlier': [['pipeline-summary', 'steps'], ['profiler-steps', 'profiler-steps']],
      'input.loading': [['tb-overview', 'step-averages']],
  'tensor_cores.unused': [['tb-kernel', 'kernel-use']], 'memory.full': [['tb-memory', 'memory-peaks']],
  'stage.slow': [['pipeline-summary', 'stages']], 'bubble': [['waterfall', 'waterfall']], 'outside': [['waterfall', 'waterfall']],
  'replica.uneven': [['waterfall', 'waterfall-steps']],
};

// `known`: analyses that the run can be asked. The step is the one that the finding is about, else a usual one.
export function placesOf(shell: Shell, finding: Finding, steps: readonly Step[], known: ReadonlySet<string>): Place[] {
  const places: Place[] = [], {run} = shell, step = steps.find(one => one.number === finding.step) ?? usualStep(steps);
  const [analysis, table] = finding.analysis ? [finding.analysis,
      finding.table ?? ''] : TABLES[finding.id]?.find(([name]) => known.has(name)) ?? ['', ''];
  if (analysis) places.push({words: w('place.table'), href: answerPlace(shell, analysis, table)});
  // Its pipeline page replays other schedules.
  if (finding.id.startsWith('offer.')) return hasPipeline(run) ? [{words: w('place.pipeline'), href: shell.href('pipeline')}] : [];
  if (hasPipeline(run) && step) places.push({words: w('place.pipeline'), href: shell.href('pipeline',
      {query: `step=${step.number}&dp=all`})});
  places.push({words: w('place.timeline'), href: timelineOf(shell, finding, step)});
  return places;
}
