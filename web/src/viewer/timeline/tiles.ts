// Pictures of lanes, fetched and kept.
//
//   view ──▶ plan ──▶ one request at a time ──▶ shares and slices ──▶ shading, a few ms a frame ──▶ Sheet
//                     of all lanes that lack                                                          │
//                     a sharp picture                          paint: newest sheets first, stretched ◀┘
//
// A sheet spans the window and half of it to either side at the window's own resolution, so moving needs no new one for
// a while. Then one more, as wide as the missing part, is added at its end. While a sharper one is on its way, the
// present ones are drawn stretched: nothing is ever blank for long.
import type {Viewport} from '../../chart/viewport';
import {ApiError, listOf, type Api, type SlicesAnswer, type TilesAnswer} from '../shell/api';
import {BIG_COLUMNS, residual, shadeRow, type Coverage} from './shade';
import type {Store} from './store';

export interface LaneWant {
  lane: number;
  rows: number;
  rowPx: number;
} // rows shown, device pixels of each

export interface Sheet {
  t0: number;
  columnNs: number;
  columns: number; // on the axis as drawn: shifts by hand are in it
  canvas: HTMLCanvasElement;
  slices: SlicesAnswer;
  leastNs: number; // slices that last this long are rectangles, the rest is in the picture
  shift: number;
  used: number; // number of the last frame that drew it
  overview: boolean;
}
export interface Entry {
  sheet: Sheet;
  top: number;
  rows: number;
  rowPx: number; // lines of the sheet's canvas
  ranges: [begin: number, end: number][]; // of sheet.slices, by row
  coverage: Coverage[]; // by row, as the server said: tests and the pointer ask
}

interface Request {
  controller: AbortController;
  t0: number;
  t1: number;
  columnNs: number;
  lanes: Map<number, LaneWant>;
}

const MARGIN = 0.5, SPARE_SHARE = 0.12, SIDE_BY_SIDE = 6, MOST_LINES = 4096, MOST_COLUMNS = 12000, MOST_LANES = 256;
const SLICE_LIMIT = 24000, KEEP_PIXELS = 45e5, BAND_PIXELS = 3e5, FRAME_MS = 6, MOVING_MS = 3, RETRY_MS = 2000,
  SPARE = 2;
const FIRST_MS = 80; // of shading while there is nothing to look at

export class Tiles {
  colours: Uint32Array = new Uint32Array(256);
  error = '';
  private readonly entries = new Map<number, Entry[]>(); // by lane, the newest first
  private readonly sheets = new Set<Sheet>();
  private readonly jobs: Generator<void>[] = [];
  private request: Request | null = null;
  pictures = 0; // grows when what lanes are drawn from changes
  private held: Stretch & {span: number; spare: number; pictures: number} | null = null;
  private frame = 0;
  private retryAt = 0;
  private readonly spare: HTMLCanvasElement[] = []; // of freed sheets
  private band: ImageData | null = null; // pixels on their way to a sheet
  private epoch = 0; // shifts, theme: what was fetched before is of no use

  constructor(private readonly api: Api, private readonly store: Store, private readonly ready: () => void) {}

  entriesOf(lane: number): readonly Entry[] {
    return this.entries.get(lane) ?? [];
  }
  // Counts the pixels of all sheets that are kept.
  pixelsHeld(): number {
    let pixels = 0;
    for (const sheet of this.sheets) pixels += sheet.canvas.width * sheet.canvas.height;
    return pixels;
  }
  busy(): boolean {
    return this.request !== null || this.jobs.length > 0;
  }
  empty(): boolean {
    return this.entries.size === 0;
  }

  // Lanes whose rank moved, or everything when colours changed.
  drop(lanes?: ReadonlySet<number>): void {
    this.request?.controller.abort();
    this.request = null;
    this.jobs.length = 0;
    ++this.epoch;
    ++this.pictures;
    for (const lane of [...this.entries.keys()]) if (!lanes || lanes.has(lane)) this.entries.delete(lane);
    this.sweep();
  }

  // Paints call this for every sheet they draw.
  touch(sheet: Sheet): void {
    sheet.used = this.frame;
  }

  // Shades for a few milliseconds, fewer where frames are to follow each other; true when more is to do.
  work(moving = false): boolean {
    ++this.frame;
    const until = performance.now() + (this.empty() ? FIRST_MS : moving ? MOVING_MS : FRAME_MS);
    while (this.jobs.length > 0 && performance.now() < until) if (this.jobs[0]!.next().done) this.jobs.shift();
    return this.jobs.length > 0;
  }

