// Arrows of which one end lies in lanes and a window: src/server/timeline/flows.cc.
import {WireWriter} from '../shell/wire';
import {endOf, firstEndingAfter, firstInRowFrom, firstNot, FLOW_TYPES, rowPlace, sliceAt, type Lane,
  type Store} from './lanes';
import {lanesAsked, numberAsked, windowAsked, type Asked} from './query';

const MOST_LAUNCH_SLICES = 500_000, MESSAGE = 0, LAUNCH = 1;

// A slice by its number among those of all lanes.
export const placeOf = (store: Store, index: number): {lane: Lane; slice: number} => {
  const lane = firstNot(store.bases.length, i => store.bases[i]! <= index) - 1;
  return {lane: store.lanes[lane]!, slice: index - store.bases[lane]!};
};

export function flowsAnswer(store: Store, asked: Asked): ArrayBuffer {
  const lanes = lanesAsked(store, asked), {from, to} = windowAsked(store, asked),
    limit = Math.min(100_000, numberAsked(asked, 'limit', 2000));
  const chosen = new Uint8Array(store.lanes.length), {links} = store;
  for (const id of lanes) chosen[id] = 1;
  let complete = true;
  const out = {fromLane: [] as number[], fromSlice: [] as number[], fromRow: [] as number[], fromT: [] as number[],
    toLane: [] as number[], toSlice: [] as number[], toRow: [] as number[], toT: [] as number[], type: [] as number[]};
  const touches = (lane: Lane, slice: number): boolean =>
    chosen[lane.id] === 1 && lane.start[slice]! < to && endOf(lane, slice) >= from;
  const add = (type: number, a: Lane, i: number, b: Lane, k: number): void => {
    if (out.type.length >= limit) {
      complete = false;
      return;
    }
    const at = rowPlace(a, i), then = rowPlace(b, k);
    if (!at || !then) return; // deeper than rows are drawn
    out.fromLane.push(a.id);
    out.fromSlice.push(i);
    out.fromRow.push(at.row);
    // A message arrives at the end of its send; a call passes data to its callee from its start.
    out.fromT.push(type === MESSAGE ? endOf(a, i) : a.start[i]!);
    out.toLane.push(b.id);
    out.toSlice.push(k);
    out.toRow.push(then.row);
    out.toT.push(b.start[k]!);
    out.type.push(type);
  };
  for (let n = 0; n < links.type.length; ++n) {
    const a = store.lanes[links.fromLane[n]!]!, b = store.lanes[links.toLane[n]!]!, i = links.fromSlice[n]!,
      k = links.toSlice[n]!;
    if (touches(a, i) || touches(b, k)) add(links.type[n]!, a, i, b, k);
  }
  const stretches = lanes.flatMap(id => {
    const lane = store.lanes[id]!;
    if (!lane.partner || lane.type === 'cells') return [];
    return lane.rows.flatMap(row => {
      const begin = firstEndingAfter(lane, row, from), end = firstInRowFrom(lane, row, to);
      return begin < end ? [{lane, row, begin, end}] : [];
    });
  });
  if (stretches.reduce((sum, s) => sum + s.end - s.begin, 0) > MOST_LAUNCH_SLICES) {
    complete = false;
  } else {
    for (const {lane, row, begin, end} of stretches)
      for (let p = begin; p < end; ++p) {
        const i = sliceAt(row, p), other = lane.partner![i]! - 1;
        if (other < 0) continue;
        const there = placeOf(store, other);
        if (lane.type === 'stream') add(LAUNCH, there.lane, there.slice, lane, i);
        else if (there.lane.type === 'stream' && !touches(there.lane, there.slice))
          add(LAUNCH, lane, i, there.lane, there.slice);
      }
  }
  const wire = new WireWriter();
  wire.add('from_lane', 'u32', Uint32Array.from(out.fromLane));
  wire.add('from_slice', 'u32', Uint32Array.from(out.fromSlice));
  wire.add('from_row', 'u8', Uint8Array.from(out.fromRow));
  wire.add('from_t', 'f64', Float64Array.from(out.fromT));
  wire.add('to_lane', 'u32', Uint32Array.from(out.toLane));
  wire.add('to_slice', 'u32', Uint32Array.from(out.toSlice));
  wire.add('to_row', 'u8', Uint8Array.from(out.toRow));
  wire.add('to_t', 'f64', Float64Array.from(out.toT));
  wire.add('type', 'u8', Uint8Array.from(out.type));
  return wire.finish({count: out.type.length, complete, types: FLOW_TYPES, columns: wire.columns});
}
