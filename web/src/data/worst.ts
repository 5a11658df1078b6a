// Ranks that take more than their peers, as the program knows them (/api/pipeline/ranks): by part of the report.
import type {Part} from './report';

export interface WorstRank {
  place: number; // the worst is 0
  beyondNs: number; // of a mean step, beyond its peers
  ratio: number; // to its peers; NaN: it has none
  verdict: string;
  isSlow: boolean; // the program calls it so
}
export type WorstRanks = ReadonlyMap<number, WorstRank>;
export interface RanksAnswer {
  ranks: {rank: number; beyond_ns: number; peer_ratio: number | null; verdict: string}[];
}

const WELL = new Set(['fine', 'no peer']);

export function worstOf({ranks}: RanksAnswer, parts: readonly Part[]): WorstRanks {
  const partOf = new Map(parts.map((part, i) => [part.rank, i])), found = new Map<number, WorstRank>();
  ranks.forEach(({rank, beyond_ns, peer_ratio, verdict}, place) => {
    const part = partOf.get(rank);
    if (part !== undefined)
      found.set(part, {place, beyondNs: beyond_ns, ratio: peer_ratio ?? NaN, verdict, isSlow: !WELL.has(verdict)});
  });
  return found;
}
