// SQL over the run: the tables that there are, a query, its rows, a plot of them, and the way to the timeline where
// they say when. Served runs only: a report in a file has no program behind it.
import {t, type Key} from '../../i18n/i18n';
import type {Column, Table, Value} from '../../data/report';
import {h, type Child} from '../../dom';
import {duration, grouped} from '../../format';
import {barTable, type BarRow} from '../../plots/bars';
import {dataTable, type TableView} from '../../views/data_table';
import type {TextTip} from '../../views/text_tip';
import type {Shell} from '../shell/page';
import {remember} from '../shell/remember';
import {plainQuery} from '../shell/route';
import {askSql, stretchesOf, type Answered} from './ask_sql';
import {commandWith} from './command';
import {failure, working} from './working';

const FIRST = "SELECT key AS name, count, total_ns FROM totals('name') ORDER BY total_ns DESC LIMIT 20";
const EXAMPLES: readonly [Key, string][] = [
  ['sql.example.names', FIRST],
  ['sql.example.long', 'SELECT name, rank, start_ns, dur_ns FROM slices ORDER BY dur_ns DESC LIMIT 20'],
  [
    'sql.example.lanes',
    'SELECT rank, lane, count(*) AS count, sum(self_ns) AS self_ns FROM slices GROUP BY rank, lane ORDER BY self_ns DESC',
  ],
  ['sql.example.steps', 'SELECT * FROM steps'],
  ['sql.example.tables', 'SELECT name, kind, help FROM tables'],
];
const MOST_ROWS = 1000, MOST_BARS = 40, MAX_KEPT = 20;

// Queries that were answered, the latest first; kept for the next visit.
function keptQueries(): string[] {
  try {
    const kept = JSON.parse(remember('sql') ?? '[]') as unknown;
    return Array.isArray(kept) ? kept.filter((one): one is string => typeof one === 'string') : [];
  } catch {
    return [];
  }
}
function keep(query: string): void {
  remember('sql', JSON.stringify([query, ...keptQueries().filter(one => one !== query)].slice(0, MAX_KEPT)));
}

interface About {
  name: string;
  kind: string;
  help: string;
  missing: string;
  columns: {name: string; unit: string; help: string}[];
}
export interface SqlPane {
  element: HTMLElement;
  show(query: string): void;
  address(): string;
  restyle(): void;
  busy(): boolean;
}

// Returns the unit of a column whose name does not end with it.
const unitOf = ({name, unit}: {name: string; unit: string}): string => (name.endsWith(`_${unit}`) ? '' : unit);

// Times are whole numbers of nanoseconds here: what else would the next query be given?
function tableOf(answer: Answered): Table {
  const columns = answer.columns.map(({name, unit}, at): Column => {
    const text = answer.rows.some(row => typeof row[at] === 'string');
    return {name, title: '',
      type: text ? 'text' : answer.rows.some(row => typeof row[at] === 'number' && !Number.isInteger(row[at]))
        ? 'real' : 'integer', unit: unitOf({name, unit}), help: ''} as Column;
  });
  return {name: 'sql', title: 'SQL', rowCount: answer.rows.length, columns,
    values: columns.map((_, at) => answer.rows.map(row => row[at]!))};
}

// The time that rows cover.
function spanOf(answer: Pick<Answered, 'columns' | 'rows'>): [number, number] | null {
  const found = stretchesOf(answer);
  return found && found.length > 0
    ? [
      found.reduce((least, one) => Math.min(least, one.start), Infinity),
      found.reduce((most, one) => Math.max(most, one.end), -Infinity),
    ] : null;
}

