// node jupyterlab_run.mjs STAGELINE PYTHON FOLDER opens runs from JupyterLab's file browser in a headless Chromium.
// PYTHON has JupyterLab, the package stageline, and the extension's wheel. Screenshots are left in FOLDER. Its exit
// code is 0 on success, 1 on a failure, 77 without a browser.
import {execFileSync, spawn} from 'node:child_process';
import assert from 'node:assert/strict';
import {mkdirSync, rmSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:net';
import {join, resolve} from 'node:path';
import {launch} from './browser.mjs';

const [stageline, python, folder] = process.argv.slice(2, 5).map(path => resolve(path));
const TOKEN = 'token-of-this-test', WAIT = {timeout: 120_000};

// The server shows a run with a slow stage, a file that is not a run, and a hidden run.
const root = join(folder, 'root'), home = join(folder, 'home');
for (const path of [root, home]) rmSync(path, {recursive: true, force: true});
for (const path of [root, home]) mkdirSync(path, {recursive: true});
for (const [name, place] of [['logs <b>', root], ['.hidden', root], ['outside', home]]) {
  execFileSync(stageline, ['simulate', '1f1b', '--fault', 'slow-stage:2,1.4', '-o', join(place, name)], {
    stdio: 'ignore',
  });
}
writeFileSync(join(root, 'notes.txt'), 'no run at all\n');

const port = await new Promise(done => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const {port} = probe.address();
    probe.close(() => done(port));
  });
});
const server = spawn(python, [
  '-m',
  'jupyterlab',
  '--no-browser',
  '--allow-root',
  '--ip=127.0.0.1',
  `--port=${port}`,
  '--port-retries=0',
  `--IdentityProvider.token=${TOKEN}`,
  `--ServerApp.root_dir=${root}`,
  '--LabApp.news_url=None',
], {env: {...process.env, HOME: home, JUPYTER_PLATFORM_DIRS: '1'}, stdio: ['ignore', 'ignore', 'pipe']});
process.on('exit', () => server.kill('SIGKILL'));
let said = '';
await new Promise((done, fail) => {
  server.stderr.on('data', part => {
    said += part;
    if (said.includes('is running at')) done();
  });
  server.on('exit', () => fail(new Error(`JupyterLab ended:\n${said}`)));
});

const base = `http://127.0.0.1:${port}/`;
const browser = await launch({what: 'JupyterLab'});

async function ask(query, token = TOKEN) {
  const answer = await fetch(`${base}stageline/page?${query}`, {headers: token ? {authorization: `token ${token}`} : {},
    redirect: 'manual'});
  return {status: answer.status, policy: answer.headers.get('content-security-policy'), text: await answer.text()};
}

// The reader's system prefers dark: JupyterLab's theme counts, which is light.
async function lab() {
  const context = await browser.newContext({colorScheme: 'dark', viewport: {width: 1400, height: 900}}),
    page = await context.newPage();
  await page.goto(`${base}lab?token=${TOKEN}&reset`);
  await page.locator('.jp-DirListing-item').first().waitFor(WAIT);
  return page;
}

async function openItem(page, name) {
  await page.locator('.jp-DirListing-item', {hasText: name}).click({button: 'right'});
  await page.locator('.lm-Menu-item', {hasText: /Stageline/}).click();
}

const shown = page => page.frameLocator('.sl-jupyterlab iframe');

