import type {App} from '../app';
import {h} from '../dom';
import {grouped} from '../format';
import {flawWords, t} from '../i18n/i18n';

export function flawsView(app: App): HTMLElement {
  const {flaws} = app.report;
  const section = h('section', {class: 'flaws', id: 'flaws'}, h('h2', {}, t('flaws')));
  if (flaws.length === 0) section.append(h('p', {class: 'quiet'}, t('flaws.none')));
  else section.append(h('div', {class: 'wide'}, h('table', {},
    h('thead', {}, h('tr', {}, h('th', {class: 'text', scope: 'col'}, t('flaws.severity')), h('th', {class: 'text', scope: 'col'}, t('flaws.what')),
      h('th', {scope: 'col'}, t('flaws.count')), h('th', {class: 'text', scope: 'col'}, t('flaws.where')))),
    h('tbody', {}, ...flaws.map(flaw => h('tr', {}, h('td', {class: `text severity ${flaw.severity}`}, t(`severity.${flaw.severity}`)),
      h('td', {class: 'text wrap'}, flawWords(flaw.name, flaw.message) || flaw.name, h('small', {class: 'quiet'}, ` ${flaw.name}`)),
      h('td', {}, grouped(flaw.count)), h('td', {class: 'text wrap where'}, flaw.where)))))));
  return section;
}
