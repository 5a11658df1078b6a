// Starts a browser for a page: a Chromium of the machine and playwright-core, installed once per state of the lock
// file. Exits with 77 where there is nothing to drive with, and says how much is skipped for it.
import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {existsSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

function skip(why, what) {
  console.log(`skipped: ${what}${why}`);
  process.exit(77);
}
const firstLine = text => String(text ?? '').split('\n').find(line => line.trim()) ?? '';

export function chromiumPath(what = '', quick = false) {
  const places = [
    process.env.CHROMIUM,
    quick ? '/usr/bin/chromium-headless-shell' : '',
    '/usr/bin/chromium',
    '/usr/bin/chromium-browser',
    '/usr/bin/google-chrome',
    '/usr/bin/google-chrome-stable',
    '/snap/bin/chromium',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  ];
  return places.find(path => path && existsSync(path)) ?? skip('no Chromium found; set CHROMIUM to its path', what);
}

// The driver, where this node runs it: one that does not ends the process as soon as it is loaded.
async function driver(what) {
  const lock = readFileSync(join(here, 'package-lock.json'), 'utf8'),
    stamp = join(here, 'node_modules/.stageline-lock-hash');
  const {version, engines} = JSON.parse(lock).packages['node_modules/playwright-core'],
    least = Number(/\d+/.exec(engines.node)[0]);
  if (Number(process.versions.node.split('.')[0]) < least)
    skip(`playwright-core ${version} needs node ${least} or newer, this is ${process.versions.node}`, what);
  const wanted = createHash('sha256').update(lock).digest('hex');
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
    const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {cwd: here, encoding: 'utf8'});
    if (done.status !== 0)
      skip(`playwright-core could not be installed: ${firstLine(done.error?.message || done.stderr)}`, what);
    writeFileSync(stamp, wanted);
  }
  return import('playwright-core').catch(error => skip(`playwright-core does not load: ${error.message}`, what));
}

// More arguments and variables of its environment, where a case needs them. `what` cannot be done without. `quick` is
// Chromium's headless shell where there is one: a quarter less time, but it draws Chinese letters a little differently.
export async function launch({args = [], env, what = '', quick = false} = {}) {
  if (what) what += ': ';
  const executablePath = chromiumPath(what, quick), {chromium} = await driver(what);
  return chromium.launch({
    executablePath,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-dev-shm-usage',
      '--no-first-run',
      '--process-per-site',
      ...args,
    ],
    ...(env ? {env: {...process.env, ...env}} : {}),
  }).catch(error => skip(`${executablePath} does not start: ${reasonOf(error)}`, what));
}

// Returns the browser's own last message, out of all that playwright reports about its end.
function reasonOf({message}) {
  const said = message.split('\n').filter(line => /\[err\]/.test(line)).map(line => line.replace(/.*\[err\]\s*/, ''))
    .filter(Boolean);
  return said.at(-1) ?? firstLine(message);
}
