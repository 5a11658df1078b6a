// The pipeline page: the step in a sentence and a bar, the chart, and the tables of stages, ranks and steps next to it.
import {render} from 'preact';
import {makeApp, select, toggleTheory, type App} from '../../app';
import {arrowsOf, cellBox, countDrawn, makeChart, type Chart} from '../../chart/chart';
import {listenToKeys} from '../../chart/keys';
import {hasMany, sumOf} from '../../chart/layout';
import {listenToPointer} from '../../chart/pointer';
import {bubbleAt, BUBBLE_PARTS} from '../../data/bubbles';
import {densityOf, STACK} from '../../data/density';
import {worstOf, type RanksAnswer} from '../../data/worst';
import {h, styled} from '../../dom';
import {duration, grouped, percent} from '../../format';
import {currentLang, type Key, t} from '../../i18n/i18n';
import {detailsView} from '../../views/details';
import {homeOf} from '../../state';
import {makeTip, type PageTip} from '../../views/tip';
import {cellSentence, rankList} from '../../words';
import type {Diff} from '../answers/diff';
import {EvidenceBar} from '../evidence/bar';
import {isOfDiff, scenesOf, scenesOfDiff} from '../evidence/scenes';
import {stepOf} from '../evidence/staged';
import {placesOf, replicaOf} from '../evidence/places';
import {litOf} from './lit';
import {describedOf} from '../shell/described';
import type {KeyWords, Page, Shell} from '../shell/page';
import {stateOf, toQuery} from './address';
import {KIND_CODES} from '../../data/kind';
import {deskOf} from '../answers/ask';
import {explained} from '../answers/explained';
import {learnTerms, type Figures} from '../../views/glossary';
import {makeSlack} from '../answers/slack';
import {timelineQuery} from './cell';
import {Kept} from './kept';
import {Head} from './head';
import {StepMap, Workers} from './heat';
import {loadPipeline, loadTables, type Loaded} from './load';
import {chooseBelow, follow, lead, likeWords, makeOther} from './other';
import {isLeftOut, moreOfStage, moveToStep, oneReplica, ownModel, setUnder, setWorld, showAllRanks, slowStages,
  toggleAll, toggleStage, type Pipe} from './pipe';
import {RunName, RunsWords} from './runs';
import {Stages} from './stages';
import {partWord, StepHead} from './steps';
import {WhatIf} from './what_if';
import {WorstRanks} from './worst';

const KEYS: [string, () => string][] = [
  ['W S', () => t('keys.zoom.long')],
  ['A D', () => t('keys.move.long')],
  ['← → ↑ ↓', () => t('keys.arrows.long')],
  ['[ ]', () => t('keys.step.long')],
  [', .', () => t('keys.cell.long')],
  ['0', () => t('keys.fit.long')],
  ['T', () => t('keys.theory.long')],
  ['C', () => t('pipe.key.causes')],
  ['E ⇧E', () => t('keys.evidence')],
  ['U ⇧U', () => t('pipe.key.unfold')],
  ['Enter', () => t('pipe.key.timeline')],
  ['Esc', () => t('keys.esc.long')],
];

const MAX_EXPLAINED = 2_000_000; // slices

