// Shows the timeline as a page: the bar, the rows, the drawer below.
import {t} from '../../i18n/i18n';
import {render} from 'preact';
import {h} from '../../dom';
import {grouped} from '../../format';
import {makeActions, type Actions, type Doors, type OmniMode} from './actions';
import {EvidenceBar} from '../evidence/bar';
import {scenesOf, type Scenes} from '../evidence/scenes';
import {stage as stageScene, stepOf, viewOf, type Stretches} from '../evidence/staged';
import {expose, exposeSecond} from './expose';
import {timelineKeys} from '../shell/help';
import {makeSlack} from '../answers/slack';
import {findHang} from './hang';
import {listenToKeys} from './keys';
import {MAX_ROWS} from './layout';
import {openOmni} from './omni';
import type {Step as RunStep} from '../shell/api';
import type {Page, Shell} from '../shell/page';
import {Panel} from './panel';
import {placesOf} from '../evidence/places';
import {openInPerfetto} from './perfetto';
import {listenToPointer} from './pointer';
import {makeMinimap} from './minimap';
import {makeQueryLane, type QueryLane} from './query_lane';
import {makeSecond, readSecond, type Half, type Second} from './second';
import {xOf} from './scene';
import {makeStage} from './stage';
import {Store} from './store';
import {makeTip} from './tip';
import {rankTitle} from './titles';
import {Toolbar} from './toolbar';
import {keepNotes} from './notes';
import {fromQuery, toQuery} from './url';

// Findings are looked for on their own where that is fast, once the rows are drawn.
const MAX_FLAGGED = 2_000_000, FLAGS_MS = 1000;

