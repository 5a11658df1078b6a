// node viewer_run.mjs STAGELINE FOLDER serves runs with `stageline view` and drives the viewer in a headless Chromium
// with real input events. Screenshots are left in FOLDER. Its exit code is 0 on success, 1 on a failure, 77 without a
// browser. With --update-goldens the pictures in goldens/ are recorded again. STAGELINE_WEB_ONLY is a part of the names
// of the cases to run, STAGELINE_WEB_SLOW a factor by which Chromium is slowed. STAGELINE_WEB_LATE delays every frame
// by a number of milliseconds, as on a busy machine: every case must hold then, too. STAGELINE_WEB_BUNDLE is a folder
// whose scripts and style (`node web/build.mjs FOLDER`) replace those of a served page: a change of it is tried without
// a build.
import {spawn} from 'node:child_process';
import {mkdirSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {launch} from './browser.mjs';
import {expectPicture, fixedArguments, fontsOnly, record, whyNot} from './goldens.mjs';
import {makeRuns} from './viewer_runs.mjs';

const files = [
  'viewer_test',
  'viewer_move_test',
  'viewer_select_test',
  'viewer_rows_test',
  'viewer_second_test',
  'viewer_comfort_test',
  'viewer_memory_test',
  'viewer_edge_test',
  'viewer_access_test',
  'viewer_colour_test',
  'viewer_shell_test',
  'viewer_golden_test',
  'answers_test',
  'pipeline_test',
  'pipeline_runs_test',
  'pipeline_many_test',
  'pages_golden_test',
  'flame_test',
  'plan_test',
  'onefile_test',
  'charts_test',
  'theory_test',
  'findings_test',
  'page_test',
  'share_test',
  'daily_test',
  'axe_test',
  'start_test',
  'firefox_test',
];
const only = process.env.STAGELINE_WEB_ONLY ?? ''; // cases whose name has this
const cases = (await Promise.all(files.map(file => import(`./${file}.mjs`)))).flatMap(file => file.cases)
  .filter(([name]) => name.includes(only));

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

const [stageline, folder] = process.argv.slice(2, 4).map(path => resolve(path)),
  update = process.argv.includes('--update-goldens');
const browser = await launch({quick: true, what: `${cases.length} cases in the browser`});
mkdirSync(folder, {recursive: true});
// The runs lie where a path is longer than a narrow window is wide, as on clusters: what quotes it has to fold.
const runs = makeRuns(stageline,
  join(folder, 'runs-of-a-model-whose-name-says-its-layers-heads-and-sequence-length', 'attempt-of-monday'));

// Starts one server per run, at the first request, and opens it once it has read all. A page of a run that is still
// being read shows the present part, and starts again when there is more.
const servers = new Map();
process.on('exit', () => {
  for (const {child} of servers.values()) child.kill('SIGINT');
});
function serve(name) {
  if (servers.has(name)) return servers.get(name).address;
  const child = spawn(stageline, [
    'view',
    ...[runs[name]].flat(),
    '--port',
    '0',
    '--no-open',
    '--quiet',
    '--token',
    'none',
  ], {stdio: ['ignore', 'pipe', 'inherit']});
  const address = new Promise((done, fail) => {
    let text = '';
    child.stdout.on('data', data => {
      text += data;
      const found = /http:\/\/\S+/.exec(text);
      if (found) done(found[0].replace(/\/$/, ''));
    });
    child.on('exit',
      code => fail(new Error(`stageline view ${runs[name]} ended with ${code} before it printed an address`)));
  });
  const ready = address.then(async at => {
    while (!['ready', 'failed', 'choose'].includes((await (await fetch(`${at}/api/status`)).json()).state))
      await new Promise(done => setTimeout(done, 20));
    return at;
  });
  servers.set(name, {child, address: ready});
  return ready;
}

const bundle = process.env.STAGELINE_WEB_BUNDLE;
const slow = Number(process.env.STAGELINE_WEB_SLOW || 1);
const frameDelay = Number(process.env.STAGELINE_WEB_LATE || 0);
const slowed = async page =>
  slow > 1 && (await page.context().newCDPSession(page)).send('Emulation.setCPUThrottlingRate', {rate: slow});
const MOST_MS = 120000, CASE_MS = 900000; // for whatever is waited for, and for a case: longer than any machine takes
// Pictures are drawn by a browser that has the same fonts everywhere.
let fixed = null, unfit = ''; // why the last one cannot be compared
const blank = await (await browser.newContext()).newPage();
async function browserOf(options) {
  if (!options?.fixed) return browser;
  const fonts = fontsOnly(folder);
  if (!fonts) unfit = 'the DejaVu fonts are not installed';
  else fixed ??= await launch({args: fixedArguments, env: {FONTCONFIG_FILE: fonts}});
  if (fixed && update) record(fixed);
  else if (fixed) unfit = whyNot(fixed, options.chinese);
  return fixed;
}
const command = `node tests/web/viewer_run.mjs ${stageline} ${folder} --update-goldens`;
const picture = async (page, name, clip) => {
  const drawn = await page.screenshot({clip, animations: 'disabled', caret: 'hide'});
  await expectPicture(blank, name, drawn, {update, left: folder, command});
};
async function newContext(drives, hasTouch = false) {
  const context = await drives.newContext({viewport: {width: 1440, height: 900}, reducedMotion: 'no-preference',
    hasTouch});
  context.setDefaultTimeout(MOST_MS);
  // The page's work in a frame is delayed; input by keys, the pointer and the server is not.
  if (frameDelay > 0)
    await context.addInitScript(by => {
      const soon = window.requestAnimationFrame.bind(window), waiting = new Map();
      let last = 0;
      window.requestAnimationFrame = act => {
        const id = ++last;
        waiting.set(id, setTimeout(() => soon(now => waiting.delete(id) && act(now)), by));
        return id;
      };
      window.cancelAnimationFrame = id => {
        clearTimeout(waiting.get(id));
        waiting.delete(id);
      };
    }, frameDelay);
  if (bundle) {
    for (const file of ['viewer.js', 'chunk.js', 'late_pages.js', 'viewer.css'])
      await context.route(`**/${file}`, route => route.fulfill({path: join(bundle, file)}));
  }
  context.on('page', page => slowed(page).catch(() => undefined)); // it may be gone again
  return context;
}
// Cases share a context, and with it one process that has compiled the page already: one for what servers show, one for
// reports. Data that a page keeps for the next one is removed after each case. A case that changes its context says
// {alone: true} and gets one of its own.
const shared = new Map();
async function sharedContext(what) {
  if (!shared.has(what)) {
    const context = await newContext(browser);
    shared.set(what, {context, cdp: await context.newCDPSession(await context.newPage())});
  }
  return shared.get(what);
}
async function forget({context, cdp}, origins) {
  for (const page of context.pages().slice(1)) await page.close();
  for (const origin of origins) await cdp.send('Storage.clearDataForOrigin', {origin, storageTypes: 'local_storage'});
}

// Runs a case: why it was skipped, or what went wrong.
async function outcome([name, run, options], drives) {
  const touch = name.startsWith('touch'),
    own = options?.alone || touch || drives !== browser ? await newContext(drives, touch) : null;
  const served = own ? null : await sharedContext('served'), context = own ?? served.context,
    files = await sharedContext('files');
  const problems = [], addresses = new Set();
  let loads = 0;
  const english = options?.fixed && !options.chinese;
  // Opens a run; anything the page complains about fails the case, and so does a request to anyone but the server.
  // `again` is a page that is done with and loads this instead: a page of its own is a process more, and costs twice as
  // much.
  async function open(file, query = '?lang=en', options = {}) {
    if (english && /lang=zh/.test(query))
      throw new Error('a picture in Chinese needs its letters: the case has to say {chinese: true}');
    const address = await serve(file), page = options.again ?? await context.newPage();
    // A server keeps a run's marks for whoever comes next; every case begins without those of the cases before it.
    if (!addresses.has(address))
      await (await fetch(`${address}/api/notes`, {method: 'PUT', body: '{"notes": []}'})).arrayBuffer();
    addresses.add(address);
    const {width, height} = page.viewportSize(), [wide, high] = options.size ?? [1440, 900];
    if (wide !== width || high !== height) await page.setViewportSize({width: wide, height: high});
    await page.emulateMedia({colorScheme: options.dark ? 'dark' : 'light',
      ...(options.calm ? {reducedMotion: 'reduce'} : {})});
    if (!options.again) {
      await slowed(page);
      page.on('console', message => {
        if (!options.complaints && ['error', 'warning'].includes(message.type()) &&
          !/willReadFrequently/.test(message.text())) problems.push(`console: ${message.text()}`);
      });
      page.on('pageerror', error => problems.push(`page error: ${error.stack}`));
      page.on('request', request => {
        if (![...addresses].some(one => request.url().startsWith(one)) && !options.foreign &&
          !/^(data|blob):/.test(request.url())) problems.push(`request: ${request.url()}`);
      });
      page.on('dialog', dialog => {
        problems.push(`dialog: ${dialog.message()}`);
        dialog.dismiss();
      });
    }
    const own = options.again ? query.replace('?', `?load=${++loads}&`) : query; // not another place of the same page
    await page.goto(`${address}/${query.includes('#') || options.first ? own : own + '#/timeline'}`);
    if (options.raw || options.first || /#\/(?!timeline)/.test(query)) return page;
    await page.waitForFunction(() => window.stageline?.frames?.() > 0 && window.stageline.settled());
    return page;
  }
  let why = '', limit = 0, error = null;
  const tools = {skip: reason => {
    why = reason;
  }, folder, stageline, runs, picture, blank, serve, context, files: files.context,
    shot: (page, file) => page.screenshot({path: join(folder, file + '.png')})};
  try {
    const late = new Promise((_, fail) => {
      limit = setTimeout(() => fail(new Error(`not done after ${CASE_MS / 1000} s`)), CASE_MS);
    });
    await Promise.race([run(open, tools), late]);
    if (problems.length > 0) throw new Error(problems.join('\n'));
  } catch (wrong) {
    error = wrong;
  }
  clearTimeout(limit);
  if (own) await own.close();
  else await forget(served, addresses);
  await forget(files, ['file://']);
  return {why, error};
}

let failed = 0, skipped = 0;
for (const one of cases) {
  const [name, , options] = one, drives = await browserOf(options), began = Date.now();
  const say = (word, {why, error}) =>
    console.log(`${word.padEnd(5)} ${name}${why ? `: ${why}` : ''} (${((Date.now() - began) / 1000).toFixed(1)} s)` +
      (error ? `\n${String(error.stack).replace(/^/gm, '      ')}` : ''));
  if (options?.fixed && unfit) {
    ++skipped;
    console.log(`skip  ${name}: ${unfit}`);
    continue;
  }
  const seen = await outcome(one, drives);
  if (seen.error) ++failed;
  else if (seen.why) ++skipped;
  say(seen.error ? 'FAIL' : seen.why ? 'skip' : 'ok', seen);
}
await browser.close();
await fixed?.close();
console.log(`${cases.length - failed - skipped} of ${cases.length} passed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exit(failed > 0 ? 1 : 0);
