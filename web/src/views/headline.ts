// The answer first: one sentence, its reason, and the span as a bar that adds up.
import {createElement, render} from 'preact';
import {h} from '../dom';
import {percent} from '../format';
import {both, t} from '../i18n/i18n';
import type {Headline, SpanPart} from '../data/report';
import {SplitBar} from './split_bar';

// Parts are named by whoever computed them; the family decides the colour.
const FAMILIES: ReadonlyArray<readonly [RegExp, string]> = [
  [/^phase-(train|decode)/, 'compute'],
  [/^phase-(rollout|prefill)/, 'replicas'],
  [/^phase-(wait|queue)/, 'bubble'],
  [/^phase-tail/, 'imbalance'],
  [/^phase-sync/, 'comm'],
  [/^phase-score/, 'jitter'],
  [/^phase-load/, 'memory'],
  [/^phase-aside/, 'tail'],
  [/^comm-wait/, 'bubble'], // as a pipeline's waiting
  [/^idle-kernel/, 'idle-kernel'],
  [/^idle-other/, 'idle-other'],
  [/^idle/, 'idle'],
  [/memory|cop(y|ies)/, 'memory'],
  [/jitter/, 'jitter'],
  [/replicas/, 'replicas'],
  [/tail/, 'tail'],
  [/imbalance|straggl|slow/, 'imbalance'],
  [/bubble|^waiting|schedule|warm|cool/, 'bubble'],
  [/comm|message|collective|send|recv|link/, 'comm'],
  [/optim/, 'optim'],
  [/compute|busy|work/, 'compute'],
];
const family = (id: string): string => FAMILIES.find(([pattern]) => pattern.test(id))?.[1] ?? 'rest';

// `named`: other outputs give these shares as figures of these names.
export function spanBar(parts: readonly SpanPart[], named = true): HTMLElement {
  const place = h('div', {}),
    words = parts.filter(part => Math.abs(part.share) >= 0.0005).map(part =>
      `${percent(part.share)} ${both(part.label)}`
    );
  render(
    createElement(SplitBar, {
      parts: parts.map(part => ({id: part.id, kind: family(part.id), share: part.share, label: both(part.label),
        ...(named ? {figure: `part.${part.id}`} : {})})
      ),
      aria: t('span.aria', words.join(', ')),
      rest: t('span.small'),
    }),
    place,
  );
  return place;
}

// `none` is the text where no headline was computed.
export function headlineView(headline: Headline, none: string): HTMLElement {
  return h('section', {class: 'headline'}, h('h1', {tabindex: -1}, both(headline.title) || none),
    !!both(headline.lead) && h('p', {class: 'lead'}, both(headline.lead)),
    headline.parts.length > 0 && spanBar(headline.parts));
}
