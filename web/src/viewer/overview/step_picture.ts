// Shows one usual step of the pipeline, a row per stage, before any of it is explained. It is drawn from the timeline's
// own slices; a click goes to the pipeline.
import {h, styled} from '../../dom';
import {duration} from '../../format';
import {t} from '../../i18n/i18n';
import type {Lane, SlicesAnswer, Step} from '../shell/api';
import {redrawForPaper} from '../../paper';
import type {Shell} from '../shell/page';
import {tintOf} from '../../chart/colours';
import {chunkPaints} from '../shell/colours';

const SIZES = [11.5, 10, 8.5]; // of numbers: the largest that fits the cell
const ROW = 30, GAP = 5, FIRST_COMPUTE = 'compute';
// Returns half a window of rows.
const mostRows = (): number => Math.max(16, Math.floor(innerHeight * 0.5 / (ROW + GAP)));

// A replica's ranks, by stage; of many every so manyth, the first and the last always. −1: the first replica.
function lanesOf(shell: Shell, replica: number): {lanes: Lane[]; all: number} {
  const {run} = shell,
    ofRank = (i: number): Lane | undefined =>
      run.lanes.find(lane => lane.rank_index === i && lane.type === 'cells' && lane.name === FIRST_COMPUTE);
  const dps = run.ranks.map(rank => rank.dp).filter(dp => dp >= 0),
    first = replica >= 0 ? replica : dps.length > 0 ? Math.min(...dps) : -1;
  const ranks = run.ranks.map((rank, i) => ({rank, i})).filter(({rank}) => first < 0 || rank.dp === first)
    .sort((a, b) => a.rank.stage - b.rank.stage || a.rank.rank - b.rank.rank);
  const lanes = ranks.flatMap(({i}) => ofRank(i) ?? []);
  const most = mostRows();
  return {all: lanes.length, lanes: lanes.length <= most ? lanes
    : Array.from({length: most}, (_, k) => lanes[Math.round(k * (lanes.length - 1) / (most - 1))]!)};
}

// Returns the half of its row that each slice has. A forward and a backward that ran as one (same lane and times,
// longer than nothing) share it, the forward above. 0 is the whole row, 1 the upper half, 2 the lower.
function halvesOf(slices: SlicesAnswer, isForward: (kind: number) => boolean): Uint8Array {
  const halves = new Uint8Array(slices.count), alone = new Map<string, number>();
  for (let i = 0; i < slices.count; ++i) {
    const key = `${slices.lane[i]} ${slices.start[i]} ${slices.dur[i]}`, other = alone.get(key);
    if (other === undefined || !(slices.dur[i]! > 0)) {
      alone.set(key, i);
    } else if (isForward(slices.kind[i]!) !== isForward(slices.kind[other]!)) {
      halves[i] = isForward(slices.kind[i]!) ? 1 : 2;
      halves[other] = 3 - halves[i]!;
    }
  }
  return halves;
}

