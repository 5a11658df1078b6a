// Bars in the rows of a table: the numbers are next to them, so a reader without the picture has all of them.
import {h, styled, unseen} from '../dom';
import {grouped, percent} from '../format';
import {t, type Key} from '../i18n/i18n';
import {cutByWidth} from '../short_name';

// The kind of a stretch of time; each has one colour everywhere (style.css, .kind-NAME).
export type Kind =
  | 'computing'
  | 'communication'
  | 'memory'
  | 'other'
  | 'idle'
  | 'idle-kernel'
  | 'idle-other'
  | 'hidden'
  | 'plain'
  | 'host'
  | `mem-${string}`
  | `stack-${string}`
  | `part-${string}`;
export interface BarPart {
  kinds: Kind[];
  value: number;
  words: string;
} // two kinds: they ran together
export interface BarRow {
  label: string;
  title?: string;
  href?: string;
  depth?: number;
  parts: BarPart[];
  whole?: number;
  cells: string[];
}

export const kindName = (kind: Kind): string => t(`kernel.${kind}` as Key);

export function legend(items: readonly (readonly [Kind[], string])[]): HTMLElement {
  return h('ul', {class: 'key'}, ...items.map(([kinds, name]) => h('li', {}, swatch(kinds), name)));
}
export const kindLegend = (kinds: Kind[]): HTMLElement => legend(kinds.map(kind => [[kind], kindName(kind)] as const));

const swatch = (kinds: Kind[]): HTMLElement =>
  h('i', {class: 'swatch', 'aria-hidden': 'true'}, ...kinds.map(kind => h('b', {class: `kind-${kind}`})));

// A part below 0 made the whole shorter. It is a frame at the end, over as much of the sum of the others: the filled
// part of the bar ends at the whole. The frame never starts before the bar.
export function stack(parts: BarPart[], whole: number): HTMLElement {
  const width = (value: number): string => `${whole > 0 ? Math.min(100, value / whole * 100) : 0}%`;
  const sum = parts.reduce((all, part) => all + Math.max(0, part.value), 0),
    below = (part: BarPart): number => Math.min(-part.value, sum);
  const boxes = (part: BarPart): HTMLElement[] => part.kinds.map(kind => h('b', {class: `kind-${kind}`}));
  return h('div', {class: 'stack', 'aria-hidden': 'true'},
    ...parts.filter(part => part.value > whole / 2000).map(part =>
      styled(h('span', {title: part.words}, ...boxes(part)), {width: width(part.value)})
    ),
    ...parts.filter(part => part.value < 0 && below(part) >= whole / 1000).map(part =>
      styled(h('span', {class: 'below', title: part.words}, ...boxes(part)), {width: width(below(part)),
        'margin-left': `-${width(below(part))}`})
    ));
}

const SCROLL_ROWS = 18, MOST_ROWS = 200;

// `heads`: names of the columns after the bar. Without `whole` a row is drawn on the scale of the longest one.
export function barTable(name: string, rowHead: string, heads: string[], all: BarRow[]): HTMLElement {
  const rows = all.slice(0, MOST_ROWS);
  const total = (row: BarRow): number => row.parts.reduce((all, part) => all + Math.max(0, part.value), 0);
  const longest = Math.max(...rows.map(total), 0);
  const table = h('table', {class: 'plot'}, h('caption', {class: 'live'}, name),
    h('thead', {},
      h('tr', {}, h('th', {class: 'text', scope: 'col'}, rowHead), h('th', {class: 'bar'}, unseen(t('plot.bar'))),
        ...heads.map(head => h('th', {scope: 'col'}, head)))), h('tbody', {}, ...rows.map(row =>
        h('tr', {}, styled(
          h('th', {class: row.label.length <= 24 ? 'text short' : 'text', scope: 'row', title: row.title ?? null},
            ...row.href ? [h('a', {href: row.href}, row.label)] : row.title ? cutByWidth(row.label) : [row.label]),
          row.depth ? {'--depth': String(row.depth)} : {},
        ), h('td', {class: 'bar'}, stack(row.parts, row.whole ?? longest)),
          ...row.cells.map(cell => h('td', {}, cell)))
      )));
  const scrolls = rows.length > SCROLL_ROWS;
  return h('div', {class: scrolls ? 'plot-box scrolls' : 'plot-box', tabindex: scrolls ? 0 : null,
    role: scrolls ? 'group' : null, 'aria-label': scrolls ? name : null}, table,
    all.length > MOST_ROWS && h('p', {class: 'quiet'}, t('plot.top', MOST_ROWS, grouped(all.length))));
}

export const shareCell = (part: number, whole: number): string => (whole > 0 ? percent(part / whole) : '–');
