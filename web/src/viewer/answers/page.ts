// The answers, a page a family of questions: charts, the tables they are drawn from, and how each number was made.
import {t} from '../../i18n/i18n';
import type {Report, Table} from '../../data/report';
import {h} from '../../dom';
import {topicView, type Profile, type Topic} from '../../profile/topic';
import {makeTextTip} from '../../views/text_tip';
import type {Page, Shell} from '../shell/page';
import {plainQuery} from '../shell/route';
import {answerSection, type Section} from './section';
import {deskOf, type Offer, type Offers} from './ask';
import {CLOCKS, FAMILIES, familyOf, type Family, type FamilyId} from './families';
import {makeSql} from './sql';
import {failure, working} from './working';

const CLOCK_OFFER: Offer = {name: CLOCKS, summary: '', in_report: true, tables: [{name: 'clocks', summary: ''}],
  options: []};

// The data that charts need of a report.
const reportOf = (shell: Shell, tables: Table[]): Report =>
  ({tables, slices: shell.run.slices, cells: {total: 0, count: 0, steps: 0, columns: [], names: []},
    parts: shell.run.ranks, flaws: [], findings: []}) as unknown as Report;

interface Shown {
  family: Family;
  offers: Offer[];
  sections: Map<string, Section>;
  rank: number | null;
  title: HTMLElement;
  charts: HTMLElement;
  body: HTMLElement;
}

const SQL = 'sql'; // is listed with the families, where a program answers

