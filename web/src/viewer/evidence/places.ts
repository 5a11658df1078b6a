// Where a finding can be seen: the table its numbers are in, its scene in the pipeline and in the timeline.
import {t} from '../../i18n/i18n';
import type {Finding} from '../../data/report';
import type {Run, Step} from '../shell/api';
import {familyOf} from '../answers/families';
import type {Shell} from '../shell/page';
import {plainQuery} from '../shell/route';
import {accusedOf} from './rules';
import {stepOf} from './staged';
import {hasPipeline} from '../shell/shell';

export interface Place {
  id: 'table' | 'pipeline' | 'timeline';
  words: string;
  href: string;
}

export const windowOf = (step: Step): string => `v=${Math.round(step.start_ns)},${Math.round(step.end_ns)}`;

// The replica that shows the first fault which is one rank's: in the others there is nothing but waiting. −1: any does.
export function replicaOf(run: Run, findings: readonly Finding[]): number {
  for (const finding of findings) {
    const {ranks} = accusedOf(run, finding), dps = new Set([...ranks].map(i => run.ranks[i]!.dp));
    if (ranks.size > 0 && dps.size === 1) return [...dps][0]!;
  }
  return -1;
}

function answerPlace(shell: Shell, analysis: string, table: string): string {
  const query = new URLSearchParams({answer: analysis});
  if (table) query.set('table', table);
  return shell.href('answers', {rest: familyOf(analysis), query: plainQuery(query)});
}

// Tables of findings that name none: the first of these that the run has.
const TABLES: Record<string, readonly (readonly [analysis: string, table: string])[]> = {
  'device.idle': [['idle-time-breakdown', 'device-idle']],
  'device.unused': [['temporal-breakdown', 'temporal-breakdown']],
  'comm.exposed': [['comm-comp-overlap', 'comm-comp-overlap']],
  'comm.waiting': [['tb-distributed', 'waits']],
  'memory.exposed': [['temporal-breakdown', 'temporal-breakdown']],
  'copies.pageable': [['gpu-kernel-breakdown', 'kernels']],
  'rank.late': [['potential-stragglers', 'potential-stragglers']],
  'rank.slow': [['stragglers', 'straggler-workers'], ['temporal-breakdown', 'temporal-breakdown']],
  'launch.bound': [['cuda-kernel-launch-stats', 'outliers']],
  'queue.full': [['time-spent-blocked-on-full-queue', '']],
  'phase.wait': [['requests', 'request-times']],
  'step.outlier': [['pipeline-summary', 'steps'], ['profiler-steps', 'profiler-steps']],
  'input.loading': [['tb-overview', 'step-averages']],
  'tensor_cores.unused': [['tb-kernel', 'kernel-use']],
  'memory.full': [['tb-memory', 'memory-peaks']],
  'stage.slow': [['pipeline-summary', 'stages']],
  'bubble': [['waterfall', 'waterfall']],
  'outside': [['waterfall', 'waterfall']],
  'replica.uneven': [['waterfall', 'waterfall-steps']],
};

// `known`: analyses that the run can be asked; `key`: the finding's own, which names its scene. The step is the one
// that the finding is about, else a usual one; the replica the one in which its rank runs.
export function placesOf(shell: Shell, finding: Finding, key: string, steps: readonly Step[],
  known: ReadonlySet<string>): Place[]
{
  const places: Place[] = [], {run} = shell, step = stepOf(steps, finding);
  const [analysis, table] = finding.analysis ? [finding.analysis, finding.table ?? '']
    : TABLES[finding.id]?.find(([name]) => known.has(name)) ?? ['', ''];
  if (analysis) places.push({id: 'table', words: t('place.table'), href: answerPlace(shell, analysis, table)});
  // The pipeline page replays it.
  if (finding.id.startsWith('offer.')) {
    const query = plainQuery(new URLSearchParams({if: `offer=${encodeURIComponent(finding.title[0])}`}));
    return hasPipeline(run) ? [{id: 'pipeline', words: t('place.pipeline'), href: shell.href('pipeline', {query})}]
      : [];
  }
  const dp = replicaOf(run, [finding]), query = plainQuery(new URLSearchParams({scene: key}));
  if (hasPipeline(run) && step)
    places.push({id: 'pipeline', words: t('place.pipeline'),
      href: shell.href('pipeline', {query: `step=${step.number}${dp >= 0 ? `&dp=${dp}` : ''}&${query}`})});
  if (run.lanes.length > 0)
    places.push({id: 'timeline', words: t('place.timeline'), href: shell.href('timeline', {query})});
  return places;
}
