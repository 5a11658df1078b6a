// What the page promises, one case per promise. Run by run.mjs.
import assert from 'node:assert/strict';

const view = page => page.evaluate('stageline.view()');
const span = v => v.t1 - v.t0;
const settled = page => page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))');

// Index of the first cell of a kind (and step) in the report.
const findCell = (page, kind, step) => page.evaluate(([k, s]) => {
  for (let i = 0; i < stageline.cellsEmbedded; ++i) {
    const cell = stageline.cell(i);
    if (cell.kind === k && (s === undefined || cell.step === s)) return i;
  }
  return -1;
}, [kind, step]);

// Colour of one pixel of the canvas, CSS pixels in the window.
const pixel = (page, x, y) => page.evaluate(([px, py]) => {
  const canvas = document.querySelector('canvas'), box = canvas.getBoundingClientRect(), ratio = canvas.width / box.width;
  return [...canvas.getContext('2d').getImageData(Math.round((px - box.left) * ratio), Math.round((py - box.top) * ratio), 1, 1).data].slice(0, 3);
}, [x, y]);

const close = (a, b, by = 3) => a.every((value, i) => Math.abs(value - b[i]) <= by);

// Every text a reader can see outside the canvas.
const visibleTexts = page => page.evaluate(() => {
  const texts = [];
  const walker = document.createTreeWalker(document.getElementById('app'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    if (text && walker.currentNode.parentElement.getClientRects().length > 0) texts.push(text);
  }
  return texts;
});

async function drawsAll(open, file, total) {
  const page = await open(file);
  const [all, embedded, drawn] = await page.evaluate('[stageline.cellsTotal, stageline.cellsEmbedded, stageline.cellsDrawn()]');
  assert.equal(drawn, embedded);
  if (total !== undefined) assert.equal(all, total);
  return page;
}

export const cases = [
  ['every cell is represented: usual', open => drawsAll(open, 'usual.html', 1200)],
  ['few short cells blank no labels of their kind', async open => {
    const page = await open('usual.html');
    const short = (...runs) => page.evaluate(list => stageline.shortDuration(list.flatMap(([n, dur]) => Array(n).fill(dur))), runs);
    assert.equal(await short([148, 16], [20, 1]), 16);  // DualPipeV: gradients of the loss beside backwards
    assert.equal(await short([10, 16], [100, 2]), 2);
    assert.equal(await short([1, 7]), 7);
  }],
  ['every cell is represented: 64 ranks', async open => {
    const page = await drawsAll(open, 'wide.html', 14976);
    const sizes = await page.evaluate(() => {
      document.getElementById('replica').value = 'all';
      document.getElementById('replica').dispatchEvent(new Event('change'));
      return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
        const chart = document.querySelector('.chart');
        done([chart.scrollHeight, chart.clientHeight]);
      })));
    });
    assert.ok(sizes[0] > sizes[1], 'the rows scroll inside the chart');
  }],
  ['every cell is represented: 100 k cells, page below 2 MB', async open => {
    const page = await drawsAll(open, 'large.html');
    assert.ok(await page.evaluate('stageline.cellsTotal > 100000'));
    const {statSync} = await import('node:fs');
    assert.ok(statSync(new URL(page.url()).pathname).size < 2e6);
  }],
  ['edges: no steps, own zeros, an instant', async open => {
    const page = await drawsAll(open, 'edge.html', 3);
    assert.match(await page.textContent('.pill.clock'), /own zero/);
    assert.equal((await page.evaluate('stageline.cell(2)')).start, 0, 'each rank counts from its own zero');
    for (const key of ['w', ']', '[', '.', ',', '0']) await page.keyboard.press(key);
  }],
  ['an empty run says so', async open => {
    const page = await open('empty.html');
    assert.match(await page.textContent('main'), /no cells to draw/);
    assert.equal(await page.evaluate('stageline.cellsDrawn()'), 0);
  }],
  ['above the limit whole steps are kept and the page says so', async open => {
    const page = await open('cut.html');
    const [total, embedded] = await page.evaluate('[stageline.cellsTotal, stageline.cellsEmbedded]');
    assert.ok(embedded <= 10000 && embedded > 9000 && total > 100000);
    assert.match(await page.textContent('#truncated'), /first 9\s?\d{3} of 13\d\s\d{3} cells: steps 10 to 19 of 136/);
    await page.click('#table-cells summary');
    await page.waitForSelector('#table-cells code');
    assert.match(await page.textContent('#table-cells'), /50 of 5000 rows/);
    assert.match(await page.textContent('#table-cells code'), /stageline export … -o run\.sqlite/);
  }],
  ['hostile names stay text', async open => {
    const page = await open('hostile.html');
    assert.equal(await page.evaluate('document.images.length'), 0);
    assert.match(await page.textContent('h1'), /<\/script><img src=x onerror=alert\(1\)><!--<script>/);
    await page.evaluate('stageline.select(3)');
    assert.match(await page.textContent('#details'), /<img src=x/);
    for (const summary of await page.$$('details summary')) await summary.click();
  }],
  ['the policy forbids the network', async open => {
    const page = await open('usual.html');
    const policy = await page.getAttribute('meta[http-equiv]', 'content');
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  }],
  ['W and S zoom, A and D move, 0 fits', async open => {
    const page = await open('usual.html');
    const home = await view(page);
    await page.keyboard.press('w');
    const near = await view(page);
    assert.ok(span(near) < span(home) * 0.9);
    await page.keyboard.press('d');
    const right = await view(page);
    assert.ok(right.t0 > near.t0 && Math.abs(span(right) - span(near)) < 1);
    await page.keyboard.press('a');
    assert.ok((await view(page)).t0 < right.t0);
    await page.keyboard.press('s');
    assert.ok(span(await view(page)) > span(near));
    await page.keyboard.press('0');
    assert.deepEqual(await view(page), home);
  }],
  ['a held key keeps moving and stops when released', async open => {
    const page = await open('usual.html');
    const home = await view(page);
    await page.keyboard.down('w');
    await page.waitForTimeout(500);
    await page.keyboard.up('w');
    const zoomed = await view(page);
    assert.ok(span(zoomed) < span(home) * 0.7);
    await settled(page);
    const frames = await page.evaluate('stageline.frames()');
    await page.waitForTimeout(300);
    assert.equal(await page.evaluate('stageline.frames()'), frames, 'no frame is painted when nothing happens');
    assert.deepEqual(await view(page), zoomed);
  }],
  ['[ and ] change the step, in the heading too; fields keep their keys', async open => {
    const page = await open('usual.html');
    const {step} = await view(page);
    await page.keyboard.press(']');
    assert.equal((await view(page)).step, step + 1);
    assert.match(await page.textContent('.chart-head h2'), new RegExp(`Step ${step + 1}`));
    await page.keyboard.press('[');
    await page.keyboard.press('[');
    assert.equal((await view(page)).step, step - 1);
    await page.focus('#step');
    await page.keyboard.press('[');
    assert.equal((await view(page)).step, step - 1);
    await page.fill('#step', '14');
    await page.keyboard.press('Enter');
    assert.equal((await view(page)).step, 14);
    await page.click('#all-steps');
    assert.equal((await view(page)).step, null);
  }],
  ['the wheel: plain scrolls the page, Ctrl zooms at the pointer, Shift moves', async open => {
    const page = await open('usual.html');
    const box = await page.evaluate('stageline.cellBox(250)');
    const home = await view(page);
    const canvas = await page.locator('canvas').boundingBox();
    await page.mouse.move(canvas.x + canvas.width / 2, canvas.y + 60);
    await page.mouse.wheel(0, 120);
    await page.waitForFunction(() => scrollY > 0);
    assert.deepEqual(await view(page), home);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -120);
    await page.keyboard.up('Control');
    await settled(page);
    const near = await view(page);
    assert.ok(span(near) < span(home));
    await page.keyboard.down('Shift');
    await page.mouse.wheel(0, 100);
    await page.keyboard.up('Shift');
    await settled(page);
    assert.ok((await view(page)).t0 > near.t0);
    assert.ok(box === null || box.w > 0);
  }],
  ['a click selects, details show, arrows link, Escape clears', async open => {
    const page = await open('usual.html');
    const {step} = await view(page);
    const cell = await findCell(page, 0, step);
    const facts = await page.evaluate(i => stageline.cell(i), cell);
    const box = await page.evaluate(i => stageline.cellBox(i), cell);
    await page.mouse.move(box.x + box.w / 2, box.y + box.h / 3);
    await page.waitForSelector('#tip:not([hidden])');
    assert.match(await page.textContent('#tip'), /F0/);
    await page.mouse.click(box.x + box.w / 2, box.y + box.h / 3);
    assert.equal((await view(page)).selected, cell);
    const details = await page.textContent('#details');
    assert.match(details, /F0/);
    assert.match(details, /forward_step\(F\)/);
    assert.match(details, /node0/);
    assert.ok(details.includes(String(facts.dur / 1e6)), 'the exact duration');
    assert.match(await page.textContent('#live'), /F0, forward, Stage 0 · rank 0/);
    await page.click('#details .link');  // its successor
    const next = await page.evaluate('stageline.cell(stageline.view().selected)');
    assert.deepEqual([next.kind, next.microBatch, next.part], [0, 0, 1]);
    await page.keyboard.press('Escape');
    assert.equal((await view(page)).selected, -1);
  }],
  ['the chart is reachable by keyboard alone', async open => {
    const page = await open('usual.html');
    await page.focus('canvas');
    await page.keyboard.press('.');
    const first = (await view(page)).selected;
    assert.ok(first >= 0);
    await page.keyboard.press('.');
    const second = (await view(page)).selected;
    assert.notEqual(second, first);
    await page.keyboard.press(',');
    assert.equal((await view(page)).selected, first);
    await page.keyboard.press('ArrowDown');
    const below = await page.evaluate('stageline.cell(stageline.view().selected)');
    assert.equal(below.part, (await page.evaluate(i => stageline.cell(i), first)).part + 1);
    assert.match(await page.textContent('#live'), /rank 1/);
    await page.keyboard.press('?');
    assert.ok(await page.isVisible('#help'));
    await page.keyboard.press('Escape');
    assert.ok(await page.isHidden('#help'));
    assert.equal(await page.getAttribute('canvas', 'role'), 'application');
    assert.ok((await page.getAttribute('canvas', 'aria-label')).length > 20);
  }],
  ['drag moves, double-click zooms to a cell', async open => {
    const page = await open('usual.html');
    await page.keyboard.press('w');
    await page.keyboard.press('w');
    const before = await view(page);
    const canvas = await page.locator('canvas').boundingBox();
    await page.mouse.move(canvas.x + 700, canvas.y + 60);
    await page.mouse.down();
    await page.mouse.move(canvas.x + 500, canvas.y + 60, {steps: 4});
    await page.mouse.up();
    const after = await view(page);
    assert.ok(after.t0 > before.t0 && after.selected === -1);
    await page.keyboard.press('0');
    const cell = await findCell(page, 1, after.step);
    const box = await page.evaluate(i => stageline.cellBox(i), cell);
    await page.mouse.dblclick(box.x + box.w / 2, box.y + box.h / 3);
    const facts = await page.evaluate(i => stageline.cell(i), cell);
    assert.ok(span(await view(page)) < facts.dur * 2.2);
  }],
  ['colours stand where cells are, in both themes', async open => {
    for (const dark of [false, true]) {
      const page = await open('usual.html', '?lang=en', {dark});
      const {step} = await view(page);
      for (const [kind, colour] of [[0, dark ? [0x4a, 0xa3, 0xdf] : [0x00, 0x72, 0xb2]], [1, dark ? [0xf0, 0x80, 0x3c] : [0xd5, 0x5e, 0x00]]]) {
        const box = await page.evaluate(i => stageline.cellBox(i), await findCell(page, kind, step));
        const found = await pixel(page, box.x + 3, box.y + 5);
        assert.ok(close(found, colour), `kind ${kind}: ${found}`);
      }
      const ground = await page.evaluate('getComputedStyle(document.body).backgroundColor');
      assert.equal(ground, dark ? 'rgb(15, 18, 22)' : 'rgb(255, 255, 255)');
    }
  }],
  ['coverage equals busy time at every zoom', async open => {
    const page = await open('large.html');
    await page.click('#all-steps');
    const worst = await page.evaluate(() => {
      const home = stageline.view(), width = 1100, busy = [];
      for (let i = 0; i < stageline.cellsEmbedded; ++i) {
        const cell = stageline.cell(i);
        if (cell.part === 3 && (cell.kind <= 4 || cell.kind === 10)) busy.push([cell.start, cell.start + cell.dur]);
      }
      let off = 0;
      for (let zoom = 1; zoom < 2e4; zoom *= 3) {
        const span = (home.t1 - home.t0) / zoom, t0 = home.t0 + (home.t1 - home.t0 - span) * 0.37, t1 = t0 + span;
        const wanted = busy.reduce((sum, [a, b]) => sum + Math.max(0, Math.min(b, t1) - Math.max(a, t0)), 0) / span * width;
        off = Math.max(off, Math.abs(stageline.coverage(3, 0, {t0, t1}, width) - wanted));
      }
      return off;
    });
    assert.ok(worst < 0.5, `${worst} pixels off`);
  }],
  ['below a pixel, opacity is the covered share', async open => {
    const page = await open('large.html');
    await page.click('#all-steps');
    await settled(page);
    // Every pixel lies on the way from the waiting ground to a mix of cell colours; green falls with coverage.
    const mean = await page.evaluate(() => {
      const canvas = document.querySelector('canvas'), at = stageline.cellBox(0), box = canvas.getBoundingClientRect();
      const row = canvas.getContext('2d').getImageData(140, Math.round(at.y - box.top + 3), canvas.width - 160, 1).data;
      let green = 0;
      for (let x = 1; x < row.length; x += 4) green += row[x];
      return green / (row.length / 4);
    });
    // Stage 0 computes about half of the time: neither full colour (about 100) nor ground (about 238).
    assert.ok(mean > 140 && mean < 200, `mean green ${mean}`);
  }],
  ['the language changes every word, and no key is missing', async open => {
    const page = await open('usual.html');
    assert.deepEqual(await page.evaluate('stageline.missingKeys()'), []);
    await page.evaluate('stageline.select(0)');
    await page.click('#table-steps summary');
    const english = new Set(await visibleTexts(page));
    await page.click('#lang');
    assert.equal(await page.getAttribute('html', 'lang'), 'zh-CN');
    const chinese = await visibleTexts(page);
    // What may stay: names, numbers, units, codes, messages that came with the data.
    const kept = chinese.filter(text => english.has(text) && /[A-Za-z]{2,}/.test(text));
    const allowed = /^(Stageline|Rank$|node0|forward_step|pp \d|8 made-up logs|rank 0|ms|paddle\.|steps\.inferred|A line ends|Steps are numbered|workerlog|mb|[\d.,\s]+(s|ms|µs|ns)( \(.*\))?$)/;
    assert.deepEqual(kept.filter(text => !allowed.test(text)), []);
    assert.match(await page.textContent('h1'), /没有在计算/);
    assert.match(await page.getAttribute('canvas', 'aria-label'), /流水线图/);
    await page.click('#lang');
    assert.match(await page.textContent('h1'), /not computing/);
  }],
  ['the theme follows the system and can be switched', async open => {
    const page = await open('usual.html', '?lang=en', {dark: true});
    assert.equal(await page.getAttribute('html', 'data-theme'), 'dark');
    await page.click('#theme');
    assert.equal(await page.getAttribute('html', 'data-theme'), 'light');
  }],
  ['text meets AA contrast in both themes', async open => {
    for (const dark of [false, true]) {
      const page = await open('usual.html', '?lang=en', {dark});
      await page.evaluate('stageline.select(0)');
      const poor = await page.evaluate(() => {
        const parse = text => text.match(/[\d.]+/g).map(Number);
        const luminance = c => c.slice(0, 3).map(v => v / 255).map(v => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
          .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const found = [];
        const walker = document.createTreeWalker(document.getElementById('app'), NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
          const element = walker.currentNode.parentElement;
          if (!walker.currentNode.textContent.trim() || element.getClientRects().length === 0) continue;
          let ground = element;
          while (ground && (parse(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
          const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(parse(getComputedStyle(ground ?? document.body).backgroundColor))];
          const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          if (ratio < 4.5) found.push(`${walker.currentNode.textContent} ${ratio.toFixed(2)}`);
        }
        return found;
      });
      assert.deepEqual(poor, []);
    }
  }],
  ['tables sort by a click, unknown values last', async open => {
    const page = await open('usual.html');
    await page.click('#table-cells summary');
    const column = () => page.$$eval('#table-cells tbody td:nth-child(3)', cells => cells.map(cell => cell.textContent));
    await page.click('#table-cells th:nth-child(3) button');  // of times the longest are looked for
    assert.equal(await page.getAttribute('#table-cells th:nth-child(3)', 'aria-sort'), 'descending');
    const values = (await column()).map(Number);
    assert.ok(values.length === 100 && values.every((value, i) => i === 0 || value <= values[i - 1]));
    await page.click('#table-cells th:nth-child(3) button');
    assert.equal(await page.getAttribute('#table-cells th:nth-child(3)', 'aria-sort'), 'ascending');
    await page.hover('#table-stages summary');
    await page.click('#table-stages summary');
    await page.hover('#table-stages th:nth-child(3) button');
    assert.match(await page.textContent('#tip'), /Mean duration/);
  }],
  ['a click on a step bar shows that step', async open => {
    const page = await open('usual.html');
    const bar = await page.locator('.spark rect').nth(4).boundingBox();
    await page.mouse.click(bar.x + bar.width / 2, bar.y + bar.height / 2);
    assert.equal((await view(page)).step, 14);
    assert.equal(await page.getAttribute('.spark rect.now', 'data-step'), '14');
  }],
  ['the address keeps step, window and selection', async open => {
    const page = await open('usual.html');
    await page.click('#next-step');
    await page.keyboard.press('w');
    const cell = await findCell(page, 1, (await view(page)).step);
    await page.evaluate(i => stageline.select(i), cell);
    await page.waitForFunction(() => location.hash.includes('sel='));
    const before = await view(page);
    const other = await open('usual.html', '?lang=en' + new URL(page.url()).hash);
    const after = await view(other);
    assert.deepEqual([after.step, after.dp, after.selected], [before.step, before.dp, cell]);
    assert.ok(Math.abs(after.t0 - before.t0) <= 1 && Math.abs(after.t1 - before.t1) <= 1);
  }],
  ['nothing overflows sideways: narrow windows and 200 % zoom', async open => {
    const page = await open('usual.html');
    for (const width of [1320, 900, 660, 420]) {
      await page.setViewportSize({width, height: 900});
      await settled(page);
      assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `at ${width} px`);
    }
  }],
];
