// Shows calls by call path: as a flame graph, as a sandwich of one function between its callers and callees, and from
// the top down. It shows all ranks, some ranks, or a comparison of two sides.
import {fileColour} from '../shell/file_colour';
import {h, styled, type Child} from '../../dom';
import {duration, grouped, percent} from '../../format';
import {currentLang, t} from '../../i18n/i18n';
import {makeTextTip} from '../../views/text_tip';
import {failure, working} from '../answers/working';
import {listOf, type Paint} from '../shell/api';
import type {Page, Shell} from '../shell/page';
import {plainQuery} from '../shell/route';
import {functionOf, functionsOf, isPerStep, keyText, KINDS, loadCalls, nodeOfKey, ranksOf, sandwichOf, treeOf,
  type CallArea, type Calls, type Clock, type FrameKind, type Ranks, type Tree} from './calls';
import {makeFlame, type Flame, type FlameLook} from './chart';
import {firstRows, functionsTable, makeTreeTable, type Sort, type TableLook} from './table';

const VIEWS = ['flame', 'sandwich', 'tree'] as const;
type View = typeof VIEWS[number];
const GROUPS: Record<FrameKind, string> = {root: '', python: 'python', operator: 'operator', annotation: 'annotation',
  runtime: 'runtime', device: 'computing', other: 'other', communication: 'communication', memory: 'memory', rest: ''};

interface Look {
  view: View;
  clock: Clock;
  a: Ranks;
  b: Ranks;
  root: string;
  chosen: string;
  fn: string;
  query: string;
  folds: boolean;
  sort: Sort;
  lanes: string; // an area of the timeline; "": all
  window: string; // "t0,t1"; "": the whole run
  thread: string; // its name; "": all threads
}
const FIRST: Look = {view: 'flame', clock: 'host', a: 'all', b: '', root: '', chosen: '', fn: '', query: '',
  folds: true, sort: 'total', lanes: '', window: '', thread: ''};
const MAX_THREADS = 60;

// A text, or /an expression/; null: nothing is searched for, or the expression is invalid.
function tester(query: string): ((name: string) => boolean) | null {
  const regex = /^\/(.+)\/$/.exec(query.trim());
  try {
    if (regex) {
      const found = new RegExp(regex[1]!, 'i');
      return name => found.test(name);
    }
  } catch {
    return null;
  }
  const text = query.trim().toLowerCase();
  return text === '' ? null : name => name.toLowerCase().includes(text);
}

