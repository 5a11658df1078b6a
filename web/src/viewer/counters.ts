// Counter lanes: the range of values of every column, and a line through their means.
import type {Viewport} from '../chart/viewport';
import {scaled} from '../format';
import type {Api} from './api';
import type {DisplayRow} from './layout';
import type {Frame} from './paint_slices';
import {FONT, type Scene} from './scene';
import type {Store} from './store';
import {f64, type Column} from './wire';

interface Series { t0: number; columnNs: number; columns: number; min: Float64Array; max: Float64Array; mean: Float64Array; high: number;
    low: number }
interface Header { columns: Column[] }

const MARGIN = 0.5, MOST_AT_ONCE = 4;

export class Counters {
  private readonly series = new Map<number, Series>();
  private readonly loading = new Set<number>();
  constructor(private readonly api: Api, private readonly store: Store, private readonly ready: () => void) {}

  of(lane: number): Series | undefined { return this.series.get(lane); }
  drop(): void { this.series.clear(); }
  busy(): boolean { return this.loading.size > 0; }

  plan(lanes: readonly number[], view: Viewport, widthPx: number): void {
    const columnNs = (view.t1 - view.t0) / widthPx;
    for (const lane of lanes) {
      if (this.loading.has(lane) || this.loading.size >= MOST_AT_ONCE) continue;
      const at = this.series.get(lane), {home} = this.store;
      const end = at ? at.t0 + at.columns * at.columnNs : 0;
      if (at && Math.abs(at.columnNs / columnNs - 1) < 1e-6 && at.t0 <= Math.max(view.t0, home.t0) + columnNs &&
          end >= Math.min(view.t1, home.t1) - columnNs) continue;
      const span = view.t1 - view.t0, t0 = Math.max(Math.min(home.t0, view.t0), view.t0 - span * MARGIN);
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
    const series: Series = {t0, columnNs, columns, min: f64(wire, 'min'), max: f64(wire, 'max'), mean: f64(wire, 'mean'), high: -Infinity,
        low: Infinity};
    for (let i = 0; i < columns; ++i) {
      if (series.max[i]! > series.high) series.high = series.max[i]!;
      if (series.min[i]! < series.low) series.low = series.min[i]!;
    }
    this.series.set(lane, series);
  }
}

export function paintCounter(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, row: DisplayRow, y0: number,
    height: number): void {
  const {colours, ratio} = scene, series = scene.counters.of(row.lane);
  context.fillStyle = colours.soft;
  context.fillRect(frame.left, y0, frame.right - frame.left, height);
  if (!series || !Number.isFinite(series.high)) return;
  const low = Math.min(series.low, 0), range = series.high - low || 1;
  const y = (value: number): number => y0 + height - 1 - (value - low) / range * (height - 2 * ratio);
  const first = Math.max(0, Math.floor((scene.view.t0 - series.t0) / series.columnNs));
  const last = Math.min(series.columns, Math.ceil((scene.view.t1 - series.t0) / series.columnNs));
  const width = Math.max(1, series.columnNs * frame.scale);
  context.fillStyle = colours.acc;
  context.globalAlpha = 0.28;
  for (let i = first; i < last; ++i) {
    if (Number.isNaN(series.max[i]!)) continue;
    const top = y(series.max[i]!);
    context.fillRect(frame.px(series.t0 + i * series.columnNs), top, width, y0 + height - top);
  }
  context.globalAlpha = 1;
  context.strokeStyle = colours.acc;
  context.lineWidth = 1.2 * ratio;
  context.beginPath();
  let open = false;
  for (let i = first; i < last; ++i) {
    const value = series.mean[i]!;
    if (Number.isNaN(value)) {
      open = false;
      continue;
    }
    const x = frame.px(series.t0 + (i + 0.5) * series.columnNs);
    if (open) context.lineTo(x, y(value));
    else context.moveTo(x, y(value));
    open = true;
  }
  context.stroke();
  if (height < 16 * ratio) return;
  const label = scaled(series.high);
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
