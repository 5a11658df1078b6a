// Levels over time, stacked from the foot; between two points a level holds. One more may stand over them as a line.
import {h, styled, svg} from '../dom';
import {bytes, duration} from '../format';
import {t} from '../i18n/i18n';
import type {Kind} from './bars';
import {withCursor} from './cursor';
import {timeTicks} from './series';

export interface Level {
  kind: Kind;
  name: string;
}
export interface LevelMark {
  time: number;
  words: string;
}
export interface LevelPoint {
  time: number;
  values: number[];
  line?: number;
}

const HEIGHT = 150, MOST = 500;

// Returns the highest point of each of `count` stretches of time; where there is none, the level before.
function onGrid(points: LevelPoint[], from: number, width: number, count: number): LevelPoint[] {
  const total = (point: LevelPoint): number => point.values.reduce((all, value) => all + value, 0);
  const grid: LevelPoint[] = [];
  let next = 0, level = points[0]!;
  for (let i = 0; i < count; ++i) {
    let highest = level;
    for (let first = true; next < points.length && (points[next]!.time < from + (i + 1) * width || i === count - 1);
      ++next, first = false)
    {
      level = points[next]!;
      if (first || total(level) > total(highest)) highest = level;
    }
    grid.push(highest);
  }
  return grid;
}

// `points` ascend in time and there is at least one.
export function levelPlot(name: string, levels: Level[], points: LevelPoint[], lineName = '',
  marks: readonly LevelMark[] = []): HTMLElement
{
  const from = points[0]!.time, to = Math.max(points[points.length - 1]!.time, from + 1);
  const count = Math.max(1, Math.min(MOST, points.length * 4)), grid = onGrid(points, from, (to - from) / count, count);
  const high = grid.reduce(
    (top, point) => Math.max(top, point.line ?? 0, point.values.reduce((all, value) => all + Math.max(0, value), 0)),
    1,
  );
  const y = (value: number): string => (HEIGHT - Math.max(0, value) / high * (HEIGHT - 3)).toFixed(2);
  const foot = new Float64Array(count);
  const areas = levels.map((level, k) => {
    let top = `M0 ${y(foot[0]!)}`, back = '';
    grid.forEach((point, i) => {
      const low = foot[i]!;
      foot[i] = low + Math.max(0, point.values[k] ?? 0);
      top += `L${i} ${y(foot[i]!)}H${i + 1}`;
      back = `L${i + 1} ${y(low)}H${i}` + back;
    });
    return svg('path', {class: `level kind-${level.kind}`, d: `${top}${back}Z`});
  });
  const line = grid.some(point => (point.line ?? 0) > 0)
    ? svg('path', {class: 'line reserved', 'vector-effect': 'non-scaling-stroke',
      d: grid.map((point, i) => `${i ? 'L' : 'M'}${i} ${y(point.line ?? 0)}H${i + 1}`).join('')}) : null;
  const plot = h('div', {class: 'level-plot'},
    svg('svg', {viewBox: `0 0 ${count} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true'}, ...areas, line),
    h('span', {class: 'level-high', 'aria-hidden': 'true'}, bytes(high)),
    ...marks.map(({time, words}) =>
      styled(h('i', {class: 'level-mark', title: words}), {left: `${(time - from) / (to - from) * 100}%`})
    ));
  const figure = h('figure', {class: 'series levels', role: 'group', 'aria-label': `${name}. ${t('plot.keys')}`}, plot,
    timeTicks(0, to - from));
  const words = (point: LevelPoint): string =>
    [
      ...levels.map((level, k) => ((point.values[k] ?? 0) > 0 ? `${level.name} ${bytes(point.values[k]!)}` : '')),
      (point.line ?? 0) > 0 && lineName ? `${lineName} ${bytes(point.line!)}` : '',
    ].filter(Boolean).join(' · ');
  figure.append(withCursor(figure, [plot], {
    count,
    at: share => Math.floor(share * count),
    place: i => (i + 0.5) / count,
    words: i => `${duration((i + 0.5) * (to - from) / count)}: ${words(grid[i]!) || bytes(0)}`,
  }));
  return figure;
}
