// The timeline as a page: the bar, the rows, the drawer below.
import {render} from 'preact';
import {h} from '../dom';
import {makeActions, type Actions, type OmniMode} from './actions';
import {expose} from './expose';
import {timelineKeys} from './help';
import {listenToKeys} from './keys';
import {openOmni} from './omni';
import type {Page, Shell} from './page';
import {Panel} from './panel';
import {openInPerfetto} from './perfetto';
import {listenToPointer} from './pointer';
import {makeStage} from './stage';
import {Store} from './store';
import {makeTip} from './tip';
import {Toolbar} from './toolbar';
import {fromQuery, toQuery} from './url';
import {w} from './words';

export function makeTimeline(shell: Shell): Page {
  const {api, run} = shell, store = new Store(run, shell.theme);
  const bar = h('div', {class: 'toolbar-place'}), bottom = h('div', {class: 'panel-place'}), tip = makeTip(store);
  const stage = makeStage(api, store, () => bottom.querySelector<HTMLElement>('.panel .body')?.offsetHeight ?? 0);
  const element = h('div', {}, bar, stage.element, bottom, tip.element);
  let actions: Actions;
  const doors = {
    open: (mode: OmniMode) => openOmni(mode, api, store, stage, actions),
    help: shell.help, toggleTheme: shell.toggleTheme, toggleLang: shell.toggleLang,
    perfetto: () => { openInPerfetto(api, store).catch(error => actions.failed(error)); },
  };
  actions = makeActions(api, store, stage, doors);

  let pending = 0, jumps = store.jumps, seen = false;
  function draw(): void {
    pending = 0;
    render(<Toolbar store={store} stage={stage} actions={actions} />, bar);
    render(<Panel api={api} store={store} stage={stage} actions={actions} />, bottom);
    shell.say(store.state.spoken || store.state.message);
  }
  // Panels follow once a frame, and not at all while only the window moves.
  store.onChange(before => {
    const {view: a, ...rest} = before, {view: b, ...now} = store.state;
    const same = (Object.keys(rest) as (keyof typeof rest)[]).every(key => rest[key] === now[key]);
    if ((!same || a === b) && !pending) pending = requestAnimationFrame(draw);
    if (shell.page === 'timeline') shell.moved(store.jumps !== jumps);
    jumps = store.jumps;
  });
  listenToPointer(api, store, stage, {tip: tip.show, select: actions.select, failed: actions.failed});
  listenToKeys(store, stage, actions, () => shell.page === 'timeline');
  expose(store, stage, actions);

  return {
    element,
    show(route) {
      if (route && (route.query || seen)) fromQuery(store, route.query, actions, api, shell.lost);
      seen = true;
    },
    address: () => ({rest: '', query: toQuery(store)}),
    restyle() {
      store.theme = shell.theme;
      stage.canvas.setAttribute('aria-label', w('canvas.aria', run.title));
      draw();  // bars first: what they leave is the stage's
      stage.restyle();
    },
    keys: timelineKeys,
    focus: () => stage.canvas.focus(),
  };
}
