// A headless Firefox of the machine, driven by WebDriver BiDi over a socket: enough to open a file and ask the page.
// null where there is none (FIREFOX names one). Nothing outside the machine can be reached: every address goes to a
// proxy that is not there.
import {spawn} from 'node:child_process';
import {existsSync, mkdirSync, rmSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';

const PREFERENCES = {
  'network.proxy.type': 1,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': 9,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9,
  'network.proxy.socks': '127.0.0.1',
  'network.proxy.socks_port': 9,
  'browser.shell.checkDefaultBrowser': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'toolkit.telemetry.enabled': false,
  'app.update.enabled': false,
  'browser.startup.homepage': 'about:blank',
  'browser.aboutwelcome.enabled': false,
  'remote.active-protocols': 1,
};

export const firefoxPath = () =>
  [process.env.FIREFOX, '/usr/bin/firefox-esr', '/usr/bin/firefox', '/snap/bin/firefox']
    .find(path => path && existsSync(path));

// playwright-core brings a WebSocket; node has its own from 22 on.
function socketClass() {
  if (globalThis.WebSocket) return globalThis.WebSocket;
  const require = createRequire(import.meta.url);
  return require(join(dirname(require.resolve('playwright-core/package.json')), 'lib/utilsBundle')).ws;
}

export async function launchFirefox(folder) {
  const path = firefoxPath();
  if (!path) return null;
  const profile = join(folder, 'firefox-profile');
  rmSync(profile, {recursive: true, force: true});
  mkdirSync(profile, {recursive: true});
  writeFileSync(join(profile, 'user.js'),
    Object.entries(PREFERENCES).map(([name, value]) =>
      `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`
    ).join(''));
  const child = spawn(path, [
    '--headless',
    '--no-remote',
    '--profile',
    profile,
    '--remote-debugging-port',
    '0',
    '--width',
    '1320',
    '--height',
    '900',
    'about:blank',
  ], {stdio: ['ignore', 'ignore', 'pipe'], env: {...process.env, MOZ_DISABLE_AUTO_SAFE_MODE: '1', HOME: folder}});
  const address = await new Promise((done, fail) => {
    let text = '';
    child.stderr.on('data', data => {
      text += data;
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(text);
      if (found) done(found[1]);
    });
    child.on('error', fail);
    child.on('exit', code => fail(new Error(`firefox ended with ${code}: ${text.slice(-400)}`)));
  });
  const socket = new (socketClass())(`${address}/session`), waiting = new Map(), problems = [];
  await new Promise((done, fail) => {
    socket.addEventListener('open', done);
    socket.addEventListener('error', fail);
  });
  let last = 0;
  const send = (method, params) =>
    new Promise((done, fail) => {
      waiting.set(++last, [done, fail]);
      socket.send(JSON.stringify({id: last, method, params}));
    });
  socket.addEventListener('message', event => {
    const message = JSON.parse(String(event.data));
    if (message.type === 'event' && message.method === 'log.entryAdded' &&
      ['error', 'warn'].includes(message.params.level))
      problems.push(`${message.params.level}: ${message.params.text}`);
    const [done, fail] = waiting.get(message.id) ?? [];
    if (message.type === 'error') fail?.(new Error(`${message.error}: ${message.message}`));
    else done?.(message.result);
  });
  await send('session.new', {capabilities: {}});
  await send('session.subscribe', {events: ['log.entryAdded']});
  const {contexts: [{context}]} = await send('browsingContext.getTree', {});
  return {
    problems,
    open: url => send('browsingContext.navigate', {context, url, wait: 'complete'}),
    // A function's text is run in the page; what it gives comes as JSON.
    async ask(run) {
      const {result, exceptionDetails} = await send('script.callFunction', {
        functionDeclaration: `async () => JSON.stringify(await (${run})())`,
        awaitPromise: true,
        target: {context},
      });
      if (exceptionDetails) throw new Error(exceptionDetails.text);
      return result.value === undefined ? undefined : JSON.parse(result.value);
    },
    async until(run) {
      for (const limit = Date.now() + 120000; Date.now() < limit;) {
        if (await this.ask(run)) return;
        await new Promise(done => setTimeout(done, 50));
      }
      throw new Error(`never true: ${run}`);
    },
    close() {
      socket.close();
      child.kill('SIGTERM');
    },
  };
}
