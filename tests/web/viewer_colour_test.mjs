// Colours of the timeline as the page paints them must be distinguishable and readable. viewer_run.mjs runs it.
import assert from 'node:assert/strict';
import {apart, contrast, visions} from './colours.mjs';
import {chosen, clickSlice, drag, listed, settle, textContrast, wideSlice} from './viewer_help.mjs';

// Kinds that are adjacent in one lane. Every tint of a chunk is next to every other.
const TOGETHER = {
  compute: ['forward', 'backward', 'weight', 'optimizer'],
  stream: ['computing', 'communication', 'memory', 'device_other'],
  thread: ['operator', 'python', 'runtime', 'annotation', 'overhead', 'other'],
};
// 2.3 is a just noticeable difference. Weight gradients are hatched, what a thread does bears its name: their colour is
// not all there is.
const least = (a, b) => (a.group === 'weight' || b.group === 'weight' ? 6 : TOGETHER.thread.includes(a.group) ? 8 : 10);

const THEMES = [false, true];

export const cases = [
  ['kinds that touch are told apart with any kind of colour vision, in both themes', async open => {
    let pairs = 0, page;
    for (const dark of THEMES) {
      for (const run of ['split', 'pipeline', 'profile']) {
        page = await open(run, '?lang=en', {dark, again: page});
        const {paints: {page: own, fill}, kinds} = await page.evaluate(
          '({paints: stageline.paints(), kinds: stageline.run.kinds})',
        );
        for (const groups of Object.values(TOGETHER)) {
          const present = kinds.filter(kind => groups.includes(kind.group));
          for (const vision of visions)
            for (const [i, a] of present.entries()) {
              for (const colour of new Set(fill[a.id])) {
                const beside = apart(colour, own.idle, vision);
                assert.ok(beside >= 10,
                  `${run}, ${dark ? 'dark' : 'light'}, ${vision}: ${a.name} and idle time: ${beside}`);
              }
              for (const b of present.slice(i + 1)) {
                if (a.group === b.group) continue;
                for (const x of new Set(fill[a.id]))
                  for (const y of new Set(fill[b.id])) {
                    ++pairs;
                    const delta = apart(x, y, vision);
                    assert.ok(delta >= least(a, b),
                      `${run}, ${dark ? 'dark' : 'light'}, ${vision}: ${a.name} ${x} and ${b.name} ${y}: ${delta}`);
                  }
              }
            }
        }
      }
    }
    assert.ok(pairs > 500, `${pairs} pairs`);
  }],
  ['a chunk is told from the next, and weight gradients are hatched', async open => {
    let page;
    for (const dark of THEMES) {
      page = await open('split', '?lang=en', {dark, again: page});
      const {fill, kinds} = await page.evaluate('({fill: stageline.paints().fill, kinds: stageline.run.kinds})');
      for (const kind of kinds.filter(one => ['forward', 'backward', 'weight'].includes(one.group)))
        for (let i = 1; i < fill[kind.id].length; ++i)
          for (const vision of visions)
            assert.ok(apart(fill[kind.id][i - 1], fill[kind.id][i], vision) >= 5, `${kind.name} ${i} ${vision}`);
      // Two colours within one cell: the fill and the lines over it.
      const weight = await page.evaluate(() => {
        const kind = stageline.run.kinds.find(one => one.group === 'weight').id;
        const all = stageline.run.lanes.filter(lane => lane.type === 'cells' && stageline.laneBox(lane.id)).flatMap(
          lane => stageline.slices(lane.id),
        );
        const slice = all.filter(one => one.kind === kind).sort((a, b) => b.dur - a.dur)[0],
          box = stageline.sliceBox(slice);
        const canvas = document.querySelector('canvas.rows'), at = canvas.getBoundingClientRect(), seen = new Map();
        const data =
          canvas.getContext('2d').getImageData(Math.round(box.x - at.left) + 2, Math.round(box.y - at.top) + 2,
            Math.round(box.w) - 5, Math.round(box.h) - 4).data;
        for (let i = 0; i < data.length; i += 4) {
          const key = `rgb(${data[i]} ${data[i + 1]} ${data[i + 2]})`;
          seen.set(key, (seen.get(key) ?? 0) + 1);
        }
        return [...seen].sort((a, b) => b[1] - a[1]).slice(0, 12).map(([key]) => key);
      });
      assert.ok(weight.slice(1).some(colour => apart(weight[0], colour, 'normal') > 15),
        `hatched: ${weight.join(', ')}`);
    }
  }],
  ['text on every kind and tint meets AA, and what the axis says', async open => {
    let page;
    for (const dark of THEMES)
      for (const run of ['split', 'pipeline', 'profile']) {
        page = await open(run, '?lang=en', {dark, again: page});
        const {paints: {page: own, fill, text}, kinds} = await page.evaluate(
          '({paints: stageline.paints(), kinds: stageline.run.kinds})',
        );
        for (const kind of kinds)
          for (const [i, colour] of fill[kind.id].entries())
            assert.ok(contrast(colour, text[kind.id][i]) >= 4.5,
              `${run}, ${dark ? 'dark' : 'light'}: ${kind.name}, tint ${i}: ${contrast(colour, text[kind.id][i])}`);
        // Numbers and steps of the axis; tags of the pointer, areas and marks.
        for (const [ink, paper] of [['mut', 'bg'], ['mut', 'soft'], ['bg', 'mut'], ['bg', 'acc'], ['bg', 'hot'], [
          'ink',
          'bg',
        ]])
          assert.ok(contrast(own[ink], own[paper]) >= 4.5, `${ink} on ${paper}: ${contrast(own[ink], own[paper])}`);
      }
  }],
  ['every text of the page meets AA in both themes: rows, panels, lists, dialogs', async open => {
    let page;
    for (const dark of THEMES) {
      page = await open('profile', '?lang=en', {dark, again: page});
      let seen = 0;
      const check = async what => {
        const {seen: texts, found} = await textContrast(page);
        assert.deepEqual(found, [], `${what}, ${dark ? 'dark' : 'light'}`);
        seen += texts;
      };
      await check('the page');
      const stream = await page.evaluate('stageline.run.lanes.find(l => l.type === "stream").id');
      await page.keyboard.press('2');
      await clickSlice(page, stream);
      await chosen(page);
      await check('a slice');
      const first = await wideSlice(page, stream);
      await page.mouse.move(first.x, first.y + 1);
      await page.waitForSelector('#tip:not([hidden])');
      await check('the tooltip');
      await page.keyboard.press('c');
      await page.keyboard.press('.');
      await page.waitForSelector('table.compare');
      await chosen(page);
      await check('two slices');
      const box = await page.evaluate(id => stageline.laneBox(id), stream);
      await drag(page, [box.x + 30, box.y + 2], [box.x + box.w * 0.7, box.y + box.h - 2]);
      await page.waitForSelector('.totals tbody tr');
      await page.click('.totals tbody tr:first-child th button');
      await page.waitForSelector('.histogram');
      await check('an area');
      await page.keyboard.press('Shift+M');
      await page.click('#tab-marks');
      await page.waitForSelector('.marks input');
      await check('marks');
      for (const key of ['?', '/', 'F1', 'Control+p']) {
        await page.keyboard.press(key);
        await page.waitForSelector('dialog[open]');
        if (key === '/') {
          await page.keyboard.type('a');
          await listed(page);
        }
        await check(key);
        await page.keyboard.press('Escape');
        await page.waitForSelector('dialog[open]', {state: 'detached'});
      }
      await page.focus('.label.lane .name');
      await check('a focused label');
      await settle(page);
      assert.ok(seen > 400, `${seen} texts`);
    }
  }],
];
