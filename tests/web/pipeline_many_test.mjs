// The pipeline of more ranks than rows have room for: stages as one row each, the ranks that the program calls slow
// before all others, the rest on demand. 4 stages × 40 replicas, of which ranks 57 (stage 1) and 130 (stage 2) are
// slow.
import assert from 'node:assert/strict';
import {openReport, reportOf} from './onefile_help.mjs';
import {atRest, program as json, rowsOf, show, state} from './pipeline_help.mjs';

const known = async page => {
  await page.waitForFunction(() => stageline.pipeline.worst());
  await atRest(page);
};
// Returns for each row the rank, or for a row of many [stage, count, whether that is all].
const rowsShown = page =>
  page.evaluate(() => {
    const {parts, rows, sumRows} = stageline.pipeline, sums = sumRows();
    return rows().map(
      row => (row < 0 ? [sums[-1 - row].stage, sums[-1 - row].rows.length, sums[-1 - row].whole] : parts[row].rank),
    );
  });
// The names of rows are 118 px wide and stand 30 px below the top.
async function clickName(page, index) {
  const {x, y} = await page.locator('.page-pipeline canvas').first().boundingBox(),
    height = await page.evaluate(() => stageline.pipeline.pitch());
  await page.mouse.click(x + 60, y + 30 + (index + 0.4) * height);
  await atRest(page);
}
const slowest = workers =>
  workers.filter(row => !['fine', 'no peer'].includes(row.verdict))
    .sort((a, b) => b.busy_ns * (1 - 1 / b.peer_ratio) - a.busy_ns * (1 - 1 / a.peer_ratio)).map(row => row.rank);

