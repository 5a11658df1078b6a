// A run under changes, asked of the server: the price, and one step of it as cells (docs/viewer-protocol.md).
import {findPairs, type Cells} from '../../data/cells';
import {remadeModel} from '../../data/rows';
import {spanOf} from '../../state';
import type {Api} from '../shell/api';
import {commandLine} from '../shell/command';
import type {Described} from '../shell/described';
import {f64, i32, u8, type Column} from '../shell/wire';
import {shownAlone, type Pipe, type World} from './pipe';

export interface Price {
  recorded_ns: number | null;
  step_ns: number | null;
  saving_ns: number | null;
  error_ns: number | null;
  saving_share: number;
  steps: number;
  held: number | null;
  why_not: string;
  why_not_zh: string;
}
export interface Fix extends Price {
  id: string;
  bound: boolean;
  name: string;
  name_zh: string;
  assumes: string;
  assumes_zh: string;
  how: string;
  how_zh: string;
  bytes: string; // what the stage that needs most needs; '' without a description of the model
  bytes_zh: string;
}
export interface Fixes {
  recorded_ns: number;
  graph_ns: number | null;
  order_ns: number | null;
  stages: number;
  why_not: string;
  why_not_zh: string;
  schedule: {name: string; chunks: number; micro_batches: number; stages: number} | null;
  schedules: {name: string; chunks: number}[];
  fixes: Fix[];
  over_memory: number; // options that are not offered because they need more
  bytes?: string; // of the run as it is
  bytes_zh?: string;
}
export type Answer = Price & {bytes?: string; bytes_zh?: string; this_recorded_ns?: number | null;
  this_step_ns?: number | null; columns: Column[]};

// Holds the values of the panel's controls. Everything at its default is the run as it is.
export interface Asked {
  stage: number;
  by: number;
  microBatches: number;
  schedule: string;
  instant: boolean;
  fix: number;
}

export function paramsOf(asked: Asked, fixes: Fixes): Record<string, string | number | undefined> {
  const present = fixes.schedule;
  return {
    fix: asked.fix >= 0 ? asked.fix : undefined,
    scale: asked.by !== 1 ? `${asked.stage >= 0 ? `stage=${asked.stage},` : ''}by=${asked.by}` : undefined,
    micro_batches: present && asked.microBatches !== present.micro_batches ? asked.microBatches : undefined,
    schedule: present && asked.schedule !== present.name ? asked.schedule : undefined,
    latency_ns: asked.instant ? 0 : undefined,
  };
}

// Returns the command that prints the same number in a terminal; that of a fix is in the table of fixes there.
export function commandOf(asked: Asked, fixes: Fixes, described: Described, paths: readonly string[]): string {
  const {scale, micro_batches, schedule, latency_ns} = paramsOf(asked, fixes),
    flags = Object.entries(described).map(([name, value]) =>
      `--${name.replaceAll('_', '-')} ${name === 'model' ? 'config.json' : value}`
    );
  if (scale !== undefined) flags.push(`--scale ${scale}`);
  if (schedule !== undefined) flags.push(`--schedule ${schedule}`);
  if (micro_batches !== undefined) flags.push(`--micro-batches ${micro_batches}`);
  if (latency_ns !== undefined) flags.push('--latency 0');
  return commandLine('what-if', paths, flags.join(' '));
}

export async function askWorld(api: Api, pipe: Pipe, params: Record<string, string | number | undefined>,
  signal: AbortSignal): Promise<{price: Answer; world: World | null}>
{
  // A short answer is faster: it has only the shown part.
  const {state: {step}} = pipe.app, {recorded} = pipe, dp = shownAlone(pipe);
  const wire = await api.wire<Answer>('pipeline/what-if', {...params, step: step ?? undefined, dp: dp ?? undefined},
      signal), price = wire.header;
  if (step === null || !price.columns.some(column => column.name === 'start') || price.why_not)
    return {price, world: null};
  const start = f64(wire, 'start'), count = start.length;
  if (count === 0) return {price, world: null};
  const cells: Cells = {
    count,
    start,
    dur: f64(wire, 'dur'),
    step: new Int32Array(count).fill(step),
    part: i32(wire, 'part'),
    chunk: i32(wire, 'chunk'),
    microBatch: i32(wire, 'micro_batch'),
    kind: u8(wire, 'kind'),
    name: new Uint32Array(count),
    pair: new Int32Array(count).fill(-1),
    linkFrom: new Uint32Array(0),
    linkTo: new Uint32Array(0),
    theoryStart: null,
    theoryDur: null,
  };
  findPairs(cells);
  const model = remadeModel(cells, recorded.report.parts, recorded.model), span = spanOf(recorded.model, step);
  let end = span.t0;
  for (let i = 0; i < count; ++i) end = Math.max(end, start[i]! + cells.dur[i]!);
  // The window holds both, so that what is saved can be seen; steps are still all of them.
  model.steps = recorded.model.steps.map(one => (one.step === step ? {...one, t1: Math.max(one.t1, end)} : one));
  return {price, world: {cells, model, step, dp, recordedEnd: span.t1, end}};
}
