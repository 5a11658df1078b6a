// The flame graph's page: what it adds up, its three views, search, keys, links, two sides, and the same in a report.
// Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {openReport, reportOf} from './onefile_help.mjs';

const flame = page => page.evaluate(() => window.stageline.flame());
// Asked here, frame by frame: what is waited for differs from call to call, and the page's policy makes no function of
// a text.
async function drawn(page, test = () => true, value = null) {
  for (const until = Date.now() + 120000; Date.now() < until;) {
    const now = await page.evaluate(() =>
      new Promise(done => requestAnimationFrame(() => done(window.stageline?.flame?.() ?? null)))
    );
    if (now && test(now, value)) return;
  }
  throw new Error(`not so after two minutes: ${test}`);
}
const show = async (open, run, query = '', options = {}) => {
  const page = await open(run, `${options.query ?? '?lang=en'}#/flame${query}`, {...options, raw: true});
  await drawn(page);
  return page;
};
const near = (a, b, what) =>
  assert.ok(Math.abs(a - b) <= 1e-6 * Math.max(Math.abs(a), Math.abs(b), 1), `${what}: ${a} and ${b}`);
// Every box within its caller's, and no more below a box than it is wide.
function nested(boxes) {
  for (const box of boxes.slice(1)) {
    const above = boxes.find(one =>
      one.depth === box.depth - 1 && one.x <= box.x + 0.01 && one.x + one.width >= box.x + box.width - 0.01
    );
    assert.ok(above, `${box.name} stands below a caller`);
  }
}

