// Shows operators by self time, and modules as they call each other.
import {frameOf, groupBy, maximum, sum, type Row} from '../data/frame';
import {h} from '../dom';
import {bytes, duration, grouped, scaled} from '../format';
import {t} from '../i18n/i18n';
import {barTable, legend, shareCell, type BarRow, type Kind} from '../plots/bars';
import {oneRank, rankLabel, ranksOf, type Profile, type Topic} from './topic';

const TOP = 18, MOST_MODULES = 200;

const ofRank = (profile: Profile,
  rows: Row[]): Row[] => (profile.rank === null ? rows : rows.filter(row => row.num('rank') === profile.rank));

// Returns the whole that the rows are shares of: rows omitted from the table count too.
function wholeOf(rows: Row[], time: string, share: string): number {
  return sum([...groupBy(rows, row => row.text('rank')).values()],
    list => maximum(list, row => (row.num(share) > 0 ? row.num(time) / row.num(share) : 0)));
}

export const operators: Topic = {
  id: 'operators',
  build(profile) {
    const {report} = profile.app;
    const frame = frameOf(report, 'operators', 'self_host_ns', 'kind'),
      delays = frameOf(report, 'aten-op-kernels-and-delay', 'kernel_ns');
    if (!frame) return null;
    const all = ofRank(profile, frame.rows), own = all.filter(row => row.text('kind') === 'operator');
    const device = maximum(own, row => row.num('self_device_ns')) > 0,
      time = device ? 'self_device_ns' : 'self_host_ns';
    const whole = wholeOf(all, time, device ? 'self_device_share' : 'self_host_share');
    const byName = groupBy(delays ? ofRank(profile, delays.rows) : [], row => row.text('aten_op_name'));
    const delay = (name: string, column: string): string => {
      const list = byName.get(name) ?? [], calls = sum(list, row => row.num('occurrence_count'));
      return calls > 0 ? duration(sum(list, row => row.num(column) * row.num('occurrence_count')) / calls) : '–';
    };
    const groups = [...groupBy(own, row => row.text('name'))].map(([name, list]) => ({name, list,
      ns: sum(list, row => row.num(time))})
    )
      .filter(group => group.ns > 0).sort((a, b) => b.ns - a.ns);
    const total = (list: Row[], column: string): number => sum(list, row => row.num(column));
    const memory = (['self_device_bytes', 'self_host_bytes'] as const).find(column =>
      own.some(row => row.num(column) !== 0)
    );
    const flops = own.some(row => row.num('flops') > 0);
    const heads = [
      device ? t('operators.device') : t('operators.host'),
      '%',
      ...(device ? [t('operators.host')] : []),
      t('kernels.calls'),
      ...(delays && device ? [t('operators.launch'), t('operators.runtime')] : []),
      ...(memory ? [memory === 'self_device_bytes' ? t('operators.deviceBytes') : t('operators.hostBytes')] : []),
      ...(flops ? ['FLOP'] : []),
    ];
    const rows = groups.slice(0, TOP).map(({name, list, ns}): BarRow => ({
      label: name,
      title: name,
      parts: [{
        kinds: [
          /^(c10d|nccl|gloo|mpi|ucc)::?|^record_param_comms/.test(name) ? 'communication'
            : device ? 'computing' : 'host',
        ],
        value: ns,
        words: duration(ns),
      }],
      cells: [
        duration(ns),
        shareCell(ns, whole),
        ...(device ? [duration(total(list, 'self_host_ns'))] : []),
        grouped(total(list, 'count')),
        ...(delays && device ? [delay(name, 'avg_launch_delay_ns'), delay(name, 'avg_runtime_delay_ns')] : []),
        ...(memory ? [bytes(total(list, memory))] : []),
        ...(flops ? [total(list, 'flops') > 0 ? scaled(total(list, 'flops')) : '–'] : []),
      ],
    }));
    return {
      nodes: rows.length === 0 ? [] : [
        barTable(t('topic.operators'), t('operators.name'), heads, rows),
        groups.length > TOP ? h('p', {class: 'quiet'}, t('plot.top', TOP, grouped(groups.length))) : null,
      ],
      tables: [frame.table, ...(delays ? [delays.table] : [])],
      pick: 'all',
    };
  },
};

export const modules: Topic = {
  id: 'modules',
  build(profile) {
    const {report} = profile.app;
    const frame = frameOf(report, 'modules', 'depth', 'host_ns'), totals = frameOf(report, 'module-totals');
    if (!frame) return null;
    const ranks = ranksOf(frame), rank = oneRank(profile, ranks);
    const mine = frame.rows.filter(row => row.num('rank') === rank);
    const device = maximum(mine, row => row.num('device_ns') + row.num('backward_device_ns')) > 0;
    const forward = device ? 'device_ns' : 'host_ns', backward = device ? 'backward_device_ns' : 'backward_host_ns';
    const ns = (row: Row): number => row.num(forward) + row.num(backward);
    // The longest ones, with all that they are in; in the order of the calls.
    const longest = new Set(
      mine.map((row, i) => ({row, i})).sort((a, b) =>
        ns(b.row) - ns(a.row) || a.row.num('depth') - b.row.num('depth') || a.i - b.i
      )
        .slice(0, MOST_MODULES).map(item => item.row),
    );
    const both = mine.some(row => row.num(backward) > 0), kinds: Kind[] = ['mem-activation', 'mem-gradient'];
    const rows = mine.filter(row => longest.has(row)).map((row): BarRow => ({
      label: row.text('name'),
      title: row.text('path'),
      depth: Math.min(row.num('depth'), 12),
      parts: [{kinds: [kinds[0]!], value: row.num(forward), words: `${t('group.0')}: ${duration(row.num(forward))}`}, {
        kinds: [kinds[1]!],
        value: row.num(backward),
        words: `${t('group.1')}: ${duration(row.num(backward))}`,
      }],
      cells: [
        duration(row.num(forward)),
        ...(both ? [duration(row.num(backward))] : []),
        duration(row.num(`self_${forward}`) + row.num(`self_${backward}`)),
        grouped(row.num('occurrences')),
        grouped(row.num('operators')),
      ],
    }));
    const title = [device ? t('modules.device') : t('modules.host'), ranks.length > 1 && rankLabel(rank)].filter(
      Boolean,
    ).join(', ');
    return {
      nodes: [
        h('h3', {}, title),
        both ? legend([[[kinds[0]!], t('group.0')], [[kinds[1]!], t('group.1')]]) : null,
        barTable(title, t('modules.name'), [
          t('group.0'),
          ...(both ? [t('group.1')] : []),
          t('modules.self'),
          t('kernels.calls'),
          t('modules.operators'),
        ], rows),
        mine.length > MOST_MODULES ? h('p', {class: 'quiet'}, t('plot.top', MOST_MODULES, grouped(mine.length))) : null,
      ],
      tables: [frame.table, ...(totals ? [totals.table] : [])],
      pick: 'one',
    };
  },
};