  // Returns true if the lanes of the last plan() lack nothing of this window either, without a look at each.
  holds(view: Viewport): boolean {
    const {held} = this;
    return held !== null && held.pictures === this.pictures && isSameColumn(held.span, view.t1 - view.t0) &&
      Math.max(...this.lacking(held, view, held.spare)) <= 0;
  }
  // Asks for what the window lacks. Called after every frame; does nothing when nothing is missing.
  plan(wants: readonly LaneWant[], view: Viewport, widthPx: number): void {
    if (widthPx < 8 || wants.length === 0) return;
    const columnNs = (view.t1 - view.t0) / widthPx;
    if (this.request) {
      if (isUseful(this.request, view, columnNs)) return;
      this.request.controller.abort();
      this.request = null;
    }
    if (performance.now() < this.retryAt) return;
    const {home} = this.store, span = view.t1 - view.t0,
      margin = Math.max(0, Math.min(MARGIN, (MOST_COLUMNS / widthPx - 1) / 2));
    const missing = new Map<number, LaneWant>(), spare = span * Math.min(SPARE_SHARE, margin / 2);
    let shift = NaN, have: Stretch | null = null;
    const same = (a: Stretch | null, b: Stretch | null): boolean => a?.t0 === b?.t0 && a?.t1 === b?.t1;
    const all: Stretch = {t0: -Infinity, t1: Infinity};
    this.held = null;
    for (const want of wants) {
      const covered = this.covered(want, view, columnNs);
      if (covered && Math.max(...this.lacking(covered, view, spare)) <= columnNs) {
        all.t0 = Math.max(all.t0, covered.t0);
        all.t1 = Math.min(all.t1, covered.t1);
        continue;
      }
      const own = this.store.shiftOf(want.lane);
      if (missing.size === 0) [shift, have] = [own, covered];
      if (own === shift && same(covered, have) && missing.size < MOST_LANES) missing.set(want.lane, want);
    }
    if (missing.size === 0) {
      this.held = {...all, span, spare, pictures: this.pictures};
      return;
    }
    let t0 = Math.max(Math.min(home.t0, view.t0), view.t0 - span * margin);
    let t1 = Math.min(Math.max(home.t1, view.t1), view.t1 + span * margin);
    if (have) { // only the missing part at one end, column by column next to the present part
      const [before, after] = this.lacking(have, view, spare);
      // As wide each time as long as that will do: canvases are used again.
      const step = Math.round(widthPx * MARGIN) * columnNs, {t0: from, t1: to} = have;
      if (after >= before) [t0, t1] = [to, Math.min(Math.max(to + step, view.t1 + spare), Math.max(home.t1, view.t1))];
      else [t0, t1] = [Math.max(Math.min(from - step, view.t0 - spare), Math.min(home.t0, view.t0)), from];
      if (t1 === from) t0 = from - Math.ceil((from - t0) / columnNs) * columnNs;
    }
    const columns = Math.max(1, Math.round((t1 - t0) / columnNs));
    const request: Request = {controller: new AbortController(), t0, t1: t0 + columns * columnNs, columnNs,
      lanes: missing};
    this.request = request;
    this.fetch(request, columns, shift).catch((error: unknown) => this.failed(request, error));
  }

  private failed(request: Request, error: unknown): void {
    if (this.request === request) this.request = null;
    if (request.controller.signal.aborted) return;
    this.error = error instanceof ApiError ? `${error.message} ${error.hint}`.trim() : String(error);
    this.retryAt = performance.now() + RETRY_MS;
    setTimeout(this.ready, RETRY_MS + 20);
    this.store.change({}); // the header says it
  }

  // The stretch around the window, or a part of it, of which a lane has pictures at its resolution. null: it has none.
  private covered(want: LaneWant, view: Viewport, columnNs: number): Stretch | null {
    let found: Stretch | null = null;
    const fitting = (this.entries.get(want.lane) ?? []).filter(({sheet, rows, rowPx}) =>
      rows >= want.rows && rowPx === want.rowPx && isSameColumn(sheet.columnNs, columnNs)
    ).map(({sheet}) => stretchOf(sheet));
    for (const one of fitting.sort((a, b) => a.t0 - b.t0)) {
      if (found && one.t0 <= found.t1 + columnNs / 2) found = {t0: found.t0, t1: Math.max(found.t1, one.t1)};
      else if (!found || found.t1 <= view.t0) found = one;
    }
    return found && found.t0 < view.t1 && found.t1 > view.t0 ? found : null;
  }
  // Returns the part of the window that it lacks with something to spare: before it and after it; nothing where that is
  // below 0.
  private lacking({t0, t1}: Stretch, view: Viewport, spare: number): [before: number, after: number] {
    const {home} = this.store;
    return [
      t0 - Math.max(view.t0 - spare, Math.min(home.t0, view.t0)),
      Math.min(view.t1 + spare, Math.max(home.t1, view.t1)) - t1,
    ];
  }

