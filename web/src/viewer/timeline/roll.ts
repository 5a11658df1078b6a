// The rows while the window moves along and nothing else changes: what is painted is moved, and only what comes in is
// painted.
//
//        ┌ element: the plot below the axis ┐      belt: strips side by side, moved as one by whole pixels
//   ┌────┼────┬────┬────┬────┬────┬────┬────┼──┐   strips: canvases of STRIP pixels, painted once each
//   │    │    │    │    │    │    │    │    │  │   head: the axis, painted with every frame
//   └────┼────┴────┴────┴────┴────┴────┴────┼──┘
//        └──────────────────────────────────┘
//
// A whole window of rows costs as much to paint as a frame has time, and the browser as much again to take over a
// canvas of this size. Texts stay with their slices meanwhile; the canvas beneath is painted once the window is at
// rest, and the roll goes.
import {h, styled} from '../../dom';
import {LABEL_WIDTH} from './paint_counter';
import {AXIS_HEIGHT, type Layout} from './layout';
import {layOver, type Pointed} from './overlay';
import {makeFrame, paintAxis, paintRows} from './paint';
import type {Flows} from './flows';
import type {Painted} from './paint_slices';
import {plotWidth, visibleRows, type Scene} from './scene';

const STRIP = 256; // device pixels
const SAME_SCALE = 1e-9;

interface Strip {
  canvas: HTMLCanvasElement;
  complete: boolean;
  seen: number;
}

// The parts of a scene that must stay the same for pictures to be moved. Objects are compared by identity: they are
// replaced when they change.
interface Ground {
  layout: Layout;
  lit: unknown;
  lights: unknown;
  shifts: unknown;
  colours: unknown;
  width: number;
  height: number;
  scroll: number;
  ratio: number;
}
const groundOf = ({layout, store: {state}, colours, width, height, scroll, ratio}: Scene): Ground => ({layout,
  lit: state.lit, lights: state.scene, shifts: state.shifts, colours, width, height, scroll, ratio});
const isSame = (a: Ground, b: Ground): boolean => (Object.keys(a) as (keyof Ground)[]).every(key => a[key] === b[key]);

export class Roll {
  readonly element = h('div', {class: 'roll', hidden: true});
  readonly head = h('canvas', {class: 'axis', hidden: true, 'aria-hidden': 'true'});
  unfinished = 0; // strips in sight that were painted before all of theirs had come
  private readonly belt = h('div', {class: 'belt'});
  private readonly headPen = this.head.getContext('2d', {alpha: false})!;
  private readonly strips = new Map<number, Strip>();
  private readonly spare: HTMLCanvasElement[] = [];
  private ground: Ground | null = null;
  private under: HTMLCanvasElement | null = null;
  private anchor = 0; // time of the belt's pixel 0
  private span = 0; // of the window
  private offset = 0; // pixels from there to the plot's left edge
  private rough = true; // the canvas beneath was not painted at its own resolution everywhere

  constructor() {
    this.element.append(this.belt);
  }

  get active(): boolean {
    return !this.element.hidden;
  }

  // The canvas beneath shows this scene.
  painted(scene: Scene, painted: Painted): void {
    this.hide();
    this.ground = groundOf(scene);
    this.anchor = scene.view.t0;
    this.span = scene.view.t1 - scene.view.t0;
    this.offset = 0;
    this.rough = painted.rough + painted.missing > 0;
  }

  // Returns true if the scene is what is painted, moved along by less than a window since the last frame.
  takes(scene: Scene): boolean {
    const {view} = scene, span = view.t1 - view.t0;
    if (!this.ground || !isSame(this.ground, groundOf(scene)) || Math.abs(span / this.span - 1) > SAME_SCALE)
      return false;
    const by = Math.abs(this.offsetOf(scene) - this.offset);
    if (by === 0 && !this.active || by > plotWidth(scene) * scene.ratio) return false;
    return true;
  }

  // Moves to the scene; `under` is the canvas beneath, `pictures` grows when there are others to paint from. True when
  // more is to be painted with the next frame.
  moveTo(scene: Scene, under: HTMLCanvasElement, pictures: number): boolean {
    const next = this.offsetOf(scene), forward = next >= this.offset,
      width = Math.round(plotWidth(scene) * scene.ratio);
    if (!this.active) this.begin(scene, under, width, pictures);
    this.offset = next;
    const first = Math.floor(next / STRIP), last = Math.floor((next + width - 1) / STRIP);
    let spent = false, left = false;
    for (let i = first; i <= last; ++i) {
      const strip = this.strips.get(i), stale = strip && !strip.complete && strip.seen !== pictures;
      if (strip && !(stale && !spent)) {
        left ||= !!stale;
        continue;
      }
      this.paintStrip(scene, i, pictures);
      spent = true;
    }
    // One ahead, so that it need not be painted with the one after it.
    const ahead = forward ? last + 1 : first - 1;
    if (!spent && !this.strips.has(ahead)) this.paintStrip(scene, ahead, pictures);
    for (const [i, {canvas}] of this.strips) {
      if (i >= first - 1 && i <= last + 1) continue;
      this.strips.delete(i);
      canvas.remove();
      this.spare.push(canvas);
    }
    this.unfinished = [...this.strips].filter(([i, {complete}]) => i >= first && i <= last && !complete).length;
    this.belt.style.transform = `translateX(${-next / scene.ratio}px)`;
    return left;
  }

