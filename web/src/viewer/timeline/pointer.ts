// Mouse, touch and wheel on the timeline. Drag: an area; with Shift or the middle button: move; with Alt: zoom to a
// box. A plain wheel scrolls the rows and is never taken.
import {fit, pan, zoom} from '../../chart/viewport';
import type {Api} from '../shell/api';
import {askSlice, hitTest, type Hit} from './hit';
import {AXIS_HEIGHT} from './layout';
import {plotWidth, rowAt, timeAt, topOfRows, visibleRows} from './scene';
import type {Stage} from './stage';
import type {Store} from './store';
import type {SliceRef} from '../shell/slice_facts';

export interface PointerActions {
  tip(hit: Hit | null, x: number, y: number): void;
  select(slice: SliceRef | null, second: boolean): void;
  failed(error: unknown): void;
}

export function listenToPointer(api: Api, store: Store, stage: Stage, actions: PointerActions): void {
  const {canvas, pointed} = stage, pointers = new Map<number, {x: number; y: number}>();
  let clicked: (SliceRef | null)[] = []; // by the last two clicks: the drawer that the first opens may move the rows
  let at = {x: 0, y: 0, time: -Infinity}; // of the last one, in the window
  let mode: 'none' | 'press' | 'pan' | 'area' | 'zoom' | 'axis' = 'none', startX = 0, startY = 0, moved = false,
    touch = false;
  const spanOf = (px: number): number => px / plotWidth(stage.scene());

  canvas.addEventListener('wheel', event => {
    const zooming = event.ctrlKey || event.metaKey,
      sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!zooming && !sideways) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    if (zooming) {
      const by = Math.max(-120, Math.min(120, event.deltaY * unit));
      store.setView(
        zoom(store.state.view, Math.exp(by * 0.004),
          timeAt(stage.scene(), Math.max(event.offsetX, stage.scene().gutter))),
      );
    } else {
      store.setView(pan(store.state.view, spanOf((event.deltaX || event.deltaY) * unit)));
    }
  }, {passive: false});

  canvas.addEventListener('pointerdown', event => {
    if (event.button > 1) return;
    touch = event.pointerType === 'touch';
    pointers.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
    startX = event.offsetX;
    startY = event.offsetY;
    moved = false;
    mode = event.button === 1 || event.shiftKey || touch ? 'pan'
      : event.altKey ? 'zoom' : event.offsetY < AXIS_HEIGHT ? 'axis' : 'press';
    if (event.button === 1) event.preventDefault();
    try {
      canvas.setPointerCapture(event.pointerId);
    } catch { /* a pointer that is gone already */ }
  });

  canvas.addEventListener('pointermove', event => {
    const last = pointers.get(event.pointerId);
    pointed.x = event.offsetX;
    pointed.y = event.offsetY;
    if (!last) {
      const hit = hitTest(stage.scene(), event.offsetX, event.offsetY);
      pointed.hovered = hit?.slice ?? null;
      canvas.classList.toggle('on-slice', !!hit?.slice);
      actions.tip(hit, event.clientX, event.clientY);
      stage.drawOverlay();
      return;
    }
    if (!moved && Math.hypot(event.offsetX - startX, event.offsetY - startY) < 4) return;
    moved = true;
    actions.tip(null, 0, 0);
    pointed.hovered = null;
    if (mode === 'press') mode = 'area';
    if (mode === 'pan' && pointers.size === 2) { // two fingers: the distance zooms around their middle
      const other = [...pointers].find(([id]) => id !== event.pointerId)![1];
      const before = Math.abs(last.x - other.x), after = Math.abs(event.offsetX - other.x);
      if (before > 8 && after > 8)
        store.setView(zoom(store.state.view, before / after, timeAt(stage.scene(), (event.offsetX + other.x) / 2)));
    } else if (mode === 'pan' || mode === 'axis') {
      store.setView(pan(store.state.view, -spanOf(event.offsetX - last.x)));
      if (mode === 'pan') stage.scroller.scrollTop -= event.offsetY - last.y;
    } else {
      const scene = stage.scene(), x = Math.max(event.offsetX, scene.gutter);
      pointed.drag = {kind: mode === 'zoom' ? 'zoom' : 'area', x0: Math.max(startX, scene.gutter), y0: startY, x1: x,
        y1: event.offsetY};
      if (event.offsetY > scene.height - 18) stage.scroller.scrollTop += 12;
    }
    pointers.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
    stage.drawOverlay();
  });

  function finish(event: PointerEvent): void {
    const scene = stage.scene(), {drag} = pointed;
    if (drag) {
      const t0 = timeAt(scene, Math.min(drag.x0, drag.x1)), t1 = timeAt(scene, Math.max(drag.x0, drag.x1));
      if (drag.kind === 'zoom') store.jump({t0, t1});
      else {
        const [y0, y1] = [Math.min(drag.y0, drag.y1), Math.max(drag.y0, drag.y1)], lanes: number[] = [];
        for (const {row, top, pinned} of visibleRows(scene))
          if (row.lane >= 0 && top < y1 && top + row.h > y0 && (pinned || top + row.h > topOfRows(scene)) &&
            store.run.lanes[row.lane]!.type !== 'counter' && !lanes.includes(row.lane)) lanes.push(row.lane);
        if (lanes.length > 0) store.change({area: {t0, t1, lanes}, panel: 'area'});
      }
    } else if (!moved && event.type === 'pointerup' && event.button === 0) {
      click(event);
    }
  }
  function click(event: PointerEvent): void {
    const hit = hitTest(stage.scene(), event.offsetX, event.offsetY);
    clicked = [...clicked.slice(-1), hit?.slice ?? null];
    at = {x: event.clientX, y: event.clientY, time: performance.now()};
    if (hit?.slice || !hit?.shares) return actions.select(hit?.slice ?? null, event.shiftKey);
    askSlice(api, stage.scene(), hit).then(slice => actions.select(slice, event.shiftKey)).catch(actions.failed);
  }
  const up = (event: PointerEvent): void => {
    if (!pointers.delete(event.pointerId) || pointers.size > 0) return;
    finish(event);
    pointed.drag = null;
    mode = 'none';
    stage.drawOverlay();
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => {
    pointed.x = pointed.y = -1;
    pointed.hovered = null;
    actions.tip(null, 0, 0);
    stage.drawOverlay();
  });
  // The drawer that the first click opens may be where the second one falls: that does not count as a click on it.
  const second = (event: MouseEvent): boolean =>
    event.detail > 1 && event.target !== canvas && performance.now() - at.time < 800 &&
    Math.hypot(event.clientX - at.x, event.clientY - at.y) < 6;
  for (const kind of ['mousedown', 'click'] as const)
    document.addEventListener(kind, event => {
      if (!second(event)) return;
      event.preventDefault();
      event.stopPropagation();
    }, {capture: true});
  document.addEventListener('dblclick', event => {
    if (event.target !== canvas && !second(event)) return;
    const scene = stage.scene(), slice = (event.target === canvas ? clicked[0] : clicked.at(-1)) ?? null;
    if (slice) {
      const {start, dur} = slice, length = Math.max(dur, 1), shift = store.shiftOf(slice.lane);
      if (store.state.selected?.slice !== slice.slice || store.state.selected.lane !== slice.lane)
        actions.select(slice, false);
      store.jump(fit(start + shift - length * 0.5, start + shift + length * 1.5));
    } else if (event.target === canvas && rowAt(scene, event.offsetY)) {
      store.jump(zoom(store.state.view, 0.25, timeAt(scene, event.offsetX)));
    }
  });
}
