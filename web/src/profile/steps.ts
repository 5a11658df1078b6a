// Steps: how long each takes and what it is made of; the average step of every rank; how full the devices were.
import {frameOf, groupBy, maximum, sum, type Frame, type Row} from '../data/frame';
import type {Table} from '../data/report';
import {h} from '../dom';
import {duration, percent} from '../format';
import {t, type Key} from '../i18n/i18n';
import {barTable, legend, shareCell, type BarRow, type Kind} from '../plots/bars';
import {columnPlot, type ColumnBar} from '../plots/columns';
import type {Report} from '../data/report';
import {rankLabel, type Topic} from './topic';

// The categories of tb-overview, by priority; colours as everywhere, textures where no device works.
interface Category {
  id: string;
  kind: Kind;
  names: string[];
  columns: string[];
}
const CATEGORIES: readonly Category[] = [
  {id: 'Kernel', kind: 'computing', names: ['Kernel'], columns: ['kernel_ns']},
  {id: 'Communication', kind: 'communication', names: ['Communication'], columns: ['communication_ns']},
  {id: 'Copies', kind: 'memory', names: ['Memcpy', 'Memset'], columns: ['memcpy_ns', 'memset_ns']},
  {id: 'CPUExec', kind: 'host', names: ['CPU Exec'], columns: ['cpu_exec_ns']},
  {id: 'Runtime', kind: 'idle-kernel', names: ['Runtime'], columns: ['runtime_ns']},
  {id: 'DataLoader', kind: 'idle', names: ['DataLoader'], columns: ['data_loader_ns']},
  {id: 'Other', kind: 'hidden', names: ['Other'], columns: ['other_ns']},
];
const nameOf = (category: Category): string => t(`category.${category.id}` as Key);
const categoryLegend = (shown: readonly Category[]): HTMLElement =>
  legend(shown.map(category => [[category.kind], nameOf(category)] as const));

// The average step of every rank, as bars that add up; null without its table.
export function averageStep(report: Report): {nodes: Node[]; table: Table} | null {
  const frame = frameOf(report, 'step-averages', 'category', 'time_ns');
  if (!frame || maximum(frame.rows, row => row.num('time_ns')) === 0) return null;
  const of = (rows: Row[], names: string[]): number =>
    sum(rows, row => (names.includes(row.text('category')) ? row.num('time_ns') : 0));
  const ranks = [...groupBy(frame.rows, row => row.text('rank'))];
  const shown = CATEGORIES.filter(category => ranks.some(([, rows]) => of(rows, category.names) > 0));
  const rows = ranks.map(([rank, list]): BarRow => {
    const step = of(list, ['Step']);
    return {
      label: rankLabel(Number(rank)),
      whole: maximum(frame.rows, row => (row.text('category') === 'Step' ? row.num('time_ns') : 0)),
      parts: shown.map(category => ({kinds: [category.kind], value: of(list, category.names),
        words: `${nameOf(category)}: ${duration(of(list, category.names))}`})
      ),
      cells: [...shown.map(category => shareCell(of(list, category.names), step)), duration(step)],
    };
  });
  return {
    nodes: [
      h('h3', {}, t('steps.average')),
      h('p', {class: 'quiet'}, t('base.step')),
      categoryLegend(shown),
      barTable(t('steps.average'), t('details.rank'), [...shown.map(nameOf), t('steps.step')], rows),
    ],
    table: frame.table,
  };
}

// Returns how busy and how full the devices were.
export function deviceUse(report: Report): {nodes: Node[]; table: Table} | null {
  const frame = frameOf(report, 'device-utilization', 'utilization_share');
  if (!frame) return null;
  const known = (row: Row, column: string): string => (row.text(column) === '' ? '–' : percent(row.num(column)));
  const several = new Set(frame.rows.map(row => row.text('rank'))).size < frame.rows.length;
  const name = (row: Row): string =>
    [rankLabel(row.num('rank')), several && t('plot.device', row.text('device'))].filter(Boolean).join(' · ');
  // A value that no device reports gets no column: an NPU's profile has no SMs.
  const columns = (['utilization_share', 'sm_efficiency_share', 'occupancy_share', 'tensor_core_share'] as const)
    .filter(column => frame.rows.some(row => row.text(column) !== ''));
  const heads = {utilization_share: t('use.utilization'), sm_efficiency_share: t('use.sm'),
    occupancy_share: t('use.occupancy'), tensor_core_share: t('use.tensor')};
  const rows = frame.rows.map((row): BarRow => ({
    label: name(row),
    title: row.text('name'),
    whole: 1,
    parts: [{kinds: ['computing'], value: row.num('utilization_share'),
      words: `${t('use.utilization')}: ${percent(row.num('utilization_share'))}`}, {kinds: ['hidden'],
      value: 1 - row.num('utilization_share'), words: ''}],
    cells: columns.map(column => known(row, column)),
  }));
  const models = [...new Set(frame.rows.map(row => row.text('name')).filter(Boolean))];
  return {
    nodes: [
      h('h3', {}, [t('use.title'), ...models.slice(0, 2)].join(' · ')),
      barTable(t('use.title'), t('details.rank'), columns.map(column => heads[column]), rows),
    ],
    table: frame.table,
  };
}

