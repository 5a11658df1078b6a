// Reads a counter column by column, as src/server/timeline/counters_and_flows.cc writes it.
import {WireWriter} from '../shell/wire';
import {firstNot, type Store} from './lanes';
import {numberAsked, refuse, windowAsked, type Asked} from './query';

export function counterAnswer(store: Store, asked: Asked): ArrayBuffer {
  const lane = store.lanes[numberAsked(asked, 'lane', NaN)] ?? refuse(400, 'lane is missing'),
    value = lane.value ?? refuse(400, 'this lane is no counter');
  const {t0, t1} = windowAsked(store, asked), n = numberAsked(asked, 'n', NaN);
  if (!(n >= 1 && n <= 16384)) refuse(400, 'n is a whole number from 1 to 16384');
  const low = new Float64Array(n).fill(NaN), high = new Float64Array(n).fill(NaN), mean = new Float64Array(n).fill(NaN),
    width = (t1 - t0) / n;
  const {start, count} = lane;
  let next = firstNot(count, i => start[i]! <= t0);
  for (let c = 0; c < n; ++c) {
    const left = t0 + width * c, right = left + width;
    let weight = 0, sum = 0, at = left;
    const hold = (held: number, until: number): void => {
      if (Number.isNaN(held)) return;
      low[c] = Number.isNaN(low[c]!) ? held : Math.min(low[c]!, held);
      high[c] = Number.isNaN(high[c]!) ? held : Math.max(high[c]!, held);
      weight += until - at;
      sum += held * (until - at);
    };
    let now = next > 0 ? value[next - 1]! : NaN;
    for (; next < count && start[next]! < right; ++next) {
      const t = Math.max(left, start[next]!);
      if (t > at) hold(now, t);
      at = t;
      now = value[next]!;
      if (next + 1 < count && start[next + 1] === start[next]) hold(now, at); // seen, for no time
    }
    hold(now, right);
    if (weight > 0) mean[c] = sum / weight;
  }
  let least = Infinity, greatest = -Infinity;
  for (const one of value) {
    if (one < least) least = one;
    if (one > greatest) greatest = one;
  }
  const wire = new WireWriter();
  wire.add('min', 'f64', low);
  wire.add('max', 'f64', high);
  wire.add('mean', 'f64', mean);
  return wire.finish({t0, t1, n, least, greatest, columns: wire.columns});
}
