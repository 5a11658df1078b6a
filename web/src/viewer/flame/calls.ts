// Calls by call path as the program added them up (/api/calls), and what someone chose of them: one clock, the ranks A,
// perhaps others to hold against them.
import type {Api} from '../shell/api';
import {hashed} from '../shell/file_colour';
import {f64, u32, u8, type Column} from '../shell/wire';

// The program's FrameKind (src/profile/call_tree.h), and `rest`: what below its parent is left out, added up.
export const KINDS = [
  'root',
  'python',
  'operator',
  'annotation',
  'runtime',
  'device',
  'other',
  'communication',
  'memory',
  'rest',
] as const;
export type FrameKind = typeof KINDS[number];
const REST = KINDS.indexOf('rest');

export interface CallRank {
  rank: number;
  other: boolean;
  steps: number;
}
interface Header {
  left_out: number;
  cut_share: number;
  ranks: CallRank[];
  frames: string[];
  columns: Column[];
}

export interface Calls {
  count: number; // nodes; 0 is the root, parents stand before what they call
  parent: Uint32Array;
  frame: Uint32Array;
  kind: Uint8Array;
  frames: string[];
  ranks: CallRank[];
  host: Float64Array[];
  device: Float64Array[];
  calls: Float64Array[]; // by rank, then node; ns of the node itself
  leftOut: number;
  cutShare: number;
  key: Uint32Array; // of the path, the same in every opening of the run: what addresses name nodes by
}

// The hash of a path's texts.
export const keyOf = (above: number, kind: number, name: string): number =>
  hashed(Math.imul(above ^ (kind + 1), 16777619), name);

// Lanes of the timeline and a window of it: a server adds up only these.
export interface CallArea {
  lanes?: string;
  t0?: number;
  t1?: number;
}
export async function loadCalls(api: Api, area: CallArea): Promise<Calls> {
  const wire = await api.longWire<Header>('calls', {...area}), {ranks, frames, left_out, cut_share} = wire.header;
  const parent = u32(wire, 'parent'), frame = u32(wire, 'frame'), kind = u8(wire, 'kind'), count = parent.length;
  const apart = (values: Float64Array): Float64Array[] =>
    ranks.map((_, r) => values.subarray(r * count, (r + 1) * count));
  const key = new Uint32Array(count);
  key[0] = 2166136261;
  for (let n = 1; n < count; ++n) key[n] = keyOf(key[parent[n]!]!, kind[n]!, frames[frame[n]!]!);
  return {count, parent, frame, kind, frames, ranks, host: apart(f64(wire, 'host_ns')),
    device: apart(f64(wire, 'device_ns')), calls: apart(f64(wire, 'calls')), leftOut: left_out, cutShare: cut_share,
    key};
}

// Values of the ranks A and of those they are compared with; 0 everywhere if there are none.
export interface Pair {
  a: Float64Array;
  b: Float64Array;
}
export interface Tree {
  count: number;
  parent: Uint32Array;
  frame: Uint32Array;
  kind: Uint8Array;
  key: Uint32Array;
  children: number[][]; // most time first
  self: Pair;
  total: Pair;
  calls: Pair;
  weight: Float64Array; // what widths stand for: A's total, or the mean of both
}
export type Clock = 'host' | 'device';
// "all", "3", "other", "other:3": ranks of the run, or of the second one.
export type Ranks = string;

export const ranksOf = (calls: Calls, which: Ranks): number[] => {
  const other = which.startsWith('other'), number = which.replace(/^other:?/, '');
  return [...calls.ranks.keys()].filter(r =>
    calls.ranks[r]!.other === other && (number === '' || number === 'all' || String(calls.ranks[r]!.rank) === number)
  );
};

// Two runs of different length are compared by the step, where both say how many they took.
export const isPerStep = (calls: Calls, a: readonly number[], b: readonly number[]): boolean =>
  b.length > 0 && calls.ranks[a[0]!]?.other !== calls.ranks[b[0]!]?.other &&
  [...a, ...b].every(r => calls.ranks[r]!.steps > 0);

function mean(columns: readonly Float64Array[], calls: Calls, of: readonly number[], perStep: boolean): Float64Array {
  const sum = new Float64Array(calls.count);
  for (const r of of) {
    const column = columns[r]!, by = of.length * (perStep ? calls.ranks[r]!.steps : 1);
    for (let n = 0; n < sum.length; ++n) sum[n]! += column[n]! / by;
  }
  return sum;
}

// Totals, children in order, widths: of a tree whose own times are known.
export function finished(tree: Omit<Tree, 'children' | 'total' | 'weight'>, compared: boolean): Tree {
  const {count, parent, self} = tree, total = {a: self.a.slice(), b: self.b.slice()};
  for (let n = count - 1; n > 0; --n) {
    total.a[parent[n]!]! += total.a[n]!;
    total.b[parent[n]!]! += total.b[n]!;
  }
  const weight = compared ? total.a.map((a, n) => (a + total.b[n]!) / 2) : total.a;
  const children: number[][] = Array.from({length: count}, () => []);
  for (let n = 1; n < count; ++n) if (weight[n]! > 0) children[parent[n]!]!.push(n);
  for (const list of children)
    list.sort((x, y) =>
      (tree.kind[x] === REST ? 1 : 0) - (tree.kind[y] === REST ? 1 : 0) || weight[y]! - weight[x]! || x - y
    );
  return {...tree, total, weight, children};
}

