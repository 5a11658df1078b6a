// Slices that have the room to be drawn one by one: rectangles, and what they are called. Device pixels.
//
// A row may be put together from several pictures side by side, and a slice may reach over their seam. Each picture
// draws its part of the rectangle; the text comes after all rectangles, from the picture in which it begins.
import {duration} from '../../format';
import {tintOf} from '../../chart/colours';
import type {SlicesAnswer} from '../shell/api';
import {fileColour} from '../shell/file_colour';
import {FONT, type Scene} from './scene';
import type {Lit, State} from './store';
import type {Light} from '../evidence/staged';
import {cutMiddle, functionFirst} from '../../short_name';
import type {Entry} from './tiles';

// The painted part: the plot, or a strip of it. Texts keep within `texts`. In the window they start at its edge if a
// slice started before it; in a moving strip they stay with their slice.
export interface Frame {
  left: number;
  right: number;
  t0: number;
  t1: number; // times there
  px: (t: number) => number;
  scale: number; // pixels a nanosecond
  texts: {left: number; right: number};
}
// `rough`: lanes that are not drawn at the window's own resolution. `ticks`: the places of numbers in the axis, CSS
// pixels.
export interface Painted {
  lanes: number;
  missing: number;
  rough: number;
  slices: number;
  labels: number;
  ticks: [x0: number, x1: number][];
}
export interface Span {
  a: number;
  b: number;
}

// One row's slices within a span, and where the row is.
export interface RowPart {
  entry: Entry;
  sub: number;
  span: Span;
  top: number;
  height: number;
}

