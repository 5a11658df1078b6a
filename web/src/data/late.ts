// Finds why a cell starts later than theory says: rows of the table `late-cells`, found by cell.
import type {App} from '../app';
import {cellCode} from '../words';
import {frameOf} from './frame';

export interface Late {
  reason: string;
  waitedFor: string;
  waitedRank: string;
}

type Index = Map<string, Late>;
const indexes = new WeakMap<App, Index>();

const keyOf = (step: number | string, rank: number | string, code: string): string => `${step}/${rank}/${code}`;

// The index is made once, at the first use. If keys are equal (a micro-batch that ran twice), the first counts.
function indexOf(app: App): Index {
  const known = indexes.get(app);
  if (known) return known;
  const byCell: Index = new Map();
  for (const row of frameOf(app.report, 'late-cells')?.rows ?? []) {
    const key = keyOf(row.text('step'), row.text('rank'), row.text('cell'));
    if (!byCell.has(key))
      byCell.set(key, {reason: row.text('reason'), waitedFor: row.text('waited_for'),
        waitedRank: row.text('waited_rank')});
  }
  indexes.set(app, byCell);
  return byCell;
}

// null: the table does not list it.
export const lateOf = (app: App, cell: number): Late | null =>
  indexOf(app).get(keyOf(app.cells.step[cell]!, app.report.parts[app.cells.part[cell]!]!.rank, cellCode(app, cell))) ??
    null;
