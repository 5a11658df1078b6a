// The selected slice: its kind, its owner, its links, every argument, and next to it the one it is compared with.
import {t, type Key} from '../../i18n/i18n';
import type {ComponentChildren} from 'preact';
import {duration, exactMs, percent} from '../../format';
import type {PanelProps} from './panel_props';
import {refOf, type SliceEnd, type SliceFacts} from '../shell/slice_facts';
import type {Store} from './store';
import type {SliceRef} from '../shell/slice_facts';
import {placeTitle} from './titles';
import {kindName} from './kind_name';

const shown = (name: string): string => (name.length > 2000 ? name.slice(0, 2000) + '…' : name);
const MISSING: Record<string, Key> = {
  'this source keeps no positions of its events': 'args.missing.positions',
  'the file changed since it was read': 'args.missing.changed',
  'the source cannot be opened again': 'args.missing.gone',
};
const kindOf = (store: Store, id: number) => store.run.kinds.find(kind => kind.id === id);

// Returns why there are no arguments, in the reader's language where it is one of the usual reasons.
function missing(why: string | undefined): string {
  if (!why) return t('args.none');
  const word = MISSING[why];
  return word ? t(word) : why;
}

function Jump({to, actions}: {to: SliceEnd | null | undefined; actions: PanelProps['actions']}) {
  if (!to) return <span class="quiet">–</span>;
  return (
    <button class="plain link jump" onClick={() => actions.goTo(refOf(to))} title={to.name}>
      <span>{shown(to.name)}</span>
      <small>{' '}{duration(to.dur_ns)}</small>
    </button>
  );
}

function Compare({store, actions}: PanelProps) {
  const {selected: a, second: b} = store.state;
  if (!a || !b) return null;
  const row = (label: Key, x: number, y: number) => (
    <tr>
      <th class="text">{t(label)}</th>
      <td>{exactMs(y)}</td>
      <td>{exactMs(x)}</td>
      <td>{`${x - y >= 0 ? '+' : '−'}${exactMs(Math.abs(x - y))}`}</td>
      <td>
        {label === 'slice.duration' && y > 0 ? `${(x / y).toFixed(3)}×`
          : ''}
      </td>
    </tr>
  );
  const at = (slice: SliceRef): number => slice.start + store.shiftOf(slice.lane);
  return (
    <table class="compare">
      <caption>{t('compare')}</caption>
      <thead>
        <tr>
          <td />
          <th>{t('compare.held.short')}</th>
          <th>{t('compare.selected')}</th>
          <th>{t('compare.difference')}</th>
          <th>{t('compare.ratio')}</th>
        </tr>
      </thead>
      <tbody>
        <tr>
          <th class="text">{t('slice.name')}</th>
          <td>
            <Jump to={{...b, name_id: b.nameId, start_ns: b.start, dur_ns: b.dur}} actions={actions} />
          </td>
          <td class="name">{shown(a.name)}</td>
          <td />
          <td />
        </tr>
        <tr>
          <th class="text">{t('slice.place')}</th>
          <td>{placeTitle(store, b.lane)}</td>
          <td>{placeTitle(store, a.lane)}</td>
          <td />
          <td />
        </tr>
        {row('slice.start', at(a), at(b))}
        {row('slice.end', at(a) + a.dur, at(b) + b.dur)}
        {row('slice.duration', a.dur, b.dur)}
      </tbody>
    </table>
  );
}

