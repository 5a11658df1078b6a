// "Open in Perfetto": a window of theirs, asked until it answers, then given the bytes. Where it cannot be reached (no
// network, pop-ups forbidden) the file is saved and the page says how to open it.
import {t} from '../../i18n/i18n';
import {h} from '../../dom';
import type {Api} from '../shell/api';
import type {Store} from './store';

const THEIRS = 'https://ui.perfetto.dev', WAIT_MS = 8000;

function save(buffer: ArrayBuffer, name: string): void {
  const url = URL.createObjectURL(new Blob([buffer]));
  h('a', {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export async function openInPerfetto(api: Api, store: Store): Promise<void> {
  const theirs = window.open(THEIRS); // within the click, or it counts as a pop-up
  store.say(t('perfetto.making'));
  const name = `${store.run.title.replace(/[^\w.-]+/g, '_') || 'trace'}.pftrace`;
  const buffer = await api.bytes('perfetto').catch(error => {
    theirs?.close();
    throw error;
  });
  const answered = theirs !== null && await new Promise<boolean>(done => {
    const asking = setInterval(() => theirs.postMessage('PING', THEIRS), 100);
    const settle = (yes: boolean): void => {
      clearInterval(asking);
      clearTimeout(limit);
      removeEventListener('message', hear);
      done(yes);
    };
    const hear = (event: MessageEvent): void => {
      if (event.origin === THEIRS && event.data === 'PONG') settle(true);
    };
    const limit = setTimeout(() => settle(false), WAIT_MS);
    addEventListener('message', hear);
  });
  if (!answered) {
    theirs?.close();
    save(buffer, name);
    return store.say(t('perfetto.saved', name));
  }
  theirs!.postMessage({perfetto: {buffer, title: store.run.title, fileName: name, localOnly: true, keepApiOpen: true}},
    THEIRS);
  store.say(t('perfetto.open'));
}
