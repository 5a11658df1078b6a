// Theory beside fact on the page: ghosts, their toggle, key and words. theory.html: 1F1B, a slow stage, latency. Run by run.mjs.
import assert from 'node:assert/strict';

const settled = page => page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))');
const cellBox = (page, i) => page.evaluate(k => stageline.cellBox(k), i);
const findCell = (page, kind, part, microBatch) => page.evaluate(([k, p, m]) => {
  const {step} = stageline.view();
  for (let i = 0; i < stageline.cellsEmbedded; ++i) {
    const cell = stageline.cell(i);
    if (cell.kind === k && cell.part === p && cell.microBatch === m && cell.step === step) return i;
  }
  return -1;
}, [kind, part, microBatch]);
const pixel = (page, x, y) => page.evaluate(([px, py]) => {
  const canvas = document.querySelector('canvas'), box = canvas.getBoundingClientRect(), ratio = canvas.width / box.width;
  return [...canvas.getContext('2d').getImageData(Math.round((px - box.left) * ratio), Math.round((py - box.top) * ratio), 1, 1).data].slice(0, 3);
}, [x, y]);
// The colour in the middle of the ghost under a cell.
const under = async (page, i) => {
  const box = await cellBox(page, i);
  return pixel(page, box.x + box.w / 2, box.y + box.h + 3.5);
};

export const cases = [
  ['theory: a ghost stands under its cell, in both themes, and T takes it away', async open => {
    for (const dark of [false, true]) {
      const page = await open('theory.html', '?lang=en', {dark});
      const first = await findCell(page, 0, 0, 0);
      const shown = await under(page, first);
      await page.keyboard.press('t');
      await settled(page);
      const hidden = await under(page, first);
      assert.ok(shown.some((value, k) => Math.abs(value - hidden[k]) > 20), `${shown} ${hidden}`);
      assert.equal(await page.getAttribute('#theory', 'aria-pressed'), 'false');
      await page.waitForFunction(() => location.hash.includes('theory=off'));
      await page.click('#theory');
      await settled(page);
      assert.deepEqual(await under(page, first), shown);
      assert.equal(await page.getAttribute('#theory', 'aria-pressed'), 'true');
    }
  }],
  ['theory: a late cell is no longer over its ghost, and its tip says by how much', async open => {
    const page = await open('theory.html');
    const last = await findCell(page, 1, 0, 7);  // the last backward of stage 0 carries all the latency of the step
    await page.evaluate(i => document.querySelector('canvas').scrollIntoView({block: 'center'}), last);
    const box = await cellBox(page, last);
    const beside = await pixel(page, box.x + box.w - 2, box.y + box.h + 3.5), first = await under(page, await findCell(page, 0, 0, 0));
    assert.ok(beside.some((value, k) => Math.abs(value - first[k]) > 20), 'nothing under its end');
    await page.mouse.move(box.x + box.w / 2, box.y + box.h / 2);
    await settled(page);
    assert.match(await page.textContent('#tip'), /\d+\u202fms later than in theory/);
  }],
  ['theory: why a cell is late stands in its tip and its details, and a row of the table leads to its cell', async open => {
    const page = await open('theory.html');
    const last = await findCell(page, 1, 0, 7);
    await page.evaluate(i => stageline.select(i), last);
    await settled(page);
    assert.match(await page.textContent('#details'), /Against theory.*later than in theory: its input came late; waited for B7 of rank \d/);
    await page.click('#lang');
    assert.match(await page.textContent('#details'), /比理论晚.*：输入来得晚；所等的是 rank \d 的 B7/);
    await page.evaluate(() => stageline.select(-1));
    await page.click('#table-late-cells summary');
    const row = page.locator('#table-late-cells tbody tr').first(), name = await row.locator('button').textContent();
    assert.match(await row.textContent(), /输入晚|rank 忙|原因不明/);
    await row.locator('button').click();
    await settled(page);
    assert.match(await page.textContent('#details h2'), new RegExp('^' + name));
  }],
  ['theory: times of its tables count from where the axis does', async open => {
    const page = await open('theory.html');
    await page.click('#table-phases summary');
    assert.match(await page.locator('#table-phases tbody tr').first().textContent(), /0\.000/);
  }],
  ['theory: key, facts and help name it, in both languages', async open => {
    const page = await open('theory.html');
    assert.match(await page.textContent('.chart-head .key'), /1f1b in theory: mean times, no latency/);
    assert.match(await page.textContent('.facts'), /Schedule1f1b, 16 of 16 lists/);
    assert.match(await page.textContent('.facts'), /Phaseswarm-up \d.*, steady .*, cool-down /);
    assert.match(await page.textContent('.keys'), /T theory/);
    await page.click('#lang');
    assert.match(await page.textContent('.chart-head .key'), /1f1b 的理论值/);
    assert.deepEqual(await page.evaluate('stageline.missingKeys()'), []);
  }],
  ['theory: without a schedule there is no toggle and T does nothing', async open => {
    const page = await open('usual.html');
    assert.equal(await page.$('#theory'), null);
    await page.keyboard.press('t');
    await settled(page);
    assert.ok(!(await page.evaluate('location.hash')).includes('theory'));
  }],
];
