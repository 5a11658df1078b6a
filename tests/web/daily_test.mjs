// What people open the viewer for every day, each in at most two clicks from opening: the slow stage, why step 12 is
// slow, before and after, a picture for someone else, and whether communication is exposed. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';

const first = async (open, run) => {
  const page = await open(run, '?lang=en', {first: true});
  await page.waitForFunction(() => window.stageline?.overviewReady?.() || window.stageline?.compared?.());
  return page;
};
// A click on the bar of a step, as soon as the bar has a place on the page.
async function clickStep(page, number) {
  const drawn = await page.waitForFunction(step => {
    const box = document.querySelector(`.steps rect[data-step="${step}"]`)?.getBoundingClientRect();
    return box?.height && {x: box.x + box.width / 2, y: box.bottom - 2};
  }, number);
  const {x, y} = await drawn.jsonValue();
  await page.mouse.click(x, y);
}

export const cases = [
  ['daily: the slow stage is named by the first line, and one click shows it', async open => {
    const page = await first(open, 'slower');
    assert.match(await page.innerText('h1'), /^Stage 3 .*is slow/);
    await page.click('.find h3 a');
    await page.waitForFunction(() => stageline.page() === 'pipeline' && stageline.pipeline?.scene() === 'stage.slow');
    // Of torch it is a rank; its waiting is painted after one click.
    const torch = await first(open, 'twelfthOfTorch');
    assert.match(await torch.innerText('h1'), /^Rank 1 arrives last/);
    await torch.click('.find h3 a');
    await torch.waitForFunction(() => stageline.page() === 'timeline' && stageline.state().scene !== null);
    const lit = await torch.evaluate(() =>
      stageline.state().scene.lanes.map(lane => stageline.run.ranks[stageline.run.lanes[lane].rank_index].rank)
    );
    assert.deepEqual([...new Set(lit)], [1]);
  }],
  ['daily: one click says why step 12 is slow, of a pipeline and of torch', async open => {
    const page = await first(open, 'twelfth');
    await clickStep(page, 12);
    await page.waitForFunction(() => stageline.page() === 'pipeline');
    await page.waitForFunction(() =>
      /Step 12 is [\d.]+\u202fms slower than step \d+\. Stage \d differs most/.test(
        document.querySelector('.page-pipeline').textContent,
      )
    );
    const torch = await first(open, 'twelfthOfTorch');
    await torch.waitForFunction(() => document.querySelector('.profile-picture canvas'));
    await clickStep(torch, 12);
    await torch.waitForFunction(() => document.querySelector('.step-words')?.textContent);
    const words = await torch.textContent('.step-words');
    const [, longer, grew] =
      /^Step 12 is ([\d.]+)\u202fms longer than step \d+, a typical one\. Input grew most: \+([\d.]+)\u202fms\.$/
        .exec(words) ?? assert.fail(words);
    // The delay is 25 ms of every twelfth step; other steps load for less.
    assert.ok(Number(longer) > 10 && Math.abs(Number(grew) - 25) < 3, words);
    await torch.waitForFunction(() => /overview\?step=12/.test(location.hash));
    const again = await open('twelfthOfTorch', '?lang=en#/overview?step=12', {raw: true});
    await again.waitForFunction(text => document.querySelector('.step-words')?.textContent === text, words);
  }],
  ['daily: two runs open on what changed', async open => {
    for (const [run, says] of [['compared', /slower|longer|\+/], ['profiles', /slower|longer|\+/]]) {
      const page = await first(open, run);
      assert.equal(await page.evaluate(() => stageline.page()), 'compare');
      await page.waitForFunction(() => document.querySelector('.effects'));
      assert.match(await page.innerText('.compare h1'), says, run);
    }
  }],
  ['daily: a picture is two clicks away', async open => {
    for (const run of ['slower', 'twelfthOfTorch']) {
      const page = await first(open, run);
      await page.click('#page-timeline');
      await page.waitForFunction(() => stageline.frames?.() > 0 && stageline.settled());
      for (const hash of ['timeline', 'overview']) {
        await page.evaluate(to => {
          location.hash = `#/${to}`;
        }, hash);
        await page.waitForFunction(to => stageline.page() === to, hash);
        await page.click('#share-open'); // one
        const buttons = await page.$$eval('#share button:not([disabled])', all => all.map(one => one.id));
        const how = buttons.includes('share-png') ? 'share-png' : 'share-print';
        if (how === 'share-print') {
          await page.evaluate(() => {
            window.print = () => {
              window.printed = true;
            };
          });
          await page.click('#share-print'); // two
          await page.waitForFunction(() => window.printed);
        } else {
          const [file] = await Promise.all([page.waitForEvent('download'), page.click('#share-png')]); // two
          assert.ok(readFileSync(await file.path()).length > 5000);
        }
        await page.waitForFunction(() => !document.querySelector('#share'));
      }
    }
  }],
  ['daily: whether communication is exposed is in a bar of the first screen', async open => {
    for (const [run, bar] of [['twelfthOfTorch', '.headline'], ['ascend', '.device-time']]) {
      const page = await first(open, run);
      await page.waitForSelector(`${bar} .part[data-part=comm]`, {state: 'attached'});
      assert.match(await page.textContent(bar), /[\d.]+\u202f% exposed communication/, run);
    }
  }],
];
