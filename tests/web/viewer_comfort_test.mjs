// Small helps: the strip of the whole run, the legend as a filter, the width of the names, which hit of a search it is,
// idle time of an area, pills that open, SQL's examples. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {close, drag, listed, settle, span, state, view} from './viewer_help.mjs';

export const cases = [
  ['minimap: it shows how busy the run is, as the rows are, and a drag moves the window', async open => {
    const page = await open('pipeline');
    await page.waitForFunction(() => stageline.minimap().busy);
    const found = await page.evaluate(async () => {
      const {busy} = stageline.minimap(), {span_ns, lanes} = stageline.run;
      const cells = lanes.filter(lane => lane.type === 'cells' && lane.name === 'compute');
      return {mean: busy.reduce((a, b) => a + b, 0) / busy.length, lanes: cells.map(lane => lane.id), span_ns};
    });
    // The same, summed slice by slice.
    const sum = await page.evaluate(async ({lanes, span_ns}) => {
      const {rows} = await (await fetch(`api/select?lanes=${lanes}&t0=0&t1=${span_ns}`)).json();
      return rows.reduce((all, one) => all + one.sum_ns, 0);
    }, found);
    const share = sum / found.span_ns / found.lanes.length;
    assert.ok(close(found.mean, share, 0.01 * share + 0.005), `${found.mean} ${share}`);
    await page.evaluate(() => stageline.setView(stageline.run.steps[0].start_ns, stageline.run.steps[0].end_ns));
    await settle(page);
    const before = await view(page), {box} = await page.evaluate(() => stageline.minimap()),
      total = await page.evaluate(() => stageline.run.span_ns);
    const x = box.x + (before.t0 + before.t1) / 2 / total * box.width, y = box.y + box.height / 2;
    await drag(page, [x, y], [x + box.width * 0.3, y]);
    await settle(page);
    const after = await view(page);
    assert.ok(close(after.t0 - before.t0, total * 0.3, total * 0.01), `${after.t0 - before.t0} of ${total}`);
    assert.ok(close(span(after), span(before), 1));
  }],
  ['minimap: steps that findings are about are flagged', async open => {
    const page = await open('slower');
    await page.waitForFunction(() => stageline.minimap().flags.length > 0);
    const {flags, steps} = await page.evaluate(() => ({flags: stageline.minimap().flags, steps: stageline.run.steps}));
    for (const {t0, t1} of flags)
      assert.ok(steps.some(step => close(step.start_ns, t0, 1) && close(step.end_ns, t1, 1)));
  }],
  ['names that are cut end within their slices, and the legend is one line', async open => {
    const page = await open('stacks');
    const found = await page.evaluate(async () => {
      const pen = CanvasRenderingContext2D.prototype, {fillText, fillRect} = pen, boxes = [], texts = [];
      pen.fillRect = function(x, y, w, h) {
        if (this.canvas.className === 'rows') boxes.push([x, y, w, h]);
        fillRect.call(this, x, y, w, h);
      };
      pen.fillText = function(text, x, y) {
        if (this.canvas.className === 'rows' && text.includes('…'))
          texts.push([text, x, y, this.measureText(text).width]);
        fillText.call(this, text, x, y);
      };
      const {span_ns} = stageline.run;
      for (const share of [1, 0.7, 0.5, 0.3, 0.2, 0.1]) {
        stageline.setView(span_ns * (1 - share) / 2, span_ns * (1 + share) / 2);
        do await new Promise(requestAnimationFrame); while (!stageline.settled());
      }
      Object.assign(pen, {fillText, fillRect});
      // The slice of a text begins where its padding does.
      return texts.map(([text, x, y, wide]) => ({text, over: x + wide - Math.max(...boxes.filter(([left, top, w, h]) =>
        left <= x && left >= x - 8 && top < y && top + h > y
      ).map(([left, , w]) =>
        left + w
      ))}));
    });
    assert.ok(found.length > 20, String(found.length));
    assert.deepEqual(found.filter(({over}) =>
      over > 0.5
    ), []);
    const middles = await page.evaluate(() =>
      [...document.querySelectorAll('.toolbar .key li')].map(one => {
        const {top, height} = one.getBoundingClientRect();
        return top + height / 2;
      })
    );
    assert.ok(Math.max(...middles) - Math.min(...middles) < 1, String(middles));
  }],
  ['legend: a click pales a kind and brings it back, Shift leaves it alone, and the address keeps it', async open => {
    const page = await open('pipeline');
    const fills = () => page.evaluate(() => stageline.paints().fill);
    const kinds = await page.evaluate(() => stageline.run.kinds.map(({id, group}) => ({id, group})));
    const before = await fills(), forward = kinds.filter(kind => kind.group === 'forward').map(kind => kind.id);
    await page.click('.key button >> text=forward');
    await settle(page);
    assert.deepEqual((await state(page)).muted, forward);
    const pale = await fills();
    for (const {id} of kinds) assert.equal(pale[id][0] === before[id][0], !forward.includes(id), String(id));
    await page.waitForFunction(() => location.hash.includes('mute='));
    const again = await open('pipeline', `?lang=en${new URL(page.url()).hash}`);
    assert.deepEqual((await state(again)).muted, forward);
    await page.click('.key button >> text=forward');
    await settle(page);
    assert.deepEqual(await fills(), before);
    await page.click('.key button >> text=backward', {modifiers: ['Shift']});
    const left = kinds.map(kind => kind.id).filter(id => !new Set([]).has(id));
    const {muted} = await state(page);
    assert.ok(forward.every(id => muted.includes(id)) && muted.length < left.length);
    await page.click('.key button >> text=backward', {modifiers: ['Shift']});
    assert.deepEqual((await state(page)).muted, []);
  }],
  [
    'Python frames have the colour of their file, as the flame graph gives it, and other slices that of their kind',
    async open => {
      const page = await open('stacks');
      const frames = await page.evaluate(() => {
        const {kinds, lanes} = stageline.run,
          python = new Set(kinds.filter(kind => kind.group === 'python').map(kind => kind.id));
        return lanes.filter(lane => lane.type === 'thread').flatMap(lane => stageline.slices(lane.id)).filter(one =>
          python.has(one.kind) && /^.+\(\d+\): /.test(one.name)
        );
      });
      const files = new Map(frames.map(one => [/^(.+)\(\d+\): /.exec(one.name)[1], one]));
      assert.ok(files.size > 1, String(files.size));
      const seen = new Map();
      for (const [file, one] of files) {
        await page.evaluate(({start, dur}) => stageline.setView(start - dur * 0.2, start + dur * 1.2), one);
        await settle(page);
        const colour = await page.evaluate(slice => {
          const box = stageline.sliceBox(slice), canvas = document.querySelector('canvas.rows'),
            corner = canvas.getBoundingClientRect(), ratio = canvas.width / corner.width;
          return [
            ...canvas.getContext('2d').getImageData((box.x + 2 - corner.left) * ratio, (box.y + 2 - corner.top) * ratio,
              1, 1).data,
          ].slice(0, 3);
        }, one);
        seen.set(file, colour);
        // FNV-1a of the file's name, as the flame graph's.
        let hash = 16777619;
        for (const letter of file) hash = Math.imul(hash ^ letter.charCodeAt(0), 16777619);
        const hue = (hash >>> 0) % 12 * 30, wanted = await page.evaluate(text => {
          const probe = document.createElement('canvas').getContext('2d');
          probe.fillStyle = text;
          probe.fillRect(0, 0, 1, 1);
          return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }, `hsl(${hue} 34% 73%)`);
        assert.deepEqual(colour, wanted, `${file} ${JSON.stringify(one)}`);
      }
    },
  ],
  ['gutter: it is dragged and moved by keys, stays for the next visit, and rows keep their times', async open => {
    const page = await open('pipeline'), handle = page.locator('.gutter-handle');
    const edge = () => page.evaluate(() => stageline.xOf(stageline.view().t0));
    const [x, before] = [await edge(), await view(page)], box = await handle.boundingBox();
    await drag(page, [x, box.y + 200], [x + 120, box.y + 200]);
    await settle(page);
    assert.ok(close(await edge(), x + 120, 2), `${await edge()} ${x}`);
    assert.deepEqual(await view(page), before);
    await handle.focus();
    await page.keyboard.press('ArrowLeft');
    await settle(page);
    assert.ok(close(await edge(), x + 104, 2));
    const again = await open('pipeline');
    assert.ok(close(await again.evaluate(() => stageline.xOf(stageline.view().t0)), x + 104, 2));
    await again.locator('.gutter-handle').dblclick();
    await settle(again);
    assert.ok(close(await again.evaluate(() => stageline.xOf(stageline.view().t0)), x, 2));
  }],
  ['search: it says which of how many was gone to, there and back', async open => {
    const page = await open('profile');
    const name = 'aten::', total = await page.evaluate(async text =>
      (await (await fetch(`api/search?q=${encodeURIComponent(text)}`)).json()).occurrences, name);
    await page.keyboard.press('/');
    await page.keyboard.type(name);
    await listed(page);
    await page.keyboard.press('Enter');
    const place = async () => {
      await settle(page);
      return (await page.textContent('.lit .place')).match(/[\d\s\u202f,]+/g).map(text =>
        Number(text.replace(/\D/g, ''))
      );
    };
    await page.waitForSelector('.lit .place');
    assert.deepEqual(await place(), [1, total]);
    for (let k = 2; k <= 4; ++k) {
      await page.keyboard.press('n');
      await page.waitForFunction(at =>
        stageline.state().found?.at === at, k);
      assert.deepEqual(await place(), [k, total]);
    }
    await page.keyboard.press('Shift+N');
    await page.waitForFunction(() =>
      stageline.state().found?.at === 3
    );
  }],
  ['area: idle time is a row of its own, and rows and idle time fill the area', async open => {
    const page = await open('pipeline');
    await page.evaluate(() => {
      const lane = stageline.run.lanes.find(one => one.type === 'cells' && one.name === 'compute');
      stageline.setView(stageline.run.steps[0].start_ns, stageline.run.steps[0].end_ns);
      window.lane = lane.id;
    });
    await settle(page);
    const box = await page.evaluate(() => stageline.laneBox(window.lane));
    await drag(page, [box.x + 60, box.y + 3], [box.x + 700, box.y + box.h - 3]);
    await page.waitForSelector('.idle-row');
    const seen = await page.evaluate(async () => {
      const {area} = stageline.state(), rows = await (await fetch(
        `api/select?lanes=${area.lanes}&t0=${area.t0}&t1=${area.t1}`,
      )).json();
      return {lanes: area.lanes.length, span: area.t1 - area.t0, sum: rows.rows.reduce((all, one) =>
        all + one.sum_ns, 0), idle: document.querySelector('.idle-row td:nth-of-type(4)').innerText};
    });
    assert.equal(seen.lanes, 1);
    assert.ok(close(parseFloat(seen.idle) * 1e6, seen.span - seen.sum, 0.01 * seen.span), JSON.stringify(seen));
  }],
  ['overview: a bar of the steps opens the pipeline, held against the usual step', async open => {
    const page = await open('slower', '?lang=en#/overview');
    await page.waitForFunction(() => window.stageline?.overviewReady?.());
    const bar = page.locator('.steps rect:not(.now)').first(), number = await bar.getAttribute('data-step'),
      usual = await page.locator('.steps rect.now').getAttribute('data-step');
    await bar.click();
    await page.waitForFunction(() => stageline.page() === 'pipeline' && stageline.pipeline?.frames() > 0);
    const {step, beside} = await page.evaluate(() => stageline.pipeline.state());
    assert.deepEqual([step, beside], [Number(number), Number(usual)]);
  }],
  ['header: what the pills say in short is explained at a click', async open => {
    const page = await open('odd');
    await page.click('#flaws');
    const words = await page.textContent('dialog.note');
    const flaws = await page.evaluate(() => stageline.run.flaws.length);
    assert.ok(flaws > 0 && (await page.locator('dialog.note li').count()) === flaws && words.includes(String(flaws)));
    await page.keyboard.press('Escape');
    const clocks = await open('profile');
    await clocks.click('#clock');
    await clocks.click('dialog.note a');
    await clocks.waitForFunction(() => stageline.page() === 'answers' && stageline.answers?.().family === 'clocks');
    assert.equal(await clocks.locator('dialog').count(), 0);
  }],
  ['SQL: an example is asked at a choice, and what was asked before is kept for the next visit', async open => {
    const page = await open('profile', '?lang=en#/answers/sql'), query = 'SELECT count(*) AS n FROM slices';
    await page.waitForSelector('.sql-answer table');
    const titles = await page.$$eval('#sql-examples optgroup', all => all.map(one => one.label));
    assert.deepEqual(titles, ['Examples']);
    for (const example of await page.$$eval('#sql-examples option', all => all.map(one => one.value).filter(Boolean))) {
      await page.selectOption('#sql-examples', example);
      await page.waitForFunction(wanted =>
        document.querySelector('#sql-query').value === wanted &&
        document.querySelector('.sql-answer table, .sql-answer .notice'), example);
      assert.equal(await page.locator('.sql-answer .notice').count(), 0, example);
    }
    await page.fill('#sql-query', query);
    await page.click('.sql-form button[type=submit]');
    await page.waitForFunction(() => document.querySelector('#sql-examples optgroup:nth-of-type(2)'));
    const again = await open('profile', '?lang=en#/answers/sql');
    await again.waitForSelector('#sql-examples optgroup:nth-of-type(2)', {state: 'attached'});
    assert.deepEqual(
      await again.$$eval('#sql-examples optgroup:nth-of-type(2) option', all => all.map(one => one.value)),
      [query],
    );
  }],
];