export function makeAnswers(shell: Shell): Page {
  const desk = deskOf(shell.api), tip = makeTextTip();
  const nav = h('nav', {class: 'families'}), place = h('div', {class: 'answer-place'});
  const element = h('div', {}, h('main', {class: 'sheet answers'}, h('div', {class: 'answers-grid'}, nav, place)),
    tip.element);
  const made = new Map<FamilyId, Shown>();
  let offers: Offers | null = null, families: Family[] = [], current: FamilyId | null = null,
    wanted: {rest: string; query: string} | null = null;
  let visible = false, inSql = false;
  const sql = REPORT ? null : makeSql(shell, tip, () => offers?.paths ?? shell.run.paths);

  function listOf(found: Offers): Family[] {
    const names = new Set(found.answers.map(offer => offer.name));
    if (shell.run.clock.uncertainty_ns > 0 || ['aligned', 'partly-aligned'].includes(shell.run.clock.state))
      names.add(CLOCKS);
    const known = FAMILIES.map(family => ({...family, answers: family.answers.filter(name => names.has(name))}));
    const others = found.answers.map(offer => offer.name).filter(name => familyOf(name) === 'other');
    return [...known, {id: 'other' as const, answers: others, topics: []}].filter(family => family.answers.length > 0);
  }
  function drawNav(): void {
    nav.setAttribute('aria-label', t('page.answers'));
    nav.replaceChildren(
      ...families.map(family =>
        h('a', {href: shell.href('answers', {rest: family.id}),
          'aria-current': !inSql && family.id === current ? 'page' : null, title: t(`family.${family.id}.what`)},
          t(`family.${family.id}`))
      ),
      ...(REPORT ? []
        : [
          h('a', {href: shell.href('answers', {rest: SQL}), 'aria-current': inSql ? 'page' : null,
            title: t('family.sql.what')}, t('family.sql')),
        ]),
    );
  }
  // Charts of what has come so far; a section of its tables follows for each answer.
  function drawCharts(shown: Shown): void {
    const answers = [...shown.sections.values()].flatMap(section => section.answer() ?? []),
      tables = answers.flatMap(answer => answer.tables);
    const report = reportOf(shell, tables);
    let known: number[] | null = null;
    // Charts with a rank to choose call this; tables that are not drawn stay as they came.
    const ranksOf = (): number[] => {
      const ranks = new Set<number>();
      for (const table of tables)
        if (table.rowCount < 100_000 && table.columns.some(column => column.name === 'rank')) {
          for (const value of table.values[table.columns.findIndex(column => column.name === 'rank')]!)
            if (typeof value === 'number') ranks.add(value);
        }
      return [...ranks].sort((a, b) => a - b);
    };
    const profile: Profile = {app: {report}, home: {tables: [], use: {tip}}, get ranks() {
      return known ??= ranksOf();
    }, rank: shown.rank, setRank(rank) {
      const focus = document.activeElement?.id;
      shown.rank = rank;
      drawCharts(shown);
      shell.moved();
      if (focus) document.getElementById(focus)?.focus();
    }, slicesOf: name => shell.href('timeline', {query: plainQuery(new URLSearchParams({lit: name}))})};
    const views = shown.family.topics.flatMap((topic: Topic) => {
      const content = topic.build(profile);
      return content && content.nodes.some(Boolean) ? [topicView(profile, topic, {...content, tables: []})] : [];
    });
    shown.charts.replaceChildren(...views);
  }
  function familyView(family: Family): Shown {
    const shown: Shown = {family, offers: [], sections: new Map(), rank: null, title: h('h1', {tabindex: -1}),
      charts: h('div', {class: 'charts'}), body: h('div')};
    for (const name of family.answers) {
      const offer = name === CLOCKS ? CLOCK_OFFER : offers!.answers.find(one => one.name === name)!;
      shown.offers.push(offer);
      shown.sections.set(name, answerSection({shell, desk, tip, offer, paths: offers!.paths, changed: () =>
        shell.moved(), came: () =>
          drawCharts(shown)}));
    }
    return shown;
  }
  function draw(): void {
    if (!visible) return;
    if (!offers)
      return place.replaceChildren(h('h1', {tabindex: -1}, t('page.answers')), working(t('answers.listing'), null));
    if (wanted ? !REPORT && wanted.rest === SQL : inSql) {
      const query = wanted?.query ?? '';
      wanted = null;
      inSql = true;
      drawNav();
      place.replaceChildren(sql!.element);
      return sql!.show(query);
    }
    inSql = false;
    if (families.length === 0)
      return place.replaceChildren(h('h1', {tabindex: -1}, t('page.answers')),
        h('p', {class: 'quiet'}, t('answers.none')));
    const route = wanted,
      id = families.find(family => family.id === route?.rest)?.id ?? (route?.rest ? undefined : current) ??
        families[0]!.id;
    wanted = null;
    if (route?.rest && route.rest !== id) shell.lost(route.rest);
    current = id;
    let shown = made.get(id);
    if (!shown) made.set(id, shown = familyView(families.find(family => family.id === id)!));
    drawNav();
    restyleShown(shown);
    place.replaceChildren(h('header', {}, shown.title, h('p', {class: 'lead'}, t(`family.${id}.what`))), shown.charts,
      h('h2', {class: 'tables-head'}, t('answers.tables')),
      ...[...shown.sections.values()].map(section => section.element));
    const alone = shown.offers.every(offer => !offer.in_report);
    for (const section of shown.sections.values()) section.start(alone);
    if (route) goTo(shown, route.query);
  }
  function restyleShown(shown: Shown): void {
    shown.title.textContent = t(`family.${shown.family.id}`);
    for (const section of shown.sections.values()) section.restyle();
    drawCharts(shown);
  }
  // "answer=links&table=by_link&rank=3&sort=…": opens the section, brings it into sight.
  function goTo(shown: Shown, text: string): void {
    const query = new URLSearchParams(text), rank = query.get('rank');
    if (rank !== null && rank !== String(shown.rank)) {
      shown.rank = rank === 'all' ? null : Number(rank);
      drawCharts(shown);
    }
    const answer = query.get('answer'), section = shown.sections.get(answer ?? ''), table = query.get('table');
    if (answer && !section) shell.lost(answer);
    if (table && section && !shown.offers.find(one => one.name === answer)!.tables.some(one => one.name === table))
      shell.lost(table);
    if (!section) {
      element.scrollTo({top: 0});
      return;
    }
    for (const other of shown.sections.values()) if (other !== section) other.choose('', null);
    section.choose(table ?? '', query);
  }
  function fetchOffers(): void {
    desk.offers().then(found => {
      offers = found;
      families = listOf(found);
      draw();
    }, (error: unknown) => place.replaceChildren(failure(error, fetchOffers)));
  }
  Object.assign((window as {stageline?: object}).stageline ??= {}, {
    answers: () => ({family: inSql ? SQL : current, waiting: inSql ? (sql!.busy() ? [SQL] : [])
      : current ? [...made.get(current)!.sections].filter(([, one]) => one.busy()).map(([name]) => name) : ['list']}),
    families: () => families.map(({id, answers}) => ({id, answers})),
  });
  return {
    element,
    show(route) {
      visible = true;
      if (route) wanted = route;
      else if (!offers) wanted = null;
      if (!offers) fetchOffers();
      draw();
    },
    hide() {
      visible = false;
      tip.hide();
    },
    address() {
      if (inSql) return {rest: SQL, query: sql!.address()};
      if (!current) return wanted ?? {rest: '', query: ''};
      const shown = made.get(current)!, query = new URLSearchParams();
      for (const [name, section] of shown.sections) {
        const own = section.address();
        if (!own) continue;
        query.set('answer', name);
        for (const [key, value] of Object.entries(own)) query.set(key, value);
      }
      if (shown.rank !== null) query.set('rank', String(shown.rank));
      return {rest: current, query: plainQuery(query)};
    },
    restyle() {
      sql?.restyle();
      if (inSql) return drawNav();
      if (!visible || !offers || !current) return draw();
      drawNav();
      const shown = made.get(current)!;
      restyleShown(shown);
      place.querySelector('.lead')!.textContent = t(`family.${current}.what`);
      place.querySelector('.tables-head')!.textContent = t('answers.tables');
    },
    keys: () => [{keys: 'Tab', does: t('keys.answers.tab')}],
  };
}
