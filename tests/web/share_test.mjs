// Passing on what is seen: the link, pictures, paper. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {show} from './pipeline_help.mjs';
import {clickSlice, settle, view} from './viewer_help.mjs';

const openShare = async page => {
  await page.click('#share-open');
  await page.waitForSelector('#share[open]');
};
async function saved(page, button) {
  await openShare(page);
  const [file] = await Promise.all([page.waitForEvent('download'), page.click(button)]);
  await page.waitForFunction(() => !document.querySelector('#share'));
  return {name: file.suggestedFilename(), bytes: readFileSync(await file.path())};
}
// The page as it is while the browser prints: what `look` returns of it.
async function printed(page, look) {
  await page.evaluate(`window.look = ${look}; window.print = () => { window.seenOnPaper = window.look(); }`);
  await openShare(page);
  await page.click('#share-print');
  await page.waitForFunction(() => window.seenOnPaper && !document.documentElement.classList.contains('paper'));
  return page.evaluate(() => window.seenOnPaper);
}
// Boxes that hide a part of their content, and canvases of another size than they were drawn for.
const cut = () => {
  const shown = [...document.querySelectorAll('.page')].find(one => !one.hidden);
  const hides = [...shown.querySelectorAll('.stage, .scroller, .chart, .flame-chart, .sheet, .plot-box, .wide')]
    .filter(one => one.getClientRects().length > 0 && one.scrollHeight > one.clientHeight + 1)
    .map(one => `${one.className} ${one.scrollHeight} > ${one.clientHeight}`);
  const canvases = [...shown.querySelectorAll('canvas')].filter(one => one.getClientRects().length > 0 && one.width > 1)
    .map(one => ({class: one.className, width: one.getBoundingClientRect().width, pixels: one.width}));
  return {hides, canvases, theme: document.documentElement.dataset.theme,
    rows: window.stageline.rows ? window.stageline.rows().length : 0,
    labels: shown.querySelectorAll('.labels.body .label').length, legend: shown.querySelectorAll('.key li').length,
    painted: window.stageline.painted?.()};
};

