// Words of this page: English and Chinese from one key table.
import {currentLang} from '../i18n/i18n';
import words from './words.json';

export type Word = keyof typeof words;

export const w = (key: Word, ...values: (string | number)[]): string =>
  words[key][currentLang() === 'zh' ? 1 : 0]!.replace(/\{(\d)\}/g, (_, i: string) => String(values[Number(i)]));
