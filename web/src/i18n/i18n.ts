// Words. English and Chinese from one key table; the compiler refuses a key that is not there.
import words from './words.json';
import type {Both, Column, Table, Value} from '../data/report';

export type Lang = 'en' | 'zh';
export type Key = keyof typeof words;

let lang: Lang = 'en';

export const setLang = (next: Lang): void => {
  lang = next;
};
export const currentLang = (): Lang => lang;

export function t(key: Key, ...values: (string | number)[]): string {
  return words[key][lang === 'zh' ? 1 : 0]!.replace(/\{(\d)\}/g, (_, i: string) => String(values[Number(i)]));
}

// A sentence that came with its translation; the other one when it has none.
export const both = (text: Both): string => (lang === 'zh' ? text[1] || text[0] : text[0] || text[1]);

// Sentences of tables, notes and flaws come with their Chinese. So do names of tables and columns, and the few words
// that a column holds (src/exporters/table_words). Terminal, report and viewer share this dictionary.
const said = new Map<string, string>();
export const addSentences = (list: Both[]): void => list.forEach(([en_, zh_]) => zh_ && said.set(en_, zh_));
const named = (key: string): string | undefined => (lang === 'zh' ? said.get(key) : undefined);
export const sentence = (text: string): string => named(text) ?? text;

export const tableTitle = (table: Table): string =>
  named('table.' + table.name) ?? (sentence(table.title) || table.name);
// A column without a title is called what it is called: SQL's, as the question named it.
export const columnTitle = (
  column: Column,
): string => (column.title ? named('column.' + column.name) ?? column.title : column.name);

// Words that a table says in a column of few: reasons, parts, kinds of divergence.
export const cellValue = (table: Table, column: Column, value: Value): Value =>
  typeof value === 'string' ? named(`value.${table.name}.${column.name}.${value}`) ?? sentence(value) : value;

// Returns the text of a flaw or a note: its own sentence; if that has no Chinese, the general description.
export const flawWords = (name: string, message: string): string => named(message) ?? named(`flaw.${name}`) ?? message;

// The description of a source: pieces between commas, each one of these, in the plural or singular, or a device's own
// name.
const DESCRIPTIONS: readonly Key[] = [
  'description.ranks',
  'description.ranksOf',
  'description.events',
  'description.rows',
  'description.ranges',
  'description.eras',
  'description.era',
  'description.operations',
  'description.logsOf',
  'description.logs',
  'description.perfetto',
  'description.pipeline',
  'description.nsys',
  'description.records',
  'description.hosts',
  'description.noDevices',
  'description.devices',
  'description.groups',
  'description.primus',
  'description.allocator',
  'description.chakra',
  'description.services',
  'description.spans',
  'description.inspector',
  'description.details',
  'description.torchtitan',
  'description.miles',
];
export function description(text: string): string {
  if (lang === 'en') return text;
  const patterns = DESCRIPTIONS.map(key =>
    [
      key,
      new RegExp(`^${words[key][0]!.replace(/\b(\w{3,}?)e?s\b(?!')/g, '$1e?s?').replace(/\{\d\}/g, '([^ ]+)')}$`),
    ] as const
  );
  return text.split(', ').map(piece => {
    for (const [key, pattern] of patterns) {
      const found = pattern.exec(piece);
      if (found) return t(key, ...found.slice(1));
    }
    return piece;
  }).join('，');
}

export function firstLang(asked: string, remembered: string | null): Lang {
  const query = new URLSearchParams(location.search).get('lang');
  for (const choice of [query, remembered]) if (choice === 'en' || choice === 'zh') return choice;
  if (asked === 'zh') return 'zh';
  return navigator.languages.some(tag => tag.startsWith('en') || tag.startsWith('zh')) &&
      navigator.languages.find(tag => tag.startsWith('en') || tag.startsWith('zh'))!.startsWith('zh') ? 'zh' : 'en';
}
