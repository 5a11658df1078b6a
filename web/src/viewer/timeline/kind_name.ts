// Names that the server gives in both languages.
import {currentLang} from '../../i18n/i18n';
import type {Kind} from '../shell/api';

export const kindName = (
  kind: Kind | undefined,
): string => (kind ? (currentLang() === 'zh' ? kind.name_zh : kind.name) : '–');
