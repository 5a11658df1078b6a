// The canvas in the page: size, scrolling, and frames only when something changed.
import type {App} from '../app';
import type {Cells} from '../data/cells';
import {hasSevenPhases} from '../data/seven_phases';
import {h, styled} from '../dom';
import {t} from '../i18n/i18n';
import {homeOf, spanOf} from '../state';
import {MAX_PAPER_PX, onPaper, PAPER_RATIO, redrawForPaper} from '../paper';
import {foldedTitle, replicaName, rowTitle, sumTitle} from '../words';
import {makeColours, type ChartColours} from './colours';
import {LABEL_CLASSES, labelClass} from './cell_batch';
import {AXIS_HEIGHT, makeLayout, sumOf, type Layout} from './layout';
import {arrowsOf, cellBox, countDrawn, makePainter, paint} from './paint';
import {RIGHT_MARGIN, type Scene} from './scene';
import {Rolling} from './rolling';

export interface Chart {
  element: HTMLElement; // scrolls when the rows do not fit
  canvas: HTMLCanvasElement;
  scene(): Scene;
  invalidate(): void; // a frame will be painted
  restyle(): void; // the theme or the language changed
  showRow(index: number): void;
  timeAt(x: number): number; // CSS pixels from the canvas' left edge
  allScene(): Scene; // all steps, all replicas, every row
  picture(ratio: number): HTMLCanvasElement; // what is seen, without the pointer
}

const REST_FRAMES = 2;

const MOST_MEASURED = 2048; // cells; every move of a what-if slider brings new ones

// Returns a duration by labelClass: nine tenths of its time are in cells of this duration or longer. It reads at most
// some thousand of them.
export function shortDurations(cells: Pick<Cells, 'count' | 'kind' | 'dur' | 'pair'>): Float64Array {
  const step = Math.max(1, Math.floor(cells.count / MOST_MEASURED));
  const byKind: number[][] = [];
  for (let i = 0; i < cells.count; i += step) (byKind[labelClass(cells, i)] ??= []).push(cells.dur[i]!);
  const short = new Float64Array(LABEL_CLASSES);
  byKind.forEach((list, kind) => {
    const durations = Float64Array.from(list).sort();
    // A tenth of their time, not of their number: what is short and rare (DualPipeV's gradients of the loss) blanks no
    // others.
    let rest = durations.reduce((sum, dur) => sum + dur, 0) / 10, at = 0;
    while (at + 1 < durations.length && (rest -= durations[at]!) > 0) ++at;
    short[kind] = durations[at]!;
  });
  return short;
}

function largest(values: Int32Array): number {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return most;
}

// The order of a step in another scenario is unknown.
export const phasedStages = (
  {report, model, ends}: App,
): number => (!ends && hasSevenPhases(report.theory?.schedule)
  ? new Set(model.rows.map(row => report.parts[row.part]!.stage)).size : 0);

const MOST_ENDS = 40;

// Returns the ends that the shown steps could have had, for the shown replicas; none where there are too many to
// distinguish.
function theoryEnds(app: App, step: number | null): number[] {
  const {theory} = app.report, {dp} = app.state, ends = new Map<number, number>();
  for (const [number, replica, end] of theory?.steps ?? [])
    if ((step === null || number === step) && (dp === null || replica === dp || replica < 0))
      ends.set(number, Math.max(end, ends.get(number) ?? -Infinity));
  return ends.size > MOST_ENDS ? [] : [...ends.values()];
}

