// A query over the run, asked of the server: its rows, and when they are, where they say that.
import type {Value} from '../../data/report';
import {ApiError, type Api} from '../shell/api';

interface Refused {
  error: string;
  hint: string;
}
export interface Answered {
  columns: {name: string; unit: string}[];
  rows: Value[][];
  row_count: number;
  truncated: boolean;
}

// Waits while the answer is being made, as long as it is wanted.
export async function askSql(api: Api, q: string, rows: number, wanted: () => boolean): Promise<Answered> {
  for (;;) {
    const reply = await api.long<Answered | Refused>('sql', {q, rows});
    if (reply.done && 'error' in reply.answer) throw new ApiError(422, reply.answer.error, reply.answer.hint);
    if (reply.done || !wanted()) return reply.answer as Answered;
    await new Promise(done => setTimeout(done, 100));
  }
}

// The critical path as rows with times, by the analysis that finds it.
export const PATH_QUERIES: Readonly<Record<string, string>> = {
  'pipeline-critical-path':
    "SELECT type || coalesce(' ' || micro_batch, '') AS name, rank, stage, piece, start_ns, path_ns AS dur_ns " +
    'FROM pipeline_critical_path__path',
  'critical-path-analysis':
    "SELECT coalesce(nullif(name, ''), type) AS name, type, bound_by, thread, start_ns, dur_ns FROM critical_path_analysis__breakdown",
};

// Replays of captured graphs on a rank as rows with times: from the first kernel of each to the last.
export const graphQuery = (rank: number): string =>
  "SELECT count(*) || ' kernels' AS name, k.rank, min(k.start_ns) AS start_ns, max(k.end_ns) AS end_ns, " +
  'sum(k.dur_ns) AS work_ns FROM kernels k JOIN slices s ON s.id = k.call_id AND s.rank = k.rank ' +
  `WHERE s.name GLOB '*GraphLaunch*' AND k.rank = ${rank} GROUP BY k.call_id ORDER BY min(k.start_ns)`;
const GRAPHS = /^SELECT count\(\*\) \|\| ' kernels'.*k\.rank = (\d+) GROUP BY k\.call_id/;
// The rank whose graphs a query asks for; null: it asks for something else.
export const rankOfGraphs = (query: string): number | null => {
  const found = GRAPHS.exec(query);
  return found && Number(found[1]);
};

export interface Stretch {
  start: number;
  end: number;
  row: number;
}
// By columns that say where each row starts and how long it lasts or when it ends; null where there are none.
export function stretchesOf({columns, rows}: Pick<Answered, 'columns' | 'rows'>): Stretch[] | null {
  const of = (name: string): number => columns.findIndex(column => column.name === name);
  const at = of('start_ns'), dur = of('dur_ns'), to = of('end_ns');
  if (at < 0 || (dur < 0 && to < 0)) return null;
  return rows.map((row, k): Stretch => {
    const start = row[at] as number, length = dur < 0 ? NaN : Number(row[dur]);
    return {start, end: to < 0 ? start + length : row[to] as number, row: k};
  }).filter(({start, end}) => typeof start === 'number' && typeof end === 'number' && end >= start);
}
