// An area, by name and kind: src/server/timeline/selection.cc.
import {binnedQuantile, binOf, EXACT_QUANTILES, nearest, newBins} from './durations';
import {enclosing, endOf, firstInRowFrom, firstStartingFrom, sliceAt, takesTime, walk, type Lane,
  type Store} from './lanes';
import {shortName} from './names';
import {lanesAsked, numberAsked, windowAsked, type Asked} from './query';

export function selectAnswer(store: Store, asked: Asked): object {
  const {t0, t1, from, to} = windowAsked(store, asked), lanes = lanesAsked(store, asked),
    places = store.placeName.length;
  const limit = Math.min(2000, Math.max(1, numberAsked(asked, 'limit', 500)));
  const count = new Float64Array(places), sum = new Float64Array(places), self = new Float64Array(places),
    whole = new Float64Array(places);
  const min = new Float64Array(places).fill(Infinity), max = new Float64Array(places).fill(-1);
  // Calls visit for every slice that touches the area, with its time inside and what holds it.
  const each = (visit: (lane: Lane, slice: number, inside: number, holder: number) => void): void => {
    for (const id of lanes) {
      const lane = store.lanes[id]!;
      if (lane.type === 'counter') continue;
      lane.rows.forEach((row, r) => {
        for (let position = firstInRowFrom(lane, row, from) - 1; position >= 0; --position) {
          const slice = sliceAt(row, position);
          if (endOf(lane, slice) <= from) break;
          visit(lane, slice, Math.min(endOf(lane, slice), to) - from, enclosing(lane, {row: r, position}));
        }
      });
      walk(store, lane, firstStartingFrom(lane, from), firstStartingFrom(lane, to), (i, holder) =>
        visit(lane, i, Math.min(endOf(lane, i), to) - lane.start[i]!, holder));
    }
  };
  each((lane, i, inside, holder) => {
    const place = lane.place[i]!, ns = lane.dur[i]!;
    count[place] = count[place]! + 1;
    sum[place] = sum[place]! + inside;
    self[place] = self[place]! + inside;
    whole[place] = whole[place]! + ns;
    min[place] = Math.min(min[place]!, ns);
    max[place] = Math.max(max[place]!, ns);
    if (holder >= 0 && takesTime(store, lane, i)) self[lane.place[holder]!] = self[lane.place[holder]!]! - inside;
  });
  const all = [...count.keys()].filter(place => count[place]! > 0).sort((a, b) => sum[b]! - sum[a]! || a - b);
  const slices = all.reduce((total, place) => total + count[place]!, 0), shown = all.slice(0, limit),
    exact = slices <= EXACT_QUANTILES;
  const at = new Int32Array(places).fill(-1), kept = shown.map(place => new Float64Array(exact ? count[place]! : 0)),
    filled = shown.map(() => 0);
  const bins = shown.map(() => (exact ? null : newBins()));
  shown.forEach((place, k) => {
    at[place] = k;
  });
  each((lane, i) => {
    const k = at[lane.place[i]!]!, ns = lane.dur[i]!;
    if (k < 0) return;
    const own = bins[k];
    if (own) own[binOf(ns)] = own[binOf(ns)]! + 1;
    else kept[k]![filled[k]!++] = ns;
  });
  return {t0, t1, slices, left_out: all.length - shown.length, exact, rows: shown.map((place, k) => {
    const sorted = kept[k]!.sort(), own = bins[k];
    const quantile = (
      share: number,
    ): number => (own ? binnedQuantile(own, count[place]!, share, min[place]!, max[place]!) : nearest(sorted, share));
    const name = store.placeName[place]!;
    return {name_id: name, name: shortName(store, name), kind: store.placeKind[place], count: count[place],
      sum_ns: sum[place], self_ns: Math.max(0, self[place]!), mean_ns: Math.round(whole[place]! / count[place]!),
      min_ns: min[place], median_ns: quantile(0.5), p95_ns: quantile(0.95), max_ns: max[place]};
  })};
}
