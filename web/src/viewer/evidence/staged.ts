// Turns a finding into a scene of the timeline. The scene is the window, the pinned lanes, the highlights in them, and
// the slice, the pair of slices or the pause that shows it best. Its accused work comes from rules.ts. The server or
// the report finds its slices, as for all other questions.
import type {Viewport} from '../../chart/viewport';
import {fit} from '../../chart/viewport';
import type {Finding} from '../../data/report';
import type {Api, Lane, Run, SlicesAnswer, Step} from '../shell/api';
import {refAt, type Area, type SliceRef} from '../shell/slice_facts';
import {accusedOf, type Accused} from './rules';
import {exposedOf, gapsOf, lengthOf, type Stretch} from './stretches';

// The lanes that a finding accuses, highlighted in the timeline; lanes that are neither accused nor peers are dimmed.
export interface Light {
  key: string; // the finding, as addresses say it
  lanes: ReadonlySet<number>; // the accused ones; none: all
  peers: ReadonlySet<number>; // the lanes that they are compared with: half as bright
  kinds: ReadonlySet<number> | null;
  names: ReadonlySet<number> | null; // null: any
  microBatch: number; // −1: any
  t0: number;
  t1: number;
  stretches: Stretches | null; // time that is itself the evidence; all work is dim then
}
export interface Stretches {
  kind: 'exposed' | 'gaps';
  rank: number; // index into run.ranks
  t0: number; // the window in which they were looked for
  t1: number;
  list: Stretch[]; // by start; the longest ones where there are very many
  count: number;
  together: number; // how long all of them last, each moment once
  at: number; // the one that is shown
}
export interface Staged {
  light: Light;
  view: Viewport | null;
  pinned: number[];
  selected: SliceRef | null;
  second: SliceRef | null;
  area: Area | null;
}

const MOST_GUILTY = 4, MOST_PEERS = 6, MOST_SLICES = 40000, MOST_STRETCHES = 2000;
// Two durations that differ by less than this share say nothing next to each other.
const ALIKE = 0.05;
// A pause shorter than a window by the first factor is shown with the second number of its lengths around it.
const NEAR_PAUSE = 40, ROOM_OF_PAUSE = 12;

export const lengthOfStep = (step: Step): number => step.mean_ns ?? step.end_ns - step.start_ns;
// Returns whether no moment is the start of a step on every rank.
export const isApart = ({ranks, clock}: Run): boolean =>
  ranks.length > 1 && !['shared', 'aligned'].includes(clock.state);
// The step on one rank.
export function ownStep(run: Run, step: Step, rank: number): Step {
  const own = run.ranks[rank]?.steps?.find(([number]) => number === step.number);
  return own ? {number: step.number, start_ns: own[1], end_ns: own[2]} : step;
}

// The step of median length, of two the shorter: the first ones warm up, the longest one is an accident.
export const usualStep = (steps: readonly Step[]): Step | undefined =>
  [...steps].sort((a, b) => lengthOfStep(a) - lengthOfStep(b))[steps.length === 2 ? 0 : steps.length >> 1];
export const stepOf = (steps: readonly Step[], finding: Finding): Step | undefined =>
  steps.find(one => one.number === finding.step) ?? usualStep(steps);

// The finding's step with its neighbours where those belong to the picture; null: a run without steps.
export function windowOf(steps: readonly Step[], finding: Finding, around: number): Viewport | null {
  const step = stepOf(steps, finding), at = step ? steps.indexOf(step) : -1;
  if (!step) return null;
  return {t0: Math.max(0, steps[Math.max(at - around, 0)]!.start_ns),
    t1: steps[Math.min(at + around, steps.length - 1)]!.end_ns};
}

const most = (lanes: readonly Lane[]): Lane | undefined =>
  lanes.reduce<Lane | undefined>((best, one) => (best && best.slices >= one.slices ? best : one), undefined);

