// The charts of the answers, each compared with the numbers of its table, in a report: profiles recorded and generated,
// and a cluster of 16 simulated NPUs. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {openReport, reportOf} from './onefile_help.mjs';

const tests = join(dirname(fileURLToPath(import.meta.url)), '..'),
  golden = name => join(tests, 'golden/readers', name, 'input');
const settled = page => page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))');
const texts = (page, selector) => page.$$eval(selector, all => all.map(element => element.textContent));

// Four stages of two replicas and two slices, stage 2 slow.
function cluster({stageline, folder}) {
  const out = join(folder, 'cluster');
  if (!existsSync(out))
    execFileSync(stageline, [
      'simulate',
      '1f1b',
      '--stages',
      '4',
      '--micro-batches',
      '8',
      '--dp',
      '2',
      '--tp',
      '2',
      '--steps',
      '2',
      '--fault',
      'slow-stage:2,1.4',
      '--latency',
      '0.2',
      '--format',
      'ascend',
      '--level',
      '1',
      '-o',
      out,
    ], {stdio: 'ignore'});
  return out;
}
// Two ranks of which the first has three times the tokens.
function experts({folder}) {
  const out = join(folder, 'experts');
  if (!existsSync(out)) execFileSync('python3', [join(tests, 'gen/experts.py'), '-o', out], {stdio: 'ignore'});
  return out;
}
// Four NPUs; nothing says which places they have.
function unplaced({folder}) {
  const out = join(folder, 'unplaced');
  if (!existsSync(out))
    execFileSync('python3', [join(tests, 'gen/ascend_db.py'), out, '--ranks', '4', '--unplaced'], {stdio: 'ignore'});
  return out;
}
const RUNS = {experts, unplaced, shapes: () => golden('kineto-shapes'), profile: () => golden('kineto'),
  both: () => golden('kineto-pipeline'), modules: () => golden('kineto-modules'),
  host: () => join(tests, 'torch/recorded/memory-shapes.trace.json.gz'), cluster};

// Opens the page of a family of answers.
const opener = tools => async (name, family) => {
  const {page, problems} = await openReport(tools.files, reportOf(tools, RUNS[name](tools)),
    `?lang=en#/answers/${family}`);
  await page.waitForFunction(
    wanted => stageline.answers?.().family === wanted && stageline.answers().waiting.length === 0,
    family,
  );
  await page.locator('.answers .topic').first().waitFor();
  assert.deepEqual(problems, []);
  return page;
};

