// A cluster: where every rank's time went, and what moved between ranks over which links.
import {frameOf, groupBy, maximum, sum, type Row} from '../data/frame';
import {h, styled} from '../dom';
import {bytes, duration, grouped} from '../format';
import {t} from '../i18n/i18n';
import {barTable, kindName, legend, shareCell, type BarRow, type Kind} from '../plots/bars';
import {plain} from '../plots/series';
import {rankLabel, type Topic} from './topic';

export const cluster: Topic = {
  id: 'cluster',
  build({app: {report}}) {
    const frame = frameOf(report, 'cluster-time-ranks', 'exposed_collective_ns');
    if (!frame) return null;
    const all: [Kind, string, string][] = [
      ['computing', 'compute_ns', kindName('computing')],
      ['communication', 'exposed_collective_ns', t('cluster.collectives')],
      ['other', 'exposed_message_ns', t('cluster.messages')],
      ['memory', 'exposed_memory_ns', t('exposed.memory')],
      ['idle', 'free_ns', t('cluster.free')],
    ];
    const parts = all.filter(([, column]) => maximum(frame.rows, row => row.num(column)) > 0);
    const rows = frame.rows.map((row): BarRow => ({
      label: rankLabel(row.num('rank')),
      parts: parts.map(([kind, column, name]) => ({kinds: [kind], value: row.num(column),
        words: `${name}: ${duration(row.num(column))}`})
      ),
      cells: [
        ...parts.map(([, column]) => shareCell(row.num(column), row.num('span_ns'))),
        duration(row.num('span_ns')),
        duration(row.num('communication_wait_ns')),
      ],
    }));
    const steps = frameOf(report, 'cluster-time-summary')?.table;
    return {tables: steps ? [frame.table, steps] : [frame.table], nodes: [
      h('p', {class: 'quiet'}, t('base.cluster')),
      legend(parts.map(([kind, , name]) => [[kind], name] as const)),
      barTable(t('topic.cluster'), t('details.rank'), [
        ...parts.map(([, , name]) => name),
        t('plot.span'),
        t('cluster.waits'),
      ], rows),
    ]};
  },
};

const MOST_RANKS = 64;

const numbersOf = (rows: Row[], column: string): number[] =>
  [...new Set(rows.map(row => row.num(column)))].sort((a, b) => a - b);

function heatTable(name: string, corner: string, ranks: number[], columns: number[],
  cell: (rank: number, column: number) => HTMLElement): HTMLElement
{
  return h('div', {class: 'plot-box scrolls', tabindex: 0, role: 'group', 'aria-label': name},
    h('table', {class: 'plot heat'}, h('caption', {class: 'live'}, name),
      h('thead', {},
        h('tr', {}, h('th', {class: 'text', scope: 'col'}, corner),
          ...columns.map(column => h('th', {scope: 'col'}, String(column))))),
      h('tbody', {},
        ...ranks.map(rank =>
          h('tr', {}, h('th', {class: 'text', scope: 'row'}, rankLabel(rank)), ...columns.map(column =>
            cell(rank, column)
          ))
        ))));
}

function matrix(name: string, rows: Row[]): HTMLElement {
  const cells = groupBy(rows, row => `${row.num('src_rank')} ${row.num('dst_rank')}`);
  const rate = (list: Row[]): number =>
    sum(list, row => row.num('bytes')) / Math.max(1, sum(list, row => row.num('transit_ns')));
  const highest = Math.max(...[...cells.values()].map(rate), 0);
  const cell = (src: number, dst: number): HTMLElement => {
    const list = cells.get(`${src} ${dst}`);
    if (!list) return h('td', {}, '');
    const title = `${src} → ${dst}: ${bytes(sum(list, row => row.num('bytes')))}, ${
      duration(sum(list, row => row.num('transit_ns')))
    }, ${plain(rate(list))} GB/s`;
    return styled(h('td', {title}, plain(rate(list))), {'--heat': `${Math.round(60 * rate(list) / (highest || 1))}%`});
  };
  return heatTable(name, t('links.fromTo'), numbersOf(rows, 'src_rank'), numbersOf(rows, 'dst_rank'), cell);
}

// Tokens of experts by rank and product of the step (or by step, where those are many), as a multiple of the mean.
export const experts: Topic = {
  id: 'experts',
  build({app: {report}}) {
    const frame = frameOf(report, 'expert-products', 'tokens');
    if (!frame) return null;
    const {rows} = frame, by = numbersOf(rows, 'product').length > MOST_RANKS ? 'step' : 'product',
      ranks = numbersOf(rows, 'rank'), name = t('topic.experts');
    const tokens = (list: Row[]): number => sum(list, row => row.num('tokens'));
    const cells = groupBy(rows, row => `${row.num('rank')} ${row.num(by)}`);
    const all = groupBy(rows, row => String(row.num(by)));
    return {tables: [frame.table], nodes: [
      heatTable(name, t(`experts.${by}`), ranks, numbersOf(rows, by), (rank, column) => {
        const own = tokens(cells.get(`${rank} ${column}`) ?? []);
        const ratio = own * ranks.length / Math.max(1, tokens(all.get(String(column))!));
        return styled(h('td', {title: grouped(own)}, plain(ratio)), {
          '--heat': `${Math.min(60, Math.round(30 * ratio))}%`,
        });
      }),
    ]};
  },
};

export const links: Topic = {
  id: 'links',
  build({app: {report}}) {
    const frame = frameOf(report, 'links', 'gb_per_s');
    if (!frame) return null;
    const between = frame.rows.filter(row => row.num('src_rank') !== row.num('dst_rank'));
    if (between.length === 0) return null;
    const nodes: HTMLElement[] = [];
    for (const [key, rows] of groupBy(between,
      row => [row.text('transport'), row.text('link')].filter(text => text !== '').join(', ')))
    {
      const name = t('links.matrix', key || t('links.unnamed')),
        ranks = new Set(rows.flatMap(row => [row.num('src_rank'), row.num('dst_rank')])).size;
      nodes.push(h('h3', {}, name), ranks <= MOST_RANKS ? matrix(name, rows)
        : h('p', {class: 'quiet'}, t('links.tooMany', grouped(ranks), MOST_RANKS)));
    }
    const others = ['bandwidth-by-size', 'slow-links', 'link-classes', 'slow-transfers'].flatMap(table =>
      frameOf(report, table)?.table ?? []
    );
    return {nodes, tables: [frame.table, ...others]};
  },
};
