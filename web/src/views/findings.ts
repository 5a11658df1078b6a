import {h, type Child} from '../dom';
import type {Finding} from '../data/report';
import {both, t} from '../i18n/i18n';

// Two findings may be of one kind; the second gets a number.
function anchor(findings: Finding[], i: number): string {
  const nth = findings.slice(0, i).filter(other => other.id === findings[i].id).length;
  return `finding-${findings[i].id}${nth > 0 ? `-${nth + 1}` : ''}`;
}

// `evidence`: where the numbers are, and what to type.
export function findingsView(findings: Finding[], evidence: (finding: Finding) => Child): HTMLElement {
  const offers = findings.findIndex(finding => finding.id.startsWith('offer.'));  // they come last
  const view = (finding: Finding, i: number): HTMLElement => h('div', {class: 'find', id: anchor(findings, i)},
    h('h3', {}, both(finding.title)),
    !!both(finding.detail) && h('p', {class: 'detail'}, both(finding.detail)),
    evidence(finding),
    !!finding.value && h('p', {class: `price${finding.weight > 0 ? '' : ' none'}`}, finding.value,
      h('small', {}, both(finding.note))));
  return h('section', {class: 'findings'},
    h('h2', {}, t('findings')),
    findings.length === 0 && h('p', {class: 'quiet'}, t('findings.none')),
    ...findings.flatMap((finding, i) => [i === offers && h('p', {class: 'quiet'}, t('findings.offers')), view(finding, i)]));
}
