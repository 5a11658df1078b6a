// Compares pictures of the pages other than the timeline with recorded ones, small regions each, in both themes and
// languages. It also tests use without a mouse and without colours. viewer_run.mjs runs it.
import assert from 'node:assert/strict';
import {apart, visions} from './colours.mjs';
import {show, showBoth} from './pipeline_help.mjs';

// Compares the visible part of the first match of `selector`, no larger than `width` × `height`.
async function region(page, picture, name, selector, width = 760, height = 300) {
  await page.mouse.move(3, 3);
  await page.evaluate(async () => {
    await document.fonts.ready;
  });
  const box = await page.locator(selector).first().boundingBox();
  await picture(page, name, {x: Math.floor(box.x), y: Math.floor(box.y), width: Math.min(width, Math.ceil(box.width)),
    height: Math.min(height, Math.ceil(box.height))});
}
const overview = async (open, run, options) => {
  const page = await open(run, options.query, {...options, first: true});
  await page.waitForFunction(() => window.stageline?.overviewReady?.());
  return page;
};
const answers = async (open, run, family, options) => {
  const page = await open(run, `${options.query}#/answers/${family}`, {...options, raw: true});
  await page.waitForFunction(() => window.stageline?.answers?.().waiting.length === 0);
  return page;
};
const SIZE = [1000, 760];
const EN = {query: '?lang=en', size: SIZE}, ZH = {query: '?lang=zh', size: SIZE, dark: true};

// Makes the same picture in English and light, and in Chinese and dark.
const inBoth = (what, name, draw) => [
  [`picture: ${what}`, (open, {picture}) => draw(open, picture, name, EN)],
  [`picture: ${what}, in Chinese and dark`, (open, {picture}) => draw(open, picture, `${name}-dark-zh`, ZH), {
    chinese: true,
  }],
];
const trend = async (open, picture, name, options) => {
  const page = await open('start', `${options.query}#/trend?${[1, 2, 3, 4].map(k => `path=run-${k}`).join('&')}`, {
    ...options,
    first: true,
  });
  await page.waitForFunction(() => window.stageline?.start?.().trend);
  await region(page, picture, name, 'main', 1000, 640);
};
const pictures = [
  ...inBoth('several runs, of which one became slower', 'trend', trend),
  ['picture: Overview, what was lost', async (open, {picture}) => {
    await region(await overview(open, 'slower', EN), picture, 'overview-headline', '.headline');
  }],
  ['picture: Overview in Chinese and dark, the stages', async (open, {picture}) => {
    await region(await overview(open, 'slower', ZH), picture, 'overview-stages-dark-zh', '#stages', 420, 220);
  }, {chinese: true}],
  ['picture: the stages of one step', async (open, {picture}) => {
    const page = await show(open, 'split', '?step=1', EN);
    await page.locator('.stages').scrollIntoViewIfNeeded();
    await region(page, picture, 'pipeline-stages', '.stages table', 460, 240);
  }],
  ...inBoth('the pipeline page, many ranks', 'pipeline-many', async (open, picture, name, options) => {
    const page = await show(open, 'many', '?step=2', options);
    await page.waitForFunction(() => stageline.pipeline.rows().length === 6);
    await page.evaluate(() => document.querySelector('.page-pipeline .chart canvas').scrollIntoView());
    await region(page, picture, name, '.page-pipeline .chart canvas', 700, 370);
  }),
  ...inBoth('the pipeline page, two runs', 'pipeline-runs', async (open, picture, name, options) => {
    const page = await showBoth(open, 'compared', '?step=1', options);
    await page.evaluate(() => document.querySelector('.page-pipeline .chart canvas').scrollIntoView());
    await region(page, picture, name, '.page-pipeline .chart canvas', 700, 200);
    const second = await page.locator('.page-pipeline .chart canvas').nth(1).boundingBox();
    await picture(page, `${name}-b`, {x: Math.floor(second.x), y: Math.floor(second.y), width: 700, height: 150});
  }),
  ...inBoth('Answers, a chart', 'answers-time', async (open, picture, name, options) => {
    await region(await answers(open, 'slower', 'time', options), picture, name, '#topic-waterfall .plot-box', 640, 200);
  }),
  ...['flame', 'sandwich', 'tree'].flatMap(view =>
    inBoth(`Flame graph, ${view}`, `flame-${view}`, async (open, picture, name, options) => {
      const page = await open('profiles',
        `${options.query}#/flame${view === 'flame' ? '?a=0&b=1&time=device' : `/${view}`}`, {...options, raw: true});
      await page.waitForFunction(() => window.stageline?.flame?.());
      await region(page, picture, name, view === 'tree' ? '.flame-table' : '.flame-body', 940, 240);
    })
  ),
  ...inBoth('Compare, what makes the difference', 'compare-effects', async (open, picture, name, options) => {
    const page = await open('compared', `${options.query}#/compare`, {...options, raw: true});
    await page.waitForFunction(() => window.stageline?.compared?.() && document.querySelector('.effects'));
    await region(page, picture, name, '.effects .plot-box', 700, 200);
  }),
];

