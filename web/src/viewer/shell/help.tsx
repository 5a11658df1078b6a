// The list of all keys and gestures of a page, a dialog.
import {t, type Key} from '../../i18n/i18n';
import {render} from 'preact';
import {h} from '../../dom';
import type {KeyWords} from './page';

const KEYS: [string, Key][] = [
  ['W S', 'keys.zoom'],
  ['A D', 'keys.move'],
  ['← →', 'keys.arrows'],
  ['↑ ↓', 'keys.lane'],
  ['PgUp PgDn', 'keys.page'],
  [', .', 'keys.neighbour'],
  ['[ ]', 'keys.flow'],
  ['F', 'keys.focus'],
  ['0', 'keys.all'],
  ['⌫', 'keys.undo'],
  ['1 … 9', 'keys.step'],
  ['M', 'keys.range'],
  ['⇧M', 'keys.mark'],
  ['/', 'keys.search'],
  ['N ⇧N', 'keys.next'],
  ['Ctrl+P', 'keys.lanes'],
  ['Ctrl+⇧P F1', 'keys.commands'],
  ['C', 'keys.compare'],
  ['L R', 'keys.align'],
  ['E ⇧E', 'keys.evidence'],
  ['X', 'keys.flows'],
  ['Q', 'keys.panel'],
  ['+ −', 'keys.height'],
  ['Alt+↑ Alt+↓', 'keys.reorder'],
  ['Esc', 'keys.clear'],
  ['?', 'keys.help'],
];
const GESTURES: [Key, Key][] = [
  ['gesture.drag', 'gesture.drag.does'],
  ['gesture.shiftDrag', 'gesture.shiftDrag.does'],
  ['gesture.altDrag', 'gesture.altDrag.does'],
  ['gesture.wheel', 'gesture.wheel.does'],
  ['gesture.shiftWheel', 'gesture.shiftWheel.does'],
  ['gesture.double', 'gesture.double.does'],
  ['gesture.shiftClick', 'gesture.shiftClick.does'],
  ['gesture.label', 'gesture.label.does'],
];

export const timelineKeys = (): KeyWords[] => [
  ...KEYS.map(([keys, does]): KeyWords => ({keys, does: t(does)})),
  ...GESTURES.map(([how, does]): KeyWords => ({gesture: t(how), does: t(does)})),
];

export function openHelp(words: readonly KeyWords[]): void {
  const dialog = h('dialog', {id: 'help', class: 'help', 'aria-label': t('keys')});
  document.body.append(dialog);
  const close = (): void => dialog.close();
  render(
    <>
      <div class="help-head">
        <h2>{t('keys')}</h2>
        <button class="pill" onClick={close}>
          {t('close')} <kbd>Esc</kbd>
        </button>
      </div>
      <dl>
        {words.map(({keys, gesture, does}) => (
          <div>
            <dt>
              {gesture ?? keys!.split(' ').map(key => (key === '…' ? ' … ' : (
                <>
                  <kbd>{key}</kbd>
                  {' '}
                </>
              )))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </>,
    dialog,
  );
  dialog.addEventListener('click', event => {
    if (event.target === dialog) close();
  });
  dialog.addEventListener('close', () => dialog.remove());
  dialog.showModal();
}
