// Everything that is drawn for one moment, and the places of times and rows in the canvas.
import type {Bubbles} from '../data/bubbles';
import type {Cells} from '../data/cells';
import {FORWARD} from '../data/kind';
import type {Part} from '../data/report';
import type {Ghosts, RunModel} from '../data/rows';
import type {ChartColours} from './colours';
import {AXIS_HEIGHT, type Layout} from './layout';
import type {Viewport} from './viewport';

export interface Scene {
  cells: Cells;
  model: RunModel;
  parts: Part[];
  layout: Layout;
  view: Viewport;
  step: number | null;
  zero: number; // time that the axis calls 0
  colours: ChartColours;
  selected: number;
  hovered: number;
  scroll: number; // CSS pixels
  width: number;
  height: number;
  ratio: number;
  ghosts: Ghosts | null; // what stands thin under the rows: theory, or another step
  bubbles: Bubbles | null; // waiting with its causes
  marks: Uint8Array | null; // by cell: how it differs from its like
  lit: Uint8Array | null; // by cell: 2 accused, 1 its like, 0 neither; null: no finding is shown
  phased: number; // stages of an order that has seven phases; 0: another order
  theoryEnds: number[]; // where the steps shown could have ended
  labelLength: number; // digits of the largest micro-batch
  labelDur: Float64Array; // by labelClass: duration of a short cell; numbers of a class all show, or none
  rowTitle: (index: number) => [strong: string, weak: string]; // of the layout's row
}

export const RIGHT_MARGIN = 8;
export const FONT = 'system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';

// The painted part of the rows: the plot, or a strip of it.
export interface Frame {
  x: number;
  width: number;
  view: Viewport; // its window on time
  texts: {left: number; right: number}; // between these a text is whole
  top: number; // below the axis
  px: (t: number) => number;
  rowTop: (index: number) => number;
  rowHeight: number;
}

export function makeFrame(scene: Scene): Frame {
  const {layout, ratio, view} = scene;
  const x = Math.round(layout.labelWidth * ratio);
  const width = Math.max(1, Math.round((scene.width - RIGHT_MARGIN) * ratio) - x);
  const scale = width / (view.t1 - view.t0);
  return {
    x,
    width,
    view,
    texts: {left: x, right: x + width},
    top: Math.round(AXIS_HEIGHT * ratio),
    px: t => x + (t - view.t0) * scale,
    rowTop: i => Math.round((AXIS_HEIGHT + i * layout.pitch - scene.scroll) * ratio),
    rowHeight: Math.round(layout.rowHeight * ratio),
  };
}

// The stretch of a row that is left to a cell: the forward of an overlapped pair has the upper half, its other half the
// lower.
export function halfOf(cells: Cells, cell: number, top: number, height: number): [top: number, height: number] {
  if (cells.pair[cell]! < 0) return [top, height];
  return [cells.kind[cell] === FORWARD ? top : top + height / 2, height / 2];
}
