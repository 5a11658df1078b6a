// node run.mjs MAKE_REPORT FOLDER: writes reports and drives them in a headless Chromium.
// Exit 0 good, 1 a failure, 77 nothing to drive them with.
import {execFileSync} from 'node:child_process';
import {mkdirSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {launch} from './browser.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const [makeReport, folder] = process.argv.slice(2);

const browser = await launch();
mkdirSync(folder, {recursive: true});
execFileSync(makeReport, [folder, join(here, '..')], {stdio: 'inherit'});

const {cases: pipelineCases} = await import('./report_test.mjs');
const {cases: profileCases} = await import('./profile_test.mjs');
const {cases: theoryCases} = await import('./theory_test.mjs');
const {cases: clusterCases} = await import('./cluster_test.mjs');
const only = process.env.STAGELINE_WEB_ONLY ?? '';  // cases whose name has this
const cases = [...pipelineCases, ...theoryCases, ...profileCases, ...clusterCases].filter(([name]) => name.includes(only));
let failed = 0;
for (const [name, run] of cases) {
  const context = await browser.newContext({viewport: {width: 1320, height: 1030}});
  const problems = [];
  // Opens a report; anything the page complains about or asks the network for fails the case.
  async function open(file, query = '?lang=en', options = {}) {
    const page = await context.newPage();
    if (options.dark) await page.emulateMedia({colorScheme: 'dark'});
    page.on('console', message => { if (['error', 'warning'].includes(message.type()) && !/willReadFrequently/.test(message.text())) problems.push(`console: ${message.text()}`); });
    page.on('pageerror', error => problems.push(`page error: ${error.stack}`));
    page.on('request', request => { if (request.url() !== page.url() && !request.isNavigationRequest()) problems.push(`request: ${request.url()}`); });
    page.on('dialog', dialog => { problems.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    await page.goto(`file://${join(folder, file)}${query}`);
    await page.waitForFunction(() => window.stageline);
    await page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))');
    return page;
  }
  try {
    await run(open);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    console.log(`ok    ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAIL  ${name}\n${String(error.stack).replace(/^/gm, '      ')}`);
  }
  await context.close();
}
await browser.close();
console.log(`${cases.length - failed} of ${cases.length} passed`);
process.exit(failed > 0 ? 1 : 0);
