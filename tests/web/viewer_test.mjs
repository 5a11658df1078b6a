// The timeline itself: what it draws, how it moves, that it is true. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {close, count, drag, laneOf, settle, span, state, stopClock, view, wideSlice} from './viewer_help.mjs';

// Busy time per row and kind within a window, by adding up every slice: the reference for what is drawn.
async function bruteForce(page, lane, t0, t1) {
  return page.evaluate(async ([id, from, to]) => {
    const answer = await fetch(`/api/slices?lanes=${id}&t0=${from}&t1=${to}&limit=200000`),
      buffer = await answer.arrayBuffer();
    const length = new DataView(buffer).getUint32(0, true),
      header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    if (!header.complete) throw new Error('too many slices for the reference');
    const base = Math.ceil((4 + length) / 8) * 8;
    const column = (name, type) => {
      const found = header.columns.find(c => c.name === name);
      return new type(buffer, base + found.offset, found.count);
    };
    const [start, dur, row, kind] = [
      column('start', Float64Array),
      column('dur', Float64Array),
      column('row', Uint8Array),
      column('kind', Uint8Array),
    ];
    const sums = {};
    for (let i = 0; i < start.length; ++i) {
      const key = `${row[i]}/${kind[i]}`;
      sums[key] = (sums[key] ?? 0) + Math.max(0, Math.min(start[i] + dur[i], to) - Math.max(start[i], from));
    }
    return sums;
  }, [lane, t0, t1]);
}

