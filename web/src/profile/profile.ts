// The sections of a profiler trace. A section is there when its tables are; tables that no section draws follow as they are.
import type {App} from '../app';
import {isProfileReport, tableColumn, type Table} from '../data/report';
import {h} from '../dom';
import {duration, grouped, percent} from '../format';
import {t} from '../i18n/i18n';
import {frameOf, sum} from '../data/frame';
import type {TableHome} from '../views/tables';
import {cluster, links} from './cluster';
import {communication} from './communication';
import {breakdown, idle, stragglers} from './devices';
import {bandwidth, launches, queues} from './host';
import {annotations, kernels} from './kernels';
import {memory} from './memory';
import {modules, operators} from './operators';
import {rankMap} from './rank_map';
import {steps} from './steps';
import {topicView, wordsFor, type Profile, type Topic} from './topic';

const TOPICS: Topic[] = [breakdown, rankMap, cluster, steps, operators, kernels, modules, memory, communication, links, stragglers, idle, launches, queues, bandwidth, annotations];
// Its findings say it, in both languages.
const SAID = ['recommendations'];

export const isProfile = (app: App): boolean => isProfileReport(app.report);

function ranksIn(tables: Table[]): number[] {
  const ranks = new Set<number>();
  for (const table of tables)
    if (table.name !== 'devices') for (const value of tableColumn(table, 'rank') ?? []) if (typeof value === 'number') ranks.add(value);
  return [...ranks].sort((a, b) => a - b);
}

export function makeProfile(app: App, home: TableHome): Profile {
  return {app, home, ranks: ranksIn(app.report.tables), rank: null, setRank() {}};
}

export interface ProfileView { nodes: Node[]; drawn: Set<Table> }

// Choosing a rank in one section chooses it in all that ask; a section keeps its place on the screen.
export function profileView(profile: Profile): ProfileView {
  const drawn = new Set<Table>(profile.app.report.tables.filter(table => SAID.includes(table.name))), shown: { topic: Topic; view: HTMLElement }[] = [];
  for (const topic of TOPICS) {
    const content = topic.build(profile);
    if (!content) continue;
    for (const table of content.tables) drawn.add(table);
    shown.push({topic, view: topicView(profile, topic, content)});
  }
  profile.setRank = rank => {
    profile.rank = rank;
    const focus = document.activeElement?.id, before = focus ? document.getElementById(focus)?.getBoundingClientRect().top : undefined;
    for (const item of shown) {
      const content = item.topic.build(profile);
      if (!content?.pick) continue;
      const open = [...item.view.querySelectorAll<HTMLDetailsElement>('details[open]')].map(element => element.id);
      const next = topicView(profile, item.topic, content);
      item.view.replaceWith(next);
      item.view = next;
      for (const id of open) next.querySelector<HTMLDetailsElement>(`[id="${id}"]`)!.open = true;
    }
    if (!focus) return;
    const element = document.getElementById(focus);
    element?.focus({preventScroll: true});
    if (element && before !== undefined) scrollBy(0, element.getBoundingClientRect().top - before);
  };
  const nav = h('nav', {class: 'topics', 'aria-label': t('topics')}, ...shown.map(({topic}) =>
    h('a', {href: `#topic-${topic.id}`, click: (event: Event) => {
      event.preventDefault();  // the address keeps what the chart shows
      const title = document.getElementById(`title-${topic.id}`);
      title?.scrollIntoView({block: 'start'});
      title?.focus({preventScroll: true});
    }}, wordsFor(`nav.${topic.id}`))));
  return {nodes: shown.length > 0 ? [nav, ...shown.map(item => item.view)] : [], drawn};
}

// `beside`: under the facts of a pipeline, which name ranks and source.
export function profileFacts(app: App, ranks: number, beside = false): HTMLElement | null {
  const {report} = app;
  const outliers = frameOf(report, 'outliers', 'events'), devices = frameOf(report, 'temporal-breakdown', 'span_ns');
  const steps = stepCount(app), overlap = frameOf(report, 'comm-comp-overlap', 'overlap_ns');
  const communication = overlap ? sum(overlap.rows, row => row.num('communication_ns')) : 0;
  const hidden = overlap && communication > 0 ? sum(overlap.rows, row => row.num('overlap_ns')) / communication : null;
  const facts: [string, string | false][] = [
    [t('facts.ranks'), !beside && String(ranks || report.parts.length)],
    [t('facts.steps'), !beside && steps > 0 && String(steps)],
    [t('facts.deviceTime'), !!devices && duration(sum(devices.rows, row => row.num('span_ns')))],
    [t('facts.overlap'), hidden !== null && percent(hidden)],
    [t('facts.launches'), !!outliers && sum(outliers.rows, row => row.num('events')) > 0 && grouped(sum(outliers.rows, row => row.num('events')))],
    [t('facts.slices'), grouped(report.slices)],
    [t('facts.source'), !beside && `${report.format}, ${report.description}`],
  ];
  return h('section', {class: 'aside-block'}, h('dl', {class: 'facts'},
    ...facts.flatMap(([name, value]) => (value ? [h('dt', {}, name), h('dd', {}, value)] : []))));
}

export function stepCount(app: App): number {
  const frame = frameOf(app.report, 'profiler-steps', 'step');
  return frame ? new Set(frame.rows.map(row => row.num('step'))).size : 0;
}
