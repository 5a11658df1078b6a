// Draws the overlay of the rows: arrows, the area, marks, outlines, the pointer's line with the clocks' uncertainty
// around it. Sizes are in CSS pixels; the canvas is scaled once.
import {duration, exactMs} from '../../format';
import type {Flow, Flows} from './flows';
import {AXIS_HEIGHT} from './layout';
import {boxOf, FONT, RIGHT_MARGIN, rowOfLane, timeAt, topOfRows, visibleRows, xOf, type Scene} from './scene';
import type {State} from './store';
import type {SliceRef} from '../shell/slice_facts';

export interface Drag {
  kind: 'area' | 'zoom';
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}
export interface Pointed {
  x: number;
  y: number;
  drag: Drag | null;
  hovered: SliceRef | null;
}

type Pen = CanvasRenderingContext2D;

function outline(pen: Pen, scene: Scene, slice: SliceRef, width: number, dash: number[] = []): void {
  const box = boxOf(scene, slice);
  if (!box) return;
  const x0 = Math.max(box.x, scene.gutter - 5), x1 = Math.min(box.x + box.w, scene.width + 5);
  if (x1 < x0 && box.w > 0) return;
  for (const [colour, line, pattern] of [[scene.colours.bg, width + 2, []], [
    scene.colours.ink,
    width,
    dash,
  ]] as const) {
    pen.strokeStyle = colour;
    pen.lineWidth = line;
    pen.setLineDash(pattern as number[]);
    pen.strokeRect(x0 + 0.5, box.y + 0.5, Math.max(x1 - x0 - 1, 2), Math.max(box.h - 1, 1));
  }
  pen.setLineDash([]);
}

function endOf(scene: Scene, end: Flow['from']): {x: number; y: number} | null {
  const box = boxOf(scene, {lane: end.lane, row: end.row, start: end.t, dur: 0});
  return box && {x: box.x, y: box.y + box.h / 2};
}

function arrow(pen: Pen, scene: Scene, flow: Flow, strong: boolean): void {
  const a = endOf(scene, flow.from), b = endOf(scene, flow.to);
  if (!a || !b || Math.max(a.x, b.x) < scene.gutter || Math.min(a.x, b.x) > scene.width) return;
  const head = strong ? 7 : 5, bend = Math.max(Math.min(Math.abs(b.x - a.x) / 2, 160), 14);
  const strokes: [string, number][] = strong ? [[scene.colours.bg, 4], [scene.colours.ink, 1.6]]
    : [[scene.colours.ink, 1]];
  for (const [colour, width] of strokes) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(a.x, a.y);
    pen.bezierCurveTo(a.x + bend, a.y, b.x - bend, b.y, b.x - head + 2, b.y);
    pen.stroke();
  }
  pen.fillStyle = scene.colours.ink;
  pen.beginPath();
  pen.moveTo(b.x, b.y);
  pen.lineTo(b.x - head, b.y - head * 0.55);
  pen.lineTo(b.x - head, b.y + head * 0.55);
  pen.fill();
}

// Everything outside the area is paled, so that its content keeps its colours.
function paintArea(pen: Pen, scene: Scene, t0: number, t1: number, lanes: readonly number[] | null, y0: number,
  y1: number): void
{
  const x0 = Math.max(xOf(scene, t0), scene.gutter), x1 = Math.min(xOf(scene, t1), scene.width - RIGHT_MARGIN);
  if (x1 <= x0) return;
  let top = y0, bottom = y1;
  if (lanes) {
    top = Infinity;
    bottom = -Infinity;
    for (const lane of lanes) {
      const row = rowOfLane(scene, lane);
      if (!row || scene.layout.pinned.includes(row)) continue;
      const y = topOfRows(scene) + row.y - scene.scroll;
      top = Math.min(top, y);
      bottom = Math.max(bottom, y + row.h);
    }
    if (bottom < top) return;
    top = Math.max(top, topOfRows(scene));
  }
  pen.fillStyle = scene.colours.acc;
  pen.globalAlpha = 0.13;
  pen.fillRect(x0, top, x1 - x0, bottom - top);
  pen.globalAlpha = 1;
  pen.strokeStyle = scene.colours.acc;
  pen.lineWidth = 1.5;
  pen.strokeRect(x0, top, x1 - x0, bottom - top);
  tag(pen, scene, (x0 + x1) / 2, duration(t1 - t0), scene.colours.acc);
}

// A small label in the axis.
function tag(pen: Pen, scene: Scene, x: number, text: string, colour: string): void {
  pen.font = `600 11px ${FONT}`;
  const width = pen.measureText(text).width + 10,
    left = Math.min(Math.max(x - width / 2, scene.gutter), scene.width - width - 2);
  // A number of the axis that it would cut goes whole.
  pen.fillStyle = scene.colours.bg;
  for (const [x0, x1] of scene.ticks)
    if (x0 < left + width + 3 && x1 > left - 3) pen.fillRect(x0 - 1, 2, x1 - x0 + 2, 15);
  pen.fillStyle = colour;
  pen.fillRect(left, 1, width, 16);
  pen.fillStyle = scene.colours.bg;
  pen.textAlign = 'left';
  pen.textBaseline = 'middle';
  pen.fillText(text, left + 5, 9.5);
}

