// Several runs of one job, in order: what a step took in each, where it became longer, and why.
import type {Both} from '../../data/report';
import {duration, percent} from '../../format';
import {currentLang, t} from '../../i18n/i18n';
import {said, type Diff} from '../answers/diff';
import type {Pairs} from '../shell/shelf';

export interface TrendRun {
  title: string;
  path: string;
  steps: number;
  step_ns: number;
  headline: Both;
  why_not?: Both;
  diff: Partial<Diff>;
  change_share: number | null;
} // of step_ns, from the run before
export interface Trend {
  runs: TrendRun[];
  changes: {at: number; before_ns: number; after_ns: number; p: number}[];
}

// The number of runs from which a level can be found. With four or more on each side one arrangement of eleven in 330
// or more is as uneven at random, which is below the significance of base/change_points.h. With ten it is one in 126 if
// both sides have five, so no level could ever be found there.
const LEAST_FOR_LEVELS = 11;
const HEIGHT = 230, TOP = 26, BOTTOM = 34;

const reported = (both: Both): string => both[currentLang() === 'zh' ? 1 : 0];
const signed = (share: number): string => `${share < 0 ? '−' : '+'}${percent(Math.abs(share))}`;
const sure = (run: TrendRun): number => (run.diff.beyond_noise ? Math.sign(run.diff.change_ns!) : 0);

// The first line: where the level changed; else the run that became slower most; else that none did.
export function headline({runs, changes}: Trend): {title: string; lead: string} {
  const last = changes.at(-1),
    cause = (run: TrendRun): string =>
      run.diff.cause_en
        ? t('compare.most', said({en: run.diff.cause_en, zh: run.diff.cause_zh!})) +
          (currentLang() === 'zh' ? '。' : '.') : '';
  if (last) {
    const share = last.after_ns / last.before_ns - 1, run = runs[last.at]!;
    return {
      title: t(share > 0 ? 'trend.level.slower' : 'trend.level.faster', run.title, percent(Math.abs(share)),
        duration(last.before_ns), duration(last.after_ns)),
      lead: [t('trend.level.how', runs.length, last.p.toFixed(3)), sure(run) === Math.sign(share) ? cause(run) : '']
        .join(' '),
    };
  }
  const held = runs.filter(run => run.step_ns > 0), steps = held.map(run => run.step_ns);
  const few = runs.length < LEAST_FOR_LEVELS ? t('trend.few', LEAST_FOR_LEVELS) : t('trend.level.none');
  for (const way of [1, -1]) {
    const found = runs.filter(run =>
      sure(run) === way
    ).sort((a, b) => Math.abs(b.change_share!) - Math.abs(a.change_share!))[0];
    if (found)
      return {title: t(way > 0 ? 'trend.slower' : 'trend.faster', found.title, percent(Math.abs(found.change_share!))),
        lead: [cause(found), few].join(' ')};
  }
  // A run that was not compared with the previous one is not reported as equally fast.
  return held.filter(run => run.diff.change_ns !== undefined).length < held.length - 1
    ? {title: t('trend.chart', held.length, duration(Math.min(...steps)), duration(Math.max(...steps))),
      lead: t('trend.unknown')} : {title: t('trend.none'), lead: few};
}

