// Counter lanes: the range of values of every column, and a line through their means.
import type {Viewport} from '../chart/viewport';
import {scaled} from '../format';
import type {Api} from './api';
import type {DisplayRow} from './layout';
import type {Frame, Painted} from './paint_slices';
import {FONT, type Scene} from './scene';
import type {Store} from './store';
import {f64, type Column} from './wire';

// `least` and `greatest` of the whole run: a height means the same wherever one looks, and pictures of stretches fit together.
interface Series { t0: number; columnNs: number; columns: number; min: Float64Array; max: Float64Array; mean: Float64Array;
    least: number; greatest: number }
interface Header { columns: Column[]; least: number; greatest: number }

const MARGIN = 0.5, SPARE_SHARE = 0.25, MOST_AT_ONCE = 4;
const isSameColumn = (a: number, b: number): boolean => Math.abs(a / b - 1) < 1e-6;

export class Counters {
  private readonly series = new Map<number, Series>();
  private readonly overview = new Map<number, Series>();  // of the whole run: what others do not reach is drawn from it
  private readonly loading = new Set<number>();
  pictures = 0;  // grows when what lanes are drawn from changes
  constructor(private readonly api: Api, private readonly store: Store, private readonly ready: () => void) {}

  // What a lane is drawn from between two times.
  of(lane: number, t0: number, t1: number): Series | undefined {
    const own = this.series.get(lane);
    return own && reaches(own, t0, t1) ? own : this.overview.get(lane) ?? own;
  }
  drop(): void {
    this.series.clear();
    this.overview.clear();
    ++this.pictures;
  }
  busy(): boolean { return this.loading.size > 0; }

  plan(lanes: readonly number[], view: Viewport, widthPx: number): void {
    const span = view.t1 - view.t0, columnNs = span / widthPx, spare = span * SPARE_SHARE, {home} = this.store;
    for (const lane of lanes) {
      if (this.loading.has(lane) || this.loading.size >= MOST_AT_ONCE) continue;
      const at = this.series.get(lane);
      if (at && isSameColumn(at.columnNs, columnNs) && reaches(at, Math.max(view.t0 - spare, home.t0), Math.min(view.t1 + spare, home.t1)))
        continue;
      const t0 = Math.max(Math.min(home.t0, view.t0), view.t0 - span * MARGIN);
      const t1 = Math.min(Math.max(home.t1, view.t1), view.t1 + span * MARGIN);
      const columns = Math.max(1, Math.min(Math.round((t1 - t0) / columnNs), 12000));
      this.loading.add(lane);
      this.fetch(lane, t0, columnNs, columns).catch(() => undefined).finally(() => {
        this.loading.delete(lane);
        this.ready();
      });
    }
  }

  private async fetch(lane: number, t0: number, columnNs: number, columns: number): Promise<void> {
    const shift = this.store.shiftOf(lane);
    const wire = await this.api.wire<Header>('counter', {lane, t0: t0 - shift, t1: t0 - shift + columns * columnNs, n: columns});
    const {least, greatest} = wire.header, {home} = this.store;
    const series = {t0, columnNs, columns, min: f64(wire, 'min'), max: f64(wire, 'max'), mean: f64(wire, 'mean'), least, greatest};
    this.series.set(lane, series);
    if (reaches(series, home.t0, home.t1)) this.overview.set(lane, series);
    ++this.pictures;
  }
}

// Whether a series holds [t0, t1], give or take a column.
const reaches = ({t0: from, columnNs, columns}: Series, t0: number, t1: number): boolean =>
  from <= t0 + columnNs && from + columns * columnNs >= t1 - columnNs;

// A part of what moves along bears no number: it stands at the window's edge.
export const isWhole = (frame: Frame): boolean => Number.isFinite(frame.texts.left);
export const LABEL_WIDTH = 72;  // CSS pixels at the right that the number may take

export function paintCounter(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, row: DisplayRow, y0: number,
    height: number, painted: Painted): void {
  const {colours, ratio, store: {home}} = scene, t0 = Math.max(frame.t0, home.t0), t1 = Math.min(frame.t1, home.t1);
  const series = scene.counters.of(row.lane, t0, t1);
  context.fillStyle = colours.soft;
  context.fillRect(frame.left, y0, frame.right - frame.left, height);
  const same = series !== undefined && Math.abs(series.columnNs * frame.scale - 1) < 1e-6;
  if (!same || !reaches(series, t0, t1)) ++painted.rough;
  if (!series || !Number.isFinite(series.greatest)) return;
  const {columnNs, columns, least, greatest} = series, low = Math.min(least, 0), range = greatest - low || 1, bottom = y0 + height;
  const y = (value: number): number => bottom - 1 - (value - low) / range * (height - 2 * ratio);
  // Whole columns at the window's own resolution, a pixel each; a stretched picture until there is one.
  const left = frame.px(series.t0), from = same ? Math.round(left) : left, width = same ? 1 : columnNs * frame.scale;
  const first = Math.max(0, Math.floor((frame.left - from) / width)), last = Math.min(columns, Math.ceil((frame.right - from) / width));
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
  for (let i = Math.max(0, first - 1); i < Math.min(columns, last + 1); ++i) {  // one more on either side: parts meet
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
  context.fillRect(frame.right - context.measureText(label).width - 8 * ratio, y0 + ratio, context.measureText(label).width + 8 * ratio,
      13 * ratio);
  context.globalAlpha = 1;
  context.fillStyle = colours.mut;
  context.fillText(label, frame.right - 4 * ratio, y0 + 2 * ratio);
}
