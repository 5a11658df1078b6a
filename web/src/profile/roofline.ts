// Shows operators compared with the limits of their device: FLOP/s over FLOP/B on two logarithmic scales, under the
// device's roof.
import {frameOf, maximum, sum, type Row} from '../data/frame';
import {h, styled, svg} from '../dom';
import {duration, grouped, percent} from '../format';
import {cellValue, t} from '../i18n/i18n';
import {barTable, legend, type BarRow, type Kind} from '../plots/bars';
import {plain} from '../plots/series';
import {oneRank, ranksOf, type Profile, type Topic} from './topic';

const TOP = 18, HEIGHT = 300, PAD = 18, LABEL = 14;
const LEAST_SHARE = 1e-3; // of the time of all: a call that takes less has no point

const kindOf = (
  row: Row,
): Kind => (row.text('bound') === 'compute' ? 'computing' : row.text('bound') === 'memory' ? 'memory' : 'other');
const exact = (value: number): string => (value >= 1 || value === 0 ? plain(value) : value.toPrecision(2));
const callOf = (row: Row): string =>
  [row.text('operator'), row.text('precision'), row.text('shapes')].filter(Boolean).join(' ');
const tick = (
  value: number,
): string => (value >= 1e4 || value < 1e-3 ? value.toExponential().replace('e+', 'e')
  : String(Number(value.toPrecision(1))));

// Decades that hold all values, with a little room.
const decades = (
  values: number[],
): [number, number] => [
  Math.floor(Math.log10(Math.min(...values)) - .05),
  Math.ceil(Math.log10(Math.max(...values)) + .05),
];

// `roofs`: rows of the peaks of this device whose rates are both known. A press on a point does what the link in its
// row of the table does, which readers without the picture have.
function chart(profile: Profile, rows: Row[], roofs: Row[]): HTMLElement {
  const [x0, x1] = decades([...rows.map(row => row.num('intensity')), ...roofs.map(row => row.num('ridge'))]);
  const [y0, y1] = decades([...rows.map(row => row.num('tflops')), ...roofs.map(row => row.num('peak_tflops'))]);
  const share = (intensity: number): number => (Math.log10(intensity) - x0) / (x1 - x0) * 100,
    x = (intensity: number): string => `${share(intensity)}%`;
  const y = (tflops: number): number => PAD + (y1 - Math.log10(tflops)) / (y1 - y0) * (HEIGHT - 2 * PAD);
  const span = (from: number, to: number): number[] => Array.from({length: to - from + 1}, (_, i) => 10 ** (from + i));
  const line = (name: string, a: number, b: number, c: number, d: number): SVGElement =>
    svg('line', {class: name, x1: x(a), y1: y(b), x2: x(c), y2: y(d)});
  const longest = maximum(rows, row => row.num('device_ns')) || 1, left = 10 ** x0, right = 10 ** x1, floor = 10 ** y0;
  // The memory's line enters at the left edge, or at the bottom where it is lower there.
  const slopes = [...new Set(roofs.map(row => row.num('peak_gbps')))].map(gbps => {
    const ridge = maximum(roofs.filter(row => row.num('peak_gbps') === gbps), row => row.num('ridge')),
      from = Math.max(left, floor * 1e3 / gbps);
    return line('roof', from, from * gbps / 1e3, ridge, ridge * gbps / 1e3);
  });
  let above = -Infinity;
  const labels = [...roofs].sort((a, b) => b.num('peak_tflops') - a.num('peak_tflops')).map(row => {
    const at = y(row.num('peak_tflops')) - 6;
    above = at < above + LABEL ? at + LABEL + 6 : at; // below its line where another label is
    return svg('text', {x: '100%', y: above}, `${row.text('precision')} ${exact(row.num('peak_tflops'))} TFLOP/s`);
  });
  const points = rows.map(row =>
    svg('circle', {class: `kind-${kindOf(row)}`, cx: x(row.num('intensity')), cy: y(row.num('tflops')),
      r: (3 + 9 * Math.sqrt(row.num('device_ns') / longest)).toFixed(1), click() {
      location.hash = profile.slicesOf(row.text('operator'));
    }}, svg('title', {}, [
      callOf(row),
      duration(row.num('device_ns')),
      `${exact(row.num('tflops'))} TFLOP/s`,
      `${exact(row.num('intensity'))} FLOP/B`,
      row.text('roof_share') && percent(row.num('roof_share')),
    ].filter(Boolean).join(' · ')))
  );
  return h('figure', {class: 'roofline', role: 'img', 'aria-label': t('roofline.chart', rows.length)},
    h('div', {class: 'levels', 'aria-hidden': 'true'},
      ...span(y0, y1).map(value => styled(h('span', {}, tick(value)), {top: `${y(value)}px`})), h('b', {}, 'TFLOP/s')),
    h('div', {class: 'field'},
      svg('svg', {height: HEIGHT}, ...span(x0, x1).map(value => line('grid', value, floor, value, 10 ** y1)),
        ...span(y0, y1).map(value => line('grid', left, value, right, value)), ...slopes,
        ...roofs.map(row => line('roof', row.num('ridge'), row.num('peak_tflops'), right, row.num('peak_tflops'))),
        ...labels, ...points),
      h('div', {class: 'ticks', 'aria-hidden': 'true'},
        ...span(x0, x1 - 1).map(value => styled(h('span', {}, tick(value)), {left: x(value)})), h('b', {}, 'FLOP/B'))));
}

