// Translates a finding into its scene: kinds of work, on which ranks, compared with which others. The server names the
// places; the finding's name decides which work is shown. It is plain data, for the timeline and the pipeline's chart
// alike.
import type {Finding, Place} from '../../data/report';
import type {Kind, Rank} from '../shell/api';

// Who can be accused: the ranks of a run, and the kinds of work that are in it.
export interface Court {
  ranks: readonly Pick<Rank, 'rank' | 'stage' | 'dp' | 'machine'>[];
  kinds: readonly Pick<Kind, 'group'>[];
}
export type Groups = readonly string[]; // of kinds, as /api/run names them
export interface Accused {
  groups: Groups; // kinds that are lit; empty: all
  ranks: ReadonlySet<number>; // the accused ranks, indexes into run.ranks; empty: all are
  peers: ReadonlySet<number>; // the ranks that they are compared with
  microBatch: number; // −1: any
  names: string; // an expression for the names that are lit; '': any
  // The selection: a usual cell, the longest slice, the longest pause of a device, the time before a step, or nothing.
  choose: 'usual' | 'longest' | 'pause' | 'between' | 'nothing';
  around: number; // steps in sight before and after the finding's own
  paints: 'exposed' | 'gaps' | ''; // time of devices that is itself the evidence (stretches.ts)
}

const WORK: Groups = ['forward', 'backward', 'weight'];
const DEVICE: Groups = ['computing', 'communication', 'memory', 'device_other'];

// By a finding's name, or what it begins with: the first that fits.
const RULES: readonly (readonly [begins: string, rule: Partial<Accused>])[] = [
  ['stage.', {groups: WORK}],
  ['cell.', {groups: WORK, choose: 'longest'}],
  ['rank.late_launch', {groups: WORK, choose: 'longest'}],
  ['rank.late', {groups: ['communication'], choose: 'longest'}],
  ['rank', {groups: WORK}],
  ['micro_batch.', {groups: WORK, choose: 'longest'}],
  ['sequence.', {groups: WORK, choose: 'longest'}],
  ['data.uneven', {groups: WORK, choose: 'longest'}],
  ['link.', {groups: ['message'], choose: 'longest'}],
  ['message.', {groups: ['message'], choose: 'longest'}],
  ['sends.', {groups: ['message'], choose: 'longest'}],
  ['tail.', {groups: ['collective', 'optimizer'], choose: 'longest'}],
  ['step.', {groups: WORK, choose: 'longest', around: 1}],
  ['run.slower', {groups: WORK, around: 1}],
  ['between.', {groups: [], choose: 'between'}],
  ['schedule.', {groups: WORK}],
  ['replica.', {groups: WORK}],
  ['bubble', {groups: WORK}],
  ['outside', {groups: []}],
  ['comm.exposed', {groups: ['communication'], choose: 'longest', paints: 'exposed'}],
  ['comm.waiting', {groups: ['communication'], choose: 'longest', paints: 'exposed'}],
  ['comm.', {groups: ['communication'], choose: 'longest'}],
  ['collective.missing', {groups: ['communication'], choose: 'nothing'}],
  ['collective', {groups: ['communication', 'collective'], choose: 'longest'}],
  ['memory.exposed', {groups: ['memory'], choose: 'longest', paints: 'exposed'}],
  ['copies.', {groups: ['memory'], choose: 'longest'}],
  ['tensor_cores.', {groups: ['computing'], choose: 'longest'}],
  ['launch.', {groups: [...DEVICE, 'runtime'], choose: 'pause', paints: 'gaps'}],
  ['queue.', {groups: ['runtime'], choose: 'longest'}],
  ['host.', {groups: [], choose: 'pause', paints: 'gaps'}],
  ['device.', {groups: [], choose: 'pause', paints: 'gaps'}],
  ['input.', {groups: [], choose: 'pause', paints: 'gaps'}],
];
// Of profiles there are no cells: their work is the devices'.
const OF_DEVICE: Record<string, Groups> = {forward: ['computing'], message: ['communication'],
  collective: ['communication']};

// The ranks that a place names, by what it is a place of.
function isAt(place: Place, rank: Court['ranks'][number]): boolean {
  switch (place.kind) {
    case 'ranks':
    case 'host':
    case 'between_steps':
      return place.ranks?.includes(rank.rank) ?? false;
    case 'replicas':
      return rank.dp === place.replica;
    case 'link':
      return (rank.stage === place.stage || rank.stage === place.from_stage) &&
        (place.replica === undefined || rank.dp === place.replica);
    case 'stage':
    case 'cells':
    case 'collective':
    case 'optimizer':
      return rank.stage === place.stage;
    default:
      return false;
  }
}

function guiltyRanks(run: Court, finding: Finding): Set<number> {
  const of = (fits: (rank: Court['ranks'][number]) => boolean): number[] =>
    run.ranks.flatMap((rank, i) => (fits(rank) ? [i] : []));
  const places = finding.places ?? [];
  // All its places; if these are all ranks, the first place that is not; if it has none, the other possible ones.
  for (const some of [places, ...places.map(place => [place]), ...(finding.or_else ?? []).map(place => [place])]) {
    const found = of(rank => some.some(place => isAt(place, rank)));
    if (found.length > 0 && found.length < run.ranks.length) return new Set(found);
  }
  return new Set(typeof finding.rank === 'number' ? of(rank => rank.rank === finding.rank) : []);
}

// Returns the peers of the accused ranks. For a stage they are the other stages of the same replica, for a rank the
// others of its stage, for a rank without such peers all others.
function peersOf(run: Court, guilty: ReadonlySet<number>): Set<number> {
  if (guilty.size === 0) return new Set();
  const own = [...guilty].map(i => run.ranks[i]!), stages = new Set(own.map(rank => rank.stage)), first = own[0]!;
  const others = run.ranks.flatMap((rank, i) => (guilty.has(i) ? [] : [{rank, i}]));
  const wholeStages = others.every(({rank}) => !stages.has(rank.stage));
  const like = others.filter((
    {rank},
  ) => (wholeStages ? rank.dp === first.dp : rank.stage >= 0 && stages.has(rank.stage)));
  return new Set((like.length > 0 ? like : others).map(({i}) => i));
}

// Returns the names of slices for a call, a frame or an operator among the places.
function namesOf(finding: Finding, choose: Accused['choose']): string {
  if (finding.id === 'copies.pageable') return 'pageable';
  if (choose !== 'pause') return ''; // else it names the launcher of what is shown
  const of = (kind: string): Place | undefined => finding.places?.find(place => place.kind === kind);
  return (of('call') ?? of('frame') ?? of('operator'))?.name?.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&') ?? '';
}

export function accusedOf(run: Court, finding: Finding): Accused {
  const rule = RULES.find(([begins]) => finding.id.startsWith(begins))?.[1] ?? {}, ranks = guiltyRanks(run, finding);
  const has = new Set(run.kinds.map(kind => kind.group));
  let groups = rule.groups ?? [];
  if (groups.length > 0 && !groups.some(group => has.has(group))) groups = OF_DEVICE[groups[0]!] ?? [];
  if (finding.id === 'tail.exposed')
    groups = finding.places?.[0]?.kind === 'optimizer' ? ['optimizer'] : ['collective'];
  const ofCells = finding.places?.find(place => place.kind === 'micro_batches' || place.kind === 'cells');
  return {groups, ranks, peers: peersOf(run, ranks), microBatch: ofCells?.first ?? -1,
    names: namesOf(finding, rule.choose ?? 'usual'), choose: rule.choose ?? 'usual', around: rule.around ?? 0,
    paints: rule.paints ?? ''};
}
