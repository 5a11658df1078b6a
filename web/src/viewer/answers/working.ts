// The text in the place of an answer: that it is being made, or why it cannot be.
import {h} from '../../dom';
import {sentence, t} from '../../i18n/i18n';
import {ApiError} from '../shell/api';
import type {Working} from './ask';

// The text appears after a second: a fast answer needs none.
export function working(words: string, now: Working | null): HTMLElement {
  const time = now && now.seconds >= 1
    ? t(now.state === 'waiting' ? 'working.waiting' : 'working.running', now.seconds.toFixed(0)) : '';
  return h('p', {class: 'working', role: 'status'}, h('i', {'aria-hidden': 'true'}), words, time && ` ${time}`);
}

export function failure(error: unknown, again: () => void): HTMLElement {
  const known = error instanceof ApiError;
  return h('div', {class: 'notice', role: 'alert'},
    h('p', {}, known ? sentence(error.message) : t('failed', String(error))),
    known && !!error.hint && h('p', {class: 'quiet'}, sentence(error.hint)),
    (!known || error.status >= 500) && h('button', {class: 'plain link', click: again}, t('working.again')));
}
