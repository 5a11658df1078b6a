// Choosing: slices, areas, names, marks, comparing, the address. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {chosen, clickSlice, drag, listed, settle, span, state, stopClock, view, wideSlice} from './viewer_help.mjs';

const type = async (page, text) => page.keyboard.type(text, {delay: 5});

async function search(page, text) {
  await page.keyboard.press('/');
  await page.waitForSelector('#omni[open]');
  await type(page, text);
  await listed(page);
}

export const cases = [
  ['a click selects: everything about the slice, its neighbours and arrows', async (open, {shot}) => {
    const page = await open('pipeline');
    await page.keyboard.press('2');
    const {slice} = await clickSlice(page, 0, 3);
    await page.waitForSelector('.slice-head h2');
    assert.equal((await state(page)).selected.start, slice.start);
    await chosen(page);
    const panel = await page.textContent('.panel .body');
    assert.ok(panel.includes(String(slice.dur / 1e6)), `${panel} has the exact duration ${slice.dur}`);
    assert.match(panel, /Micro-batch\d/);
    assert.match(await page.textContent('#live'), /rank 0/);
    const facts = await page.evaluate('stageline.facts()');
    assert.ok(facts.links.length > 0 && facts.previous && facts.next);
    await settle(page);
    await shot(page, 'selected');
    await page.keyboard.press('.');
    await page.waitForFunction(start => stageline.state().selected.start === start, facts.next.start_ns);
    await page.keyboard.press(',');
    await page.waitForFunction(start => stageline.state().selected.start === start, slice.start);
    await page.waitForFunction(() => stageline.facts());
    const out = facts.links.find(link => link.direction === 'out');
    if (out) {
      await page.keyboard.press(']');
      await page.waitForFunction(
        to => stageline.state().selected.lane === to.lane && stageline.state().selected.slice === to.slice,
        out.slice,
      );
      await page.waitForFunction(() => stageline.facts());
      await page.keyboard.press('[');
      await page.waitForFunction(start => stageline.state().selected.start === start, slice.start);
    }
    await page.keyboard.press('Escape');
    assert.equal((await state(page)).selected, null);
  }],
  ['without a mouse: a slice, the lane below, its panel', async open => {
    const page = await open('pipeline');
    await page.focus('canvas.rows');
    await page.keyboard.press('.');
    await page.waitForFunction(() => stageline.state().selected);
    const {lane} = (await state(page)).selected;
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(before => stageline.state().selected.lane !== before, lane);
    await page.keyboard.press('ArrowUp');
    await page.waitForFunction(before => stageline.state().selected.lane === before, lane);
  }],
  ['arguments, operator and stack of a kernel', async (open, {shot}) => {
    const page = await open('profile');
    const lane = await page.evaluate('stageline.run.lanes.find(l => l.type === "stream").id');
    await page.evaluate(id => {
      const l = stageline.run.lanes[id];
      stageline.setView(l.start_ns, l.start_ns + 400000);
    }, lane);
    await clickSlice(page, lane);
    await chosen(page);
    const panel = await page.textContent('.panel .body');
    assert.match(panel, /Arguments/);
    assert.match(panel, /stream/);
    assert.ok((await page.evaluate('stageline.facts().args.length')) > 2);
    assert.ok(await page.evaluate('stageline.facts().links.some(l => l.type === "launch") || stageline.facts().owner'),
      'a launch or an owner');
    await shot(page, 'kernel');
  }],
  [
    'an area: totals by name that add up, sorted by a click, and its histogram lights slices up',
    async (open, {shot}) => {
      const page = await open('pipeline'), box = await page.evaluate('stageline.laneBox(0)');
      await drag(page, [box.x + box.w * 0.2, box.y + 2], [box.x + box.w * 0.7, box.y + box.h - 2]);
      await page.waitForSelector('.totals tbody tr');
      const {area} = await state(page);
      assert.deepEqual(area.lanes, [0]);
      // Trimmed to the area, by kind, against every slice of the lane.
      const wanted = await page.evaluate(({t0, t1}) => {
        const sums = {};
        for (const s of stageline.slices(0))
          sums[s.name] = (sums[s.name] ?? 0) +
            Math.max(0, Math.min(s.start + s.dur, t1) - Math.max(s.start, t0));
        return Object.fromEntries(Object.entries(sums).filter(([, sum]) => sum > 0));
      }, area);
      const answer = await page.evaluate(
        async ({t0, t1, lanes}) => (await fetch(`/api/select?lanes=${lanes}&t0=${t0}&t1=${t1}`)).json(),
        area,
      );
      for (const row of answer.rows.filter(one => one.sum_ns > 0))
        assert.ok(Math.abs(row.sum_ns - wanted[row.name]) <= row.count,
          `${row.name}: ${row.sum_ns}, ${wanted[row.name]}`);
      assert.equal(await page.locator('.totals tbody tr').count(), answer.rows.length);
      await page.click('.totals thead th:nth-child(4) button');
      await page.waitForSelector('.totals thead th:nth-child(4)[aria-sort=descending]');
      await page.click('.totals tbody tr:first-child th button');
      await page.waitForSelector('.histogram rect');
      assert.equal((await state(page)).lit.from, 'name');
      const svg = await page.locator('.histogram svg').boundingBox();
      await drag(page, [svg.x + 2, svg.y + 50], [svg.x + svg.width * 0.6, svg.y + 50]);
      await page.waitForSelector('.hits li button');
      const {lit} = await state(page);
      assert.ok(lit.from === 'histogram' && lit.min < lit.max);
      await settle(page);
      await shot(page, 'area');
      await page.click('.hits li button');
      const {selected} = await state(page);
      assert.ok(selected.dur >= lit.min && selected.dur <= lit.max);
    },
  ],
  ['an area of thousands of slices', async open => {
    const page = await open('busy'), box = await page.evaluate('stageline.laneBox(0)');
    await drag(page, [box.x + 30, box.y + 2], [box.x + box.w - 60, box.y + 6]);
    await page.waitForSelector('.totals tbody tr');
    assert.match(await page.textContent('.area .sum'), /1\d\s\d{3} slices/);
    assert.equal(await page.locator('.totals tbody tr').count(), 2);
  }],
  ['search: names as one types, all of them lit, next and previous', async (open, {shot}) => {
    const page = await open('profile');
    await search(page, 'gemm');
    await shot(page, 'search');
    const items = await page.locator('#omni li .title').allTextContents();
    assert.ok(items.length > 0 && items.slice(1).every(text => /gemm/i.test(text)), items.join());
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => stageline.state().selected);
    const first = (await state(page)).selected;
    assert.match(first.name, /gemm/i);
    assert.ok((await state(page)).lit.ids.includes(first.nameId));
    await page.keyboard.press('n');
    await page.waitForFunction(start => stageline.state().selected.start > start, first.start);
    await page.keyboard.press('Shift+N');
    await page.waitForFunction(start => stageline.state().selected.start === start, first.start);
    await page.keyboard.press('Escape');
    assert.equal((await state(page)).lit, null);
    await search(page, '/^nccl.*Send/');
    assert.ok((await page.locator('#omni li .title').allTextContents()).some(text => /^nccl.*Send/.test(text)));
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.waitForSelector('#omni[open]');
    await type(page, 'there is no such name');
    await page.waitForFunction(() => /No matching name/.test(document.querySelector('#omni')?.textContent ?? ''));
  }],
  ['find a lane, and every action by its name', async open => {
    const page = await open('profile');
    await page.keyboard.press('Control+p');
    await page.waitForSelector('#omni[open]');
    await type(page, 'rank 3 str');
    const found = await page.textContent('#omni li .title');
    assert.match(found, /rank 3/);
    await page.keyboard.press('Enter');
    await settle(page);
    const scrolled = await page.evaluate('document.querySelector(".scroller").scrollTop');
    assert.ok(scrolled > 0);
    await page.keyboard.press('F1');
    await page.waitForSelector('#omni[open]');
    const commands = await page.locator('#omni li .title').allTextContents();
    for (const wanted of [
      /whole run/,
      /Search names/,
      /Find a lane/,
      /mark/,
      /compare/i,
      /Align/,
      /Perfetto/,
      /Light or dark/,
      /Fold all/,
      /step 10\d/,
    ]) assert.ok(commands.some(text => wanted.test(text)), String(wanted));
    await type(page, 'fold all');
    await page.keyboard.press('Enter');
    assert.ok((await state(page)).collapsed.length >= 4);
  }],
  ['marks keep a note, are listed, go to their time', async open => {
    const page = await open('pipeline'), box = await page.evaluate('stageline.laneBox(0)');
    await page.mouse.move(box.x + box.w * 0.3, box.y + 5);
    await page.keyboard.press('Shift+M');
    await page.mouse.move(box.x + box.w * 0.6, box.y + 5);
    await page.keyboard.press('m');
    assert.equal((await state(page)).marks.length, 2);
    await page.click('#tab-marks');
    await page.fill('.marks tbody tr:nth-child(2) input', 'slow here');
    assert.equal((await state(page)).marks[1].text, 'slow here');
    await page.keyboard.press('Tab');
    await page.click('.marks tbody tr:nth-child(1) button.link');
    await page.click('.marks tbody tr:nth-child(1) td:last-child button');
    assert.equal((await state(page)).marks.length, 1);
  }],
  ['two slices compared, two ranks aligned by start and by end, and put back', async (open, {shot}) => {
    const page = await open('pipeline');
    await page.keyboard.press('1');
    const first = await clickSlice(page, 0, 0);
    await page.keyboard.press('c');
    const other = await page.evaluate(
      'stageline.run.lanes.find(l => l.rank_index !== 0 && stageline.laneBox(l.id) && l.name === "compute").id',
    );
    const second = await clickSlice(page, other, 2);
    const ratio = `${(second.slice.dur / first.slice.dur).toFixed(3)}×`;
    await page.waitForFunction(wanted => document.querySelector('table.compare')?.textContent.includes(wanted), ratio);
    await settle(page);
    await shot(page, 'compare');
    const before = await page.evaluate(s => stageline.sliceBox(s), second.slice);
    await page.keyboard.press('l');
    const left = await page.evaluate(([a, b]) => [stageline.sliceBox(a).x, stageline.sliceBox(b).x], [
      first.slice,
      second.slice,
    ]);
    assert.ok(Math.abs(left[0] - left[1]) < 0.01 && Math.abs(left[1] - before.x) > 1, 'starts stand under each other');
    await page.keyboard.press('r');
    const right = await page.evaluate(([a, b]) =>
      [a, b].map(s => {
        const box = stageline.sliceBox(s);
        return box.x + box.w;
      }), [first.slice, second.slice]);
    assert.ok(Math.abs(right[0] - right[1]) < 0.01, 'ends stand under each other');
    await settle(page);
    assert.deepEqual(await page.evaluate('[stageline.painted().missing, stageline.error()]'), [0, '']);
    await page.click('.lit .link >> text=undo');
    assert.equal((await state(page)).shifts.length, 0);
  }],
  ['Shift and click compares too; M makes the slice an area; F centres, then fills', async open => {
    const page = await open('pipeline');
    await stopClock(page); // F is pressed twice, not once and later once more
    await page.keyboard.press('2');
    const {slice} = await clickSlice(page, 0, 0);
    const at = await wideSlice(page, 0, 2);
    await page.keyboard.down('Shift');
    await page.mouse.click(at.x, at.y);
    await page.keyboard.up('Shift');
    assert.equal((await state(page)).second.start, at.slice.start);
    await page.keyboard.press('f');
    const centred = await view(page);
    assert.ok(Math.abs((centred.t0 + centred.t1) / 2 - slice.start - slice.dur / 2) < span(centred) * 0.05);
    await page.keyboard.press('f');
    assert.ok(span(await view(page)) < slice.dur * 1.5);
    await page.keyboard.press('m');
    const {area} = await state(page);
    assert.deepEqual([area.t0, area.t1], [slice.start, slice.start + slice.dur]);
  }],
  ['a double click zooms to the slice', async open => {
    const page = await open('pipeline'), {slice, x, y} = await wideSlice(page, 0);
    await page.mouse.dblclick(x, y);
    const at = await view(page);
    assert.ok(at.t0 < slice.start && at.t1 > slice.start + slice.dur && span(at) < slice.dur * 2.2);
  }],
  ['the address restores the view, the selection, area, marks, pins and folds', async open => {
    const page = await open('profile');
    await page.keyboard.press('2');
    await page.keyboard.press('w');
    const stream = await page.evaluate('stageline.run.lanes.find(l => l.type === "stream").id');
    await clickSlice(page, stream);
    await page.hover('.label.lane');
    await page.click('.label.lane .icon[title="pin to the top"]');
    await page.keyboard.press('Shift+M');
    await page.keyboard.press('m');
    await page.keyboard.press('x');
    await page.evaluate(() => document.activeElement.blur());
    await page.waitForFunction(() => /sel=.*area=.*pin=.*marks=.*flows=1/.test(location.hash));
    const before = await state(page);
    const other = await open('profile', '?lang=en' + new URL(page.url()).hash);
    await other.waitForFunction(() => stageline.state().selected);
    const after = await state(other);
    for (const key of ['selected', 'pinned', 'marks', 'flows', 'grouping', 'collapsed'])
      assert.deepEqual(after[key], before[key], key);
    assert.ok(Math.abs(after.view.t0 - before.view.t0) <= 1 && Math.abs(after.view.t1 - before.view.t1) <= 1);
    assert.ok(Math.abs(after.area.t0 - before.area.t0) <= 1 && after.area.lanes.join() === before.area.lanes.join());
  }],
];
