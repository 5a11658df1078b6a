// The frame of the viewer: what the run is, the pages and the ways to them. One page is in sight; the others keep what
// they show. Addresses are hash routes (route.ts), so that a link shows what was seen and Back goes back.
import {render} from 'preact';
import {h, takesText, type Child} from '../../dom';
import {duration, grouped} from '../../format';
import {addSentences, currentLang, flawWords, sentence, setLang, t} from '../../i18n/i18n';
import {applyTheme} from '../../theme';
import type {Api, Run} from './api';
import {commandLine} from './command';
import {openHelp} from './help';
import {openShare, type LoadPicture} from './share';
import {setPaper, watchPaper} from '../../paper';
import {short} from './numbers';
import type {Page, Shell, Theme} from './page';
import {hashOf, PAGES, routeOf, type PageId, type Route} from './route';
import {remember} from './remember';
import {startOf} from './source';

// G, then the letter; by position, so that layouts and input methods do not matter.
const LETTERS: Record<PageId, string> = {overview: 'O', pipeline: 'P', timeline: 'T', flame: 'F', answers: 'A',
  plan: 'L', compare: 'C'};
const ARMED_MS = 2500;
const MAX_PAPER_FRAMES = 300; // waited for what a page fetches for paper

type ClockState = 'shared' | 'unaligned' | 'per-rank' | 'aligned' | 'partly-aligned';
const CLOCKS: readonly string[] = ['shared', 'unaligned', 'per-rank', 'aligned', 'partly-aligned'];

// A dialog that explains a pill.
function openNote(title: string, ...content: Child[]): void {
  const dialog = h('dialog', {class: 'note', 'aria-label': title});
  const close = (): void => dialog.close();
  dialog.append(
    h('div', {class: 'help-head'}, h('h2', {}, title),
      h('button', {class: 'pill', click: close}, t('close'), ' ', h('kbd', {}, 'Esc'))),
    ...content.filter((one): one is Node | string => !!one),
  );
  document.body.append(dialog);
  dialog.addEventListener('click', event => {
    if (event.target === dialog || (event.target as Element).closest('a')) close();
  });
  dialog.addEventListener('close', () => dialog.remove());
  dialog.showModal();
}

// `more`: where its numbers are.
function Clock({clock, more}: {clock: Run['clock']; more: string}) {
  if (!CLOCKS.includes(clock.state)) return null;
  const state = clock.state as ClockState;
  const help = t(`clock.${state}.help`);
  const said = t(`clock.${state}`) + (clock.uncertainty_ns > 0 ? `, ±${duration(clock.uncertainty_ns)}` : '');
  return (
    <button
      id="clock"
      class={`pill clock ${state}`}
      title={`${said}. ${help}`}
      onClick={() => openNote(said, h('p', {}, help), more && h('p', {}, h('a', {href: more}, t('clock.more'))))}>
      <i class="dot" aria-hidden="true" />
      <span>{said}</span>
    </button>
  );
}

// A report has a second run where it was written with one.
export const hasCompare = (run: Run): boolean => !run.file || run.other !== undefined;
// A report has a plan where it is one.
const hasPlan = (run: Run): boolean => run.file?.plan ?? true;
export const hasFlame = (run: Run): boolean => run.calls ?? false;
export const hasPipeline = (run: Run): boolean => run.lanes.some(lane => lane.type === 'cells');

export type MakePage = (shell: Shell) => Page;

/** The first theme, and whether it changes with the system's. A theme that the host or the reader chose does not. */
export interface Look {
  theme: Theme;
  followsSystem: boolean;
}

