// The pipeline page as one value: the run as recorded, its replacement, and the possible actions.
import {setStep, type App} from '../../app';
import type {Chart} from '../../chart/chart';
import {hasMany, MANY} from '../../chart/layout';
import {besideOf, recordedUnder} from '../../data/beside';
import type {Cells} from '../../data/cells';
import type {Compared} from '../../data/differences';
import type {Table} from '../../data/report';
import type {RunModel} from '../../data/rows';
import {homeOf} from '../../state';
import type {Described} from '../shell/described';
import {toggled} from '../shell/toggled';
import type {Diff} from '../answers/diff';
import type {Scenes} from '../evidence/scenes';
import type {Shell} from '../shell/page';
import type {Loaded} from './load';
import {slowestReplica} from './step_facts';

// One step as it would have run.
export interface World {
  cells: Cells;
  model: RunModel;
  step: number;
  dp: number | null; // of this replica alone
  recordedEnd: number;
  end: number;
}

// The second run, below the first.
export interface Other {
  title: string;
  loaded: Loaded;
  app: App;
  chart: Chart;
  wide: RunModel; // the first run's, each step as long as the longer of the two
  shift: number; // the first run's k-th step is above this one's (k + shift)-th
  compared: Compared | null; // of the two steps that are shown
  between: string; // which two those are
}

// The current what-if and the kept ones, as the address has them (scenario.ts), with their model and memory. `restore`
// takes them from the address.
export interface Bench {
  now: string;
  kept: string;
  described: Described;
  restore: ((now: string, kept: string, described: Described) => void) | null;
}

export interface Pipe {
  shell: Shell;
  app: App;
  chart: Chart;
  recorded: Loaded;
  tables: readonly Table[] | null; // null: on their way
  tablesError: string;
  world: World | null; // drawn in place of the recording
  other: Other | null; // the second run, once it is there
  both: boolean; // it is wanted below the first
  scene: string; // the finding that is shown; '': none
  scenes: Scenes | null; // once one was asked for
  bench: Bench;
  // Fetches the cells of a step that is missing in `recorded`, or of one and another below it, and replaces this pipe;
  // null: there is no server to ask.
  fetchSteps: ((step: number, beside?: number) => void) | null;
  diff: Partial<Diff> | null; // what `stageline diff` says of the two; {}: neither has a pipeline
}

// The replica that is all the chart shows; null: there are more, or no other.
export const shownAlone = (
  {app: {state}, recorded: {model}}: Pipe,
): number | null => (state.folded && state.open.size === 0 && model.dps.length > 1 ? state.dp : null);

// The replica to look at one by one: the one that is shown; of many ranks, where all are, the slowest.
export function oneReplica({app: {state}, recorded}: Pipe): number | null {
  if (state.dp !== null || !hasMany(recorded.report.parts)) return state.dp;
  return slowestReplica(recorded, state.step)?.dp ?? recorded.model.dps[0] ?? null;
}

// Returns the drawn part of the run as recorded: with a second one below it windows have room for both.
export const ownModel = ({recorded, other, both}: Pipe): RunModel => (both && other ? other.wide : recorded.model);

// The cells of the chart and the ghosts under them follow from the state and the scenario.
export function setWorld(pipe: Pipe, world: World | null): void {
  const {app, recorded} = pipe, entering = (world === null) !== (pipe.world === null), {view, step} = app.state;
  const home = homeOf(app.model, step), whole = entering || (view.t0 === home.t0 && view.t1 === home.t1);
  pipe.world = world;
  app.cells = world?.cells ?? recorded.cells;
  app.model = world?.model ?? ownModel(pipe);
  app.bubbles = world ? null : recorded.bubbles;
  app.ends = world && [world.recordedEnd];
  setUnder(pipe);
  app.marks = null;
  app.lit = null;
  pipe.scene = '';
  app.change({hovered: -1, selected: -1, ...(whole ? {view: homeOf(app.model, step)} : {})});
}

export function setUnder({app, recorded, world}: Pipe): void {
  const {step, beside} = app.state;
  app.under = world && step !== null ? recordedUnder(recorded.cells, recorded.model, step)
    : step !== null && beside !== null && beside !== step ? besideOf(recorded.cells, recorded.model, step, beside)
    : null;
}

// The steps that are here and those that can be asked for, ascending.
export function stepNumbers({recorded: {model, report}, fetchSteps}: Pipe): number[] {
  const here = model.steps.map(one => one.step);
  return fetchSteps && report.cells.leftOut ? [...here, ...report.cells.leftOut].sort((a, b) => a - b) : here;
}

// Returns true if the step is one of those that are not here and can be asked for.
export const isLeftOut = ({recorded: {report}, fetchSteps}: Pipe, step: number | null): step is number =>
  fetchSteps !== null && step !== null && report.cells.leftOut?.includes(step) === true;

export function chooseStep(pipe: Pipe, step: number | null): void {
  if (pipe.world) setWorld(pipe, null);
  if (isLeftOut(pipe, step)) pipe.fetchSteps!(step);
  else setStep(pipe.app, step);
}
export function chooseBeside(pipe: Pipe, beside: number | null): void {
  const {step} = pipe.app.state;
  if (step !== null && isLeftOut(pipe, beside)) pipe.fetchSteps!(step, beside);
  else pipe.app.change({beside});
}

// The step `by` places on; from "all steps" the first or the last one.
export function moveToStep(pipe: Pipe, by: number): void {
  if (pipe.world) setWorld(pipe, null);
  const steps = stepNumbers(pipe), at = steps.indexOf(pipe.app.state.step ?? -1);
  const next = at < 0 ? (by > 0 ? 0 : steps.length - 1) : Math.min(Math.max(at + by, 0), steps.length - 1);
  if (next !== at && steps.length > 0) chooseStep(pipe, steps[next]!);
}

export function toggleStage(app: App, stage: number): void {
  if (stage < 0) return;
  const open = toggled(app.state.open, stage);
  app.change({folded: true, open, full: new Set([...app.state.full].filter(one => open.has(one)))});
}

// Of many ranks an open stage shows those that take more than their peers; then all of them; then it is closed again.
export function moreOfStage(app: App, stage: number): void {
  const count = app.report.parts.filter(part => part.stage === stage).length;
  if (count > MANY && app.state.open.has(stage) && !app.state.full.has(stage)) showAllRanks(app, stage);
  else toggleStage(app, stage);
}
export function showAllRanks(app: App, stage: number): void {
  app.change({full: new Set([...app.state.full, stage])});
}

// The stages that have several ranks: those that open.
export function openable(app: App): number[] {
  const ranks = new Map<number, number>();
  for (const part of app.report.parts) if (part.stage >= 0) ranks.set(part.stage, (ranks.get(part.stage) ?? 0) + 1);
  return [...ranks].filter(([, count]) => count > 1).map(([stage]) => stage).sort((a, b) => a - b);
}

// Returns the stages with ranks that the program calls slow, the worst first: a chart of many ranks opens on them.
const MOST_OPENED = 8;
export function slowStages({app}: Pipe): number[] {
  const slow = [...app.worst ?? []].filter(([, rank]) => rank.isSlow).sort((a, b) => a[1].place - b[1].place).slice(0,
    MOST_OPENED);
  return [...new Set(slow.map(([part]) => app.report.parts[part]!.stage))];
}

export function toggleAll(app: App): void {
  const all = openable(app);
  app.change({folded: true, open: new Set(all.every(stage => app.state.open.has(stage)) ? [] : all), full: new Set()});
}