export function stepPicture(shell: Shell, step: Step | undefined, replica: number): HTMLElement | null {
  const {run} = shell, {lanes, all} = lanesOf(shell, replica);
  if (!step || lanes.length === 0) return null;
  const dp = run.ranks[lanes[0]!.rank_index]!.dp, title = t('overview.picture.title', step.number) +
    (dp >= 0 && run.groupings.includes('dp') ? ` · ${t('note.dp', dp)}` : '');
  const canvas = h('canvas', {'aria-hidden': 'true'}),
    ends = h('div', {class: 'picture-ends quiet', 'aria-hidden': 'true'}, h('span', {}, '0'),
      h('span', {}, duration(step.end_ns - step.start_ns)));
  const labels = lanes.map(lane => {
    const rank = run.ranks[lane.rank_index]!;
    return styled(h('span', {}, rank.stage >= 0 ? t('row.stage', rank.stage) : t('row.rank', rank.rank)), {
      height: `${ROW}px`,
    });
  });
  const height = lanes.length * (ROW + GAP) - GAP,
    place = h('a', {class: 'picture', href: shell.href('pipeline', {
      query: `step=${step.number}${dp >= 0 && run.groupings.includes('dp') ? `&dp=${dp}` : ''}`,
    })}, h('span', {class: 'live'}, t('overview.picture', step.number)),
      h('div', {class: 'picture-labels', 'aria-hidden': 'true'}, ...labels),
      h('div', {class: 'picture-plot'}, canvas, ends));
  let slices: SlicesAnswer | null = null;

  function paint(): void {
    const zoom = (canvas as {currentCSSZoom?: number}).currentCSSZoom ?? 1; // of the page's style, in large windows
    const width = canvas.clientWidth, ratio = Math.min((devicePixelRatio || 1) * zoom, 3),
      context = canvas.getContext('2d');
    if (!context || width === 0 || !slices) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.scale(ratio, ratio);
    const palette = run.palette[shell.theme],
      x = (ns: number): number => (ns - step!.start_ns) / (step!.end_ns - step!.start_ns) * width;
    lanes.forEach((_, row) => {
      context.fillStyle = palette.idle;
      context.fillRect(0, row * (ROW + GAP), width, ROW);
    });
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    const rowOf = new Map(lanes.map((lane, row) => [lane.id, row])),
      paints = new Map(run.kinds.map(kind => [kind.id, kind[shell.theme]]));
    const tints = new Map(run.kinds.map(kind => [kind.id, chunkPaints(kind, shell.theme)]));
    const widths = new Map<string, number>(), fontOf = (size: number): string => `600 ${size}px system-ui, sans-serif`;
    const widthOf = (text: string, size: number): number => {
      const key = `${size} ${text}`;
      let width = widths.get(key);
      if (width === undefined) {
        context.font = fontOf(size);
        widths.set(key, width = context.measureText(text).width);
      }
      return width;
    };
    const forwards = new Set(run.kinds.filter(kind => kind.group === 'forward').map(kind => kind.id));
    const halves = halvesOf(slices, kind => forwards.has(kind));
    for (let i = 0; i < slices.count; ++i) {
      const row = rowOf.get(slices.lane[i]!), colours = paints.get(slices.kind[i]!);
      if (row === undefined || !colours) continue;
      const x0 = Math.max(0, x(slices.start[i]!)), x1 = Math.min(width, x(slices.start[i]! + slices.dur[i]!)),
        gap = x1 - x0 > 4 ? 1 : 0;
      const height = halves[i] === 0 ? ROW : ROW / 2, top = row * (ROW + GAP) + (halves[i] === 2 ? ROW / 2 : 0);
      const tint = tints.get(slices.kind[i]!)?.[tintOf(slices.chunk[i]!)];
      context.fillStyle = tint?.fill ?? colours.fill;
      context.fillRect(x0, top, Math.max(x1 - x0 - gap, 0.5), height);
      if (slices.microBatch[i]! < 0) continue;
      const number = String(slices.microBatch[i]), size = SIZES.find(px =>
        widthOf(number, px) + 3 <= x1 - x0 && px + 1 <= height
      );
      if (size === undefined) continue;
      context.font = fontOf(size);
      context.fillStyle = tint?.text ?? colours.text;
      context.fillText(number, (x0 + x1) / 2, top + height / 2 + 0.5);
    }
  }
  styled(canvas, {height: `${height}px`});
  shell.api.slices({lanes: lanes.map(lane => lane.id).join(), t0: Math.max(0, step.start_ns), t1: step.end_ns,
    limit: 20000})
    .then(found => {
      slices = found;
      paint();
    }, () => {
      place.hidden = true;
    });
  new ResizeObserver(paint).observe(canvas);
  redrawForPaper(canvas, paint);
  const kinds = run.kinds.filter(kind => ['forward', 'backward', 'weight', 'optimizer'].includes(kind.group));
  const seen = new Set<string>(), key = h('ul', {class: 'key'}, ...kinds.flatMap(kind => {
    if (seen.has(kind.group)) return [];
    seen.add(kind.group);
    const word = {forward: 'group.0', backward: 'group.1', weight: 'group.2',
      optimizer: 'group.5'}[kind.group] as 'group.0';
    return [h('li', {}, styled(h('i', {}), {background: kind[shell.theme].fill}), t(word))];
  }),
    h('li', {},
      styled(h('i', {}), {background: run.palette[shell.theme].idle,
        'box-shadow': `inset 0 0 0 1px ${run.palette[shell.theme].idle2}`}), t('group.idle')));
  return h('section', {class: 'step-picture'}, h('div', {class: 'chart-head'}, h('h2', {}, title), key), place,
    lanes.length < all && h('p', {class: 'quiet'}, t('overview.picture.some', lanes.length, all)));
}
