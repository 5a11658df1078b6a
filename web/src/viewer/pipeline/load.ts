// The server's answers about the pipeline, as the chart and the tables beside it want them (docs/viewer-protocol.md).
import {makeBubbles, type Bubbles} from '../../data/bubbles';
import {decodeCells, type Cells} from '../../data/cells';
import type {Column as TableColumn, Report, Table, Value} from '../../data/report';
import {makeModel, type RunModel} from '../../data/rows';
import type {Api} from '../api';
import {f32, f64, i32, type Column} from '../wire';

// What the chart draws: the run as recorded, or one step of a world that nobody has run.
export interface Recorded { cells: Cells; model: RunModel; bubbles: Bubbles | null }
export interface Loaded extends Recorded {
  report: Report;
  shiftNs: number[];  // by part: added to its times they are the timeline's
}

interface Header { report: Report; cells_at: number; shift_ns: number[]; columns: Column[] }
const BUBBLE_COLUMNS = ['bubble_schedule', 'bubble_imbalance', 'bubble_jitter', 'bubble_latency', 'bubble_rest'];

export async function loadPipeline(api: Api): Promise<Loaded> {
  const wire = await api.wire<Header>('pipeline', {}), {report, cells_at, shift_ns} = wire.header;
  const cells = decodeCells(wire.buffer, report.cells.columns, report.cells.count, wire.base + cells_at);
  const model = makeModel(cells, report.parts);
  const start = f64(wire, 'bubble_start');
  const bubbles = start.length === 0 ? null
    : makeBubbles(start, f64(wire, 'bubble_dur'), i32(wire, 'bubble_step'), i32(wire, 'bubble_part'),
                  BUBBLE_COLUMNS.map(name => f32(wire, name)), model.rows, model.rowOfPart);
  return {report, cells, model, bubbles, shiftNs: shift_ns};
}

interface TableAnswer { name: string; title: string; columns: TableColumn[]; rows: Record<string, Value>[] }
interface TablesAnswer { analyses: {analysis: string; error?: string; tables: TableAnswer[]}[] }

export async function loadTables(api: Api): Promise<Table[]> {
  const answer = await api.json<TablesAnswer>('pipeline/tables');
  return answer.analyses.flatMap(one => one.tables).map(table => ({
    name: table.name, title: table.title, rowCount: table.rows.length, columns: table.columns,
    values: table.columns.map(column => table.rows.map(row => row[column.name] ?? null)),
  }));
}