export const roofline: Topic = {
  id: 'roofline',
  build(profile) {
    const frame = frameOf(profile.app.report, 'roofline', 'intensity', 'tflops'),
      peaks = frameOf(profile.app.report, 'roofline-peaks', 'ridge'),
      use = frameOf(profile.app.report, 'roofline-use', 'device');
    if (!frame || !use) return null;
    const rank = oneRank(profile, ranksOf(frame)), rows = frame.rows.filter(row => row.num('rank') === rank),
      own = use.rows.find(row => row.num('rank') === rank);
    const reported = rows.filter(row => row.num('intensity') > 0 && row.num('tflops') > 0);
    const roofs = (peaks?.rows ?? []).filter(row => row.text('device') === own?.text('device') && row.num('ridge') > 0);
    const kinds = (['compute', 'memory', ''] as const).filter(bound =>
      reported.some(row => row.text('bound') === bound)
    );
    const bound = frame.table.columns.find(column => column.name === 'bound')!;
    const time = (row: Row,
      name: string): string => (row.text(name) === '' ? '–' : duration(row.num(name)).replace('-', '−'));
    return {
      nodes: [
        own && own.text('above_ns') !== ''
          ? h('p', {}, t('roofline.sum', time(own, 'with_roof_ns'), time(own, 'roof_ns'), time(own, 'above_ns')))
          : null,
        reported.length > 0
          ? chart(profile,
            reported.filter(row => row.num('device_ns') >= sum(reported, one => one.num('device_ns')) * LEAST_SHARE),
            roofs) : null,
        legend(
          kinds.map(kind =>
            [
              [kind === 'compute' ? 'computing' : kind === 'memory' ? 'memory' : 'other'],
              t(kind ? `roofline.${kind}` : 'roofline.unknown'),
            ] as const
          ),
        ),
        barTable(t('topic.roofline'), t('operators.name'), [
          t('plot.time'),
          t('roofline.share'),
          t('roofline.above'),
          'TFLOP/s',
          'GB/s',
          'FLOP/B',
        ], rows.slice(0, TOP).map((row): BarRow => ({
          label: callOf(row),
          href: profile.slicesOf(row.text('operator')),
          title: String(cellValue(frame.table, bound, row.text('bound'))),
          parts: [{kinds: [kindOf(row)],
            value: row.text('roof_ns') ? Math.min(row.num('roof_ns'), row.num('device_ns')) : row.num('device_ns'),
            words: time(row, 'roof_ns')}, {kinds: ['idle'], value: Math.max(0, row.num('above_ns')),
            words: time(row, 'above_ns')}],
          cells: [
            time(row, 'device_ns'),
            row.text('roof_share') ? percent(row.num('roof_share')) : '–',
            time(row, 'above_ns'),
            exact(row.num('tflops')),
            exact(row.num('gbps')),
            exact(row.num('intensity')),
          ],
        }))),
        rows.length > TOP ? h('p', {class: 'quiet'}, t('plot.top', TOP, grouped(rows.length))) : null,
      ],
      tables: [frame.table, use.table, ...(peaks ? [peaks.table] : [])],
      pick: 'one',
    };
  },
};
