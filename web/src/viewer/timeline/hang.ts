// A job that hung, by the dumps of its flight recorder: who waits in which call, who never made it, and where the ranks
// parted. A dump does not say when it was taken, so a wait has no end: it is painted to the edge of the window.
//
//   rank 0   all_reduce 6 ▐ all_reduce 7 ▒▒▒▒▒▒▒▒▒▒▒▒   waits
//   rank 2   all_reduce 6 ░░░░░░░░░░░░░░░░░░░░░░░░░░░   never made all_reduce 7
//                         ┊ the first divergent call
import {fit} from '../../chart/viewport';
import {frameOf, type Row} from '../../data/frame';
import type {Report} from '../../data/report';
import {t} from '../../i18n/i18n';
import {deskOf} from '../answers/ask';
import type {Api, Run} from '../shell/api';
import {AXIS_HEIGHT} from './layout';
import type {Frame} from './paint_slices';
import {FONT, type Scene} from './scene';
import type {OpenEnd, Store} from './store';

const ROOM = 0.2; // of the run's length, to its right: for what has no end

// The lane of a rank for a group; without one, the rank made no call in it.
function laneOf({ranks, lanes}: Run, rank: string, group: string): Run['lanes'][number] | undefined {
  const own = lanes.filter(lane => String(ranks[lane.rank_index]!.rank) === rank);
  return own.find(({name}) => name === `group ${group}` || name.endsWith(`(group ${group})`)) ?? own[0];
}

export async function findHang(api: Api, store: Store): Promise<void> {
  const {run} = store, {tables} = await deskOf(api).answer('flight-recorder', {}, () => undefined);
  const rowsOf = (name: string): Row[] => frameOf({tables} as unknown as Report, name)?.rows ?? [];
  const origin = (name: string): number =>
    Number(BigInt(tables.find(table => table.name === name)?.origin ?? 0) - BigInt(run.origin_ns));
  const problems = rowsOf('flight-problems').filter(row => row.text('verdict') !== 'unfinished'),
    since = (row: Row): number => row.num('since_ns') + origin('flight-problems'),
    callOf = (row: Row): string => `${row.text('op')} ${row.text('sequence')}`;
  const waits = rowsOf('flight-waits').flatMap((row): OpenEnd[] => {
    const lane = laneOf(run, row.text('rank'), row.text('group'));
    return lane
      ? [{lane: lane.id, t0: row.num('since_ns') + origin('flight-waits'),
        words: t('hang.waits', row.text('call').split(' of ')[0]!)}]
      : [];
  });
  const gaps = problems.filter(row => row.text('verdict') === 'missing').flatMap(row =>
    row.text('culprits').split(',').flatMap((rank): OpenEnd[] => {
      const lane = laneOf(run, rank, row.text('group'));
      return lane ? [{lane: lane.id, t0: lane.end_ns, words: t('hang.never', callOf(row))}] : [];
    })
  );
  const first = [...problems].sort((a, b) => since(a) - since(b))[0];
  const isWhole = store.state.view.t0 === store.home.t0 && store.state.view.t1 === store.home.t1;
  store.home = fit(0, run.span_ns * (1 + ROOM));
  store.change({hang: {waits, gaps, first: first ? {t: since(first), words: t('hang.first', callOf(first))} : null},
    ...(isWhole ? {view: store.home} : {})});
}

// The label is at `at`, or further to the left where the frame ends before it does.
function label(pen: CanvasRenderingContext2D, scene: Scene, frame: Frame, text: string, at: number, y: number): void {
  const {ratio, colours} = scene, wide = pen.measureText(text).width + 8 * ratio, x = Math.min(at, frame.right - wide);
  if (x < frame.left) return;
  pen.fillStyle = colours.bg;
  pen.fillRect(x, y - 8 * ratio, wide, 16 * ratio);
  pen.fillStyle = colours.hot;
  pen.textAlign = 'left';
  pen.textBaseline = 'middle';
  pen.fillText(text, x + 4 * ratio, y + 0.5 * ratio);
}

// This is on a row of a lane, in device pixels.
export function paintHang(pen: CanvasRenderingContext2D, scene: Scene, frame: Frame, lane: number, y: number,
  height: number): void
{
  const {hang} = scene.store.state, {ratio, colours} = scene;
  if (!hang) return;
  pen.font = `600 ${11 * ratio}px ${FONT}`;
  for (const list of [hang.waits, hang.gaps])
    for (const {lane: own, t0, words} of list) {
      const left = Math.max(Math.round(frame.px(t0)), frame.left), isGap = list === hang.gaps;
      if (own !== lane || left >= frame.right) continue;
      pen.fillStyle = isGap ? colours.hot : colours.receive;
      pen.globalAlpha = isGap ? 0.3 : 0.8;
      pen.fillRect(left, y, frame.right - left, height);
      pen.globalAlpha = 1;
      if (isGap) pen.fillRect(left, y + height - 2 * ratio, frame.right - left, 2 * ratio);
      if (height >= 15 * ratio) label(pen, scene, frame, words, left + 4 * ratio, y + height / 2);
    }
}

// Down the rows, where the ranks part.
export function paintParting(pen: CanvasRenderingContext2D, scene: Scene, frame: Frame): void {
  const first = scene.store.state.hang?.first, {ratio, colours} = scene;
  if (!first || first.t < frame.t0 || first.t > frame.t1) return;
  const x = Math.round(frame.px(first.t));
  pen.strokeStyle = colours.hot;
  pen.lineWidth = 1.5 * ratio;
  pen.setLineDash([4 * ratio, 3 * ratio]);
  pen.beginPath();
  pen.moveTo(x, AXIS_HEIGHT * ratio);
  pen.lineTo(x, scene.height * ratio);
  pen.stroke();
  pen.setLineDash([]);
  pen.font = `600 ${11 * ratio}px ${FONT}`;
  label(pen, scene, frame, first.words, x + 4 * ratio, (AXIS_HEIGHT + 10) * ratio);
}
