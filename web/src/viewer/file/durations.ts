// Durations counted in bins of 1/32 of an octave (src/server/timeline/timeline_sums.h), nearest-rank quantiles, and
// the answer to /api/histogram.
import {bitsOf, firstStartingFrom, kindOf, rowPlace, type Lane, type Store} from './lanes';
import {forMeant, namesMeant} from './names';
import {lanesAsked, numberAsked, windowAsked, type Asked} from './query';
import {MOST_SLICES, slicesWire} from './slices';

const SUB_BITS = 5, MOST_BINS = 65, BINS = (62 - SUB_BITS + 1) << SUB_BITS;
export const EXACT_QUANTILES = 1_000_000;

export function binOf(ns: number): number {
  if (ns < 1 << SUB_BITS) return ns;
  const octave = bitsOf(ns) - 1 - SUB_BITS;
  return ((octave + 1) << SUB_BITS) + Math.floor(ns / 2 ** octave) % (1 << SUB_BITS);
}
const binStart = (bin: number): number => {
  if (bin < 1 << SUB_BITS) return bin;
  const octave = (bin >> SUB_BITS) - 1;
  return ((bin & ((1 << SUB_BITS) - 1)) + (1 << SUB_BITS)) * 2 ** octave;
};
export const newBins = (): Float64Array => new Float64Array(BINS);

export const nearest = (sorted: Float64Array, share: number): number =>
  sorted[Math.floor(share * (sorted.length - 1))]!;
// Returns the middle of its bin, within [min, max].
export function binnedQuantile(bins: Float64Array, count: number, share: number, min: number, max: number): number {
  const wanted = Math.floor(share * (count - 1)) + 1;
  let soFar = 0;
  for (let b = 0; b < BINS; ++b) {
    soFar += bins[b]!;
    if (soFar < wanted) continue;
    const low = binStart(b), high = b + 1 < BINS ? binStart(b + 1) - 1 : low;
    return Math.min(Math.max(low + Math.floor((high - low) / 2), min), max);
  }
  return max;
}

export function histogramAnswer(store: Store, asked: Asked): object | ArrayBuffer {
  const lanes = lanesAsked(store, asked), window = windowAsked(store, asked, store.run.span_ns + 1),
    kind = numberAsked(asked, 'kind', -1);
  const meant = namesMeant(store, asked);
  const each = (visit: (lane: Lane, slice: number) => void): void => {
    for (const id of lanes) {
      const lane = store.lanes[id]!;
      forMeant(store, lane, meant, firstStartingFrom(lane, window.from), firstStartingFrom(lane, window.to), i => {
        if (kind < 0 || kindOf(store, lane, i) === kind) visit(lane, i);
      });
    }
  };
  if (asked['min'] !== undefined || asked['max'] !== undefined) {
    const least = Math.floor(numberAsked(asked, 'min', 0)), most = Math.floor(numberAsked(asked, 'max', 4e18));
    const limit = Math.min(MOST_SLICES, numberAsked(asked, 'limit', 50_000));
    const lanes: number[] = [], slices: number[] = [], rows: number[] = [];
    let complete = true;
    each((lane, i) => {
      if (lane.dur[i]! < least || lane.dur[i]! > most) return;
      const at = slices.length < limit ? rowPlace(lane, i) : null;
      if (!at) {
        complete = false;
        return;
      }
      lanes.push(lane.id);
      slices.push(i);
      rows.push(at.row);
    });
    return slicesWire(store, {lane: Uint32Array.from(lanes), slice: Uint32Array.from(slices),
      row: Uint8Array.from(rows), minNs: least, complete});
  }
  const bins = newBins(), kept: number[] = [];
  let count = 0, sum = 0, min = Infinity, max = 0;
  each((lane, i) => {
    const ns = lane.dur[i]!, bin = binOf(ns);
    bins[bin] = bins[bin]! + 1;
    ++count;
    sum += ns;
    min = Math.min(min, ns);
    max = Math.max(max, ns);
    if (kept.length <= EXACT_QUANTILES) kept.push(ns);
  });
  const exact = count <= EXACT_QUANTILES;
  if (count === 0) return {count, exact, edges_ns: [], counts: []};
  const sorted = exact ? Float64Array.from(kept).sort() : null;
  const quantile = (
    share: number,
  ): number => (sorted ? nearest(sorted, share) : binnedQuantile(bins, count, share, min, max));
  return {count, exact, ...drawnBins(bins, binOf(min), binOf(max)), sum_ns: sum, mean_ns: Math.round(sum / count),
    min_ns: min, max_ns: max, median_ns: quantile(0.5), p95_ns: quantile(0.95), p99_ns: quantile(0.99)};
}

function drawnBins(bins: Float64Array, first: number, last: number): {edges_ns: number[]; counts: number[]} {
  let width = 1;
  while (Math.floor((last - first) / width) + 1 > MOST_BINS) width *= 2;
  first = Math.floor(first / width) * width;
  const edges: number[] = [], counts: number[] = [];
  for (let b = first; b <= last; b += width) {
    edges.push(binStart(b));
    counts.push(bins.subarray(b, Math.min(b + width, BINS)).reduce((sum, n) => sum + n, 0));
  }
  edges.push(binStart(Math.min(first + counts.length * width, BINS - 1)));
  return {edges_ns: edges, counts};
}
