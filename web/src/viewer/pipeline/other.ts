// Shows the second run below the first (view A --compare B): on one axis, aligned at the start of their steps, with
// steps chosen together. A choice by pointer or click in one is shown in the other.
import {t} from '../../i18n/i18n';
import {makeApp} from '../../app';
import {makeChart} from '../../chart/chart';
import {compareSteps} from '../../data/differences';
import {duration, percent} from '../../format';
import {homeOf, spanOf, type State} from '../../state';
import {cellCode} from '../../words';
import type {Loaded} from './load';
import {ownModel, type Other, type Pipe} from './pipe';

export function makeOther(pipe: Pipe, title: string, loaded: Loaded, maxHeight: () => number,
  until: AbortSignal): Other
{
  const app = makeApp(loaded.report, loaded.cells, loaded.model, pipe.app.theme);
  app.bubbles = loaded.bubbles;
  const other: Other = {title, loaded, app, chart: makeChart(app, maxHeight, until), wide: pipe.recorded.model,
    shift: 0, compared: null, between: ''};
  widen(pipe, other);
  return other;
}

const clampTo = (at: number, count: number): number => Math.min(Math.max(at, 0), count - 1);

// Returns the step of the second run that is below one of the first: by place in the run, as diff pairs them.
export function stepBelow({recorded}: Pipe, other: Other, step: number | null): number | null {
  const own = recorded.model.steps.findIndex(one => one.step === step), {steps} = other.loaded.model;
  return own < 0 || steps.length === 0 ? null : steps[clampTo(own + other.shift, steps.length)]!.step;
}

// Windows have room for the longer of two steps that are above each other.
function widen(pipe: Pipe, other: Other): void {
  const {model} = pipe.recorded, below = other.loaded.model,
    length = (span: {t0: number; t1: number}): number => span.t1 - span.t0;
  const stretch = <T extends {t0: number; t1: number}>(span: T, by: {t0: number; t1: number}): T => ({...span,
    t1: span.t0 + Math.max(length(span), length(by))});
  other.wide = {...model, whole: stretch(model.whole, below.whole),
    steps: model.steps.map(one => stretch(one, spanOf(below, stepBelow(pipe, other, one.step))))};
  const longest = new Map<number, number>();
  for (const one of model.steps) {
    const step = stepBelow(pipe, other, one.step);
    if (step !== null) longest.set(step, Math.max(longest.get(step) ?? 0, length(one)));
  }
  other.app.model = {...below, whole: stretch(below.whole, model.whole),
    steps: below.steps.map(one => stretch(one, {t0: 0, t1: longest.get(one.step) ?? 0}))};
}

export function chooseBelow(pipe: Pipe, other: Other, step: number): void {
  const {steps} = pipe.recorded.model, at = steps.findIndex(one => one.step === pipe.app.state.step);
  const wanted = other.loaded.model.steps.findIndex(one => one.step === step);
  if (at < 0 || wanted < 0) return;
  other.shift = wanted - at;
  widen(pipe, other);
  if (!pipe.world) pipe.app.model = ownModel(pipe);
  const {app} = pipe;
  app.change({view: homeOf(app.model, app.state.step), hovered: -1});
}

// From a time of the first run's axis to the second's.
const between = (pipe: Pipe, other: Other): number =>
  spanOf(other.loaded.model, stepBelow(pipe, other, pipe.app.state.step)).t0 -
  spanOf(pipe.recorded.model, pipe.app.state.step).t0;

const likeOf = (list: Int32Array | undefined, cell: number): number => (cell >= 0 ? list?.[cell] ?? -1 : -1);

// Brings the second run to where the first is. `before`: null: whatever has changed.
export function follow(pipe: Pipe, before: State | null): void {
  const {other, app} = pipe;
  if (!other || !pipe.both) return;
  const {state} = app, step = stepBelow(pipe, other, state.step), {model} = other.loaded, key = `${state.step}/${step}`;
  if (key !== other.between) {
    other.between = key;
    other.compared = state.step === null || step === null ? null
      : compareSteps({...pipe.recorded, parts: pipe.recorded.report.parts, step: state.step}, {...other.loaded,
        parts: other.loaded.report.parts, step});
  }
  app.marks = pipe.world ? null : other.compared?.a.marks ?? null;
  other.app.marks = pipe.world ? null : other.compared?.b.marks ?? null;
  const by = between(pipe, other), known = state.dp === null || model.dps.includes(state.dp);
  const next: Partial<State> = {step, dp: known ? state.dp : model.dps[0] ?? null, folded: state.folded,
    open: state.open, full: state.full, theory: state.theory && model.ghosts !== null, causes: state.causes,
    view: {t0: state.view.t0 + by, t1: state.view.t1 + by}};
  const likes = pipe.world ? undefined : other.compared?.a.other;
  if (!before || before.hovered !== state.hovered) next.hovered = likeOf(likes, state.hovered);
  if (!before || before.selected !== state.selected || before.step !== state.step)
    next.selected = likeOf(likes, state.selected);
  other.app.change(next);
}

// And the first to where the second was brought, by pointer or keys.
export function lead(pipe: Pipe, other: Other, before: State): void {
  const {app} = pipe, {state} = other.app, by = between(pipe, other),
    likes = pipe.world ? undefined : other.compared?.b.other, patch: Partial<State> = {};
  if (before.view !== state.view) patch.view = {t0: state.view.t0 - by, t1: state.view.t1 - by};
  if (before.hovered !== state.hovered) patch.hovered = likeOf(likes, state.hovered);
  if (before.selected !== state.selected) patch.selected = likeOf(likes, state.selected);
  if (Object.keys(patch).length > 0) app.change(patch);
}

// Returns "in B: F3, 14.2 ms (+21.0 %)" for a cell that exists in both runs; else that it does not.
export function likeWords(pipe: Pipe, side: 'a' | 'b', cell: number): string {
  const {other} = pipe, found = other?.compared?.[side];
  if (!other || !found || !pipe.both || pipe.world || cell < 0) return '';
  const [own, its] = side === 'a' ? [pipe.app, other.app] : [other.app, pipe.app], like = found.other[cell]!,
    name = side === 'a' ? 'B' : 'A';
  if (like < 0) return found.marks[cell] === 0 ? '' : t('pipe.like.none', name);
  const here = own.cells.dur[cell]!, dur = its.cells.dur[like]!, by = here > 0 ? dur / here - 1 : 0;
  return t('pipe.like', name, cellCode(its, like), duration(dur), `${by < 0 ? '−' : '+'}${percent(Math.abs(by))}`);
}