export const cases = [
  ['flame: widths are shares of the whole, and its sum is that of /api/calls', async (open, {serve}) => {
    const page = await show(open, 'profile'), now = await flame(page);
    nested(now.boxes);
    const bytes = await (await fetch(`${await serve('profile')}/api/calls`)).arrayBuffer();
    const length = new DataView(bytes).getUint32(0, true),
      header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
    const base = Math.ceil((4 + length) / 8) * 8, host = header.columns.find(one => one.name === 'host_ns');
    const own = new Float64Array(bytes, base + host.offset, host.count).reduce((sum, one) => sum + one, 0);
    assert.equal(header.ranks.length, 4);
    near(now.total, own / 4, 'the mean of four ranks');
    near(now.boxes[0].width, await page.evaluate(() => document.querySelector('.flame-chart').clientWidth),
      'the root is the whole width');
  }],
  [
    'flame: threads add up to the whole, parts of the time too, and an area of the timeline opens it',
    async (open, {serve}) => {
      const address = await serve('profile'), run = await (await fetch(`${address}/api/run`)).json();
      // Returns the host's time in an answer, once it is made.
      const sum = async query => {
        for (;;) {
          const answer = await fetch(`${address}/api/calls${query}`);
          if (answer.status === 202) continue;
          assert.equal(answer.status, 200, query);
          const bytes = await answer.arrayBuffer(), length = new DataView(bytes).getUint32(0, true),
            {columns} = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))),
            host = columns.find(one => one.name === 'host_ns');
          return new Float64Array(bytes, Math.ceil((4 + length) / 8) * 8 + host.offset, host.count)
            .reduce((all, one) => all + one, 0);
        }
      };
      const whole = await sum(''), threads = run.lanes.filter(lane => lane.type === 'thread' && lane.slices > 0);
      let all = 0;
      for (const {id} of threads) all += await sum(`?lanes=${id}`);
      near(all, whole, 'all threads');
      const end = Math.max(...run.lanes.map(lane => lane.end_ns)) + 1, middle = Math.round(end / 3);
      near(await sum(`?t0=0&t1=${middle}`) + await sum(`?t0=${middle}&t1=${end}`), whole, 'both parts of the time');
      assert.equal((await fetch(`${address}/api/calls?lanes=nonsense`)).status, 400);

      const page = await show(open, 'profile', `?lanes=${threads[0].id}&v=0,${middle}`), part = await flame(page);
      near(part.total, await sum(`?lanes=${threads[0].id}&t0=0&t1=${middle}`), 'the area');
      await page.click('#flame-all');
      await drawn(page, (now, total) => now.total > total, part.total);
      const name = threads[0].name, own = threads.filter(lane => lane.name === name).map(lane => lane.id).join();
      await page.selectOption('[name=thread]', name);
      await drawn(page, (now, total) => now.total < total, whole / 4);
      near((await flame(page)).total, await sum(`?lanes=${own}`) / (await flame(page)).ranks.length, 'one thread');
      await page.waitForFunction(() => /thread=/.test(location.hash));
    },
  ],
  ["flame: communication and copies have colours of their own among the devices' work", async open => {
    const page = await show(open, 'profile', '?time=device&fold=0'), {boxes} = await flame(page);
    const kernels = boxes.filter(box =>
        /^nccl(dev)?kernel|^(void )?\w*(gemm|gelu|elementwise|layer_norm)|^Mem(cpy|set)/i.test(box.name) && !box.small
      ), of = test => new Set(kernels.filter(box => test.test(box.name)).map(box => box.kind));
    assert.deepEqual(of(/^nccl(dev)?kernel/i), new Set(['communication']));
    assert.ok(of(/gemm|gelu|elementwise|layer_norm/i).has('device'));
    assert.ok(![...of(/^Mem/)].some(kind => kind !== 'memory'));
  }],
  ['flame: a frame is chosen, zoomed to, and left again by pointer and by keys alone; a link opens it', async open => {
    const page = await show(open, 'stacks'), before = await flame(page);
    const wanted = before.boxes.filter(box => box.depth === 2 && box.width > 60).at(-1);
    assert.ok(wanted, 'a frame that can be hit');
    const at = await page.evaluate(name => window.stageline.flame().place(name), wanted.name);
    await page.mouse.click(at.x, at.y);
    await drawn(page, now => now.chosen > 0);
    await page.waitForFunction(name => document.querySelector('.flame-detail b')?.textContent === name, wanted.name);
    await page.mouse.dblclick(at.x, at.y);
    await drawn(page, now => now.root > 0);
    const zoomed = await flame(page);
    assert.equal(zoomed.boxes[0].name, wanted.name);
    await page.waitForFunction(() => /at=[0-9a-f]{8}/.test(location.hash));
    const again = await page.context().newPage();
    await again.goto(page.url());
    await drawn(again, now => now.root > 0);
    assert.equal((await flame(again)).boxes[0].name, wanted.name, 'the link opens the same frame');
    await again.close();
    await page.focus('.flame-chart canvas');
    await page.keyboard.press('Escape');
    await drawn(page, (now, root) => now.root !== root, zoomed.root);
    await page.keyboard.press('0');
    await drawn(page, now => now.root === 0);
    // A step of Back of its own, once it is in the address.
    await page.waitForFunction(() => !/[?&]at=/.test(location.hash));
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await drawn(page, now => now.chosen > 0);
    await page.keyboard.press('Enter');
    await drawn(page, now => now.root > 0 && now.root === now.chosen);
    await page.waitForFunction(() => /[?&]at=/.test(location.hash));
    await page.goBack();
    await drawn(page, now => now.root === 0);
  }],
  ['flame: what is empty below a frame is its own time, however narrow what it calls', async open => {
    const page = await show(open, 'stacks'), {boxes, total, self} = await flame(page);
    for (const box of boxes.filter(one => one.small === 0 && one.width > 4)) {
      const below = boxes.filter(one =>
        one.depth === box.depth + 1 && one.x >= box.x - 0.01 && one.x + one.width <= box.x + box.width + 0.01
      ).reduce((sum, one) => sum + one.width, 0);
      const own = self[box.last] / total * boxes[0].width;
      assert.ok(Math.abs(box.width - below - own) < 0.5 + 1e-3 * box.width,
        `${box.name}: ${box.width} px, ${below} below it, ${own} its own`);
    }
  }],
  ['flame: search says how much it found, walks through it, and takes an expression', async open => {
    const page = await show(open, 'stacks');
    await page.keyboard.press('/');
    await page.keyboard.type('aten::');
    await drawn(page, now => now.matches > 1);
    const {matches} = await flame(page);
    assert.match(await page.locator('.flame-found').textContent(),
      new RegExp(`^${matches} found, [0-9.]+\u202f% of the time$`));
    await page.keyboard.press('Enter');
    await drawn(page, now => now.chosen > 0);
    const first = (await flame(page)).chosen;
    await page.keyboard.press('Enter');
    await drawn(page, (now, was) => now.chosen > 0 && now.chosen !== was, first);
    await page.locator('.flame-search').fill('/^aten::(mm|addmm)$/');
    await drawn(page, (now, was) => now.matches > 0 && now.matches < was, matches);
    await page.waitForFunction(() => /[?&]q=/.test(location.hash));
  }],
  ['flame: chains that hand all their time on are one box, and are not when that is left out', async open => {
    const page = await show(open, 'stacks'), folded = (await flame(page)).boxes;
    assert.ok(folded.some(box => box.folded > 0));
    await page.locator('.flame-tools input[type=checkbox]').uncheck();
    await drawn(page, now => now.boxes.every(box => box.folded === 0));
    const all = (await flame(page)).boxes;
    assert.ok(Math.max(...all.map(box => box.depth)) > Math.max(...folded.map(box => box.depth)));
    nested(all);
  }],
  ['flame: sandwich has callers above a function and callees below it, and their times are its own', async open => {
    const page = await show(open, 'stacks', '/sandwich');
    await page.locator('.flame-table button[data-function]', {hasText: /^aten::linear$/}).click();
    await page.waitForFunction(() => document.querySelector('.flame-function h2')?.textContent === 'aten::linear');
    const row = page.locator('.flame-table tr[aria-selected=true]'),
      total = await row.locator('td').first().textContent();
    assert.ok((await page.locator('.flame-function p').textContent()).startsWith(`${total} in total`));
    assert.equal(await page.locator('.flame-sandwich .flame-chart').count(), 2);
    const {boxes} = await flame(page);
    assert.equal(boxes[0].name, 'aten::linear');
    assert.ok(boxes.length > 1, 'it calls something');
    await page.waitForFunction(() => /#\/flame\/sandwich\?fn=[0-9a-f]{8}/.test(location.hash));
  }],
  ['flame: top-down unfolds by keys, and a search leaves the paths that lead to it', async open => {
    const page = await show(open, 'stacks', '/tree'), rows = page.locator('tr[data-node]');
    await rows.first().focus();
    const before = await rows.count();
    await page.keyboard.press('ArrowLeft');
    assert.ok(await rows.count() < before, 'folded');
    await page.keyboard.press('ArrowRight');
    assert.equal(await rows.count(), before, 'and unfolded');
    await page.keyboard.press('ArrowDown');
    await drawn(page, now => now.chosen > 0);
    await page.locator('.flame-search').fill('cudaMemcpyAsync');
    await drawn(page, now => now.matches > 0);
    await page.waitForFunction(() => document.querySelector('tr.match'));
    assert.ok(
      (await rows.evaluateAll(list =>
        list.filter(row => row.getAttribute('aria-expanded') === null).map(row => row.textContent)
      )).every(text => text.includes('cudaMemcpyAsync')),
      'every path ends in what was searched',
    );
  }],
  ['flame: a rank against a rank, and a run against a run by the step', async open => {
    const page = await show(open, 'profiles', '?a=0&b=1&time=device');
    const ranks = await flame(page);
    assert.ok(ranks.total > 0 && ranks.totalB > 0);
    nested(ranks.boxes);
    await page.locator('select[name=b]').selectOption('other');
    await page.locator('select[name=a]').selectOption('all');
    await drawn(page, (now, was) => now.totalB !== was, ranks.totalB);
    assert.match(await page.locator('.flame-said').textContent(), /Per profiler step\./);
    // --link-us is longer in the other run: its devices wait in collectives.
    const runs = await flame(page);
    assert.ok(runs.totalB > runs.total, `${runs.totalB} of the other run, ${runs.total} of this one`);
    await page.waitForFunction(() => /b=other/.test(location.hash));
    await page.locator('.views button[data-view=tree]').click();
    assert.deepEqual((await page.locator('.flame-table thead th').allTextContents()).slice(1, 4), [
      'Total A',
      'Total B',
      'B − A',
    ]);
  }],
  ['flame: what of a link is not there is said, and the rest is shown', async open => {
    const page = await show(open, 'stacks', '?a=77&at=01234567');
    await page.waitForFunction(() => !document.querySelector('.astray').hidden);
    const said = await page.locator('.astray').textContent();
    assert.ok(said.includes('77') && said.includes('at=01234567'), said);
    assert.equal((await flame(page)).root, 0);
  }],
  ['flame: a run without threads of a host has no such page', async open => {
    const page = await open('pipeline', '?lang=en#/overview', {raw: true});
    await page.waitForFunction(() => window.stageline?.page?.() === 'overview');
    assert.ok(!(await page.locator('.pages a').allTextContents()).includes('Flame'));
  }],
  ['flame: a report has it too, of both runs, in both languages', async (open, tools) => {
    const served = await flame(await show(open, 'profiles', '?b=other'));
    const {page, problems} = await openReport(tools.files, reportOf(tools, 'profiles'), '?lang=zh#/flame?b=other');
    await drawn(page);
    const there = await flame(page);
    near(there.total, served.total, 'as the server adds it up');
    near(there.totalB, served.totalB, 'and of the other run');
    assert.equal(await page.locator('.pages a[aria-current]').textContent(), '火焰图');
    assert.deepEqual(problems, []);
  }],
  ['flame: on a phone nothing is wider than the screen, and targets are large enough', async open => {
    for (const view of ['', '/sandwich', '/tree']) {
      const page = await show(open, 'stacks', view, {size: [390, 800]});
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), view);
      const small = await page.locator('.page-flame :is(button, select):visible:not([aria-hidden])').evaluateAll(list =>
        list.filter(one => one.getBoundingClientRect().height < 24).map(one => one.outerHTML)
      );
      assert.deepEqual(small, [], view);
      await page.close();
    }
  }],
];
