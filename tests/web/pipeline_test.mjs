// The pipeline page: what it draws, that its numbers are the program's, and every control with real input events. Run
// by viewer_run.mjs.
import assert from 'node:assert/strict';
import {moduleOf} from './onefile_vectors.mjs';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {atRest as rest_, cellWhere, program, rowsOf, show, showBoth, state, view} from './pipeline_help.mjs';
import {drag, settle, tooWide} from './viewer_help.mjs';

const json = program;
const FORWARD = 0, BACKWARD = 1;

export const cases = [
  ["pipeline: the pointer says a cell's slack, in the timeline too, as pipeline-critical-path has it", async open => {
    const page = await show(open, 'pipeline', '?step=1');
    const rows = await page.evaluate(async () => {
      for (;;) {
        const reply = await fetch('api/answer?name=pipeline-critical-path&step=1');
        if (reply.status !== 200) continue;
        const {columns, rows} = (await reply.json()).tables.find(one => one.name === 'slack-cells');
        return rows.map(row => Object.fromEntries(columns.map((column, i) => [column.name, row[i]])));
      }
    });
    const words = ns =>
      ns === 0 ? 'no slack: on the critical path'
        : `slack ${(ns / 1e6).toFixed(ns >= 99.95e6 ? 0 : ns >= 9.995e6 ? 1 : 2)}\u202fms:`;
    const seen = new Set();
    for (const [kind, type, microBatch] of [[0, 'forward', 0], [1, 'backward', 2], [1, 'backward', 7]]) {
      const at = await cellWhere(page, {kind, microBatch}), rank = await page.evaluate(part =>
        stageline.run.ranks[part].rank, at.part);
      const {slack_ns: slack} = rows.find(row =>
        row.rank === rank && row.type === type && row.micro_batch === microBatch
      );
      await page.mouse.move(at.x, at.y);
      await page.waitForFunction(text => document.querySelector('.page-pipeline .tip').textContent.includes(text),
        words(slack));
      seen.add(slack);
    }
    assert.ok(seen.size > 1, [...seen].join());
    const timeline = await open('pipeline'), first = await timeline.evaluate(() => {
      const {lanes, ranks, steps} = stageline.run, lane = lanes.find(one =>
        one.type === 'cells' && one.name === 'compute' &&
        ranks[one.rank_index].stage === 0
      );
      stageline.setView(steps[1].start_ns, steps[1].end_ns);
      return {lane: lane.id, rank: ranks[lane.rank_index].rank};
    });
    await settle(timeline);
    const where = await timeline.evaluate(({lane}) => {
      const box = stageline.sliceBox(stageline.slices(lane).find(one =>
        one.start >= stageline.run.steps[1].start_ns
      ));
      return {x: box.x + box.w / 2, y: box.y + box.h / 2};
    }, first);
    const {slack_ns: slack} = rows.find(row =>
      row.rank === first.rank && row.type === 'forward' && row.micro_batch === 0
    );
    await timeline.mouse.move(where.x, where.y);
    await timeline.waitForFunction(text => document.querySelector('.page-timeline .tip').textContent.includes(text),
      words(slack));
  }],
  ['pipeline: every cell is drawn, rows are stages, and they unfold', async (open, {shot}) => {
    const page = await show(open, 'pipeline');
    const cells = await page.evaluate(() => stageline.pipeline.cells());
    assert.equal(cells, 1312);
    assert.equal(await page.evaluate(() => stageline.pipeline.drawn()), cells);
    assert.equal((await page.evaluate(() => stageline.pipeline.rows())).length, 4);
    await shot(page, 'pipeline-page');
    await page.click('#unfold');
    await rest_(page);
    assert.equal((await page.evaluate(() => stageline.pipeline.rows())).length, 8);
    await page.click('#unfold');
    const chart = await page.locator('.page-pipeline canvas').boundingBox();
    await page.mouse.click(chart.x + 40, chart.y + 30 + 58 + 20); // the name of stage 1
    await rest_(page);
    assert.deepEqual((await state(page)).open, [1]);
    assert.equal((await page.evaluate(() => stageline.pipeline.rows())).length, 5);
    assert.match(await page.evaluate(() => location.hash), /^#\/pipeline/);
    await page.waitForFunction(() => location.hash.includes('open=1'));
    await page.keyboard.press('Shift+U');
    await rest_(page);
    assert.equal((await page.evaluate(() => stageline.pipeline.rows())).length, 8);
  }],
  ["pipeline: the step's split, stages and maps are the program's numbers", async (open, {runs}) => {
    const page = await show(open, 'pipeline'), {step, dp} = await state(page);
    const waterfall = json('analyze', 'waterfall', runs.pipeline, '--format', 'json');
    const row = rowsOf(waterfall, 'waterfall-steps').find(r => r.step === step && r.dp === dp);
    const shown = await page.getAttribute('.page-pipeline .split', 'aria-label');
    const ms = ns => (Math.abs(ns) >= 99.95e6 ? (ns / 1e6).toFixed(0)
      : Math.abs(ns) >= 9.995e6 ? (ns / 1e6).toFixed(1) : (ns / 1e6).toFixed(2));
    assert.ok(shown.includes(`compute ${ms(row.compute_ns)}\u202fms`), `${shown} and ${row.compute_ns}`);
    assert.ok(shown.includes(`schedule bubble ${ms(row.schedule_ns)}\u202fms`), `${shown} and ${row.schedule_ns}`);
    const title = await page.textContent('.page-pipeline h1');
    assert.ok(
      title.includes(`${ms(row.span_ns)}\u202fms`) &&
        title.includes(`${(row.compute_ns / row.span_ns * 100).toFixed(1)}\u202f%`),
      title,
    );
    const stages = rowsOf(waterfall, 'waterfall-stages');
    await page.click('#stages-all');
    const busy = await page.locator('.stages tbody tr td:nth-child(3)').allTextContents();
    assert.deepEqual(busy, stages.map(r => `${(r.busy_share * 100).toFixed(1)}\u202f%`));
    const workers = rowsOf(json('analyze', 'stragglers', runs.pipeline, '--format', 'json'), 'straggler-workers');
    const cells = await page.locator('#workers button').allTextContents();
    const wanted = [...workers].sort((a, b) => a.dp - b.dp || a.stage - b.stage).map(r => r.peer_ratio.toFixed(2));
    assert.deepEqual(cells, wanted);
    const usual = rowsOf(json('analyze', 'stragglers', runs.pipeline, '--format', 'json'), 'straggler-steps').sort((a,
      b) => a.stage - b.stage || a.step - b.step
    );
    assert.ok(usual.length === 16, `${usual.length} stages and steps`);
    assert.deepEqual(await page.locator('#step-map button').allTextContents(), usual.map(r => r.ratio.toFixed(2)));
    assert.deepEqual(await page.locator('#step-map button').evaluateAll(list => list.map(one => one.title)),
      usual.map(r =>
        `step ${r.step}, stage ${r.stage}: ${r.ratio.toFixed(3)}× usual, busy ${
          ms(r.busy_ns)
        }\u202fms; slowest rank ${r.slowest_rank}`
      ));
  }],
  ["pipeline: bubbles add up to the stages' waiting, and the pointer tells their cause", async (open, {runs}) => {
    const page = await show(open, 'pipeline'), bubbles = await page.evaluate(() => stageline.pipeline.bubbles());
    const parts = await page.evaluate(() => stageline.pipeline.parts.map(part => part.stage));
    const stages = rowsOf(json('analyze', 'waterfall', runs.pipeline, '--format', 'json'), 'waterfall-stages');
    for (const stage of stages) {
      const ranks = parts.filter(s => s === stage.stage).length * 4;
      const waiting = bubbles.dur.reduce((sum, dur, i) => sum + (parts[bubbles.part[i]] === stage.stage ? dur : 0), 0) /
        ranks;
      assert.ok(Math.abs(waiting - (stage.pipeline_ns - stage.busy_ns)) <= 2, `stage ${stage.stage}: ${waiting}`);
    }
    // Finds the widest visible one.
    const at = await page.evaluate(list => {
      const p = stageline.pipeline, {step} = p.state(), rows = p.rows();
      let best = -1;
      list.dur.forEach((dur, i) => {
        if (list.step[i] === step && rows.includes(list.part[i]) && (best < 0 || dur > list.dur[best])) best = i;
      });
      return {i: best, row: rows.indexOf(list.part[best]), x: p.xOf(list.start[best] + list.dur[best] / 2)};
    }, bubbles);
    const chart = await page.locator('.page-pipeline canvas').boundingBox();
    await page.mouse.move(at.x, chart.y + 30 + at.row * 58 + 8);
    await page.waitForFunction(() =>
      /^waits [\d.]+\u202fms.*schedule bubble/s.test(document.querySelector('.page-pipeline .tip').textContent)
    );
    await page.keyboard.press('c');
    assert.equal((await state(page)).causes, false);
    await page.click('#causes');
    assert.equal((await state(page)).causes, true);
  }],
  ['pipeline: keys and pointer move, zoom, walk and choose steps', async open => {
    const page = await show(open, 'pipeline'), home = await view(page);
    await page.keyboard.press('w');
    await rest_(page);
    const near = await view(page);
    assert.ok(near.t1 - near.t0 < home.t1 - home.t0);
    await page.keyboard.press('d');
    await rest_(page);
    assert.ok((await view(page)).t0 > near.t0);
    await page.keyboard.press('0');
    await rest_(page);
    assert.deepEqual(await view(page), home);
    const chart = await page.locator('.page-pipeline canvas').boundingBox();
    await page.keyboard.down('Control');
    await page.mouse.move(chart.x + 600, chart.y + 80);
    await page.mouse.wheel(0, -240);
    await page.keyboard.up('Control');
    await rest_(page);
    const zoomed = await view(page);
    assert.ok(zoomed.t1 - zoomed.t0 < home.t1 - home.t0);
    await drag(page, [chart.x + 700, chart.y + 60], [chart.x + 500, chart.y + 60]);
    await rest_(page);
    assert.ok((await view(page)).t0 > zoomed.t0);
    const {step} = await state(page);
    await page.keyboard.press(']');
    assert.equal((await state(page)).step, step + 1);
    await page.keyboard.press('[');
    assert.equal((await state(page)).step, step);
    await page.fill('#step', '0');
    await page.keyboard.press('Enter');
    assert.equal((await state(page)).step, 0);
    await page.click('#all-steps');
    assert.equal((await state(page)).step, null);
    await page.click('#all-steps');
    const f = await cellWhere(page, {kind: FORWARD, microBatch: 1});
    await page.mouse.click(f.x, f.y);
    assert.equal((await state(page)).selected, f.index);
    assert.match(await page.textContent('.page-pipeline .details h2'), /F1/);
    await page.keyboard.press('.');
    assert.notEqual((await state(page)).selected, f.index);
    await page.keyboard.press('Escape');
    assert.equal((await state(page)).selected, -1);
  }],
  ['pipeline: presses faster than frames all count, and a number stays while it is typed', async open => {
    const page = await show(open, 'pipeline', '?step=0');
    await page.waitForSelector('#cost');
    // In one task: nothing is drawn between them.
    const seen = await page.evaluate(() => {
      const press = (...ids) => ids.forEach(id => document.getElementById(id).click()), now = () =>
        stageline.pipeline.state(), list = [];
      press('next-step', 'next-step');
      list.push(now().step);
      press('all-steps', 'all-steps');
      list.push(now().step);
      press('causes', 'causes');
      list.push(now().causes);
      for (const [id, value] of [['cost-stage', '2'], ['cost', '0.9'], ['micro-batches', '10']]) {
        const field = document.getElementById(id);
        field.value = value;
        field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}));
      }
      return list;
    });
    assert.deepEqual(seen, [2, 0, true]);
    await page.waitForFunction(() => stageline.pipeline.world() !== null);
    assert.match(await page.textContent('.what-if .how:last-child'), /stage=2,by=0\.9.*--micro-batches 10/);
    await page.fill('#step', '3');
    await page.evaluate(() => document.getElementById('unfold').click());
    await page.waitForFunction(() => document.getElementById('unfold').getAttribute('aria-pressed') === 'true');
    assert.equal(await page.inputValue('#step'), '3');
    await page.keyboard.press('Enter');
    assert.equal((await state(page)).step, 3);
    await page.fill('#step', '77');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.getElementById('step').value === '3'); // there is none
    await page.fill('#step', '1');
    await page.evaluate(() => document.getElementById('prev-step').click());
    await page.waitForFunction(() =>
      document.getElementById('step').value === '2' && stageline.pipeline.state().step === 2
    );
  }],
  ['pipeline: a window that moves along shows what is painted once it stands still', async open => {
    let page;
    for (const hash of ['?step=1', '?step=1&open=all&causes=off']) {
      page = await showBoth(open, 'compared', hash, {again: page});
      await page.focus('.page-pipeline canvas');
      for (let i = 0; i < 3; ++i) await page.keyboard.press('w');
      await rest_(page);
      // Moves with every frame, each before the window is at rest, until the last was of strips. The picture over the
      // canvas then is compared with the canvas at rest and with that two pixels aside: shares of pixels that differ.
      const seen = await page.evaluate(async () => {
        const canvas = document.querySelector('.page-pipeline canvas'), frame = () =>
          new Promise(done => requestAnimationFrame(done));
        const corner = canvas.getBoundingClientRect(), copy = document.createElement('canvas'),
          until = Date.now() + 60000;
        [copy.width, copy.height] = [canvas.width, canvas.height];
        const pen = copy.getContext('2d', {willReadFrequently: true}), pixels = () =>
          pen.getImageData(0, 0, copy.width, copy.height).data;
        const rolling = () => canvas.parentElement.querySelector('.rolling');
        const move = async by => {
          const painted = new Promise(done => canvas.addEventListener('painted', done, {once: true}));
          canvas.dispatchEvent(new WheelEvent('wheel', {deltaX: by, cancelable: true}));
          await painted;
        };
        for (const by of [163, 90, 70, -200, 60, 77, 63, -88, 88]) await move(by);
        for (let i = 0; !rolling() && Date.now() < until; ++i) await move(i % 2 ? -7 : 7);
        if (!rolling()) return {strips: 0};
        const place = rolling().querySelector('.belt-place').getBoundingClientRect(),
          list = [...rolling().querySelectorAll('.belt canvas')];
        pen.drawImage(canvas, 0, 0);
        pen.beginPath();
        pen.rect(place.left - corner.left, place.top - corner.top, place.width, place.height);
        pen.save();
        pen.clip();
        for (const one of list)
          pen.drawImage(one, Math.round(one.getBoundingClientRect().left - corner.left),
            Math.round(place.top - corner.top));
        pen.restore();
        for (const one of rolling().querySelectorAll(':scope > canvas'))
          pen.drawImage(one, 0, Math.round(one.getBoundingClientRect().top - corner.top));
        const moved = pixels(), {t0} = stageline.pipeline.view();
        while (rolling()) await frame();
        pen.drawImage(canvas, 0, 0);
        const still = pixels(), differing = (a, b, aside) => {
          let other = 0;
          for (let i = 0; i < a.length - 4 * aside; i += 4)
            other += [0, 1, 2].some(k => Math.abs(a[i + k] - b[i + 4 * aside + k]) > 40);
          return other / (a.length / 4);
        };
        return {strips: list.length, stood: t0 === stageline.pipeline.view().t0, rest: differing(moved, still, 0),
          aside: differing(still, still, 2)};
      });
      assert.ok(seen.strips >= 4, `${hash}: the last move was of strips: ${JSON.stringify(seen)}`);
      assert.ok(seen.stood, 'and the window stood still where it was');
      // Words are in the middle of the visible part of a cell.
      assert.ok(seen.rest < seen.aside / 20, `${hash}: ${JSON.stringify(seen)}`);
    }
  }],
  ['pipeline: hovering shows the cell; its arrows are drawn', async open => {
    const page = await show(open, 'pipeline'), b = await cellWhere(page, {kind: BACKWARD, microBatch: 2});
    const clip = {x: 0, y: 0, width: 1440, height: 700}, before = await page.screenshot({clip});
    await page.mouse.move(b.x, b.y);
    await rest_(page);
    await page.waitForFunction(() => /B2/.test(document.querySelector('.page-pipeline .tip').textContent));
    await page.evaluate(() => {
      document.querySelector('.page-pipeline .tip').style.visibility = 'hidden';
    });
    assert.notDeepEqual(await page.screenshot({clip}), before);
  }],
  ['pipeline: arrows end on the cells that wait for each other', async open => {
    const page = await show(open, 'pipeline'), b = await cellWhere(page, {kind: BACKWARD, microBatch: 2, part: 1});
    // Counts dark pixels where an arrow ends: its head is drawn there, and nothing was before.
    const heads = points =>
      page.evaluate(list => {
        const canvas = document.querySelector('.page-pipeline canvas'),
          {left, top, width} = canvas.getBoundingClientRect(),
          sharp = canvas.width / width;
        const pen = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height})
          .getContext('2d');
        pen.drawImage(canvas, 0, 0);
        return list.map(([x, y]) =>
          [...pen.getImageData(Math.round((x - left - 3) * sharp), Math.round((y - top) * sharp), 1, 1).data].join()
        );
      }, points);
    const arrows = await page.evaluate(i => stageline.pipeline.arrows(i), b.index),
      before = await heads(arrows.map(one => [one.x1, one.y1]));
    assert.ok(arrows.length >= 2, `${arrows.length} arrows`);
    await page.mouse.move(b.x, b.y);
    await page.waitForFunction(i => stageline.pipeline.state().hovered === i, b.index);
    await rest_(page);
    const after = await heads(arrows.map(one => [one.x1, one.y1])), near = (p, q) => Math.abs(p - q) <= 1;
    let between = 0;
    for (const [k, {from, to, x0, y0, x1, y1}] of arrows.entries()) {
      assert.ok(from === b.index || to === b.index, `${from} → ${to}`);
      const [start, end] = await page.evaluate(
        list => list.map(i => ({...stageline.pipeline.cell(i), ...stageline.pipeline.box(i)})),
        [from, to],
      );
      assert.ok(near(x0, start.x + start.w) && y0 > start.y && y0 < start.y + start.h,
        `begins at ${x0},${y0}: ${JSON.stringify(start)}`);
      assert.ok(near(x1, end.x) && y1 > end.y && y1 < end.y + end.h, `ends at ${x1},${y1}: ${JSON.stringify(end)}`);
      assert.ok(start.start + start.dur <= end.start, 'nobody waits for what comes later');
      assert.notEqual(after[k], before[k], `no head at ${x1},${y1}`);
      if (start.part === end.part) continue;
      assert.equal(start.microBatch, end.microBatch); // of another rank only what the cell is made from
      ++between;
    }
    assert.ok(between >= 1);
  }],
  ['pipeline: it opens on the replica that the others wait for, and says so', async open => {
    const page = await show(open, 'slowWorker');
    assert.equal((await state(page)).dp, 1);
    assert.match(await page.textContent('#slowest'),
      /^The slower of 2 replicas: its pipeline takes [\d.]+\u202fms \(\d[\d.]*\u202f%\) longer\.$/);
    await page.selectOption('#replica', '0');
    await page.waitForFunction(() =>
      /^The slowest one, replica 1, takes/.test(document.querySelector('#slowest').textContent)
    );
    await page.click('#slowest button');
    await page.waitForFunction(() =>
      stageline.pipeline.state().dp === 1 && /^The slower of 2/.test(document.querySelector('#slowest').textContent)
    );
    assert.equal((await state(await show(open, 'slowWorker', '?dp=0'))).dp, 0);
    assert.equal(await (await show(open, 'vpp')).locator('#slowest').count(), 0);
  }],
  ['pipeline: cells that begin before what they wait for is done are called that', async open => {
    const page = await show(open, 'early');
    assert.match(await page.textContent('#early'),
      /^\d+ of \d+ cells that wait for another rank start before it finishes, by up to 15\.0\u202fms\. All timestamps come from one clock/);
    assert.match(await page.textContent('.page-pipeline ul.small'), /−[\d.]+\s*%\s*started too early/);
    assert.match(await (await show(open, 'early', '', {query: '?lang=zh'})).textContent('#early'), /最多早 15\.0/);
    assert.equal(await (await show(open, 'pipeline')).locator('#early').count(), 0);
  }],
  ['pipeline: rows grow with a tall window, and stay in sight', async open => {
    const heightOf = async (...size) => {
      const page = await show(open, 'pipeline', '', {size}),
        {box} = await cellWhere(page, {kind: FORWARD, microBatch: 1}),
        chart = page.locator('.page-pipeline .chart');
      assert.ok(await chart.evaluate(one => one.scrollHeight <= one.clientHeight + 1), `${size}`);
      return box.h;
    };
    assert.ok(Math.abs(await heightOf(1280, 800) - 46) <= 1);
    const tall = await heightOf(3840, 2160);
    assert.ok(tall > 90 && tall < 120, `${tall} px`);
  }],
  ['pipeline: a cell leads to its place in the timeline, and back', async open => {
    const page = await show(open, 'pipeline'), f = await cellWhere(page, {kind: FORWARD, microBatch: 2});
    await page.mouse.click(f.x, f.y);
    await page.click('#to-timeline');
    await page.waitForFunction(() => stageline.page() === 'timeline' && stageline.state().selected);
    const chosen = await page.evaluate(() => stageline.state().selected);
    assert.equal(chosen.dur, f.dur);
    assert.equal(chosen.start, f.start);
    await page.goBack();
    await page.waitForFunction(() => stageline.page() === 'pipeline');
    assert.equal((await state(page)).selected, f.index);
    await page.focus('.page-pipeline canvas');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => stageline.page() === 'timeline');
  }],
  ['pipeline: device work of a profiled cell is totalled in the timeline', async open => {
    const page = await show(open, 'profile'), f = await cellWhere(page, {kind: FORWARD, microBatch: 1});
    await page.mouse.click(f.x, f.y);
    await page.click('#to-timeline');
    await page.waitForFunction(() =>
      stageline.page() === 'timeline' && stageline.state().area && stageline.state().panel !== 'none'
    );
    const area = await page.evaluate(() => stageline.state().area);
    assert.equal(area.t1 - area.t0, f.dur);
    assert.ok(area.lanes.length > 0);
  }],
  ['pipeline: two steps are compared', async (open, {runs}) => {
    const page = await show(open, 'pipeline', '?step=1'), plain = await page.screenshot();
    await page.selectOption('#beside', '3');
    await rest_(page);
    assert.notDeepEqual(await page.screenshot(), plain);
    const steps = rowsOf(json('analyze', 'pipeline-summary', runs.pipeline, '--format', 'json'), 'steps'), span = n =>
      steps.find(r => r.step === n).span_ns;
    const by = span(1) - span(3), words = await page.textContent('.beside-words');
    assert.ok(words.includes(by >= 0 ? 'slower than step 3' : 'faster than step 3'), words);
    const shown = Number(/is ([\d.]+)/.exec(words)[1]), ms = Math.abs(by) / 1e6;
    assert.ok(Math.abs(shown - ms) <= 0.05 + ms * 0.005, `${words} and ${by}`);
    await page.waitForFunction(() => location.hash.includes('beside=3'));
  }],
  ['pipeline: DualPipeV has the seven phases that its table says, each in its colour', async (open, {folder}) => {
    const {phaseOf} = await moduleOf(folder, 'seven_phases', `export * from './data/seven_phases';`), p = 4, m = 10;
    for (let r = 0; r < p; ++r) {
      const count = (kind, chunk) =>
        Array.from({length: 7}, (_, phase) =>
          Array.from({length: m}, (_2, mb) =>
            phaseOf(kind, chunk, mb, p, m, r)).filter(one => one === phase).length);
      const head = p - 1 - r, both = m - 2 * p + r + 1;
      assert.deepEqual([count(0, 0), count(0, 1)], [[2 * head, r + 1, 0, both, 0, 0, 0], [
        0,
        r + 1,
        head,
        both,
        head,
        0,
        0,
      ]], `forwards of stage ${r}`);
      const [later, first] = [count(1, 1), count(1, 0)], ends = k => later[k] + first[k];
      assert.deepEqual([later.slice(0, 5), first.slice(0, 5), ends(5), ends(6)], [
        [0, 0, head, both, head],
        [0, 0, 0, both, head],
        r + 1,
        p,
      ], `backwards of stage ${r}`);
      assert.equal(phaseOf(0, 0, 0, p, 2 * p - 2 - r, r), -1, 'too few micro-batches for this order');
    }
    const page = await open('dualpipe', '?lang=en#/pipeline');
    await page.locator('.key .phase').first().waitFor();
    assert.match(await page.textContent('.chart-head .key'), /0 warm-up.*3 overlap.*6 cool-down/);
    // At the foot of a row its cells' phases follow each other, the colours in order.
    const colours = await page.evaluate(() => {
      const canvas = document.querySelector('.page-pipeline canvas'), ratio = devicePixelRatio, rgb = hex =>
        [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)).join();
      const known = [...document.querySelectorAll('.key .phase')].map(one => one.style.background.match(/\d+/g).join()),
        {width, height} = canvas;
      const {data} = canvas.getContext('2d').getImageData(0, 0, width, height), seen = [];
      for (let y = 0; y < height; ++y) {
        const row = [];
        for (let x = 0; x < width; ++x) {
          const at = known.indexOf(
            [data[4 * (y * width + x)], data[4 * (y * width + x) + 1], data[4 * (y * width + x) + 2]].join(),
          );
          if (at >= 0 && row.at(-1) !== at) row.push(at);
        }
        if (row.length > 3) seen.push(row.join(''));
      }
      return [...new Set(seen)];
    });
    assert.deepEqual(colours.sort(), ['0123456', '1356'], 'the last stage has no phases of a head');
  }],
  ['pipeline: what-if replays at once, with the price that the program has', async (open, {runs, shot}) => {
    const page = await show(open, 'pipeline');
    await page.waitForSelector('#cost');
    await page.selectOption('#cost-stage', '2');
    await page.focus('#cost');
    for (let i = 0; i < 10; ++i) await page.keyboard.press('ArrowLeft'); // 0.90
    await page.waitForFunction(() =>
      document.querySelector('#says').dataset.saving !== undefined &&
      document.querySelector('.what-if .how:last-child').textContent.includes('stage=2,by=0.9')
    );
    await page.waitForFunction(() => stageline.pipeline.world() !== null);
    await rest_(page);
    const own = rowsOf(json('what-if', runs.pipeline, '--scale', 'stage=2,by=0.9', '--json'), 'fixes').find(r =>
      r.fix === 'own'
    );
    await page.waitForFunction(saving => Number(document.querySelector('#says').dataset.saving) === saving,
      own.saving_ns);
    assert.equal(Number(await page.getAttribute('#says', 'data-step')), own.step_ns);
    await shot(page, 'pipeline-what-if');
    // Only the visible part was sent; unfolded rows are sent too.
    const folded = await page.evaluate(() => stageline.pipeline.cells());
    await page.click('#unfold');
    await page.waitForFunction(few => stageline.pipeline.world() !== null && stageline.pipeline.cells() === 2 * few,
      folded);
    await page.click('#unfold');
    await rest_(page);
    assert.equal((await page.evaluate(() => stageline.pipeline.rows())).length, 4); // what has come stays
    await page.focus('#micro-batches');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    const more = rowsOf(json('what-if', runs.pipeline, '--scale', 'stage=2,by=0.9', '--micro-batches', '10', '--json'),
      'fixes').find(r => r.fix === 'own');
    await page.waitForFunction(saving => Number(document.querySelector('#says').dataset.saving) === saving,
      more.saving_ns);
    await page.click('#what-if-reset');
    await page.waitForFunction(() =>
      stageline.pipeline.world() === null && document.querySelector('#says').dataset.saving === undefined
    );
    await page.selectOption('.what-if #schedule', 'fthenb');
    const other = rowsOf(json('what-if', runs.pipeline, '--schedule', 'fthenb', '--json'), 'fixes').find(r =>
      r.fix === 'own'
    );
    await page.waitForFunction(saving => Number(document.querySelector('#says').dataset.saving) === saving,
      other.saving_ns);
    const first = await page.evaluate(() => stageline.pipeline.cells());
    assert.equal(first, 4 * 8 * 2); // the pipeline's own cells
    await page.focus('.page-pipeline canvas');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => stageline.pipeline.world() === null);
  }],
  ['pipeline: what-if within a memory offers what the program offers', async (open, {runs, folder}) => {
    const page = await show(open, 'slower', '', {complaints: true}),
      path = join(folder, 'what-if-config.json'),
      run = [runs.slower].flat()[0];
    writeFileSync(path,
      JSON.stringify({model_type: 'llama', hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32,
        num_key_value_heads: 8, intermediate_size: 14336, vocab_size: 128256, note: 'x'.repeat(9000)}));
    const names = () => page.locator('.what-if .fix button').allTextContents();
    await page.waitForSelector('#what-if-model');
    const before = await names();
    await page.setInputFiles('#what-if-model', path);
    const same = async (...flags) => {
      const all = rowsOf(json('what-if', run, '--model', path, ...flags, '--json'), 'fixes');
      const said = all.slice(0, 8).map(row => row.what + (row.bound ? ' (an upper bound)' : ''));
      await page.waitForFunction(
        wanted =>
          JSON.stringify([...document.querySelectorAll('.what-if .fix button')].map(one => one.textContent)) === wanted,
        JSON.stringify(said),
      );
      return all;
    };
    await page.waitForSelector('#what-if-memory');
    const set = async (id, value) => {
      await page.fill(`#what-if-${id}`, String(value));
      await page.press(`#what-if-${id}`, 'Tab');
    };
    await set('seq', 8192);
    await set('memory', 4000);
    const many = await same('--memory', '4000GiB', '--seq', '8192');
    assert.match(await page.textContent('.what-if .fix small'), /^memory at most [0-9.]+ GiB on stage \d/);
    await set('memory', 20);
    const few = await same('--memory', '20GiB', '--seq', '8192');
    assert.ok(few.length < many.length, 'less memory, fewer options');
    await page.waitForFunction(() => /does not fit/.test(document.querySelector('#says').textContent));
    assert.match(await page.textContent('.what-if .how:last-child'),
      /Options that need more memory: \d+.*--memory 20GiB --seq 8192 --model config\.json/);
    await page.selectOption('.what-if #schedule', 'fthenb');
    await page.waitForFunction(() => document.querySelector('#says').dataset.saving !== undefined);
    assert.match(await page.textContent('#says'), /then [0-9.]+ GiB on stage \d\. That does not fit/);
    // A link, and a reload, show the same.
    await page.check('#what-if-recompute');
    await page.waitForFunction(() => /recompute=full/.test(location.hash));
    assert.match(await page.url(), /memory=20GiB&seq=8192&.*if=to%3Dfthenb|if=to%3Dfthenb&.*memory=20GiB&seq=8192/);
    await page.reload();
    await same('--memory', '20GiB', '--seq', '8192', '--recompute', 'full');
    await page.waitForFunction(() => document.querySelector('#says').dataset.saving !== undefined);
    assert.equal(await page.inputValue('#what-if-memory'), '20');
    assert.equal(await page.inputValue('#what-if-seq'), '8192');
    assert.ok(await page.isChecked('#what-if-recompute'));
    assert.equal(await page.inputValue('.what-if #schedule'), 'fthenb');
    assert.match(await page.textContent('#says'), /then [0-9.]+ GiB on stage \d/);
    // Other numbers of an edited address are taken, and a description that is refused is left out.
    await page.waitForFunction(() => {
      // The page may be about to write its own address.
      location.hash = location.hash.replace('memory=20GiB', 'memory=4000GiB');
      return document.querySelector('#what-if-memory').value === '4000';
    });
    await same('--memory', '4000GiB', '--seq', '8192', '--recompute', 'full');
    const address = page.url();
    await page.goto('about:blank');
    await page.goto(address.replace('hidden_size', 'no_size'));
    await page.waitForSelector('.what-if .notice');
    assert.deepEqual(await names(), before);
    await page.setInputFiles('#what-if-model', path);
    await set('seq', 8192);
    await set('memory', 20);
    await page.waitForFunction(() => /does not fit/.test(document.querySelector('#says').textContent));
    for (const theme of ['light', 'dark']) {
      await page.locator('.what-if').screenshot({path: join(folder, `what-if-memory-${theme}.png`)});
      await page.click('#theme');
    }
    await set('memory', '');
    await page.waitForSelector('.what-if .notice');
    await page.setInputFiles('#what-if-model', []);
    await page.waitForFunction(
      wanted =>
        JSON.stringify([...document.querySelectorAll('.what-if .fix button')].map(one => one.textContent)) === wanted,
      JSON.stringify(before),
    );
  }],
  ['pipeline: a world without changes is the step as recorded', async open => {
    const page = await show(open, 'pipeline'), {step} = await state(page);
    const worst = await page.evaluate(async wanted => {
      const answer = await fetch(`/api/pipeline/what-if?step=${wanted}`), buffer = await answer.arrayBuffer();
      const length = new DataView(buffer).getUint32(0, true),
        header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
      const base = Math.ceil((4 + length) / 8) * 8, column = (name, type) => {
        const found = header.columns.find(c => c.name === name);
        return new type(buffer, base + found.offset, found.count);
      };
      const [start, part, kind, mb] = [
        column('start', Float64Array),
        column('part', Int32Array),
        column('kind', Uint8Array),
        column('micro_batch', Int32Array),
      ];
      const known = new Map(), p = stageline.pipeline;
      for (let i = 0; i < p.cells(); ++i) {
        const cell = p.cell(i);
        if (cell.step === wanted && cell.kind < 5)
          known.set(`${cell.part}/${cell.kind}/${cell.microBatch}`, cell.start);
      }
      let most = 0, seen = 0;
      start.forEach((t, i) => {
        const was = known.get(`${part[i]}/${kind[i]}/${mb[i]}`);
        if (kind[i] < 5 && was !== undefined) {
          ++seen;
          most = Math.max(most, Math.abs(was - t));
        }
      });
      return {most, seen, saving: header.saving_ns};
    }, step);
    assert.equal(worst.seen, 128);
    assert.equal(worst.saving, 0);
    assert.ok(worst.most <= 3e6, `${worst.most} ns off`); // messages without a wait are replayed at their minimum
  }],
  ['pipeline: the chart leaves as SVG and PNG', async open => {
    const page = await show(open, 'split');
    const save = async id => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.click(id)]);
      return {name: download.suggestedFilename(), bytes: readFileSync(await download.path())};
    };
    const svg = await save('#save-svg'), text = svg.bytes.toString();
    assert.match(svg.name, /^split-step\d+\.svg$/);
    assert.match(text, /^<svg xmlns/);
    const problems = await page.evaluate(
      source => new DOMParser().parseFromString(source, 'image/svg+xml').querySelectorAll('parsererror').length,
      text,
    );
    assert.equal(problems, 0);
    assert.ok(
      (text.match(/<text /g) ?? []).length > 40 && text.includes('<pattern') &&
        !/script|https?:\/\/(?!www\.w3\.org)/.test(text),
    );
    const png = await save('#save-png');
    assert.deepEqual([...png.bytes.subarray(1, 4)].map(c => String.fromCharCode(c)).join(''), 'PNG');
    const canvas = await page.locator('.page-pipeline canvas').boundingBox();
    assert.equal(png.bytes.readUInt32BE(16), Math.round(canvas.width * 2));
  }],
  ['pipeline: overlapped cells have two halves, chunks their tints; every schedule opens', async (open, {shot}) => {
    let page;
    for (const run of ['dualpipe', 'vpp', 'zbv', 'split']) {
      page = await show(open, run, '', {again: page});
      assert.equal(await page.evaluate(() => stageline.pipeline.drawn()), await page.evaluate(() =>
        stageline.pipeline.cells()
      ), run);
      await shot(page, `pipeline-${run}`);
      if (run !== 'dualpipe') continue;
      const pair = await page.evaluate(() => {
        const p = stageline.pipeline, {step} = p.state(), count = p.cells();
        for (let i = 0; i + 1 < count; ++i) {
          const [a, b] = [p.cell(i), p.cell(i + 1)];
          if (a.step === step && a.part === b.part && a.start === b.start && a.dur === b.dur && a.kind !== b.kind)
            return [p.box(i), p.box(i + 1)];
        }
        return null;
      });
      assert.ok(pair && pair[0].h === pair[1].h && Math.abs(pair[0].y - pair[1].y) >= pair[0].h - 1,
        JSON.stringify(pair));
    }
  }],
  ["pipeline: Ascend and, where they are, ByteDance's traces open", async (open, {runs, shot}) => {
    let page;
    for (const run of ['ascend', 'bytedance'].filter(name => runs[name])) {
      page = await show(open, run, '', {again: page});
      assert.ok(await page.evaluate(() => stageline.pipeline.cells()) > 40, run);
      await shot(page, `pipeline-${run}`);
    }
    if (!runs.bytedance) console.log('skipped: 1 run of ../shared/data');
  }],
  ['pipeline: both languages, light and dark, narrow and 4k; no text without contrast', async (open, {shot}) => {
    let page;
    for (const [name, query, options] of [['zh', '?lang=zh', {}], ['dark', '?lang=en', {dark: true}], [
      'narrow',
      '?lang=zh',
      {size: [390, 800]},
    ], ['4k', '?lang=en', {size: [3840, 2160], dark: true}]]) {
      page = await show(open, 'pipeline', '', {...options, query, again: page});
      await page.waitForSelector('#cost');
      await shot(page, `pipeline-${name}`);
      assert.ok(
        await page.evaluate(() =>
          document.querySelector('.page-pipeline').scrollWidth <=
            document.querySelector('.page-pipeline').clientWidth + 1
        ),
        `${name}, too wide: ${await tooWide(page)}`,
      );
      const poor = await page.evaluate(() => {
        const paper = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
        const rgb = text => {
          paper.clearRect(0, 0, 1, 1);
          paper.fillStyle = text;
          paper.fillRect(0, 0, 1, 1);
          return [...paper.getImageData(0, 0, 1, 1).data];
        };
        const light = c => {
          const [r, g, b] = c.map(v => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const bad = [];
        for (const element of document.querySelectorAll('.page-pipeline *')) {
          if (![...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()) ||
            !element.checkVisibility() || element.disabled) continue;
          if (/^(OPTION|CAPTION|TITLE)$/i.test(element.tagName)) continue;
          let ground = rgb(getComputedStyle(document.body).backgroundColor);
          const chain = [];
          for (let at = element; at; at = at.parentElement) chain.unshift(rgb(getComputedStyle(at).backgroundColor));
          for (const [r, g, b, a] of chain) ground = [r, g, b].map((v, i) => v * a / 255 + ground[i] * (1 - a / 255));
          const ink = rgb(getComputedStyle(element).color).slice(0, 3),
            [high, low] = [light(ink), light(ground)].sort((a, b) => b - a);
          if ((high + 0.05) / (low + 0.05) < 4.5)
            bad.push(
              `${element.tagName}.${element.className} "${element.textContent.slice(0, 30)}" ${
                ((high + 0.05) / (low + 0.05)).toFixed(2)
              }`,
            );
        }
        return bad;
      });
      assert.deepEqual(poor, [], name);
    }
  }],
  ['touch pipeline: a finger moves the chart, a tap chooses a cell', async (open, {context}) => {
    const page = await show(open, 'pipeline'), client = await context.newCDPSession(page);
    const f = await cellWhere(page, {kind: FORWARD, microBatch: 3});
    await page.touchscreen.tap(f.x, f.y);
    await rest_(page);
    assert.equal((await state(page)).selected, f.index);
    const chart = await page.locator('.page-pipeline canvas').boundingBox(), before = await view(page),
      y = chart.y + 60;
    const at = (a, b) => [{x: chart.x + a, y, id: 1}, {x: chart.x + b, y, id: 2}];
    await client.send('Input.dispatchTouchEvent', {type: 'touchStart', touchPoints: at(500, 600)});
    await client.send('Input.dispatchTouchEvent', {type: 'touchMove', touchPoints: at(480, 620)});
    await client.send('Input.dispatchTouchEvent', {type: 'touchMove', touchPoints: at(400, 700)});
    await client.send('Input.dispatchTouchEvent', {type: 'touchEnd', touchPoints: []});
    await rest_(page);
    const after = await view(page);
    assert.ok(after.t1 - after.t0 < before.t1 - before.t0, JSON.stringify([before, after]));
  }],
  ['pipeline: an address shows what was seen; a run without cells has no such page', async open => {
    const page = await show(open, 'pipeline', '?step=1&dp=1&open=0,2&causes=off&theory=off&beside=2');
    const seen = await state(page);
    assert.deepEqual([seen.step, seen.dp, seen.open, seen.causes, seen.theory, seen.beside], [
      1,
      1,
      [0, 2],
      false,
      false,
      2,
    ]);
    const other = await open('busy', '?lang=en#/pipeline', {raw: true});
    await other.waitForFunction(() => window.stageline?.page?.());
    assert.equal(await other.evaluate(() => stageline.page()), 'overview');
    assert.equal(await other.locator('#page-pipeline').count(), 0);
  }],
];
