// Waits for the run, then puts the timeline and what stands around it together.
import {render} from 'preact';
import {h} from '../dom';
import {currentLang, firstLang, setLang} from '../i18n/i18n';
import {makeActions, type Actions, type OmniMode} from './actions';
import {Api, type Run, type Status} from './api';
import {expose} from './expose';
import {Header} from './header';
import {openHelp} from './help';
import {listenToKeys} from './keys';
import {Loading} from './loading';
import {openOmni} from './omni';
import {Panel} from './panel';
import {openInPerfetto} from './perfetto';
import {listenToPointer} from './pointer';
import {makeStage} from './stage';
import {Store, type Theme} from './store';
import {makeTip} from './tip';
import {fromHash, toHash} from './url';
import {w} from './words';

function remember(key: string, value?: string): string | null {
  try {
    if (value !== undefined) localStorage.setItem('stageline.' + key, value);
    return localStorage.getItem('stageline.' + key);
  } catch {
    return null;  // storage may be forbidden; the page works without
  }
}

const dark = matchMedia('(prefers-color-scheme: dark)');
function firstTheme(): Theme {
  const chosen = new URLSearchParams(location.search).get('theme') ?? remember('theme');
  return chosen === 'dark' || chosen === 'light' ? chosen : dark.matches ? 'dark' : 'light';
}
function applyLang(): void { document.documentElement.lang = currentLang() === 'zh' ? 'zh-CN' : 'en'; }

// Status by server-sent events; by asking again and again where those do not come through.
async function untilReady(api: Api, show: (status: Status) => void): Promise<boolean> {
  const first = await api.json<Status>('status');
  show(first);
  if (first.state === 'ready') return true;
  return await new Promise(done => {
    const events = new EventSource(api.url('events'));
    let over = false, asking = 0;
    const take = (status: Status): void => {
      if (over) return;
      show(status);
      if (status.state !== 'ready' && status.state !== 'failed') return;
      over = true;
      events.close();
      clearInterval(asking);
      done(status.state === 'ready');
    };
    events.onmessage = event => take(JSON.parse(event.data as string) as Status);
    events.onerror = () => {
      events.close();
      if (!over && !asking) asking = window.setInterval(() => { api.json<Status>('status').then(take).catch(() => undefined); }, 300);
    };
  });
}

function build(api: Api, run: Run, root: HTMLElement, theme: Theme): void {
  const store = new Store(run, theme), stage = makeStage(api, store);
  const top = h('div', {class: 'top-place'}), bottom = h('div', {class: 'panel-place'});
  const live = h('p', {class: 'live', 'aria-live': 'polite', id: 'live'});
  const tip = makeTip(store);
  let actions: Actions;

  function restyle(): void {
    document.documentElement.dataset['theme'] = store.theme;
    applyLang();
    stage.canvas.setAttribute('aria-label', w('canvas.aria', run.title));
    stage.restyle();
    show();
  }
  const doors = {
    open: (mode: OmniMode) => openOmni(mode, api, store, stage, actions),
    help: openHelp,
    toggleTheme() {
      store.theme = store.theme === 'dark' ? 'light' : 'dark';
      remember('theme', store.theme);
      restyle();
    },
    toggleLang() {
      setLang(currentLang() === 'zh' ? 'en' : 'zh');
      remember('lang', currentLang());
      restyle();
    },
    perfetto: () => { openInPerfetto(api, store).catch(error => actions.failed(error)); },
  };
  actions = makeActions(api, store, stage, doors);

  let pending = 0;
  function show(): void {
    pending = 0;
    render(<Header store={store} stage={stage} actions={actions} />, top);
    render(<Panel api={api} store={store} stage={stage} actions={actions} />, bottom);
    const sentence = store.state.spoken || store.state.message;
    if (live.textContent !== sentence) live.textContent = sentence;
  }
  // Panels follow once a frame, and not at all while only the window moves.
  store.onChange(before => {
    const {view: a, ...rest} = before, {view: b, ...now} = store.state;
    const same = (Object.keys(rest) as (keyof typeof rest)[]).every(key => rest[key] === now[key]);
    if ((!same || a === b) && !pending) pending = requestAnimationFrame(show);
    clearTimeout(saving);
    saving = window.setTimeout(() => history.replaceState(null, '', toHash(store)), 200);
  });
  let saving = 0;
  window.addEventListener('hashchange', () => fromHash(store, location.hash, actions, api));
  dark.addEventListener('change', event => {
    if (remember('theme')) return;
    store.theme = event.matches ? 'dark' : 'light';
    restyle();
  });

  root.replaceChildren(top, stage.element, bottom, live, tip.element);
  listenToPointer(api, store, stage, {tip: tip.show, select: actions.select, failed: actions.failed});
  listenToKeys(store, stage, actions);
  if (location.hash) fromHash(store, location.hash, actions, api);
  restyle();
  expose(store, stage, actions);
}

async function start(): Promise<void> {
  const api = new Api(), root = document.getElementById('app')!, theme = firstTheme();
  setLang(firstLang('', remember('lang')));
  applyLang();
  document.documentElement.dataset['theme'] = theme;
  try {
    if (!await untilReady(api, status => render(<Loading status={status} />, root))) return;
    const run = await api.json<Run>('run');
    document.title = `${run.title} · Stageline`;
    render(null, root);
    build(api, run, root, theme);
  } catch (error) {
    render(<Loading status={{state: 'failed', bytes_read: 0, bytes_total: 0, events: 0, message: '',
        error: w('failed', String(error))}} />, root);
  }
}

void start();
