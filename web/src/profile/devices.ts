// Where the devices' time went: breakdown, idle time and its causes, who is waited for.
import {frameOf, groupBy, maximum, sum, type Row} from '../data/frame';
import {h} from '../dom';
import {duration, grouped, percent} from '../format';
import {t} from '../i18n/i18n';
import {barTable, kindName, legend, shareCell, type BarPart, type BarRow, type Kind} from '../plots/bars';
import type {Report, Table} from '../data/report';
import {averageStep, deviceUse} from './steps';
import {oneRank, rankLabel, ranksOf, wordsFor, type Topic} from './topic';

const time = (ns: number): string => (ns > 0 ? duration(ns) : '–');
const part = (kind: Kind, value: number, whole: number, name = kindName(kind)): BarPart => ({kinds: [kind], value,
  words: `${name}: ${duration(value)}${whole > 0 ? `, ${percent(value / whole)}` : ''}`});

// `limit`: at most this number of ranks, then those that compute the smallest share of their time first.
export function deviceBars(report: Report, limit = Infinity): {nodes: Node[]; table: Table} | null {
  const frame = frameOf(report, 'temporal-breakdown', 'span_ns');
  if (!frame) return null;
  const splits = frame.has('exposed_communication_ns', 'exposed_memory_ns');
  const every: Kind[] = splits ? ['computing', 'communication', 'memory', 'idle'] : ['computing', 'other', 'idle'];
  const all = splits ? ['compute_ns', 'exposed_communication_ns', 'exposed_memory_ns', 'idle_ns']
    : ['compute_ns', 'non_compute_ns', 'idle_ns'];
  const columns = all.filter(column => maximum(frame.rows, row => row.num(column)) > 0),
    kinds = columns.map(column => every[all.indexOf(column)]!);
  const names = kinds.map(
    kind => (splits && (kind === 'communication' || kind === 'memory') ? t(`exposed.${kind}`) : kindName(kind)),
  );
  const few = frame.rows.length <= limit ? frame.rows
    : [...frame.rows].sort((a, b) => a.num('compute_ns') / a.num('span_ns') - b.num('compute_ns') / b.num('span_ns'))
      .slice(0, limit);
  const rows = few.map((row): BarRow => {
    const span = row.num('span_ns');
    return {
      label: rankLabel(row.num('rank')),
      parts: columns.map((column, i) => part(kinds[i]!, row.num(column), span, names[i])),
      cells: [...columns.map(column => shareCell(row.num(column), span)), duration(span)],
    };
  });
  return {
    nodes: [
      h('h3', {}, t('breakdown.devices')),
      h('p', {class: 'quiet'}, t('base.devices')),
      legend(kinds.map((kind, i) => [[kind], names[i]!] as const)),
      barTable(t('breakdown.devices'), t('details.rank'), [...names, t('plot.span')], rows),
      ...(few.length < frame.rows.length
        ? [h('p', {class: 'quiet'}, t('plot.worst', few.length, grouped(frame.rows.length)))] : []),
    ],
    table: frame.table,
  };
}

// The devices from first to last work, the average step with what the host did meanwhile, and how full they were.
export const breakdown: Topic = {
  id: 'breakdown',
  build({app: {report}}) {
    const found = [deviceBars(report), averageStep(report), deviceUse(report)].flatMap(part => part ?? []);
    return found.length === 0 ? null
      : {nodes: found.flatMap(part => part.nodes), tables: found.map(part => part.table)};
  },
};

// By cause, in this order: what the host did, then what was launched already.
const CAUSES: ReadonlyArray<readonly [string, Kind]> = [
  ...['input', 'blocked', 'host', 'launch', 'collector', 'allocator', 'host-collective', 'unseen'].map(cause =>
    [cause, 'idle'] as const
  ),
  ['kernel', 'idle-kernel'],
  ['other', 'idle-other'],
];

function causeRow(label: string, rows: Row[], whole: number): BarRow {
  const of = (cause: string): number => sum(rows.filter(row => row.text('cause') === cause), row => row.num('idle_ns'));
  const parts = CAUSES.map(([cause, kind]) => part(kind, of(cause), whole, wordsFor(`cause.${cause}`)));
  const longest = maximum(rows, row => row.num('max_ns')), all = sum(rows, row => row.num('idle_ns'));
  return {
    label,
    parts,
    cells: [
      time(all - of('kernel') - of('other')),
      time(of('kernel')),
      time(of('other')),
      ...(longest > 0 ? [time(longest)] : []),
    ],
  };
}

export const idle: Topic = {
  id: 'idle',
  build(profile) {
    const {report} = profile.app;
    const device = frameOf(report, 'device-idle', 'cause'), streams = frameOf(report, 'idle-time', 'stream', 'cause');
    if (!device && !streams) return null;
    const nodes: (Node | null)[] = [
      legend(
        CAUSES.slice(-3).map(([cause, kind]) =>
          [[kind], wordsFor(kind === 'idle' ? 'cause.anyHost' : `cause.${cause}`)] as const
        ),
      ),
    ];
    const heads = ['cause.anyHost', 'cause.kernel', 'cause.other'].map(wordsFor);
    if (device) {
      const rows = [...groupBy(device.rows, row => row.text('rank'))].map(([own, list]) =>
        causeRow(rankLabel(Number(own)), list, sum(list, row => row.num('idle_ns')))
      );
      nodes.push(h('h3', {}, t('idle.devices')),
        barTable(t('idle.devices'), t('details.rank'), [...heads, t('plot.longest')], rows));
    }
    if (streams) {
      const chosen = streams.rows.filter(row => row.num('rank') === oneRank(profile, ranksOf(streams)));
      const devices = new Set(chosen.map(row => row.text('device'))).size;
      const rows = [...groupBy(chosen, row => [row.text('rank'), row.text('device'), row.text('stream')].join('|'))]
        .map(([, list]) => {
          const row = list[0]!;
          return causeRow(
            [devices > 1 && t('plot.device', row.text('device')), t('plot.stream', row.text('stream'))].filter(Boolean)
              .join(' · '),
            list,
            sum(list, r => r.num('idle_ns')),
          );
        });
      if (rows.length > 0)
        nodes.push(h('h3', {}, `${t('idle.streams')}, ${rankLabel(chosen[0]!.num('rank'))}`),
          barTable(t('idle.streams'), t('plot.streamHead'), heads, rows));
    }
    return {nodes, tables: [device, streams].flatMap(frame => (frame ? [frame.table] : [])),
      pick: streams ? 'one' : undefined};
  },
};

export const stragglers: Topic = {
  id: 'stragglers',
  build({app: {report}}) {
    const frame = frameOf(report, 'potential-stragglers', 'caused_wait_ns');
    if (!frame) return null;
    const all = sum(frame.rows, row => row.num('caused_wait_ns'));
    const rows = frame.rows.map((row): BarRow => ({
      label: rankLabel(row.num('rank')),
      parts: [part('plain', row.num('caused_wait_ns'), all, t('stragglers.caused'))],
      cells: [
        time(row.num('caused_wait_ns')),
        shareCell(row.num('caused_wait_ns'), all),
        t('stragglers.of', grouped(row.num('last_count')), grouped(row.num('collective_count'))),
        time(row.num('wait_ns')),
      ],
    }));
    const waits = frameOf(report, 'collective-waits');
    return {
      nodes: [
        barTable(t('topic.stragglers'), t('details.rank'), [
          t('stragglers.caused'),
          '%',
          t('stragglers.last'),
          t('stragglers.waits'),
        ], rows),
      ],
      tables: [frame.table, ...(waits ? [waits.table] : [])],
    };
  },
};
