// The one tooltip of the page: over cells, and for the help of table columns.
import type {App} from '../app';
import type {Tip} from '../chart/pointer';
import {h, styled} from '../dom';
import {duration} from '../format';
import {cellCode, kindName, lateWords, placeOf, stepZero} from '../words';

export interface PageTip extends Tip { element: HTMLElement; showText(text: string, over: Element): void; showLines(title: string, lines: string[], x: number, y: number): void }

export function makeTip(app: App): PageTip {
  const element = h('div', {class: 'tip', role: 'tooltip', id: 'tip', hidden: true});
  function place(x: number, y: number): void {
    element.hidden = false;
    const box = element.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
    const top = y + 16 + box.height > innerHeight ? y - 12 - box.height : y + 16;
    styled(element, {left: `${Math.max(4, left)}px`, top: `${Math.max(4, top)}px`});
  }
  return {
    element,
    show(cell, x, y) {
      const {cells, report} = app, start = cells.start[cell]! - stepZero(app, cell);
      const late = app.state.theory ? lateWords(app, cell) : '';
      const name = report.cells.names[cells.name[cell]!];
      element.replaceChildren(
        h('b', {}, `${cellCode(app, cell)} · ${duration(cells.dur[cell]!)}`),
        h('div', {}, `${kindName(cells.kind[cell]!)} · ${placeOf(report.parts[cells.part[cell]!]!)}`),
        h('div', {class: 'quiet'}, `${duration(start)} – ${duration(start + cells.dur[cell]!)}`),
        ...(late ? [h('div', {class: 'quiet'}, late)] : []),
        ...(name ? [h('div', {class: 'quiet name'}, name)] : []));
      place(x, y);
    },
    showText(text, over) {
      if (!text) return;
      element.replaceChildren(h('div', {}, text));
      const box = over.getBoundingClientRect();
      place(box.left - 10, box.bottom - 8);
    },
    showLines(title, lines, x, y) {
      element.replaceChildren(h('b', {}, title), ...lines.map(line => h('div', {class: 'quiet'}, line)));
      place(x, y);
    },
    hide() { element.hidden = true; },
  };
}
