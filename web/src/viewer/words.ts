// Words of the viewer, beside the report's (../i18n): English and Chinese from one key table.
import {currentLang} from '../i18n/i18n';
import type {Kind} from './api';
import words from './words.json';

export type Word = keyof typeof words;

export const w = (key: Word, ...values: (string | number)[]): string =>
  words[key][currentLang() === 'zh' ? 1 : 0]!.replace(/\{(\d)\}/g, (_, i: string) => String(values[Number(i)]));
export const kindName = (kind: Kind | undefined): string => (kind ? (currentLang() === 'zh' ? kind.name_zh : kind.name) : '–');
