// Reports for the tests: written once each, opened from disk with the network off.
import {execFileSync} from 'node:child_process';
import {mkdirSync} from 'node:fs';
import {join} from 'node:path';

// `name` of a run, or a path.
const reports = new Map();
export function reportOf({stageline, runs, folder}, name, ...flags) {
  const path = join(folder, 'reports', `${[name, ...flags].join('').replace(/[^\w]+/g, '-')}.html`);
  if (!reports.has(path)) {
    mkdirSync(join(folder, 'reports'), {recursive: true});
    execFileSync(stageline, ['report', ...[runs[name] ?? name].flat(), '-o', path, '--quiet', ...flags], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    reports.set(path, path);
  }
  return path;
}

// From disk, the network off; whatever the page complains about or asks for is a problem. `again` is what this returned
// for a page that is done with: that page goes to another place of the same file.
export async function openReport(context, path, query = '?lang=en#/timeline',
  {size, dark = false, scripts = '', again} = {})
{
  if (again) {
    await again.page.evaluate(hash => {
      location.hash = hash;
    }, query.slice(query.indexOf('#')));
    return again;
  }
  const page = await context.newPage(), problems = [];
  if (dark) await page.emulateMedia({colorScheme: 'dark'});
  if (size) await page.setViewportSize({width: size[0], height: size[1]});
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type()) && !/willReadFrequently/.test(message.text()))
      problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', error => problems.push(`page error: ${error.stack}`));
  page.on('request', request => {
    if (request.url() !== page.url() && !request.isNavigationRequest() && !/^(data|blob):/.test(request.url()))
      problems.push(`request: ${request.url()}`);
  });
  page.on('dialog', dialog => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await context.setOffline(true);
  if (scripts) await page.addInitScript(scripts);
  await page.goto(`file://${path}${query}`);
  await page.waitForFunction(() => window.stageline?.run);
  return {page, problems};
}
export async function timelineOf(page) {
  await page.waitForFunction(() => window.stageline?.frames?.() > 0 && window.stageline.settled());
}
