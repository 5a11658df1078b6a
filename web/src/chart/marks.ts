// Marks the differences between the cells of a row and the matching cells of another run. A bar along the top means a
// longer cell, along the bottom a shorter one. A frame means another position in the order; a broken frame means that
// the other run lacks the cell. Place and shape carry the meaning: all marks have the ink colour, which contrasts with
// every fill.
import {ALONE, LONGER, MOVED, SHORTER} from '../data/differences';
import {laneRange} from '../data/rows';
import {LANE_BOX} from './layout';
import {halfOf, type Frame, type Scene} from './scene';

const BEYOND = 40; // so far outside a frame ends: its side is not seen
const LEAST_FRAME_PX = 7; // narrower cells have no room for one: an edge on top and bottom then

export function paintMarks(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, index: number): void {
  const {cells, ratio, colours, step} = scene, marks = scene.marks!,
    lane = scene.model.rows[scene.layout.rows[index]!]?.lanes[0];
  if (!lane) return;
  const [begin, end] = laneRange(lane, cells, step, frame.view.t0, frame.view.t1), top = frame.rowTop(index);
  const bar = Math.max(2, Math.round((scene.layout.rowHeight >= 30 ? 4 : 3) * ratio)),
    seam = Math.max(1, Math.round(ratio));
  const left = frame.x - BEYOND * ratio, right = frame.x + frame.width + BEYOND * ratio;
  let last = -Infinity; // of bars narrower than a pixel one is enough
  for (let i = begin; i < end; ++i) {
    const cell = lane.cells[i]!, mark = marks[cell]!;
    if (mark === 0) continue;
    const x0 = Math.max(Math.round(frame.px(cells.start[cell]!)), left),
      x1 = Math.min(Math.round(frame.px(cells.start[cell]! + cells.dur[cell]!)), right);
    const width = Math.max(x1 - x0, 1);
    if (x1 < left || x0 > right || (width === 1 && x0 === last)) continue;
    last = x0;
    const [y, height] = halfOf(cells, cell, top + LANE_BOX[0]![0] * frame.rowHeight, LANE_BOX[0]![1] * frame.rowHeight);
    const level = (at: number, thick: number, style: string): void => {
      context.fillStyle = style;
      context.fillRect(x0, Math.round(at), width, thick);
    };
    if (mark & LONGER) {
      level(y + bar, seam, colours.palette.bg);
      level(y, bar, colours.palette.ink);
    } else if (mark & SHORTER) {
      level(y + height - bar - seam, seam, colours.palette.bg);
      level(y + height - bar, bar, colours.palette.ink);
    }
    if (!(mark & (MOVED | ALONE)) || width < LEAST_FRAME_PX * ratio) continue;
    for (const [style, thick] of [[colours.palette.bg, 3.6], [colours.palette.ink, 1.8]] as const) {
      context.strokeStyle = style;
      context.lineWidth = thick * ratio;
      context.setLineDash(mark & ALONE && style !== colours.palette.bg ? [3 * ratio, 2 * ratio] : []);
      context.strokeRect(x0 + 2 * ratio, Math.round(y) + 2 * ratio, width - 5 * ratio, Math.round(height) - 4 * ratio);
    }
    context.setLineDash([]);
  }
}
