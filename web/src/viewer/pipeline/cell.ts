// From a cell of the chart to where the timeline shows it: its time, its slice, and the device work of its rank under
// it.
import {isReceive, KIND_LANE} from '../../data/kind';
import {listOf} from '../shell/api';
import {plainQuery} from '../shell/route';
import type {Pipe} from './pipe';

const LANE_NAMES = ['compute', 'sends', 'collectives', 'other'];
const laneName = (kind: number): string => (isReceive(kind) ? 'receives' : LANE_NAMES[KIND_LANE[kind]!]!);

// The timeline's address of a recorded cell.
export function timelineQuery({recorded, shell: {run}}: Pipe, cell: number): string {
  const {cells, shiftNs, report} = recorded, part = cells.part[cell]!, dur = cells.dur[cell]!,
    start = cells.start[cell]! + (shiftNs[part] ?? 0);
  const lanes = run.lanes.filter(lane => lane.rank_index === part),
    streams = lanes.filter(lane => lane.type === 'stream');
  const name = laneName(cells.kind[cell]!), own = lanes.find(lane => lane.type === 'cells' && lane.name === name);
  const query = new URLSearchParams(), air = Math.max(dur, 1) * 0.15;
  query.set('v', `${Math.round(start - air)},${Math.round(start + Math.max(dur, 1) + air)}`);
  if (own) query.set('sel', `${report.parts[part]!.rank}/${own.name}~${start}~${dur}`);
  if (streams.length > 0 && dur > 0)
    query.set('area', `${start},${start + dur},${listOf(streams.map(lane => lane.id))}`);
  return plainQuery(query);
}
