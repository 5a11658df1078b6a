// The content of /api/slice about one slice, and the names of slices in other answers.
import type {SlicesAnswer} from './api';

// A slice by where it stands; `slice` is the server's own index, which no address may keep.
export interface SliceRef {
  lane: number;
  slice: number;
  row: number;
  start: number;
  dur: number;
  kind: number;
  name: string;
  nameId: number;
}
export interface Area {
  t0: number;
  t1: number;
  lanes: number[];
}

export interface SliceEnd {
  lane: number;
  slice: number;
  row: number;
  start_ns: number;
  dur_ns: number;
  kind: number;
  name: string;
  name_id: number;
}
export interface Link {
  type: 'message' | 'launch' | 'forward-backward' | 'flow';
  direction: 'in' | 'out';
  rank: number;
  slice: SliceEnd;
}
export interface SliceFacts extends SliceEnd {
  lane_name: string;
  end_ns: number;
  self_ns: number;
  stamp_ns: string;
  rank: number;
  label?: string;
  category?: string;
  step: number;
  stage: number;
  dp: number;
  micro_batch: number;
  chunk: number; // −1: none
  owner: SliceEnd | null;
  parent: SliceEnd | null;
  previous: SliceEnd | null;
  next: SliceEnd | null;
  source: SliceEnd | null; // of a cell: the slice it was read from
  stack: string[];
  links: Link[];
  args: {key: string; value: string}[];
  args_missing?: string; // why there are none
}

// The i-th of slices that were sent one by one. Times of what is drawn are moved with their rank: `shift` takes that
// back.
export const refAt = (found: SlicesAnswer, i: number, shift = 0): SliceRef => ({lane: found.lane[i]!,
  slice: found.slice[i]!, row: found.row[i]!, start: found.start[i]! - shift, dur: found.dur[i]!, kind: found.kind[i]!,
  nameId: found.name[i]!, name: found.names.get(found.name[i]!) ?? ''});

export const refOf = (end: SliceEnd): SliceRef => ({lane: end.lane, slice: end.slice, row: Math.max(end.row, 0),
  start: end.start_ns, dur: end.dur_ns, kind: end.kind, name: end.name, nameId: end.name_id});
