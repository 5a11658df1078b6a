// The answer to /api/explain, which is `stageline explain --json`: what the first screen says, and what scenes are made of.
import type {Finding} from '../data/report';
import {deskOf, type Working} from './answers/ask';
import type {Api} from './api';

export interface Told {
  id: string; cause: string; causes?: string[]; priced: boolean; lost_ns: number; lost_share: number; saving_ns: number; value: string;
  note_en: string; note_zh: string; title_en: string; title_zh: string; detail_en: string; detail_zh: string;
  analysis: string; table: string; command: string; step: number | null; rank: number | null;
}
export interface Explained {
  run_en: string; run_zh: string; steps: number; step_ns: number; lost_ns: number; why_not: string; note_en: string; note_zh: string;
  closing_en: string; closing_zh: string; title_en: string; title_zh: string; lead_en: string; lead_zh: string;
  parts: {id: string; label_en: string; label_zh: string; share: number}[];
  findings: Told[]; offers: Told[];
}

export const findingOf = (told: Told): Finding => ({
  id: told.id, weight: told.lost_share || (told.priced ? 1 : 0), value: told.value, note: [told.note_en, told.note_zh],
  title: [told.title_en, told.title_zh], detail: [told.detail_en, told.detail_zh], cause: told.cause, causes: told.causes ?? [told.cause],
  analysis: told.analysis, table: told.table, command: told.command, step: told.step, rank: told.rank,
});

// Asked once, whichever page asks first.
export const explained = (api: Api, watch: (now: Working) => void = () => undefined): Promise<Explained> =>
  deskOf(api).ask<Explained>('explain', {}, watch);