function Chart({trend: {runs, changes}}: {trend: Trend}) {
  const known = runs.filter(run => run.step_ns > 0).map(run => run.step_ns), least = Math.min(...known),
    most = Math.max(...known);
  const pad = Math.max((most - least) * .12, most * .005), low = least - pad, high = most + pad;
  const y = (ns: number): number => TOP + (high - ns) / (high - low) * (HEIGHT - TOP - BOTTOM);
  const x = (i: number): string => `${(i + .5) / runs.length * 100}%`,
    edge = (i: number): string => `${i / runs.length * 100}%`;
  const every = Math.ceil(runs.length / (innerWidth < 700 ? 3 : 10));
  const levels = changes.map((change, k) => ({from: change.at, to: changes[k + 1]?.at ?? runs.length,
    ns: change.after_ns})
  );
  if (changes[0]) levels.unshift({from: 0, to: changes[0].at, ns: changes[0].before_ns});
  return (
    <div class="trend-box">
      <div class="trend-axis" aria-hidden="true">
        {[most, least].map(ns => <span style={{top: `${y(ns)}px`}}>{duration(ns)}</span>)}
      </div>
      <svg
        class="trend"
        height={HEIGHT}
        role="img"
        aria-label={t('trend.chart', runs.length, duration(least), duration(most))}>
        {[most, least].map(ns => <line class="grid" x1="0" x2="100%" y1={y(ns)} y2={y(ns)} />)}
        {changes.map(change => (
          <line
            class={change.after_ns > change.before_ns ? 'cut slower' : 'cut'}
            x1={edge(change.at)}
            x2={edge(change.at)}
            y1={TOP - 16}
            y2={HEIGHT - BOTTOM} />
        ))}
        {levels.map(level => (
          <line class="level" x1={edge(level.from)} x2={edge(level.to)} y1={y(level.ns)} y2={y(level.ns)} />
        ))}
        {runs.map((run, i) =>
          run.step_ns > 0 && (
            <g class={sure(run) > 0 ? 'slower' : sure(run) < 0 ? 'faster' : ''}>
              <circle cx={x(i)} cy={y(run.step_ns)} r={sure(run) ? 6 : 4.5}>
                <title>{`${run.title}: ${duration(run.step_ns)}`}</title>
              </circle>
              {sure(run) !== 0 && <text x={x(i)} y={y(run.step_ns) - 11}>{signed(run.change_share!)}</text>}
            </g>
          )
        )}
        {runs.map((run, i) =>
          i % every === 0 && (
            <text class="name" x={x(i)} y={HEIGHT - 14}>
              {run.title.length > 16 ? run.title.slice(0, 15) + '…' : run.title}
            </text>
          )
        )}
      </svg>
    </div>
  );
}

// `open` takes what /api/open does.
export function TrendView({trend, pairs, open}: {trend: Trend; pairs: Pairs; open: (pairs: Pairs) => void}) {
  const {title, lead} = headline(trend), {runs} = trend;
  const before = (i: number): number => {
    while (--i >= 0 && !(runs[i]!.step_ns > 0));
    return i;
  };
  const link = (words: string, to: Pairs) => <button class="plain link" onClick={() => open(to)}>{words}</button>;
  return (
    <>
      <h1 tabIndex={-1}>{title}</h1>
      <p class="lead">{lead}</p>
      <Chart trend={trend} />
      <div class="plot-box">
        <table class="trend-table">
          <thead>
            <tr>
              <th class="text" scope="col">{t('trend.run')}</th>
              <th scope="col">{t('trend.steps')}</th>
              <th scope="col">{t('trend.step')}</th>
              <th scope="col">{t('trend.change')}</th>
              <th class="text" scope="col">{t('trend.why')}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {runs.map((run, i) => (
              <tr class={trend.changes.some(change => change.at === i) ? 'cut' : ''}>
                <th class="text" scope="row" title={run.path}>{link(run.title, [pairs[i]!])}</th>
                {run.why_not ? <td class="text quiet" colSpan={5}>{reported(run.why_not)}</td> : (
                  <>
                    <td>{run.steps}</td>
                    <td>{duration(run.step_ns)}</td>
                    <td class={sure(run) > 0 ? 'slower' : sure(run) < 0 ? 'faster' : 'quiet'}>
                      {run.change_share === null ? '–'
                        : signed(run.change_share) +
                          (run.diff.error_ns ? ` ± ${percent(run.diff.error_ns / run.step_ns)}` : '')}
                    </td>
                    <td class="text">
                      {sure(run) !== 0 && run.diff.cause_en ? said({en: run.diff.cause_en, zh: run.diff.cause_zh!})
                        : reported(run.headline)}
                    </td>
                    <td>
                      {before(i) >= 0 &&
                        link(t('page.compare'), [pairs[before(i)]!, [
                          pairs[i]![0] === 'drop' ? 'compare_drop' : 'compare',
                          pairs[i]![1],
                        ]])}
                    </td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="quiet">{t('trend.how')}</p>
    </>
  );
}
