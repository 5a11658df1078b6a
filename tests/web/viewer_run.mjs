// node viewer_run.mjs STAGELINE FOLDER: serves runs with `stageline view` and drives the viewer in a headless Chromium
// with real input events. Screenshots are left in FOLDER. Exit 0 good, 1 a failure, 77 nothing to drive with. With
// --update-goldens the pictures in goldens/ are recorded anew; STAGELINE_WEB_ONLY is a part of the names of the cases to run.
import {spawn} from 'node:child_process';
import {mkdirSync} from 'node:fs';
import {join} from 'node:path';
import {launch} from './browser.mjs';
import {expectPicture, fixedArguments, fontsOnly, record, whyNot} from './goldens.mjs';
import {makeRuns} from './viewer_runs.mjs';

const [stageline, folder] = process.argv.slice(2), update = process.argv.includes('--update-goldens');
const browser = await launch();
mkdirSync(folder, {recursive: true});
const runs = makeRuns(stageline, folder);

// One server a run, started when it is first asked for.
const servers = new Map();
function serve(name) {
  if (servers.has(name)) return servers.get(name).address;
  const child = spawn(stageline, ['view', ...[runs[name]].flat(), '--port', '0', '--no-open', '--quiet'], {stdio: ['ignore', 'pipe', 'inherit']});
  const address = new Promise((done, fail) => {
    let text = '';
    child.stdout.on('data', data => {
      text += data;
      const found = /http:\/\/\S+/.exec(text);
      if (found) done(found[0].replace(/\/$/, ''));
    });
    child.on('exit', code => fail(new Error(`stageline view ${runs[name]} ended with ${code} before it printed an address`)));
  });
  servers.set(name, {child, address});
  return address;
}

const only = process.env.STAGELINE_WEB_ONLY ?? '';  // cases whose name has this
const files = ['viewer_test', 'viewer_move_test', 'viewer_select_test', 'viewer_rows_test', 'viewer_edge_test', 'viewer_access_test',
  'viewer_colour_test', 'viewer_shell_test', 'viewer_golden_test', 'answers_test', 'pipeline_test', 'pipeline_runs_test', 'pages_golden_test', 'onefile_test', 'charts_test', 'theory_test', 'findings_test'];
const cases = (await Promise.all(files.map(file => import(`./${file}.mjs`)))).flatMap(file => file.cases)
    .filter(([name]) => name.includes(only));
// Pictures are drawn by a browser that has the same fonts everywhere.
let fixed = null, unfit = '';  // why the last one cannot be compared
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
let failed = 0, skipped = 0;
for (const [name, run, options] of cases) {
  const drives = await browserOf(options);
  if (options?.fixed && unfit) {
    ++skipped;
    console.log(`skip  ${name}: ${unfit}`);
    continue;
  }
  const context = await drives.newContext({viewport: {width: 1440, height: 900}, reducedMotion: 'no-preference',
      hasTouch: name.startsWith('touch')});
  const problems = [];
  // Opens a run; anything the page complains about fails the case, and so does a request to anyone but the server.
  async function open(file, query = '?lang=en', options = {}) {
    const address = await serve(file), page = await context.newPage();
    if (options.size) await page.setViewportSize({width: options.size[0], height: options.size[1]});
    await page.emulateMedia({colorScheme: options.dark ? 'dark' : 'light', ...(options.calm ? {reducedMotion: 'reduce'} : {})});
    page.on('console', message => { if (!options.complaints && ['error', 'warning'].includes(message.type()) &&
        !/willReadFrequently/.test(message.text())) problems.push(`console: ${message.text()}`); });
    page.on('pageerror', error => problems.push(`page error: ${error.stack}`));
    page.on('request', request => { if (!request.url().startsWith(address) && !options.foreign &&
        !/^(data|blob):/.test(request.url())) problems.push(`request: ${request.url()}`); });
    page.on('dialog', dialog => { problems.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    await page.goto(`${address}/${query.includes('#') || options.first ? query : query + '#/timeline'}`);
    if (options.raw || options.first || /#\/(?!timeline)/.test(query)) return page;
    await page.waitForFunction(() => window.stageline?.frames?.() > 0 && window.stageline.settled());
    return page;
  }
  try {
    let why = '';
    await run(open, {skip: reason => { why = reason; }, folder, stageline, runs, picture, blank, shot: (page, file) => page.screenshot({path: join(folder, file + '.png')}), serve, context});
    if (problems.length > 0) throw new Error(problems.join('\n'));
    if (why) ++skipped;
    console.log(why ? `skip  ${name}: ${why}` : `ok    ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAIL  ${name}\n${String(error.stack).replace(/^/gm, '      ')}`);
  }
  await context.close();
}
await browser.close();
await fixed?.close();
for (const {child} of servers.values()) child.kill('SIGINT');
console.log(`${cases.length - failed - skipped} of ${cases.length} passed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exit(failed > 0 ? 1 : 0);
