// The start page: `stageline view` without a run. Runs are opened by their path, from the list of a folder, from those
// that this browser has seen, or dropped on the page. Two can be compared, or several as a trend. Without a run, a
// pipeline can be planned from the description of a model.
import {render} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {bytes, grouped} from '../../format';
import {currentLang, setLang, t} from '../../i18n/i18n';
import {applyTheme} from '../../theme';
import {Api, type Run, type Status} from '../shell/api';
import {failure} from '../answers/working';
import {commandLine} from '../shell/command';
import type {Page, Shell, Theme} from '../shell/page';
import {remember} from '../shell/remember';
import {forgetRecent, recent} from '../shell/recent';
import type {MakePage} from '../shell/shell';
import {serverSource} from '../shell/source';
import {ask, askLong, droppedFiles, send, type Entry, type Folder, type Look, type Opened,
  type Pairs} from '../shell/shelf';
import {TrendView, type Trend} from './trend';

const MOST_LOOKED = 80; // entries of a folder whose format is asked for

const below = (roots: readonly string[], path: string): boolean =>
  roots.some(root => path === root || root === '/' || path.startsWith(root + '/'));
const when = (seconds: number): string =>
  new Date(seconds * 1000).toLocaleString(currentLang() === 'zh' ? 'zh-CN' : 'en-GB', {dateStyle: 'medium',
    timeStyle: 'short'});

// "#/trend?path=…&path=…", "#/?path=FOLDER".
function routeOf(hash: string): {trend: Pairs | null; folder: string | null} {
  const at = hash.indexOf('?'), pairs = [...new URLSearchParams(at < 0 ? '' : hash.slice(at + 1))];
  const trend = hash.startsWith('#/trend') ? pairs.filter(([name]) => name === 'path' || name === 'drop') : null;
  return {trend, folder: pairs.find(([name]) => name === 'path')?.[1] ?? null};
}
const hashOf = (page: string, pairs: Pairs): string => `#/${page}?${new URLSearchParams(pairs)}`;

function Shown(
  {children, pairs, open}: {children: preact.ComponentChildren; pairs: Pairs; open: (pairs: Pairs) => void},
) {
  return <button class="plain link" onClick={() => open(pairs)}>{children}</button>;
}

// The text is redrawn with the language.
function Wrong({error}: {error: unknown}) {
  return (
    <div
      key={currentLang()}
      ref={place => {
        place?.replaceChildren(failure(error, () => location.reload()));
      }} />
  );
}

interface Kept {
  path: string;
  changed_s: number;
}

type ShelfStatus = Status & {roots: string[]; drops: boolean; palette: Parameters<typeof applyTheme>[0]};

// The planner without a run: it asks the server and has an address; there are no other pages.
function PlanPlace({make}: {make: MakePage}) {
  const place = useRef<HTMLDivElement>(null), made = useRef<Page>(null!);
  useEffect(() => {
    const page = made.current = make({
      api: new Api(serverSource()),
      run: {lanes: [], paths: []} as unknown as Run,
      moved: () => history.replaceState(null, '', hashOf('plan', [...new URLSearchParams(page.address().query)])),
    } as Shell);
    place.current!.replaceChildren(page.element);
    page.show({rest: '', query: location.hash.split('?')[1] ?? ''});
  }, []);
  useEffect(() => made.current!.restyle());
  return <div ref={place} />;
}

