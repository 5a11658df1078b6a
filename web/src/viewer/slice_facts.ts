// What /api/slice says of one slice.
import type {SliceRef} from './store';

// A slice as answers name it.
export interface SliceEnd { lane: number; slice: number; row: number; start: number; dur: number; kind: number; name: string; name_id: number }
export interface Link extends SliceEnd { type: string; direction: 'in' | 'out' }
export interface SliceFacts extends SliceEnd {
  self: number; rank: number; step?: number; stage?: number; dp?: number; micro_batch?: number; chunk?: number;
  category?: string;
  owner?: SliceEnd | null;
  parent?: SliceEnd | null;
  previous?: SliceEnd | null; next?: SliceEnd | null;
  stack?: string[];
  links?: Link[];
  args?: unknown;
  args_error?: string;
}

export const refOf = (end: SliceEnd): SliceRef =>
  ({lane: end.lane, slice: end.slice, row: end.row, start: end.start, dur: end.dur, kind: end.kind, name: end.name, nameId: end.name_id});