export function makePipeline(shell: Shell): Page {
  const evidence = h('div', {class: 'evidence-place'}), top = h('div', {}), controls = h('div', {}),
    body = h('div', {class: 'cards'}), chartPlace = h('div', {class: 'chart-place'});
  const detailsPlace = h('div', {}), notice = h('p', {class: 'quiet', role: 'status'}), runsWords = h('div', {});
  const names = [h('div', {class: 'run-name'}), h('div', {class: 'run-name'})] as const,
    otherPlace = h('div', {class: 'chart-place'});
  const element = h('main', {class: 'sheet'}, notice, top, evidence, controls, runsWords, names[0], chartPlace,
    names[1], otherPlace, detailsPlace, body);
  const slack = makeSlack(shell.api);
  let pipe: Pipe | null = null, asked = '', pending = 0, pointerTime: number | null = null,
    otherTime: number | null = null, visible = false;
  let leading = false, staging = 0, fetching = 0, busy = 0, life = new AbortController();

  // Takes the place of the pipe that was here.
  function build(loaded: Pipe['recorded']): Pipe {
    life.abort();
    life = new AbortController();
    const app = makeApp(loaded.report, loaded.cells, loaded.model, shell.theme);
    app.bubbles = loaded.bubbles;
    // This leaves room for the sentence above it and the first card below.
    const share = (): number => (made.both && made.other ? 0.36 : made.world ? 0.46 : 0.62);
    const maxHeight = (): number => Math.max(share() < 0.5 ? 160 : 220, Math.min(element.clientHeight * share(), 1400));
    const chart = makeChart(app, maxHeight, life.signal);
    const made: Pipe = {shell, app, chart, recorded: loaded, tables: null, tablesError: '', world: null, scene: '',
      scenes: null,
      bench: {now: new URLSearchParams(asked).get('if') ?? '', kept: new URLSearchParams(asked).get('kept') ?? '',
        described: describedOf(new URLSearchParams(asked)), restore: null}, other: null, diff: null,
      fetchSteps: REPORT ? null : (step, beside) => {
        fetchSteps(made, step, beside).catch(wrong);
      }, both: new URLSearchParams(asked).get('other') !== 'off'};
    const tip = makeTip(app, cell => [
      likeWords(made, 'a', cell),
      made.world ? ''
        : slack({step: app.cells.step[cell]!, rank: loaded.report.parts[app.cells.part[cell]!]!.rank,
          code: KIND_CODES[app.cells.kind[cell]!]!, microBatch: app.cells.microBatch[cell]!,
          chunk: app.cells.chunk[cell]!}, () => tip.again(cell)),
    ]);
    app.state = stateOf(made, asked);
    setUnder(made);
    chartPlace.replaceChildren(chart.element, tip.element);
    listenToPointer(app, chart, tip, {
      onPoint: time => {
        pointerTime = time;
      },
      onLabel: index => {
        const {layout} = chart.scene(), sum = sumOf(layout, index), row = loaded.model.rows[layout.rows[index]!];
        if (sum && !sum.whole) showAllRanks(app, sum.stage);
        else toggleStage(app, sum ? sum.stage : row ? loaded.report.parts[row.part]!.stage : -1);
      },
      onIdle: (index, time, x, y) => showIdle(app, chart, tip, index, time, x, y),
    });
    listenToKeys(app, chart, () => pointerTime, {
      help: shell.help,
      helpOpen: () => document.querySelector('dialog[open]') !== null,
      active: () =>
        visible && shell.page === 'pipeline' &&
        (!made.other || document.activeElement !== made.other.chart.canvas),
      own: event => ownKey(made, event),
      step: by => moveToStep(made, by),
      until: life.signal,
    });
    app.onChange(before => {
      if (before.step !== app.state.step || before.beside !== app.state.beside) setUnder(made);
      if (!leading) following(() => follow(made, before));
      if (before.selected !== app.state.selected) {
        drawDetails(made);
        shell.say(app.state.selected >= 0 ? cellSentence(app, app.state.selected) : '');
      }
      if (before.step !== app.state.step)
        shell.say(app.state.step === null ? t('chart.all') : t('chart.step', app.state.step));
      const {view: a, hovered: b, ...rest} = before, {view: c, hovered: d, ...now} = app.state;
      if (made.scene && a !== c) schedule();
      if ((Object.keys(rest) as (keyof typeof rest)[]).some(key => rest[key] !== now[key]) || (a === c && b === d))
        schedule();
      if (shell.page === 'pipeline' && (a !== c || before.selected !== app.state.selected || b === d)) shell.moved();
    });
    // Definitions come with the findings, which are looked for where that is fast.
    if (shell.run.slices < MAX_EXPLAINED)
      explained(shell.api).then(() => deskOf(shell.api).ask<Figures>('figures', {}, () => undefined)).then(
        ({terms}) => {
          learnTerms(terms ?? []);
          schedule();
        },
        () => undefined,
      );
    loadTables(shell.api).then(tables => {
      made.tables = loaded.report.tables = tables;
      schedule();
    }, error => {
      made.tablesError = String(error);
      schedule();
    });
    if (hasMany(loaded.report.parts))
      deskOf(shell.api).ask<RanksAnswer>('pipeline/ranks', {}, () => undefined).then(answer => {
        app.worst = worstOf(answer, loaded.report.parts);
        const fields = new URLSearchParams(asked),
          unasked = !['open', 'dp', 'scene', 'sel', 'if'].some(name => fields.has(name));
        app.change(
          unasked && app.state.dp === null && app.state.open.size === 0 ? {open: new Set(slowStages(made))} : {},
        );
        schedule();
      }, () => undefined); // without an answer no rank stands out
    fetchOther(made, maxHeight);
    expose(made, () => busy > 0);
    return made;
  }

  // Fetches steps that were omitted: their cells replace the present ones. All other choices stay. null: another
  // request came meanwhile.
  async function fetchSteps(made: Pipe, step: number, beside?: number): Promise<Pipe | null> {
    const query = new URLSearchParams(toQuery(made));
    for (const name of ['v', 'sel', 'scene', 'beside']) query.delete(name);
    query.set('step', String(step));
    if (beside !== undefined) query.set('beside', String(beside));
    return fetchAsked(made, String(query), beside === undefined ? [step] : [step, beside]);
  }
  async function fetchAsked(made: Pipe, query: string, steps: number[]): Promise<Pipe | null> {
    const mine = ++fetching;
    ++busy;
    notice.hidden = false;
    notice.textContent = t('pipe.fetch', rankList([...steps].sort((a, b) => a - b)));
    try {
      const loaded = await loadPipeline(shell.api, {steps});
      if (mine !== fetching || pipe !== made) return null;
      const focused = document.activeElement === made.chart.canvas;
      asked = query;
      pipe = build(loaded);
      restyle();
      if (focused) pipe.chart.canvas.focus({preventScroll: true});
      shell.say(t('chart.step', steps[0]!));
      shell.moved();
      return pipe;
    } finally {
      --busy;
      schedule();
    }
  }
  // Returns the steps of an address that must be fetched for it; empty: it can be shown with the present ones.
  function lackingOf(query: string, {model, report: {cells: {leftOut}}}: Loaded): number[] {
    const fields = new URLSearchParams(query),
      named = ['step', 'beside'].flatMap(name => (fields.has(name) ? [Number(fields.get(name))] : []));
    if (REPORT || !leftOut || !named.some(step => leftOut.includes(step))) return [];
    return [...new Set(named)].filter(step => leftOut.includes(step) || model.steps.some(one => one.step === step));
  }
  // Loads the data that the page opens on.
  async function loadAsked(): Promise<Loaded> {
    const loaded = await loadPipeline(shell.api), steps = lackingOf(asked, loaded);
    return steps.length > 0 ? loadPipeline(shell.api, {steps}) : loaded;
  }
  // The second run; where not all of it came, the step that the first one shows, if it has it.
  async function loadOther({app: {state: {step}}}: Pipe): Promise<Loaded> {
    const loaded = await loadPipeline(shell.api, {run: 'other'});
    return step !== null && loaded.report.cells.leftOut?.includes(step)
      ? loadPipeline(shell.api, {run: 'other', steps: [step]}) : loaded;
  }

  // The second run follows the first, and the other way round; never both at once.
  function following(act: () => void): void {
    leading = true;
    act();
    leading = false;
  }
  function fetchOther(made: Pipe, maxHeight: () => number): void {
    const desk = deskOf(shell.api), until = life.signal;
    desk.offers().then(async offers => {
      if (!offers.other) return;
      desk.ask<Partial<Diff>>('compare', {}, () => undefined).then(diff => {
        made.diff = diff;
        schedule();
      }, () => undefined);
      const loaded = await loadOther(made);
      if (until.aborted) return;
      const other = made.other = makeOther(made, offers.other.title, loaded, maxHeight, until);
      const {app} = other, tip = makeTip(app, cell => [likeWords(made, 'b', cell)]);
      otherPlace.replaceChildren(other.chart.element, tip.element);
      listenToPointer(app, other.chart, tip, {
        onPoint: time => {
          otherTime = time;
        },
        onIdle: (index, time, x, y) => showIdle(app, other.chart, tip, index, time, x, y),
      });
      listenToKeys(app, other.chart, () => otherTime, {help: shell.help,
        helpOpen: () => document.querySelector('dialog[open]') !== null,
        active: () =>
          visible && shell.page === 'pipeline' && made.both && document.activeElement === other.chart.canvas,
        own: event => otherKey(made, event), step: by => moveToStep(made, by), until});
      app.onChange(before => {
        if (leading) return;
        following(() => lead(made, other, before));
        if (before.selected !== app.state.selected) drawDetails(made);
      });
      other.chart.restyle();
      lightOther(made);
      const wanted = Number(new URLSearchParams(asked).get('other') || NaN);
      if (other.loaded.model.steps.some(one => one.step === wanted)) chooseBelow(made, other, wanted);
      showBoth(made, made.both);
    }).catch((error: unknown) => {
      made.tablesError = t('pipe.other.none', error instanceof Error ? error.message : String(error));
      schedule();
    });
  }
  function showBoth(made: Pipe, both: boolean): void {
    const {app, other} = made, home = homeOf(app.model, app.state.step),
      whole = app.state.view.t0 === home.t0 && app.state.view.t1 === home.t1;
    made.both = both;
    if (!made.world) app.model = ownModel(made);
    if (!both) app.marks = null;
    if (other) following(() => follow(made, null));
    app.change(whole ? {view: homeOf(app.model, app.state.step)} : {});
    shell.moved();
    schedule();
  }
  // Keys that the second chart does not handle apply to both.
  function otherKey(made: Pipe, event: KeyboardEvent): boolean {
    switch (event.code) {
      case 'KeyC':
      case 'KeyU':
        return ownKey(made, event);
      case 'KeyT':
        toggleTheory(made.app);
        return true;
    }
    return false;
  }
  // If there is no cell under the pointer: shows how many of the ranks together are in each kind of work, or why a rank
  // waits.
  function showIdle(app: App, chart: Chart, tip: PageTip, index: number, time: number, x: number, y: number): boolean {
    const scene = chart.scene(), sum = sumOf(scene.layout, index);
    if (!sum) return showBubble(app, tip, scene.layout.rows[index]!, time, x, y);
    const shares = new Float64Array(STACK.length), pixel = chart.timeAt(1) - chart.timeAt(0);
    densityOf(app.cells, app.model, sum, app.state.step).fill(time - pixel / 2, time + pixel / 2, 1, shares);
    const waiting = 1 - shares.reduce((all, share) => all + share, 0),
      line = (name: string, share: number):
        | HTMLElement
        | null => (share >= 0.0005 ? h('div', {class: 'quiet'}, `${name} ${percent(share)}`) : null);
    tip.place(x, y, h('b', {}, t(sum.whole ? 'pipe.sum' : 'pipe.sum.others', sum.stage, sum.rows.length)),
      ...STACK.flatMap((group, k) => line(t(`group.${group}` as Key), shares[k]!) ?? []),
      ...(line(t('group.idle'), waiting) ? [line(t('group.idle'), waiting)!] : []));
    return true;
  }
  function showBubble(app: App, tip: PageTip, row: number, time: number, x: number, y: number): boolean {
    const at = app.bubbles ? bubbleAt(app.bubbles, row, app.state.step, time) : -1;
    if (at < 0) return false;
    const {cells, parts} = app.bubbles!, lines = BUBBLE_PARTS.map((id, k) => [partWord(id), parts[k]![at]!] as const)
      .filter(([, ns]) => Math.abs(ns) >= cells.dur[at]! / 200);
    tip.place(x, y, h('b', {}, t('pipe.waits', duration(cells.dur[at]!))),
      ...lines.map(([name, ns]) =>
        h('div', {class: 'quiet'}, `${name} ${ns < 0 ? '−' : ''}${duration(Math.abs(ns))}`)
      ));
    return true;
  }

  function ownKey(made: Pipe, event: KeyboardEvent): boolean {
    const {app} = made, {selected} = app.state;
    switch (event.code) {
      case 'KeyE':
        nextScene(made, event.shiftKey ? -1 : 1);
        return true;
      case 'KeyC':
        if (app.bubbles) app.change({causes: !app.state.causes});
        return true;
      case 'KeyU':
        if (event.shiftKey || selected < 0) toggleAll(app);
        else moreOfStage(app, app.report.parts[app.cells.part[selected]!]!.stage);
        return true;
      case 'Enter':
        if (document.activeElement !== made.chart.canvas || selected < 0 || made.world) return false;
        shell.go('timeline', {query: timelineQuery(made, selected)});
        return true;
      case 'Escape':
        if (made.world && selected < 0) setWorld(made, null);
        else if (made.scene && selected < 0) leaveScene(made);
        return false;
    }
    return false;
  }

  function drawDetails(made: Pipe): void {
    const {app} = made, {selected} = app.state;
    const link = selected >= 0 && !made.world
      ? h('a', {class: 'to-timeline', id: 'to-timeline',
        href: shell.href('timeline', {query: timelineQuery(made, selected)})}, t('pipe.toTimeline')) : null;
    const {other} = made, alone = selected < 0 && !!other && made.both && other.app.state.selected >= 0;
    const words = alone ? likeWords(made, 'b', other.app.state.selected) : likeWords(made, 'a', selected);
    detailsPlace.replaceChildren(detailsView(alone ? other.app : app),
      ...(words ? [h('p', {class: 'quiet'}, words)] : []), ...(link ? [link] : []));
  }
  // A finding: its step and the replica of its rank, its cells lit. `keep`: what the address says of the window and the
  // cell stays.
  async function showScene(made: Pipe, key: string | null, keep = false): Promise<void> {
    const mine = ++staging;
    ++busy;
    try {
      const scenes = made.scenes && isOfDiff(made.scenes.keys[0] ?? '') === isOfDiff(key) ? made.scenes
          : await (isOfDiff(key) ? scenesOfDiff : scenesOf)(shell), at = key === null ? 0 : scenes.keys.indexOf(key),
        finding = scenes.findings[at];
      if (mine !== staging) return;
      if (!finding) return key === null ? shell.say(t('evidence.none')) : shell.lost(`scene=${key}`);
      if (made.world) setWorld(made, null);
      const wanted = stepOf(scenes.steps, finding)?.number ?? null;
      if (!keep && isLeftOut(made, wanted)) {
        const fetched = await fetchSteps(made, wanted);
        if (!fetched || mine !== staging) return;
        made = fetched;
      }
      const {app} = made, dp = replicaOf(shell.run, [finding]), known = made.recorded.model.steps.some(one =>
        one.step === wanted
      );
      const step = keep || !known ? app.state.step : wanted;
      const replica = keep ? app.state.dp : dp < 0 ? oneReplica(made) : dp,
        {cells, chosen} = litOf(made.recorded, shell.run.kinds, finding, step, replica);
      made.scenes = scenes;
      made.scene = scenes.keys[at]!;
      app.lit = cells;
      lightOther(made);
      app.change(keep ? {} : {step, dp: replica, view: homeOf(app.model, step), hovered: -1, selected: chosen});
      made.chart.invalidate();
      shell.moved();
    } finally {
      --busy;
      schedule();
    }
  }
  // The run below: the same place of it.
  function lightOther({other, scenes, scene}: Pipe): void {
    const finding = scene ? scenes?.findings[scenes.keys.indexOf(scene)] : undefined;
    if (!other) return;
    other.app.lit = finding ? litOf(other.loaded, shell.run.kinds, finding, null, null).cells : null;
    other.chart.invalidate();
  }
  function leaveScene(made: Pipe): void {
    ++staging;
    made.scene = '';
    made.app.lit = null;
    lightOther(made);
    made.app.change({});
    made.chart.invalidate();
    shell.moved();
    schedule();
  }
  function nextScene(made: Pipe, by: number): void {
    const next = made.scene && made.scenes ? made.scenes.keys[made.scenes.keys.indexOf(made.scene) + by] : null;
    if (next !== undefined) showScene(made, next).catch(wrong);
  }
  const wrong = (error: unknown): void => shell.say(t('failed', String(error)));
  function drawEvidence(made: Pipe): void {
    const {scenes, scene, app} = made, finding = scenes?.findings[scenes.keys.indexOf(scene)],
      plot = made.chart.scene();
    const {t0, t1} = app.state.view, left = plot.layout.labelWidth, width = Math.max(plot.width - left - 8, 60);
    // The lane is on the timeline's axis, the cells on theirs: a rank's cells may be moved against it.
    const shift = made.recorded.shiftNs[0] ?? 0;
    render(
      scenes && finding && scene ? (
        <EvidenceBar
          scenes={scenes}
          now={scene}
          left={left}
          width={width}
          xOf={t => left + (t - shift - t0) / (t1 - t0) * width}
          show={key => {
            showScene(made, key).catch(wrong);
          }}
          leave={() => leaveScene(made)}
          places={placesOf(shell, finding, scene, scenes.steps, scenes.known).filter(place =>
            place.id !== 'pipeline'
          )} />
      ) : null,
      evidence,
    );
  }
  function schedule(): void {
    if (!pending) pending = requestAnimationFrame(draw);
  }
  function draw(): void {
    pending = 0;
    if (!pipe) return;
    drawEvidence(pipe);
    render(<StepHead pipe={pipe} />, top);
    render(<Head
      pipe={pipe}
      showBoth={both => showBoth(pipe!, both)}
      evidence={() => {
        if (pipe!.scene) leaveScene(pipe!);
        else showScene(pipe!, null).catch(wrong);
      }} />, controls);
    const {other, both, app: {state}} = pipe, shown = both ? other : null, now = [pipe.tables, currentLang()];
    render(shown ? <RunsWords pipe={pipe} other={shown} /> : null, runsWords);
    render(shown ? <RunName pipe={pipe} other={shown} side="a" /> : null, names[0]);
    render(shown ? <RunName pipe={pipe} other={shown} side="b" /> : null, names[1]);
    otherPlace.hidden = !shown;
    element.classList.toggle('bench', pipe.world !== null);
    render(
      <>
        <div class="cards">
          <WhatIf pipe={pipe} redraw={schedule} />
          <Kept by={[...now, state.step]}>
            <StepMap pipe={pipe} />
          </Kept>
        </div>
        <div class="cards">
          {pipe.tablesError && <p class="notice" role="alert">{pipe.tablesError}</p>}
          {!pipe.tables && !pipe.tablesError && <p class="quiet">{t('pipe.tables.wait')}</p>}
          <Kept by={[...now, state.step, state.dp, shown, other?.between, pipe.world]}>
            <Stages pipe={pipe} />
          </Kept>
          <Kept by={[...now, pipe.app.worst, state.selected]}>
            <WorstRanks pipe={pipe} />
          </Kept>
          <Kept by={[...now, state.dp, state.open]}>
            <Workers pipe={pipe} />
          </Kept>
        </div>
      </>,
      body,
    );
    const {cells} = pipe.recorded.report;
    notice.hidden = cells.count >= cells.total;
    if (!notice.hidden && busy === 0)
      notice.textContent = t(pipe.fetchSteps ? 'pipe.truncated.more' : 'pipe.truncated', grouped(cells.count),
        grouped(cells.total), pipe.recorded.model.steps.length, cells.steps,
        rankList(pipe.recorded.model.steps.map(one => one.step)));
  }
  function takeScene(made: Pipe, query: string): void {
    const fields = new URLSearchParams(query), key = fields.get('scene');
    if (key !== null) showScene(made, key, fields.has('v') || fields.has('sel')).catch(wrong);
  }
  function restyle(): void {
    if (!pipe) {
      notice.textContent = t('pipe.wait');
      return;
    }
    const {app} = pipe, {group} = app.report.palette[shell.theme];
    app.theme = shell.theme;
    styled(element, Object.fromEntries(group.map((colour, i) => [`--group-${i}`, colour])));
    pipe.chart.restyle();
    if (pipe.other) {
      pipe.other.app.theme = shell.theme;
      pipe.other.chart.restyle();
    }
    drawDetails(pipe);
    draw();
  }

  return {
    element,
    show(route) {
      visible = true;
      if (route) asked = route.query;
      if (pipe) {
        const made = pipe, lacking = route ? lackingOf(route.query, pipe.recorded) : [];
        if (route && lacking.length > 0) {
          fetchAsked(made, route.query, lacking).then(fetched => {
            if (fetched) takeScene(fetched, route.query);
          }).catch(wrong);
        } else if (route) {
          if (pipe.world) setWorld(pipe, null);
          const both = new URLSearchParams(route.query).get('other') !== 'off';
          if (both !== pipe.both) showBoth(pipe, both);
          leaveScene(pipe);
          pipe.app.change(stateOf(pipe, route.query));
          takeScene(pipe, route.query);
          const fields = new URLSearchParams(route.query);
          pipe.bench.restore?.(fields.get('if') ?? '', fields.get('kept') ?? '', describedOf(fields));
        }
        pipe.chart.invalidate();
        pipe.other?.chart.invalidate();
        return;
      }
      if (notice.classList.contains('asking')) return;
      notice.classList.add('asking');
      loadAsked().then(loaded => {
        pipe = build(loaded);
        restyle();
        takeScene(pipe, asked);
      }).catch((error: unknown) => {
        notice.classList.remove('asking');
        notice.textContent = String(error instanceof Error ? error.message : error);
      });
    },
    hide() {
      visible = false;
    },
    address: () => ({rest: '', query: pipe ? toQuery(pipe) : asked}),
    restyle,
    keys: () => KEYS.map(([keys, does]): KeyWords => ({keys, does: does()})),
    focus() {
      (pipe?.chart.canvas ?? element).focus({preventScroll: true});
    },
  };
}

