// The view in the address, so that a link shows what was seen. Slices by lane, start and duration, never by number.
import type {Actions} from './actions';
import {listOf, type Api} from './api';
import type {Grouping} from './api';
import {plainQuery, safeDecode} from './route';
import type {Mark, SliceRef, State, Store} from './store';
import {laneKey, laneOfKey} from './titles';

const MOST_LIST = 2000;  // characters: an address is passed on by people

const slice = (store: Store, ref: SliceRef): string => `${laneKey(store, ref.lane)}~${ref.start}~${ref.dur}`;
const lanes = (store: Store, ids: readonly number[]): string => ids.map(id => laneKey(store, id)).join('~');

export function toQuery(store: Store): string {
  const {state} = store, query = new URLSearchParams();
  query.set('v', `${Math.round(state.view.t0)},${Math.round(state.view.t1)}`);
  if (state.selected) query.set('sel', slice(store, state.selected));
  if (state.second) query.set('cmp', slice(store, state.second));
  const area = state.area ? listOf(state.area.lanes) : '';
  if (state.area && area.length < MOST_LIST) query.set('area', `${Math.round(state.area.t0)},${Math.round(state.area.t1)},${area}`);
  if (state.pinned.length > 0) query.set('pin', lanes(store, state.pinned));
  if (state.hidden.size > 0) query.set('hide', lanes(store, [...state.hidden]));
  if (state.collapsed.size > 0) query.set('fold', [...state.collapsed].join('~'));
  if (state.marks.length > 0) query.set('marks',
      state.marks.map(mark => `${Math.round(mark.t)}:${encodeURIComponent(mark.text)}`).join('~'));
  if (state.shifts.size > 0) query.set('shift', [...state.shifts].map(([rank, ns]) => `${store.run.ranks[rank]!.rank}:${ns}`).join('~'));
  if (state.flows) query.set('flows', '1');
  if (state.rowHeight > 0) query.set('h', String(state.rowHeight));
  query.set('by', state.grouping);
  return plainQuery(query);
}

const numbers = (text: string | null): number[] => (text ?? '').split(',').map(Number);

async function findSlice(store: Store, api: Api, text: string | null): Promise<SliceRef | null> {
  if (!text) return null;
  const parts = text.split('~'), dur = Number(parts.pop()), start = Number(parts.pop()), lane = laneOfKey(store, parts.join('~'));
  if (lane < 0 || !Number.isFinite(start) || !Number.isFinite(dur)) return null;
  const found = await api.slices({lanes: lane, t0: start, t1: start + Math.max(dur, 1), min_ns: dur, limit: 1000});
  for (let i = 0; i < found.count; ++i)
    if (found.start[i] === start && found.dur[i] === dur)
      return {lane, slice: found.slice[i]!, row: found.row[i]!, start, dur, kind: found.kind[i]!, nameId: found.name[i]!,
          name: found.names.get(found.name[i]!) ?? ''};
  return null;
}

export function fromQuery(store: Store, text: string, actions: Actions, api: Api): void {
  const query = new URLSearchParams(text), {run} = store, patch: Partial<State> = {};
  const [t0, t1] = numbers(query.get('v'));
  if (t1! > t0!) patch.view = {t0: t0!, t1: t1!};
  const ids = (key: string): number[] | null => query.has(key) ? query.get(key)!.split('~').map(one => laneOfKey(store, one))
      .filter(id => id >= 0) : null;
  patch.pinned = ids('pin') ?? [];
  patch.hidden = new Set(ids('hide') ?? []);
  patch.collapsed = new Set((query.get('fold') ?? '').split('~').filter(Boolean));
  const by = query.get('by');
  if (by === 'none' || run.groupings.includes(by as Grouping)) patch.grouping = by as State['grouping'];
  patch.flows = query.get('flows') === '1';
  const height = Number(query.get('h'));
  if (height >= 3 && height <= 60) patch.rowHeight = height;
  patch.marks = (query.get('marks') ?? '').split('~').filter(Boolean).map((one): Mark => {
    const at = one.indexOf(':');
    return {t: Number(one.slice(0, at)), text: safeDecode(one.slice(at + 1))};
  }).filter(mark => Number.isFinite(mark.t));
  patch.shifts = new Map((query.get('shift') ?? '').split('~').filter(Boolean).map((one): [number, number] => {
    const [rank, ns] = one.split(':').map(Number);
    return [run.ranks.findIndex(r => r.rank === rank), ns!];
  }).filter(([rank, ns]) => rank >= 0 && Number.isFinite(ns)));
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
  store.change(patch);
  findSlice(store, api, query.get('sel')).then(found => { if (found) actions.select(found); })
    .then(() => findSlice(store, api, query.get('cmp'))).then(found => { if (found) store.change({second: found}); }).catch(actions.failed);
}
