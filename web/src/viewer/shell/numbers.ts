// Counts for people: whole, thousands apart by thin spaces.
import {currentLang} from '../../i18n/i18n';
import {grouped} from '../../format';

export const count = (value: number): string => grouped(value);

// "10.0 M": of counts too long for their place.
export function short(value: number): string {
  if (value < 100000) return grouped(value);
  if (currentLang() === 'zh')
    return value < 1e8 ? `${figures(value / 1e4)}\u202f万` : `${figures(value / 1e8)}\u202f亿`;
  return value < 1e6 ? `${figures(value / 1e3)}\u202fk`
    : value < 1e9 ? `${figures(value / 1e6)}\u202fM` : `${figures(value / 1e9)}\u202fG`;
}
const figures = (
  value: number,
): string => (value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2));
