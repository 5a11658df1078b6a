// Which slices a search means: names and what else it asks of them ("mb:3 kind:B gemm"), how often they occur, and the
// next one. src/server/timeline/name_index.cc and name_search.cc.
import {kindOf, nameOf, numbersOf, rowPlace, valueAt, firstNot, type Lane, type Store} from './lanes';
import {expressionPattern, textPattern, type Matches} from './pattern';
import {lanesAsked, listAsked, numberAsked, refuse, textAsked, type Asked} from './query';

// Shortens a name as lists do; the details of one slice have the whole name.
const MOST_NAME_BYTES = 256;
export function shortName(store: Store, id: number): string {
  const name = store.names[id]!;
  if (name.length <= MOST_NAME_BYTES / 3) return name;
  const bytes = new TextEncoder().encode(name);
  if (bytes.length <= MOST_NAME_BYTES) return name;
  let end = MOST_NAME_BYTES;
  while ((bytes[end]! & 0xc0) === 0x80) --end;
  return new TextDecoder().decode(bytes.subarray(0, end)) + '…';
}

type NumberKey = 'mb' | 'chunk' | 'step' | 'stage' | 'rank' | 'dp';
const KEYS: Record<string, NumberKey> = {mb: 'mb', micro_batch: 'mb', chunk: 'chunk', step: 'step', stage: 'stage',
  rank: 'rank', dp: 'dp'};
interface Facets {
  numbers: Partial<Record<NumberKey, number>>;
  kinds: Set<number> | null;
}
const anyOf = (facets: Facets): boolean => facets.kinds !== null || Object.keys(facets.numbers).length > 0;

interface Split {
  facets: Facets;
  rest: string;
  said: string;
}
function splitFacets(store: Store, text: string): Split {
  const facets: Facets = {numbers: {}, kinds: null}, rest: string[] = [], said: string[] = [];
  let any = false;
  for (const word of text.match(/"[^"]*"?|[^ ]+/g) ?? []) {
    const colon = word.indexOf(':'), name = colon < 0 ? '' : word.slice(0, colon).toLowerCase(), key = KEYS[name];
    if (!key && name !== 'kind') {
      const quoted = word.length > 1 && word.startsWith('"');
      any ||= quoted;
      rest.push(quoted && word.endsWith('"') ? word.slice(1, -1) : word);
      continue;
    }
    const value = word.slice(colon + 1);
    if (key) {
      if (!/^-?\d+$/.test(value)) refuse(400, `${name}: takes a whole number, as in ${name}:3`, 'quotes make it text');
      facets.numbers[key] = Number(value);
    } else {
      const wanted = value.toLowerCase();
      const kinds = store.kindWords.flatMap(([code, english, chinese],
        kind) => (wanted === code.toLowerCase() || wanted === english.toLowerCase() || wanted === chinese ? [kind] : [])
      );
      if (kinds.length === 0)
        refuse(400, `no kind is called "${value}"`, 'kind:F, kind:B, kind:comm, …; quotes make it text');
      facets.kinds = new Set(kinds);
    }
    any = true;
    said.push(word);
  }
  return {facets, rest: any ? rest.join(' ') : text, said: said.join(' ')};
}

function laneMay(store: Store, lane: Lane, {numbers, kinds}: Facets): boolean {
  if (lane.type === 'counter') return false;
  const rank = store.run.ranks[store.run.lanes[lane.id]!.rank_index]!;
  if ((numbers.rank ?? rank.rank) !== rank.rank || (numbers.stage ?? rank.stage) !== rank.stage ||
    (numbers.dp ?? rank.dp) !== rank.dp) return false;
  if ((numbers.mb !== undefined || numbers.chunk !== undefined) && !lane.microBatch && lane.facts.slice.length === 0)
    return false;
  return lane.onlyKind < 0 || !kinds || kinds.has(lane.onlyKind);
}
function has(store: Store, lane: Lane, slice: number, {numbers, kinds}: Facets): boolean {
  if (kinds && !kinds.has(kindOf(store, lane, slice))) return false;
  if (numbers.step !== undefined && numbers.step !== valueAt(lane.step, slice)) return false;
  if (numbers.mb === undefined && numbers.chunk === undefined) return true;
  const [microBatch, chunk] = numbersOf(lane, slice);
  return (numbers.mb ?? microBatch) === microBatch && (numbers.chunk ?? chunk) === chunk;
}

