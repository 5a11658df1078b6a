// A table by column name, for charts, and what charts do with its rows: group, sum, maximum.
import {findTable, tableColumn, type Report, type Table, type Value} from './report';

// Values of a row; unknown ones are 0 and "".
export interface Row {
  num(column: string): number;
  text(column: string): string;
}
export interface Frame {
  table: Table;
  rows: Row[];
  has(...columns: string[]): boolean;
}

// Returns null when there is no such table, or it has no rows. Of tables of the same name it takes the first that has
// the columns `holding`.
export function frameOf(report: Report, name: string, ...holding: string[]): Frame | null {
  const has = (table: Table, columns: string[]): boolean =>
    columns.every(column => tableColumn(table, column) !== undefined);
  const table = holding.length > 0 ? report.tables.find(t => t.name === name && has(t, holding))
    : findTable(report, name);
  if (!table) return null;
  const columns = new Map<string, Value[]>(table.columns.map((column, i) => [column.name, table.values[i]!]));
  const count = table.values[0]?.length ?? 0;
  if (count === 0) return null;
  const rows = Array.from({length: count}, (_, i): Row => ({
    num(column) {
      const value = columns.get(column)?.[i];
      return typeof value === 'number' ? value : 0;
    },
    text(column) {
      const value = columns.get(column)?.[i];
      return value === null || value === undefined ? '' : String(value);
    },
  }));
  return {table, rows, has: (...names) => has(table, names)};
}

export function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = key(item), list = groups.get(name);
    if (list) list.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}

export const sum = <T>(items: readonly T[], value: (item: T) => number): number =>
  items.reduce((total, item) => total + value(item), 0);
// Returns the largest value, at least 0.
export const maximum = <T>(items: readonly T[], value: (item: T) => number): number =>
  items.reduce((high, item) => Math.max(high, value(item)), 0);
