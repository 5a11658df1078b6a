// The shared part of sections of a profiler trace: the rank that is shown, headings, how a number is made, folded
// tables.
import type {Frame} from '../data/frame';
import type {Report, Table} from '../data/report';
import {h} from '../dom';
import {t, type Key} from '../i18n/i18n';
import {tableFold, type TableHome} from '../views/tables';

export interface Profile {
  app: {report: Report};
  home: TableHome;
  ranks: number[]; // that have device work or any row in a table
  rank: number | null; // chosen; null: all
  setRank(rank: number | null): void;
  slicesOf(name: string): string; // address of the timeline with all slices of this name lit
}

export interface Topic {
  id: string; // also the key of its words: topic.ID, topic.ID.how
  build(profile: Profile): TopicContent | null; // null: its tables are not there
}
export interface TopicContent {
  nodes: (Node | null)[];
  tables: Table[];
  pick?: 'all' | 'one';
}

// The rank that a section without "all ranks" shows.
export const oneRank = (profile: Profile,
  ranks: number[]): number => (profile.rank !== null && ranks.includes(profile.rank) ? profile.rank : ranks[0]!);

export const ranksOf = (frame: Frame): number[] =>
  [...new Set(frame.rows.map(row => row.num('rank')))].sort((a, b) => a - b);
export const rankLabel = (rank: number): string => t('row.rank', rank);
export const wordsFor = (key: string): string => t(key as Key);

function rankPicker(profile: Profile, topic: string, withAll: boolean): HTMLElement | null {
  const {ranks} = profile;
  if (ranks.length < 2) return null;
  const shown = profile.rank ?? (withAll ? null : ranks[0]!);
  const select = h('select', {id: `rank-${topic}`, 'aria-label': t('topic.rank'),
    change: () => profile.setRank(select.value === 'all' ? null : Number(select.value))},
    withAll && h('option', {value: 'all', selected: shown === null}, t('topic.allRanks')),
    ...ranks.map(rank => h('option', {value: rank, selected: shown === rank}, rankLabel(rank))));
  return select;
}

export function topicView(profile: Profile, topic: Topic, content: TopicContent): HTMLElement {
  return h('section', {class: 'topic', id: `topic-${topic.id}`, 'aria-label': wordsFor(`topic.${topic.id}`)},
    h('div', {class: 'topic-head'},
      h('h2', {class: 'title', id: `title-${topic.id}`, tabindex: -1}, wordsFor(`topic.${topic.id}`)),
      h('span', {class: 'space'}),
      content.pick && h('span', {class: 'controls-row'}, rankPicker(profile, topic.id, content.pick === 'all'))),
    h('p', {class: 'how'}, wordsFor(`topic.${topic.id}.how`)), ...content.nodes, content.tables.length > 0 &&
    h('div', {class: 'folds'}, ...content.tables.map(table => tableFold(profile.home, table))));
}
