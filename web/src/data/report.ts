// The shape of the JSON block of a report: src/exporters/html/report_json.cc writes it.

export type Both = [en: string, zh: string];
export type ColumnType = 'integer' | 'real' | 'text' | 'duration' | 'time' | 'share' | 'ratio';
export type Value = number | string | null;

export interface Column { name: string; title: string; type: ColumnType; unit: string; help: string }
export interface Table {
  name: string; title: string; rowCount: number;
  columns: Column[];
  values: Value[][];  // by column
}
export interface Part {
  rank: number; stage: number; dp: number; machine: number; device: number;
  machineName: string; source: string;
  zero: string;  // nanoseconds that the part's starts count from; may pass 2^53
}
export interface Finding {
  id: string; weight: number; value: string; note: Both; title: Both; detail: Both;
  lost_ns?: number; uncertainty_ns?: number; saving_ns?: number;  // of the mean step, where a replay tells
  cause?: string; analysis?: string; table?: string; command?: string;  // where its numbers are, and what to type to see them
}
export interface SpanPart { id: string; share: number; label: Both }
export interface Headline { title: Both; lead: Both; parts: SpanPart[] }
export interface Flaw { name: string; severity: 'info' | 'warning' | 'loss'; message: string; count: number; where: string }
export interface Palette {
  bg: string; ink: string; mut: string; line: string; soft: string; idle: string; idle2: string; acc: string;
  group: string[];  // by KindGroup
  kernel: string[];  // computing, communication, memory, other
}
export interface PayloadColumn { name: string; type: 'f64' | 'i32' | 'u32' | 'u8'; offset: number; count: number }

// What clocks were measured by, the names of columns and documents.
export type ClockEvidence = 'messages' | 'messages and collectives' | 'collectives' | 'compute gaps' | 'operator';

export interface Report {
  version: string; title: string; lang: string; dark: boolean;
  format: string; description: string;
  clock: 'shared' | 'unaligned' | 'per-rank' | 'partly-aligned' | 'aligned';
  // Of aligned clocks: what by, the best first; likely error and bound of the worst offset, where there is one.
  clockBy?: ClockEvidence[]; clockErrorNs?: number; clockHalfNs?: number;
  contextParallel?: number;  // of pipelines side by side, as many are one replica
  laidEndToEnd: boolean;
  slices: number;
  palette: { light: Palette; dark: Palette };
  headline: Headline;
  findings: Finding[];
  parts: Part[];
  // Of the recognised schedule; steps are [step, replica, end], the end on the axis of cells.
  theory?: { schedule: string; byRank: boolean; outliers: number[]; steps: [number, number, number][] };
  cells: { count: number; total: number; steps: number; columns: PayloadColumn[]; names: string[] };
  tables: Table[];
  flaws: Flaw[];
  sentences: Both[];  // of tables and flaws, those that have a Chinese one
}

// A column of runs is written as values and how often each stands in a row.
type Runs = { v: Value[]; n: number[] };
const unfold = (column: Value[] | Runs): Value[] =>
  (Array.isArray(column) ? column : column.v.flatMap((value, i) => Array<Value>(column.n[i]!).fill(value)));

export function readReport(): Report {
  const report = JSON.parse(document.getElementById('report')!.textContent!) as Report;
  for (const table of report.tables) table.values = table.values.map(unfold);
  return report;
}

// A profiler trace: slices, and no pipeline cells.
export const isProfileReport = (report: Report): boolean => report.cells.total === 0 && report.slices > 0;

// A profiler trace, with pipeline cells or without.
export const hasProfile = (report: Report): boolean => isProfileReport(report) || findTable(report, 'temporal-breakdown') !== undefined;

export function findTable(report: Report, name: string): Table | undefined {
  return report.tables.find(table => table.name === name);
}

// One column of a table by machine name; undefined when there is none.
export function tableColumn(table: Table, name: string): Value[] | undefined {
  const index = table.columns.findIndex(column => column.name === name);
  return index < 0 ? undefined : table.values[index];
}
