// A finding in the pipeline's chart: the cells that it accuses, their likes, and the one that stands for them.
import type {Cells} from '../../data/cells';
import {FORWARD_BACKWARD, KIND_GROUP} from '../../data/kind';
import type {Finding} from '../../data/report';
import {accusedOf} from '../evidence/rules';
import type {Run} from '../shell/api';
import type {Loaded} from './load';

const GROUPS = ['forward', 'backward', 'weight', 'message', 'collective', 'optimizer', 'other'];

export interface Lit {
  cells: Uint8Array;
  chosen: number;
}

const middle = (cells: Cells, list: number[]): number =>
  list.sort((a, b) => cells.dur[a]! - cells.dur[b]!)[list.length >> 1] ?? -1;

// `kinds`: of the run; its second one has the same.
export function litOf({cells, report}: Loaded, kinds: Run['kinds'], finding: Finding, step: number | null,
  dp: number | null): Lit
{
  const {groups, ranks, peers, microBatch, choose} = accusedOf({ranks: report.parts, kinds}, finding),
    lit = new Uint8Array(cells.count),
    own: number[] = [];
  // Findings about time in which nothing runs accuse no cell.
  if (choose === 'between') return {cells: lit.fill(1), chosen: -1};
  for (let i = 0; i < cells.count; ++i) {
    const group = GROUPS[KIND_GROUP[cells.kind[i]!]!]!, part = cells.part[i]!;
    if (groups.length > 0 && !groups.includes(group) || (microBatch >= 0 && cells.microBatch[i] !== microBatch))
      continue;
    lit[i] = ranks.size === 0 || ranks.has(part) ? 2 : peers.has(part) ? 1 : 0;
    const replica = report.parts[part]!.dp;
    if (lit[i] === 2 && cells.step[i] === step && (dp === null || replica < 0 || replica === dp) && cells.dur[i]! > 0)
      own.push(i);
  }
  const backwards = own.filter(i =>
    GROUPS[KIND_GROUP[cells.kind[i]!]!] === 'backward' || cells.kind[i] === FORWARD_BACKWARD
  );
  const list = backwards.length > 0 ? backwards : own;
  const longest = (): number => list.reduce((best, i) => (best < 0 || cells.dur[i]! > cells.dur[best]! ? i : best), -1);
  return {cells: lit, chosen: choose === 'longest' ? longest() : middle(cells, list)};
}
