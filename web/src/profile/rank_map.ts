// Every rank in the grid of the parallel strategy: a row for each stage, a column for each replica and tensor slice.
import {frameOf, maximum, type Row} from '../data/frame';
import type {Table} from '../data/report';
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

// Ranks that differ in one index alone, as one: the largest value of them, and which rank has it.
const FOLDS = ['tp', 'cp', 'dp'] as const;
type Fold = typeof FOLDS[number] | '';
function grid(rows: Row[], {metric, fold, least, greatest}: Look): HTMLElement {
  const number = (a: string, b: string): number => Number(a) - Number(b);
  const stages = [...new Set(rows.map(row => row.text('pp')))].sort(number).slice(0, MOST_ROWS);
  const columnOf = (row: Row): string =>
    ['dp', 'cp', 'tp'].map(name => (name === fold ? '' : row.text(name))).join('/');
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
    ['dp', ...(withContext ? ['cp'] : []), 'tp'].filter(name => name !== fold).map(name =>
      `${name} ${row.text(name) || '?'}`
    ).join(' · ');
  // In the unit that is printed: percents, else milliseconds.
  const isOutside = (row: Row): boolean => {
    const size = row.num(metric) * (metric === 'bubble_share' ? 100 : 1e-6);
    return size < least || size > greatest;
  };
  const cell = (row: Row, all: readonly Row[]): HTMLElement =>
    h('div', {class: isOutside(row) ? 'place outside' : 'place', 'data-ranks': all.map(one =>
      one.text('rank')
    ).join(' '), title: [
      `${t('details.rank')} ${row.text('rank')}`,
      all.length > 1 && t('rankmap.most', all.length),
      row.text('host'),
      row.text('ep') !== '' && `ep ${row.text('ep')}`,
      ...METRICS.map(name => `${wordsFor(`rankmap.${name}`)} ${value(row, name)}`),
    ].filter(Boolean).join('\n')}, shade(row, metric, low, high), h('b', {}, row.text('rank')),
      h('span', {}, value(row, metric)));
  const cellsOf = (own: readonly Row[]): HTMLElement[] =>
    fold === '' || own.length < 2 ? own.map(row => cell(row, [row]))
      : [cell(own.reduce((most, row) => (row.num(metric) > most.num(metric) ? row : most)), own)];
  return h('div', {class: 'plot-box scrolls-x', tabindex: 0, role: 'group', 'aria-label': t('topic.rankmap')},
    h('table', {class: 'rank-map'},
      h('caption', {class: 'live'}, `${t('topic.rankmap')}: ${wordsFor(`rankmap.${metric}`)}`),
      h('thead', {},
        h('tr', {}, h('th', {scope: 'col'}, t('rankmap.stage')),
          ...columns.map(([, row]) => h('th', {scope: 'col'}, head(row))))),
      h('tbody', {},
        ...stages.map(stage =>
          h('tr', {}, h('th', {scope: 'row'}, stage || '?'), ...columns.map(([column]) =>
            h('td', {}, ...cellsOf(at.get(`${stage}|${column}`) ?? []))
          ))
        ))));
}

// A strategy that someone typed in the place of the recorded one: sizes, and the order in which ranks are counted, the
// fastest first.
const SIZES = ['tp', 'cp', 'ep', 'pp'] as const,
  ORDERS = ['tp-cp-dp-pp', 'tp-cp-pp-dp', 'tp-pp-cp-dp', 'pp-tp-cp-dp'] as const;
interface Strategy {
  sizes: Record<typeof SIZES[number], number>;
  order: string;
}
interface Look {
  metric: Metric;
  strategy: Strategy | null; // null: as recorded
  rank: string; // that is looked for
  fold: Fold;
  least: number; // values outside are pale
  greatest: number;
}
const looks = new WeakMap<Table, Look>(); // a chart is built again with each answer that comes

// Rows at the places that a strategy gives them; null: the sizes do not divide the number of ranks.
// Experts are spread over replicas: the ranks of a group of ep are next to each other in dp.
const replicasOf = ({sizes}: Strategy, ranks: number): number => ranks / (sizes.tp * sizes.cp * sizes.pp);
function arranged(rows: Row[], strategy: Strategy, ranks: number): Row[] | null {
  const {sizes, order} = strategy, dp = replicasOf(strategy, ranks);
  if (!Number.isInteger(dp) || dp % sizes.ep !== 0) return null;
  return rows.map(row => {
    const place: Record<string, number> = {};
    let rest = row.num('rank');
    for (const name of order.split('-')) {
      const size = name === 'dp' ? dp : sizes[name as keyof typeof sizes];
      place[name] = rest % size;
      rest = Math.floor(rest / size);
    }
    place['ep'] = place['dp']! % sizes.ep;
    return {num: column => place[column] ?? row.num(column),
      text: column => (column in place ? String(place[column]) : row.text(column))};
  });
}

