// Upright columns: a histogram, or one value a step.
import {h, svg} from '../dom';
import type {Kind} from './bars';
import {withCursor} from './cursor';

export interface ColumnBar { value: number; label: string; words: string; hot?: boolean; parts?: { kind: Kind; value: number }[] }  // parts: from the foot

const HEIGHT = 120;

// `labels`: every how many columns one is named below.
export function columnPlot(name: string, bars: ColumnBar[], low = 0): HTMLElement {
  const high = bars.reduce((top, bar) => Math.max(top, bar.value), 0);
  const every = Math.max(1, Math.ceil(bars.length / 16));
  const heightOf = (value: number): number => (high > low ? (value - low) / (high - low) * (HEIGHT - 4) : HEIGHT - 4);
  const rect = (i: number, foot: number, height: number, kind: string): SVGElement =>
    svg('rect', {x: i + 0.06, width: 0.88, y: HEIGHT - foot - height, height, class: kind});
  const rects = bars.map((bar, i): SVGElement => {
    if (!bar.parts) return rect(i, 0, Math.max(bar.value > 0 ? 1.5 : 0, heightOf(bar.value)), bar.hot ? 'hot' : '');
    let foot = 0;
    return svg('g', {class: 'stacked'}, ...bar.parts.filter(part => part.value > 0).map(part => {
      const height = heightOf(part.value);
      foot += height;
      return rect(i, foot - height, height, `kind-${part.kind}`);
    }));
  });
  const plot = h('div', {class: 'column-plot'},
    svg('svg', {viewBox: `0 0 ${bars.length} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true'}, ...rects));
  const labels = h('div', {class: 'column-labels', 'aria-hidden': 'true'},
    ...bars.map((bar, i) => h('span', {}, i % every === 0 ? bar.label : '')));
  const figure = h('figure', {class: 'columns', role: 'group', 'aria-label': `${name}: ${bars.map(bar => bar.words).slice(0, 40).join('; ')}`},
    plot, labels);
  figure.style.setProperty('max-width', `${bars.length * 76}px`);  // a few columns are no walls
  figure.append(withCursor(figure, [plot], {
    count: bars.length,
    at: share => Math.floor(share * bars.length),
    place: i => (i + 0.5) / bars.length,
    words: i => bars[i]!.words,
    mark: i => rects.forEach((rect, k) => rect.classList.toggle('now', k === i)),
  }));
  return figure;
}
