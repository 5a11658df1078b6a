// Counter lanes: the range of values of every column, and a line through their means.
import {scaled} from '../../format';
import {isSameColumn, reaches} from './counters';
import type {DisplayRow} from './layout';
import type {Frame, Painted} from './paint_slices';
import {FONT, type Scene} from './scene';

// A strip of a moving picture has no number: it is at the window's edge.
export const isWhole = (frame: Frame): boolean => Number.isFinite(frame.texts.left);
export const LABEL_WIDTH = 72; // CSS pixels at the right that the number may take

export function paintCounter(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, row: DisplayRow, y0: number,
  height: number, painted: Painted): void
{
  const {colours, ratio, store: {home}} = scene, t0 = Math.max(frame.t0, home.t0), t1 = Math.min(frame.t1, home.t1);
  const series = scene.counters.of(row.lane, t0, t1);
  context.fillStyle = colours.soft;
  context.fillRect(frame.left, y0, frame.right - frame.left, height);
  const same = series !== undefined && isSameColumn(series.columnNs, 1 / frame.scale);
  if (!same || !reaches(series, t0, t1)) ++painted.rough;
  if (!series || !Number.isFinite(series.greatest)) return;
  const {columnNs, columns, least, greatest} = series, low = Math.min(least, 0), range = greatest - low || 1,
    bottom = y0 + height;
  const y = (value: number): number => bottom - 1 - (value - low) / range * (height - 2 * ratio);
  // Whole columns at the window's own resolution, a pixel each; a stretched picture until there is one.
  const left = frame.px(series.t0), from = same ? Math.round(left) : left, width = same ? 1 : columnNs * frame.scale;
  const first = Math.max(0, Math.floor((frame.left - from) / width)),
    last = Math.min(columns, Math.ceil((frame.right - from) / width));
  context.fillStyle = colours.acc;
  context.globalAlpha = 0.28;
  context.beginPath();
  for (let i = first; i < last;) {
    if (Number.isNaN(series.max[i]!)) {
      ++i;
      continue;
    }
    context.moveTo(from + i * width, bottom);
    for (; i < last && !Number.isNaN(series.max[i]!); ++i) {
      const top = y(series.max[i]!);
      context.lineTo(from + i * width, top);
      context.lineTo(from + (i + 1) * width, top);
    }
    context.lineTo(from + i * width, bottom);
  }
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = colours.acc;
  context.lineWidth = 1.2 * ratio;
  context.beginPath();
  let open = false;
  for (let i = Math.max(0, first - 1); i < Math.min(columns, last + 1); ++i) { // one more on either side: parts meet
    const value = series.mean[i]!;
    if (Number.isNaN(value)) {
      open = false;
      continue;
    }
    const x = from + (i + 0.5) * width;
    if (open) context.lineTo(x, y(value));
    else context.moveTo(x, y(value));
    open = true;
  }
  context.stroke();
  if (height < 16 * ratio || !isWhole(frame)) return;
  const label = scaled(greatest);
  context.font = `${10.5 * ratio}px ${FONT}`;
  context.textAlign = 'right';
  context.textBaseline = 'top';
  context.fillStyle = colours.bg;
  context.globalAlpha = 0.75;
  context.fillRect(frame.right - context.measureText(label).width - 8 * ratio, y0 + ratio,
    context.measureText(label).width + 8 * ratio, 13 * ratio);
  context.globalAlpha = 1;
  context.fillStyle = colours.mut;
  context.fillText(label, frame.right - 4 * ratio, y0 + 2 * ratio);
}
