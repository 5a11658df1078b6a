// node vscode_run.mjs STAGELINE EDITOR VSIX FOLDER opens runs from the explorer of VS Code in a headless Chromium.
// EDITOR is code-server's entry (npm has it: the server of VS Code, with the editor as its page). Screenshots are left
// in FOLDER. Its exit code is 0 on success, 1 on a failure, 77 without a browser.
import {execFileSync, spawn} from 'node:child_process';
import assert from 'node:assert/strict';
import {mkdirSync, rmSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:net';
import {join, resolve} from 'node:path';
import {launch} from './browser.mjs';

const [stageline, editor, vsix, folder] = process.argv.slice(2, 6).map(path => resolve(path));
const WAIT = {timeout: 120_000};

const root = join(folder, 'root'), home = join(folder, 'home');
for (const path of [root, home]) {
  rmSync(path, {recursive: true, force: true});
  mkdirSync(path, {recursive: true});
}
execFileSync(stageline, ['simulate', '1f1b', '--fault', 'slow-stage:2,1.4', '-o', join(root, 'logs')], {
  stdio: 'ignore',
});
writeFileSync(join(root, 'notes.txt'), 'no run at all\n');
execFileSync(stageline, ['report', join(root, 'logs'), '-o', join(root, 'page.html')], {stdio: 'ignore'});
writeFileSync(join(root, 'other.html'), '<html lang="en"><script>document.title = "ran"</script></html>');

const settings = {
  'security.workspace.trust.enabled': false,
  'workbench.startupEditor': 'none',
  'telemetry.telemetryLevel': 'off',
  'workbench.colorTheme': 'Default Light Modern',
  'stageline.program': stageline,
};
const data = join(home, 'data'), extensions = join(home, 'extensions');
mkdirSync(join(data, 'User'), {recursive: true});
function configure(more, locale) {
  writeFileSync(join(data, 'User/settings.json'), JSON.stringify({...settings, ...more}));
  writeFileSync(join(data, 'User/argv.json'), JSON.stringify({locale}));
}
configure({}, 'en');
// Chinese as the editor's language: a language pack without texts, since no registry has Microsoft's. What the editor
// itself says stays English; extensions speak Chinese.
writeFileSync(join(data, 'zh.json'), '{"version": "1.0.0", "contents": {}}');
writeFileSync(join(data, 'languagepacks.json'), JSON.stringify({
  'zh-cn': {hash: 'test', label: '中文', extensions: [{extensionIdentifier: {id: 'test.zh'}, version: '1.0.0'}],
    translations: {vscode: join(data, 'zh.json')}},
}));
const env = {...process.env, HOME: home};
const places = ['--user-data-dir', data, '--extensions-dir', extensions];
execFileSync(process.execPath, [editor, ...places, '--install-extension', vsix], {env, stdio: 'ignore'});

const port = await new Promise(done => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const {port} = probe.address();
    probe.close(() => done(port));
  });
});
const server = spawn(process.execPath, [
  editor,
  ...places,
  '--auth',
  'none',
  '--disable-telemetry',
  '--disable-update-check',
  '--bind-addr',
  `127.0.0.1:${port}`,
  root,
], {env, detached: true, stdio: ['ignore', 'pipe', 'pipe']});
// The editor has processes of its own, which belong to its group.
process.on('exit', () => process.kill(-server.pid, 'SIGKILL'));
let said = '';
await new Promise((done, fail) => {
  for (const stream of [server.stdout, server.stderr]) {
    stream.on('data', part => {
      said += part;
      if (said.includes('HTTP server listening')) done();
    });
  }
  server.on('exit', () => fail(new Error(`the editor ended:\n${said}`)));
});

const browser = await launch({what: 'the editor', args: ['--host-resolver-rules=MAP *.vscode-cdn.net 127.0.0.1']});