// The lanes of a rank in which what is accused runs.
function lanesOf(run: Run, rank: number, {groups, choose, names}: Accused): number[] {
  const own = run.lanes.filter(lane => lane.rank_index === rank), cells = own.filter(lane => lane.type === 'cells');
  // For messages the cells that wait for them are shown; some sources record sends alone.
  const wanted = groups.includes('message') ? ['receives', 'sends']
    : groups.includes('collective') ? ['collectives'] : ['compute'];
  const named = wanted.flatMap(name => cells.filter(lane => lane.name === name))[0];
  const streams = own.filter(lane => lane.type === 'stream' && lane.slices > 0),
    threads = own.filter(lane => lane.type === 'thread' && lane.slices > 0);
  const host = choose === 'pause' || names !== '' || groups.includes('runtime');
  const ofDevice = streams.length > 0 &&
    (cells.length === 0 ||
      groups.some(group => group === 'communication' || group === 'computing' || group === 'memory'));
  if (!ofDevice && named) return [named.id];
  const stream = groups.length === 1 && groups[0] === 'communication' && streams.length > 1
    ? [...streams].sort((a, b) => b.slices - a.slices).slice(0, 2) : [most(streams)];
  return [...stream, ...(host ? [most(threads)] : [])].flatMap(lane => (lane ? [lane.id] : [])).concat(
    streams.length === 0 && threads.length > 0 && !host ? [most(threads)!.id] : [],
  );
}

// If there are many, returns the ones next to the accused ranks, in the order of ranks.
function near(run: Run, ranks: Iterable<number>, guilty: ReadonlySet<number>, count: number): number[] {
  const order = (i: number): number => (run.ranks[i]!.stage >= 0 ? run.ranks[i]!.stage * 1e6 : 0) + run.ranks[i]!.rank;
  const places = [...guilty].map(order),
    distance = (i: number): number => Math.min(...places.map(place => Math.abs(place - order(i))), Infinity);
  return [...ranks].sort((a, b) => distance(a) - distance(b) || order(a) - order(b)).slice(0, count).sort((a, b) =>
    order(a) - order(b)
  );
}

// The stretches of the rank that has most of them; null: none of the ranks has any.
function stretchesOf(run: Run, found: SlicesAnswer, ranks: readonly number[], whole: Viewport, step: Step | undefined,
  {paints, groups, around}: Accused): Stretches | null
{
  const group = new Map(run.kinds.map(kind => [kind.id, kind.group])),
    groupOf = (i: number): string => group.get(found.kind[i]!) ?? '';
  let best: Stretches | null = null;
  for (const rank of ranks) {
    const streams = streamsOf(run, rank), ids = new Set(streams.map(lane => lane.id));
    if (paints === '' || ids.size === 0) continue;
    const own = step && around === 0 ? ownStep(run, step, rank) : null,
      window = own ? {t0: own.start_ns, t1: own.end_ns} : whole;
    const all = paints === 'exposed'
      ? exposedOf(found, ids, window, i => groups.includes(groupOf(i)), i => groupOf(i) === 'computing')
      : gapsOf(found, ids, window, most(streams)!.id, i => WORKS.has(groupOf(i)));
    const together = lengthOf(all), longest = [...all].sort((a, b) => (b.t1 - b.t0) - (a.t1 - a.t0));
    if (together === 0 || best && together <= best.together) continue;
    const list = longest.slice(0, MOST_STRETCHES).sort((a, b) => a.t0 - b.t0);
    best = {kind: paints, rank, ...window, list, count: all.length, together, at: list.indexOf(longest[0]!)};
  }
  return best;
}
const WORKS = new Set(['computing', 'communication', 'memory']);
const streamsOf = (run: Run, rank: number): Lane[] =>
  run.lanes.filter(lane => lane.rank_index === rank && lane.type === 'stream' && lane.slices > 0 && !lane.repeats);

// A window around a stretch, in which what is next to it can be read.
export const viewOf = ({t0, t1}: Stretch): Viewport =>
  fit(t0 - (t1 - t0) * ROOM_OF_PAUSE / 4, t1 + (t1 - t0) * ROOM_OF_PAUSE / 4);

// The longest time between two slices of a lane's first row, of those that begin within the window.
function longestPause(found: SlicesAnswer, lanes: readonly number[], window: Viewport): Area | null {
  let best: Area | null = null;
  for (const lane of lanes) {
    let end = NaN;
    for (let i = 0; i < found.count; ++i) {
      if (found.lane[i] !== lane || found.row[i] !== 0) continue;
      const t = found.start[i]!;
      if (t > end && end >= window.t0 && end < window.t1 && (!best || t - end > best.t1 - best.t0))
        best = {t0: end, t1: t, lanes: [lane]};
      end = Number.isNaN(end) ? t + found.dur[i]! : Math.max(end, t + found.dur[i]!);
    }
  }
  return best;
}

const indexesOf = (found: SlicesAnswer, fits: (i: number) => boolean): number[] =>
  Array.from({length: found.count}, (_, i) => i).filter(fits);

