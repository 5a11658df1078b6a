// Charts of questions that only the viewer draws: waterfall, schedule, stragglers, critical path, clocks.
import {frameOf, maximum, sum, type Row} from '../../data/frame';
import type {Table} from '../../data/report';
import {h} from '../../dom';
import {duration, percent} from '../../format';
import {cellValue, type Key, t} from '../../i18n/i18n';
import {barTable, legend, type BarRow, type Kind} from '../../plots/bars';
import {rankLabel, type Topic} from '../../profile/topic';

// A text of a table in the reader's language, where it has one.
const said = (table: Table, row: Row, name: string): string =>
  String(cellValue(table, table.columns.find(column => column.name === name)!, row.text(name)));
const share = (row: Row,
  name: string): string => (row.text(name) === '' ? '–' : percent(row.num(name)).replace('-', '−'));
const time = (row: Row,
  name: string): string => (row.text(name) === '' ? '–' : duration(row.num(name)).replace('-', '−'));

// Parts of the step, in the colours of the bar on the first screen.
const PART_KINDS: Record<string, Kind> = {
  'compute': 'part-compute',
  'schedule bubble': 'part-bubble',
  'stage imbalance': 'part-imbalance',
  'jitter': 'part-jitter',
  'message latency': 'part-comm',
  'late starts': 'part-rest',
  'before and after the pipeline': 'part-tail',
};
const STAGE_PARTS: readonly (readonly [string, Kind, Key])[] = [
  ['busy_ns', 'part-compute', 'part.compute'],
  ['schedule_ns', 'part-bubble', 'part.bubble'],
  ['imbalance_ns', 'part-imbalance', 'part.imbalance'],
  ['jitter_ns', 'part-jitter', 'part.jitter'],
  ['latency_ns', 'part-comm', 'part.latency'],
  ['rest_ns', 'part-rest', 'part.rest'],
];

export const waterfall: Topic = {
  id: 'waterfall',
  build({app: {report}}) {
    const frame = frameOf(report, 'waterfall', 'within', 'mean_ns'),
      stages = frameOf(report, 'waterfall-stages', 'busy_ns');
    if (!frame) return null;
    // Sums are not parts. All shares are of the period, as in the bar of the first page, or else of the step.
    const rows = frame.rows.filter(row =>
      row.text('within') === '' && !['pipeline', 'step', 'period'].includes(row.text('part'))
    );
    const whole = ['period', 'step', 'pipeline'].map(name => frame.rows.find(row => row.text('part') === name)).find(
      row => row,
    );
    const bars = rows.map((row): BarRow => ({
      label: said(frame.table, row, 'part'),
      title: said(frame.table, row, 'meaning'),
      ...(whole ? {whole: whole.num('mean_ns')} : {}),
      parts: [{kinds: [PART_KINDS[row.text('part')] ?? 'part-rest'], value: row.num('mean_ns'),
        words: `${said(frame.table, row, 'part')}: ${time(row, 'mean_ns')}`}],
      cells: [time(row, 'mean_ns'), whole ? percent(row.num('mean_ns') / whole.num('mean_ns')) : '–'],
    }));
    const nodes: Node[] = [
      h('h3', {}, t('plot.step')),
      barTable(t('plot.step'), t('plot.part'), [t('plot.time'), t('plot.ofStep')], bars),
    ];
    if (stages) {
      const parts = STAGE_PARTS.filter(([column]) => maximum(stages.rows, row => row.num(column)) > 0);
      nodes.push(h('h3', {}, t('plot.stages')), legend(parts.map(([, kind, word]) => [[kind], t(word)] as const)),
        barTable(t('plot.stages'), t('plot.stage'), [...parts.map(([, , word]) => t(word)), t('plot.pipeline')],
          stages.rows.map((row): BarRow => ({
            label: row.text('stage'),
            parts: parts.map(([column, kind, word]) => ({kinds: [kind], value: row.num(column),
              words: `${t(word)}: ${time(row, column)}`})
            ),
            cells: [...parts.map(([column]) => time(row, column)), time(row, 'pipeline_ns')],
          }))));
    }
    return {nodes, tables: []};
  },
};

