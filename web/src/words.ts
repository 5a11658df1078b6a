// Names of things in the current language.
import type {App} from './app';
import {hasMany, sumOf, type Layout, type Sum} from './chart/layout';
import {KIND_CODES} from './data/kind';
import type {Part} from './data/report';
import {duration} from './format';
import {t, type Key} from './i18n/i18n';

export const kindName = (kind: number): string => t(`kind.${KIND_CODES[kind]!}` as Key);

export const countOf = (what: 'ranks' | 'steps', n: number): string => (n === 1 ? t(`${what}.one`) : t(what, n));

// Returns "F3", "F3.c1": short, the same in both languages.
export function cellCode(app: App, cell: number): string {
  const {cells, model} = app, mb = cells.microBatch[cell]!;
  return KIND_CODES[cells.kind[cell]!]! + (mb >= 0 ? mb : '') +
    (model.chunked && cells.chunk[cell]! >= 0 ? `.c${cells.chunk[cell]}` : '');
}

export const placeOf = (part: Part): string =>
  [part.stage >= 0 ? t('row.stage', part.stage) : '', t('row.rank', part.rank)].filter(Boolean).join(' · ');

// The neighbouring pipelines are replicas, or with context parallelism pipelines of which several are one replica.
export const hasContextParallel = (app: App): boolean => (app.report.contextParallel ?? 1) > 1;
export const replicaName = (app: App, dp: number): string =>
  t(hasContextParallel(app) ? 'chart.pipeline' : 'chart.replica', dp);

// Strong and weak part of a row's label; short where rows are low. `replica`: '' where one is shown alone.
export function rowTitle(part: Part, low: boolean, replica: string): [string, string] {
  const weak = [t('row.rank', part.rank), ...(replica && !low && part.dp >= 0 ? [replica] : [])].join(' · ');
  if (part.stage < 0) return [t('row.rank', part.rank), ''];
  return [t(low ? 'row.stageShort' : 'row.stage', part.stage), weak];
}

// "0, 4, 8–11": where there are many, the first ones and how many.
export function rankList(ranks: readonly number[]): string {
  const runs: string[] = [];
  for (let i = 0; i < ranks.length;) {
    let j = i;
    while (ranks[j + 1] === ranks[j]! + 1) ++j;
    runs.push(j > i + 1 ? `${ranks[i]}–${ranks[j]}` : j > i ? `${ranks[i]}, ${ranks[j]}` : String(ranks[i]));
    i = j + 1;
  }
  return runs.length > 4 ? `${runs.slice(0, 3).join(', ')} … ${runs[runs.length - 1]}` : runs.join(', ');
}

// The ranks of each stage, ascending. O(ranks), once.
const stages = new WeakMap<Part[], Map<number, number[]>>();
function ranksOf(parts: Part[], stage: number): number[] {
  let known = stages.get(parts);
  if (!known) {
    stages.set(parts, known = new Map());
    for (const part of parts) {
      const ranks = known.get(part.stage);
      if (ranks) ranks.push(part.rank);
      else known.set(part.stage, [part.rank]);
    }
    for (const ranks of known.values()) ranks.sort((a, b) => a - b);
  }
  return known.get(stage) ?? [];
}

// Returns the title of a row that represents its stage. For a row of an open stage it is its rank and replica, and the
// ratio to its peers if that is why it is shown. The mark shows if it opens.
export function foldedTitle(app: App, part: Part, low: boolean, layout: Layout, index: number): [string, string] {
  const own = part.stage >= 0 ? ranksOf(app.report.parts, part.stage) : [];
  if (own.length < 2) return rowTitle(part, low, '');
  const open = app.state.open.has(part.stage), name = t(low ? 'row.stageShort' : 'row.stage', part.stage),
    stageAt = (at: number): number => {
      const row = app.model.rows[layout.rows[at] ?? -1];
      return row ? app.report.parts[row.part]!.stage : sumOf(layout, at)?.stage ?? -1;
    };
  if (!open) return [`▸ ${name}`, low ? rankList(own) : t('row.ranks', rankList(own))];
  const worst = hasMany(app.report.parts) && !app.state.full.has(part.stage)
    ? app.worst?.get(app.report.parts.indexOf(part)) : undefined;
  const more = worst && worst.ratio >= 1.005 ? [t('row.ratio', worst.ratio.toFixed(2))]
    : app.model.dps.length > 1 && part.dp >= 0 && !low ? [replicaName(app, part.dp)] : [];
  return [
    index === 0 || stageAt(index - 1) !== part.stage ? `▾ ${name}` : `   ${name}`,
    [t('row.rank', part.rank), ...more].join(' · '),
  ];
}

// Returns the title of a row of many ranks together.
export function sumTitle({state}: App, {stage, rows, whole}: Sum, low: boolean): [string, string] {
  if (!whole) return [`   ${t('row.others', rows.length)}`, ''];
  return [
    `${state.open.has(stage) ? '▾' : '▸'} ${t(low ? 'row.stageShort' : 'row.stage', stage)}`,
    t('row.all', rows.length),
  ];
}

// Times of a step count from its first start.
export const stepZero = (app: App, cell: number): number =>
  app.model.steps.find(s => s.step === app.cells.step[cell])?.t0 ?? app.model.whole.t0;

export function cellSentence(app: App, cell: number): string {
  const {cells, report} = app, start = cells.start[cell]! - stepZero(app, cell);
  return [
    cellCode(app, cell),
    kindName(cells.kind[cell]!),
    placeOf(report.parts[cells.part[cell]!]!),
    `${duration(start)} – ${duration(start + cells.dur[cell]!)}`,
    duration(cells.dur[cell]!),
  ].join(', ');
}
