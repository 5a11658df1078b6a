// Step times as bars; a click shows that step.
import type {App} from '../app';
import {h, svg} from '../dom';
import {findTable, tableColumn} from '../data/report';
import {duration} from '../format';
import {t} from '../i18n/i18n';

export interface StepTime {
  step: number;
  span: number;
}

// From the table "steps", else from the cells.
export function stepTimes(app: App): StepTime[] {
  const table = findTable(app.report, 'steps');
  const step = table && tableColumn(table, 'step'), span = table && tableColumn(table, 'span_ns');
  const known = new Map<number, number>();
  step?.forEach((value, i) => {
    const ns = span?.[i];
    if (typeof value === 'number' && typeof ns === 'number') known.set(value, ns);
  });
  return app.model.steps.map(s => ({step: s.step, span: known.get(s.step) ?? s.t1 - s.t0}));
}

const WIDTH = 720, HEIGHT = 46;

// From 0: a bar twice as high is a step twice as long.
export const barHeight = (span: number,
  high: number): number => (high > 0 ? Math.max(2, span / high * HEIGHT) : HEIGHT);

// `chosen`: the step that is marked; asked again at every statechange. `host`: steps are what the host took (of
// several hosts the mean), which may last longer than the devices' work for them.
export function stepBarsView(times: StepTime[], chosen: () => number | null, choose: (step: number) => void,
  host = false): HTMLElement | null
{
  if (times.length === 0) return null;
  const low = times.reduce((a, b) => Math.min(a, b.span), Infinity),
    high = times.reduce((a, b) => Math.max(a, b.span), 0);
  const pitch = Math.min(WIDTH / times.length, 24), gap = pitch > 4 ? 2 : 0;
  const bars = times.map((time, i) => {
    const height = barHeight(time.span, high);
    return svg('rect', {x: (i * pitch).toFixed(2), y: (HEIGHT - height).toFixed(1), width: (pitch - gap).toFixed(2),
      height: height.toFixed(1), 'data-step': time.step},
      svg('title', {}, `${t('chart.step', time.step)}: ${duration(time.span)}`));
  });
  const title = times.length === 1 || duration(low) === duration(high)
    ? t(host ? 'stepTime.host.one' : 'stepTime.one', duration(high))
    : t(host ? 'stepTime.host' : 'stepTime', duration(low), duration(high));
  const chart = svg('svg', {class: 'spark', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none',
    'shape-rendering': gap ? 'auto' : 'crispEdges', role: 'img', 'aria-label': `${title}; ${t('stepTime.hint')}`},
    ...bars);
  chart.addEventListener('click', event => {
    const box = chart.getBoundingClientRect();
    const i = Math.floor((event.clientX - box.left) / box.width * WIDTH / pitch);
    const time = times[Math.min(Math.max(i, 0), times.length - 1)]!;
    choose(time.step);
  });
  const key = h('p', {class: 'quiet'});
  const mark = (): void => {
    const now = chosen();
    bars.forEach((bar, i) => bar.classList.toggle('now', times[i]!.step === now));
    key.textContent = now === null || times.length === 1 ? ''
      : t('stepTime.key', times[0]!.step, times.at(-1)!.step, now);
  };
  mark();
  const view = h('section', {class: 'aside-block steps'}, h('h2', {}, title), chart, key);
  view.addEventListener('statechange', mark);
  return view;
}
