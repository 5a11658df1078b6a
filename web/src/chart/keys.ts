// Keys. W S A D act while held, faster with time; positions, not letters, so that layouts and input
// methods do not matter. Keys typed into fields are left alone.
import {takesText} from '../dom';
import {select, setView, toggleTheory, type App} from '../app';
import {homeOf} from '../state';
import type {Chart} from './chart';
import {nearest, neighbour} from './hit';
import {pan, zoom} from './viewport';

type Move = 'in' | 'out' | 'left' | 'right';
const HELD: Record<string, Move> = {KeyW: 'in', KeyS: 'out', KeyA: 'left', KeyD: 'right'};
const ARROWS: Record<string, Move> = {ArrowLeft: 'left', ArrowRight: 'right'};

function middleCell(app: App, chart: Chart): number {
  const {layout} = chart.scene(), {view, step} = app.state;
  for (const row of layout.rows) {
    if (row < 0) continue;
    const cell = nearest(app.model.rows[row]!, app.cells, step, (view.t0 + view.t1) / 2);
    if (cell >= 0) return cell;
  }
  return -1;
}

function otherRow(app: App, chart: Chart, by: number): number {
  const {cells, model, state} = app, {rows} = chart.scene().layout;
  if (state.selected < 0) return middleCell(app, chart);
  const time = cells.start[state.selected]! + cells.dur[state.selected]! / 2;
  for (let i = rows.indexOf(model.rowOfPart[cells.part[state.selected]!]!) + by; i >= 0 && i < rows.length; i += by) {
    const row = model.rows[rows[i]!], cell = row ? nearest(row, cells, state.step, time) : -1;
    if (cell >= 0) return cell;
  }
  return state.selected;
}

// `own`: keys of the page around the chart, asked first. `step`: shows the step `by` places on. `until`: when the chart
// is gone.
export interface KeyActions {
  help(): void;
  helpOpen(): boolean;
  active?(): boolean;
  own?(event: KeyboardEvent): boolean;
  step(by: number): void;
  until: AbortSignal;
}

export function listenToKeys(app: App, chart: Chart, pointerTime: () => number | null, actions: KeyActions): void {
  const held = new Map<string, {move: Move; since: number}>();
  let last = 0;

  function act(move: Move, amount: number): void {
    const {view} = app.state;
    const at = pointerTime() ?? (view.t0 + view.t1) / 2;
    if (move === 'in' || move === 'out') setView(app, zoom(view, Math.exp(move === 'in' ? -amount : amount), at));
    else setView(app, pan(view, (move === 'left' ? -amount : amount) * 0.6));
  }
  function tick(now: number): void {
    const elapsed = Math.min(now - last, 50) / 1000;
    last = now;
    for (const {move, since} of held.values())
      if (now - since > 150) act(move, elapsed * Math.min(1 + (now - since) / 600, 4));
    if (held.size > 0) requestAnimationFrame(tick);
  }
  function hold(code: string, move: Move): void {
    if (held.has(code)) return;
    act(move, 0.2);
    last = performance.now();
    held.set(code, {move, since: last});
    if (held.size === 1) requestAnimationFrame(tick);
  }
  function pick(cell: number): void {
    if (cell < 0) return;
    select(app, cell);
    const index = chart.scene().layout.rows.indexOf(app.model.rowOfPart[app.cells.part[cell]!]!);
    if (index >= 0) chart.showRow(index);
  }
  const beside = (by: number): number =>
    app.state.selected < 0 ? middleCell(app, chart)
      : neighbour(app.model, app.cells, app.state.selected, by, app.state.step);

  function pressed(event: KeyboardEvent): boolean {
    const onChart = document.activeElement === chart.canvas;
    const move = HELD[event.code] ?? (onChart ? ARROWS[event.code] : undefined);
    if (move) {
      hold(event.code, move);
      return true;
    }
    if (onChart && (event.code === 'ArrowUp' || event.code === 'ArrowDown')) {
      pick(otherRow(app, chart, event.code === 'ArrowUp' ? -1 : 1));
      return true;
    }
    switch (event.key) {
      case '[':
        actions.step(-1);
        return true;
      case ']':
        actions.step(1);
        return true;
      case '0':
        setView(app, homeOf(app.model, app.state.step));
        return true;
      case ',':
        pick(beside(-1));
        return true;
      case '.':
        pick(beside(1));
        return true;
      case 't':
      case 'T':
        toggleTheory(app);
        return true;
      case '?':
        actions.help();
        return true;
      case 'Escape':
        if (app.state.selected >= 0) select(app, -1);
        return false;
    }
    if (event.code === 'BracketLeft') actions.step(-1);
    else if (event.code === 'BracketRight') actions.step(1);
    return false;
  }

  const listening = {signal: actions.until};
  document.addEventListener('keydown', event => {
    const target = event.target as HTMLElement;
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || actions.helpOpen() ||
      actions.active?.() === false) return;
    if (takesText(target)) return;
    if (actions.own?.(event) || pressed(event)) event.preventDefault();
  }, listening);
  document.addEventListener('keyup', event => {
    held.delete(event.code);
  }, listening);
  window.addEventListener('blur', () => held.clear(), listening);
  actions.until.addEventListener('abort', () => held.clear());
}
