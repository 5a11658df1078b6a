// Communication: what of it lies under computation, how much of it is waiting, and which collectives of what size.
import {frameOf, maximum, type Row} from '../data/frame';
import type {Report, Table} from '../data/report';
import {h} from '../dom';
import {bytes, duration, grouped, percent} from '../format';
import {t} from '../i18n/i18n';
import {barTable, legend, shareCell, type BarPart, type BarRow, type Kind} from '../plots/bars';
import {plain} from '../plots/series';
import {rankLabel, type Topic} from './topic';

type Found = {nodes: (Node | null)[]; table: Table} | null;
type Part = readonly [kinds: Kind[], column: string, words: string];

const partsOf = (row: Row, parts: readonly Part[]): BarPart[] =>
  parts.map(([kinds, column, name]) => ({kinds, value: row.num(column),
    words: `${name}: ${duration(row.num(column))}`})
  );

// The mean step of every rank; without steps the union over the whole trace.
function overlapBars(report: Report): Found {
  const step = frameOf(report, 'overlap', 'step_ns');
  // Without devices the operator that waits for a message lies over it: hidden would mean nothing.
  if (step && frameOf(report, 'temporal-breakdown') &&
    maximum(step.rows, row => row.num('communication_ns') + row.num('overlap_ns')) > 0)
  {
    const parts: Part[] = [
      [['computing'], 'computation_ns', t('overlap.alone')],
      [['computing', 'communication'], 'overlap_ns', t('overlap.both')],
      [['communication'], 'communication_ns', t('exposed.communication')],
      [['hidden'], 'other_ns', t('overlap.neither')],
    ];
    const rows = step.rows.map((row): BarRow => {
      const whole = row.num('step_ns');
      return {label: rankLabel(row.num('rank')), parts: partsOf(row, parts), cells: [
        ...parts.map(([, column]) => shareCell(row.num(column), whole)),
        duration(whole),
        row.text('hidden_share') === '' ? '–' : percent(row.num('hidden_share')),
      ]};
    });
    return {table: step.table, nodes: [
      h('h3', {}, t('communication.step')),
      h('p', {class: 'quiet'}, t('base.overlap')),
      legend(parts.map(([kinds, , name]) => [kinds, name] as const)),
      barTable(t('communication.step'), t('details.rank'), [
        ...parts.map(([, , name]) => name),
        t('steps.step'),
        t('communication.hidden'),
      ], rows),
    ]};
  }
  const frame = frameOf(report, 'comm-comp-overlap', 'overlap_ns');
  if (!frame || maximum(frame.rows, row => row.num('communication_ns')) === 0) return null;
  const parts: Part[] = [[['computing', 'communication'], 'overlap_ns', t('overlap.hidden')], [
    ['communication'],
    'exposed_ns',
    t('exposed.communication'),
  ]];
  const rows = frame.rows.map((row): BarRow => ({label: rankLabel(row.num('rank')), parts: partsOf(row, parts), cells: [
    shareCell(row.num('overlap_ns'), row.num('communication_ns')),
    duration(row.num('exposed_ns')),
    duration(row.num('communication_ns')),
  ]}));
  return {table: frame.table, nodes: [
    legend(parts.map(([kinds, , name]) => [kinds, name] as const)),
    barTable(t('topic.communication'), t('details.rank'), [
      t('overlap.share'),
      t('overlap.exposed'),
      t('kernel.communication'),
    ], rows),
  ]};
}

