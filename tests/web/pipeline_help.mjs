// Short words for the tests of the pipeline page.
import {execFileSync} from 'node:child_process';

const STAGELINE = process.argv[2];

// Opens the page on a run; `hash` follows "#/pipeline".
export async function show(open, run, hash = '', options = {}) {
  const {query = '?lang=en', ...rest} = options,
    page = await open(run, `${query}#/pipeline${hash}`, {...rest, raw: true});
  await page.waitForFunction(() =>
    window.stageline?.pipeline?.frames() > 0 && window.stageline.pipeline.tables() !== null
  );
  await atRest(page);
  return page;
}
// Opens it on two runs. It waits for both charts and the text above them: later they would move down, and be painted
// again.
export async function showBoth(open, run, hash = '', options = {}) {
  const page = await show(open, run, hash, options);
  await page.waitForFunction(() =>
    stageline.pipeline.other()?.both === false ||
    stageline.pipeline.other()?.compared && document.querySelector('.runs-words b')
  );
  await atRest(page);
  return page;
}
// Two frames without a new one in between: nothing is left to draw.
export async function atRest(page) {
  await page.evaluate(async () => {
    const frame = () => new Promise(done => requestAnimationFrame(done));
    for (let still = 0, last = -1; still < 3;) {
      await frame();
      const now = stageline.pipeline.frames();
      still = now === last ? still + 1 : 0;
      last = now;
    }
  });
}
export const state = page => page.evaluate(() => stageline.pipeline.state());
export const view = page => page.evaluate(() => ({...stageline.pipeline.view()}));
export const program = (...args) =>
  JSON.parse(
    execFileSync(STAGELINE, args, {encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 28}),
  );
export const rowsOf = (answer, name) => answer.tables.find(table => table.name === name).rows;
// A cell of the shown step, its middle in the window, once nothing moves any more: a click on where it was would hit
// another.
export const cellWhere = async (page, want) => (await atRest(page), page.evaluate(wanted => {
  const p = stageline.pipeline, {step} = p.state(), shown = new Set(p.rows());
  for (let i = 0; i < p.cells(); ++i) {
    const cell = p.cell(i);
    if (cell.step !== step || !shown.has(cell.part) ||
      Object.entries(wanted).some(([key, value]) => cell[key] !== value)) continue;
    const box = p.box(i);
    if (box && box.w > 3)
      return {index: i, ...cell, box, x: box.x + box.w / 2, y: box.y + Math.min(box.h / 2, box.h * 0.4)};
  }
  return null;
}, want));
