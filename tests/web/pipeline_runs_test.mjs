// Two runs on the pipeline page, and the stages of one step. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {atRest, cellWhere, program, rowsOf, show, showBoth, state, view} from './pipeline_help.mjs';
import {drag} from './viewer_help.mjs';

const LONGER = 1, SHORTER = 2, MOVED = 4, ALONE = 8, FORWARD = 0;
const other = page => page.evaluate(() => stageline.pipeline.other());
const ms = ns => (Math.abs(ns) >= 99.95e6 ? (ns / 1e6).toFixed(0)
  : Math.abs(ns) >= 9.995e6 ? (ns / 1e6).toFixed(1) : (ns / 1e6).toFixed(2));

export const cases = [
  [
    'pipeline, two runs: one axis, cells matched by what they are, those marked that differ',
    async (open, {runs, shot}) => {
      const page = await showBoth(open, 'compared', '?step=1'), [a, , b] = runs.compared;
      const diff = program('diff', a, b, '--json');
      assert.equal(await page.textContent('.runs-words b'), diff.headline_en + '.');
      assert.ok((await page.textContent('.runs-words')).includes(diff.cause_en));
      const found = await page.evaluate(() => {
        const p = stageline.pipeline, o = p.other(), {step} = p.state(), cells = [];
        for (let i = 0; i < p.cells(); ++i) {
          const cell = p.cell(i);
          if (cell.step === step && (cell.kind < 5 || cell.kind === 10))
            cells.push({...cell, mark: o.compared.a[i], like: o.likes[i] < 0 ? null
              : {...p.otherCell(o.likes[i]), mark: o.compared.b[o.likes[i]]}});
        }
        return {cells, step: o.step, counts: o.compared};
      });
      assert.equal(found.cells.length, 8 * 17);
      assert.equal(found.step, 1);
      let longer = 0;
      for (const {like, mark, ...cell} of found.cells) {
        for (const what of ['part', 'kind', 'microBatch', 'chunk']) assert.equal(like[what], cell[what]);
        const share = like.dur / cell.dur;
        if (share > 1.45) assert.deepEqual([mark, like.mark], [SHORTER, LONGER], JSON.stringify([cell, like]));
        if (share < 1.09 && share > 0.92) assert.deepEqual([mark, like.mark], [0, 0], JSON.stringify([cell, like]));
        longer += like.mark === LONGER ? 1 : 0;
      }
      assert.ok(longer >= 3 * 17 - 6, `stage 3 and rank 5 are slower: ${longer}`);
      assert.equal(found.counts.longer, longer);
      assert.ok((await page.textContent('.runs-words')).includes(`${longer} are slower`));
      const spans = [a, b].map(run =>
        rowsOf(program('analyze', 'pipeline-summary', run, '--format', 'json'), 'steps').find(row => row.step === 1)
          .span_ns
      );
      const sentence = await page.textContent('.runs-words p:last-child');
      assert.ok(sentence.includes(`A takes ${ms(spans[0])}`) && sentence.includes(`of B ${ms(spans[1])}`), sentence);
      // Both begin at the same pixel, and a nanosecond is as wide in both.
      const edges = await page.evaluate(() => {
        const p = stageline.pipeline, o = p.other(), {step} = p.state();
        for (let i = 0; i < p.cells(); ++i)
          if (p.cell(i).step === step && p.cell(i).part === 0 && p.cell(i).kind === 0)
            return [p.box(i), p.otherBox(o.likes[i]), p.cell(i).dur, p.otherCell(o.likes[i]).dur];
        return null;
      });
      assert.ok(Math.abs(edges[0].x - edges[1].x) < 0.5, JSON.stringify(edges));
      assert.ok(Math.abs(edges[0].w / edges[2] * edges[3] - edges[1].w) < 0.5, JSON.stringify(edges));
      await shot(page, 'pipeline-two-runs');
    },
  ],
  ['pipeline, two runs: what is done in one is done in the other', async open => {
    const page = await showBoth(open, 'compared', '?step=1'), spanOf = v => v.t1 - v.t0;
    const f = await cellWhere(page, {kind: FORWARD, microBatch: 3});
    await page.mouse.move(f.x, f.y);
    const like = await page.evaluate(i => stageline.pipeline.other().likes[i], f.index);
    await page.waitForFunction(i => stageline.pipeline.other().hovered === i, like);
    assert.match(await page.textContent('.page-pipeline .tip'), /in B: F3, [\d.]+\u202fms \([+−][\d.]+\u202f%\)/);
    await page.mouse.click(f.x, f.y);
    await page.waitForFunction(i => stageline.pipeline.other().selected === i, like);
    // In the second chart: choose, drag, keys.
    const back = await page.evaluate(() => {
      const p = stageline.pipeline, o = p.other();
      const i = p.state().selected, cell = p.cell(i);
      for (let k = 0; k < p.cells(); ++k)
        if (p.cell(k).step === cell.step && p.cell(k).part === cell.part && p.cell(k).kind === 1 &&
          p.cell(k).microBatch === 2)
          return {k, box: p.otherBox(o.likes[k])};
      return null;
    });
    await page.mouse.click(back.box.x + back.box.w / 2, back.box.y + back.box.h * 0.4);
    assert.equal((await state(page)).selected, back.k);
    const before = await view(page), chart = await page.locator('.page-pipeline canvas').nth(1).boundingBox();
    await page.keyboard.down('Control');
    await page.mouse.move(chart.x + 600, chart.y + 60);
    await page.mouse.wheel(0, -240);
    await page.keyboard.up('Control');
    await atRest(page);
    const near = await view(page);
    assert.ok(spanOf(near) < spanOf(before));
    await drag(page, [chart.x + 700, chart.y + 60], [chart.x + 560, chart.y + 60]);
    await atRest(page);
    assert.ok((await view(page)).t0 > near.t0);
    assert.ok(Math.abs(spanOf((await other(page)).view) - spanOf(await view(page))) < 1);
    await page.locator('.page-pipeline canvas').nth(1).focus();
    await page.keyboard.press('d');
    await atRest(page);
    assert.ok((await view(page)).t0 > near.t0);
    await page.keyboard.press(']');
    assert.equal((await state(page)).step, 2);
    assert.equal((await other(page)).step, 2);
    await page.selectOption('#other-step', '0');
    assert.deepEqual([(await state(page)).step, (await other(page)).step, (await other(page)).shift], [2, 0, -2]);
    await page.keyboard.press(']');
    assert.deepEqual([(await state(page)).step, (await other(page)).step], [3, 1]);
    await page.waitForFunction(() => location.hash.includes('other=1'));
    const again = await showBoth(open, 'compared', new URL(page.url()).hash.replace('#/pipeline', ''));
    assert.deepEqual([(await state(again)).step, (await other(again)).step], [3, 1]);
    await page.click('#both');
    await atRest(page);
    assert.equal(await page.locator('.page-pipeline canvas:visible').count(), 1);
    await page.waitForFunction(() => location.hash.includes('other=off'));
    await page.click('#both');
    await atRest(page);
    assert.equal(await page.locator('.page-pipeline canvas:visible').count(), 2);
  }],
  ['pipeline, two runs: both charts leave as SVG and PNG, each under its name', async open => {
    const page = await showBoth(open, 'compared', '?step=1'), charts = page.locator('.page-pipeline canvas');
    const [a, b] = [await charts.first().boundingBox(), await charts.nth(1).boundingBox()];
    const save = async id => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.click(id)]);
      return readFileSync(await download.path());
    };
    const svg = (await save('#save-svg')).toString();
    const found = await page.evaluate(source => {
      const root = new DOMParser().parseFromString(source, 'image/svg+xml'),
        ids = [...root.querySelectorAll('[id]')].map(one => one.id);
      return {wrong: root.querySelectorAll('parsererror').length,
        height: Number(root.documentElement.getAttribute('height')), ids: ids.length, unique: new Set(ids).size,
        names: [...root.querySelectorAll('svg > text')].map(one => one.textContent),
        cells: [...root.querySelectorAll('svg > g')].map(one => one.querySelectorAll('rect, path').length)};
    }, svg);
    assert.equal(found.wrong, 0);
    assert.deepEqual(found.names, ['A  pipeline · Step 1', 'B  slower · Step 1']);
    assert.equal(found.height, Math.round(a.height) + Math.round(b.height) + 2 * 26);
    assert.equal(found.ids, found.unique);
    assert.ok(found.cells.length === 2 && found.cells.every(count => count > 100), String(found.cells));
    const png = await save('#save-png');
    assert.equal(png.readUInt32BE(20), 2 * found.height);
    await page.click('#both');
    await atRest(page);
    assert.ok((await save('#save-png')).readUInt32BE(20) < 2 * found.height);
  }],
  ['pipeline, two runs: another order and other sizes are told', async open => {
    const page = await showBoth(open, 'reordered', '?step=3'), {counts, moved, alone} = await page.evaluate(() => {
      const o = stageline.pipeline.other();
      return {counts: {...o.compared, a: null, b: null}, moved: o.compared.b.filter(mark => mark & 4).length,
        alone: o.compared.a.filter(mark => mark & 8).length};
    });
    assert.equal((await other(page)).step, 1, 'the last one of those it has');
    assert.equal(counts.matched, 4 * 2 * 6 * 2);
    assert.deepEqual(counts.alone, [4 * 2 * (2 * 2 + 1), 0], 'two micro-batches and the optimizer');
    assert.equal(alone, counts.alone[0]);
    assert.equal(moved, counts.moved);
    // On the last stage one order alternates and the other does not: what stays in order is one half and one more.
    assert.ok(counts.moved >= 2 * 5 && counts.moved < counts.matched / 2, String(counts.moved));
    assert.match(await page.textContent('.runs-words p:last-child'),
      new RegExp(`${counts.moved} are in another position, 40 more are only in A`));
  }],
  ["pipeline: the stages of one step add up, and are the program's numbers for it", async (open, {runs}) => {
    const page = await show(open, 'split', '?step=1');
    const wanted = rowsOf(program('analyze', 'waterfall', runs.split, '--steps', '1', '--format', 'json'),
      'waterfall-stages');
    const bars = async () =>
      page.locator('.stages tbody .bars').evaluateAll(list => list.map(one => one.getAttribute('aria-label')));
    const of = row =>
      `Stage ${row.stage}: busy ${ms(row.busy_ns)}\u202fms, schedule bubble ${ms(row.schedule_ns)}\u202fms`;
    const shown = await bars();
    assert.equal(shown.length, wanted.length);
    wanted.forEach((row, i) => assert.ok(shown[i].startsWith(of(row)), `${shown[i]}; ${of(row)}`));
    assert.match(await page.textContent('#stages-title'), /in step 1/);
    await page.keyboard.press('[');
    await atRest(page);
    assert.match(await page.textContent('#stages-title'), /in step 0/);
    await page.click('#stages-all');
    const all = rowsOf(program('analyze', 'waterfall', runs.split, '--format', 'json'), 'waterfall-stages'),
      now = await bars();
    all.forEach((row, i) => assert.ok(now[i].startsWith(of(row)), `${now[i]}; ${of(row)}`));
    // In a run with replicas it shows the chosen one's: both together are the program's.
    const two = await show(open, 'pipeline', '?step=2&dp=0'),
      read = async () => (await two.locator('.stages tbody .bars').evaluateAll(list =>
        list.map(one =>
          Number(/busy ([\d.]+)/.exec(one.getAttribute('aria-label'))[1])
        )
      ));
    const first = await read();
    await two.selectOption('#replica', '1');
    await atRest(two);
    const second = await read(),
      mean = rowsOf(program('analyze', 'waterfall', runs.pipeline, '--steps', '2', '--format', 'json'),
        'waterfall-stages');
    assert.notDeepEqual(first, second);
    mean.forEach((row, i) =>
      assert.ok(Math.abs((first[i] + second[i]) / 2 - row.busy_ns / 1e6) <= 1,
        `${first[i]}, ${second[i]} and ${row.busy_ns}`)
    );
  }],
];
