// The question of the page to /api/plan, and the answer: that of `stageline plan --json` (docs/reference/plan.md).
export interface Stage {
  rank: number;
  parameters: number;
  gradients: number;
  optimizer: number;
  activations: number;
  recompute: number;
  head: number;
  scratch: number;
  transient: number;
  other: number;
  peak: number;
  low: number;
  high: number;
}
export interface OnePlan {
  tp: number;
  pp: number;
  dp: number;
  micro_batch_size: number;
  micro_batches: number;
  schedule: string | null; // null: without a pipeline
  chunks: number;
  layers: number[];
  recompute: {kind: string; layers: number; modules: string[]}[];
  step_ns: number;
  step_se_ns: number;
  mfu: number | null;
  bubble: number;
  peak_bytes: number | null;
  needed_bytes: number | null;
  stages: Stage[];
  emit: Record<string, string>;
}
export interface Answer {
  basis: {times: 'estimated' | 'recorded'; hardware: string};
  limit_bytes: number | null;
  plans: OnePlan[];
  infeasible: {stage: number; excess_bytes: number; plan: OnePlan; fixes: {change: string; needed: number}[]} | null;
}

export const PARTS = [
  'parameters',
  'gradients',
  'optimizer',
  'activations',
  'recompute',
  'head',
  'scratch',
  'transient',
  'other',
] as const;

// Sliders go through these values.
const POWERS = Array.from({length: 15}, (_, i) => 2 ** i);
export const STOPS = {
  gpus: POWERS,
  memory: [16, 24, 32, 40, 48, 64, 80, 96, 128, 141, 180, 192, 256, 288],
  tp: [1, 2, 4, 8],
  pp: [1, 2, 4, 6, 8, 12, 16, 24, 32, 64],
  chunks: [1, 2, 3, 4, 5, 6, 7, 8],
  micro_batches: [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256],
} as const;
export type Slider = keyof typeof STOPS;
export const SCHEDULES = [
  'auto',
  '1f1b',
  'vpp',
  'interleaved-zb',
  'zb-h1',
  'zb-v',
  'dualpipe-v',
  'eager-1f1b',
  'fthenb',
];
const LOOPED = ['vpp', 'interleaved-zb'];
export const RECOMPUTE = ['auto', 'none', 'selective', 'full'] as const;

// 0 and auto: as the best plan has it, or the run.
export interface Asked extends Record<Slider, number> {
  schedule: string;
  recompute: typeof RECOMPUTE[number];
  seq: number;
  layers: number; // of a run without a description
  recorded: boolean; // times of the run
}
const FIRST: Asked = {gpus: 16, memory: 80, tp: 1, pp: 4, chunks: 2, micro_batches: 16, schedule: '1f1b',
  recompute: 'auto', seq: 8192, layers: 32, recorded: false};

export const hasChunks = (asked: Asked): boolean => LOOPED.includes(asked.schedule);

// A run has its devices and its tensor parallelism.
export function paramsOf(asked: Asked, model: string): Record<string, string | number> {
  const {recorded, gpus, tp, pp, layers, chunks, memory, schedule, micro_batches: batches, ...rest} = asked;
  return {
    ...rest,
    ...(pp ? {pp} : {}),
    ...(batches ? {micro_batches: batches} : {}),
    ...(schedule === 'auto' ? {} : {schedule}),
    micro_batch_size: 1,
    ...(model ? {model, memory: `${memory}GiB`} : {layers}),
    ...(hasChunks(asked) ? {chunks} : {}),
    ...(recorded ? {times: 'run'} : {gpus, tp}),
  };
}

// With times of a run the run says how it is.
export const firstOf = (recorded: boolean): Asked =>
  recorded ? {...FIRST, pp: 0, micro_batches: 0, schedule: 'auto', recorded} : FIRST;
// What of it was left to the plan.
export const filled = (asked: Asked, plan: OnePlan): Asked => ({
  ...asked,
  pp: asked.pp || plan.pp,
  micro_batches: asked.micro_batches || plan.micro_batches,
  ...(asked.schedule === 'auto' ? {schedule: plan.schedule ?? '1f1b', chunks: plan.chunks} : {}),
});

// `measured`: the run has times, which are taken where the address does not say otherwise.
export function toQuery(asked: Asked, measured: boolean): string {
  const first = {...firstOf(asked.recorded), recorded: measured},
    changed = Object.entries(asked).filter(([name, value]) => value !== first[name as keyof Asked]);
  return new URLSearchParams(changed.map(([name, value]) => [name, String(value)])).toString();
}
export function fromQuery(query: string, measured: boolean): Asked {
  const given = new URLSearchParams(query), first = firstOf(measured && given.get('recorded') !== 'false'),
    number = (name: keyof Asked): number => {
      const value = Number(given.get(name) ?? first[name]);
      return Number.isInteger(value) && value >= 1 && value <= 1e9 ? value : Number(first[name]);
    };
  return {
    ...first,
    ...Object.fromEntries(
      ([...Object.keys(STOPS), 'seq', 'layers'] as (keyof Asked)[]).map(name => [name, number(name)]),
    ),
    schedule: SCHEDULES.find(name => name === given.get('schedule')) ?? first.schedule,
    recompute: RECOMPUTE.find(name => name === given.get('recompute')) ?? first.recompute,
  };
}
