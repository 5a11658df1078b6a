// Shows each stage's time as a bar that adds up to the pipeline: busy, and its waits. It is for the chosen step and
// replica, with the second run's below if there is one. Otherwise it is for all steps (the table waterfall-stages),
// with the times of its cells (the table stages).
import {useState} from 'preact/hooks';
import {frameOf} from '../../data/frame';
import {spanOf} from '../../state';
import {FORWARD, isCompute, KIND_CODES} from '../../data/kind';
import {laneRange} from '../../data/rows';
import {stageSums} from '../../data/stage_sums';
import {duration, percent} from '../../format';
import {currentLang, t} from '../../i18n/i18n';
import {replicaName} from '../../words';
import {commandLine} from '../shell/command';
import type {Loaded} from './load';
import {toggleStage, type Pipe} from './pipe';
import {termOf} from '../../views/glossary';
import {partTerm, partWord} from './steps';

const PARTS: [string, string][] = [
  ['busy', 'busy_ns'],
  ['bubble', 'schedule_ns'],
  ['imbalance', 'imbalance_ns'],
  ['jitter', 'jitter_ns'],
  ['comm', 'latency_ns'],
  ['rest', 'rest_ns'],
];
const KINDS = ['F', 'B', 'I', 'W', 'F&B'];

// ns: busy, then the waits, in the order of PARTS.
interface StageRow {
  stage: number;
  ns: number[];
  pipelineNs: number;
  costs: Map<string, number>;
  ratio: number | undefined;
}

function allSteps({app}: Pipe): StageRow[] {
  const costs = new Map<number, Map<string, number>>(), ratios = new Map<number, number>();
  for (const row of frameOf(app.report, 'stages')?.rows ?? []) {
    const own = costs.get(row.num('stage')) ?? new Map<string, number>(), ratio = row.num('ratio_to_median');
    costs.set(row.num('stage'), own.set(row.text('kind'), row.num('mean_ns')));
    if (ratio > 0)
      ratios.set(row.num('stage'), Math.max(row.text('kind') === 'all' ? 0 : ratios.get(row.num('stage')) ?? 0, ratio));
  }
  return (frameOf(app.report, 'waterfall-stages')?.rows ?? []).map(row => ({stage: row.num('stage'),
    ns: PARTS.map(([, name]) => row.num(name)), pipelineNs: row.num('pipeline_ns'),
    costs: costs.get(row.num('stage')) ?? new Map(), ratio: ratios.get(row.num('stage'))})
  );
}

// Mean time of a cell by kind, of the stage's ranks in one step.
function costsOf({cells, model, report}: Pick<Loaded, 'cells' | 'model' | 'report'>, stage: number, step: number,
  dp: number | null): Map<string, number>
{
  const sums = new Map<string, [ns: number, count: number]>();
  for (const {part, lanes: [lane]} of model.rows) {
    const {stage: own, dp: replica} = report.parts[part]!;
    if (own !== stage || (dp !== null && replica >= 0 && replica !== dp)) continue;
    const [begin, end] = laneRange(lane!, cells, step, -Infinity, Infinity);
    for (let i = begin; i < end; ++i) {
      const cell = lane!.cells[i]!, kind = cells.kind[cell]!;
      // A forward and a backward that ran as one are neither's time: once, as what they are.
      if (!isCompute(kind) || (cells.pair[cell]! >= 0 && kind !== FORWARD)) continue;
      const code = cells.pair[cell]! >= 0 ? 'F&B' : KIND_CODES[kind]!, sum = sums.get(code) ?? [0, 0];
      sums.set(code, [sum[0] + cells.dur[cell]!, sum[1] + 1]);
    }
  }
  return new Map([...sums].map(([kind, [ns, count]]) => [kind, ns / count]));
}