function Start({status, theme, makePlan}: {status: ShelfStatus; theme: Theme; makePlan: MakePage}) {
  const [hash, setHash] = useState(location.hash), [folder, setFolder] = useState<Folder | null>(null),
    [looks, setLooks] = useState<Record<string, Look>>({});
  const [said, say] = useState<{error?: unknown; busy?: string}>({}), [chosen, choose] = useState<Kept[]>([]),
    [over, setOver] = useState(false);
  const [trend, setTrend] = useState<Trend | null>(null), [dark, setDark] = useState(theme === 'dark'),
    [, setTick] = useState(0);
  const field = useRef<HTMLInputElement>(null), route = routeOf(hash), {roots} = status,
    plans = hash.startsWith('#/plan');

  async function open(pairs: Pairs): Promise<void> {
    say({busy: t('start.opening')});
    try {
      // Language and theme, where the address says them.
      location.href = (await ask<Opened>('open', pairs)).run + location.search;
    } catch (error) {
      say({error});
    }
  }
  async function drop(data: DataTransfer): Promise<void> {
    try {
      const files = await droppedFiles(data);
      if (files.length === 0) return;
      const number = await send(files, done =>
        say({busy: t('start.sending', done + 1, files.length, bytes(files[done]!.file.size))}));
      await open([['drop', String(number)]]);
    } catch (error) {
      say({error});
    }
  }
  useEffect(() => {
    const follow = (): void => setHash(location.hash);
    window.addEventListener('hashchange', follow);
    return () => window.removeEventListener('hashchange', follow);
  }, []);
  useEffect(() => {
    applyTheme(status.palette, dark ? 'dark' : 'light');
  }, [dark]);
  // A folder is listed, then it and its entries are looked at one by one.
  const path = route.trend || plans ? null : route.folder ?? roots[0]!;
  useEffect(() => {
    let ended = false;
    if (path === null) return;
    say({});
    (async () => {
      const found = await ask<Folder>('browse', [['path', path]]);
      if (ended) return;
      setFolder(found);
      for (const one of [found.path, ...found.entries.slice(0, MOST_LOOKED).map(entry => entry.path)]) {
        const look = await ask<Look>('look', [['path', one]]);
        if (ended) return;
        setLooks(before => ({...before, [one]: look}));
      }
    })().catch((error: unknown) => {
      if (!ended) say({error});
    });
    return () => {
      ended = true;
    };
  }, [path]);
  const asked = route.trend ? JSON.stringify(route.trend) : '';
  useEffect(() => {
    let ended = false;
    setTrend(null);
    if (!asked) return;
    say({busy: t('trend.working', route.trend!.length)});
    askLong<Trend>('trend', route.trend!, seconds =>
      say({
        busy: `${t('trend.working', route.trend!.length)} ${
          seconds >= 1 ? t('working.running', seconds.toFixed(0)) : ''
        }`,
      }), () => ended)
      .then(found => {
        if (ended) return;
        setTrend(found);
        say({});
      }, (error: unknown) => {
        if (!ended) say({error});
      });
    return () => {
      ended = true;
    };
  }, [asked]);
  useEffect(() => {
    document.title = `${t(plans ? 'plan.title' : trend ? 'trend.title' : 'start.title')} · Stageline`;
    Object.assign((window as {stageline?: object}).stageline ??= {}, {
      start: () => ({folder, looks, trend, said, chosen}),
    });
  });

  const toggle = (entry: Entry): void =>
    choose(
      chosen.some(one => one.path === entry.path) ? chosen.filter(one => one.path !== entry.path) : [...chosen, entry],
    );
  // A trend goes from old to new, by when files changed last; a comparison too.
  const inOrder = [...chosen].sort((a, b) => a.changed_s - b.changed_s || (a.path < b.path ? -1 : 1)).map(one =>
    one.path
  );
  const paths = (list: string[]): Pairs => list.map(one => ['path', one]);
  const known = recent(), here = folder && looks[folder.path];
  return (
    <div
      class={over ? 'start over' : 'start'}
      onDragOver={event => {
        event.preventDefault();
        setOver(status.drops);
      }}
      onDragLeave={event => {
        if (event.target === event.currentTarget) setOver(false);
      }}
      onDrop={event => {
        event.preventDefault();
        setOver(false);
        if (status.drops && event.dataTransfer) void drop(event.dataTransfer);
      }}>
      <header class="top">
        {route.trend || plans ? <a class="logo" href="#/">Stageline</a> : <span class="logo">Stageline</span>}
        <span class="run">{roots.join(' · ')}</span>
        <span class="space" />
        <button
          class="pill"
          id="theme"
          onClick={() => {
            remember('theme', dark ? 'light' : 'dark');
            setDark(!dark);
          }}
          title={t('theme.switch')}>
          {t(dark ? 'theme.light' : 'theme.dark')}
        </button>
        <button
          class="pill"
          id="lang"
          lang={currentLang() === 'zh' ? 'en' : 'zh-CN'}
          title={t('lang.switch')}
          onClick={() => {
            setLang(currentLang() === 'zh' ? 'en' : 'zh');
            remember('lang', currentLang());
            document.documentElement.lang = currentLang() === 'zh' ? 'zh-CN' : 'en';
            setTick(tick => tick + 1);
          }}>
          {t('lang.other')}
        </button>
      </header>
      <div class="page-place">
        <div class="page">
          {plans ? <PlanPlace make={makePlan} /> : (
            <main class="sheet">
              {said.error !== undefined && <Wrong error={said.error} />}
              {said.busy && (
                <p class="working" role="status">
                  <i aria-hidden="true" />
                  {said.busy}
                </p>
              )}
              {route.trend ? trend && <TrendView trend={trend} pairs={route.trend} open={open} /> : (
                <>
                  <h1>{t('start.title')}</h1>
                  <p class="lead">{t(status.drops ? 'start.lead.drop' : 'start.lead', roots.join(', '))}</p>
                  <form
                    class="start-open"
                    onSubmit={event => {
                      event.preventDefault();
                      if (field.current!.value.trim()) void open([['path', field.current!.value.trim()]]);
                    }}>
                    <input
                      ref={field}
                      name="path"
                      type="text"
                      spellcheck={false}
                      autocomplete="off"
                      aria-label={t('start.path')}
                      placeholder={t('start.path')} />
                    <button>{t('start.open')}</button>
                  </form>
                  <p class="start-files">
                    <a href="#/plan">{t('plan.title')}</a>
                  </p>
                  <div class="cols">
                    <section class="start-list">
                      <h2 class="start-folder">
                        {folder?.up !== undefined && (
                          <a href={hashOf('', [['path', folder.up]])} title={t('start.up')}>↑ {t('start.up')}</a>
                        )}
                        <span>{folder?.path}</span>
                        {here?.format && (
                          <Shown pairs={[['path', folder!.path]]} open={open}>
                            {t('start.open.folder', here.format)}
                          </Shown>
                        )}
                      </h2>
                      {chosen.length > 0 && (
                        <p class="start-chosen" role="status">
                          {t(chosen.length === 1 ? 'start.chosen.one' : 'start.chosen', chosen.length)}
                          {chosen.length === 2 && (
                            <button onClick={() => open([['path', inOrder[0]!], ['compare', inOrder[1]!]])}>
                              {t('page.compare')}
                            </button>
                          )}
                          {chosen.length > 1 && (
                            <a class="button" href={hashOf('trend', paths(inOrder))}>{t('start.trend')}</a>
                          )}
                          {chosen.length > 1 && (
                            <button onClick={() => open(paths(inOrder))}>{t('start.together')}</button>
                          )}
                          <button class="plain link" onClick={() => choose([])}>{t('start.none')}</button>
                        </p>
                      )}
                      {folder && (folder.entries.length === 0 ? <p class="quiet">{t('start.empty')}</p>
                        : (
                          <div class="plot-box">
                            <table class="start-files">
                              <thead>
                                <tr>
                                  <th class="pick">
                                    <span class="live">{t('start.choose')}</span>
                                  </th>
                                  <th class="text" scope="col">{t('start.name')}</th>
                                  <th class="text" scope="col">{t('start.format')}</th>
                                  <th scope="col">{t('start.size')}</th>
                                  <th scope="col">{t('start.changed')}</th>
                                </tr>
                              </thead>
                              <tbody>
                                {folder.entries.map(entry => {
                                  const look = looks[entry.path], mine: Pairs = [['path', entry.path]];
                                  return (
                                    <tr key={entry.path}>
                                      <td class="pick">
                                        <input
                                          type="checkbox"
                                          checked={chosen.some(one => one.path === entry.path)}
                                          onChange={() => toggle(entry)}
                                          aria-label={t('start.choose.one', entry.name)} />
                                      </td>
                                      <th class="text" scope="row">
                                        {entry.folder ? <a href={hashOf('', mine)}>{entry.name}/</a>
                                          : <Shown pairs={mine} open={open}>{entry.name}</Shown>}
                                      </th>
                                      <td class="text">
                                        {look?.format && (
                                          <>
                                            <Shown pairs={mine} open={open}>{t('start.open')}</Shown>{' '}
                                            <span class="quiet">
                                              {look.format}
                                              {look.files > 1 && `, ${t('start.files', grouped(look.files))}`}
                                            </span>
                                          </>
                                        )}
                                      </td>
                                      <td>{look?.bytes || !entry.folder ? bytes(look?.bytes || entry.bytes) : ''}</td>
                                      <td class="quiet">{when(entry.changed_s)}</td>
                                    </tr>
                                  );
                                })}
                              </tbody>
                            </table>
                          </div>
                        ))}
                      {folder && folder.left_out > 0 && <p class="quiet">{t('start.more', grouped(folder.left_out))}
                      </p>}
                    </section>
                    <aside>
                      <h2>{t('start.recent')}</h2>
                      {known.length === 0 ? <p class="quiet">{t('start.recent.none')}</p> : (
                        <>
                          <ul class="start-recent">
                            {known.map(one => (
                              <li key={one.places.join('\n')}>
                                {one.places.every(place => below(roots, place))
                                  ? <Shown pairs={paths(one.places)} open={open}>{one.title}</Shown>
                                  : <b>{one.title}</b>}
                                <span class="quiet">
                                  {one.places.every(place => below(roots, place)) ? one.places.join(' ')
                                    : <code>{commandLine('view', one.places)}</code>}
                                </span>
                              </li>
                            ))}
                          </ul>
                          <p class="quiet">
                            {t('start.recent.where')}{' '}
                            <button
                              class="plain link"
                              onClick={() => {
                                forgetRecent();
                                setTick(tick => tick + 1);
                              }}>
                              {t('start.recent.forget')}
                            </button>
                          </p>
                        </>
                      )}
                    </aside>
                  </div>
                </>
              )}
            </main>
          )}
        </div>
      </div>
    </div>
  );
}

export function startPage(status: Status, theme: Theme, root: HTMLElement, makePlan: MakePage): void {
  render(<Start status={status as ShelfStatus} theme={theme} makePlan={makePlan} />, root);
}
