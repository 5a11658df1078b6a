// Short words for the viewer's tests.
export const view = page => page.evaluate('({...stageline.view()})');
export const state = page => page.evaluate('stageline.state()');
export const span = v => v.t1 - v.t0;
export const close = (a, b, by) => Math.abs(a - b) <= by;
export const laneOf = (page, index) => page.evaluate(i => stageline.run.lanes[i].id, index);
export const count = (page, lane) => page.evaluate(id => stageline.slices(id).length, lane);

// Everything asked for has come and is drawn.
export async function settle(page) {
  for (let tries = 0; tries < 400; ++tries)
    if (await page.evaluate(() =>
        new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(stageline.settled())))))) return;
  throw new Error('the page does not come to rest');
}

// The widest slice of a lane that is in sight, and its middle in the window.
export async function wideSlice(page, lane, nth = 0) {
  await settle(page);
  return page.evaluate(([id, k]) => {
    const {t0, t1} = stageline.view();
    const inside = stageline.slices(id).filter(s => s.dur > 0 && s.start >= t0 && s.start + s.dur <= t1).sort((a, b) => b.dur - a.dur ||
        a.start - b.start);
    const slice = inside[k], box = stageline.sliceBox(slice);
    return {slice, box, x: box.x + box.w / 2, y: box.y + box.h / 2};
  }, [lane, nth]);
}

export async function clickSlice(page, lane, nth = 0, modifiers = []) {
  const at = await wideSlice(page, lane, nth);
  for (const key of modifiers) await page.keyboard.down(key);
  await page.mouse.click(at.x, at.y);
  for (const key of modifiers) await page.keyboard.up(key);
  return at;
}

export async function drag(page, from, to, modifiers = []) {
  for (const key of modifiers) await page.keyboard.down(key);
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move((from[0] + to[0]) / 2, (from[1] + to[1]) / 2);
  await page.mouse.move(...to);
  await page.mouse.up();
  for (const key of modifiers) await page.keyboard.up(key);
}
