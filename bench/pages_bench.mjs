// node pages_bench.mjs STAGELINE CACHE measures the cost of the viewer's pages other than the timeline. They are the
// pipeline page of 512 ranks × 64 micro-batches × 10 steps (80 times smaller with STAGELINE_BENCH_SMALL), and every
// page of answers once its analyses are done. It uses headless Chromium without a GPU, and real input events. Frames
// are wall time, which a busy machine lengthens, so the processor time of the page's own thread is printed too. Prints
// Markdown. bench/README.md describes the method.
import {execFileSync, spawn} from 'node:child_process';
import {existsSync, mkdirSync, readFileSync} from 'node:fs';
import {loadavg} from 'node:os';
import {join} from 'node:path';
import {launch} from '../tests/web/browser.mjs';

const [stageline, cache] = process.argv.slice(2), small = !!process.env.STAGELINE_BENCH_SMALL;
const REPEATS = 3, SIZE = {width: 1600, height: 900};
mkdirSync(cache, {recursive: true});

const at = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];
const middle = values => at(values, 0.5), show = ms => `${ms.toFixed(ms >= 100 ? 0 : 1)} ms`;
const met = [];
function row(what, ours, goal, good) {
  met.push(good);
  console.log(`| ${what} | ${ours} | ${goal} | ${good ? 'yes' : '**no**'} |`);
}

function runOf(name, ...args) {
  const path = join(cache, `pages-${name}`);
  if (!existsSync(path)) execFileSync(stageline, ['simulate', ...args, '-o', path], {stdio: 'ignore'});
  return path;
}
// Returns the processor time of a process in ms; 0 where /proc does not record it.
function processorTime(pid) {
  const path = `/proc/${pid}/stat`;
  if (!existsSync(path)) return 0;
  const [user, system] = readFileSync(path, 'utf8').split(') ')[1].split(' ').slice(11, 13);
  return (Number(user) + Number(system)) * 10;
}
async function served(paths, act) {
  const child = spawn(stageline, ['view', ...paths, '--port', '0', '--no-open', '--quiet', '--token', 'none'], {stdio: ['ignore', 'pipe', 'inherit']});
  try {
    const url = await new Promise((done, fail) => {
      child.stdout.on('data', data => { const found = /http:\/\/\S+?(?=\/?\s)/.exec(String(data)); if (found) done(found[0]); });
      child.on('exit', code => fail(new Error(`stageline view ended with ${code}`)));
    });
    await act(url, () => processorTime(child.pid));
  } finally {
    child.removeAllListeners('exit');
    child.kill('SIGINT');
  }
}

// Returns a function that reads the processor time of the page's thread in ms.
async function workOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', {timeDomain: 'threadTicks'});
  return async () => (await session.send('Performance.getMetrics')).metrics.find(one => one.name === 'TaskDuration').value * 1000;
}

