// The actions of keys, the palette and the panels, each defined once for all callers.
import {t} from '../../i18n/i18n';
import {fit, reveal} from '../../chart/viewport';
import {duration} from '../../format';
import {ApiError, type Api} from '../shell/api';
import {LEAST_ROW, MOST_ROW, rowsWithin} from './layout';
import {plotWidth, timeAt, topOfRows} from './scene';
import {refAt, refOf, type SliceEnd, type SliceFacts} from '../shell/slice_facts';
import type {Stage} from './stage';
import type {Lit, Store} from './store';
import type {SliceRef} from '../shell/slice_facts';
import {placeTitle, rankTitle} from './titles';

export type OmniMode = 'search' | 'lanes' | 'commands';

export interface Actions {
  select(slice: SliceRef | null, second?: boolean): void;
  goTo(slice: SliceRef): void;
  neighbour(by: number): void;
  otherLane(by: number): void;
  alongFlow(by: number): void;
  findNext(by: number): void;
  mark(): void;
  rangeOfSlice(): void;
  togglePanel(): void;
  holdForCompare(): void;
  align(what: 'start' | 'end'): void;
  rowHeight(by: number): void;
  clear(): void;
  open(mode: OmniMode): void;
  help(): void;
  toggleTheme(): void;
  toggleLang(): void;
  evidence(by: number): void; // the finding before or after the one that is shown; the first where none is
  perfetto(): void;
  failed(error: unknown): void;
  facts(): SliceFacts | null;
}

const MOST_WAITING = 4;

export interface Doors {
  open(mode: OmniMode): void;
  help(): void;
  toggleTheme(): void;
  toggleLang(): void;
  perfetto(): void;
  evidence(by: number): void;
}