export const schedulePlot: Topic = {
  id: 'schedulePlot',
  build({app: {report}}) {
    const nodes: Node[] = [], names = frameOf(report, 'recognition', 'score'),
      loss = frameOf(report, 'theory-loss', 'mean_ns');
    // Forwards and backwards alone may fit several schedules: then weight gradients distinguish them.
    const tied = names !== null && names.rows.length > 1 && names.has('order_score') &&
      names.rows[0]!.num('score') === names.rows[1]!.num('score');
    if (names)
      nodes.push(h('h3', {}, t('plot.recognised')), barTable(t('plot.recognised'), t('plot.schedule'), [
        t('plot.score'),
        t('plot.lists'),
        ...(tied ? [t('plot.withW')] : []),
      ], names.rows.slice(0, 8).map((row, i): BarRow => ({
        label: row.text('schedule') + (tied && i === 0 ? ` (${t('plot.named')})` : ''),
        whole: 1,
        parts: [{kinds: ['plain'], value: row.num(tied ? 'order_score' : 'score'), words: share(row, 'score')}],
        cells: [
          share(row, 'score'),
          `${row.text('equal_lists')} / ${row.text('lists')}`,
          ...(tied ? [share(row, 'order_score')] : []),
        ],
      }))), ...(tied ? [h('p', {class: 'quiet'}, t('plot.tied', names.rows[0]!.text('schedule')))] : []));
    if (loss)
      nodes.push(h('h3', {}, t('plot.theory')),
        barTable(t('plot.theory'), t('plot.part'), [t('plot.time'), t('plot.ofPipeline')],
          loss.rows.map((row): BarRow => ({
            label: said(loss.table, row, 'part'),
            parts: [{
              kinds: [row.text('part') === 'span' || row.text('part') === 'theory' ? 'part-compute' : 'part-imbalance'],
              value: Math.max(0, row.num('mean_ns')),
              words: time(row, 'mean_ns'),
            }],
            cells: [time(row, 'mean_ns'), share(row, 'share')],
          }))));
    return nodes.length > 0 ? {nodes, tables: []} : null;
  },
};

const MOST_WORKERS = 64;
const SLOW = new Set(['persistent', 'late launches', 'pauses']); // verdicts that call a rank slow
export const slowness: Topic = {
  id: 'slowness',
  build({app: {report}}) {
    const frame = frameOf(report, 'straggler-workers', 'busy_ns', 'peer_ratio');
    if (!frame) return null;
    const rows = [...frame.rows].sort((a, b) =>
      b.num('busy_ratio') - a.num('busy_ratio') || b.num('busy_ns') - a.num('busy_ns')
    )
      .slice(0, MOST_WORKERS);
    const ratio = (row: Row, name: string): string => (row.text(name) === '' ? '–' : `${row.num(name).toFixed(2)}×`);
    // If every rank holds a stage of its own, there is no peer to compare with.
    const ratios = ([['busy_ratio', 'plot.ratio'], ['peer_ratio', 'plot.peers']] as const).filter(([name]) =>
      rows.some(row => row.text(name) !== '')
    );
    return {tables: [], nodes: [
      h('h3', {}, t('plot.workers')),
      barTable(t('plot.workers'), t('details.rank'), [
        t('plot.busy'),
        ...ratios.map(([, word]) => t(word)),
        t('plot.verdict'),
      ], rows.map((row): BarRow => ({
        label: [rankLabel(row.num('rank')), row.text('stage') !== '' && t('row.stage', row.text('stage'))].filter(
          Boolean,
        ).join(' · '),
        title: row.text('words'),
        parts: [{kinds: [SLOW.has(row.text('verdict')) ? 'part-imbalance' : 'part-compute'], value: row.num('busy_ns'),
          words: `${t('plot.busy')}: ${time(row, 'busy_ns')}`}],
        cells: [time(row, 'busy_ns'), ...ratios.map(([name]) => ratio(row, name)), said(frame.table, row, 'verdict')],
      }))),
    ]};
  },
};

const TYPE_KINDS: Record<string, Kind> = {forward: 'mem-activation', backward: 'mem-gradient',
  'weight gradient': 'mem-parameter', computation: 'computing', communication: 'communication', memory: 'memory',
  'host operators': 'host'};
const kindOfType = (type: string): Kind =>
  TYPE_KINDS[type] ??
    (/gap|wait|delay|hand-over/.test(type) ? 'idle'
      : /send|receive|collective|comm|nccl/.test(type) ? 'communication' : 'other');

