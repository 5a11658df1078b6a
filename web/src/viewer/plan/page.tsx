// The planner as a page has sliders for devices, memory and the layout. The server answers each position at once. The
// numbers are those of `stageline plan`.
import {render} from 'preact';
import {h as element} from '../../dom';
import {duration, grouped, percent} from '../../format';
import {t, type Key} from '../../i18n/i18n';
import {ApiError} from '../shell/api';
import {commandLine} from '../shell/command';
import {inAddress, sizesOf} from '../shell/described';
import type {Page, Shell} from '../shell/page';
import {hasPipeline} from '../shell/shell';
import {filled, firstOf, fromQuery, hasChunks, paramsOf, PARTS, RECOMPUTE, SCHEDULES, STOPS, toQuery, type Answer,
  type Asked, type OnePlan, type Slider} from './plan';

// The model until a description is chosen.
const EXAMPLE = {name: 'Llama 3 8B',
  sizes: JSON.stringify({model_type: 'llama', hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32,
    num_key_value_heads: 8, intermediate_size: 14336, vocab_size: 128256})};
const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)}\u202fGiB`;
const SEQUENCES = [2048, 4096, 8192, 16384, 32768, 65536, 131072];

function Bars({plan, limit, worst}: {plan: OnePlan; limit: number | null; worst: number}) {
  const most = Math.max(limit ?? 0, ...plan.stages.map(stage => stage.high)) * 1.05;
  // A run that measured less than the model says has an "other" below 0, which has no height.
  const share = (bytes: number): string => `${Math.max(0, bytes) / most * 100}%`;
  const parts = PARTS.filter(part => plan.stages.some(stage => stage[part] > 0));
  return (
    <figure class="plan-memory">
      <figcaption>{t('plan.memory', worst)}</figcaption>
      <div class="plan-bars" role="img" aria-label={t('plan.memory.aria', plan.stages.length)}>
        {limit !== null && (
          <i class="limit" style={{bottom: share(limit)}}>
            <span>{t('plan.limit', gib(limit))}</span>
          </i>
        )}
        {plan.stages.map(stage => (
          <div
            class={stage.rank === worst ? 'bar worst' : 'bar'}
            key={stage.rank}
            data-rank={stage.rank}
            title={`${stage.rank}: ${gib(stage.peak)}`}>
            {parts.map(part => <b class={`plan-${part}`} style={{height: share(stage[part])}} />)}
            <i class="error" style={{bottom: share(stage.low), height: share(stage.high - stage.low)}} />
          </div>
        ))}
      </div>
      <ul class="key">
        {parts.map(part => (
          <li>
            <i class="swatch" aria-hidden="true">
              <b class={`plan-${part}`} />
            </i>
            {t(`plan.part.${part}` as Key)}
          </li>
        ))}
      </ul>
    </figure>
  );
}

function Stages({plan, worst}: {plan: OnePlan; worst: number}) {
  const parts = PARTS.filter(part => plan.stages.some(stage => stage[part] > 0));
  return (
    <div class="plot-box">
      <table class="plain">
        <caption class="live">{t('plan.memory', worst)}</caption>
        <thead>
          <tr>
            <th scope="col">{t('plan.stage')}</th>
            {parts.map(part => <th scope="col">{t(`plan.part.${part}` as Key)}</th>)}
            <th scope="col">{t('plan.total')}</th>
          </tr>
        </thead>
        <tbody>
          {plan.stages.map(stage => (
            <tr class={stage.rank === worst ? 'worst' : ''}>
              <th scope="row">{stage.rank}</th>
              {parts.map(part => <td>{gib(stage[part])}</td>)}
              <td>{gib(stage.peak)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function makePlan(shell: Shell): Page {
  const main = element('main', {class: 'sheet plan'}), still = REPORT, measured = !still && hasPipeline(shell.run);
  let asked = firstOf(measured), model = measured ? {name: '', sizes: ''} : EXAMPLE;
  let answer: Answer | null = null, failed: unknown = null, busy = false, again = false, answered = 0;

  // One question at a time; of those that come meanwhile the last.
  async function ask(): Promise<void> {
    again = true;
    draw();
    if (busy) return;
    busy = true;
    while (again) {
      again = false;
      try {
        answer = await shell.api.json<Answer>('plan', still ? {} : paramsOf(asked, model.sizes));
        failed = null;
        if (answer.plans[0] && asked.recorded && !asked.pp) asked = filled(asked, answer.plans[0]);
      } catch (error) {
        failed = error;
      }
      ++answered;
      draw();
    }
    busy = false;
  }
  function change(patch: Partial<Asked>): void {
    asked = {...asked, ...patch};
    shell.moved();
    void ask();
  }
  async function choose(file: File | undefined): Promise<void> {
    if (!file) return;
    try {
      model = {name: file.name, sizes: sizesOf(await file.text())};
      shell.moved();
      void ask();
    } catch (error) {
      failed = error;
      draw();
    }
  }

  // The address has a chosen description, too, unless it is too long for a link.
  function query(): string {
    const sizes = model === EXAMPLE ? undefined : inAddress({model: model.sizes}).model;
    const fields = new URLSearchParams(toQuery(asked, measured));
    if (sizes) {
      fields.set('name', model.name);
      fields.set('model', sizes);
    }
    return fields.toString();
  }

  const range = (name: Slider, unit = ''): preact.ComponentChildren => {
    const stops: readonly number[] = STOPS[name], at = stops.findIndex(value => value >= asked[name]);
    const off = (name === 'chunks' && !hasChunks(asked)) || (asked.recorded && (name === 'gpus' || name === 'tp')) ||
      (name === 'memory' && !model.sizes);
    return (
      <>
        <label for={`plan-${name}`}>{t(name === 'memory' ? 'plan.device.memory' : `plan.${name}` as Key)}</label>
        <input
          id={`plan-${name}`}
          type="range"
          min={0}
          max={stops.length - 1}
          step={1}
          value={at < 0 ? stops.length - 1 : at}
          disabled={off}
          aria-valuetext={`${grouped(asked[name])}${unit}`}
          onInput={event => change({[name]: stops[Number(event.currentTarget.value)]!})} />
        <output for={`plan-${name}`}>{off || !asked[name] ? '–' : `${grouped(asked[name])}${unit}`}</output>
      </>
    );
  };
  function choice<T extends string | number>(name: 'schedule' | 'recompute' | 'seq', list: readonly T[],
    words: (value: T) => string): preact.ComponentChildren
  {
    return (
      <>
        <label for={`plan-${name}`}>{t(`plan.${name}` as Key)}</label>
        <select
          id={`plan-${name}`}
          value={asked[name]}
          onChange={event => change({[name]: list.find(one => String(one) === event.currentTarget.value)!})}>
          {list.map(one => <option value={one}>{words(one)}</option>)}
        </select>
        <output />
      </>
    );
  }

  function headline(): string {
    if (failed) return t('plan.title');
    if (!answer) return t('plan.working');
    const plan = answer.plans[0];
    if (plan) {
      const step = t('plan.step', duration(plan.step_ns), duration(plan.step_se_ns));
      return plan.peak_bytes === null ? step : t('plan.step.peak', step, gib(plan.peak_bytes));
    }
    return answer.infeasible
      ? t('plan.short', answer.infeasible.stage, gib(answer.infeasible.plan.needed_bytes ?? 0),
        gib(answer.limit_bytes ?? 0))
      : t('plan.none');
  }
  function lead(): string {
    if (!answer || failed) return '';
    const plan = answer.plans[0], basis = answer.basis.times === 'recorded' ? t('plan.recorded')
      : t('plan.estimated', answer.basis.hardware);
    return plan ? `${t('plan.shape', plan.dp, plan.layers.join(' '), percent(plan.bubble))} ${basis}` : basis;
  }

  function draw(): void {
    const plan = answer && !failed ? answer.plans[0] ?? answer.infeasible?.plan ?? null : null;
    const worst = plan?.stages.reduce((most, one) => (one.peak > plan.stages[most]!.peak ? one.rank : most), 0) ?? 0;
    const typed = Object.entries(plan?.emit ?? {});
    render(
      <>
        <h1 tabindex={-1} id="plan-says" aria-live="polite">{headline()}</h1>
        <p class="lead">{lead()}</p>
        {failed !== null && (
          <p class="notice" role="alert">
            {failed instanceof Error ? failed.message : String(failed)}
            {failed instanceof ApiError && failed.hint && ` (${failed.hint})`}
          </p>
        )}
        {answer?.infeasible && !failed && answer.plans.length === 0 && (
          <ul class="plan-fixes">
            {answer.infeasible.fixes.map(fix => <li>{t('plan.fix', fix.change, gib(fix.needed))}</li>)}
          </ul>
        )}
        <div class={still ? 'plan-cols still' : 'plan-cols'}>
          {!still && (
            <form class="plan-form" onSubmit={event => event.preventDefault()}>
              <label for="plan-model">{t('plan.model')}</label>
              <input
                id="plan-model"
                type="file"
                onChange={event => void choose(event.currentTarget.files?.[0])} />
              <output>{model.name}</output>
              {measured && (
                <>
                  <label for="plan-times">{t('plan.times')}</label>
                  <select
                    id="plan-times"
                    value={asked.recorded ? 'run' : 'estimated'}
                    onChange={event => {
                      if (event.currentTarget.value !== 'run' && !model.sizes) model = EXAMPLE;
                      change(firstOf(event.currentTarget.value === 'run'));
                    }}>
                    <option value="run">{t('plan.times.run')}</option>
                    <option value="estimated">{t('plan.times.estimated')}</option>
                  </select>
                  <output />
                </>
              )}
              {!model.sizes && (
                <>
                  <label for="plan-layers">{t('plan.layers')}</label>
                  <input
                    id="plan-layers"
                    type="number"
                    min={1}
                    max={1000}
                    value={asked.layers}
                    onChange={event => change({layers: Math.max(1, Number(event.currentTarget.value) || 1)})} />
                  <output />
                </>
              )}
              {range('gpus')}
              {range('memory', '\u202fGiB')}
              {range('tp')}
              {range('pp')}
              {choice('schedule', SCHEDULES, name => (name === 'auto' ? t('plan.schedule.auto') : name))}
              {range('chunks')}
              {range('micro_batches')}
              {choice('recompute', RECOMPUTE, name => t(`plan.recompute.${name}` as Key))}
              {choice('seq', SEQUENCES, grouped)}
            </form>
          )}
          {plan && plan.stages.length > 0 && <Bars plan={plan} limit={answer!.limit_bytes} worst={worst} />}
        </div>
        {plan && plan.stages.length > 0 && <Stages plan={plan} worst={worst} />}
        {typed.length > 0 && (
          <section class="plan-type">
            <h2>{t('plan.type')}</h2>
            {typed.map(([name, text]) => (
              <details open={typed.length === 1 || name === 'megatron'}>
                <summary>{name}</summary>
                <pre tabindex={0}>{text}</pre>
              </details>
            ))}
          </section>
        )}
        <p class="how">
          {t('plan.how')}{' '}
          <code>
            {measured && asked.recorded ? commandLine('plan --from', shell.run.paths) : 'stageline plan config.json'}
          </code>
        </p>
      </>,
      main,
    );
    Object.assign((window as {stageline?: object}).stageline ??= {}, {
      planned: () => ({answer, asked, answered, busy}),
    });
  }

  return {
    element: main,
    show(route) {
      if (route) {
        asked = fromQuery(route.query, measured);
        const fields = new URLSearchParams(route.query), sizes = fields.get('model');
        if (sizes) model = {name: fields.get('name') ?? '', sizes};
      }
      if (!asked.recorded && !model.sizes) model = EXAMPLE;
      void ask();
    },
    address: () => ({rest: '', query: query()}),
    restyle: draw,
  };
}