export function startShell(api: Api, run: Run, root: HTMLElement, look: Look, makers: Record<PageId, MakePage>,
  picture: LoadPicture): Shell
{
  addSentences(run.sentences);
  const pages = new Map<PageId, Page>(), stale = new Set<PageId>();
  const top = h('div', {class: 'top-place'}), place = h('div', {class: 'page-place'});
  const live = h('p', {class: 'live', 'aria-live': 'polite', id: 'live'}),
    astray = h('div', {class: 'astray', role: 'status', hidden: true});
  const away = h('div', {class: 'away', role: 'alert', hidden: true});
  api.onAway = gone => {
    if (gone === !away.hidden) return;
    away.hidden = !gone;
    away.replaceChildren(
      gone ? h('span', {}, t('server.away'), ' ', h('code', {}, commandLine('view', run.paths))) : '',
    );
    shell.say(t(gone ? 'server.away' : 'server.back'));
  };
  const missed = new Set<string>(); // what of the address leads nowhere
  const dark = matchMedia('(prefers-color-scheme: dark)');
  // Before a run is whole there is a timeline of it, and no findings.
  // Two runs open on what differs between them,
  // and a plan on its numbers.
  const first: PageId | null = run.other !== undefined ? 'compare' : run.file?.plan ? 'plan' : null;
  const order: readonly PageId[] = first ? [first, ...PAGES.filter(id => id !== first)] : PAGES;
  const shown = order.filter(id =>
    run.whole
      ? (id !== 'pipeline' || hasPipeline(run)) && (id !== 'compare' || hasCompare(run)) &&
        (id !== 'flame' || hasFlame(run)) && (id !== 'plan' || hasPlan(run)) : id === 'timeline'
  );
  let current: PageId | null = null, {theme, followsSystem} = look, saving = 0, leap = false, armed = 0,
    written = location.hash;

  function pageOf(id: PageId): Page {
    let page = pages.get(id);
    if (page) return page;
    page = makers[id](shell);
    page.element.classList.add('page', `page-${id}`);
    page.element.hidden = true;
    place.append(page.element);
    pages.set(id, page);
    stale.add(id);
    return page;
  }
  function open(id: PageId, route: Pick<Route, 'rest' | 'query'> | null): Page {
    const page = pageOf(id);
    if (current !== null && current !== id) {
      clearTimeout(saving);
      pages.get(current)!.hide?.();
      pages.get(current)!.element.hidden = true;
    }
    current = id;
    page.element.hidden = false;
    if (stale.delete(id)) page.restyle();
    page.show(route);
    document.title = `${run.title} · ${t(`page.${id}`)} · Stageline`;
    draw();
    return page;
  }
  const addressNow = (): string => hashOf({page: current!, ...pages.get(current!)!.address()});
  function write(address: string, entry: boolean): void {
    // Whole addresses: in a frame of a notebook (about:srcdoc) short ones would be taken for the notebook's.
    const url = location.href.replace(/#.*/s, '') + address;
    if (entry && location.hash !== address) history.pushState(null, '', url);
    else history.replaceState(null, '', url);
    written = location.hash;
  }
  function save(): void {
    clearTimeout(saving);
    // Back was pressed, and what it leads to is not followed yet: that entry is not ours to write over.
    if (current !== null && location.hash === written) write(addressNow(), leap);
    leap = false;
  }
  // A link leaves the page at once; Back comes to what it showed then.
  document.addEventListener('click', event => {
    const link = event.target instanceof Element && event.target.closest('a[href^="#"]');
    if (!link) return;
    save();
    if (location.protocol !== 'about:') return;
    event.preventDefault();
    location.hash = link.getAttribute('href')!;
  }, true);
  // The first page keeps an address without anything, until it is left.
  function follow(): void {
    written = location.hash;
    const route = routeOf(location.hash);
    if (location.hash.length <= 1) route.page = shown[0]!;
    const id = shown.includes(route.page) ? route.page : shown[0]!;
    if (current === id && location.hash === addressNow()) return;
    found();
    if (route.unknown !== undefined) shell.lost(`#/${route.unknown}`);
    else if (id !== route.page && run.whole) shell.lost(t(`page.${route.page}`));
    const known = pages.get(id), {rest, query} = id === route.page ? route : {rest: '', query: ''};
    // A page that already matches the address is not rebuilt: it keeps state that no address holds.
    const kept = known !== undefined && location.hash === hashOf({page: id, ...known.address()});
    open(id, kept ? null : {rest, query});
  }

  function found(): void {
    missed.clear();
    sayMissed();
  }
  function sayMissed(): void {
    astray.hidden = missed.size === 0;
    astray.replaceChildren(
      h('span', {},
        t('lost', [...missed].map(one => `“${one.length > 60 ? one.slice(0, 60) + '…' : one}”`).join(', '))),
      h('button', {class: 'plain link', click: found}, t('close')),
    );
  }

  const shell: Shell = {
    api,
    run,
    get theme() {
      return theme;
    },
    get page() {
      return current!;
    },
    href(page, to) {
      const known = to ? {rest: to.rest ?? '', query: to.query ?? ''}
        : pages.get(page)?.address() ?? {rest: '', query: ''};
      return hashOf({page, ...known});
    },
    go(id, to) {
      if (!shown.includes(id)) return;
      if (current !== null) write(addressNow(), false);
      found();
      open(id, to ? {rest: to.rest ?? '', query: to.query ?? ''} : null);
      if (location.hash !== addressNow()) write(addressNow(), true);
    },
    moved(jumped = false) {
      clearTimeout(saving);
      leap ||= jumped;
      saving = window.setTimeout(save, 200);
    },
    lost(what) {
      missed.add(what);
      sayMissed();
    },
    say(sentence) {
      if (live.textContent !== sentence) live.textContent = sentence;
    },
    toggleTheme() {
      theme = theme === 'dark' ? 'light' : 'dark';
      followsSystem = false;
      remember('theme', theme);
      restyle();
    },
    toggleLang() {
      setLang(currentLang() === 'zh' ? 'en' : 'zh');
      remember('lang', currentLang());
      restyle();
    },
    help: () =>
      openHelp([
        ...shown.map(id => ({keys: `G ${LETTERS[id]}`, does: t('page.to', t(`page.${id}`))})),
        ...pages.get(current!)!.keys?.() ?? [],
      ]),
  };

  function restyle(): void {
    applyTheme(run.palette, theme);
    document.documentElement.lang = currentLang() === 'zh' ? 'zh-CN' : 'en';
    sayMissed();
    for (const id of pages.keys()) if (id !== current) stale.add(id);
    if (current !== null) {
      document.title = `${run.title} · ${t(`page.${current}`)} · Stageline`;
      pages.get(current)!.restyle();
    }
    draw();
  }
  const facts = (): string =>
    [
      run.ranks.length === 1 ? t('ranks.one') : t('ranks', run.ranks.length),
      run.steps.length > 0 && (run.steps.length === 1 ? t('steps.one') : t('steps', run.steps.length)),
      run.slices === 1 ? t('head.slices.one') : t('head.slices', short(run.slices)),
    ].filter(Boolean).join(' · ');
  function share(): void {
    const runs = run.other === undefined ? run.title : `A ${run.title} ⇄ B ${run.other}`;
    openShare({page: pages.get(current!)!.element, title: `${runs} · ${t(`page.${current!}`)}`,
      note: `${facts()} · ${run.format} · Stageline ${run.version}`, picture, print: () => {
        print().catch((error: unknown) => shell.say(t('failed', String(error))));
      }});
  }
  // Paper is light. Tiles that the page lacks at that size are fetched before the browser takes it.
  async function print(): Promise<void> {
    const before = theme;
    theme = 'light';
    setPaper(true);
    if (before !== theme) restyle();
    for (let still = 0, tries = 0; still < 3 && tries < MAX_PAPER_FRAMES; ++tries) {
      await new Promise(done => setTimeout(done, 30));
      still = pages.get(current!)!.settled?.() === false ? 0 : still + 1;
    }
    window.print();
    setPaper(false);
    theme = before;
    if (before !== 'light') restyle();
  }
  function draw(): void {
    render(
      <header class="top">
        {startOf() ? <a class="logo" href={startOf()!} title={t('start.back')}>Stageline</a>
          : <span class="logo">Stageline</span>}
        <span class="run" title={run.paths.join('\n')}>
          {run.other === undefined ? run.title : (
            <>
              <b>A</b> {run.title} ⇄ <b>B</b> {run.other}
            </>
          )} · {facts()}
        </span>
        <nav class={armed ? 'pages armed' : 'pages'} aria-label={t('pages')}>
          {shown.map(id => (
            <a
              href={shell.href(id)}
              id={`page-${id}`}
              aria-current={id === current ? 'page' : undefined}
              title={t('page.key', LETTERS[id])}
              onClick={event => {
                if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
                event.preventDefault();
                shell.go(id);
              }}>
              {t(`page.${id}`)}
              {armed > 0 && <kbd>{LETTERS[id]}</kbd>}
            </a>
          ))}
        </nav>
        <span class="space" />
        <Clock
          clock={run.clock}
          more={shown.includes('answers') && /aligned$/.test(run.clock.state) && run.clock.state !== 'unaligned'
            ? shell.href('answers', {rest: 'clocks'}) : ''} />
        {run.flaws.length > 0 && (
          <button
            id="flaws"
            class="pill flaws"
            title={run.flaws.map(flaw => sentence(flaw.message)).join('\n')}
            onClick={() =>
              openNote(t('head.flaws', run.flaws.length), h('ul', {}, ...run.flaws.map(flaw =>
                h('li', {}, flawWords(flaw.name, flaw.message), flaw.count > 1 && ` (${grouped(flaw.count)}×)`)
              )))}>
            {t('head.flaws', run.flaws.length)}
          </button>
        )}
        {run.whole && (
          <button class="pill" id="share-open" onClick={share} title={t('share.title')}>{t('share')}</button>
        )}
        <button class="pill" id="theme" onClick={shell.toggleTheme} title={t('theme.switch')}>
          {t(theme === 'dark'
            ? 'theme.light' : 'theme.dark')}
        </button>
        <button
          class="pill"
          id="lang"
          lang={currentLang() === 'zh' ? 'en'
            : 'zh-CN'}
          onClick={shell.toggleLang}
          title={t('lang.switch')}>
          {t('lang.other')}
        </button>
        <button class="pill" id="keys" onClick={shell.help} title={t('cmd.help')}>?</button>
      </header>,
      top,
    );
  }

  function disarm(): void {
    clearTimeout(armed);
    armed = 0;
    draw();
  }
  // Before the page's own keys: the letter after G is not theirs.
  document.addEventListener('keydown', event => {
    const target = event.target as HTMLElement;
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]'))
      return;
    if (takesText(target)) return;
    if (armed) {
      disarm();
      const id = shown.find(page => `Key${LETTERS[page]}` === event.code);
      if (!id && event.code !== 'Escape') return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (!id) return;
      shell.go(id);
      const page = pages.get(id)!, heading = page.element.querySelector<HTMLElement>('h1[tabindex], h2[tabindex]');
      if (page.focus) page.focus();
      else (heading ?? page.element).focus({preventScroll: true});
    } else if (event.code === 'KeyG' && !event.shiftKey) {
      event.preventDefault();
      event.stopImmediatePropagation();
      armed = window.setTimeout(disarm, ARMED_MS);
      draw();
    } else if (event.key === '?') {
      event.preventDefault();
      shell.help();
    }
  }, {capture: true});
  window.addEventListener('hashchange', follow);
  watchPaper();
  dark.addEventListener('change', event => {
    if (!followsSystem || remember('theme')) return;
    theme = event.matches ? 'dark' : 'light';
    restyle();
  });

  root.replaceChildren(top, away, astray, place, live);
  restyle();
  follow();
  Object.assign((window as {stageline?: object}).stageline ??= {}, {run, page: () => current, go: shell.go});
  return shell;
}
