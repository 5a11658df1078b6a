// Names of groups, ranks and lanes at the left: real buttons over the canvas, only the visible ones. Pinned rows have a
// separate head that does not scroll.
import {h, styled} from '../../dom';
import {currentLang, t} from '../../i18n/i18n';
import {AXIS_HEIGHT, type DisplayRow} from './layout';
import {count} from '../shell/numbers';
import {dragLabel, moveByKey} from './reorder';
import {topOfRows, visibleRows, type Scene} from './scene';
import {toggled} from '../shell/toggled';
import type {Store} from './store';
import {kindOfLane, laneTitle, rankNote, rankTitle} from './titles';

export interface Labels {
  head: HTMLElement;
  body: HTMLElement;
  place(scene: Scene): void;
  rebuild(): void;
}

const ICONS = {
  open: 'M3 4.5 6 7.5 9 4.5',
  closed: 'M4.5 3 7.5 6 4.5 9',
  pin: 'M4.2 1.5h3.6M5 1.5v3.2L3.4 7h5.2L7 4.7V1.5M6 7v3.5',
  hide: 'M2.5 2.5 9.5 9.5M9.5 2.5 2.5 9.5',
};
function icon(path: string): SVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg'),
    line = document.createElementNS(svg.namespaceURI, 'path');
  svg.setAttribute('viewBox', '0 0 12 12');
  svg.setAttribute('aria-hidden', 'true');
  line.setAttribute('d', path);
  svg.append(line);
  return svg as SVGElement;
}

// Moves from the name to the row's buttons and back: they are not stops of Tab, which would be three for each of a
// thousand lanes.
function alongTools(event: KeyboardEvent): void {
  if (event.altKey || (event.key !== 'ArrowRight' && event.key !== 'ArrowLeft')) return;
  const label = (event.currentTarget as HTMLElement).closest('.label')!,
    stops = [...label.querySelectorAll<HTMLElement>('.name, .tools button')];
  const next = stops[stops.indexOf(event.target as HTMLElement) + (event.key === 'ArrowRight' ? 1 : -1)];
  if (!next) return;
  event.preventDefault();
  event.stopPropagation();
  next.focus();
}

