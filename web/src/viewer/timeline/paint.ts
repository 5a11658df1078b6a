// Draws the timeline. A pure function of the scene; everything here is in device pixels.
import {t} from '../../i18n/i18n';
import {isApart} from '../evidence/staged';
import type {Rank, Step} from '../shell/api';
import {exactMs} from '../../format';
import {timeTicks} from '../../chart/ticks';
import {paintCounter} from './paint_counter';
import {paintHang, paintParting} from './hang';
import {AXIS_HEIGHT, type DisplayRow} from './layout';
import {paintRectangles, paintStretches, paintTexts, poolLight, widthOf, type Frame, type Painted, type RowPart,
  type Span} from './paint_slices';
import {FONT, plotWidth, rowPitch, rowPixels, topOfRows, visibleRows, type Scene} from './scene';
import type {Entry} from './tiles';

export function makeFrame(scene: Scene): Frame {
  const {ratio, view} = scene, left = Math.round(scene.gutter * ratio), width = Math.round(plotWidth(scene) * ratio);
  const scale = width / (view.t1 - view.t0);
  return {left, right: left + width, t0: view.t0, t1: view.t1, scale, px: t => left + (t - view.t0) * scale,
    texts: {left, right: left + width}};
}

// Returns which picture shows which stretch of the window: the newest wherever it reaches, older ones around it.
function sources(entries: readonly Entry[], a: number, b: number): [Entry, Span][] {
  const out: [Entry, Span][] = [];
  let open: Span[] = [{a, b}];
  for (const entry of entries) {
    const s0 = entry.sheet.t0, s1 = s0 + entry.sheet.columns * entry.sheet.columnNs, next: Span[] = [];
    for (const span of open) {
      const from = Math.max(span.a, s0), to = Math.min(span.b, s1);
      if (to <= from) {
        next.push(span);
        continue;
      }
      out.push([entry, {a: from, b: to}]);
      if (span.a < from) next.push({a: span.a, b: from});
      if (to < span.b) next.push({a: to, b: span.b});
    }
    open = next;
    if (open.length === 0) break;
  }
  return out;
}

function paintLane(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, row: DisplayRow, top: number,
  painted: Painted): void
{
  const {colours, tiles, ratio, store} = scene, lane = store.run.lanes[row.lane]!;
  const pitch = rowPitch(scene, row), height = rowPixels(scene, row), y0 = Math.round(top * ratio),
    shift = store.shiftOf(lane.id);
  const from = Math.max(Math.round(frame.px(shift)), frame.left),
    to = Math.min(Math.round(frame.px(store.run.span_ns + shift)), frame.right);
  ++painted.lanes;
  if (lane.type === 'counter') return paintCounter(context, scene, frame, row, y0, pitch, painted);
  const entries = tiles.entriesOf(lane.id);
  if (entries.length === 0) ++painted.missing;
  const pictures = sources(entries, frame.t0, frame.t1).sort((a, b) => a[1].a - b[1].a), {home} = store;
  const isSame = (entry: Entry): boolean => Math.abs(entry.sheet.columnNs * frame.scale - 1) < 1e-6;
  let wanted = Math.min(frame.t1, home.t1) - Math.max(frame.t0, home.t0);
  for (const [entry, {a, b}] of pictures) if (isSame(entry)) wanted -= b - a;
  if (wanted * frame.scale > 1.5) ++painted.rough;
  const hatched = lane.type === 'cells' && pitch >= 12 * ratio;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  for (let sub = 0; sub < row.rows; ++sub) {
    const y = y0 + sub * pitch, parts: RowPart[] = [];
    context.fillStyle = hatched ? colours.hatch : sub === 0 ? colours.idle : colours.soft;
    if (to > from) context.fillRect(from, y, to - from, height);
    for (const [entry, span] of pictures) {
      const {sheet} = entry;
      tiles.touch(sheet);
      if (sub >= entry.rows) continue;
      const s0 = (span.a - sheet.t0) / sheet.columnNs, s1 = (span.b - sheet.t0) / sheet.columnNs;
      // Whole columns at the window's own resolution: what is drawn is then what was fetched, pixel by pixel.
      const same = isSame(entry);
      const sx = same ? Math.round(s0) : s0, sw = same ? Math.round(s1) - sx : s1 - s0;
      const dx = frame.px(span.a), dw = same ? sw : frame.px(span.b) - dx;
      if (sw <= 0 || dw <= 0) continue;
      context.globalAlpha = store.state.lit ? 0.25
        : poolLight(store.state.scene, lane.id, lane.type === 'cells');
      context.drawImage(sheet.canvas, sx, entry.top + sub * entry.rowPx, sw, entry.rowPx, same ? Math.round(dx) : dx, y,
        dw, height);
      context.globalAlpha = 1;
      const part = {entry, sub, span, top: y, height};
      paintRectangles(context, scene, frame, part, painted);
      parts.push(part);
    }
    parts.forEach((part, i) => paintTexts(context, scene, frame, part, i === 0, lane.type === 'cells', painted));
    if (sub === 0) {
      paintStretches(context, scene, frame, lane.id, y, height);
      paintHang(context, scene, frame, lane.id, y, height);
    }
  }
}

