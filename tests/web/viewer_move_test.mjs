// The window while it moves along: moved pictures are equal to those that are painted at rest. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {settle, span, view} from './viewer_help.mjs';

// Moves by whole pixels, one step a frame, then by a pixel to and fro until everything visible has arrived and the
// strips are painted from it. The last frame is compared with the canvas at rest, with the canvas before and with
// itself two pixels aside: shares of pixels that differ. With `late` nothing arrives before all steps are done: `early`
// is the picture until then.
const moved = (page, steps, late) =>
  page.evaluate(async ([pixels, keep]) => {
    const rows = document.querySelector('canvas.rows'), belt = document.querySelector('.belt'),
      ratio = rows.width / rows.clientWidth;
    const corner = rows.getBoundingClientRect(),
      left = Math.round((stageline.laneBox(stageline.run.lanes[0].id).x - corner.x) * ratio);
    const top = Math.round(34 * ratio), width = rows.width - left - 10 * ratio, height = rows.height - top;
    const atRest = () => rows.getContext('2d').getImageData(left, top, width, height).data;
    const strips = () => {
      if (document.querySelector('.roll').hidden) return null;
      const paper = new OffscreenCanvas(width, height), pen = paper.getContext('2d'),
        by = new DOMMatrix(belt.style.transform).e;
      for (const strip of belt.children) pen.drawImage(strip, Math.round((parseFloat(strip.style.left) + by) * ratio),
          0);
      return pen.getImageData(0, 0, width, height).data;
    };
    const differing = (a, b, aside = 0) => {
      let count = 0;
      for (let i = 0; i < a.length - 4 * aside; i += 4) {
        const j = i + 4 * aside;
        count += Math.abs(a[i] - b[j]) + Math.abs(a[i + 1] - b[j + 1]) + Math.abs(a[i + 2] - b[j + 2]) > 12;
      }
      return count / (a.length / 4);
    };
    const {fetch} = window, before = atRest(), {t0, t1} = stageline.view(), columnNs = (t1 - t0) / width,
      until = Date.now() + 60000;
    let open = () => undefined;
    const opened = new Promise(done => {
      open = done;
    });
    if (keep) window.fetch = (...asked) => opened.then(() => fetch(...asked));
    const step = async by => {
      const painted = new Promise(done => rows.addEventListener('painted', done, {once: true}));
      stageline.pan(by * columnNs);
      await painted; // nothing but this frame lies between: the next move comes before the window is at rest
    };
    for (const by of pixels) await step(by);
    const early = keep ? {shown: strips(), unfinished: stageline.unfinished()} : null;
    open();
    window.fetch = fetch;
    let nudges = 0;
    while ((!stageline.fetched() || stageline.unfinished() > 0) && Date.now() < until)
      await step(
        nudges++ % 2 ? -1 : 1,
      );
    const shown = strips(), unfinished = stageline.unfinished();
    while (!stageline.settled()) await new Promise(requestAnimationFrame);
    const after = atRest();
    return {rolled: shown !== null, unfinished, nudges, rest: shown && differing(shown, after),
      start: differing(before, after), aside: differing(after, after, 2),
      early: early && {unfinished: early.unfinished, rest: differing(early.shown, after)},
      hidden: document.querySelector('.roll').hidden, strips: belt.children.length};
  }, [steps, late]);

export const cases = [
  ['while the window moves its pictures are moved, and are what is painted at rest', async open => {
    const far = [[700, 700, 700, 700], true]; // into what is not fetched: drawn from the whole run's picture first
    let page;
    for (const [run, share, more] of [['bursts', 0.15, [far]], ['profile', 0.2, [far]], ['counters', 0.3, []]]) {
      page = await open(run, '?lang=en', {again: page});
      for (let i = 0; i < 14; ++i) await page.keyboard.press('-'); // rows without texts
      const {t0, t1} = await view(page);
      await page.evaluate(([a, b]) => stageline.setView(a, b), [t0 + (t1 - t0) * 0.2, t0 + (t1 - t0) * (0.2 + share)]);
      await settle(page);
      for (const [steps, late] of [[[37]], [[200, 300, 1]], [[-411, -90]], ...more]) {
        const seen = await moved(page, steps, late), what = `${run}, ${steps}: ${JSON.stringify(seen)}`;
        assert.ok(seen.rolled, `the strips were in sight: ${what}`);
        assert.ok(seen.start > 0.02 && seen.aside > 0.005,
          `the picture is another one now, and would be two pixels aside: ${what}`);
        assert.ok(!late || seen.early.unfinished > 0 && (run !== 'bursts' || seen.early.rest > 0.01),
          `it was painted before all had come: ${what}`);
        assert.equal(seen.unfinished, 0, `and anew from what came: ${what}`);
        assert.ok(seen.rest < seen.aside / 20, `the last picture that moved is not the one at rest: ${what}`);
        assert.ok(seen.hidden && seen.strips === 0, 'at rest the strips are gone');
      }
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
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('canvas.rows')).contentVisibility),
      'visible');
    assert.equal(await page.evaluate('document.querySelector("canvas.over").hidden'), false);
  }],
];
