// Every action by name, for the palette: what keys can do, and what has no key.
import {fit} from '../chart/viewport';
import type {Actions} from './actions';
import type {State, Store} from './store';
import {w} from './words';

export interface Command { title: string; keys?: string; run(): void }

export function commandsOf(store: Store, actions: Actions): Command[] {
  const {run, state} = store;
  const group = (grouping: State['grouping']) => () => store.change({grouping});
  const commands: (Command | false)[] = [
    {title: w('cmd.all'), keys: '0', run: () => store.jump(store.home)},
    {title: w('cmd.undo'), keys: '⌫', run: () => store.undoView()},
    {title: w('cmd.search'), keys: '/', run: () => actions.open('search')},
    {title: w('cmd.lanes'), keys: 'Ctrl+P', run: () => actions.open('lanes')},
    {title: w('cmd.next'), keys: 'N', run: () => actions.findNext(1)},
    {title: w('cmd.previous'), keys: '⇧N', run: () => actions.findNext(-1)},
    state.lit !== null && {title: w('cmd.unlight'), keys: 'Esc', run: () => store.change({lit: null})},
    {title: w('cmd.mark'), keys: '⇧M', run: () => actions.mark()},
    {title: w('cmd.marks'), run: () => store.change({panel: 'marks'})},
    {title: w('cmd.range'), keys: 'M', run: () => actions.rangeOfSlice()},
    {title: w('cmd.areaAll'), run: () => store.change({
      area: {t0: state.view.t0, t1: state.view.t1, lanes: run.lanes.filter(lane => lane.type !== 'counter' && !state.hidden.has(lane.id))
          .map(lane => lane.id)}, panel: 'area'})},
    {title: w('cmd.compare'), keys: 'C', run: () => actions.holdForCompare()},
    {title: w('cmd.alignStart'), keys: 'L', run: () => actions.align('start')},
    {title: w('cmd.alignEnd'), keys: 'R', run: () => actions.align('end')},
    {title: w('evidence.next'), keys: 'E', run: () => actions.evidence(1)},
    state.scene !== null && {title: w('evidence.previous'), keys: '⇧E', run: () => actions.evidence(-1)},
    state.shifts.size > 0 && {title: w('cmd.unalign'), run: () => store.change({shifts: new Map()})},
    run.flows && {title: w('cmd.flows'), keys: 'X', run: () => store.change({flows: !state.flows})},
    {title: w('cmd.panel'), keys: 'Q', run: () => actions.togglePanel()},
    {title: w('cmd.taller'), keys: '+', run: () => actions.rowHeight(1)},
    {title: w('cmd.lower'), keys: '−', run: () => actions.rowHeight(-1)},
    {title: w('cmd.fitRows'), run: () => store.change({rowHeight: 0})},
    {title: w('cmd.foldAll'), run: () => store.change({collapsed: new Set(run.ranks.map((_, i) => `r${i}`))})},
    {title: w('cmd.unfoldAll'), run: () => store.change({collapsed: new Set()})},
    state.hidden.size > 0 && {title: w('cmd.showHidden', state.hidden.size), run: () => store.change({hidden: new Set()})},
    state.pinned.length > 0 && {title: w('cmd.unpinAll'), run: () => store.change({pinned: []})},
    {title: w('cmd.groupNone'), run: group('none')},
    ...run.groupings.map(one => ({title: w(`cmd.group.${one}`), run: group(one)})),
    ...run.steps.slice(0, 200).map((step, i) => ({title: w('cmd.step', step.number), ...(i < 9 ? {keys: String(i + 1)} : {}),
                                                  run: () => store.jump(fit(step.start_ns, step.end_ns))})),
    !run.file && {title: w('cmd.perfetto'), run: () => actions.perfetto()},
    {title: w('cmd.theme'), run: () => actions.toggleTheme()},
    {title: w('cmd.lang'), run: () => actions.toggleLang()},
    {title: w('cmd.help'), keys: '?', run: () => actions.help()},
  ];
  return commands.filter((one): one is Command => one !== false);
}
