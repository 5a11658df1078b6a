// Draws the chart. A pure function of the scene; everything here is in device pixels.
import {linksFrom, linksTo} from '../data/cells';
import {FORWARD_BACKWARD, Group, KIND_GROUP, KIND_LANE, LANE_COUNT} from '../data/kind';
import {bubbleBoxes} from './bubbles';
import {CellBatch} from './cell_batch';
import {tintOf} from './colours';
import {isSend, otherEnd} from '../data/messages';
import {phasesOf} from '../data/phases';
import {laneRange, type Lane} from '../data/rows';
import {phaseStretches} from '../data/seven_phases';
import {AXIS_HEIGHT, ghostBox, LANE_BOX} from './layout';
import {paintMarks} from './marks';
import {makeRaster, rasterLane, shadeBins, type Raster} from './raster';
import {FONT, halfOf, makeFrame, type Frame, type Scene} from './scene';
import {SumPainter} from './sums';
import {timeTicks, type Ticks} from './ticks';

// The painter is kept between frames so that painting allocates nothing of size.
export interface Painter {
  context: CanvasRenderingContext2D;
  atlas: HTMLCanvasElement;
  image: ImageData | null;
  raster: Raster;
  rasterWidth: number;
  batch: CellBatch;
  sums: SumPainter;
}

export function makePainter(canvas: HTMLCanvasElement): Painter {
  return {context: canvas.getContext('2d')!, atlas: document.createElement('canvas'), image: null,
    raster: makeRaster(1), rasterWidth: 1, batch: new CellBatch(), sums: new SumPainter()};
}

// Where a cell stands, CSS pixels from the canvas' corner; null when its row is not shown.
export function cellBox(scene: Scene, cell: number): {x: number; y: number; w: number; h: number} | null {
  return boxIn(scene, makeFrame(scene), cell);
}

function boxIn(scene: Scene, frame: Frame, cell: number): {x: number; y: number; w: number; h: number} | null {
  const index = scene.layout.rows.indexOf(scene.model.rowOfPart[scene.cells.part[cell]!]!);
  if (index < 0) return null;
  const [top, height] = halfOf(scene.cells, cell, ...LANE_BOX[KIND_LANE[scene.cells.kind[cell]!]!]!);
  const x0 = frame.px(scene.cells.start[cell]!), x1 = frame.px(scene.cells.start[cell]! + scene.cells.dur[cell]!);
  return {x: x0 / scene.ratio, w: (x1 - x0) / scene.ratio,
    y: (frame.rowTop(index) + top * frame.rowHeight) / scene.ratio, h: height * frame.rowHeight / scene.ratio};
}

const ticksOf = ({view, zero, ratio}: Scene, frame: Frame): Ticks =>
  timeTicks(view.t0, view.t1, zero, frame.width / ratio / 92);

// With the lines that go down from it, as far as there is canvas.
export function paintAxis(context: CanvasRenderingContext2D, scene: Scene, frame: Frame): void {
  const {ratio, colours: {palette}} = scene, ticks = ticksOf(scene, frame);
  context.font = `${11 * ratio}px ${FONT}`;
  context.textAlign = 'center';
  context.textBaseline = 'alphabetic';
  for (const value of ticks.values) {
    const x = Math.round(frame.px(value));
    context.fillStyle = palette.line;
    context.fillRect(x, frame.top - 7 * ratio, Math.max(1, Math.round(ratio)), scene.height * ratio);
    context.fillStyle = palette.mut;
    const label = ticks.label(value), half = context.measureText(label).width / 2;
    if (x + half <= scene.width * ratio) context.fillText(label, x, 15 * ratio);
  }
}

function paintLabels(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, index: number): void {
  const {ratio, colours: {palette}, layout} = scene;
  const [strong, weak] = scene.rowTitle(index);
  const top = frame.rowTop(index), two = layout.rowHeight >= 34, limit = frame.x - 8 * ratio;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  const size = layout.rowHeight >= 80 ? 17 : two ? 13.5 : layout.rowHeight >= 20 ? 12 : 11;
  context.fillStyle = palette.ink;
  context.font = `600 ${size * ratio}px ${FONT}`;
  context.fillText(strong, 0, top + frame.rowHeight * (two && weak ? 0.3 : 0.54), limit);
  const used = context.measureText(strong).width;
  context.fillStyle = palette.mut;
  context.font = `${(layout.rowHeight >= 80 ? 14 : 11.5) * ratio}px ${FONT}`;
  if (two) context.fillText(weak, 0, top + frame.rowHeight * 0.7, limit);
  else context.fillText(weak, used + 7 * ratio, top + frame.rowHeight * 0.54, Math.max(1, limit - used - 7 * ratio));
}