export function treeOf(calls: Calls, clock: Clock, a: readonly number[], b: readonly number[]): Tree {
  const perStep = isPerStep(calls, a, b), columns = clock === 'host' ? calls.host : calls.device;
  const pair = (from: readonly Float64Array[]): Pair => ({a: mean(from, calls, a, perStep),
    b: mean(from, calls, b, perStep)});
  const self = pair(columns);
  // Damaged times.
  for (const values of [self.a, self.b]) for (let n = 0; n < values.length; ++n) if (values[n]! < 0) values[n] = 0;
  return finished({count: calls.count, parent: calls.parent, frame: calls.frame, kind: calls.kind, key: calls.key, self,
    calls: pair(calls.calls)}, b.length > 0);
}

// ---- functions, and one of them with its callers and callees ------------------------------------------------------

export const functionOf = (tree: Tree, node: number): number => tree.frame[node]! * 16 + tree.kind[node]!;

export interface Functions {
  id: number;
  frame: number;
  kind: number;
  self: [number, number];
  total: [number, number];
  calls: [number, number];
  nodes: number[];
}
// Returns every function with all its nodes. The total counts only nodes outside of its other nodes, so that recursion
// counts once.
export function functionsOf(tree: Tree): Map<number, Functions> {
  const found = new Map<number, Functions>();
  for (let n = 1; n < tree.count; ++n) {
    if (tree.kind[n] === REST || tree.weight[n]! <= 0) continue;
    const id = functionOf(tree, n);
    let one = found.get(id);
    if (!one)
      found.set(id,
        one = {id, frame: tree.frame[n]!, kind: tree.kind[n]!, self: [0, 0], total: [0, 0], calls: [0, 0], nodes: []});
    one.self[0] += tree.self.a[n]!;
    one.self[1] += tree.self.b[n]!;
    one.calls[0] += tree.calls.a[n]!;
    one.calls[1] += tree.calls.b[n]!;
    let up = tree.parent[n]!;
    while (up !== 0 && functionOf(tree, up) !== id) up = tree.parent[up]!;
    if (up !== 0) continue;
    one.total[0] += tree.total.a[n]!;
    one.total[1] += tree.total.b[n]!;
    one.nodes.push(n); // the outermost
  }
  return found;
}

class Builder {
  private readonly at = new Map<string, number>();
  readonly parent: number[] = [0];
  readonly frame: number[] = [0];
  readonly kind: number[] = [0];
  readonly key: number[] = [2166136261];
  readonly self: [number[], number[]] = [[0], [0]];
  readonly calls: [number[], number[]] = [[0], [0]];
  constructor(private readonly frames: readonly string[]) {}

  child(parent: number, frame: number, kind: number): number {
    const name = `${parent} ${frame} ${kind}`;
    let node = this.at.get(name);
    if (node !== undefined) return node;
    this.at.set(name, node = this.parent.length);
    this.parent.push(parent);
    this.frame.push(frame);
    this.kind.push(kind);
    this.key.push(keyOf(this.key[parent]!, kind, this.frames[frame]!));
    for (const list of [...this.self, ...this.calls]) list.push(0);
    return node;
  }
  add(node: number, a: number, b: number, calls: [number, number]): void {
    this.self[0][node]! += a;
    this.self[1][node]! += b;
    this.calls[0][node]! += calls[0];
    this.calls[1][node]! += calls[1];
  }
  finish(compared: boolean): Tree {
    const pair = ([a, b]: [number[], number[]]): Pair => ({a: Float64Array.from(a), b: Float64Array.from(b)});
    return finished({count: this.parent.length, parent: Uint32Array.from(this.parent),
      frame: Uint32Array.from(this.frame), kind: Uint8Array.from(this.kind), key: Uint32Array.from(this.key),
      self: pair(this.self), calls: pair(this.calls)}, compared);
  }
}

// Below the function what it calls, all its calls together; above it who calls it and what of its time is theirs.
export function sandwichOf(calls: Calls, tree: Tree, one: Functions,
  compared: boolean): {callers: Tree; callees: Tree}
{
  const up = new Builder(calls.frames), down = new Builder(calls.frames);
  const callsOf = (n: number): [number, number] => [tree.calls.a[n]!, tree.calls.b[n]!];
  for (const n of one.nodes) {
    let at = up.child(0, one.frame, one.kind);
    for (let above = tree.parent[n]!; above !== 0; above = tree.parent[above]!)
      at = up.child(at, tree.frame[above]!, tree.kind[above]!);
    up.add(at, tree.total.a[n]!, tree.total.b[n]!, callsOf(n));
    const stack: [node: number, above: number][] = [[n, 0]];
    for (let next = stack.pop(); next; next = stack.pop()) {
      const [node, above] = next, place = down.child(above, tree.frame[node]!, tree.kind[node]!);
      down.add(place, tree.self.a[node]!, tree.self.b[node]!, callsOf(node));
      for (const child of tree.children[node]!) stack.push([child, place]);
    }
  }
  return {callers: up.finish(compared), callees: down.finish(compared)};
}

export function nodeOfKey(tree: Tree, key: string): number {
  const wanted = parseInt(key, 16);
  return tree.key.findIndex((one, n) => one === wanted && tree.weight[n]! > 0);
}
export const keyText = (tree: Tree, node: number): string => tree.key[node]!.toString(16).padStart(8, '0');