// Frames while `act` sends input: times between them, and what the page's thread worked for each.
async function framesOf(page, act) {
  const worked = await workOf(page);
  await page.evaluate(() => {
    const deltas = window.deltas = [];
    let last = 0;
    window.measuring = true;
    const frame = now => {
      if (last) deltas.push(now - last);
      last = now;
      if (window.measuring) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  const before = await worked();
  await act();
  const after = await worked(), deltas = await page.evaluate(() => { window.measuring = false; return window.deltas; });
  return {deltas, workMs: (after - before) / Math.max(deltas.length, 1)};
}
const idle = page => page.evaluate(async () => {
  const frame = () => new Promise(done => requestAnimationFrame(done));
  for (let still = 0, last = -1; still < 3;) {
    await frame();
    const now = stageline.pipeline.frames();
    still = now === last ? still + 1 : 0;
    last = now;
  }
});

async function pipelinePage(browser, url, serverWorked) {
  const context = await browser.newContext({viewport: SIZE}), page = await context.newPage(), opened = [];
  const ready = one => one.waitForFunction(() => window.stageline?.pipeline?.frames() > 0, null, {timeout: 240_000, polling: 20});
  await page.goto(`${url}/?lang=en#/pipeline`);
  await ready(page);
  await page.waitForFunction(() => stageline.pipeline.tables() !== null && document.querySelector('#cost'), null, {timeout: 240_000});
  for (let i = 0; i < REPEATS; ++i) {
    const other = await context.newPage();
    await other.goto(`${url}/?lang=en#/pipeline`);
    await ready(other);
    opened.push(await other.evaluate(() => performance.getEntriesByName('pipeline-painted')[0].startTime));
    await other.close();
  }
  console.error(await page.evaluate(() => `${stageline.pipeline.cells()} cells, ${stageline.pipeline.parts.length} ranks`));
  row('pipeline page, server running: navigation to first chart', show(middle(opened)), '–', true);
  const pan = async (what, prepare) => {
    const runs = [];
    for (let i = 0; i < REPEATS; ++i) {
      await prepare();
      await idle(page);
      runs.push(await framesOf(page, async () => {
        await page.keyboard.down('d');
        await page.waitForTimeout(3000);
        await page.keyboard.up('d');
      }));
    }
    const p95 = middle(runs.map(one => at(one.deltas, 0.95))), work = middle(runs.map(one => one.workMs));
    row(`pan, ${what}: frame p95; the page's thread, a frame`, `${show(p95)}; ${show(work)}`, '≤ 17 ms', p95 <= 17.5);
  };
  const zoomTo = async presses => {
    await page.keyboard.press('0');
    await idle(page);
    for (let i = 0; i < presses; ++i) await page.keyboard.press('w');
    for (let i = 0; i < 12; ++i) await page.keyboard.press('a');
  };
  await page.focus('.page-pipeline canvas');
  await pan('one step, a row a stage', () => zoomTo(4));
  await page.keyboard.press('Shift+U');
  await pan('one step, every rank', () => zoomTo(4));
  await page.click('#all-steps');
  await page.focus('.page-pipeline canvas');
  await pan('all steps, every rank', () => zoomTo(4));
  await page.keyboard.press('Shift+U');
  await page.click('#all-steps');
  await idle(page);
  // A slider that moves to the chart that shows it.
  await page.focus('#cost');
  const took = [], worked = await workOf(page), before = await worked(), serverBefore = serverWorked();
  for (let i = 0; i < 12; ++i) {
    const done = page.evaluate(() => new Promise(reported => {
      const slider = document.querySelector('#cost'), canvas = document.querySelector('.page-pipeline canvas'), before = stageline.pipeline.world()?.end;
      let began = 0;
      slider.addEventListener('input', () => { began = performance.now(); }, {capture: true, once: true});
      const painted = () => {
        if (!began || stageline.pipeline.world()?.end === before) return;
        canvas.removeEventListener('painted', painted);
        reported(performance.now() - began);
      };
      canvas.addEventListener('painted', painted);
      window.armed = true;
    }));
    await page.waitForFunction('window.armed');
    await page.keyboard.press('ArrowLeft');
    took.push(await done);
    await page.evaluate('window.armed = false');
    await idle(page);
  }
  const each = [await worked() - before, serverWorked() - serverBefore].map(ms => show(ms / took.length));
  row('what-if: a slider moves, to the chart that shows it; the page\'s thread; the server, each', [show(middle(took)), ...each].join('; '),
      '≤ 50 ms', middle(took) <= 50);
  await context.close();
}

async function answerPages(browser, url) {
  const context = await browser.newContext({viewport: SIZE}), page = await context.newPage();
  await page.goto(`${url}/?lang=en#/answers`);
  const there = wanted => page.waitForFunction(id => { const now = window.stageline?.answers?.(); return now && (!id || now.family === id) && now.waiting.length === 0; },
      wanted, {timeout: 240_000, polling: 5});
  await there('');
  const families = (await page.evaluate(() => stageline.families())).map(one => one.id);
  for (const id of families) {  // the analyses are made
    await page.click(`.families a[href="#/answers/${id}"]`);
    await there(id);
  }
  const took = [];
  for (const id of families) {  // and a page that has asked for nothing yet gets them
    const other = await context.newPage();
    await other.goto(`${url}/?lang=en#/timeline`);
    await other.waitForFunction(() => window.stageline?.settled?.());
    const worked = await workOf(other), before = await worked(), wall = await other.evaluate(async wanted => {
      const began = performance.now();
      location.hash = `#/answers/${wanted}`;
      for (;;) {
        await new Promise(done => requestAnimationFrame(done));
        const now = stageline.answers?.();
        if (now?.family === wanted && now.waiting.length === 0) break;
      }
      await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - began;
    }, id);
    took.push([id, wall, await worked() - before]);
    await other.close();
  }
  const [slowest, most] = took.reduce((a, b) => (b[1] > a[1] ? b : a));
  row(`a page of answers whose analyses are done: the slowest of ${took.length} (${slowest}); the median; the page's thread, the most`,
      `${show(most)}; ${show(middle(took.map(one => one[1])))}; ${show(Math.max(...took.map(one => one[2])))}`,
      '≤ 200 ms', most <= 200);
  await context.close();
}

const big = small ? runOf('small', '1f1b', '--stages', '8', '--dp', '2', '--micro-batches', '16', '--steps', '10', '--cost', '10,20', '--jitter', '0.05', '--messages')
  : runOf('512', '1f1b', '--stages', '64', '--dp', '8', '--micro-batches', '64', '--steps', '10', '--cost', '10,20', '--jitter', '0.05', '--messages');
const browser = await launch();
console.log('| what | stageline | goal | met |\n| --- | --- | --- | --- |');
await served([big], (url, serverWorked) => pipelinePage(browser, url, serverWorked));
await served([big], url => answerPages(browser, url));
await browser.close();
console.log(`\nload ${loadavg().map(one => one.toFixed(1)).join(' ')}; ${met.filter(Boolean).length} of ${met.length} goals met`);
