// Two runs, in words: what diff says of them, what it is of the steps shown, and above each chart which run it is.
import {t} from '../../i18n/i18n';
import {duration, percent} from '../../format';
import {spanOf} from '../../state';
import {sentences, type Diff} from '../answers/diff';
import {chooseBelow, stepBelow} from './other';
import type {Other, Pipe} from './pipe';

const lengthOf = (span: {t0: number; t1: number}): number => span.t1 - span.t0;

// Compares the two steps that are above each other.
function stepsSentence({app, recorded, world}: Pipe, {app: its, loaded, compared}: Other): string {
  const {step} = app.state, below = its.state.step;
  if (step === null || below === null || world || !compared) return '';
  const own = lengthOf(spanOf(recorded.model, step)), other = lengthOf(spanOf(loaded.model, below)), by = other - own;
  const words = [
    t(by >= 0 ? 'pipe.runs.longer' : 'pipe.runs.shorter', step, below, duration(own), duration(other),
      duration(Math.abs(by)), percent(Math.abs(by) / own)),
  ];
  const {longer, shorter, moved, alone: [a, b], matched} = compared;
  const counts = [
    longer > 0 && t('pipe.runs.more', longer),
    shorter > 0 && t('pipe.runs.less', shorter),
    moved > 0 && t('pipe.runs.moved', moved),
    a > 0 && t('pipe.runs.alone', a, 'A'),
    b > 0 && t('pipe.runs.alone', b, 'B'),
  ].filter(Boolean);
  words.push(
    counts.length > 0 ? t('pipe.runs.cells', matched, counts.join(t('pipe.comma'))) : t('pipe.runs.same', matched),
  );
  return words.join(' ');
}

export function RunsWords({pipe, other}: {pipe: Pipe; other: Other}) {
  const {diff} = pipe, reported = diff?.change_ns === undefined ? null : sentences(diff as Diff);
  return (
    <div class="runs-words" aria-live="polite">
      {reported && (
        <p>
          <b>{reported.headline}</b> {reported.lead} <a href={pipe.shell.href('compare')}>{t('pipe.runs.why')}</a>
        </p>
      )}
      <p>{stepsSentence(pipe, other)}</p>
    </div>
  );
}

export function RunName({pipe, other, side}: {pipe: Pipe; other: Other; side: 'a' | 'b'}) {
  const {app, recorded} = pipe, {step} = app.state, below = stepBelow(pipe, other, step), own = side === 'a';
  const span = own ? spanOf(recorded.model, step) : spanOf(other.loaded.model, below), {steps} = other.loaded.model;
  return (
    <>
      <b>{own ? 'A' : 'B'}</b> {own ? pipe.shell.run.title : other.title}
      {own || step === null || steps.length < 2
        ? step !== null && <span class="quiet">{t('pipe.beside.step', (own ? step : below) ?? 0)}</span>
        : (
          <select
            id="other-step"
            aria-label={t('pipe.runs.step')}
            title={t('pipe.runs.step')}
            value={String(below)}
            onChange={event => chooseBelow(pipe, other, Number(event.currentTarget.value))}>
            {steps.slice(0, 500).map(one => <option value={String(one.step)}>{t('pipe.beside.step', one.step)}
            </option>)}
          </select>
        )}
      <span class="quiet">{duration(lengthOf(span))}</span>
    </>
  );
}
