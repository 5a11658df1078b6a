// The bar above the timeline: what colours mean, and the ways in for those who have no keys.
import {CHUNK_TINTS} from '../../chart/colours';
import {currentLang, type Key, t} from '../../i18n/i18n';
import {graphQuery, rankOfGraphs} from '../answers/ask_sql';
import type {Actions} from './actions';
import type {Grouping, Kind} from '../shell/api';
import {chunkTints} from '../shell/colours';
import type {Stage} from './stage';
import type {State, Store} from './store';
import {kindName} from './kind_name';

// Kinds of one group share a colour and so one entry: by the group's name where there are several.
const GROUP_WORDS: Record<string, Key> = {forward: 'group.0', backward: 'group.1', weight: 'group.2',
  message: 'group.3', collective: 'group.4', other: 'group.6'};
function legendOf(kinds: readonly Kind[]): [Kind, string, number[]][] {
  const groups = new Map<string, Kind[]>();
  for (const kind of kinds) {
    const members = groups.get(kind.group);
    if (members) members.push(kind);
    else groups.set(kind.group, [kind]);
  }
  // Device work has the colour of the cells that it is done for: one entry a colour.
  const colours = new Map<string, [Kind, string, number[]]>();
  for (const [group, members] of groups) {
    const word = GROUP_WORDS[group], name = members.length > 1 && word ? t(word) : kindName(members[0]);
    const same = colours.get(members[0]!.light.fill);
    const ids = members.map(kind => kind.id);
    if (same) {
      same[1] += (currentLang() === 'zh' ? '、' : ', ') + name;
      same[2].push(...ids);
    } else {
      colours.set(members[0]!.light.fill, [members[0]!, name, ids]);
    }
  }
  return [...colours.values()];
}

// The rank of the selection, else the first with device work.
const rankInSight = ({run, state}: Store): number =>
  run.ranks[run.lanes[state.selected?.lane ?? run.lanes.findIndex(lane => lane.type === 'stream')]?.rank_index ?? 0]!
    .rank;

export function Toolbar({store, stage, actions}: {store: Store; stage: Stage; actions: Actions}) {
  const {run, state} = store;
  // A click switches an entry off and on; with Shift it alone stays on, or all do.
  const mute = (ids: readonly number[], alone: boolean): void => {
    const others = run.kinds.map(kind => kind.id).filter(id => !ids.includes(id)), {muted} = state;
    if (alone) {
      const isAlone = !muted.has(ids[0]!) && others.every(id => muted.has(id));
      return store.change({muted: new Set(isAlone ? [] : others)});
    }
    const next = new Set(muted), isOff = muted.has(ids[0]!);
    for (const id of ids)
      if (isOff) next.delete(id);
      else next.add(id);
    store.change({muted: next});
  };
  return (
    <div class="toolbar">
      <ul class="key">
        {legendOf(run.kinds).map(([kind, name, ids]) => (
          <li>
            <button
              class="plain"
              aria-pressed={!state.muted.has(kind.id)}
              title={t('key.mute')}
              onClick={event => mute(ids, event.shiftKey)}>
              <i style={{background: kind[store.theme].fill}} class={kind.group === 'weight' ? 'hatched' : ''} />
              {name}
            </button>
          </li>
        ))}
        {(run.chunks ?? 0) > 1 && (
          <li class="chunks">
            {chunkTints(run.kinds, run.chunks!, store.theme).map(fill => <i style={{background: fill}} />)}
            {t('chart.chunks', Array.from({length: Math.min(run.chunks!, CHUNK_TINTS)}, (_, i) => i).join(', '))}
          </li>
        )}
        <li>
          <i class="idle" />
          {t('key.idle')}
        </li>
        {stage.tiles.error && <li class="error" role="alert">{stage.tiles.error}</li>}
      </ul>
      <button class="search" onClick={() => actions.open('search')} title={t('cmd.search')}>
        <span>{t('head.search')}</span> <kbd>/</kbd>
      </button>
      {run.groupings.length > 0 && (
        <label class="choice">
          {t('head.group')}
          <select
            id="grouping"
            value={state.grouping}
            onChange={event => store.change({grouping: event.currentTarget.value as State['grouping']})}>
            <option value="none">{t('group.none')}</option>
            {run.groupings.map((one: Grouping) => <option value={one}>{t(`group.by.${one}`)}</option>)}
          </select>
        </label>
      )}
      {run.flows && (
        <button
          class="pill"
          id="flows"
          aria-pressed={state.flows}
          onClick={() => store.change({flows: !store.state.flows})}>
          {t('head.flows')}
        </button>
      )}
      {!REPORT && state.graphs && (
        <button
          class="pill"
          id="graphs"
          aria-pressed={rankOfGraphs(state.query) !== null}
          title={t('query.graphs.help')}
          onClick={() =>
            store.change({query: rankOfGraphs(state.query) === null ? graphQuery(rankInSight(store)) : ''})}>
          {t('head.graphs')}
        </button>
      )}
      {run.whole && (
        <button
          class="pill"
          id="scenes"
          aria-pressed={state.scene !== null}
          title={t('evidence.help')}
          onClick={() => actions.evidence(1)}>
          {t('evidence.lane')} <kbd>E</kbd>
        </button>
      )}
      {state.hidden.size > 0 && (
        <button
          class="pill"
          id="hidden"
          onClick={() => store.change({hidden: new Set()})}
          title={t('cmd.showHidden', state.hidden.size)}>
          {t('head.hidden', state.hidden.size)}
        </button>
      )}
      <button class="pill" id="fit" onClick={() => store.jump(store.home)} title={t('cmd.all')}>{t('head.all')}</button>
      {!REPORT && (
        <button class="pill" id="perfetto" onClick={actions.perfetto} title={t('cmd.perfetto')}>Perfetto</button>
      )}
    </div>
  );
}
