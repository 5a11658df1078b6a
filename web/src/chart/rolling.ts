// Draws the chart while its window moves along and nothing else changes. The painted part moves on a belt, and only the
// new part is painted. The canvas beneath is painted once the window is at rest, and the belt goes.
//
//   ┌────────┬── head: the axis, painted with every frame ──┐
//   │ names  │ belt                                          │
//   └────────┴───────────────────────────────────────────────┘
import {h, styled} from '../dom';
import {Belt} from './belt';
import {shiftHatches} from './colours';
import {makePainter, paintAxis, paintStrip, type Painter} from './paint';
import {makeFrame, type Scene} from './scene';

const SAME_SCALE = 1e-9;

// The parts of a scene that must stay the same for a picture to be moved; objects are replaced when they change.
const KEPT = [
  'cells',
  'model',
  'layout',
  'step',
  'colours',
  'selected',
  'hovered',
  'scroll',
  'width',
  'height',
  'ratio',
  'ghosts',
  'bubbles',
  'marks',
  'lit',
  'labelDur',
] as const satisfies readonly (keyof Scene)[];

export class Rolling {
  readonly element = h('div', {class: 'rolling', 'aria-hidden': 'true'});
  private readonly head = h('canvas', {});
  private readonly names = h('canvas', {});
  private readonly belt = new Belt();
  private readonly strips: Painter = makePainter(h('canvas', {}));
  private ground: Scene | null = null; // what the canvas beneath shows; strips are painted of its window
  private offset = 0; // whole pixels that the window has moved since
  private phase = 0; // how far hatches are moved from where they would be by themselves

  constructor(private readonly under: HTMLCanvasElement) {
    this.element.append(this.belt.element, this.names, this.head);
  }

  get active(): boolean {
    return this.element.isConnected;
  }

  // Before the canvas beneath is painted: hatches stay on what they lie on.
  before({colours}: Scene): void {
    if (this.active) {
      this.phase -= this.offset;
      this.hide();
    }
    shiftHatches(colours, this.phase);
  }
  painted(scene: Scene): void {
    this.ground = scene;
    this.offset = 0;
  }

  // Returns true if this is what is painted, moved along by less than its width since the last frame.
  takes(scene: Scene): boolean {
    const {ground} = this;
    if (!ground || KEPT.some(key => ground[key] !== scene[key]) ||
      ground.theoryEnds.some((end, i) => end !== scene.theoryEnds[i])) return false;
    const span = ground.view.t1 - ground.view.t0, by = Math.abs(this.offsetOf(scene) - this.offset);
    return Math.abs((scene.view.t1 - scene.view.t0) / span - 1) <= SAME_SCALE && by < makeFrame(scene).width &&
      (by > 0 || this.active);
  }

  moveTo(scene: Scene): void {
    const next = this.offsetOf(scene), forward = next >= this.offset, frame = makeFrame(scene), {ratio} = scene;
    if (!this.active) this.begin(scene);
    this.offset = next;
    this.belt.moveTo(next, forward, (context, left, width) => {
      this.strips.context = context;
      paintStrip(this.strips, this.ground!, left, width);
    });
    const pen = this.head.getContext('2d', {alpha: false})!;
    pen.fillStyle = scene.colours.palette.bg;
    pen.fillRect(0, 0, scene.width * ratio, frame.top);
    paintAxis(pen, scene, frame);
  }

  // Returns how far the window is from the ground's, in whole pixels.
  private offsetOf(scene: Scene): number {
    const {view} = this.ground!;
    return Math.round((scene.view.t0 - view.t0) / (view.t1 - view.t0) * makeFrame(scene).width);
  }

  private begin(scene: Scene): void {
    const {x, top, width} = makeFrame(scene), {ratio, scroll} = scene, wide = Math.round(scene.width * ratio),
      tall = Math.round(scene.height * ratio) - top;
    const place = (canvas: HTMLCanvasElement, w: number, height: number, y: number): CanvasRenderingContext2D => {
      if (canvas.width !== w || canvas.height !== height) [canvas.width, canvas.height] = [w, height];
      styled(canvas, {left: '0px', top: `${y / ratio}px`, width: `${w / ratio}px`, height: `${height / ratio}px`});
      return canvas.getContext('2d', {alpha: false})!;
    };
    place(this.head, wide, top, 0);
    place(this.names, x, tall, top).drawImage(this.under, 0, top, x, tall, 0, 0, x, tall);
    styled(this.belt.element, {left: `${x / ratio}px`, top: `${top / ratio}px`});
    this.belt.begin(width, tall, ratio, this.under, x, top);
    styled(this.element, {top: `${scroll}px`});
    this.under.after(this.element);
    styled(this.under, {'content-visibility': 'hidden'}); // what is painted is copied with every frame, moved or not
  }

  private hide(): void {
    this.element.remove();
    this.belt.clear();
    styled(this.under, {'content-visibility': 'visible'});
  }
}
