// Answers of the server that take time: asked once, then kept. While one is made the server says for how long (202),
// and the page asks again.
import type {Both, Column, Table, Value} from '../../data/report';
import {shownUnit} from '../../format';
import {addSentences} from '../../i18n/i18n';
import {ApiError, type Api} from '../shell/api';
import type {Wire} from '../shell/wire';

export interface Option {
  name: string;
  value: string;
  help: string;
  choices: string[];
}
export interface Offer {
  name: string;
  summary: string;
  in_report: boolean;
  tables: {name: string; summary: string}[];
  options: Option[];
}
export interface Offers {
  answers: Offer[];
  paths: string[];
  other: {title: string; paths: string[]} | null;
}
export interface Note {
  name: string;
  severity: 'info' | 'warning' | 'loss';
  count: number;
  message: string;
}
export type AnswerTable = Table & {origin: string; count: number}; // what times count from, as text: it may pass 2^53
export interface Answer {
  analysis: string;
  tables: AnswerTable[];
  notes: Note[];
}
export interface Working {
  state: 'waiting' | 'running';
  seconds: number;
}
export type Choice = Record<string, string>; // options that are not the default

interface WireColumn {
  name: string;
  title: string;
  type: Column['type'];
  help: string;
}
interface WireAnswer {
  analysis: string;
  notes: Note[];
  sentences?: Both[]; // the clocks' answer has none
  tables: {name: string; title: string; columns: WireColumn[]; row_count: number; origin_ns: string; rows?: Value[][];
    rows_at?: [at: number, bytes: number, count: number]}[]; // one of both
  wire?: Wire<unknown> | null; // the rows, if they are separate
}

// Turns rows into columns, as in the report; units are those that people see. `count`: rows that are present.
function tableOf(wire: WireAnswer['tables'][number], apart: Wire<unknown> | null): AnswerTable {
  let values: Value[][] | null = null;
  const rowsOf = (): Value[][] => {
    if (wire.rows || !wire.rows_at || !apart) return wire.rows ?? [];
    const [at, bytes] = wire.rows_at;
    return JSON.parse(new TextDecoder().decode(new Uint8Array(apart.buffer, apart.base + at, bytes))) as Value[][];
  };
  return {
    name: wire.name,
    title: wire.title,
    rowCount: wire.row_count,
    origin: wire.origin_ns,
    count: wire.rows?.length ?? wire.rows_at?.[2] ?? 0,
    columns: wire.columns.map(column => ({...column, unit: shownUnit(column.type)})),
    // A table that is not unfolded and not drawn stays as it came.
    get values() {
      if (values) return values;
      const rows = rowsOf();
      return values = wire.columns.map((_, i) => rows.map(row => row[i]!));
    },
  };
}

// Throws the reason of a run that has no answer to a valid question.
export function answered<T>(answer: T): T {
  const {error, hint, sentences} = answer as {error?: string; hint?: string; sentences?: Both[]};
  if (error === undefined) return answer;
  addSentences(sentences ?? []);
  throw new ApiError(422, error, hint ?? '');
}

const FIRST_PAUSE_MS = 60, LONGEST_PAUSE_MS = 150; // what is done is shown within 200 ms

export class Desk {
  private readonly kept = new Map<string, Promise<unknown>>();
  private readonly watching = new Map<string, Set<(now: Working) => void>>();
  private offered: Promise<Offers> | null = null;
  constructor(private readonly api: Api) {}

  offers(): Promise<Offers> {
    this.offered ??= this.api.json<Offers>('answers');
    this.offered.catch(() => {
      this.offered = null;
    });
    return this.offered;
  }
  // `watch` hears how long it has taken, until it is there. Failures are not kept.
  ask<T>(path: string, params: Choice, watch: (now: Working) => void): Promise<T> {
    const key = path + '?' + JSON.stringify(Object.entries(params).sort());
    const watchers = this.watching.get(key) ?? new Set();
    watchers.add(watch);
    this.watching.set(key, watchers);
    let made = this.kept.get(key);
    if (!made) {
      made = this.poll(path, params, now => {
        for (const one of watchers) one(now);
      });
      this.kept.set(key, made);
      made.catch(() => this.kept.delete(key)).finally(() => this.watching.delete(key));
    }
    return made as Promise<T>;
  }
  async answer(name: string, options: Choice, watch: (now: Working) => void): Promise<Answer> {
    const wire = await this.ask<WireAnswer>('answer', {...options, name}, watch);
    return read(wire);
  }
  // Rows of one table from `from` on: of a long one an answer has the first alone.
  async rows(name: string, options: Choice, table: string, from: number,
    watch: (now: Working) => void): Promise<AnswerTable>
  {
    const answer = await this.answer(name, {...options, page_of: table, from: String(from)}, watch),
      found = answer.tables[0];
    if (!found) throw new ApiError(404, `no table ${table}`, '');
    return found;
  }
  async clocks(watch: (now: Working) => void): Promise<Answer> {
    return read(await this.ask<WireAnswer>('clocks', {}, watch));
  }
  private async poll(path: string, params: Choice, said: (now: Working) => void): Promise<unknown> {
    for (let pause = FIRST_PAUSE_MS;; pause = Math.min(pause * 1.3, LONGEST_PAUSE_MS)) {
      const found: {done: boolean; answer: unknown; wire?: Wire<unknown> | null} = path === 'answer'
        ? await this.api.longRows<unknown>(path, params) : await this.api.long<unknown>(path, params);
      if (found.done) {
        answered(found.answer);
        if (found.wire) (found.answer as WireAnswer).wire = found.wire;
        return found.answer;
      }
      said(found.answer as Working);
      await new Promise(done => setTimeout(done, pause));
    }
  }
}

const answers = new WeakMap<WireAnswer, Answer>();
function read(wire: WireAnswer): Answer {
  let answer = answers.get(wire);
  addSentences(wire.sentences ?? []);
  if (!answer)
    answers.set(wire,
      answer = {analysis: wire.analysis, notes: wire.notes,
        tables: wire.tables.map(table => tableOf(table, wire.wire ?? null))});
  return answer;
}

// Returns the one desk of all pages.
const desks = new WeakMap<Api, Desk>();
export function deskOf(api: Api): Desk {
  let desk = desks.get(api);
  if (!desk) desks.set(api, desk = new Desk(api));
  return desk;
}
