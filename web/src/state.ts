// The state of the reader's view, and its text form in the address:
// #step=3&dp=all&v=t0,t1&theory=off&sel=rank,start,dur. Cells are named by rank, start and duration, never by index, so
// a link outlives a new report.
import type {Cells} from './data/cells';
import type {Part} from './data/report';
import type {RunModel, StepSpan} from './data/rows';
import {clamp, fit, type Viewport} from './chart/viewport';

export interface State {
  step: number | null; // null: all steps
  dp: number | null; // null: all replicas
  view: Viewport;
  selected: number; // cell, −1 none
  hovered: number;
  theory: boolean; // ghosts of the schedule under the rows
  folded: boolean; // one row a stage, of replica `dp`
  open: ReadonlySet<number>; // of those the stages that show their ranks
  full: ReadonlySet<number>; // of these those that show all of them, however many they are
  beside: number | null; // the step whose cells are drawn under the rows, in place of theory
  causes: boolean; // waiting is hatched in the colour of its cause
}

export const spanOf = (model: RunModel, step: number | null): StepSpan =>
  (step === null ? undefined : model.steps.find(s => s.step === step)) ?? model.whole;

export const homeOf = (model: RunModel, step: number | null): Viewport => {
  const span = spanOf(model, step);
  return fit(span.t0, span.t1);
};

// Opens on the step of median length: the first ones warm up, the longest one is an accident.
export function initialState(model: RunModel): State {
  const byLength = [...model.steps].sort((a, b) => (a.t1 - a.t0) - (b.t1 - b.t0));
  const step = byLength[byLength.length >> 1]?.step ?? null;
  return {step, dp: model.dps.length > 1 ? model.dps[0]! : null, view: homeOf(model, step), selected: -1, hovered: -1,
    theory: model.ghosts !== null, folded: false, open: new Set(), full: new Set(), beside: null, causes: true};
}

export function toHash(state: State, model: RunModel, cells: Cells, parts: Part[]): string {
  const fields = [`step=${state.step ?? 'all'}`];
  if (model.dps.length > 1) fields.push(`dp=${state.dp ?? 'all'}`);
  const home = homeOf(model, state.step);
  if (state.view.t0 !== home.t0 || state.view.t1 !== home.t1)
    fields.push(`v=${Math.round(state.view.t0)},${Math.round(state.view.t1)}`);
  if (model.ghosts && !state.theory) fields.push('theory=off');
  if (state.selected >= 0) {
    const i = state.selected;
    fields.push(`sel=${parts[cells.part[i]!]!.rank},${cells.start[i]},${cells.dur[i]}`);
  }
  return '#' + fields.join('&');
}

export function fromHash(hash: string, model: RunModel, cells: Cells, parts: Part[]): State {
  const state = initialState(model);
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  const step = fields.get('step'), dp = fields.get('dp');
  if (step === 'all') state.step = null;
  else if (step !== null && model.steps.some(s => s.step === Number(step))) state.step = Number(step);
  if (dp === 'all') state.dp = null;
  else if (dp !== null && model.dps.includes(Number(dp))) state.dp = Number(dp);
  if (fields.get('theory') === 'off') state.theory = false;
  const home = homeOf(model, state.step);
  const [t0, t1] = (fields.get('v') ?? '').split(',').map(Number);
  state.view = t1! > t0! ? clamp({t0: t0!, t1: t1!}, home) : home;
  const [rank, start, dur] = (fields.get('sel') ?? '').split(',').map(Number);
  if (dur !== undefined) {
    for (let i = 0; i < cells.count && state.selected < 0; ++i)
      if (cells.start[i] === start && cells.dur[i] === dur && parts[cells.part[i]!]!.rank === rank) state.selected = i;
  }
  return state;
}