// The interface for tests and measurements. Coordinates are CSS pixels in the window.
function expose(pipe: Pipe, staging: () => boolean): void {
  const {app, chart} = pipe;
  let frames = 0;
  chart.canvas.addEventListener('painted', () => {
    if (++frames === 1) performance.mark('pipeline-painted');
  });
  const box = (cell: number) => {
    const found = cellBox(chart.scene(), cell), corner = chart.canvas.getBoundingClientRect();
    return found && {x: found.x + corner.left, y: found.y + corner.top, w: found.w, h: found.h};
  };
  const cellOf = (of: App, i: number) => ({start: of.cells.start[i], dur: of.cells.dur[i], step: of.cells.step[i],
    part: of.cells.part[i], kind: of.cells.kind[i], microBatch: of.cells.microBatch[i], chunk: of.cells.chunk[i]});
  const own = {
    cells: () => app.cells.count,
    total: pipe.recorded.report.cells.total,
    drawn: () => countDrawn(chart.allScene()),
    staging,
    scene: () => pipe.scene,
    lit: () => app.lit && [...app.lit],
    frames: () => frames,
    view: () => app.state.view,
    state: () => ({...app.state, open: [...app.state.open], full: [...app.state.full]}),
    rows: () => chart.scene().layout.rows.map(row => app.model.rows[row]?.part ?? row),
    sumRows: () => chart.scene().layout.sums,
    pitch: () => chart.scene().layout.pitch,
    worst: () => app.worst && [...app.worst],
    arrows: (i: number) =>
      arrowsOf(chart.scene(), i).map(one => {
        const {left, top} = chart.canvas.getBoundingClientRect();
        return {...one, x0: one.x0 + left, y0: one.y0 + top, x1: one.x1 + left, y1: one.y1 + top};
      }),
    cell: (i: number) => cellOf(app, i),
    box,
    select: (i: number) => select(app, i),
    parts: pipe.recorded.report.parts,
    other: () =>
      pipe.other &&
      {title: pipe.other.title, both: pipe.both, step: pipe.other.app.state.step, view: pipe.other.app.state.view,
        selected: pipe.other.app.state.selected, hovered: pipe.other.app.state.hovered, shift: pipe.other.shift,
        compared: pipe.other.compared &&
          {...pipe.other.compared, a: [...pipe.other.compared.a.marks], b: [...pipe.other.compared.b.marks]},
        likes: [...pipe.other.compared?.a.other ?? []], cells: pipe.other.app.cells.count},
    otherCell: (i: number) => pipe.other && cellOf(pipe.other.app, i),
    otherBox: (i: number) => {
      const found = pipe.other && cellBox(pipe.other.chart.scene(), i),
        corner = pipe.other?.chart.canvas.getBoundingClientRect();
      return found && corner && {x: found.x + corner.left, y: found.y + corner.top, w: found.w, h: found.h};
    },
    sums: () => pipe.recorded.sums.step.length,
    tables: () => pipe.tables?.map(table => table.name) ?? null,
    world: () => pipe.world && {step: pipe.world.step, end: pipe.world.end},
    bubbles: () =>
      pipe.recorded.bubbles &&
      {count: pipe.recorded.bubbles.cells.count, dur: [...pipe.recorded.bubbles.cells.dur],
        start: [...pipe.recorded.bubbles.cells.start], part: [...pipe.recorded.bubbles.cells.part],
        step: [...pipe.recorded.bubbles.cells.step], parts: pipe.recorded.bubbles.parts.map(list => [...list])},
    xOf: (time: number) => {
      const {layout, view, width} = chart.scene(), left = chart.canvas.getBoundingClientRect().left;
      return left + layout.labelWidth + (time - view.t0) / (view.t1 - view.t0) * (width - 8 - layout.labelWidth);
    },
  };
  Object.assign((window as {stageline?: object}).stageline ??= {}, {pipeline: own});
}
