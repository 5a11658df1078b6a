// node live_run.mjs STAGELINE FOLDER lets a job record (tests/gen/live_job.py) while `stageline view --follow` shows it
// in a headless Chromium. It checks new steps, a rank that becomes slow and is named, its recovery, the job's end, and
// the whole run. Screenshots are left in FOLDER. Its exit code is 0 on success, 1 on a failure, 77 without a browser.
// The job is slow enough for a busy machine; nothing here waits for a time.
import {spawn} from 'node:child_process';
import {createServer} from 'node:http';
import {mkdirSync, rmSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import assert from 'node:assert/strict';
import {launch} from './browser.mjs';

const [stageline, folder] = process.argv.slice(2, 4).map(path => resolve(path));
const browser = await launch({quick: true, what: 'the page of a run that goes on'});
const job = resolve(fileURLToPath(import.meta.url), '../../gen/live_job.py');
const FAULT = {rank: 5, from: 12, to: 24}, STEPS = 60, MOST_MS = 120_000;
// The message must name the rank and not its first slow step, which is found before that step is over and then has
// "rank 5" too.
const NAMED = `li:has(.title:text-matches("^Rank ${FAULT.rank} "))`;
const children = [];
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
mkdirSync(folder, {recursive: true});
const run = join(folder, 'run');
rmSync(run, {recursive: true, force: true});
mkdirSync(run);

// The webhook's other end.
const reported = [];
const receiver = createServer((request, answer) => {
  let text = '';
  request.on('data', part => {
    text += part;
  });
  request.on('end', () => {
    reported.push({type: request.headers['content-type'], method: request.method, ...JSON.parse(text)});
    answer.end();
  });
});
await new Promise(done => receiver.listen(0, '127.0.0.1', done));

const server = spawn(stageline, [
  'view',
  run,
  '--follow',
  '--port',
  '0',
  '--no-open',
  '--token',
  'none',
  '--lang',
  'en',
  '--webhook',
  `http://127.0.0.1:${receiver.address().port}/hook`,
], {stdio: ['ignore', 'pipe', 'pipe']});
children.push(server);
let words = '';
server.stderr.on('data', data => {
  words += data;
});
const address = await new Promise((done, fail) => {
  let text = '';
  server.stdout.on('data', data => {
    text += data;
    const found = /http:\/\/\S+/.exec(text);
    if (found) done(found[0]);
  });
  server.on('exit', code => fail(new Error(`stageline view --follow ended with ${code}: ${words}`)));
});
const get = async path => await (await fetch(new URL(path, address))).text();

const context = await browser.newContext({viewport: {width: 1280, height: 900}, locale: 'en-US'});
context.setDefaultTimeout(MOST_MS);
const page = await context.newPage(), problems = [];
page.on('pageerror', error => problems.push(error.message));
page.on('console', message => {
  if (message.type() === 'error') problems.push(message.text());
});
await page.goto(address);

try {
  await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'Waiting for the first steps');
  assert.match(await get('metrics'), /^stageline_recording 0$/m);
  await page.screenshot({path: join(folder, '1-waiting.png')});

  const recorder = spawn('python3', [
    job,
    '-o',
    run,
    '--steps',
    String(STEPS),
    '--step-ms',
    '400',
    '--fault',
    `${FAULT.rank},1.6,${FAULT.from},${FAULT.to}`,
  ], {stdio: ['ignore', 'ignore', 'inherit']});
  children.push(recorder);
  const ended = new Promise(done => recorder.on('exit', done));

  // Steps come by themselves.
  await page.waitForFunction(() => /^Step [2-9]\d* took/.test(document.querySelector('h1').textContent));
  const first = await page.textContent('h1');
  await page.waitForFunction(before => document.querySelector('h1').textContent !== before, first);
  assert.match(await page.textContent('.sizes'), /^16 ranks · 4 stages · \d+ steps$/);
  await page.waitForSelector('.pipe canvas');
  assert.equal(await page.locator('.pipe .names div').count(), 16);
  const painted = await page.evaluate(() => {
    const canvas = document.querySelector('.pipe canvas'),
      {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let i = 0; i < data.length; i += 4) colours.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
    return colours.size;
  });
  assert.ok(painted > 3, `the pipeline has ${painted} colours`);

  // The slow rank is named, on the page, in the metrics and to the webhook.
  await page.waitForSelector(`.found:not(.gone) ${NAMED}`);
  const since = Number(/since step (\d+)/.exec(await page.textContent(`.found:not(.gone) ${NAMED} .when`))[1]);
  assert.ok(since >= FAULT.from, `it is named before it is slow: step ${since}`);
  assert.equal(await page.textContent('.pipe .names .hot'), `stage ${FAULT.rank % 4} · rank ${FAULT.rank}`);
  await page.screenshot({path: join(folder, '2-slow.png')});
  const metrics = await get('metrics');
  for (const line of [
    /^stageline_recording 1$/m,
    /^stageline_ranks 16$/m,
    /^stageline_slowest_rank 5$/m,
    /^stageline_slowest_rank_ratio 1\.[56]/m,
    /^stageline_bubble_share 0\.\d+$/m,
    /^stageline_step_seconds 0\.\d+$/m,
    /^stageline_slowest_stage \d$/m,
    /^stageline_lost_records_total 0$/m,
    /^stageline_finding_lost_seconds\{id="[^"]+",cause="[^"]*5"\} 0\.\d+$/m,
  ])
    assert.match(metrics, line);

  // In Chinese and dark, at once, and remembered.
  await page.click('button.language');
  assert.match(await page.textContent('.found:not(.gone) li .title'), /[\u4e00-\u9fff]/);
  assert.match(await page.textContent('h1'), /用时/);
  await page.click('button.theme');
  await page.screenshot({path: join(folder, '3-zh-dark.png')});
  await page.click('button.language');
  await page.click('button.theme');

  // Well again: it goes, and stays listed as what was.
  await page.waitForSelector(`.found.gone ${NAMED}`);
  await page.screenshot({path: join(folder, '4-well.png')});

  // The end, and the whole run behind it.
  assert.equal(await ended, 0);
  await page.waitForFunction(
    steps => document.querySelector('h1').textContent === `The job has ended after ${steps} steps`,
    STEPS,
  );
  await page.waitForSelector('.over a');
  // The job's losses over all steps: the rank, and the explained run's price.
  await page.waitForSelector(`.over .whole .title:text-matches("ank ${FAULT.rank} ")`);
  const whole = JSON.parse(await get('api/explain')).findings[0];
  assert.ok(whole.lost_share > 0.05, `the slow rank cost ${whole.lost_share}`);
  // Its twelve steps are a state of the rank, and no exceptions of which the longest is named.
  assert.match(whole.title_en, new RegExp(`^Rank ${FAULT.rank} .* in ${FAULT.to - FAULT.from} of ${STEPS} steps`));
  assert.equal(await page.textContent('.over .whole li:first-child .title'), whole.title_en);
  const price = Number(/^([\d.]+)/.exec(await page.textContent('.over .whole li:first-child .price'))[1]);
  assert.ok(Math.abs(price - 100 * whole.lost_share) < 0.06, `${price} % is shown of ${whole.lost_share}`);
  await page.screenshot({path: join(folder, '5-ended.png')});
  assert.match(await get('metrics'), /^stageline_recording 0$/m);
  assert.match(await get('metrics'), new RegExp(`^stageline_steps_total ${STEPS}$`, 'm'));
  await page.click('.over a');
  await page.waitForSelector('.pages a[aria-current]');
  await page.screenshot({path: join(folder, '6-whole.png')});

  const of5 = reported.filter(event => event.finding.title_en.startsWith(`Rank ${FAULT.rank} `));
  assert.deepEqual(of5.map(event => event.event), ['finding.begins', 'finding.ends']);
  const told = reported.filter(event => event.event === 'finding.begins').map(event => event.finding.title_en);
  const late = told.slice(told.indexOf(of5[0].finding.title_en)).filter(title => / rank 5 took /.test(title));
  assert.deepEqual(late, [], 'its long steps are told after the rank');
  assert.ok(
    reported.every(event =>
      event.method === 'POST' && event.type === 'application/json' && event.finding.title_zh && event.run
    ),
  );
  assert.match(words, /step \d+: Rank 5 /);
  assert.match(words, /the recording ended after 60 steps/);
  assert.deepEqual(problems, []);
  server.removeAllListeners('exit');
  const code = new Promise(done => server.on('exit', done));
  server.kill('SIGINT');
  assert.equal(await code, 0);
  console.log('the page of a run that goes on: good');
} catch (error) {
  await page.screenshot({path: join(folder, 'failed.png')}).catch(() => undefined);
  console.error(error, '\n', words, '\n', problems, '\n', await page.textContent('#live').catch(() => ''));
  process.exitCode = 1;
}
receiver.close();
receiver.closeAllConnections();
await browser.close();
process.exit();