export const critical: Topic = {
  id: 'critical',
  build({app: {report}}) {
    const nodes: Node[] = [], cells = frameOf(report, 'shares', 'path_ns'),
      host = frameOf(report, 'summary', 'bound_by', 'path_share');
    if (cells)
      nodes.push(h('h3', {}, t('plot.path')),
        barTable(t('plot.path'), t('plot.piece'), [t('plot.time'), t('plot.ofPath')],
          cells.rows.slice(0, 24).map((row): BarRow => ({
            label: [
              row.text('stage') !== '' && t('row.stage', row.text('stage')),
              said(cells.table, row, 'type'),
              row.text('piece') !== 'work' && said(cells.table, row, 'piece'),
            ].filter(Boolean).join(' · '),
            parts: [{kinds: [row.text('piece') === 'work' ? kindOfType(row.text('type')) : 'idle'],
              value: row.num('path_ns'), words: time(row, 'path_ns')}],
            cells: [time(row, 'path_ns'), share(row, 'path_share')],
          }))));
    if (host) {
      // A bar a kind, of the whole time looked at; the last two rows are totals.
      const whole = host.rows.find(row => row.text('bound_by') === 'wall')?.num('dur_ns') ??
        sum(host.rows, row => row.num('dur_ns'));
      const rows = host.rows.filter(row => !['path', 'wall'].includes(row.text('bound_by'))).map((row): BarRow => ({
        label: said(host.table, row, 'bound_by'),
        whole,
        parts: [{kinds: [kindOfType(row.text('bound_by'))], value: row.num('dur_ns'), words: time(row, 'dur_ns')}],
        cells: [time(row, 'dur_ns'), share(row, 'wall_share')],
      }));
      const title = t('plot.hostPath', host.rows[0]!.text('rank'), duration(whole));
      nodes.push(h('h3', {}, title), barTable(title, t('plot.boundBy'), [t('plot.time'), t('plot.ofWall')], rows));
      if (report.parts.length > 1)
        nodes.push(h('p', {class: 'quiet'}, t('plot.oneRank', host.rows[0]!.text('rank'), report.parts.length)));
    }
    return nodes.length > 0 ? {nodes, tables: []} : null;
  },
};

const MOST_LINKS = 64;
export const transfers: Topic = {
  id: 'transfers',
  build({app: {report}}) {
    const frame = frameOf(report, 'links', 'median_ns', 'class_ns');
    if (!frame) return null;
    if (maximum(frame.rows, row => row.num('median_ns')) <= 0)
      return {tables: [], nodes: [h('p', {}, t('plot.noTransfers'))]};
    const ratio = (row: Row): string => (row.text('ratio') === '' ? '–' : `${row.num('ratio').toFixed(2)}×`);
    const rows = [...frame.rows].sort((a, b) => b.num('median_ns') - a.num('median_ns')).slice(0, MOST_LINKS).map((
      row,
    ): BarRow => ({
      label: `${rankLabel(row.num('from_rank'))} → ${row.text('to_rank')} · ${said(frame.table, row, 'direction')}`,
      parts: [{kinds: [/^slow/.test(row.text('reading')) ? 'part-imbalance' : 'communication'],
        value: row.num('median_ns'), words: time(row, 'median_ns')}],
      cells: [time(row, 'median_ns'), time(row, 'class_ns'), ratio(row), said(frame.table, row, 'reading')],
    }));
    return {tables: [], nodes: [
      h('h3', {}, t('plot.transfers')),
      barTable(t('plot.transfers'), t('plot.link'), [
        t('plot.transfer'),
        t('plot.usual'),
        t('plot.toUsual'),
        t('plot.verdict'),
      ], rows),
    ]};
  },
};

const MOST_CLOCKS = 128;
export const clockQuality: Topic = {
  id: 'clockQuality',
  build({app: {report}}) {
    const frame = frameOf(report, 'clocks', 'offset_ns');
    if (!frame) return null;
    const high = maximum(frame.rows, row => row.num('offset_half_ns'));
    const rows = frame.rows.slice(0, MOST_CLOCKS).map((row): BarRow => ({
      label: [rankLabel(row.num('rank')), row.text('host')].filter(Boolean).join(' · '),
      whole: high || 1,
      parts: [{kinds: ['part-jitter'], value: row.num('offset_half_ns'), words: `± ${time(row, 'offset_half_ns')}`}],
      cells: [
        time(row, 'offset_ns'),
        row.text('offset_half_ns') === '' ? '–' : `± ${time(row, 'offset_half_ns')}`,
        time(row, 'offset_error_ns'),
        row.text('drift_ppb') === '' ? '–' : `${(row.num('drift_ppb') / 1000).toFixed(2)} ppm`.replace('-', '−'),
        said(frame.table, row, 'method'),
      ],
    }));
    return {tables: [], nodes: [
      barTable(t('plot.clocks'), t('details.rank'), [
        t('plot.offset'),
        t('plot.bound'),
        t('plot.likely'),
        t('plot.drift'),
        t('plot.method'),
      ], rows),
    ]};
  },
};
