// Two steps, of one run or of two, cell by cell: which cell of one is which of the other, and how they differ.
//
// Ranks match by replica, stage and place among the ranks of both. On a rank, cells match by kind, chunk and
// micro-batch (by the order of its label in the step), equal ones by order of time. `stageline diff` matches operations
// in the same way.
import type {Cells} from './cells';
import {MESSAGE_LANE} from './kind';
import type {Part} from './report';
import {laneRange, type Lane, type RunModel} from './rows';

export const SAME = 0, LONGER = 1, SHORTER = 2, MOVED = 4, ALONE = 8;

export interface Differences {
  marks: Uint8Array; // by cell: LONGER or SHORTER than its like, MOVED in the order, or ALONE
  other: Int32Array; // by cell: its like; −1 none
}
export interface Side {
  cells: Cells;
  model: RunModel;
  parts: Part[];
  step: number;
}
export interface Compared {
  a: Differences;
  b: Differences;
  matched: number;
  longer: number;
  shorter: number;
  moved: number;
  alone: [number, number];
}

const LEAST_SHARE = 0.1; // of the shorter one; smaller differences are shown in numbers only
const LEAST_SCATTER = 2; // times what cells of the kind on this rank scatter by
const MAD_TO_SIGMA = 1.4826;

// "3/0/1": replica, stage, place among the ranks of both.
function placesOf(parts: Part[]): Map<string, number> {
  const places = new Map<string, number>(), seen = new Map<string, number>();
  parts.map((part, i) => ({part, i})).sort((x, y) => x.part.rank - y.part.rank).forEach(({part, i}) => {
    const key = `${part.dp}/${part.stage}`, nth = seen.get(key) ?? 0;
    seen.set(key, nth + 1);
    places.set(`${key}/${nth}`, i);
  });
  return places;
}
const stepCells = (side: Side, lane: Lane): Uint32Array =>
  lane.cells.subarray(...laneRange(lane, side.cells, side.step, -Infinity, Infinity));

// Runs may number micro-batches from anywhere: by chunk, labels to their order.
function labelsOf(side: Side): Map<number, Map<number, number>> {
  const labels = new Map<number, Set<number>>();
  for (const row of side.model.rows)
    for (const cell of stepCells(side, row.lanes[0]!)) {
      const chunk = side.cells.chunk[cell]!, own = labels.get(chunk);
      if (own) own.add(side.cells.microBatch[cell]!);
      else labels.set(chunk, new Set([side.cells.microBatch[cell]!]));
    }
  return new Map(
    [...labels].map(([chunk, own]) => [
      chunk,
      new Map([...own].filter(mb => mb >= 0).sort((x, y) => x - y).map((mb, i) => [mb, i])),
    ]),
  );
}

// By cell of `list`, what it is, in 52 bits: kind, chunk, micro-batch, and which of equal ones.
function keysOf(side: Side, list: Uint32Array, labels: Map<number, Map<number, number>>): number[] {
  const {kind, chunk, microBatch} = side.cells, seen = new Map<number, number>();
  return Array.from(list, cell => {
    const label = (labels.get(chunk[cell]!)?.get(microBatch[cell]!) ?? -1) + 1 & 0xfffff;
    const key = ((kind[cell]! * 4096 + (chunk[cell]! + 1 & 4095)) * 0x100000 + label) * 65536, nth = seen.get(key) ?? 0;
    seen.set(key, nth + 1);
    return key + (nth & 65535);
  });
}

// Returns by kind and chunk the deviation of durations from their median, as a normal scatter; kinds with few cells
// have none.
function scatterOf({cells}: Side, list: Uint32Array): Map<number, number> {
  const groups = new Map<number, number[]>(), scatter = new Map<number, number>();
  for (const cell of list) {
    const key = groupOf(cells, cell), own = groups.get(key);
    if (own) own.push(cells.dur[cell]!);
    else groups.set(key, [cells.dur[cell]!]);
  }
  const middle = (values: number[]): number => values.sort((x, y) => x - y)[values.length >> 1]!;
  for (const [key, durs] of groups) {
    const usual = middle(durs);
    scatter.set(key, middle(durs.map(dur => Math.abs(dur - usual))) * MAD_TO_SIGMA);
  }
  return scatter;
}
const groupOf = (cells: Cells, cell: number): number => cells.kind[cell]! * 65536 + (cells.chunk[cell]! & 65535);

