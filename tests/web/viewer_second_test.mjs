// Two runs in the timeline: the second below the first, aligned by step. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {close, drag, settle, span, view} from './viewer_help.mjs';

const both = async (open, runs, query = '?lang=en', options = {}) => {
  const page = await open('compared', query, options);
  await page.waitForFunction(() => window.stageline.second);
  await settle(page);
  return page;
};
// Where a step starts on the page, in A and in B.
const starts = (page, number) =>
  page.evaluate(wanted => {
    const {second} = stageline, of = run => run.steps.find(step => step.number === wanted).start_ns;
    return [stageline.xOf(of(stageline.run)), second.xOf(of(second.run))];
  }, number);
const secondView = page => page.evaluate(() => ({...stageline.second.state().view}));

export const cases = [
  [
    'timeline, two runs: B is below A, aligned at the start of the step in sight, and both move together',
    async (open, {runs, shot}) => {
      const page = await both(open, runs);
      const heads = await page.$$eval('.run-head', all => all.map(one => one.innerText));
      assert.equal(heads.length, 2);
      assert.match(heads[0], /^A/);
      assert.match(heads[1], /^B/);
      let [a, b] = await starts(page, 0);
      assert.ok(close(a, b, 0.5), `${a} ${b}`);
      const boxes = await page.$$eval('.stage', all => all.map(one => one.getBoundingClientRect().top));
      assert.ok(boxes[1] > boxes[0] + 80, 'B is below A');
      // The last step in sight becomes the one that both are aligned at, although B's is much later in its run.
      const last = await page.evaluate(() => stageline.run.steps.at(-1));
      await page.evaluate(({start_ns: t0, end_ns: t1}) => stageline.setView(t0 + (t1 - t0) * 0.1, t1), last);
      await settle(page);
      [a, b] = await starts(page, last.number);
      assert.ok(close(a, b, 0.5), `${a} ${b}`);
      const by = await page.evaluate(wanted => {
        const of = run => run.steps.find(step => step.number === wanted).start_ns;
        return of(stageline.second.run) - of(stageline.run);
      }, last.number);
      assert.ok(by > 0, 'B is slower');
      const [own, other] = [await view(page), await secondView(page)];
      assert.ok(close(other.t0 - own.t0, by, 1) && close(span(own), span(other), 1));
      // A drag in B moves A.
      const stage = await page.$('.stage >> nth=1'), box = await stage.boundingBox();
      await drag(page, [box.x + box.width * 0.6, box.y + box.height / 2], [
        box.x + box.width * 0.5,
        box.y + box.height / 2,
      ], ['Shift']);
      await settle(page);
      const moved = await view(page);
      assert.ok(close(moved.t0 - own.t0, span(own) * 0.1 * box.width / (box.width - 224), span(own) * 0.02),
        `${moved.t0 - own.t0} of ${span(own)}`);
      await shot(page, 'timeline-two-runs');
    },
  ],
  [
    'timeline, two runs: another step of B can be put below, and the drawer is about the run that was clicked',
    async (open, {runs, shot}) => {
      const page = await both(open, runs);
      await page.selectOption('#other-step', {index: 2});
      await settle(page);
      const [a, b] = await page.evaluate(() => {
        const {second} = stageline;
        return [stageline.xOf(stageline.run.steps[0].start_ns), second.xOf(second.run.steps[2].start_ns)];
      });
      assert.ok(close(a, b, 0.5), `${a} ${b}`);
      const seen = await page.evaluate(() => {
        const {second} = stageline, {t0, t1} = second.state().view;
        const slice = second.slices(0).filter(one => one.start >= t0 && one.start + one.dur <= t1)
          .sort((x, y) => y.dur - x.dur)[0];
        return {slice, box: second.sliceBox(slice)};
      });
      await page.mouse.click(seen.box.x + seen.box.w / 2, seen.box.y + seen.box.h / 2);
      await page.waitForFunction(() => stageline.second.state().selected);
      await settle(page);
      assert.equal(await page.evaluate(() => stageline.second.state().selected.slice), seen.slice.slice);
      assert.equal(await page.evaluate(() => stageline.state().selected), null);
      assert.ok((await page.textContent('.panel .slice-head')).includes(seen.slice.name));
      await shot(page, 'timeline-two-runs-selected');
      // Keys are B's now, until A is touched.
      await page.keyboard.press('.');
      await page.waitForFunction(was => stageline.second.state().selected.slice !== was, seen.slice.slice);
      await page.keyboard.press('Escape');
      await page.waitForFunction(() => stageline.second.state().selected === null);
    },
  ],
];
