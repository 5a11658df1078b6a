// Tests the frame around the pages and the problems of first-time readers. These are the header's one row, addresses
// that lead nowhere, a drawer that hides nothing, and clear labels of rows and bars. It is run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {existsSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {openReport, reportOf} from './onefile_help.mjs';
import {chosen, clickSlice, patience, resize, settle, span, state, stopClock, view, wideSlice} from './viewer_help.mjs';

const answered = async page => page.waitForFunction(() => window.stageline?.answers?.().waiting.length === 0);
// Widths of a chart's bars, as shares of the longest they could be; `below`: what is taken off at the end.
const bars = (page, nth = 0) =>
  page.locator('.charts .plot').nth(nth).locator('tbody tr').evaluateAll(rows =>
    rows.map(row => {
      const box = row.querySelector('.stack'), whole = box.getBoundingClientRect().width, parts = [...box.children];
      const sum = list => list.reduce((all, one) => all + one.getBoundingClientRect().width, 0) / whole;
      return {name: row.cells[0].textContent, all: sum(parts.filter(one => !one.classList.contains('below'))),
        below: sum(parts.filter(one => one.classList.contains('below'))), kinds: parts.map(one =>
          one.firstElementChild.className
        ), cells: [...row.cells].slice(2).map(cell => cell.textContent)};
    })
  );

