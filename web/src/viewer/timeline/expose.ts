// The interface for tests and measurements. Coordinates are CSS pixels in the window.
import type {Actions} from './actions';
import {boxOf, rowOfLane, topOfRows, xOf} from './scene';
import {columnsOf, residual} from './shade';
import type {Second} from './second';
import type {Stage} from './stage';
import type {Store} from './store';

// The second run's rows; times are its own.
export function exposeSecond({store, stage}: Second): void {
  const corner = () => stage.canvas.getBoundingClientRect();
  Object.assign((window as {stageline?: object}).stageline!, {
    second: {run: store.run, state: () => store.state, rows: () => stage.scene().layout.rows,
      xOf: (t: number) => xOf(stage.scene(), t) + corner().left, slices: (lane: number) => slicesOf(stage, lane),
      sliceBox(slice: Parameters<typeof boxOf>[1]) {
        const box = boxOf(stage.scene(), slice), at = corner();
        return box && {x: box.x + at.left, y: box.y + at.top, w: box.w, h: box.h};
      }},
  });
}

function slicesOf(stage: Stage, lane: number): object[] {
  const entry = stage.tiles.entriesOf(lane)[0];
  if (!entry) return [];
  const {slices, leastNs} = entry.sheet;
  return entry.ranges.flatMap(([begin, end]) =>
    Array.from({length: end - begin}, (_, k) => begin + k)
      .filter(i => slices.dur[i]! >= leastNs || slices.dur[i] === 0)
      .map(i => ({lane, slice: slices.slice[i], row: slices.row[i], start: slices.start[i], dur: slices.dur[i],
        kind: slices.kind[i], name: slices.names.get(slices.name[i]!), nameId: slices.name[i]})
      )
  );
}

export function expose(store: Store, stage: Stage, actions: Actions, staging: () => boolean): void {
  const corner = () => stage.canvas.getBoundingClientRect();
  Object.assign((window as {stageline?: object}).stageline ??= {}, {
    state: () => ({...store.state, collapsed: [...store.state.collapsed], expanded: [...store.state.expanded],
      hidden: [...store.state.hidden], muted: [...store.state.muted], shifts: [...store.state.shifts],
      scene: store.state.scene &&
        {...store.state.scene, lanes: [...store.state.scene.lanes], peers: [...store.state.scene.peers]},
      lit: store.state.lit && {...store.state.lit, ids: [...store.state.lit.ids]}}),
    view: () => store.state.view,
    setView: (t0: number, t1: number) => store.jump({t0, t1}),
    pan: (ns: number) => store.setView({t0: store.state.view.t0 + ns, t1: store.state.view.t1 + ns}),
    home: store.home,
    frames: stage.frames,
    painted: stage.painted,
    fetched: stage.fetched,
    unfinished: stage.unfinished,
    settled: () => stage.settled() && !staging(),
    error: () => stage.tiles.error,
    pixelsHeld: () => stage.tiles.pixelsHeld(),
    // The colours of the canvas: rgb(…) or #…, by kind and tint.
    paints() {
      const {bg, ink, mut, soft, idle, idle2, acc, hot, fill, text} = stage.scene().colours;
      return {page: {bg, ink, mut, soft, idle, idle2, acc, hot}, fill, text};
    },
    rows: () => stage.scene().layout.rows,
    rowHeight: () => stage.scene().layout.rowHeight,
    xOf: (t: number) => xOf(stage.scene(), t) + corner().left,
    laneBox(lane: number) {
      const scene = stage.scene(), row = rowOfLane(scene, lane), at = corner();
      return row &&
        {x: at.left + scene.gutter, y: at.top + topOfRows(scene) + row.y - scene.scroll, w: scene.width - scene.gutter,
          h: row.h, rows: row.rows};
    },
    sliceBox(slice: Parameters<typeof boxOf>[1]) {
      const box = boxOf(stage.scene(), slice), at = corner();
      return box && {x: box.x + at.left, y: box.y + at.top, w: box.w, h: box.h};
    },
    // Per row and kind of a lane's newest picture: columns as the server said, and as drawn: pixels and rectangles.
    drawn(lane: number) {
      const entry = stage.tiles.entriesOf(lane)[0];
      if (!entry) return null;
      const {sheet} = entry, out: {row: number; kind: number; tile: number; drawn: number}[] = [];
      for (let row = 0; row < entry.rows; ++row) {
        const [begin, end] = entry.ranges[row]!, coverage = entry.coverage[row]!;
        const rest = residual(coverage, sheet.slices, begin, end, sheet.leastNs, sheet.t0, sheet.columnNs);
        for (const kind of coverage.kinds) {
          let drawn = columnsOf(rest, kind);
          for (let i = begin; i < end; ++i) {
            const {start, dur} = sheet.slices;
            if (sheet.slices.kind[i] !== kind || dur[i]! < sheet.leastNs || dur[i] === 0) continue;
            const x0 = (start[i]! - sheet.t0) / sheet.columnNs;
            drawn += Math.max(0, Math.min(x0 + dur[i]! / sheet.columnNs, sheet.columns) - Math.max(x0, 0));
          }
          out.push({row, kind, tile: columnsOf(coverage, kind), drawn});
        }
      }
      return {t0: sheet.t0, t1: sheet.t0 + sheet.columns * sheet.columnNs, columns: sheet.columns, kinds: out};
    },
    slices: (lane: number) => slicesOf(stage, lane),
    select: actions.select,
    goTo: actions.goTo,
    facts: actions.facts,
  });
}