const cases = {
  'a folder opens from its menu, and its finding is shown': async () => {
    const page = await lab();
    await openItem(page, 'logs <b>');
    await shown(page).getByText(/Stage 2 is slow/).first().waitFor(WAIT);
    assert.equal(await shown(page).locator('html').getAttribute('data-theme'), 'light');
    await page.screenshot({path: join(folder, 'light.png')});
    await openItem(page, 'logs <b>');
    assert.equal(await page.locator('.sl-jupyterlab').count(), 1, 'the second time it shows the same tab');
    await page.reload();
    await shown(page).getByText(/Stage 2 is slow/).first().waitFor(WAIT);
    await page.context().close();
  },
  "the page follows JupyterLab's theme": async () => {
    const page = await lab();
    await openItem(page, 'logs <b>');
    await shown(page).getByText(/Stage 2 is slow/).first().waitFor(WAIT);
    await page.locator('.lm-MenuBar-item', {hasText: 'Settings'}).click();
    await page.locator('.lm-Menu-item', {hasText: 'Theme'}).first().hover();
    await page.locator('.lm-Menu-item', {hasText: 'JupyterLab Dark'}).first().click();
    await shown(page).locator('html[data-theme=dark]').waitFor(WAIT);
    await shown(page).getByText(/Stage 2 is slow/).first().waitFor(WAIT);
    await page.screenshot({path: join(folder, 'dark.png')});
    await page.context().close();
  },
  'a file that is no run says why': async () => {
    const page = await lab();
    await openItem(page, 'notes.txt');
    const message = page.locator('.sl-jupyterlab pre', {hasText: 'notes.txt could not be opened'});
    await message.waitFor(WAIT);
    assert.match(await message.textContent(), /no reader|format|not /i);
    await page.context().close();
  },
  'the command palette opens the folder that the file browser shows': async () => {
    const page = await lab();
    await page.locator('.jp-DirListing-item', {hasText: 'logs <b>'}).dblclick();
    await page.locator('.jp-DirListing-item', {hasText: 'workerlog'}).first().waitFor(WAIT);
    await page.keyboard.press('ControlOrMeta+Shift+c');
    await page.locator('.lm-CommandPalette-input').fill('in Stageline');
    await page.locator('.lm-CommandPalette-item', {hasText: 'Open This Folder'}).click();
    await shown(page).getByText(/Stage 2 is slow/).first().waitFor(WAIT);
    await page.context().close();
  },
  "it speaks JupyterLab's language, in both themes": async () => {
    const set = (plugin, settings) =>
      fetch(`${base}lab/api/settings/@jupyterlab/${plugin}`, {
        method: 'PUT',
        headers: {authorization: `token ${TOKEN}`, 'content-type': 'application/json'},
        body: JSON.stringify({raw: JSON.stringify(settings)}),
      });
    const known = await fetch(`${base}lab/api/translations/`, {headers: {authorization: `token ${TOKEN}`}});
    if (!('zh_CN' in (await known.json()).data)) return 'no Chinese language pack';
    assert.equal((await set('translation-extension:plugin', {locale: 'zh_CN'})).status, 204);
    for (const [theme, picture] of [['Light', 'chinese.png'], ['Dark', 'chinese_dark.png']]) {
      assert.equal((await set('apputils-extension:themes', {theme: `JupyterLab ${theme}`})).status, 204);
      const page = await lab();
      await page.locator(`body[data-jp-theme-light=${theme === 'Light'}]`).waitFor({...WAIT, state: 'attached'});
      await page.locator('.jp-DirListing-item', {hasText: 'logs <b>'}).click({button: 'right'});
      await page.locator('.lm-Menu-item', {hasText: '用 Stageline 打开'}).click();
      await shown(page).locator(`html[lang=zh-CN][data-theme=${theme.toLowerCase()}]`).waitFor(WAIT);
      await shown(page).getByText(/第 2 级/).first().waitFor(WAIT);
      await page.screenshot({path: join(folder, picture)});
      await openItem(page, 'notes.txt');
      await page.locator('.sl-jupyterlab pre', {hasText: '无法打开 notes.txt'}).waitFor(WAIT);
      await page.context().close();
    }
    await set('apputils-extension:themes', {});
    await set('translation-extension:plugin', {locale: 'en'});
  },
  'the frame has no rights on the server': async () => {
    const page = await lab();
    await openItem(page, 'logs <b>');
    await shown(page).getByText(/Stage 2 is slow/).first().waitFor(WAIT);
    assert.equal(await page.locator('.sl-jupyterlab iframe').getAttribute('sandbox'), 'allow-scripts');
    const frame = page.frames().find(one => one.parentFrame());
    assert.equal(await frame.evaluate(() => self.origin), 'null');
    assert.equal(await frame.evaluate(url => fetch(url).then(() => 'read', () => 'refused'), `${base}api/contents`),
      'refused');
    await page.context().close();
  },
  'the server gives only what its file browser shows, to whom it knows': async () => {
    const good = await ask('path=logs%20%3Cb%3E');
    assert.equal(good.status, 200);
    assert.match(good.policy, /^sandbox allow-scripts/);
    assert.match((await ask('path=logs%20%3Cb%3E&lang=zh')).text, /<html lang="zh-CN"/);
    for (const path of [
      '.hidden',
      '../home/outside',
      'logs%20%3Cb%3E/../../home/outside',
      'nothing',
      'logs%00',
      '/etc',
    ])
      assert.equal((await ask(`path=${path}`)).status, 404, path);
    assert.equal((await ask('path=logs%20%3Cb%3E', '')).status, 403);
    assert.equal((await ask('path=notes.txt')).status, 422);
  },
};

let failed = 0, skipped = 0;
for (const [name, body] of Object.entries(cases)) {
  try {
    const why = await body();
    if (why) skipped += 1;
    console.log(why ? `skip ${name}: ${why}` : `ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}\n${error.stack}`);
  }
}
await browser.close();
console.log(`${Object.keys(cases).length - failed - skipped} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed ? 1 : 0);
