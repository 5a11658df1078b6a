// Lists everything in a report about one slice, as src/server/timeline/slice_details.cc does, without facts that are
// only in the run's own files.
import {placeOf} from './flows';
import {enclosing, endOf, firstNot, firstStartingFrom, FLOW_TYPES, kindOf, nameOf, numbersOf, rowPlace, sliceAt,
  takesTime, valueAt, walk, type Lane, type Store} from './lanes';
import {reference, shortName} from './names';
import {numberAsked, refuse, type Asked} from './query';

const MOST_LINKS = 200, MOST_FRAMES = 200, FAR = 256, LAUNCH = 1, COMPUTE = new Set(['F', 'B', 'I', 'W', 'F&B']);

function selfNs(store: Store, lane: Lane, slice: number): number {
  let self = lane.dur[slice]!;
  if (lane.type !== 'thread') return self;
  walk(store, lane, slice, firstStartingFrom(lane, endOf(lane, slice)), (i, holder) => {
    if (holder === slice && takesTime(store, lane, i)) self -= lane.dur[i]!;
  });
  return Math.max(0, self);
}

type Place = ReturnType<typeof placeOf>;
function parentOf(store: Store, {lane, slice}: Place): Place | null {
  const {parents} = lane, k = firstNot(parents.slice.length, i => parents.slice[i]! < slice);
  if (parents.slice[k] === slice) return parents.parent[k] ? placeOf(store, parents.parent[k]! - 1) : null;
  if (lane.type === 'stream') {
    let at: Place | null = lane.partner?.[slice] ? placeOf(store, lane.partner[slice]! - 1) : null;
    for (let far = 0; at && far < FAR; ++far) {
      at = parentOf(store, at);
      if (at && kindOf(store, at.lane, at.slice) === store.operator) return at;
    }
    return null;
  }
  const at = rowPlace(lane, slice), above = at ? enclosing(lane, at) : -1;
  return above < 0 ? null : {lane, slice: above};
}

export function sliceAnswer(store: Store, asked: Asked): object {
  const lane = store.lanes[numberAsked(asked, 'lane', NaN)] ?? refuse(400, 'lane is missing'),
    slice = numberAsked(asked, 'slice', NaN);
  if (lane.value) refuse(400, 'this lane is a counter and has no slices');
  if (!(slice >= 0 && slice < lane.count)) refuse(400, `slice is a whole number from 0 to ${lane.count - 1}`);
  const {run} = store, info = run.lanes[lane.id]!, rank = run.ranks[info.rank_index]!,
    kind = kindOf(store, lane, slice);
  const [microBatch, chunk] = numbersOf(lane, slice), name = nameOf(store, lane, slice), at = rowPlace(lane, slice);
  const refer = (own: Lane, i: number | undefined):
    | object
    | null => (i === undefined || i < 0 ? null : reference(store, own, i));
  const row = at && lane.rows[at.row]!;
  const code = run.kinds.find(one => one.id === kind)?.code ?? '';
  const isCell = lane.type === 'cells', own: Place = {lane, slice}, stack: string[] = [];
  for (let up = isCell ? null : parentOf(store, own); up && stack.length < MOST_FRAMES; up = parentOf(store, up))
    stack.push(shortName(store, nameOf(store, up.lane, up.slice)));
  const owner = lane.type === 'stream' ? parentOf(store, own) : null;
  const source = isCell && lane.partner?.[slice] ? placeOf(store, lane.partner[slice]! - 1) : null;
  return {
    lane: lane.id,
    slice,
    lane_name: info.name,
    lane_type: info.type,
    name_id: name,
    name: store.names[name],
    kind,
    start_ns: lane.start[slice],
    dur_ns: lane.dur[slice],
    end_ns: endOf(lane, slice),
    self_ns: selfNs(store, lane, slice),
    stamp_ns: String(BigInt(store.origins[lane.id]!) + BigInt(lane.start[slice]!)),
    rank: rank.rank,
    machine: rank.machine,
    machine_name: rank.machine_name,
    device: rank.device,
    stage: rank.stage,
    dp: rank.dp,
    ...(isCell ? {label: code + (microBatch >= 0 ? String(microBatch) : '') +
      (store.hasChunks && chunk >= 0 && COMPUTE.has(code) ? `.c${chunk}` : '')} : {}),
    step: valueAt(lane.step, slice),
    micro_batch: microBatch,
    chunk,
    ...(at ? {row: at.row} : {}),
    previous: refer(lane, row && at.position > 0 ? sliceAt(row, at.position - 1) : -1),
    next: refer(lane, row && at.position + 1 < row.count ? sliceAt(row, at.position + 1) : -1),
    parent: refer(lane, at ? enclosing(lane, at) : -1),
    owner: owner && reference(store, owner.lane, owner.slice),
    source: source && reference(store, source.lane, source.slice),
    stack,
    links: linksOf(store, lane, slice),
    args: [],
    args_missing: store.words.noArguments,
  };
}

function linksOf(store: Store, lane: Lane, slice: number): object[] {
  const out: object[] = [], {links} = store;
  const add = (type: number, direction: 'in' | 'out', other: Lane, i: number): void => {
    if (out.length < MOST_LINKS)
      out.push({type: FLOW_TYPES[type], direction, rank: store.run.ranks[store.run.lanes[other.id]!.rank_index]!.rank,
        slice: reference(store, other, i)});
  };
  const partner = lane.type === 'cells' ? -1 : (lane.partner?.[slice] ?? 0) - 1;
  if (partner >= 0) {
    const other = placeOf(store, partner);
    add(LAUNCH, lane.type === 'stream' ? 'in' : 'out', other.lane, other.slice);
  }
  for (let n = 0; n < links.type.length; ++n) {
    if (links.fromLane[n] === lane.id && links.fromSlice[n] === slice)
      add(links.type[n]!, 'out', store.lanes[links.toLane[n]!]!, links.toSlice[n]!);
    if (links.toLane[n] === lane.id && links.toSlice[n] === slice)
      add(links.type[n]!, 'in', store.lanes[links.fromLane[n]!]!, links.fromSlice[n]!);
  }
  return out;
}
