// Where rows stand: groups, ranks and lanes from top to bottom. CSS pixels, pinned lanes from the top of their own
// strip.
import type {Lane, Rank, Run} from '../shell/api';
import type {State} from './store';

export interface DisplayRow {
  kind: 'group' | 'rank' | 'lane';
  key: string;
  y: number;
  h: number;
  level: number; // of the label's indent
  lane: number; // lane id; of a collapsed rank the lane that stands for it; −1 none
  rows: number; // rows of the lane that are shown
  more: number; // rows that are not
  rank: number; // index into run.ranks; −1 for groups
  merged: boolean; // the rank has this one lane: no heading of its own
  collapsed: boolean;
  value: number; // of a group: the machine, stage or replica
  count: number; // of a group: ranks in it
}

export interface Layout {
  rows: DisplayRow[];
  height: number;
  pinned: DisplayRow[];
  pinnedHeight: number;
  rowHeight: number;
}

export const AXIS_HEIGHT = 34;
export const MAX_ROWS = [40, 24, 16, 10, 6]; // of a lane, until it is unfolded: the most with which all still fits
const HEADING = 24, GAP = 2, COUNTER = 40, READABLE = 22; // with the gap a label is a target of 24 px
export const LEAST_ROW = 3, MOST_ROW = 46;

const groupValue = (rank: Rank, grouping: State['grouping']): number =>
  grouping === 'machine' ? rank.machine : grouping === 'stage' ? rank.stage : grouping === 'dp' ? rank.dp : 0;
const rankKey = (index: number): string => `r${index}`;

// A group of one rank says nothing that the rank's own line could not: where all are such they have no lines of their
// own.
const lone = new WeakMap<Run, Map<State['grouping'], boolean>>();
export function groupsOfOne(run: Run, grouping: State['grouping']): boolean {
  if (grouping === 'none') return false;
  const known = lone.get(run) ?? new Map<State['grouping'], boolean>();
  lone.set(run, known);
  let alone = known.get(grouping);
  if (alone === undefined)
    known.set(grouping, alone = new Set(run.ranks.map(rank => groupValue(rank, grouping))).size === run.ranks.length);
  return alone;
}

interface Shape {
  lane: Lane;
  rows: number;
  more: number;
}

function shapeOf(lane: Lane, state: State, most: number): Shape {
  const all = lane.type === 'counter' ? 1 : Math.max(lane.rows, 1);
  // Rows below in which nothing lasts, as of sends that only hand over, are folded: a third of the window for
  // hairlines.
  const rows = state.expanded.has(lane.id) ? all : Math.min(all, most, Math.max(lane.lasting_rows ?? all, 1));
  return {lane, rows, more: all - rows};
}

// Nested rows are lower than a lane's first one when there is room to spare.
export const laneHeight = (lane: Lane, rows: number, rowHeight: number): number =>
  lane.type === 'counter' ? Math.max(Math.min(COUNTER, rowHeight * 2), rowHeight) : rows * rowHeight;

export function lanesByRank(run: Run, state: State): Lane[][] {
  const lanes: Lane[][] = run.ranks.map(() => []);
  for (const id of state.laneOrder) {
    const lane = run.lanes[id]!;
    if (!state.hidden.has(id)) lanes[lane.rank_index]!.push(lane);
  }
  return lanes;
}

// The height of a row at which everything fits, within what can be read.
function fittingHeight(shapes: number, headings: number, height: number): number {
  const free = height - headings * (HEADING + GAP);
  return Math.max(READABLE, Math.min(MOST_ROW, Math.floor(free / Math.max(shapes, 1)) - GAP));
}

