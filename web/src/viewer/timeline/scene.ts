// Everything that a painter needs for one moment, and the places of times and rows in the window, in CSS pixels by
// default.
import type {Viewport} from '../../chart/viewport';
import type {Colours} from '../shell/colours';
import type {Counters} from './counters';
import {AXIS_HEIGHT, rowsWithin, type DisplayRow, type Layout} from './layout';
import type {Store} from './store';
import type {SliceRef} from '../shell/slice_facts';
import type {Tiles} from './tiles';

export const FONT = 'system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';
export const RIGHT_MARGIN = 10;

export interface Scene {
  store: Store;
  layout: Layout;
  colours: Colours;
  tiles: Tiles;
  counters: Counters;
  view: Viewport;
  gutter: number; // width of the labels
  width: number;
  height: number; // of the canvas
  scroll: number;
  ratio: number;
  ticks: readonly [x0: number, x1: number][]; // numbers in the axis, as painted last
}

export const plotWidth = (scene: Pick<Scene, 'width' | 'gutter'>): number =>
  Math.max(scene.width - RIGHT_MARGIN - scene.gutter, 8);
export const topOfRows = (scene: Scene): number => AXIS_HEIGHT + scene.layout.pinnedHeight;
export const timeAt = (scene: Scene, x: number): number =>
  scene.view.t0 + (x - scene.gutter) / plotWidth(scene) * (scene.view.t1 - scene.view.t0);
export const xOf = (scene: Scene, t: number): number =>
  scene.gutter + (t - scene.view.t0) / (scene.view.t1 - scene.view.t0) * plotWidth(scene);

// Rows in the window and their tops in the canvas: pinned ones first.
export function* visibleRows(scene: Scene): Generator<{row: DisplayRow; top: number; pinned: boolean}> {
  for (const row of scene.layout.pinned) yield {row, top: AXIS_HEIGHT + row.y, pinned: true};
  const first = topOfRows(scene);
  for (const row of rowsWithin(scene.layout.rows, scene.scroll, scene.scroll + scene.height - first))
    yield {row, top: first + row.y - scene.scroll, pinned: false};
}

// The row under a point, and which nested row of its lane; null: none.
export function rowAt(scene: Scene, y: number): {row: DisplayRow; top: number; sub: number} | null {
  const first = topOfRows(scene);
  for (const {row, top, pinned} of visibleRows(scene)) {
    if (y < top || y >= top + row.h || !pinned && y < first) continue;
    return {row, top,
      sub: Math.min(Math.floor((y - top) / Math.max(row.h / Math.max(row.rows, 1), 1)), Math.max(row.rows - 1, 0))};
  }
  return null;
}

// Returns the place of a slice in the canvas; null when its lane is not shown at all. It may be outside the visible
// part.
export function boxOf(scene: Scene, slice: Pick<SliceRef, 'lane' | 'row' | 'start' | 'dur'>): {x: number; y: number;
  w: number; h: number} | null
{
  const row = rowOfLane(scene, slice.lane);
  if (!row) return null;
  const pinned = scene.layout.pinned.includes(row);
  const sub = Math.min(slice.row, Math.max(row.rows - 1, 0)), h = row.h / Math.max(row.rows, 1);
  const top = pinned ? AXIS_HEIGHT + row.y : topOfRows(scene) + row.y - scene.scroll;
  const start = slice.start + scene.store.shiftOf(slice.lane), x = xOf(scene, start);
  return {x, w: xOf(scene, start + slice.dur) - x, y: top + sub * h, h};
}

// Returns the row that shows a lane: the lane's row, pinned or not, or that of its collapsed rank.
export function rowOfLane(scene: Scene, lane: number): DisplayRow | null {
  const {layout, store} = scene;
  return layout.pinned.find(row => row.lane === lane) ??
    layout.rows.find(row => row.kind === 'lane' && row.lane === lane) ??
    layout.rows.find(row => row.kind === 'rank' && row.collapsed && row.rank === store.laneRank(lane)) ?? null;
}

// Device pixels from one row of a lane to the next, and what of them is drawn: a seam stays between nested rows.
export const rowPitch = (scene: Scene, row: DisplayRow): number =>
  Math.max(1, Math.round((row.kind === 'rank' ? row.h : row.h / Math.max(row.rows, 1)) * scene.ratio));
export function rowPixels(scene: Scene, row: DisplayRow): number {
  const pitch = rowPitch(scene, row);
  return pitch > 8 * scene.ratio && row.rows > 1 ? pitch - Math.max(1, Math.round(scene.ratio)) : pitch;
}
