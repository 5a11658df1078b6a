// Lists the questions of each page, their order, and the functions that draw them. The folder of an analysis
// (src/analyses/FOLDER/words.json) gives its family and place. An analysis without one is listed with the others, so
// that none is lost.
import analyses from 'analyses';
import {currentLang, t} from '../../i18n/i18n';
import {allocator} from '../../profile/allocator';
import {cluster, experts, links} from '../../profile/cluster';
import {communication} from '../../profile/communication';
import {breakdown, idle, stragglers} from '../../profile/devices';
import {bandwidth, launches, queues} from '../../profile/host';
import {annotations, kernels} from '../../profile/kernels';
import {memory} from '../../profile/memory';
import {modules, operators} from '../../profile/operators';
import {rankMap} from '../../profile/rank_map';
import {roofline} from '../../profile/roofline';
import {steps} from '../../profile/steps';
import type {Topic} from '../../profile/topic';
import {critical, clockQuality, schedulePlot, slowness, transfers, waterfall} from './plots';

export interface Family {
  id: FamilyId;
  answers: string[];
  topics: Topic[];
}
export const FAMILY_IDS = [
  'time',
  'idle',
  'schedule',
  'slow',
  'critical',
  'kernels',
  'operators',
  'communication',
  'memory',
  'launches',
  'counters',
  'cluster',
  'clocks',
  'other',
] as const;
export type FamilyId = typeof FAMILY_IDS[number];

export const CLOCKS = 'align'; // answered by the clocks, not by an analysis

const PAGES: readonly Omit<Family, 'answers'>[] = [
  {id: 'time', topics: [waterfall, breakdown, steps]},
  {id: 'idle', topics: [idle]},
  {id: 'schedule', topics: [schedulePlot]},
  {id: 'slow', topics: [slowness, stragglers]},
  {id: 'critical', topics: [critical]},
  {id: 'kernels', topics: [kernels, annotations]},
  {id: 'operators', topics: [operators, roofline, modules]},
  {id: 'communication', topics: [communication, transfers, links]},
  {id: 'memory', topics: [memory, allocator]},
  {id: 'launches', topics: [launches]},
  {id: 'counters', topics: [queues, bandwidth]},
  {id: 'cluster', topics: [rankMap, cluster, experts]},
  {id: 'clocks', topics: [clockQuality]},
];

export const FAMILIES: readonly Family[] = PAGES.map(page => ({...page,
  answers: page.id === 'clocks' ? [CLOCKS] : (analyses[page.id] ?? []).map(([name]) => name)})
);

export const familyOf = (analysis: string): FamilyId =>
  FAMILIES.find(family => family.answers.includes(analysis))?.id ?? 'other';
export const titleOf = (analysis: string): string => {
  if (analysis === CLOCKS) return t('answer.align');
  const said = Object.values(analyses).flat().find(([name]) => name === analysis);
  return said?.[currentLang() === 'zh' ? 2 : 1] ?? analysis;
};
