// The bar above the chart of a scene shows the finding with its numbers and buttons to the previous and next ones. In
// its lane, every finding is at the step that shows it.
import {both, t} from '../../i18n/i18n';
import {duration, grouped} from '../../format';
import type {Scenes} from './scenes';
import {stepOf, usualStep, type Stretches} from './staged';

interface Props {
  scenes: Scenes;
  now: string;
  show(key: string): void;
  leave(): void;
  places: {words: string; href: string}[];
  stretches?: Stretches | null;
  rank?: string; // whose they are, and in which step
  toStretch?(at: number): void;
  xOf(t: number): number; // CSS pixels from the lane's left edge
  left: number;
  width: number; // of the plot
}

const FLAG = 26, GAP = 2;

interface Flags {
  x: number;
  at: number[];
  beyond: -1 | 0 | 1;
}
// Findings of one step stand side by side at it; what is out of sight waits at the edge, in the order of time.
function flagsOf({scenes, xOf, left, width}: Props): Flags[] {
  const groups = new Map<number, number[]>(), right = left + width;
  scenes.findings.forEach((finding, i) => {
    const step = stepOf(scenes.steps, finding) ?? usualStep(scenes.steps), t = step ? step.start_ns : 0;
    groups.set(t, [...groups.get(t) ?? [], i]);
  });
  const sorted = [...groups].sort((a, b) => a[0] - b[0]), wide = (at: number[]): number => at.length * (FLAG + GAP);
  const flags: Flags[] = [];
  let free = left;
  for (const [t, at] of sorted) {
    const x = xOf(t), beyond = x < left - 1 ? -1 : x > right - 4 ? 1 : 0;
    flags.push({x: Math.max(free, Math.min(Math.max(x, left), right - wide(at))), at, beyond});
    free = flags.at(-1)!.x + wide(at);
  }
  // From the right: none leaves the plot.
  let end = right;
  for (const flag of [...flags].reverse()) {
    flag.x = Math.max(left, Math.min(flag.x, end - wide(flag.at)));
    end = flag.x;
  }
  return flags;
}

// The numbers of what is painted, and the ways from one to the next.
function StretchLine({stretches, rank, toStretch}: {stretches: Stretches; rank: string; toStretch(at: number): void}) {
  const {kind, list, count, together, at} = stretches, now = list[at]!;
  return (
    <p class="evidence-stretches">
      <i class="swatch stretch" aria-hidden="true" />
      <span aria-live="polite">
        {t(`evidence.${kind}`, grouped(count), rank, duration(together))}{' '}
        <span class="quiet">{t('evidence.stretch', at + 1, list.length, duration(now.t1 - now.t0))}</span>
      </span>
      <button
        id="stretch-previous"
        disabled={at === 0}
        aria-label={t('evidence.stretch.previous')}
        onClick={() => toStretch(at - 1)}>
        ‹
      </button>
      <button
        id="stretch-next"
        disabled={at === list.length - 1}
        aria-label={t('evidence.stretch.next')}
        onClick={() => toStretch(at + 1)}>
        ›
      </button>
    </p>
  );
}

export function EvidenceBar(props: Props) {
  const {scenes: {findings, keys}, now, show, leave, places, left} = props, at = keys.indexOf(now),
    finding = findings[at];
  if (!finding) return null;
  return (
    <section class="evidence" aria-label={t('evidence')} id="evidence">
      <div class="evidence-head">
        <span class="evidence-move" role="group" aria-label={t('evidence.move')}>
          <button
            id="scene-previous"
            disabled={at <= 0}
            aria-label={t('evidence.previous')}
            title={`${t('evidence.previous')} ⇧E`}
            onClick={() => show(keys[at - 1]!)}>
            ‹
          </button>
          <span class="quiet">{t('evidence.of', at + 1, keys.length)}</span>
          <button
            id="scene-next"
            disabled={at >= keys.length - 1}
            aria-label={t('evidence.next')}
            title={`${t('evidence.next')} E`}
            onClick={() => show(keys[at + 1]!)}>
            ›
          </button>
        </span>
        <p class="evidence-words" aria-live="polite" title={both(finding.detail)}>
          <b>{both(finding.title)}</b>{' '}
          {finding.value && (
            <span class={/^−/.test(finding.value) ? 'evidence-price' : 'evidence-price none'}>
              {finding.value} <small>{both(finding.note)}</small>
            </span>
          )} <span class="quiet">{both(finding.detail)}</span>
        </p>
        <span class="evidence-places">{places.map(place => <a href={place.href}>{place.words}</a>)}</span>
        <button id="scene-leave" aria-label={t('evidence.leave')} title={t('evidence.leave')} onClick={leave}>×</button>
      </div>
      {props.stretches && (
        <StretchLine stretches={props.stretches} rank={props.rank ?? ''} toStretch={props.toStretch!} />
      )}
      <div class="evidence-lane" role="group" aria-label={t('evidence.lane')}>
        <span class="evidence-name" style={{width: `${left - 8}px`}}>{t('evidence.lane')}</span>
        {flagsOf(props).map(({x, at: list, beyond}) => (
          <span class={beyond === 0 ? 'flags' : 'flags beyond'} style={{transform: `translateX(${x}px)`}}>
            {list.map(i => (
              <button
                aria-pressed={i === at}
                title={both(findings[i]!.title)}
                aria-label={t('evidence.flag', i + 1, both(findings[i]!.title))}
                onClick={() => show(keys[i]!)}>
                {beyond < 0 && '‹'}
                {i + 1}
                {beyond > 0 && '›'}
              </button>
            ))}
          </span>
        ))}
      </div>
    </section>
  );
}