async function workbench() {
  const page = await (await browser.newContext({viewport: {width: 1400, height: 900}})).newPage();
  await page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(root)}`);
  await page.locator('.explorer-folders-view .monaco-list-row', {hasText: 'logs'}).waitFor(WAIT);
  return page;
}

// The menu is opened again until it has the extension's entry, which comes after the explorer, and takes the click,
// which VS Code ignores at first.
async function openItem(page, name, label = 'Open in Stageline') {
  const entry = page.locator('.monaco-menu .action-label', {hasText: label}).first(),
    row = page.locator('.explorer-folders-view .monaco-list-row', {hasText: name});
  for (const end = Date.now() + WAIT.timeout; Date.now() < end; await page.keyboard.press('Escape')) {
    await row.click({button: 'right'});
    if (!await entry.waitFor({timeout: 3000}).then(() => true, () => false)) continue;
    await page.waitForTimeout(500);
    await entry.click();
    if (await entry.waitFor({state: 'hidden', timeout: 3000}).then(() => true, () => false)) return;
  }
  throw new Error('the menu has no entry of the extension');
}

/** The page inside the editor's frames, once it has a text. */
async function shown(page, text, within = 'body') {
  for (const end = Date.now() + WAIT.timeout; Date.now() < end;) {
    for (const frame of page.frames()) {
      if (await frame.locator(within).getByText(text).first().isVisible().catch(() => false)) return frame;
    }
    await page.waitForTimeout(200);
  }
  throw new Error(`no frame shows ${text}`);
}

/** Chinese is spoken by the menu, by the page and by messages. */
async function inChinese(page, theme, picture) {
  await openItem(page, 'logs', '用 Stageline 打开');
  const frame = await shown(page, /第 2 级/);
  assert.equal(await frame.locator('html').getAttribute('lang'), 'zh-CN');
  assert.equal(await frame.locator('html').getAttribute('data-theme'), theme);
  await page.screenshot({path: join(folder, picture)});
  await openItem(page, 'other.html', '用 Stageline 打开');
  await page.locator('.notification-toast', {hasText: 'other.html 不是 Stageline 的页面'}).waitFor(WAIT);
}

const cases = {
  'a folder opens from its menu, and its finding is shown': async page => {
    await openItem(page, 'logs');
    const frame = await shown(page, /Stage 2 is slow/);
    assert.equal(await frame.locator('html').getAttribute('data-theme'), 'light');
    const looks = await frame.evaluate(
      () => [getComputedStyle(document.body).padding, getComputedStyle(document.querySelector('code')).backgroundColor],
    );
    assert.deepEqual(looks, ['0px', 'rgba(0, 0, 0, 0)'], "the page's own margins and grounds, not the editor's");
    await page.screenshot({path: join(folder, 'light.png')});
  },
  "the page follows the editor's theme": async page => {
    await openItem(page, 'logs');
    await shown(page, /Stage 2 is slow/);
    await page.keyboard.press('F1');
    await page.locator('.quick-input-box input').fill('>Preferences: Toggle between Light/Dark Themes');
    await page.locator('.quick-input-list .monaco-list-row', {hasText: 'Toggle between Light/Dark Themes'}).first()
      .click();
    await shown(page, /Stage 2 is slow/, 'html[data-theme=dark] body');
    await page.screenshot({path: join(folder, 'dark.png')});
  },
  'a page that Stageline wrote opens too': async page => {
    await openItem(page, 'page.html');
    await shown(page, /Stage 2 is slow/);
  },
  'a file that is no run says why': async page => {
    await openItem(page, 'notes.txt');
    await page.locator('.notification-toast', {hasText: /no reader recognises this input/}).waitFor(WAIT);
  },
  'a missing program is named, with what to do': async page => {
    await openItem(page, 'logs');
    await page.locator('.notification-toast', {hasText: '/nowhere/stageline was not found'}).waitFor(WAIT);
  },
  'another page does not run in the editor': async page => {
    await openItem(page, 'other.html');
    await page.locator('.notification-toast', {hasText: 'other.html is no page of Stageline'}).waitFor(WAIT);
  },
  'it speaks Chinese where the editor does': page => inChinese(page, 'light', 'chinese.png'),
  'it speaks Chinese in a dark editor too': page => inChinese(page, 'dark', 'chinese_dark.png'),
};

let failed = 0;
for (const [name, body] of Object.entries(cases)) {
  configure({
    ...(name.startsWith('a missing program') ? {'stageline.program': '/nowhere/stageline'} : {}),
    ...(name.includes('dark') ? {'workbench.colorTheme': 'Default Dark Modern'} : {}),
  }, name.includes('Chinese') ? 'zh-cn' : 'en');
  const page = await workbench();
  try {
    await body(page);
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    await page.screenshot({path: join(folder, 'failed.png')}).catch(() => {});
    console.log(`FAIL ${name}\n${error.stack}`);
  }
  await page.context().close();
}
await browser.close();
console.log(`${Object.keys(cases).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