// `placed` is given where numbers stand, CSS pixels.
export function paintAxis(context: CanvasRenderingContext2D, scene: Scene, frame: Frame,
  placed: Painted['ticks']): void
{
  const {ratio, colours, view, store} = scene, span = view.t1 - view.t0, width = (frame.right - frame.left) / ratio;
  context.fillStyle = colours.bg;
  context.fillRect(0, 0, scene.width * ratio, AXIS_HEIGHT * ratio);
  context.font = `${11 * ratio}px ${FONT}`;
  context.textBaseline = 'alphabetic';
  // Deep in a long run the numbers count from a round time nearby, which is printed at the left.
  const deep = span < 1e-4 * Math.max(Math.abs(view.t0), Math.abs(view.t1));
  const round = 10 ** Math.ceil(Math.log10(Math.max(span, 1)) + 1),
    zero = deep ? Math.floor(view.t0 / round) * round : 0;
  const ticks = timeTicks(view.t0, view.t1, zero, width / (deep ? 110 : 92));
  context.textAlign = 'center';
  for (const value of ticks.values) {
    const x = Math.round(frame.px(value));
    context.fillStyle = colours.line;
    context.fillRect(x, 17 * ratio, Math.max(1, Math.round(ratio)), 5 * ratio);
    const label = (deep ? '+' : '') + ticks.label(value), half = widthOf(context, label, 11 * ratio) / 2;
    if (x + half > scene.width * ratio) continue;
    context.fillStyle = colours.mut;
    const middle = Math.max(x, frame.left + half);
    context.fillText(label, middle, 13 * ratio);
    placed.push([(middle - half) / ratio, (middle + half) / ratio]);
  }
  if (deep) {
    context.textAlign = 'right';
    context.fillStyle = colours.mut;
    context.fillText(exactMs(zero), frame.left - 10 * ratio, 13 * ratio);
  }
  // Steps: a band each, its number where there is room.
  const {steps, whose} = stepsShown(store);
  context.textAlign = 'left';
  let last = -Infinity;
  for (let i = firstStep(steps, view.t0); i < steps.length && steps[i]!.start_ns < view.t1; ++i) {
    const step = steps[i]!, x0 = Math.round(frame.px(step.start_ns));
    // Ranks need not end a step together.
    const x1 = Math.round(frame.px(Math.min(step.end_ns, steps[i + 1]?.start_ns ?? Infinity)));
    if (x1 - last < 2 * ratio) continue;
    const left = Math.max(x0, frame.left), right = Math.min(x1, frame.right);
    if (right <= left) continue;
    context.fillStyle = colours.soft;
    context.fillRect(left, 20 * ratio, right - left - (x1 <= frame.right ? Math.round(ratio) : 0), 13 * ratio);
    if (x0 >= frame.left) {
      context.fillStyle = colours.idle2;
      context.fillRect(x0, 20 * ratio, Math.max(1, Math.round(ratio)), 13 * ratio);
    }
    last = x1;
    const label = whose + t('step', step.number), room = right - left - 8 * ratio;
    const shown = context.measureText(label).width <= room ? label : String(step.number);
    if (context.measureText(shown).width > room) continue;
    context.fillStyle = colours.mut;
    context.fillText(shown, left + 5 * ratio, 30 * ratio);
  }
}

