// Draws step time over time: for many steps the longest of each column, so that no long step is lost. Below it is a bar
// for each finding from the step on in which it was found.
import {t} from '../i18n/i18n';
import {h, svg} from '../dom';
import {duration} from '../format';
import type {Seen, Step} from './api';

const COLUMNS = 600, HEIGHT = 100, FLAG = 5;

// The longest step of each column. O(steps).
export function columns(steps: readonly Step[], most: number): number[] {
  const count = Math.min(most, steps.length), out = new Array<number>(count).fill(0);
  steps.forEach((step, i) => {
    const column = Math.floor(i * count / steps.length);
    out[column] = Math.max(out[column]!, step.dur_ns);
  });
  return out;
}

export function stepTimes(steps: readonly Step[], usual: number, findings: readonly Seen[]): HTMLElement[] {
  if (steps.length === 0) return [];
  const values = columns(steps, COLUMNS), width = values.length, high = Math.max(...values) * 1.08,
    low = steps.reduce((least, step) => Math.min(least, step.dur_ns), Infinity);
  const y = (ns: number): string => (HEIGHT - ns / high * HEIGHT).toFixed(2);
  const line = values.map((ns, i) => `${i ? 'L' : 'M'}${i + .5} ${y(ns)}`).join(''), first = steps[0]!.step,
    last = steps[steps.length - 1]!.step;
  const at = (step: number): number => (last === first ? 0 : (step - first) / (last - first) * width);
  const least = width / 200;
  const flags = findings.slice(-6).map((seen, i) => {
    const x = Math.min(at(seen.begin_step), width - least); // what is found in a step is there before the step is over
    return svg('rect', {class: seen.gone ? 'flag gone' : 'flag', x,
      width: Math.max(least, at(seen.gone ? Math.min(seen.last_step, last) : last) - x), y: HEIGHT + 2 + i * (FLAG + 1),
      height: FLAG});
  });
  const bottom = HEIGHT + flags.length * (FLAG + 1) + 2;
  return [
    h('div', {class: 'plot'},
      svg('svg', {viewBox: `0 0 ${width} ${bottom}`, preserveAspectRatio: 'none', role: 'img',
        'aria-label': t('live.time.label', first, last, duration(low), duration(Math.max(...values)))},
        svg('path', {class: 'area', d: `${line}L${width - .5} ${HEIGHT}L.5 ${HEIGHT}Z`}),
        svg('line', {class: 'median', x1: 0, x2: width, y1: y(usual), y2: y(usual)}),
        svg('path', {class: 'line', d: line}), ...flags),
      h('span', {class: 'high', 'aria-hidden': 'true'}, duration(Math.max(...values)))),
    h('div', {class: 'axis', 'aria-hidden': 'true'}, h('span', {}, String(first)),
      h('span', {}, t('live.time.median', duration(usual))), h('span', {}, String(last))),
  ];
}
