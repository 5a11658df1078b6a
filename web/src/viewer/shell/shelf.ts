// Requests to a server that opens runs (src/server/page/run_shelf.h): of the start page, and of an opened run, to which
// another one is added. Also the files that a user drops.
import type {Both} from '../../data/report';
import {addSentences} from '../../i18n/i18n';
import {ApiError, type Run} from './api';
import {startOf} from './source';

export interface Entry {
  name: string;
  path: string;
  folder: boolean;
  bytes: number;
  changed_s: number;
}
export interface Folder {
  path: string;
  up?: string;
  entries: Entry[];
  left_out: number;
}
export interface Look {
  format: string;
  files: number;
  bytes: number;
}
export interface Opened {
  run: string;
  title: string;
}
export type Pairs = [name: string, value: string][];

// "/", or "/TOKEN/" as the server printed it; runs lie two folders below.
const base = (): string => new URL(startOf() === null ? '.' : '../../', location.href).pathname;
const address = (path: string, pairs: Pairs): string => `${base()}api/${path}?${new URLSearchParams(pairs)}`;

async function taken<T>(answer: Response): Promise<T> {
  const said = await answer.json().catch(() => ({})) as T & {error?: string; hint?: string; sentences?: Both[]};
  addSentences(said.sentences ?? []);
  if (!answer.ok || said.error !== undefined)
    throw new ApiError(answer.status, said.error ?? `HTTP ${answer.status}`, said.hint ?? '');
  return said;
}
export const ask = async <T>(path: string, pairs: Pairs): Promise<T> => taken<T>(await fetch(address(path, pairs)));

// Requests an answer that is made once and takes time; `said` gets the elapsed seconds.
export async function askLong<T>(path: string, pairs: Pairs, said: (seconds: number) => void,
  ended: () => boolean): Promise<T | null>
{
  while (!ended()) {
    const answer = await fetch(address(path, pairs));
    if (answer.status !== 202) return taken<T>(answer);
    said((await answer.json() as {seconds: number}).seconds);
    await new Promise(done => setTimeout(done, 150));
  }
  return null;
}

interface Named {
  name: string;
  file: File;
}

// The files of a drop, with the folders they lie in: those are listed in portions.
export async function droppedFiles(data: DataTransfer): Promise<Named[]> {
  // Items are gone once this function has waited for something, so entries are read first. Files from a script have
  // none.
  const roots = [...data.items].filter(item => item.kind === 'file').map(item =>
    item.webkitGetAsEntry() ?? item.getAsFile()
  );
  const out: Named[] = [];
  const walk = async (entry: FileSystemEntry): Promise<void> => {
    if (entry.isFile) {
      const file = await new Promise<File>((done, fail) => (entry as FileSystemFileEntry).file(done, fail));
      out.push({name: entry.fullPath.replace(/^\//, '') || file.name, file});
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
      if (some.length === 0) return;
      for (const one of some) await walk(one);
    }
  };
  for (const root of roots) {
    if (root instanceof File) out.push({name: root.name, file: root});
    else if (root) await walk(root);
  }
  return out;
}

// One after the other; the number under which the server keeps them together.
export async function send(files: readonly Named[], said: (done: number) => void): Promise<number> {
  let drop = 0;
  for (const [i, {name, file}] of files.entries()) {
    said(i);
    const answer = await fetch(address('drop', [['name', name], ['drop', String(drop)]]), {method: 'PUT', body: file});
    drop = (await taken<{drop: number}>(answer)).drop;
  }
  return drop;
}

// Whether another run can be added to this one: its server opens runs, and its files can be named.
export const canAdd = (run: Run): boolean => startOf() !== null && (run.places?.length ?? 0) > 0;
// Opens the run again with a second one, on the page that compares the two. `second` names the second one's paths, or
// files that were sent.
export async function addRun(run: Run, second: {places?: string[]; drop?: number}): Promise<void> {
  const {places = [], drop} = second, pairs: Pairs = run.places!.map(place => ['path', place]);
  for (const place of places) pairs.push(['compare', place]);
  if (drop !== undefined) pairs.push(['compare_drop', String(drop)]);
  location.href = base() + (await ask<Opened>('open', pairs)).run + location.search;
}
