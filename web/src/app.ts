// The page as one value: the run, what is shown of it, and who wants to know when that changes.
import {clamp, reveal, type Viewport} from './chart/viewport';
import type {Cells} from './data/cells';
import type {Bubbles} from './data/bubbles';
import type {Report} from './data/report';
import type {Ghosts, RunModel} from './data/rows';
import type {WorstRanks} from './data/worst';
import {homeOf, initialState, type State} from './state';
import type {Theme} from './theme';

export type {Theme};

export interface App {
  report: Report;
  cells: Cells;
  model: RunModel;
  bubbles: Bubbles | null; // none in a report
  under: Ghosts | null; // the cells under the rows in place of theory
  ends: number[] | null; // times that are marked in place of theory's ends
  marks: Uint8Array | null; // by cell: how it differs from its like in another run (data/differences.ts)
  lit: Uint8Array | null; // by cell: 2 accused by a finding, 1 its like, 0 neither
  worst: WorstRanks | null; // ranks that take more than their peers; null: not known yet
  state: State;
  theme: Theme;
  change(patch: Partial<State>): void;
  onChange(listener: (before: State) => void): void;
}

export function makeApp(report: Report, cells: Cells, model: RunModel, theme: Theme): App {
  const listeners: ((before: State) => void)[] = [];
  return {
    report,
    cells,
    model,
    theme,
    bubbles: null,
    under: null,
    ends: null,
    marks: null,
    lit: null,
    worst: null,
    state: initialState(model),
    change(patch) {
      const before = this.state;
      this.state = {...before, ...patch};
      for (const listener of listeners) listener(before);
    },
    onChange(listener) {
      listeners.push(listener);
    },
  };
}

export function setView(app: App, view: Viewport): void {
  const next = clamp(view, homeOf(app.model, app.state.step)), {t0, t1} = app.state.view;
  if (next.t0 !== t0 || next.t1 !== t1) app.change({view: next});
}

// Without a recognised schedule there is nothing to show.
export function toggleTheory(app: App): void {
  if (app.model.ghosts) app.change({theory: !app.state.theory});
}

export function setStep(app: App, step: number | null): void {
  const keep = app.state.selected >= 0 && (step === null || app.cells.step[app.state.selected] === step);
  app.change({step, view: homeOf(app.model, step), hovered: -1, selected: keep ? app.state.selected : -1});
}

// Selects a cell and brings it into the window, changing step or replica when it must.
export function select(app: App, cell: number): void {
  if (cell < 0) return app.change({selected: -1});
  const {cells, model, report} = app;
  const patch: Partial<State> = {selected: cell};
  let {view} = app.state;
  if (app.state.step !== null && cells.step[cell] !== app.state.step) {
    patch.step = cells.step[cell]! >= 0 ? cells.step[cell]! : null;
    view = homeOf(model, patch.step);
  }
  const dp = report.parts[cells.part[cell]!]!.dp;
  const open = app.state.folded && app.state.open.has(report.parts[cells.part[cell]!]!.stage);
  if (app.state.dp !== null && dp >= 0 && dp !== app.state.dp && !open) patch.dp = dp;
  const t0 = cells.start[cell]!;
  const step = patch.step === undefined ? app.state.step : patch.step;
  patch.view = clamp(reveal(view, t0, t0 + cells.dur[cell]!), homeOf(model, step));
  app.change(patch);
}
