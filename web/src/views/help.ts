// The list of all keys, a dialog.
import {h} from '../dom';
import {t} from '../i18n/i18n';

export function makeHelp(): { element: HTMLDialogElement; open(): void } {
  const element = h('dialog', {id: 'help'});
  const close = (): void => element.close();
  function open(): void {
    const rows: [string, string][] = [
      ['W S', t('keys.zoom.long')], ['A D', t('keys.move.long')], ['← → ↑ ↓', t('keys.arrows.long')], ['[ ]', t('keys.step.long')],
      [', .', t('keys.cell.long')], ['0', t('keys.fit.long')], ['T', t('keys.theory.long')], ['Esc', t('keys.esc.long')], ['?', t('keys.help.long')]];
    const gestures: [string, string][] = [
      [t('keys.drag'), t('keys.drag.long')], [t('keys.wheel'), t('keys.wheel.long')],
      [t('keys.shiftWheel'), t('keys.shiftWheel.long')], [t('keys.double'), t('keys.double.long')]];
    element.setAttribute('aria-label', t('keys'));
    element.replaceChildren(h('h2', {}, t('keys')), h('dl', {},
      ...rows.flatMap(([keys, words]) => [h('dt', {}, ...keys.split(' ').flatMap(key => [h('kbd', {}, key), ' '])), h('dd', {}, words)]),
      ...gestures.flatMap(([gesture, words]) => [h('dt', {}, gesture), h('dd', {}, words)])),
      h('button', {click: close}, t('keys.close')));
    element.showModal();
  }
  element.addEventListener('click', event => { if (event.target === element) close(); });
  return {element, open};
}
