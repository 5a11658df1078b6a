// The bar above the timeline: what the run is, how its clocks stand, and the ways in for those who have no keys.
import {currentLang} from '../i18n/i18n';
import {duration} from '../format';
import {t as report, type Key} from '../i18n/i18n';
import type {Actions} from './actions';
import type {Grouping, Kind} from './api';
import {short} from './numbers';
import type {Stage} from './stage';
import type {State, Store} from './store';
import {kindName, w} from './words';

type ClockState = 'shared' | 'unaligned' | 'per-rank' | 'aligned' | 'partly-aligned';
const CLOCKS: readonly string[] = ['shared', 'unaligned', 'per-rank', 'aligned', 'partly-aligned'];

// Kinds of one group share a colour and so one entry: by the group's name where there are several.
const GROUP_WORDS: Record<string, Key> = {forward: 'group.0', backward: 'group.1', weight: 'group.2', message: 'group.3',
    collective: 'group.4', other: 'group.6'};
function legendOf(kinds: readonly Kind[]): [Kind, string][] {
  const groups = new Map<string, Kind[]>();
  for (const kind of kinds) {
    const members = groups.get(kind.group);
    if (members) members.push(kind);
    else groups.set(kind.group, [kind]);
  }
  return [...groups].map(([group, members]) => {
    const word = GROUP_WORDS[group];
    return [members[0]!, members.length > 1 && word ? report(word) : kindName(members[0])];
  });
}

export function Header({store, stage, actions}: {store: Store; stage: Stage; actions: Actions}) {
  const {run, state} = store, {clock} = run;
  const facts = [run.title, run.ranks.length === 1 ? report('ranks.one') : report('ranks', run.ranks.length), run.steps.length > 0 &&
    (run.steps.length === 1 ? report('steps.one') : report('steps', run.steps.length)), run.slices === 1 ? w('head.slices.one')
        : w('head.slices', short(run.slices))].filter(Boolean);
  const known = CLOCKS.includes(clock.state), state_ = clock.state as ClockState;
  const flaws = run.flaws.length;
  return (
    <header class="top">
      <span class="logo">Stageline</span>
      <span class="run" title={run.paths.join('\n')}>{facts.join(' · ')}</span>
      <span class="space" />
      <button class="search" onClick={() =>
          actions.open('search')} title={w('cmd.search')}><span>{w('head.search')}</span> <kbd>/</kbd></button>
      {run.groupings.length > 0 && (
        <label class="choice">{w('head.group')}
          <select id="grouping" value={state.grouping} onChange={event =>
              store.change({grouping: event.currentTarget.value as State['grouping']})}>
            <option value="none">{w('group.none')}</option>
            {run.groupings.map((one: Grouping) => <option value={one}>{w(`group.by.${one}`)}</option>)}
          </select>
        </label>)}
      {run.flows && <button class="pill" id="flows" aria-pressed={state.flows} onClick={() =>
          store.change({flows: !state.flows})}>{w('head.flows')}</button>}
      <button class="pill" id="fit" onClick={() => store.jump(store.home)} title={w('cmd.all')}>{w('head.all')}</button>
      {known && (
        <span class={`pill clock ${state_}`} title={report(state_ === 'aligned' || state_ === 'partly-aligned' ? 'clock.shared.help'
            : `clock.${state_}.help`)}>
          <i class="dot" aria-hidden="true" />{report(`clock.${state_}`)}{clock.uncertainty_ns > 0 &&
              `, ±${duration(clock.uncertainty_ns)}`}
        </span>)}
      {flaws > 0 && <span class="pill flaws" title={run.flaws.map(flaw => flaw.message).join('\n')}>{w('head.flaws', flaws)}</span>}
      <button class="pill" id="perfetto" onClick={actions.perfetto} title={w('cmd.perfetto')}>Perfetto</button>
      <button class="pill" id="theme" onClick={actions.toggleTheme} title={report('theme.switch')}>{report(store.theme === 'dark'
          ? 'theme.light' : 'theme.dark')}</button>
      <button class="pill" id="lang" lang={currentLang() === 'zh' ? 'en'
          : 'zh-CN'} onClick={actions.toggleLang} title={report('lang.switch')}>{report('lang.other')}</button>
      <button class="pill" id="keys" onClick={actions.help} title={w('cmd.help')}>?</button>
      <ul class="key">
        {legendOf(run.kinds).map(([kind, name]) => (
          <li><i style={{background: kind[store.theme].fill}} class={kind.group === 'weight' ? 'hatched' : ''} />{name}</li>))}
        <li><i class="idle" />{w('key.idle')}</li>
        {stage.tiles.error && <li class="error" role="alert">{stage.tiles.error}</li>}
      </ul>
    </header>
  );
}
