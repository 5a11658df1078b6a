// A report is its own source: answers that were made when it was written, and the timeline's data
// (src/server/page/page_file.h).
import {t} from '../../i18n/i18n';
import type {Params, Reply, Source} from '../shell/source';
import {WireWriter} from '../shell/wire';
import type {Group} from './load';
import {answersOf, bytesOf, type Packed} from './store';
import {fromBase64, unpack} from './unpack';
import {whatIfOfPage, type AskWhatIf} from './what_if';
import {startAnswerer, type Answerer} from './worker';

// This is the script that runs now: later it cannot be determined.
const own = typeof document === 'undefined' ? null : document.currentScript;

const reply = (status: number, body: ArrayBuffer): Reply => ({status, isJson: true,
  json: async () => JSON.parse(new TextDecoder().decode(body)) as unknown, bytes: async () => body});
const no = (status: number, error: string, hint: string): Reply => reply(status, bytesOf({error, hint}));

// Slices stand behind the script: it begins while the browser reads on.
const whole = typeof document === 'undefined' || document.readyState !== 'loading' ? Promise.resolve()
  : new Promise<void>(done => {
    document.addEventListener('DOMContentLoaded', () => done());
  });

// Takes the pieces of slices from the page; those of the same lanes stand one after the other.
function groupsOf(blocks: Iterable<HTMLScriptElement>): Group[] {
  const groups: Group[] = [];
  for (const block of blocks) {
    const [first, last] = block.dataset['lanes']?.split('-').map(Number) ?? [], before = groups.at(-1);
    if (first === undefined) continue;
    const piece = fromBase64(block.textContent);
    if (before?.first === first) before.pieces.push(piece);
    else groups.push({first, last: last ?? first, pieces: [piece]});
    block.remove(); // what is read needs no second copy
  }
  return groups;
}

export function fileSource(): Source {
  const blocks = [...document.querySelectorAll<HTMLScriptElement>('script[data-answer], script[data-timeline]')];
  const kept = new Map(
    blocks.flatMap(block => (block.dataset['answer'] ? [[block.dataset['answer'], block] as const] : [])),
  );
  const command = document.documentElement.dataset['command'] ?? 'stageline view';
  let answerer: Promise<Answerer> | null = null;
  function timeline(): Promise<Answerer> {
    if (answerer) return answerer;
    return answerer = startAnswerer(own?.textContent ?? '', whole.then((): Packed => {
      const taken = (which: string): Uint8Array<ArrayBuffer> => {
        const block = blocks.find(one => one.dataset['timeline'] === which);
        block?.remove();
        return fromBase64(block?.textContent ?? '');
      };
      return {head: taken('head'), groups: groupsOf(document.querySelectorAll<HTMLScriptElement>('script[data-lanes]')),
        links: taken('links'), words: {noArguments: t('file.arguments', command)}};
    }));
  }
  async function fromKept(key: string): Promise<Reply> {
    return reply(200, await unpack(kept.get(key)!.textContent));
  }
  const replays = (): Promise<boolean> => whole.then(() => document.querySelector('script[data-what-if]') !== null);
  let whatIf: Promise<AskWhatIf> | null = null;
  async function replay(asked: Params): Promise<Reply> {
    const target = new URLSearchParams();
    for (const [name, value] of Object.entries(asked)) if (value !== undefined) target.set(name, String(value));
    try {
      const {status, body} = (await (whatIf ??= whole.then(whatIfOfPage)))(`/api/pipeline/what-if?${target}`);
      return reply(status, body);
    } catch (error) {
      whatIf = null; // it gave up, for want of memory perhaps: the next question starts again
      throw error;
    }
  }
  // Where the file carries no replay, the prices of the fixes are those that were made when it was written.
  async function price({fix, step: _, dp: _dp, ...changes}: Params): Promise<Reply> {
    if (fix === undefined || Object.values(changes).some(value => value !== undefined))
      return no(404, t('file.whatIf'), command);
    const {fixes} = await (await fromKept('pipeline/fixes')).json() as {fixes: object[]}, chosen = fixes[Number(fix)];
    return chosen ? reply(200, new WireWriter().finish({...chosen, columns: []})) : no(404, t('file.not'), command);
  }
  return {
    async ask(path, params, signal) {
      const {revision: _, rows: _form, ...asked} = params; // what is kept is JSON
      if (path === 'status')
        return reply(200,
          bytesOf({state: 'ready', revision: 1, bytes_read: 0, bytes_total: 0, events: 0, message: ''}));
      if (answersOf(path)) {
        const {status, body} = await (await timeline()).ask(path, asked, signal);
        return reply(status, body);
      }
      const {name, run, ...options} = asked,
        key = path === 'answer' ? `answer ${String(name)}` : run === undefined ? path : `${path} ${String(run)}`;
      if (path === 'pipeline/what-if') return (await replays()) ? replay(asked) : price(asked);
      if (Object.values(options).some(value => value !== undefined)) return no(404, t('file.options'), command);
      if (kept.has(key)) return fromKept(key);
      return no(404, t('file.not'), command);
    },
  };
}
