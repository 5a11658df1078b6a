// node viewer_bench.mjs STAGELINE CACHE SLICES[,SLICES…] [WASM] measures the cost of the viewer in a headless Chromium
// without a GPU, with real input events. It also measures the same trace in Perfetto's trace processor if its module is
// given. Prints Markdown. Exits with 0, or with 77 if there is no browser. bench/README.md describes the method.
import {spawn, spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, readFileSync, statSync} from 'node:fs';
import {loadavg} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {chromiumPath, launch} from '../tests/web/browser.mjs';
import {cpuDuring} from './viewer_cpu.mjs';
import {pageMemory} from './viewer_memory.mjs';
import {measureReport} from './viewer_report.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const [stageline, cache, sizes, wasm] = process.argv.slice(2);
const REPEATS = 3, SIZE = {width: 1600, height: 900};
mkdirSync(cache, {recursive: true});

const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];
const median = values => quantile(values, 0.5);
const ms = value => (value >= 10000 ? `${(value / 1000).toFixed(1)} s` : value >= 100 ? `${value.toFixed(0)} ms`
    : `${value.toFixed(1)} ms`);
const mb = bytes => `${(bytes / 1e6).toFixed(0)} MB`;
const rows = [];
function row(what, size, ours, goal, met, rival = '–') {
  if (goal !== '–') rows.push(met);
  console.log(`| ${what} | ${size} | ${ours} | ${goal} | ${goal === '–' ? '–' : met ? 'yes' : '**no**'} | ${rival} |`);
}

function traceOf(slices) {
  const path = join(cache, `viewer-${slices}.json`);
  if (!existsSync(path) && spawnSync(process.execPath, [join(here, 'viewer_trace.mjs'), String(slices), path],
      {stdio: 'inherit'}).status !== 0)
    throw new Error('the trace could not be made');
  return path;
}

function serve(path) {
  const child = spawn(stageline, ['view', path, '--port', '0', '--no-open', '--quiet', '--token', 'none'], {stdio: ['ignore', 'pipe', 'inherit']});
  const address = new Promise((done, fail) => {
    child.stdout.on('data', data => {
      const found = /http:\/\/\S+/.exec(String(data));
      if (found) done(found[0].replace(/\/$/, ''));
    });
    child.on('exit', code => fail(new Error(`stageline view ended with ${code}`)));
  });
  return {child, address};
}

const painted = page => page.waitForFunction(() => performance.getEntriesByName('timeline-painted')[0]?.startTime, null,
    {timeout: 240_000, polling: 20}).then(h => h.jsonValue());
// Colour where the first lane is: a mark alone could be set over an empty canvas.
const coloured = page => page.evaluate(() => {
  const canvas = document.querySelector('canvas.rows'), data = canvas.getContext('2d').getImageData(300, 0, 400, canvas.height).data;
  let seen = 0;
  for (let i = 0; i < data.length; i += 4) if (Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1],
      data[i + 2]) > 60) ++seen;
  return seen > 1000;
});
const settle = async page => {
  while (!await page.evaluate(() =>
      new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(stageline.settled())))))) { /* on its way */ }
};
// While a run is read the page begins again whenever more of it is there: what is asked of it may find it gone.
const wholeRun = page => page.waitForFunction(() => window.stageline?.run?.whole && performance.getEntriesByName('timeline-painted')[0],
    null, {timeout: 240_000, polling: 20});