export const cases = [
  [
    'the first screen is below 180 kB gzipped, all pages below 210, it asks nobody else and allows no inline script',
    async (open, {serve}) => {
      const {gzipSync} = await import('node:zlib'), address = await serve('one');
      let bytes = 0, late = 0;
      for (const path of ['/', '/viewer.js', '/chunk.js', '/late_pages.js', '/viewer.css']) {
        const answer = await fetch(address + path), body = Buffer.from(await answer.arrayBuffer());
        if (path === '/late_pages.js') late = gzipSync(body).length;
        else bytes += gzipSync(body).length;
        if (path === '/')
          assert.match(answer.headers.get('content-security-policy'), /default-src 'none'|default-src 'self'/);
        if (path === '/') assert.doesNotMatch(answer.headers.get('content-security-policy'), /unsafe/);
      }
      assert.ok(bytes < 180e3 && bytes + late < 210e3, `${bytes} bytes, and ${late} when pages are opened`);
    },
  ],
  ['the page opens with every lane drawn, and says when', async open => {
    const page = await open('pipeline');
    assert.match(await page.textContent('.run'), /pipeline · 8 ranks · 4 steps · 1312 slices/);
    const painted = await page.evaluate('stageline.painted()');
    assert.ok(painted.lanes > 4 && painted.missing === 0 && painted.slices > 100 && painted.labels > 20,
      JSON.stringify(painted));
    await page.waitForFunction(() => performance.getEntriesByName('timeline-painted').length === 1);
    const first = await page.evaluate('stageline.laneBox(0)');
    assert.ok(first.w > 800 && first.h >= 12);
  }],
  ['what is drawn is the busy time of every kind, within half a pixel, at every zoom', async open => {
    let page;
    for (const run of ['busy', 'profile', 'pipeline']) {
      page = await open(run, '?lang=en', {again: page});
      const home = await view(page);
      const lanes = await page.evaluate(
        'stageline.run.lanes.filter(l => l.type !== "counter" && stageline.laneBox(l.id)).slice(0, 14).map(l => l.id)',
      );
      let checked = 0;
      for (let zoom = 1, place = 0; zoom < 4e4; zoom *= 5, place = (place + 0.37) % 1) {
        const wide = span(home) / zoom, t0 = home.t0 + (span(home) - wide) * place;
        await page.evaluate(([a, b]) => stageline.setView(a, b), [t0, t0 + wide]);
        await settle(page);
        for (const lane of lanes) {
          const drawn = await page.evaluate(id => stageline.drawn(id), lane);
          if (!drawn) continue;
          const columnNs = (drawn.t1 - drawn.t0) / drawn.columns,
            sums = await bruteForce(page, lane, drawn.t0, drawn.t1);
          for (const {row, kind, tile, drawn: pixels} of drawn.kinds) {
            const wanted = (sums[`${row}/${kind}`] ?? 0) / columnNs;
            delete sums[`${row}/${kind}`];
            ++checked;
            assert.ok(Math.abs(tile - wanted) <= 0.5,
              `${run}, zoom ${zoom}, lane ${lane}, row ${row}, kind ${kind}: tile ${tile}, busy ${wanted}`);
            assert.ok(Math.abs(pixels - wanted) <= 0.5,
              `${run}, zoom ${zoom}, lane ${lane}, row ${row}, kind ${kind}: drawn ${pixels}, busy ${wanted}`);
          }
          const rows = Math.max(...drawn.kinds.map(one => one.row), 0); // deeper ones may be folded
          for (const [key, busy] of Object.entries(sums))
            assert.ok(Number(key.split('/')[0]) > rows || busy / columnNs <= 0.5,
              `${run}, zoom ${zoom}, lane ${lane}: ${key} is busy and not drawn`);
        }
      }
      assert.ok(checked > 10, `${checked} rows and kinds were compared`);
    }
  }],
  ['the pixels on the canvas are those shares', async open => {
    const page = await open('busy');
    // For a lane without rectangles: the colour's share of each column's height, added up over the plot.
    const [found, wanted] = await page.evaluate(() => {
      const canvas = document.querySelector('canvas.rows'), box = canvas.getBoundingClientRect(),
        at = stageline.laneBox(0), drawn = stageline.drawn(0);
      const kind = stageline.run.kinds.find(k => k.id === drawn.kinds[0].kind),
        [r, g, b] = [1, 3, 5].map(i => parseInt(kind.light.fill.slice(i, i + 2), 16));
      const idle = [238, 241, 244], [x0, x1] = [0, stageline.run.span_ns].map(t =>
        Math.round(stageline.xOf(t) - box.left)
      ), top = Math.round(at.y - box.top);
      const data = canvas.getContext('2d').getImageData(x0, top, x1 - x0, Math.round(at.h / at.rows)).data,
        height = Math.round(at.h / at.rows);
      let sum = 0;
      for (let i = 0; i < data.length; i += 4) {
        const along = [r, g, b].reduce((s, v, c) => s + (data[i + c] - idle[c]) * (v - idle[c]), 0),
          length = [r, g, b].reduce((s, v, c) => s + (v - idle[c]) ** 2, 0);
        sum += along / length;
      }
      return [sum / height, drawn.kinds.filter(k => k.row === 0).reduce((s, k) => s + k.tile, 0)];
    });
    assert.ok(Math.abs(found - wanted) / wanted < 0.01, `${found} columns of colour, ${wanted} by the tile`);
  }],
  ['W and S zoom, A and D move, 0 shows all, Backspace undoes', async open => {
    const page = await open('pipeline'), home = await view(page), pass = await stopClock(page);
    for (const key of ['w', 'w', 'w']) await page.keyboard.press(key);
    const near = await view(page);
    assert.ok(span(near) < span(home) * 0.9);
    await page.keyboard.press('d');
    const right = await view(page);
    assert.ok(right.t0 > near.t0 && Math.abs(span(right) - span(near)) < 1);
    await page.keyboard.press('ArrowLeft');
    assert.ok((await view(page)).t0 < right.t0);
    await page.keyboard.press('s');
    await pass(1100); // what follows is a gesture of its own
    await page.keyboard.press('0');
    assert.deepEqual(await view(page), home);
    await page.keyboard.press('Backspace');
    assert.ok(span(await view(page)) < span(home));
    await page.keyboard.press('Backspace');
    assert.deepEqual(await view(page), home);
  }],
  ['a held key keeps moving and stops when released; an idle page draws no frames', async open => {
    const page = await open('profile'), home = await view(page);
    await page.keyboard.down('w');
    await page.waitForFunction(wide => {
      const {t0, t1} = stageline.view();
      return t1 - t0 < wide * 0.7;
    }, span(home)); // one step is 0.82
    await page.keyboard.up('w');
    await settle(page);
    const [frames, at] = [await page.evaluate('stageline.frames()'), await view(page)];
    const asked = await page.evaluate(() => {
      const calls = [];
      const real = window.requestAnimationFrame;
      window.requestAnimationFrame = callback => {
        calls.push(new Error().stack);
        return real(callback);
      };
      // Nothing is to happen: a slow machine has less time for it, not more.
      return new Promise(done => setTimeout(() => done(calls), 400));
    });
    assert.deepEqual(asked, [], 'no frame is asked for');
    assert.equal(await page.evaluate('stageline.frames()'), frames);
    assert.deepEqual(await view(page), at);
  }],
  ['with reduced motion a key is one step', async open => {
    const page = await open('pipeline', '?lang=en', {calm: true});
    await page.keyboard.down('w');
    const first = await view(page);
    await settle(page); // a key that goes on moving would never let it
    assert.deepEqual(await view(page), first);
    await page.keyboard.up('w');
  }],
  ['the wheel: plain scrolls the rows, Ctrl zooms at the pointer, Shift moves', async open => {
    const page = await open('profile'), home = await view(page), box = await page.locator('canvas.rows').boundingBox();
    const x = box.x + box.width * 0.6;
    await page.mouse.move(x, box.y + 200);
    await page.mouse.wheel(0, 120);
    await page.waitForFunction(() => document.querySelector('.scroller').scrollTop > 0);
    assert.deepEqual(await view(page), home);
    const at = await page.evaluate(px => {
      const {t0, t1} = stageline.view(), a = stageline.xOf(t0), b = stageline.xOf(t1);
      return t0 + (px - a) / (b - a) * (t1 - t0);
    }, x);
    await page.keyboard.down('Control');
    for (let i = 0; i < 4; ++i) await page.mouse.wheel(0, -120);
    await page.keyboard.up('Control');
    await page.waitForFunction(wide => {
      const {t0, t1} = stageline.view();
      return t1 - t0 < wide * 0.3;
    }, span(home));
    await settle(page);
    const near = await view(page);
    assert.ok(Math.abs(await page.evaluate(t => stageline.xOf(t), at) - x) < 1.5, 'the time under the pointer stays');
    await page.keyboard.down('Shift');
    await page.mouse.wheel(0, 100);
    await page.keyboard.up('Shift');
    await page.waitForFunction(left => stageline.view().t0 > left, near.t0);
  }],
  ['Shift and drag moves, Alt and drag zooms to the box, the middle button moves', async open => {
    const page = await open('pipeline');
    await page.keyboard.press('w');
    await settle(page);
    const before = await view(page), box = await page.locator('canvas.rows').boundingBox();
    const at = (share, y) => [box.x + box.width * share, box.y + y];
    await drag(page, at(0.6, 200), at(0.5, 200), ['Shift']);
    const moved = await view(page);
    assert.ok(moved.t0 > before.t0 && Math.abs(span(moved) - span(before)) < 1);
    await page.mouse.move(...at(0.5, 200));
    await page.mouse.down({button: 'middle'});
    await page.mouse.move(...at(0.6, 200), {steps: 4});
    await page.mouse.up({button: 'middle'});
    assert.ok((await view(page)).t0 < moved.t0);
    const wide = await view(page);
    await drag(page, at(0.4, 200), at(0.6, 260), ['Alt']);
    const zoomed = await view(page);
    assert.ok(
      Math.abs(
        span(zoomed) / span(wide) -
          0.2 * box.width / (box.width - await page.evaluate('stageline.laneBox(0).x') + box.x - 10),
      ) < 0.02,
    );
    assert.equal((await state(page)).area, null);
  }],
  ['touch: two fingers zoom, one moves', async (open, {context}) => {
    const page = await open('pipeline'), home = await view(page), box = await page.locator('canvas.rows').boundingBox();
    const cdp = await context.newCDPSession(page), y = box.y + 220;
    const touch = (type, ...xs) =>
      cdp.send('Input.dispatchTouchEvent', {type, touchPoints: xs.map((x, id) => ({x, y, id}))});
    await touch('touchStart', 700, 800);
    for (let i = 1; i <= 6; ++i) await touch('touchMove', 700 - i * 20, 800 + i * 20);
    await touch('touchEnd');
    await page.waitForFunction(wide => {
      const {t0, t1} = stageline.view();
      return t1 - t0 < wide * 0.7;
    }, span(home));
    await settle(page);
    const near = await view(page);
    await touch('touchStart', 900);
    for (let i = 1; i <= 5; ++i) await touch('touchMove', 900 - i * 30);
    await touch('touchEnd');
    await page.waitForFunction(left => stageline.view().t0 > left, near.t0);
  }],
  ['numbers go to steps; a tooltip follows the pointer', async open => {
    const page = await open('pipeline');
    await page.keyboard.press('3');
    const step = await page.evaluate('stageline.run.steps[2]'), at = await view(page);
    assert.ok(at.t0 <= step.start_ns && at.t1 >= step.end_ns && span(at) < (step.end_ns - step.start_ns) * 1.1);
    await settle(page);
    const {slice, x, y} = await wideSlice(page, 0);
    await page.mouse.move(x, y);
    await page.waitForSelector('#tip:not([hidden])');
    const tip = await page.textContent('#tip');
    assert.ok(tip.includes(slice.name), tip);
    assert.match(tip, /rank 0/);
    await page.mouse.move(400, 6);
    await page.waitForSelector('#tip', {state: 'hidden'});
  }],
  ['where slices are too small to be drawn, the tooltip says the shares of the pixel', async open => {
    const page = await open('busy'), box = await page.evaluate('stageline.laneBox(0)');
    assert.equal(await count(page, 0), 0, 'no slice is wide enough');
    await page.mouse.move(box.x + box.w / 2, box.y + 5);
    await page.waitForSelector('#tip:not([hidden])');
    const text = await page.textContent('#tip');
    assert.match(text, /a pixel/);
    assert.match(text, /idle/);
    const shares = [...text.matchAll(/([\d.]+)\s%/g)].map(m => Number(m[1]));
    assert.ok(close(shares.reduce((a, b) => a + b), 100, 0.3), text);
    await page.mouse.click(box.x + box.w / 2, box.y + 5);
    await page.waitForFunction(() => stageline.state().selected);
    assert.match((await state(page)).selected.name, /op$/);
    assert.equal((await state(page)).selected.lane, await laneOf(page, 0));
  }],
];
