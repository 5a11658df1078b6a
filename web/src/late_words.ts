import type {App} from './app';
import {lateOf} from './data/late';
import {duration} from './format';
import {t, type Key} from './i18n/i18n';

// Returns the difference of a cell from the theory, when it is more than rounding, and the reason, if the table of late
// cells contains it.
export function lateWords(app: App, cell: number): string {
  const {cells} = app, theory = cells.theoryStart?.[cell] ?? NaN, by = cells.start[cell]! - theory;
  if (!(Math.abs(by) >= 1)) return '';
  const words = t(by > 0 ? 'tip.late' : 'tip.early', duration(Math.abs(by))), late = by > 0 ? lateOf(app, cell) : null;
  if (!late) return words;
  const reason = t(`reason.${late.reason}` as Key);
  return words + t('tip.because', late.waitedFor ? t('tip.after', reason, late.waitedFor, late.waitedRank) : reason);
}