export interface Meant {
  names: Uint8Array;
  facets: Facets;
  where: string;
}
export function namesMeant(store: Store, asked: Asked): Meant {
  const names = new Uint8Array(store.names.length), given = splitFacets(store, textAsked(asked, 'where'));
  if (given.rest) refuse(400, 'where= has a word that is no facet', 'where=mb:3 kind:B step:2');
  const meant: Meant = {names, facets: given.facets, where: given.said};
  const match = (matches: Matches): Meant => {
    store.names.forEach((name, id) => {
      names[id] = Number(matches(name));
    });
    return meant;
  };
  if (asked['name_ids'] !== undefined) {
    for (const id of listAsked(asked, 'name_ids', store.names.length)) names[id] = 1;
    return meant;
  }
  const q = textAsked(asked, 'q');
  if (textAsked(asked, 'regex') === '1' && q) return match(expressionPattern(q));
  if (meant.where) return match(textPattern(q));
  const text = splitFacets(store, q);
  meant.facets = text.facets;
  meant.where = text.said;
  if (!text.rest && !anyOf(meant.facets))
    refuse(400, 'neither name_ids nor q says which names', 'q=gemm, q=mb:3, or name_ids=3,4');
  return match(textPattern(text.rest));
}

// Calls visit(slice) for the slices [from, to) of a lane that are meant, until it returns false.
export function forMeant(store: Store, lane: Lane, {names, facets}: Meant, from: number, to: number,
  visit: (slice: number) => boolean | void): void
{
  if (!laneMay(store, lane, facets)) return;
  const any = anyOf(facets), {place} = lane, {placeName} = store;
  for (let i = from; i < to; ++i)
    if (names[placeName[place[i]!]!] && (!any || has(store, lane, i, facets)) && visit(i) === false) return;
}

export function searchAnswer(store: Store, asked: Asked): object {
  const limit = Math.min(10_000, Math.max(1, numberAsked(asked, 'limit', 200))), meant = namesMeant(store, asked);
  const counts = new Float64Array(store.names.length);
  for (const lane of store.lanes)
    forMeant(store, lane, meant, 0, lane.count, i => {
      const name = nameOf(store, lane, i);
      counts[name] = counts[name]! + 1;
    });
  const found = [...counts.keys()].filter(id => counts[id]! > 0).sort((a, b) => counts[b]! - counts[a]! || a - b);
  return {names: found.length, occurrences: found.reduce((sum, id) => sum + counts[id]!, 0), where: meant.where,
    matches: found.slice(0, limit).map(id => ({name_id: id, name: shortName(store, id), count: counts[id]}))};
}

// {lane, slice, row, name_id, name, kind, start_ns, dur_ns}.
export function reference(store: Store, lane: Lane, slice: number): object {
  const name = nameOf(store, lane, slice);
  return {lane: lane.id, slice, row: rowPlace(lane, slice)?.row ?? -1, name_id: name, name: shortName(store, name),
    kind: kindOf(store, lane, slice), start_ns: lane.start[slice], dur_ns: lane.dur[slice]};
}

export function findAnswer(store: Store, asked: Asked): object {
  const from = numberAsked(asked, 'from', 0), atLane = numberAsked(asked, 'lane', -1),
    atSlice = numberAsked(asked, 'slice', -1);
  const dir = textAsked(asked, 'dir') || 'next', meant = namesMeant(store, asked);
  if (dir !== 'next' && dir !== 'prev') refuse(400, 'dir is next or prev');
  let best: Lane | null = null, bestSlice = -1;
  for (const id of lanesAsked(store, asked)) {
    const lane = store.lanes[id]!;
    // Places are ordered by start, lane, slice; the first of this lane that is behind where one is.
    const behind = firstNot(lane.count, i =>
      lane.start[i]! < from || (lane.start[i] === from && (id < atLane || (id === atLane && i <= atSlice))));
    if (dir === 'next') {
      forMeant(store, lane, meant, behind, lane.count, i => {
        if (!best || lane.start[i]! < best.start[bestSlice]!) [best, bestSlice] = [lane, i];
        return false;
      });
      continue;
    }
    let to = behind;
    if (id === atLane && to > 0 && to - 1 === atSlice && lane.start[to - 1] === from) --to;
    for (let i = to - 1; i >= 0 && (!best || lane.start[i]! >= (best as Lane).start[bestSlice]!); --i) {
      let is = false;
      forMeant(store, lane, meant, i, i + 1, () => {
        is = true;
      });
      if (!is) continue;
      [best, bestSlice] = [lane, i];
      break;
    }
  }
  return {found: best ? reference(store, best, bestSlice) : null};
}
