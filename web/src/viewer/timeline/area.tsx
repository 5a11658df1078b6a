// Totals of an area: what ran in it, by name and kind, and of one name how its durations are spread. A stretch of the
// histogram lights its slices up in the timeline.
import {t, type Key} from '../../i18n/i18n';
import {useEffect, useState} from 'preact/hooks';
import {duration, percent} from '../../format';
import {windowOf, type Total} from './area_query';
import {Histogram} from './histogram';
import {listOf, type Api, type TilesAnswer} from '../shell/api';
import {count} from '../shell/numbers';
import {hashOf, plainQuery} from '../shell/route';
import type {Area} from '../shell/slice_facts';
import type {PanelProps} from './panel_props';
import {kindName} from './kind_name';
import type {Store} from './store';

interface Answer {
  slices: number;
  left_out: number;
  exact: boolean;
  rows: Total[];
}

type Column = 'count' | 'sum_ns' | 'self_ns' | 'mean_ns' | 'median_ns' | 'p95_ns' | 'min_ns' | 'max_ns';
const COLUMNS: Column[] = ['count', 'sum_ns', 'self_ns', 'mean_ns', 'median_ns', 'p95_ns', 'min_ns', 'max_ns'];
const MOST = 300;
const IDLE_COLUMNS = 1024, FULL = 255;

// The time of an area's lanes in which nothing ran: what their first rows do not cover, since these hold all others.
async function idleOf(api: Api, store: Store, area: Area, signal: AbortSignal): Promise<number> {
  const {t0, t1} = windowOf(store, area),
    {header, buffer, base} = await api.wire<TilesAnswer['header']>('tiles', {lanes: listOf(area.lanes), t0, t1,
      n: IDLE_COLUMNS}, signal);
  let busy = 0;
  for (const {row, kinds} of header.rows)
    if (row === 0) {
      for (const {offset} of kinds)
        busy += new Uint8Array(buffer, base + offset, IDLE_COLUMNS).reduce((a, b) => a + b, 0);
    }
  const span = area.t1 - area.t0;
  return Math.max(0, span * area.lanes.length - busy / FULL * span / IDLE_COLUMNS);
}
function flameOf(store: Store, area: Area): string {
  const {lanes, t0, t1} = windowOf(store, area);
  return hashOf({page: 'flame', rest: '',
    query: plainQuery(new URLSearchParams({...(lanes ? {lanes} : {}), v: `${Math.round(t0)},${Math.round(t1)}`}))});
}
const LEAST_FOR_P95 = 20; // of fewer slices nothing lies between the 95th percentile and the longest

