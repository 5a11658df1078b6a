// Memory of a rank's devices: what tensors use and the allocator holds over time, and what it is for.
import {frameOf, groupBy, maximum, type Row} from '../data/frame';
import {findTable, type Table} from '../data/report';
import {h} from '../dom';
import {bytes, duration, grouped} from '../format';
import {t, type Key} from '../i18n/i18n';
import {barTable, legend, shareCell, type BarRow, type Kind} from '../plots/bars';
import {levelPlot, type LevelPoint} from '../plots/levels';
import {oneRank, rankLabel, ranksOf, type Topic} from './topic';

// Colours of what a tensor is made by: parameters and what optimizers keep, activations forward, gradients backward.
export const CLASSES = [
  'parameter',
  'optimizer_state',
  'input',
  'activation',
  'gradient',
  'autograd_detail',
  'temporary',
  'unknown',
] as const;
const className = (name: string): string => t(`memory.${name}` as Key);
const kindOf = (name: string): Kind => `mem-${name}`;

const MOST_DEVICES = 4, TOP = 12;

// Levels by category, with what the allocator held at that time; both ascend.
function withReserved(classed: Row[], curve: Row[], shown: readonly string[]): LevelPoint[] {
  let at = 0;
  return classed.map(row => {
    while (at + 1 < curve.length && curve[at + 1]!.num('time_ns') <= row.num('time_ns')) ++at;
    return {time: row.num('time_ns'), values: shown.map(name => row.num(`${name}_bytes`)),
      line: curve[at]?.num('reserved_bytes') ?? 0};
  });
}

function peakTable(rows: Row[]): HTMLElement {
  const highest = (row: Row): number => Math.max(row.num('peak_bytes'), row.num('reserved_bytes'));
  return barTable(t('memory.peaks'), t('memory.device'), [t('memory.peak'), t('memory.at'), t('memory.reserved')],
    rows.map((row): BarRow => ({
      label: [rankLabel(row.num('rank')), row.text('device')].join(' · '),
      whole: maximum(rows, highest),
      parts: [{kinds: ['plain'], value: row.num('peak_bytes'),
        words: `${t('memory.peak')}: ${bytes(row.num('peak_bytes'))}`}, {kinds: ['hidden'],
        value: Math.max(0, row.num('reserved_bytes') - row.num('peak_bytes')),
        words: `${t('memory.reserved')}: ${bytes(row.num('reserved_bytes'))}`}],
      cells: [
        bytes(row.num('peak_bytes')),
        duration(row.num('peak_time_ns')),
        row.num('reserved_bytes') > 0 ? bytes(row.num('reserved_bytes')) : '–',
      ],
    })));
}

export const memory: Topic = {
  id: 'memory',
  build(profile) {
    const {report} = profile.app;
    const peaks = frameOf(report, 'memory-peaks', 'peak_bytes'),
      curve = frameOf(report, 'memory-curve', 'allocated_bytes');
    if (!peaks) return null;
    const series = frameOf(report, 'memory-categories', 'total_bytes'),
      alive = frameOf(report, 'memory-at-peak', 'category'),
      operators = frameOf(report, 'memory-operators', 'self_allocation_size_bytes');
    const ranks = ranksOf(curve ?? peaks), rank = oneRank(profile, ranks);
    const mine = (rows: Row[] | undefined): Row[] => (rows ?? []).filter(row => row.num('rank') === rank);
    const nodes: (Node | null)[] = [h('h3', {}, t('memory.peaks')), peakTable(peaks.rows)];
    // Devices come before the host.
    const host = (device: string): number => Number(/^cpu/i.test(device));
    const byDevice = [...groupBy(mine(curve?.rows), row => row.text('device'))].sort(([a], [b]) => host(a) - host(b));
    for (const [device, rows] of byDevice.slice(0, MOST_DEVICES)) {
      const on = (list: Row[]): Row[] => list.filter(row => row.text('device') === device);
      const place = [ranks.length > 1 && rankLabel(rank), device].filter(Boolean).join(' · ');
      // Far above the rest the line would leave no room for it; the peaks above have the number.
      const held = maximum(rows, row => row.num('reserved_bytes')),
        reserves = held > 0 && held <= 5 * maximum(rows, row => row.num('allocated_bytes')),
        reserved = reserves ? [[['mem-reserved'], t('memory.reserved')] as const] : [];
      const classed = on(mine(series?.rows)), shown = CLASSES.filter(name =>
        classed.some(row => row.num(`${name}_bytes`) > 0)
      );
      // Blocks that are never seen freed pile up; then the sum passes what was ever allocated, and says nothing.
      const followed = maximum(classed, row => row.num('total_bytes')) <= 1.1 * maximum(on(peaks.rows).filter(row =>
            row.num('rank') === rank
          ), row => row.num('peak_bytes'));
      const title = `${t('memory.curve')}, ${place}`;
      if (shown.length > 0 && followed) {
        nodes.push(h('h3', {}, title), legend([
          ...shown.map(name => [[kindOf(name)], className(name)] as const),
          ...reserved,
        ].map(([kinds, name]) => [[...kinds], name])),
          levelPlot(title, shown.map(name => ({kind: kindOf(name), name: className(name)})),
            withReserved(classed, reserves ? rows : [], shown), t('memory.reserved')));
      } else {
        nodes.push(h('h3', {}, title), legend([
          [['plain'], t('memory.allocated')],
          ...reserved.map(([kinds, name]): [Kind[], string] => [[...kinds], name]),
        ]),
          levelPlot(title, [{kind: 'plain', name: t('memory.allocated')}],
            rows.map((row): LevelPoint => ({time: row.num('time_ns'), values: [row.num('allocated_bytes')],
              line: reserves ? row.num('reserved_bytes') : 0})
            ), t('memory.reserved')), shown.length > 0 ? h('p', {class: 'quiet'}, t('memory.lost')) : null);
        continue;
      }
      const living = on(mine(alive?.rows)).sort((a, b) => b.num('size_bytes') - a.num('size_bytes'));
      if (living.length === 0) continue;
      const whole = maximum(on(mine(frameOf(report, 'memory-category-peaks', 'total_bytes')?.rows)), row =>
        row.num('total_bytes'));
      nodes.push(h('h3', {}, `${t('memory.alive')}, ${place}`), barTable(t('memory.alive'), t('memory.allocator'), [
        t('memory.class'),
        t('memory.size'),
        '%',
        t('memory.blocks'),
      ], living.slice(0, TOP).map((row): BarRow => ({
        label: row.text('operator') || t('unknown'),
        title: row.text('stack') || row.text('operator'),
        parts: [{kinds: [kindOf(row.text('category'))], value: row.num('size_bytes'),
          words: `${className(row.text('category'))}: ${bytes(row.num('size_bytes'))}`}],
        cells: [
          className(row.text('category')),
          bytes(row.num('size_bytes')),
          shareCell(row.num('size_bytes'), whole),
          grouped(row.num('blocks')),
        ],
      }))));
    }
    if (byDevice.length > MOST_DEVICES)
      nodes.push(h('p', {class: 'quiet'}, t('plot.top', MOST_DEVICES, byDevice.length)));
    const tables: Table[] = [
      peaks.table,
      ...[curve, series, alive, operators].flatMap(frame => (frame ? [frame.table] : [])),
    ];
    const more = findTable(report, 'memory-category-peaks');
    return {nodes, tables: more ? [...tables, more] : tables, pick: 'one'};
  },
};
