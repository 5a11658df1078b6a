// The line above the chart: what is shown, what colours mean, and the controls that choose.
import {moveStep, setStep, setView, toggleTheory, type App} from '../app';
import {CHUNK_TINTS, tintShare} from '../chart/colours';
import {isCompute, KIND_GROUP} from '../data/kind';
import {h, styled} from '../dom';
import {t, type Key} from '../i18n/i18n';
import {homeOf} from '../state';
import {hasContextParallel, replicaName} from '../words';

function legend(app: App): HTMLElement {
  const groups = new Set<number>(), chunks = new Set<number>();
  for (let i = 0; i < app.cells.count; ++i) {
    groups.add(KIND_GROUP[app.cells.kind[i]!]!);
    if (isCompute(app.cells.kind[i]!) && app.cells.chunk[i]! >= 0) chunks.add(app.cells.chunk[i]!);
  }
  return h('ul', {class: 'key'},
    ...[...groups].sort((a, b) => a - b).map(group => h('li', {}, h('i', {class: `group-${group}`}), t(`group.${group}` as Key))),
    app.model.markInputs && h('li', {}, h('i', {class: 'group-1 input-mark'}), t('kind.I')),
    chunks.size > 1 && h('li', {}, ...[...chunks].sort((a, b) => a - b).slice(0, CHUNK_TINTS).map(chunk =>
      styled(h('i', {class: 'group-0 chunk'}), {opacity: String(1 - tintShare(chunk))})), t('chart.chunks', [...chunks].sort((a, b) => a - b).slice(0, CHUNK_TINTS).join(', '))),
    h('li', {}, h('i', {class: 'group-idle'}), t('group.idle')),
    ...(app.report.theory ? [h('li', {class: 'of-theory'}, h('i', {class: 'ghost'}), t('chart.ghost', app.report.theory.schedule)),
      ...(app.report.theory.steps.length > 0 ? [h('li', {class: 'of-theory'}, h('i', {class: 'theory-end'}), t('chart.theoryEnd'))] : [])] : []),
    h('li', {}, h('i', {class: 'notch'}), t('chart.phase')));
}

function stepControls(app: App): HTMLElement {
  const {steps} = app.model;
  const number = h('input', {type: 'number', id: 'step', 'aria-label': t('chart.stepNumber'), min: steps[0]?.step, max: steps[steps.length - 1]?.step,
                             change: () => { if (steps.some(s => s.step === Number(number.value))) setStep(app, Number(number.value)); else show(); }});
  const all = h('button', {id: 'all-steps', click: () => setStep(app, app.state.step === null ? steps[0]?.step ?? null : null)}, t('chart.all'));
  const group = h('div', {class: 'controls'},
    h('button', {id: 'prev-step', 'aria-label': t('chart.prev'), title: t('chart.prev'), click: () => moveStep(app, -1)}, '‹'), number,
    h('button', {id: 'next-step', 'aria-label': t('chart.next'), title: t('chart.next'), click: () => moveStep(app, 1)}, '›'), all);
  function show(): void {
    number.value = app.state.step === null ? '' : String(app.state.step);
    all.setAttribute('aria-pressed', String(app.state.step === null));
  }
  group.addEventListener('statechange', show);
  show();
  return group;
}

function theoryButton(app: App): HTMLElement | null {
  if (!app.model.ghosts) return null;
  const button = h('button', {id: 'theory', title: t('chart.theory.help'), click: () => toggleTheory(app)}, t('chart.theory'));
  const group = h('div', {class: 'controls'}, button);
  const show = (): void => button.setAttribute('aria-pressed', String(app.state.theory));
  group.addEventListener('statechange', show);
  show();
  return group;
}

const allReplicas = (app: App): string => t(hasContextParallel(app) ? 'chart.pipelines' : 'chart.replicas');

function replicaSelect(app: App): HTMLElement | null {
  if (app.model.dps.length < 2) return null;
  const choice = h('select', {id: 'replica', 'aria-label': t(hasContextParallel(app) ? 'chart.pipelineSelect' : 'chart.replicaSelect'),
                              change: () => app.change({dp: choice.value === 'all' ? null : Number(choice.value), hovered: -1})},
    ...app.model.dps.map(dp => h('option', {value: dp}, replicaName(app, dp))), h('option', {value: 'all'}, allReplicas(app)));
  const show = (): void => { choice.value = app.state.dp === null ? 'all' : String(app.state.dp); };
  choice.addEventListener('statechange', show);
  show();
  return choice;
}

export function chartHeadView(app: App): HTMLElement {
  const title = h('h2', {});
  const show = (): void => {
    const step = app.state.step === null ? t('chart.all') : t('chart.step', app.state.step);
    const replica = app.state.dp === null ? allReplicas(app) : replicaName(app, app.state.dp);
    title.textContent = app.model.dps.length > 1 ? t('chart.title', step, replica) : step;
  };
  title.addEventListener('statechange', show);
  show();
  return h('div', {class: 'chart-head'}, title, legend(app), h('span', {class: 'space'}),
    h('div', {class: 'controls-row'}, app.model.steps.length > 0 && stepControls(app), replicaSelect(app), theoryButton(app),
      h('button', {id: 'fit', title: t('chart.fit.help'), click: () => setView(app, homeOf(app.model, app.state.step))}, t('chart.fit'))));
}

export function keyHintsView({model}: App, openHelp: () => void): HTMLElement {
  const hint = (keys: string, words: string): HTMLElement =>
    h('span', {}, ...keys.split(' ').flatMap(key => [h('kbd', {}, key), ' ']), words);
  return h('p', {class: 'keys'}, hint('W S', t('keys.zoom')), hint('A D', t('keys.move')), hint('[ ]', t('keys.step')),
    hint(', .', t('keys.cell')), hint('0', t('keys.fit')), model.ghosts && hint('T', t('keys.theory')),
    h('button', {class: 'plain', id: 'help-open', click: openHelp}, h('kbd', {}, '?'), ' ', t('keys.all')));
}

export function truncatedView(app: App): HTMLElement | null {
  const {cells, steps} = {cells: app.report.cells, steps: app.model.steps};
  if (cells.count >= cells.total) return null;
  const number = (i: number): string => String(steps[i]?.step ?? t('unknown'));
  return h('p', {class: 'notice', id: 'truncated'},
    t('chart.truncated', cells.count.toLocaleString('en').replace(/,/g, '\u202f'),
      cells.total.toLocaleString('en').replace(/,/g, '\u202f'), number(0), number(steps.length - 1), cells.steps));
}