  // Paints the axis, and the part of the overlay in it.
  paintHead(scene: Scene, pointed: Pointed, flows: Flows): void {
    const {ratio} = scene, ticks: Painted['ticks'] = [], pen = this.headPen;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    paintAxis(pen, scene, makeFrame(scene), ticks);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    layOver(pen, {...scene, ticks}, pointed, flows);
  }

  hide(): void {
    if (!this.active) return;
    this.element.hidden = this.head.hidden = true;
    styled(this.under!, {'content-visibility': 'visible'});
    for (const {canvas} of this.strips.values()) {
      canvas.remove();
      this.spare.push(canvas);
    }
    this.strips.clear();
    this.letGo();
  }
  forget(): void {
    this.hide();
    this.ground = null;
  }

  // Pictures of a window at rest are useless: 4 B per pixel are freed at once, and not by the garbage collector.
  private letGo(): void {
    for (const canvas of this.spare) canvas.width = canvas.height = 0;
    this.spare.length = 0;
  }

  private offsetOf(scene: Scene): number {
    return Math.round((scene.view.t0 - this.anchor) / this.span * Math.round(plotWidth(scene) * scene.ratio));
  }

  // The strips that the canvas beneath holds whole are taken from it.
  private begin(scene: Scene, under: HTMLCanvasElement, width: number, pictures: number): void {
    const {ratio, gutter, height} = scene, left = Math.round(gutter * ratio), top = AXIS_HEIGHT * ratio,
      wide = Math.round(scene.width * ratio);
    styled(this.element, {left: `${left / ratio}px`, top: `${AXIS_HEIGHT}px`, width: `${width / ratio}px`,
      height: `${height - AXIS_HEIGHT}px`});
    if (this.head.width !== wide || this.head.height !== Math.round(top)) {
      this.head.width = wide;
      this.head.height = Math.round(top);
    }
    styled(this.head, {width: `${scene.width}px`, height: `${AXIS_HEIGHT}px`});
    // The numbers of counters stay at the window's edge.
    const fixed =
      [...visibleRows(scene)].some(({row}) => row.lane >= 0 && scene.store.run.lanes[row.lane]!.type === 'counter')
        ? LABEL_WIDTH : 0;
    for (let i = 0; (i + 1) * STRIP <= width - fixed * ratio; ++i) {
      const {canvas, pen} = this.paper(scene, i);
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.drawImage(under, left + i * STRIP, Math.round(top), STRIP, canvas.height, 0, 0, STRIP, canvas.height);
      this.strips.set(i, {canvas, complete: !this.rough, seen: pictures});
    }
    this.element.hidden = this.head.hidden = false;
    // The painted canvas is copied with every frame, moved or not.
    styled(this.under = under, {'content-visibility': 'hidden'});
  }

  // A canvas in the i-th place of the belt.
  private paper({ratio, height}: Scene, i: number): {canvas: HTMLCanvasElement; pen: CanvasRenderingContext2D} {
    const tall = Math.max(Math.round((height - AXIS_HEIGHT) * ratio), 1),
      canvas = this.strips.get(i)?.canvas ?? this.spare.pop() ?? h('canvas', {});
    if (canvas.height !== tall || canvas.width !== STRIP) {
      canvas.width = STRIP;
      canvas.height = tall;
    }
    styled(canvas, {left: `${i * STRIP / ratio}px`, width: `${STRIP / ratio}px`, height: `${tall / ratio}px`});
    if (!canvas.isConnected) this.belt.append(canvas);
    return {canvas, pen: canvas.getContext('2d', {alpha: false})!};
  }

  private paintStrip(scene: Scene, i: number, pictures: number): void {
    const {ratio, gutter} = scene, {canvas, pen} = this.paper(scene, i), left = Math.round(gutter * ratio);
    const scale = Math.round(plotWidth(scene) * ratio) / this.span, x0 = left + i * STRIP,
      px = (t: number): number => left + (t - this.anchor) * scale;
    // In the window's own coordinates, so that patterns meet.
    pen.setTransform(1, 0, 0, 1, -x0, -Math.round(AXIS_HEIGHT * ratio));
    pen.imageSmoothingEnabled = false;
    pen.fillStyle = scene.colours.bg;
    pen.fillRect(x0, 0, STRIP, scene.height * ratio);
    const t0 = this.anchor + i * STRIP / scale;
    const {rough, missing} = paintRows(pen, scene, {left: x0, right: x0 + STRIP, t0, t1: t0 + STRIP / scale, px, scale,
      texts: {left: -Infinity, right: Infinity}});
    this.strips.set(i, {canvas, complete: rough + missing === 0, seen: pictures});
  }
}
