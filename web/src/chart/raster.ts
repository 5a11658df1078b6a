// Draws one lane with an area-true level of detail.
//
// Cells at least `bigPx` wide become rectangles of their own. Narrower ones are poured into bins, one per device pixel
// and colour group, each cell into exactly the part of the pixel that it covers. A pixel is then painted in the mean
// colour of its groups, with its covered share as opacity over the waiting texture. The texture shows through where the
// lane was not busy. Overlap within a lane counts once; the halves of an overlapped forward and backward share their
// pixels.
import type {Cells} from '../data/cells';
import {GROUP_COUNT, KIND_GROUP} from '../data/kind';
import {laneRange, type Lane} from '../data/rows';
import type {Viewport} from './viewport';

export interface Raster {
  bins: Float32Array; // [group][pixel] covered share
  used: boolean; // any bin is above zero
  groups: number; // bit by group: those with a bin above zero
  big: number[]; // cells to draw as rectangles, in order
}

export function makeRaster(widthPx: number): Raster {
  return {bins: new Float32Array(GROUP_COUNT * widthPx), used: false, groups: 0, big: []};
}

// `seen` is called for every cell that is represented in the result.
export function rasterLane(raster: Raster, lane: Lane, cells: Cells, step: number | null, view: Viewport,
  widthPx: number, bigPx: number, seen?: (cell: number) => void): void
{
  const {bins, big} = raster;
  for (let group = 0; group < GROUP_COUNT; ++group)
    if (raster.groups >> group & 1) bins.fill(0, group * widthPx, (group + 1) * widthPx);
  raster.used = false;
  raster.groups = 0;
  big.length = 0;
  const scale = widthPx / (view.t1 - view.t0);
  const [begin, end] = laneRange(lane, cells, step, view.t0, view.t1);
  const {cells: order} = lane;
  let covered = -Infinity; // in pixels: everything left of it is spoken for
  for (let i = begin; i < end; ++i) {
    const cell = order[i]!;
    const x0 = (cells.start[cell]! - view.t0) * scale;
    const x1 = x0 + cells.dur[cell]! * scale;
    if (x1 < 0 || x0 > widthPx) continue;
    seen?.(cell);
    if (x1 - x0 >= bigPx || x1 === x0) { // an instant is a hairline, whatever the zoom
      big.push(cell);
      if (x1 > covered) covered = x1;
      continue;
    }
    const other = cells.pair[cell]!;
    if (other >= 0 && other < cell) continue; // poured with its other half
    let from = Math.max(x0, covered, 0);
    const to = Math.min(x1, widthPx);
    if (to <= from) continue;
    covered = to;
    raster.used = true;
    const group = KIND_GROUP[cells.kind[cell]!]!, group2 = other < 0 ? group : KIND_GROUP[cells.kind[other]!]!;
    raster.groups |= 1 << group | 1 << group2;
    const base = group * widthPx, base2 = group2 * widthPx;
    for (let pixel = Math.floor(from); from < to; ++pixel) {
      const edge = Math.min(pixel + 1, to);
      bins[base + pixel]! += (edge - from) / 2;
      bins[base2 + pixel]! += (edge - from) / 2;
      from = edge;
    }
  }
}

// Pixels of `widthPx` that a lane covers at `view`, bins and rectangles together: tests compare it
// with busy time. All steps.
export function coverage(lane: Lane, cells: Cells, view: Viewport, widthPx: number): number {
  const raster = makeRaster(widthPx), scale = widthPx / (view.t1 - view.t0);
  rasterLane(raster, lane, cells, null, view, widthPx, 3);
  let sum = raster.used ? raster.bins.reduce((a, b) => a + b, 0) : 0;
  for (const cell of raster.big) {
    const x0 = (cells.start[cell]! - view.t0) * scale;
    sum += Math.max(0, Math.min(x0 + cells.dur[cell]! * scale, widthPx) - Math.max(x0, 0));
  }
  return sum;
}

// Converts bins to pixels, 0xAABBGGRR. `colours` are 0xBBGGRR by group. O(groups · width).
export function shadeBins(raster: Raster, widthPx: number, colours: Uint32Array, out: Uint32Array, at: number): void {
  const {bins} = raster,
    groups = Array.from({length: GROUP_COUNT}, (_, group) => group).filter(group => raster.groups >> group & 1);
  for (let x = 0; x < widthPx; ++x) {
    let sum = 0, r = 0, g = 0, b = 0;
    for (const group of groups) {
      const share = bins[group * widthPx + x]!;
      if (share === 0) continue;
      const colour = colours[group]!;
      sum += share;
      r += share * (colour & 255);
      g += share * (colour >> 8 & 255);
      b += share * (colour >> 16 & 255);
    }
    if (sum === 0) {
      out[at + x] = 0;
      continue;
    }
    const alpha = Math.round(Math.min(sum, 1) * 255);
    out[at + x] = (alpha << 24 | Math.round(b / sum) << 16 | Math.round(g / sum) << 8 | Math.round(r / sum)) >>> 0;
  }
}