function paintMarks(pen: Pen, scene: Scene): void {
  const {marks} = scene.store.state;
  for (const [i, mark] of marks.entries()) {
    const x = xOf(scene, mark.t);
    if (x < scene.gutter || x > scene.width - RIGHT_MARGIN) continue;
    pen.fillStyle = scene.colours.hot;
    pen.fillRect(Math.round(x), AXIS_HEIGHT - 16, 1.5, scene.height);
    const text = mark.text || String(i + 1);
    pen.font = `600 11px ${FONT}`;
    const width = Math.min(pen.measureText(text).width, 140) + 10;
    pen.fillRect(Math.round(x), AXIS_HEIGHT - 15, width, 14);
    pen.fillStyle = scene.colours.bg;
    pen.textAlign = 'left';
    pen.textBaseline = 'middle';
    pen.fillText(text, Math.round(x) + 5, AXIS_HEIGHT - 7.5, 140);
  }
}

// Around the pointer's line: how far each rank's clock may be off there.
function paintUncertainty(pen: Pen, scene: Scene, t: number): void {
  const {ranks} = scene.store.run, x = xOf(scene, t);
  pen.fillStyle = scene.colours.acc;
  pen.globalAlpha = 0.16;
  for (const {row, top} of visibleRows(scene)) {
    if (row.rank < 0 || row.lane < 0) continue;
    const half = ranks[row.rank]!.offset_half_ns, wide = xOf(scene, t + half) - x;
    if (half <= 0 || wide < 0.75) continue;
    const x0 = Math.max(x - wide, scene.gutter), x1 = Math.min(x + wide, scene.width - RIGHT_MARGIN);
    pen.fillRect(x0, top, x1 - x0, row.h);
  }
  pen.globalAlpha = 1;
}

// Returns true when there was anything to draw; `clean`: the canvas is empty already, and may stay so.
export function paintOverlay(pen: Pen, scene: Scene, pointed: Pointed, flows: Flows, clean: boolean): boolean {
  const {ratio, store: {state}} = scene;
  const anything = isPointing(scene, pointed) || movesAlong(state, pointed, flows);
  if (clean && !anything) return false;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, scene.width, scene.height);
  layOver(pen, scene, pointed, flows);
  return anything;
}
const isPointing = (scene: Scene, {drag, x}: Pointed): boolean =>
  drag !== null || (x >= scene.gutter && x <= scene.width - RIGHT_MARGIN);
// Returns true if the overlay has parts at fixed times, which move with the window; the pointer's line stays.
export const movesAlong = (state: State, {drag, hovered}: Pointed, flows: Flows): boolean =>
  !!(drag || state.selected || state.second || state.area || state.marks.length > 0 || hovered ||
    (state.flows && flows.list.length > 0));

// CSS pixels: the pen is scaled.
export function layOver(pen: Pen, scene: Scene, pointed: Pointed, flows: Flows): void {
  const {state} = scene.store;
  pen.save();
  pen.beginPath();
  pen.rect(scene.gutter, topOfRows(scene) - scene.layout.pinnedHeight, scene.width - scene.gutter - RIGHT_MARGIN + 4,
    scene.height);
  pen.clip();
  pen.globalAlpha = 0.55;
  if (state.flows) { for (const flow of flows.list) arrow(pen, scene, flow, false); }
  pen.globalAlpha = 1;
  for (const flow of flows.selected) arrow(pen, scene, flow, true);
  if (pointed.hovered && !same(pointed.hovered, state.selected)) outline(pen, scene, pointed.hovered, 1);
  if (state.second) outline(pen, scene, state.second, 2, [4, 3]);
  if (state.selected) outline(pen, scene, state.selected, 2);
  pen.restore();
  if (state.area) paintArea(pen, scene, state.area.t0, state.area.t1, state.area.lanes, 0, 0);
  paintMarks(pen, scene);
  if (pointed.drag) {
    const {x0, x1, y0, y1} = pointed.drag, [a, b] = [Math.min(x0, x1), Math.max(x0, x1)];
    paintArea(pen, scene, timeAt(scene, a), timeAt(scene, b), null, Math.max(Math.min(y0, y1), AXIS_HEIGHT),
      Math.max(y0, y1));
  } else if (isPointing(scene, pointed)) {
    const t = timeAt(scene, pointed.x);
    paintUncertainty(pen, scene, t);
    pen.fillStyle = scene.colours.ink;
    pen.globalAlpha = 0.4;
    pen.fillRect(Math.round(pointed.x), AXIS_HEIGHT, 1, scene.height);
    pen.globalAlpha = 1;
    const span = scene.view.t1 - scene.view.t0;
    tag(pen, scene, pointed.x, span < 1e7 ? exactMs(Math.round(t)) : duration(t), scene.colours.mut);
  }
}

export const same = (a: SliceRef | null, b: SliceRef | null): boolean =>
  !!a && !!b && a.lane === b.lane && a.slice === b.slice;