export const cases = [
  [
    'many ranks: the slow ones stand first, the others of their stages in one row, and all of them on demand',
    async (open, {runs}) => {
      const slow = slowest(rowsOf(json('analyze', 'stragglers', runs.many, '--format', 'json'), 'straggler-workers'));
      assert.deepEqual(slow, [57, 130]);
      const page = await show(open, 'many');
      await known(page);
      assert.equal((await state(page)).dp, null);
      assert.deepEqual(await rowsShown(page), [[0, 40, true], 57, [1, 39, false], 130, [2, 39, false], [3, 40, true]]);
      assert.deepEqual(await page.locator('#worst tbody th').allTextContents(), ['57', '130']);
      const table = await page.locator('#worst tbody tr').first().textContent();
      // The row shows replica 14 and its time beyond its peers.
      assert.ok(/14.*71\.\d\u202fms.*1\.40×.*persistent/.test(table), table);
      assert.equal(await page.inputValue('#replica'), 'null');
      await clickName(page, 2); // "39 others"
      const rows = await rowsShown(page);
      assert.equal(rows.length, 1 + 40 + 2 + 1);
      assert.deepEqual([...rows.slice(1, 41)].sort((a, b) => a - b), Array.from({length: 40}, (_, i) => i * 4 + 1));
      await page.waitForFunction(() => /full=1/.test(location.hash) && /open=1%2C2|open=1,2/.test(location.hash));
      await page.evaluate(() => {
        document.querySelector('.page-pipeline .chart').scrollTop = 0;
      });
      await atRest(page);
      await clickName(page, 1); // the stage is closed again, and what was unfolded of it forgotten
      assert.deepEqual(await rowsShown(page), [[0, 40, true], [1, 40, true], 130, [2, 39, false], [3, 40, true]]);
      assert.deepEqual((await state(page)).full, []);
    },
  ],
  [
    'many ranks: an address opens what it says, one replica is drawn cell by cell, a click in the list goes to the rank',
    async open => {
      const page = await show(open, 'many', '?open=3&full=3&dp=all');
      await known(page);
      assert.deepEqual((await rowsShown(page)).slice(0, 3), [[0, 40, true], [1, 40, true], [2, 40, true]]);
      assert.equal((await rowsShown(page)).length, 43);
      await page.selectOption('#replica', '14');
      await page.click('#unfold');
      await page.click('#unfold');
      await atRest(page);
      assert.deepEqual(await rowsShown(page), [56, 57, 58, 59]);
      await page.locator('#worst button', {hasText: '130'}).click();
      await atRest(page);
      const {dp, open: stages, selected} = await state(page);
      assert.equal(dp, null);
      assert.deepEqual(stages, [2]);
      assert.deepEqual(await rowsShown(page), [[0, 40, true], [1, 40, true], 130, [2, 39, false], [3, 40, true]]);
      assert.equal(await page.evaluate(i => stageline.pipeline.parts[stageline.pipeline.cell(i).part].rank, selected),
        130);
      for (const rows of [43, 4, 5]) { // all ranks of its stage, none, the slow one
        await page.keyboard.press('u');
        await atRest(page);
        assert.equal((await rowsShown(page)).length, rows);
      }
    },
  ],
  ['many ranks: what a row of them shows at a time is what their cells do then', async open => {
    const page = await show(open, 'many', '?open=&dp=all&step=2'),
      {x, y, width} = await page.locator('.page-pipeline canvas').first().boundingBox();
    await known(page);
    const pitch = await page.evaluate(() => stageline.pipeline.pitch());
    const seen = new Set();
    for (const [index, share] of [[0, 0.03], [1, 0.42], [2, 0.3], [3, 0.36], [3, 0.7]]) {
      const at = x + 118 + share * (width - 126);
      await page.mouse.move(at, y + 30 + (index + 0.4) * pitch);
      await page.waitForFunction(
        stage => document.querySelector('.page-pipeline .tip').textContent.includes(`Stage ${stage}, all 40 ranks`),
        index,
      );
      const reported = await page.locator('.page-pipeline .tip').innerText();
      const wanted = await page.evaluate(([stage, left]) => {
        const p = stageline.pipeline, {t0, t1} = p.view(), zero = p.xOf(t0), pixel = (t1 - t0) / (p.xOf(t1) - zero),
          middle = t0 + (left - zero) * pixel;
        const from = middle - pixel / 2, to = middle + pixel / 2, shares = {};
        for (let i = 0; i < p.cells(); ++i) {
          const cell = p.cell(i),
            name = cell.kind === 0 ? 'forward' : cell.kind === 1 ? 'backward' : cell.kind === 10 ? 'optimizer' : '';
          if (cell.step !== 2 || p.parts[cell.part].stage !== stage || name === '') continue;
          const inside = Math.min(cell.start + cell.dur, to) - Math.max(cell.start, from);
          if (inside > 0) shares[name] = (shares[name] ?? 0) + inside / pixel / 40;
        }
        return shares;
      }, [index, at]);
      for (const [name, want] of Object.entries(wanted)) {
        if (want < 0.0005) continue;
        const found = new RegExp(`${name} ([\\d.]+)\u202f%`).exec(reported);
        assert.ok(found && Math.abs(Number(found[1]) / 100 - want) < 0.0006,
          `${name} of stage ${index}: ${want}, ${reported}`);
        seen.add(name);
      }
      const all = Object.values(wanted).reduce((sum, one) => sum + one, 0);
      if (all < 0.999) assert.ok(new RegExp(`waiting ([\\d.]+)`).test(reported), reported);
    }
    assert.deepEqual([...seen].sort(), ['backward', 'forward']);
  }],
  ['many ranks: pixels of a row of them are piled up by what they do', async (open, {blank}) => {
    const page = await show(open, 'many', '?open=&dp=all&step=2&theory=off'),
      canvas = page.locator('.page-pipeline canvas').first();
    await known(page);
    await page.mouse.move(3, 3);
    const {width} = await canvas.boundingBox(), pitch = await page.evaluate(() => stageline.pipeline.pitch());
    const image = (await canvas.screenshot({animations: 'disabled'})).toString('base64');
    const height = pitch - 12, colours = await page.evaluate(() => stageline.run.palette.light.group.slice(0, 2));
    const counted = await blank.evaluate(async ([data, top, high, left, right, hex]) => {
      const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob()),
        pen = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
      pen.drawImage(picture, 0, 0);
      const wanted = hex.map(one => [1, 3, 5].map(i => parseInt(one.slice(i, i + 2), 16))),
        {data: rgba} = pen.getImageData(left, top, right - left, high);
      return wanted.map(([r, g, b]) => {
        let n = 0;
        for (let i = 0; i < rgba.length; i += 4)
          if (Math.abs(rgba[i] - r) + Math.abs(rgba[i + 1] - g) + Math.abs(rgba[i + 2] - b) < 12) ++n;
        return n / ((right - left) * high);
      });
    }, [image, 30 + pitch, Math.floor(height), 118, Math.floor(width - 8), colours]);
    const wanted = await page.evaluate(() => {
      const p = stageline.pipeline, {t0, t1} = p.view(), sums = [0, 0];
      for (let i = 0; i < p.cells(); ++i) {
        const cell = p.cell(i);
        if (cell.step === 2 && p.parts[cell.part].stage === 1 && cell.kind < 2)
          sums[cell.kind] += cell.dur / 40 / (t1 - t0);
      }
      return sums;
    });
    // Whole pixels of one colour: those in which a share begins or ends have a mixed one.
    wanted.forEach((want, i) =>
      assert.ok(Math.abs(counted[i] - want) < 0.04 && want > 0.1, `${counted} and ${wanted}`)
    );
  }],
  [
    'many ranks: a finding shows its rank in its replica, and a report has the same rows',
    async (open, {stageline, runs, folder, files}) => {
      const page = await show(open, 'many');
      await known(page);
      await page.keyboard.press('e');
      await page.waitForFunction(() => !stageline.pipeline.staging() && stageline.pipeline.scene());
      for (let i = 0; i < 3 && !(await page.evaluate(() => stageline.pipeline.scene())).includes('slow'); ++i) {
        await page.keyboard.press('e');
        await page.waitForFunction(() => !stageline.pipeline.staging());
      }
      assert.equal((await state(page)).dp, 14);
      const {page: file, problems} = await openReport(files, reportOf({stageline, runs, folder}, 'many'),
        '?lang=en#/pipeline');
      await file.waitForFunction(() => stageline.pipeline?.worst?.());
      await atRest(file);
      assert.deepEqual(await rowsShown(file), [[0, 40, true], 57, [1, 39, false], 130, [2, 39, false], [3, 40, true]]);
      assert.deepEqual(problems, []);
    },
  ],
  // The server leaves steps out of four million cells; here its answer to the page's first question has step 2 alone.
  [
    'many ranks: a step that was left out is fetched when it is chosen, named by the address, or a finding',
    async (open, {context}) => {
      const asked = [], first = async route => {
        const url = new URL(route.request().url());
        asked.push(url.searchParams.get('steps'));
        if (!url.searchParams.has('steps')) url.searchParams.set('steps', '2');
        await route.continue({url: String(url)});
      };
      await context.route(/\/api\/pipeline(\?|$)/, first);
      try {
        const page = await show(open, 'many'), steps = () =>
          page.evaluate(
            () => [
              ...new Set(Array.from({length: stageline.pipeline.cells()}, (_, i) => stageline.pipeline.cell(i).step)),
            ],
          );
        const arrived = async wanted => {
          await page.waitForFunction(
            step =>
              stageline.pipeline.state().step === step && !stageline.pipeline.staging() && stageline.pipeline.tables(),
            wanted,
          );
          await known(page);
        };
        await known(page);
        assert.deepEqual(await steps(), [2]);
        assert.match(await page.locator('.page-pipeline p[role=status]').first().textContent(),
          /1 of 4 steps \(2\).*load when you select them/);
        await page.keyboard.press(']');
        await arrived(3);
        assert.deepEqual(await steps(), [3]);
        await page.waitForFunction(() => /step=3/.test(location.hash));
        assert.deepEqual(await rowsShown(page), [[0, 40, true], 57, [1, 39, false], 130, [2, 39, false], [
          3,
          40,
          true,
        ]]);
        await page.click('#prev-step');
        await arrived(2);
        await page.fill('#step', '0');
        await page.keyboard.press('Enter');
        await arrived(0);
        await page.selectOption('#beside', '1');
        await page.waitForFunction(() => stageline.pipeline.state().beside === 1);
        await arrived(0);
        assert.deepEqual(await steps(), [0, 1]);
        assert.deepEqual(asked, [null, '3', '2', '0', '0,1']);
        await page.click('#next-step'); // this one is here
        await arrived(1);
        assert.equal(asked.length, 5);
        await page.keyboard.press('e');
        await page.waitForFunction(() => !stageline.pipeline.staging() && stageline.pipeline.scene());
        await arrived(2); // the step that the finding is shown in
        assert.equal(await page.evaluate(() => stageline.pipeline.scene()), 'rank.slow');
        assert.equal((await state(page)).dp, 14);
        const named = await show(open, 'many', '?step=1&dp=14');
        await known(named);
        const {step, dp} = await state(named);
        assert.deepEqual([step, dp, asked.slice(5)], [1, 14, ['2', null, '1']]);
      } finally {
        await context.unroute(/\/api\/pipeline(\?|$)/, first);
      }
    },
    {alone: true},
  ],
];
