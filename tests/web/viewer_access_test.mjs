// The viewer by keyboard alone, for screen readers, by touch; its history; what the clocks leave open. Run by
// viewer_run.mjs.
import assert from 'node:assert/strict';
import {chosen, clickSlice, drag, listed, settle, span, state, view, wideSlice} from './viewer_help.mjs';

// Names and roles as assistive programs get them.
async function accessible(page) {
  const cdp = await page.context().newCDPSession(page), {nodes} = await cdp.send('Accessibility.getFullAXTree');
  await cdp.detach();
  return nodes.filter(node => !node.ignored).map(node => ({role: node.role?.value, name: node.name?.value ?? '',
    focusable: node.properties?.some(one => one.name === 'focusable' && one.value.value) ?? false})
  );
}
const focused = page =>
  page.evaluate(() => {
    const {activeElement: at} = document, style = getComputedStyle(at), box = at.getBoundingClientRect();
    return {tag: at.tagName, id: at.id, cls: at.className,
      name: at.getAttribute('aria-label') || at.title || at.textContent.trim(),
      ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 ||
        (at.matches('canvas') &&
          getComputedStyle(document.querySelector('.stage'), '::after').borderTopWidth === '2px'),
      seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight};
  });
const overlayPixels = (page, box) =>
  page.evaluate(({x, y, w, h}) => {
    const canvas = document.querySelector('canvas.over'), at = canvas.getBoundingClientRect();
    const data =
      canvas.getContext('2d').getImageData(Math.round(x - at.left), Math.round(y - at.top), Math.round(w),
        Math.max(Math.round(h), 1)).data;
    let inked = 0;
    for (let i = 3; i < data.length; i += 4) if (data[i] > 0) ++inked;
    return inked;
  }, box);