export function makeLabels(store: Store): Labels {
  const head = h('div', {class: 'labels head', role: 'list'}), body = h('div', {class: 'labels body', role: 'list'});
  let shown = new Map<string, HTMLElement>(), stale = true, gutter = 0, placed: Partial<Scene> = {};

  const button = (name: string, path: string, action: () => void, pressed?: boolean): HTMLElement =>
    h('button', {class: 'icon', tabindex: -1, title: name, 'aria-label': name,
      'aria-pressed': pressed === undefined ? null : String(pressed), click: (event: Event) => {
        event.stopPropagation();
        action();
      }}, icon(path) as unknown as Node);

  function make(row: DisplayRow): HTMLElement {
    const {run, state} = store, lane = row.kind === 'lane' ? run.lanes[row.lane]! : null;
    const small = row.h < 11, folds = row.kind !== 'lane';
    const strong = row.kind === 'group' ? groupTitle(row)
      : lane ? laneTitle(store, lane, row.merged) : rankTitle(run.ranks[row.rank]!);
    const weak = row.kind === 'group' ? row.count === 1 ? t('ranks.one') : t('ranks', row.count) : lane
      ? (row.merged ? rankNote(store, row.rank) : kindOfLane(lane)) : rankNote(store, row.rank);
    const toggle = (): void => store.change({collapsed: toggled(state.collapsed, row.key)});
    const name = h('button', {class: 'name', 'aria-expanded': folds ? String(!row.collapsed) : null,
      'data-key': row.key, title: [
        strong,
        weak,
        lane ? t('label.slices', count(lane.slices))
          : '',
        lane && lane.hidden > 0 && t('label.hidden.slices', count(lane.hidden)),
        lane?.clipped && t('label.clipped', count(lane.clipped)),
      ].filter(Boolean).join(' · '), click: folds ? toggle : () => store.say(strong),
      keydown: (event: KeyboardEvent) => {
        alongTools(event);
        moveByKey(event, store, row);
      }}, folds && icon(row.collapsed ? ICONS.closed : ICONS.open) as unknown as Node, h('b', {}, small ? '' : strong),
      ' ', small || row.h < 11 ? null : h('span', {}, weak));
    const tools: Node[] = [];
    if (lane && row.h >= 11) {
      if (row.more > 0 || state.expanded.has(lane.id))
        tools.push(
          h('button', {class: 'icon rows', tabindex: -1, title: t('label.rows'),
            'aria-label': `${row.more > 0 ? `+${row.more}` : '−'} ${t('label.rows')}`, click: () =>
              store.change({expanded: toggled(state.expanded, lane.id)})}, row.more > 0 ? `+${row.more}` : '−'),
        );
      const pinned = state.pinned.includes(lane.id);
      tools.push(button(t(pinned ? 'label.unpin' : 'label.pin'), ICONS.pin, () =>
        store.change(
          {pinned: pinned ? state.pinned.filter(id =>
            id !== lane.id
          ) : [...state.pinned, lane.id]},
        ), pinned));
      tools.push(button(t('label.hide'), ICONS.hide, () => {
        store.change({hidden: toggled(state.hidden, lane.id), pinned: state.pinned.filter(id => id !== lane.id)});
        store.say(t('label.hidden', strong));
      }));
    }
    // The name is the row's one stop; Left and Right go through its buttons.
    const element = h('div', {
      class: `label ${row.kind}${small ? ' small' : ''}${row.merged ? ' merged' : ''}${
        lane && state.scene?.lanes.has(lane.id) ? ' guilty' : ''
      }`,
      role: 'listitem',
    }, name, tools.length > 0 && h('span', {class: 'tools', keydown: alongTools}, ...tools));
    styled(element, {top: `${row.y}px`, height: `${row.h}px`,
      'padding-left': `${gutter < 120 ? 6 + row.level * 5 : 10 + row.level * 14}px`,
      '--row': `${row.kind === 'lane' ? row.h / Math.max(row.rows, 1) : row.h}px`});
    dragLabel(element, store, row);
    return element;
  }

  return {
    head,
    body,
    rebuild() {
      stale = true;
    },
    place(scene) {
      const {layout, scroll, height} = scene;
      if (!stale && gutter === scene.gutter && placed.layout === layout && placed.scroll === scroll &&
        placed.height === height) return;
      placed = {layout, scroll, height};
      const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset['key'] : undefined;
      if (stale || gutter !== scene.gutter) {
        gutter = scene.gutter;
        shown = new Map();
        styled(head, {width: `${gutter}px`, height: `${topOfRows(scene)}px`});
        styled(body, {width: `${gutter}px`, top: `${topOfRows(scene)}px`, height: `${scene.layout.height}px`});
        head.replaceChildren(...scene.layout.pinned.map(row => {
          const element = make(row);
          styled(element, {top: `${AXIS_HEIGHT + row.y}px`});
          return element;
        }));
        body.replaceChildren();
        stale = false;
      }
      const wanted = new Set<string>();
      for (const {row, pinned} of visibleRows(scene)) {
        if (pinned || row.h < 7 && row.kind === 'lane') continue;
        wanted.add(row.key);
        if (shown.has(row.key)) continue;
        const element = make(row);
        shown.set(row.key, element);
        body.append(element);
      }
      for (const [key, element] of shown)
        if (!wanted.has(key) && !element.contains(document.activeElement)) {
          element.remove();
          shown.delete(key);
        }
      if (focused && document.activeElement === document.body)
        body.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus({preventScroll: true});
      body.lang = currentLang();
    },
  };

  function groupTitle(row: DisplayRow): string {
    const {run, state} = store;
    if (row.value < 0) return t('group.unknown');
    if (state.grouping === 'machine')
      return run.ranks.find(rank => rank.machine === row.value)?.machine_name ||
        t('group.machine', row.value);
    return state.grouping === 'stage' ? t('group.stage', row.value) : t('group.dp', row.value);
  }
}
