// Words of the viewer, beside the report's (../i18n): English and Chinese from one key table.
import {currentLang} from '../i18n/i18n';
import type {Kind} from './api';
import en from './words_en.json';
import zh from './words_zh.json';

export type Word = keyof typeof en;
const words: Record<'en' | 'zh', Record<Word, string>> = {en, zh};

export const w = (key: Word, ...values: (string | number)[]): string =>
  words[currentLang()][key].replace(/\{(\d)\}/g, (_, i: string) => String(values[Number(i)]));
// Of what the program may know and this page does not yet: `other`.
export const wordOr = (key: string, other: string): string => (key in en ? w(key as Word) : other);
export const kindName = (kind: Kind | undefined): string => (kind ? (currentLang() === 'zh' ? kind.name_zh : kind.name) : '–');

// Keys that only one language has; the tests expect none.
export const missingWords = (): string[] =>
  [...Object.keys(en).filter(key => !(key in zh)), ...Object.keys(zh).filter(key => !(key in en))];
