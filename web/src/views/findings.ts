import type {App} from '../app';
import {h} from '../dom';
import {both, t} from '../i18n/i18n';

export function findingsView(app: App): HTMLElement {
  const {findings} = app.report;
  return h('section', {class: 'findings'},
    h('h2', {}, t('findings')),
    findings.length === 0 && h('p', {class: 'quiet'}, t('findings.none')),
    ...findings.map(finding => h('div', {class: 'find', id: `finding-${finding.id}`},
      h('h3', {}, both(finding.title)),
      h('p', {class: 'detail'}, both(finding.detail)),
      !!finding.value && h('p', {class: `price${finding.weight > 0 ? '' : ' none'}`}, finding.value,
        h('small', {}, both(finding.note))))));
}
