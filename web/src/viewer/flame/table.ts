// The tables of calls: every function (the sandwich's left side), and the tree from the top down. Rows beyond the first
// come when someone asks for them.
import {t} from '../../i18n/i18n';
import {h, styled, type Child} from '../../dom';
import {duration, grouped, percent} from '../../format';
import {functionsOf, type Functions, type Tree} from './calls';

// The share of the whole that a child has to have to be opened by itself.
const FIRST_ROWS = 200, FIRST_CHILDREN = 40, MOST_LINES = 3000, OPENED = 0.5;

export interface TableLook {
  tree: Tree;
  compared: boolean;
  matches: ReadonlySet<number> | null;
  matchFunction: ((frame: number, kind: number) => boolean) | null;
  name(frame: number, kind: number): string;
  colour(kind: number): string;
}
export type Sort = 'self' | 'total' | 'calls' | 'change' | 'name';

const signed = (ns: number): string => `${ns < 0 ? '−' : '+'}${duration(Math.abs(ns))}`;
const count = (
  value: number,
): string => (Number.isInteger(value) || value >= 100 ? grouped(Math.round(value)) : value.toFixed(1));

// Total, its share, self, calls; of two sides A's, B's and what is between them.
function numbers(look: TableLook, self: [number, number], total: [number, number], calls: [number, number],
  whole: number): HTMLElement[]
{
  const cell = (text: string, kind = ''): HTMLElement => h('td', {class: kind}, text),
    bar = styled(h('i', {'aria-hidden': 'true'}), {
      width: `${Math.min(100, (whole > 0 ? total[0] / whole : 0) * 100)}%`,
    });
  if (!look.compared)
    return [
      cell(duration(total[0])),
      h('td', {class: 'share'}, bar, h('span', {}, percent(whole > 0 ? total[0] / whole : 0))),
      cell(duration(self[0])),
      cell(count(calls[0])),
    ];
  const change = total[1] - total[0];
  return [
    cell(duration(total[0])),
    cell(duration(total[1])),
    cell(signed(change), change > 0 ? 'slower' : change < 0 ? 'faster' : ''),
    cell(signed(self[1] - self[0])),
    cell(`${count(calls[0])} → ${count(calls[1])}`),
  ];
}
const swatch = (colour: string): HTMLElement =>
  styled(h('i', {class: 'swatch', 'aria-hidden': 'true'}), {background: colour});

// ---- every function ---------------------------------------------------------------------------------------------

export interface FunctionsUse {
  chosen: number;
  sort: Sort;
  rows: number;
  pick(id: number): void;
  sortBy(sort: Sort): void;
  more(): void;
}