export function AreaPanel({api, store, actions}: PanelProps) {
  const {area} = store.state, [answer, setAnswer] = useState<Answer | null>(null), [error, setError] = useState('');
  const [idle, setIdle] = useState<number | null>(null);
  const [sort, setSort] = useState<Column>('sum_ns'), [down, setDown] = useState(true),
    [open, setOpen] = useState<Total | null>(null);
  const key = area ? `${area.t0},${area.t1},${area.lanes.join()}` : '';
  useEffect(() => {
    if (!area) return;
    const controller = new AbortController();
    api.json<Answer>('select', {...windowOf(store, area), limit: MOST}, controller.signal)
      .then(found => {
        setAnswer(found);
        setError('');
        setOpen(
          before => (before ? found.rows.find(one => one.name_id === before.name_id && one.kind === before.kind) ?? null
            : null),
        );
      })
      .catch((failure: unknown) => {
        if (!controller.signal.aborted) setError(String(failure));
      });
    setIdle(null);
    idleOf(api, store, area, controller.signal).then(setIdle, () => undefined);
    return () => controller.abort();
  }, [key]);
  if (!area) return <p class="quiet hint">{t('area.none')}</p>;
  if (error) return <p role="alert">{error}</p>;
  if (!answer) return <p class="quiet hint">…</p>;
  const kinds = new Map(store.run.kinds.map(kind => [kind.id, kind])), span = area.t1 - area.t0;
  const rows = [...answer.rows].sort((a, b) => (a[sort] - b[sort]) * (down ? -1 : 1));
  const moved = new Set(area.lanes.map(lane => store.shiftOf(lane))).size > 1;
  const most = Math.max(...answer.rows.map(one => one.sum_ns), 1);
  const order = (column: Column): void => {
    if (column === sort) setDown(!down);
    setSort(column);
  };
  return (
    <div class="area">
      <p class="sum">
        {t('area.sum', duration(span),
          area.lanes.length === 1 ? t('area.lane') : t('area.lanes', count(area.lanes.length)), count(answer.slices))}
        <button class="pill" onClick={() => store.jump({t0: area.t0, t1: area.t1})}>{t('area.zoom')}</button>
        {!REPORT && store.run.whole && store.run.calls && (
          <a class="pill" href={flameOf(store, area)}>{t('area.flame')}</a>
        )}
        <button class="pill" onClick={() => store.change({area: null, panel: 'none'})}>{t('area.clear')}</button>
        {answer.left_out > 0 && <span class="quiet">{t('area.more', answer.rows.length, answer.left_out)}</span>}
        {!answer.exact && <span class="quiet">{t('area.binned')}</span>}
        {moved && <span class="quiet">{t('area.moved')}</span>}
      </p>
      <div class={open ? 'split open' : 'split'}>
        <div class="table-box">
          <table class="totals">
            <thead>
              <tr>
                <th class="text">{t('slice.name')}</th>
                <th class="text">{t('slice.kind')}</th>
                <th class="bar">
                  <span class="live">{t('plot.bar')}</span>
                </th>
                {COLUMNS.map(column => (
                  <th aria-sort={column === sort ? (down ? 'descending' : 'ascending') : undefined}>
                    <button class="plain" onClick={() => order(column)}>
                      {t(`total.${column.replace('_ns', '')}` as Key)}
                      {column === sort
                        ? (down ? ' ↓' : ' ↑') : ''}
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map(one => (
                <tr class={open?.name_id === one.name_id && open.kind === one.kind ? 'now' : ''}>
                  <th class="text">
                    <button
                      class="plain link"
                      onClick={() => {
                        setOpen(open?.name_id === one.name_id && open.kind === one.kind ? null : one);
                        store.change({
                          lit: {ids: new Set([one.name_id]), label: one.name, query: one.name, from: 'name'},
                        });
                      }}
                      title={one.name.slice(0, 1000)}>
                      {one.name.slice(0, 300) || '–'}
                    </button>
                  </th>
                  <td class="text">
                    <i class="swatch" style={{background: kinds.get(one.kind)?.[store.theme].fill}} />
                    {kindName(kinds.get(one.kind))}
                  </td>
                  <td class="bar">
                    <i
                      style={{width: `${one.sum_ns / most * 100}%`,
                        background: kinds.get(one.kind)?.[store.theme].fill}} />
                  </td>
                  {COLUMNS.map(column => (
                    <td
                      title={column === 'sum_ns' ? t('area.share', percent(one.sum_ns / span / area.lanes.length))
                        : column === 'p95_ns' && one.count < LEAST_FOR_P95 ? t('area.p95.few', LEAST_FOR_P95)
                        : undefined}>
                      {column === 'count' ? count(one.count)
                        : column === 'p95_ns' && one.count < LEAST_FOR_P95 ? '–' : duration(one[column])}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
            {idle !== null && (
              <tfoot>
                <tr class="idle-row">
                  <th class="text" title={t('area.idle.help')}>{t('key.idle')}</th>
                  <td class="text">
                    <i class="swatch idle" />
                  </td>
                  <td class="bar">
                    <i class="swatch idle" style={{width: `${Math.min(idle / most, 1) * 100}%`}} />
                  </td>
                  {COLUMNS.map(column => (
                    <td
                      title={column === 'sum_ns' ? t('area.share', percent(idle / span / area.lanes.length))
                        : undefined}>
                      {column === 'sum_ns' ? duration(idle) : ''}
                    </td>
                  ))}
                </tr>
              </tfoot>
            )}
          </table>
        </div>
        {open && <Histogram api={api} store={store} actions={actions} area={area} total={open} />}
      </div>
    </div>
  );
}
