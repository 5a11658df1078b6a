// The timeline's place in the page: a scrolled box with the rows' labels, and two canvases that stay in sight behind
// them. One draws rows, the other what changes with the pointer. Frames are drawn when something changed, never else.
import {h, styled} from '../../dom';
import type {Api} from '../shell/api';
import {makeColours, type Colours} from '../shell/colours';
import {Counters} from './counters';
import {Flows} from './flows';
import {MAX_PAPER_PX, onPaper, PAPER_RATIO, redrawForPaper} from '../../paper';
import {gutterHandle, gutterOf} from './gutter';
import {makeLabels} from './labels';
import {AXIS_HEIGHT, makeLayout, type Layout} from './layout';
import {movesAlong, paintOverlay, type Pointed} from './overlay';
import {paint} from './paint';
import type {Painted} from './paint_slices';
import {Roll} from './roll';
import {plotWidth, rowPixels, topOfRows, visibleRows, type Scene} from './scene';
import type {State, Store} from './store';
import {Tiles, type LaneWant} from './tiles';

export interface Stage {
  element: HTMLElement;
  scroller: HTMLElement;
  canvas: HTMLCanvasElement;
  tiles: Tiles;
  flows: Flows;
  pointed: Pointed;
  scene(): Scene;
  draw(): void; // everything, with the next frame
  drawOverlay(): void; // what follows the pointer
  restyle(): void; // theme, language, size
  showLane(lane: number): void;
  frames(): number;
  settled(): boolean; // nothing is on its way, nothing is left to draw
  fetched(): boolean; // nothing is on its way
  unfinished(): number; // strips of the moving window that were painted before all of theirs had come
  painted(): Painted;
  onFrame(step: (now: number) => boolean): void; // called every frame until it returns false
}

const REST_MS = 200; // without moving, and the window is at rest
const PAPER_FIT_PX = 560; // rows are as high as they are in a window of this height
const BLANK_MS = 150; // how long the first picture is waited for; then rows are drawn empty

