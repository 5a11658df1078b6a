// Every action by name, for the palette: what keys can do, and what has no key.
import {t} from '../../i18n/i18n';
import {fit} from '../../chart/viewport';
import {PATH_QUERIES} from '../answers/ask_sql';
import type {Actions} from './actions';
import type {State, Store} from './store';

export interface Command {
  title: string;
  keys?: string;
  run(): void;
}

export function commandsOf(store: Store, actions: Actions): Command[] {
  const {run, state} = store;
  const group = (grouping: State['grouping']) => () => store.change({grouping});
  const commands: (Command | false)[] = [
    {title: t('cmd.all'), keys: '0', run: () => store.jump(store.home)},
    {title: t('cmd.undo'), keys: '⌫', run: () => store.undoView()},
    {title: t('cmd.search'), keys: '/', run: () => actions.open('search')},
    {title: t('cmd.lanes'), keys: 'Ctrl+P', run: () => actions.open('lanes')},
    {title: t('cmd.next'), keys: 'N', run: () => actions.findNext(1)},
    {title: t('cmd.previous'), keys: '⇧N', run: () => actions.findNext(-1)},
    state.lit !== null && {title: t('cmd.unlight'), keys: 'Esc', run: () => store.change({lit: null})},
    {title: t('cmd.mark'), keys: '⇧M', run: () => actions.mark()},
    {title: t('cmd.marks'), run: () => store.change({panel: 'marks'})},
    {title: t('cmd.range'), keys: 'M', run: () => actions.rangeOfSlice()},
    {title: t('cmd.areaAll'), run: () =>
      store.change({
        area: {t0: state.view.t0, t1: state.view.t1,
          lanes: run.lanes.filter(lane => lane.type !== 'counter' && !state.hidden.has(lane.id))
            .map(lane => lane.id)},
        panel: 'area',
      })},
    {title: t('cmd.compare'), keys: 'C', run: () => actions.holdForCompare()},
    {title: t('cmd.alignStart'), keys: 'L', run: () => actions.align('start')},
    {title: t('cmd.alignEnd'), keys: 'R', run: () => actions.align('end')},
    {title: t('evidence.next'), keys: 'E', run: () => actions.evidence(1)},
    state.scene !== null && {title: t('evidence.previous'), keys: '⇧E', run: () => actions.evidence(-1)},
    state.shifts.size > 0 && {title: t('cmd.unalign'), run: () => store.change({shifts: new Map()})},
    run.flows && {title: t('cmd.flows'), keys: 'X', run: () => store.change({flows: !state.flows})},
    {title: t('cmd.panel'), keys: 'Q', run: () => actions.togglePanel()},
    {title: t('cmd.taller'), keys: '+', run: () => actions.rowHeight(1)},
    {title: t('cmd.lower'), keys: '−', run: () => actions.rowHeight(-1)},
    {title: t('cmd.fitRows'), run: () => store.change({rowHeight: 0})},
    {title: t('cmd.foldAll'), run: () => store.change({collapsed: new Set(run.ranks.map((_, i) => `r${i}`))})},
    {title: t('cmd.unfoldAll'), run: () => store.change({collapsed: new Set()})},
    state.hidden.size > 0 &&
    {title: t('cmd.showHidden', state.hidden.size), run: () => store.change({hidden: new Set()})},
    state.pinned.length > 0 && {title: t('cmd.unpinAll'), run: () => store.change({pinned: []})},
    {title: t('cmd.groupNone'), run: group('none')},
    ...run.groupings.map(one => ({title: t(`cmd.group.${one}`), run: group(one)})),
    ...run.steps.slice(0, 200).map((step, i) => ({title: t('cmd.step', step.number),
      ...(i < 9 ? {keys: String(i + 1)} : {}), run: () => store.jump(fit(step.start_ns, step.end_ns))})
    ),
    !REPORT && run.whole && {title: t('cmd.path'), run: () =>
      store.change({query: PATH_QUERIES[
        run.lanes.some(lane => lane.type === 'cells') ? 'pipeline-critical-path' : 'critical-path-analysis'
      ]!})},
    !REPORT && {title: t('cmd.perfetto'), run: () => actions.perfetto()},
    {title: t('cmd.theme'), run: () => actions.toggleTheme()},
    {title: t('cmd.lang'), run: () => actions.toggleLang()},
    {title: t('cmd.help'), keys: '?', run: () => actions.help()},
  ];
  return commands.filter((one): one is Command => one !== false);
}
