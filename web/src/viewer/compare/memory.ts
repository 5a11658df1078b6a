// Two snapshots of an allocator: what each category and stack holds at the peak of B and did at that of A.
import {frameOf, groupBy, sum, type Row} from '../../data/frame';
import type {Report, Table} from '../../data/report';
import {h, unseen} from '../../dom';
import {bytes, percent} from '../../format';
import {t, type Key} from '../../i18n/i18n';
import {frameName} from '../../profile/allocator';

const MOST_ROWS = 20;

interface Change {
  name: string;
  title: string;
  a: number;
  b: number;
}
const rowsOf = (tables: readonly Table[], name: string): Row[] =>
  frameOf({tables} as unknown as Report, name)?.rows ?? [];

// Rows of both runs by their text, the largest change first; ranks and devices are summed.
function changes(a: readonly Table[], b: readonly Table[], table: string, key: string): Change[] {
  const both = [a, b].map(tables => groupBy(rowsOf(tables, table), row => row.text(key))),
    held = (rows: Row[] | undefined): number => sum(rows ?? [], row => row.num('at_peak_bytes'));
  return [...new Set(both.flatMap(one => [...one.keys()]))].map((title): Change => ({title,
    name: key === 'stack' ? frameName(title) : t(`memory.${title}` as Key), a: held(both[0]!.get(title)),
    b: held(both[1]!.get(title))})
  ).filter(one => one.a !== one.b).sort((one, other) => Math.abs(other.b - other.a) - Math.abs(one.b - one.a));
}
const signed = (value: number): string => (value < 0 ? '' : '+') + bytes(value);

function table(title: string, rows: readonly Change[], most: number): HTMLElement | null {
  if (rows.length === 0) return null;
  return h('section', {class: 'effects'}, h('h2', {}, title),
    h('div', {class: 'plot-box'},
      h('table', {class: 'plot'},
        h('thead', {},
          h('tr', {}, h('th', {class: 'text', scope: 'col'}, t('compare.what')),
            h('th', {class: 'bar'}, unseen(t('plot.bar'))), h('th', {scope: 'col'}, t('snapshots.atPeak', 'A')),
            h('th', {scope: 'col'}, t('snapshots.atPeak', 'B')), h('th', {scope: 'col'}, t('snapshots.change')))),
        h('tbody', {}, ...rows.slice(0, MOST_ROWS).map(({name, title, a, b}) => {
          const bar = h('i', {class: b > a ? 'slower' : 'faster'}), width = Math.abs(b - a) / most * 50;
          bar.style.setProperty('width', `${width}%`);
          bar.style.setProperty('left', `${b > a ? 50 : 50 - width}%`);
          return h('tr', {}, h('th', {class: 'text', scope: 'row', title: title.replaceAll(';', '\n')}, name),
            h('td', {class: 'bar'}, h('div', {class: 'effect', 'aria-hidden': 'true'}, bar)), h('td', {}, bytes(a)),
            h('td', {}, bytes(b)), h('td', {}, signed(b - a)));
        })))));
}

// Returns null where one of the runs has no snapshot.
export function compareMemory(a: readonly Table[], b: readonly Table[]): HTMLElement[] | null {
  const sums = [a, b].map(tables => rowsOf(tables, 'allocator-sums'));
  if (sums.some(rows => rows.length === 0)) return null;
  const of = (column: string): [number, number] =>
    [0, 1].map(k => sum(sums[k]!, row => row.num(column))) as [number, number];
  const peak = of('peak_bytes'), byStack = changes(a, b, 'allocator-stacks', 'stack'),
    byCategory = changes(a, b, 'allocator-categories', 'category'), most = Math.max(
      ...[...byStack, ...byCategory].map(one => Math.abs(one.b - one.a)),
      1,
    ), first = byStack[0];
  const levels: [Key, string][] = [
    ['memory.peak', 'peak_bytes'],
    ['memory.reserved', 'reserved_bytes'],
    ['memory.used', 'allocated_bytes'],
    ['memory.free', 'free_external_bytes'],
    ['memory.largestFree', 'largest_free_bytes'],
  ];
  return [
    h('h1', {tabindex: -1}, t('snapshots.compared', bytes(peak[0]), bytes(peak[1]), signed(peak[1] - peak[0]))),
    h('p', {class: 'lead'}, first ? t('snapshots.mostBy', first.name, signed(first.b - first.a)) : t('snapshots.same')),
    h('table', {class: 'plot'},
      h('thead', {},
        h('tr', {}, h('td', {class: 'text'}), h('th', {scope: 'col'}, 'A'), h('th', {scope: 'col'}, 'B'),
          h('th', {scope: 'col'}, t('snapshots.change')))), h('tbody', {}, ...levels.map(([key, column]) => {
          const [before, after] = of(column);
          return h('tr', {}, h('th', {class: 'text', scope: 'row'}, t(key)), h('td', {}, bytes(before)),
            h('td', {}, bytes(after)),
            h('td', {},
              `${signed(after - before)}${
                before > 0 ? ` (${after > before ? '+' : ''}${percent(after / before - 1)})` : ''
              }`));
        }))),
    table(t('snapshots.stacks'), byStack, most),
    table(t('snapshots.categories'), byCategory, most),
  ].filter((one): one is HTMLElement => one !== null);
}
