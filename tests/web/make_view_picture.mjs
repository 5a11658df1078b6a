// node make_view_picture.mjs STAGELINE OUT.png: the picture of docs/howto/view.md. A simulated training job of four
// pipeline stages, one step of it, a slow kernel chosen.
import {spawn, execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {launch} from './browser.mjs';
import {fixedArguments} from './goldens.mjs';
import {clickSlice, settle} from './viewer_help.mjs';

const [stageline, out] = process.argv.slice(2), scratch = mkdtempSync(join(tmpdir(), 'stageline-picture-'));
if (!out) throw new Error('usage: node make_view_picture.mjs STAGELINE OUT.png');
const run = join(scratch, 'gpt-4-stages');
execFileSync('python3', [
  join(dirname(fileURLToPath(import.meta.url)), '../gen/kineto.py'),
  '-o',
  run,
  '--ranks',
  '4',
  '--events',
  '12000',
  '--shape',
  'pipeline',
  '--micro-batches',
  '8',
  '--steps',
  '3',
  '--notes',
  'actions',
  '--python',
  '--format',
  'json',
], {stdio: 'ignore'});
const child = spawn(stageline, ['view', run, '--port', '0', '--no-open', '--quiet'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const address = await new Promise(done =>
  child.stdout.on('data', data => {
    const found = /http:\/\/\S+/.exec(String(data));
    if (found) done(found[0].replace(/\/$/, ''));
  })
);
const browser = await launch({args: fixedArguments});
const page = await browser.newPage({viewport: {width: 1280, height: 760}});
await page.goto(`${address}/?lang=en#/timeline`);
await page.waitForFunction(() => window.stageline?.frames?.() > 0 && stageline.settled());
await page.keyboard.press('2');
await page.evaluate(() => {
  const {t0, t1} = stageline.view();
  stageline.setView(t0 + (t1 - t0) * 0.12, t0 + (t1 - t0) * 0.62);
});
await clickSlice(page, await page.evaluate('stageline.run.lanes.find(lane => lane.type === "stream").id'), 1);
await page.waitForFunction(() => stageline.facts());
await page.mouse.move(3, 3);
await settle(page);
await page.screenshot({path: out, animations: 'disabled', caret: 'hide'});
await browser.close();
child.kill('SIGINT');
rmSync(scratch, {recursive: true, force: true});
