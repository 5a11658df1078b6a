// Short words for the viewer's tests.
export const view = page => page.evaluate('({...stageline.view()})');
export const state = page => page.evaluate('stageline.state()');
export const span = v => v.t1 - v.t0;
export const close = (a, b, by) => Math.abs(a - b) <= by;
export const laneOf = (page, index) => page.evaluate(i => stageline.run.lanes[i].id, index);
export const count = (page, lane) => page.evaluate(id => stageline.slices(id).length, lane);

// Everything asked for has come and is drawn.
export async function settle(page) {
  const still = await page.evaluate(async () => {
    const until = Date.now() + 120000;
    do await new Promise(done =>
      requestAnimationFrame(() => requestAnimationFrame(done))
    ); while (!stageline.settled() && Date.now() < until);
    return stageline.settled();
  });
  if (!still) throw new Error('the page does not come to rest');
}

// Waits until everything about the chosen slice is in the drawer: it is drawn a frame after the answer arrives.
export async function chosen(page) {
  await page.waitForFunction(() => stageline.facts());
  await settle(page);
}

// A window of another size, once the page has been laid out in it.
export async function resize(page, width, height) {
  await page.setViewportSize({width, height});
  await page.waitForFunction(([w, h]) => innerWidth === w && innerHeight === h, [width, height]);
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
}

// Stops the clock by which the page separates gestures: all actions now are one gesture, on any machine. Returns a
// function that lets time pass.
export async function stopClock(page) {
  await page.evaluate(() => {
    const stopped = performance.now();
    window.passed = 0;
    performance.now = () => stopped + window.passed;
  });
  return ms =>
    page.evaluate(by => {
      window.passed += by;
    }, ms);
}

// Multiplies the page's short waits (for a second letter, another page's answer) by this number.
export const patience = (page, times) =>
  page.evaluate(by => {
    const {setTimeout} = window;
    window.setTimeout = (act, ms, ...more) => setTimeout(act, ms > 2000 ? ms * by : ms, ...more);
  }, times);

// The list of the search for all that is typed, not for a part of it.
export const listed = page => page.waitForSelector('#omni ul:not([aria-busy=true]) li');
// Back and forward: the page follows once the browser has gone there.
export async function follows(page, way, id) {
  await (way === 'back' ? page.goBack() : page.goForward());
  await page.waitForFunction(wanted => stageline.page() === wanted, id);
}

// The widest slice of a lane that is in sight, and its middle in the window.
export async function wideSlice(page, lane, nth = 0) {
  await settle(page);
  return page.evaluate(([id, k]) => {
    const {t0, t1} = stageline.view();
    const inside = stageline.slices(id).filter(s => s.dur > 0 && s.start >= t0 && s.start + s.dur <= t1).sort((a, b) =>
      b.dur - a.dur ||
      a.start - b.start
    );
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

// Every text a reader can see outside the canvas.
export const visibleTexts = page =>
  page.evaluate(() => {
    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
      if (text && !/^(SCRIPT|NOSCRIPT|OPTION|TITLE)$/.test(element.tagName) && element.getClientRects().length > 0)
        texts.push(text);
    }
    return texts;
  });

// Checks every readable text of the page against its ground: returns texts with a contrast below 4.5 to 1.
export const textContrast = page =>
  page.evaluate(() => {
    const parse = text => text.match(/[\d.]+/g).map(Number);
    const luminance = c =>
      c.slice(0, 3).map(v => v / 255).map(v => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let seen = 0;
    const fields = [...document.querySelectorAll('input')].map(one => ({element: one,
      text: one.value || one.placeholder})
    );
    while (walker.nextNode()) fields.push({element: walker.currentNode.parentElement,
        text: walker.currentNode.textContent});
    for (const {element, text} of fields) {
      if (!text.trim() || element.getClientRects().length === 0 || /^(SCRIPT|NOSCRIPT|OPTION)$/.test(element.tagName))
        continue;
      let ground = element, faint = 1;
      while (ground && (parse(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
      for (let at = element; at; at = at.parentElement) faint = Math.min(faint, Number(getComputedStyle(at).opacity));
      const [ink, paper] = [
        parse(getComputedStyle(element).color),
        parse(getComputedStyle(ground ?? document.body).backgroundColor),
      ];
      const shown = ink.slice(0, 3).map((v, i) => v * faint + paper[i] * (1 - faint)),
        [a, b] = [luminance(shown), luminance(paper)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      ++seen;
      if (ratio < 4.5) found.push(`${text.trim().slice(0, 60)} ${ratio.toFixed(2)}`);
    }
    return {seen, found};
  });
export const poorContrast = async page => (await textContrast(page)).found;

// Returns elements past the right edge of the visible page: "TAG.CLASS words +PIXELS", outermost first.
export const tooWide = page =>
  page.evaluate(() => {
    const shown = [...document.querySelectorAll('.page')].find(one => !one.hidden),
      edge = shown.getBoundingClientRect().left + shown.clientWidth;
    const over = one => Math.round(one.getBoundingClientRect().right - edge);
    return [...shown.querySelectorAll('*')].filter(one => one.getClientRects().length > 0 && over(one) > 0)
      .map(one =>
        `${one.tagName}.${one.getAttribute('class') ?? ''} ${one.textContent.trim().slice(0, 30)} +${over(one)}`
      ).slice(0, 20).join('; ');
  });
