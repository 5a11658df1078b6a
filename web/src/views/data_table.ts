// One table with all its rows: sorted by a click on a head, filtered by what is typed, copied as it is shown.
import {h, type Child} from '../dom';
import type {Column, Table, Value} from '../data/report';
import {bytes, grouped, shown} from '../format';
import {cellValue, columnTitle, sentence, t, tableTitle} from '../i18n/i18n';
import type {TextTip} from './text_tip';

const FIRST_ROWS = 100, PAGE_ROWS = 1000, LEAST_TO_FILTER = 8, LONG = 40;
const SENTENCES = new Set(['meaning', 'words', 'sentence', 'what_to_do', 'agrees', 'recommendation', 'message']);

// The display state of a table, kept when it is rebuilt.
export interface TableView {
  sorted: string;
  down: boolean;
  filter: string;
  whole: boolean;
  page?: number;
}
export interface TableUse {
  tip: TextTip;
  link?(table: Table, row: number, column: Column, words: string): Child; // what a cell leads to; false: only its words
  view?: TableView;
  changed?(view: TableView): void;
}

// Row numbers in the order of `values`; unknown ones stay last. Equal ones keep their order.
export function sortedRows(values: Value[] | undefined, rows: number[], direction: number): number[] {
  if (!values || direction === 0) return rows;
  return rows.sort((a, b) => {
    const x = values[a]!, y = values[b]!;
    if (x === y) return a - b;
    if (x === null || y === null) return x === null ? 1 : -1;
    const order = typeof x === 'number' && typeof y === 'number' ? x - y
      : String(x).localeCompare(String(y), undefined, {numeric: true});
    return order * direction || a - b;
  });
}

// A text that a spreadsheet would take for a formula is text there, too.
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
export function csvField(text: string, isText: boolean): string {
  const safe = isText && FORMULA.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
function save(name: string, text: string): void {
  // The mark tells spreadsheets that it is UTF-8.
  const url = URL.createObjectURL(new Blob(['\ufeff', text], {type: 'text/csv;charset=utf-8'}));
  h('a', {href: url, download: name}).click();
  window.setTimeout(() => URL.revokeObjectURL(url), 1000);
}

async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = h('textarea', {'aria-hidden': 'true', class: 'live'}); // file:// has no clipboard of its own everywhere
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  if (!done) throw new Error('copy');
}

