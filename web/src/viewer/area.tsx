// Totals of an area: what ran in it, by name and kind, and of one name how its durations are spread. A stretch of the
// histogram lights its slices up in the timeline.
import {useEffect, useState} from 'preact/hooks';
import {duration, percent} from '../format';
import {listOf} from './api';
import {Histogram} from './histogram';
import {count} from './numbers';
import type {PanelProps} from './panel';
import type {Area} from './store';
import {kindName, w, type Word} from './words';

export interface Total {
  name: string; name_id: number; kind: number; count: number; sum: number; self: number;
  min: number; mean: number; median: number; p95: number; max: number;
}
interface Answer { totals: Total[]; names: number; count: number; sum: number; self: number; busy?: number }

type Column = 'count' | 'sum' | 'self' | 'mean' | 'median' | 'p95' | 'min' | 'max';
const COLUMNS: Column[] = ['count', 'sum', 'self', 'mean', 'median', 'p95', 'min', 'max'];
const MOST = 300;

// Lanes of ranks moved by hand are asked with their own times: one window for all others.
const windowOf = (area: Area) => ({lanes: listOf(area.lanes), t0: area.t0, t1: area.t1});

export function AreaPanel({api, store, actions}: PanelProps) {
  const {area} = store.state, [answer, setAnswer] = useState<Answer | null>(null), [error, setError] = useState('');
  const [sort, setSort] = useState<Column>('sum'), [down, setDown] = useState(true), [open, setOpen] = useState<Total | null>(null);
  const key = area ? `${area.t0},${area.t1},${area.lanes.join()}` : '';
  useEffect(() => {
    if (!area) return;
    const controller = new AbortController();
    api.json<Answer>('select', {...windowOf(area), limit: MOST}, controller.signal)
      .then(found => {
        setAnswer(found);
        setError('');
        setOpen(before => (before ? found.totals.find(one => one.name_id === before.name_id && one.kind === before.kind) ?? null : null));
      })
      .catch((failure: unknown) => { if (!controller.signal.aborted) setError(String(failure)); });
    return () => controller.abort();
  }, [key]);
  if (!area) return <p class="quiet hint">{w('area.none')}</p>;
  if (error) return <p role="alert">{error}</p>;
  if (!answer) return <p class="quiet hint">…</p>;
  const kinds = new Map(store.run.kinds.map(kind => [kind.id, kind])), span = area.t1 - area.t0;
  const rows = [...answer.totals].sort((a, b) => (a[sort] - b[sort]) * (down ? -1 : 1));
  const most = Math.max(...answer.totals.map(one => one.sum), 1);
  const order = (column: Column): void => {
    if (column === sort) setDown(!down);
    setSort(column);
  };
  return (
    <div class="area">
      <p class="sum">{w('area.sum', duration(span), area.lanes.length === 1 ? w('area.lane') : w('area.lanes', area.lanes.length), count(answer.count))}
        <button class="pill" onClick={() => store.jump({t0: area.t0, t1: area.t1})}>{w('area.zoom')}</button>
        <button class="pill" onClick={() => store.change({area: null, panel: 'slice'})}>{w('area.clear')}</button>
        {answer.names > answer.totals.length && <span class="quiet">{w('area.more', answer.totals.length, answer.names)}</span>}
      </p>
      <div class={open ? 'split open' : 'split'}>
        <div class="table-box">
          <table class="totals">
            <thead><tr><th class="text">{w('slice.name')}</th><th class="text">{w('slice.kind')}</th><th class="bar" />
              {COLUMNS.map(column => (
                <th aria-sort={column === sort ? (down ? 'descending' : 'ascending') : undefined}>
                  <button class="plain" onClick={() => order(column)}>{w(`total.${column}` as Word)}{column === sort ? (down ? ' ↓' : ' ↑') : ''}</button></th>))}</tr></thead>
            <tbody>
              {rows.map(one => (
                <tr class={open?.name_id === one.name_id && open.kind === one.kind ? 'now' : ''}>
                  <th class="text"><button class="plain link" onClick={() => {
                    setOpen(open?.name_id === one.name_id && open.kind === one.kind ? null : one);
                    store.change({lit: {ids: new Set([one.name_id]), label: one.name, from: 'name'}});
                  }} title={one.name.slice(0, 1000)}>{one.name.slice(0, 300) || '–'}</button></th>
                  <td class="text"><i class="swatch" style={{background: kinds.get(one.kind)?.[store.theme].fill}} />{kindName(kinds.get(one.kind))}</td>
                  <td class="bar"><i style={{width: `${one.sum / most * 100}%`, background: kinds.get(one.kind)?.[store.theme].fill}} /></td>
                  {COLUMNS.map(column => (
                    <td title={column === 'sum' ? w('area.share', percent(one.sum / span / area.lanes.length)) : undefined}>
                      {column === 'count' ? count(one.count) : duration(one[column])}</td>))}
                </tr>))}
            </tbody>
          </table>
        </div>
        {open && <Histogram api={api} store={store} actions={actions} area={area} total={open} />}
      </div>
    </div>
  );
}
