// `stageline view` without a run: a page on which runs are opened by path, from a list, by dropping them; two are
// compared, four form a trend. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {poorContrast} from './viewer_help.mjs';

const begin = async (open, query = '?lang=en', options = {}, name = 'start') => {
  const page = await open(name, query, {...options, first: true});
  await page.waitForFunction(() => window.stageline?.start?.().folder);
  return page;
};
const overview = page => page.waitForFunction(() => window.stageline?.overviewReady?.());
const row = (page, name) => page.locator('.start-files tr', {hasText: name});
const choose = async (page, names) => {
  for (const name of names) await row(page, name).getByRole('checkbox').check();
};
const trendOf = root => [1, 2, 3, 4].map(k => `path=${encodeURIComponent(join(root, `run-${k}`))}`).join('&');

export const cases = [
  [
    "start: a folder is listed, says which formats it holds, opens a run, and is a run's way back",
    async (open, {runs}) => {
      const page = await begin(open), root = runs.start[1];
      await row(page, 'run-2').getByRole('button', {name: 'Open', exact: true}).waitFor();
      assert.match(await row(page, 'run-2').textContent(), /paddle-log, 4 files/);
      assert.equal(await row(page, 'notes').getByRole('button').count(), 0, 'a folder without a run is no run');
      await row(page, 'run-2').getByRole('button', {name: 'Open', exact: true}).click();
      await overview(page);
      assert.match(page.url(), /\/runs\/\d+\//);
      assert.equal(await page.textContent('.top .run').then(text => text.split(' ')[0]), 'run-2');
      assert.deepEqual(await page.evaluate(() => stageline.run.paths), [join(root, 'run-2')]);
      await page.click('a.logo');
      await page.waitForFunction(() => window.stageline?.start?.().folder);
      assert.match(await page.textContent('.start-recent'), /run-2/);
      await page.locator('.start-recent button').first().click();
      await overview(page);
      await page.goBack();
      await page.waitForFunction(() => window.stageline?.start?.().folder);
      await row(page, 'run-2').getByRole('link').click();
      await page.waitForFunction(() => window.stageline.start().folder.path.endsWith('run-2'));
      await page.getByRole('button', {name: 'Open this folder as one run (paddle-log)'}).waitFor();
      await page.getByRole('link', {name: 'Up'}).click();
      await page.waitForFunction(() => window.stageline.start().folder.path.endsWith('job'));
    },
  ],
  ['start: paths lead below the root and nowhere else', async (open, {runs}) => {
    const page = await begin(open, '?lang=en', {complaints: true}), root = runs.start[1],
      field = page.getByRole('textbox');
    for (const path of ['/etc', '/etc/passwd', '../..', `${root}/..`, `${root}/../pipeline`, `${root}/nothing`]) {
      await field.fill(path);
      await field.press('Enter');
      await page.waitForFunction(wanted => document.querySelector('.notice')?.textContent.includes(wanted),
        `"${path}" is not below a folder that may be read`);
    }
    await field.fill('run-3'); // from the root
    await field.press('Enter');
    await overview(page);
  }],
  ['start: two runs that are chosen are compared, the older one first', async open => {
    const page = await begin(open);
    await choose(page, ['run-4', 'run-1']);
    await page.getByRole('button', {name: 'Compare'}).click();
    await page.waitForFunction(() => window.stageline?.compared?.());
    assert.equal(await page.evaluate(() => stageline.page()), 'compare', 'two runs open on what differs');
    assert.match(await page.textContent('.top .run'), /^A run-1 ⇄ B run-4 · /);
    assert.match(await page.textContent('.page-compare'), /run-1[\s\S]*run-4/);
    const said = await page.textContent('.page-compare h1');
    await page.click('#page-overview');
    await overview(page);
    await page.waitForFunction(words => document.querySelector('.changed')?.textContent.startsWith(words), said);
    await page.click('.changed a');
    await page.waitForFunction(() => stageline.page() === 'compare');
  }],
  [
    'start: a second run is added to one that is open, by its path, from the recent ones, or dropped',
    async (open, {runs}) => {
      const page = await begin(open), root = runs.start[1], field = page.getByRole('textbox');
      await field.fill('run-4');
      await field.press('Enter');
      await overview(page);
      const alone = async () => {
        await page.goto(new URL('../../?lang=en', page.url()).href);
        await page.waitForFunction(() => window.stageline?.start?.().folder);
        await row(page, 'run-1').getByRole('button', {name: 'Open', exact: true}).click();
        await overview(page);
        await page.click('#page-compare');
        await page.waitForFunction(() => window.stageline?.compared?.());
      };
      const compared = async title => {
        await page.waitForFunction(() => window.stageline?.run?.other && window.stageline.compared?.());
        assert.match(await page.textContent('.top .run'), new RegExp(`^A run-1 ⇄ B ${title} · `));
        assert.equal(await page.evaluate(() => stageline.page()), 'compare');
      };
      await alone();
      await page.getByRole('textbox').fill('run-3');
      await page.getByRole('textbox').press('Enter');
      await compared('run-3');
      await alone();
      await page.locator('.compare-add').getByRole('button', {name: 'run-4', exact: true}).click();
      await compared('run-4');
      await alone();
      const files = readdirSync(join(root, 'run-2')).map(
        name => [name, readFileSync(join(root, 'run-2', name), 'utf8')],
      );
      await page.evaluate(list => {
        const data = new DataTransfer();
        for (const [name, text] of list) data.items.add(new File([text], name));
        document.querySelector('.compare-add').dispatchEvent(
          new DragEvent('drop', {dataTransfer: data, bubbles: true}),
        );
      }, files);
      await compared('\\S.*');
    },
  ],
  [
    'start: of four runs the one that became slower is marked, by the numbers of diff',
    async (open, {stageline, runs}) => {
      const page = await begin(open), root = runs.start[1];
      await choose(page, ['run-1', 'run-2', 'run-3', 'run-4']);
      await page.getByRole('link', {name: 'Trend'}).click();
      await page.waitForFunction(() => window.stageline.start().trend);
      const trend = await page.evaluate(() => stageline.start().trend);
      for (let k = 1; k < 4; ++k) {
        const said = JSON.parse(
          execFileSync(stageline, ['diff', join(root, `run-${k}`), join(root, `run-${k + 1}`), '--json'], {
            encoding: 'utf8',
          }),
        );
        assert.deepEqual([trend.runs[k].diff.change_ns, trend.runs[k].diff.beyond_noise], [
          said.change_ns,
          said.beyond_noise,
        ], `run-${k + 1}`);
        const explained = JSON.parse(
          execFileSync(stageline, ['explain', join(root, `run-${k + 1}`), '--json'], {encoding: 'utf8'}),
        );
        assert.ok(Math.abs(trend.runs[k].step_ns - explained.step_ns) < 1,
          `${trend.runs[k].step_ns} and ${explained.step_ns}`);
      }
      assert.deepEqual(trend.runs.map(run => !!run.diff.beyond_noise && run.diff.change_ns > 0), [
        false,
        false,
        false,
        true,
      ]);
      assert.match(await page.textContent('h1'), /^run-4 is \d+\.\d\u202f% slower per step than the previous run$/);
      assert.match(await page.textContent('.lead'), /stage 2/i);
      assert.equal(await page.locator('.trend .slower circle').count(), 1);
      await page.locator('.trend-table tr', {hasText: 'run-4'}).getByRole('button', {name: 'Compare'}).click();
      await page.waitForFunction(() => window.stageline?.compared?.());
      assert.equal(await page.evaluate(async () => (await (await fetch('api/answers')).json()).other.title), 'run-4');
    },
  ],
  ['start: of twelve runs the one from which on they are slower is marked, with both levels', async open => {
    const page = await begin(open, '?lang=en', {}, 'jobs'), names = Array.from({length: 12}, (_, i) =>
      `run-${String(i + 1).padStart(2, '0')}`);
    await choose(page, names);
    await page.getByRole('link', {name: 'Trend'}).click();
    await page.waitForFunction(() => window.stageline.start().trend);
    const {runs, changes} = await page.evaluate(() => stageline.start().trend), mean = list =>
      list.reduce((sum, run) => sum + run.step_ns, 0) / list.length;
    assert.deepEqual([runs.length, changes.length, changes[0]?.at], [12, 1, 6]);
    assert.ok(
      Math.abs(changes[0].before_ns / mean(runs.slice(0, 6)) - 1) < 0.01 &&
        Math.abs(changes[0].after_ns / mean(runs.slice(6)) - 1) < 0.01,
      JSON.stringify(changes),
    );
    assert.match(await page.textContent('h1'), /run-07/);
    assert.match(await page.textContent('.lead'), /stage 1/i);
    assert.deepEqual(
      await page.evaluate(() =>
        ['.trend circle', '.trend .level', '.trend .cut.slower', '.trend-table tr.cut'].map(one =>
          document.querySelectorAll(one).length
        )
      ),
      [12, 2, 1, 1],
    );
    assert.match(await page.textContent('.trend-table tr.cut'), /run-07/);
  }],
  ['start: files that are dropped are read, and what is no run is said', async (open, {runs}) => {
    const page = await begin(open, '?lang=en', {complaints: true});
    const drop = files =>
      page.evaluate(list => {
        const data = new DataTransfer();
        for (const [name, text] of list) data.items.add(new File([text], name));
        document.querySelector('.start').dispatchEvent(
          new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}),
        );
      }, files);
    await drop([0, 1, 2, 3].map(k => [`workerlog.${k}`, readFileSync(join(runs.pipeline, `workerlog.${k}`), 'utf8')]));
    await overview(page);
    assert.deepEqual(await page.evaluate(() => [stageline.run.ranks.length, stageline.run.paths]), [4, [
      'workerlog.0',
    ]]);
    await page.goBack();
    await page.waitForFunction(() => window.stageline?.start?.().folder);
    await drop([['notes.txt', 'this is no trace']]);
    await page.waitForFunction(() => /could not be read/.test(document.querySelector('h1')?.textContent ?? ''));
    await page.getByRole('link', {name: 'Open another run'}).click();
    await page.waitForFunction(() => window.stageline?.start?.().folder);
  }],
  [
    'start: both themes, both languages and a phone: readable, nothing too wide, targets large enough',
    async (open, {runs}) => {
      let page;
      for (const lang of ['en', 'zh'])
        for (const dark of [false, true])
          for (const hash of ['', `#/trend?${trendOf(runs.start[1])}`]) {
            page = await open('start', `?lang=${lang}${hash}`, {first: true, dark, again: page});
            await page.waitForFunction(trend => {
              const now = window.stageline?.start?.();
              return now && (trend ? now.trend : now.folder && Object.keys(now.looks).length > 4);
            }, hash !== '');
            assert.deepEqual(await poorContrast(page), [], `${lang} ${dark} ${hash}`);
            for (const [width, height] of [[1440, 900], [390, 844]]) {
              await page.setViewportSize({width, height});
              assert.equal(
                await page.evaluate(() => document.querySelector('main').getBoundingClientRect().right <= innerWidth),
                true,
                `${lang} ${width}`,
              );
              const small = await page.evaluate(() =>
                [...document.querySelectorAll('main :is(button, a, input)')].filter(one =>
                  one.getClientRects().length > 0
                )
                  .map(one => [one.textContent || one.name || one.type, one.getBoundingClientRect()]).filter((
                    [, box],
                  ) => box.height < 18).map(([text]) => text)
              );
              assert.deepEqual(small, []);
            }
            await page.setViewportSize({width: 1440, height: 900});
          }
    },
  ],
];
