// What drives a page: a Chromium of the machine and playwright-core, installed once per state of the lock file.
// Exits with 77 where there is nothing to drive with.
import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {existsSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

export function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(77);
}

export function chromiumPath() {
  const places = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome',
                  '/usr/bin/google-chrome-stable', '/snap/bin/chromium', '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'];
  return places.find(path => path && existsSync(path)) ?? skip('no Chromium found; set CHROMIUM to its path');
}

// More arguments and variables of its environment, where a case needs them.
export async function launch({args = [], env} = {}) {
  const chromium = chromiumPath();
  const stamp = join(here, 'node_modules/.stageline-lock-hash');
  const wanted = createHash('sha256').update(readFileSync(join(here, 'package-lock.json'))).digest('hex');
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
    const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {cwd: here, encoding: 'utf8'});
    if (done.status !== 0) skip(`playwright-core could not be installed: ${(done.stderr ?? '').split('\n')[0]}`);
    writeFileSync(stamp, wanted);
  }
  const playwright = await import('playwright-core').catch(error => skip(`playwright-core does not load: ${error.message}`));
  return playwright.chromium.launch({
    executablePath: chromium,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-dev-shm-usage', '--no-first-run',
           ...args],
    ...(env ? {env: {...process.env, ...env}} : {}),
  });
}
