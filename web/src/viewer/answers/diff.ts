// The result of `stageline diff --json` for two runs (/api/compare); {}: neither has a pipeline, a device or a step.
import type {Place} from '../../data/report';
import {currentLang, t} from '../../i18n/i18n';

export interface Both {
  en: string;
  zh: string;
}
// An item of a part of a profile's bar: an operator, a collective, a copy, or work of the host.
export interface Behind extends Both {
  name: string;
  at: string;
  effect_ns: number;
  effect_share: number;
  error_ns: number | null;
  beyond_noise: boolean;
}
export interface Diff {
  profile: boolean; // of two profiles: changes are parts of their bars
  change_ns: number;
  error_ns: number | null;
  change_share: number;
  beyond_noise: boolean;
  headline_en: string;
  headline_zh: string;
  cause_en: string;
  cause_zh: string;
  per_micro_batch_en: string;
  per_micro_batch_zh: string;
  differences: Both[];
  matched: number;
  unmatched: number;
  unused: number;
  runs: Both[];
  changes:
    (Both & {effect_ns: number; effect_share: number; error_ns: number | null; cause: string; kind: string;
      places: Place[]; behind: Behind[]})[]; // the places that a line names; none: the whole step
}
export const said = (both: Both): string => (currentLang() === 'zh' ? both.zh : both.en);

// Returns the change, and below it the main part of it.
export function sentences(diff: Diff): {headline: string; lead: string} {
  const stop = currentLang() === 'zh' ? '。' : '.';
  const cause = said({en: diff.cause_en, zh: diff.cause_zh}),
    each = said({en: diff.per_micro_batch_en, zh: diff.per_micro_batch_zh});
  return {headline: said({en: diff.headline_en, zh: diff.headline_zh}) + stop,
    lead: [cause && t('compare.most', cause), each].filter(Boolean).map(one => one + stop).join(' ')};
}