export function dataTable(table: Table, use: TableUse): HTMLElement {
  const count = table.values[0]?.length ?? 0;
  if (count === 0) return h('p', {class: 'quiet'}, t('tables.empty'));
  const view: TableView = use.view ?? {sorted: '', down: false, filter: '', whole: false};
  const holder = h('div', {class: 'wide', tabindex: 0, role: 'group', 'aria-label': tableTitle(table)});
  const counted = h('span', {class: 'quiet', 'aria-live': 'polite'}), titles = table.columns.map(columnTitle);
  const words = (row: number, i: number): string =>
    shown(cellValue(table, table.columns[i]!, table.values[i]![row]!), table.columns[i]!.type);
  // For the eye, as the terminal prints them; what is copied has the whole number.
  const seen = (row: number, i: number): string => {
    const {name, type} = table.columns[i]!, value = table.values[i]![row];
    return type === 'integer' && typeof value === 'number' && /(^|_)bytes$/.test(name) ? bytes(value) : words(row, i);
  };

  function chosen(): number[] {
    const wishes = view.filter.toLowerCase().split(/\s+/).filter(Boolean),
      all = Array.from({length: count}, (_, i) => i);
    const fits = (row: number): boolean => {
      const line = table.columns.map((_, i) => seen(row, i)).join('\n').toLowerCase();
      return wishes.every(wish => line.includes(wish));
    };
    const at = table.columns.findIndex(column => column.name === view.sorted);
    return sortedRows(table.values[at], wishes.length > 0 ? all.filter(fits) : all, at < 0 ? 0 : view.down ? -1 : 1);
  }
  function header(index: number): HTMLElement {
    const column = table.columns[index]!, own = view.sorted === column.name;
    const button = h('button', {class: 'plain', title: t('tables.sort', titles[index]!), click: () => {
      // Of numbers the largest are looked for.
      const first = column.type !== 'text' && column.type !== 'integer';
      view.down = own ? !view.down : first;
      view.sorted = column.name;
      view.page = 0;
      draw();
      use.changed?.(view);
      holder.querySelectorAll<HTMLElement>('th button')[index]?.focus();
    }}, titles[index]!, column.unit && h('small', {}, ` ${column.unit}`),
      h('span', {class: 'arrow', 'aria-hidden': 'true'}));
    if (column.help) {
      const help = sentence(column.help);
      button.removeAttribute('title');
      button.setAttribute('aria-description', help);
      for (const event of ['pointerenter', 'focus'])
        button.addEventListener(event, () => use.tip.showText(help, button));
      for (const event of ['pointerleave', 'blur']) button.addEventListener(event, () => use.tip.hide());
    }
    return h('th', {scope: 'col', 'aria-sort': !own ? 'none' : view.down ? 'descending' : 'ascending',
      class: column.type === 'text' ? 'text' : ''}, button);
  }
  function content(row: number, i: number): Child {
    const text = seen(row, i);
    return use.link?.(table, row, table.columns[i]!, text) || text;
  }
  // Sentences wrap; long names are cut, and whole under the pointer.
  function cell(row: number, column: Column, i: number): HTMLElement {
    if (column.type !== 'text') return h('td', {}, content(row, i));
    const value = String(table.values[i]![row] ?? ''), sentence = SENTENCES.has(column.name);
    return h('td', {class: sentence ? 'text wrap' : 'text', title: !sentence && value.length > LONG ? value : null},
      content(row, i));
  }
  function draw(): void {
    const rows = chosen(), pages = Math.ceil(rows.length / PAGE_ROWS),
      page = Math.max(0, Math.min(view.page ?? 0, pages - 1));
    const shownRows = view.whole ? rows.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS) : rows.slice(0, FIRST_ROWS);
    use.tip.hide();
    holder.replaceChildren(
      h('table', {}, h('thead', {}, h('tr', {}, ...table.columns.map((_, i) => header(i)))),
        h('tbody', {},
          ...shownRows.map(row => h('tr', {}, ...table.columns.map((column, i) => cell(row, column, i)))))),
      ...(view.whole && pages > 1 ? [pager(rows.length, page, pages)] : []),
      ...(!view.whole && shownRows.length < rows.length ? [h('button', {class: 'plain link', click: () => {
        view.whole = true;
        draw();
        use.changed?.(view);
      }}, t('tables.showAll', grouped(rows.length)))] : []),
    );
    counted.textContent = rows.length < count ? t('tables.filtered', grouped(rows.length), grouped(count)) : '';
  }
  // A page in place of all rows: a hundred thousand of them stop a browser.
  function pager(all: number, page: number, pages: number): HTMLElement {
    const go = (id: string, words: string, to: number): HTMLElement =>
      h('button', {class: 'plain link', 'data-go': id, disabled: to < 0 || to >= pages || to === page, click: () => {
        view.page = to;
        draw();
        holder.scrollTop = 0;
        (holder.querySelector<HTMLElement>(`[data-go=${id}]:not(:disabled)`) ??
          holder.querySelector<HTMLElement>('[data-go]:not(:disabled)'))?.focus();
      }}, words);
    return h('p', {class: 'quiet rows-pager'},
      h('span', {role: 'status'},
        t('tables.page', grouped(page * PAGE_ROWS + 1), grouped(Math.min((page + 1) * PAGE_ROWS, all)), grouped(all))),
      ' ', go('first', t('tables.page.first'), 0), ' ', go('before', t('tables.page.before'), page - 1), ' ',
      go('next', t('tables.page.next'), page + 1), ' ', go('last', t('tables.page.last'), pages - 1));
  }
  const field = h('input', {type: 'search', class: 'filter', value: view.filter, placeholder: t('tables.filter'),
    'aria-label': t('tables.filterOf', tableTitle(table)), input: () => {
      view.filter = field.value;
      view.page = 0;
      draw();
      use.changed?.(view);
    }});
  // Whole numbers and names, tabs between: what a spreadsheet takes.
  const button = h('button', {class: 'copy', click: () => {
    const lines = [
      table.columns.map((column, i) => titles[i]! + (column.unit ? ` ${column.unit}` : '')).join('\t'),
      ...chosen().map(row => table.columns.map((_, i) => words(row, i).replace(/[\t\n]/g, ' ')).join('\t')),
    ];
    copy(lines.join('\n') + '\n').then(() => {
      button.textContent = t('tables.copied', grouped(lines.length - 1));
    }, () => {
      button.textContent = t('tables.notCopied');
    })
      .finally(() =>
        window.setTimeout(() => {
          button.textContent = t('tables.copy');
        }, 2500)
      );
  }}, t('tables.copy'));
  // All rows that are chosen, with the names that commands have for columns: what a program reads.
  const download = h('button', {class: 'csv', title: t('tables.csv.help'), click: () => {
    const lines = [
      table.columns.map(column => csvField(column.name, true)).join(','),
      ...chosen().map(row =>
        table.columns.map((_, i) => {
          const value = table.values[i]![row];
          return value === null || value === undefined ? '' : csvField(String(value), typeof value === 'string');
        }).join(',')
      ),
    ];
    save(`${table.name}.csv`, lines.join('\r\n') + '\r\n');
  }}, t('tables.csv'));
  draw();
  return h('div', {class: 'data-table'},
    h('div', {class: 'table-tools'}, count >= LEAST_TO_FILTER && field, button, download, counted), holder);
}
