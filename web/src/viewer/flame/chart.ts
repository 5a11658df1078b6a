// Draws a flame graph on a canvas. The outermost frame is on top (or at the bottom: callers); one frame is chosen, one
// is under the pointer.
import {h, styled} from '../../dom';
import {duration, percent} from '../../format';
import {MAX_PAPER_PX, onPaper, PAPER_RATIO, redrawForPaper} from '../../paper';
import type {TextTip} from '../../views/text_tip';
import type {Paint} from '../shell/api';
import {KINDS, type Tree} from './calls';
import {boxOf, depthOf, layout, type Box} from './layout';

export const ROW = 21;
const PAD = 5, STRONGEST = 0.5; // of a colour over the ground, so that ink stays readable on it

export interface FlameLook {
  tree: Tree;
  root: number;
  chosen: number;
  matches: ReadonlySet<number> | null;
  compared: boolean;
  folds: boolean;
  upward: boolean;
  name(node: number): string;
  paint(node: number): Paint;
  say(node: number, folded: number): string[]; // lines of the tip
  saySmall(count: number): string;
  label: string;
}
export interface FlameUse {
  choose(node: number): void;
  zoom(node: number): void;
  search(): void;
  step(by: number): void;
  out(): void;
}
export interface Flame {
  element: HTMLElement;
  draw(look: FlameLook): void;
  focus(): void;
  boxes(): readonly Box[];
  place(node: number): DOMRect | null;
}

// How much more or less B takes than A, of the whole; the largest change has the strongest colour.
const changeOf = ({total}: Tree, node: number): number => total.b[node]! - total.a[node]!;

