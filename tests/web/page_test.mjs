// The shared properties of all pages: bars to scale, distinguishable colours, targets, a server that goes and comes
// back. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {apart, contrast, visions} from './colours.mjs';
import {chosen, clickSlice, resize, settle} from './viewer_help.mjs';
import {show} from './pipeline_help.mjs';

const overview = async (open, run, query = '?lang=en', options = {}) => {
  const page = await open(run, query, {...options, first: true});
  await page.waitForFunction(() => window.stageline?.overviewReady?.());
  return page;
};
// Widths as drawn against shares as said, and whether a text is cut.
const barOf = (page, at) =>
  page.$eval(`${at} .split`, bar => {
    const whole = bar.clientWidth, seen = one => getComputedStyle(one).visibility !== 'hidden';
    return {whole, parts: [...bar.children].map(part => {
      const box = part.getBoundingClientRect();
      return {title: part.title, width: box.width,
        texts: [...part.querySelectorAll('b, span')].filter(seen).map(text => {
          const {left, right} = text.getBoundingClientRect();
          return {text: text.textContent, inside: left >= box.left && right <= box.right};
        })};
    }),
      below: [...bar.parentElement.querySelectorAll('ul.small:not(.none) li:not(.in-bar)')].map(one =>
        one.textContent
      )};
  });
function toScale({whole, parts, below}, shares, where) {
  const drawn = shares.filter(share => share > 0), sum = Math.max(1, drawn.reduce((all, share) => all + share, 0));
  assert.equal(parts.length, drawn.length);
  drawn.forEach((share, i) =>
    assert.ok(Math.abs(parts[i].width - share / sum * whole) < 0.6,
      `${where}, ${parts[i].title}: ${parts[i].width} of ${whole} for ${share}`)
  );
  for (const part of parts) for (const {text, inside} of part.texts) assert.ok(inside, `${where}: "${text}" is cut`);
  const inside = parts.filter(part => part.texts.length === 2).length;
  assert.equal(below.length, shares.filter(share => Math.abs(share) >= 0.0005).length - inside,
    `${where}: what has no room stands below`);
}

