// The host's side and what changes over time: queues, bandwidth, launches.
import {frameOf, groupBy, sum, type Frame, type Row} from '../data/frame';
import {findTable} from '../data/report';
import {h} from '../dom';
import {duration, grouped, percent, tickName} from '../format';
import {t} from '../i18n/i18n';
import {barTable, type BarRow, type Kind} from '../plots/bars';
import {columnPlot} from '../plots/columns';
import {seriesPlot, type Bin, type Series} from '../plots/series';
import {oneRank, rankLabel, ranksOf, type Profile, type Topic} from './topic';

const MOST_STRIPS = 12;

const bin = (row: Row): Bin => ({start: row.num('start_ns'), dur: row.num('dur_ns'), mean: row.num('mean'),
  max: row.num('max')});

// Busiest strips first, and no more of them than can be read.
function strips(frame: Frame, rank: number, name: (row: Row) => string, kind: Kind, read: (row: Row) => Bin): Series[] {
  const groups = groupBy(frame.rows.filter(row => row.num('rank') === rank), name);
  return [...groups].map(([label, rows]): Series => ({name: label, kind, bins: rows.map(read)}))
    .sort((a, b) => sum(b.bins, x => x.mean * x.dur) - sum(a.bins, x => x.mean * x.dur)).slice(0, MOST_STRIPS);
}

function tablesOf(profile: Profile, ...names: string[]): NonNullable<ReturnType<typeof findTable>>[] {
  return names.flatMap(name => findTable(profile.app.report, name) ?? []);
}

export const queues: Topic = {
  id: 'queues',
  build(profile) {
    const frame = frameOf(profile.app.report, 'queue-length-over-time', 'mean', 'start_ns');
    const tables = tablesOf(profile, 'queue-length-summary', 'time-spent-blocked-on-full-queue',
      'queue-length-over-time');
    if (!frame) return tables.some(table => table.rowCount > 0) ? {nodes: [], tables} : null;
    const rank = oneRank(profile, ranksOf(frame));
    const list = strips(frame, rank, row => t('plot.stream', row.text('stream')), 'plain', bin);
    return {nodes: [seriesPlot(`${t('topic.queues')}, ${rankLabel(rank)}`, '', list)], tables, pick: 'one'};
  },
};

export const bandwidth: Topic = {
  id: 'bandwidth',
  build(profile) {
    const frame = frameOf(profile.app.report, 'memory-bw-over-time', 'mean_gbps', 'start_ns');
    const tables = tablesOf(profile, 'memory-bw-summary', 'memory-bw-over-time');
    if (!frame) return tables.some(table => table.rowCount > 0) ? {nodes: [], tables} : null;
    const rank = oneRank(profile, ranksOf(frame));
    const list = strips(frame, rank, row => row.text('name'), 'memory',
      row => ({...bin(row), mean: row.num('mean_gbps'), max: row.num('max_gbps')}));
    return {nodes: [seriesPlot(`${t('topic.bandwidth')}, ${rankLabel(rank)}`, 'GB/s', list)], tables, pick: 'one'};
  },
};

export const launches: Topic = {
  id: 'launches',
  build(profile) {
    const {report} = profile.app;
    const histogram = frameOf(report, 'launch-delay-histogram', 'from_ns', 'launches'),
      outliers = frameOf(report, 'outliers', 'events');
    if (!histogram && (!outliers || sum(outliers.rows, row => row.num('events')) === 0)) return null;
    const nodes: (Node | null)[] = [];
    if (histogram) {
      const all = sum(histogram.rows, row => row.num('launches'));
      nodes.push(h('h3', {}, t('launches.delay')), columnPlot(t('launches.delay'), histogram.rows.map(row => {
        const to = row.num('to_ns'),
          range = to > 0 ? `${tickName(row.num('from_ns'))} – ${tickName(to)}` : `≥ ${tickName(row.num('from_ns'))}`;
        return {value: row.num('launches'), label: tickName(row.num('from_ns')),
          words: `${range}: ${
            t('launches.count', grouped(row.num('launches')), percent(all > 0 ? row.num('launches') / all : 0))
          }`};
      })));
    }
    if (outliers) {
      const rows = outliers.rows.map((row): BarRow => {
        const events = row.num('events'), short = row.num('short_gpu_kernels');
        return {label: rankLabel(row.num('rank')), whole: events,
          parts: [{kinds: ['plain'], value: short, words: `${t('launches.short')}: ${grouped(short)}`}, {
            kinds: ['hidden'],
            value: events - short,
            words: t('launches.all'),
          }], cells: [
            grouped(events),
            grouped(short),
            grouped(row.num('runtime_outliers')),
            grouped(row.num('launch_delay_outliers')),
            duration(row.num('call_ns')),
          ]};
      });
      // Where nothing is shorter than its call a bar would be an empty frame; the numbers stay in the table.
      if (sum(outliers.rows, row => row.num('short_gpu_kernels')) === 0)
        nodes.push(h('p', {class: 'quiet'}, t('launches.noneShort')));
      else nodes.push(h('h3', {}, t('launches.shortTitle')), barTable(t('launches.shortTitle'), t('details.rank'), [
          t('launches.all'),
          t('launches.short'),
          t('launches.slow'),
          t('launches.late'),
          t('launches.host'),
        ], rows));
    }
    return {nodes, tables: [histogram, outliers].flatMap(frame => (frame ? [frame.table] : []))};
  },
};
