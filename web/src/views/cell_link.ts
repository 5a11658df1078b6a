// The name of a late cell in its table leads to the cell in the chart.
import {select, type App} from '../app';
import {cellOfRow} from '../data/late';
import {h, type Child} from '../dom';
import type {Column, Table} from '../data/report';
import {t} from '../i18n/i18n';

export function cellLink(app: App, table: Table, row: number, column: Column, words: string): Child {
  const cell = table.name === 'late-cells' && column.name === 'cell' ? cellOfRow(app, table, row) : -1;
  return cell >= 0 && h('button', {class: 'plain link', title: t('tables.showCell'), click: () => {
    select(app, cell);
    document.querySelector('.pipeline')?.scrollIntoView({block: 'start', behavior: 'smooth'});
  }}, words);
}
