// The runs that this browser has seen, the last one first. There is no other list of them.
import {remember} from './remember';

export interface Recent {
  title: string;
  places: string[];
}
const MOST = 12;

export function recent(): Recent[] {
  try {
    const kept = JSON.parse(remember('recent') ?? '[]') as Recent[];
    return kept.filter(one =>
      typeof one.title === 'string' && one.places.length > 0 && one.places.every(place => typeof place === 'string')
    );
  } catch {
    return [];
  }
}
export function seen(one: Recent): void {
  const key = one.places.join('\n'), others = recent().filter(other => other.places.join('\n') !== key);
  remember('recent', JSON.stringify([one, ...others].slice(0, MOST)));
}
export const forgetRecent = (): void => {
  remember('recent', '[]');
};
