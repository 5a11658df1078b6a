// The answer to /api/explain, which is `stageline explain --json`: what the first screen says, and what scenes are made
// of.
import type {Finding, Place} from '../../data/report';
import {deskOf, type Working} from './ask';
import type {Api} from '../shell/api';

export interface Reported {
  id: string;
  places: Place[];
  or_else: Place[];
  key: string;
  priced: boolean;
  lost_ns: number;
  lost_share: number;
  saving_ns: number;
  value: string;
  note_en: string;
  note_zh: string;
  title_en: string;
  title_zh: string;
  detail_en: string;
  detail_zh: string;
  analysis: string;
  table: string;
  command: string;
  step: number | null;
  rank: number | null;
  figures: string[];
}
type Part = {id: string; label_en: string; label_zh: string; share: number};
export interface Explained {
  run_en: string;
  run_zh: string;
  steps: number;
  step_ns: number;
  lost_ns: number;
  why_not: string;
  note_en: string;
  note_zh: string;
  closing_en: string;
  closing_zh: string;
  title_en: string;
  title_zh: string;
  lead_en: string;
  lead_zh: string;
  parts: Part[];
  device_parts: Part[]; // of a pipeline in a profile
  host_parts: Part[];
  findings: Reported[];
  offers: Reported[];
}

export const findingOf = (reported: Reported): Finding => ({
  id: reported.id,
  weight: reported.lost_share || (reported.priced ? 1 : 0),
  value: reported.value,
  note: [reported.note_en, reported.note_zh],
  title: [reported.title_en, reported.title_zh],
  detail: [reported.detail_en, reported.detail_zh],
  places: reported.places,
  or_else: reported.or_else,
  key: reported.key,
  analysis: reported.analysis,
  table: reported.table,
  command: reported.command,
  step: reported.step,
  rank: reported.rank,
  lost_ns: reported.lost_ns,
  figures: reported.figures,
});

// The answer is requested once, by the first page that needs it.
export const explained = (api: Api, watch: (now: Working) => void = () => undefined): Promise<Explained> =>
  deskOf(api).ask<Explained>('explain', {}, watch);
