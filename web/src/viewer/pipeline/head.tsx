// The legend: the shown content, the meaning of colours, and the controls that choose.
import {termOf} from '../../views/glossary';
import {partTerm} from './steps';
import {useState} from 'preact/hooks';
import {setView, toggleTheory} from '../../app';
import {phasedStages} from '../../chart/chart';
import {CHUNK_TINTS, tintShare} from '../../chart/colours';
import {hasMany} from '../../chart/layout';
import {PHASE_COLOURS} from '../../chart/paint';
import {BUBBLE_PARTS, type Bubbles} from '../../data/bubbles';
import {isCompute, KIND_GROUP} from '../../data/kind';
import {type Key, t} from '../../i18n/i18n';
import {homeOf} from '../../state';
import {hasContextParallel, replicaName} from '../../words';
import {saveChart} from './save';
import {chooseBeside, chooseStep, moveToStep, openable, stepNumbers, toggleAll, type Pipe} from './pipe';

interface Marks {
  groups: number[];
  chunks: number[];
  causes: number[];
}
const marksOf = new WeakMap<object, Marks>();

// Kinds, chunks and causes that occur. One pass, once.
function marks(pipe: Pipe): Marks {
  const {cells, bubbles} = pipe.recorded, known = marksOf.get(cells);
  if (known) return known;
  const groups = new Set<number>(), chunks = new Set<number>();
  for (let i = 0; i < cells.count; ++i) {
    groups.add(KIND_GROUP[cells.kind[i]!]!);
    if (isCompute(cells.kind[i]!) && cells.chunk[i]! >= 0) chunks.add(cells.chunk[i]!);
  }
  const sorted = (set: Set<number>): number[] => [...set].sort((a, b) => a - b);
  const made = {groups: sorted(groups), chunks: sorted(chunks), causes: bubbles ? causesOf(bubbles) : []};
  marksOf.set(cells, made);
  return made;
}

// Returns the causes that are at least a thousandth of all waiting: smaller ones are invisible.
function causesOf({parts, cells}: Bubbles): number[] {
  const all = cells.dur.reduce((sum, ns) => sum + ns, 0);
  return BUBBLE_PARTS.map((_, k) => k).filter(k =>
    parts[k]!.reduce((sum, ns) => sum + Math.max(0, ns), 0) > all / 1000
  );
}

// Cells that differ from their like in the other run.
function MarkKey() {
  return (
    <>
      <li>
        <i class="mark longer" />
        {t('pipe.mark.longer')}
      </li>
      <li>
        <i class="mark shorter" />
        {t('pipe.mark.shorter')}
      </li>
      <li>
        <i class="mark moved" />
        {t('pipe.mark.moved')}
      </li>
      <li>
        <i class="mark alone" />
        {t('pipe.mark.alone')}
      </li>
    </>
  );
}

function Legend({pipe}: {pipe: Pipe}) {
  const {app} = pipe, {groups, chunks, causes} = marks(pipe), {state, report} = app,
    first = chunks.slice(0, CHUNK_TINTS);
  // Rows of many ranks together have neither ghosts nor notches, and do not say why they wait.
  const together = hasMany(report.parts) && state.dp === null && state.open.size === 0;
  return (
    <ul class="key">
      {groups.map(group => (
        <li>
          <i class={`group-${group}`} />
          {t(`group.${group}` as Key)}
        </li>
      ))}
      {app.model.markInputs && (
        <li>
          <i class="group-1 input-mark" />
          {t('kind.I')}
        </li>
      )}
      {chunks.length > 1 && (
        <li>
          {first.map(chunk => <i class="group-0 chunk" style={{opacity: String(1 - tintShare(chunk))}} />)}
          {t('chart.chunks', first.join(', '))}
        </li>
      )}
      {state.causes && app.bubbles && causes.length > 0 && !together
        ? causes.map(k => (
          <li>
            <i class={`cause cause-${BUBBLE_PARTS[k]}`} />
            <span title={termOf(partTerm(BUBBLE_PARTS[k]!))}>{t(`cause.${BUBBLE_PARTS[k]!}`)}</span>
          </li>
        ))
        : (
          <li>
            <i class="group-idle" />
            {t('group.idle')}
          </li>
        )}
      {pipe.world ? (
        <>
          <li>
            <i class="ghost" />
            {t('pipe.under.recorded')}
          </li>
          <li>
            <i class="theory-end" />
            {t('pipe.end.recorded')}
          </li>
        </>
      )
        : app.under ? (
          <li>
            <i class="ghost" />
            {t('pipe.under.step', state.beside ?? 0)}
          </li>
        )
        : state.theory && report.theory && (
          <>
            {!together && (
              <li>
                <i class="ghost" />
                {t('chart.ghost', report.theory.schedule)}
              </li>
            )}
            {report.theory.steps.length > 0 && (
              <li>
                <i class="theory-end" />
                {t('chart.theoryEnd')}
              </li>
            )}
          </>
        )}
      {!together && (phasedStages(app) > 0 ? PHASE_COLOURS.map((colour, phase) => (
        <li>
          <i class="phase" style={{background: colour}} />
          {t(`phase.${phase}` as Key)}
        </li>
      ))
        : (
          <li>
            <i class="notch" />
            {t('chart.phase')}
          </li>
        ))}
      {app.marks && <MarkKey />}
    </ul>
  );
}

