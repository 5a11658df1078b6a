// The pipeline page: the step in a sentence and a bar, the chart, and beside it what stages, workers and steps say.
import {render} from 'preact';
import {makeApp, select, type App} from '../../app';
import {cellBox, countDrawn, makeChart} from '../../chart/chart';
import {listenToKeys} from '../../chart/keys';
import {listenToPointer} from '../../chart/pointer';
import {bubbleAt, BUBBLE_PARTS} from '../../data/bubbles';
import {h, styled} from '../../dom';
import {duration} from '../../format';
import {t} from '../../i18n/i18n';
import {detailsView} from '../../views/details';
import {makeTip} from '../../views/tip';
import {cellSentence} from '../../words';
import type {KeyWords, Page, Shell} from '../page';
import {w} from '../words';
import {stateOf, toQuery} from './address';
import {timelineQuery} from './cell';
import {Head} from './head';
import {StepMap, Workers} from './heat';
import {loadPipeline, loadTables} from './load';
import {setUnder, setWorld, toggleAll, toggleStage, type Pipe} from './pipe';
import {Stages} from './stages';
import {partWord, StepHead} from './steps';
import {WhatIf} from './what_if';

const KEYS: [string, () => string][] = [
  ['W S', () => t('keys.zoom.long')], ['A D', () => t('keys.move.long')], ['← → ↑ ↓', () => t('keys.arrows.long')], ['[ ]', () => t('keys.step.long')],
  [', .', () => t('keys.cell.long')], ['0', () => t('keys.fit.long')], ['T', () => t('keys.theory.long')], ['C', () => w('pipe.key.causes')],
  ['U ⇧U', () => w('pipe.key.unfold')], ['Enter', () => w('pipe.key.timeline')], ['Esc', () => t('keys.esc.long')]];

export function makePipeline(shell: Shell): Page {
  const top = h('div', {}), controls = h('div', {}), body = h('div', {class: 'cards'}), chartPlace = h('div', {class: 'chart-place'});
  const detailsPlace = h('div', {}), notice = h('p', {class: 'quiet', role: 'status'});
  const element = h('main', {class: 'sheet'}, notice, top, controls, chartPlace, detailsPlace, body);
  let pipe: Pipe | null = null, asked = '', pending = 0, pointerTime: number | null = null, visible = false;

  function build(loaded: Pipe['recorded']): Pipe {
    const app = makeApp(loaded.report, loaded.cells, loaded.model, shell.theme);
    app.bubbles = loaded.bubbles;
    // Room for the sentence above it and the first card below.
    const chart = makeChart(app, () => Math.max(220, Math.min(element.clientHeight * 0.62, 1400)));
    const made: Pipe = {shell, app, chart, recorded: loaded, tables: null, tablesError: '', world: null};
    const tip = makeTip(app);
    app.state = stateOf(made, asked);
    setUnder(made);
    chartPlace.replaceChildren(chart.element, tip.element);
    listenToPointer(app, chart, tip, {
      onPoint: time => { pointerTime = time; },
      onLabel: row => toggleStage(app, loaded.report.parts[loaded.model.rows[row]!.part]!.stage),
      onIdle: (row, time, x, y) => {
        const at = app.bubbles ? bubbleAt(app.bubbles, row, app.state.step, time) : -1;
        if (at < 0) return false;
        const {cells, parts} = app.bubbles!, lines = BUBBLE_PARTS.map((id, k) => [partWord(id), parts[k]![at]!] as const)
          .filter(([, ns]) => Math.abs(ns) >= cells.dur[at]! / 200);
        tip.place(x, y, h('b', {}, w('pipe.waits', duration(cells.dur[at]!))),
          ...lines.map(([name, ns]) => h('div', {class: 'quiet'}, `${name} ${ns < 0 ? '−' : ''}${duration(Math.abs(ns))}`)));
        return true;
      },
    });
    listenToKeys(app, chart, () => pointerTime, {
      help: shell.help, helpOpen: () => document.querySelector('dialog[open]') !== null, active: () => visible && shell.page === 'pipeline',
      own: event => ownKey(made, event),
    });
    app.onChange(before => {
      if (before.step !== app.state.step || before.beside !== app.state.beside) setUnder(made);
      if (before.selected !== app.state.selected) {
        drawDetails(made);
        shell.say(app.state.selected >= 0 ? cellSentence(app, app.state.selected) : '');
      }
      if (before.step !== app.state.step) shell.say(app.state.step === null ? t('chart.all') : t('chart.step', app.state.step));
      const {view: a, hovered: b, ...rest} = before, {view: c, hovered: d, ...now} = app.state;
      if ((Object.keys(rest) as (keyof typeof rest)[]).some(key => rest[key] !== now[key]) || (a === c && b === d)) schedule();
      if (shell.page === 'pipeline' && (a !== c || before.selected !== app.state.selected || b === d)) shell.moved();
    });
    loadTables(shell.api).then(tables => {
      made.tables = loaded.report.tables = tables;
      schedule();
    }, error => {
      made.tablesError = String(error);
      schedule();
    });
    expose(made);
    return made;
  }

  function ownKey(made: Pipe, event: KeyboardEvent): boolean {
    const {app} = made, {selected} = app.state;
    switch (event.code) {
      case 'KeyC': if (app.bubbles) app.change({causes: !app.state.causes}); return true;
      case 'KeyU':
        if (event.shiftKey || selected < 0) toggleAll(app);
        else toggleStage(app, app.report.parts[app.cells.part[selected]!]!.stage);
        return true;
      case 'Enter':
        if (document.activeElement !== made.chart.canvas || selected < 0 || made.world) return false;
        shell.go('timeline', {query: timelineQuery(made, selected)});
        return true;
      case 'Escape':
        if (made.world && selected < 0) setWorld(made, null);
        return false;
      case 'BracketLeft': case 'BracketRight':
        if (made.world) setWorld(made, null);
        return false;
    }
    return false;
  }

  function drawDetails(made: Pipe): void {
    const {app} = made, {selected} = app.state;
    const link = selected >= 0 && !made.world ? h('a', {class: 'to-timeline', id: 'to-timeline', href: shell.href('timeline', {query: timelineQuery(made, selected)})},
      w('pipe.toTimeline')) : null;
    detailsPlace.replaceChildren(detailsView(app), ...(link ? [link] : []));
  }
  function schedule(): void { if (!pending) pending = requestAnimationFrame(draw); }
  function draw(): void {
    pending = 0;
    if (!pipe) return;
    render(<StepHead pipe={pipe} />, top);
    render(<Head pipe={pipe} />, controls);
    render(
      <>
        <WhatIf pipe={pipe} redraw={schedule} />
        {pipe.tablesError && <p class="notice" role="alert">{pipe.tablesError}</p>}
        {!pipe.tables && !pipe.tablesError && <p class="quiet">{w('pipe.tables.wait')}</p>}
        <Stages pipe={pipe} />
        <Workers pipe={pipe} />
        <StepMap pipe={pipe} />
      </>, body);
    const {cells} = pipe.recorded.report;
    notice.hidden = cells.count >= cells.total;
    if (!notice.hidden) notice.textContent = w('pipe.truncated', cells.count, cells.total);
  }
  function restyle(): void {
    if (!pipe) {
      notice.textContent = w('pipe.wait');
      return;
    }
    const {app} = pipe, {group} = app.report.palette[shell.theme];
    app.theme = shell.theme;
    styled(element, Object.fromEntries(group.map((colour, i) => [`--group-${i}`, colour])));
    pipe.chart.restyle();
    drawDetails(pipe);
    draw();
  }

  return {
    element,
    show(route) {
      visible = true;
      if (route) asked = route.query;
      if (pipe) {
        if (route) {
          if (pipe.world) setWorld(pipe, null);
          pipe.app.change(stateOf(pipe, route.query));
        }
        pipe.chart.invalidate();
        return;
      }
      if (notice.classList.contains('asking')) return;
      notice.classList.add('asking');
      loadPipeline(shell.api).then(loaded => {
        pipe = build(loaded);
        restyle();
      }).catch((error: unknown) => {
        notice.classList.remove('asking');
        notice.textContent = String(error instanceof Error ? error.message : error);
      });
    },
    hide() { visible = false; },
    address: () => ({rest: '', query: pipe ? toQuery(pipe) : asked}),
    restyle,
    keys: () => KEYS.map(([keys, does]): KeyWords => ({keys, does: does()})),
    focus() { (pipe?.chart.canvas ?? element).focus({preventScroll: true}); },
  };
}

