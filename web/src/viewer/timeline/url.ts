// The view in the address, so that a link shows what was seen. Slices by lane, start and duration, never by number.
import {clamp} from '../../chart/viewport';
import type {Actions} from './actions';
import {listOf, type Api} from '../shell/api';
import type {Grouping} from '../shell/api';
import {plainQuery, safeDecode} from '../shell/route';
import {refAt} from '../shell/slice_facts';
import {hiddenAtFirst, litBySearch, type Lit, type Mark, type State, type Store} from './store';
import type {SliceRef} from '../shell/slice_facts';
import {laneKey, lanesOfKey} from './titles';

const MOST_NAMES = 500; // lit at once, as by the search
const MOST_LIST = 2000; // characters: an address is passed on by people

const slice = (store: Store, ref: SliceRef): string => `${laneKey(store, ref.lane)}~${ref.start}~${ref.dur}`;
const lanes = (store: Store, ids: readonly number[]): string => ids.map(id => laneKey(store, id)).join('~');

export function toQuery(store: Store): string {
  const {state} = store, query = new URLSearchParams();
  query.set('v', `${Math.round(state.view.t0)},${Math.round(state.view.t1)}`);
  if (state.selected) query.set('sel', slice(store, state.selected));
  if (state.second) query.set('cmp', slice(store, state.second));
  const area = state.area ? listOf(state.area.lanes) : '';
  if (state.area && area.length < MOST_LIST)
    query.set('area', `${Math.round(state.area.t0)},${Math.round(state.area.t1)},${area}`);
  if (state.pinned.length > 0) query.set('pin', lanes(store, state.pinned));
  const repeats = hiddenAtFirst(store.run);
  if (state.hidden.size !== repeats.size || [...repeats].some(id => !state.hidden.has(id)))
    query.set('hide', lanes(store, [...state.hidden]));
  if (state.collapsed.size > 0) query.set('fold', [...state.collapsed].join('~'));
  const order = state.rankOrder.map(i => store.run.ranks[i]!.rank).join();
  if (!ascending(state.rankOrder) && order.length < MOST_LIST) query.set('order', order);
  const moved = lanes(store, movedLanes(store));
  if (moved !== '' && moved.length < MOST_LIST) query.set('lanes', moved);
  if (state.expanded.size > 0) query.set('open', lanes(store, [...state.expanded]));
  if (state.lit && state.lit.query.length < MOST_LIST) {
    query.set('lit', state.lit.query);
    if (state.lit.max !== undefined) query.set('litdur', `${state.lit.min ?? 0},${state.lit.max}`);
  }
  if (state.marks.length > 0)
    query.set('marks', state.marks.map(mark => `${Math.round(mark.t)}:${encodeURIComponent(mark.text)}`).join('~'));
  if (state.shifts.size > 0)
    query.set('shift', [...state.shifts].map(([rank, ns]) => `${store.run.ranks[rank]!.rank}:${ns}`).join('~'));
  if (state.scene) query.set('scene', state.scene.key);
  if (state.query && state.query.length < MOST_LIST) query.set('q', state.query);
  if (state.flows) query.set('flows', '1');
  if (state.muted.size > 0)
    query.set('mute', store.run.kinds.filter(kind => state.muted.has(kind.id)).map(kind => kind.code).join());
  if (state.rowHeight > 0) query.set('h', String(state.rowHeight));
  query.set('by', state.grouping);
  return plainQuery(query);
}

const ascending = (list: readonly number[]): boolean => list.every((value, i) => i === 0 || value > list[i - 1]!);
// Returns the lanes of ranks whose lanes were reordered, in their order.
function movedLanes({run, state}: Store): number[] {
  const last = new Map<number, number>(), ranks = new Set<number>();
  for (const id of state.laneOrder) {
    const {rank_index: rank} = run.lanes[id]!;
    if (id < (last.get(rank) ?? -1)) ranks.add(rank);
    last.set(rank, id);
  }
  return state.laneOrder.filter(id => ranks.has(run.lanes[id]!.rank_index));
}

const numbers = (text: string | null): number[] => (text ?? '').split(',').map(Number);

async function findSlice(store: Store, api: Api, text: string | null): Promise<SliceRef | null> {
  if (!text) return null;
  const parts = text.split('~'), dur = Number(parts.pop()), start = Number(parts.pop()),
    lanes = lanesOfKey(store, parts.join('~'));
  if (lanes.length === 0 || !Number.isFinite(start) || !Number.isFinite(dur)) return null;
  const found = await api.slices({lanes: lanes.join(), t0: start, t1: start + Math.max(dur, 1), min_ns: dur,
    limit: 1000});
  for (let i = 0; i < found.count; ++i)
    if (found.start[i] === start && found.dur[i] === dur)
      return refAt(found, i);
  return null;
}

