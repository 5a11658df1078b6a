// The request about an area, and the answer for each name.
import {listOf} from '../shell/api';
import type {Store} from './store';
import type {Area} from '../shell/slice_facts';

export interface Total {
  name: string;
  name_id: number;
  kind: number;
  count: number;
  sum_ns: number;
  self_ns: number;
  min_ns: number;
  mean_ns: number;
  median_ns: number;
  p95_ns: number;
  max_ns: number;
}

// Lanes of one rank are asked with its own times; several ranks, moved differently, by the times they were recorded at.
export function windowOf(store: Store, area: Area): {lanes: string | undefined; t0: number; t1: number} {
  const shifts = new Set(area.lanes.map(lane => store.shiftOf(lane))), shift = shifts.size === 1 ? [...shifts][0]! : 0;
  // All lanes are asked for by leaving the list out: of ten thousand it would be longer than a request may be.
  const all = area.lanes.length === store.run.lanes.filter(lane => lane.type !== 'counter').length;
  return {lanes: all ? undefined : listOf(area.lanes), t0: area.t0 - shift, t1: area.t1 - shift};
}
