// The second run below the first (view A --compare B), on one axis: both start at the same pixel with the step that is
// in sight, and windows, the pointer's line and the drawer are shared.
import {currentLang, t} from '../../i18n/i18n';
import {h} from '../../dom';
import {duration, percent} from '../../format';
import {fit} from '../../chart/viewport';
import type {Api, Run, Step} from '../shell/api';
import type {Shell} from '../shell/page';
import {makeActions, type Actions, type Doors} from './actions';
import {listenToPointer} from './pointer';
import {makeStage, type Stage} from './stage';
import {Store} from './store';
import {makeTip} from './tip';

// The run, with its rows, that a drawer, keys and the search belong to.
export interface Half {
  api: Api;
  store: Store;
  stage: Stage;
  actions: Actions;
}
export interface Second extends Half {
  heads: [a: HTMLElement, b: HTMLElement];
  tip: HTMLElement;
  restyle(): void;
}

export async function readSecond(api: Api): Promise<Run> {
  for (;;) {
    const {done, answer} = await api.long<Run>('run', {});
    if (done) return answer;
    await new Promise(pause => setTimeout(pause, 200));
  }
}

const MAX_CHOICES = 500; // steps in the list of B's
// Returns the index of the last step that starts by then; the first one's before all of them.
const nearest = (steps: readonly Step[], t: number): number =>
  Math.max(0, steps.filter(step => step.start_ns <= t).length - 1);
const lengthOf = (step: Step): number => step.end_ns - step.start_ns;

export function makeSecond(shell: Shell, first: Half, api: Api, run: Run, doors: (half: () => Half) => Doors,
  drawer: () => number): Second
{
  // The flame graph of an area is the first run's.
  const store = new Store({...run, calls: false}, shell.theme), stage = makeStage(api, store, drawer),
    tip = makeTip(store, () => '');
  const half: Half = {api, store, stage, actions: makeActions(api, store, stage, doors(() => half))};
  const heads: Second['heads'] = [h('div', {class: 'run-head'}), h('div', {class: 'run-head'})];
  const {steps} = first.store.run;
  // The step of A at whose start both are aligned, and how many steps later that of B is.
  let at = 0, later = 0, following = false, shown = '';

  const below = (): Step | undefined => run.steps[Math.min(Math.max(at + later, 0), run.steps.length - 1)];
  // From a time of A to that of B below it.
  const between = (): number => (steps[at] && below() ? below()!.start_ns - steps[at]!.start_ns : 0);
  function align(): void {
    const by = between(), {home, run: {span_ns: own}, state: {view}} = first.store,
      whole = view.t0 === home.t0 && view.t1 === home.t1;
    first.store.home = fit(Math.min(0, -by), Math.max(own, run.span_ns - by));
    store.home = {t0: first.store.home.t0 + by, t1: first.store.home.t1 + by};
    following = true;
    first.store.setView(whole ? first.store.home : view, false);
    follow();
    drawHeads();
  }
  function follow(): void {
    const {t0, t1} = first.store.state.view, by = between();
    following = true;
    store.setView({t0: t0 + by, t1: t1 + by}, false);
    following = false;
  }
  function drawHeads(): void {
    const own = steps[at], other = below(), key = `${at}/${later}/${currentLang()}`;
    if (key === shown) return;
    shown = key;
    const choice = h('select', {id: 'other-step', 'aria-label': t('pipe.runs.step'), title: t('pipe.runs.step'),
      change: () => {
        later = Number(choice.value) - at;
        align();
      }},
      ...run.steps.slice(0, MAX_CHOICES).map((step, i) =>
        h('option', {value: String(i), selected: step === other}, t('step', step.number))
      ));
    const by = own && other ? lengthOf(other) - lengthOf(own) : 0;
    heads[0].replaceChildren(h('b', {}, 'A'), ` ${first.store.run.title} `,
      h('span', {class: 'quiet'}, own ? `${t('step', own.number)} · ${duration(lengthOf(own))}` : ''));
    heads[1].replaceChildren(
      h('b', {}, 'B'),
      ` ${run.title} `,
      ...(own && other
        ? [
          choice,
          h('span', {class: 'quiet'},
            ` ${
              t('second.length', duration(lengthOf(other)),
                `${by < 0 ? '−' : '+'}${percent(Math.abs(by) / Math.max(lengthOf(own), 1))}`)
            } · ${t('second.aligned')}`),
        ] : [h('span', {class: 'quiet'}, t('second.starts'))]),
    );
  }

  first.store.onChange(before => {
    const {view} = first.store.state, step = steps[at];
    if (following || before.view === view) return;
    // The step stays while any of it is in sight, so that nothing jumps while the window moves.
    if (step && (step.end_ns < view.t0 || step.start_ns > view.t1)) {
      at = nearest(steps, (view.t0 + view.t1) / 2);
      align();
    } else {
      follow();
    }
  });
  store.onChange(before => {
    const {view} = store.state, by = between();
    if (!following && before.view !== view) first.store.setView({t0: view.t0 - by, t1: view.t1 - by});
  });
  for (const [one, other] of [[first.stage, stage], [stage, first.stage]] as const)
    for (const kind of ['pointermove', 'pointerleave'] as const)
      one.canvas.addEventListener(kind, () => {
        other.pointed.x = one.pointed.x;
        other.drawOverlay();
      });
  listenToPointer(api, store, stage, {tip: tip.show, select: half.actions.select, failed: half.actions.failed});
  at = nearest(steps, (first.store.state.view.t0 + first.store.state.view.t1) / 2);
  if (first.store.state.view.t0 <= first.store.home.t0) at = 0;
  align();
  return {...half, heads, tip: tip.element, restyle() {
    store.theme = shell.theme;
    drawHeads();
    stage.canvas.setAttribute('aria-label', t('canvas.aria', run.title));
    stage.restyle();
  }};
}
