// Which questions stand on one page, in which order, and what draws them. An analysis that no family names stands with
// the others, so that none is lost.
import {cluster, links} from '../../profile/cluster';
import {communication} from '../../profile/communication';
import {breakdown, idle, stragglers} from '../../profile/devices';
import {bandwidth, launches, queues} from '../../profile/host';
import {annotations, kernels} from '../../profile/kernels';
import {memory} from '../../profile/memory';
import {modules, operators} from '../../profile/operators';
import {rankMap} from '../../profile/rank_map';
import {steps} from '../../profile/steps';
import type {Topic} from '../../profile/topic';
import {critical, clockQuality, schedulePlot, slowness, transfers, waterfall} from './plots';

export interface Family { id: FamilyId; answers: string[]; topics: Topic[] }
export const FAMILY_IDS = ['time', 'idle', 'schedule', 'slow', 'critical', 'kernels', 'operators', 'communication', 'memory', 'launches',
                           'counters', 'cluster', 'clocks', 'other'] as const;
export type FamilyId = typeof FAMILY_IDS[number];

export const CLOCKS = 'align';  // answered by the clocks, not by an analysis

export const FAMILIES: readonly Family[] = [
  {id: 'time', answers: ['waterfall', 'pipeline-summary', 'temporal-breakdown', 'tb-overview', 'profiler-steps', 'xla-steps'],
   topics: [waterfall, breakdown, steps]},
  {id: 'idle', answers: ['idle-time-breakdown', 'free-analysis'], topics: [idle]},
  {id: 'schedule', answers: ['schedule', 'theory'], topics: [schedulePlot]},
  {id: 'slow', answers: ['stragglers', 'slowdown', 'potential-stragglers', 'slow-rank'], topics: [slowness, stragglers]},
  {id: 'critical', answers: ['pipeline-critical-path', 'critical-path-analysis'], topics: [critical]},
  {id: 'kernels', answers: ['gpu-kernel-breakdown', 'tb-kernel', 'frequent-cuda-kernel-sequences', 'gpu-user-annotation-breakdown',
                            'gpu-kernels-with-user-annotations', 'mstx-sum'], topics: [kernels, annotations]},
  {id: 'operators', answers: ['operators', 'aten-op-kernels-and-delay', 'tb-operator', 'tb-module', 'compute-op-sum', 'cann-api-sum',
                              'call-graph', 'execution-trace'], topics: [operators, modules]},
  {id: 'communication', answers: ['comm-comp-overlap', 'tb-distributed', 'links', 'communication-matrix', 'communication-time-sum',
                                  'hccl-sum', 'slow-link', 'flight-recorder'], topics: [communication, transfers, links]},
  {id: 'memory', answers: ['memory-categories', 'memory-timeline', 'tb-memory', 'allocator-snapshot'], topics: [memory]},
  {id: 'launches', answers: ['cuda-kernel-launch-stats'], topics: [launches]},
  {id: 'counters', answers: ['queue-length-summary', 'queue-length-time-series', 'time-spent-blocked-on-full-queue', 'memory-bw-summary',
                             'memory-bw-time-series', 'cupti-counter-data-with-operators'], topics: [queues, bandwidth]},
  {id: 'cluster', answers: ['rank-map', 'cluster-time-summary'], topics: [rankMap, cluster]},
  {id: 'clocks', answers: [CLOCKS], topics: [clockQuality]},
];

export const familyOf = (analysis: string): FamilyId => FAMILIES.find(family => family.answers.includes(analysis))?.id ?? 'other';
