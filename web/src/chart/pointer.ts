// Mouse, touch and wheel on the chart. A plain wheel scrolls the page and is never taken.
import {select, setView, type App} from '../app';
import {fit, pan, zoom} from './viewport';
import type {Chart} from './chart';
import {hitRow} from './hit';
import {AXIS_HEIGHT} from './layout';

export interface Tip {
  show(cell: number, x: number, y: number): void;
  hide(): void;
}

// The cell under a point of the canvas, CSS pixels; −1 none.
export function cellAt(app: App, chart: Chart, x: number, y: number): number {
  const {layout, scroll} = chart.scene();
  const down = y - AXIS_HEIGHT + scroll, index = Math.floor(down / layout.pitch);
  if (y < AXIS_HEIGHT || x < layout.labelWidth || index < 0 || index >= layout.rows.length) return -1;
  const share = (down - index * layout.pitch) / layout.rowHeight;
  if (share > 1 || layout.rows[index]! < 0) return -1;
  const slack = 2 * (chart.timeAt(1) - chart.timeAt(0));
  return hitRow(app.model.rows[layout.rows[index]!]!, app.cells, app.state.step, chart.timeAt(x), share, slack);
}

// Index into the layout's rows of the label under a point; −1 none.
function labelAt(chart: Chart, x: number, y: number): number {
  const {layout, scroll} = chart.scene(), index = Math.floor((y - AXIS_HEIGHT + scroll) / layout.pitch);
  return y < AXIS_HEIGHT || x >= layout.labelWidth || index < 0 || index >= layout.rows.length ? -1 : index;
}

// `onLabel`: a label was clicked. `onIdle`: the pointer is over no cell, at a time of a row, or nowhere. Both get an
// index into the layout's rows.
export interface PointerActions {
  onPoint(time: number | null): void;
  onLabel?(index: number): void;
  onIdle?(index: number, time: number, x: number, y: number): boolean;
}

export function listenToPointer(app: App, chart: Chart, tip: Tip, {onPoint, onLabel, onIdle}: PointerActions): void {
  const {canvas} = chart;
  const pointers = new Map<number, number>(); // id → x
  let down: {x: number; y: number; moved: boolean} | null = null;
  const shareOf = (dx: number): number =>
    (chart.timeAt(dx) - chart.timeAt(0)) / (app.state.view.t1 - app.state.view.t0);

  function idle(event: PointerEvent): boolean {
    const {layout, scroll} = chart.scene(), down = event.offsetY - AXIS_HEIGHT + scroll,
      index = Math.floor(down / layout.pitch);
    if (event.offsetY < AXIS_HEIGHT || event.offsetX < layout.labelWidth || index < 0 || index >= layout.rows.length ||
      down - index * layout.pitch > layout.rowHeight) return false;
    return onIdle!(index, chart.timeAt(event.offsetX), event.clientX, event.clientY);
  }

  canvas.addEventListener('wheel', event => {
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const zooming = event.ctrlKey || event.metaKey;
    if (!zooming && !sideways) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    if (zooming) {
      const by = Math.max(-120, Math.min(120, event.deltaY * unit));
      setView(app, zoom(app.state.view, Math.exp(by * 0.004), chart.timeAt(event.offsetX)));
    } else {
      setView(app, pan(app.state.view, shareOf((event.deltaX || event.deltaY) * unit)));
    }
  }, {passive: false});

  canvas.addEventListener('pointerdown', event => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, event.offsetX);
    down = {x: event.offsetX, y: event.offsetY, moved: false};
    try {
      canvas.setPointerCapture(event.pointerId);
    } catch { /* a pointer that is gone already */ }
  });

  canvas.addEventListener('pointermove', event => {
    onPoint(chart.timeAt(event.offsetX));
    const last = pointers.get(event.pointerId);
    if (last === undefined || !down) {
      const cell = cellAt(app, chart, event.offsetX, event.offsetY);
      if (cell !== app.state.hovered) app.change({hovered: cell});
      canvas.classList.toggle('on-cell', cell >= 0);
      const label = onLabel ? labelAt(chart, event.offsetX, event.offsetY) : -1;
      canvas.classList.toggle('on-label', label >= 0);
      if (cell >= 0) tip.show(cell, event.clientX, event.clientY);
      else if (!onIdle || !idle(event)) tip.hide();
      return;
    }
    if (!down.moved && Math.hypot(event.offsetX - down.x, event.offsetY - down.y) < 4) return;
    down.moved = true;
    tip.hide();
    if (pointers.size === 2) { // two fingers: the distance zooms around their middle
      const other = [...pointers].find(([id]) => id !== event.pointerId)![1];
      const before = Math.abs(last - other), after = Math.abs(event.offsetX - other);
      if (before > 8 && after > 8)
        setView(app, zoom(app.state.view, before / after, chart.timeAt((event.offsetX + other) / 2)));
    } else {
      setView(app, pan(app.state.view, -shareOf(event.offsetX - last)));
    }
    pointers.set(event.pointerId, event.offsetX);
  });

  const up = (event: PointerEvent): void => {
    if (!pointers.delete(event.pointerId) || !down || pointers.size > 0) return;
    const label = onLabel ? labelAt(chart, event.offsetX, event.offsetY) : -1;
    if (!down.moved && event.type === 'pointerup' && label >= 0) onLabel!(label);
    else if (!down.moved && event.type === 'pointerup') select(app, cellAt(app, chart, event.offsetX, event.offsetY));
    down = null;
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => {
    onPoint(null);
    tip.hide();
    if (app.state.hovered >= 0) app.change({hovered: -1});
  });

  canvas.addEventListener('dblclick', event => {
    const cell = cellAt(app, chart, event.offsetX, event.offsetY);
    if (cell < 0) return;
    const t0 = app.cells.start[cell]!, dur = Math.max(app.cells.dur[cell]!, 1);
    setView(app, fit(t0 - dur * 0.5, t0 + dur * 1.5));
  });
}
