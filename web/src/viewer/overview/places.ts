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

function timelineOf(shell: Shell, cause: string, step: Step | undefined): string {
  const {run} = shell, query = new URLSearchParams(), ranks = ranksOf(run, cause);
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

export function placesOf(shell: Shell, finding: Finding, step: Step | undefined): Place[] {
  const places: Place[] = [], {run} = shell, cause = finding.cause ?? '';
  if (finding.analysis) places.push({words: w('place.table'), href: answerPlace(shell, finding.analysis, finding.table ?? '')});
  if (finding.id.startsWith('offer.')) return places;
  if (hasPipeline(run) && step) places.push({words: w('place.pipeline'), href: shell.href('pipeline', {query: `step=${step.number}&dp=all`})});
  places.push({words: w('place.timeline'), href: timelineOf(shell, cause, step)});
  return places;
}