// A row of many ranks has no cells of its own.
const NO_LANE: Lane = {cells: new Uint32Array(0), maxEnd: new Float64Array(0), ordered: true};
const NO_LANES: readonly Lane[] = Array.from({length: LANE_COUNT}, () => NO_LANE);

// The result for one lane of one row: rectangles, and true if its line of the atlas has anything.
interface Strip {
  used: boolean;
  big: number[];
}

// All visible lanes into one atlas, a pixel row each, and one upload: drawing from a canvas
// between two writes to it would copy it every time.
function rasterRows(painter: Painter, scene: Scene, frame: Frame, first: number, last: number): Strip[] {
  const {atlas, raster} = painter, {ghosts} = scene;
  const height = Math.max(1, (last - first) * (LANE_COUNT + (ghosts ? 1 : 0)));
  if (atlas.width !== frame.width || atlas.height < height) {
    atlas.width = frame.width;
    atlas.height = height;
    painter.image = null;
  }
  // Lines that are not drawn keep their old content.
  const pen = atlas.getContext('2d')!, image = painter.image ??= pen.createImageData(frame.width, atlas.height);
  const pixels = new Uint32Array(image.data.buffer), strips: Strip[] = [];
  for (let index = first; index < last; ++index)
    for (const lane of scene.model.rows[scene.layout.rows[index]!]?.lanes ?? NO_LANES) {
      rasterLane(raster, lane, scene.cells, scene.step, frame.view, frame.width, 3 * scene.ratio);
      if (raster.used) shadeBins(raster, frame.width, scene.colours.group, pixels, strips.length * frame.width);
      strips.push({used: raster.used, big: raster.big.slice()});
    }
  if (ghosts) {
    for (let index = first; index < last; ++index) {
      rasterLane(raster, ghosts.lanes[scene.layout.rows[index]!] ?? NO_LANE, ghosts.cells, scene.step, frame.view,
        frame.width, 3 * scene.ratio);
      if (raster.used) shadeBins(raster, frame.width, scene.colours.group, pixels, strips.length * frame.width);
      strips.push({used: raster.used, big: raster.big.slice()});
    }
  }
  const begin = strips.findIndex(strip => strip.used);
  if (begin >= 0) pen.putImageData(image, 0, 0, 0, begin, frame.width, strips.length - begin);
  return strips;
}

// The ground of every row and the causes of its waiting, then lane over lane: cells by style, not by row.
function paintRows(painter: Painter, scene: Scene, frame: Frame, first: number, last: number, strips: Strip[]): void {
  const {context, atlas, batch} = painter, causes: number[][] = [];
  context.fillStyle = scene.colours.idle;
  for (let index = first; index < last; ++index)
    context.fillRect(frame.x, frame.rowTop(index), frame.width, frame.rowHeight);
  painter.sums.paint(context, scene, frame, first, last);
  for (let index = first; index < last && scene.bubbles; ++index)
    if (scene.layout.rows[index]! >= 0) {
      for (const {part, x0, x1} of bubbleBoxes(scene.bubbles, scene.layout.rows[index]!, scene.step, frame.view,
        frame.width, scene.ratio))
        (causes[part] ??= []).push(frame.x + Math.round(x0), frame.rowTop(index),
          Math.max(1, Math.round(x1) - Math.round(x0)));
    }
  causes.forEach((boxes, part) => {
    context.fillStyle = scene.colours.cause[part]!;
    for (let i = 0; i < boxes.length; i += 3)
      context.fillRect(boxes[i]!, boxes[i + 1]!, boxes[i + 2]!, frame.rowHeight);
  });
  for (const lane of [0, 2, 1, 3]) {
    const [share, part] = LANE_BOX[lane]!;
    for (let index = first; index < last; ++index) {
      const line = (index - first) * LANE_COUNT + lane, strip = strips[line]!, top = frame.rowTop(index);
      const y = Math.round(top + share * frame.rowHeight),
        height = top + frame.rowHeight - y - (share + part < 0.999 ? 1 : 0);
      if (strip.used) context.drawImage(atlas, 0, line, frame.width, 1, frame.x, y, frame.width, height);
      for (const cell of strip.big) batch.add(scene, frame, cell, ...halfOf(scene.cells, cell, y, height));
    }
    batch.draw(context, scene, FONT);
  }
}

