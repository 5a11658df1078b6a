// Tests the theory on the pipeline page: ghosts, their toggle, key and words. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {atRest, cellWhere, show, state} from './pipeline_help.mjs';

// The colour of the ghost under a cell, in the middle or a share of its width from there.
const under = (page, cell, at = 0.5) =>
  page.evaluate(([i, share]) => {
    const box = stageline.pipeline.box(i), canvas = document.querySelector('.page-pipeline canvas'),
      own = canvas.getBoundingClientRect(), ratio = canvas.width / own.width;
    return [
      ...canvas.getContext('2d').getImageData(Math.round((box.x + box.w * share - own.left) * ratio),
        Math.round((box.y + box.h + 3.5 - own.top) * ratio), 1, 1).data,
    ].slice(0, 3);
  }, [cell, at]);
const apart = (a, b) => a.some((value, k) => Math.abs(value - b[k]) > 20);

export const cases = [
  ['theory: a ghost stands under its cell, in both themes, and T takes it away', async open => {
    let page;
    for (const dark of [false, true]) {
      page = await show(open, 'late', '', {dark, again: page});
      const first = await cellWhere(page, {kind: 0, microBatch: 0});
      const shown = await under(page, first.index);
      await page.keyboard.press('t');
      await atRest(page);
      const hidden = await under(page, first.index);
      assert.ok(apart(shown, hidden), `${shown} ${hidden}`);
      assert.equal(await page.getAttribute('#theory', 'aria-pressed'), 'false');
      await page.waitForFunction(() => location.hash.includes('theory=off'));
      await page.click('#theory');
      await page.mouse.move(5, 5);
      await atRest(page);
      assert.deepEqual(await under(page, first.index), shown);
      assert.equal(await page.getAttribute('#theory', 'aria-pressed'), 'true');
    }
  }],
  ['theory: a late cell has its words in its tip and in its details, with what it waited for', async open => {
    // Carries all that came before.
    const page = await show(open, 'late'), last = await cellWhere(page, {kind: 1, microBatch: 7});
    await page.mouse.move(last.x, last.y);
    await page.waitForFunction(() =>
      /\d\u202fms later than in theory/.test(document.querySelector('.page-pipeline .tip').textContent)
    );
    await page.evaluate(i => stageline.pipeline.select(i), last.index);
    await atRest(page);
    assert.match(await page.textContent('#details'),
      /Against theory.*later than in theory: .*; waited for \w+ of rank \d/);
    await page.click('#lang');
    await atRest(page);
    assert.match(await page.textContent('#details'), /比理论晚.*：.*所等的是 rank \d/);
  }],
  ['theory: the key names it, in both languages', async open => {
    const page = await show(open, 'late');
    assert.match(await page.textContent('.page-pipeline'), /1f1b in theory: mean times, no latency/);
    await page.click('#lang');
    await atRest(page);
    assert.match(await page.textContent('.page-pipeline'), /1f1b 的理论值/);
    assert.equal((await state(page)).theory, true);
  }],
];
