// The time that a finding about a device is about: when it had no work, or when only communication or copies ran. A
// step of one rank:
//
//   compute     [ mm ][ mm ]              [ mm ]
//   comm           [ all_reduce ────]
//   gaps                            ░░░░░░         no stream has work
//   exposed              ▓▓▓▓▓▓▓▓▓▓▓               communication and no computing
import type {Viewport} from '../../chart/viewport';
import type {SlicesAnswer} from '../shell/api';

export interface Stretch {
  lane: number;
  t0: number;
  t1: number;
}
type Pair = readonly [t0: number, t1: number];

// Intervals in order, those that touch joined.
export function joined(list: Pair[]): Pair[] {
  const out: [number, number][] = [];
  for (const [t0, t1] of [...list].sort((a, b) => a[0] - b[0])) {
    const last = out.at(-1);
    if (last && t0 <= last[1]) last[1] = Math.max(last[1], t1);
    else out.push([t0, t1]);
  }
  return out;
}

// The parts of an interval that are in none of `others`, which are joined.
function without([t0, t1]: Pair, others: readonly Pair[]): Pair[] {
  const out: Pair[] = [];
  let low = 0, high = others.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (others[middle]![1] <= t0) low = middle + 1;
    else high = middle;
  }
  let from = t0;
  for (let i = low; i < others.length && others[i]![0] < t1; ++i) {
    if (others[i]![0] > from) out.push([from, others[i]![0]]);
    from = Math.max(from, others[i]![1]);
  }
  if (from < t1) out.push([from, t1]);
  return out;
}

const within = (found: SlicesAnswer, i: number, {t0, t1}: Viewport): Pair | null => {
  const from = Math.max(found.start[i]!, t0), to = Math.min(found.start[i]! + found.dur[i]!, t1);
  return to > from ? [from, to] : null;
};

// Returns when slices with accused(i) ran on a rank's streams while none of these computed, for each stream.
export function exposedOf(found: SlicesAnswer, streams: ReadonlySet<number>, window: Viewport,
  accused: (i: number) => boolean, computes: (i: number) => boolean): Stretch[]
{
  const busy: Pair[] = [], own = new Map<number, Pair[]>();
  for (let i = 0; i < found.count; ++i) {
    const lane = found.lane[i]!, pair = streams.has(lane) ? within(found, i, window) : null;
    if (!pair) continue;
    if (computes(i)) busy.push(pair);
    else if (accused(i)) {
      const list = own.get(lane);
      if (list) list.push(pair);
      else own.set(lane, [pair]);
    }
  }
  const computing = joined(busy);
  return [...own].flatMap(([lane, pairs]) =>
    joined(pairs).flatMap(pair => without(pair, computing)).map(([t0, t1]): Stretch => ({lane, t0, t1}))
  );
}

// Returns when none of a rank's streams has work, between work. The gaps begin within the window, may end after it, and
// are drawn on `lane`.
export function gapsOf(found: SlicesAnswer, streams: ReadonlySet<number>, window: Viewport, lane: number,
  works: (i: number) => boolean): Stretch[]
{
  const busy: Pair[] = [];
  for (let i = 0; i < found.count; ++i) {
    const pair = streams.has(found.lane[i]!) && works(i) ? within(found, i, {t0: window.t0, t1: Infinity}) : null;
    if (pair) busy.push(pair);
  }
  const all = joined(busy);
  return all.slice(1).flatMap(([next], k) => all[k]![1] < window.t1 ? [{lane, t0: all[k]![1], t1: next}] : []);
}

// How long they last together, each moment once.
export const lengthOf = (stretches: readonly Stretch[]): number =>
  joined(stretches.map(({t0, t1}): Pair => [t0, t1])).reduce((sum, [t0, t1]) => sum + t1 - t0, 0);
