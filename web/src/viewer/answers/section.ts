// One analysis on a page of answers: its tables, and how its numbers were made: what to type, options, what columns
// mean.
import type {Column, Table} from '../../data/report';
import {h, type Child} from '../../dom';
import {grouped} from '../../format';
import {columnTitle, flawWords, sentence, t, tableTitle} from '../../i18n/i18n';
import {dataTable, type TableView} from '../../views/data_table';
import type {TextTip} from '../../views/text_tip';
import type {Shell} from '../shell/page';
import {plainQuery} from '../shell/route';
import {PATH_QUERIES} from './ask_sql';
import {CLOCKS, titleOf} from './families';
import {quoted} from './command';
import type {Answer, AnswerTable, Choice, Desk, Offer, Working} from './ask';
import {failure, working} from './working';

const ASKED_ALONE = 1_000_000; // slices of a run in which what takes longer is there soon

export interface Section {
  element: HTMLElement;
  start(alone: boolean): void; // asks, once, what is asked without being told to; `alone`: nothing else of the page is
  busy(): boolean;
  answer(): Answer | null;
  choose(table: string, query: URLSearchParams | null): void; // from an address; null: not this one
  address(): Record<string, string> | null; // null: nothing of this section is in the address
  restyle(): void;
}
export interface SectionUse {
  shell: Shell;
  desk: Desk;
  tip: TextTip;
  offer: Offer;
  paths: string[];
  changed(): void; // the address
  came(): void; // the answer
}

export const commandOf = (name: string, paths: readonly string[], options: Choice): string =>
  [
    'stageline',
    ...(name === CLOCKS ? ['align'] : ['analyze', name]),
    ...paths.map(quoted),
    ...Object.entries(options).flatMap(([option, value]) => [`--${option}`, quoted(value)]),
  ].join(' ');

