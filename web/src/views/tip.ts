// This is the one tooltip of the page: over cells, and for the help of table columns.
import type {App} from '../app';
import type {Tip} from '../chart/pointer';
import {h} from '../dom';
import {duration} from '../format';
import {lateWords} from '../late_words';
import {cellCode, kindName, placeOf, stepZero} from '../words';
import {makeTextTip, type TextTip} from './text_tip';

export interface PageTip extends Tip, TextTip {
  again(cell: number): void; // shows the cell anew, if the tip is still on it
}

// `more`: lines of the page's own about a cell.
export function makeTip(app: App, more: (cell: number) => string[] = () => []): PageTip {
  const words = makeTextTip();
  let now: [cell: number, x: number, y: number] | null = null;
  const tip: PageTip = {
    ...words,
    again(cell) {
      if (now?.[0] === cell && !words.element.hidden) tip.show(...now);
    },
    show(cell, x, y) {
      now = [cell, x, y];
      const {cells, report} = app, start = cells.start[cell]! - stepZero(app, cell);
      const late = app.state.theory ? lateWords(app, cell) : '';
      const name = report.cells.names[cells.name[cell]!];
      words.place(x, y, h('b', {}, `${cellCode(app, cell)} · ${duration(cells.dur[cell]!)}`),
        h('div', {}, `${kindName(cells.kind[cell]!)} · ${placeOf(report.parts[cells.part[cell]!]!)}`),
        h('div', {class: 'quiet'}, `${duration(start)} – ${duration(start + cells.dur[cell]!)}`),
        late && h('div', {class: 'quiet'}, late),
        ...more(cell).map(line => line !== '' && h('div', {class: 'quiet'}, line)),
        name && h('div', {class: 'quiet name'}, name));
    },
  };
  return tip;
}