function oneStep(loaded: Loaded, step: number, dp: number | null): StageRow[] {
  const sums = stageSums(loaded.sums, loaded.report.parts, step, dp),
    usual = sums.map(sum => sum.busyNs).sort((a, b) => a - b);
  const median = usual.length > 0 ? (usual[usual.length - 1 >> 1]! + usual[usual.length >> 1]!) / 2 : 0;
  return sums.map(sum => ({stage: sum.stage, ns: [sum.busyNs, ...sum.waitsNs], pipelineNs: sum.pipelineNs,
    costs: costsOf(loaded, sum.stage, step, dp),
    ratio: median > 0 && sums.length > 1 ? sum.busyNs / median : undefined})
  );
}

// Splits the waiting among the parts above 0: one below it shortened the others. `whole` lets two runs share one scale.
function shares({ns, pipelineNs}: StageRow, whole: number): [id: string, share: number][] {
  const busy = ns[0]!, waits = ns.slice(1).map(wait => Math.max(0, wait)),
    sum = waits.reduce((all, wait) => all + wait, 0);
  return PARTS.map(([id],
    k) => [id, k === 0 ? busy / whole : sum > 0 ? waits[k - 1]! / sum * Math.max(0, pipelineNs - busy) / whole : 0]
  );
}

function Bar({row, whole, name}: {row: StageRow; whole: number; name: string}) {
  return (
    <div
      class="bars"
      role="img"
      aria-label={`${name}: ${PARTS.map(([id], k) => `${partWord(id)} ${duration(row.ns[k]!)}`).join(', ')}`}>
      {shares(row, whole).map(([id, share], k) =>
        share > 0 && (
          <i
            class={`part ${id}`}
            style={{width: `${share * 100}%`}}
            title={`${name}: ${partWord(id)} ${duration(row.ns[k]!)}`} />
        )
      )}
    </div>
  );
}

// Returns, for the simulated step, the computing share of a stage and the times of its cells.
function afterOf({world, recorded, app}: Pipe): Map<number, {share: number; costs: Map<string, number>}> {
  const {cells, model} = world!, found = new Map<number, {share: number; costs: Map<string, number>}>(),
    span = world!.end - spanOf(recorded.model, world!.step).t0;
  const loaded = {cells, model, report: recorded.report};
  for (const stage of new Set(recorded.report.parts.map(part => part.stage).filter(one => one >= 0))) {
    const ranks = new Set<number>();
    let busy = 0;
    for (let i = 0; i < cells.count; ++i) {
      const part = recorded.report.parts[cells.part[i]!]!, dp = world!.dp ?? app.state.dp;
      if (part.stage !== stage || !isCompute(cells.kind[i]!) || (cells.pair[i]! >= 0 && cells.kind[i] !== FORWARD) ||
        (dp !== null && part.dp >= 0 && part.dp !== dp)) continue;
      busy += cells.dur[i]!;
      ranks.add(cells.part[i]!);
    }
    if (ranks.size > 0)
      found.set(stage, {share: busy / ranks.size / span,
        costs: costsOf(loaded, stage, world!.step, world!.dp ?? app.state.dp)});
  }
  return found;
}

