// The answer first: one sentence, its reason, and the span as a bar that adds up.
import {h, styled} from '../dom';
import {percent} from '../format';
import {both, t} from '../i18n/i18n';
import type {Headline, SpanPart} from '../data/report';

// Parts are named by whoever computed them; the family decides the colour.
const FAMILIES: ReadonlyArray<readonly [RegExp, string]> = [
  [/^idle-kernel/, 'idle-kernel'], [/^idle-other/, 'idle-other'], [/^idle/, 'idle'], [/memory|cop(y|ies)/, 'memory'],
  [/jitter/, 'jitter'], [/replicas/, 'replicas'], [/tail/, 'tail'], [/imbalance|straggl|slow/, 'imbalance'], [/bubble|schedule|warm|cool/, 'bubble'],
  [/comm|message|collective|send|recv|link/, 'comm'], [/optim/, 'optim'], [/compute|busy|work/, 'compute']];
const family = (id: string): string => FAMILIES.find(([pattern]) => pattern.test(id))?.[1] ?? 'rest';

function spanBar(parts: SpanPart[]): HTMLElement {
  const said = parts.filter(part => Math.abs(part.share) >= 0.0005);  // less reads 0.0 %
  const shown = said.filter(part => part.share > 0);  // what takes time off has no width, and is said below
  // Room for the words inside the part, on a page of the usual width; CJK letters are twice as wide.
  const letters = (text: string): number => [...text].reduce((n, c) => n + (c > '\u2e7f' ? 2 : 1), 0);
  const fits = (part: SpanPart): boolean => part.share * 1180 >= 96 + letters(both(part.label)) * 7.6;
  const words = (part: SpanPart): string => `${percent(part.share).replace('-', '−')} ${both(part.label)}`;
  const bar = h('div', {class: 'split', role: 'img', 'aria-label': t('span.aria', said.map(words).join(', '))},
    ...shown.map(part => styled(
      h('div', {class: `part ${family(part.id)}${fits(part) ? '' : ' thin'}`, title: words(part)},
        fits(part) && h('b', {}, percent(part.share)), fits(part) && h('span', {}, both(part.label))),
      {'flex-grow': String(part.share)})));
  const small = said.filter(part => !fits(part));
  return h('div', {class: 'span'}, bar,
    // On a narrow page the bar has room for no words: all are below it.
    said.length > 0 && h('ul', {class: small.length > 0 ? 'small' : 'small none', 'aria-label': t('span.rest', small.map(words).join(' · '))},
      ...said.map(part => h('li', {class: fits(part) ? 'in-bar' : null}, h('i', {class: `swatch part ${family(part.id)}`, 'aria-hidden': 'true'}), words(part)))));
}

// `none`: said where nobody has computed a headline.
export function headlineView(headline: Headline, none: string): HTMLElement {
  return h('section', {class: 'headline'},
    h('h1', {tabindex: -1}, both(headline.title) || none),
    !!both(headline.lead) && h('p', {class: 'lead'}, both(headline.lead)),
    headline.parts.length > 0 && spanBar(headline.parts));
}