function Facts({slice, facts, store}: {slice: SliceRef; facts: SliceFacts | null; store: Store}) {
  const rows: [Key, ComponentChildren][] = [
    ['slice.kind', kindName(kindOf(store, slice.kind)) + (facts?.category ? ` · ${facts.category}` : '')],
    ['slice.place', placeTitle(store, slice.lane)],
    ['slice.start', exactMs(slice.start)],
    ['slice.duration', exactMs(slice.dur)],
  ];
  if (facts) {
    // Cells do not nest: the cells in the row below ran in parallel.
    if (facts.self_ns !== slice.dur && store.run.lanes[slice.lane]!.type !== 'cells')
      rows.push([
        'slice.self',
        `${exactMs(facts.self_ns)} · ${percent(slice.dur > 0 ? facts.self_ns / slice.dur : 0)}`,
      ]);
    const numbers: [Key, number][] = [
      ['slice.step', facts.step],
      ['slice.microBatch', facts.micro_batch],
      ['slice.chunk', facts.chunk],
      ['slice.stage', facts.stage],
      ['slice.dp', facts.dp],
    ];
    for (const [key, value] of numbers) if (value >= 0) rows.push([key, value]);
    rows.push(['slice.stamp', `${facts.stamp_ns}\u202fns`]);
  }
  return (
    <dl class="facts">
      {rows.map(([key, value]) => (
        <>
          <dt>{t(key)}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

export function SlicePanel(props: PanelProps) {
  const {store, actions} = props, {selected, second} = store.state, facts = actions.facts();
  if (!selected) return <p class="quiet hint">{t('slice.none')}</p>;
  const links = facts?.links ?? [];
  return (
    <div class="slice">
      <div class="slice-head">
        <i class="swatch" style={{background: kindOf(store, selected.kind)?.[store.theme].fill}} />
        <h2>{shown(facts?.label ?? facts?.name ?? selected.name) || '–'}</h2>
        <button class="pill" onClick={() => actions.holdForCompare()} aria-pressed={second !== null}>
          {t(second ? 'compare.end'
            : 'compare.start')} <kbd>C</kbd>
        </button>
        <button class="pill" onClick={() => actions.rangeOfSlice()}>
          {t('slice.range')} <kbd>M</kbd>
        </button>
        <button
          class="pill"
          onClick={() => {
            store.change({
              lit: {ids: new Set([selected.nameId]), label: selected.name, query: selected.name, from: 'name'},
            });
          }}>
          {t('slice.light')}
        </button>
      </div>
      {second && <Compare {...props} />}
      <div class="columns">
        <div>
          <Facts slice={selected} facts={facts} store={store} />
        </div>
        <div>
          <h3>{t('slice.beside')}</h3>
          <dl class="facts">
            <dt>
              {t('slice.previous')} <kbd>,</kbd>
            </dt>
            <dd>
              <Jump to={facts?.previous} actions={actions} />
            </dd>
            <dt>
              {t('slice.next')} <kbd>.</kbd>
            </dt>
            <dd>
              <Jump to={facts?.next} actions={actions} />
            </dd>
            {facts?.parent && (
              <>
                <dt>{t('slice.parent')}</dt>
                <dd>
                  <Jump to={facts.parent} actions={actions} />
                </dd>
              </>
            )}
            {facts?.source && (
              <>
                <dt>{t('slice.source')}</dt>
                <dd>
                  <Jump to={facts.source} actions={actions} />
                </dd>
              </>
            )}
            {facts?.owner && (
              <>
                <dt>{t('slice.owner')}</dt>
                <dd>
                  <Jump to={facts.owner} actions={actions} />
                </dd>
              </>
            )}
          </dl>
          {links.length > 0 && <h3>{t('slice.links')}</h3>}
          {links.length > 0 && (
            <dl class="facts">
              {links.slice(0, 50).map(link => (
                <>
                  <dt>
                    {t(link.direction === 'in' ? 'link.in' : 'link.out', t(`link.${link.type}`))}{' '}
                    <kbd>
                      {link.direction === 'in' ? '['
                        : ']'}
                    </kbd>
                  </dt>
                  <dd>
                    <Jump to={link.slice} actions={actions} />{' '}
                    <small class="quiet">{placeTitle(store, link.slice.lane)}</small>
                  </dd>
                </>
              ))}
            </dl>
          )}
          {facts !== null && facts.stack.length > 0 && (
            <>
              <h3>{t('slice.stack')}</h3>
              <ol class="stack">
                {facts.stack.slice(0, 100)
                  .map(frame => <li>{frame}</li>)}
              </ol>
            </>
          )}
        </div>
        <div>
          <h3>{t('slice.args')}</h3>
          {facts === null ? <p class="quiet">…</p>
            : facts.args.length > 0 ? (
              <dl class="args">
                {facts.args.map(({key, value}) => (
                  <>
                    <dt>{key}</dt>
                    <dd>{shown(value)}</dd>
                  </>
                ))}
              </dl>
            )
            : <p class="quiet">{missing(facts.args_missing)}</p>}
        </div>
      </div>
    </div>
  );
}