export const rankMap: Topic = {
  id: 'rankmap',
  build({app: {report}}) {
    const frame = frameOf(report, 'rank-map', 'pp'), sizes = frameOf(report, 'rank-map-sizes');
    // Several ranks whose places are unknown: the form alone, until a strategy is typed.
    const isKnown = frame?.rows.some(row => row.text('pp') !== '') ?? false;
    if (!frame || (!isKnown && (frame.rows.length < 2 || frame.rows.some(row => row.text('dp') !== '')))) return null;
    const {rows, table} = frame, metrics = METRICS.filter(metric => rows.some(row => row.text(metric) !== ''));
    const look = looks.get(table) ??
      {metric: metrics[0] ?? 'bubble_share', strategy: null, rank: '', fold: '', least: -Infinity, greatest: Infinity};
    looks.set(table, look);
    const recorded = (name: string): number =>
      Math.max(1, sizes?.rows.find(row => row.text('dimension') === name)?.num('size') ?? 0, 1 + maximum(rows, row =>
        row.num(name)));
    const shown = (name: string): number | '' => (isKnown ? recorded(name) : '');
    const ranks = Math.max(1 + maximum(rows, row => row.num('rank')), rows.length);
    const place = h('div', {}), said = h('span', {class: 'quiet', role: 'status'});
    function draw(): void {
      const at = look.strategy ? arranged(rows, look.strategy, ranks) : rows;
      said.textContent = at ? '' : t('rankmap.uneven', ranks);
      if (!isKnown && !look.strategy) place.replaceChildren(sizes?.rows[0]?.text('source') ?? '');
      else if (at) place.replaceChildren(grid(at, look));
      const replicas = look.strategy ? replicasOf(look.strategy, ranks) : isKnown ? recorded('dp') : NaN;
      dp.value = Number.isInteger(replicas) ? String(replicas) : '–';
      const found = [...place.querySelectorAll<HTMLElement>('.place')].find(one =>
        one.dataset['ranks']!.split(' ').includes(look.rank)
      );
      found?.classList.add('found');
      found?.scrollIntoView({block: 'nearest', inline: 'nearest'});
    }
    const dp = h('output', {id: 'rankmap-dp', title: t('rankmap.dp')});
    const colour = h('select', {id: 'rankmap-colour', change: () => {
      look.metric = colour.value as Metric;
      unit.textContent = unitOf();
      draw();
    }},
      ...metrics.map(metric =>
        h('option', {value: metric, selected: metric === look.metric}, wordsFor(`rankmap.${metric}`))
      ));
    const fields = SIZES.map(name =>
      h('input', {id: `rankmap-${name}`, type: 'number', min: 1, max: ranks,
        value: look.strategy?.sizes[name] ?? shown(name), change: arrange})
    );
    const order = h('select', {id: 'rankmap-order', change: arrange},
      ...ORDERS.map(one => h('option', {value: one, selected: one === look.strategy?.order}, one)));
    function arrange(): void {
      const [tp, cp, ep, pp] = fields.map(field => Math.max(1, Math.floor(Number(field.value)) || 1));
      look.strategy = {sizes: {tp: tp!, cp: cp!, ep: ep!, pp: pp!}, order: order.value};
      draw();
    }
    const find = h('input', {id: 'rankmap-find', type: 'number', min: 0, max: ranks - 1, value: look.rank,
      input: () => {
        look.rank = find.value;
        draw();
      }});
    const fold = h('select', {id: 'rankmap-fold', change: () => {
      look.fold = fold.value as Fold;
      draw();
    }}, h('option', {value: ''}, '–'),
      ...FOLDS.map(name => h('option', {value: name, selected: name === look.fold}, name)));
    const unitOf = (): string => (look.metric === 'bubble_share' ? '%' : 'ms');
    const unit = h('span', {}, unitOf());
    const bound = (id: string, words: string, kept: number, keep: (value: number) => void): HTMLInputElement => {
      const field: HTMLInputElement = h('input', {id: `rankmap-${id}`, type: 'number', step: 'any', 'aria-label': words,
        value: Number.isFinite(kept) ? kept : '', input: () => {
          keep(field.value === '' ? NaN : Number(field.value));
          draw();
        }});
      return field;
    };
    const least = bound('least', t('rankmap.least'), look.least, value => {
        look.least = Number.isNaN(value) ? -Infinity : value;
      }), greatest = bound('greatest', t('rankmap.greatest'), look.greatest, value => {
        look.greatest = Number.isNaN(value) ? Infinity : value;
      });
    const labelled = (id: string, words: string, field: HTMLElement): HTMLElement =>
      h('label', {for: id, class: 'choice'}, words, ' ', field);
    draw();
    return {
      nodes: [
        h('p', {class: 'rank-map-choice'}, ...[
          metrics.length > 1 && labelled('rankmap-colour', t('rankmap.colour'), colour),
          ...SIZES.map((name, i) => labelled(`rankmap-${name}`, name, fields[i]!)),
          h('span', {class: 'choice'}, 'dp ', dp),
          labelled('rankmap-order', t('rankmap.order'), order),
          h('button', {class: 'plain link', id: 'rankmap-recorded', click: () => {
            look.strategy = null;
            SIZES.forEach((name, i) => {
              fields[i]!.value = String(shown(name));
            });
            draw();
          }}, t('rankmap.recorded')),
          labelled('rankmap-find', t('rankmap.find'), find),
          labelled('rankmap-fold', t('rankmap.fold'), fold),
          h('span', {class: 'choice'}, t('rankmap.range'), ' ', least, ' – ', greatest, ' ', unit),
          said,
        ].filter((one): one is HTMLElement => !!one)),
        place,
      ],
      tables: [table, ...(sizes ? [sizes.table] : [])],
    };
  },
};
