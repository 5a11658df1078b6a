// The what-if panel: a slider moves, the server replays, the chart shows the step as it would have run, thin under it
// as it was. Prices are those of stageline what-if.
import {useEffect, useRef, useState} from 'preact/hooks';
import {duration, percent} from '../../format';
import {currentLang, sentence, t} from '../../i18n/i18n';
import {answered} from '../answers/ask';
import {inAddress, sizesOf, type Described} from '../shell/described';
import {askedOf, atRest, keptOf, keptText, textOf, type Kept} from './scenario';
import {oneReplica, setWorld, shownAlone, type Pipe, type World} from './pipe';
import {askWorld, commandOf, paramsOf, type Answer, type Asked, type Fix, type Fixes, type Price} from './world';

const zh = (en: string, other: string): string => (currentLang() === 'zh' && other ? other : en);
// The words on memory continue the sentence of an option; here they are a sentence of their own.
const bytesOf = (said: {bytes?: string; bytes_zh?: string} | null | undefined): string =>
  zh(said?.bytes ?? '', said?.bytes_zh ?? '').replace(/^[;；]\s*/, '');
const NUMBERS = ['memory', 'seq', 'micro_batch_size', 'tp', 'ep'] as const;

// The model and the memory of a device: with them only options that fit are offered.
function Memory({described, describe}: {described: Described; describe(next: Described): void}) {
  return (
    <>
      <label for="what-if-model">{t('plan.model')}</label>
      <input
        id="what-if-model"
        type="file"
        onChange={async event => {
          const text = await event.currentTarget.files?.[0]?.text();
          describe(text ? {memory: '80GiB', seq: '4096', ...described, model: text} : {});
        }} />
      {described.model && (
        <>
          {NUMBERS.map(name => (
            <>
              <label for={`what-if-${name}`}>
                {name === 'memory' ? `${t('plan.device.memory')}, GiB` : t(`plan.${name}`)}
              </label>
              <input
                id={`what-if-${name}`}
                type="number"
                value={parseFloat(described[name] ?? '1') || ''}
                onChange={({currentTarget: {value}}) =>
                  describe({...described, [name]: value + (name === 'memory' ? 'GiB' : '')})} />
            </>
          ))}
          <label for="what-if-recompute">{t('plan.recompute')}</label>
          <input
            id="what-if-recompute"
            type="checkbox"
            checked={described.recompute === 'full'}
            onChange={({currentTarget: {checked}}) => describe({...described, recompute: checked ? 'full' : 'none'})} />
          <output />
        </>
      )}
    </>
  );
}

function Says({price, bytes}: {price: Price; bytes: string}) {
  if (price.why_not || price.saving_ns === null)
    return (
      <p class="says" role="status" id="says">
        <b class="none">–</b> {zh(price.why_not, price.why_not_zh)}
      </p>
    );
  const none = Math.abs(price.saving_share) < 0.0005, costs = price.saving_ns < 0;
  const error = price.error_ns === null ? '' : ` ± ${duration(price.error_ns)}`;
  return (
    <p class="says" role="status" id="says" data-saving={price.saving_ns} data-step={price.step_ns}>
      <b class={none ? 'none' : costs ? 'costs' : ''}>{costs ? '+' : '−'}{percent(Math.abs(price.saving_share))}</b>
      {' '}
      {t(costs ? 'pipe.whatIf.costs' : 'pipe.whatIf.saves', duration(Math.abs(price.saving_ns)) + error,
        duration(price.step_ns ?? 0), duration(price.recorded_ns ?? 0))}
      {bytes && `; ${bytes}`}
    </p>
  );
}

function FixList({fixes, chosen, choose}: {fixes: Fix[]; chosen: number; choose(index: number): void}) {
  if (fixes.length === 0) return null;
  return (
    <ol aria-label={t('pipe.whatIf.fixes')}>
      {fixes.slice(0, 8).map((fix, i) => (
        <li class="fix">
          <button
            class="plain link"
            aria-pressed={i === chosen}
            title={zh(fix.assumes, fix.assumes_zh)}
            onClick={() => choose(i === chosen ? -1 : i)}>
            {zh(fix.name, fix.name_zh)}
            {fix.bound && ` (${t('pipe.whatIf.bound')})`}
          </button>
          <b class={fix.saving_share > 0.001 ? '' : 'none'}>−{percent(fix.saving_share)}</b>
          {fix.bytes && <small class="quiet">{bytesOf(fix)}</small>}
        </li>
      ))}
    </ol>
  );
}