// `drawer` is the current height of the drawer below. Rows keep the height that they have without it, so that a clicked
// row stays in its place.
export function makeStage(api: Api, store: Store, drawer: () => number): Stage {
  const canvas = h('canvas', {class: 'rows', tabindex: '0', role: 'application'});
  const over = h('canvas', {class: 'over', 'aria-hidden': 'true'});
  const labels = makeLabels(store);
  const roll = new Roll(),
    layers = h('div', {class: 'layers'}, styled(canvas, {visibility: 'hidden'}), roll.element, over, roll.head);
  const scroller = h('div', {class: 'scroller'}, layers, labels.head, labels.body);
  const edge = gutterHandle(() => width), element = h('div', {class: 'stage'}, scroller, edge.element);
  const context = canvas.getContext('2d', {alpha: false})!, overContext = over.getContext('2d')!;
  const pointed: Pointed = {x: -1, y: -1, drag: null, hovered: null};
  const steps: ((now: number) => boolean)[] = [];
  let colours: Colours | null = null, layout: Layout | null = null, ratio = 1, width = 0, height = 0;
  let scheduled = 0, dirty = true, overClean = true, count = 0,
    last: Painted = {lanes: 0, missing: 0, rough: 0, slices: 0, labels: 0, ticks: []}, complete = false, shown = false,
    waiting = 0, resting = 0, still = true, movedFrom = NaN, overAt = '', counterLanes: number[] = [];

  const tiles = new Tiles(api, store, () => stage.draw()), counters = new Counters(api, store, () => stage.draw());
  const flows = new Flows(api, store, () => stage.drawOverlay());

  const currentLayout =
    (): Layout => (layout ??= makeLayout(store.run, store.state, onPaper() ? PAPER_FIT_PX : height + drawer()));
  function scene(): Scene {
    return {store, layout: currentLayout(), colours: colours!, tiles, counters, view: store.state.view,
      gutter: gutterOf(width), width, height, scroll: scroller.scrollTop, ratio, ticks: last.ticks};
  }

  function resize(): void {
    width = scroller.clientWidth;
    height = scroller.clientHeight;
    ratio = onPaper() ? PAPER_RATIO : Math.min(devicePixelRatio || 1, 3);
    for (const one of [canvas, over]) {
      one.width = Math.max(1, Math.round(width * ratio));
      one.height = Math.max(1, Math.round(height * ratio));
      styled(one, {width: `${width}px`, height: `${height}px`});
    }
    styled(layers, {height: `${height}px`, 'margin-bottom': `${-height}px`});
    edge.place(gutterOf(width));
    layout = null;
    overClean = true; // a new size empties it
    roll.forget();
  }

  // On paper there is every row, from the first on.
  function toPaper(): void {
    if (!colours) return;
    scroller.scrollTop = 0;
    layout = null;
    const {pinnedHeight, height: rows} = currentLayout();
    styled(element, {'--height': `${Math.min(AXIS_HEIGHT + pinnedHeight + rows, MAX_PAPER_PX)}px`});
    resize();
    colours = makeColours(context, store.run, store.theme, ratio, store.state.muted);
    labels.rebuild();
    still = true;
    dirty = true;
    frame(performance.now());
  }

  function wants(at: Scene): {lanes: LaneWant[]; counters: number[]} {
    const byLane = new Map<number, LaneWant>(), values: number[] = [];
    for (const {row} of visibleRows(at)) {
      if (row.lane < 0) continue;
      if (store.run.lanes[row.lane]!.type === 'counter') {
        values.push(row.lane);
        continue;
      }
      const rowPx = rowPixels(at, row), before = byLane.get(row.lane);
      if (!before || before.rows < row.rows) byLane.set(row.lane, {lane: row.lane, rows: Math.max(row.rows, 1), rowPx});
    }
    return {lanes: [...byLane.values()], counters: values};
  }

  function frame(now: number): void {
    scheduled = 0;
    for (let i = steps.length - 1; i >= 0; --i) if (!steps[i]!(now)) steps.splice(i, 1);
    const more = tiles.work(roll.active), at = scene();
    // Rows without pictures are not worth a frame while the first ones are on their way.
    if (!shown && waiting >= 0 && tiles.empty() && tiles.busy()) {
      labels.place(at);
      waiting ||= window.setTimeout(() => {
        waiting = -1;
        stage.draw();
      }, BLANK_MS);
    } else if (dirty) {
      if (!shown) styled(canvas, {visibility: 'visible'});
      shown = true;
      dirty = false;
      ++count;
      if (still || !roll.takes(at)) paintAll(at);
      else if (moveAlong(at)) stage.draw();
      if (!complete && last.missing === 0) {
        complete = true;
        requestAnimationFrame(() => performance.mark('timeline-painted'));
      }
      canvas.dispatchEvent(new Event('painted'));
    }
    // The pointer's line stays where it is while the window moves; its text is in the head.
    const where = `${pointed.x},${pointed.y}`;
    if (roll.active) roll.paintHead(at, pointed, flows);
    const bare = roll.active && !movesAlong(store.state, pointed, flows);
    if (over.hidden !== bare) over.hidden = bare;
    if (!bare || where !== overAt)
      overClean = !paintOverlay(overContext, at, pointed, flows, overClean);
    overAt = where;
    ask(at);
    if (more || steps.length > 0) schedule();
  }
  function paintAll(at: Scene): void {
    clearTimeout(resting);
    still = false;
    last = paint(context, at);
    labels.place(at);
    roll.painted(at, last);
  }
  function moveAlong(at: Scene): boolean {
    if (at.view.t0 !== movedFrom) {
      clearTimeout(resting);
      resting = window.setTimeout(() => {
        if (store.state.view.t0 !== movedFrom) return; // the next frame moves on
        still = true;
        stage.draw();
      }, REST_MS);
      movedFrom = at.view.t0;
    }
    if (pointed.hovered) { // what was under the pointer has gone
      pointed.hovered = null;
      overAt = '';
    }
    return roll.moveTo(at, canvas, tiles.pictures + counters.pictures);
  }
  function ask(at: Scene): void {
    const px = Math.round(plotWidth(at) * ratio);
    if (!roll.active || !tiles.holds(at.view)) { // else the rows are those of the frame before
      const wanted = wants(at);
      tiles.plan(wanted.lanes, at.view, px);
      counterLanes = wanted.counters;
    }
    counters.plan(counterLanes, at.view, px);
    flows.plan(at);
  }
  function schedule(): void {
    if (!scheduled) scheduled = requestAnimationFrame(frame);
  }

  const stage: Stage = {
    element,
    scroller,
    canvas,
    tiles,
    flows,
    pointed,
    scene,
    draw() {
      dirty = true;
      schedule();
    },
    drawOverlay: schedule,
    restyle() {
      resize();
      colours = makeColours(context, store.run, store.theme, ratio, store.state.muted);
      tiles.colours = colours.pixel;
      tiles.drop();
      labels.rebuild();
      this.draw();
      queueMicrotask(() => ask(scene())); // what the address says is in the view by then; the frame is later
    },
    showLane(lane) {
      const at = scene(), row = at.layout.rows.find(r => r.kind === 'lane' && r.lane === lane);
      if (!row || at.layout.pinned.some(r => r.lane === lane)) return;
      const room = height - topOfRows(at);
      if (row.y < scroller.scrollTop + 4) scroller.scrollTop = Math.max(0, row.y - 30);
      else if (row.y + Math.min(row.h, room) > scroller.scrollTop + room)
        scroller.scrollTop = row.y + row.h - room + 12;
    },
    frames: () => count,
    fetched: () => !tiles.busy() && !counters.busy() && !flows.busy(),
    settled: () => scheduled === 0 && !roll.active && stage.fetched(),
    unfinished: () => roll.unfinished,
    painted: () => last,
    onFrame(step) {
      steps.push(step);
      schedule();
    },
  };

  const shaping: (keyof State)[] = [
    'rowHeight',
    'grouping',
    'collapsed',
    'expanded',
    'pinned',
    'hidden',
    'rankOrder',
    'laneOrder',
  ];
  store.onChange(before => {
    const now = store.state;
    if (shaping.some(key => before[key] !== now[key])) {
      layout = null;
      labels.rebuild();
    }
    if (before.scene !== now.scene) labels.rebuild();
    if (before.muted !== now.muted && colours) stage.restyle();
    if (before.shifts !== now.shifts) {
      const moved = new Set(
        store.run.lanes.filter(lane =>
          (before.shifts.get(lane.rank_index) ?? 0) !== (now.shifts.get(lane.rank_index) ?? 0)
        ).map(lane => lane.id),
      );
      tiles.drop(moved);
      counters.drop();
      labels.rebuild();
    }
    stage.draw();
  });
  window.addEventListener('gutter', () => {
    edge.place(gutterOf(width));
    roll.forget();
    labels.rebuild();
    stage.draw();
  });
  redrawForPaper(element, toPaper);
  scroller.addEventListener('scroll', () => stage.draw(), {passive: true});
  new ResizeObserver(() => {
    if (!colours || scroller.clientWidth === 0 || (scroller.clientWidth === width && scroller.clientHeight === height))
      return;
    const lower = scroller.clientHeight < height, {selected, area} = store.state;
    resize();
    // The drawer has opened: the selected lane must not be hidden behind it.
    const lane = selected?.lane ?? area?.lanes.at(-1);
    if (lower && lane !== undefined) stage.showLane(lane);
    labels.rebuild();
    stage.draw();
  }).observe(scroller);
  return stage;
}