export function makeFlame(tip: TextTip, use: FlameUse): Flame {
  const canvas = h('canvas', {tabindex: 0, role: 'application'}), spacer = h('div', {class: 'flame-spacer'}, canvas);
  const element = h('div', {class: 'flame-chart'}, spacer);
  let look: FlameLook | null = null, boxes: Box[] = [], rows = 0, hover = -1, pending = 0, largest = 0;

  const top = (box: Box): number => (look!.upward ? rows - 1 - box.depth : box.depth) * ROW;
  function fit(text: string, width: number, context: CanvasRenderingContext2D): string {
    if (width < 14) return '';
    if (context.measureText(text).width <= width) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(text.slice(0, middle) + '…').width <= width) low = middle;
      else high = middle - 1;
    }
    return low > 1 ? text.slice(0, low) + '…' : '';
  }
  function paint(): void {
    pending = 0;
    const width = element.clientWidth, context = canvas.getContext('2d');
    if (!look || !context || width === 0) return;
    boxes = layout(look.tree, look.root, width, look.folds);
    rows = depthOf(boxes);
    const ratio = onPaper() ? PAPER_RATIO : Math.min(devicePixelRatio || 1, 3), height = Math.max(rows * ROW, 1),
      seen = Math.min(height, onPaper() ? MAX_PAPER_PX : Math.max(element.clientHeight, ROW));
    styled(spacer, {height: `${height}px`});
    styled(canvas, {height: `${seen}px`});
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(seen * ratio);
    const style = getComputedStyle(document.documentElement),
      colour = (name: string): string => style.getPropertyValue(name).trim();
    const ink = colour('--ink'), idle = colour('--idle'), hot = colour('--hot'), cool = colour('--acc'),
      font = getComputedStyle(element).fontFamily;
    const {tree, matches} = look, from = element.scrollTop;
    largest = look.compared
      ? boxes.reduce((most, box) => (box.small > 0 ? most : Math.max(most, Math.abs(changeOf(tree, box.nodes[0]!)))), 0)
      : 0;
    context.setTransform(ratio, 0, 0, ratio, 0, -from * ratio);
    context.textBaseline = 'middle';
    for (const [i, box] of boxes.entries()) {
      const y = top(box);
      if (y + ROW < from || y > from + seen) continue;
      const kind = KINDS[tree.kind[box.last]!]!, wide = Math.max(box.width - (box.width > 3 ? 1 : 0), 0.5),
        lit = !matches || box.small > 0 || box.nodes.some(node => matches.has(node));
      const own = look.paint(box.last), plain = box.small > 0 || look.compared || kind === 'root' || kind === 'rest';
      context.globalAlpha = lit ? 1 : 0.28;
      context.fillStyle = box.small > 0 ? colour('--idle2') : plain ? idle : own.fill;
      context.fillRect(box.x, y, wide, ROW - 1);
      if (look.compared && largest > 0 && box.small === 0) {
        const change = changeOf(tree, box.nodes[0]!);
        context.globalAlpha *= STRONGEST * Math.sqrt(Math.abs(change) / largest);
        context.fillStyle = change > 0 ? hot : cool;
        context.fillRect(box.x, y, wide, ROW - 1);
        context.globalAlpha = lit ? 1 : 0.28;
      }
      const chosen = look.chosen > 0 && box.nodes.includes(look.chosen);
      if (chosen || i === hover) {
        context.globalAlpha = 1;
        context.strokeStyle = chosen ? ink : colour('--mut');
        context.lineWidth = 2;
        context.strokeRect(box.x + 1, y + 1, Math.max(wide - 2, 0.5), ROW - 3);
      }
      if (box.width < 20 || box.small > 0) continue;
      context.globalAlpha = lit ? 1 : 0.55;
      context.fillStyle = plain ? ink : lit ? own.text : ink;
      context.font = `12px ${font}`;
      const room = box.width - 2 * PAD, name = (box.nodes.length > 1 ? '⋯ ' : '') + look.name(box.last),
        time = timeOf(box);
      const text = fit(name, room, context);
      context.fillText(text, box.x + PAD, y + ROW / 2);
      const used = context.measureText(text).width, timeWide = context.measureText(time).width;
      if (text === name && used + timeWide + 14 <= room) {
        context.globalAlpha *= 0.8;
        context.fillText(time, box.x + box.width - PAD - timeWide, y + ROW / 2);
      }
    }
    context.globalAlpha = 1;
  }
  const timeOf = (box: Box): string => {
    const {tree, root, compared} = look!, node = box.nodes[0]!;
    if (!compared) return `${duration(tree.total.a[node]!)} · ${percent(tree.total.a[node]! / tree.total.a[root]!)}`;
    const change = changeOf(tree, node);
    return `${change < 0 ? '−' : '+'}${duration(Math.abs(change))}`;
  };
  const soon = (): void => {
    pending ||= requestAnimationFrame(paint);
  };
  function boxAt(event: MouseEvent): number {
    const place = canvas.getBoundingClientRect(), x = event.clientX - place.left,
      y = event.clientY - place.top + element.scrollTop;
    if (y < 0 || y >= rows * ROW) return -1;
    const row = Math.floor(y / ROW), depth = look?.upward ? rows - 1 - row : row;
    return boxes.findIndex(box => box.depth === depth && x >= box.x && x < box.x + box.width);
  }
  canvas.addEventListener('pointermove', event => {
    const at = boxAt(event);
    if (at !== hover) soon();
    hover = at;
    const box = boxes[at];
    if (!box || !look || event.pointerType === 'touch') return tip.hide();
    const [title = '', ...lines] = box.small > 0 ? [look.saySmall(box.small)]
      : look.say(box.last, box.nodes.length - 1);
    tip.place(event.clientX, event.clientY, h('b', {}, title), ...lines.map(line => h('div', {class: 'quiet'}, line)));
  });
  canvas.addEventListener('pointerleave', () => {
    hover = -1;
    tip.hide();
    soon();
  });
  canvas.addEventListener('click', event => {
    const box = boxes[boxAt(event)];
    if (box) use.choose(box.last);
  });
  canvas.addEventListener('dblclick', event => {
    const box = boxes[boxAt(event)];
    if (box) use.zoom(box.last);
  });
  canvas.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !look) return;
    const at = boxOf(boxes, look.chosen), box = boxes[at];
    const go = (to: number | undefined): void => {
      const next = to === undefined ? undefined : boxes[to];
      if (next) use.choose(next.last);
    };
    const inward = look.upward ? 'ArrowUp' : 'ArrowDown', outward = look.upward ? 'ArrowDown' : 'ArrowUp';
    const row = (): number[] =>
      [...boxes.keys()].filter(i => boxes[i]!.depth === box!.depth && boxes[i]!.small === 0).sort((x, y) =>
        boxes[x]!.x - boxes[y]!.x
      );
    if (!box && event.key.startsWith('Arrow')) go(0);
    else if (event.key === inward) go(box!.children[0]);
    else if (event.key === outward) go(box!.parent);
    else if (event.key === 'ArrowLeft') go(row()[row().indexOf(at) - 1]);
    else if (event.key === 'ArrowRight') go(row()[row().indexOf(at) + 1]);
    else if (event.key === 'Enter' && box) use.zoom(box.last);
    else if (event.key === 'Backspace' || event.key === 'Escape') use.out();
    else if (event.key === '0') use.zoom(0);
    else if (event.key === '/') use.search();
    else if (event.code === 'KeyN') use.step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  element.addEventListener('scroll', () => {
    tip.hide();
    soon();
  });
  new ResizeObserver(soon).observe(element);
  redrawForPaper(element, paint);

  return {
    element,
    draw(next) {
      look = next;
      canvas.setAttribute('aria-label', next.label);
      tip.hide();
      paint();
      // The chosen frame must be visible.
      const box = boxes[boxOf(boxes, next.chosen)];
      if (box && (top(box) < element.scrollTop || top(box) + ROW > element.scrollTop + element.clientHeight))
        element.scrollTop = Math.max(0, top(box) - ROW * 2);
    },
    focus: () => canvas.focus({preventScroll: true}),
    boxes: () => boxes,
    place(node) {
      const box = boxes[boxOf(boxes, node)], at = canvas.getBoundingClientRect();
      return box ? new DOMRect(at.left + box.x, at.top + top(box) - element.scrollTop, box.width, ROW) : null;
    },
  };
}
