// The timeline of a report: makes its lanes from what the file carries, and answers the protocol's questions about them.
import type {Run} from '../api';
import {counterAnswer} from './counters';
import {Bytes, ColumnReader, readLinks} from './columns';
import {sliceAnswer} from './details';
import {histogramAnswer} from './durations';
import {flowsAnswer} from './flows';
import {buildRows, type Lane, type Store, type Words} from './lanes';
import {findAnswer, searchAnswer} from './names';
import {Refusal, refuse, type Asked} from './query';
import {selectAnswer} from './select';
import {slicesAnswer} from './slices';
import {tilesAnswer} from './tiles';
import {unpack} from './unpack';

// Packed texts, as they stand in the page.
export interface Packed { head: string; pieces: string[]; links: string; words: Words }
// src/server/page_slices.cc writes it.
interface Head {
  run: Run; names: string[]; places: number[]; origins: string[]; kind_words: [string, string, string][]; has_chunks: boolean; links: number; longest_ns: number;
}

const none = {at: new Uint32Array(0), value: new Int32Array(0)};
const noParents = {slice: new Uint32Array(0), parent: new Uint32Array(0)};
const noFacts = {slice: new Uint32Array(0), microBatch: new Int32Array(0), chunk: new Int32Array(0)};

export async function makeStore(packed: Packed): Promise<Store> {
  const head = JSON.parse(new TextDecoder().decode(await unpack(packed.head))) as Head, {run} = head;
  const Durations = head.longest_ns < 2 ** 32 ? Uint32Array : Float64Array, Places = head.places.length <= 2 ** 17 ? Uint16Array : Uint32Array;
  const lanes = run.lanes.map((lane): Lane => ({
    id: lane.id, type: lane.type, count: lane.slices, start: new Float64Array(lane.slices),
    dur: new Durations(lane.type === 'counter' ? 0 : lane.slices), place: new Places(lane.type === 'counter' ? 0 : lane.slices),
    step: none, microBatch: null, chunk: null, facts: noFacts, partner: null, parents: noParents,
    value: lane.type === 'counter' ? new Float64Array(lane.slices) : null, rows: [], rangeRow: 0, onlyKind: -1}));
  const bases: number[] = [];
  let total = 0;
  for (const lane of lanes) {
    bases.push(total);
    total += lane.count;
  }
  // One piece is unpacked while the one before is read, and none is kept.
  const reader = new ColumnReader(lanes, bases), next = (): Promise<ArrayBuffer> | null => {
    const text = packed.pieces.shift();
    return text === undefined ? null : unpack(text);
  };
  for (let piece = next(); piece;) {
    const following = next();
    reader.piece(new Uint8Array(await piece));
    piece = following;
  }
  if (lanes.length > 0) reader.finish();
  const store: Store = {
    run, lanes, bases, names: head.names, placeName: Uint32Array.from(head.places.filter((_, i) => i % 2 === 0)),
    placeKind: Uint8Array.from(head.places.filter((_, i) => i % 2 === 1)),
    annotation: run.kinds.find(kind => kind.code === 'annotation')?.id ?? -1,
    operator: head.kind_words.findIndex(([code]) => code === 'operator'), kindWords: head.kind_words, hasChunks: head.has_chunks, origins: head.origins,
    links: readLinks(new Bytes(new Uint8Array(await unpack(packed.links))), head.links), words: packed.words};
  for (const lane of lanes) buildRows(store, lane);
  return store;
}

type Answer = (store: Store, asked: Asked) => ArrayBuffer | object;
const ANSWERS: Record<string, Answer> = {
  tiles: tilesAnswer, slices: slicesAnswer, slice: sliceAnswer, select: selectAnswer, search: searchAnswer, find: findAnswer,
  histogram: histogramAnswer, flows: flowsAnswer, counter: counterAnswer,
};
export const answersOf = (path: string): boolean => path in ANSWERS;

// Status and bytes, as the server gives them.
export function answer(store: Store, path: string, asked: Asked): {status: number; body: ArrayBuffer} {
  try {
    const made = (ANSWERS[path] ?? refuse(404, 'there is nothing at this path'))(store, asked);
    return {status: 200, body: made instanceof ArrayBuffer ? made : bytesOf(made)};
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return {status: error.status, body: bytesOf({error: error.message, hint: error.hint})};
  }
}
export const bytesOf = (value: unknown): ArrayBuffer => new TextEncoder().encode(JSON.stringify(value)).buffer as ArrayBuffer;
