// Parameters of questions, as src/server/http/query.cc reads them.
import type {Store} from './lanes';

export type Asked = Record<string, string | number | undefined>;

// An answer that is no: the protocol's status, and words.
export class Refusal extends Error {
  constructor(readonly status: number, what: string, readonly hint = '') {
    super(what);
  }
}
export function refuse(status: number, what: string, hint = ''): never {
  throw new Refusal(status, what, hint);
}

export function numberAsked(asked: Asked, name: string, fallback: number): number {
  const value = asked[name];
  if (value === undefined) return fallback;
  const number = typeof value === 'number' ? value : value.trim() === '' ? NaN : Number(value);
  if (!Number.isFinite(number)) refuse(400, `${name} is a number`);
  return number;
}
export const textAsked = (asked: Asked, name: string): string => String(asked[name] ?? '');

// "3,4,10-20" of numbers below `end`.
export function listAsked(asked: Asked, name: string, end: number): number[] {
  const text = asked[name];
  if (text === undefined) return Array.from({length: end}, (_, i) => i);
  const found = new Set<number>();
  for (const part of String(text).split(',').filter(Boolean)) {
    const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(part) ??
      refuse(400, `${name} is a list such as 0-3,8 of numbers below ${end}`);
    const last = Number(to ?? from);
    if (last >= end) refuse(400, `${name} is a list such as 0-3,8 of numbers below ${end}`);
    for (let i = Number(from); i <= last; ++i) found.add(i);
  }
  return [...found].sort((a, b) => a - b);
}
export const lanesAsked = (store: Store, asked: Asked): number[] => listAsked(asked, 'lanes', store.lanes.length);

export interface Window {
  t0: number;
  t1: number;
  from: number;
  to: number;
} // `from` and `to`: whole nanoseconds around it
export function windowAsked(store: Store, asked: Asked, span = store.run.span_ns): Window {
  const t0 = numberAsked(asked, 't0', 0), t1 = numberAsked(asked, 't1', Math.max(1, span));
  if (!(t1 > t0)) refuse(400, 't1 has to be after t0');
  return {t0, t1, from: Math.floor(t0), to: Math.ceil(t1)};
}