  private async fetch(request: Request, columns: number, shift: number): Promise<void> {
    const {lanes, t0, t1, columnNs, controller: {signal}} = request, epoch = this.epoch;
    const window = {lanes: listOf([...lanes.keys()]), t0: t0 - shift, t1: t1 - shift};
    // Where few slices are expected all of them come, instants and specks too.
    const {run} = this.store;
    let expected = 0;
    for (const id of lanes.keys()) {
      const lane = run.lanes[id]!, share = (t1 - t0) / Math.max(lane.end_ns - lane.start_ns, t1 - t0, 1);
      expected += lane.slices * share;
    }
    const asked = expected <= SLICE_LIMIT / 2 ? 0 : columnNs * BIG_COLUMNS;
    const [tiles, slices] = await Promise.all([
      this.api.wire<TilesAnswer['header']>('tiles', {...window, n: columns}, signal),
      this.api.slices({...window, min_ns: Math.floor(asked), limit: SLICE_LIMIT}, signal),
    ]);
    if (epoch !== this.epoch) return;
    if (this.error) {
      this.error = '';
      this.store.change({});
    }
    const leastNs = Math.max(slices.min_ns, columnNs * BIG_COLUMNS);
    if (shift !== 0) { for (let i = 0; i < slices.start.length; ++i) slices.start[i]! += shift; }
    this.jobs.push(this.shade(request, tiles, slices, leastNs, shift, columns));
    if (this.empty()) this.work();
    this.ready();
  }

  private *shade(request: Request, tiles: TilesAnswer, slices: SlicesAnswer, leastNs: number, shift: number,
    columns: number): Generator<void>
  {
    const {home} = this.store;
    const overview = request.t0 <= home.t0 && request.t1 >= home.t1;
    const ranges = rangesOf(slices);
    const byLane = new Map<number, TilesAnswer['header']['rows']>();
    for (const row of tiles.header.rows) {
      const list = byLane.get(row.lane);
      if (list) list.push(row);
      else byLane.set(row.lane, [row]);
    }
    let lines = 0, batch: LaneWant[] = [];
    const finished: [number, Entry][] = [];
    const wants = [...request.lanes.values()];
    for (let i = 0; i <= wants.length; ++i) {
      const want = wants[i];
      if (want && (batch.length === 0 || lines + want.rows * want.rowPx <= MOST_LINES)) {
        batch.push(want);
        lines += want.rows * want.rowPx;
        continue;
      }
      if (batch.length === 0) break;
      const canvas = this.canvasOf(columns, Math.max(lines, 1)),
        pen = canvas.getContext('2d', {willReadFrequently: true})!;
      const sheet: Sheet = {t0: request.t0, columnNs: request.columnNs, columns, canvas, slices, leastNs, shift,
        used: this.frame, overview};
      // Rows are shaded into a band of lines, and bands are put: a call a row costs more than its pixels.
      const bandLines = Math.max(Math.floor(BAND_PIXELS / columns), ...batch.map(one => one.rowPx));
      if (this.band?.width !== columns || this.band.height !== bandLines)
        this.band = pen.createImageData(columns, bandLines);
      const {band} = this, pixels = new Uint32Array(band.data.buffer);
      pixels.fill(0);
      let top = 0, bandTop = 0;
      for (const {lane, rows, rowPx} of batch) {
        const entry: Entry = {sheet, top, rows, rowPx, ranges: [], coverage: []};
        const found = byLane.get(lane) ?? [];
        for (let row = 0; row < rows; ++row) {
          const shares = found.find(r => r.row === row)?.kinds ?? [];
          const coverage: Coverage = {kinds: shares.map(k => k.kind), shares: shares.map(k =>
            new Uint8Array(tiles.buffer, tiles.base + k.offset, columns)
          )};
          const range = ranges.get(lane * 256 + row) ?? [0, 0];
          entry.coverage.push(coverage);
          entry.ranges.push(range);
          const line = top + row * rowPx;
          if (line + rowPx - bandTop > bandLines) {
            pen.putImageData(band, 0, bandTop);
            pixels.fill(0);
            bandTop = line;
          }
          if (shares.length === 0) continue;
          shadeRow(residual(coverage, slices, range[0], range[1], leastNs, request.t0, request.columnNs), columns,
            rowPx, this.colours, pixels.subarray((line - bandTop) * columns));
          yield;
        }
        finished.push([lane, entry]);
        top += rows * rowPx;
      }
      pen.putImageData(band, 0, bandTop, 0, 0, columns, top - bandTop);
      this.sheets.add(sheet);
      batch = want ? [want] : [];
      lines = want ? want.rows * want.rowPx : 0;
    }
    for (const [lane, entry] of finished) {
      entry.sheet.used = this.frame; // shading took frames: what is new is not what was drawn longest ago
      this.add(lane, entry);
    }
    ++this.pictures;
    if (this.request === request) this.request = null;
    this.sweep();
    this.ready();
  }

