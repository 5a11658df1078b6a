// The drawer below the timeline: the selected slice (or two, compared), the totals of an area, the marks.
import {AreaPanel} from './area';
import {MarksPanel} from './marks';
import type {PanelProps} from './panel_props';
import {SlicePanel} from './slice_panel';
import type {State} from './store';
import {w} from './words';

export function Panel(props: PanelProps) {
  const {store} = props, {state} = store;
  const tabs: [State['panel'], string][] = [['slice', w('panel.slice')], ['area', w('panel.area')], ['marks', w('panel.marks')]];
  const open = state.panel !== 'none';
  return (
    <section class={`panel${open ? '' : ' closed'}`} aria-label={w('panel')}>
      <div class="tabs">
        {tabs.map(([id, title]) => (
          <button id={`tab-${id}`} aria-pressed={state.panel === id} onClick={() =>
              store.change({panel: store.state.panel === id ? 'none' : id})}>{title}
            {id === 'marks' && state.marks.length > 0 && ` ${state.marks.length}`}</button>))}
        {state.lit && (
          <span class="lit">{w('lit', state.lit.label.length > 60 ? state.lit.label.slice(0, 60) + '…' : state.lit.label)}
            <button class="plain link" onClick={() => props.actions.findNext(-1)}>{w('lit.previous')}</button>
            <button class="plain link" onClick={() => props.actions.findNext(1)}>{w('lit.next')}</button>
            <button class="plain link" onClick={() => store.change({lit: null})}>{w('lit.clear')}</button></span>)}
        {state.shifts.size > 0 && (
          <span class="lit">{w('shifted', state.shifts.size)}
            <button class="plain link" onClick={() => store.change({shifts: new Map()})}>{w('shifted.clear')}</button></span>)}
        <span class="space" />
        <span class="say">{state.message || (open ? '' : w('slice.none'))}</span>
        <button class="plain" onClick={() => props.actions.togglePanel()} title={w('cmd.panel')}>{open ? w('panel.close')
            : w('panel.open')} <kbd>Q</kbd></button>
      </div>
      {open && (
        <div class="body" tabindex={-1}>
          {state.panel === 'slice' && <SlicePanel {...props} />}
          {state.panel === 'area' && <AreaPanel {...props} />}
          {state.panel === 'marks' && <MarksPanel {...props} />}
        </div>)}
    </section>
  );
}
