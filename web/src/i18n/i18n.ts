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
export const tableTitle = (table: Table): string => named('table.' + table.name, table.title || table.name);
export const columnTitle = (column: Column): string => named(column.name, column.title || column.name);

// Sentences that tables and findings share, and the words that go with a verdict.
const sentences = new Map<string, string>();
export const addSentences = (list: Both[]): void => list.forEach(([en_, zh_]) => zh_ && sentences.set(en_, zh_));
const verdicts: [RegExp, string][] = [
  [/^(.+) its peers, slow in (.+) of (.+) steps?$/, '用时是同级其他 rank 的 $1，$3 步中有 $2 步偏慢'],
  [/^slow in (.+) of (.+) steps?$/, '$2 步中有 $1 步偏慢'],
  [/^nearly every cell starts (.+) late$/, '几乎每个单元都晚 $1 开始'],
  [/^(.+) pauses? of (.+), every (.+)$/, '$1 次停顿，平均 $2，每隔 $3 一次'],
  [/^(.+) pauses? of (.+)$/, '$1 次停顿，平均 $2'],
  [/^no other rank holds its stage: .*$/, '本级没有其他 rank：无法区分是 rank 慢还是级慢'],
  [/^Step (.+) took (.+) the median step$/, '第 $1 步用时是中位步的 $2'],
];
function sentence(text: string): string {
  const known = sentences.get(text);
  if (known) return known;
  const verdict = verdicts.find(([pattern]) => pattern.test(text));
  return verdict ? text.replace(verdict[0], verdict[1]) : text;
}

// Columns of few words, which mean the same in every table.
const SAYS_WORDS = new Set(['part', 'within', 'type', 'piece', 'phase', 'verdict', 'cause', 'what', 'direction', 'bound_by']);

// Words that a table says in a column of few: reasons, parts, kinds of divergence.
export function cellValue(table: Table, column: Column, value: Value): Value {
  if (lang === 'en' || typeof value !== 'string') return value;
  if (column.name === 'words') return sentence(value);
  const known = names as Record<string, string>;
  return known[`value.${table.name}.${column.name}.${value}`] ?? (SAYS_WORDS.has(column.name) ? known[`word.${value}`] : undefined) ?? value;
}

// What a flaw is, in general; its own sentence with numbers and places is in English. '' in English, and of rare ones.
export const flawWords = (name: string): string => (lang === 'zh' ? (names as Record<string, string>)[`flaw.${name}`] ?? '' : '');

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
