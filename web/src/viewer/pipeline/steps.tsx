// The step in one sentence and one bar that adds up: the row of waterfall-steps of the step and replica that are shown.
import {BUBBLE_PARTS} from '../../data/bubbles';
import type {Table} from '../../data/report';
import {frameOf} from '../../data/frame';
import {duration, percent} from '../../format';
import {currentLang, type Key, t} from '../../i18n/i18n';
import {FORWARD, isCompute} from '../../data/kind';
import {spanOf} from '../../state';
import {replicaName} from '../../words';
import {SplitBar} from '../../views/split_bar';
import {barHeight, stepTimes} from '../../views/step_bars';
import {chooseStep, type Pipe} from './pipe';
import {earlyCells, slowestReplica} from './step_facts';

export interface Split {
  spanNs: number;
  pipelineNs: number;
  parts: [id: string, ns: number][];
}
const COLUMNS: [string, string][] = [
  ['compute', 'compute_ns'],
  ['bubble', 'schedule_ns'],
  ['imbalance', 'imbalance_ns'],
  ['jitter', 'jitter_ns'],
  ['comm', 'latency_ns'],
  ['rest', 'rest_ns'],
  ['tail', 'tail_ns'],
];

// null: the table does not have it, or is not here yet. Without a step the means; of all replicas together their mean.
export function splitOf(pipe: Pipe): Split | null {
  const {report, state} = pipe.app, {dps} = pipe.recorded.model,
    rows =
      frameOf(report, 'waterfall-steps')?.rows.filter(r =>
        r.num('step') === state.step && (r.text('dp') === '' || state.dp === null || r.num('dp') === state.dp)
      ) ?? [];
  if (rows.length === 0 || (rows.length > 1 && rows.length !== dps.length)) return null;
  const mean = (name: string): number => rows.reduce((sum, row) => sum + row.num(name), 0) / rows.length;
  return {spanNs: mean('span_ns'), pipelineNs: mean('pipeline_ns'),
    parts: COLUMNS.map(([id, name]) => [id, mean(name)])};
}

const EARLY_SHARE = 0.01; // of the step: less is what stamps are off by

// Its definition; latency of messages has its own name here.
export const partTerm = (id: string): string => (id === 'comm' ? 'message' : id);
export const partWord = (id: string): string => t(`cause.${id}` as Key);

function StepBar({split, early}: {split: Split; early: boolean}) {
  const word = (id: string,
    ns: number): string => (early && id === 'rest' && ns < 0 ? t('pipe.early.part') : partWord(id));
  return (
    <SplitBar
      aria={split.parts.map(([id, ns]) => `${partWord(id)} ${duration(ns)}`).join(', ')}
      parts={split.parts.map(([id, ns]) => ({id, kind: id, share: ns / split.spanNs, label: word(id, ns),
        term: partTerm(id), words: `${partWord(id)}: ${duration(ns)}, ${percent(ns / split.spanNs)}`})
      )} />
  );
}

// Before and after on one scale: the recorded step in its parts, below it the replayed one, of which the cells say what
// is computed.
function AfterBar({pipe, split, after}: {pipe: Pipe; split: Split; after: number}) {
  const longest = Math.max(split.spanNs, after), {cells, dp} = pipe.world!, {parts} = pipe.recorded.report,
    ranks = new Set<number>();
  let busy = 0;
  for (let i = 0; i < cells.count; ++i) {
    const part = cells.part[i]!, replica = parts[part]!.dp, shown = dp ?? pipe.app.state.dp;
    if (!isCompute(cells.kind[i]!) || (cells.pair[i]! >= 0 && cells.kind[i] !== FORWARD) ||
      (shown !== null && replica >= 0 && replica !== shown)) continue;
    busy += cells.dur[i]!;
    ranks.add(part);
  }
  const share = ranks.size > 0 ? busy / ranks.size / after : 0,
    line = (words: string, ns: number, parts_: {id: string; kind: string; share: number; label: string}[]) => (
      <div class="after-line">
        <span class="quiet">{words}</span>
        <div style={{width: `${ns / longest * 100}%`}}>
          <SplitBar
            aria={`${words}: ${parts_.map(one => `${percent(one.share)} ${one.label}`).join(', ')}`}
            parts={parts_}
            brief />
        </div>
      </div>
    );
  return (
    <div class="after" id="before-after">
      {line(t('pipe.before'), split.spanNs,
        split.parts.map(([id, ns]) => ({id, kind: id, share: ns / split.spanNs, label: partWord(id)})))}
      {line(t('pipe.after'), after, [{id: 'compute', kind: 'compute', share, label: partWord('compute')}, {id: 'other',
        kind: 'idle', share: 1 - share, label: t('pipe.after.rest')}])}
    </div>
  );
}