// `lost` hears of what is in the address and not in the run.
export function fromQuery(store: Store, text: string, actions: Actions, api: Api, lost: (what: string) => void): void {
  const query = new URLSearchParams(text), {run} = store, patch: Partial<State> = {};
  const [t0, t1] = numbers(query.get('v'));
  const fits = t1! > t0! && t0! < store.home.t1 && t1! > store.home.t0;
  patch.view = fits ? clamp({t0: t0!, t1: t1!}, store.home) : store.home;
  if (query.has('v') && !fits) lost(`v=${query.get('v')}`);
  const ids = (key: string): number[] | null =>
    query.has(key) ? query.get(key)!.split('~').filter(Boolean).flatMap(one => {
      const found = lanesOfKey(store, one);
      if (found.length === 0) lost(`${key}=${one}`);
      return found;
    }) : null;
  patch.pinned = ids('pin') ?? [];
  patch.hidden = new Set(ids('hide') ?? hiddenAtFirst(run));
  patch.collapsed = new Set((query.get('fold') ?? '').split('~').filter(Boolean));
  const by = query.get('by');
  if (by === 'none' || run.groupings.includes(by as Grouping)) patch.grouping = by as State['grouping'];
  patch.expanded = new Set(ids('open') ?? []);
  const order = numbers(query.get('order')).map(rank => run.ranks.findIndex(one => one.rank === rank)).filter(i =>
    i >= 0
  );
  patch.rankOrder = [...new Set([...order, ...run.ranks.keys()])];
  const moved = [...new Set(ids('lanes') ?? [])], places = new Set(moved);
  patch.laneOrder = run.lanes.map(({id}) => (places.has(id) ? moved.shift()! : id));
  patch.flows = query.get('flows') === '1';
  const mute = new Set((query.get('mute') ?? '').split(','));
  patch.muted = new Set(run.kinds.filter(kind => mute.has(kind.code)).map(kind => kind.id));
  const height = Number(query.get('h'));
  if (height >= 3 && height <= 60) patch.rowHeight = height;
  // Once they are in the run's file, an older address must not change them.
  if (!store.notes?.keeps)
    patch.marks = (query.get('marks') ?? '').split('~').filter(Boolean).map((one): Mark => {
      const at = one.indexOf(':');
      return {t: Number(one.slice(0, at)), text: safeDecode(one.slice(at + 1))};
    }).filter(mark => Number.isFinite(mark.t));
  patch.shifts = new Map((query.get('shift') ?? '').split('~').filter(Boolean).map((one): [number, number] => {
    const [rank, ns] = one.split(':').map(Number);
    return [run.ranks.findIndex(r => r.rank === rank), ns!];
  }).filter(([rank, ns]) => rank >= 0 && Number.isFinite(ns)));
  patch.scene = null;
  patch.query = REPORT ? '' : query.get('q') ?? '';
  patch.area =
    patch.lit =
    patch.selected =
    patch.second =
      null;
  const [a0, a1] = numbers(query.get('area')?.split(',').slice(0, 2).join(',') ?? null);
  if (a1! > a0!) {
    const wanted = new Set<number>();
    for (const one of query.get('area')!.split(',').slice(2)) {
      const [from, to] = one.split('-').map(Number);
      for (let id = from!; id <= Math.min(to ?? from!, run.lanes.length - 1); ++id) wanted.add(id);
    }
    const known = [...wanted].filter(id => run.lanes[id] !== undefined);
    if (known.length > 0) {
      patch.area = {t0: a0!, t1: a1!, lanes: known};
      patch.panel = 'area';
    }
  }
  patch.panel ??= store.state.panel === 'marks' ? 'marks' : 'none';
  actions.select(null);
  store.change(patch);
  restore(store, query, actions, api, lost).catch(actions.failed);
}

// Requests data from the server: the slices, and the names that are highlighted.
async function restore(store: Store, query: URLSearchParams, actions: Actions, api: Api,
  lost: (what: string) => void): Promise<void>
{
  const selected = await findSlice(store, api, query.get('sel'));
  if (selected) actions.select(selected);
  else if (query.get('sel')) lost(`sel=${query.get('sel')}`);
  const second = await findSlice(store, api, query.get('cmp'));
  if (second) store.change({second});
  else if (query.get('cmp')) lost(`cmp=${query.get('cmp')}`);
  const wish = query.get('lit');
  if (!wish) return;
  const lit = await lightOf(api, wish), [min, max] = numbers(query.get('litdur'));
  if (lit.ids.size > 0) store.change({lit: {...lit, ...(max! >= min! ? {min: min!, max: max!} : {})}});
}

interface Names {
  where: string;
  matches: {name: string; name_id: number}[];
}
// The name itself where there is one, else all that match, as the search has it.
async function lightOf(api: Api, wish: string): Promise<Lit> {
  const regex = /^\/(.+)\/$/.exec(wish);
  const {where, matches} = await api.json<Names>('search', {q: regex ? regex[1]! : wish, regex: regex ? 1 : undefined,
    limit: MOST_NAMES});
  const exact = matches.filter(one => one.name === wish);
  return litBySearch((exact.length > 0 ? exact : matches).map(one => one.name_id), wish, where);
}