export const cases = [
  [
    'pipeline without a mouse: everything is reached by Tab, is named and seen; two runs, the stages, the price of a change',
    async open => {
      const page = await showBoth(open, 'compared', '?step=1');
      await page.waitForSelector('#cost');
      await page.evaluate(() => {
        document.activeElement.blur();
        document.body.tabIndex = -1;
        document.body.focus();
      });
      const seen = [];
      for (let i = 0; i < 150; ++i) {
        await page.keyboard.press('Tab');
        const at = await page.evaluate(() => {
          const one = document.activeElement, style = getComputedStyle(one);
          return {tag: one.tagName, id: one.id,
            name: one.getAttribute('aria-label') || one.labels?.[0]?.textContent || one.title || one.textContent.trim(),
            ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none'};
        });
        if (at.tag === 'BODY') break;
        assert.ok(at.name && at.ring, JSON.stringify(at));
        seen.push(at);
      }
      const place = test => seen.findIndex(test),
        order = ['prev-step', 'both', 'save-png'].map(id => place(at => at.id === id));
      const charts = seen.flatMap((at, i) => (at.tag === 'CANVAS' ? [i] : []));
      order.push(charts[0], place(at => at.id === 'other-step'), charts[1], place(at => at.id === 'cost'));
      assert.ok(order.every(at => at >= 0), `all are there: ${order}`);
      assert.deepEqual([...order].sort((a, b) => a - b), order, 'controls, first chart, second, what-if');
      assert.ok(
        place(at => at.id === 'stages-all') >= 0 && place(at => at.id === 'workers' || /rank/.test(at.name)) >= 0,
      );
      // And used: a step, the other chart, a change and back.
      await page.focus('#next-step');
      await page.keyboard.press('Enter');
      await page.waitForFunction(() => stageline.pipeline.state().step === 2 && stageline.pipeline.other().step === 2);
      await page.locator('.page-pipeline canvas').nth(1).focus();
      await page.keyboard.press('.');
      await page.waitForFunction(() =>
        stageline.pipeline.other().selected >= 0 && stageline.pipeline.state().selected >= 0
      );
      assert.match(await page.textContent('.page-pipeline .details'), /F|B/);
      await page.focus('#cost');
      await page.keyboard.press('ArrowLeft');
      await page.waitForFunction(() => stageline.pipeline.world() !== null);
      await page.focus('.page-pipeline canvas');
      await page.keyboard.press('Escape');
      await page.keyboard.press('Escape');
      await page.waitForFunction(() => stageline.pipeline.world() === null);
    },
  ],
  ['pipeline: causes of waiting and marks are told apart with any kind of colour vision', async open => {
    let page;
    for (const dark of [false, true]) {
      page = await showBoth(open, 'compared', '?step=1', {dark, again: page});
      const colours = await page.evaluate(() => {
        const style = getComputedStyle(document.querySelector('.page-pipeline')), of = name => {
          const probe = document.createElement('i');
          probe.style.color = `var(${name})`;
          document.querySelector('.page-pipeline').append(probe);
          const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
          probe.remove();
          return '#' + [r, g, b].map(v => Math.round(v).toString(16).padStart(2, '0')).join('');
        };
        return {bg: of('--bg'), ink: of('--ink'), idle: of('--idle'),
          causes: ['bubble', 'imbalance', 'jitter', 'comm'].map(part => [part, of(`--part-${part}`)]),
          groups: [0, 1, 2, 5].map(group => style.getPropertyValue(`--group-${group}`).trim())};
      });
      for (const vision of visions) {
        for (const [name, colour] of colours.causes)
          assert.ok(apart(colour, colours.idle, vision) >= 10,
            `${name} and waiting without a cause, ${vision}, ${dark}`);
        // A mark is ink: it stands out on every cell, whoever looks.
        for (const fill of colours.groups)
          assert.ok(apart(colours.ink, fill, vision) >= 20, `a mark on ${fill}, ${vision}, ${dark}`);
      }
      // They have lines of different direction.
      const lines = await page.evaluate(() =>
        ['bubble', 'imbalance', 'jitter', 'comm', 'rest'].map(part => {
          const probe = document.createElement('i');
          probe.className = `cause cause-${part}`;
          document.querySelector('.page-pipeline .key').append(probe);
          const found = getComputedStyle(probe).backgroundImage.replace(/rgba?\([^)]*\)/g, '');
          probe.remove();
          return found;
        })
      );
      assert.equal(new Set(lines).size, 5, lines.join('\n'));
    }
  }],
  ['a long table shows a thousand rows at a time; all are reached', async open => {
    const page = await open('profile', '?lang=en#/answers/other?answer=events&table=events', {raw: true});
    const found = await page.evaluate(async () =>
      (await (await fetch('/api/answers')).json()).answers.map(one => one.name)
    );
    const name = ['events', 'call-graph', 'operators'].find(one => found.includes(one));
    assert.ok(name, found.join());
    await page.waitForFunction(() => window.stageline?.answers?.().waiting.length === 0);
    await page.waitForSelector('.data-table tbody tr');
    const rows = () => page.locator('.data-table').first().locator('tbody tr');
    assert.equal(await rows().count(), 100);
    await page.locator('.data-table').first().getByRole('button', {name: /show all/}).click();
    assert.equal(await rows().count(), 1000);
    const first = await rows().first().textContent();
    await page.locator('.rows-pager [data-go=next]').first().focus();
    await page.keyboard.press('Enter');
    assert.notEqual(await rows().first().textContent(), first);
    assert.match(await page.textContent('.rows-pager'), /rows 1001 to 2000 of/);
    await page.locator('.rows-pager [data-go=last]').first().click();
    const said = /rows ([\d\s\u202f]+) to ([\d\s\u202f]+) of ([\d\s\u202f]+?) *first/.exec(
      await page.textContent('.rows-pager'),
    ).slice(1).map(one => Number(one.replace(/\D/g, '')));
    assert.equal(said[1], said[2]);
    assert.equal(await rows().count(), said[1] - said[0] + 1);
    // From a row on, as the page asks for what does not fit an answer.
    const [whole, part] = await page.evaluate(async one =>
      Promise.all(['', '&page_of=steps&from=1'].map(async more => {
        for (;;) {
          const answer = await fetch(`/api/answer?name=${one}${more}`);
          if (answer.status === 200) return answer.json();
        }
      })), 'pipeline-summary');
    const steps = whole.tables.find(table => table.name === 'steps');
    assert.deepEqual(part.tables.map(table => table.name), ['steps']);
    assert.deepEqual(part.tables[0].rows, steps.rows.slice(1));
    assert.equal(part.tables[0].row_count, steps.row_count);
  }],
  ["a recording of stageline's own recorder opens on every page", async open => {
    const page = await overview(open, 'recorded', {query: '?lang=en'});
    for (const id of ['pipeline', 'timeline', 'answers', 'compare']) {
      if (await page.locator(`#page-${id}`).count() === 0) continue;
      await page.click(`#page-${id}`);
      await page.waitForFunction(wanted => stageline.page() === wanted, id);
      await page.waitForSelector(
        id === 'pipeline' || id === 'timeline' ? `.page-${id} canvas:visible` : `.page-${id} h1`,
      );
    }
    assert.ok(await page.evaluate(() => stageline.run.ranks.length) >= 2);
    assert.match(await page.evaluate(() => stageline.run.format), /record/);
  }],
  ...pictures.map(([name, run, more = {}]) => [name, run, {fixed: true, ...more}]),
];
