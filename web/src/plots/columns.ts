// Upright columns: a histogram, or one value a step.
import {h, styled, svg} from '../dom';
import type {Kind} from './bars';
import {withCursor} from './cursor';

export interface ColumnBar {
  value: number;
  label: string;
  words: string;
  hot?: boolean;
  parts?: {kind: Kind; value: number}[];
} // parts: from the foot

const HEIGHT = 120;

// `labels`: every how many columns one is named below.
export function columnPlot(name: string, bars: ColumnBar[], low = 0): HTMLElement {
  const high = bars.reduce((top, bar) => Math.max(top, bar.value), 0);
  const every = Math.max(1, Math.ceil(bars.length / 16));
  const heightOf = (value: number): number => (high > low ? (value - low) / (high - low) * (HEIGHT - 4) : HEIGHT - 4);
  // Parts are boxes, not shapes: they have the textures of the legend.
  const stacked = bars.some(bar => bar.parts);
  const marks: Element[] = bars.map((bar, i) => {
    if (stacked)
      return h('span', {class: 'column'},
        ...(bar.parts ?? []).filter(part => part.value > 0).map(part =>
          styled(h('b', {class: `kind-${part.kind}`}), {height: `${heightOf(part.value)}px`})
        ));
    const height = Math.max(bar.value > 0 ? 1.5 : 0, heightOf(bar.value));
    return svg('rect', {x: i + 0.06, width: 0.88, y: HEIGHT - height, height, class: bar.hot ? 'hot' : ''});
  });
  const plot = stacked
    ? h('div', {class: `column-plot stacked${bars.length <= 40 ? ' few' : ''}`, 'aria-hidden': 'true'}, ...marks)
    : h('div', {class: 'column-plot'},
      svg('svg', {viewBox: `0 0 ${bars.length} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true'},
        ...marks));
  const labels = h('div', {class: 'column-labels', 'aria-hidden': 'true'},
    ...bars.map((bar, i) => h('span', {}, i % every === 0 ? bar.label : '')));
  const figure = h('figure', {class: 'columns', role: 'group',
    'aria-label': `${name}: ${bars.map(bar => bar.words).slice(0, 40).join('; ')}`}, plot, labels);
  // A few columns must not become wide blocks.
  for (const box of [plot, labels]) styled(box, {'max-width': `${bars.length * 76}px`});
  figure.append(withCursor(figure, [plot], {
    count: bars.length,
    at: share => Math.floor(share * bars.length),
    place: i => (i + 0.5) / bars.length,
    words: i => bars[i]!.words,
    mark: i => marks.forEach((mark, k) => mark.classList.toggle('now', k === i)),
  }));
  return figure;
}
