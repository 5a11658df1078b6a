// Reads the two data blocks of the page and puts the views together.
import {makeApp, select, setStep, type App, type Theme} from './app';
import {cellBox, countDrawn, makeChart, shortDurations} from './chart/chart';
import {listenToKeys} from './chart/keys';
import {listenToPointer} from './chart/pointer';
import {coverage} from './chart/raster';
import type {Viewport} from './chart/viewport';
import {readCells} from './data/cells';
import {findTable, hasProfile, readReport, type Finding} from './data/report';
import {makeModel} from './data/rows';
import {h} from './dom';
import {grouped} from './format';
import {addSentences, currentLang, firstLang, missingKeys, setLang, t} from './i18n/i18n';
import {fromHash, toHash} from './state';
import {makeProfile, profileFacts, profileView} from './profile/profile';
import {cellLink} from './views/cell_link';
import {chartHeadView, keyHintsView, truncatedView} from './views/chart_head';
import {detailsView} from './views/details';
import {factsView} from './views/facts';
import {findingsView} from './views/findings';
import {flawsView} from './views/flaws';
import {headerView} from './views/header';
import {headlineView} from './views/headline';
import {makeHelp} from './views/help';
import {footerView, methodView} from './views/method';
import {stagesView} from './views/stages';
import {stepBarsView, stepTimes} from './views/step_bars';
import {tablesView} from './views/tables';
import {makeTip} from './views/tip';
import {applyTheme} from './theme';
import {cellSentence, countOf} from './words';

function remember(key: string, value?: string): string | null {
  try {
    if (value !== undefined) localStorage.setItem('stageline.' + key, value);
    return localStorage.getItem('stageline.' + key);
  } catch {
    return null;  // storage may be forbidden; the page works without
  }
}

const headlineOf = ({report, model}: App): string =>
  t('headline.none', countOf('ranks', report.parts.length), countOf('steps', model.steps.length), grouped(report.cells.total));

// Where the numbers of a finding are: the page's own table, and what to type.
function evidence(app: App, finding: Finding): HTMLElement | false {
  if (!finding.analysis) return false;
  const table = app.report.tables.find(other => other.name === finding.table);
  const command = finding.command ?? '';
  return h('p', {class: 'detail'}, table ? h('a', {class: 'evidence', href: `#table-${table.name}`}, h('code', {}, command)) : h('code', {}, command));
}