export function answerSection(use: SectionUse): Section {
  const {shell, desk, tip, offer} = use, own = h('section', {class: 'answer', id: `answer-${offer.name}`});
  const views = new Map<string, TableView>(), open = new Set<string>();
  let options: Choice = {}, answer: Answer | null = null, wrong: unknown = null, now: Working | null = null,
    asked = false, busy = false, chosen = '';
  let how = false, turn = 0, first = true, wanted = false; // wanted: by a press, though it takes longer

  function ask(): void {
    const mine = ++turn, watch = (state: Working): void => {
      if (mine === turn && state.seconds > 0.3) {
        now = state;
        draw();
      }
    };
    asked = busy = true;
    wrong = null;
    (offer.name === CLOCKS ? desk.clocks(watch) : desk.answer(offer.name, options, watch)).then(found => {
      if (mine !== turn) return;
      answer = found;
      const full = found.tables.find(table => table.rowCount > 0);
      if (first && !chosen && full && full.rowCount <= 40) open.add(full.name);
      first = false;
    }, (error: unknown) => {
      if (mine === turn) {
        wrong = error;
        answer = null;
      }
    }).finally(() => {
      if (mine !== turn) return;
      busy = false;
      now = null;
      draw();
      use.came();
      if (chosen) own.querySelector(`#table-${CSS.escape(chosen)}`)?.scrollIntoView({block: 'start'});
    });
    draw();
  }
  // A step leads to its place in the timeline.
  function link(table: Table, row: number, column: Column, words: string): Child {
    if (column.name !== 'step') return false;
    const value = table.values[table.columns.indexOf(column)]![row],
      step = shell.run.steps.find(one => one.number === value);
    return step !== undefined &&
      h('a', {href: shell.href('timeline', {query: `v=${step.start_ns},${step.end_ns}`}), title: t('answers.toStep')},
        words);
  }
  function fold(table: AnswerTable): HTMLElement {
    const view = views.get(table.name) ?? {sorted: '', down: false, filter: '', whole: false};
    views.set(table.name, view);
    const element = h('details', {class: 'fold', id: `table-${table.name}`, open: open.has(table.name)},
      h('summary', {}, tableTitle(table),
        h('small', {}, table.rowCount === 1 ? t('tables.rows.one') : t('tables.rows', grouped(table.rowCount)))));
    const show = (rows: AnswerTable, from: number): HTMLElement =>
      h('div', {}, dataTable(rows, {tip, view, link, changed() {
        chosen = table.name;
        use.changed();
      }}), table.count < table.rowCount && pager(rows, from));
    // Pages through a long table: this number of rows is present at a time; they are sorted and filtered among
    // themselves.
    const pager = (rows: AnswerTable, from: number): HTMLElement => {
      const said = h('span', {role: 'status'},
        t('answers.rows', grouped(from + 1), grouped(from + rows.count), grouped(table.rowCount)));
      const turn = (to: number): void => {
        said.textContent = t('answers.rows.wait');
        desk.rows(offer.name, options, table.name, to, () => undefined).then(found => {
          const shown = show(found, to);
          element.children[1]!.replaceWith(shown);
          shown.querySelector<HTMLElement>('.pager button:not(:disabled)')?.focus();
        }, (error: unknown) => {
          said.textContent = String(error instanceof Error ? error.message : error);
        });
      };
      return h('p', {class: 'quiet pager'}, said, ' ',
        h('button', {class: 'plain link', disabled: from === 0, click: () => turn(Math.max(0, from - table.count))},
          t('answers.rows.before', grouped(table.count))), ' ',
        h('button', {class: 'plain link', disabled: from + rows.count >= table.rowCount,
          click: () => turn(from + table.count)}, t('answers.rows.next', grouped(table.count))), ' ',
        t('answers.rows.all'), ' ',
        h('code', {}, `${commandOf(offer.name, use.paths, options)} --table ${table.name} --format csv`));
    };
    const fill = (): void => {
      if (element.children.length < 2) element.append(show(table, 0));
    };
    if (open.has(table.name)) fill();
    element.addEventListener('toggle', () => {
      if (element.open) {
        fill();
        if (!open.has(table.name)) chosen = table.name;
        open.add(table.name);
      } else {
        open.delete(table.name);
        if (chosen === table.name) chosen = '';
      }
      use.changed();
    });
    return element;
  }
  function form(): HTMLElement | false {
    if (offer.options.length === 0) return false;
    if (REPORT) return h('p', {class: 'quiet'}, t('file.asked'), ' ', h('code', {}, use.shell.run.file!.command));
    const fields = offer.options.map(option => {
      const id = `option-${offer.name}-${option.name}`, value = options[option.name] ?? '';
      const choices = option.value === 'BOOL' ? ['true', 'false'] : option.choices;
      const field = choices.length > 0
        ? h('select', {id}, h('option', {value: ''}, t('answers.default')),
          ...choices.map(one => h('option', {value: one, selected: one === value}, one)))
        : h('input', {id, value, placeholder: option.value, type: 'text'});
      return {option, field,
        view: h('div', {class: 'option'}, h('label', {for: id}, `--${option.name}`), field,
          h('span', {class: 'quiet'}, option.help))};
    });
    return h('form', {class: 'options', submit(event: Event) {
      event.preventDefault();
      options = Object.fromEntries(
        fields.map(({option, field}) => [option.name, field.value.trim()]).filter(([, value]) => value !== ''),
      );
      ask();
      use.changed();
    }}, ...fields.map(one => one.view), h('button', {type: 'submit'}, t('answers.again')));
  }
  function columnsOf(table: Table): HTMLElement {
    return h('div', {}, h('h4', {}, tableTitle(table)), h('dl', {class: 'columns-help'}, ...table.columns.flatMap(
      column => [
        h('dt', {}, columnTitle(column), column.unit && h('small', {}, ` ${column.unit}`)),
        h('dd', {}, sentence(column.help) || '–'),
      ],
    )));
  }
  function howMade(): HTMLElement {
    const tables = answer?.tables ?? [];
    const element = h('details', {class: 'how-made', open: how}, h('summary', {}, t('answers.how')));
    const fill = (): void => {
      if (element.children.length > 1) return;
      element.append(
        h('p', {}, t('answers.same'), ' ', h('code', {}, commandOf(offer.name, use.paths, options))),
        h('p', {class: 'quiet'}, t('answers.defined'), ' ',
          h('code', {}, offer.name === CLOCKS ? 'stageline help align' : `stageline help ${offer.name}`), ' · ',
          h('code', {}, offer.name === CLOCKS ? 'docs/howto/clocks.md' : `docs/analyses/${offer.name}.md`)),
        form() || '',
        ...tables.map(columnsOf),
      );
    };
    if (how) fill();
    element.addEventListener('toggle', () => {
      how = element.open;
      if (how) fill();
    });
    return element;
  }
  function content(): Child[] {
    if (busy && !answer) return [working(t('answers.working'), now)];
    if (wrong) return [failure(wrong, ask), howMade()];
    if (!answer)
      return [h('p', {class: 'quiet'}, t('answers.notAsked'), ' ', h('button', {class: 'ask', click: () => {
        wanted = true;
        ask();
        use.changed();
      }}, t('answers.ask')))];
    const full = answer.tables.filter(table => table.rowCount > 0);
    return [
      busy && working(t('answers.working'), now),
      ...full.map(fold),
      !REPORT && offer.name in PATH_QUERIES &&
      h('p', {}, h('a', {
        href: use.shell.href('timeline', {query: plainQuery(new URLSearchParams({q: PATH_QUERIES[offer.name]!}))}),
      }, t('answers.lane'))),
      full.length === 0 && h('p', {class: 'quiet'}, t('tables.empty')),
      answer.notes.length > 0 &&
      h('ul', {class: 'notes quiet'}, ...answer.notes.map(note => h('li', {}, flawWords(note.name, note.message)))),
      howMade(),
    ];
  }
  function draw(): void {
    own.replaceChildren(
      ...[h('h3', {class: 'title', tabindex: -1}, titleOf(offer.name)), ...content()].filter((
        child,
      ): child is Node | string => !!child),
    );
  }
  return {
    element: own,
    start(alone) {
      if (!asked && (offer.in_report || (alone && shell.run.slices <= ASKED_ALONE))) ask();
      else if (!asked) draw();
    },
    busy: () => busy,
    answer: () => answer,
    choose(table, query) {
      if (!query) {
        chosen = '';
        return;
      }
      const known = new Set(offer.options.map(option => option.name)), next: Choice = {};
      for (const [key, value] of query) if (known.has(key) && key !== 'rank' && key !== 'table') next[key] = value;
      const other = JSON.stringify(next) !== JSON.stringify(options);
      options = next;
      wanted ||= !offer.in_report;
      chosen = offer.tables.some(one => one.name === table) ? table : '';
      if (chosen) {
        open.add(chosen);
        const at = query.get('sort');
        if (at !== null || query.has('filter'))
          views.set(chosen, {sorted: at?.replace(/^-/, '') ?? '', down: at?.startsWith('-') ?? false,
            filter: query.get('filter') ?? '', whole: false});
      }
      if (other || !asked) ask();
      else draw();
      (chosen ? own.querySelector(`#table-${CSS.escape(chosen)}`) : own)?.scrollIntoView({block: 'start'});
    },
    address() {
      if (!chosen && Object.keys(options).length === 0 && !wanted) return null;
      const view = views.get(chosen);
      return {...options, ...(chosen ? {table: chosen} : {}),
        ...(view?.sorted ? {sort: (view.down ? '-' : '') + view.sorted} : {}),
        ...(view?.filter ? {filter: view.filter} : {})};
    },
    restyle: draw,
  };
}
