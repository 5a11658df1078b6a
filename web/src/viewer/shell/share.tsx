// Passes on what is seen: its link, a picture, paper.
import {t} from '../../i18n/i18n';
import {render} from 'preact';
import {useState} from 'preact/hooks';
import {h} from '../../dom';
import type {pictureOf, rastered} from './picture';

export type LoadPicture = () => Promise<{pictureOf: typeof pictureOf; rastered: typeof rastered}>;
export interface Shared {
  page: HTMLElement;
  title: string; // of the file and above the picture
  note: string; // below it
  print(): void;
  picture: LoadPicture;
}

export function download(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
export const fileName = (title: string): string =>
  title.replace(/[^\p{L}\p{N}._-]+/gu, '_').slice(0, 100) || 'stageline';

async function save(shared: Shared, kind: 'png' | 'svg'): Promise<void> {
  const {pictureOf, rastered} = await shared.picture();
  const picture = pictureOf(shared.page, shared.title, shared.note);
  download(kind === 'svg' ? new Blob([picture.svg], {type: 'image/svg+xml'}) : await rastered(picture, 2),
    `${fileName(shared.title)}.${kind}`);
}

// Where the browser gives no clipboard (a server that is not of this machine, without TLS) the link is marked instead.
async function copy(field: HTMLInputElement): Promise<boolean> {
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    return document.execCommand('copy');
  }
}

function Share({shared, close}: {shared: Shared; close(): void}) {
  const [said, say] = useState('');
  const does = (act: () => Promise<void>): () => void => () => {
    act().then(close, (error: unknown) => say(t('failed', String(error))));
  };
  return (
    <>
      <div class="help-head">
        <h2>{t('share.title')}</h2>
        <button class="pill" onClick={close}>
          {t('close')} <kbd>Esc</kbd>
        </button>
      </div>
      <div class="share-link">
        <input
          id="share-link"
          type="text"
          readonly
          value={location.href}
          aria-label={t('share.link')}
          onFocus={event => event.currentTarget.select()} />
        <button
          id="share-copy"
          onClick={event => {
            const field = event.currentTarget.previousElementSibling as HTMLInputElement;
            void copy(field).then(done => say(t(done ? 'share.copied' : 'share.marked')));
          }}>
          {t('share.copy')}
        </button>
      </div>
      <p class="quiet">{t(location.protocol === 'file:' ? 'share.file' : 'share.server')}</p>
      <div class="share-files">
        <button id="share-png" onClick={does(() => save(shared, 'png'))}>{t('share.png')}</button>
        <button id="share-svg" onClick={does(() => save(shared, 'svg'))}>{t('share.svg')}</button>
        <button
          id="share-print"
          onClick={() => {
            close();
            shared.print();
          }}>
          {t('share.print')}
        </button>
      </div>
      <p role="status">{said}</p>
    </>
  );
}

export function openShare(shared: Shared): void {
  const dialog = h('dialog', {id: 'share', class: 'share', 'aria-label': t('share.title')});
  document.body.append(dialog);
  const close = (): void => dialog.close();
  render(<Share shared={shared} close={close} />, dialog);
  dialog.addEventListener('click', event => {
    if (event.target === dialog) close();
  });
  dialog.addEventListener('close', () => {
    render(null, dialog);
    dialog.remove();
  });
  dialog.showModal();
}
