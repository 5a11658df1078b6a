// The server describes a running job at /api/live (docs/viewer-protocol.md).
import type {Palette, Place} from '../data/report';

export interface Step {
  step: number;
  dur_ns: number;
  ranks: number;
  bubble_share: number | null;
  slowest_stage: number | null;
  stage_ratio: number;
  slowest_rank: number | null;
  rank_ratio: number;
}
export interface Finding {
  id: string;
  places: Place[];
  key: string;
  value: string;
  lost_share: number;
  note_en: string;
  note_zh: string;
  title_en: string;
  title_zh: string;
  detail_en: string;
  detail_zh: string;
}
export interface Seen {
  begin_step: number;
  last_step: number;
  gone: boolean;
  finding: Finding;
}
// Cells are runs of four: kind, start and duration in microseconds, micro-batch.
export interface Row {
  rank: number;
  stage: number;
  cells: number[];
}
export interface Pipeline {
  from_step: number;
  to_step: number;
  span_us: number;
  rows: Row[];
}
export interface Live {
  version: number;
  state: 'waiting' | 'recording' | 'silent' | 'closed';
  why: string;
  title: string;
  ranks: number;
  stages: number;
  steps_over: number;
  under_way: number;
  usual_ns: number;
  newest_ns: string;
  look_s: number;
  lost_records: number;
  behind_count: number;
  behind: number[];
  steps: Step[];
  findings: Seen[];
  pipeline: Pipeline | null;
  palette?: Record<'light' | 'dark', Palette>;
}
// The whole run, explained after its end. While that is made, the answer has no findings.
export interface Whole {
  findings?: Finding[];
  closing_en: string;
  closing_zh: string;
}
export interface Status {
  state: 'reading' | 'preparing' | 'ready' | 'failed';
  error?: string;
}

export async function ask<T>(path: string): Promise<T> {
  const answer = await fetch(`api/${path}`, {cache: 'no-store'});
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return await answer.json() as T;
}
