// A picture that moves sideways and is painted where it comes into sight.
//
//        ┌ element ─────────────────────────┐      belt: strips side by side, moved as one by whole pixels
//   ┌────┼────┬────┬────┬────┬────┬────┬────┼──┐   strips: canvases of STRIP pixels, painted once each
//   └────┼────┴────┴────┴────┴────┴────┴────┼──┘
//        └──────────────────────────────────┘
import {h, styled} from '../dom';

const STRIP = 256, MOST_SPARE = 12; // device pixels; canvases kept for the next time

// Paints the strip whose left edge is at this number of pixels from the start of the belt.
export type PaintStrip = (pen: CanvasRenderingContext2D, left: number, width: number) => void;

export class Belt {
  readonly element = h('div', {class: 'belt-place'});
  private readonly belt = h('div', {class: 'belt'});
  private readonly strips = new Map<number, HTMLCanvasElement>();
  private readonly spare: HTMLCanvasElement[] = [];
  private width = 0; // device pixels
  private height = 0;
  private ratio = 1;

  constructor() {
    this.element.append(this.belt);
  }

  // `width` and `height` are in device pixels, `ratio` is the number of them per CSS pixel. Whole strips are taken from
  // `under`, where they are at (x, y). The first one is not: a cell that is cut off at the left edge may have its text
  // elsewhere.
  begin(width: number, height: number, ratio: number, under: HTMLCanvasElement, x: number, y: number): void {
    [this.width, this.height, this.ratio] = [width, height, ratio];
    styled(this.element, {width: `${width / ratio}px`, height: `${height / ratio}px`});
    for (let i = 1; (i + 1) * STRIP <= width; ++i)
      this.paper(i).drawImage(under, x + i * STRIP, y, STRIP, height, 0, 0, STRIP, height);
  }

  // `offset`: what is at the left edge, in whole pixels from where the belt began. One strip ahead of what is in sight
  // is painted with a frame that has no other to paint.
  moveTo(offset: number, forward: boolean, paint: PaintStrip): void {
    const first = Math.floor(offset / STRIP), last = Math.floor((offset + this.width - 1) / STRIP);
    const missing = Array.from({length: last - first + 1}, (_, k) => first + k).filter(i => !this.strips.has(i));
    const ahead = forward ? last + 1 : first - 1;
    if (missing.length === 0 && !this.strips.has(ahead)) missing.push(ahead);
    for (const i of missing) paint(this.paper(i), i * STRIP, STRIP);
    for (const i of [...this.strips.keys()]) if (i < first - 1 || i > last + 1) this.drop(i);
    styled(this.belt, {transform: `translateX(${-offset / this.ratio}px)`});
  }

  clear(): void {
    for (const i of [...this.strips.keys()]) this.drop(i);
    this.spare.length = Math.min(this.spare.length, MOST_SPARE);
  }

  private drop(i: number): void {
    const canvas = this.strips.get(i)!;
    this.strips.delete(i);
    canvas.remove();
    this.spare.push(canvas);
  }
  // A canvas in the i-th place.
  private paper(i: number): CanvasRenderingContext2D {
    const canvas = this.spare.pop() ?? h('canvas', {}), {height, ratio} = this;
    if (canvas.height !== height || canvas.width !== STRIP) {
      canvas.width = STRIP;
      canvas.height = height;
    }
    styled(canvas, {left: `${i * STRIP / ratio}px`, width: `${STRIP / ratio}px`, height: `${height / ratio}px`});
    this.belt.append(canvas);
    this.strips.set(i, canvas);
    const pen = canvas.getContext('2d', {alpha: false})!;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    return pen;
  }
}