// Width of a text at the font that is set: a few thousand texts a frame make measuring worth remembering.
const widths = new Map<string, number>();
export function widthOf(context: CanvasRenderingContext2D, text: string, size: number): number {
  const key = `${size}|${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}
function fitted(context: CanvasRenderingContext2D, text: string, size: number, room: number): string {
  const shown = cutMiddle(text, 120), width = widthOf(context, shown, size);
  if (width <= room) return shown;
  for (let letters = Math.floor((room / width) * shown.length - 1.2); letters >= 3; --letters) {
    const cut = cutMiddle(shown, letters); // letters are not equally wide
    if (widthOf(context, cut, size) <= room) return cut;
  }
  return '';
}

// Rows do not overlap, so starts and ends are in order: the first of [begin, end) that reaches beyond t.
function firstReaching({start, dur}: SlicesAnswer, begin: number, end: number, t: number): number {
  let low = begin, high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[middle]! + dur[middle]! <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}
const isDim = (lit: Lit | null, {name, dur, microBatch}: SlicesAnswer, i: number): boolean =>
  lit !== null &&
  !(lit.ids.has(name[i]!) && dur[i]! >= (lit.min ?? 0) && dur[i]! <= (lit.max ?? Infinity) &&
    (lit.microBatch === undefined || microBatch[i] === lit.microBatch));

// Of a Python frame: that of its file.
const ownColour = ({colours, store}: Scene, {kind, name, names}: SlicesAnswer, i: number): string | null =>
  colours.python.has(kind[i]!) ? fileColour(names.get(name[i]!) ?? '', store.theme === 'dark') : null;

const DIM = 0.22;
export const PEER = 0.5;
// Returns the brightness of a lane in a scene: 1 for the accused lanes, half for their peers, dim for the others.
export const laneLight = (scene: Light | null,
  lane: number): number => (scene === null || scene.lanes.size === 0 || scene.lanes.has(lane) ? 1
    : scene.peers.has(lane) ? PEER : DIM);
function brightness({lit, scene}: Pick<State, 'lit' | 'scene'>, slices: SlicesAnswer, i: number): number {
  if (isDim(lit, slices, i)) return DIM;
  if (scene === null) return 1;
  if (scene.stretches) return DIM;
  const isLit = (scene.kinds === null || scene.kinds.has(slices.kind[i]!)) &&
    (scene.names === null || scene.names.has(slices.name[i]!)) &&
    (scene.microBatch < 0 || slices.microBatch[i] === scene.microBatch) && slices.start[i]! < scene.t1 &&
    slices.start[i]! + slices.dur[i]! > scene.t0;
  return isLit ? laneLight(scene, slices.lane[i]!) : DIM;
}

// The brightness of pixels that many slices share. It is unknown which of them belong to a scene, except where a lane
// holds cells: those are lit as a whole.
export const poolLight = (scene: Light | null, lane: number, cells: boolean): number =>
  scene !== null && !cells && (scene.stretches || scene.kinds || scene.names) ? Math.min(DIM, laneLight(scene, lane))
    : laneLight(scene, lane);

// The stretches of a scene on a row: the evidence itself, over the dimmed work.
export function paintStretches(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, lane: number, y: number,
  height: number): void
{
  const {colours, ratio, store} = scene, stretches = store.state.scene?.stretches, shift = store.shiftOf(lane),
    edge = Math.max(1, Math.round(2 * ratio));
  if (!stretches) return;
  context.fillStyle = colours.hot;
  let last = -Infinity;
  for (const {lane: own, t0, t1} of stretches.list) {
    if (own !== lane) continue;
    const left = Math.max(Math.round(frame.px(t0 + shift)), frame.left, last),
      right = Math.min(Math.max(Math.round(frame.px(t1 + shift)), left + 1), frame.right);
    if (right <= left) continue;
    last = right;
    context.globalAlpha = 0.34;
    context.fillRect(left, y, right - left, height);
    context.globalAlpha = 1;
    context.fillRect(left, y + height - edge, right - left, edge);
  }
}

// From `left` to `right`, both whole pixels, less the seam to a neighbour.
function rightOf(frame: Frame, ratio: number, left: number, end: number): number {
  const right = Math.round(frame.px(end));
  return right - left > 5 * ratio ? right - Math.max(1, Math.round(ratio)) : right;
}

export function paintRectangles(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, part: RowPart,
  painted: Painted): void
{
  const {colours, ratio, store: {state}} = scene, {entry: {sheet, ranges}, span, top, height} = part, {slices} = sheet;
  const [begin, end] = ranges[part.sub] ?? [0, 0];
  const from = Math.round(frame.px(span.a)), to = Math.round(frame.px(span.b));
  let fill = '';
  for (let i = firstReaching(slices, begin, end, span.a); i < end && slices.start[i]! < span.b; ++i) {
    const dur = slices.dur[i]!, start = slices.start[i]!;
    if (dur < sheet.leastNs && dur > 0) continue;
    const left = Math.round(frame.px(start)), kind = slices.kind[i]!, light = brightness(state, slices, i);
    if (dur === 0) { // an instant is a hairline, whatever the zoom
      ++painted.slices;
      if (light < 1) context.globalAlpha = light;
      context.fillStyle = fill = colours.fill[kind]?.[0] ?? colours.ink;
      context.fillRect(left, top, Math.max(1, Math.round(ratio)), height);
      context.globalAlpha = 1;
      continue;
    }
    const right = rightOf(frame, ratio, left, start + dur);
    if (right <= left && dur * frame.scale < 0.5) continue;
    const x0 = Math.max(left, from), x1 = Math.min(Math.max(right, left + 1), to);
    if (x1 <= x0) continue;
    ++painted.slices;
    if (light < 1) context.globalAlpha = light;
    const colour = ownColour(scene, slices, i) ?? colours.fill[kind]?.[tintOf(slices.chunk[i]!)] ?? colours.mut;
    if (colour !== fill) context.fillStyle = fill = colour;
    // Lower rows have no room for lines.
    const waits = colours.receives.has(kind) && x1 - x0 > 3 * ratio && height >= 12 * ratio;
    if (waits) {
      context.fillStyle = colours.receive;
      fill = '';
    }
    context.fillRect(x0, top, x1 - x0, height);
    if (colours.hatched.has(kind) && x1 - x0 > 6 * ratio) {
      context.fillStyle = colours.weight;
      context.fillRect(x0, top, x1 - x0, height);
      fill = '';
    }
    if (light < 1) context.globalAlpha = 1;
  }
}

// `isFirst`: no picture of the row stands to the left of this one.
export function paintTexts(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, part: RowPart,
  isFirst: boolean, cells: boolean, painted: Painted): void
{
  const {colours, ratio, store: {state}} = scene, {entry: {sheet, ranges}, span, top, height} = part, {slices} = sheet;
  if (height < 11 * ratio) return;
  const [begin, end] = ranges[part.sub] ?? [0, 0], size = (height >= 15 * ratio ? 11.5 : 10) * ratio, pad = 4 * ratio;
  let font = '';
  for (let i = firstReaching(slices, begin, end, span.a); i < end && slices.start[i]! < span.b; ++i) {
    const dur = slices.dur[i]!, start = slices.start[i]!;
    if (dur < sheet.leastNs || dur === 0 || dur * frame.scale < 9 * ratio || !isFirst && start < span.a) continue;
    if (brightness(state, slices, i) <= DIM) continue;
    const kind = slices.kind[i]!, tint = tintOf(slices.chunk[i]!), left = Math.round(frame.px(start));
    // Text begins where the slice does, or at the window's edge when it begins before.
    const from = Math.max(left, frame.texts.left),
      visible = Math.min(rightOf(frame, ratio, left, start + dur), frame.texts.right) - from;
    const bare = cells && slices.microBatch[i]! >= 0 ? String(slices.microBatch[i]) : '', long = duration(dur);
    const number = bare !== '' && visible > 120 * ratio ? `${slices.names.get(slices.name[i]!) ?? ''} ${bare} · ${long}`
      : bare;
    const wanted = `${number ? 600 : 400} ${size}px ${FONT}`;
    if (wanted !== font) context.font = font = wanted;
    context.fillStyle = ownColour(scene, slices, i) ? colours.ink : colours.text[kind]?.[tint] ?? colours.bg;
    const y = top + height / 2 + ratio;
    if (number) {
      const text = visible >= widthOf(context, number, size) + 3 * ratio ? number : bare;
      const wide = widthOf(context, text, size);
      if (visible < wide + 3 * ratio) continue;
      if (colours.hatched.has(kind)) { // lines behind a number would cross it out
        context.fillStyle = colours.fill[kind]![tint]!;
        context.fillRect(from + (visible - wide) / 2 - 2 * ratio, top + 2 * ratio, wide + 4 * ratio,
          height - 4 * ratio);
        context.fillStyle = colours.text[kind]![tint]!;
      }
      context.textAlign = 'center';
      context.fillText(text, from + visible / 2, y);
      context.textAlign = 'left';
    } else {
      const name = functionFirst(slices.names.get(slices.name[i]!) ?? ''), room = visible - 2 * pad;
      if (room < 14 * ratio) continue;
      const shown = fitted(context, name, size, room), x = from + pad;
      if (shown === '') continue;
      context.fillText(shown, x, y);
      if (shown === name) {
        const used = widthOf(context, name, size) + 8 * ratio;
        if (room - used > widthOf(context, long, size)) {
          context.globalAlpha = 0.78;
          context.fillText(long, x + used, y);
          context.globalAlpha = 1;
        }
      }
    }
    ++painted.labels;
  }
}
