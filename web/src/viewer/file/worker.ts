// The report's timeline lives in a worker, so that the page stays free while it reads and answers. The worker is the
// page's own script, started from a blob (a file may load no other); where that is forbidden the page answers itself.
import {answer, makeStore, type Answerable, type Packed} from './store';
import type {Asked} from './query';

export interface Question {
  path: string;
  asked: Asked;
}
export interface Reported {
  status: number;
  body: ArrayBuffer;
  failed?: string;
}

export const isWorker = (): boolean => typeof document === 'undefined';

export function serveWorker(): void {
  let made: Promise<Answerable> | null = null;
  const tell = (reported: Reported): void => {
    (self as unknown as Worker).postMessage(reported, [reported.body]);
  };
  self.onmessage = (event: MessageEvent<Packed | Question>) => {
    if ('head' in event.data) {
      made = makeStore(event.data);
      made.catch(() => undefined);
      return;
    }
    const {path, asked} = event.data, from = made ?? Promise.reject(new Error('nothing to answer from'));
    from.then(async store => tell(await answer(store, path, asked))).catch((error: unknown) =>
      tell({status: 500, body: new ArrayBuffer(0), failed: String(error)})
    );
  };
}

// Answers one question at a time; questions that were withdrawn meanwhile are never put.
export interface Answerer {
  ask(path: string, asked: Asked, signal?: AbortSignal): Promise<Reported>;
}

function startWorker(script: string): Promise<Worker> {
  return new Promise((done, fail) => {
    const url = URL.createObjectURL(new Blob([script], {type: 'text/javascript'})), worker = new Worker(url);
    worker.onerror = event => {
      event.preventDefault();
      fail(new Error(event.message));
    };
    worker.onmessage = () => {
      URL.revokeObjectURL(url);
      done(worker);
    };
    worker.postMessage({path: 'status', asked: {}}); // it answers, if with a refusal: it runs
  });
}

// The worker starts while the browser still reads what it will work with.
export async function startAnswerer(script: string, read: Promise<Packed>): Promise<Answerer> {
  const worker = await startWorker(script).catch(() => null), packed = await read;
  const made = worker ? null : makeStore(packed);
  worker?.postMessage(packed,
    [packed.head, packed.links, ...packed.groups.flatMap(group => group.pieces)].map(bytes => bytes.buffer));
  const put = async (path: string, asked: Asked): Promise<Reported> => {
    if (!worker) return answer(await made!, path, asked);
    return new Promise(done => {
      worker.onmessage = (event: MessageEvent<Reported>) => done(event.data);
      worker.postMessage({path, asked});
    });
  };
  let last: Promise<unknown> = Promise.resolve();
  return {
    ask(path, asked, signal) {
      const own = last.then(() => {
        signal?.throwIfAborted();
        return put(path, asked);
      }).then(reported => {
        signal?.throwIfAborted();
        if (reported.failed) throw new Error(reported.failed);
        return reported;
      });
      last = own.catch(() => undefined);
      return own;
    },
  };
}