// The cells that a finding accuses are emphasised: everything is veiled, its peers half as much, and the accused cells
// are drawn again.
const VEIL = 0.72, HALF_VEIL = 0.5;
function paintLit(painter: Painter, scene: Scene, frame: Frame, first: number, last: number): void {
  const {context, batch} = painter, {cells, lit, ratio} = scene;
  const again = (level: number): void => {
    for (let index = first; index < last; ++index)
      scene.model.rows[scene.layout.rows[index]!]?.lanes.forEach((lane, k) => {
        const [begin, end] = laneRange(lane, cells, scene.step, frame.view.t0, frame.view.t1),
          [share, part] = LANE_BOX[k]!,
          top = frame.rowTop(index);
        const y = Math.round(top + share * frame.rowHeight),
          height = top + frame.rowHeight - y - (share + part < 0.999 ? 1 : 0);
        for (let i = begin; i < end; ++i)
          if (lit![lane.cells[i]!] === level)
            batch.add(scene, frame, lane.cells[i]!, ...halfOf(cells, lane.cells[i]!, y, height));
      });
    batch.draw(context, scene, FONT);
  };
  const veil = (alpha: number): void => {
    context.fillStyle = scene.colours.palette.bg;
    context.globalAlpha = alpha;
    for (let index = first; index < last; ++index)
      context.fillRect(frame.x - 4 * ratio, frame.rowTop(index), frame.width + 8 * ratio, frame.rowHeight);
    context.globalAlpha = 1;
  };
  veil(1 - (1 - VEIL) / (1 - HALF_VEIL));
  again(1);
  veil(HALF_VEIL);
  again(2);
}

const GHOST_ALPHA = 0.38;

// Theory under its row, half as strong as the cells it stands for and far thinner.
function paintGhosts(painter: Painter, scene: Scene, frame: Frame, index: number, strip: Strip,
  atlasRow: number): void
{
  const {context, atlas} = painter, {cells} = scene.ghosts!, {ratio, colours} = scene;
  const [gap, size] = ghostBox(scene.layout);
  const y = frame.rowTop(index) + frame.rowHeight + Math.round(gap * ratio),
    height = Math.max(1, Math.round(size * ratio));
  context.globalAlpha = GHOST_ALPHA;
  if (strip.used) context.drawImage(atlas, 0, atlasRow, frame.width, 1, frame.x, y, frame.width, height);
  strip.big.forEach((cell, i) => {
    // The halves of an overlapped pair are in one place: one above the other.
    const same = (other: number | undefined): boolean =>
      other !== undefined && cells.start[other] === cells.start[cell] && cells.dur[other] === cells.dur[cell];
    const [upper, lower] = [same(strip.big[i + 1]), same(strip.big[i - 1])];
    const x0 = Math.round(frame.px(cells.start[cell]!)),
      x1 = Math.round(frame.px(cells.start[cell]! + cells.dur[cell]!));
    const seam = x1 - x0 > 5 * ratio ? Math.round(ratio) : 0, left = Math.max(x0, frame.x - 4),
      right = Math.min(x1 - seam, frame.x + frame.width + 4);
    const half = upper || lower || cells.kind[cell] === FORWARD_BACKWARD ? height / 2 : height;
    context.fillStyle = colours.fill[KIND_GROUP[cells.kind[cell]!]!]![tintOf(cells.chunk[cell]!)]!;
    context.fillRect(left, y + (lower ? height - half : 0), Math.max(right - left, 1), half);
    if (cells.kind[cell] !== FORWARD_BACKWARD) return;
    context.fillStyle = colours.fill[Group.Backward]![tintOf(cells.chunk[cell]!)]!;
    context.fillRect(left, y + height / 2, Math.max(right - left, 1), height / 2);
  });
  context.globalAlpha = 1;
}

function paintTheoryEnds(context: CanvasRenderingContext2D, scene: Scene, frame: Frame): void {
  const {ratio} = scene;
  context.strokeStyle = scene.colours.palette.acc;
  context.lineWidth = 1.5 * ratio;
  context.setLineDash([4 * ratio, 3 * ratio]);
  context.beginPath();
  for (const end of scene.theoryEnds) {
    const x = Math.round(frame.px(end)) + 0.5;
    context.moveTo(x, frame.top - 6 * ratio);
    context.lineTo(x, scene.height * ratio);
  }
  context.stroke();
  context.setLineDash([]);
}

