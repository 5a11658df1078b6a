// The whole run in one strip above the rows: how busy it is, the window, and where findings are. A drag moves the
// window, a click brings it there.
import {h, styled} from '../../dom';
import {t} from '../../i18n/i18n';
import {listOf, type Api, type Run, type TilesAnswer} from '../shell/api';
import type {Stage} from './stage';
import type {Store} from './store';

const COMPUTE = 'compute'; // of the lanes of cells the one that does not wait
const COLUMNS = 1024, HEIGHT = 30, FULL = 255, MAX_LANES = 512;

// Devices or cells show how busy a run is; where there are none, its threads do.
function lanesOf({lanes}: Run): number[] {
  const of = (type: string): number[] =>
    lanes.filter(lane =>
      lane.type === type && lane.slices > 0 && !lane.repeats && (type !== 'cells' || lane.name === COMPUTE)
    ).map(lane => lane.id);
  const all = [of('cells'), of('stream'), of('thread')].find(found => found.length > 0) ?? [],
    each = Math.max(1, Math.ceil(all.length / MAX_LANES));
  return all.filter((_, i) => i % each === 0);
}

export interface Minimap {
  element: HTMLElement;
  draw(): void;
  flag(stretches: readonly {t0: number; t1: number}[]): void; // where findings are
}

export function makeMinimap(api: Api, store: Store, stage: Stage, failed: (error: unknown) => void): Minimap {
  const canvas = h('canvas', {'aria-hidden': 'true'}), element = h('div', {class: 'minimap'}, canvas);
  let busy: Float32Array | null = null, most = 1, asked = false, flags: readonly {t0: number; t1: number}[] = [],
    held: number | null = null;
  const span = store.run.span_ns || 1;

  async function ask(): Promise<void> {
    const lanes = lanesOf(store.run);
    if (lanes.length === 0) return;
    const {header, buffer, base} = await api.wire<TilesAnswer['header']>('tiles', {lanes: listOf(lanes), t0: 0,
      t1: span, n: COLUMNS});
    const found = new Float32Array(COLUMNS);
    for (const {row, kinds} of header.rows) {
      if (row > 0) continue; // what is nested is in what holds it
      for (const {offset} of kinds) {
        const shares = new Uint8Array(buffer, base + offset, COLUMNS);
        for (let i = 0; i < COLUMNS; ++i) found[i]! += shares[i]! / FULL / lanes.length;
      }
    }
    busy = found;
    most = Math.max(found.reduce((a, b) => Math.max(a, b), 0), 1e-6);
    draw();
  }
  function draw(): void {
    const {gutter, width} = stage.scene(), wide = width - gutter - 10, ratio = Math.min(devicePixelRatio || 1, 3),
      pen = canvas.getContext('2d');
    if (!pen || wide < 40 || element.clientHeight === 0) return;
    if (!asked) {
      asked = true;
      ask().catch(failed);
    }
    styled(canvas, {left: `${gutter}px`, width: `${wide}px`, height: `${HEIGHT}px`});
    canvas.width = Math.round(wide * ratio);
    canvas.height = HEIGHT * ratio;
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement),
      ink = (name: string): string => style.getPropertyValue(name).trim(),
      x = (at: number): number => at / span * wide;
    pen.fillStyle = ink('--idle');
    pen.fillRect(0, 0, wide, HEIGHT);
    pen.fillStyle = ink('--mut');
    if (busy) {
      for (let i = 0; i < wide; ++i) {
        const high = busy[Math.min(COLUMNS - 1, Math.floor(i / wide * COLUMNS))]! / most * (HEIGHT - 6);
        pen.fillRect(i, HEIGHT - high, 1, high);
      }
    }
    pen.fillStyle = ink('--hot');
    for (const {t0, t1} of flags) pen.fillRect(x(t0), 0, Math.max(x(t1) - x(t0), 2), 3);
    const {view} = store.state, left = Math.max(0, x(view.t0)), right = Math.min(wide, x(view.t1));
    pen.globalAlpha = 0.6;
    pen.fillStyle = ink('--bg');
    pen.fillRect(0, 3, left, HEIGHT);
    pen.fillRect(right, 3, wide - right, HEIGHT);
    pen.globalAlpha = 1;
    pen.strokeStyle = ink('--acc');
    pen.lineWidth = 1.5;
    pen.strokeRect(left + 0.75, 3.75, Math.max(right - left - 1.5, 1.5), HEIGHT - 4.5);
  }
  const timeAt = (event: PointerEvent): number =>
    (event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth * span;
  const moveTo = (middle: number): void => {
    const {view} = store.state, half = (view.t1 - view.t0) / 2;
    store.setView({t0: middle - half, t1: middle + half});
  };
  canvas.addEventListener('pointerdown', event => {
    const at = timeAt(event), {view} = store.state;
    held = at >= view.t0 && at <= view.t1 ? at - (view.t0 + view.t1) / 2 : 0;
    canvas.setPointerCapture(event.pointerId);
    moveTo(at - held);
  });
  canvas.addEventListener('pointermove', event => {
    if (held !== null) moveTo(timeAt(event) - held);
  });
  for (const kind of ['pointerup', 'pointercancel'] as const)
    canvas.addEventListener(kind, () => {
      held = null;
    });
  canvas.title = t('minimap.help');
  Object.assign((window as {stageline?: object}).stageline ??= {}, {
    minimap: () => ({busy: busy && [...busy], flags, box: canvas.getBoundingClientRect()}),
  });
  return {element, draw, flag(stretches) {
    flags = stretches;
    draw();
  }};
}
