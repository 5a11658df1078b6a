// Converts the server's answers about the pipeline for the chart and its tables (docs/viewer-protocol.md).
import {makeBubbles, type Bubbles} from '../../data/bubbles';
import {decodeCells, type Cells} from '../../data/cells';
import type {Report, Table} from '../../data/report';
import {makeModel, type RunModel} from '../../data/rows';
import type {RankSums} from '../../data/stage_sums';
import {deskOf} from '../answers/ask';
import type {Api} from '../shell/api';
import {f32, f64, i32, type Column} from '../shell/wire';

// The data of the chart: the run as recorded, or one step of a simulated scenario.
export interface Recorded {
  cells: Cells;
  model: RunModel;
  bubbles: Bubbles | null;
}
export interface Loaded extends Recorded {
  report: Report;
  shiftNs: number[]; // by part: added to its times they are the timeline's
  sums: RankSums;
}

interface Header {
  report: Omit<Report, 'tables'>;
  cells_at: number;
  shift_ns: number[];
  columns: Column[];
}
const SUM_COLUMNS = ['sum_busy', 'sum_schedule', 'sum_imbalance', 'sum_jitter', 'sum_latency', 'sum_rest'];
const BUBBLE_COLUMNS = ['bubble_schedule', 'bubble_imbalance', 'bubble_jitter', 'bubble_latency', 'bubble_rest'];

// `run`: the second one, or the run itself. `steps`: their cells alone; without, as many steps as the server finds
// well.
export async function loadPipeline(api: Api,
  {run, steps}: {run?: 'other'; steps?: readonly number[]} = {}): Promise<Loaded>
{
  const wire = await api.longWire<Header>('pipeline', {run, steps: steps?.join()}),
    {report, cells_at, shift_ns} = wire.header;
  const cells = decodeCells(wire.buffer, report.cells.columns, report.cells.count, wire.base + cells_at);
  const model = makeModel(cells, report.parts);
  const start = f64(wire, 'bubble_start');
  const bubbles = start.length === 0 ? null
    : makeBubbles(start, f64(wire, 'bubble_dur'), i32(wire, 'bubble_step'), i32(wire, 'bubble_part'),
      BUBBLE_COLUMNS.map(name => f32(wire, name)), model.rows, model.rowOfPart);
  const sums = {step: i32(wire, 'sum_step'), part: i32(wire, 'sum_part'), ns: SUM_COLUMNS.map(name => f64(wire, name))};
  return {report: {...report, tables: []}, cells, model, bubbles, shiftNs: shift_ns, sums};
}

// The tables next to the chart: the same answers as on the page of answers, and in the terminal. If one is not
// available for this run, its part of the page is omitted.
const ANALYSES = ['pipeline-summary', 'waterfall', 'stragglers', 'theory'];

export async function loadTables(api: Api): Promise<Table[]> {
  const made = await Promise.allSettled(ANALYSES.map(name => deskOf(api).answer(name, {}, () => undefined)));
  return made.flatMap(one => (one.status === 'fulfilled' ? one.value.tables : []));
}
