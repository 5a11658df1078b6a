// The window while it moves along: pictures that are moved are those that are painted when it stands still. Run by
// viewer_run.mjs.
import assert from 'node:assert/strict';
import {settle, span, view} from './viewer_help.mjs';

// Moves by whole pixels, one step a frame, and compares what the strips show at the end with the canvas at rest and with the
// canvas before: shares of pixels that differ.
const moved = (page, steps) => page.evaluate(async pixels => {
  const rows = document.querySelector('canvas.rows'), belt = document.querySelector('.belt'), ratio = rows.width / rows.clientWidth;
  const corner = rows.getBoundingClientRect(), left = Math.round((stageline.laneBox(stageline.run.lanes[0].id).x - corner.x) * ratio);
  const top = Math.round(34 * ratio), width = rows.width - left - 10 * ratio, height = rows.height - top;
  const atRest = () => rows.getContext('2d').getImageData(left, top, width, height).data;
  const strips = () => {
    if (document.querySelector('.roll').hidden) return null;
    const paper = new OffscreenCanvas(width, height), pen = paper.getContext('2d'), by = new DOMMatrix(belt.style.transform).e;
    for (const strip of belt.children) pen.drawImage(strip, Math.round((parseFloat(strip.style.left) + by) * ratio), 0);
    return pen.getImageData(0, 0, width, height).data;
  };
  const differing = (a, b) => {
    let count = 0;
    for (let i = 0; i < a.length; i += 4) count += Math.abs(a[i] - b[i]) + Math.abs(a[i + 1] - b[i + 1]) + Math.abs(a[i + 2] - b[i + 2]) > 12;
    return count / (a.length / 4);
  };
  const before = atRest(), {t0, t1} = stageline.view(), columnNs = (t1 - t0) / width;
  let shown = null;
  for (const step of pixels) {
    const painted = new Promise(done => rows.addEventListener('painted', () => done(strips()), {once: true}));
    stageline.pan(step * columnNs);
    shown = await painted;
  }
  while (!stageline.settled()) await new Promise(requestAnimationFrame);
  const after = atRest();
  return {rolled: shown !== null, rest: shown && differing(shown, after), start: differing(before, after),
          hidden: document.querySelector('.roll').hidden, strips: belt.children.length};
}, steps);

export const cases = [
  ['while the window moves its pictures are moved, and are what is painted at rest', async open => {
    const far = [[700, 700]];  // into what is not fetched: of counters that is drawn from the whole run's picture first
    for (const [run, share, more] of [['busy', 0.3, far], ['profile', 0.2, far], ['counters', 0.3, []]]) {
      const page = await open(run);
      for (let i = 0; i < 14; ++i) await page.keyboard.press('-');  // rows without texts
      const {t0, t1} = await view(page);
      await page.evaluate(([a, b]) => stageline.setView(a, b), [t0 + (t1 - t0) * 0.35, t0 + (t1 - t0) * (0.35 + share)]);
      await settle(page);
      for (const steps of [[37], [200, 300, 1], [-411, -90], ...more]) {
        const seen = await moved(page, steps);
        assert.ok(seen.rolled, `${run}, ${steps}: the strips were in sight`);
        assert.ok(seen.start > 0.001, `${run}, ${steps}: the picture is another one now: ${seen.start}`);
        assert.ok(seen.rest < seen.start * 0.15, `${run}, ${steps}: ${seen.rest} of the pixels differ from the canvas at rest, ${seen.start} from before`);
        assert.ok(seen.hidden && seen.strips === 0, 'at rest the strips are gone');
      }
      await page.close();
    }
  }],
  ['zooming, scrolling and lighting a name up paint the rows themselves', async open => {
    const page = await open('profile'), before = span(await view(page));
    await page.keyboard.press('w');
    await settle(page);
    await page.evaluate(() => stageline.pan((stageline.view().t1 - stageline.view().t0) * 0.1));
    await page.keyboard.press('w');
    await page.waitForFunction(from => stageline.view().t1 - stageline.view().t0 < from * 0.8, before);
    await page.waitForFunction(() => document.querySelector('.roll').hidden && stageline.settled());
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('canvas.rows')).contentVisibility), 'visible');
    assert.equal(await page.evaluate('document.querySelector("canvas.over").hidden'), false);
  }],
];
