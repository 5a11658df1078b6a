// Rows: groups, folds, order, pins, hidden lanes, arrows, counters; languages, themes, sizes. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {chosen, clickSlice, drag, resize, settle, state, visibleTexts} from './viewer_help.mjs';

const rows = page =>
  page.evaluate('stageline.rows().map(r => ({kind: r.kind, key: r.key, rank: r.rank, lane: r.lane, y: r.y}))');
const label = (page, text) => page.locator('.labels.body .label', {hasText: text}).first();

export const cases = [
  [
    'a message of an Ascend profile is drawn once; lanes that repeat it are named, and there when someone asks',
    async open => {
      const page = await open('ascend'),
        lanes = await page.evaluate(() =>
          stageline.run.lanes.map(({id, name, type, repeats}) => ({id, name, type, repeats: !!repeats}))
        );
      const repeats = lanes.filter(lane => lane.repeats);
      assert.ok(
        repeats.some(lane => /^Communication pp /.test(lane.name)) &&
          repeats.some(lane => /^stream \d+$/.test(lane.name)),
        JSON.stringify(repeats),
      );
      assert.ok(lanes.some(lane => lane.type === 'stream' && !lane.repeats), 'what computes stays');
      assert.deepEqual((await state(page)).hidden.sort(), repeats.map(lane => lane.id).sort());
      const drawn = async () => (await rows(page)).filter(row => row.kind === 'lane').map(row => row.lane);
      assert.equal((await drawn()).some(id => repeats.some(lane => lane.id === id)), false);
      assert.doesNotMatch(page.url(), /hide=/);
      await page.click('#hidden');
      await settle(page);
      assert.deepEqual((await state(page)).hidden, []);
      assert.ok((await drawn()).some(id => repeats.some(lane => lane.id === id)));
      await page.waitForFunction(() => /hide=(&|$)/.test(location.hash));
      await page.reload();
      await page.waitForFunction(() => window.stageline?.frames?.() > 0 && window.stageline.settled());
      assert.deepEqual((await state(page)).hidden, [], 'the address keeps that all is shown');
    },
  ],
  ['ranks are grouped by stage, by replica, by nothing', async open => {
    const page = await open('pipeline');
    assert.equal((await rows(page)).filter(row => row.kind === 'group').length, 4);
    await page.selectOption('#grouping', 'dp');
    assert.deepEqual((await rows(page)).filter(row => row.kind === 'rank').map(row => row.rank), [
      0,
      1,
      2,
      3,
      4,
      5,
      6,
      7,
    ]);
    await settle(page);
    assert.match(await label(page, 'Replica').textContent(), /Replica 0/);
    await page.selectOption('#grouping', 'none');
    assert.equal((await rows(page)).filter(row => row.kind === 'group').length, 0);
  }],
  ['groups and ranks fold and unfold, by mouse and by keys', async open => {
    const page = await open('pipeline'), before = (await rows(page)).length;
    await page.click('.label.rank .name');
    assert.ok((await rows(page)).length < before);
    await settle(page);
    assert.equal((await page.evaluate('stageline.painted()')).missing, 0, 'a folded rank still shows its first lane');
    await page.click('.label.group .name');
    await settle(page);
    assert.equal(await page.getAttribute('.label.group .name', 'aria-expanded'), 'false');
    await page.focus('.label.group .name');
    await page.keyboard.press('Enter');
    await settle(page);
    assert.equal(await page.getAttribute('.label.group .name', 'aria-expanded'), 'true');
  }],
  ['a rank moves with Alt and the arrows, and by drag; a lane within its rank', async open => {
    const page = await open('pipeline');
    await page.selectOption('#grouping', 'none');
    const ranks = async () => (await rows(page)).filter(row => row.kind === 'rank').map(row => row.rank);
    assert.deepEqual((await ranks()).slice(0, 3), [0, 1, 2]);
    await page.focus('.label.rank .name');
    await page.keyboard.press('Alt+ArrowDown');
    assert.deepEqual((await ranks()).slice(0, 3), [1, 0, 2]);
    await settle(page);
    const [from, to] = [await label(page, 'rank 1').boundingBox(), await label(page, 'rank 2').boundingBox()];
    await drag(page, [from.x + 60, from.y + 8], [to.x + 60, to.y + to.height - 3]);
    assert.deepEqual((await ranks()).slice(0, 3), [0, 2, 1]);
    await settle(page);
    const names = async () =>
      page.evaluate(
        'stageline.rows().filter(r => r.kind === "lane" && r.rank === 0).map(r => stageline.run.lanes[r.lane].name)',
      );
    const first = await names();
    await page.locator('.label.lane .name').first().focus();
    await page.keyboard.press('Alt+ArrowDown');
    assert.deepEqual((await names()).slice(0, 2), [first[1], first[0]]);
  }],
  ['a lane is pinned to the top and stays there; a hidden one comes back', async open => {
    const page = await open('profile');
    await page.hover('.label.lane');
    await page.click('.label.lane .icon[title="pin to the top"]');
    assert.equal((await state(page)).pinned.length, 1);
    await page.evaluate(() => {
      document.querySelector('.scroller').scrollTop = 300;
    });
    await settle(page);
    const head = await page.locator('.labels.head .label').boundingBox(),
      scroller = await page.locator('.scroller').boundingBox();
    assert.ok(head.y - scroller.y < 50, 'in sight while the rows scroll');
    const colour = await page.evaluate(y => {
      const canvas = document.querySelector('canvas.rows'),
        data = canvas.getContext('2d').getImageData(230, y, canvas.width - 260, 1).data,
        seen = new Set();
      for (let i = 0; i < data.length; i += 4) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
      return seen.size;
    }, Math.round(head.y - scroller.y + head.height / 2));
    assert.ok(colour > 2, 'it is drawn');
    await page.hover('.labels.head .label');
    await page.click('.labels.head .icon[title="unpin"]');
    assert.equal((await state(page)).pinned.length, 0);
    await page.evaluate(() => {
      document.querySelector('.scroller').scrollTop = 0;
    });
    await settle(page);
    await page.hover('.label.lane');
    await page.click('.label.lane .icon[title="hide"]');
    assert.equal((await state(page)).hidden.length, 1);
    await page.keyboard.press('F1');
    await page.keyboard.type('hidden');
    await page.keyboard.press('Enter');
    assert.equal((await state(page)).hidden.length, 0);
  }],
  ['rows grow and shrink; hundreds of lanes fit', async open => {
    const page = await open('profile'), before = await page.evaluate('stageline.rowHeight()');
    await page.keyboard.press('=');
    assert.ok(await page.evaluate('stageline.rowHeight()') > before);
    for (let i = 0; i < 14; ++i) await page.keyboard.press('-');
    assert.equal(await page.evaluate('stageline.rowHeight()'), 3);
    await settle(page);
    assert.equal((await page.evaluate('stageline.painted()')).missing, 0);
  }],
  ['arrows of the window on and off', async (open, {shot}) => {
    const page = await open('pipeline');
    await page.keyboard.press('1');
    await page.click('#flows');
    assert.equal((await state(page)).flows, true);
    await settle(page);
    const inked = () =>
      page.evaluate(() => {
        const canvas = document.querySelector('canvas.over'),
          data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        let sum = 0;
        for (let i = 3; i < data.length; i += 4) if (data[i] > 0) ++sum;
        return sum;
      });
    assert.ok(await inked() > 2000);
    await shot(page, 'flows');
    await page.keyboard.press('x');
    await settle(page);
    assert.ok(await inked() < 200);
  }],
  ['counters are drawn', async (open, {shot}) => {
    const page = await open('counter');
    const lane = await page.evaluate('stageline.run.lanes.find(l => l.type === "counter").id'),
      box = await page.evaluate(id => stageline.laneBox(id), lane);
    const heights = await page.evaluate(({x, y, w, h}) => {
      const canvas = document.querySelector('canvas.rows'), at = canvas.getBoundingClientRect(),
        pen = canvas.getContext('2d');
      return [0.2, 0.8].map(share => {
        const data =
          pen.getImageData(Math.round(x - at.left + w * share), Math.round(y - at.top), 1, Math.round(h)).data;
        let blue = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i] < data[i + 2] - 12) ++blue;
        return blue;
      });
    }, box);
    assert.ok(heights[1] > heights[0] * 1.5, `the value rises: ${heights}`);
    await shot(page, 'counter');
  }],
  ['the language changes every word', async open => {
    const page = await open('pipeline');
    await clickSlice(page, 0);
    await chosen(page);
    await page.keyboard.press('c');
    await page.waitForSelector('table.compare');
    await page.keyboard.press('?');
    const english = new Set(await visibleTexts(page));
    await page.keyboard.press('Escape');
    await page.click('#lang');
    assert.equal(await page.getAttribute('html', 'lang'), 'zh-CN');
    await settle(page);
    await page.keyboard.press('?');
    const live = new Set(await page.locator('#live, .say').allTextContents()); // said before, in the language of then
    const chinese = (await visibleTexts(page)).filter(text => !live.has(text));
    // Texts that may stay: names, numbers, units, keys.
    const allowed =
      /^(Stageline|Perfetto|pipeline|rank( \d+.*)?|[BF]|args?|[\d.,\s+−×%:]+(s|ms|µs|ns)?( ·.*)?|mb|Ctrl\+?.*|Alt\+.|Esc|Pg(Up|Dn)|F1|[A-Z]|workerlog.*|ns|paddle.*)$/;
    const kept = chinese.filter(text => english.has(text) && /[A-Za-z]{2,}/.test(text) && !allowed.test(text));
    const recorded = await page.evaluate(
      'stageline.facts().args.flatMap(a => [a.key, a.value]).concat(stageline.facts().stack, stageline.facts().args_missing ?? "")',
    );
    assert.deepEqual(kept.filter(text => !recorded.includes(text)), []);
    assert.match(await page.getAttribute('canvas.rows', 'aria-label'), /时间线/);
    await page.keyboard.press('Escape');
    await page.click('#lang');
    assert.match(await page.textContent('.run'), /8 ranks/);
  }],
  ['light and dark: the canvas follows, and a press changes it', async (open, {shot}) => {
    let page;
    for (const dark of [false, true]) {
      page = await open('profile', '?lang=en', {dark, again: page});
      assert.equal(await page.getAttribute('html', 'data-theme'), dark ? 'dark' : 'light');
      const ground = await page.evaluate(() =>
        [...document.querySelector('canvas.rows').getContext('2d').getImageData(2, 60, 1, 1).data].slice(0, 3)
      );
      assert.deepEqual(ground, dark ? [15, 18, 22] : [255, 255, 255]);
      await shot(page, dark ? 'dark' : 'light');
      await page.click('#theme');
      assert.equal(await page.getAttribute('html', 'data-theme'), dark ? 'light' : 'dark');
    }
  }],
  ['nothing overflows sideways: narrow windows, 4k, zoomed pages', async (open, {shot}) => {
    let page;
    for (const [lang, dark] of [['en', false], ['zh', true]]) {
      page = await open('profile', `?lang=${lang}`, {dark, again: page});
      for (const [width, height] of [[1440, 900], [900, 700], [420, 760], [3840, 2160]]) {
        await resize(page, width, height);
        await settle(page);
        assert.ok(
          await page.evaluate(
            'document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight',
          ),
          `at ${width} px`,
        );
        assert.equal((await page.evaluate('stageline.painted()')).missing, 0, `at ${width} px`);
        await shot(page, `${lang}-${width}`);
      }
    }
  }],
];
