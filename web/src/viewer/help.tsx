// The list of all keys and gestures, a dialog.
import {render} from 'preact';
import {h} from '../dom';
import {w, type Word} from './words';

const KEYS: [string, Word][] = [
  ['W S', 'keys.zoom'], ['A D', 'keys.move'], ['← →', 'keys.arrows'], ['↑ ↓', 'keys.lane'], [', .', 'keys.neighbour'], ['[ ]', 'keys.flow'],
  ['F', 'keys.focus'], ['0', 'keys.all'], ['⌫', 'keys.undo'], ['1 … 9', 'keys.step'], ['M', 'keys.range'], ['⇧M', 'keys.mark'], ['/',
      'keys.search'], ['N ⇧N', 'keys.next'],
  ['Ctrl+P', 'keys.lanes'], ['Ctrl+⇧P F1', 'keys.commands'], ['C', 'keys.compare'], ['L R', 'keys.align'], ['X', 'keys.flows'], ['Q',
      'keys.panel'],
  ['+ −', 'keys.height'], ['Alt+↑ Alt+↓', 'keys.reorder'], ['Esc', 'keys.clear'], ['?', 'keys.help']];
const GESTURES: [Word, Word][] = [
  ['gesture.drag', 'gesture.drag.does'], ['gesture.shiftDrag', 'gesture.shiftDrag.does'], ['gesture.altDrag', 'gesture.altDrag.does'],
  ['gesture.wheel', 'gesture.wheel.does'], ['gesture.shiftWheel', 'gesture.shiftWheel.does'], ['gesture.double', 'gesture.double.does'],
  ['gesture.shiftClick', 'gesture.shiftClick.does'], ['gesture.label', 'gesture.label.does']];

export function openHelp(): void {
  const dialog = h('dialog', {id: 'help', class: 'help', 'aria-label': w('keys')});
  document.body.append(dialog);
  const close = (): void => dialog.close();
  render(
    <>
      <h2>{w('keys')}</h2>
      <dl>{KEYS.map(([keys, does]) => (
        <div><dt>{keys.split(' ').map(key => (key === '…' ? ' … ' : <><kbd>{key}</kbd> </>))}</dt><dd>{w(does)}</dd></div>))}
      {GESTURES.map(([how, does]) => <div><dt>{w(how)}</dt><dd>{w(does)}</dd></div>)}</dl>
      <button class="pill" onClick={close}>{w('close')}</button>
    </>, dialog);
  dialog.addEventListener('click', event => { if (event.target === dialog) close(); });
  dialog.addEventListener('close', () => dialog.remove());
  dialog.showModal();
}
