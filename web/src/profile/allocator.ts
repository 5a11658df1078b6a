// Snapshots of PyTorch's allocator: what categories and stacks hold over time, and the segments as areas.
import {frameOf, groupBy, maximum, sum, type Row} from '../data/frame';
import {findTable} from '../data/report';
import {h, styled} from '../dom';
import {bytes, duration} from '../format';
import {t, type Key} from '../i18n/i18n';
import {legend, type Kind} from '../plots/bars';
import {levelPlot} from '../plots/levels';
import {CLASSES} from './memory';
import {oneRank, rankLabel, ranksOf, type Topic} from './topic';

const CATEGORIES = ['before', ...CLASSES];
const STACKS = 8, OTHERS = 'others';

// The frame that a person looks for: the innermost one outside of torch and of libraries. "forward train.py:10"
export function frameName(stack: string): string {
  const frames = stack.split(';'),
    own = frames.find(frame => !/\/torch\/|\.(so|cpp|cc|cu|h)\b|^\?\?/.test(frame)) ?? frames[0]!;
  const [, file, line, name] = /([^/\\]*)\((\d+)\): (.*)$/.exec(own) ?? [];
  return name ? `${name} ${file}:${line}` : own || t('unknown');
}

interface Area<T> {
  item: T;
  x: number;
  y: number;
  w: number;
  h: number;
}
// Lays items out as areas in proportion to their sizes, as near to squares as they come (Bruls, Huizing, van Wijk,
// Squarified Treemaps, 2000): rows along the shorter side, each as long as that makes its worst shape better.
export function treemap<T>(items: readonly T[], size: (item: T) => number, w: number, h: number): Area<T>[] {
  const out: Area<T>[] = [], list = items.filter(item => size(item) > 0).sort((a, b) => size(b) - size(a));
  const scale = w * h / sum(list, size);
  let x = 0, y = 0;
  for (let from = 0, to = 0; from < list.length; from = to) {
    const side = Math.min(w, h);
    let row = 0, worst = Infinity;
    for (; to < list.length; ++to) {
      const more = row + size(list[to]!) * scale,
        shape = Math.max(side * side * size(list[from]!) * scale / more ** 2,
          more ** 2 / (side * side * size(list[to]!) * scale));
      if (shape > worst) break;
      worst = shape;
      row = more;
    }
    const thick = row / side;
    let at = 0;
    for (const item of list.slice(from, to)) {
      const long = size(item) * scale / thick;
      out.push(w >= h ? {item, x, y: y + at, w: thick, h: long} : {item, x: x + at, y, w: long, h: thick});
      at += long;
    }
    if (w >= h) {
      x += thick;
      w -= thick;
    } else {
      y += thick;
      h -= thick;
    }
  }
  return out;
}

const WIDE = 1000, HIGH = 240, MOST_SEGMENTS = 2000; // units of the map: percents of it are written
function segmentMap(name: string, segments: Row[]): HTMLElement {
  const of = (row: Row): number => row.num('bytes'),
    pools = [...groupBy(segments.slice(0, MOST_SEGMENTS), row => `${row.text('pool')} ${row.text('stream')}`).values()];
  const place = ({x, y, w, h}: Omit<Area<unknown>, 'item'>): Record<string, string> => ({left: `${x / WIDE * 100}%`,
    top: `${y / HIGH * 100}%`, width: `${w / WIDE * 100}%`, height: `${h / HIGH * 100}%`});
  const boxes = treemap(pools, pool => sum(pool, of), WIDE, HIGH).flatMap(pool =>
    treemap(pool.item, of, pool.w, pool.h).map(({item, ...area}) => {
      const part = (column: string): Record<string, string> => ({height: `${item.num(column) / of(item) * 100}%`});
      return styled(
        h('div', {class: 'segment',
          title:
            t('memory.segment', item.text('address'), bytes(of(item)), bytes(item.num('used_bytes')),
              bytes(item.num('largest_free_bytes')), item.text('blocks'), item.text('stream'), item.text('kind'),
              item.text('pool')) + (item.text('stack') ? `\n${item.text('stack').replaceAll(';', '\n')}` : '')},
          styled(h('b'), part('used_bytes')), styled(h('i'), part('largest_free_bytes')),
          area.w > 60 && area.h > 24 && h('span', {}, bytes(of(item)))),
        place({...area, x: pool.x + area.x, y: pool.y + area.y}),
      );
    })
  );
  return h('div', {class: 'segments', role: 'img', 'aria-label': name}, ...boxes);
}