// Positions whose values keep their order: the longest that do. The others have moved. O(n log n).
export function keptInOrder(values: readonly number[]): boolean[] {
  const tails: number[] = [], before = new Int32Array(values.length).fill(-1), kept = values.map(() => false);
  values.forEach((value, i) => {
    let low = 0, high = tails.length;
    while (low < high) {
      const at = (low + high) >> 1;
      if (values[tails[at]!]! < value) low = at + 1;
      else high = at;
    }
    if (low > 0) before[i] = tails[low - 1]!;
    tails[low] = i;
  });
  for (let i = tails.at(-1) ?? -1; i >= 0; i = before[i]!) kept[i] = true;
  return kept;
}

const blank = (count: number): Differences => ({marks: new Uint8Array(count), other: new Int32Array(count).fill(-1)});

// Messages are skipped: the cells that they connect show their content. O(cells of both steps · log).
export function compareSteps(a: Side, b: Side): Compared {
  const made: Compared = {a: blank(a.cells.count), b: blank(b.cells.count), matched: 0, longer: 0, shorter: 0, moved: 0,
    alone: [0, 0]};
  const places = placesOf(b.parts), labels = [labelsOf(a), labelsOf(b)] as const, taken = new Set<number>();
  const aloneOf = (side: 0 | 1, list: Uint32Array): void => {
    const {marks, other} = side === 0 ? made.a : made.b;
    for (const cell of list)
      if (other[cell]! < 0) {
        marks[cell] = ALONE;
        ++made.alone[side];
      }
  };
  for (const [place, partA] of placesOf(a.parts)) {
    const partB = places.get(place), rowA = a.model.rows[a.model.rowOfPart[partA]!]!;
    if (partB !== undefined) taken.add(partB);
    const rowB = partB === undefined ? null : b.model.rows[b.model.rowOfPart[partB]!]!;
    rowA.lanes.forEach((lane, k) => {
      if (k === MESSAGE_LANE) return;
      const listA = stepCells(a, lane), listB = rowB ? stepCells(b, rowB.lanes[k]!) : new Uint32Array(0);
      const at = new Map(keysOf(b, listB, labels[1]).map((key, i) => [key, i])),
        scatters = [scatterOf(a, listA), scatterOf(b, listB)] as const;
      const pairs = keysOf(a, listA, labels[0]).flatMap((key, i) => {
        const j = at.get(key);
        return j === undefined ? [] : [[i, j] as const];
      });
      const kept = k === 0 ? keptInOrder(pairs.map(([, j]) => j)) : null;
      pairs.forEach(([i, j], nth) => {
        const cellA = listA[i]!, cellB = listB[j]!, durA = a.cells.dur[cellA]!, durB = b.cells.dur[cellB]!;
        made.a.other[cellA] = cellB;
        made.b.other[cellB] = cellA;
        ++made.matched;
        const group = groupOf(a.cells, cellA),
          least = Math.max(LEAST_SHARE * Math.min(durA, durB),
            LEAST_SCATTER * Math.hypot(scatters[0].get(group) ?? 0, scatters[1].get(group) ?? 0));
        if (k === 0 && Math.abs(durB - durA) > least) {
          const longer = durB > durA;
          made.a.marks[cellA]! |= longer ? SHORTER : LONGER;
          made.b.marks[cellB]! |= longer ? LONGER : SHORTER;
          if (longer) ++made.longer;
          else ++made.shorter;
        }
        if (kept && !kept[nth]) {
          made.a.marks[cellA]! |= MOVED;
          made.b.marks[cellB]! |= MOVED;
          ++made.moved;
        }
      });
      if (k !== 0) return;
      aloneOf(0, listA);
      aloneOf(1, listB);
    });
  }
  for (const partB of places.values())
    if (!taken.has(partB)) aloneOf(1, stepCells(b, b.model.rows[b.model.rowOfPart[partB]!]!.lanes[0]!));
  return made;
}
