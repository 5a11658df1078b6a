// What ranks and lanes are called.
import {duration} from '../format';
import type {Lane, Rank} from './api';
import type {Store} from './store';
import {w, type Word} from './words';

export const rankTitle = (rank: Rank): string => w('rank', rank.rank);

export function rankNote(store: Store, index: number): string {
  const rank = store.run.ranks[index]!, {grouping, shifts} = store.state, notes: string[] = [];
  if (rank.stage >= 0 && grouping !== 'stage') notes.push(w('note.stage', rank.stage));
  if (rank.dp >= 0 && grouping !== 'dp' && store.run.groupings.includes('dp')) notes.push(w('note.dp', rank.dp));
  if (rank.machine_name && grouping !== 'machine' && store.run.groupings.includes('machine')) notes.push(rank.machine_name);
  const shift = shifts.get(index) ?? 0;
  if (shift !== 0) notes.unshift(`${shift > 0 ? '+' : '−'}${duration(Math.abs(shift))}`);
  return notes.join(' · ');
}

const CELL_LANES = new Set(['compute', 'messages', 'collectives', 'other']);
export function laneName(lane: Lane): string {
  return lane.type === 'cells' && CELL_LANES.has(lane.name) ? w(`cells.${lane.name}` as Word) : lane.name;
}
export function laneTitle(store: Store, lane: Lane, withRank: boolean): string {
  return withRank && store.run.ranks.length > 1 ? `${rankTitle(store.run.ranks[lane.rank_index]!)} · ${laneName(lane)}` : laneName(lane);
}
export const kindOfLane = (lane: Lane): string => (lane.type === 'cells' ? '' : w(`lane.${lane.type}`));

// "rank 3 · stream 7", for panels and the live line.
export const placeTitle = (store: Store, lane: number): string => {
  const at = store.run.lanes[lane]!;
  return `${rankTitle(store.run.ranks[at.rank_index]!)} · ${laneName(at)}`;
};
// Of an address: no number that a server might give out differently next time.
export const laneKey = (store: Store, lane: number): string => {
  const at = store.run.lanes[lane]!;
  return `${store.run.ranks[at.rank_index]!.rank}/${at.name}`;
};
export function laneOfKey(store: Store, key: string): number {
  return store.run.lanes.findIndex(lane => laneKey(store, lane.id) === key);
}
