// Waits for the run, then starts the viewer's pages.
import {render} from 'preact';
import {h, styled} from '../dom';
import {currentLang, firstLang, setLang, t} from '../i18n/i18n';
import {Api, type Run, type Status} from './shell/api';
import {Loading} from './shell/loading';
import type {Theme} from './shell/page';
import {quiet, watchInput} from './shell/quiet';
import {seen} from './shell/recent';
import {remember} from './shell/remember';
import type {PageId} from './shell/route';
import type {LoadPicture} from './shell/share';
import {startShell, type MakePage} from './shell/shell';
import type {Source} from './shell/source';

// The theme that the address or the reader chose, else the one that the page's host gave. Null leaves it to the system.
function chosenTheme(): Theme | null {
  const chosen = new URLSearchParams(location.search).get('theme') ?? remember('theme');
  if (chosen === 'dark' || chosen === 'light') return chosen;
  const given = document.documentElement.dataset['theme'];
  return given === 'dark' || given === 'light' ? given : null;
}

// Status by server-sent events; by asking again and again where those do not come through. Ends when `take` says so.
async function follow(api: Api, take: (status: Status) => boolean): Promise<void> {
  if (take(await api.json<Status>('status'))) return;
  await new Promise<void>(done => {
    const events = api.events();
    let over = false, asking = 0;
    const see = (status: Status): void => {
      if (over || !take(status)) return;
      over = true;
      events?.close();
      clearInterval(asking);
      done();
    };
    if (!events) return;
    events.onmessage = event => see(JSON.parse(event.data as string) as Status);
    events.onerror = () => {
      events.close();
      if (!over && !asking)
        asking = window.setInterval(() => {
          api.json<Status>('status').then(see).catch(() => undefined);
        }, 300);
    };
  });
}

const settled = (status: Status): boolean => status.state === 'ready' || status.state === 'failed';

// Shows a run that is still being read: a line shows the progress, and the page is rebuilt when there is more, though
// not in the middle of a gesture. The address keeps the visible window; without user input the whole run opens as
// usual.
async function whileReading(api: Api, run: Run, root: HTMLElement, address: string): Promise<void> {
  const line = h('p', {class: 'reading', role: 'progressbar', 'aria-label': t('load.reading'), 'aria-valuemin': 0,
    'aria-valuemax': 100});
  root.prepend(line);
  let touched = false, percent = -1;
  for (const kind of ['pointerdown', 'keydown', 'wheel'])
    window.addEventListener(kind, () => {
      touched = true;
    }, {capture: true, passive: true});
  await follow(api, status => {
    const now = status.bytes_total > 0 ? Math.floor(Math.min(status.bytes_read / status.bytes_total, 1) * 100) : 0;
    if (now !== percent) {
      line.textContent = t('load.early', percent = now);
      line.setAttribute('aria-valuenow', String(now));
      styled(line, {'--done': `${now}%`});
    }
    return settled(status) || (status.revision ?? 0) > run.revision;
  });
  await quiet();
  if (!touched) history.replaceState(null, '', address || location.pathname + location.search);
  location.reload();
}

// The page's head asks for the run before this script is here, where there is one to ask for.
async function runAtHand(): Promise<Run | null> {
  const link = document.querySelector<HTMLLinkElement>('link[rel=preload][as=fetch]');
  const answer = link && await fetch(link.href).catch(() => null);
  return answer?.ok ? await answer.json() as Run : null;
}

// Where the run is, and what comes with the first script or later: a server's page (served.ts) or a report (report.ts).
export interface Carrier {
  source: Source;
  pages: Record<PageId, MakePage>;
  picture: LoadPicture;
  chooseRun?(status: Status, theme: Theme, root: HTMLElement): Promise<void>;
}

export async function start({source, pages, picture, chooseRun}: Carrier): Promise<void> {
  const api = new Api(source), root = document.getElementById('app')!, chosen = chosenTheme();
  const theme = chosen ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  setLang(firstLang(document.documentElement.lang.startsWith('zh') ? 'zh' : '', remember('lang')));
  document.documentElement.lang = currentLang() === 'zh' ? 'zh-CN' : 'en';
  document.documentElement.dataset['theme'] = theme;
  try {
    let failed = false, chooses: Status | null = null, run = REPORT ? null : await runAtHand();
    const address = location.hash;
    if (!run && !REPORT) {
      await follow(api, status => {
        if (status.state === 'choose') return !!(chooses = status);
        render(<Loading status={status} />, root);
        failed = status.state === 'failed';
        return settled(status) || (status.revision ?? 0) > 0;
      });
      if (failed) return;
      if (chooses) return await chooseRun!(chooses, theme, root);
      render(null, root);
    }
    run ??= await api.json<Run>('run');
    if (!REPORT && run.places) seen({title: run.title, places: run.places});
    if (!REPORT && !run.whole) {
      api.revision = run.revision;
      watchInput();
    }
    startShell(api, run, root, {theme, followsSystem: !chosen}, pages, picture);
    if (!REPORT && !run.whole) await whileReading(api, run, root, address);
  } catch (error) {
    render(
      <Loading
        status={{state: 'failed', bytes_read: 0, bytes_total: 0, events: 0, message: '',
          error: t('failed', String(error))}} />,
      root,
    );
  }
}
