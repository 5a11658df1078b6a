// Every rank in the grid of the parallel strategy: a row for each stage, a column for each replica and tensor slice.
import {frameOf, maximum, type Row} from '../data/frame';
import {h, styled} from '../dom';
import {duration, percent} from '../format';
import {t} from '../i18n/i18n';
import {wordsFor, type Topic} from './topic';

const MOST_COLUMNS = 256, MOST_ROWS = 128;
const METRICS = ['bubble_share', 'compute_ns', 'exposed_communication_ns', 'idle_ns'] as const;
type Metric = typeof METRICS[number];

const value = (row: Row, metric: Metric): string => (row.text(metric) === '' ? '–'
  : metric === 'bubble_share' ? percent(row.num(metric)) : duration(row.num(metric)));

// The smallest value is pale and the largest full; where all are alike nothing stands out.
function shade(row: Row, metric: Metric, low: number, high: number): HTMLElement {
  const part = high > low && row.text(metric) !== '' ? (row.num(metric) - low) / (high - low) : 0;
  return styled(h('i', {class: 'kind-plain', 'aria-hidden': 'true'}), {opacity: String(0.06 + 0.6 * part)});
}

function grid(rows: Row[], metric: Metric): HTMLElement {
  const number = (a: string, b: string): number => Number(a) - Number(b);
  const stages = [...new Set(rows.map(row => row.text('pp')))].sort(number).slice(0, MOST_ROWS);
  const columnOf = (row: Row): string => [row.text('dp'), row.text('cp'), row.text('tp')].join('/');
  const columns = [
    ...new Map(
      [...rows].sort((a, b) => a.num('dp') - b.num('dp') || a.num('cp') - b.num('cp') || a.num('tp') - b.num('tp'))
        .map(row => [columnOf(row), row] as const),
    ),
  ].slice(0, MOST_COLUMNS);
  const at = new Map<string, Row[]>();
  for (const row of rows) {
    const key = `${row.text('pp')}|${columnOf(row)}`;
    const list = at.get(key);
    if (list) list.push(row);
    else at.set(key, [row]);
  }
  const known = rows.filter(row => row.text(metric) !== '');
  const high = maximum(known, row => row.num(metric)),
    low = known.reduce((least, row) => Math.min(least, row.num(metric)), high);
  const withContext = maximum(rows, row => row.num('cp')) > 0;
  const head = (row: Row): string =>
    ['dp', ...(withContext ? ['cp'] : []), 'tp'].map(name => `${name} ${row.text(name) || '?'}`).join(' · ');
  const cell = (row: Row): HTMLElement =>
    h('div', {class: 'place', title: [
      `${t('details.rank')} ${row.text('rank')}`,
      row.text('host'),
      ...METRICS.map(name => `${wordsFor(`rankmap.${name}`)} ${value(row, name)}`),
    ].filter(Boolean).join('\n')}, shade(row, metric, low, high), h('b', {}, row.text('rank')),
      h('span', {}, value(row, metric)));
  return h('div', {class: 'plot-box scrolls-x', tabindex: 0, role: 'group', 'aria-label': t('topic.rankmap')},
    h('table', {class: 'rank-map'},
      h('caption', {class: 'live'}, `${t('topic.rankmap')}: ${wordsFor(`rankmap.${metric}`)}`),
      h('thead', {},
        h('tr', {}, h('th', {scope: 'col'}, t('rankmap.stage')),
          ...columns.map(([, row]) => h('th', {scope: 'col'}, head(row))))),
      h('tbody', {},
        ...stages.map(stage =>
          h('tr', {}, h('th', {scope: 'row'}, stage || '?'), ...columns.map(([column]) =>
            h('td', {}, ...(at.get(`${stage}|${column}`) ?? []).map(cell))
          ))
        ))));
}

export const rankMap: Topic = {
  id: 'rankmap',
  build({app: {report}}) {
    const frame = frameOf(report, 'rank-map', 'pp'), sizes = frameOf(report, 'rank-map-sizes');
    if (!frame || frame.rows.every(row => row.text('pp') === '')) return null;
    const metrics = METRICS.filter(metric => frame.rows.some(row => row.text(metric) !== ''));
    let drawn = grid(frame.rows, metrics[0] ?? 'bubble_share');
    const select = h('select', {id: 'rankmap-colour', change: () => {
      const next = grid(frame.rows, select.value as Metric);
      drawn.replaceWith(next);
      drawn = next;
    }}, ...metrics.map(metric => h('option', {value: metric}, wordsFor(`rankmap.${metric}`))));
    return {
      nodes: [
        metrics.length > 1
          ? h('p', {class: 'rank-map-choice'}, h('label', {for: 'rankmap-colour'}, t('rankmap.colour')), ' ', select)
          : null,
        drawn,
      ],
      tables: [frame.table, ...(sizes ? [sizes.table] : [])],
    };
  },
};
