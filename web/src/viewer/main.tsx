// Waits for the run, then starts the viewer's pages.
import {render} from 'preact';
import {firstLang, setLang, currentLang} from '../i18n/i18n';
import {makeAnswers} from './answers/page';
import {Api, type Run, type Status} from './api';
import {makeCompare} from './compare/page';
import {Loading} from './loading';
import {makeOverview} from './overview/page';
import type {Theme} from './page';
import {makePipeline} from './pipeline/page';
import {remember} from './remember';
import {startShell} from './shell';
import {makeTimeline} from './timeline_page';
import {w} from './words';

function firstTheme(): Theme {
  const chosen = new URLSearchParams(location.search).get('theme') ?? remember('theme');
  return chosen === 'dark' || chosen === 'light' ? chosen : matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

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

async function start(): Promise<void> {
  const api = new Api(), root = document.getElementById('app')!, theme = firstTheme();
  setLang(firstLang('', remember('lang')));
  document.documentElement.lang = currentLang() === 'zh' ? 'zh-CN' : 'en';
  document.documentElement.dataset['theme'] = theme;
  try {
    if (!await untilReady(api, status => render(<Loading status={status} />, root))) return;
    const run = await api.json<Run>('run');
    render(null, root);
    startShell(api, run, root, theme, {overview: makeOverview, pipeline: makePipeline, timeline: makeTimeline, answers: makeAnswers,
      compare: makeCompare});
  } catch (error) {
    render(<Loading status={{state: 'failed', bytes_read: 0, bytes_total: 0, events: 0, message: '',
        error: w('failed', String(error))}} />, root);
  }
}

void start();