export function makeActions(api: Api, store: Store, stage: Stage, doors: Doors): Actions {
  let facts: SliceFacts | null = null, asked = 0, loading: Promise<void> = Promise.resolve();
  let waiting = 0, queue: Promise<void> = Promise.resolve();

  function failed(error: unknown): void {
    if (error instanceof DOMException && error.name === 'AbortError') return;
    store.say(error instanceof ApiError ? `${error.message}. ${error.hint}` : t('failed', String(error)));
  }
  // Everything about the selected slice: its arrows, neighbours and arguments.
  async function load(slice: SliceRef): Promise<void> {
    const mine = ++asked;
    const found = await api.json<SliceFacts>('slice', {lane: slice.lane, slice: slice.slice});
    if (mine !== asked) return;
    facts = found;
    const at = {lane: slice.lane, row: slice.row};
    stage.flows.selected = found.links.map(({direction, slice: other}) =>
      direction === 'out'
        ? {from: {...at, t: slice.start + slice.dur}, to: {lane: other.lane, row: other.row, t: other.start_ns}}
        : {from: {lane: other.lane, row: other.row, t: other.start_ns + other.dur_ns}, to: {...at, t: slice.start}}
    );
    store.change({});
  }
  function select(slice: SliceRef | null, second = false): void {
    if (second && slice && store.state.selected) return store.change({second: slice, panel: 'slice'});
    ++asked;
    facts = null;
    stage.flows.selected = [];
    store.change({selected: slice, second: slice ? store.state.second : null,
      panel: slice ? 'slice' : store.state.panel === 'slice'
        ? 'none' : store.state.panel, message: '',
      spoken: slice ? t('live.slice', slice.name, duration(slice.dur), placeTitle(store, slice.lane)) : ''});
    if (slice) loading = load(slice).catch(failed);
  }
  // Keys that come faster than answers take their turn, so that none is lost; a few, for a held key repeats.
  function whenKnown(step: () => void): void {
    if (waiting >= MOST_WAITING) return;
    ++waiting;
    queue = queue.then(() => loading).then(step).catch(failed).finally(() => {
      --waiting;
    });
  }
  function goTo(slice: SliceRef): void {
    const shift = store.shiftOf(slice.lane), {view} = store.state, span = view.t1 - view.t0;
    // Into sight, and near enough to be seen as a slice.
    const near = slice.dur > 0 && slice.dur / span * plotWidth(stage.scene()) < 3
      ? fit(slice.start + shift - slice.dur * 20, slice.start + shift + slice.dur * 21) : view;
    const rank = store.laneRank(slice.lane), key = `r${rank}`;
    if (store.state.collapsed.has(key))
      store.change({collapsed: new Set([...store.state.collapsed].filter(k => k !== key))});
    if (store.state.hidden.has(slice.lane))
      store.change({hidden: new Set([...store.state.hidden].filter(id => id !== slice.lane))});
    const next = reveal(near, slice.start + shift, slice.start + shift + slice.dur);
    if (next !== view) store.jump(next);
    stage.showLane(slice.lane);
    select(slice);
  }
  async function nearestIn(lane: number, t: number): Promise<SliceRef | null> {
    const {view} = store.state, shift = store.shiftOf(lane), span = (view.t1 - view.t0) / 2;
    const found = await api.slices({lanes: lane, t0: Math.max(t - shift - span, 0), t1: t - shift + span, min_ns: 0,
      limit: 4000});
    let best: SliceRef | null = null, distance = Infinity;
    for (let i = 0; i < found.count; ++i) {
      const start = found.start[i]! + shift, end = start + found.dur[i]!;
      const d = t < start ? start - t : Math.max(0, t - end);
      if (found.row[i] !== 0 || d >= distance) continue;
      distance = d;
      best = refAt(found, i);
    }
    return best;
  }
  // Which of the highlighted slices starts then: of those that start at once the first. From there they are counted on.
  let last: SliceRef | null = null;
  async function placeOf(lit: Lit, start: number): Promise<{at: number; of: number}> {
    const names = {name_ids: [...lit.ids].join(), where: lit.where};
    const counted = async (t1: number): Promise<number> =>
      t1 <= 0 ? 0 : (await api.json<{count: number}>('histogram', {...names, t0: 0, t1})).count;
    const [before, all] = await Promise.all([counted(start), counted(store.run.span_ns + 1)]);
    return {at: before + 1, of: all};
  }
  const shownLanes = (): number[] =>
    stage.scene().layout.rows.filter(row =>
      row.kind === 'lane' &&
      store.run.lanes[row.lane]!.type !== 'counter'
    )
      .map(row => row.lane);
  const middle = (): number => (store.state.view.t0 + store.state.view.t1) / 2;

  return {
    select,
    goTo,
    failed,
    facts: () => facts,
    neighbour(by) {
      const {selected} = store.state;
      if (!selected) {
        const scene = stage.scene(),
          first = rowsWithin(scene.layout.rows, scene.scroll, scene.scroll + scene.height - topOfRows(scene))
            .find(row => row.kind === 'lane' && store.run.lanes[row.lane]!.type !== 'counter');
        if (first) nearestIn(first.lane, middle()).then(slice => slice && goTo(slice)).catch(failed);
        return;
      }
      whenKnown(() => {
        const end = by < 0 ? facts?.previous : facts?.next;
        if (end) goTo(refOf(end));
      });
    },
    otherLane(by) {
      const {selected} = store.state, lanes = shownLanes();
      if (!selected) return this.neighbour(1);
      const t = selected.start + selected.dur / 2 + store.shiftOf(selected.lane);
      const next = lanes[lanes.indexOf(selected.lane) + by];
      if (next !== undefined) nearestIn(next, t).then(slice => slice && goTo(slice)).catch(failed);
    },
    alongFlow(by) {
      whenKnown(() => {
        const link = facts?.links.find(one => one.direction === (by < 0 ? 'in' : 'out'));
        if (link) goTo(refOf(link.slice));
        else if (store.state.selected) store.say(t(by < 0 ? 'flow.noneIn' : 'flow.noneOut'));
      });
    },
    findNext(by) {
      const {lit, selected} = store.state;
      if (!lit) return doors.open('search');
      const from = selected ? selected.start : by > 0 ? store.state.view.t0 : store.state.view.t1;
      const {found} = store.state, isLast = found !== null && selected?.slice === last?.slice &&
        selected?.lane === last?.lane;
      api.json<{found: SliceEnd | null}>('find', {name_ids: [...lit.ids].join(), where: lit.where, from,
        dir: by > 0 ? 'next' : 'prev', lane: selected?.lane, slice: selected?.slice})
        .then(async answer => {
          if (!answer.found) return store.say(t(by > 0 ? 'find.last' : 'find.first'));
          goTo(last = refOf(answer.found));
          const next = isLast ? {...found, at: found.at + by} : await placeOf(lit, last.start);
          if (store.state.lit === lit) store.change({found: next});
        }).catch(failed);
    },
    mark() {
      const scene = stage.scene(), x = stage.pointed.x;
      const at = Math.round(
        x >= scene.gutter ? timeAt(scene, x) : store.state.selected ? store.state.selected.start : middle(),
      );
      store.change({marks: [...store.state.marks, {t: at, text: ''}].sort((a, b) => a.t - b.t),
        message: t('mark.made', duration(at))});
    },
    rangeOfSlice() {
      const {selected} = store.state;
      if (!selected) return;
      const t0 = selected.start + store.shiftOf(selected.lane), lanes = shownLanes();
      store.change({area: {t0, t1: t0 + Math.max(selected.dur, 1), lanes}, panel: 'area'});
    },
    togglePanel() {
      store.change({panel: store.state.panel === 'none' ? (store.state.area && !store.state.selected ? 'area' : 'slice')
        : 'none'});
    },
    holdForCompare() {
      const {selected, second} = store.state;
      if (second) return store.change({second: null});
      if (selected) store.change({second: selected, message: t('compare.held')});
    },
    align(what) {
      const {selected, second, shifts} = store.state;
      if (!selected || !second) return store.say(t('align.need'));
      const [a, b] = [store.laneRank(second.lane), store.laneRank(selected.lane)];
      if (a === b) return store.say(t('align.same'));
      const at = (slice: SliceRef): number => slice.start + (what === 'end' ? slice.dur : 0);
      const shift = at(second) + (shifts.get(a) ?? 0) - at(selected), next = new Map(shifts);
      if (shift === 0) next.delete(b);
      else next.set(b, shift);
      store.change({shifts: next,
        message: t('align.done', rankTitle(store.run.ranks[b]!),
          `${shift < 0 ? '−' : '+'}${duration(Math.abs(shift))}`)});
    },
    rowHeight(by) {
      const now = stage.scene().layout.rowHeight,
        next = by > 0 ? Math.max(now + 1, now * 1.25) : Math.min(now - 1, now / 1.25);
      store.change({rowHeight: Math.round(Math.min(Math.max(next, LEAST_ROW), MOST_ROW))});
    },
    clear() {
      const {state} = store;
      if (state.lit) store.change({lit: null});
      else if (state.selected) select(null);
      else if (state.area) store.change({area: null, panel: state.panel === 'area' ? 'none' : state.panel});
      else if (state.second) store.change({second: null});
      else if (state.scene) store.change({scene: null, pinned: []});
    },
    ...doors,
  };
}