export function makeSql(shell: Shell, tip: TextTip, paths: () => readonly string[]): SqlPane {
  const box = h('textarea', {id: 'sql-query', rows: 5, spellcheck: 'false', autocapitalize: 'off'});
  const place = h('div', {class: 'sql-answer'}), schema = h('aside', {class: 'sql-schema'});
  const element = h('div', {class: 'sql'});
  const view: TableView = {sorted: '', down: false, filter: '', whole: false};
  let turn = 0, asked = '', answer: Answered | null = null, wrong: unknown = null, waiting = 0, measure = '',
    about: About[] = [], ms = 0;

  const made = (q: string, rows: number, wanted: () => boolean): Promise<Answered> =>
    askSql(shell.api, q, rows, wanted);
  function ask(): void {
    const query = box.value.trim(), mine = ++turn, begin = performance.now();
    if (query === '') return;
    asked = query;
    waiting = mine;
    wrong = null;
    drawAnswer();
    shell.moved();
    made(query, MOST_ROWS, () => mine === waiting).then(found => {
      if (mine !== waiting) return;
      answer = found;
      keep(query);
      drawChoice();
      Object.assign(view, {sorted: '', down: false, filter: '', page: 0});
    }, (error: unknown) => {
      if (mine === waiting) {
        wrong = error;
        answer = null;
      }
    }).finally(() => {
      if (mine !== waiting) return;
      waiting = 0;
      ms = performance.now() - begin;
      drawAnswer();
      if (answer) shell.say(t('sql.rows', grouped(answer.rows.length)));
    });
  }

  function plot(table: Table): Child {
    const numbers = table.columns.filter(column => column.type !== 'text' && !/(^|_)id$/.test(column.name));
    if (numbers.length === 0 || table.rowCount === 0) return false;
    const column = numbers.find(one => one.name === measure) ?? numbers.at(-1)!;
    const names = table.columns.filter(one => one.type === 'text'),
      label = names[0] ?? table.columns.find(one => one !== column);
    const values = table.values[table.columns.indexOf(column)]!,
      labels = label ? table.values[table.columns.indexOf(label)]! : [];
    const said = (value: number): string => (column.name.endsWith('_ns') ? duration(value) : String(value));
    const rows = values.slice(0, MOST_BARS).map((value, row): BarRow => ({
      label: labels.length > 0 ? String(labels[row] ?? '–') : String(row + 1),
      parts: [{kinds: ['plain'], value: Math.max(0, Number(value)), words: said(Number(value))}],
      cells: [value === null ? '–' : said(Number(value))],
    }));
    const choose = h('select', {id: 'sql-measure', change() {
      measure = choose.value;
      drawAnswer();
    }}, ...numbers.map(one => h('option', {value: one.name, selected: one === column}, one.name)));
    return h('section', {class: 'sql-plot'},
      h('p', {class: 'controls-row'}, h('label', {for: 'sql-measure'}, t('sql.plot')), ' ', choose,
        table.rowCount > MOST_BARS && h('span', {class: 'quiet'}, ' ', t('sql.plot.first', MOST_BARS))),
      barTable(t('sql.plot'), label?.name ?? '', [column.name], rows));
  }
  function drawAnswer(): void {
    if (waiting) return place.replaceChildren(working(t('answers.working'), null));
    if (wrong) return place.replaceChildren(failure(wrong, ask));
    if (!answer) return place.replaceChildren();
    const table = tableOf(answer), span = spanOf(answer),
      name = table.columns.findIndex(column => column.name === 'name');
    const one = name >= 0 && new Set(table.values[name]).size === 1 ? String(table.values[name]![0]) : '';
    const margin = span ? Math.max(1, (span[1] - span[0]) * 0.02) : 0;
    const to = span && shell.href('timeline', {query: plainQuery(new URLSearchParams({
      v: `${Math.round(span[0] - margin)},${Math.round(span[1] + margin)}`,
      ...(one ? {lit: one} : {}),
      q: asked,
    }))});
    const link = (_: Table, row: number, column: Column, words: string): Child => {
      if (column.name !== 'start_ns' || !span) return false;
      const own = spanOf({columns: answer!.columns, rows: [answer!.rows[row]!]});
      return own !== null &&
        h('a', {href: shell.href('timeline', {query: `v=${own[0]},${Math.max(own[1], own[0] + 1)}`}),
          title: t('sql.toSlice')}, words);
    };
    place.replaceChildren(...[
      h('p', {class: 'quiet', role: 'status'},
        t(answer.truncated ? 'sql.rows.first' : 'sql.rows', grouped(answer.rows.length)), ` · ${ms.toFixed(0)} ms`,
        to && ' · ', to && h('a', {href: to, id: 'sql-timeline'}, t('sql.timeline'))),
      table.rowCount > 0 && dataTable(table, {tip, view, link, changed: () => undefined}),
      plot(table),
      h('p', {class: 'quiet'}, t('answers.same'), ' ', h('code', {}, commandWith('sql', paths(), asked))),
    ].filter((child): child is HTMLElement => !!child));
  }
  function drawSchema(): void {
    const groups: readonly (readonly [string, string])[] = [['table', t('sql.tables')], [
      'function',
      t('sql.functions'),
    ], ['analysis', t('sql.analyses')]];
    schema.replaceChildren(h('h2', {}, t('sql.schema')), ...groups.flatMap(([kind, title]) => {
      const tables = about.filter(one => one.kind === kind && !one.missing);
      return tables.length === 0 ? []
        : [
          h('h3', {}, title),
          ...tables.map(one =>
            h('details', {}, h('summary', {title: one.help}, one.name), h('p', {class: 'quiet'}, one.help),
              h('ul', {}, ...one.columns.map(column =>
                h('li', {title: column.help}, column.name, unitOf(column) && h('small', {}, ` ${unitOf(column)}`))
              )))
          ),
        ];
    }));
  }
  // The schema is asked for as everything else is: in SQL.
  async function readSchema(): Promise<void> {
    const read = async (q: string): Promise<Value[][]> => (await made(q, 10_000, () => true)).rows;
    const [tables, columns] = await Promise.all([
      read('SELECT name, kind, help, missing FROM tables'),
      read('SELECT table_name, name, unit, help FROM columns WHERE NOT is_option'),
    ]);
    const text = (value: Value | undefined): string => (value === null || value === undefined ? '' : String(value));
    about = tables.map(([name, kind, help, missing]) => ({name: text(name), kind: text(kind), help: text(help),
      missing: text(missing),
      columns: columns.filter(([of]) => of === name).map(([, own, unit, words]) => ({name: text(own), unit: text(unit),
        help: text(words)})
      )})
    );
    drawSchema();
  }
  const choice = h('select', {id: 'sql-examples', change() {
    if (choice.value === '') return;
    box.value = choice.value;
    ask();
  }});
  function drawChoice(): void {
    const group = (title: string, queries: readonly (readonly [string, string])[]): HTMLElement =>
      h('optgroup', {label: title}, ...queries.map(([words, query]) => h('option', {value: query}, words)));
    const known = new Set(EXAMPLES.map(([, query]) => query)), kept = keptQueries().filter(query => !known.has(query));
    choice.setAttribute('aria-label', t('sql.examples'));
    choice.replaceChildren(h('option', {value: ''}, t('sql.examples')),
      group(t('sql.examples.title'), EXAMPLES.map(([key, query]) => [t(key), query])),
      ...(kept.length > 0 ? [group(t('sql.history'), kept.map(query => [query.slice(0, 90), query]))] : []));
  }
  function draw(): void {
    drawChoice();
    const run = h('button', {type: 'submit'}, t('sql.run'));
    element.replaceChildren(
      h('header', {}, h('h1', {tabindex: -1}, t('family.sql')), h('p', {class: 'lead'}, t('family.sql.what'))),
      h('div', {class: 'sql-grid'}, h('div', {}, h('form', {class: 'sql-form', submit(event: Event) {
        event.preventDefault();
        ask();
      }}, h('label', {for: 'sql-query', class: 'live'}, t('sql.query')), box,
        h('p', {class: 'controls-row'}, run, ' ', choice, h('span', {class: 'quiet'}, t('sql.keys')))), place), schema),
    );
    drawSchema();
    drawAnswer();
  }
  box.addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      ask();
    }
  });
  return {
    element,
    show(query) {
      const wanted = new URLSearchParams(query).get('q');
      if (element.childElementCount === 0) {
        draw();
        void readSchema().catch(() => undefined);
      }
      if (wanted === null && box.value !== '') return;
      if (wanted !== null && wanted === asked) return;
      box.value = wanted ?? FIRST;
      ask();
    },
    address: () => (asked === '' ? '' : plainQuery(new URLSearchParams({q: asked}))),
    restyle() {
      if (element.childElementCount > 0) draw();
    },
    busy: () => waiting !== 0,
  };
}
