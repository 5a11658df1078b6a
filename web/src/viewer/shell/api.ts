// The server's answers as the page sees them (docs/viewer-protocol.md). Times are nanoseconds from the run's start.
import type {Both, Palette} from '../../data/report';
import type {Theme} from '../../theme';
import {quiet} from './quiet';
import type {Params, Reply, Source} from './source';
import {decode, f64, i32, u32, u8, type Column, type Wire} from './wire';

export interface Paint {
  fill: string;
  text: string;
}
export interface Kind {
  id: number;
  code: string;
  name: string;
  name_zh: string;
  group: string;
  light: Paint;
  dark: Paint;
}
export interface Rank {
  rank: number;
  machine: number;
  machine_name: string;
  device: number;
  stage: number;
  dp: number;
  offset_half_ns: number; // the clock's certain bound, −1 unknown
  steps?: [number: number, start_ns: number, end_ns: number][]; // of its own, in profiles of usual sizes
}
export type LaneType = 'cells' | 'stream' | 'thread' | 'counter';
export interface Lane {
  id: number;
  rank_index: number;
  name: string;
  type: LaneType;
  rows: number;
  hidden: number;
  clipped?: number; // slices that are drawn up to the start of the next one
  slices: number;
  start_ns: number;
  end_ns: number;
  repeats?: boolean; // other lanes of the rank show all that is in it: hidden until someone asks
  lasting_rows?: number; // rows through the last in which a slice lasts any time; none: all
}
export interface Step {
  number: number;
  start_ns: number;
  end_ns: number;
  mean_ns?: number; // of the ranks' own lengths, in profiles: these are shorter than the step where clocks are apart
}
export type Grouping = 'machine' | 'stage' | 'dp';
export interface Run {
  palette: Record<Theme, Palette>;
  places?: string[]; // where its files lie, whole paths; of a server alone
  version: string;
  revision: number;
  whole: boolean;
  title: string;
  other?: string; // the title of the second run
  paths: string[];
  description: string;
  format: string;
  origin_ns: string;
  span_ns: number;
  slices: number;
  chunks?: number;
  clock: {state: string; uncertainty_ns: number};
  kinds: Kind[];
  ranks: Rank[];
  groupings: Grouping[];
  lanes: Lane[];
  steps: Step[];
  flows: boolean;
  calls?: boolean; // there are calls to add up: a thread of a host was recorded
  // For a report: the parts that it lacks, and the command that shows them; true if it was asked to show theory.
  file?: {left_out: number; command: string; theory: boolean; what_if: boolean; plan?: boolean};
  flaws: {name: string; severity: string; message: string; count: number}[];
  sentences: Both[];
}
export interface Status {
  state: 'reading' | 'preparing' | 'ready' | 'failed' | 'choose'; // choose: there is no run, but a page to open one
  title?: string;
  revision?: number;
  bytes_read: number;
  bytes_total: number;
  events: number;
  message: string;
  error?: string;
  hint?: string;
}

export interface TilesHeader {
  t0: number;
  t1: number;
  n: number;
  rows: {lane: number; row: number; kinds: {kind: number; offset: number}[]}[];
}
export type TilesAnswer = Wire<TilesHeader>;

export interface SlicesAnswer {
  count: number;
  min_ns: number;
  complete: boolean;
  start: Float64Array;
  dur: Float64Array;
  name: Uint32Array;
  kind: Uint8Array;
  row: Uint8Array;
  lane: Uint32Array;
  slice: Uint32Array;
  microBatch: Int32Array;
  chunk: Int32Array;
  names: Map<number, string>;
}

export class ApiError extends Error {
  constructor(readonly status: number, what: string, readonly hint: string) {
    super(what);
  }
}

const LONG_PAUSE_MS = 120;
const AGAIN_MS = 500, MOST_AGAIN_MS = 4000; // between two questions to a server that does not answer

export class Api {
  // For a run that is still being read: its lanes, slices and names have these numbers in one revision only.
  revision: number | undefined;
  private again: Promise<void> | undefined;
  constructor(private readonly source: Source) {}

