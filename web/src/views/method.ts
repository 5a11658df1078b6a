import type {App} from '../app';
import {h} from '../dom';
import {t, type Key} from '../i18n/i18n';
import {hasProfile} from '../data/report';
import {isProfile} from '../profile/profile';
import {clockHelp} from '../words';

export function methodView(app: App): HTMLElement {
  const ofCells: Key[] = ['method.busy', 'method.span', 'method.inner', 'method.time', 'method.pixel'];
  const ofSlices: Key[] = ['method.profile.device', 'method.profile.step', 'method.profile.time', 'method.profile.findings'];
  const keys = isProfile(app) ? ofSlices : hasProfile(app.report) ? [...ofCells, ...ofSlices] : ofCells;
  return h('section', {class: 'method'}, h('h2', {}, t('method')),
    ...keys.map(key => h('p', {}, t(key))), h('p', {}, clockHelp(app.report)),
    app.report.laidEndToEnd && h('p', {}, t('laidEndToEnd')));
}

export const footerView = (app: App): HTMLElement => h('footer', {}, t('made', app.report.version));