export function makeTimeline(shell: Shell): Page {
  const {api, run} = shell, store = new Store(run, shell.theme);
  const bar = h('div', {class: 'toolbar-place'}), bottom = h('div', {class: 'panel-place'}),
    tip = makeTip(store, makeSlack(api));
  const drawerHeight = (): number => bottom.querySelector<HTMLElement>('.panel .body')?.offsetHeight ?? 0;
  const stage = makeStage(api, store, drawerHeight);
  const evidence = h('div', {class: 'evidence-place'});
  // A report answers no queries.
  const rows: QueryLane = REPORT ? {element: h('div'), draw: () => undefined, settled: () => true}
    : makeQueryLane(api, store, () => stage.scene(), () => stage.draw());
  const leftOut = h('p', {class: 'left-out', role: 'note', hidden: !run.file?.left_out});
  const title = h('h1', {class: 'live'});
  const map = makeMinimap(api, store, stage, error => actions.failed(error));
  const element = h('main', {}, title, bar, leftOut, map.element, evidence, rows.element, stage.element, bottom,
    tip.element);
  let actions: Actions;
  const doorsOf = (half: () => Half): Doors => ({
    open: (mode: OmniMode) => {
      const one = half();
      openOmni(mode, one.api, one.store, one.stage, one.actions);
    },
    help: shell.help,
    toggleTheme: shell.toggleTheme,
    toggleLang: shell.toggleLang,
    evidence: (by: number) => step(by),
    perfetto: () => {
      if (!REPORT) openInPerfetto(api, store).catch(error => actions.failed(error));
    },
  });
  actions = makeActions(api, store, stage, doorsOf(() => first));
  // The half that was touched last has the toolbar, the keys and the drawer.
  const first: Half = {api, store, stage, actions};
  let second: Second | null = null, touched: Half = first, reading = false;

  // Scenes: of the finding that is shown, and who was asked for last.
  let scenes: Scenes | null = null, staging = 0, busy = 0;
  const known = async (): Promise<Scenes> => {
    if (scenes) return scenes;
    scenes = await scenesOf(shell);
    flagFindings(scenes);
    return scenes;
  };
  // In the strip of the whole run: the steps in which findings are shown.
  function flagFindings({findings, steps}: Scenes): void {
    map.flag(findings.flatMap(finding => {
      const step = stepOf(steps, finding);
      return step ? [{t0: step.start_ns, t1: step.end_ns}] : [];
    }));
  }
  // `from`: who wants it. A link is one step of Back already; of an address that says window and choice the scene
  // lights those alone.
  async function showScene(key: string | null, from: 'page' | 'link' | 'address' = 'page'): Promise<void> {
    const mine = ++staging;
    ++busy;
    try {
      const {findings, keys, steps} = await known(), at = key === null ? 0 : keys.indexOf(key), finding = findings[at];
      if (mine !== staging) return;
      if (!finding) return key === null ? store.say(t('evidence.none')) : shell.lost(`scene=${key}`);
      const staged = await stageScene(api, run, finding, keys[at]!, steps);
      if (mine !== staging) return;
      if (from === 'address') return store.change({scene: staged.light});
      actions.select(null);
      const folded = staged.selected && staged.selected.row >= MAX_ROWS.at(-1)!;
      if (folded) store.change({expanded: new Set([...store.state.expanded, staged.selected!.lane])});
      store.change({scene: staged.light, pinned: staged.pinned, area: staged.area, second: null, lit: null,
        panel: staged.area ? 'area' : 'none', collapsed: new Set(), hidden: new Set([...store.state.hidden].filter(id =>
          !staged.pinned.includes(id)
        ))});
      if (from === 'page') store.jump(staged.view ?? store.home);
      else store.setView(staged.view ?? store.home, false);
      if (staged.selected) {
        actions.select(staged.selected);
        if (staged.second) store.change({second: staged.second});
      }
    } finally {
      --busy;
      drawEvidence();
    }
  }
  function leaveScene(): void {
    ++staging;
    store.change({scene: null, pinned: []});
  }
  const step = (by: number): void => {
    const {scene} = store.state;
    if (!scene) return void showScene(null).catch(actions.failed);
    const next = scenes?.keys[scenes.keys.indexOf(scene.key) + by];
    if (next) void showScene(next).catch(actions.failed);
  };
  const whereOf = (stretches: Stretches | null, step: RunStep | undefined): string =>
    !stretches ? ''
      : [rankTitle(run.ranks[stretches.rank]!), step && t('step', step.number)].filter(Boolean).join(', ');
  // Shows another stretch of the scene, close enough to be read.
  function toStretch(at: number): void {
    const {scene} = store.state, one = scene?.stretches?.list[at];
    if (!scene || !one) return;
    actions.select(null);
    store.change({scene: {...scene, stretches: {...scene.stretches!, at}}, area: {...one, lanes: [one.lane]},
      panel: 'area'});
    store.jump(viewOf(one));
  }
  function drawEvidence(): void {
    const {scene} = store.state, at = stage.scene(),
      finding = scene && scenes?.findings[scenes.keys.indexOf(scene.key)];
    render(
      scene && scenes && finding
        ? (
          <EvidenceBar
            scenes={scenes}
            now={scene.key}
            left={at.gutter}
            width={Math.max(element.clientWidth - at.gutter - 10, 60)}
            xOf={t => xOf(at, t)}
            show={key => {
              showScene(key).catch(actions.failed);
            }}
            leave={leaveScene}
            stretches={scene.stretches}
            rank={whereOf(scene.stretches, stepOf(scenes.steps, finding))}
            toStretch={toStretch}
            places={placesOf(shell, finding, scene.key, scenes.steps, scenes.known).filter(place =>
              place.id !== 'timeline'
            )} />
        ) : null,
      evidence,
    );
  }
  let pending = 0, evidenceFrame = 0, queryFrame = 0, mapFrame = 0, jumps = store.jumps, seen = false;
  function draw(): void {
    pending = 0;
    render(<Toolbar {...touched} />, bar);
    render(<Panel {...touched} />, bottom);
    const {spoken, message} = touched.store.state;
    shell.say(spoken || message);
  }
  const drawSoon = (): void => {
    pending ||= requestAnimationFrame(draw);
  };
  function touch(half: Half): void {
    if (touched === half) return;
    touched = half;
    drawSoon();
  }
  async function showSecond(): Promise<void> {
    reading = true;
    const other = api.other(), read = await readSecond(other).finally(() => {
      reading = false;
    });
    const made = makeSecond(shell, first, other, read, doorsOf, drawerHeight);
    second = made;
    stage.element.before(made.heads[0]);
    stage.element.after(made.heads[1], made.stage.element);
    element.append(made.tip);
    for (const [half, ...places] of [[first, stage.element], [made, made.heads[1], made.stage.element]] as const)
      for (const place of places)
        for (const kind of ['pointerdown', 'focusin'])
          place.addEventListener(kind, () => touch(half), {capture: true});
    made.store.onChange(({view: a, ...before}) => {
      const {view: b, ...now} = made.store.state;
      if ((Object.keys(now) as (keyof typeof now)[]).some(key => before[key] !== now[key])) drawSoon();
    });
    listenToKeys(made.store, made.stage, made.actions, () => shell.page === 'timeline' && touched === made);
    exposeSecond(made);
    made.restyle();
  }
  // Panels follow once a frame, and not at all while only the window moves.
  store.onChange(before => {
    const {view: a, ...rest} = before, {view: b, ...now} = store.state;
    const same = (Object.keys(rest) as (keyof typeof rest)[]).every(key => rest[key] === now[key]);
    if (store.state.scene || before.scene)
      evidenceFrame ||= requestAnimationFrame(() => {
        evidenceFrame = 0;
        drawEvidence();
      });
    if (store.state.view !== before.view)
      mapFrame ||= requestAnimationFrame(() => {
        mapFrame = 0;
        map.draw();
      });
    if (store.state.query || before.query)
      queryFrame ||= requestAnimationFrame(() => {
        queryFrame = 0;
        rows.draw();
      });
    if (!same || a === b) drawSoon();
    if (shell.page === 'timeline') shell.moved(store.jumps !== jumps);
    jumps = store.jumps;
  });
  listenToPointer(api, store, stage, {tip: tip.show, select: actions.select, failed: actions.failed});
  listenToKeys(store, stage, actions, () => shell.page === 'timeline' && touched === first);
  expose(store, stage, actions,
    () => busy > 0 || reading || !rows.settled() || (second !== null && !second.stage.settled()));
  new ResizeObserver(() => {
    if (store.state.scene) drawEvidence();
    if (store.state.query) rows.draw();
    map.draw();
  }).observe(element);
  window.addEventListener('gutter', () => {
    map.draw();
    drawEvidence();
    rows.draw();
  });

  return {
    element,
    show(route) {
      if (route && (route.query || seen)) {
        fromQuery(store, route.query, actions, api, shell.lost);
        const query = new URLSearchParams(route.query), key = query.get('scene');
        ++staging;
        if (key !== null) showScene(key, query.has('v') ? 'address' : 'link').catch(actions.failed);
      }
      if (!seen && !REPORT && run.other !== undefined) showSecond().catch(actions.failed);
      if (!seen && run.format === 'flight-recorder' && run.whole) findHang(api, store).catch(() => undefined);
      if (!REPORT && !seen && run.whole && run.calls && run.lanes.some(lane => lane.type === 'stream'))
        api.json<{occurrences: number}>('search', {q: 'GraphLaunch', limit: 1}).then(
          ({occurrences}) => occurrences > 0 && store.change({graphs: true}),
          () => undefined,
        );
      if (!seen && run.whole) keepNotes(api, store, actions.failed).catch(actions.failed);
      if (!seen && run.whole && run.slices < MAX_FLAGGED)
        setTimeout(() => known().catch(() => undefined), FLAGS_MS); // why not is said where findings are shown
      seen = true;
    },
    address: () => ({rest: '', query: toQuery(store)}),
    restyle() {
      store.theme = shell.theme;
      if (run.file)
        leftOut.replaceChildren(t('file.leftOut', grouped(run.file.left_out)), ' ', h('code', {}, run.file.command));
      title.textContent = t('canvas.aria', run.title);
      stage.canvas.setAttribute('aria-label', t('canvas.aria', run.title));
      draw(); // bars first: what they leave is the stage's
      drawEvidence();
      stage.restyle();
      second?.restyle();
      rows.draw();
      map.draw();
    },
    keys: timelineKeys,
    settled: () => stage.settled() && !reading && second?.stage.settled() !== false,
    focus: () => touched.stage.canvas.focus(),
  };
}
