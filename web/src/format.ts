// Formats numbers for people: three figures, thin spaces, units.
import {t} from './i18n/i18n';
import type {ColumnType, Value} from './data/report';

const THIN = '\u202f';
const UNITS: ReadonlyArray<readonly [number, string]> = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']];

export function duration(ns: number): string {
  const days = ns / 86_400e9;
  if (Math.abs(days) >= 1) return `${days.toFixed(Math.abs(days) >= 99.95 ? 0 : 1)}${THIN}${t('days')}`;
  for (const [size, unit] of UNITS) {
    const value = ns / size;
    if (Math.abs(value) < 0.9995) continue;
    return `${value.toFixed(Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2)}${THIN}${unit}`;
  }
  return `${Math.round(ns)}${THIN}ns`;
}

// "20 µs": for axes, whose numbers are round.
export const tickName = (ns: number): string => (ns === 0 ? '0' : duration(ns).replace(/\.0+(?=\u202f)/, ''));

// Formats "66.843120 ms" with every nanosecond, for the details panel.
export function exactMs(ns: number): string {
  const whole = Math.trunc(ns / 1e6), rest = Math.abs(ns % 1e6);
  const fraction = String(rest).padStart(6, '0').replace(/0+$/, '');
  return `${ns < 0 && whole === 0 ? '-' : ''}${grouped(whole)}${fraction ? '.' + fraction : ''}${THIN}ms`;
}

export function grouped(value: number): string {
  const text = String(Math.trunc(value));
  return Math.abs(value) < 10000 ? text : text.replace(/\B(?=(\d{3})+$)/g, THIN);
}

// Uses decimal units, as the terminal does.
export function bytes(value: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let unit = 0, size = Math.abs(value);
  for (; size >= 999.5 && unit < 4; ++unit) size /= 1000;
  const text = unit === 0 ? String(Math.round(size)) : size.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  return `${value < 0 ? '−' : ''}${text}${THIN}${units[unit]}`;
}

// "1.23 G": of counts.
export function scaled(value: number): string {
  const units = ['', 'K', 'M', 'G', 'T', 'P', 'E'];
  let unit = 0, size = value;
  for (; size >= 999.5 && unit < 6; ++unit) size /= 1000;
  return `${unit === 0 ? Math.round(size) : size.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)}${
    units[unit] && THIN + units[unit]
  }`;
}

export const percent = (share: number): string => {
  const size = Math.abs(share * 100).toFixed(1); // no minus zero, and a minus that is one
  return `${share < 0 && size !== '0.0' ? '−' : ''}${size}${THIN}%`;
};

// Each share as percent() prints it, but so that the printed numbers add up to 100.0 where the shares add up to 1; as
// percents() of src/base/number.h.
export function percents(shares: readonly number[]): string[] {
  const sum = shares.reduce((all, share) => all + share, 0);
  if (shares.length < 2 || Math.abs(sum - 1) >= 0.0005) return shares.map(percent);
  const whole = shares.map((share,
    i) => (i === 0 ? Math.round(Number((share * 100).toFixed(1)) * 10) : Math.floor(share * 1000))
  );
  let open = 1000 - whole.reduce((all, tenth) => all + tenth, 0);
  const rest = (i: number): number => shares[i]! * 1000 - Math.floor(shares[i]! * 1000);
  for (const i of [...shares.keys()].slice(1).sort((a, b) => rest(b) - rest(a) || a - b)) if (open-- >= 1) ++whole[i]!;
  return whole.map(tenth => percent(tenth / 1000));
}

// As Table::shown_text: without unit.
export function shown(value: Value, type: ColumnType): string {
  if (value === null) return '–';
  if (typeof value === 'string') return value;
  switch (type) {
    case 'duration':
    case 'time':
      return (value / 1e6).toFixed(3);
    case 'real':
      return value.toFixed(3);
    case 'share':
      return (value * 100).toFixed(1);
    case 'ratio':
      return value.toFixed(2);
    default:
      return String(value);
  }
}

// The unit of shown(), as shown_unit() in src/model/table.cc.
export const shownUnit = (type: ColumnType): string =>
  ({duration: 'ms', time: 'ms', share: '%', ratio: '×', integer: '', real: '', text: ''})[type];
