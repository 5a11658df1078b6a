// Computes the places of rows. Heights are in CSS pixels, from the top of the scrolled content.
import type {RunModel} from '../data/rows';
import type {Part} from '../data/report';
import type {WorstRanks} from '../data/worst';
import type {State} from '../state';

// The ranks of a stage that share one row: the share of them in each kind of work.
export interface Sum {
  stage: number;
  rows: number[]; // of the model
  whole: boolean; // all of the stage's ranks; else those that have no row of their own
}

export interface Layout {
  // Indexes into model.rows, those of the chosen replica, top to bottom; below 0: −1 − index into `sums`.
  rows: number[];
  sums: Sum[];
  rowHeight: number; // of the bar; the pitch adds the gap
  pitch: number;
  labelWidth: number;
  height: number; // of all rows
}

export const AXIS_HEIGHT = 30;

// Returns the place of a row's ghost in the gap below it: from the row's bottom, and its height.
export function ghostBox(layout: Layout): readonly [number, number] {
  const gap = layout.pitch - layout.rowHeight;
  return gap >= 12 ? [1.5, 4.5] : gap >= 6 ? [1, 3] : [0.5, 2.5];
}

export const sumOf = ({rows, sums}: Layout, index: number):
  | Sum
  | null => (rows[index]! < 0 ? sums[-1 - rows[index]!]! : null);

export type Fold = Pick<State, 'dp' | 'folded' | 'open' | 'full'>;

// A stage of more ranks than this does not show them all when it is opened, but those that take more than their peers.
export const MANY = 32;
const MOST_WORST = 8, MOST_FINE = 3;

const manyOf = new WeakMap<Part[], boolean>();
export function hasMany(parts: Part[]): boolean {
  let known = manyOf.get(parts);
  if (known === undefined) {
    const ranks = new Map<number, number>();
    for (const {stage} of parts) ranks.set(stage, (ranks.get(stage) ?? 0) + 1);
    manyOf.set(parts, known = [...ranks].some(([stage, count]) => stage >= 0 && count > MANY));
  }
  return known;
}

// Returns the rows of a stage to show by themselves: ranks that the program calls slow, or a few of the longest if it
// calls none so; the worst first.
function worstRows(rows: readonly number[], model: RunModel, worst: WorstRanks | null): number[] {
  const known = rows.filter(i => worst?.has(model.rows[i]!.part)).sort((a, b) =>
    worst!.get(model.rows[a]!.part)!.place - worst!.get(model.rows[b]!.part)!.place
  );
  const slow = known.filter(i => worst!.get(model.rows[i]!.part)!.isSlow);
  return slow.length > 0 ? slow.slice(0, MOST_WORST) : known.slice(0, MOST_FINE);
}

// Rows of a folded chart are ordered by stage: each has the first rank of the chosen replica or, if it is open, all
// ranks. With many ranks and no chosen replica a stage is one row of all its ranks together. Open, it has rows of the
// worst ones and one of the others together.
function foldedRows(model: RunModel, parts: Part[], {dp, open, full}: Fold, worst: WorstRanks | null,
  sums: Sum[]): number[]
{
  const many = hasMany(parts),
    sum = (stage: number, of: number[], whole: boolean): number => -sums.push({stage, rows: of, whole});
  const wanted = dp ?? model.dps[0] ?? -1, byStage = new Map<number, number[]>(), rows: number[] = [];
  model.rows.forEach(({part}, i) => {
    const {stage} = parts[part]!;
    if (byStage.has(stage)) byStage.get(stage)!.push(i);
    else byStage.set(stage, [i]);
  });
  const stages = [...byStage.keys()].filter(stage => stage >= 0).sort((a, b) => a - b);
  for (const stage of stages) {
    const all = byStage.get(stage)!;
    if (open.has(stage) && (all.length <= MANY || full.has(stage))) {
      rows.push(...all);
    } else if (open.has(stage)) {
      const own = worstRows(all, model, worst), shown = new Set(own);
      rows.push(...own, sum(stage, all.filter(i => !shown.has(i)), own.length === 0));
    } else if (many && dp === null && all.length > 1) {
      rows.push(sum(stage, all, true));
    } else rows.push(all.find(i => parts[model.rows[i]!.part]!.dp === wanted) ?? all[0]!);
  }
  return [...rows, ...(byStage.get(-1) ?? [])];
}

const LEAST_GROWN = 0.85, MOST_GROWN = 2.4, GROWS_FROM = 1000; // times; CSS pixels of the window's height

// The spare height of a tall window goes to the rows, as long as all of them stay visible; if they nearly fit, they are
// a little lower. A chart that scrolls has the usual ones.
function grown(pitch: number, rows: number, {window, chart}: Room): number {
  const fits = (chart - AXIS_HEIGHT) / Math.max(1, rows * pitch);
  return fits < LEAST_GROWN ? 1 : Math.min(fits, Math.max(1, Math.min(MOST_GROWN, window / GROWS_FROM)));
}

// CSS pixels: how high the window is, and the chart in it may be.
export interface Room {
  window: number;
  chart: number;
}

export function makeLayout(model: RunModel, parts: Part[], fold: Fold, width: number,
  room: Room = {window: 0, chart: 0}, worst: WorstRanks | null = null): Layout
{
  const {dp} = fold, sums: Sum[] = [];
  const rows = fold.folded ? foldedRows(model, parts, fold, worst, sums) : model.rows.map((_, i) => i)
    .filter(i => dp === null || parts[model.rows[i]!.part]!.dp === dp || parts[model.rows[i]!.part]!.dp < 0);
  const usual = rows.length <= 8 ? 46 : rows.length <= 16 ? 30 : rows.length <= 32 ? 22 : 17,
    between = rows.length <= 8 ? 12 : rows.length <= 16 ? 6 : 4;
  const times = grown(usual + between, rows.length, room), rowHeight = Math.floor(usual * times),
    gap = Math.floor(between * times);
  const pitch = rowHeight + gap;
  return {rows, sums, rowHeight, pitch, labelWidth: width < 640 ? 92 : 118, height: rows.length * pitch};
}

// Vertical part of its row that a lane takes: compute fills it, the others lie low, so that
// overlap with compute shows. [from the top, height], as shares of the row.
export const LANE_BOX: ReadonlyArray<readonly [number, number]> = [[0, 1], [0.78, 0.22], [0.64, 0.36], [0.86, 0.14]];
