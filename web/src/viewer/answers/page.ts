import {h} from '../../dom';
import type {Page, Shell} from '../page';
import {w} from '../words';

export function makeAnswers(_shell: Shell): Page {
  const title = h('h1', {tabindex: -1}), element = h('main', {}, title);
  return {
    element,
    show() {},
    address: () => ({rest: '', query: ''}),
    restyle() { title.textContent = w('page.answers'); },
  };
}