function waitBars(report: Report): Found {
  const frame = frameOf(report, 'waits', 'synchronizing_ns');
  if (!frame) return null;
  const all: Part[] = [[['communication'], 'transfer_ns', t('waits.transfer')], [
    ['idle'],
    'synchronizing_ns',
    t('waits.waiting'),
  ], [['hidden'], 'unknown_ns', t('waits.unknown')]];
  const parts = all.filter(([, column]) => maximum(frame.rows, row => row.num(column)) > 0);
  // A single rank has no peer to wait for.
  if (parts.length === 0 || frame.rows.length < 2) return {nodes: [], table: frame.table};
  const rows = frame.rows.map((row): BarRow => ({label: rankLabel(row.num('rank')), parts: partsOf(row, parts), cells: [
    ...parts.map(([, column]) => duration(row.num(column))),
    shareCell(row.num('synchronizing_ns'), row.num('synchronizing_ns') + row.num('transfer_ns')),
  ]}));
  return {table: frame.table, nodes: [
    h('h3', {}, t('waits.title')),
    legend(parts.map(([kinds, , name]) => [kinds, name] as const)),
    barTable(t('waits.title'), t('details.rank'), [...parts.map(([, , name]) => name), t('waits.share')], rows),
  ]};
}

const sizeName = (
  size: string,
): string => (size === 'unknown' ? t('sizes.unknown') : size.startsWith('up to ') ? t('sizes.upTo', size.slice(6))
  : size.startsWith('over ') ? t('sizes.over', size.slice(5)) : size);
const MOST_SIZES = 24;

function sizeBars(report: Report): Found {
  const frame = frameOf(report, 'collectives-by-size', 'mean_latency_ns', 'size_class');
  if (!frame) return null;
  const time = (row: Row): number => row.num('mean_latency_ns') * row.num('count');
  const rows = [...frame.rows].sort((a, b) => time(b) - time(a)).slice(0, MOST_SIZES).map((row): BarRow => {
    const moved = Math.min(row.num('mean_transfer_ns'), row.num('mean_latency_ns')),
      known = row.text('mean_transfer_ns') !== '';
    const calls = row.num('count'), rest = row.num('mean_latency_ns') - (known ? moved : 0);
    return {
      label: `${row.text('collective')}, ${sizeName(row.text('size_class'))}`,
      parts: [{kinds: ['communication'], value: known ? moved * calls : 0,
        words: `${t('waits.transfer')}: ${duration(moved * calls)}`}, {kinds: [known ? 'idle' : 'hidden'],
        value: rest * calls, words: `${known ? t('waits.waiting') : t('waits.unknown')}: ${duration(rest * calls)}`}],
      cells: [
        duration(time(row)),
        grouped(calls),
        row.text('mean_bytes') === '' ? '–' : bytes(row.num('mean_bytes')),
        duration(row.num('mean_latency_ns')),
        known ? duration(moved) : '–',
        row.text('bus_gbps') === '' ? '–' : plain(row.num('bus_gbps')),
      ],
    };
  });
  return {table: frame.table, nodes: [
    h('h3', {}, t('sizes.title')),
    legend(
      ([[['communication'], t('waits.transfer')], [['idle'], t('waits.waiting')], [
        ['hidden'],
        t('waits.unknown'),
      ]] as [Kind[], string][])
        .filter(([, name]) => rows.some(row => row.parts.some(part => part.value > 0 && part.words.startsWith(name)))),
    ),
    barTable(t('sizes.title'), t('sizes.collective'), [
      t('kernels.sum'),
      t('kernels.calls'),
      t('sizes.mean'),
      t('kernels.mean'),
      t('sizes.transfer'),
      t('sizes.bus'),
    ], rows),
    frame.rows.length > MOST_SIZES ? h('p', {class: 'quiet'}, t('plot.top', MOST_SIZES, grouped(frame.rows.length)))
      : null,
  ]};
}

export const communication: Topic = {
  id: 'communication',
  build({app: {report}}) {
    const found = [overlapBars(report), waitBars(report), sizeBars(report)].flatMap(part => part ?? []);
    if (!found.some(part => part.nodes.length > 0)) return null;
    const others = ['comm-comp-overlap', 'overlap', 'collectives'].flatMap(name => frameOf(report, name)?.table ?? []);
    return {nodes: found.flatMap(part => part.nodes),
      tables: [...new Set([...found.map(part => part.table), ...others])]};
  },
};