  // Asks the same about the run that this one is compared with.
  other(): Api {
    const {source} = this;
    return new Api({...source, ask: (path, params, signal) => source.ask(path, {...params, run: 'other'}, signal)});
  }
  // Status as it changes, if the source sends events.
  events(): EventSource | null {
    return this.source.events?.() ?? null;
  }
  private async get(path: string, params: Params, signal?: AbortSignal): Promise<Reply> {
    const answer = await this.reached(path, params, signal);
    if (answer.status === 200 || answer.status === 202) return answer;
    if (answer.status === 409 && this.revision !== undefined) return this.more();
    const said = await answer.json().catch(() => ({})) as {error?: string; hint?: string};
    throw new ApiError(answer.status, said.error ?? `HTTP ${answer.status}`, said.hint ?? '');
  }
  // A server that does not answer is asked again until it does: it may have been stopped, or the connection may be
  // down. If it answers another request meanwhile, the request itself is wrong.
  private async reached(path: string, params: Params, signal?: AbortSignal): Promise<Reply> {
    for (let again = false;; again = true) {
      try {
        return await this.source.ask(path, {...params, revision: this.revision}, signal);
      } catch (error) {
        if (!this.source.events || signal?.aborted || !(error instanceof TypeError)) throw error;
        const waited = await this.untilThere(signal);
        if (again && !waited) throw error;
      }
    }
  }
  private away: Promise<boolean> | undefined;
  onAway: (away: boolean) => void = () => undefined;
  // One asks for all. False: it was there at once.
  private untilThere(signal?: AbortSignal): Promise<boolean> {
    this.away ??= (async () => {
      for (let pause = 0;; pause = Math.min(pause + AGAIN_MS, MOST_AGAIN_MS)) {
        const there = await this.source.ask('status', {}).then(answer => answer.status === 200, () => false);
        if (there) {
          if (pause > 0) this.onAway(false);
          this.away = undefined;
          return pause > 0;
        }
        this.onAway(true);
        await new Promise(done => setTimeout(done, pause + AGAIN_MS));
      }
    })();
    if (!signal) return this.away;
    return Promise.race([
      this.away,
      new Promise<never>((_, fail) => signal.addEventListener('abort', () => fail(new DOMException('', 'AbortError')))),
    ]);
  }
  // There is more of the run, and this part of it can no longer be asked: the page begins again.
  private more(): Promise<never> {
    this.again ??= quiet().then(() => location.reload());
    return new Promise(() => undefined);
  }
  async put(path: string, body: unknown): Promise<void> {
    const answer = await this.source.put!(path, body);
    if (answer.status === 200) return;
    const {error, hint} = await answer.json() as {error: string; hint: string};
    throw new ApiError(answer.status, error, hint);
  }
  async json<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
    return await (await this.get(path, params, signal)).json() as T;
  }
  // Fetches an answer that is made once and takes time: `done` is false while it is being made.
  async long<T>(path: string, params: Params): Promise<{done: boolean; answer: T}> {
    const answer = await this.get(path, params);
    return {done: answer.status !== 202, answer: await answer.json() as T};
  }
  // Does the same for an answer whose long tables may be separate: null: it is all JSON.
  async longRows<T>(path: string, params: Params): Promise<{done: boolean; answer: T; wire: Wire<T> | null}> {
    const answer = await this.get(path, {...params, rows: 'apart'});
    if (answer.isJson) return {done: answer.status !== 202, answer: await answer.json() as T, wire: null};
    const wire = decode<T>(await answer.bytes());
    return {done: true, answer: wire.header, wire};
  }
  async wire<H>(path: string, params: Params, signal?: AbortSignal): Promise<Wire<H>> {
    return decode<H>(await (await this.get(path, params, signal)).bytes());
  }
  // Binary, of what takes time: waits while it is being made.
  async longWire<H>(path: string, params: Params): Promise<Wire<H>> {
    for (;;) {
      const answer = await this.get(path, params);
      if (answer.status !== 202) return decode<H>(await answer.bytes());
      await new Promise(done => setTimeout(done, LONG_PAUSE_MS));
    }
  }
  async bytes(path: string): Promise<ArrayBuffer> {
    return await (await this.get(path, {})).bytes();
  }
  async slices(params: Params, signal?: AbortSignal, path = 'slices'): Promise<SlicesAnswer> {
    return slicesOf(await this.wire(path, params, signal));
  }
}

export function slicesOf(
  wire: Wire<{count?: number; min_ns?: number; complete?: boolean; columns: Column[]; names: [number, string][]}>,
): SlicesAnswer {
  const start = f64(wire, 'start');
  return {
    count: start.length,
    min_ns: wire.header.min_ns ?? 0,
    complete: wire.header.complete ?? true,
    start,
    dur: f64(wire, 'dur'),
    name: u32(wire, 'name'),
    kind: u8(wire, 'kind'),
    row: u8(wire, 'row'),
    lane: u32(wire, 'lane'),
    slice: u32(wire, 'slice'),
    microBatch: i32(wire, 'micro_batch'),
    chunk: i32(wire, 'chunk'),
    names: new Map(wire.header.names),
  };
}

// "3,4,10-20": what list parameters take; long lists of neighbours stay short.
export function listOf(ids: readonly number[]): string {
  const sorted = [...ids].sort((a, b) => a - b), parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let j = i;
    while (sorted[j + 1] === sorted[j]! + 1) ++j;
    parts.push(j > i ? `${sorted[i]}-${sorted[j]}` : String(sorted[i]));
    i = j + 1;
  }
  return parts.join(',');
}
