// Measures the memory of the page without a debugger that also keeps every answer. With playwright, which listens to
// the network, the browser holds all bodies for it in the page's process (100 MB and more). So this speaks to the
// browser itself, and requests only evaluation and keys.
import {spawn} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const require = createRequire(new URL('../tests/web/package.json', import.meta.url));

// Returns the bytes of the renderer after the window was moved and zoomed for a while: its share (PSS) of all memory
// that is not a file. The browser's program, mapped from its file, is excluded: it is 10 to 40 MB, depending on the
// number of its processes.
export async function pageMemory(chromium, url) {
  const {ws: WebSocket} = require('playwright-core/lib/utilsBundle'), profile = mkdtempSync(join(tmpdir(), 'stageline-bench-'));
  const child = spawn(chromium, ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run',
                                 '--disable-dev-shm-usage', '--remote-debugging-port=0', `--user-data-dir=${profile}`,
                                 '--window-size=1600,900', 'about:blank'], {stdio: ['ignore', 'ignore', 'pipe']});
  try {
    const endpoint = await new Promise((done, fail) => {
      let text = '';
      child.stderr.on('data', data => {
        text += data;
        const found = /ws:\/\/\S+/.exec(text);
        if (found) done(found[0]);
      });
      child.on('exit', () => fail(new Error('the browser ended')));
    });
    const socket = new WebSocket(endpoint), waiting = new Map();
    await new Promise(done => socket.on('open', done));
    let last = 0;
    socket.on('message', data => {
      const {id, result} = JSON.parse(data);
      waiting.get(id)?.(result);
    });
    const send = (method, params = {}, sessionId) => new Promise(done => {
      waiting.set(++last, done);
      socket.send(JSON.stringify({id: last, method, params, sessionId}));
    });
    const {targetId} = await send('Target.createTarget', {url}), {sessionId} = await send('Target.attachToTarget', {targetId, flatten: true});
    const evaluate = async expression =>
      (await send('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true}, sessionId)).result?.value;
    const sleep = ms => new Promise(done => setTimeout(done, ms));
    const hold = async (key, code, ms) => {
      await send('Input.dispatchKeyEvent', {type: 'rawKeyDown', key, code}, sessionId);
      await sleep(ms);
      await send('Input.dispatchKeyEvent', {type: 'keyUp', key, code}, sessionId);
    };
    while (!await evaluate('!!window.stageline && stageline.settled()')) await sleep(100);
    for (let i = 0; i < 14; ++i) await hold('-', 'Minus', 20);
    for (const [key, code] of [['w', 'KeyW'], ['d', 'KeyD'], ['s', 'KeyS'], ['a', 'KeyA'], ['w', 'KeyW'], ['d', 'KeyD']]) await hold(key, code, 3000);
    while (!await evaluate('stageline.settled()')) await sleep(100);
    await sleep(500);
    const {processInfo} = await send('SystemInfo.getProcessInfo');
    const shareOf = (rollup, name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(rollup)?.[1] ?? 0) * 1024;
    const pss = processInfo.filter(one => one.type === 'renderer').map(({id}) => readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))
        .map(rollup => shareOf(rollup, 'Pss') - shareOf(rollup, 'Pss_File'));
    socket.close();
    return Math.max(...pss);
  } finally {
    child.removeAllListeners('exit');
    child.kill();
    await new Promise(done => child.on('exit', done));
    // The browser's other processes end a moment after it and write once more.
    rmSync(profile, {recursive: true, force: true, maxRetries: 20, retryDelay: 100});
  }
}
