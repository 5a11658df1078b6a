// Measures the cost of a run in one file: writing it, its size, and the time from opening it to the timeline, from disk
// with the network off. It is called by viewer_bench.mjs.
import {spawnSync} from 'node:child_process';
import {readFileSync, statSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {gzipSync} from 'node:zlib';
import {chromiumPath, launch} from '../tests/web/browser.mjs';
import {pageMemory} from './viewer_memory.mjs';

const OPENED = 7, SIZE = {width: 1600, height: 900};

// `tools`: what viewer_bench.mjs has for all: row, traceOf, painted, coloured, median, ms, mb.
export async function measureReport(stageline, cache, slices, {row, traceOf, painted, coloured, median, ms, mb}) {
  const path = resolve(cache, `report-${slices}.html`), size = `${(slices / 1e6).toFixed(0)} M slices`, began = performance.now();
  const written = spawnSync('/usr/bin/env', ['bash', '-c', 'exec 3>&2; TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>&3', '-', stageline, 'report',
                                             traceOf(slices), '-o', path, '--quiet'], {encoding: 'utf8'});
  if (written.status !== 0) throw new Error(`stageline report: ${written.stderr}`);
  const took = performance.now() - began, cpu = written.stderr.trim().split('\n').at(-1).split(' ').reduce((sum, s) => sum + Number(s), 0) * 1000;
  row('report: written, every answer made (processor time)', size, `${ms(took)} (${ms(cpu)})`, '–', true);
  const html = readFileSync(path, 'utf8');
  const pieces = [...html.matchAll(/data-lanes="[^"]*">([^<]*)</g)].reduce((sum, [, text]) => sum + text.length, 0);
  const own = gzipSync(/<script>([\s\S]*?)<\/script>/.exec(html)[1]).length + gzipSync(/<style>([\s\S]*?)<\/style>/.exec(html)[1]).length;
  row('report: bytes a slice; the whole file', size, `${(pieces / slices).toFixed(2)} B; ${mb(statSync(path).size)}`, '≤ 6 B', pieces / slices <= 6);
  row('report: script and style of the page, gzipped', '–', `${(own / 1000).toFixed(0)} kB`, '≤ 200 kB', own <= 200_000);
  const browser = await launch(), session = await browser.newBrowserCDPSession(), paints = [], cpus = [];
  // Returns the processor time so far of all processes that show pages.
  const used = async () => (await session.send('SystemInfo.getProcessInfo')).processInfo.filter(one => one.type === 'renderer')
      .reduce((sum, one) => sum + one.cpuTime * 1000, 0);
  for (let i = 0; i < OPENED; ++i) {
    const context = await browser.newContext({viewport: SIZE, offline: true}), page = await context.newPage();
    await page.waitForTimeout(1000);  // another context starts processes of its own
    const before = await used();
    await page.goto(`file://${path}?lang=en#/timeline`);
    paints.push(await painted(page));
    cpus.push(await used() - before);
    if (!await coloured(page)) throw new Error('the first paint has no colour');
    await context.close();
  }
  row('report: opened from disk to first paint (the page\'s processor time)', size, `${ms(median(paints))} (${ms(median(cpus))})`, '≤ 600 ms',
      median(paints) <= 600);
  const pss = await pageMemory(chromiumPath(), `file://${path}?lang=en#/timeline`), most = 30 * slices + 100e6;
  row('report: memory of the page (renderer, PSS without the browser\'s program)', size, `${mb(pss)}`, '≤ 30 B a slice + 100 MB', pss <= most);
  await browser.close();
}
