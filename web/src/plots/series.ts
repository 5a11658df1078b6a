// Values over time, one strip a series, all on one axis: the mean of a bin filled, its maximum as a line.
import {h, styled, svg} from '../dom';
import {duration, grouped, tickName} from '../format';
import {t} from '../i18n/i18n';
import type {Kind} from './bars';
import {withCursor} from './cursor';

export interface Bin {
  start: number;
  dur: number;
  mean: number;
  max: number;
}
export interface Series {
  name: string;
  kind: Kind;
  bins: Bin[];
}

const HEIGHT = 44;

// Values of bins [0, count) of one grid; what the table leaves out is zero.
function onGrid(series: Series, zero: number, width: number, count: number): {mean: Float64Array; max: Float64Array} {
  const mean = new Float64Array(count), max = new Float64Array(count);
  for (const bin of series.bins) {
    const i = Math.min(count - 1, Math.max(0, Math.round((bin.start - zero) / width)));
    mean[i] = bin.mean;
    max[i] = bin.max;
  }
  return {mean, max};
}

function steps(values: Float64Array, high: number, closed: boolean): string {
  const y = (value: number): string => (HEIGHT - (high > 0 ? value / high : 0) * (HEIGHT - 2)).toFixed(2);
  let path = closed ? `M0 ${HEIGHT}` : `M0 ${y(values[0]!)}`;
  values.forEach((value, i) => {
    path += `L${i} ${y(value)}H${i + 1}`;
  });
  return closed ? `${path}V${HEIGHT}Z` : path;
}

export const plain = (
  value: number,
): string => (value >= 9999.5 ? grouped(value)
  : value >= 99.95 ? value.toFixed(0)
  : value >= 9.995 ? value.toFixed(1)
  : value >= 0.1 || value === 0 ? value.toFixed(2).replace(/\.?0+$/, '') : value.toPrecision(2));

export function timeTicks(from: number, to: number): HTMLElement {
  const raw = (to - from) / 6, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= raw)!;
  const ticks: HTMLElement[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const share = (at - from) / (to - from);
    if (share > 0.97) break; // the last label would stick out
    ticks.push(styled(h('span', {}, tickName(at)), {left: `${share * 100}%`}));
  }
  return h('div', {class: 'ticks', 'aria-hidden': 'true'}, ...ticks);
}

export function seriesPlot(name: string, unit: string, list: Series[]): HTMLElement {
  const bins = list.flatMap(series => series.bins);
  const zero = Math.min(...list.map(series => series.bins[0]!.start));
  const end = bins.reduce((high, bin) => Math.max(high, bin.start + bin.dur), zero + 1);
  const width = bins.reduce((low, bin) => (bin.dur > 0 ? Math.min(low, bin.dur) : low), Infinity);
  const count = Math.min(2000, Math.max(1, Math.round((end - zero) / (Number.isFinite(width) ? width : end - zero))));
  const grid = list.map(series => onGrid(series, zero, (end - zero) / count, count));
  const plots: HTMLElement[] = [];
  const strips = list.map((series, i) => {
    const {mean, max} = grid[i]!, high = max.reduce((a, b) => Math.max(a, b), 0);
    const plot = h('div', {class: 'strip-plot'},
      svg('svg', {viewBox: `0 0 ${count} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true'},
        svg('path', {class: `area kind-${series.kind}`, d: steps(mean, high, true)}),
        svg('path', {class: `line kind-${series.kind}`, d: steps(max, high, false),
          'vector-effect': 'non-scaling-stroke'})));
    plots.push(plot);
    return h('div', {class: 'strip'}, h('span', {class: 'strip-name'}, series.name), plot,
      h('span', {class: 'strip-high'}, t('plot.highest', plain(high)), unit && ` ${unit}`));
  });
  const figure = h('figure', {class: 'series', role: 'group', 'aria-label': `${name}. ${t('plot.keys')}`}, ...strips,
    h('div', {class: 'strip'}, h('span'), timeTicks(zero, end), h('span')));
  const cell = (end - zero) / count;
  figure.append(withCursor(figure, plots, {
    count,
    at: share => Math.floor(share * count),
    place: i => (i + 0.5) / count,
    words: i =>
      `${duration(zero + i * cell)} – ${duration(zero + (i + 1) * cell)}: ` + list.map((series, k) =>
        `${series.name} ${t('plot.meanMax', plain(grid[k]!.mean[i]!), plain(grid[k]!.max[i]!))}`
      ).join(' · ') + (unit && ` (${unit})`),
  }));
  return figure;
}