// Mean over ranks of every category, by step.
function madeOf(frame: Frame, rank: number | null): {bars: ColumnBar[]; shown: Category[]} {
  const rows = rank === null ? frame.rows : frame.rows.filter(row => row.num('rank') === rank);
  const of = (row: Row, category: Category): number => sum(category.columns, column => row.num(column));
  const shown = CATEGORIES.filter(category => maximum(rows, row => of(row, category)) > 0);
  const bars = [...groupBy(rows, row => row.text('step'))].sort(([a], [b]) => Number(a) - Number(b)).map(
    ([step, list]): ColumnBar => {
      const parts = shown.map(category => ({kind: category.kind,
        value: sum(list, row => of(row, category)) / list.length})
      );
      const value = sum(parts, part => part.value);
      return {value, label: step, parts, words: `${t('chart.step', step)}: ${duration(value)} = ` +
        shown.map((category, k) => [category, parts[k]!.value] as const).filter(([, ns]) => ns > 0)
          .map(([category, ns]) => `${nameOf(category)} ${duration(ns)}`).join(' + ')};
    },
  );
  return {bars, shown};
}

const MOST_STEPS = 200;

export const steps: Topic = {
  id: 'steps',
  build(profile) {
    const {report} = profile.app;
    const lengths = frameOf(report, 'profiler-steps', 'step', 'dur_ns'),
      made = frameOf(report, 'step-breakdown', 'total_ns');
    const nodes: (Node | null)[] = [], tables: Table[] = [];
    if (made && made.rows.some(row => row.text('step') !== '')) {
      const {bars, shown} = madeOf(made, profile.rank);
      if (bars.length > 1)
        nodes.push(
          h('h3', {}, profile.rank === null && new Set(made.rows.map(row =>
                row.text('rank')
              )).size > 1 ? t('steps.madeMean') : t('steps.made')),
          categoryLegend(shown),
          columnPlot(t('steps.made'), bars.slice(0, MOST_STEPS)),
          bars.length > MOST_STEPS ? h('p', {class: 'quiet'}, t('plot.top', MOST_STEPS, bars.length)) : null,
        );
      tables.push(made.table);
    }
    if (lengths) {
      // The host runs ahead of the devices and blocks: its rows are used only where no device worked.
      const device = lengths.has('device_ns') && lengths.rows.some(row => row.text('device_end_ns') !== '');
      const length = (row: Row): number => row.num(device ? 'device_ns' : 'dur_ns');
      const known = device ? lengths.rows.filter(row => row.text('device_end_ns') !== '') : lengths.rows;
      const rows = profile.rank === null ? known : known.filter(row => row.num('rank') === profile.rank);
      const ordered = [...groupBy(rows, row => row.text('step'))].sort(([a], [b]) => Number(a) - Number(b));
      const all = known.map(length).sort((a, b) => a - b), median = all[all.length >> 1] ?? 0;
      const bars = ordered.map(([step, list]) => {
        const longest = maximum(list, length), worst = list.find(row => length(row) === longest)!;
        return {value: longest, label: step, hot: longest >= 1.3 * median,
          words: `${t('chart.step', step)}: ${duration(longest)}${
            list.length > 1 ? `, ${t('steps.longest', rankLabel(worst.num('rank')), list.length)}` : ''
          }`};
      });
      // Without a step that stands out the lengths above say the same.
      if (bars.length > 1 && (nodes.length === 0 || bars.some(bar => bar.hot)))
        nodes.push(nodes.length > 0 ? h('h3', {}, t('steps.lengths')) : null,
          columnPlot(t('topic.steps'), bars.slice(0, MOST_STEPS)));
      tables.push(lengths.table);
    }
    return nodes.length > 0 ? {nodes, tables, pick: 'all'} : null;
  },
};
