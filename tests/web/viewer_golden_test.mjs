// Pictures of the timeline against recorded ones: goldens.mjs says how they are compared. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {differing} from './goldens.mjs';
import {chosen, clickSlice, drag, settle} from './viewer_help.mjs';

const away = page => page.mouse.move(3, 3);
async function step(page, number, zoomed = 0) {
  await page.keyboard.press(String(number));
  await page.evaluate(times => {
    const {t0, t1} = stageline.view();
    if (times > 0) stageline.setView(t0, t0 + (t1 - t0) / times);
  }, zoomed);
  await settle(page);
}
const kindLane = (page, type) =>
  page.evaluate(wanted => stageline.run.lanes.find(lane => lane.type === wanted).id, type);
// Compares a picture of the timeline and its drawer for one case: the bars above belong to other pages too.
const whole = async (page, picture, name) => {
  await away(page);
  await settle(page);
  await picture(page, name, await page.evaluate(() => {
    const [a, b] = ['.stage', '.panel'].map(one => document.querySelector(one).getBoundingClientRect());
    return {x: 0, y: a.top, width: innerWidth, height: b.bottom - a.top};
  }));
};
const SMALL = [960, 620];

const pictures = [
  ['picture: a pipeline, whole run', async (open, {picture}) => {
    await whole(await open('pipeline', '?lang=en', {size: SMALL}), picture, 'pipeline');
  }],
  ['picture: one step of a split backward, dark, a slice selected and its arrows', async (open, {picture}) => {
    const page = await open('split', '?lang=en', {size: SMALL, dark: true});
    await step(page, 1);
    await clickSlice(page, 0, 2);
    await chosen(page);
    await whole(page, picture, 'split-selected-dark');
  }],
  ['picture: streams and threads, a name lit, an area and its histogram', async (open, {picture}) => {
    const page = await open('profile', '?lang=en', {size: SMALL}), lane = await kindLane(page, 'stream');
    await step(page, 2, 3);
    const box = await page.evaluate(id => stageline.laneBox(id), lane);
    await drag(page, [box.x + box.w * 0.25, box.y + 3], [box.x + box.w * 0.8, box.y + box.h - 3]);
    await page.click('.totals tbody tr:nth-child(2) th button');
    await page.waitForSelector('.histogram rect');
    await page.evaluate(() => document.activeElement.blur());
    await whole(page, picture, 'streams-area');
  }],
  ['picture: arrows and marks', async (open, {picture}) => {
    const page = await open('pipeline', '?lang=en', {size: SMALL});
    await step(page, 2);
    await page.keyboard.press('x');
    const box = await page.evaluate('stageline.laneBox(0)');
    for (const share of [0.3, 0.62]) {
      await page.mouse.move(box.x + box.w * share, box.y + 4);
      await page.keyboard.press('Shift+M');
    }
    await page.click('#tab-marks');
    await page.fill('.marks tbody tr:nth-child(2) input', 'slow here');
    await page.evaluate(() => document.activeElement.blur());
    await whole(page, picture, 'arrows-marks');
  }],
  ['picture: below a pixel, shares; and a counter', async (open, {picture}) => {
    await whole(await open('busy', '?lang=en', {size: [960, 300]}), picture, 'shares');
    await whole(await open('counter', '?lang=en', {size: [960, 300]}), picture, 'counter');
  }],
  ['picture: in Chinese, a slice selected', async (open, {picture}) => {
    const page = await open('vpp', '?lang=zh', {size: SMALL});
    await step(page, 1);
    await clickSlice(page, 0, 2);
    await chosen(page);
    await whole(page, picture, 'chinese-selected');
  }, {chinese: true}],
  ['picture: in Chinese and dark, an area and its histogram', async (open, {picture}) => {
    const page = await open('profile', '?lang=zh', {size: SMALL, dark: true}), lane = await kindLane(page, 'stream');
    await step(page, 2, 3);
    const box = await page.evaluate(id => stageline.laneBox(id), lane);
    await drag(page, [box.x + box.w * 0.25, box.y + 3], [box.x + box.w * 0.8, box.y + box.h - 3]);
    await page.click('.totals tbody tr:nth-child(2) th button');
    await page.waitForSelector('.histogram rect');
    await page.evaluate(() => document.activeElement.blur());
    await whole(page, picture, 'chinese-area-dark');
  }, {chinese: true}],
  ['picture: a phone', async (open, {picture}) => {
    await whole(await open('pipeline', '?lang=en', {size: [390, 620], dark: true}), picture, 'phone-dark');
  }],
];

export const cases = [
  // Not of goldens but of how they are compared.
  [
    'pictures differ when something moved by a pixel or is missing, not when edges are smoothed otherwise',
    async (open, {blank}) => {
      const page = await open('pipeline', '?lang=en', {size: SMALL});
      await step(page, 1);
      const clip = {x: 214, y: 100, width: 700, height: 300}, picture = await page.screenshot({clip});
      const cell = await page.evaluate(() =>
        stageline.slices(0).map(s => stageline.sliceBox(s)).find(box => box.w > 12 && box.x > 240)
      );
      assert.ok(cell, 'a cell with a number');
      const place = [cell.x - clip.x + 2, cell.y - clip.y + 2, cell.w - 5, cell.h - 4].map(Math.round);
      const changed = async how =>
        Buffer.from(await blank.evaluate(async ([text, what, [x0, y0, w, h]]) => {
          const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + text)).blob());
          const {width, height} = image, canvas = new OffscreenCanvas(width, height), pen = canvas.getContext('2d');
          pen.drawImage(image, 0, 0);
          if (what === 'moved') pen.drawImage(image, 0, 0, width, height, 1, 0, width, height);
          const pixels = pen.getImageData(0, 0, width, height), {data} = pixels, at = (x, y) => (y * width + x) * 4;
          if (what === 'smoothed') {
            for (let i = 0; i < data.length; ++i)
              if (i % 4 < 3)
                data[i] += i * 7919 % 61 -
                  30;
          }
          if (what === 'missing') { // the number on a cell: the cell's own colour instead
            for (let y = y0; y < y0 + h; ++y)
              for (let x = x0; x < x0 + w; ++x) for (let k = 0; k < 3; ++k) data[at(x, y) + k] = data[at(x0, y0) + k];
          }
          pen.putImageData(pixels, 0, 0);
          let bytes = '';
          for (const one of new Uint8Array(await (await canvas.convertToBlob({type: 'image/png'})).arrayBuffer()))
            bytes += String.fromCharCode(one);
          return btoa(bytes);
        }, [picture.toString('base64'), how, place]), 'base64');
      assert.deepEqual(await differing(blank, picture, await changed('none')), []);
      assert.deepEqual(await differing(blank, picture, await changed('smoothed')), []);
      assert.ok((await differing(blank, picture, await changed('moved'))).length > 10);
      assert.ok((await differing(blank, picture, await changed('missing'))).length > 0);
    },
  ],
  ...pictures.map(([name, run, more = {}]) => [name, run, {fixed: true, ...more}]),
];