// Colours of DualPipeV's phases, cold to warm and out: they can be distinguished on both grounds.
export const PHASE_COLOURS = ['#4e79a7', '#5fb3ae', '#59a14f', '#e0b93b', '#f28e2b', '#e15759', '#b07aa1'];

// Notches at the top of a row where its rank's phases change; of an order with seven of them a strip in their colours
// at its foot.
function paintPhases(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, index: number): void {
  const row = scene.model.rows[scene.layout.rows[index]!];
  if (!row || scene.step === null || scene.layout.rowHeight < 17) return;
  const part = scene.parts[row.part]!;
  if (scene.phased > 0 && part.stage >= 0) {
    const high = Math.max(2, Math.round(3 * scene.ratio)), bottom = frame.rowTop(index) + frame.rowHeight;
    for (const {phase, start, end} of phaseStretches(row, scene.cells, scene.step, scene.phased, part.stage)) {
      context.fillStyle = PHASE_COLOURS[phase]!;
      const x = Math.max(frame.x, frame.px(start)), to = Math.min(frame.x + frame.width, frame.px(end));
      if (to > x) context.fillRect(x, bottom - high, Math.max(1, to - x), high);
    }
    return;
  }
  const phases = phasesOf(row, scene.cells, scene.step);
  if (!phases) return;
  const {ratio, colours: {palette}} = scene, size = (scene.layout.rowHeight >= 30 ? 4.5 : 3.5) * ratio,
    top = frame.rowTop(index);
  context.lineWidth = 0.8 * ratio;
  context.fillStyle = palette.ink;
  context.strokeStyle = palette.bg;
  for (const time of [phases.steady, phases.coolDown]) {
    const x = frame.px(time);
    context.beginPath();
    context.moveTo(x - size, top);
    context.lineTo(x + size, top);
    context.lineTo(x, top + size * 1.24);
    context.closePath();
    context.fill();
    context.stroke();
  }
}

function outline(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, cell: number, width: number): void {
  const box = boxIn(scene, frame, cell);
  if (!box) return;
  const {ratio, colours: {palette}} = scene;
  for (const [colour, line] of [[palette.bg, width + 2], [palette.ink, width]] as const) {
    context.strokeStyle = colour;
    context.lineWidth = line * ratio;
    context.strokeRect(Math.round(box.x * ratio), Math.round(box.y * ratio), Math.max(Math.round(box.w * ratio) - 1, 1),
      Math.round(box.h * ratio));
  }
}

export interface Arrow {
  from: number;
  to: number;
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

// From where a cell ends to where the other begins; CSS pixels. null: one of them has no row here.
function arrowOf(scene: Scene, frame: Frame, from: number, to: number): Arrow | null {
  const a = boxIn(scene, frame, from), b = boxIn(scene, frame, to);
  return a && b && {from, to, x0: a.x + a.w, y0: a.y + a.h / 2, x1: b.x, y1: b.y + b.h / 2};
}

function paintArrow(context: CanvasRenderingContext2D, scene: Scene, arrow: Arrow): void {
  const r = scene.ratio, [x0, y0, x1, y1] = [arrow.x0 * r, arrow.y0 * r, arrow.x1 * r, arrow.y1 * r];
  const bend = Math.max(Math.abs(x1 - x0) / 2, 14 * r);
  for (const [colour, line] of [[scene.colours.palette.bg, 4], [scene.colours.palette.ink, 1.6]] as const) {
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = line * r;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5 * r, y1);
    context.stroke();
  }
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 7 * r, y1 - 4 * r);
  context.lineTo(x1 - 7 * r, y1 + 4 * r);
  context.fill();
}

const MOST_ARROWS = 24;

// Returns arrows to the dependencies of a cell and to the cells that wait for it; for a message to its other end.
export function arrowsOf(scene: Scene, cell: number, frame = makeFrame(scene)): Arrow[] {
  const {cells} = scene, other = otherEnd(scene.model, cells, scene.parts, cell);
  const ends: [from: number, to: number][] = [
    ...linksTo(cells, cell).slice(0, MOST_ARROWS).map((from): [number, number] => [from, cell]),
    ...linksFrom(cells, cell).slice(0, MOST_ARROWS).map((to): [number, number] => [cell, to]),
  ];
  if (other >= 0) ends.push(isSend(cells.kind[cell]!) ? [cell, other] : [other, cell]);
  return ends.flatMap(([from, to]) => arrowOf(scene, frame, from, to) ?? []);
}
function paintLinks(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, cell: number, alpha: number): void {
  context.globalAlpha = alpha;
  for (const arrow of arrowsOf(scene, cell, frame)) paintArrow(context, scene, arrow);
  context.globalAlpha = 1;
}