export function makeFlamePage(shell: Shell): Page {
  const {run, api} = shell, tip = makeTextTip();
  const title = h('h1', {tabindex: -1, class: 'live'}), picks = h('div', {class: 'flame-tools'}),
    said = h('p', {class: 'quiet flame-said'}), detail = h('div', {class: 'flame-detail', role: 'status'}),
    body = h('div', {class: 'flame-body'});
  const search = h('input', {type: 'search', class: 'flame-search', spellcheck: 'false', autocomplete: 'off'}),
    found = h('span', {class: 'quiet flame-found', role: 'status'});
  const element = h('main', {class: 'sheet flame'}, title, h('div', {class: 'flame-head'}, picks, search, found), said,
    detail, body, tip.element);
  let calls: Calls | null = null, wrong: unknown = null, asked = false, loaded = '', visible = false,
    look: Look = {...FIRST}, rows = firstRows;
  let tree: Tree | null = null, treeKey = '', root = 0, chosen = 0, matches: Set<number> | null = null;

  const flame = makeFlame(tip, {choose, zoom, search: () => search.focus(), step, out});
  const callers = makeFlame(tip, useOf(() => up)), callees = makeFlame(tip, useOf(() => down)), table = makeTreeTable();
  let up: Tree | null = null, down: Tree | null = null;
  // In the sandwich a frame that is chosen becomes the function in its middle.
  function useOf(of: () => Tree | null) {
    const pick = (node: number): void => {
      const from = of();
      if (from && node > 0) chooseFunction(functionOf(from, node));
    };
    return {choose: pick, zoom: pick, search: () => search.focus(), step: () => undefined, out: () => undefined};
  }

  const nameOf = (frame: number, kind: number): string => (KINDS[kind] === 'rest' ? t('flame.rest', percentCut())
    : KINDS[kind] === 'root' ? t('flame.root') : calls!.frames[frame]!);
  const percentCut = (): string => `${(calls!.cutShare * 100).toPrecision(2)}\u202f%`;
  const nodeName = (of: Tree) => (node: number): string => nameOf(of.frame[node]!, of.kind[node]!);
  function paintOf(kind: FrameKind, name = ''): Paint {
    const dark = shell.theme === 'dark', own = kind === 'python' ? fileColour(name, dark) : null;
    if (own) return {fill: own, text: run.palette[shell.theme].ink};
    const group = GROUPS[kind], known = run.kinds.find(one => one.group === group);
    return known ? known[shell.theme] : {fill: run.palette[shell.theme].idle2, text: run.palette[shell.theme].ink};
  }
  const compared = (): boolean => look.b !== '';
  const areaKey = (): string => [look.lanes, look.window, look.thread].join(' ');
  const threads = (): Map<string, number[]> => {
    const found = new Map<string, number[]>();
    for (const {name, type, id, slices} of run.lanes)
      if (type === 'thread' && slices > 0) found.set(name, [...found.get(name) ?? [], id]);
    return found;
  };
  function areaOf(): CallArea {
    const [t0, t1] = look.window.split(',').map(Number), lanes = look.thread
      ? listOf(threads().get(look.thread) ?? []) : look.lanes;
    return {...(lanes ? {lanes} : {}), ...(look.window ? {t0, t1} : {})};
  }

  // ---- what is chosen ----
  function rebuild(): void {
    if (!calls) return;
    const a = ranksOf(calls, look.a), b = look.b === '' ? [] : ranksOf(calls, look.b),
      key = `${look.clock} ${look.a} ${look.b}`;
    if (!tree || key !== treeKey) tree = treeOf(calls, look.clock, a, b);
    treeKey = key;
    const place = (text: string): number => (text === '' ? 0 : Math.max(0, nodeOfKey(tree!, text)));
    root = place(look.root);
    chosen = place(look.chosen);
    const test = tester(look.query);
    matches = test
      ? new Set([...tree.key.keys()].filter(n => n > 0 && tree!.weight[n]! > 0 && test(nodeName(tree!)(n)))) : null;
  }
  function change(patch: Partial<Look>, jumped = false): void {
    look = {...look, ...patch};
    if (areaKey() !== loaded) ask();
    rebuild();
    draw();
    shell.moved(jumped);
  }
  function sayNode(node: number): void {
    if (!tree || node === 0) return;
    shell.say(
      [nodeName(tree)(node), duration(tree.total.a[node]!), percent(tree.total.a[node]! / (tree.total.a[0]! || 1))]
        .join(', '),
    );
  }
  function choose(node: number): void {
    change({chosen: node === 0 ? '' : keyText(tree!, node)});
    sayNode(node);
  }
  function zoom(node: number): void {
    change({root: node === 0 ? '' : keyText(tree!, node), chosen: node === 0 ? '' : keyText(tree!, node)}, true);
  }
  function out(): void {
    zoom(root === 0 ? 0 : tree!.parent[root]!);
  }
  function step(by: number): void {
    if (!tree || !matches || matches.size === 0) return;
    const list = [...matches].sort((x, y) => tree!.weight[y]! - tree!.weight[x]! || x - y), at = list.indexOf(chosen);
    const next = list[(at + by + list.length + (at < 0 && by < 0 ? 1 : 0)) % list.length]!;
    let inside = next;
    while (inside !== root && inside !== 0) inside = tree.parent[inside]!;
    change({chosen: keyText(tree, next), ...(inside === root ? {} : {root: ''})});
    sayNode(next);
  }
  function chooseFunction(id: number): void {
    const one = functionsOf(tree!).get(id);
    if (one) change({view: 'sandwich', fn: keyText(tree!, one.nodes[0]!)}, true);
  }

  // ---- words ----
  const side = (which: Ranks): string => {
    const own = !which.startsWith('other'), number = which.replace(/^other:?/, ''),
      count = ranksOf(calls!, which).length;
    const name = number === '' || number === 'all'
      ? (count === 1 ? t('rank', calls!.ranks[ranksOf(calls!, which)[0]!]!.rank) : t('flame.ranks.all', count))
      : t('rank', number);
    return calls!.ranks.some(rank => rank.other) ? `${t(own ? 'flame.run.a' : 'flame.run.b')} · ${name}` : name;
  };
  function lines(of: Tree) {
    return (node: number, folded: number): string[] => {
      const whole = of.total.a[0]! || 1,
        out = [
          nodeName(of)(node),
          t('flame.tip', duration(of.total.a[node]!), percent(of.total.a[node]! / whole), duration(of.self.a[node]!),
            countOf(of.calls.a[node]!)),
        ];
      if (compared())
        out.push(t('flame.tip.b', duration(of.total.b[node]!), duration(of.self.b[node]!), countOf(of.calls.b[node]!)),
          t('flame.tip.change', signed(of.total.b[node]! - of.total.a[node]!)));
      if (folded > 0) out.push(t(folded === 1 ? 'flame.folded.one' : 'flame.folded', folded));
      return out;
    };
  }
  const signed = (ns: number): string => `${ns < 0 ? '−' : '+'}${duration(Math.abs(ns))}`;
  const countOf = (value: number): string => (Number.isInteger(value) ? grouped(value) : value.toFixed(1));

  // ---- drawing ----
  function select(name: string, words: string, value: string, options: [string, string][],
    pick: (value: string) => void): HTMLElement
  {
    const list = h('select', {name},
      ...options.map(([id, text]) => h('option', {value: id, selected: id === value}, text)));
    list.addEventListener('change', () => pick(list.value));
    return h('label', {class: 'choice'}, words, list);
  }
  function sides(): [string, string][] {
    const own = calls!.ranks.filter(rank => !rank.other), other = calls!.ranks.filter(rank => rank.other),
      options: [string, string][] = [];
    for (const [list, prefix] of [[own, ''], [other, 'other']] as const) {
      if (list.length === 0) continue;
      options.push([prefix || 'all', side(prefix || 'all')]);
      if (list.length > 1) {
        for (const {rank} of list)
          options.push([
            prefix ? `${prefix}:${rank}` : String(rank),
            side(prefix ? `${prefix}:${rank}` : String(rank)),
          ]);
      }
    }
    return options;
  }
  function drawTools(): void {
    title.textContent = t('page.flame');
    search.placeholder = t('flame.search');
    search.setAttribute('aria-label', t('flame.search'));
    if (document.activeElement !== search) search.value = look.query;
    const views = h('div', {class: 'views', role: 'group', 'aria-label': t('flame.views')},
      ...VIEWS.map(view =>
        h('button', {'aria-pressed': String(look.view === view), 'data-view': view, click: () =>
          change({view, ...(view === 'sandwich' && look.chosen !== '' ? {fn: look.chosen} : {})}, true)},
          t(`flame.view.${view}`))
      ));
    const options = sides(), at = document.activeElement;
    const busiest = [...threads()].map(([name, ids]) =>
      [name, ids.reduce((sum, id) => sum + run.lanes[id]!.slices, 0)] as const
    ).sort((x, y) => y[1] - x[1]).slice(0, MAX_THREADS).map(([name]): [string, string] => [name, name]);
    // A replaced control keeps the focus of the old one.
    const held = !(at instanceof HTMLElement) || !picks.contains(at) ? ''
      : at.dataset['view'] ? `[data-view=${at.dataset['view']}]` : `[name=${at.getAttribute('name')}]`;
    picks.replaceChildren(
      ...[
        views,
        select('clock', t('flame.clock'), look.clock, [['host', t('flame.clock.host')], [
          'device',
          t('flame.clock.device'),
        ]], value => change({clock: value as Clock})),
        options.length > 1 && select('a', compared() ? 'A' : t('flame.of'), look.a, options, a => change({a})),
        options.length > 1 &&
        select('b', t('flame.against'), look.b, [['', t('flame.against.none')], ...options], b => change({b})),
        !REPORT && !compared() && threads().size > 1 && look.lanes === '' &&
        select('thread', t('flame.thread'), look.thread, [['', t('flame.thread.all')], ...busiest],
          thread => change({thread, root: '', chosen: '', fn: ''})),
        look.view === 'flame' &&
        h('label', {class: 'choice'},
          h('input', {type: 'checkbox', name: 'folds', checked: look.folds,
            change: (event: Event) => change({folds: (event.target as HTMLInputElement).checked})}), t('flame.folds')),
      ].filter((one): one is HTMLElement => !!one),
    );
    if (held) picks.querySelector<HTMLElement>(held)?.focus();
  }
  function drawSaid(): void {
    const a = ranksOf(calls!, look.a), b = look.b === '' ? [] : ranksOf(calls!, look.b), whole = tree!.total;
    const parts: string[] = [
      compared() ? t('flame.said.two', side(look.a), duration(whole.a[0]!), side(look.b), duration(whole.b[0]!))
        : t(look.clock === 'host' ? 'flame.said.host' : 'flame.said.device', duration(whole.a[0]!), side(look.a)),
    ];
    if (Math.max(a.length, b.length) > 1) parts.push(t('flame.said.mean'));
    if (isPerStep(calls!, a, b)) parts.push(t('flame.said.step'));
    if (compared() && look.view !== 'tree') parts.push(t('flame.said.colours'));
    if (calls!.leftOut > 0) parts.push(t('flame.said.cut', grouped(calls!.leftOut), percentCut()));
    if (!compared() && tree!.kind.some(kind => KINDS[kind] === 'python')) parts.push(t('flame.said.files'));
    const [t0, t1] = look.window.split(',').map(Number);
    if (look.window) parts.push(t('flame.said.area', duration(t0!), duration(t1!)));
    said.replaceChildren(parts.join(currentLang() === 'zh' ? '' : ' '), ...(areaKey().trim() === '' ? []
      : [
        ' ',
        h('button', {class: 'plain link', id: 'flame-all',
          click: () => change({lanes: '', window: '', thread: '', root: '', chosen: '', fn: ''}, true)},
          t('flame.whole')),
      ]));
    let covered = 0; // of the outermost matches: nothing twice
    if (matches) {
      for (const node of matches) {
        let above = tree!.parent[node]!;
        while (above !== 0 && !matches.has(above)) above = tree!.parent[above]!;
        if (above === 0) covered += tree!.weight[node]!;
      }
    }
    found.textContent = matches ? t('flame.found', grouped(matches.size), percent(covered / (tree!.weight[0]! || 1)))
      : '';
  }
  function drawDetail(): void {
    const of = tree!, node = look.view === 'sandwich' ? 0 : chosen;
    detail.hidden = look.view === 'sandwich' || (look.view === 'tree' && node === 0);
    if (node === 0) return detail.replaceChildren(h('span', {class: 'quiet flame-hint'}, t('flame.detail.none')));
    const [name, ...rest] = lines(of)(node, 0), kind = KINDS[of.kind[node]!]!;
    detail.replaceChildren(
      ...[
        styled(h('i', {class: 'swatch', 'aria-hidden': 'true'}), {background: paintOf(kind, name).fill}),
        h('b', {title: name}, name!),
        ...rest.map(line => h('span', {}, line)),
        h('span', {class: 'flame-links'}, look.view === 'flame' && node !== root &&
          h('button', {class: 'plain link', click: () => zoom(node)}, t('flame.zoom')),
          look.view === 'flame' && root !== 0 &&
            h('button', {class: 'plain link', click: () => zoom(0)}, t('flame.whole')), kind !== 'rest' &&
          h('button', {class: 'plain link', click: () => chooseFunction(functionOf(of, node))}, t('flame.callers')),
          kind !== 'rest' &&
            h('a', {href: shell.href('timeline', {query: plainQuery(new URLSearchParams({lit: nodeName(of)(node)}))})},
              t('flame.timeline'))),
      ].filter((one): one is HTMLElement => !!one),
    );
  }
  const flameLook = (of: Tree, more: Partial<FlameLook>): FlameLook => ({tree: of, root: 0, chosen: 0, matches: null,
    compared: compared(), folds: false, upward: false, name: nodeName(of),
    paint: node => paintOf(KINDS[of.kind[node]!]!, nodeName(of)(node)), say: lines(of),
    saySmall: count => t('flame.small', grouped(count)), label: '', ...more});
  function draw(): void {
    if (!visible) return;
    tip.hide();
    if (wrong) return body.replaceChildren(failure(wrong, ask));
    if (!calls || !tree) {
      title.textContent = t('page.flame');
      return body.replaceChildren(working(t('flame.working'), null));
    }
    drawTools();
    drawSaid();
    drawDetail();
    body.dataset['view'] = look.view;
    const put = (...children: Child[]): void => {
      if ([...body.children].length !== children.length || children.some((child, i) => body.children[i] !== child))
        body.replaceChildren(...children.filter((one): one is Node => !!one));
    };
    if (tree.weight[0]! <= 0) return put(h('p', {class: 'quiet'}, t('flame.none')));
    const kinds: TableLook = {tree, compared: compared(), matches,
      matchFunction: tester(look.query) ? (frame, kind) => tester(look.query)!(nameOf(frame, kind)) : null,
      name: nameOf, colour: kind => paintOf(KINDS[kind]!).fill};
    if (look.view === 'flame') {
      put(flame.element);
      flame.draw(flameLook(tree, {root, chosen, matches, folds: look.folds, label: t('flame.aria', run.title)}));
    } else if (look.view === 'tree') {
      put(table.element);
      table.draw(kinds, chosen, choose);
    } else drawSandwich(kinds);
  }
  function drawSandwich(kinds: TableLook): void {
    const all = functionsOf(tree!), at = look.fn === '' ? -1 : nodeOfKey(tree!, look.fn),
      first = [...all.values()].sort((x, y) => Math.max(...y.self) - Math.max(...x.self) || x.id - y.id)[0];
    const one = all.get(at > 0 ? functionOf(tree!, at) : -1) ?? first;
    if (!one) return body.replaceChildren(h('p', {class: 'quiet'}, t('flame.none')));
    const list = functionsTable(kinds, {chosen: one.id, sort: look.sort, rows, pick: chooseFunction,
      sortBy: sort => change({sort}), more: () => {
        rows += 1000;
        draw();
      }});
    ({callers: up, callees: down} = sandwichOf(calls!, tree!, one, compared()));
    const whole = tree!.total.a[0]! || 1, scrolled = body.querySelector('.flame-table')?.scrollTop ?? 0,
      held = (document.activeElement as HTMLElement | null)?.dataset['function'];
    const heading = h('div', {class: 'flame-function'},
      styled(h('i', {class: 'swatch', 'aria-hidden': 'true'}), {background: paintOf(KINDS[one.kind]!).fill}),
      h('h2', {}, nameOf(one.frame, one.kind)),
      h('p', {},
        t('flame.tip', duration(one.total[0]), percent(one.total[0] / whole), duration(one.self[0]),
          countOf(one.calls[0])), compared()
        ? ` · B: ${t('flame.tip.b', duration(one.total[1]), duration(one.self[1]), countOf(one.calls[1]))} · ${
          t('flame.tip.change', signed(one.total[1] - one.total[0]))
        }` : ''));
    body.replaceChildren(list,
      h('div', {class: 'flame-sandwich'}, heading, h('h3', {}, t('flame.callers.title')), callers.element,
        h('h3', {}, t('flame.callees.title')), callees.element));
    list.scrollTop = scrolled;
    if (held) list.querySelector<HTMLElement>(`[data-function="${held}"]`)?.focus({preventScroll: true});
    const draws = (chart: Flame, of: Tree, upward: boolean): void =>
      chart.draw(
        flameLook(of, {root: of.children[0]![0] ?? 0, upward, matches: matched(of),
          label: t(upward ? 'flame.callers.title' : 'flame.callees.title')}),
      );
    draws(callers, up, true);
    draws(callees, down, false);
    // The function itself is next to its own name: the callers' chart ends there.
    callers.element.scrollTop = callers.element.scrollHeight;
  }
  const matched = (of: Tree): Set<number> | null => {
    const test = tester(look.query);
    return test && new Set([...of.key.keys()].filter(n => n > 0 && test(nodeName(of)(n))));
  };
  function ask(): void {
    const mine = areaKey();
    asked = true;
    loaded = mine;
    wrong = calls = tree = null;
    loadCalls(api, areaOf()).then(made => {
      if (mine !== loaded) return;
      calls = made;
      checked();
      rebuild();
    }, (error: unknown) => {
      if (mine === loaded) wrong = error;
    }).finally(draw);
  }
  // Parts of the address that the run lacks are reported.
  function checked(): void {
    const sound = (which: Ranks, otherwise: Ranks): Ranks => {
      if (which === '' || ranksOf(calls!, which).length > 0) return which;
      shell.lost(which);
      return otherwise;
    };
    look = {...look, a: sound(look.a, 'all'), b: sound(look.b, '')};
    rebuild();
    for (const key of [look.root, look.chosen, look.fn])
      if (key !== '' && nodeOfKey(tree!, key) < 0) shell.lost(`at=${key}`);
  }
  let typing = 0;
  search.addEventListener('input', () => {
    clearTimeout(typing);
    typing = window.setTimeout(() => change({query: search.value}), 120);
  });
  search.addEventListener('keydown', event => {
    if (event.key === 'Enter') {
      clearTimeout(typing);
      look = {...look, query: search.value};
      rebuild();
      step(event.shiftKey ? -1 : 1);
      draw();
    } else if (event.key === 'Escape') {
      search.value = '';
      change({query: ''});
      flame.focus();
    } else return;
    event.preventDefault();
  });
  document.addEventListener('keydown', event => {
    if (shell.page !== 'flame' || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey ||
      event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement ||
      document.querySelector('dialog[open]')) return;
    if (event.key === '/') search.focus();
    else if (event.code === 'KeyN') step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  });
  Object.assign((window as {stageline?: object}).stageline ??= {}, {flame: () =>
    calls && tree && {
      view: look.view,
      nodes: tree.count,
      ranks: calls.ranks,
      chosen,
      root,
      matches: matches?.size ?? 0,
      leftOut: calls.leftOut,
      self: [...tree.self.a],
      total: tree.total.a[0],
      totalB: tree.total.b[0],
      boxes: (look.view === 'sandwich' ? callees : flame).boxes().map(box => ({small: box.small, last: box.last,
        kind: KINDS[(look.view === 'sandwich' ? down! : tree!).kind[box.last]!],
        name: nodeName(look.view === 'sandwich' ? down! : tree!)(box.last), depth: box.depth, x: box.x,
        width: box.width, folded: Math.max(box.nodes.length - 1, 0)})
      ),
      place: (name: string) => {
        const box = flame.boxes().find(one => nodeName(tree!)(one.last) === name), at = box && flame.place(box.last);
        return at ? {x: at.x + at.width / 2, y: at.y + at.height / 2} : null;
      },
    }});

  return {
    element,
    show(route) {
      visible = true;
      if (route) {
        const query = new URLSearchParams(route.query), text = (key: string, first = ''): string =>
          query.get(key) ?? first;
        look = {...FIRST, view: VIEWS.find(view => view === route.rest) ?? 'flame',
          clock: text('time') === 'device' ? 'device' : 'host', a: text('a', 'all'), b: text('b'), root: text('at'),
          chosen: text('sel', text('at')), fn: text('fn'), query: text('q'), folds: text('fold') !== '0',
          sort: (['self', 'total', 'calls', 'change', 'name'] as const).find(one => one === text('sort')) ?? 'total'};
        if (route.rest !== '' && look.view !== route.rest) shell.lost(route.rest);
        const {lanes, window, thread} = {lanes: text('lanes'), window: text('v'), thread: text('thread')};
        if (!REPORT)
          look = {...look, lanes, window: /^-?[\d.]+,[\d.]+$/.test(window) ? window : '',
            thread: threads().has(thread) ? thread : ''};
        if (asked && areaKey() !== loaded) ask();
        if (calls) checked();
      }
      if (!asked) ask();
      draw();
    },
    hide() {
      visible = false;
      tip.hide();
    },
    address() {
      const query = new URLSearchParams(), put = (key: string, value: string, first = ''): void => {
        if (value !== first) query.set(key, value);
      };
      put('time', look.clock, 'host');
      put('a', look.a, 'all');
      put('b', look.b);
      put('at', look.root);
      put('sel', look.chosen === look.root ? '' : look.chosen);
      if (look.view === 'sandwich') put('fn', look.fn);
      put('q', look.query);
      put('fold', look.folds ? '' : '0');
      put('sort', look.sort, 'total');
      put('lanes', look.lanes);
      put('v', look.window);
      put('thread', look.thread);
      return {rest: look.view === 'flame' ? '' : look.view, query: plainQuery(query)};
    },
    restyle: draw,
    keys: () => [
      {keys: '← → ↑ ↓', does: t('flame.keys.move')},
      {keys: 'Enter', does: t('flame.keys.zoom')},
      {keys: 'Esc', does: t('flame.keys.out')},
      {keys: '0', does: t('flame.keys.whole')},
      {keys: '/', does: t('flame.search')},
      {keys: 'N ⇧N', does: t('flame.keys.next')},
    ],
  };
}
