// A what-if in the address: "scale=2:0.8,mb=16,to=zb-v,instant,fix=3", or "offer=NAME" of a fix (encoded): only
// what differs from the run. Scenarios that were kept follow, each with its name: "half:scale=2:0.5~more:mb=16".
import {safeDecode} from '../shell/route';
import type {Asked, Fixes, Price} from './world';

export interface Kept {
  name: string;
  asked: Asked;
  price: Price | null;
}

export const atRest = (fixes: Fixes | null): Asked => ({stage: -1, by: 1,
  microBatches: fixes?.schedule?.micro_batches ?? 0, schedule: fixes?.schedule?.name ?? '', instant: false, fix: -1});

const encoded = (text: string): string => encodeURIComponent(text).replaceAll('~', '%7E');

export function textOf(asked: Asked, fixes: Fixes): string {
  const rest = atRest(fixes), parts: string[] = [];
  // Within a memory the options have other numbers.
  if (asked.fix >= 0)
    return fixes.bytes === undefined ? `fix=${asked.fix}` : `offer=${encoded(fixes.fixes[asked.fix]!.name)}`;
  if (asked.by !== 1) parts.push(`scale=${asked.stage >= 0 ? `${asked.stage}:` : ''}${asked.by}`);
  if (asked.microBatches !== rest.microBatches) parts.push(`mb=${asked.microBatches}`);
  if (asked.schedule !== rest.schedule) parts.push(`to=${asked.schedule}`);
  if (asked.instant) parts.push('instant');
  return parts.join(',');
}

// A missing or out-of-range value stays as in the run.
export function askedOf(text: string, fixes: Fixes): Asked {
  const asked = atRest(fixes),
    within = (value: number, least: number, most: number): boolean => value >= least && value <= most;
  for (const part of text.split(',')) {
    const at = part.indexOf('='), key = at < 0 ? part : part.slice(0, at), value = part.slice(at + 1);
    if (key === 'scale') {
      const [stage, by] = value.includes(':') ? value.split(':').map(Number) : [-1, Number(value)];
      if (within(by!, 0.5, 1.5) && within(stage!, -1, fixes.stages - 1)) Object.assign(asked, {stage, by});
    } else if (key === 'mb' && fixes.schedule &&
      within(Number(value), 1, Math.max(4 * fixes.schedule.micro_batches, 8)))
    {
      asked.microBatches = Math.round(Number(value));
    } else if (key === 'to' && fixes.schedules.some(one => one.name === value)) {
      asked.schedule = value;
    } else if (key === 'instant') {
      asked.instant = true;
    } else if (key === 'offer') {
      asked.fix = fixes.fixes.findIndex(fix => fix.name === safeDecode(value));
    } else if (key === 'fix' && within(Number(value), 0, fixes.fixes.length - 1)) {
      asked.fix = Math.round(Number(value));
    }
  }
  return asked;
}

export const keptText = (kept: readonly Kept[], fixes: Fixes): string =>
  kept.map(one => `${encoded(one.name)}:${textOf(one.asked, fixes)}`).join('~');
export const keptOf = (text: string, fixes: Fixes): Kept[] =>
  text.split('~').filter(Boolean).map(one => {
    const at = one.indexOf(':');
    return {name: safeDecode(one.slice(0, at)), asked: askedOf(one.slice(at + 1), fixes), price: null};
  });