function buildPage(app: App): void {
  const tip = makeTip(app), home = {tables: app.report.tables, use: {tip, link: cellLink.bind(null, app)}}, help = makeHelp(), chart = makeChart(app);
  const live = h('p', {class: 'live', 'aria-live': 'polite', id: 'live'});
  const page = document.getElementById('app')!;
  let pointerTime: number | null = null;
  let details = detailsView(app);
  const profile = hasProfile(app.report) ? makeProfile(app, home) : null;

  function build(): void {
    document.documentElement.lang = currentLang() === 'zh' ? 'zh-CN' : 'en';
    const header = headerView(app, {
      toggleLang() {
        setLang(currentLang() === 'zh' ? 'en' : 'zh');
        remember('lang', currentLang());
        rebuild('lang');
      },
      toggleTheme() {
        app.theme = app.theme === 'dark' ? 'light' : 'dark';
        remember('theme', app.theme);
        applyTheme(app.report.palette, app.theme);
        rebuild('theme');
      },
    });
    details = detailsView(app);
    const topics = profile && profileView(profile);
    const chartBlock = app.cells.count > 0
      ? [chartHeadView(app), truncatedView(app), chart.element, keyHintsView(app, help.open), details]
      : [h('p', {class: 'quiet'}, t('chart.none'))];
    const pipeline = !profile || app.cells.count > 0;
    const facts = [...(pipeline ? [stagesView(findTable(app.report, 'stages')), factsView(app)] : []), profile && profileFacts(app, profile.ranks.length, pipeline)];
    page.replaceChildren(header, h('main', {class: 'sheet'},
      headlineView(app.report.headline, headlineOf(app)),
      h('div', {class: 'cols'}, h('div', {}, findingsView(app.report.findings, finding => evidence(app, finding)),
        stepBarsView(stepTimes(app), () => app.state.step, step => setStep(app, step))), h('aside', {}, ...facts)),
      ...(pipeline ? [h('section', {class: 'pipeline', 'aria-label': t('chart')}, ...chartBlock)] : []), ...(topics?.nodes ?? []),
      tablesView(home, topics?.drawn ?? new Set()), flawsView(app), methodView(app), footerView(app)), live, tip.element, help.element);
    chart.restyle();
  }
  function rebuild(focus: string): void {  // everything but the chart is remade; it keeps its place
    const [x, y, inner] = [scrollX, scrollY, chart.element.scrollTop];
    const open = [...document.querySelectorAll<HTMLDetailsElement>('details[open]')].map(element => element.id);
    build();
    live.textContent = '';
    for (const id of open) (document.getElementById(id) as HTMLDetailsElement).open = true;
    chart.element.scrollTop = inner;
    scrollTo(x, y);
    document.getElementById(focus)?.focus();
  }

  let saving = 0;
  app.onChange(before => {
    for (const element of page.querySelectorAll('section, h2, .controls, select')) element.dispatchEvent(new Event('statechange'));
    if (before.selected !== app.state.selected) {
      const next = detailsView(app);
      details.replaceWith(next);
      details = next;
      live.textContent = app.state.selected >= 0 ? cellSentence(app, app.state.selected) : '';
    }
    if (before.step !== app.state.step) {
      chart.restyle();
      live.textContent = app.state.step === null ? t('chart.all') : t('chart.step', app.state.step);
    }
    clearTimeout(saving);
    saving = window.setTimeout(() =>
      history.replaceState(null, '', toHash(app.state, app.model, app.cells, app.report.parts)), 200);
  });
  window.addEventListener('hashchange', () => app.change(fromHash(location.hash, app.model, app.cells, app.report.parts)));

  listenToPointer(app, chart, tip, {onPoint: time => { pointerTime = time; }});
  listenToKeys(app, chart, () => pointerTime, {help: help.open, helpOpen: () => help.element.open});
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', event => {
    if (remember('theme')) return;
    app.theme = event.matches ? 'dark' : 'light';
    applyTheme(app.report.palette, app.theme);
    rebuild('theme');
  });
  build();
  expose(app, chart);
}

// What tests ask. Coordinates are CSS pixels in the window.
function expose(app: App, chart: ReturnType<typeof makeChart>): void {
  let frames = 0;
  chart.canvas.addEventListener('painted', () => {
    if (++frames === 1) performance.mark('timeline-painted');
  });
  Object.assign(window, {stageline: {
    cellsTotal: app.report.cells.total,
    cellsEmbedded: app.cells.count,
    cellsDrawn: () => (app.cells.count > 0 ? countDrawn(chart.allScene()) : 0),
    view: () => ({...app.state.view, step: app.state.step, dp: app.state.dp, selected: app.state.selected}),
    frames: () => frames,
    cell: (i: number) => ({start: app.cells.start[i], dur: app.cells.dur[i], step: app.cells.step[i], part: app.cells.part[i],
                           kind: app.cells.kind[i], microBatch: app.cells.microBatch[i]}),
    cellBox: (i: number) => {
      const box = cellBox(chart.scene(), i), corner = chart.canvas.getBoundingClientRect();
      return box && {x: box.x + corner.left, y: box.y + corner.top, w: box.w, h: box.h};
    },
    coverage: (row: number, lane: number, view: Viewport, width: number) => coverage(app.model.rows[row]!.lanes[lane]!, app.cells, view, width),
    select: (i: number) => select(app, i),
    shortDuration: (dur: number[]) => shortDurations({count: dur.length, kind: new Uint8Array(dur.length), pair: new Int32Array(dur.length).fill(-1), dur: Float64Array.from(dur)})[0],
    missingKeys,
  }});
}

async function start(): Promise<void> {
  const report = readReport();
  addSentences(report.findings.map(finding => finding.title));
  addSentences(report.sentences);
  setLang(firstLang(report.lang, remember('lang')));
  const chosen = remember('theme');
  const theme: Theme = chosen === 'dark' || chosen === 'light' ? chosen
    : report.dark || matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  applyTheme(report.palette, theme);
  const cells = await readCells(report.cells.columns, report.cells.count);
  const app = makeApp(report, cells, makeModel(cells, report.parts), theme);
  if (location.hash) app.state = fromHash(location.hash, app.model, cells, report.parts);
  buildPage(app);
}

start().catch((error: unknown) => {
  document.getElementById('app')!.append(h('p', {class: 'notice'}, t('failed', String(error))));
});
