// The page of a profiler trace (tests/golden/readers/kineto/input: two ranks, two steps). Run by run.mjs.
import assert from 'node:assert/strict';

const settled = page => page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))');
const texts = (page, selector) => page.$$eval(selector, all => all.map(element => element.textContent));

export const cases = [
  ['profile: the first screen says what was lost, and to what', async open => {
    const page = await open('profile.html');
    assert.match(await page.textContent('h1'), /a step on average; the devices spend \d+\.\d\u202f% of their time not computing/);
    assert.match(await page.textContent('.lead'), /2 ranks, 2 steps in .*Most of the loss is /);
    const shares = await page.$$eval('.headline .split .part', all => all.map(part => parseFloat(part.title)));
    assert.ok(Math.abs(shares.reduce((a, b) => a + b) - 100) < 0.4, `the span adds up: ${shares}`);
    assert.ok((await page.$$('.find')).length >= 2);
    assert.equal(await page.$('.pipeline'), null, 'no empty pipeline chart');
  }],
  ['profile: one with a pipeline shows its chart, and the topics below', async open => {
    const page = await open('both.html');
    assert.match(await page.textContent('.lead'), /2 stages, 3 micro-batches/);
    assert.ok(await page.evaluate('stageline.cellsDrawn()') > 0, 'cells are drawn');
    const chart = await (await page.$('.pipeline')).boundingBox(), topic = await (await page.$('#topic-breakdown')).boundingBox();
    assert.ok(chart.y + chart.height <= topic.y, 'the pipeline first');
    assert.ok((await texts(page, '.find h3, .find')).join(' ').match(/bubble/), 'findings of the pipeline');
    assert.equal(new Set(await page.$$eval('[id]', all => all.map(e => e.id))).size, (await page.$$('[id]')).length, 'ids are unique');
  }],
  ['profile: every topic has a chart, how it is made, and its tables', async open => {
    const page = await open('profile.html');
    const topics = await page.$$eval('.topic', all => all.map(topic => topic.id));
    for (const id of ['breakdown', 'steps', 'operators', 'kernels', 'memory', 'communication', 'idle', 'launches', 'annotations'])
      assert.ok(topics.includes(`topic-${id}`), id);
    for (const topic of await page.$$('.topic')) {
      assert.ok((await (await topic.$('.how')).textContent()).length > 40);
      assert.ok(await topic.$('.fold'), 'its tables');
      assert.ok(await topic.$('.plot, figure'), 'its chart');
    }
    assert.equal(new Set(await page.$$eval('[id]', all => all.map(e => e.id))).size, (await page.$$('[id]')).length, 'ids are unique');
  }],
  ['profile: bars show the numbers of the table', async open => {
    const page = await open('profile.html');
    const bars = await page.$$eval('#topic-breakdown .plot-box:first-of-type tbody tr', rows => rows.map(row => {
      const stack = row.querySelector('.stack').getBoundingClientRect();
      return [...row.querySelectorAll('.stack span')].map(part => part.getBoundingClientRect().width / stack.width * 100);
    }));
    const cells = await page.$$eval('#topic-breakdown .plot-box:first-of-type tbody tr', rows => rows.map(row => [...row.querySelectorAll('td:not(.bar)')].map(cell => parseFloat(cell.textContent))));
    bars.forEach((bar, i) => {
      const whole = bar.reduce((a, b) => a + b);
      bar.forEach((width, k) => assert.ok(Math.abs(width / whole * 100 - cells[i][k]) < 0.8, `rank ${i} part ${k}: ${width} ${cells[i][k]}`));
    });
  }],
  ['profile: a table that no section knows stands below, unknown words and all', async open => {
    const page = await open('profile.html');
    await page.click('#table-moon-phases summary');
    await page.waitForSelector('#table-moon-phases td');  // made when opened
    assert.match(await page.textContent('#table-moon-phases'), /waxing/);
    assert.equal(await page.$('.tables #table-kernels'), null, 'what a section shows is not there twice');
  }],
  ['profile: one rank chosen is chosen everywhere and keeps its place', async open => {
    const page = await open('profile.html');
    const all = await page.textContent('#topic-kernels .donut .middle');
    const select = page.locator('#rank-kernels');
    await select.scrollIntoViewIfNeeded();
    await select.focus();
    const before = (await select.boundingBox()).y;
    await select.selectOption('1');
    await settled(page);
    assert.notEqual(await page.textContent('#topic-kernels .donut .middle'), all);
    assert.equal(await page.inputValue('#rank-annotations'), '1');
    assert.ok(Math.abs((await select.boundingBox()).y - before) <= 1);
    assert.equal(await page.evaluate('document.activeElement.id'), 'rank-kernels');
    await page.click('#lang');
    assert.equal(await page.inputValue('#rank-kernels'), '1', 'another language keeps it');
  }],
  ['profile: arrow keys walk through a chart and a line tells the value', async open => {
    const page = await open('profile.html');
    const figure = page.locator('#topic-launches figure');
    await figure.focus();
    await page.keyboard.press('ArrowRight');
    assert.match(await figure.locator('.readout').textContent(), /^0 – 1\u202fµs: \d+ launch/);
    await page.keyboard.press('End');
    assert.match(await figure.locator('.readout').textContent(), /launches, \d/);
    await page.keyboard.press('Escape');
    assert.match(await figure.locator('.readout').textContent(), /arrow keys/);
    const height = (await figure.boundingBox()).height;
    await page.mouse.move(...await figure.boundingBox().then(box => [box.x + box.width / 2, box.y + 40]));
    assert.equal((await figure.boundingBox()).height, height, 'nothing shifts');
  }],
  ['profile: in Chinese nothing is left in English but names', async open => {
    const page = await open('profile.html', '?lang=zh');
    const words = [...await texts(page, 'h1, .lead, .find h3, h2, h3, .how, .method p, .topics a, .plot thead th, .facts dt, .key li')].filter(Boolean);
    for (const text of words) {
      const rest = text.replace(/NVIDIA H100 80GB HBM3|Tensor Core|GPU \d|autograd|num_workers|prefetch_factor|persistent_workers|DataLoader|SM|rank|kernel|ProfilerStep|profiler step|Rank|aten|CUDA Graph|torch\.compile|correlation|stageline analyze|--[a-z-]+|GB\/s|[µmn]?s\b|[\d.,%×–\s\u202f]/g, '');
      if (/[A-Za-z]{3}/.test(rest)) assert.fail(`English: ${text}`);
    }
    assert.deepEqual(await page.evaluate('stageline.missingKeys()'), []);
    for (const summary of await page.$$('.fold summary')) await summary.click();
  }],
  ['profile: the average step adds up to its length, rank by rank', async open => {
    for (const file of ['profile.html', 'host.html', 'both.html']) {
      const page = await open(file);
      const box = page.locator('#topic-breakdown .plot-box', {has: page.locator('caption', {hasText: 'The average step of every rank'})});
      const shares = await box.locator('tbody tr').evaluateAll(rows =>
        rows.map(row => [...row.querySelectorAll('td:not(.bar)')].map(cell => cell.textContent).filter(text => text.endsWith('%')).map(parseFloat)));
      assert.ok(shares.length > 0, file);
      for (const row of shares) assert.ok(Math.abs(row.reduce((a, b) => a + b) - 100) < 0.5, `${file}: ${row}`);
    }
  }],
  ['profile: steps are stacked by category, and a key names every texture', async open => {
    const page = await open('profile.html');
    const columns = await page.$$eval('#topic-steps .column', all => all.map(column => [...column.children].map(part => part.className)));
    assert.ok(columns.length >= 2 && columns.every(parts => parts.length >= 2), JSON.stringify(columns));
    const key = await page.$$eval('#topic-steps .key b', all => all.map(element => element.className));
    for (const part of columns.flat()) assert.ok(key.includes(part), part);
    const figure = page.locator('#topic-steps figure').first();
    await figure.focus();
    await page.keyboard.press('ArrowRight');
    assert.match(await figure.locator('.readout').textContent(), /^Step \d+: .* = computing .* \+ /);
  }],
  ['profile: operators by device time with delays and memory; on the host by host time', async open => {
    const page = await open('profile.html');
    const heads = await texts(page, '#topic-operators thead th');
    for (const head of ['device time', 'host time', 'launch delay', 'device memory']) assert.ok(heads.includes(head), head);
    const host = await open('host.html');
    const own = await texts(host, '#topic-operators thead th');
    assert.ok(own.includes('host time') && own.includes('host memory') && !own.includes('device time'), own.join());
    const first = await host.$eval('#topic-operators tbody tr', row => row.textContent);
    assert.match(first, /^aten::/);
    assert.match(await host.textContent('h1'), /^No device work was recorded/);
    assert.ok(await host.$('.headline .part'), 'the host has parts');
    assert.equal((await host.$$('.find')).length, 1);
  }],
  ['profile: kernels say whether they use tensor cores, and how full the device was', async open => {
    const page = await open('profile.html');
    const heads = await texts(page, '#topic-kernels .kernels thead th');
    assert.ok(heads.includes('tensor cores') && heads.includes('occupancy'), heads.join());
    assert.ok((await texts(page, '#topic-kernels .kernels tbody td')).includes('yes'));
    assert.match(await page.textContent('#topic-breakdown'), /SM efficiency/);
  }],
  ['profile: modules are a tree with forward and backward', async open => {
    const page = await open('modules.html');
    const rows = await texts(page, '#topic-modules tbody tr');
    assert.ok(rows.length >= 1 && rows.length <= 200);
    assert.deepEqual((await texts(page, '#topic-modules thead th')).slice(2), ['forward', 'backward', 'own', 'calls', 'operators']);
  }],
  ['profile: memory over time is told by arrow keys, and follows the rank', async open => {
    const page = await open('profile.html');
    const figure = page.locator('#topic-memory figure').first();
    await figure.focus();
    await page.keyboard.press('End');
    await page.keyboard.press('Home');
    assert.match(await figure.locator('.readout').textContent(), /: activations 16\.8\u202fMB/);
    await page.locator('#rank-memory').selectOption('1');
    await settled(page);
    assert.match(await page.textContent('#topic-memory'), /Over time, rank 1 · GPU 1/);
  }],
  ['profile: communication is split once, and waiting is told from transfer', async open => {
    const page = await open('profile.html');
    const heads = await texts(page, '#topic-communication h3');
    assert.deepEqual(heads, ['The average step', 'Waiting and transfer in the average step', 'Collectives by size, all ranks']);
    assert.ok(await page.$('#topic-communication #table-comm-comp-overlap'), 'one section for both');
    assert.equal(await page.$('#topic-overlap'), null);
    assert.equal(await page.$('#table-recommendations'), null, 'findings say it');
  }],
  ['profile: of 1500 ranks a chart has 200 rows and says so, the table has all', async open => {
    const page = await open('many.html');
    assert.equal((await page.$$('#topic-breakdown .plot tbody tr')).length, 200);
    assert.match(await page.textContent('#topic-breakdown'), /The first 200 of 1500; the table below has them all/);
    assert.match(await page.textContent('#table-temporal-breakdown summary'), /1500 rows/);
  }],
  ['profile: nothing overflows sideways, in both themes', async open => {
    for (const [file, dark] of [['profile.html', false], ['profile.html', true], ['modules.html', false], ['both.html', true], ['host.html', false]]) {
      const page = await open(file, '?lang=en', {dark});
      for (const width of [1320, 900, 660, 420]) {
        await page.setViewportSize({width, height: 900});
        await settled(page);
        assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `at ${width} px`);
      }
    }
  }],
];