export const cases = [
  ['short names of charts are one line on a wide window', async open => {
    const page = await open('profile', '?lang=en#/answers/critical', {raw: true});
    await page.waitForFunction(() => stageline.answers?.().family && stageline.answers().waiting.length === 0);
    const lines = await page.evaluate(() =>
      [...document.querySelectorAll('.plot tbody th.short')].map(one => {
        const range = document.createRange();
        range.selectNodeContents(one);
        return new Set([...range.getClientRects()].map(({top}) => Math.round(top))).size;
      })
    );
    assert.ok(lines.length > 5, String(lines));
    assert.deepEqual(lines.filter(count => count !== 1), []);
  }],
  ['names of kernels on the Overview are cut in the middle, at every width', async open => {
    const page = await overview(open, 'profiles', '?lang=en#/overview');
    await page.waitForFunction(() => window.stageline.overviewWhole() && document.querySelector('.profile-bars .mid'));
    for (const width of [1440, 700, 390]) {
      await resize(page, width, 800);
      const names = await page.$$eval('.profile-bars th:has(.mid)', list =>
        list.map(one => {
          const [head, tail] = one.querySelectorAll('.mid span');
          return {whole: one.title.includes(tail.textContent.trim().slice(-8)),
            isCut: head.scrollWidth > head.clientWidth,
            inside: tail.getBoundingClientRect().right <= one.getBoundingClientRect().right + 0.5};
        }));
      assert.ok(names.some(name => name.isCut), `${width} px`);
      assert.deepEqual(names.filter(name => !name.inside || !name.whole), [], `${width} px`);
    }
  }],
  ['names in charts and buttons are whole on a phone', async open => {
    const cut = selector =>
      [...document.querySelectorAll(selector)].filter(one =>
        one.getClientRects().length > 0 &&
        (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)
      ).map(one => one.textContent);
    const answers = await open('profile', '?lang=en#/answers/critical', {size: [360, 740], raw: true});
    await answers.waitForFunction(() => stageline.answers?.().family && stageline.answers().waiting.length === 0);
    assert.ok(await answers.locator('.plot tbody th.text').count() > 5);
    assert.deepEqual(await answers.evaluate(cut, '.plot tbody th.text:not([title])'), []);
    const pipeline = await open('slower', '?lang=en#/pipeline?step=1', {size: [360, 740], raw: true});
    await pipeline.waitForFunction(() => stageline.pipeline?.frames?.() > 0);
    assert.deepEqual(await pipeline.evaluate(cut, '.controls button'), []);
  }],
  ['the bar of a span is to scale, and no text in it is cut: both pages, every width, both languages', async open => {
    let page;
    for (const [run, lang] of [['slower', 'en'], ['profile', 'zh']]) {
      page = await overview(open, run, `?lang=${lang}`, {again: page});
      const shares = await page.evaluate(async () =>
        (await (await fetch('api/explain')).json()).parts.map(part => part.share)
      );
      for (const width of [1440, 1000, 700, 390]) {
        await resize(page, width, 800);
        toScale(await barOf(page, '.headline'), shares, `${run}, ${lang}, ${width} px`);
      }
    }
    page = await show(open, 'slower', '?step=1');
    for (const width of [1440, 800, 390]) {
      await resize(page, width, 800);
      const bar = await barOf(page, '.page-pipeline .step-words');
      const sum = bar.parts.reduce((all, part) => all + Number(/([\d.]+)\s*%/.exec(part.title)[1]), 0);
      for (const part of bar.parts) {
        const share = Number(/([\d.]+)\s*%/.exec(part.title)[1]);
        assert.ok(Math.abs(part.width / bar.whole - share / Math.max(100, sum)) < 0.0012,
          `${part.title}: ${part.width} of ${bar.whole}`);
        for (const {text, inside} of part.texts) assert.ok(inside, `"${text}" is cut`);
      }
    }
  }],
  ['numbers that carry the name of a figure are that figure', async open => {
    let page;
    for (const run of ['slower', 'profile']) {
      page = await overview(open, run, '', {again: page});
      await page.waitForSelector('.glossary');
      const {known, shown} = await page.evaluate(async () => ({
        known: (await (await fetch('api/figures')).json()).figures.map(figure => [figure.name, figure.value]),
        shown: [...document.querySelectorAll('[data-value]')].map(({dataset}) => [dataset.figure, dataset.value]),
      }));
      const values = new Map(known);
      assert.ok(shown.length > known.length, `${run}: ${shown.length} numbers with a name`);
      for (const [name, value] of shown) {
        assert.ok(values.has(name), `${run}: ${name} is no figure`);
        const own = values.get(name);
        if (own === null) assert.equal(value, '', name);
        else assert.ok(Math.abs(Number(value) - own) <= 0.5 + 1e-9 * Math.abs(own),
            `${run}: ${name}: ${value}, not ${own}`);
      }
    }
  }],
  ['parts of a span are told apart with any kind of colour vision, and carry white text', async open => {
    const names = ['compute', 'bubble', 'imbalance', 'jitter', 'comm', 'replicas', 'tail', 'rest', 'memory'];
    let page;
    for (const dark of [false, true]) {
      page = await overview(open, 'slower', '?lang=en', {dark, again: page});
      const colours = await page.evaluate(
        list => list.map(name => getComputedStyle(document.documentElement).getPropertyValue(`--part-${name}`).trim()),
        names,
      );
      for (const [i, a] of colours.entries()) {
        assert.ok(contrast(a, '#ffffff') >= 4.5, `white on ${names[i]}: ${contrast(a, '#ffffff')}`);
        for (const [k, b] of colours.entries())
          for (const vision of visions) {
            if (k <= i) continue;
            const least = names[i] === 'bubble' && names[k] === 'imbalance' ? 25 : 14, delta = apart(a, b, vision);
            assert.ok(delta >= least, `${names[i]} and ${names[k]}, ${vision}: ${delta}`);
          }
      }
    }
  }],
  ['a server that goes is said, and what was asked comes when it is back', async (open, {context}) => {
    const page = await open('pipeline', '?lang=en', {complaints: true});
    await context.setOffline(true);
    await page.keyboard.press('2');
    await page.waitForFunction(() =>
      document.querySelector('.away:not([hidden])')?.textContent.includes('does not respond')
    );
    assert.match(await page.innerText('.away code'), /^stageline view \//);
    await context.setOffline(false);
    await page.waitForFunction(() => document.querySelector('.away[hidden]'));
    await settle(page);
    assert.equal(await page.evaluate(() => stageline.error()), '');
    assert.ok(await page.evaluate(() => stageline.slices(stageline.run.lanes[0].id).length) > 0);
  }, {alone: true}],
  ['the drawer is as high as one wants it, by pointer and keys, and stays so', async open => {
    const page = await open('pipeline');
    await page.keyboard.press('2');
    await clickSlice(page, 0, 1);
    await chosen(page);
    const high = () => page.$eval('.panel', one => one.offsetHeight),
      handle = await page.locator('.panel-handle').boundingBox();
    await page.mouse.move(700, handle.y + 4);
    await page.mouse.down();
    await page.mouse.move(700, 400);
    await page.mouse.up();
    await page.waitForFunction(() => Math.abs(document.querySelector('.panel').offsetHeight - 500) < 12);
    await page.focus('.panel-handle');
    const before = await high();
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(was => document.querySelector('.panel').offsetHeight < was - 30, before);
    const kept = await high();
    assert.equal(await page.evaluate(() => stageline.state().selected !== null), true,
      "the arrow was the drawer's, not the timeline's");
    // The address follows a moment after what is chosen.
    await page.waitForFunction(() => /[?&]sel=/.test(location.hash));
    const again = await open('pipeline', `?lang=en${await page.evaluate(() => location.hash)}`, {raw: true});
    await again.waitForFunction(() => window.stageline?.frames?.() > 0 && stageline.facts?.());
    assert.ok(Math.abs(await again.$eval('.panel', one => one.offsetHeight) - kept) < 3);
  }],
  ['a table is saved as CSV, and a name that begins like a formula stays a text', async open => {
    const page = await open('formula', '?lang=en#/answers/operators', {raw: true});
    await page.waitForFunction(() => window.stageline?.answers?.().family && stageline.answers().waiting.length === 0);
    const fold = page.locator('details.fold').first();
    if (await fold.getAttribute('open') === null) await fold.locator('summary').click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.locator('button.csv').first().click()]);
    assert.match(download.suggestedFilename(), /\.csv$/);
    const text = readFileSync(await download.path(), 'utf8'),
      lines = text.replace(/^\ufeff/, '').trimEnd().split('\r\n');
    assert.equal(text.charCodeAt(0), 0xfeff);
    assert.ok(lines.length > 1 && /^[a-z_0-9,]+$/.test(lines[0]), lines[0]);
    assert.ok(text.includes("'=1+1"), text.slice(0, 400));
    assert.ok(!/(^|,)"?[=@]/m.test(text.replace(/^\ufeff/, '')), 'nothing begins a formula');
  }],
  ['95th percentiles of two slices are not told', async open => {
    const page = await open('odd');
    await page.keyboard.press('F1');
    await page.waitForSelector('#omni');
    await page.keyboard.type('sum up everything');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.totals tbody tr');
    const heads = await page.locator('.totals thead th').allInnerTexts(), at = heads.findIndex(head => /95/.test(head));
    assert.ok(at > 0, heads.join());
    for (const row of await page.locator('.totals tbody tr').all())
      assert.equal(await row.locator('th, td').nth(at).innerText(), '–');
  }],
  ['a lane is one stop of Tab; its buttons are reached by the arrows', async open => {
    const page = await open('pipeline');
    assert.equal(await page.locator('.labels .tools button:not([tabindex="-1"])').count(), 0);
    const name = page.locator('.label.lane .name').first();
    await name.focus();
    await page.keyboard.press('ArrowRight');
    assert.match(await page.evaluate(() => document.activeElement.className), /icon/);
    await page.keyboard.press('ArrowLeft');
    assert.match(await page.evaluate(() => document.activeElement.className), /name/);
    const before = await page.evaluate(() => ({...stageline.view()}));
    assert.deepEqual(await page.evaluate(() => ({...stageline.view()})), before, 'the window stays');
  }],
  ['what if: before and after, scenarios that are kept, named, compared, and in the address', async (open, {runs}) => {
    const page = await show(open, 'slower', '?step=1&if=scale%3D3:0.7'), title = () =>
      page.innerText('.page-pipeline h1');
    await page.waitForSelector('#before-after');
    assert.match(await title(), /→.*−/);
    assert.equal(await page.locator('#cost').inputValue(), '0.7');
    // The bar of after is as much shorter as the step.
    const [, before, after] = /: ([\d.]+)\s*\S+ → ([\d.]+)/.exec(await title());
    const wide = await page.$$eval('#before-after .after-line > div', list =>
      list.map(one => one.getBoundingClientRect().width));
    assert.ok(Math.abs(wide[1] / wide[0] - after / before) < 0.01, `${wide} for ${before} → ${after}`);
    assert.match(await page.innerText('.stages tbody tr:nth-child(4)'), /→/);
    await page.click('#what-if-keep');
    await page.waitForSelector('.kept tbody tr:nth-child(2)');
    await page.locator('#schedule').selectOption('zb-h1');
    await page.waitForFunction(() =>
      stageline.pipeline.world?.() !== undefined || document.querySelector('#what-if-keep:not(:disabled)')
    );
    await page.waitForFunction(() => /to%3Dzb-h1|to=zb-h1/.test(location.hash));
    await page.click('#what-if-keep');
    await page.waitForSelector('.kept tbody tr:nth-child(3)');
    await page.locator('.kept input').first().fill('lighter head');
    await page.locator('.kept input').first().press('Enter');
    await page.locator('.kept input').nth(1).focus();
    await page.waitForFunction(() => /kept=lighter/.test(decodeURIComponent(location.hash)));
    // The address alone gives the same list, with the same prices.
    const rows = of =>
      of.$$eval('.kept tbody tr', list =>
        list.map(row => [row.querySelector('input')?.value, row.cells[1].textContent, row.cells[2].textContent]));
    await page.waitForFunction(() =>
      ![...document.querySelectorAll('.kept td')].some(cell => cell.textContent === '…')
    );
    const kept = await rows(page), again = await show(open, 'slower', (await page.evaluate(() =>
      location.hash
    )).replace(/^#\/pipeline/, ''));
    await again.waitForFunction(() =>
      document.querySelectorAll('.kept tbody tr').length === 3 &&
      ![...document.querySelectorAll('.kept td')].some(cell => cell.textContent === '…')
    );
    assert.deepEqual(await rows(again), kept);
    assert.equal(await again.locator('.kept tr.best').count(), 1);
    await again.locator('.kept tbody tr:nth-child(2) button').first().click();
    await again.waitForFunction(() =>
      document.querySelector('#cost').value === '0.7' && document.querySelector('#schedule').value === '1f1b'
    );
    await again.locator('.kept tbody tr:nth-child(3) button').last().click();
    await again.waitForFunction(() => document.querySelectorAll('.kept tbody tr').length === 2);
    await again.click('#what-if-reset');
    await again.waitForFunction(() => !document.querySelector('#before-after'));
    assert.ok(runs.slower);
  }],
  ['Overview of a profile draws a step in layers, every rank and the largest kernels', async open => {
    const page = await overview(open, 'profiles', '?lang=en#/overview'); // two runs open on Compare
    await page.waitForFunction(() =>
      stageline.overviewWhole() && document.querySelector('.profile-picture')?.dataset.layers &&
      document.querySelectorAll('.profile-bars table').length === 2
    );
    const {layers, sums} = await page.evaluate(async () => {
      const {run} = stageline, byLength = [...run.steps].sort((a, b) => a.mean_ns - b.mean_ns),
        {number} = byLength[byLength.length >> 1];
      const rank = Number(
        /rank (\d+)|Rank (\d+)/.exec(document.querySelector('.profile-picture h2').textContent)[0].replace(/\D/g, ''),
      );
      const index = run.ranks.findIndex(one => one.rank === rank),
        [, start_ns, end_ns] = run.ranks[index].steps.find(one => one[0] === number),
        step = {start_ns, end_ns},
        streams = run.lanes.filter(lane => lane.rank_index === index && lane.type === 'stream').map(lane => lane.id);
      const reported = await (await fetch(`api/select?lanes=${streams.join()}&t0=${step.start_ns}&t1=${step.end_ns}`))
        .json();
      const groups = new Map(run.kinds.map(kind => [kind.id, kind.group])), sums = {};
      for (const row of reported.rows)
        sums[groups.get(row.kind)] = (sums[groups.get(row.kind)] ?? 0) +
          row.sum_ns / (step.end_ns - step.start_ns);
      return {
        layers: Object.fromEntries(
          document.querySelector('.profile-picture').dataset.layers.split(' ').map(one => one.split('=')).map((
            [name, value],
          ) => [name, Number(value)]),
        ),
        sums,
      };
    });
    assert.ok(layers.computing > 0 && layers.host > 0, JSON.stringify(layers));
    for (const layer of ['computing', 'communication', 'memory'])
      if (sums[layer])
        assert.ok(Math.abs((layers[layer] ?? 0) - Math.min(1, sums[layer])) < 0.02,
          `${layer}: ${layers[layer]} drawn, ${sums[layer]} ran`);
    assert.equal(await page.locator('.profile-bars > div').first().locator('tbody tr').count(),
      await page.evaluate(() => stageline.run.ranks.length));
    assert.ok(await page.locator('.profile-bars > div').nth(1).locator('tbody tr').count() > 3);
  }],
  [
    'Overview of a profile with clocks apart: a step is as long as on its rank, and waiting has a colour of its own',
    async (
      open,
      {stageline, runs},
    ) => {
      const page = await overview(open, 'apart');
      await page.waitForFunction(() =>
        stageline.overviewWhole() && document.querySelector('.profile-picture')?.dataset.layers
      );
      const {figures} = JSON.parse(
          execFileSync(stageline, ['info', runs.apart, '--figures', 'step_host', '--json', '-q'], {encoding: 'utf8'}),
        ), [{value: mean}] = figures;
      const seen = await page.evaluate(() => ({
        steps: stageline.run.steps,
        ranks: stageline.run.ranks.map(rank => rank.steps),
        bars: document.querySelector('.aside-block.steps h2').textContent,
        picture: document.querySelector('.profile-picture .picture-ends span:last-child').textContent,
        colours: ['comm', 'comm-wait', 'compute'].map(part =>
          getComputedStyle(document.querySelector(`.split [data-part="${part}"]`)).backgroundColor
        ),
      }));
      assert.ok(seen.steps.every(step => step.end_ns - step.start_ns > 2 * mean), 'clocks are apart');
      assert.ok(seen.ranks.every(steps => steps.length === seen.steps.length));
      const sum = seen.steps.reduce((all, step) => all + step.mean_ns, 0) / seen.steps.length;
      assert.ok(Math.abs(sum / mean - 1) < 1e-6, `${sum} on the page, ${mean} in the figures`);
      const told = text => Number(/([0-9.]+)\s*ms$/.exec(text)[1]) * 1e6;
      for (const text of [seen.bars, seen.picture])
        assert.ok(Math.abs(told(text) / mean - 1) < 0.05, `${text}, and the mean step takes ${mean} ns`);
      assert.equal(new Set(seen.colours).size, 3, seen.colours.join());
      // The page names the steps of the bars, the clocks of the recorded time, and the step that tables skip.
      const said = await page.evaluate(() => ({
        key: document.querySelector('.aside-block.steps p').textContent,
        now: document.querySelector('.spark .now').dataset.step,
        span: document.querySelector('.facts [data-figure="recording"]').textContent,
        bars: document.querySelector('.profile-bars').parentElement.textContent,
      }));
      const numbers = seen.steps.map(step => step.number);
      assert.equal(said.key, `Steps ${Math.min(...numbers)} to ${Math.max(...numbers)}; coloured: step ${said.now}`);
      assert.match(said.span, /\(clocks not aligned\)$/);
      assert.match(said.bars, /the last profiler step is skipped/);
      // The axis has the steps of one rank, because those of all ranks together overlap.
      await page.evaluate(() => {
        location.hash = '#/timeline';
      });
      await page.waitForFunction(() =>
        document.querySelector('canvas.rows')?.clientWidth > 0 && stageline.settled() && stageline.painted().lanes > 0
      );
      const bands = await page.evaluate(() => {
        const canvas = document.querySelector('canvas.rows'),
          box = canvas.getBoundingClientRect(),
          ratio = canvas.width / box.width,
          own = stageline.run.ranks[0].steps,
          {span_ns: span} = stageline.run;
        const free = Array.from({length: 200}, (_, i) => (i + 0.5) / 200 * span).filter(t =>
          own.every(([, start, end]) => t < start - span / 100 || t > end + span / 100)
        );
        const colour = t =>
          [
            ...canvas.getContext('2d').getImageData(Math.round((stageline.xOf(t) - box.left) * ratio),
              Math.round(32 * ratio), 1, 1).data,
          ].join();
        return {own: own.map(([, start, end]) => colour(start + (end - start) * 0.9)), free: free.map(colour)};
      });
      assert.ok(bands.free.length > 10, 'the other clocks reach beyond rank 0');
      assert.equal(new Set(bands.own).size, 1, bands.own.join(' '));
      assert.ok(!bands.free.includes(bands.own[0]), 'no band where rank 0 has no step');
      // The scene of a loss is of the rank that has it.
      await page.evaluate(() => {
        location.hash = '#/timeline?scene=comm.exposed';
      });
      await page.waitForFunction(() => stageline.state?.().scene?.stretches && stageline.settled());
      const {stretches} = await page.evaluate(() => stageline.state().scene);
      assert.ok(Math.abs((stretches.t1 - stretches.t0) / mean - 1) < 0.05, 'one step of that rank');
    },
  ],
];