export const cases = [
  ['share: the link is that of what is shown, and opens it', async (open, {runs}) => {
    const page = await open('pipeline');
    await clickSlice(page, 0);
    await page.waitForFunction(() => location.hash.includes('sel='));
    await openShare(page);
    const link = await page.inputValue('#share-link');
    assert.equal(link, page.url());
    assert.ok(runs.pipeline);
  }],
  ['share: a picture of the timeline has title, run, legend, names and rows, as SVG and as PNG', async open => {
    const page = await open('pipeline');
    const svg = await saved(page, '#share-svg'), text = svg.bytes.toString('utf8');
    assert.match(svg.name, /^pipeline_Timeline\.svg$/);
    for (const word of [
      'pipeline · Timeline',
      '8 ranks',
      '4 steps',
      'forward',
      'backward',
      'Stage 0',
      'rank 0',
      'compute',
    ])
      assert.ok(text.includes(word), word);
    assert.equal(await page.evaluate(source => {
      const read = new DOMParser().parseFromString(source, 'image/svg+xml');
      return read.querySelectorAll('parsererror, script, foreignObject').length;
    }, text), 0);
    assert.ok(!/Search names|Perfetto/.test(text), 'nothing that is there to be clicked');
    assert.ok(text.includes('<image'));
    const png = await saved(page, '#share-png');
    assert.equal(png.bytes.subarray(1, 4).toString(), 'PNG');
    const [wide, high] = [16, 20].map(at => png.bytes.readUInt32BE(at)),
      [, w, h] = /width="(\d+)" height="(\d+)"/.exec(text);
    assert.deepEqual([wide, high], [Number(w) * 2, Number(h) * 2]);
    // It is the picture, not an empty page: the colours of forward and backward are in it.
    const paints = await page.evaluate(async ([bytes, fills]) => {
      const image = new Image();
      image.src = `data:image/png;base64,${bytes}`;
      await image.decode();
      const canvas = document.createElement('canvas'), pen = canvas.getContext('2d', {willReadFrequently: true});
      canvas.width = image.width;
      canvas.height = image.height;
      pen.drawImage(image, 0, 0);
      const {data} = pen.getImageData(0, 0, canvas.width, canvas.height);
      return fills.map(fill => {
        const [r, g, b] = [1, 3, 5].map(at => parseInt(fill.slice(at, at + 2), 16));
        let count = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) ++count;
        return count;
      });
    }, [
      png.bytes.toString('base64'),
      await page.evaluate(() =>
        stageline.run.kinds.filter(kind => ['forward', 'backward'].includes(kind.group)).map(kind => kind.light.fill)
      ),
    ]);
    for (const count of paints) assert.ok(count > 4000, `${paints}`);
  }],
  ['share: a page of words is drawn whole, and every word that is seen is in the picture', async open => {
    const page = await open('slower', '?lang=en#/overview');
    await page.waitForFunction(() => window.stageline?.overviewReady?.());
    const title = await page.textContent('h1'), {bytes} = await saved(page, '#share-svg'),
      text = bytes.toString('utf8').replace(/<[^>]*>/g, '').replace(/\s+/g, '');
    assert.ok(text.includes(title.replace(/\s+/g, '').slice(0, 30)), title);
    const fills = await page.$$eval('.split .part', all => all.map(one => getComputedStyle(one).backgroundColor));
    for (const fill of fills) assert.ok(bytes.toString('utf8').includes(`fill="${fill}"`), fill);
    for (const fact of await page.$$eval('.facts dt, .finding h3', all => all.map(one => one.innerText)))
      assert.ok(text.includes(fact.replace(/\s+/g, '').replace(/&/g, '&amp;').slice(0, 24)), fact);
  }],
  [
    'paper: the timeline is laid out anew, with all rows and its legend, light, and comes back as it was',
    async (open, {shot}) => {
      const page = await open('pipeline', '?lang=en&theme=dark', {size: [1100, 500]});
      const before = await page.evaluate(cut), window = await view(page);
      assert.ok(before.hides.length > 0, 'rows are below the window');
      const paper = await printed(page, cut);
      assert.deepEqual(paper.hides, []);
      assert.equal(paper.theme, 'light');
      assert.equal(paper.labels, paper.rows);
      assert.ok(paper.legend >= 4);
      assert.equal(paper.painted.missing, 0);
      for (const one of paper.canvases) assert.ok(Math.abs(one.pixels - 2 * one.width) <= 2, JSON.stringify(one));
      assert.ok(paper.canvases.every(one => one.width <= 960));
      await settle(page);
      const after = await page.evaluate(cut);
      assert.deepEqual([after.theme, after.canvases, after.rows], [before.theme, before.canvases, before.rows]);
      assert.deepEqual(await view(page), window);
      await shot(page, 'after-paper');
    },
  ],
  ["paper: a page of tables alone is laid out for paper by the browser's own Print", async open => {
    const page = await open('pipeline', '?lang=en#/answers/time');
    await page.waitForFunction(() => window.stageline?.answers?.().family && stageline.answers().waiting.length === 0);
    const [on, nav, off] = await page.evaluate(() => {
      const nav = () => document.querySelector('.families').getClientRects().length;
      window.dispatchEvent(new Event('beforeprint'));
      const seen = [document.documentElement.classList.contains('paper'), nav()];
      window.dispatchEvent(new Event('afterprint'));
      return [...seen, document.documentElement.classList.contains('paper')];
    });
    assert.deepEqual([on, nav, off], [true, 0, false]);
  }],
  ['paper: the text of a finding is whole, and nothing that asks for a click is printed', async open => {
    const look = () => {
      const seen = selector => [...document.querySelectorAll(selector)].some(one => one.getClientRects().length > 0);
      const words = document.querySelector('.evidence-words');
      return {cut: words.scrollHeight - words.clientHeight, leave: seen('#scene-leave'), keys: seen('h1.live'),
        tools: seen('.table-tools')};
    };
    const page = await open('slower', '?lang=en#/timeline?scene=stage.slow', {size: [700, 700]});
    await page.waitForFunction(() => document.querySelector('.evidence-words'));
    assert.ok((await page.evaluate(look)).cut > 1, 'the window has no room for all of it');
    assert.deepEqual(await printed(page, look), {cut: 0, leave: false, keys: false, tools: false});
  }],
  ["paper: the pipeline's chart has all its rows, and the browser's own Print lays out, too", async open => {
    const page = await show(open, 'many', '?step=1');
    const paper = await printed(page, cut);
    assert.deepEqual(paper.hides, []);
    const other = await page.evaluate(() => {
      window.dispatchEvent(new Event('beforeprint'));
      const seen = window.look();
      window.dispatchEvent(new Event('afterprint'));
      return seen;
    });
    assert.deepEqual(other.hides, []);
    const chart = other.canvases.find(one => one.width > 500);
    assert.ok(Math.abs(chart.pixels - 2 * chart.width) <= 2 && chart.width <= 960, JSON.stringify(chart));
  }],
];
