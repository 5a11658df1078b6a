// Memory of a rank's devices: what tensors use and the allocator holds over time, and what it is for.
import {frameOf, groupBy, most, sum, type Row} from '../data/frame';
import {findTable, type Table} from '../data/report';
import {h} from '../dom';
import {bytes, duration, grouped} from '../format';
import {t, type Key} from '../i18n/i18n';
import {barTable, legend, shareCell, type BarRow, type Kind} from '../plots/bars';
import {levelPlot, type LevelPoint} from '../plots/levels';
import {oneRank, rankLabel, ranksOf, type Topic} from './topic';

// Colours of what a tensor is made by: parameters and what optimizers keep, activations forward, gradients backward.
const CLASSES = ['parameter', 'optimizer_state', 'input', 'activation', 'gradient', 'autograd_detail', 'temporary', 'unknown'] as const;
const className = (name: string): string => t(`memory.${name}` as Key);
const kindOf = (name: string): Kind => `mem-${name}`;

const MOST_DEVICES = 4, TOP = 12;

function peakTable(rows: Row[]): HTMLElement {
  const highest = (row: Row): number => Math.max(row.num('peak_bytes'), row.num('reserved_bytes'));
  return barTable(t('memory.peaks'), t('memory.device'), [t('memory.peak'), t('memory.at'), t('memory.reserved')], rows.map((row): BarRow => ({
    label: [rankLabel(row.num('rank')), row.text('device')].join(' · '), whole: most(rows, highest),
    parts: [{kinds: ['plain'], value: row.num('peak_bytes'), words: `${t('memory.peak')}: ${bytes(row.num('peak_bytes'))}`},
            {kinds: ['hidden'], value: Math.max(0, row.num('reserved_bytes') - row.num('peak_bytes')), words: `${t('memory.reserved')}: ${bytes(row.num('reserved_bytes'))}`}],
    cells: [bytes(row.num('peak_bytes')), duration(row.num('peak_time_ns')), row.num('reserved_bytes') > 0 ? bytes(row.num('reserved_bytes')) : '–'],
  })));
}

export const memory: Topic = {
  id: 'memory',
  build(profile) {
    const {report} = profile.app;
    const peaks = frameOf(report, 'memory-peaks', 'peak_bytes'), curve = frameOf(report, 'memory-curve', 'allocated_bytes');
    if (!peaks) return null;
    const series = frameOf(report, 'memory-categories', 'total_bytes'), alive = frameOf(report, 'memory-at-peak', 'category'), operators = frameOf(report, 'memory-operators', 'self_allocation_size_bytes');
    const ranks = ranksOf(curve ?? peaks), rank = oneRank(profile, ranks);
    const mine = (rows: Row[] | undefined): Row[] => (rows ?? []).filter(row => row.num('rank') === rank);
    const nodes: (Node | null)[] = [h('h3', {}, t('memory.peaks')), peakTable(peaks.rows)];
    // Devices before the host.
    const byDevice = [...groupBy(mine(curve?.rows), row => row.text('device'))].sort(([a], [b]) => Number(a === 'cpu') - Number(b === 'cpu'));
    const place = (device: string): string => [ranks.length > 1 && rankLabel(rank), device].filter(Boolean).join(' · ');
    for (const [device, rows] of byDevice.slice(0, MOST_DEVICES)) {
      const classed = mine(series?.rows).filter(row => row.text('device') === device);
      const shown = CLASSES.filter(name => classed.some(row => row.num(`${name}_bytes`) > 0));
      const title = `${t('memory.curve')}, ${place(device)}`, reserves = rows.some(row => row.num('reserved_bytes') > 0);
      nodes.push(h('h3', {}, title), legend([[['plain'], t('memory.allocated')], ...(reserves ? [[['mem-reserved'], t('memory.reserved')] as [Kind[], string]] : [])]),
        levelPlot(title, [{kind: 'plain', name: t('memory.allocated')}],
          rows.map((row): LevelPoint => ({time: row.num('time_ns'), values: [row.num('allocated_bytes')], line: row.num('reserved_bytes')})), t('memory.reserved')));
      if (shown.length > 0) {
        const named = `${t('memory.byClass')}, ${place(device)}`;
        nodes.push(h('h3', {}, named), legend(shown.map(name => [[kindOf(name)], className(name)] as const)),
          levelPlot(named, shown.map(name => ({kind: kindOf(name), name: className(name)})),
            classed.map((row): LevelPoint => ({time: row.num('time_ns'), values: shown.map(name => row.num(`${name}_bytes`))}))));
      }
    }
    if (byDevice.length > MOST_DEVICES) nodes.push(h('p', {class: 'quiet'}, t('plot.top', MOST_DEVICES, byDevice.length)));
    const living = mine(alive?.rows).sort((a, b) => b.num('size_bytes') - a.num('size_bytes'));
    if (living.length > 0) {
      const whole = sum(mine(frameOf(report, 'memory-category-peaks', 'total_bytes')?.rows), row => row.num('total_bytes'));
      nodes.push(h('h3', {}, `${t('memory.alive')}${ranks.length > 1 ? `, ${rankLabel(rank)}` : ''}`),
        barTable(t('memory.alive'), t('memory.allocator'), [t('memory.class'), t('memory.size'), '%', t('memory.blocks')], living.slice(0, TOP).map((row): BarRow => ({
          label: row.text('operator') || t('unknown'), title: row.text('stack') || row.text('operator'),
          parts: [{kinds: [kindOf(row.text('category'))], value: row.num('size_bytes'), words: `${className(row.text('category'))}: ${bytes(row.num('size_bytes'))}`}],
          cells: [className(row.text('category')), bytes(row.num('size_bytes')), shareCell(row.num('size_bytes'), whole), grouped(row.num('blocks'))],
        }))));
    }
    const tables: Table[] = [peaks.table, ...[curve, series, alive, operators].flatMap(frame => (frame ? [frame.table] : []))];
    const more = findTable(report, 'memory-category-peaks');
    return {nodes, tables: more ? [...tables, more] : tables, pick: 'one'};
  },
};
