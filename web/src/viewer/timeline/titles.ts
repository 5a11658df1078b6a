// Returns names of ranks and lanes.
import {t, type Key} from '../../i18n/i18n';
import {duration} from '../../format';
import type {Lane, Rank} from '../shell/api';
import {groupsOfOne} from './layout';
import type {Store} from './store';

export const rankTitle = (rank: Rank): string => t('rank', rank.rank);

export function rankNote(store: Store, index: number): string {
  const rank = store.run.ranks[index]!, {shifts} = store.state, notes: string[] = [];
  const grouping = groupsOfOne(store.run, store.state.grouping) ? 'none' : store.state.grouping; // no heading says it
  if (rank.stage >= 0 && grouping !== 'stage') notes.push(t('note.stage', rank.stage));
  if (rank.dp >= 0 && grouping !== 'dp' && store.run.groupings.includes('dp')) notes.push(t('note.dp', rank.dp));
  if (rank.machine_name && grouping !== 'machine' && store.run.groupings.includes('machine'))
    notes.push(rank.machine_name);
  const shift = shifts.get(index) ?? 0;
  if (shift !== 0) notes.unshift(`${shift > 0 ? '+' : '−'}${duration(Math.abs(shift))}`);
  return notes.join(' · ');
}

const CELL_LANES = new Set(['compute', 'sends', 'receives', 'collectives', 'other']);
export function laneName(lane: Lane): string {
  if (lane.type === 'cells' && CELL_LANES.has(lane.name)) return t(`cells.${lane.name}` as Key);
  // Readers say "thread 7" of what has a number and no name, streams of the device too.
  const number = lane.type === 'stream' || lane.type === 'thread' ? /^(?:thread|stream) (\d+)$/.exec(lane.name) : null;
  return number ? t(`lane.named.${lane.type as 'stream' | 'thread'}`, number[1]!) : lane.name;
}
export function laneTitle(store: Store, lane: Lane, withRank: boolean): string {
  return withRank && store.run.ranks.length > 1 ? `${rankTitle(store.run.ranks[lane.rank_index]!)} · ${laneName(lane)}`
    : laneName(lane);
}
// '' where the name says it.
export function kindOfLane(lane: Lane): string {
  const kind = lane.type === 'cells' ? '' : t(`lane.${lane.type}`);
  return laneName(lane).toLowerCase().includes(kind.toLowerCase()) ? '' : kind;
}

// "rank 3 · stream 7", for panels and the live line.
export const placeTitle = (store: Store, lane: number): string => {
  const at = store.run.lanes[lane]!;
  return `${rankTitle(store.run.ranks[at.rank_index]!)} · ${laneName(at)}`;
};
// Part of an address: must not contain numbers that change when the server restarts.
export const laneKey = (store: Store, lane: number): string => {
  const at = store.run.lanes[lane]!;
  return `${store.run.ranks[at.rank_index]!.rank}/${at.name}`;
};
export function laneOfKey(store: Store, key: string): number {
  return store.run.lanes.findIndex(lane => laneKey(store, lane.id) === key);
}
// The lanes that an address may mean: one of before sends and receives were apart has both as "messages".
export const lanesOfKey = (store: Store, key: string): number[] =>
  (key.endsWith('/messages') ? ['messages', 'sends', 'receives'].map(name => key.replace(/messages$/, name)) : [key])
    .map(one => laneOfKey(store, one)).filter(id => id >= 0);
