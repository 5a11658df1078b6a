// Finds the content under a point: a slice if one was sent and has the room, else the shares of the pixel's column.
import type {Api} from '../shell/api';
import {rowAt, timeAt, type Scene} from './scene';
import {refAt} from '../shell/slice_facts';
import type {SliceRef} from '../shell/slice_facts';
import type {Entry} from './tiles';

export interface Shares {
  lane: number;
  row: number;
  columnNs: number;
  shares: [kind: number, share: number][];
}
// `microBatch` and `chunk` are of the slice; −1: none.
export interface Hit {
  lane: number;
  row: number;
  t: number;
  slice: SliceRef | null;
  microBatch: number;
  chunk: number;
  shares: Shares | null;
}

// The slice of a row at time t, or within `slack` of it; drawn ones win over specks. −1: none.
function sliceAt(entry: Entry, row: number, t: number, slack: number): number {
  const {slices} = entry.sheet, [begin, end] = entry.ranges[row] ?? [0, 0];
  let low = begin, high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (slices.start[middle]! + slices.dur[middle]! < t - slack) low = middle + 1;
    else high = middle;
  }
  let best = -1, distance = Infinity;
  for (let i = low; i < end && slices.start[i]! <= t + slack && i < low + 64; ++i) {
    const d = t < slices.start[i]! ? slices.start[i]! - t : Math.max(0, t - slices.start[i]! - slices.dur[i]!);
    if (d < distance) {
      best = i;
      distance = d;
    }
  }
  return distance <= slack ? best : -1;
}

export function hitTest(scene: Scene, x: number, y: number): Hit | null {
  const at = x < scene.gutter ? null : rowAt(scene, y);
  if (!at || at.row.lane < 0) return null;
  const {lane} = at.row, t = timeAt(scene, x),
    hit: Hit = {lane, row: at.sub, t, slice: null, microBatch: -1, chunk: -1, shares: null};
  const slack = 2 * (timeAt(scene, 1) - timeAt(scene, 0));
  const entry = scene.tiles.entriesOf(lane).find(({sheet}) =>
    t >= sheet.t0 && t < sheet.t0 + sheet.columns * sheet.columnNs
  );
  if (!entry || at.sub >= entry.rows) return hit;
  const {sheet} = entry, column = Math.floor((t - sheet.t0) / sheet.columnNs), coverage = entry.coverage[at.sub]!;
  const shares = coverage.kinds.map((kind, i): [number, number] => [kind, coverage.shares[i]![column]! / 255])
    .filter(([, share]) => share > 0.002);
  const i = sliceAt(entry, at.sub, t, shares.length > 0 ? slack : slack / 2);
  if (i >= 0) {
    hit.slice = refAt(sheet.slices, i, sheet.shift);
    hit.microBatch = sheet.slices.microBatch[i]!;
    hit.chunk = sheet.slices.chunk[i]!;
  }
  if (!hit.slice && shares.length > 0) hit.shares = {lane, row: at.sub, columnNs: sheet.columnNs, shares};
  return hit;
}

// A slice where only shares were sent: the server knows it. The longest that the pixels touch.
export async function askSlice(api: Api, scene: Scene, hit: Hit): Promise<SliceRef | null> {
  const shift = scene.store.shiftOf(hit.lane), half = 1.5 * (timeAt(scene, 1) - timeAt(scene, 0));
  const found = await api.slices({lanes: hit.lane, t0: hit.t - shift - half, t1: hit.t - shift + half, min_ns: 0,
    limit: 200});
  let best: SliceRef | null = null;
  for (let i = 0; i < found.count; ++i) {
    if (found.row[i] !== hit.row || (best && found.dur[i]! <= best.dur)) continue;
    best = refAt(found, i);
  }
  return best;
}