// Step times as bars; a click, or arrows with the bars in focus, choose one.
function StepBars({pipe}: {pipe: Pipe}) {
  const {app} = pipe, times = stepTimes({...app, model: pipe.recorded.model});
  if (times.length < 2) return null;
  const low = times.reduce((a, b) => Math.min(a, b.span), Infinity),
    high = times.reduce((a, b) => Math.max(a, b.span), 0);
  const pitch = Math.min(300 / times.length, 18),
    title = duration(low) === duration(high) ? t('stepTime.one', duration(high))
      : t('stepTime', duration(low), duration(high));
  return (
    <div class="spark-place">
      <svg
        class="spark"
        viewBox={`0 0 ${pitch * times.length} 46`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}; ${t('stepTime.hint')}`}
        style={{width: `${pitch * times.length}px`}}
        onClick={event => {
          const box = event.currentTarget.getBoundingClientRect(),
            i = Math.floor((event.clientX - box.left) / box.width * times.length);
          chooseStep(pipe, times[Math.min(Math.max(i, 0), times.length - 1)]!.step);
        }}>
        {times.map((time, i) => {
          const height = barHeight(time.span, high);
          return (
            <rect
              x={(i * pitch).toFixed(2)}
              y={(46 - height).toFixed(1)}
              width={(pitch - (pitch > 4 ? 2 : 0)).toFixed(2)}
              height={height.toFixed(1)}
              class={time.step === app.state.step ? 'now' : time.step === app.state.beside ? 'beside' : ''}
              data-step={time.step}>
              <title>{`${t('chart.step', time.step)}: ${duration(time.span)}`}</title>
            </rect>
          );
        })}
      </svg>
      <span class="quiet">{title}</span>
    </div>
  );
}

// "12 ms longer than step 3; stage 2 alone computes 9 ms more."
function BesideSentence({pipe}: {pipe: Pipe}) {
  const {app} = pipe, {step, beside} = app.state,
    spans = new Map(stepTimes({...app, model: pipe.recorded.model}).map(s => [s.step, s.span]));
  if (pipe.world || step === null || beside === null || beside === step) return null;
  const by = (spans.get(step) ?? NaN) - (spans.get(beside) ?? NaN);
  if (Number.isNaN(by)) return null;
  const rows = frameOf(app.report, 'straggler-steps')?.rows ?? [],
    busy = (of: number): Map<number, number> =>
      new Map(rows.filter(r => r.num('step') === of).map(r => [r.num('stage'), r.num('busy_ns')]));
  const before = busy(beside);
  let most: [stage: number, ns: number] | null = null;
  for (const [stage, ns] of busy(step)) {
    const more = ns - (before.get(stage) ?? NaN);
    if (Math.abs(more) > Math.abs(most?.[1] ?? 0)) most = [stage, more];
  }
  const words = [t(by >= 0 ? 'pipe.longer' : 'pipe.shorter', step, duration(Math.abs(by)), beside)];
  if (most) words.push(t(most[1] >= 0 ? 'pipe.stage.more' : 'pipe.stage.less', most[0], duration(Math.abs(most[1]))));
  return <p class="beside-words">{words.join(' ')}</p>;
}

// Reports if the shown replica is the one that the others wait for; else names that one, a click away.
function SlowestSentence({pipe}: {pipe: Pipe}) {
  const {app, recorded} = pipe, {state} = app, found = state.dp === null ? null : slowestReplica(recorded, state.step);
  if (!found || pipe.world) return null;
  const own = found.spans.get(state.dp!), name = replicaName(app, found.dp),
    by = found.ns - (found.dp === state.dp ? found.usualNs : own ?? NaN);
  if (Number.isNaN(by)) return null;
  const more = [duration(by), percent(by / (found.ns - by))] as const;
  return (
    <p class="beside-words" id="slowest">
      {found.dp === state.dp ? t(found.count > 2 ? 'pipe.slowest.own' : 'pipe.slowest.ofTwo', ...more, found.count)
        : (
          <button class="plain link" onClick={() => app.change({dp: found.dp, hovered: -1})}>
            {t('pipe.slowest', name, ...more)}
          </button>
        )}
    </p>
  );
}

// Counts cells that start before any rank has sent their input: then no waiting time and no theory means anything.
function earlyOf({app, recorded, shell}: Pipe): {count: number; of: number; worstNs: number} | null {
  const {step, dp} = app.state;
  if (step === null || shell.run.clock.state === 'per-rank') return null;
  const early = earlyCells(recorded.cells, recorded.report.parts, step, dp), span = spanOf(recorded.model, step);
  return early.worstNs > EARLY_SHARE * (span.t1 - span.t0) ? early : null;
}
function EarlySentence({pipe}: {pipe: Pipe}) {
  const early = pipe.world ? null : earlyOf(pipe);
  return early && (
    <p class="notice" id="early">
      {t('pipe.early', early.count, early.of, duration(early.worstNs))}{' '}
      {t(pipe.shell.run.clock.state === 'shared' ? 'pipe.early.oneClock' : 'pipe.early.clocks')}
    </p>
  );
}

export function StepHead({pipe}: {pipe: Pipe}) {
  const {app} = pipe, {state} = app, split = splitOf(pipe), {steps, dps} = pipe.recorded.model;
  const span = stepTimes({...app, model: pipe.recorded.model}).find(s => s.step === state.step)?.span;
  const replica = dps.length > 1 && state.dp !== null
    ? `${currentLang() === 'zh' ? '，' : ', '}${replicaName(app, state.dp)}` : '';
  const {world} = pipe,
    after = world && world.step === state.step && span !== undefined ? world.end - (world.recordedEnd - span) : null;
  const title = after !== null && span !== undefined
    ? t('pipe.title.after', state.step!, duration(span), duration(after),
      `${after <= span ? '−' : '+'}${percent(Math.abs(1 - after / span))}`, replica)
    : state.step === null ? t('pipe.title.all', steps.length) : span === undefined ? t('chart.step', state.step)
    : split ? t('pipe.title', state.step, duration(span), percent(split.parts[0]![1] / split.spanNs), replica)
    : t('pipe.title.span', state.step, duration(span), replica);
  return (
    <div class="step-head">
      <div class="step-words">
        <h1 tabIndex={-1}>{title}</h1>
        {after !== null && split && <AfterBar pipe={pipe} split={split} after={after} />}
        {(after === null || !split) && split && <StepBar split={split} early={earlyOf(pipe) !== null} />}
        <EarlySentence pipe={pipe} />
        <SlowestSentence pipe={pipe} />
        <BesideSentence pipe={pipe} />
      </div>
      <StepBars pipe={pipe} />
    </div>
  );
}

export const tableOf = (tables: readonly Table[] | null, name: string): Table | undefined =>
  tables?.find(table => table.name === name);
export const CAUSE_IDS: readonly string[] = BUBBLE_PARTS;