// Times between frames while `act` sends input, and processor time.
async function framesDuring(page, act, server) {
  await page.evaluate(() => {
    const deltas = window.deltas = [], tasks = window.tasks = [];
    let last = 0;
    window.measuring = true;
    window.observer = new PerformanceObserver(list => { for (const entry of list.getEntries()) tasks.push(entry.duration); });
    window.observer.observe({type: 'longtask'});
    const frame = now => {
      if (last) deltas.push(now - last);
      last = now;
      if (window.measuring) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  const {cpu} = await cpuDuring(page.context().browser(), server, act);
  const seen = await page.evaluate(() => {
    window.measuring = false;
    window.observer.disconnect();
    return {deltas: window.deltas, longest: Math.max(0, ...window.tasks)};
  });
  return {...seen, cpu};
}

async function rivalOf(path) {
  if (!wasm) return null;
  const {openTraceProcessor} = await import('../tests/viewers/trace_processor.mjs'), began = performance.now();
  const tp = openTraceProcessor(wasm);
  tp.load(readFileSync(path));
  const loaded = performance.now() - began, time = sql => {
    const at = performance.now();
    tp.query(sql);
    return performance.now() - at;
  };
  const select = time('select name, count(*) n, sum(dur) s, min(dur), max(dur) from slice group by name order by s desc');
  return {loaded, select, search: time(`select count(*) from slice where name glob '*gemm*'`)};
}

async function measure(slices) {
  const path = traceOf(slices), size = `${(slices / 1e6).toFixed(0)} M, ${(statSync(path).size / 1e9).toFixed(2)} GB`, big = slices >= 5e6;
  const browser = await launch();
  let rival = null;
  try { rival = slices <= 1e6 || process.env.STAGELINE_BENCH_FULL ? await rivalOf(path) : null;
      } catch (error) { console.log(`rival: ${error.message}`); }

  // Command to first true paint, the file in the page cache.
  readFileSync(path, {flag: 'r', encoding: null}).length;
  const began = performance.now(), {child, address} = serve(path);
  try {
    await measureServed(browser, child, await address, {slices, size, big, rival, began});
  } finally {
    child.removeAllListeners('exit');
    child.kill('SIGINT');
    await browser.close();
  }
}

async function measureServed(browser, child, url, {slices, size, big, rival, began}) {
  const context = await browser.newContext({viewport: SIZE}), page = await context.newPage();
  await page.goto(url + '/?lang=en#/timeline');
  await painted(page);
  const early = performance.now() - began;
  await wholeRun(page);
  const cold = performance.now() - began;
  if (!await coloured(page)) throw new Error('the first paint has no colour');
  row('command to first paint of what is read by then', size, ms(early), '–', true);
  row('command to first paint of the whole run', size, ms(cold), big ? '≤ 5 s' : '–', !big || cold <= 5000,
      rival ? `${ms(rival.loaded)} to load, before it draws` : '–');

  const warm = [], warmCpu = [];
  for (let i = 0; i < REPEATS; ++i) {
    const other = await context.newPage();
    const {result, cpu} = await cpuDuring(browser, child.pid, async () => {
      await other.goto(url + '/?lang=en#/timeline');
      await other.waitForTimeout(1000);  // to be asked takes the page 8 ms: let it paint first
      return painted(other);
    });
    warm.push(result);
    warmCpu.push(cpu);
    await other.close();
  }
  const least = key => ms(Math.min(...warmCpu.map(one => one[key])));
  row('server running, navigation to first paint', size, ms(median(warm)), '≤ 300 ms', median(warm) <= 300);
  row('… processor time: page; browser; server', size, `${least('page')}; ${least('browser')}; ${least('server')}`, '–', true);

  // Two hundred lanes are visible.
  await settle(page);
  for (let i = 0; i < 14; ++i) await page.keyboard.press('-');
  await settle(page);
  const lanes = await page.evaluate('stageline.painted().lanes');
  await page.mouse.move(900, 400);
  const pans = [], zooms = [];
  for (let i = 0; i < REPEATS; ++i) {
    await page.evaluate(() => { const {t0, t1} = stageline.home; stageline.setView(t0 + (t1 - t0) * 0.1, t0 + (t1 - t0) * 0.2); });
    await settle(page);
    pans.push(await framesDuring(page, async () => {
      await page.keyboard.down('d');
      await page.waitForTimeout(4000);
      await page.keyboard.up('d');
    }, child.pid));
    await page.evaluate(() => { const {t0, t1} = stageline.home; stageline.setView(t0, t1); });
    await settle(page);
    zooms.push(await framesDuring(page, async () => {
      await page.keyboard.down('Control');
      for (let k = 0; k < 120; ++k) {  // e^(0.1 · 120): five decades
        await page.mouse.wheel(0, -25);
        await page.waitForTimeout(12);
      }
      await page.keyboard.up('Control');
    }, child.pid));
  }
  const of = (runs, share) => median(runs.map(one => quantile(one.deltas, share)));
  const [pan95, pan99, zoom95] = [of(pans, 0.95), of(pans, 0.99), of(zooms, 0.95)];
  row(`pan, ${lanes} lanes two rows deep: frame p95 / p99`, size, `${ms(pan95)} / ${ms(pan99)}`, '≤ 17 / 34 ms', pan95 <= 17.5 && pan99 <= 34);
  row('wheel zoom through five decades: frame p95; longest task', size, `${ms(zoom95)}; ${ms(median(zooms.map(one => one.longest)))}`,
      '≤ 34 ms', zoom95 <= 34.5);
  const frameCpu = (runs, key) => ms(median(runs.map(one => one.cpu[key] / Math.max(one.deltas.length, 1))));
  for (const [what, runs] of [['pan', pans], ['zoom', zooms]])
    row(`… processor time a frame, ${what}: page; browser; server`, size,
        ['page', 'browser', 'server'].map(key => frameCpu(runs, key)).join('; '), '–', true);

  // These queries are measured in the page.
  await page.evaluate(() => { const {t0, t1} = stageline.home; stageline.setView(t0, t1); });
  await settle(page);
  const ask = async (target, times = 5) => median(await page.evaluate(async ([path, n]) => {
    const took = [];
    for (let i = 0; i < n; ++i) {
      const at = performance.now();
      await (await fetch(path)).arrayBuffer();
      took.push(performance.now() - at);
    }
    return took;
  }, [target, times]));
  const select = await ask('/api/select?limit=300');
  row('totals of an area: all of it', size, ms(select), '≤ 100 ms', select <= 100, rival ? ms(rival.select) : '–');
  // And of parts of it, whose edges cut what is summed up already: by the clock, and by what the server works.
  const {span, lanes: laneCount} = await page.evaluate('({span: stageline.run.span_ns, lanes: stageline.run.lanes.length})');
  for (const [what, chosen] of [['all lanes', `0-${laneCount - 1}`], ['half of the lanes', `3-${laneCount >> 1}`]]) {
    const took = [], worked = [];
    for (const [from, to] of [[0, 0.55], [0.1, 0.75], [0, 0.9], [0.05, 0.95]]) {
      const {result, cpu} = await cpuDuring(browser, child.pid, () =>
        ask(`/api/select?limit=300&lanes=${chosen}&t0=${Math.floor(span * from)}&t1=${Math.floor(span * to)}`));
      took.push(result);
      worked.push(cpu.server / 5);
    }
    row(`… of parts of it, 0.55 to 0.9, ${what}: the slowest (processor time)`, size, `${ms(Math.max(...took))} (${ms(Math.max(...worked))})`,
        '≤ 100 ms', Math.max(...took) <= 100);
  }
  const search = await ask('/api/search?q=gemm');
  row('search over all names', size, ms(search), '≤ 50 ms', search <= 50, rival ? ms(rival.search) : '–');
  const find = await ask('/api/find?q=gemm&from=1000000&dir=next');
  row('the next occurrence', size, ms(find), '≤ 50 ms', find <= 50);

  // A key to the next paint, as the browser itself times events.
  await page.evaluate(() => {
    window.events = [];
    new PerformanceObserver(list => { for (const entry of list.getEntries()) if (entry.name === 'keydown') window.events.push(entry.duration); })
      .observe({type: 'event', durationThreshold: 16});
  });
  const presses = 60;
  for (let k = 0; k < presses; ++k) {
    await page.keyboard.press(['w', 'd', 's', 'a'][k % 4]);
    await page.waitForTimeout(60);
  }
  await page.waitForTimeout(300);
  const slow = await page.evaluate('window.events'), events = [...slow, ...Array(Math.max(presses - slow.length, 0)).fill(16)];
  row('key to next paint, p98', size, ms(quantile(events, 0.98)), '≤ 50 ms', quantile(events, 0.98) <= 50);

  await settle(page);
  const frames = await page.evaluate(() => new Promise(done => {
    let asked = 0;
    const real = window.requestAnimationFrame;
    window.requestAnimationFrame = callback => { ++asked; return real(callback); };
    setTimeout(() => done(asked), 2000);
  }));
  row('frames that an idle page asks for in 2 s', size, String(frames), '0', frames === 0);
  const pss = await pageMemory(chromiumPath(), url + '/?lang=en#/timeline');
  row('memory of the page (renderer, PSS without the browser\'s program)', size, mb(pss), '≤ 250 MB', pss <= 250e6);
  const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))[1]) * 1024;
  const most = 48 * slices + 64e6;  // the columns and the index; the program, its buffers and the names
  row('memory of the server (RSS)', size, `${mb(rss)}, ${(rss / slices).toFixed(0)} B a slice`, '≤ 48 B a slice + 64 MB', rss <= most);
}

console.log('| what | trace | stageline | goal | met | Perfetto\'s trace processor |\n| --- | --- | --- | --- | --- | --- |');
for (const slices of sizes.split(',').map(Number)) await measure(slices);
await measureReport(stageline, cache, 1e6, {row, traceOf, painted, coloured, median, ms, mb});
console.log(`\nload ${loadavg().map(one => one.toFixed(1)).join(' ')}; ${rows.filter(Boolean).length} of ${rows.length} goals met`);