export const cases = [
  ['charts: bars show the numbers of the table', async (_, tools) => {
    const open = opener(tools);
    const page = await open('profile', 'time');
    const bars = await page.$$eval('#topic-breakdown .plot-box:first-of-type tbody tr', rows =>
      rows.map(row => {
        const stack = row.querySelector('.stack').getBoundingClientRect();
        return [...row.querySelectorAll('.stack span')].map(part =>
          part.getBoundingClientRect().width / stack.width * 100
        );
      }));
    const cells = await page.$$eval('#topic-breakdown .plot-box:first-of-type tbody tr', rows =>
      rows.map(row => [...row.querySelectorAll('td:not(.bar)')].map(cell => parseFloat(cell.textContent))));
    bars.forEach((bar, i) => {
      const whole = bar.reduce((a, b) => a + b);
      bar.forEach((width, k) =>
        assert.ok(Math.abs(width / whole * 100 - cells[i][k]) < 0.8, `rank ${i} part ${k}: ${width} ${cells[i][k]}`)
      );
    });
  }],
  ['charts: one rank chosen is chosen everywhere and keeps its place', async (_, tools) => {
    const open = opener(tools);
    const page = await open('profile', 'kernels');
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
  ['charts: arrow keys walk through a chart and a line tells the value', async (_, tools) => {
    const open = opener(tools);
    const page = await open('profile', 'launches');
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
  ['charts: the average step adds up to its length, rank by rank', async (_, tools) => {
    const open = opener(tools);
    for (const file of ['profile', 'host', 'both']) {
      const page = await open(file, 'time');
      const box = page.locator('#topic-breakdown .plot-box', {
        has: page.locator('caption', {hasText: 'The average step of every rank'}),
      });
      const shares = await box.locator('tbody tr').evaluateAll(rows =>
        rows.map(row =>
          [...row.querySelectorAll('td:not(.bar)')].map(cell => cell.textContent).filter(text => text.endsWith('%'))
            .map(parseFloat)
        )
      );
      assert.ok(shares.length > 0, file);
      for (const row of shares) assert.ok(Math.abs(row.reduce((a, b) => a + b) - 100) < 0.5, `${file}: ${row}`);
    }
  }],
  ['charts: steps are stacked by category, and a key names every texture', async (_, tools) => {
    const open = opener(tools);
    const page = await open('profile', 'time');
    const columns = await page.$$eval('#topic-steps .column', all =>
      all.map(column => [...column.children].map(part => part.className)));
    assert.ok(columns.length >= 2 && columns.every(parts => parts.length >= 2), JSON.stringify(columns));
    const key = await page.$$eval('#topic-steps .key b', all => all.map(element => element.className));
    for (const part of columns.flat()) assert.ok(key.includes(part), part);
    const figure = page.locator('#topic-steps figure').first();
    await figure.focus();
    await page.keyboard.press('ArrowRight');
    assert.match(await figure.locator('.readout').textContent(), /^Step \d+: .* = computing .* \+ /);
  }],
  ['charts: operators stand under the roof where their numbers say, the most to gain first', async (_, tools) => {
    const page = await opener(tools)('shapes', 'operators');
    const found = await page.$eval('#topic-roofline figure', figure => {
      const box = figure.querySelector('svg').getBoundingClientRect();
      const at = element => {
        const own = element.getBoundingClientRect();
        return [own.x + own.width / 2 - box.x, own.y + own.height / 2 - box.y];
      };
      return {
        points: [...figure.querySelectorAll('circle')].map(circle => ({at: at(circle), title: circle.textContent})),
        width: box.width,
        roofs: [...figure.querySelectorAll('text')].map(text => text.textContent),
        right: [...figure.querySelectorAll('text')].map(text => text.getBoundingClientRect().right - box.right),
      };
    });
    assert.deepEqual(found.roofs, ['BF16 989 TFLOP/s', 'TF32 495 TFLOP/s', 'FP32 66.9 TFLOP/s']);
    assert.ok(found.right.every(right => right <= 1));
    const rows = await page.$$eval('#topic-roofline .plot-box tbody tr', all =>
      all.map(row => [
        row.querySelector('th').textContent,
        ...[...row.querySelectorAll('td:not(.bar)')].map(cell => cell.textContent),
      ]));
    assert.deepEqual(rows.map(row => row[0].split(' ').slice(0, 2).join(' ')), [
      'aten::bmm BF16',
      'aten::addmm BF16',
      'aten::mm FP32',
      'aten::mm TF32',
      'aten::add [[1024,',
      'aten::mul BF16',
    ]);
    assert.deepEqual(rows.map(row => row[2].replace('\u202f', ' ')), [
      '25.0 %',
      '50.0 %',
      '33.3 %',
      '20.0 %',
      '50.0 %',
      '100.0 %',
    ], 'as planned');
    assert.equal(found.points.length, rows.length);
    // Two points fix each logarithmic scale, and every other point lies on it.
    const numbers = found.points.map((point, i) => ({x: point.at[0], y: point.at[1],
      intensity: Math.log10(parseFloat(rows[i][6])), tflops: Math.log10(parseFloat(rows[i][4]))})
    );
    const [a, b] = [numbers[1], numbers[5]];
    for (const one of numbers) {
      assert.ok(
        Math.abs((one.x - a.x) / (b.x - a.x) - (one.intensity - a.intensity) / (b.intensity - a.intensity)) < .02,
        JSON.stringify(one),
      );
      assert.ok(Math.abs((one.y - a.y) / (b.y - a.y) - (one.tflops - a.tflops) / (b.tflops - a.tflops)) < .02,
        JSON.stringify(one));
    }
    assert.match(found.points[1].title, /^aten::addmm BF16 \[\[4096\].* · 495 TFLOP\/s · 1638 FLOP\/B · 50\.0\u202f%$/);
    assert.match(await page.textContent('#topic-roofline'),
      /took 4\.16\u202fms; at the roof they would take 1\.65\u202fms/);
    // A press on a point leads to the operator's slices, and so does the link of its row.
    const lit = () => page.waitForFunction(() => stageline.state?.().lit?.label === 'aten::addmm');
    await page.locator('#topic-roofline circle').nth(1).click();
    await lit();
    await page.goBack();
    const href = await page.locator('#topic-roofline tbody tr').nth(1).locator('a').getAttribute('href');
    assert.equal(href, '#/timeline?lit=aten::addmm');
  }],
  ['charts: operators by device time with delays and memory; on the host by host time', async (_, tools) => {
    const open = opener(tools);
    const page = await open('profile', 'operators');
    const heads = await texts(page, '#topic-operators thead th');
    for (const head of ['device time', 'host time', 'launch delay', 'device memory'])
      assert.ok(heads.includes(head), head);
    const host = await open('host', 'operators');
    const own = await texts(host, '#topic-operators thead th');
    assert.ok(own.includes('host time') && own.includes('host memory') && !own.includes('device time'), own.join());
    const first = await host.$eval('#topic-operators tbody tr', row => row.textContent);
    assert.match(first, /^aten::/);
  }],
  ['charts: modules are a tree with forward and backward', async (_, tools) => {
    const open = opener(tools);
    const page = await open('modules', 'operators');
    const rows = await texts(page, '#topic-modules tbody tr');
    assert.ok(rows.length >= 1 && rows.length <= 200);
    assert.deepEqual((await texts(page, '#topic-modules thead th')).slice(2), [
      'forward',
      'backward',
      'own',
      'calls',
      'operators',
    ]);
  }],
  ['charts: memory over time is told by arrow keys, and follows the rank', async (_, tools) => {
    const open = opener(tools);
    const page = await open('profile', 'memory');
    const figure = page.locator('#topic-memory figure').first();
    await figure.focus();
    await page.keyboard.press('End');
    await page.keyboard.press('Home');
    assert.match(await figure.locator('.readout').textContent(), /: activations 16\.8\u202fMB/);
    await page.locator('#rank-memory').selectOption('1');
    await settled(page);
    assert.match(await page.textContent('#topic-memory'), /Over time, rank 1 · GPU 1/);
  }],
  ['charts: waiting for messages is told from transfer', async (_, tools) => {
    const open = opener(tools);
    const page = await open('profile', 'communication');
    const heads = await texts(page, '#topic-communication h3');
    assert.deepEqual(heads, ['Waiting and transfer in the average step', 'Collectives by size, all ranks']);
    assert.equal(await page.$('#topic-overlap'), null);
  }],
  ['charts: a strategy is typed for ranks whose places are unknown', async (_, tools) => {
    const page = await opener(tools)('unplaced', 'cluster');
    assert.match(await page.textContent('#topic-rankmap'), /places of the ranks are unknown/);
    assert.equal(await page.locator('#topic-rankmap .place').count(), 0);
    for (const name of ['tp', 'cp', 'ep', 'pp']) assert.equal(await page.inputValue(`#rankmap-${name}`), '');
    await page.fill('#rankmap-pp', '2');
    await page.press('#rankmap-pp', 'Tab');
    assert.equal(await page.textContent('#rankmap-dp'), '2');
    assert.deepEqual(
      await page.$$eval('#topic-rankmap .rank-map tbody tr', list =>
        list.map(row => [...row.querySelectorAll('b')].map(b => b.textContent))),
      [['0', '1'], ['2', '3']],
    );
    await page.click('#rankmap-recorded');
    assert.equal(await page.locator('#topic-rankmap .place').count(), 0);
  }],
  ['charts: the rank map has every rank at its stage, and colours by what is asked', async (_, tools) => {
    const open = opener(tools);
    const page = await open('cluster', 'cluster');
    const rows = await page.$$eval('#topic-rankmap .rank-map tbody tr', list =>
      list.map(row => [...row.querySelectorAll('b')].map(b => b.textContent)));
    assert.deepEqual(rows, [0, 4, 8, 12].map(first => [0, 1, 2, 3].map(i => String(first + i))));
    assert.deepEqual(await page.$$eval('#topic-rankmap thead th', heads => heads.map(head => head.textContent)), [
      'stage',
      'dp 0 · tp 0',
      'dp 0 · tp 1',
      'dp 1 · tp 0',
      'dp 1 · tp 1',
    ]);
    const depth = () => page.$$eval('#topic-rankmap .place i', list => list.map(i => Number(i.style.opacity)));
    const bubble = await depth();
    assert.ok(Math.max(...bubble.slice(8, 12)) < Math.min(...bubble.slice(0, 8)),
      `the slow stage waits least: ${bubble}`);
    await page.selectOption('#rankmap-colour', 'compute_ns');
    const compute = await depth();
    assert.ok(Math.min(...compute.slice(8, 12)) > Math.max(...compute.slice(0, 8)), `and computes longest: ${compute}`);
    // Another strategy redraws it: sizes, the order in which ranks are counted, and what does not divide them is said.
    const drawn = () =>
      page.$$eval('#topic-rankmap .rank-map tbody tr', list =>
        list.map(row => [...row.querySelectorAll('b')].map(b => Number(b.textContent))));
    const type = async (name, value) => {
      await page.fill(`#rankmap-${name}`, String(value));
      await page.press(`#rankmap-${name}`, 'Tab');
    };
    await type('tp', 4);
    await type('pp', 2);
    assert.deepEqual(await drawn(), [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]);
    assert.equal(await page.locator('#topic-rankmap thead th').nth(5).textContent(), 'dp 1 · tp 0');
    await page.selectOption('#rankmap-order', 'pp-tp-cp-dp');
    assert.deepEqual(await drawn(), [[0, 2, 4, 6, 8, 10, 12, 14], [1, 3, 5, 7, 9, 11, 13, 15]]);
    await type('tp', 3);
    assert.match(await page.textContent('#topic-rankmap [role=status]'), /16 ranks cannot be divided/);
    assert.equal((await drawn()).length, 2);
    await page.click('#rankmap-recorded');
    assert.deepEqual(await drawn(), [0, 4, 8, 12].map(first => [0, 1, 2, 3].map(i => first + i)));
    assert.equal(await page.inputValue('#rankmap-tp'), '2');
    await page.fill('#rankmap-find', '9');
    assert.deepEqual(await texts(page, '#topic-rankmap .place.found b'), ['9']);
    // Folded, the largest of each group stands for it, and the rank is found within.
    assert.equal(await page.textContent('#rankmap-dp'), '2');
    const whole = await page.$$eval('#topic-rankmap .place', list =>
      list.map(one => [
        Number(one.querySelector('b')
          .textContent),
        parseFloat(one.querySelector('span').textContent),
      ]));
    await page.selectOption('#rankmap-fold', 'tp');
    const groups = await page.$$eval('#topic-rankmap .place', list =>
      list.map(one => ({ranks: one.dataset.ranks.split(
        ' ',
      ).map(Number), shown: Number(one.querySelector('b').textContent), value: parseFloat(one.querySelector('span')
        .textContent)})
      ));
    assert.deepEqual(groups.map(one => one.ranks), [0, 2, 4, 6, 8, 10, 12, 14].map(first => [first, first + 1]));
    for (const {ranks, shown, value} of groups) {
      assert.ok(ranks.includes(shown));
      assert.equal(value, Math.max(...whole.filter(([rank]) => ranks.includes(rank)).map(([, own]) => own)));
    }
    assert.equal(await page.getAttribute('#topic-rankmap .place.found', 'data-ranks'), '8 9');
    await page.selectOption('#rankmap-fold', '');
    // Ranks outside of a range pale.
    const bound = [...whole].map(([, own]) => own).sort((a, b) => a - b)[8];
    await page.fill('#rankmap-least', String(bound + 0.01));
    const pale = await texts(page, '#topic-rankmap .place.outside b');
    assert.deepEqual(pale.map(Number), whole.filter(([, own]) => own < bound + 0.01).map(([rank]) => rank));
    assert.ok(pale.length > 0 && pale.length < 16);
    await page.fill('#rankmap-least', '');
    assert.equal(await page.locator('#topic-rankmap .place.outside').count(), 0);
    // Experts: neighbours in dp.
    await type('ep', 2);
    assert.match(await page.locator('#topic-rankmap .place').nth(3).getAttribute('title'), /\nep 1\n/);
    await type('ep', 3);
    assert.match(await page.textContent('#topic-rankmap [role=status]'), /or dp by ep/);
    await page.click('#rankmap-recorded');
  }],
  ['charts: the shares of cluster time close', async (_, tools) => {
    const open = opener(tools);
    const page = await open('cluster', 'cluster');
    const shares = await page.$$eval('#topic-cluster .plot tbody tr', rows =>
      rows.map(row =>
        [...row.querySelectorAll('td')].map(cell =>
          cell.textContent
        ).filter(text => /%$/.test(text)).map(parseFloat)
      ));
    assert.equal(shares.length, 16);
    for (const list of shares) assert.ok(Math.abs(list.reduce((a, b) => a + b, 0) - 100) < 0.35, `${list}`);
  }],
  ['charts: the heat map of experts has the tokens of each rank over the mean', async (_, tools) => {
    const open = opener(tools);
    const page = await open('experts', 'cluster');
    const cells = await page.$$eval('#topic-experts table.heat tbody tr', rows =>
      rows.map(row => [...row.querySelectorAll('td')].map(cell => [Number(cell.textContent), cell.title])));
    assert.deepEqual(cells, [Array(2).fill([1.5, '3072']), Array(2).fill([0.5, '1024'])]);
    const heat = await page.$$eval('#topic-experts table.heat td', list =>
      list.map(cell => parseFloat(cell.style.getPropertyValue('--heat'))));
    assert.ok(heat[0] > heat[2], `${heat}`);
  }],
  ['charts: links have heads over their columns, and like links move alike', async (_, tools) => {
    const open = opener(tools);
    const page = await open('cluster', 'communication');
    const heads = await page.$$eval('#topic-links table.heat thead th', list => list.map(head => head.textContent));
    assert.deepEqual(heads.slice(1), [...Array(16).keys()].map(String));
    const ends = await page.$eval('#topic-links table.heat', table => {
      const right = cell => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getBoundingClientRect().right;
      };
      return [right(table.tHead.rows[0].cells[2]), right(table.tBodies[0].rows[0].cells[2])];
    });
    assert.ok(Math.abs(ends[0] - ends[1]) < 1.5, `${ends}`);
    // Waiting for a late rank does not count as transit: replicas' links of every stage are as fast as each other.
    const rates = await page.$$eval('#topic-links table.heat td', cells =>
      cells.map(cell =>
        cell.title.match(/^(\d+) → (\d+): .* ([\d.]+) GB/)
      )
        .filter(found => found && Math.abs(found[1] - found[2]) === 2).map(found => Number(found[3])));
    assert.equal(rates.length, 16);
    assert.ok(Math.max(...rates) < 1.1 * Math.min(...rates), `${rates}`);
  }],
];
