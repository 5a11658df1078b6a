// Every table of the run, folded; rows are made when a table is opened.
import {select, type App} from '../app';
import {cellOfRow} from '../data/late';
import {type Column, type Table, type Value} from '../data/report';
import {h} from '../dom';
import {grouped, shown} from '../format';
import {cellValue, columnTitle, t, tableTitle} from '../i18n/i18n';
import type {PageTip} from './tip';

const FIRST_ROWS = 100;

export function sortedRows(values: Value[] | undefined, count: number, direction: number): number[] {
  const rows = Array.from({length: count}, (_, i) => i);
  if (!values || direction === 0) return rows;
  return rows.sort((a, b) => {
    const x = values[a]!, y = values[b]!;
    if (x === y) return a - b;
    if (x === null || y === null) return x === null ? 1 : -1;  // unknown stays last
    const order = typeof x === 'number' && typeof y === 'number' ? x - y
      : String(x).localeCompare(String(y), undefined, {numeric: true});
    return order * direction || a - b;
  });
}

function tableBody(app: App, table: Table, tip: PageTip): HTMLElement {
  const count = table.values[0]?.length ?? 0;
  if (count === 0) return h('p', {class: 'quiet'}, t('tables.empty'));
  let sorted = -1, direction = 0, limit = FIRST_ROWS;
  const holder = h('div', {class: 'wide'});

  function header(index: number): HTMLElement {
    const column = table.columns[index]!, title = columnTitle(column);
    const button = h('button', {class: 'plain', title: t('tables.sort', title), click: () => {
      direction = sorted === index ? (direction === 1 ? -1 : 1) : 1;
      sorted = index;
      draw();
      holder.querySelectorAll<HTMLElement>('th button')[index]?.focus();
    }}, title, column.unit && h('small', {}, ` ${column.unit}`), h('span', {class: 'arrow', 'aria-hidden': 'true'}));
    if (column.help) {
      button.removeAttribute('title');
      button.setAttribute('aria-description', column.help);
      for (const event of ['pointerenter', 'focus']) button.addEventListener(event, () => tip.showText(column.help, button));
      for (const event of ['pointerleave', 'blur']) button.addEventListener(event, () => tip.hide());
    }
    const order = sorted !== index ? 'none' : direction > 0 ? 'ascending' : 'descending';
    return h('th', {scope: 'col', 'aria-sort': order, class: column.type === 'text' ? 'text' : ''}, button);
  }
  // The name of a late cell leads to it.
  function content(row: number, column: Column, i: number): string | HTMLElement {
    const value = shown(cellValue(table, column, table.values[i]![row]!), column.type);
    const cell = table.name === 'late-cells' && column.name === 'cell' ? cellOfRow(app, table, row) : -1;
    return cell < 0 ? value : h('button', {class: 'plain link', title: t('tables.showCell'), click: () => {
      select(app, cell);
      document.querySelector('.pipeline')?.scrollIntoView({block: 'start', behavior: 'smooth'});
    }}, value);
  }
  function draw(): void {
    const rows = sortedRows(sorted < 0 ? undefined : table.values[sorted], count, direction).slice(0, limit);
    holder.replaceChildren(
      h('table', {}, h('thead', {}, h('tr', {}, ...table.columns.map((_, i) => header(i)))),
        h('tbody', {}, ...rows.map(row => h('tr', {}, ...table.columns.map((column, i) =>
          h('td', {class: column.type === 'text' ? 'text' : ''}, content(row, column, i))))))),
      ...(limit < count ? [h('button', {class: 'plain link', click: () => { limit = count; draw(); }},
        t('tables.showAll', grouped(count)))] : []));
  }
  draw();
  return holder;
}

// Two analyses may name a table alike; the second gets a number.
function tableId(app: App, table: Table): string {
  const nth = app.report.tables.filter(other => other.name === table.name).indexOf(table);
  return `table-${table.name}${nth > 0 ? `-${nth + 1}` : ''}`;
}

export function tableFold(app: App, table: Table, tip: PageTip): HTMLElement {
  const count = table.values[0]?.length ?? 0;
  const fold = h('details', {class: 'fold', id: tableId(app, table)},
    h('summary', {}, tableTitle(table), h('small', {}, table.rowCount === 1 ? t('tables.rows.one') : t('tables.rows', grouped(table.rowCount)))));
  fold.addEventListener('toggle', () => {
    if (!fold.open || fold.children.length > 1) return;
    fold.append(tableBody(app, table, tip));
    if (count < table.rowCount)
      fold.append(h('p', {class: 'quiet'}, t('tables.more', grouped(count), grouped(table.rowCount), ''),
        h('code', {}, 'stageline export … -o run.sqlite')));
  });
  return fold;
}

// `drawn`: tables that stand in a section of their own already.
export function tablesView(app: App, tip: PageTip, drawn: ReadonlySet<Table>): HTMLElement | null {
  const tables = app.report.tables.filter(table => table.name !== 'diagnostics' && !drawn.has(table));  // flaws have a section
  if (tables.length === 0) return null;
  // Many questions find nothing; their tables are named in one line.
  const empty = tables.filter(table => table.rowCount === 0);
  return h('section', {class: 'tables'}, h('h2', {}, t('tables')),
    ...tables.filter(table => !empty.includes(table)).map(table => tableFold(app, table, tip)),
    empty.length > 0 && h('p', {class: 'quiet'}, t('tables.without', empty.map(tableTitle).join(t('list.comma')))));
}
