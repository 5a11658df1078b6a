// Every page once in a Firefox of the machine: it draws, and the browser has nothing to complain about. Run by
// viewer_run.mjs.
import assert from 'node:assert/strict';
import {firefoxPath, launchFirefox} from './firefox.mjs';

// The run, the address, when the page is there, what has to be on it.
const PAGES = [
  [
    'pipeline',
    '#/overview',
    () => window.stageline?.overviewReady?.(),
    () => document.querySelector('h1').textContent.length > 5,
  ],
  [
    'profile',
    '#/overview',
    () => window.stageline?.overviewReady?.(),
    () => document.querySelector('h1').textContent.length > 5,
  ],
  [
    'pipeline',
    '#/pipeline',
    () => window.stageline?.pipeline?.frames?.() > 0 && stageline.pipeline.tables(),
    () => document.querySelector('.chart canvas').width > 300,
  ],
  [
    'pipeline',
    '#/timeline',
    () => window.stageline?.frames?.() > 0 && stageline.settled(),
    () => stageline.painted().slices > 0,
  ],
  [
    'profile',
    '#/timeline',
    () => window.stageline?.frames?.() > 0 && stageline.settled(),
    () => stageline.painted().slices > 0,
  ],
  [
    'profile',
    '#/answers/kernels',
    () => window.stageline?.answers?.().family && stageline.answers().waiting.length === 0,
    () => document.querySelectorAll('.answers table').length > 0,
  ],
  ...['', '/sandwich', '/tree'].map(
    view => [
      'profile',
      `#/flame${view}`,
      () => window.stageline?.flame?.(),
      () => document.querySelector('.flame-body').childElementCount > 0,
    ],
  ),
  [
    'compared',
    '#/compare',
    () => window.stageline?.compared?.(),
    () => document.querySelectorAll('.effects tr').length > 2,
  ],
  [
    'start',
    '',
    () => window.stageline?.start?.().folder,
    () => document.querySelectorAll('.start-files tbody tr').length === 5,
  ],
];

export const cases = ['en', 'zh'].map((lang,
  k) => [`firefox: every page, ${k ? 'dark, in Chinese' : 'light, in English'}`, async (open, tools) => {
  const firefox = firefoxPath() && await launchFirefox(tools.folder);
  if (!firefox) return tools.skip(`${PAGES.length} pages: no Firefox found; set FIREFOX to its path`);
  try {
    for (const [run, hash, ready, holds] of PAGES) {
      await firefox.open(
        `${await tools.serve(run)}/?lang=${lang}&theme=${k ? 'dark' : 'light'}&page=${encodeURIComponent(hash)}${hash}`,
      );
      await firefox.until(ready);
      assert.ok(await firefox.ask(holds), `${run} ${hash}`);
      assert.equal(await firefox.ask(() => document.documentElement.dataset.theme), k ? 'dark' : 'light');
      assert.ok(await firefox.ask(() => document.documentElement.scrollWidth <= innerWidth),
        `${run} ${hash} is wider than the window`);
    }
    assert.deepEqual(firefox.problems, []);
  } finally {
    firefox.close();
  }
}]);