export async function stage(api: Api, run: Run, finding: Finding, key: string,
  steps: readonly Step[]): Promise<Staged>
{
  const accused = accusedOf(run, finding), {ranks, groups, choose, names, microBatch} = accused;
  let view = windowOf(steps, finding, accused.around);
  const step = stepOf(steps, finding), window = view ?? {t0: 0, t1: Math.max(run.span_ns, 1)};
  const first = run.ranks.map(rank => rank.dp).filter(dp => dp >= 0).sort((a, b) => a - b)[0];
  const everyone = run.ranks.flatMap((rank, i) => (first === undefined || rank.dp < 0 || rank.dp === first ? [i] : []));
  const guilty = near(run, ranks.size > 0 ? ranks : everyone, ranks,
    ranks.size > 0 ? MOST_GUILTY : MOST_GUILTY + MOST_PEERS - 2);
  const peers = near(run, accused.peers, ranks, MOST_PEERS);
  const guiltyLanes = guilty.flatMap(rank => lanesOf(run, rank, accused)),
    peerLanes = peers.flatMap(rank => lanesOf(run, rank, accused));
  const kinds = groups.length > 0 ? new Set(run.kinds.filter(kind => groups.includes(kind.group)).map(kind => kind.id))
    : null;
  const light: Light = {key,
    lanes: new Set(ranks.size > 0 ? run.lanes.filter(lane => ranks.has(lane.rank_index)).map(lane => lane.id) : []),
    peers: new Set(run.lanes.filter(lane => accused.peers.has(lane.rank_index)).map(lane => lane.id)), kinds,
    names: null, microBatch, t0: step && accused.around > 0 ? step.start_ns : -Infinity,
    t1: step && accused.around > 0 ? step.end_ns : Infinity, stretches: null};
  const order = new Map(
    run.lanes.map(lane => [lane.id, (run.ranks[lane.rank_index]!.stage + 1) * 1e6 + run.ranks[lane.rank_index]!.rank]),
  );
  const staged: Staged = {light, view, selected: null, second: null, area: null,
    pinned: [...guiltyLanes, ...peerLanes].sort((a, b) => order.get(a)! - order.get(b)! || a - b)};
  if (names !== '') {
    const {matches} = await api.json<{matches: {name_id: number}[]}>('search', {q: names, regex: 1, limit: 200});
    if (matches.length > 0) light.names = new Set(matches.map(one => one.name_id));
  }
  if (choose === 'nothing' || guiltyLanes.length === 0) return staged;
  if (choose === 'between') {
    const at = step ? steps.indexOf(step) : -1, before = steps[at - 1] ?? step, after = at > 0 ? step : steps[at + 1];
    if (before && after && after.start_ns > before.end_ns) {
      staged.area = {t0: before.end_ns, t1: after.start_ns, lanes: staged.pinned};
      staged.view = view = {t0: before.start_ns, t1: after.end_ns};
    }
    return staged;
  }
  // A pause that begins in a step may end in a later one.
  const later = choose === 'pause' ? 4 * (window.t1 - window.t0) : 0,
    streams = accused.paints === '' ? [] : guilty.flatMap(rank => streamsOf(run, rank).map(lane => lane.id)),
    found = await api.slices({lanes: [...new Set([...staged.pinned, ...streams])].sort((a, b) => a - b).join(),
      t0: window.t0, t1: Math.min(window.t1 + later, Math.max(run.span_ns, window.t1)), limit: MOST_SLICES});
  const guiltySet = new Set(guiltyLanes), lit = (i: number): boolean =>
    (kinds === null || kinds.has(found.kind[i]!)) &&
    (light.names === null || light.names.has(found.name[i]!)) && (microBatch < 0 || found.microBatch[i] === microBatch);
  const stretches = light.stretches = stretchesOf(run, found, guilty, window, step, accused), shown = stretches?.list[
    stretches.at
  ];
  if (stretches && shown) {
    // The rank that has them, with the streams that they are on and the one that works most.
    const own = streamsOf(run, stretches.rank), on = new Set(stretches.list.map(one => one.lane));
    light.lanes = new Set(run.lanes.filter(lane => lane.rank_index === stretches.rank).map(lane => lane.id));
    staged.pinned = [
      ...own.filter(lane => on.has(lane.id) || lane === most(own)).map(lane => lane.id),
      ...guiltyLanes.filter(id => run.lanes[id]!.rank_index === stretches.rank && run.lanes[id]!.type === 'thread'),
    ];
    staged.area = {...shown, lanes: [shown.lane]};
    staged.view = view = {t0: stretches.t0, t1: stretches.t1};
    if (stretches.kind === 'exposed') {
      const under = indexesOf(found, i =>
        found.lane[i] === shown.lane && lit(i) && found.start[i]! <= shown.t0 &&
        found.start[i]! + found.dur[i]! > shown.t0)[0];
      if (under !== undefined) staged.selected = refAt(found, under);
      return staged;
    }
  }
  if (choose === 'pause') {
    const pause: Area | null = stretches && shown ? {...shown, lanes: [shown.lane]}
      : longestPause(found, guiltyLanes.filter(id => run.lanes[id]!.type !== 'thread'), window);
    if (pause) {
      const rank = run.lanes[pause.lanes[0]!]!.rank_index, held = (i: number): number =>
        Math.min(found.start[i]! + found.dur[i]!, pause.t1) - Math.max(found.start[i]!, pause.t0);
      // The activity of the host meanwhile: the named one, else the innermost slice that fills most of the pause.
      const meanwhile = indexesOf(found, i =>
        run.lanes[found.lane[i]!]!.type === 'thread' && run.lanes[found.lane[i]!]!.rank_index === rank &&
        held(i) > 0.5 * (pause.t1 - pause.t0) && (kinds === null || kinds.has(found.kind[i]!)) &&
        (light.names === null || light.names.has(found.name[i]!)));
      const best = meanwhile.sort((a, b) =>
        found.dur[a]! - found.dur[b]! || found.row[b]! - found.row[a]!
      )[0];
      if (best !== undefined) staged.selected = refAt(found, best);
      staged.area = {...pause, lanes: [...pause.lanes]};
      const long = pause.t1 - pause.t0;
      if (view && pause.t1 > view.t1) staged.view = {t0: view.t0, t1: pause.t1 + 0.05 * (pause.t1 - view.t0)};
      if (long * NEAR_PAUSE < window.t1 - window.t0)
        staged.view = fit(pause.t0 - long * ROOM_OF_PAUSE / 2, pause.t1 + long * ROOM_OF_PAUSE / 2);
      if (best !== undefined || light.names === null) return staged;
    }
  }
  const own = indexesOf(found, i =>
    guiltySet.has(found.lane[i]!) && lit(i) && found.start[i]! >= light.t0 &&
    found.start[i]! < Math.min(light.t1, window.t1) && found.dur[i]! > 0)
    .sort((a, b) => found.dur[a]! - found.dur[b]!);
  // A usual one is of the replica that its peers are of.
  const near0 = choose === 'usual' ? own.filter(i => found.lane[i] === guiltyLanes[0]) : [];
  const backwards = (near0.length > 0 ? near0 : own).filter(i =>
      run.kinds.find(kind => kind.id === found.kind[i])?.group === 'backward'
    ), list = choose === 'usual' && backwards.length > 0 ? backwards : own;
  const chosen = choose === 'longest' || choose === 'pause' ? list.at(-1) : list[list.length >> 1];
  if (chosen === undefined) return staged;
  staged.selected = refAt(found, chosen);
  // The comparison is a similar slice: on a peer, or where all are accused the usual one of its own lane.
  const mb = found.microBatch[chosen]!,
    alike = (i: number): boolean =>
      found.kind[i] === found.kind[chosen] && i !== chosen &&
      (mb >= 0 || found.name[i] === found.name[chosen]);
  const peerSet = new Set(peerLanes), like = peerLanes.length > 0
    ? indexesOf(found, i => peerSet.has(found.lane[i]!) && alike(i) && (mb < 0 || found.microBatch[i] === mb))
    : indexesOf(found, i => found.lane[i] === found.lane[chosen] && alike(i)).sort((a, b) =>
      found.dur[a]! - found.dur[b]!
    );
  const apart = (i: number): number =>
    Math.abs(found.lane[i]! - found.lane[chosen]!) * 1e18 + Math.abs(found.start[i]! - found.start[chosen]!);
  const second = peerLanes.length > 0 ? like.sort((a, b) => apart(a) - apart(b))[0] : like[like.length >> 1];
  const unlike = (i: number): boolean =>
    peerLanes.length > 0 || Math.abs(found.dur[i]! - found.dur[chosen]!) > ALIKE * found.dur[chosen]!;
  if (second !== undefined && unlike(second)) staged.second = refAt(found, second);
  return staged;
}