export function Stages({pipe}: {pipe: Pipe}) {
  const [wanted, want] = useState<'step' | 'all'>('step');
  const {app, other, both, recorded} = pipe, {step, dp} = app.state,
    own = step === null ? [] : oneStep(recorded, step, dp), isStep = wanted === 'step' && own.length > 0;
  const rows = isStep ? own : allSteps(pipe), below = isStep && both && other && other.app.state.step !== null
    ? new Map(oneStep(other.loaded, other.app.state.step, other.app.state.dp).map(row => [row.stage, row])) : null;
  if (rows.length === 0) return null;
  const after = isStep && pipe.world?.step === step ? afterOf(pipe) : null;
  const kinds = KINDS.filter(kind => rows.some(row => row.costs.has(kind))),
    hasRatio = rows.some(row => row.ratio !== undefined);
  const largest = Math.max(...rows.flatMap(row => kinds.map(kind => row.costs.get(kind) ?? 0)), 1),
    ms = (
      ns: number | undefined,
    ): string => (ns === undefined ? '–' : largest >= 1e7 ? (ns / 1e6).toFixed(1) : (ns / 1e6).toPrecision(3));
  const used = PARTS.filter((_, k) =>
    [...rows, ...below?.values() ?? []].some(row => Math.abs(row.ns[k]!) > row.pipelineNs / 2000)
  );
  const whole = Math.max(1, ...rows.map(row => row.pipelineNs),
    ...[...below?.values() ?? []].map(row => row.pipelineNs));
  const replica = recorded.model.dps.length > 1 && dp !== null
    ? `${currentLang() === 'zh' ? '，' : ', '}${replicaName(app, dp)}` : '';
  const nameOf = (stage: number,
    run: string): string => (below ? t('pipe.stages.of', stage, run) : t('row.stage', stage));
  return (
    <section class="card stages" aria-labelledby="stages-title">
      <h2 id="stages-title">{isStep ? t('pipe.stages.step', step!, replica) : t('pipe.stages')}</h2>
      {own.length > 0 && (
        <div class="controls" role="group" aria-label={t('pipe.stages.which')}>
          <button id="stages-step" aria-pressed={isStep} onClick={() => want('step')}>{t('pipe.stages.this')}</button>
          <button id="stages-all" aria-pressed={!isStep} onClick={() => want('all')}>{t('chart.all')}</button>
        </div>
      )}
      <div class="fits">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col" class="text">{t('stages.stage')}</th>
              <th scope="col" class="bar-head">
                <ul class="key">
                  {used.map(([id]) => (
                    <li>
                      <i class={`part swatch ${id}`} />
                      <span title={termOf(partTerm(id))}>{partWord(id)}</span>
                    </li>
                  ))}
                </ul>
              </th>
              <th scope="col">{t('pipe.busy')}</th>
              {kinds.map(kind => (
                <th scope="col" title={t('pipe.kind.help', t(`kind.${kind}` as 'kind.F'))}>
                  {kind} <small>ms</small>
                </th>
              ))}
              {hasRatio && <th scope="col">{t('stages.ratio')}</th>}
            </tr>
          </thead>
          <tbody>
            {rows.map(row => {
              const its = below?.get(row.stage);
              return (
                <tr>
                  <th scope="row" class="text">
                    <button class="plain link" title={t('pipe.stage.open')} onClick={() => toggleStage(app, row.stage)}>
                      {row.stage}
                    </button>
                  </th>
                  <td class="bar-cell">
                    <Bar row={row} whole={isStep ? whole : Math.max(row.pipelineNs, 1)} name={nameOf(row.stage, 'A')} />
                    {its && <Bar row={its} whole={whole} name={nameOf(row.stage, 'B')} />}
                  </td>
                  <td>
                    {percent(row.ns[0]! / Math.max(row.pipelineNs, 1))}
                    {after?.has(row.stage) && <span class="then">{' → '}{percent(after.get(row.stage)!.share)}</span>}
                    {its && (
                      <>
                        <br />
                        {percent(its.ns[0]! / Math.max(its.pipelineNs, 1))}
                      </>
                    )}
                  </td>
                  {kinds.map(kind => (
                    <td>
                      {ms(row.costs.get(kind))}
                      {after?.get(row.stage)?.costs.has(kind) &&
                        ms(after.get(row.stage)!.costs.get(kind)) !== ms(row.costs.get(kind)) &&
                        <span class="then">{' → '}{ms(after.get(row.stage)!.costs.get(kind))}</span>}
                      {its && (
                        <>
                          <br />
                          {ms(its.costs.get(kind))}
                        </>
                      )}
                    </td>
                  ))}
                  {hasRatio && (
                    <td class={(row.ratio ?? 1) >= 1.1 ? 'hot' : ''}>
                      {row.ratio === undefined ? '–' : `${row.ratio.toFixed(2)}×`}
                      {its && (
                        <>
                          <br />
                          {its.ratio === undefined ? '–' : `${its.ratio.toFixed(2)}×`}
                        </>
                      )}
                    </td>
                  )}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="how">
        {t(isStep ? 'pipe.stages.stepHow' : 'pipe.stages.how')}{' '}
        <code>{commandLine('analyze waterfall', pipe.shell.run.paths, isStep ? `--steps ${step}` : '')}</code>
      </p>
    </section>
  );
}