export const allocator: Topic = {
  id: 'allocator',
  build(profile) {
    const {report} = profile.app, curve = frameOf(report, 'allocator-curve', 'stack_1_bytes'),
      segments = frameOf(report, 'allocator-segments', 'largest_free_bytes'), any = curve ?? segments;
    if (!any) return null;
    const ranks = ranksOf(any), rank = oneRank(profile, ranks), nodes: (Node | null)[] = [];
    const mine = (name: string, ...holding: string[]): Row[] =>
      (frameOf(report, name, ...holding)?.rows ?? []).filter(row => row.num('rank') === rank);
    const ooms = mine('allocator-ooms', 'reason'),
      origin = (name: string): bigint => BigInt(findTable(report, name)?.origin ?? 0),
      later = Number(origin('allocator-ooms') - origin('allocator-curve')); // tables count from their own first times
    const place = (device: string): string =>
      [ranks.length > 1 && rankLabel(rank), t('memory.deviceOf', device)].filter(Boolean).join(' · ');
    for (const [device, rows] of groupBy(mine('allocator-curve'), row => row.text('device'))) {
      const on = (row: Row): boolean => row.text('device') === device, stacks = mine('allocator-stacks').filter(on);
      const zero = rows[0]!.num('time_ns'),
        marks = ooms.filter(on).map(row => ({time: row.num('time_ns') + later,
          words: t('memory.oom', duration(row.num('time_ns') + later - zero), bytes(row.num('wanted_bytes')),
            bytes(row.num('free_bytes')), bytes(row.num('largest_free_bytes')))})
        );
      const plot = (by: Key, levels: {column: string; kind: Kind; name: string; title?: string}[]): void => {
        const shown = levels.filter(({column}) => maximum(rows, row => row.num(column)) > 0),
          title = `${t(by)}, ${place(device)}`;
        nodes.push(h('h3', {}, title), legend([
          ...shown.map(({kind, name}): [Kind[], string] => [[kind], name]),
          [['mem-reserved'], t('memory.reserved')],
        ]), levelPlot(title, shown, rows.map(row => ({time: row.num('time_ns'), values: shown.map(({column}) =>
          row.num(column)
        ), line: row.num('reserved_bytes')})), t('memory.reserved'), marks));
      };
      // Without a profiler's notes all memory of the history is of no known category.
      if (CATEGORIES.slice(1, -1).some(name =>
        maximum(rows, row =>
          row.num(`${name}_bytes`)) > 0
      ))
        plot('memory.byCategory',
          CATEGORIES.map(name => ({column: `${name}_bytes`, kind: `mem-${name}`, name: t(`memory.${name}` as Key)})));
      plot('memory.byStack', [
        ...stacks.slice(0, STACKS).map((row, k) => ({column: `stack_${k + 1}_bytes`, kind: `stack-${k + 1}` as Kind,
          name: frameName(row.text('stack'))})
        ),
        {column: `stack_${OTHERS}_bytes`, kind: 'mem-unknown', name: t('memory.otherStacks')},
      ]);
      nodes.push(...marks.map(({words}) => h('p', {class: 'ran-out'}, words)));
    }
    for (const [device, rows] of groupBy(mine('allocator-segments'), row => row.text('device'))) {
      const title = `${t('memory.segments')}, ${place(device)}`;
      nodes.push(h('h3', {}, title), legend([
        [['plain'], t('memory.used')],
        [['idle-other'], t('memory.largestFree')],
        [['idle'], t('memory.free')],
      ]), segmentMap(title, rows));
    }
    return {nodes, tables: [], pick: 'one'};
  },
};
