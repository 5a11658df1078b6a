// Shows the executed work: kinds of device work with the kinds that ran together, the kernels that take most time,
// annotations.
import {frameOf, groupBy, maximum, sum, type Row} from '../data/frame';
import {h, styled, unseen} from '../dom';
import {duration, grouped, percent} from '../format';
import {t} from '../i18n/i18n';
import {barTable, kindLegend, kindName, legend, shareCell, stack, type BarRow, type Kind} from '../plots/bars';
import {donut} from '../plots/donut';
import type {Report} from '../data/report';
import {cutByWidth, functionFirst} from '../short_name';
import type {Profile, Topic} from './topic';

const KINDS: Record<string, Kind> = {COMPUTATION: 'computing', COMMUNICATION: 'communication', MEMORY: 'memory'};
const kindsOf = (type: string): Kind[] => type.split(' overlapping ').map(name => KINDS[name] ?? 'other');
const typeName = (type: string): string => kindsOf(type).map(kindName).join(t('kernels.with'));

const TOP = 12;

// C++ names without "void", namespaces of torch, template arguments and parameters.
export function shortName(name: string): string {
  let depth = 0, out = '';
  const text = functionFirst(name).replace(/\(anonymous namespace\)::/g, '');
  // Tensile's kernels (Cijk_…) differ by their tile, which is in the middle.
  const tile = /^(Cijk_\w{4}_\w{4})_\w*?(MT\d+x\d+x\d+)/.exec(text);
  if (tile) return `${tile[1]} · ${tile[2]} · ${text.slice(tile[1]!.length + 1)}`;
  if (!/[<(]/.test(text) || /^Mem(cpy|set)/.test(text) || /^others \(/.test(text)) return text;
  for (const c of text) {
    if (c === '<' || c === '(') ++depth;
    else if (c === '>' || c === ')') depth = Math.max(0, depth - 1);
    else if (depth === 0) out += c;
  }
  const short = out.replace(/^at::native::/, '').trim() || text, inner = telling(text);
  return inner && /elementwise|reduce|multi_tensor|Kernel2?$|^triton_per|foreach/i.test(short) ? `${short} · ${inner}`
    : short;
}

// The template arguments show the work of a generic kernel: the functor, else the first long name.
function telling(text: string): string {
  const inside = text.slice(text.search(/[<(]/));
  return /\b(\w*(?!func_wrapper)(?:Functor|functor|Ops?|_kernel_cuda|_kernel_impl))\b/.exec(
    inside.replace(/\b(Unary|Binary|AUnary|BUnary|TensorIterator)?(Functor|Op)<|ReduceOp/g, '<'),
  )?.[1] ??
    /\b[A-Za-z_]\w{14,}/.exec(inside)?.[0] ?? '';
}

interface Kernel {
  kind: string;
  name: string;
  count: number;
  sum: number;
  min: number;
  max: number;
  mean: number;
  std: number;
}

// Over ranks the same name is one kernel; deviations are not added up.
function kernelsOf(rows: Row[]): Kernel[] {
  return [
    ...groupBy(rows, row => `${row.text('kernel_type')}|${row.text('name').replace(/^others \(\d+\)$/, 'others')}`)
      .values(),
  ].map((list): Kernel => {
    const count = sum(list, row => row.num('count')), total = sum(list, row => row.num('sum_ns'));
    return {
      kind: list[0]!.text('kernel_type'),
      name: list[0]!.text('name').startsWith('others (') ? t('kernels.others', typeName(list[0]!.text('kernel_type')))
        : list[0]!.text('name'),
      count,
      sum: total,
      min: list.reduce((low, row) => Math.min(low, row.num('min_ns')), Infinity),
      max: maximum(list, row => row.num('max_ns')),
      mean: count > 0 ? total / count : 0,
      std: list.length === 1 ? list[0]!.num('std_ns') : 0,
    };
  }).sort((a, b) => b.sum - a.sum);
}

// Shortest to longest call as a line on an axis that all rows share, the mean as a tick. The axis is logarithmic.
function spread(kernel: Kernel, low: number, high: number): HTMLElement {
  const at = (ns: number): number => (high > low ? Math.log(Math.max(ns, low) / low) / Math.log(high / low) * 100 : 50);
  const words = t('kernels.spread', duration(kernel.min), duration(kernel.mean), duration(kernel.max));
  const whisker = styled(h('i', {class: 'whisker'}), {left: `${at(kernel.min)}%`,
    width: `${Math.max(at(kernel.max) - at(kernel.min), 0.5)}%`});
  const box = kernel.std > 0
    ? styled(h('i', {class: 'deviation'}), {left: `${at(kernel.mean - kernel.std)}%`,
      width: `${at(kernel.mean + kernel.std) - at(kernel.mean - kernel.std)}%`}) : null;
  return h('div', {class: 'spread', title: words, role: 'img', 'aria-label': words}, whisker, box,
    styled(h('i', {class: 'mean'}), {left: `${at(kernel.mean)}%`}));
}

// Facts about a kernel besides its time, means by its time over ranks.
interface Use {
  tensor: boolean;
  blocks: number;
  occupancy: number;
}
function usesOf(rows: Row[]): Map<string, Use> {
  const mean = (list: Row[], column: string): number => {
    const known = list.filter(row => row.text(column) !== ''), whole = sum(known, row => row.num('sum_ns'));
    return whole > 0 ? sum(known, row => row.num(column) * row.num('sum_ns')) / whole : NaN;
  };
  return new Map(
    [...groupBy(rows, row => row.text('name'))].map((
      [name, list],
    ) => [name, {tensor: list[0]!.text('tensor_cores') === 'yes', blocks: mean(list, 'mean_blocks_per_sm'),
      occupancy: mean(list, 'mean_occupancy_share')}]
    ),
  );
}

function kernelTable(rows: Row[], chosen: string, uses: Map<string, Use>): HTMLElement {
  const tensor = [...uses.values()].some(use => use.tensor),
    occupancy = [...uses.values()].some(use => !Number.isNaN(use.occupancy));
  const useCells = (name: string): HTMLElement[] => {
    const use = uses.get(name);
    return [
      ...(tensor ? [h('td', {}, use?.tensor ? t('kernels.yes') : '–')] : []),
      ...(occupancy
        ? [
          h('td', {title: use && !Number.isNaN(use.blocks) ? t('kernels.blocks', use.blocks.toPrecision(2)) : null},
            use && !Number.isNaN(use.occupancy) ? percent(use.occupancy) : '–'),
        ] : []),
    ];
  };
  const all = kernelsOf(rows), list = all.slice(0, TOP), total = sum(all, kernel => kernel.sum);
  const low = list.reduce((min, kernel) => Math.min(min, Math.max(kernel.min, 1)), Infinity),
    high = maximum(list, kernel => kernel.max);
  return h('div', {class: 'plot-box'},
    h('table', {class: 'plot kernels'}, h('caption', {class: 'live'}, chosen),
      h('thead', {},
        h('tr', {}, h('th', {class: 'text', scope: 'col'}, t('kernels.name')),
          h('th', {class: 'bar'}, unseen(t('plot.bar'))), h('th', {scope: 'col'}, t('kernels.sum')),
          h('th', {scope: 'col'}, '%'), h('th', {scope: 'col'}, t('kernels.calls')),
          h('th', {scope: 'col'}, t('kernels.mean')),
          tensor && h('th', {scope: 'col', title: t('kernels.tensor.help')}, t('use.tensor')),
          occupancy && h('th', {scope: 'col'}, t('use.occupancy')),
          h('th', {scope: 'col', class: 'spread-head', title: t('kernels.spread.help')},
            t('kernels.spreadHead', duration(low), duration(high))))),
      h('tbody', {},
        ...list.map(kernel =>
          h('tr', {},
            h('th', {class: 'text name', scope: 'row', title: kernel.name}, ...cutByWidth(shortName(kernel.name))),
            h('td', {class: 'bar'},
              stack([{kinds: kindsOf(kernel.kind), value: kernel.sum,
                words: `${kernel.name}: ${duration(kernel.sum)}`}], list[0]!.sum)), h('td', {}, duration(kernel.sum)),
            h('td', {}, shareCell(kernel.sum, total)), h('td', {}, grouped(kernel.count)),
            h('td', {}, duration(kernel.mean)), ...useCells(kernel.name),
            h('td', {class: 'spread-cell'}, spread(kernel, low, high)))
        ))), all.length > TOP && h('p', {class: 'quiet'}, t('plot.top', TOP, grouped(all.length))));
}

function typesRing(rows: Row[]): HTMLElement {
  const list = [...rows].sort((a, b) => b.num('time_ns') - a.num('time_ns')).filter(row => row.num('time_ns') > 0);
  const total = sum(list, row => row.num('time_ns'));
  const words = (row: Row): string =>
    `${typeName(row.text('kernel_type'))}: ${duration(row.num('time_ns'))}, ${percent(row.num('time_ns') / total)}`;
  return h('div', {class: 'ring'}, donut(
    list.map(row => ({kinds: kindsOf(row.text('kernel_type')), value: row.num('time_ns'),
      name: typeName(row.text('kernel_type')), words: words(row)})
    ),
    duration(total),
    t('kernels.busy'),
  ),
    h('table', {class: 'plot'}, h('caption', {class: 'live'}, t('kernels.types')),
      h('thead', {},
        h('tr', {}, h('th', {class: 'text', scope: 'col'}, t('kernels.kind')),
          h('th', {scope: 'col'}, t('kernels.time')), h('th', {scope: 'col'}, '%'))),
      h('tbody', {},
        ...list.map(row =>
          h('tr', {},
            h('th', {class: 'text', scope: 'row'},
              h('i', {class: 'swatch', 'aria-hidden': 'true'}, ...kindsOf(row.text('kernel_type')).map(kind =>
                h('b', {class: `kind-${kind}`})
              )), typeName(row.text('kernel_type'))), h('td', {}, duration(row.num('time_ns'))),
            h('td', {}, percent(row.num('time_ns') / total)))
        ))));
}

// Returns the names that take most time, over all ranks; null: kernels were not requested.
export function topKernels(report: Report, count: number): Node[] | null {
  const names = frameOf(report, 'kernels', 'sum_ns', 'kernel_type'), all = names ? kernelsOf(names.rows) : [],
    total = sum(all, kernel => kernel.sum);
  if (all.length === 0) return null;
  return [
    h('h3', {}, t('kernels.top')),
    barTable(t('kernels.top'), t('kernels.name'), [t('kernels.sum'), '%', t('kernels.calls')],
      all.slice(0, count).map((kernel): BarRow => ({
        label: shortName(kernel.name),
        title: kernel.name,
        parts: [{kinds: kindsOf(kernel.kind), value: kernel.sum, words: `${kernel.name}: ${duration(kernel.sum)}`}],
        cells: [duration(kernel.sum), shareCell(kernel.sum, total), grouped(kernel.count)],
      }))),
  ];
}

const ofRank = (profile: Profile,
  rows: Row[]): Row[] => (profile.rank === null ? rows : rows.filter(row => row.num('rank') === profile.rank));

export const kernels: Topic = {
  id: 'kernels',
  build(profile) {
    const {report} = profile.app;
    const types = frameOf(report, 'kernel-types', 'time_ns'),
      byRank = frameOf(report, 'kernel-types-by-rank', 'time_ns');
    const names = frameOf(report, 'kernels', 'sum_ns', 'kernel_type');
    if (!types && !names) return null;
    const ring = profile.rank !== null && byRank ? ofRank(profile, byRank.rows) : types?.rows ?? [];
    const rows = names ? ofRank(profile, names.rows) : [];
    const use = frameOf(report, 'kernel-use', 'tensor_cores');
    return {
      nodes: [
        ring.length > 0 ? typesRing(ring) : null,
        ...(rows.length > 0 ? [
          h('h3', {}, t('kernels.top')),
          kindLegend([...new Set(rows.flatMap(row => kindsOf(row.text('kernel_type'))))]),
          kernelTable(rows, t('kernels.top'), usesOf(use ? ofRank(profile, use.rows) : [])),
        ] : []),
      ],
      tables: [names, use, types, byRank].flatMap(frame => (frame ? [frame.table] : [])),
      pick: 'all',
    };
  },
};

export const annotations: Topic = {
  id: 'annotations',
  build(profile) {
    const {report} = profile.app;
    const ranges = frameOf(report, 'annotations', 'name', 'busy_ns'),
      work = frameOf(report, 'work-by-annotation', 'annotation', 'kernel_ns');
    if (!ranges && !work) return null;
    const nodes: (Node | null)[] = [];
    if (work) {
      const kinds: [Kind, string][] = [['computing', 'computation_ns'], ['communication', 'communication_ns'], [
        'memory',
        'memory_ns',
      ]];
      const groups = [...groupBy(ofRank(profile, work.rows), row => row.text('annotation'))]
        .map(([name, list]) => ({name: name === '(no annotation)' ? t('annotations.none') : name, list,
          ns: sum(list, row => row.num('kernel_ns'))})
        ).sort((a, b) => b.ns - a.ns);
      const total = sum(groups, group => group.ns);
      nodes.push(h('h3', {}, t('annotations.work')), kindLegend(['computing', 'communication', 'memory', 'other']),
        barTable(t('annotations.work'), t('annotations.name'), [t('operators.device'), '%', t('kernels.count')],
          groups.slice(0, TOP).map((group): BarRow => {
            const parts = kinds.map(([kind, column]) => ({kinds: [kind], value: sum(group.list, row => row.num(column)),
              words: kindName(kind)})
            );
            parts.push({kinds: ['other'], value: Math.max(0, group.ns - sum(parts, p => p.value)),
              words: kindName('other')});
            for (const p of parts) p.words += `: ${duration(p.value)}`;
            return {label: group.name, title: group.name, parts, cells: [
              duration(group.ns),
              shareCell(group.ns, total),
              grouped(sum(group.list, row => row.num('kernels'))),
            ]};
          })), groups.length > TOP ? h('p', {class: 'quiet'}, t('plot.top', TOP, grouped(groups.length))) : null);
    }
    const own = ranges ? ofRank(profile, ranges.rows).filter(row => !row.text('name').startsWith('ProfilerStep')) : [];
    if (own.length > 0) {
      const groups = [...groupBy(own, row => row.text('name'))].map(([name, list]) => ({
        name,
        count: sum(list, row => row.num('count')),
        ns: sum(list, row => row.num('sum_ns')),
        busy: sum(list, row => row.num('busy_ns')),
        longest: maximum(list, row => row.num('max_ns')),
      })).sort((a, b) => b.ns - a.ns);
      nodes.push(h('h3', {}, t('annotations.ranges')),
        legend([[['plain'], t('annotations.busy')], [['idle'], t('annotations.gaps')]]),
        barTable(t('annotations.ranges'), t('annotations.name'), [
          t('kernels.sum'),
          t('annotations.busyShare'),
          t('annotations.count'),
          t('kernels.mean'),
          t('plot.longest'),
        ], groups.slice(0, TOP).map((group): BarRow => ({
          label: group.name,
          title: group.name,
          parts: [{kinds: ['plain'], value: group.busy, words: `${t('annotations.busy')}: ${duration(group.busy)}`}, {
            kinds: ['idle'],
            value: Math.max(0, group.ns - group.busy),
            words: `${t('annotations.gaps')}: ${duration(group.ns - group.busy)}`,
          }],
          cells: [
            duration(group.ns),
            shareCell(group.busy, group.ns),
            grouped(group.count),
            duration(group.ns / Math.max(1, group.count)),
            duration(group.longest),
          ],
        }))));
    }
    return nodes.length === 0 ? null
      : {nodes, tables: [work, ranges].flatMap(frame => (frame ? [frame.table] : [])), pick: 'all'};
  },
};