export function functionsTable(look: TableLook, use: FunctionsUse): HTMLElement {
  const whole = look.tree.total.a[0]!, change = (one: Functions): number => one.total[1] - one.total[0];
  const found = [...functionsOf(look.tree).values()].filter(one =>
    !look.matchFunction || look.matchFunction(one.frame, one.kind)
  );
  const value = (
    one: Functions,
  ): number => (use.sort === 'self' ? Math.max(...one.self)
    : use.sort === 'calls' ? one.calls[0] : use.sort === 'change' ? Math.abs(change(one)) : Math.max(...one.total));
  found.sort((x, y) =>
    (use.sort === 'name' ? look.name(x.frame, x.kind).localeCompare(look.name(y.frame, y.kind))
      : value(y) - value(x)) || x.id - y.id
  );
  const head = (sort: Sort | null, words: string, text = false): HTMLElement =>
    h('th', {scope: 'col', class: text ? 'text' : '',
      'aria-sort': sort === use.sort ? (sort === 'name' ? 'ascending' : 'descending') : null},
      sort ? h('button', {class: 'plain', click: () => use.sortBy(sort)}, words) : words);
  const heads = look.compared
    ? [
      head('name', t('flame.function'), true),
      head('total', t('flame.total.a')),
      head(null, t('flame.total.b')),
      head('change', t('flame.change')),
      head(null, t('flame.change.self')),
      head('calls', t('flame.calls')),
    ]
    : [
      head('name', t('flame.function'), true),
      head('total', t('flame.total')),
      head(null, t('flame.share')),
      head('self', t('flame.self')),
      head('calls', t('flame.calls')),
    ];
  return h('div', {class: 'flame-table'},
    h('table', {}, h('thead', {}, h('tr', {}, ...heads)),
      h('tbody', {},
        ...found.slice(0, use.rows).map(one =>
          h('tr', {'aria-selected': one.id === use.chosen ? 'true' : null},
            h('th', {class: 'text', scope: 'row'}, swatch(look.colour(one.kind)),
              h('button', {class: 'plain', 'data-function': one.id, title: look.name(one.frame, one.kind), click: () =>
                use.pick(one.id)}, look.name(one.frame, one.kind))),
            ...numbers(look, one.self, one.total, one.calls, whole))
        ))), found.length > use.rows &&
    h('button', {class: 'plain link', click: use.more}, t('flame.more', grouped(found.length - use.rows))),
    found.length === 0 && h('p', {class: 'quiet'}, t('flame.none.match')));
}
export const firstRows = FIRST_ROWS;

// ---- from the top down ------------------------------------------------------------------------------------------

export interface TreeTable {
  element: HTMLElement;
  draw(look: TableLook, chosen: number, choose: (node: number) => void): void;
}