// Returns the name of a scenario until the user names it.
function nameOf(asked: Asked, fixes: Fixes): string {
  if (asked.fix >= 0) return zh(fixes.fixes[asked.fix]!.name, fixes.fixes[asked.fix]!.name_zh);
  const parts: string[] = [];
  if (asked.by !== 1)
    parts.push(`${asked.stage >= 0 ? t('group.stage', asked.stage) : t('pipe.whatIf.all')} × ${asked.by.toFixed(2)}`);
  if (asked.schedule !== fixes.schedule?.name && asked.schedule !== '') parts.push(asked.schedule);
  if (fixes.schedule && asked.microBatches !== fixes.schedule.micro_batches)
    parts.push(t('pipe.bench.mb', asked.microBatches));
  if (asked.instant) parts.push(t('pipe.whatIf.instant'));
  return parts.join(currentLang() === 'zh' ? '，' : ', ');
}

// Lists the kept scenarios, the recorded step above them, the best marked.
function KeptList(
  {kept, now, fixes, show, rename, remove}: {kept: readonly Kept[]; now: string; fixes: Fixes; show(one: Kept): void;
    rename(one: Kept, name: string): void; remove(one: Kept): void},
) {
  if (kept.length === 0) return null;
  const best = kept.reduce<Kept | null>(
    (most, one) => ((one.price?.saving_share ?? 0) > (most?.price?.saving_share ?? 0) ? one : most),
    null,
  );
  return (
    <table class="plain kept">
      <caption class="live">{t('pipe.bench.kept')}</caption>
      <thead>
        <tr>
          <th scope="col" class="text">{t('pipe.bench.scenario')}</th>
          <th scope="col">{t('pipe.bench.step')}</th>
          <th scope="col">{t('pipe.bench.saving')}</th>
          <th scope="col">
            <span class="live">{t('pipe.bench.show')}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row" class="text quiet">{t('pipe.bench.recorded')}</th>
          <td>{duration(fixes.recorded_ns)}</td>
          <td />
          <td />
        </tr>
        {kept.map(one => (
          <tr class={one === best ? 'best' : ''}>
            <th scope="row" class="text">
              <input
                type="text"
                maxLength={60}
                value={one.name}
                aria-label={t('pipe.bench.name')}
                onChange={event => rename(one, event.currentTarget.value)} />
            </th>
            <td>{one.price?.step_ns ? duration(one.price.step_ns) : one.price ? '–' : '…'}</td>
            <td class="saved">
              {one.price?.saving_ns
                ? `${one.price.saving_ns < 0 ? '+' : '−'}${percent(Math.abs(one.price.saving_share))}` : '–'}
            </td>
            <td>
              <button class="pill" aria-pressed={textOf(one.asked, fixes) === now} onClick={() => show(one)}>
                {t('pipe.bench.show')}
              </button>{' '}
              <button
                class="pill"
                aria-label={t('pipe.bench.remove', one.name)}
                title={t('pipe.bench.remove', one.name)}
                onClick={() => remove(one)}>
                ×
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function WhatIf({pipe, redraw}: {pipe: Pipe; redraw(): void}) {
  const [fixes, setFixes] = useState<Fixes | null>(null), [failed, setFailed] = useState('');
  const [asked, draw] = useState<Asked>(atRest(null)), latest = useRef(asked),
    [price, setPrice] = useState<Answer | null>(null), run = useRef<Fixes | null>(null),
    refused = useRef<Described | null>(null);
  const asking = useRef<AbortController | null>(null), wanted = useRef<Asked | null>(null),
    own = useRef<World | null>(null);
  const [kept, setKept] = useState<Kept[]>([]), list = useRef(kept);
  const {app, shell, bench} = pipe, {step} = app.state;
  // The next change may come before this one is drawn.
  const setAsked = (next: Asked): void => draw(latest.current = next);

  useEffect(() => {
    const offered = (): Promise<Fixes> => shell.api.json<Fixes>('pipeline/fixes', bench.described).then(answered);
    // A description of the address that is refused is left out. The reason stays until another is given.
    offered().catch((error: unknown) => {
      if (!bench.described.model) throw error;
      fail(error);
      refused.current = bench.described = {};
      return offered();
    }).then(answer => {
      offer(answer);
      setAsked(atRest(answer));
      bench.restore = async (now, keptNow, next) => {
        if (JSON.stringify(next) !== JSON.stringify(inAddress(bench.described))) await describe(next);
        take(now, keptNow, run.current!);
      };
      take(bench.now, bench.kept, answer);
    }).catch(fail);
  }, []);
  const fail = (error: unknown): void => setFailed(error instanceof Error ? error.message : String(error));
  const offer = (answer: Fixes): void => setFixes(run.current = answer);
  // Other options are offered within a memory. The scenario that is tried stays, but for one of the options before.
  async function describe(next: Described): Promise<void> {
    try {
      if (next.model) next.model = sizesOf(next.model);
      bench.described = next;
      const answer = await shell.api.json<Fixes>('pipeline/fixes', next).then(answered);
      if (bench.described !== next) return;
      offer(answer);
      setFailed('');
      keep(list.current.filter(one => one.asked.fix < 0), answer);
      await ask(latest.current.fix < 0 ? latest.current : atRest(answer), answer);
    } catch (error) {
      fail(error);
    }
  }
  // The scenario is gone, with its step or by a key: the recorded run is shown.
  useEffect(() => {
    if (pipe.world === own.current) return;
    own.current = pipe.world;
    setAsked(atRest(fixes));
    setPrice(null);
    bench.now = '';
    shell.moved();
  }, [pipe.world, step]);
  // From the address: what is tried, and what is kept, each with its price as soon as that is there.
  function take(now: string, keptNow: string, run: Fixes): void {
    const known = new Map(list.current.map(one => [textOf(one.asked, run), one.price]));
    keep(keptOf(keptNow, run).map(one => ({...one, price: known.get(textOf(one.asked, run)) ?? null})), run);
    for (const one of list.current) if (!one.price) void priced(one, run);
    const wish = askedOf(now, run);
    if (textOf(wish, run) !== textOf(latest.current, run)) void ask(wish, run);
  }
  async function priced(one: Kept, run: Fixes): Promise<void> {
    const found = await askWorld(shell.api, pipe, {...paramsOf(one.asked, run), ...bench.described},
      new AbortController().signal).then(
        answer => answer.price,
        () => null,
      );
    if (found)
      keep(
        list.current.map(
          other => (other.name === one.name && textOf(other.asked, run) === textOf(one.asked, run)
            ? {...other, price: found} : other),
        ),
        run,
      );
  }
  function keep(next: Kept[], run: Fixes): void {
    setKept(list.current = next);
    bench.kept = keptText(next, run);
    shell.moved();
  }

  // Ranks are unfolded, or another replica is shown: only the visible part of the scenario had been fetched.
  useEffect(() => {
    const {world} = pipe;
    if (fixes && world && world.dp !== null && world.dp !== shownAlone(pipe)) void ask(latest.current, fixes);
  }, [app.state.dp, app.state.open, app.state.folded]);

  // One question at a time; of those that come meanwhile the last.
  async function ask(next: Asked, run: Fixes): Promise<void> {
    setAsked(next);
    bench.now = textOf(next, run);
    shell.moved();
    wanted.current = next;
    if (asking.current) return;
    // A step as it would run is drawn cell by cell: of many ranks one replica's.
    if (oneReplica(pipe) !== app.state.dp) app.change({dp: oneReplica(pipe), hovered: -1});
    while (wanted.current) {
      const now: Asked = wanted.current, params = paramsOf(now, run), {described} = bench;
      wanted.current = null;
      if (Object.values(params).every(value => value === undefined)) {
        setPrice(null);
        own.current = null;
        setWorld(pipe, null);
        continue;
      }
      asking.current = new AbortController();
      try {
        const {price: reported, world} = await askWorld(shell.api, pipe, {...params, ...described},
          asking.current.signal);
        setPrice(reported);
        own.current = world;
        if (world || pipe.world) setWorld(pipe, world);
        if (described === bench.described && described !== refused.current) setFailed('');
      } catch (error) {
        fail(error);
      }
      asking.current = null;
    }
    redraw();
  }

  if (!fixes)
    return (
      <section class="card what-if" aria-labelledby="what-if-title">
        <h2 id="what-if-title">{t('pipe.whatIf')}</h2>
        <p class="quiet" role="status">{failed ? sentence(failed) : t('pipe.whatIf.wait')}</p>
      </section>
    );
  // A report says what the program says where it carries the replay; else it has the prices of the fixes alone.
  const alone = shell.run.file && !shell.run.file.what_if ? shell.run.file : null;
  const change = (patch: Partial<Asked>): void => {
    void ask({...latest.current, fix: -1, ...patch}, fixes);
  };
  const present = fixes.schedule;
  const stages = Array.from({length: fixes.stages}, (_, i) => i),
    still = JSON.stringify(asked) === JSON.stringify(atRest(fixes));
  return (
    <section class="card what-if" aria-labelledby="what-if-title">
      <h2 id="what-if-title">{t('pipe.whatIf')}</h2>
      {price ? <Says price={price} bytes={bytesOf(asked.fix < 0 ? price : fixes.fixes[asked.fix])} />
        : (
          <p class="says quiet" id="says" role="status">
            {t(alone ? 'file.whatIf.rest' : 'pipe.whatIf.rest', duration(fixes.recorded_ns))} {bytesOf(fixes)}
          </p>
        )}
      {alone ? (
        <p class="how">
          {t('file.whatIf')} <code>{alone.command}</code>
        </p>
      ) : (
        <form onSubmit={event => event.preventDefault()}>
          <label for="cost">{t('pipe.whatIf.cost')}</label>
          <span class="pick">
            <select
              id="cost-stage"
              aria-label={t('pipe.whatIf.stage')}
              value={asked.stage}
              onChange={event => change({stage: Number(event.currentTarget.value)})}>
              <option value={-1}>{t('pipe.whatIf.all')}</option>
              {stages.map(stage => <option value={stage}>{t('group.stage', stage)}</option>)}
            </select>
            <input
              id="cost"
              type="range"
              min="0.5"
              max="1.5"
              step="0.01"
              value={asked.by}
              onInput={event => change({by: Number(event.currentTarget.value)})} />
          </span>
          <output>{asked.by.toFixed(2)}×</output>
          {present && (
            <>
              <label for="micro-batches">{t('pipe.whatIf.microBatches')}</label>
              <input
                id="micro-batches"
                type="range"
                max={Math.max(4 * present.micro_batches, 8)}
                step={1}
                value={asked.microBatches}
                onInput={event => change({microBatches: Number(event.currentTarget.value)})} />
              <output>{asked.microBatches}</output>
              <label for="schedule">{t('pipe.whatIf.schedule')}</label>
              <select
                id="schedule"
                value={asked.schedule}
                onChange={event => change({schedule: event.currentTarget.value})}>
                {fixes.schedules.map(one => <option value={one.name}>{one.name}</option>)}
              </select>
              <output>{asked.schedule === present.name ? t('pipe.whatIf.present') : ''}</output>
            </>
          )}
          {!REPORT && present && <Memory described={bench.described} describe={next => void describe(next)} />}
          <label for="instant">{t('pipe.whatIf.instant')}</label>
          <span>
            <input
              id="instant"
              type="checkbox"
              checked={asked.instant}
              onChange={event => change({instant: event.currentTarget.checked})} />
          </span>
          <output>
            <button
              type="button"
              class="pill"
              id="what-if-keep"
              disabled={still || list.current.some(one => textOf(one.asked, fixes) === textOf(asked, fixes))}
              onClick={() =>
                keep([...list.current, {name: nameOf(latest.current, fixes), asked: latest.current, price}], fixes)}>
              {t('pipe.bench.keep')}
            </button>{' '}
            <button
              type="button"
              class="pill"
              id="what-if-reset"
              disabled={still}
              onClick={() => {
                void ask(atRest(fixes), fixes);
              }}>
              {t('pipe.whatIf.reset')}
            </button>
          </output>
        </form>
      )}
      {failed && <p class="notice" role="alert">{failed}</p>}
      {!present && fixes.why_not && <p class="how">{t('pipe.whatIf.noOrder', zh(fixes.why_not, fixes.why_not_zh))}</p>}
      <KeptList
        kept={kept}
        now={textOf(asked, fixes)}
        fixes={fixes}
        show={one => {
          void ask(one.asked, fixes);
        }}
        rename={(one, name) => keep(list.current.map(other => (other === one ? {...one, name} : other)), fixes)}
        remove={one => keep(list.current.filter(other => other !== one), fixes)} />
      <FixList
        fixes={fixes.fixes}
        chosen={asked.fix}
        choose={index => {
          void ask({...atRest(fixes), fix: index}, fixes);
        }} />
      <p class="how">
        {fixes.bytes && fixes.over_memory > 0 && t('pipe.whatIf.over', fixes.over_memory)} {t('pipe.whatIf.how')}{' '}
        <code>{commandOf(asked, fixes, bench.described, shell.run.paths)}</code>
      </p>
    </section>
  );
}
