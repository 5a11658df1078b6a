// Numbers of the run by name: value, what it is of, definition. Other outputs show the same values under these names.
import {h} from '../dom';
import {duration, grouped, percent} from '../format';
import {both, t} from '../i18n/i18n';

export interface Figures {
  figures: Figure[];
  terms?: (Words & {id: string})[];
}
interface Words {
  en: string;
  zh: string;
}
export interface Figure {
  name: string;
  value: number | null;
  unit: 'ns' | 'share' | 'ratio' | '';
  base: Words;
  definition: Words;
  why_unknown: Words | null;
}

// The definitions of parts of bars, by their ids, once figures have come.
let terms = new Map<string, Words>();
export const learnTerms = (list: readonly (Words & {id: string})[]): void => {
  terms = new Map(list.map(term => [term.id, term]));
};
export const termOf = (id: string): string => said(terms.get(id) ?? null);

const said = (words: Words | null): string => (words ? both([words.en, words.zh]) : '');

// Of a part of a bar its own, else that of the figure.
const definitionOf = ({name, definition}: Figure): string => termOf(name.replace(/^part\./, '')) || said(definition);

export function figureText({value, unit, why_unknown}: Figure): string {
  if (value === null) return said(why_unknown);
  return unit === 'ns' ? duration(value) : unit === 'share' ? percent(value) : unit === 'ratio'
    ? `${value.toFixed(2)}×` : grouped(value);
}

// Puts the definition of a figure into the tips of what shows it: parts of bars, lines of facts, costs of findings.
export function explainFigures(place: HTMLElement, figures: readonly Figure[]): void {
  for (const figure of figures)
    for (const one of place.querySelectorAll<HTMLElement>(`[data-figure="${CSS.escape(figure.name)}"]`)) {
      const own = (one.title || one.textContent || '').split('\n')[0]!;
      one.title = [
        own === figure.name ? figureText(figure) : own,
        definitionOf(figure),
        figure.name,
      ].join('\n');
    }
}

// Closed at first. `data-value` has all digits.
export function glossaryView(figures: readonly Figure[]): HTMLElement {
  return h('details', {class: 'glossary'}, h('summary', {}, t('glossary.title')),
    h('table', {},
      h('thead', {},
        h('tr', {},
          ...(['name', 'value', 'of', 'definition'] as const).map(head => h('th', {}, t(`glossary.${head}`))))),
      h('tbody', {},
        ...figures.map(figure =>
          h('tr', {}, h('th', {scope: 'row'}, h('code', {}, figure.name)),
            h('td', {'data-figure': figure.name, 'data-value': figure.value === null ? '' : String(figure.value)},
              figureText(figure)), h('td', {}, said(figure.base)), h('td', {}, definitionOf(figure)))
        ))));
}