export function makeLayout(run: Run, state: State, height: number): Layout {
  const byRank = lanesByRank(run, state), single = run.ranks.length === 1;
  const deepest = run.lanes.reduce((most, lane) => Math.max(most, lane.rows), 1), free = height - AXIS_HEIGHT;
  const alone = groupsOfOne(run, state.grouping);
  const headings = byRank.filter(lanes => lanes.length > 1).length + (state.grouping === 'none' || alone ? 0 : 4);
  let shapes: Shape[][] = [], rowHeight = state.rowHeight, most = 0;
  for (most of deepest > MAX_ROWS.at(-1)! ? MAX_ROWS : MAX_ROWS.slice(-1)) {
    shapes = byRank.map(lanes => lanes.map(lane => shapeOf(lane, state, most)));
    const count = shapes.flat().reduce((sum, shape) => sum + shape.rows, 0), highest = run.lanes.some(lane =>
        lane.type !== 'cells'
      ) ? 30
      : MOST_ROW;
    if (state.rowHeight === 0) rowHeight = Math.min(fittingHeight(count, headings, free), highest);
    if (headings * HEADING + count * (rowHeight + GAP) <= free) break;
  }
  const rows: DisplayRow[] = [], heading = Math.min(HEADING, Math.max(rowHeight, 16)), gap = rowHeight < 8 ? 1 : GAP;
  let y = 4;
  const blank = {lane: -1, rows: 0, more: 0, rank: -1, merged: false, collapsed: false, value: 0, count: 0};
  const addLane = (shape: Shape, level: number, merged: boolean, into: DisplayRow[], prefix: string): void => {
    const h = laneHeight(shape.lane, shape.rows, rowHeight);
    into.push({...blank, kind: 'lane', key: `${prefix}${shape.lane.id}`, y, h, level, lane: shape.lane.id,
      rows: shape.rows, more: shape.more, rank: shape.lane.rank_index, merged});
    y += h + gap;
  };
  const addRank = (index: number, level: number): void => {
    const lanes = shapes[index]!, key = rankKey(index), collapsed = state.collapsed.has(key);
    if (lanes.length === 0) return;
    if (lanes.length === 1) return addLane(lanes[0]!, level, true, rows, 'l');
    const first = lanes.find(shape => shape.lane.type !== 'counter') ?? lanes[0]!;
    const h = collapsed ? Math.max(heading, rowHeight) : heading;
    rows.push({...blank, kind: 'rank', key, y, h, level, rank: index, collapsed, lane: collapsed ? first.lane.id : -1,
      rows: collapsed ? 1
        : 0});
    y += h + gap;
    if (!collapsed) { for (const shape of lanes) addLane(shape, level + 1, false, rows, 'l'); }
    if (!single && !collapsed) y += rowHeight < 8 ? 2 : 6;
  };

  if (state.grouping === 'none') {
    for (const index of state.rankOrder) addRank(index, 0);
  } else {
    const groups = new Map<number, number[]>();
    for (const index of state.rankOrder) {
      const value = groupValue(run.ranks[index]!, state.grouping);
      const members = groups.get(value);
      if (members) members.push(index);
      else groups.set(value, [index]);
    }
    for (const [value, members] of [...groups].sort((a, b) => a[0] - b[0])) {
      const key = `g${state.grouping}${value}`, collapsed = state.collapsed.has(key);
      if (alone) {
        addRank(members[0]!, 0);
        continue;
      }
      rows.push({...blank, kind: 'group', key, y, h: HEADING, level: 0, value, count: members.length, collapsed});
      y += HEADING + gap;
      if (!collapsed) { for (const index of members) addRank(index, 1); }
    }
  }
  const total = y + 8;
  y = 2;
  const pinned: DisplayRow[] = [];
  for (const id of state.pinned)
    // Of pinned lanes a scene unfolds the one in which its slice is.
    addLane(
      shapeOf(run.lanes[id]!, {...state, expanded: state.scene?.lanes.has(id) ? state.expanded : new Set()},
        MAX_ROWS.at(-1)!),
      0,
      true,
      pinned,
      'p',
    );
  return {rows, height: total, pinned, pinnedHeight: pinned.length > 0 ? y + 4 : 0, rowHeight};
}

// Returns the rows that touch [y0, y1); rows are in order.
export function rowsWithin(rows: readonly DisplayRow[], y0: number, y1: number): DisplayRow[] {
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.y + rows[middle]!.h <= y0) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < rows.length && rows[end]!.y < y1) ++end;
  return rows.slice(low, end);
}
