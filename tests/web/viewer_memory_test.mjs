// Snapshots of an allocator, dumps of a job that hung, and replays of graphs, as pictures. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {close, settle, state, view} from './viewer_help.mjs';

// Rows of a table as objects.
const table = (page, name, analysis, more = '') =>
  page.evaluate(async ([name, analysis, more]) => {
    for (;;) {
      const reply = await fetch(`api/answer?name=${analysis}${more}`);
      if (reply.status === 202) continue;
      const {tables} = await reply.json(), {columns, rows} = tables.find(one => one.name === name);
      return rows.map(row => Object.fromEntries(columns.map((column, i) => [column.name, row[i]])));
    }
  }, [name, analysis, more]);
const answers = async (open, query) => {
  const page = await open('snapshot', query, {raw: true});
  await page.waitForFunction(() => window.stageline?.answers?.().waiting.length === 0);
  return page;
};

export const cases = [
  [
    'graphs: every replay is a block, and a click unfolds it; where there is none the bar has no such button',
    async open => {
      const page = await open('graphs'), use = await table(page, 'graph-use', 'graph-replays');
      await page.click('#graphs');
      await page.waitForFunction(() => stageline.query().rows > 0);
      const {rank, replay_count: replays} = use[0];
      assert.deepEqual([rank, await page.evaluate(() => stageline.query().rows)], [0, replays]);
      await settle(page);
      const box = await page.locator('.query-lane canvas').boundingBox();
      let area = null;
      for (let x = box.x + 5; x < box.x + box.width && !area; x += 5) {
        await page.mouse.click(x, box.y + 10);
        ({area} = await state(page));
      }
      await settle(page);
      const {t0, t1} = await view(page);
      assert.ok(t0 < area.t0 && area.t1 < t1 && area.t1 - area.t0 > (t1 - t0) / 2, JSON.stringify([area, t0, t1]));
      const {rows} = await page.evaluate(async ({lanes, t0, t1}) =>
        (await fetch(
          `api/select?lanes=${lanes}&t0=${t0}&t1=${t1}`,
        )).json(), area);
      const kernels = Number(/(\d+) kernels/.exec(await page.evaluate(async ({t0, t1}) => {
        const q =
          `SELECT count(*) || ' kernels' AS n FROM kernels WHERE rank = 0 AND start_ns >= ${t0} AND end_ns <= ${t1}`;
        for (;;) {
          const reply = await fetch(`api/sql?q=${encodeURIComponent(q)}`);
          if (reply.status === 200) return (await reply.json()).rows[0][0];
        }
      }, area))[1]);
      assert.ok(kernels > 1);
      assert.ok(rows.reduce((all, one) => all + one.count, 0) >= kernels);
      await page.click('#graphs');
      assert.equal((await state(page)).query, '');
      const plain = await open('profile');
      await settle(plain);
      assert.equal(await plain.locator('#graphs').count(), 0);
    },
  ],
  ['snapshot: the areas of segments and their parts are as their bytes', async open => {
    const page = await answers(open, '?lang=en#/answers/memory'),
      rows = await table(page, 'allocator-segments', 'allocator-snapshot');
    const seen = await page.$$eval('.segment', all =>
      all.map(one => {
        const box = one.getBoundingClientRect(), part = name => one.querySelector(name).getBoundingClientRect().height;
        return {title: one.title, area: box.width * box.height, used: part('b') / box.height,
          free: part('i') / box.height};
      }));
    assert.equal(seen.length, rows.length);
    const area = seen.reduce((all, one) => all + one.area, 0), bytes = rows.reduce((all, one) => all + one.bytes, 0);
    for (const row of rows) {
      const one = seen.find(({title}) => title.startsWith(`${row.address}:`));
      assert.ok(close(one.area / area, row.bytes / bytes, 0.01), JSON.stringify([row, one]));
      assert.ok(
        close(one.used, row.used_bytes / row.bytes, 0.02) && close(one.free, row.largest_free_bytes / row.bytes, 0.02),
        JSON.stringify([row, one]),
      );
    }
  }],
  [
    'snapshot: the curves name categories and stacks, the highest level is the peak, and the refusal stands at its time',
    async open => {
      const page = await answers(open, '?lang=en#/answers/memory');
      const [categories, stacks] = await page.$$eval('#topic-allocator .key',
        all =>
          all.map(one =>
            [...one.children].map(
              item => item.textContent,
            )
          ));
      assert.deepEqual(categories, ['before the history', 'optimizer state', 'activations', 'gradients', 'reserved']);
      assert.deepEqual(stacks.slice(0, 2), ['forward train.py:10', 'init train.py:13']);
      const rows = await table(page, 'allocator-curve', 'allocator-snapshot'),
        ooms = await table(page, 'allocator-ooms', 'allocator-snapshot');
      const share = await page.$eval('.level-mark', mark =>
        (mark.getBoundingClientRect().left -
          mark.parentElement.getBoundingClientRect().left) / mark.parentElement.getBoundingClientRect().width);
      const times = rows.map(row => row.time_ns), span = times.at(-1) - times[0];
      // Tables count from their own first times: the history's last event comes 30 us after the refusal.
      assert.equal(ooms.length, 1);
      assert.ok(close(share, 1 - 30e3 / span, 0.01), `${share} of ${span}`);
      assert.match(await page.textContent('.ran-out'),
        /19.9.MB wanted, 38.8.MB free in the allocator, at most 9.44.MB/);
    },
  ],
  ['snapshot: tables print bytes as people read them', async open => {
    const page = await answers(open, '?lang=en#/answers/memory?answer=allocator-snapshot&table=allocator-segments'),
      rows = await table(page, 'allocator-segments', 'allocator-snapshot');
    assert.equal(rows[0].bytes, 20 << 20);
    assert.match(await page.textContent('#table-allocator-segments tbody tr:first-child'), /21\.0\u202fMB/);
  }],
  ['snapshots: two are compared by peak, stacks and categories; changes are those of both tables', async open => {
    const page = await open('snapshots', '?lang=en#/compare', {raw: true});
    await page.waitForFunction(() => /^Peak memory/.test(document.querySelector('.compare h1')?.textContent ?? ''));
    const [a, b] = await Promise.all(
      ['', '&run=other'].map(more => table(page, 'allocator-sums', 'allocator-snapshot', more)),
    );
    assert.ok(a[0].peak_bytes < b[0].peak_bytes);
    const mega = value => `${(value / 1e6).toFixed(1)}\u202fMB`;
    assert.equal(await page.textContent('.compare h1'),
      `Peak memory ${mega(a[0].peak_bytes)} → ${mega(b[0].peak_bytes)} (+${mega(b[0].peak_bytes - a[0].peak_bytes)})`);
    const rows = await page.$$eval('.effects', all =>
      all.map(one =>
        [...one.querySelectorAll('tbody tr')].map(row =>
          parseFloat(row.lastElementChild.textContent.replace('−', '-')) *
          (/KB/.test(row.lastElementChild.textContent) ? 1e3
            : /MB/.test(row.lastElementChild.textContent) ? 1e6 : 1)
        )
      ));
    assert.equal(rows.length, 2);
    for (const changes of rows)
      assert.ok(close(changes.reduce((all, one) =>
        all + one, 0), b[0].peak_bytes - a[0].peak_bytes, 3e5), rows.join());
  }],
  [
    'hang: waits are open to the edge, the rank that is missing has a gap, and the first divergent call is marked',
    async open => {
      const page = await open('hang');
      await page.waitForFunction(() => stageline.state().hang);
      await settle(page);
      const {hang} = await state(page),
        ranks = list =>
          page.evaluate(lanes => lanes.map(lane => stageline.run.ranks[stageline.run.lanes[lane].rank_index].rank),
            list.map(one => one.lane));
      assert.deepEqual(await ranks(hang.waits), [0, 1, 3]);
      assert.deepEqual(await ranks(hang.gaps), [2]);
      assert.equal(hang.first.words, 'first divergent call: all_reduce 7');
      const span = await page.evaluate(() => stageline.run.span_ns), now = await view(page);
      assert.ok(now.t1 > span * 1.1 && hang.waits.every(one => one.t0 <= span));
      // What stands beyond the last time that was recorded: hatched for who waits, red for who never came, else blank.
      const colours = await page.evaluate(async ([waits, gaps, t]) => {
        const {page: paints} = stageline.paints(), canvas = document.querySelector('canvas.rows'), corner = canvas
          .getBoundingClientRect(), ratio = canvas.width / corner.width, pen = canvas.getContext('2d');
        const inked = lane => {
          const box = stageline.laneBox(lane), x = (stageline.xOf(t) - corner.left) * ratio,
            {data} = pen.getImageData(x, (box.y - corner.top + 2) * ratio, 40, 1), seen = new Set();
          for (let i = 0; i < data.length; i += 4) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
          return seen.size;
        };
        const other = stageline.run.lanes.find(lane => ![...waits, ...gaps].some(one => one.lane === lane.id));
        return {paints, wait: inked(waits[0].lane), gap: inked(gaps[0].lane), other: inked(other.id)};
      }, [hang.waits, hang.gaps, span * 1.15]);
      assert.ok(colours.wait > 2 && colours.gap === 1 && colours.other === 1, JSON.stringify(colours));
    },
  ],
];
