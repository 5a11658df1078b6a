// Moving labels: a rank among ranks, a lane among the lanes of its rank. By drag, and with Alt and the arrow keys.
import {t} from '../../i18n/i18n';
import type {DisplayRow} from './layout';
import {rankTitle} from './titles';
import type {Store} from './store';

// Takes `what` out of the order and puts it before or after `beside`.
function moved(order: readonly number[], what: number, beside: number, after: boolean): number[] {
  const rest = order.filter(id => id !== what);
  rest.splice(rest.indexOf(beside) + (after ? 1 : 0), 0, what);
  return rest;
}

const isRank = (row: DisplayRow): boolean => row.kind === 'rank' || row.merged;

export function moveTo(store: Store, row: DisplayRow, target: DisplayRow, after: boolean): boolean {
  if (isRank(row)) {
    if (target.rank < 0 || target.rank === row.rank) return false;
    store.change({rankOrder: moved(store.state.rankOrder, row.rank, target.rank, after)});
    return true;
  }
  if (row.kind !== 'lane' || target.kind !== 'lane' || target.rank !== row.rank || target.lane === row.lane)
    return false;
  store.change({laneOrder: moved(store.state.laneOrder, row.lane, target.lane, after)});
  return true;
}

// The neighbour that a row may change places with, `by` −1 or 1.
function besideOf(store: Store, row: DisplayRow, by: number): DisplayRow | null {
  const {run, state} = store;
  const blank = {...row};
  if (isRank(row)) {
    const same = (index: number): boolean => {
      const [a, b] = [run.ranks[index]!, run.ranks[row.rank]!];
      return state.grouping === 'none' || a[state.grouping] === b[state.grouping];
    };
    const list = state.rankOrder.filter(same), next = list[list.indexOf(row.rank) + by];
    return next === undefined ? null : {...blank, rank: next};
  }
  const list = state.laneOrder.filter(id => run.lanes[id]!.rank_index === row.rank && !state.hidden.has(id));
  const next = list[list.indexOf(row.lane) + by];
  return next === undefined ? null : {...blank, lane: next};
}

export function moveByKey(event: KeyboardEvent, store: Store, row: DisplayRow): void {
  if (!event.altKey || row.kind === 'group' || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return;
  event.preventDefault();
  event.stopPropagation();
  const by = event.key === 'ArrowUp' ? -1 : 1, beside = besideOf(store, row, by);
  if (!beside || !moveTo(store, row, beside, by > 0)) return;
  store.say(
    t(by < 0 ? 'moved.up' : 'moved.down',
      isRank(row) ? rankTitle(store.run.ranks[row.rank]!) : store.run.lanes[row.lane]!.name),
  );
}

const rowOf = new WeakMap<Element, DisplayRow>();

// A press that moves drags the label; where the pointer is let go, a line shows before or after which label it goes.
export function dragLabel(element: HTMLElement, store: Store, row: DisplayRow): void {
  rowOf.set(element, row);
  if (row.kind === 'group') return;
  const under = (event: PointerEvent): {target: DisplayRow; element: Element; after: boolean} | null => {
    const hit = document.elementsFromPoint(event.clientX, event.clientY).map(one => one.closest('.label')).find(one =>
      one &&
      one !== element
    );
    const target = hit && rowOf.get(hit);
    if (!hit || !target) return null;
    const box = hit.getBoundingClientRect();
    return {target, element: hit, after: event.clientY > box.top + box.height / 2};
  };
  element.addEventListener('pointerdown', press => {
    if (press.button !== 0 || (press.target as Element).closest('.icon')) return;
    let moving = false;
    const clear = (): void => {
      for (const one of document.querySelectorAll('.label.before, .label.after'))
        one.classList.remove('before', 'after');
      element.classList.remove('dragged');
    };
    const move = (event: PointerEvent): void => {
      if (!moving && Math.abs(event.clientY - press.clientY) < 5) return;
      moving = true;
      clear();
      element.classList.add('dragged');
      const at = under(event);
      if (at) at.element.classList.add(at.after ? 'after' : 'before');
    };
    const finish = (event: PointerEvent): void => {
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', finish);
      removeEventListener('pointercancel', finish);
      clear();
      if (!moving) return;
      // The press that moved it does not press the button.
      const swallow = (click: Event): void => click.stopPropagation();
      addEventListener('click', swallow, {capture: true});
      setTimeout(() => removeEventListener('click', swallow, {capture: true}), 0);
      const at = event.type === 'pointerup' ? under(event) : null;
      if (at) moveTo(store, row, at.target, at.after);
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', finish);
    addEventListener('pointercancel', finish);
  });
}