// `maxHeight` is in CSS pixels; taller charts scroll.
export function makeChart(app: App, maxHeight: () => number, until: AbortSignal): Chart {
  const canvas = h('canvas', {tabindex: 0, role: 'application', 'aria-roledescription': 'chart'});
  const sizer = h('div', {class: 'chart-sizer'}, canvas);
  const element = h('div', {class: 'chart'}, sizer);
  const painter = makePainter(canvas), rolling = new Rolling(canvas);
  let colours: ChartColours | undefined;
  let measured: Cells | null = null, labelLength = 1, labelDur: Float64Array = new Float64Array(LABEL_CLASSES);
  let layout: Layout = makeLayout(app.model, app.report.parts, app.state, 1000), laidOut: readonly unknown[] = [];
  let width = 0, height = 0, ratio = 1, scheduled = false, moves = 0;

  function makeScene(step: number | null, of: Layout, view = app.state.view): Scene {
    colours ??= makeColours(painter.context, app.report.palette[app.theme], ratio);
    if (measured !== app.cells) {
      measured = app.cells;
      labelLength = String(largest(app.cells.microBatch)).length;
      labelDur = shortDurations(app.cells);
    }
    const low = of.rowHeight < 34, replicas = app.model.dps.length > 1 && app.state.dp === null;
    return {
      phased: phasedStages(app),
      ghosts: app.under ?? (app.state.theory ? app.model.ghosts : null),
      theoryEnds: app.ends ?? (app.state.theory && !app.under ? theoryEnds(app, step) : []),
      bubbles: app.state.causes ? app.bubbles : null,
      marks: app.marks,
      lit: app.lit,
      cells: app.cells,
      model: app.model,
      parts: app.report.parts,
      layout: of,
      view,
      step,
      zero: spanOf(app.model, step).t0,
      colours,
      selected: app.state.selected,
      hovered: app.state.hovered,
      scroll: element.scrollTop,
      width,
      height,
      ratio,
      labelLength,
      labelDur,
      rowTitle(index) {
        const sum = sumOf(of, index);
        if (sum) return sumTitle(app, sum, low);
        const part = app.report.parts[app.model.rows[of.rows[index]!]!.part]!;
        return app.state.folded ? foldedTitle(app, part, low, of, index)
          : rowTitle(part, low, replicas ? replicaName(app, part.dp) : '');
      },
    };
  }

  function measure(): void {
    const nextWidth = Math.max(element.clientWidth, 200),
      nextRatio = onPaper() ? PAPER_RATIO : Math.min(window.devicePixelRatio || 1, 4);
    const {dp, folded, open, full} = app.state, most = onPaper() ? MAX_PAPER_PX : maxHeight(),
      room = {window: window.innerHeight, chart: most};
    const by = [app.model, app.report.parts, dp, folded, open, full, app.worst, nextWidth, room.window, room.chart];
    if (by.some((one, i) => one !== laidOut[i]))
      layout = makeLayout(app.model, app.report.parts, app.state, nextWidth, room, app.worst);
    laidOut = by;
    const content = AXIS_HEIGHT + layout.height;
    const nextHeight = Math.min(content, most);
    styled(element, {'max-height': `${most}px`});
    styled(sizer, {height: `${content}px`});
    if (nextWidth === width && nextHeight === height && nextRatio === ratio) return;
    if (nextRatio !== ratio) colours = undefined;
    [width, height, ratio] = [nextWidth, nextHeight, nextRatio];
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    styled(canvas, {width: `${width}px`, height: `${height}px`});
  }

  function frame(): void {
    scheduled = false;
    measure();
    const scene = makeScene(app.state.step, layout);
    if (rolling.takes(scene)) {
      rolling.moveTo(scene);
      const now = ++moves;
      requestAnimationFrame(() => rest(now, REST_FRAMES));
    } else {
      paintAll(scene);
    }
    canvas.dispatchEvent(new Event('painted'));
  }
  function paintAll(scene: Scene): void {
    rolling.before(scene);
    paint(painter, scene);
    rolling.painted(scene);
  }
  // The window has not moved for this number of frames, so it is at rest.
  function rest(since: number, frames: number): void {
    if (since !== moves || !rolling.active) return;
    if (frames > 1) return void requestAnimationFrame(() => rest(since, frames - 1));
    measure();
    paintAll(makeScene(app.state.step, layout));
    canvas.dispatchEvent(new Event('painted'));
  }
  const invalidate = (): void => {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(frame);
  };

  element.addEventListener('scroll', invalidate, {passive: true});
  new ResizeObserver(invalidate).observe(element);
  redrawForPaper(element, frame);
  window.addEventListener('resize', invalidate, {signal: until});
  app.onChange(before => {
    if (before.dp !== app.state.dp || before.folded !== app.state.folded) element.scrollTop = 0;
    invalidate();
  });

  return {
    element,
    canvas,
    invalidate,
    scene: () => {
      measure();
      return makeScene(app.state.step, layout);
    },
    restyle() {
      colours = undefined;
      const what = app.state.step === null ? t('chart.all') : t('chart.step', app.state.step);
      canvas.setAttribute('aria-label', t('chart.aria', what));
      invalidate();
    },
    showRow(index) {
      const top = index * layout.pitch, room = height - AXIS_HEIGHT;
      if (top < element.scrollTop) element.scrollTop = top;
      else if (top + layout.pitch > element.scrollTop + room) element.scrollTop = top + layout.pitch - room;
    },
    timeAt(x) {
      const {view} = app.state;
      return view.t0 + (x - layout.labelWidth) / (width - RIGHT_MARGIN - layout.labelWidth) * (view.t1 - view.t0);
    },
    picture(sharp) {
      const target = h('canvas'), scene = this.scene();
      target.width = Math.round(width * sharp);
      target.height = Math.round(height * sharp);
      const own = makePainter(target), palette = app.report.palette[app.theme];
      paint(own, {...scene, ratio: sharp, colours: makeColours(own.context, palette, sharp), hovered: -1});
      own.context.globalCompositeOperation = 'destination-over';
      own.context.fillStyle = palette.bg;
      own.context.fillRect(0, 0, target.width, target.height);
      return target;
    },
    allScene() {
      measure();
      return makeScene(null,
        makeLayout(app.model, app.report.parts, {dp: null, folded: false, open: new Set(), full: new Set()}, width),
        homeOf(app.model, null));
    },
  };
}

export {arrowsOf, cellBox, countDrawn};