// What tests and measurements ask. Coordinates are CSS pixels in the window.
function expose(pipe: Pipe): void {
  const {app, chart} = pipe;
  let frames = 0;
  chart.canvas.addEventListener('painted', () => { if (++frames === 1) performance.mark('pipeline-painted'); });
  const box = (cell: number) => {
    const found = cellBox(chart.scene(), cell), corner = chart.canvas.getBoundingClientRect();
    return found && {x: found.x + corner.left, y: found.y + corner.top, w: found.w, h: found.h};
  };
  const cellOf = (of: App, i: number) => ({start: of.cells.start[i], dur: of.cells.dur[i], step: of.cells.step[i], part: of.cells.part[i],
    kind: of.cells.kind[i], microBatch: of.cells.microBatch[i], chunk: of.cells.chunk[i]});
  const own = {
    cells: () => app.cells.count, total: pipe.recorded.report.cells.total, drawn: () => countDrawn(chart.allScene()),
    frames: () => frames, view: () => app.state.view,
    state: () => ({...app.state, open: [...app.state.open]}), rows: () => chart.scene().layout.rows.map(row => app.model.rows[row]!.part),
    cell: (i: number) => cellOf(app, i), box, select: (i: number) => select(app, i), parts: pipe.recorded.report.parts,
    tables: () => pipe.tables?.map(table => table.name) ?? null, world: () => pipe.world && {step: pipe.world.step, end: pipe.world.end},
    bubbles: () => pipe.recorded.bubbles && {count: pipe.recorded.bubbles.cells.count, dur: [...pipe.recorded.bubbles.cells.dur],
      start: [...pipe.recorded.bubbles.cells.start], part: [...pipe.recorded.bubbles.cells.part], step: [...pipe.recorded.bubbles.cells.step],
      parts: pipe.recorded.bubbles.parts.map(list => [...list])},
    xOf: (time: number) => {
      const {layout, view, width} = chart.scene(), left = chart.canvas.getBoundingClientRect().left;
      return left + layout.labelWidth + (time - view.t0) / (view.t1 - view.t0) * (width - 8 - layout.labelWidth);
    },
  };
  Object.assign((window as {stageline?: object}).stageline ??= {}, {pipeline: own});
}
