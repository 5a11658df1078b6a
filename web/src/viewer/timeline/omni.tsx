// One box for three questions: where is this name, where is this lane, what can be done. A dialog with a list.
import {t} from '../../i18n/i18n';
import {render} from 'preact';
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {h} from '../../dom';
import {fit} from '../../chart/viewport';
import type {Actions, OmniMode} from './actions';
import type {Api} from '../shell/api';
import {commandsOf} from './commands';
import {short} from '../shell/numbers';
import type {Stage} from './stage';
import {litBySearch, type Store} from './store';
import {laneName, placeTitle} from './titles';

interface Item {
  title: string;
  note: string;
  keys?: string;
  run(): void;
}
interface Found {
  names: number;
  occurrences: number;
  where: string;
  matches: {name: string; name_id: number; count: number}[];
}

const DELAY_MS = 80, MOST = 500;

// Letters of the wish in their order, somewhere in the text.
function fits(text: string, wish: string): boolean {
  let at = 0;
  const low = text.toLowerCase();
  for (const letter of wish.toLowerCase()) {
    if (letter === ' ') continue;
    at = low.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

interface Props {
  mode: OmniMode;
  api: Api;
  store: Store;
  stage: Stage;
  actions: Actions;
  close(): void;
}

function Omni({mode: first, api, store, stage, actions, close}: Props) {
  const [mode, setMode] = useState(first), [text, setText] = useState(''), [active, setActive] = useState(0);
  const [found, setFound] = useState<Item[]>([]), [note, setNote] = useState(''),
    [answered, setAnswered] = useState('');
  const field = useRef<HTMLInputElement>(null), list = useRef<HTMLUListElement>(null), entered = useRef(false);
  const busy = mode === 'search' && text !== answered; // the list is still that of what was typed before
  useLayoutEffect(() => field.current?.focus(), [mode]);

  useEffect(() => {
    if (mode !== 'search') return;
    entered.current = false;
    if (text.trim() === '') {
      setFound([]);
      setAnswered(text);
      return setNote(t('search.hint'));
    }
    const controller = new AbortController();
    const timer = setTimeout(() => {
      const regex = /^\/(.+)\/$/.exec(text);
      api.json<Found>('search', {q: regex ? regex[1]! : text, regex: regex ? 1 : undefined, limit: MOST},
        controller.signal)
        .then(({names, occurrences, where, matches}) => {
          const all: Item[] = matches.length > 1 ? [{
            title: names > matches.length ? t('search.most', matches.length, names) : t('search.all', names),
            note: t('search.times', short(occurrences)),
            run: () => light(matches.map(one => one.name_id), text, where),
          }] : [];
          const next = [
            ...all,
            ...matches.map((one): Item => ({
              title: one.name,
              note: t('search.times', short(one.count)),
              run: () => light([one.name_id], where ? text : one.name, where),
            })),
          ];
          setFound(next);
          setAnswered(text);
          setNote(names === 0 ? t('search.none') : '');
          setActive(0);
          if (entered.current) go(next[0]);
        }).catch((error: unknown) => {
          if (!controller.signal.aborted) setNote(error instanceof Error ? error.message : String(error));
        });
    }, DELAY_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text, mode]);

  // Lights the names up and goes to the next of them.
  function light(ids: number[], label: string, where: string): void {
    store.change({lit: litBySearch(ids, label, where)});
    actions.findNext(1);
  }
  function lanes(): Item[] {
    const fitting = store.run.lanes.filter(lane =>
      fits(`${placeTitle(store, lane.id)} ${t(`lane.${lane.type}`)}`, text)
    );
    return fitting.slice(0, MOST).map(lane => ({
      title: placeTitle(store, lane.id),
      note: `${t(`lane.${lane.type}`)} · ${t('label.slices', short(lane.slices))}`,
      run: () => {
        const rank = `r${lane.rank_index}`, {state} = store;
        store.change({collapsed: new Set([...state.collapsed].filter(key => key !== rank && !key.startsWith('g'))),
          hidden: new Set([...state.hidden].filter(id => id !== lane.id)), message: laneName(lane)});
        stage.showLane(lane.id);
        if (lane.end_ns > lane.start_ns && (lane.end_ns < state.view.t0 || lane.start_ns > state.view.t1))
          store.jump(fit(lane.start_ns, lane.end_ns));
      },
    }));
  }
  const items = mode === 'search' ? found : mode === 'lanes' ? lanes()
    : commandsOf(store, actions).filter(one => fits(one.title, text))
      .map(one => ({title: one.title, note: '', keys: one.keys, run: one.run}));
  const chosen = Math.min(active, Math.max(items.length - 1, 0));

  function go(item: Item | undefined): void {
    if (!item) return;
    close();
    item.run();
  }
  function key(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const next = (chosen + (event.key === 'ArrowDown' ? 1 : -1) + items.length) % Math.max(items.length, 1);
      setActive(next);
      list.current?.children[next]?.scrollIntoView({block: 'nearest'});
    } else if (event.key === 'Enter') {
      event.preventDefault();
      if (busy) entered.current = true; // of what is typed now, once it is there
      else go(items[chosen]);
    }
  }
  const modes: OmniMode[] = ['search', 'lanes', 'commands'];
  return (
    <>
      <div class="tabs" role="tablist">
        {modes.map(one => (
          <button
            role="tab"
            aria-selected={one === mode}
            onClick={() => {
              setMode(one);
              setText('');
              setActive(0);
            }}>
            {t(`omni.${one}`)}
          </button>
        ))}
      </div>
      <input
        ref={field}
        type="text"
        autofocus
        role="combobox"
        aria-expanded="true"
        aria-controls="omni-list"
        aria-activedescendant={items.length > 0 ? `omni-${chosen}` : undefined}
        aria-label={t(`omni.${mode}`)}
        placeholder={t(`omni.${mode}.hint`)}
        value={text}
        spellcheck={false}
        autocomplete="off"
        onInput={event => {
          setText(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={key} />
      {mode === 'search' && note && <p class="quiet note">{note}</p>}
      <ul id="omni-list" role="listbox" aria-label={t(`omni.${mode}`)} aria-busy={busy} ref={list}>
        {items.map((item, i) => (
          <li
            id={`omni-${i}`}
            role="option"
            aria-selected={i === chosen}
            onClick={() => go(item)}
            onPointerMove={() => {
              if (i !== active) setActive(i);
            }}>
            <span class="title">{item.title}</span>
            <span class="quiet">{item.note}</span>
            {item.keys && <span class="keys">{item.keys.split(' ').map(one => <kbd>{one}</kbd>)}</span>}
          </li>
        ))}
      </ul>
    </>
  );
}

export function openOmni(mode: OmniMode, api: Api, store: Store, stage: Stage, actions: Actions): void {
  const dialog = h('dialog', {class: 'omni', id: 'omni', 'aria-label': t(`omni.${mode}`)});
  document.body.append(dialog);
  const close = (): void => dialog.close();
  render(<Omni {...{mode, api, store, stage, actions, close}} />, dialog);
  dialog.addEventListener('click', event => {
    if (event.target === dialog) close();
  });
  dialog.addEventListener('close', () => {
    render(null, dialog);
    dialog.remove();
    stage.canvas.focus({preventScroll: true});
  });
  dialog.showModal();
}
