import {h, type Child} from '../dom';
import type {Finding} from '../data/report';
import {both, t} from '../i18n/i18n';

// Under which name other outputs have the cost.
function lostOf({figures = [], lost_ns}: Finding): Record<string, string> {
  const name = figures.find(figure => figure.endsWith('.lost'));
  return name ? {'data-figure': name, 'data-value': String(lost_ns)} : {};
}

// Returns the name of a finding in an address. Two may be of one kind; the second gets a number.
export function keyOf(findings: readonly {id: string}[], i: number): string {
  const {id} = findings[i]!, nth = findings.slice(0, i).filter(other => other.id === id).length;
  return nth > 0 ? `${id}-${nth + 1}` : id;
}

// `evidence`: where the numbers are, and what to type; `scene`: the address that shows it, '': none.
export function findingsView(findings: Finding[], evidence: (finding: Finding, key: string) => Child,
  scene: (finding: Finding, key: string) => string = () => ''): HTMLElement
{
  const offers = findings.findIndex(finding => finding.id.startsWith('offer.')); // they come last
  const linked = (words: string, href: string): Child => (href ? h('a', {href, class: 'scene'}, words) : words);
  const view = (finding: Finding, i: number): HTMLElement =>
    h('div', {class: 'find', id: `finding-${keyOf(findings, i)}`},
      h('h3', {}, linked(both(finding.title), scene(finding, keyOf(findings, i)))),
      !!both(finding.detail) && h('p', {class: 'detail'}, both(finding.detail)), evidence(finding, keyOf(findings, i)),
      !!finding.value &&
        h('p', {...lostOf(finding),
          class: `price${finding.weight > 0 ? /^−/.test(finding.value) ? ' saved' : '' : ' none'}`}, finding.value,
          h('small', {}, both(finding.note))));
  return h('section', {class: 'findings'}, h('h2', {}, t('findings')),
    findings.length === 0 && h('p', {class: 'quiet'}, t('findings.none')),
    ...findings.flatMap((finding,
      i) => [i === offers && h('p', {class: 'quiet'}, t('findings.offers')), view(finding, i)]
    ));
}
