// The drawer below the timeline: the selected slice (or two, compared), the totals of an area, the marks.
import {grouped} from '../../format';
import {t} from '../../i18n/i18n';
import {AreaPanel} from './area';
import {MarksPanel} from './marks';
import type {PanelProps} from './panel_props';
import {SlicePanel} from './slice_panel';
import {remember} from '../shell/remember';
import type {State} from './store';

// How high the drawer is, in shares of the window: kept from one visit to the next.
const LEAST = 0.15, MOST = 0.8, STEP = 0.05;
let share = Number(remember('drawer') ?? NaN);
const heightOf = ():
  | string
  | undefined => (share >= LEAST && share <= MOST ? `${(share * 100).toFixed(1)}vh` : undefined);
function setShare(panel: HTMLElement, next: number): void {
  share = Math.min(MOST, Math.max(LEAST, next));
  panel.style.height = heightOf()!;
  panel.querySelector('.panel-handle')!.setAttribute('aria-valuenow', String(Math.round(share * 100)));
  remember('drawer', share.toFixed(3));
}

function Handle() {
  const panelOf = (event: Event): HTMLElement => (event.currentTarget as HTMLElement).closest<HTMLElement>('.panel')!;
  const now = (panel: HTMLElement): number => panel.offsetHeight / innerHeight;
  return (
    <div
      class="panel-handle"
      role="separator"
      tabIndex={0}
      aria-orientation="horizontal"
      aria-label={t('panel.resize')}
      title={t('panel.resize')}
      aria-valuemin={LEAST * 100}
      aria-valuemax={MOST * 100}
      aria-valuenow={Math.round((share > 0 ? share : 0.3) * 100)}
      onPointerDown={event => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={event => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) setShare(panelOf(event),
            (innerHeight - event.clientY) / innerHeight);
      }}
      onKeyDown={event => {
        const by = event.key === 'ArrowUp' ? STEP : event.key === 'ArrowDown' ? -STEP : 0;
        if (by === 0) return;
        event.preventDefault();
        event.stopPropagation();
        setShare(panelOf(event), now(panelOf(event)) + by);
      }} />
  );
}

export function Panel(props: PanelProps) {
  const {store} = props, {state} = store;
  const tabs: [State['panel'], string][] = [['slice', t('panel.slice')], ['area', t('panel.area')], [
    'marks',
    t('panel.marks'),
  ]];
  const open = state.panel !== 'none';
  return (
    <section
      class={`panel${open ? '' : ' closed'}`}
      aria-label={t('panel')}
      style={open ? {height: heightOf()} : undefined}>
      {open && <Handle />}
      <div class="tabs">
        {tabs.map(([id, title]) => (
          <button
            id={`tab-${id}`}
            aria-pressed={state.panel === id}
            onClick={() => store.change({panel: store.state.panel === id ? 'none' : id})}>
            {title}
            {id === 'marks' && state.marks.length > 0 && ` ${state.marks.length}`}
          </button>
        ))}
        {state.lit && (
          <span class="lit">
            {t('lit', state.lit.label.length > 60 ? state.lit.label.slice(0, 60) + '…' : state.lit.label)}
            {state.found && (
              <span class="place">{t('lit.place', grouped(state.found.at), grouped(state.found.of))}</span>
            )}
            <button class="plain link" onClick={() => props.actions.findNext(-1)}>{t('lit.previous')}</button>
            <button class="plain link" onClick={() => props.actions.findNext(1)}>{t('lit.next')}</button>
            <button class="plain link" onClick={() => store.change({lit: null})}>{t('lit.clear')}</button>
          </span>
        )}
        {state.shifts.size > 0 && (
          <span class="lit">
            {t('shifted', state.shifts.size)}
            <button class="plain link" onClick={() => store.change({shifts: new Map()})}>{t('shifted.clear')}</button>
          </span>
        )}
        <span class="space" />
        <span class="say">{state.message || (open ? '' : t('slice.none'))}</span>
        <button class="plain" onClick={() => props.actions.togglePanel()} title={t('cmd.panel')}>
          {open ? t('panel.close')
            : t('panel.open')} <kbd>Q</kbd>
        </button>
      </div>
      {open && (
        <div class="body" tabindex={-1}>
          {state.panel === 'slice' && <SlicePanel {...props} />}
          {state.panel === 'area' && <AreaPanel {...props} />}
          {state.panel === 'marks' && <MarksPanel {...props} />}
        </div>
      )}
    </section>
  );
}