export const cases = [
  [
    'notes: kept in a file beside the run, there for who opens it next, and in a report',
    async (open, {runs, folder, stageline, files}) => {
      const file = `${runs.noted}.stageline-notes.json`;
      rmSync(file, {force: true}); // of a run of this test before
      const page = await open('noted', '?lang=en');
      await page.mouse.move(800, 260);
      await page.keyboard.press('Shift+M');
      await page.waitForFunction(() => stageline.state().marks.length === 1);
      const at = await page.evaluate(() => stageline.state().marks[0].t),
        origin = BigInt(await page.evaluate(() => stageline.run.origin_ns));
      await page.click('#tab-marks');
      await page.locator('.marks input').fill('checkpoint <b>');
      for (;; await new Promise(done => setTimeout(done, 20)))
        if (existsSync(file) && readFileSync(file, 'utf8').includes('checkpoint')) break;
      assert.match(readFileSync(file, 'utf8'), new RegExp(
        `^\\{"format":"stageline notes 1","notes":\\[\\{"at_ns":${
          origin + BigInt(at)
        },"text":"checkpoint <b>"\\}\\]\\}\n$`,
      ));
      assert.match(await page.locator('.panel').textContent(), /Saved in .*noted\.stageline-notes\.json/);
      const next = await open('noted', '?lang=en'); // another page, nothing in its address
      await next.waitForFunction(() => stageline.state().marks[0]?.text === 'checkpoint <b>');
      const report = await openReport(files, reportOf({stageline, runs, folder}, 'noted'));
      await report.page.waitForFunction(t => stageline.state().marks[0]?.t === t, at);
      assert.deepEqual(report.problems, []);
      // A file that does not contain notes is left alone, and the page reports it.
      writeFileSync(file, 'mine');
      assert.equal((await fetch(new URL('api/notes', page.url()), {method: 'PUT', body: '{"notes": 1}'})).status, 400);
    },
  ],
  ['the header is one row, buttons at its right; on a phone the pages have one of their own', async open => {
    let page;
    for (const lang of ['en', 'zh'])
      for (const run of ['pipeline', 'profile']) {
        page = await open(run, `?lang=${lang}`, {again: page});
        for (const [width, rows] of [[1280, 1], [1440, 1], [3840, 1], [390, 2]]) {
          await resize(page, width, 800);
          const found = await page.evaluate(() => {
            const top = document.querySelector('.top').getBoundingClientRect();
            const boxes = [...document.querySelectorAll('.top > *')].map(one => one.getBoundingClientRect()).filter(
              box => box.width > 0 && box.height > 0,
            );
            const middles = new Set(boxes.map(box => Math.round((box.top + box.bottom) / 2 / 12)));
            return {rows: middles.size, inside: boxes.every(box => box.left >= 0 && box.right <= innerWidth),
              right: top.right - document.querySelector('#keys').getBoundingClientRect().right,
              pages: document.querySelector('.pages').scrollWidth - document.querySelector('.pages').clientWidth};
          });
          assert.equal(found.rows, rows, `${run}, ${lang}, ${width}: ${JSON.stringify(found)}`);
          assert.ok(found.inside && found.right < 20 && found.pages <= 0,
            `${run}, ${lang}, ${width}: ${JSON.stringify(found)}`);
        }
        const clock = await page.locator('.clock').getAttribute('title');
        assert.ok(clock.includes(await page.locator('.clock span').evaluate(one => one.textContent)),
          'what is cut stands in the title');
      }
  }],
  ['an address that leads nowhere is said, until one goes elsewhere', async open => {
    let page;
    const said = () =>
      page.waitForFunction(() => document.querySelector('.astray')?.hidden === false).then(() =>
        page.textContent('.astray span')
      );
    for (const [hash, what] of [
      ['#/timeline?v=abc', 'v=abc'],
      ['#/timeline?sel=0/compute~1~1', 'sel=0/compute~1~1'],
      ['#/timeline?pin=77/none', 'pin=77/none'],
      ['#/nonsense', '#/nonsense'],
      ['#/answers/nonsense', 'nonsense'],
      ['#/answers/time?answer=none', 'none'],
      ['#/answers/time?answer=waterfall&table=none', 'none'],
    ]) {
      page = await open('pipeline', '?lang=en' + hash, {raw: true, again: page});
      const text = await said();
      assert.ok(text.includes(`“${what}”`), `${hash}: ${text}`);
      await page.click('#lang');
      assert.match(await said(), /这次运行/);
      await patience(page, 20);
      await page.keyboard.press('g');
      await page.keyboard.press('c');
      assert.equal(await page.locator('.astray').isHidden(), true);
    }
    page = await open('pipeline', '?lang=en#/timeline?v=1000000,90000000', {again: page});
    assert.equal(await page.locator('.astray').isHidden(), true);
  }],
  ['the drawer opens without moving what was clicked out of sight, and rows keep their height', async open => {
    const page = await open('pipeline', '?lang=en', {size: [1280, 800]}),
      height = await page.evaluate('stageline.rowHeight()');
    await page.keyboard.press('2');
    await settle(page);
    const first = await page.evaluate('stageline.laneBox(0).y');
    await clickSlice(page, 0, 1);
    await chosen(page);
    assert.equal(await page.evaluate('stageline.laneBox(0).y'), first, 'what stands high stays');
    assert.equal(await page.evaluate('stageline.rowHeight()'), height);
    await page.keyboard.press('Escape');
    await settle(page);
    const lanes = await page.evaluate(() => {
      const box = document.querySelector('.scroller').getBoundingClientRect();
      return stageline.run.lanes.filter(l =>
        l.type === 'cells' && l.name === 'compute' &&
        stageline.laneBox(l.id)?.y + stageline.laneBox(l.id)?.h < box.bottom
      ).map(l => l.id);
    });
    const {slice} = await clickSlice(page, lanes.at(-1), 1);
    await chosen(page);
    assert.equal(await page.evaluate('stageline.rowHeight()'), height);
    const [box, stage] = await page.evaluate(
      s => [stageline.sliceBox(s), document.querySelector('.scroller').getBoundingClientRect().bottom],
      slice,
    );
    assert.ok(box.y > 0 && box.y + box.h <= stage, `${JSON.stringify(box)} above ${stage}`);
  }],
  ['a double click zooms to what was clicked, though the drawer opens between', async open => {
    const page = await open('pipeline', '?lang=en', {size: [1280, 560]}), lane = await page.evaluate(() => {
      const {bottom} = document.querySelector('.scroller').getBoundingClientRect();
      return stageline.run.lanes.filter(l =>
        l.name === 'compute' && stageline.laneBox(l.id)?.y + stageline.laneBox(l.id)?.h < bottom
      ).at(-1).id;
    });
    const {slice, x, y} = await wideSlice(page, lane);
    await stopClock(page); // two clicks soon after each other, however long the drawer takes here
    await page.mouse.move(x, y);
    await page.mouse.down({clickCount: 1});
    await page.mouse.up({clickCount: 1});
    await settle(page);
    await page.mouse.down({clickCount: 2});
    await page.mouse.up({clickCount: 2});
    const at = await view(page);
    assert.ok(at.t0 < slice.start && at.t1 > slice.start + slice.dur && span(at) < slice.dur * 2.2);
    assert.equal((await state(page)).selected.start, slice.start);
  }],
  ['stages of one rank have no lines of their own; rows in which nothing lasts are folded', async open => {
    const alone = await open('split');
    assert.equal(await alone.evaluate('stageline.rows().filter(row => row.kind === "group").length'), 0);
    assert.match(await alone.locator('.labels.body').textContent(), /stage 0[\s\S]*stage 3/);
    await alone.selectOption('#grouping', 'none');
    assert.match(await alone.locator('.labels.body').textContent(), /stage 0/);
    const page = await open('queued'),
      lane = await page.evaluate('stageline.run.lanes.find(one => Math.max(one.lasting_rows, 1) < one.rows)?.id ?? -1');
    assert.ok(lane >= 0, 'rows in which nothing lasts');
    const shown = () =>
      page.evaluate(id => {
        const row = stageline.rows().find(one => one.lane === id), own = stageline.run.lanes[id];
        return [row.rows, row.more, own.rows, own.lasting_rows];
      }, lane);
    const [rows, more, all, lasting] = await shown();
    assert.deepEqual([rows, more], [Math.max(lasting, 1), all - Math.max(lasting, 1)]);
    await page.locator('.label .rows').first().click();
    assert.deepEqual(
      (await page.evaluate('stageline.rows().filter(one => one.kind === "lane" && one.rows > 1).length')) > 0,
      true,
    );
  }],
  ['the legend tells chunks apart, the tooltip says which', async open => {
    const page = await open('vpp');
    assert.match(await page.locator('.key .chunks').textContent(), /chunks 0, 1/);
    const tints = await page.locator('.key .chunks i').evaluateAll(list =>
      list.map(one => getComputedStyle(one).backgroundColor)
    );
    const fill = await page.evaluate(
      'stageline.paints().fill[stageline.run.kinds.find(one => one.group === "forward").id]',
    );
    const plain = colour => colour.match(/\d+/g).map(Number).join();
    assert.deepEqual(tints.map(plain), fill.slice(0, 2).map(plain));
    await page.keyboard.press('1');
    const {x, y} = await wideSlice(page, 0);
    await page.mouse.move(x, y);
    await page.waitForFunction(() =>
      /micro-batch \d+ · chunk \d · stage \d/.test(document.querySelector('#tip').textContent)
    );
  }],
  ['bars add up: parts below 0 are taken off, totals are no parts, red is for the slow', async open => {
    const time = await open('slower', '?lang=en#/answers/time');
    await answered(time);
    const stages = await bars(time, 1), ends = stages.map(bar => bar.all - bar.below);
    assert.equal(stages.length, 4);
    assert.ok(stages.some(bar => bar.below > 0.005), `a stage that is slower than the mean: ${JSON.stringify(stages)}`);
    assert.ok(Math.max(...ends) - Math.min(...ends) < 0.01, `all end where the pipeline does: ${ends}`);
    const slow = await open('slower', '?lang=en#/answers/slow');
    await answered(slow);
    for (const bar of await bars(slow))
      assert.equal(bar.kinds[0] === 'kind-part-imbalance', /persistent|late|pauses/.test(bar.cells.at(-1)),
        JSON.stringify(bar));
    const alone = await open('split', '?lang=en#/answers/slow');
    await answered(alone);
    assert.equal((await bars(alone))[0].cells.length, 2, 'no columns of dashes');
    const path = await open('profile', '?lang=en#/answers/critical');
    await answered(path);
    await path.locator('#answer-critical-path-analysis button.ask').click();
    await answered(path);
    const bound = await bars(path, -1);
    for (const bar of bound) assert.ok(Math.abs(bar.all * 100 - parseFloat(bar.cells[1])) < 1, JSON.stringify(bar));
    assert.ok(bound.every(bar => !/^(path|wall)$|_/.test(bar.name)), bound.map(bar => bar.name).join());
    assert.match(await path.textContent('.charts'), /rank 0, one of 4/);
  }],
  ['what takes longer is asked where a page has nothing else, and the address keeps what was asked', async open => {
    const page = await open('stacks', '?lang=en#/answers/critical');
    await answered(page);
    await page.waitForSelector('#answer-critical-path-analysis .fold');
    const other = await open('profile', '?lang=en#/answers/critical');
    await answered(other);
    const name = 'critical-path-analysis', id = `answer-${name}`;
    await other.click(`#${id} button.ask`);
    await answered(other);
    await other.waitForFunction(wanted => location.hash.includes(`answer=${wanted}`), name);
    const again = await open('profile', '?lang=en' + new URL(other.url()).hash);
    await answered(again);
    assert.equal(await again.locator(`#${id} button.ask`).count(), 0);
  }],
];
