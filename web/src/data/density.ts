// Computes the share of many ranks in each kind of work at a time: the ranks of a row together. It keeps the sorted
// begins and ends of each group of cells, with the sums before them. The time that all of them take before t is:
//
//   Σ over begins b < t of (t − b)  −  Σ over ends e < t of (t − e)
//
// so that a pixel costs two searches, however many cells there are.
import type {Cells} from './cells';
import {FORWARD_BACKWARD, Group, KIND_GROUP, MESSAGE_LANE} from './kind';
import {firstIndex, laneRange, type RunModel} from './rows';

// The order is from the bottom of a row to its top. Collectives count where none of the others runs.
export const STACK: readonly Group[] = [Group.Forward, Group.Backward, Group.Weight, Group.Optimizer, Group.Collective];

class Curve {
  private readonly begins: Float64Array;
  private readonly ends: Float64Array;
  private readonly beginSums: Float64Array;
  private readonly endSums: Float64Array;
  constructor(begins: number[], ends: number[], private readonly zero: number) {
    const sums = (of: Float64Array): Float64Array => {
      const out = new Float64Array(of.length + 1);
      for (let i = 0; i < of.length; ++i) out[i + 1] = out[i]! + of[i]!;
      return out;
    };
    this.begins = Float64Array.from(begins, t => t - zero).sort();
    this.ends = Float64Array.from(ends, t => t - zero).sort();
    this.beginSums = sums(this.begins);
    this.endSums = sums(this.ends);
  }
  get empty(): boolean {
    return this.begins.length === 0;
  }
  // Time that its cells take before t, ns.
  before(t: number): number {
    const at = t - this.zero, begun = firstIndex(0, this.begins.length, i => this.begins[i]! >= at),
      ended = firstIndex(0, this.ends.length, i => this.ends[i]! >= at);
    return (begun - ended) * at - (this.beginSums[begun]! - this.endSums[ended]!);
  }
}

export interface Density {
  // Fills shares[k · n + x] with the share of the ranks that is in STACK[k] in column x of n in the window. Cells of a
  // rank overlap, so the sum may exceed all ranks; the excess is cut from the last ones.
  fill(t0: number, t1: number, n: number, shares: Float64Array): void;
}

// Halves of an overlapped pair, and the two of a cell that is both, count half each.
export function makeDensity(cells: Cells, model: RunModel, rows: readonly number[], step: number | null): Density {
  const begins: number[][][] = STACK.map(() => [[], []]), ends: number[][][] = STACK.map(() => [[], []]);
  const add = (group: Group, half: number, cell: number): void => {
    const k = STACK.indexOf(group);
    if (k < 0) return;
    begins[k]![half]!.push(cells.start[cell]!);
    ends[k]![half]!.push(cells.start[cell]! + cells.dur[cell]!);
  };
  let zero = Infinity;
  for (const row of rows)
    model.rows[row]!.lanes.forEach((lane, which) => {
      if (which === MESSAGE_LANE) return;
      const [begin, end] = laneRange(lane, cells, step, -Infinity, Infinity);
      for (let i = begin; i < end; ++i) {
        const cell = lane.cells[i]!, kind = cells.kind[cell]!;
        zero = Math.min(zero, cells.start[cell]!);
        if (kind === FORWARD_BACKWARD) {
          add(Group.Forward, 1, cell);
          add(Group.Backward, 1, cell);
        } else {
          add(KIND_GROUP[kind]!, cells.pair[cell]! >= 0 ? 1 : 0, cell);
        }
      }
    });
  const from = zero < Infinity ? zero : 0;
  const curves = STACK.map((_, k) => [0, 1].map(half => new Curve(begins[k]![half]!, ends[k]![half]!, from)));
  return {
    fill(t0, t1, n, shares) {
      const width = (t1 - t0) / n, most = width * rows.length;
      shares.fill(0, 0, STACK.length * n);
      const used = new Float64Array(n);
      curves.forEach((halves, k) =>
        halves.forEach((curve, half) => {
          if (curve.empty) return;
          let last = curve.before(t0);
          for (let x = 0; x < n; ++x) {
            const now = curve.before(t0 + (x + 1) * width),
              share = Math.min((now - last) / most * (half ? 0.5 : 1), 1 - used[x]!);
            last = now;
            if (share <= 0) continue;
            shares[k * n + x]! += share;
            used[x]! += share;
          }
        })
      );
    },
  };
}

// Returns the density of a row of the layout, kept as long as the cells are.
const kept = new WeakMap<Cells, Map<string, Density>>();
export function densityOf(cells: Cells, model: RunModel, sum: {rows: readonly number[]}, step: number | null): Density {
  const known = kept.get(cells) ?? new Map<string, Density>(),
    key = `${step}/${sum.rows[0]}/${sum.rows.length}/${sum.rows.at(-1)}`;
  kept.set(cells, known);
  let density = known.get(key);
  if (!density) {
    if (known.size >= MOST_KEPT) known.clear();
    known.set(key, density = makeDensity(cells, model, sum.rows, step));
  }
  return density;
}
const MOST_KEPT = 256;
