// Why a cell starts later than theory says: rows of the table `late-cells`, found by cell and the other way round.
import type {App} from '../app';
import {cellCode} from '../words';
import {frameOf} from './frame';
import type {Table} from './report';

export interface Late { reason: string; waitedFor: string; waitedRank: string }

interface Index { byCell: Map<string, Late>; cellOf: Map<string, number> }
const indexes = new WeakMap<App, Index>();

const keyOf = (step: number | string, rank: number | string, code: string): string => `${step}/${rank}/${code}`;

// Made once, when first asked. Of equal keys (a micro-batch that ran twice) the first.
function indexOf(app: App): Index {
  const known = indexes.get(app);
  if (known) return known;
  const byCell = new Map<string, Late>(), cellOf = new Map<string, number>();
  for (const row of frameOf(app.report, 'late-cells')?.rows ?? []) {
    const key = keyOf(row.text('step'), row.text('rank'), row.text('cell'));
    if (!byCell.has(key)) byCell.set(key, {reason: row.text('reason'), waitedFor: row.text('waited_for'), waitedRank: row.text('waited_rank')});
  }
  const {cells, report} = app;
  for (let i = 0; i < cells.count && byCell.size > 0; ++i) {
    const key = keyOf(cells.step[i]!, report.parts[cells.part[i]!]!.rank, cellCode(app, i));
    if (byCell.has(key) && !cellOf.has(key)) cellOf.set(key, i);
  }
  const made = {byCell, cellOf};
  indexes.set(app, made);
  return made;
}

// null: the table does not list it.
export const lateOf = (app: App, cell: number): Late | null =>
  indexOf(app).byCell.get(keyOf(app.cells.step[cell]!, app.report.parts[app.cells.part[cell]!]!.rank, cellCode(app, cell))) ?? null;

// The cell of a row of the table; −1: the page does not hold it.
export function cellOfRow(app: App, table: Table, row: number): number {
  const of = (name: string): string => String(table.values[table.columns.findIndex(c => c.name === name)]?.[row] ?? '');
  return indexOf(app).cellOf.get(keyOf(of('step'), of('rank'), of('cell'))) ?? -1;
}
