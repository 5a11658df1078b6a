// Shows a profile at a glance. One usual step of one rank is split into device compute, sends and copies, host work and
// waiting for input. Below it are every rank's devices, and the kernels that take most time. Shares of pixels come from
// the timeline's tiles, so that white is idle time.
import {h, styled} from '../../dom';
import {duration} from '../../format';
import {flawWords, t} from '../../i18n/i18n';
import type {Answer} from '../answers/ask';
import type {Report, Table} from '../../data/report';
import {deviceBars} from '../../profile/devices';
import {topKernels} from '../../profile/kernels';
import type {Lane, Step, TilesHeader} from '../shell/api';
import {ownStep} from '../evidence/staged';
import {plainQuery} from '../shell/route';
import {redrawForPaper} from '../../paper';
import type {Shell} from '../shell/page';

const ROW = 26, GAP = 4, INPUT = 'dataloader|enumerate\\(|_next_data|fetch.*batch|collate';
const MOST_RANKS = 12;

const signed = (ns: number): string => `${ns < 0 ? '−' : '+'}${duration(Math.abs(ns))}`;
type Layer = 'computing' | 'communication' | 'memory' | 'host' | 'input';
const LAYERS: readonly Layer[] = ['computing', 'communication', 'memory', 'host', 'input'];
const HOST = new Set(['operator', 'runtime', 'python', 'overhead']);

// The rank with most device work, or the one that is meant.
function rankOf(shell: Shell, wanted: number): number {
  const {run} = shell,
    slices = run.ranks.map((_, i) =>
      run.lanes.filter(lane => lane.rank_index === i && lane.type === 'stream').reduce((sum, lane) => sum + lane.slices,
        0)
    );
  return wanted >= 0 && slices[wanted]! > 0 ? wanted : slices.indexOf(Math.max(...slices));
}

// Busy shares of every column, by layer: streams of a layer side by side add up to one at most; of the host the busiest
// row.
async function layersOf(shell: Shell, lanes: readonly Lane[], step: Step,
  n: number): Promise<Map<Layer, Float32Array>>
{
  const {api, run} = shell, groups = new Map(run.kinds.map(kind => [kind.id, kind.group])),
    types = new Map(lanes.map(lane => [lane.id, lane.type]));
  const {header, buffer, base} = await api.wire<TilesHeader>('tiles', {lanes: lanes.map(lane => lane.id).join(),
    t0: step.start_ns, t1: step.end_ns, n});
  const found = new Map<Layer, Float32Array>(LAYERS.map(layer => [layer, new Float32Array(n)]));
  for (const {lane, row, kinds} of header.rows)
    for (const {kind, offset} of kinds) {
      const group = groups.get(kind) ?? '', stream = types.get(lane) === 'stream';
      const layer: Layer | null = stream
        ? group === 'communication' ? 'communication' : group === 'memory' ? 'memory'
          : row === 0 && group !== 'device_other' ? 'computing' : null
        : HOST.has(group) ? 'host' : null;
      if (!layer) continue;
      const into = found.get(layer)!, shares = new Uint8Array(buffer, base + offset, n);
      for (let i = 0; i < n; ++i)
        into[i] = layer === 'host' ? Math.max(into[i]!, shares[i]! / 255) : Math.min(1, into[i]! + shares[i]! / 255);
    }
  // Whatever is known to load input, by its name.
  const threads = lanes.filter(lane => lane.type === 'thread').map(lane => lane.id);
  const {matches} = threads.length > 0
    ? await api.json<{matches: {name_id: number}[]}>('search', {q: INPUT, regex: 1, limit: 200}) : {matches: []};
  if (matches.length > 0) {
    const names = new Set(matches.map(one => one.name_id)),
      slices = await api.slices({lanes: threads.join(), t0: step.start_ns, t1: step.end_ns, limit: 40000}),
      into = found.get('input')!;
    const column = (step.end_ns - step.start_ns) / n;
    for (let i = 0; i < slices.count; ++i) {
      if (!names.has(slices.name[i]!)) continue;
      const a = (slices.start[i]! - step.start_ns) / column, b = a + slices.dur[i]! / column;
      for (let x = Math.max(0, Math.floor(a)); x < Math.min(n, Math.ceil(b)); ++x)
        into[x] = Math.max(into[x]!, Math.min(b, x + 1) - Math.max(a, x));
    }
  }
  return found;
}

