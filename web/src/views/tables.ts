// Every table of the run, folded; rows are made when a table is opened.
import type {Table} from '../data/report';
import {h} from '../dom';
import {grouped} from '../format';
import {t, tableTitle} from '../i18n/i18n';
import {dataTable, type TableUse} from './data_table';

// Where tables stand: all of the page, and how they are used.
export interface TableHome {
  tables: readonly Table[];
  use: TableUse;
}

// Two analyses may name a table alike; the second gets a number.
function tableId(home: TableHome, table: Table): string {
  const nth = home.tables.filter(other => other.name === table.name).indexOf(table);
  return `table-${table.name}${nth > 0 ? `-${nth + 1}` : ''}`;
}

export function tableFold(home: TableHome, table: Table): HTMLElement {
  const count = table.values[0]?.length ?? 0;
  const fold = h('details', {class: 'fold', id: tableId(home, table)},
    h('summary', {}, tableTitle(table),
      h('small', {}, table.rowCount === 1 ? t('tables.rows.one') : t('tables.rows', grouped(table.rowCount)))));
  fold.addEventListener('toggle', () => {
    if (!fold.open || fold.children.length > 1) return;
    fold.append(dataTable(table, home.use));
    if (count < table.rowCount)
      fold.append(
        h('p', {class: 'quiet'}, t('tables.more', grouped(count), grouped(table.rowCount), ''),
          h('code', {}, 'stageline export … -o run.sqlite')),
      );
  });
  return fold;
}
