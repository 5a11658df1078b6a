// Draws shares of a whole as a ring. Kinds that ran at the same time share the ring's width: one outside, the other
// inside.
import {h, svg} from '../dom';
import {percent} from '../format';
import type {Kind} from './bars';

export interface Slice {
  kinds: Kind[];
  value: number;
  name: string;
  words: string;
}

const OUTER = 88, INNER = 54, GAP = 0.012;

function arc(from: number, to: number, inner: number, outer: number): string {
  const point = (angle: number, radius: number): string =>
    `${(Math.sin(angle) * radius).toFixed(2)} ${(-Math.cos(angle) * radius).toFixed(2)}`;
  const large = to - from > Math.PI ? 1 : 0;
  return `M${point(from, outer)}A${outer} ${outer} 0 ${large} 1 ${point(to, outer)}L${point(to, inner)}` +
    `A${inner} ${inner} 0 ${large} 0 ${point(from, inner)}Z`;
}

export function donut(slices: Slice[], middle: string, under: string): HTMLElement {
  const whole = slices.reduce((all, slice) => all + slice.value, 0);
  let at = 0;
  const rings = slices.flatMap(slice => {
    const from = at, span = slice.value / whole * 2 * Math.PI;
    at += span;
    // A whole turn has no two ends to draw between.
    const to = Math.min(at, from + 2 * Math.PI - 0.0001), gap = span > 3 * GAP && slices.length > 1 ? GAP : 0;
    const band = (OUTER - INNER) / slice.kinds.length;
    return slice.kinds.map((kind, i) =>
      svg('path', {
        class: `kind-${kind}`,
        d: arc(from + gap / 2, to - gap / 2, OUTER - (i + 1) * band, OUTER - i * band),
      }, svg('title', {}, slice.words))
    );
  });
  return h('figure', {class: 'donut'},
    svg('svg', {viewBox: '-90 -90 180 180', role: 'img',
      'aria-label': slices.map(s => `${s.name} ${percent(s.value / whole)}`).join(', ')}, ...rings,
      svg('text', {class: 'middle', y: 2}, middle), svg('text', {class: 'under', y: 20}, under)));
}