export function makeTreeTable(): TreeTable {
  const element = h('div', {class: 'flame-table'});
  let open = new Set<number>(), wide = new Set<number>(), drawnOf: Tree | null = null;

  // The path on which most time is, until it parts; and the way to what was chosen.
  function openFirst(tree: Tree, chosen: number): void {
    open = new Set([0]);
    wide = new Set();
    for (let node = 0;;) {
      const next = tree.children[node]![0];
      if (next === undefined || tree.weight[next]! < tree.weight[0]! * OPENED) break;
      open.add(node = next);
    }
    for (let node = chosen; node > 0; node = tree.parent[node]!) open.add(tree.parent[node]!);
  }
  return {
    element,
    draw(look, chosen, choose) {
      const {tree} = look, whole = tree.total.a[0]!;
      if (drawnOf !== tree) openFirst(tree, chosen);
      drawnOf = tree;
      const again = (focus?: number): void => {
        this.draw(look, chosen, choose);
        if (focus !== undefined)
          element.querySelector<HTMLElement>(`tr[data-node="${focus}"]`)?.focus({preventScroll: true});
      };
      // With a search those paths alone that lead to what it finds.
      let kept: Set<number> | null = null;
      if (look.matches) {
        kept = new Set();
        for (const match of look.matches)
          for (let node = match; node > 0 && !kept.has(node); node = tree.parent[node]!) kept.add(node);
      }
      const rows: Child[] = [];
      const flip = (node: number): void => {
        if (!open.delete(node)) open.add(node);
        again(node);
      };
      const row = (node: number, depth: number, of: number, at: number): HTMLElement => {
        const has = tree.children[node]!.length > 0, unfolded = open.has(node) || (kept !== null && has),
          name = look.name(tree.frame[node]!, tree.kind[node]!);
        const pair = (from: {a: Float64Array; b: Float64Array}): [number, number] => [from.a[node]!, from.b[node]!];
        const line = h('tr', {role: 'row', tabindex: node === (chosen > 0 ? chosen : tree.children[0]![0]) ? 0 : -1,
          'data-node': node, 'aria-level': depth, 'aria-setsize': of, 'aria-posinset': at + 1,
          'aria-expanded': has ? String(unfolded) : null, 'aria-selected': node === chosen ? 'true' : 'false',
          class: look.matches?.has(node) ? 'match' : '', click: () => choose(node), dblclick: () => has && flip(node)},
          styled(
            h('th', {class: 'text', role: 'rowheader', scope: 'row', title: name},
              h('button', {class: 'plain fold', tabindex: -1, 'aria-hidden': 'true', click: (event: MouseEvent) => {
                event.stopPropagation();
                flip(node);
              }}, has ? (unfolded ? '▾' : '▸') : ''), swatch(look.colour(tree.kind[node]!)), name),
            {'--depth': String(Math.min(depth - 1, 40))},
          ), ...numbers(look, pair(tree.self), pair(tree.total), pair(tree.calls), whole));
        line.addEventListener('keydown', event => {
          const lines = [...element.querySelectorAll<HTMLElement>('tr[data-node]')], here = lines.indexOf(line);
          const to = (next: HTMLElement | undefined): void => {
            if (next) {
              choose(Number(next.dataset['node']));
              element.querySelector<HTMLElement>(`tr[data-node="${next.dataset['node']}"]`)?.focus();
            }
          };
          if (event.key === 'ArrowDown') to(lines[here + 1]);
          else if (event.key === 'ArrowUp') to(lines[here - 1]);
          else if (event.key === 'ArrowRight' && has && !unfolded) flip(node);
          else if (event.key === 'ArrowLeft' && unfolded && has && kept === null) flip(node);
          else if (event.key === 'ArrowLeft') to(lines.find(one => one.dataset['node'] === String(tree.parent[node])));
          else return;
          event.preventDefault();
          event.stopPropagation();
        });
        return line;
      };
      const todo: [node: number, depth: number, of: number, at: number][] = [];
      const below = (node: number, depth: number): void => {
        const all = tree.children[node]!.filter(child => !kept || kept.has(child)),
          list = wide.has(node) ? all : all.slice(0, FIRST_CHILDREN);
        if (all.length > list.length) todo.push([-1 - node, depth, all.length - list.length, 0]);
        for (let i = list.length; i-- > 0;) todo.push([list[i]!, depth, all.length, i]);
      };
      below(0, 1);
      let shown = 0;
      for (let next = todo.pop(); next; next = todo.pop()) {
        const [node, depth, of, at] = next;
        if (node < 0) {
          rows.push(
            h('tr', {role: 'row'},
              h('td', {role: 'gridcell', class: 'text', colspan: look.compared ? 6 : 5},
                styled(h('button', {class: 'plain link', click: () => {
                  wide.add(-1 - node);
                  again();
                }}, t('flame.more', grouped(of))), {'margin-left': `${depth * 16}px`}))),
          );
          continue;
        }
        rows.push(row(node, depth, of, at));
        if (++shown >= MOST_LINES && todo.length > 0) {
          rows.push(
            h('tr', {role: 'row'},
              h('td', {role: 'gridcell', class: 'text quiet', colspan: look.compared ? 6 : 5},
                t('flame.tree.most', grouped(MOST_LINES)))),
          );
          break;
        }
        if (open.has(node) || kept) below(node, depth + 1);
      }
      const heads = look.compared
        ? [
          t('flame.function'),
          t('flame.total.a'),
          t('flame.total.b'),
          t('flame.change'),
          t('flame.change.self'),
          t('flame.calls'),
        ]
        : [t('flame.function'), t('flame.total'), t('flame.share'), t('flame.self'), t('flame.calls')];
      const scrolled = element.scrollTop;
      element.replaceChildren(
        h('table', {role: 'treegrid', 'aria-label': t('flame.tree')},
          h('thead', {},
            h('tr', {role: 'row'},
              ...heads.map((words, i) =>
                h('th', {role: 'columnheader', scope: 'col', class: i === 0 ? 'text' : ''}, words)
              ))), h('tbody', {role: 'rowgroup'}, ...rows)),
        ...(rows.length === 0 ? [h('p', {class: 'quiet'}, t('flame.none.match'))] : []),
      );
      element.scrollTop = scrolled;
    },
  };
}