  // The newest, those next to it, the one of another resolution before them, and the whole run stay.
  private add(lane: number, entry: Entry): void {
    const old = this.entries.get(lane) ?? [], {t0, t1} = stretchOf(entry.sheet);
    const isBeside = ({sheet, rows, rowPx}: Entry): boolean =>
      isSameColumn(sheet.columnNs, entry.sheet.columnNs) && rows >= entry.rows &&
      rowPx === entry.rowPx &&
      (stretchOf(sheet).t1 <= t0 + sheet.columnNs / 2 || stretchOf(sheet).t0 >= t1 - sheet.columnNs / 2);
    const before = old.find(e => !isBeside(e)), kept = [entry, ...old.filter(isBeside).slice(0, SIDE_BY_SIDE)];
    if (before) kept.push(before);
    const overview = old.find(e => e.sheet.overview);
    if (overview && !kept.some(e => e.sheet.overview)) kept.push(overview);
    this.entries.set(lane, kept);
  }

  // Forgets sheets that no lane has, and beyond a limit those that were not drawn for longest.
  private sweep(): void {
    const held = new Set<Sheet>();
    for (const list of this.entries.values()) for (const entry of list) held.add(entry.sheet);
    for (const sheet of [...this.sheets]) if (!held.has(sheet)) this.free(sheet);
    let pixels = this.pixelsHeld() + this.spare.reduce((sum, one) => sum + one.width * one.height, 0);
    for (const sheet of [...this.sheets].sort((a, b) => a.used - b.used)) {
      if (pixels <= KEEP_PIXELS || sheet.used >= this.frame - 2) break;
      pixels -= sheet.canvas.width * sheet.canvas.height;
      for (const [lane, list] of [...this.entries]) {
        const left = list.filter(entry => entry.sheet !== sheet);
        if (left.length === 0) this.entries.delete(lane);
        else if (left.length < list.length) this.entries.set(lane, left);
      }
      this.free(sheet);
    }
  }
  private free(sheet: Sheet): void {
    this.sheets.delete(sheet);
    const {canvas} = sheet, spare = this.spare[0];
    if (this.spare.length < SPARE && (!spare || (spare.width === canvas.width && spare.height === canvas.height)))
      this.spare.push(canvas);
    else canvas.width = canvas.height = 0; // pixels go now, not with the next collection
  }
  // A canvas of this size, without anything on it: one that is done with where there is one.
  private canvasOf(width: number, height: number): HTMLCanvasElement {
    const at = this.spare.findIndex(one => one.width === width && one.height === height);
    if (at >= 0) {
      const [canvas] = this.spare.splice(at, 1);
      canvas!.getContext('2d')!.clearRect(0, 0, width, height);
      return canvas!;
    }
    for (const one of this.spare.splice(0)) one.width = one.height = 0;
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    return canvas;
  }
}

interface Stretch {
  t0: number;
  t1: number;
}
const stretchOf = ({t0, columns, columnNs}: Sheet): Stretch => ({t0, t1: t0 + columns * columnNs});
const isSameColumn = (a: number, b: number): boolean => Math.abs(a / b - 1) < 1e-6;

// Returns true if an answer on its way will do for this window: of its place or next to it, and not much coarser or
// finer.
function isUseful(request: Request, view: Viewport, columnNs: number): boolean {
  const ratio = request.columnNs / columnNs, near = (view.t1 - view.t0) * MARGIN;
  return ratio > 0.2 && ratio < 5 && request.t0 < view.t1 + near && request.t1 > view.t0 - near;
}

// Slices come by lane, row, start: where each row's stand. Keys are lane · 256 + row.
function rangesOf(slices: SlicesAnswer): Map<number, [number, number]> {
  const ranges = new Map<number, [number, number]>();
  for (let i = 0; i < slices.count;) {
    const key = slices.lane[i]! * 256 + slices.row[i]!;
    let j = i + 1;
    while (j < slices.count && slices.lane[j]! * 256 + slices.row[j]! === key) ++j;
    ranges.set(key, [i, j]);
    i = j;
  }
  return ranges;
}
