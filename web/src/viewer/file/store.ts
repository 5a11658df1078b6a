// The timeline of a report: its lanes, read from what the file carries when they are asked about, and answers to the
// protocol's questions about them.
import type {Run} from '../shell/api';
import {counterAnswer} from './counters';
import {Bytes, readLinks} from './columns';
import {sliceAnswer} from './details';
import {histogramAnswer} from './durations';
import {flowsAnswer} from './flows';
import type {Lane, Store, Words} from './lanes';
import {Loader, type Group} from './load';
import {findAnswer, searchAnswer} from './names';
import {lanesAsked, numberAsked, Refusal, refuse, type Asked} from './query';
import {selectAnswer} from './select';
import {slicesAnswer} from './slices';
import {tilesAnswer} from './tiles';
import {unzip} from './unpack';

// Holds the content of the page, each part as gzip. They are bytes: handed to a worker they are gone here, where a text
// would exist twice.
export interface Packed {
  head: Uint8Array<ArrayBuffer>;
  groups: Group[];
  links: Uint8Array<ArrayBuffer>;
  words: Words;
}
// src/server/page/page_slices.cc writes it.
interface Head {
  run: Run;
  names: string[];
  places: number[];
  origins: string[];
  kind_words: [string, string, string][];
  has_chunks: boolean;
  links: number;
  longest_ns: number;
}
// A store, and the lanes of it that are read so far.
export interface Answerable {
  store: Store;
  loader: Loader;
}

const none = {at: new Uint32Array(0), value: new Int32Array(0)}, noTimes = new Float64Array(0),
  noPlaces = new Uint16Array(0);
const noParents = {slice: new Uint32Array(0), parent: new Uint32Array(0)};
const noFacts = {slice: new Uint32Array(0), microBatch: new Int32Array(0), chunk: new Int32Array(0)};

const times = (most: number): Uint32ArrayConstructor | Float64ArrayConstructor =>
  most < 2 ** 32 ? Uint32Array : Float64Array;

export async function makeStore(packed: Packed): Promise<Answerable> {
  const [headBytes, linkBytes] = await Promise.all([unzip(packed.head), unzip(packed.links)]);
  const head = JSON.parse(new TextDecoder().decode(headBytes)) as Head, {run} = head;
  const lanes = run.lanes.map((lane): Lane => ({
    id: lane.id,
    type: lane.type,
    count: lane.slices,
    start: noTimes,
    dur: noTimes,
    place: noPlaces,
    step: none,
    microBatch: null,
    chunk: null,
    facts: noFacts,
    partner: null,
    parents: noParents,
    value: null,
    rows: [],
    rangeRow: 0,
    onlyKind: -1,
  }));
  const bases: number[] = [];
  let total = 0;
  for (const lane of lanes) {
    bases.push(total);
    total += lane.count;
  }
  const store: Store = {
    run,
    lanes,
    bases,
    names: head.names,
    placeName: Uint32Array.from(head.places.filter((_, i) => i % 2 === 0)),
    placeKind: Uint8Array.from(head.places.filter((_, i) => i % 2 === 1)),
    annotation: run.kinds.find(kind => kind.code === 'annotation')?.id ?? -1,
    operator: head.kind_words.findIndex(([code]) => code === 'operator'),
    kindWords: head.kind_words,
    hasChunks: head.has_chunks,
    origins: head.origins,
    links: readLinks(new Bytes(new Uint8Array(linkBytes)), head.links),
    words: packed.words,
  };
  const loader = new Loader(store, packed.groups, {starts: times(run.span_ns), durations: times(head.longest_ns),
    places: head.places.length <= 2 ** 17 ? Uint16Array : Uint32Array});
  return {store, loader};
}

type Answer = (store: Store, asked: Asked) => ArrayBuffer | object;
// About the lanes that they name, and no others.
const OF_LANES = new Set(['tiles', 'slices', 'select', 'find', 'histogram']);
const ANSWERS: Record<string, Answer> = {
  tiles: tilesAnswer,
  slices: slicesAnswer,
  slice: sliceAnswer,
  select: selectAnswer,
  search: searchAnswer,
  find: findAnswer,
  histogram: histogramAnswer,
  flows: flowsAnswer,
  counter: counterAnswer,
};
export const answersOf = (path: string): boolean => path in ANSWERS;

// Returns the lanes of a slice's rank, with its parent, its launch and its launched work, and the lanes that its arrows
// lead to.
function lanesAround({run, lanes, links}: Store, asked: Asked): number[] {
  const lane = (lanes[numberAsked(asked, 'lane', NaN)] ?? refuse(400, 'lane is missing')).id,
    slice = numberAsked(asked, 'slice', NaN);
  const found = lanes.filter(({id}) => run.lanes[id]!.rank_index === run.lanes[lane]!.rank_index).map(({id}) => id);
  for (let n = 0; n < links.type.length; ++n) {
    if (links.fromLane[n] === lane && links.fromSlice[n] === slice) found.push(links.toLane[n]!);
    if (links.toLane[n] === lane && links.toSlice[n] === slice) found.push(links.fromLane[n]!);
  }
  return found;
}
async function readFor({store, loader}: Answerable, path: string, asked: Asked): Promise<void> {
  if (path === 'counter')
    return loader.need([(store.lanes[numberAsked(asked, 'lane', NaN)] ?? refuse(400, 'lane is missing')).id]);
  if (path === 'slice') return loader.need(lanesAround(store, asked));
  return OF_LANES.has(path) ? loader.need(lanesAsked(store, asked)) : loader.needAll();
}

// Status and bytes, as the server gives them.
export async function answer(from: Answerable, path: string,
  asked: Asked): Promise<{status: number; body: ArrayBuffer}>
{
  try {
    const make = ANSWERS[path] ?? refuse(404, 'there is nothing at this path');
    await readFor(from, path, asked);
    const made = make(from.store, asked);
    return {status: 200, body: made instanceof ArrayBuffer ? made : bytesOf(made)};
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return {status: error.status, body: bytesOf({error: error.message, hint: error.hint})};
  }
}
export const bytesOf = (value: unknown): ArrayBuffer =>
  new TextEncoder().encode(JSON.stringify(value)).buffer as ArrayBuffer;
