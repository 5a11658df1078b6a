// The data of counter lanes: the range of values of every column and their means, fetched for the visible window.
import type {Viewport} from '../../chart/viewport';
import type {Api} from '../shell/api';
import type {Store} from './store';
import {f64, type Column} from '../shell/wire';

// `least` and `greatest` of the whole run: a height means the same wherever one looks, and pictures of stretches fit
// together.
interface Series {
  t0: number;
  columnNs: number;
  columns: number;
  min: Float64Array;
  max: Float64Array;
  mean: Float64Array;
  least: number;
  greatest: number;
}
interface Header {
  columns: Column[];
  least: number;
  greatest: number;
}

const MARGIN = 0.5, SPARE_SHARE = 0.25, MOST_AT_ONCE = 4;
export const isSameColumn = (a: number, b: number): boolean => Math.abs(a / b - 1) < 1e-6;

export class Counters {
  private readonly series = new Map<number, Series>();
  private readonly overview = new Map<number, Series>(); // of the whole run: what others do not reach is drawn from it
  private readonly loading = new Set<number>();
  pictures = 0; // grows when what lanes are drawn from changes
  constructor(private readonly api: Api, private readonly store: Store, private readonly ready: () => void) {}

  // Returns the series of a lane to draw between two times.
  of(lane: number, t0: number, t1: number): Series | undefined {
    const own = this.series.get(lane);
    return own && reaches(own, t0, t1) ? own : this.overview.get(lane) ?? own;
  }
  drop(): void {
    this.series.clear();
    this.overview.clear();
    ++this.pictures;
  }
  busy(): boolean {
    return this.loading.size > 0;
  }

  plan(lanes: readonly number[], view: Viewport, widthPx: number): void {
    const span = view.t1 - view.t0, columnNs = span / widthPx, spare = span * SPARE_SHARE, {home} = this.store;
    for (const lane of lanes) {
      if (this.loading.has(lane) || this.loading.size >= MOST_AT_ONCE) continue;
      const at = this.series.get(lane);
      if (at && isSameColumn(at.columnNs, columnNs) &&
        reaches(at, Math.max(view.t0 - spare, home.t0), Math.min(view.t1 + spare, home.t1)))
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
    const wire = await this.api.wire<Header>('counter', {lane, t0: t0 - shift, t1: t0 - shift + columns * columnNs,
      n: columns});
    const {least, greatest} = wire.header, {home} = this.store;
    const series = {t0, columnNs, columns, min: f64(wire, 'min'), max: f64(wire, 'max'), mean: f64(wire, 'mean'), least,
      greatest};
    this.series.set(lane, series);
    if (reaches(series, home.t0, home.t1)) this.overview.set(lane, series);
    ++this.pictures;
  }
}

// Returns true if a series holds [t0, t1], give or take a column.
export const reaches = ({t0: from, columnNs, columns}: Series, t0: number, t1: number): boolean =>
  from <= t0 + columnNs && from + columns * columnNs >= t1 - columnNs;