// A number that is being typed stays, whatever is drawn meanwhile, until it is entered or another step is shown.
function StepField({pipe}: {pipe: Pipe}) {
  const {app: {state: {step}}} = pipe, steps = stepNumbers(pipe),
    [typed, type] = useState<{text: string; at: number | null} | null>(null);
  return (
    <input
      id="step"
      type="number"
      aria-label={t('chart.stepNumber')}
      value={typed && typed.at === step ? typed.text : step ?? ''}
      min={steps[0]!}
      max={steps[steps.length - 1]!}
      onInput={event => type({text: event.currentTarget.value, at: step})}
      onBlur={() => type(null)}
      onChange={event => {
        const wanted = Number(event.currentTarget.value);
        type(null);
        if (steps.includes(wanted)) chooseStep(pipe, wanted);
        else event.currentTarget.value = String(pipe.app.state.step ?? '');
      }} />
  );
}

// Buttons ask the state when they are pressed: what they were drawn with may be a press old.
export function Head({pipe, showBoth, evidence}: {pipe: Pipe; showBoth(both: boolean): void; evidence(): void}) {
  const {app, recorded: {model}} = pipe, {state} = app, steps = stepNumbers(pipe);
  const stages = openable(app), allOpen = stages.every(stage => state.open.has(stage));
  return (
    <div class="chart-head">
      <Legend pipe={pipe} />
      <div class="controls-row">
        {steps.length > 1 && (
          <div class="controls" role="group" aria-label={t('pipe.steps')}>
            <button
              id="prev-step"
              aria-label={t('chart.prev')}
              title={`${t('chart.prev')} [`}
              onClick={() => moveToStep(pipe, -1)}>
              ‹
            </button>
            <StepField pipe={pipe} />
            <button
              id="next-step"
              aria-label={t('chart.next')}
              title={`${t('chart.next')} ]`}
              onClick={() => moveToStep(pipe, 1)}>
              ›
            </button>
            <button
              id="all-steps"
              aria-pressed={state.step === null}
              onClick={() => chooseStep(pipe, app.state.step === null ? model.steps[0]!.step : null)}>
              {t('chart.all')}
            </button>
            <select
              id="beside"
              aria-label={t('pipe.beside')}
              title={t('pipe.beside')}
              value={state.beside ?? ''}
              disabled={state.step === null ||
                pipe.world !== null}
              onChange={event => {
                const {value} = event.currentTarget;
                chooseBeside(pipe, value === '' ? null : Number(value));
              }}>
              <option value="">{t('pipe.beside.none')}</option>
              {steps.slice(0, 500).filter(step => step !== state.step).map(step => (
                <option value={step}>{t('pipe.beside.step', step)}</option>
              ))}
            </select>
          </div>
        )}
        {model.dps.length > 1 && (
          <select
            id="replica"
            aria-label={t(hasContextParallel(app) ? 'chart.pipelineSelect' : 'chart.replicaSelect')}
            value={String(state.dp)}
            onChange={event =>
              app.change({dp: event.currentTarget.value === 'null' ? null : Number(event.currentTarget.value),
                hovered: -1})}>
            {hasMany(app.report.parts) && (
              <option value="null">
                {t(hasContextParallel(app) ? 'chart.pipelines' : 'chart.replicas', model.dps.length)}
              </option>
            )}
            {model.dps.map(dp => <option value={dp}>{replicaName(app, dp)}</option>)}
          </select>
        )}
        {stages.length > 0 && (
          <button
            id="unfold"
            aria-pressed={allOpen}
            title={t('pipe.unfold.help')}
            onClick={() => toggleAll(app)}>
            {t('pipe.unfold')}
          </button>
        )}
        {app.model.ghosts && (
          <button
            id="theory"
            aria-pressed={state.theory}
            title={t('chart.theory.help')}
            onClick={() => toggleTheory(app)}>
            {t('chart.theory')}
          </button>
        )}
        {app.bubbles && (
          <button
            id="causes"
            aria-pressed={state.causes}
            title={t('pipe.causes.help')}
            onClick={() => app.change({causes: !app.state.causes})}>
            {t('pipe.causes')}
          </button>
        )}
        {pipe.other && (
          <button
            id="both"
            aria-pressed={pipe.both}
            title={t('pipe.both.help')}
            onClick={() => showBoth(!pipe.both)}>
            {t('pipe.both')}
          </button>
        )}
        <button id="scenes" aria-pressed={pipe.scene !== ''} title={t('evidence.help')} onClick={evidence}>
          {t('evidence.lane')}
        </button>
        <button id="fit" title={t('chart.fit.help')} onClick={() => setView(app, homeOf(app.model, app.state.step))}>
          {t('chart.fit')}
        </button>
        <button id="save-svg" title={t('pipe.save.svg')} onClick={() => saveChart(pipe, 'svg')}>SVG</button>
        <button id="save-png" title={t('pipe.save.png')} onClick={() => saveChart(pipe, 'png')}>PNG</button>
      </div>
    </div>
  );
}
