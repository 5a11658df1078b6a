// One mark of a chart at a time, by pointer or by arrow keys, told in a line below it.
import {h} from '../dom';
import {t} from '../i18n/i18n';

export interface Cursor {
  count: number;
  words(i: number): string; // what the line says
  at(share: number): number; // the mark at a share of the plot's width
  place(i: number): number; // the other way round: middle of the mark
  mark?(i: number): void; // light it up; −1 none
}

// `plots`: the boxes that share the cursor; each gets a line. Returns the line of words.
export function withCursor(figure: HTMLElement, plots: HTMLElement[], cursor: Cursor): HTMLElement {
  const line = h('p', {class: 'readout', 'aria-live': 'polite'}, t('plot.hint'));
  const bars = plots.map(plot => {
    const bar = h('i', {class: 'cursor', hidden: true});
    plot.append(bar);
    return bar;
  });
  let current = -1;
  function show(i: number): void {
    if (i === current) return;
    current = i;
    for (const bar of bars) {
      bar.hidden = i < 0;
      if (i >= 0) bar.style.setProperty('left', `${cursor.place(i) * 100}%`);
    }
    line.textContent = i < 0 ? t('plot.hint') : cursor.words(i);
    cursor.mark?.(i);
  }
  const clamp = (i: number): number => Math.min(Math.max(i, 0), cursor.count - 1);
  for (const plot of plots) {
    plot.addEventListener('pointermove', event => {
      const box = plot.getBoundingClientRect();
      show(clamp(cursor.at((event.clientX - box.left) / box.width)));
    });
    plot.addEventListener('pointerleave', () => {
      if (document.activeElement !== figure) show(-1);
    });
  }
  figure.tabIndex = 0;
  figure.addEventListener('keydown', event => {
    const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity}[event.key];
    if (by === undefined) {
      if (event.key === 'Escape') show(-1);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    show(
      current < 0 ? (by > 0 ? 0 : cursor.count - 1)
        : clamp(by === -Infinity ? 0 : by === Infinity ? cursor.count - 1 : current + by),
    );
  });
  figure.addEventListener('blur', () => show(-1));
  return line;
}
