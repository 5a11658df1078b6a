// Computes how the durations of one name are spread in an area: bars on a logarithmic axis. A press or a drag over bars
// lights the slices of these durations up in the timeline and lists them.
import {t} from '../../i18n/i18n';
import {useEffect, useRef, useState} from 'preact/hooks';
import {duration} from '../../format';
import type {Actions} from './actions';
import type {Api, SlicesAnswer} from '../shell/api';
import {windowOf, type Total} from './area_query';
import {count} from '../shell/numbers';
import {refAt} from '../shell/slice_facts';
import type {Store} from './store';
import type {Area} from '../shell/slice_facts';
import {placeTitle} from './titles';

interface Bin {
  from: number;
  to: number;
  count: number;
}
interface Answer {
  edges_ns: number[];
  counts: number[];
}
interface Props {
  api: Api;
  store: Store;
  actions: Actions;
  area: Area;
  total: Total;
}

const WIDTH = 360, HEIGHT = 110, LISTED = 40;

export function Histogram({api, store, actions, area, total}: Props) {
  const [answer, setBins] = useState<Bin[] | null>(null), [range, setRange] = useState<[number, number] | null>(null),
    [list, setList] = useState<SlicesAnswer | null>(null);
  const from = useRef(-1), svg = useRef<SVGSVGElement>(null);
  const bins = answer ?? [];
  const where = {name_ids: total.name_id, kind: total.kind, ...windowOf(store, area)};
  useEffect(() => {
    const controller = new AbortController();
    setRange(null);
    setList(null);
    api.json<Answer>('histogram', where, controller.signal)
      .then(({edges_ns: edges, counts}) =>
        setBins(counts.map((n, i) => ({from: edges[i]!, to: edges[i + 1]!, count: n})))
      )
      .catch(actions.failed);
    return () => controller.abort();
  }, [total.name_id, total.kind, area]);

  const at = (event: PointerEvent): number => {
    const box = svg.current!.getBoundingClientRect();
    return Math.min(Math.max(Math.floor((event.clientX - box.left) / box.width * bins.length), 0), bins.length - 1);
  };
  const choose = (a: number, b: number): void => setRange([Math.min(a, b), Math.max(a, b)]);
  function settle(a: number, b: number): void {
    const [first, last] = [bins[Math.min(a, b)], bins[Math.max(a, b)]];
    if (!first || !last) return;
    choose(a, b);
    store.change({
      lit: {ids: new Set([total.name_id]), label: `${total.name} ${duration(first.from)} – ${duration(last.to)}`,
        query: total.name, from: 'histogram', min: first.from, max: last.to - 1},
    });
    api.slices({...where, min: first.from, max: last.to - 1, limit: 2000}, undefined, 'histogram').then(setList).catch(
      actions.failed,
    );
  }
  const most = Math.max(...bins.map(bin => bin.count), 1), wide = WIDTH / Math.max(bins.length, 1);
  const inRange = (i: number): boolean => range !== null && i >= range[0] && i <= range[1];
  const chosen = range ? bins.slice(range[0], range[1] + 1).reduce((sum, bin) => sum + bin.count, 0) : 0;
  const title = (
    <h3>
      {t('histogram')} <span class="quiet name" title={total.name.slice(0, 1000)}>{total.name.slice(0, 80)}</span>
    </h3>
  );
  if (answer?.length === 0)
    return (
      <div class="histogram">
        {title}
        <p class="quiet">{t('histogram.none')}</p>
      </div>
    );
  return (
    <div class="histogram">
      {title}
      <svg
        ref={svg}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        tabindex={0}
        aria-label={t('histogram.aria', count(total.count), duration(total.min_ns), duration(total.max_ns))}
        onPointerDown={event => {
          from.current = at(event);
          choose(from.current, from.current);
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={event => {
          if (from.current >= 0) choose(from.current, at(event));
        }}
        onPointerUp={event => {
          if (from.current >= 0) settle(from.current, at(event));
          from.current = -1;
        }}
        onKeyDown={event => {
          if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
          event.preventDefault();
          event.stopPropagation();
          const next = range ? range[0] + (event.key === 'ArrowLeft' ? -1 : 1) : bins.findIndex(bin => bin.count > 0);
          if (next >= 0 && next < bins.length) settle(next, next);
        }}>
        {bins.map((bin, i) => {
          const height = bin.count > 0 ? Math.max(bin.count / most * (HEIGHT - 4), 1.5) : 0;
          return (
            <rect
              class={inRange(i) ? 'now' : ''}
              x={i * wide}
              y={HEIGHT - height}
              width={Math.max(wide - 1, 0.5)}
              height={height}>
              <title>{`${duration(bin.from)} – ${duration(bin.to)}: ${count(bin.count)}`}</title>
            </rect>
          );
        })}
      </svg>
      <p class="ends">
        <span>{bins.length > 0 ? duration(bins[0]!.from) : ''}</span>
        <span>
          {bins.length > 0
            ? duration(bins[bins.length - 1]!.to) : ''}
        </span>
      </p>
      {range && (
        <p class="quiet">
          {t('histogram.range', count(chosen), duration(bins[range[0]]!.from), duration(bins[range[1]]!.to))}
        </p>
      )}
      {!range && <p class="quiet">{t('histogram.hint')}</p>}
      {list && (
        <ul class="hits">
          {Array.from({length: Math.min(list.count, LISTED)}, (_, i) => (
            <li>
              <button
                class="plain link"
                onClick={() => actions.goTo(refAt(list, i))}>
                {duration(list.dur[i]!)}
              </button>
              <span class="quiet">{' '}{placeTitle(store, list.lane[i]!)} · {duration(list.start[i]!)}</span>
            </li>
          ))}
          {list.count > LISTED && <li class="quiet">{t('histogram.more', count(list.count - LISTED))}</li>}
        </ul>
      )}
    </div>
  );
}