export const cases = [
  ['Tab alone reaches everything in reading order, visibly, and leaves again', async open => {
    const page = await open('pipeline');
    await page.keyboard.press('2');
    await clickSlice(page, 0, 1);
    await chosen(page);
    await page.evaluate(() => {
      document.activeElement.blur();
      getSelection().removeAllRanges();
      document.body.tabIndex = -1;
      document.body.focus();
    });
    const order = [];
    for (let i = 0; i < 200; ++i) {
      await page.keyboard.press('Tab');
      const at = await focused(page);
      if (at.tag === 'BODY' || (i > 0 && order[0] && at.id && at.id === order[0].id)) break;
      assert.ok(at.name, `the ${i + 1}. stop has a name: ${JSON.stringify(at)}`);
      assert.ok(at.ring, `focus is seen: ${JSON.stringify(at)}`);
      assert.ok(at.seen, `in sight: ${JSON.stringify(at)}`);
      order.push(at);
    }
    assert.ok(order.length > 25 && order.length < 200, `${order.length} stops`);
    const place = test => order.findIndex(test);
    const ways = [
      place(at => at.id === 'theme'),
      place(at => /search/.test(at.cls)),
      place(at => at.id === 'flows'),
      place(at => at.tag === 'CANVAS'),
      place(at => at.cls === 'name'),
      place(at => at.id === 'tab-slice'),
      place(at => /jump/.test(at.cls)),
    ];
    assert.ok(ways.every(at => at >= 0), `all are there: ${ways}`);
    assert.deepEqual([...ways].sort((a, b) => a - b), ways, 'bar, timeline, labels, drawer');
    // And back: the stop before the last is where Shift+Tab goes.
    await page.focus('#tab-area');
    await page.keyboard.press('Shift+Tab');
    assert.equal((await focused(page)).id, 'tab-slice');
  }],
  ['without a pointer: from Tab to a slice, its link, an area, its histogram, and out', async open => {
    const page = await open('pipeline');
    await page.focus('canvas.rows');
    await page.keyboard.press('.');
    await page.waitForFunction(() => stageline.facts()?.next);
    const first = (await state(page)).selected;
    for (let i = 0; i < 3; ++i) await page.keyboard.press('.'); // faster than answers come
    await page.waitForFunction(before => stageline.state().selected.slice === before + 3, first.slice);
    await page.keyboard.press('m');
    await page.waitForSelector('.totals tbody tr');
    await page.focus('.totals tbody th button');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.histogram svg rect');
    await page.focus('.histogram svg');
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => stageline.state().lit?.from === 'histogram');
    await page.waitForSelector('.hits button');
    await page.focus('.hits button');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => stageline.state().panel === 'slice');
    for (let i = 0; i < 4; ++i) await page.keyboard.press('Escape');
    const after = await state(page);
    assert.deepEqual([after.lit, after.selected, after.area], [null, null, null]);
  }],
  ['assistive programs get a name for everything that can be reached, in both languages', async open => {
    let page;
    for (const lang of ['en', 'zh']) {
      page = await open('profile', `?lang=${lang}`, {again: page});
      await page.keyboard.press('2');
      await clickSlice(page, await page.evaluate('stageline.run.lanes.find(l => l.type === "stream").id'));
      await chosen(page);
      const check = async what => {
        const nodes = await accessible(page);
        assert.deepEqual(
          nodes.filter(node =>
            node.focusable && node.name === '' && !/^(RootWebArea|generic|dialog|tabpanel)$/.test(node.role)
          ),
          [],
          `${lang}, ${what}`,
        );
        return nodes;
      };
      const nodes = await check('a slice'), has = (role, name) =>
        nodes.some(node => node.role === role && name.test(node.name));
      assert.ok(has('application', lang === 'en' ? /Timeline of/ : /时间线/), 'the canvas says what it is');
      assert.ok(nodes.some(node => node.role === 'listitem') && nodes.some(node => node.role === 'banner'),
        'lists and landmarks');
      assert.match(await page.textContent('#live'), /rank 0/);
      await page.keyboard.press('/');
      await page.waitForSelector('#omni[open]');
      await page.keyboard.type('aten');
      await listed(page);
      const search = await check('search');
      assert.ok(
        search.some(node => node.role === 'combobox' && node.name) && search.some(node => node.role === 'option'),
        'a combobox with options',
      );
      const option = await page.getAttribute('#omni [role=combobox]', 'aria-activedescendant');
      assert.equal(await page.getAttribute(`#${option}`, 'aria-selected'), 'true');
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      await page.waitForSelector('#help[open]');
      await check('keys');
      assert.equal(await page.evaluate('document.querySelector("#help").scrollTop'), 0,
        'the list opens at its beginning');
    }
  }],
  ['every key of the list does what it says, and every command bears its key', async open => {
    const page = await open('pipeline', '?lang=en', {size: [1440, 500]}); // rows do not fit
    const gone = dialog => page.waitForSelector(`${dialog}[open]`, {state: 'detached'});
    await page.keyboard.press('?');
    await page.waitForSelector('#help[open] kbd');
    const keys = (await page.locator('#help kbd').allTextContents()).map(text => text.trim());
    for (const key of [
      'W',
      'S',
      'A',
      'D',
      '←',
      '→',
      '↑',
      '↓',
      ',',
      '.',
      '[',
      ']',
      'F',
      '0',
      '⌫',
      '1',
      '9',
      'M',
      '⇧M',
      '/',
      'N',
      '⇧N',
      'Ctrl+P',
      'Ctrl+⇧P',
      'F1',
      'C',
      'L',
      'R',
      'X',
      'Q',
      '+',
      '−',
      'Alt+↑',
      'Alt+↓',
      'PgUp',
      'PgDn',
      'Esc',
      '?',
    ]) assert.ok(keys.includes(key), `${key} is listed`);
    await page.keyboard.press('Escape');
    await gone('#help');
    await page.keyboard.press('F1');
    await page.waitForSelector('#omni[open] .keys kbd');
    const shown = await page.locator('#omni .keys kbd').allTextContents();
    assert.deepEqual(shown.filter(key => !/^\d$/.test(key) && !keys.includes(key)), [],
      'keys of commands are in the list');
    await page.keyboard.press('Escape');
    await gone('#omni');
    // Keys of their own that no other case presses.
    await page.keyboard.press('PageDown');
    await page.waitForFunction(() => document.querySelector('.scroller').scrollTop > 100);
    await page.keyboard.press('PageUp');
    await page.waitForFunction(() => document.querySelector('.scroller').scrollTop === 0);
    await page.keyboard.press('q');
    assert.equal((await state(page)).panel, 'slice');
    await page.keyboard.press('q');
    assert.equal((await state(page)).panel, 'none');
    await page.keyboard.press('Control+Shift+P');
    await page.waitForSelector('#omni[open]');
    await page.keyboard.press('Escape');
    await gone('#omni');
    const home = await view(page);
    await page.keyboard.press('3');
    await page.keyboard.press('Control+0');
    assert.deepEqual(await view(page), home);
  }],
  ['Back and forward go through the places one jumped to', async open => {
    const page = await open('pipeline');
    const at = async number => {
      await page.keyboard.press(String(number));
      await settle(page);
      const here = await view(page);
      await page.waitForFunction(({t0, t1}) => location.hash.includes(`v=${Math.round(t0)},${Math.round(t1)}`), here);
      return here;
    };
    const close = async wanted =>
      page.waitForFunction(
        ({t0, t1}) => Math.abs(stageline.view().t0 - t0) <= 1 && Math.abs(stageline.view().t1 - t1) <= 1,
        wanted,
      );
    const home = await view(page), second = await at(2);
    await clickSlice(page, 0, 1);
    await page.waitForFunction(() => /sel=/.test(location.hash));
    const third = await at(3);
    assert.ok(third.t0 > second.t0);
    await page.goBack();
    await close(second);
    await page.waitForFunction(() => stageline.state().selected);
    await page.goBack();
    await close(home);
    assert.equal((await state(page)).selected, null, 'what was chosen later is not chosen yet');
    await page.goForward();
    await close(second);
    await page.goForward();
    await close(third);
    // Moving within a place makes no entries of its own.
    const entries = await page.evaluate('history.length');
    for (const key of ['w', 'd', 'a', 's']) await page.keyboard.press(key);
    const moved = await view(page);
    await page.waitForFunction(({t0, t1}) => location.hash.includes(`v=${Math.round(t0)},${Math.round(t1)}`), moved);
    assert.equal(await page.evaluate('history.length'), entries);
  }],
  ['the address keeps order, unfolded lanes and what is lit', async open => {
    const page = await open('profile');
    await page.focus('.label.rank .name');
    await page.keyboard.press('Alt+ArrowDown');
    await page.selectOption('#grouping', 'none');
    await page.focus('.label.rank .name');
    await page.keyboard.press('Alt+ArrowDown');
    await page.locator('.label.lane .name').first().focus();
    await page.keyboard.press('Alt+ArrowDown');
    await page.keyboard.press('/');
    await page.keyboard.type('gemm');
    await listed(page);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() =>
      stageline.state().lit && /order=/.test(location.hash) && /lanes=/.test(location.hash) &&
      /lit=/.test(location.hash)
    );
    const before = await state(page), other = await open('profile', '?lang=en' + new URL(page.url()).hash);
    await other.waitForFunction(() => stageline.state().lit);
    const after = await state(other);
    assert.deepEqual([after.rankOrder, after.laneOrder, after.lit.ids.sort()], [
      before.rankOrder,
      before.laneOrder,
      before.lit.ids.sort(),
    ]);
    // An address that someone spoiled is survived.
    let spoiled;
    for (const bad of [
      'v=NaN,1e400',
      'v=-1e30,1e30',
      'v=5,1',
      'order=9,9,-1,x',
      'sel=%ff~~',
      'area=1,2,0-99999999999',
      'lit=/(/',
      'marks=~:~%',
      'h=-3',
      'pin=%E0%A4%A~',
      'shift=0:x~99:1',
    ]) {
      spoiled = await open('profile', `?lang=en#/timeline?${bad}`, {complaints: true, again: spoiled});
      const {t0, t1} = await view(spoiled);
      assert.ok(t1 > t0 && Number.isFinite(t1 - t0), bad);
      await settle(spoiled);
    }
  }],
  ['steps stand in the axis and down the rows', async open => {
    const page = await open('pipeline');
    await settle(page);
    const [found, wanted] = await page.evaluate(() => {
      const canvas = document.querySelector('canvas.rows'), at = canvas.getBoundingClientRect(),
        pen = canvas.getContext('2d');
      const starts = stageline.run.steps.map(one => Math.round(stageline.xOf(one.start_ns) - at.left)),
        lane = stageline.laneBox(0);
      // There is nothing between two lanes but the ground and the lines.
      const rank = stageline.rows().find(row => row.kind === 'rank'), y = Math.round(rank.y + 34 + 4);
      const data = pen.getImageData(0, y, canvas.width, 1).data, lines = [];
      for (let x = Math.round(lane.x - at.left); x < canvas.width; ++x)
        if (data[x * 4] < 220 && data[x * 4 + 1] < 220) lines.push(x);
      return [lines, starts];
    });
    assert.deepEqual(found, wanted);
  }],
  ['around the pointer: how far a clock may be off', async open => {
    const page = await open('profile'), half = await page.evaluate('stageline.run.ranks[1].offset_half_ns');
    assert.ok(half > 0, 'the run has a bound');
    const lane = await page.evaluate('stageline.run.lanes.find(lane => lane.rank_index === 1).id');
    await page.evaluate(ns => {
      const {t0} = stageline.home;
      stageline.setView(t0 + 2e6, t0 + 2e6 + ns * 12);
    }, half);
    await page.keyboard.press('Control+p');
    await page.keyboard.type('rank 1');
    await page.keyboard.press('Enter');
    await settle(page);
    const box = await page.evaluate(id => stageline.laneBox(id), lane), x = box.x + box.w / 2, y = box.y + box.h / 2;
    await page.mouse.move(x, y);
    await settle(page);
    const width = await page.evaluate(
      ns => stageline.xOf(stageline.view().t0 + 2 * ns) - stageline.xOf(stageline.view().t0),
      half,
    );
    const inked = await overlayPixels(page, {x: box.x + 2, y: box.y + Math.floor(box.h) - 2, w: box.w - 14, h: 1});
    assert.ok(Math.abs(inked - width) <= 2, `${inked} pixels wide, ± ${half} ns are ${width}`);
    await page.mouse.move(4, 4);
  }],
  ['the operator that launched a kernel, and the Python stack above it', async open => {
    const page = await open('stacks'),
      lane = await page.evaluate('stageline.run.lanes.find(l => l.type === "stream").id');
    await page.evaluate(id => {
      const l = stageline.run.lanes[id];
      stageline.setView(l.start_ns, l.start_ns + 400000);
    }, lane);
    await clickSlice(page, lane);
    await chosen(page);
    const facts = await page.evaluate('stageline.facts()');
    assert.ok(facts.owner && facts.stack.length > 1, JSON.stringify([facts.owner, facts.stack]));
    assert.deepEqual(await page.locator('.stack li').allTextContents(), facts.stack);
    await page.click(`.facts button[title="${facts.owner.name}"]`);
    await page.waitForFunction(
      owner => stageline.state().selected.slice === owner.slice && stageline.state().selected.lane === owner.lane,
      facts.owner,
    );
    await settle(page);
    const box = await page.evaluate('stageline.sliceBox(stageline.state().selected)');
    assert.ok(box.w >= 2 && box.y > 0, 'in sight');
  }],
  ['touch: a tap selects, a finger scrolls the rows', async (open, {context}) => {
    const page = await open('profile', '?lang=en', {size: [390, 800]}), cdp = await context.newCDPSession(page);
    const touch = (type, ...points) =>
      cdp.send('Input.dispatchTouchEvent', {type, touchPoints: points.map(([x, y], id) => ({x, y, id}))});
    await page.evaluate(() => {
      const {t0, t1} = stageline.home;
      stageline.setView(t0, t0 + (t1 - t0) / 8);
    });
    await settle(page);
    const {x, y} = await wideSlice(page,
      await page.evaluate('stageline.run.lanes.find(one => one.type === "stream").id'));
    await touch('touchStart', [x, y]);
    await touch('touchEnd');
    await page.waitForFunction(() => stageline.state().selected);
    await chosen(page);
    const before = await page.evaluate('document.querySelector(".scroller").scrollTop');
    await touch('touchStart', [250, 420]);
    for (let i = 1; i <= 8; ++i) await touch('touchMove', [250, 420 - i * 20]);
    await touch('touchEnd');
    await page.waitForFunction(top => document.querySelector('.scroller').scrollTop > top + 60, before);
  }],
  ['Perfetto where pop-ups are forbidden: the file is saved and how to open it is said', async open => {
    const page = await open('pipeline');
    await page.evaluate(() => {
      window.open = () => null;
    });
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#perfetto')]);
    assert.match(download.suggestedFilename(), /pipeline\.pftrace/);
    await page.waitForFunction(() => /was saved.*ui\.perfetto\.dev/.test(document.querySelector('.say').textContent));
    await page.waitForFunction(() => /was saved/.test(document.querySelector('#live').textContent));
  }],
  ['undo: every gesture is taken back, one by one', async open => {
    const page = await open('pipeline'), views = [await view(page)], box = await page.evaluate('stageline.laneBox(0)');
    for (const key of ['2', '4']) {
      await page.keyboard.press(key);
      views.push(await view(page));
    }
    await drag(page, [box.x + box.w * 0.3, box.y + 3], [box.x + box.w * 0.6, box.y + 12], ['Alt']);
    views.push(await view(page));
    assert.ok(span(views[3]) < span(views[2]) * 0.4);
    for (const wanted of views.slice(0, 3).reverse()) {
      await page.keyboard.press('Backspace');
      assert.deepEqual(await view(page), wanted);
    }
    await page.keyboard.press('Backspace');
    assert.deepEqual(await view(page), views[0], 'and no further');
  }],
];