let shownSteps: {own: Rank['steps']; steps: readonly Step[]} = {own: [], steps: []};
// Returns the steps of the run; where clocks are apart those of the selected slice's rank, else of the first one.
function stepsShown(store: Scene['store']): {steps: readonly Step[]; whose: string} {
  const {run, state: {selected}} = store, {rank, steps: own} = run.ranks[selected ? store.laneRank(selected.lane) : 0]!;
  if (!isApart(run) || !run.steps[0]?.mean_ns) return {steps: run.steps, whose: ''};
  if (shownSteps.own !== own)
    shownSteps = {own, steps: (own ?? []).map(([number, start_ns, end_ns]) => ({number, start_ns, end_ns}))};
  return {steps: shownSteps.steps, whose: `${t('row.rank', rank)} · `};
}

function firstStep(steps: readonly Step[], t: number): number {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle]!.end_ns <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Lines down the rows where steps begin, as long as they are not closer than a few pixels.
function paintStepLines(context: CanvasRenderingContext2D, scene: Scene, frame: Frame): void {
  const {store: {run}, ratio} = scene, {steps} = run;
  if (isApart(run) && steps[0]?.mean_ns) return; // no moment begins a step on all ranks
  context.fillStyle = scene.colours.mut;
  context.globalAlpha = 0.45;
  let last = -Infinity;
  for (let i = firstStep(steps, frame.t0); i < steps.length && steps[i]!.start_ns <= frame.t1; ++i) {
    const x = Math.round(frame.px(steps[i]!.start_ns));
    if (x < frame.left || x - last < 24 * ratio) continue;
    context.fillRect(x, AXIS_HEIGHT * ratio, Math.max(1, Math.round(ratio)), scene.height * ratio);
    last = x;
  }
  context.globalAlpha = 1;
}

// Paints the part below the axis, on paper that has the ground's colour.
export function paintRows(context: CanvasRenderingContext2D, scene: Scene, frame: Frame): Painted {
  const {ratio, colours, layout} = scene;
  const painted: Painted = {lanes: 0, missing: 0, rough: 0, slices: 0, labels: 0, ticks: []};
  const bands: [boolean, number, number][] = [[true, AXIS_HEIGHT, topOfRows(scene)], [
    false,
    topOfRows(scene),
    scene.height,
  ]];
  for (const [pinned, y0, y1] of bands) {
    if (y1 <= y0) continue;
    context.save();
    context.beginPath();
    context.rect(frame.left, Math.round(y0 * ratio), frame.right - frame.left, Math.round((y1 - y0) * ratio));
    context.clip();
    for (const one of visibleRows(scene)) {
      if (one.pinned !== pinned) continue;
      if (one.row.lane >= 0) paintLane(context, scene, frame, one.row, one.top, painted);
      else if (one.row.kind !== 'lane') {
        context.fillStyle = colours.line;
        context.fillRect(frame.left, Math.round((one.top + one.row.h / 2) * ratio), frame.right - frame.left,
          Math.max(1, Math.round(ratio / 2)));
      }
    }
    context.restore();
  }
  if (layout.pinnedHeight > 0) {
    context.fillStyle = colours.idle2;
    context.fillRect(0, Math.round((topOfRows(scene) - 1) * ratio), scene.width * ratio,
      Math.max(1, Math.round(ratio)));
  }
  paintStepLines(context, scene, frame);
  paintParting(context, scene, frame);
  return painted;
}

export function paint(context: CanvasRenderingContext2D, scene: Scene): Painted {
  const {ratio, colours} = scene, frame = makeFrame(scene);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.imageSmoothingEnabled = false;
  context.fillStyle = colours.bg;
  context.fillRect(0, 0, scene.width * ratio, scene.height * ratio);
  const painted = paintRows(context, scene, frame);
  paintAxis(context, scene, frame, painted.ticks);
  return painted;
}