// The rows that are in sight: [first, last) of the layout's.
function rowsInSight({layout, scroll, height}: Scene): [number, number] {
  return [
    Math.max(0, Math.floor(scroll / layout.pitch)),
    Math.min(layout.rows.length, Math.ceil((scroll + height - AXIS_HEIGHT) / layout.pitch)),
  ];
}

// Everything in the rows between the left and the right edge of `frame`.
function paintPlot(painter: Painter, scene: Scene, frame: Frame): void {
  const {context} = painter, [first, last] = rowsInSight(scene);
  if (painter.rasterWidth !== frame.width) {
    painter.raster = makeRaster(frame.width);
    painter.rasterWidth = frame.width;
  }
  const strips = rasterRows(painter, scene, frame, first, last);
  paintRows(painter, scene, frame, first, last, strips);
  const ghostStrips = (last - first) * LANE_COUNT;
  for (let i = first; i < last && scene.ghosts; ++i)
    paintGhosts(painter, scene, frame, i, strips[ghostStrips + i - first]!, ghostStrips + i - first);
  if (scene.lit) paintLit(painter, scene, frame, first, last);
  for (let i = first; i < last && scene.marks; ++i) paintMarks(context, scene, frame, i);
  for (let i = first; i < last; ++i) paintPhases(context, scene, frame, i);
  if (scene.theoryEnds.length > 0) paintTheoryEnds(context, scene, frame);
  if (scene.hovered >= 0 && scene.hovered !== scene.selected) {
    paintLinks(context, scene, frame, scene.hovered, 0.75);
    outline(context, scene, frame, scene.hovered, 1);
  }
  if (scene.selected >= 0) {
    paintLinks(context, scene, frame, scene.selected, 1);
    outline(context, scene, frame, scene.selected, 2);
  }
}

export function paint(painter: Painter, scene: Scene): void {
  const {context} = painter, {ratio} = scene, frame = makeFrame(scene), [first, last] = rowsInSight(scene);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.imageSmoothingEnabled = false;
  context.fillStyle = scene.colours.palette.bg;
  context.fillRect(0, 0, scene.width * ratio, scene.height * ratio);
  paintAxis(context, scene, frame);
  context.save();
  context.beginPath();
  context.rect(0, frame.top, scene.width * ratio, scene.height * ratio);
  context.clip();
  for (let i = first; i < last; ++i) paintLabels(context, scene, frame, i);
  context.beginPath();
  context.rect(frame.x, frame.top, frame.width, scene.height * ratio);
  context.clip();
  paintPlot(painter, scene, frame);
  context.restore();
}

// Paints `width` pixels of the plot from `left` on, onto a separate canvas. `left` counts from the plot's left edge and
// may be outside. The canvas's corner is where the plot's would be below the axis.
export function paintStrip(painter: Painter, scene: Scene, left: number, width: number): void {
  const {context} = painter, {ratio, view, colours: {palette}} = scene, whole = makeFrame(scene),
    scale = (view.t1 - view.t0) / whole.width;
  const frame: Frame = {...whole, x: whole.x + left, width,
    view: {t0: view.t0 + left * scale, t1: view.t0 + (left + width) * scale},
    texts: {left: -Infinity, right: Infinity}};
  // In the window's own pixels, so that hatches meet.
  context.setTransform(1, 0, 0, 1, -frame.x, -frame.top);
  context.imageSmoothingEnabled = false;
  context.fillStyle = palette.bg;
  context.fillRect(frame.x, frame.top, width, scene.height * ratio);
  context.fillStyle = palette.line;
  for (const value of ticksOf(scene, whole).between(frame.view.t0, frame.view.t1))
    context.fillRect(Math.round(frame.px(value)), frame.top, Math.max(1, Math.round(ratio)), scene.height * ratio);
  paintPlot(painter, scene, frame);
}

// Distinct cells that a draw of every row at `view` represents: the same code that paints decides.
export function countDrawn(scene: Scene): number {
  const drawn = new Uint8Array(scene.cells.count);
  let count = 0;
  const frame = makeFrame(scene), raster = makeRaster(frame.width);
  for (const index of scene.layout.rows)
    for (const lane of scene.model.rows[index]?.lanes ?? [])
      rasterLane(raster, lane, scene.cells, scene.step, scene.view, frame.width, 3 * scene.ratio, cell => {
        if (!drawn[cell]) ++count;
        drawn[cell] = 1;
      });
  return count;
}
