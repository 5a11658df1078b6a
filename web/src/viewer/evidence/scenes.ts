// The findings as scenes one goes through: which there are, and which one is shown. One list for the timeline and the
// pipeline.
import {t} from '../../i18n/i18n';
import type {Finding, Place} from '../../data/report';
import {tableColumn} from '../../data/report';
import {keyOf} from '../../views/findings';
import {deskOf, type AnswerTable} from '../answers/ask';
import type {Run, Step} from '../shell/api';
import {explained, findingOf} from '../answers/explained';
import type {Shell} from '../shell/page';
import {hasPipeline} from '../shell/shell';
import type {Diff} from '../answers/diff';
import {duration} from '../../format';

export interface Scenes {
  findings: Finding[];
  keys: string[];
  steps: readonly Step[];
  known: ReadonlySet<string>;
}

// The pipeline's own steps, on the timeline's axis; the profiler's may begin while the one before still runs.
export function stepsOf(run: Run, list: readonly AnswerTable[]): readonly Step[] {
  const table = list.find(one => one.name === 'steps');
  const [number, start, span] = ['step', 'start_ns', 'span_ns'].map(name => table && tableColumn(table, name));
  if (!table || !number || !start || !span) return run.steps;
  const shift = Number(BigInt(table.origin) - BigInt(run.origin_ns));
  return number.map((value, i) => ({number: Number(value), start_ns: Number(start[i]) + shift,
    end_ns: Number(start[i]) + shift + Number(span[i])})
  );
}

// Offers are not evidence: they are replayed on the pipeline page.
export async function scenesOf(shell: Shell): Promise<Scenes> {
  const {api, run} = shell;
  const desk = deskOf(api),
    [reported, offers, tables] = await Promise.all([
      explained(api),
      desk.offers(),
      hasPipeline(run) ? desk.answer('pipeline-summary', {}, () => undefined).then(answer => answer.tables, () => [])
        : [],
    ]);
  const findings = reported.findings.map(findingOf);
  return {findings, keys: findings.map((_, i) => keyOf(findings, i)), steps: stepsOf(run, tables),
    known: new Set(offers.answers.map(one => one.name))};
}

// The differences between two runs, line by line, as scenes of the pipeline's chart, in which one run is above the
// other.
export const DIFF = 'diff-';
export const isOfDiff = (key: string | null): boolean => key?.startsWith(DIFF) ?? false;

const SCENE_OF: Record<string, string> = {link: 'link.slow', ranks: 'rank.slow', stage: 'stage.slow'};
function placeOf({cause, places}: Diff['changes'][number]): [id: string, place: Place] | null {
  const place = places[0], id = place && SCENE_OF[place.kind];
  return id && (cause === 'compute' || cause === 'messages' || cause === 'launch-delay') ? [id, place] : null;
}
// Lines that name a stage, a link or a rank: the others are of the whole step.
export const hasScene = (reported: Diff['changes'][number]): boolean => placeOf(reported) !== null;

export async function scenesOfDiff(shell: Shell): Promise<Scenes> {
  const desk = deskOf(shell.api),
    [diff, offers, tables] = await Promise.all([
      desk.ask<Partial<Diff>>('compare', {}, () => undefined),
      desk.offers(),
      desk.answer('pipeline-summary', {}, () => undefined).then(answer => answer.tables, () => []),
    ]);
  const findings: Finding[] = [], keys: string[] = [];
  (diff.changes ?? []).forEach((reported, i) => {
    const scene = placeOf(reported);
    if (!scene) return;
    const [id, place] = scene, value = `${reported.effect_ns < 0 ? '−' : '+'}${duration(Math.abs(reported.effect_ns))}`;
    keys.push(`${DIFF}${i}`);
    findings.push({id, weight: 0, value, note: [t('compare.perStep'), t('compare.perStep')],
      title: [reported.en, reported.zh], detail: ['', ''], places: [place]});
  });
  return {findings, keys, steps: stepsOf(shell.run, tables), known: new Set(offers.answers.map(one => one.name))};
}
