// Keeps marks and their notes in a file next to the run. The server writes it, which a report's page lacks. A report
// has the marks that existed when it was written.
import {ApiError, type Api} from '../shell/api';
import type {KeptMarks, Mark, Store} from './store';

const AFTER_MS = 600; // what is typed goes together

// The file's marks join those of the address. From then on the file follows what the page shows, where it can.
export async function keepNotes(api: Api, store: Store, failed: (error: unknown) => void): Promise<void> {
  const reported = await api.json<KeptMarks & {notes: Mark[]}>('notes'),
    key = (mark: Mark): string => `${Math.round(mark.t)}:${mark.text}`;
  const own = new Set(store.state.marks.map(key));
  const marks = [...store.state.marks, ...reported.notes.filter(mark => !own.has(key(mark)))].sort((a, b) => a.t - b.t);
  store.notes = reported;
  if (reported.notes.length > 0) store.change({marks});
  if (!reported.keeps) return;
  let waits = 0;
  store.onChange(before => {
    if (store.state.marks === before.marks) return;
    clearTimeout(waits);
    waits = window.setTimeout(() => {
      api.put('notes', {notes: store.state.marks.map(({t, text}) => ({t: Math.round(t), text}))}).catch(
        (error: unknown) => {
          if (error instanceof ApiError) store.notes = {...reported, keeps: false};
          failed(error);
        },
      );
    }, AFTER_MS);
  });
}
