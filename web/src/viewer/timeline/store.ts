// The shown and chosen state, as one value, and its listeners.
import {clamp, fit, type Viewport} from '../../chart/viewport';
import type {Grouping, Run} from '../shell/api';
import type {Theme} from '../shell/page';
import type {Area, SliceRef} from '../shell/slice_facts';
import type {Light} from '../evidence/staged';

export interface Mark {
  t: number;
  text: string;
}
// Where marks are kept: the run's file, or why not there.
export interface KeptMarks {
  file: string;
  keeps: boolean;
  why_not: '' | 'no-file' | 'read-only' | 'unreadable';
}
// The highlighted names: everything else is dimmed. `query` finds them again, `from` records where they came from. With
// a range only those durations are highlighted.
export interface Lit {
  ids: ReadonlySet<number>;
  label: string;
  query: string;
  from: 'search' | 'name' | 'histogram';
  min?: number;
  max?: number;
  where?: string; // facets of a search ("mb:3 kind:B"), and those of them that a slice in sight says itself
  microBatch?: number;
}
export function litBySearch(ids: readonly number[], label: string, where: string): Lit {
  const microBatch = /(?:^| )(?:mb|micro_batch):(\d+)/i.exec(where)?.[1];
  return {ids: new Set(ids), label, query: label, from: 'search', ...(where && {where}),
    ...(microBatch !== undefined && {microBatch: Number(microBatch)})};
}

// Calls that a hang left open (hang.ts) go on to the edge of the window.
export interface OpenEnd {
  lane: number;
  t0: number;
  words: string;
}
export interface Hang {
  waits: OpenEnd[];
  gaps: OpenEnd[];
  first: {t: number; words: string} | null;
}

export interface State {
  view: Viewport;
  rowHeight: number; // CSS pixels; 0: as fits
  grouping: Grouping | 'none';
  collapsed: ReadonlySet<string>; // keys of groups and ranks
  expanded: ReadonlySet<number>; // lanes of which every row is shown
  pinned: readonly number[];
  hidden: ReadonlySet<number>;
  rankOrder: readonly number[]; // indexes into run.ranks
  laneOrder: readonly number[]; // lane ids; within a rank this order counts
  shifts: ReadonlyMap<number, number>; // rank index → ns added to its times, by hand
  selected: SliceRef | null;
  second: SliceRef | null; // compared with the selected one
  area: Area | null;
  marks: readonly Mark[];
  lit: Lit | null;
  scene: Light | null;
  query: string; // SQL whose rows are a lane of their own; '': none
  hang: Hang | null; // of the dumps of a job that hung
  graphs: boolean; // work was launched by captured graphs
  flows: boolean;
  muted: ReadonlySet<number>; // kinds that the legend has switched off: pale
  found: {at: number; of: number} | null; // which of the highlighted slices was gone to
  panel: 'slice' | 'area' | 'marks' | 'none';
  message: string; // one line for everyone, read out
  spoken: string; // read out where the page shows it already
}

// Returns the lanes that are hidden until requested: those that repeat others, and empty ones.
export const hiddenAtFirst = (run: Run): Set<number> =>
  new Set(run.lanes.filter(lane => lane.repeats || (run.whole && lane.slices === 0)).map(lane => lane.id));

export function homeOf(run: Run): Viewport {
  return fit(0, Math.max(run.span_ns, 1));
}

export class Store {
  home: Viewport; // grows where another run is below
  state: State;
  theme: Theme;
  private readonly listeners: ((before: State) => void)[] = [];
  private readonly undone: Viewport[] = [];
  private undoAt = -Infinity;
  jumps = 0; // each is a place to come back to
  notes: KeptMarks | null = null; // where marks are kept besides the address

  constructor(readonly run: Run, theme: Theme) {
    this.home = homeOf(run);
    this.theme = theme;
    this.state = {
      view: this.home,
      rowHeight: 0,
      grouping: run.groupings.includes('stage') ? 'stage' : run.groupings.includes('machine') ? 'machine' : 'none',
      collapsed: new Set(),
      expanded: new Set(),
      pinned: [],
      hidden: hiddenAtFirst(run),
      rankOrder: run.ranks.map((_, i) => i),
      laneOrder: run.lanes.map(lane => lane.id),
      shifts: new Map(),
      selected: null,
      second: null,
      area: null,
      marks: [],
      lit: null,
      scene: null,
      query: '',
      hang: null,
      graphs: false,
      flows: false,
      muted: new Set(),
      found: null,
      panel: 'none',
      message: '',
      spoken: '',
    };
    if (run.ranks.length <= 1) this.state.grouping = 'none';
  }

  onChange(listener: (before: State) => void): void {
    this.listeners.push(listener);
  }
  change(patch: Partial<State>): void {
    const before = this.state;
    this.state = {...before, ...patch, ...('lit' in patch && !('found' in patch) && {found: null})};
    for (const listener of this.listeners) listener(before);
  }

  // Windows that follow each other within a second are one gesture: Backspace takes it back whole.
  setView(view: Viewport, keepUndo = true): void {
    const next = clamp(view, this.home), now = performance.now();
    if (next.t0 === this.state.view.t0 && next.t1 === this.state.view.t1) return;
    if (keepUndo && now - this.undoAt > 1000) {
      this.undone.push(this.state.view);
      if (this.undone.length > 200) this.undone.shift();
    }
    if (keepUndo) this.undoAt = now;
    this.change({view: next});
  }
  // A jump is a gesture of its own.
  jump(view: Viewport): void {
    ++this.jumps;
    this.undoAt = -Infinity;
    this.setView(view);
    this.undoAt = -Infinity;
  }
  undoView(): void {
    const view = this.undone.pop();
    this.undoAt = -Infinity;
    if (view) this.setView(view, false);
  }

  say(message: string): void {
    this.change({message, spoken: ''});
  }
  laneRank(lane: number): number {
    return this.run.lanes[lane]!.rank_index;
  }
  shiftOf(lane: number): number {
    return this.state.shifts.get(this.laneRank(lane)) ?? 0;
  }
}
