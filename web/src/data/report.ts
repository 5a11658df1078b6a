// Declares the shapes of the program's answers: tables and findings, and the run as the pipeline page receives it
// (src/server/pipeline/pipeline_json.cc).

export type Both = [en: string, zh: string];
export type ColumnType = 'integer' | 'real' | 'text' | 'duration' | 'time' | 'share' | 'ratio';
export type Value = number | string | null;

export interface Column {
  name: string;
  title: string;
  type: ColumnType;
  unit: string;
  help: string;
}
export interface Table {
  name: string;
  title: string;
  rowCount: number;
  columns: Column[];
  values: Value[][]; // by column
  origin?: string; // what its times count from, as text: it may pass 2^53
}
export interface Part {
  rank: number;
  stage: number;
  dp: number;
  machine: number;
  device: number;
  machineName: string;
  source: string;
  zero: string; // nanoseconds that the part's starts count from; may pass 2^53
}
// Where something is wrong (src/model/place.h); what does not apply or is not known is absent.
export interface Place {
  kind: string;
  ranks?: readonly number[];
  stage?: number;
  from_stage?: number;
  both_ways?: boolean;
  chunk?: number;
  replica?: number;
  first?: number;
  last?: number;
  cells?: string;
  name?: string;
}
export interface Finding {
  id: string;
  weight: number;
  value: string;
  note: Both;
  title: Both;
  detail: Both;
  lost_ns?: number;
  uncertainty_ns?: number;
  saving_ns?: number; // of the mean step, if a replay gives it
  places?: readonly Place[];
  or_else?: readonly Place[]; // where it may be instead
  key?: string; // one word for labels
  analysis?: string;
  table?: string;
  command?: string; // where its numbers are, and what to type to see them
  step?: number | null;
  rank?: number | null; // where it shows, in addition to its places
  figures?: readonly string[]; // that it quotes; the first is what it costs
}
export interface SpanPart {
  id: string;
  share: number;
  label: Both;
}
export interface Headline {
  title: Both;
  lead: Both;
  parts: SpanPart[];
}
export interface Palette {
  bg: string;
  ink: string;
  mut: string;
  line: string;
  soft: string;
  idle: string;
  idle2: string;
  acc: string;
  group: string[]; // by KindGroup
  kernel: string[]; // computing, communication, memory, other
}
export interface PayloadColumn {
  name: string;
  type: 'f64' | 'i32' | 'u32' | 'u8';
  offset: number;
  count: number;
}

// The data that the pipeline page draws.
export interface Report {
  contextParallel?: number; // of pipelines side by side, as many are one replica
  palette: {light: Palette; dark: Palette};
  parts: Part[];
  // The theory of the recognised schedule; steps are [step, replica, end], the end on the axis of cells.
  theory?: {schedule: string; byRank: boolean; outliers: number[]; steps: [number, number, number][]};
  // leftOut: where not all cells came, the numbers of the steps of which none did.
  cells: {count: number; total: number; steps: number; leftOut?: number[]; columns: PayloadColumn[]; names: string[]};
  tables: Table[]; // none come with it: the page asks for those that it needs
}

export function findTable(report: Report, name: string): Table | undefined {
  return report.tables.find(table => table.name === name);
}

// One column of a table by machine name; undefined when there is none.
export function tableColumn(table: Table, name: string): Value[] | undefined {
  const index = table.columns.findIndex(column => column.name === name);
  return index < 0 ? undefined : table.values[index];
}
