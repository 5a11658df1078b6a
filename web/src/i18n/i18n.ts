// Words. English and Chinese from one key table; the compiler and a test refuse a missing key.
import en from './en.json';
import zh from './zh.json';
import names from './columns_zh.json';
import type {Both, Column, Table, Value} from '../data/report';

export type Lang = 'en' | 'zh';
export type Key = keyof typeof en;

const words: Record<Lang, Record<Key, string>> = {en, zh};
let lang: Lang = 'en';

export const setLang = (next: Lang): void => { lang = next; };
export const currentLang = (): Lang => lang;

export function t(key: Key, ...values: (string | number)[]): string {
  return words[lang][key].replace(/\{(\d)\}/g, (_, i: string) => String(values[Number(i)]));
}

// A sentence that came with its translation; the other one when it has none.
export const both = (text: Both): string => (lang === 'zh' ? text[1] || text[0] : text[0] || text[1]);

// Titles of tables and columns are declared in English; the well-known ones have Chinese names.
const named = (key: string, title: string): string =>
  (lang === 'zh' ? (names as Record<string, string>)[key] : undefined) ?? title;
export const tableTitle = (table: Table): string => named('table.' + table.name, sentence(table.title) || table.name);
export const columnTitle = (column: Column): string => named(column.name, column.title || column.name);

// Sentences of tables, notes and flaws come with their Chinese (src/exporters/table_words): one dictionary for terminal,
// report and viewer.
const sentences = new Map<string, string>();
export const addSentences = (list: Both[]): void => list.forEach(([en_, zh_]) => zh_ && sentences.set(en_, zh_));
export const sentence = (text: string): string => (lang === 'zh' ? sentences.get(text) : undefined) ?? text;

// Columns of few words, which mean the same in every table.
const SAYS_WORDS = new Set(['part', 'within', 'type', 'piece', 'phase', 'verdict', 'cause', 'what', 'direction', 'bound_by']);

// Words that a table says in a column of few: reasons, parts, kinds of divergence.
export function cellValue(table: Table, column: Column, value: Value): Value {
  if (lang === 'en' || typeof value !== 'string') return value;
  const known = names as Record<string, string>;
  return known[`value.${table.name}.${column.name}.${value}`] ?? (SAYS_WORDS.has(column.name) ? known[`word.${value}`] : undefined) ?? sentence(value);
}

// What a flaw or a note says: its own sentence; where that has no Chinese, what it is in general.
export function flawWords(name: string, message: string): string {
  const said = sentence(message);
  return (lang === 'zh' && said === message ? (names as Record<string, string>)[`flaw.${name}`] : undefined) ?? said;
}

// What a source calls itself, where it is a sentence of ours.
export function description(text: string): string {
  const logs = /^(\d+) worker logs?(?: of (\d+) machines?)?$/.exec(text);
  const operations = /^table of (\d+) operations?, (\d+) ranks?$/.exec(text);
  if (lang === 'zh' && operations) return t('description.operations', operations[1]!, operations[2]!);
  if (lang === 'en' || !logs) return text;
  return t('description.logs', logs[1]!) + (logs[2] ? t('description.machines', logs[2]) : '');
}

// Keys that only one language has; the tests expect none.
export function missingKeys(): string[] {
  return [...Object.keys(en).filter(key => !(key in zh)), ...Object.keys(zh).filter(key => !(key in en))];
}

export function firstLang(asked: string, remembered: string | null): Lang {
  const query = new URLSearchParams(location.search).get('lang');
  for (const choice of [query, remembered]) if (choice === 'en' || choice === 'zh') return choice;
  if (asked === 'zh') return 'zh';
  return navigator.languages.some(tag => tag.startsWith('en') || tag.startsWith('zh')) &&
    navigator.languages.find(tag => tag.startsWith('en') || tag.startsWith('zh'))!.startsWith('zh') ? 'zh' : 'en';
}