// `title`: why this step is drawn. `against`: the step that it is compared with, in words and by layer.
export function profilePicture(shell: Shell, drawn: Step | undefined, heading: 'title' | 'accused' | 'chosen',
  wanted: number, other?: Step
):
  | HTMLElement
  | null
{
  const {run} = shell, rank = rankOf(shell, wanted),
    lanes = run.lanes.filter(lane =>
      lane.rank_index === rank && (lane.type === 'stream' || lane.type === 'thread') && lane.slices > 0 && !lane.repeats
    );
  if (!drawn || rank < 0 || !lanes.some(lane => lane.type === 'stream')) return null;
  const step = ownStep(run, drawn, rank), against = other && ownStep(run, other, rank);
  // As high as it usually becomes, so that nothing below it moves.
  const canvas = styled(h('canvas', {'aria-hidden': 'true'}), {height: `${3 * (ROW + GAP) - GAP}px`}),
    labels = h('div', {class: 'picture-labels', 'aria-hidden': 'true'});
  const title = t(`overview.picture.${heading}`, step.number) +
    (run.ranks.length > 1 ? ` · ${t('row.rank', run.ranks[rank]!.rank)}` : '');
  const place = h('a', {class: 'picture', href: shell.href('timeline', {
    query: plainQuery(new URLSearchParams({v: `${Math.round(step.start_ns)},${Math.round(step.end_ns)}`})),
  })}, h('span', {class: 'live'}, t('overview.picture.profile', step.number)), labels,
    h('div', {class: 'picture-plot'}, canvas,
      h('div', {class: 'picture-ends quiet', 'aria-hidden': 'true'}, h('span', {}, '0'),
        h('span', {}, duration(step.end_ns - step.start_ns)))));
  const section = h('section', {class: 'step-picture profile-picture'},
    h('div', {class: 'chart-head'}, h('h2', {}, title)), against ? h('p', {class: 'step-words', role: 'status'}) : '',
    place);
  let found: Map<Layer, Float32Array> | null = null, shown: Layer[] = [];

  function paint(): void {
    const width = canvas.clientWidth, ratio = Math.min(devicePixelRatio || 1, 3), context = canvas.getContext('2d');
    if (!context || width === 0 || !found) return;
    const height = shown.length * (ROW + GAP) - GAP, style = getComputedStyle(document.documentElement),
      n = found.get('host')!.length;
    styled(canvas, {height: `${height}px`});
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const fill = (layer: Layer): string => {
      const group = layer === 'host' ? 'operator' : layer === 'input' ? 'annotation' : layer;
      return run.kinds.find(kind => kind.group === group)?.[shell.theme].fill ?? style.getPropertyValue('--mut');
    };
    shown.forEach((layer, row) => {
      const top = row * (ROW + GAP) * ratio, shares = found!.get(layer)!;
      context.fillStyle = run.palette[shell.theme].idle;
      context.fillRect(0, top, canvas.width, ROW * ratio);
      context.fillStyle = fill(layer);
      for (let x = 0; x < canvas.width; ++x) {
        const tall = shares[Math.min(n - 1, Math.floor(x / canvas.width * n))]! * ROW * ratio;
        if (tall > 0.2) context.fillRect(x, top + ROW * ratio - tall, 1, tall);
      }
    });
  }
  Promise.all([step, ...(against ? [against] : [])].map(one => layersOf(shell, lanes, one, 1024))).then(
    ([layers, before]) => {
      found = layers = layers!;
      const busyOf = (of: typeof layers, layer: Layer): number =>
        of.get(layer)!.reduce((sum, share) => sum + share, 0) / 1024;
      const busy = (layer: Layer): number => busyOf(layers, layer),
        length = (one: Step): number => one.end_ns - one.start_ns;
      const longer = (layer: Layer): number =>
        before ? busy(layer) * length(step) - busyOf(before, layer) * length(against!) : 0;
      shown = LAYERS.filter(layer => layer === 'computing' || busy(layer) > 0);
      labels.replaceChildren(
        ...shown.map(layer =>
          styled(
            h('span', {}, t(`layer.${layer}`), ' ',
              h('small', {class: 'quiet'}, `${(busy(layer) * 100).toFixed(busy(layer) < 0.1 ? 1 : 0)}\u202f%`,
                before ? ` ${signed(longer(layer))}` : '')),
            {height: `${ROW}px`},
          )
        ),
      );
      if (before) {
        // Of the host it is unknown what it did for the devices: its layer is named where no other grew.
        const [most] = shown.filter(layer => layer !== 'host').sort((a, b) => longer(b) - longer(a)),
          layer = most && longer(most) > 0 ? most : 'host',
          change = length(step) - length(against!);
        section.querySelector('.step-words')!.textContent =
          t(change < 0 ? 'overview.step.shorter' : 'overview.step.longer', step.number, duration(Math.abs(change)),
            against!.number) + (change > 0
              ? t('overview.step.most', t(`layer.${layer}`), signed(longer(layer))) : '');
      }
      section.dataset['layers'] = shown.map(layer => `${layer}=${busy(layer).toFixed(4)}`).join(' ');
      paint();
    },
    () => {
      section.hidden = true;
    },
  );
  new ResizeObserver(paint).observe(canvas);
  redrawForPaper(canvas, paint);
  return section;
}

// Every rank's devices, those that compute least first where there are many; and the kernels that take most time.
export function profileBars(shell: Shell, tables: readonly Table[], limits: Answer['notes']): HTMLElement | null {
  const report = {tables: [...tables]} as unknown as Report, bars = deviceBars(report, MOST_RANKS),
    kernels = topKernels(report, 8);
  if (!bars && !kernels) return null;
  const more = (href: string, words: string): HTMLElement => h('p', {class: 'quiet'}, h('a', {href}, words));
  return h('section', {}, h('div', {class: 'profile-bars'}, bars &&
    h('div', {}, ...bars.nodes,
      more(shell.href('answers', {rest: 'time', query: 'answer=temporal-breakdown'}), t('overview.bars.more'))),
    kernels &&
      h('div', {}, ...kernels,
        more(shell.href('answers', {rest: 'kernels', query: 'answer=gpu-kernel-breakdown'}),
          t('overview.kernels.more')))),
    ...limits.map(note => h('p', {class: 'quiet'}, flawWords(note.name, note.message))));
}
