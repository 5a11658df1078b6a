// Odd runs, and the ways in and out: loading, failure, Perfetto. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {chosen, listed, patience, settle, span, state, stopClock, textContrast, view,
  wideSlice} from './viewer_help.mjs';
import {HOSTILE} from './viewer_runs.mjs';

const keys = async page => {
  for (const key of ['w', 's', 'a', 'd', '0', '.', ',', 'f', ']', '[', 'n', 'Escape', 'm', 'Escape', 'Backspace'])
    await page.keyboard.press(key);
};

export const cases = [
  ['one lane, one slice', async open => {
    const page = await open('one');
    const {slice} = await wideSlice(page, 0);
    assert.equal(slice.name, 'alone');
    await keys(page);
    await settle(page);
  }],
  ['an empty trace opens, says so, and takes every key', async (open, {shot}) => {
    const page = await open('empty', '?lang=en', {raw: true});
    await page.waitForFunction(() => window.stageline || document.querySelector('.loading [role=alert]'));
    await shot(page, 'empty');
    if (await page.evaluate('!window.stageline'))
      return assert.match(await page.textContent('.loading'), /could not be read/);
    await keys(page);
    assert.match(await page.textContent('#app'), /nothing to draw/);
  }],
  ['thirty days between two slices: both are found', async open => {
    const page = await open('gap'), home = await view(page);
    assert.ok(span(home) > 30 * 86400e9);
    await page.keyboard.press('/');
    await page.keyboard.type('after');
    await listed(page);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => stageline.state().selected?.name === 'after');
    await stopClock(page);
    await page.keyboard.press('f');
    await page.keyboard.press('f');
    await settle(page);
    assert.ok(span(await view(page)) < 5e6);
    const {slice, box} = await wideSlice(page, 0);
    assert.equal(slice.start, 30 * 86400e9);
    assert.ok(box.w > 300, 'drawn wide, thirty days from the start');
    const drawn = await page.evaluate('stageline.drawn(0)');
    assert.ok(Math.abs(drawn.kinds[0].drawn - 1e6 / ((drawn.t1 - drawn.t0) / drawn.columns)) < 0.5);
  }],
  ['slices of no and of negative length', async open => {
    const page = await open('odd');
    await settle(page);
    const names = await page.evaluate('stageline.slices(0).map(s => s.name)');
    assert.ok(names.includes('whole') && names.includes('zero'), names.join());
    await keys(page);
  }],
  ['hostile and endless names stay text', async (open, {shot}) => {
    const page = await open('hostile');
    for (const nth of [0, 1]) {
      const {slice, x, y} = await wideSlice(page, 0, nth);
      await page.mouse.move(x, y);
      await page.waitForSelector('#tip:not([hidden])');
      await page.mouse.click(x, y);
      await page.waitForFunction(s => stageline.facts()?.start_ns === s, slice.start);
      await chosen(page);
      if (slice.start === 0) assert.match(await page.textContent('.slice-head h2'), /<img src=x onerror/);
    }
    await page.keyboard.press('/');
    await page.keyboard.type('img');
    await listed(page);
    assert.ok((await page.textContent('#omni')).includes(HOSTILE));
    await shot(page, 'hostile');
    assert.equal(await page.evaluate('document.images.length'), 0);
    assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'));
  }],
  ['ten thousand lanes scroll, search and sum up', async (open, {shot}) => {
    const page = await open('lanes');
    assert.equal(await page.evaluate('stageline.run.lanes.length'), 10000);
    await page.evaluate(() => {
      document.querySelector('.scroller').scrollTop = 120000;
    });
    await settle(page);
    const painted = await page.evaluate('stageline.painted()');
    assert.ok(painted.missing === 0 && painted.lanes > 10, JSON.stringify(painted));
    assert.ok(await page.evaluate('document.querySelectorAll(".label").length') < 300, 'labels of what is in sight');
    await page.keyboard.press('F1');
    await page.keyboard.type('sum up everything');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.totals tbody tr');
    assert.equal(await page.locator('.totals tbody tr').count(), 7);
    await shot(page, 'lanes');
  }],
  ['what cannot be read is said, with what to do', async open => {
    const page = await open('broken', '?lang=en', {raw: true});
    await page.waitForSelector('.loading [role=alert]');
    const text = await page.textContent('.loading');
    assert.match(text, /could not be read/);
    assert.match(text, /broken\.json/);
  }],
  ['while the run is read the page shows how far it is', async (open, {serve, context}) => {
    const address = await serve('pipeline'), page = await context.newPage();
    let state = 'reading';
    await page.route('**/api/status', route =>
      route.fulfill({json: {state, title: 'big', bytes_read: 250e6, bytes_total: 1e9, events: 1234567, message: ''}}));
    await page.route('**/api/events', route =>
      route.abort());
    // As the page is before there is a run to ask for.
    await page.route(/\/\?lang=en$/, async route => {
      const answer = await route.fetch(), text = await answer.text(),
        head = text.replace(/<link rel="preload"[^>]*>/, '');
      assert.notEqual(head, text);
      await route.fulfill({response: answer, body: head});
    });
    await page.goto(`${address}/?lang=en`);
    await page.waitForSelector('.loading [role=progressbar]');
    assert.equal(await page.getAttribute('[role=progressbar]', 'aria-valuenow'), '25');
    assert.match(await page.textContent('.loading'), /Reading big.*250.MB of 1.00.GB.*1.234.567 events/);
    state = 'ready';
    await page.waitForFunction(() =>
      window.stageline
    );
  }, {alone: true}],
  [
    'what is read so far can be used, under a bar that grows; then the whole run is there, in the same place',
    async (open, {serve, context}) => {
      const address = await serve('profile'), page = await context.newPage();
      let done = 300e6;
      const whole = () => done >= 1e9;
      // The server has read all, but the page gets another answer. The last added route is used first.
      await page.route(/api\/run/, async route => {
        const answer = await route.fetch();
        await route.fulfill({response: answer,
          json: {...await answer.json(), whole: whole(), revision: whole() ? 2 : 1}});
      });
      await page.route(/[?&]revision=1/, route => {
        const url = new URL(route.request().url());
        url.searchParams.delete('revision');
        return route.continue({url: url.href.replaceAll('%2C', ',')});
      });
      await page.route(/api\/status/, route =>
        route.fulfill({
          json: {state: whole() ? 'ready' : 'reading', title: 'big', revision: whole() ? 2 : 1, bytes_read: done,
            bytes_total: 1e9, events: 1000, message: ''},
        }));
      await page.route(/api\/events/, route => route.abort());
      await page.goto(`${address}/?lang=en`);
      await page.waitForFunction(() => window.stageline?.frames?.() > 0 && stageline.settled());
      const bar = '.reading[role=progressbar]';
      await page.waitForSelector(bar + '[aria-valuenow="30"]');
      assert.deepEqual((await textContrast(page)).found, []);
      // A part that is done is a part that is filled.
      assert.match(await page.evaluate(one => getComputedStyle(document.querySelector(one)).backgroundImage, bar),
        / 30%/);
      assert.match(await page.textContent(bar), /30 %.*explore/);
      assert.deepEqual(await page.locator('.pages a').allTextContents(), ['Timeline'],
        'only what can be said of a part');
      await page.keyboard.press('w');
      await page.waitForFunction(() => /v=/.test(location.hash));
      const near = await view(page);
      done = 620e6;
      await page.waitForFunction(() => document.querySelector('.reading').getAttribute('aria-valuenow') === '62');
      // The page is not rebuilt in the middle of a gesture.
      await page.evaluate(() => {
        window.first = true;
      });
      await page.keyboard.down('Shift');
      done = 1e9;
      await page.waitForFunction(() => document.querySelector('.reading').getAttribute('aria-valuenow') === '100');
      await page.waitForTimeout(600); // nothing is to happen: a slow machine has less time for it, not more
      assert.ok(await page.evaluate('window.first'), 'a key is held');
      await page.keyboard.up('Shift');
      await page.waitForFunction(() =>
        !window.first && !document.querySelector('.reading') && window.stageline?.settled?.()
      );
      const after = await view(page);
      assert.ok(Math.abs(after.t0 - near.t0) <= 1 && Math.abs(after.t1 - near.t1) <= 1, 'the place is kept');
      assert.ok(await page.locator('.pages a').count() > 1);
    },
    {alone: true},
  ],
  ['a server that goes away is said, and asked again', async (open, {context}) => {
    let asleep = false;
    await context.route('**/api/tiles*',
      route => (asleep ? route.fulfill({status: 503, json: {error: 'the server sleeps', hint: 'wake it'}})
        : route.continue()));
    const page = await open('pipeline', '?lang=en', {foreign: true});
    asleep = true;
    page.removeAllListeners('console');
    await page.keyboard.press('w');
    await page.waitForFunction(() => /the server sleeps/.test(document.querySelector('.toolbar').textContent));
    asleep = false;
    await page.waitForFunction(() => !/the server sleeps/.test(document.querySelector('.toolbar').textContent));
    await settle(page);
  }, {alone: true}],
  ['Open in Perfetto hands the trace over; where nobody answers it is saved', async (open, {context}) => {
    await context.route('https://ui.perfetto.dev/**', route =>
      route.fulfill({contentType: 'text/html', body: `<script>
      addEventListener('message', event => {
        if (event.data === 'PING') event.source.postMessage('PONG', event.origin);
        else if (event.data.perfetto) document.title = event.data.perfetto.title + ' ' + event.data.perfetto.buffer.byteLength;
      });</script>`}));
    const page = await open('pipeline', '?lang=en', {foreign: true});
    await patience(page, 20);
    const [theirs] = await Promise.all([context.waitForEvent('page'), page.click('#perfetto')]);
    await theirs.waitForFunction(() => /pipeline \d{4,}/.test(document.title));
    await page.waitForFunction(() => /Opened in Perfetto/.test(document.querySelector('.say').textContent));
    await context.unroute('https://ui.perfetto.dev/**');
    await patience(page, 0.1); // no server will answer
    await context.route('https://ui.perfetto.dev/**', route =>
      route.fulfill({contentType: 'text/html', body: 'no one is here'}));
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#perfetto')]);
    assert.match(download.suggestedFilename(), /pipeline\.pftrace/);
    await page.waitForFunction(() => /was saved/.test(document.querySelector('.say').textContent));
  }, {alone: true}],
];
