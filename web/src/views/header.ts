import type {App} from '../app';
import {h} from '../dom';
import {currentLang, t} from '../i18n/i18n';
import {isProfile, stepCount} from '../profile/profile';
import {clockHelp, countOf} from '../words';

export interface HeaderActions { toggleLang(): void; toggleTheme(): void }

export function headerView(app: App, actions: HeaderActions): HTMLElement {
  const {report, model} = app, steps = isProfile(app) ? stepCount(app) : model.steps.length;
  const facts = [report.title, countOf('ranks', report.parts.length), (steps > 0 || !isProfile(app)) && countOf('steps', steps), report.format].filter(Boolean);
  const next = app.theme === 'dark' ? 'light' : 'dark';
  return h('header', {class: 'top'},
    h('span', {class: 'logo'}, 'Stageline'),
    h('span', {class: 'run'}, facts.join(' · ')),
    h('span', {class: 'space'}),
    h('span', {class: `pill clock ${report.clock}`, title: clockHelp(report)},
      h('i', {class: 'dot', 'aria-hidden': 'true'}), t(`clock.${report.clock}`)),
    h('button', {class: 'pill', id: 'theme', title: t('theme.switch'), click: actions.toggleTheme}, t(`theme.${next}`)),
    h('button', {class: 'pill', id: 'lang', title: t('lang.switch'), lang: currentLang() === 'zh' ? 'en' : 'zh-CN',
                 click: actions.toggleLang}, t('lang.other')));
}
