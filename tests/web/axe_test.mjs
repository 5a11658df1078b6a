// Axe must find nothing on every page, served and in a report, in both themes and languages. Run by
// viewer_run.mjs.
import assert from 'node:assert/strict';
import {violations} from './axe.mjs';
import {openReport, reportOf} from './onefile_help.mjs';
import {settle} from './viewer_help.mjs';

const overview = page => page.waitForFunction(() => window.stageline?.overviewReady?.());
const answers = page =>
  page.waitForFunction(() => window.stageline?.answers?.().family && stageline.answers().waiting.length === 0);
const pipeline = page =>
  page.waitForFunction(() => window.stageline?.pipeline?.frames?.() > 0 && stageline.pipeline.tables());
const timeline = async page => {
  await page.waitForFunction(() => window.stageline?.frames?.() > 0);
  await settle(page);
};
const planned = page => page.waitForFunction(() => window.stageline?.planned?.() && !stageline.planned().busy);
const compare = page => page.waitForFunction(() => window.stageline?.compared?.());
const evidence = of => async page => {
  await of(page);
  await page.waitForFunction(() => document.querySelector('#evidence'));
};
const PIPELINE_FAMILIES = ['time', 'slow', 'schedule', 'critical', 'communication', 'cluster', 'other'];
const PROFILE_FAMILIES = [
  'time',
  'kernels',
  'operators',
  'communication',
  'idle',
  'launches',
  'memory',
  'counters',
  'slow',
  'critical',
  'cluster',
  'other',
];

const SERVED = [
  ['Overview of a pipeline', 'slower', '', overview],
  ['Overview of a profile', 'profile', '', overview],
  ['Overview of Ascend', 'ascend', '', overview],
  ['Pipeline', 'slower', '#/pipeline?scene=stage.slow', evidence(pipeline)],
  ['Pipeline of many ranks', 'many', '#/pipeline?step=2', pipeline],
  ['Pipeline, two runs', 'compared', '#/pipeline?step=1&both=1', pipeline],
  ['what-if, scenarios', 'slower', '#/pipeline?step=1&if=scale%3D3:0.7', async page => {
    await pipeline(page);
    await page.waitForSelector('#before-after');
    await page.click('#what-if-keep');
    await page.waitForSelector('.kept tbody tr:nth-child(2)');
  }],
  ['Timeline', 'slower', '#/timeline?scene=stage.slow', async page => {
    await evidence(timeline)(page);
    await page.waitForFunction(() => stageline.facts());
  }],
  ['Timeline, two runs', 'compared', '#/timeline', async page => {
    await timeline(page);
    await page.waitForFunction(() => stageline.second);
    await settle(page);
  }],
  ['Timeline of a profile', 'profile', '#/timeline', timeline],
  ['Timeline, the search', 'profile', '#/timeline', async page => {
    await timeline(page);
    await page.keyboard.press('F1');
    await page.waitForSelector('#omni');
  }],
  ['Timeline, totals of all', 'profile', '#/timeline', async page => {
    await timeline(page);
    await page.keyboard.press('F1');
    await page.waitForSelector('#omni');
    await page.keyboard.type('sum up everything');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.totals tbody tr');
  }, ['en']],
  ['the list of keys', 'profile', '#/timeline', async page => {
    await timeline(page);
    await page.keyboard.press('?');
    await page.waitForSelector('dialog[open]');
  }],
  ...PIPELINE_FAMILIES.map(family => [`Answers of a pipeline, ${family}`, 'slower', `#/answers/${family}`, answers]),
  ['Answers of Ascend, cluster', 'ascend', '#/answers/cluster', answers],
  ...PROFILE_FAMILIES.map(family => [`Answers of a profile, ${family}`, 'profile', `#/answers/${family}`, answers]),
  ...['', '/sandwich', '/tree'].map(
    view => [
      `Flame graph${view}`,
      'profiles',
      `#/flame${view}?b=other`,
      page => page.waitForFunction(() => window.stageline?.flame?.()),
    ],
  ),
  [
    'Start',
    'start',
    '',
    page => page.waitForFunction(() => Object.keys(window.stageline?.start?.().looks ?? {}).length > 4),
  ],
  [
    'Trend',
    'start',
    `#/trend?${[1, 2, 3, 4].map(k => `path=run-${k}`).join('&')}`,
    page => page.waitForFunction(() => window.stageline?.start?.().trend),
  ],
  ['Plan', 'slower', '#/plan?recorded=false', planned],
  ['Plan that does not fit', 'slower', '#/plan?recorded=false&memory=16&pp=1&gpus=1', planned],
  ['Compare', 'compared', '#/compare', compare],
  ['Compare of snapshots', 'snapshots', '#/compare', page => page.waitForSelector('.compare .effects')],
  ['Answers of a snapshot', 'snapshot', '#/answers/memory', async page => {
    await answers(page);
    await page.waitForSelector('.segment');
  }],
  ['Answers of experts', 'experts', '#/answers/cluster', answers],
  ['Answers of routers', 'router_trace', '#/answers/cluster', answers],
  ['Answers of collectives', 'collectives', '#/answers/communication', answers],
  ['Timeline of a hang', 'hang', '#/timeline', async page => {
    await timeline(page);
    await page.waitForFunction(() => stageline.state().hang);
  }],
  [
    'Overview, a step of a profile',
    'twelfthOfTorch',
    '#/overview?step=12',
    page => page.waitForFunction(() => document.querySelector('.step-words')?.textContent),
  ],
  ['Compare, two profiles', 'profiles', '#/compare', compare],
  ['Compare without another run', 'slower', '#/compare', compare],
  ['a run that cannot be read', 'broken', '', page => page.waitForFunction(() => document.body.innerText.length > 20)],
];
const IN_FILE = [
  ['slower', [['overview', overview], ['pipeline?scene=stage.slow', evidence(pipeline)], ['timeline', timeline], [
    'answers/time',
    answers,
  ], ['answers/slow', answers]]],
  ['compared', [['overview', overview], ['pipeline?step=1&both=1', pipeline], ['compare', compare]]],
  ['profiles', [
    ['overview', overview],
    ['timeline', timeline],
    ['answers/kernels', answers],
    ['answers/operators', answers],
    ['compare', compare],
    ['flame', page => page.waitForFunction(() => window.stageline?.flame?.())],
  ]],
];
// Each theme and each language once: colours do not depend on the words, nor roles and names on the colours.
const looks = langs =>
  [false, true].map((dark, k) => {
    const lang = langs[k % langs.length];
    return {dark, lang, said: `${dark ? 'dark' : 'light'}, ${lang}`};
  });

export const cases = [
  ...SERVED.map((
    [what, run, hash, ready, langs = ['en', 'zh']],
  ) => [`axe finds nothing: ${what}`, async open => {
    const found = [];
    let page;
    for (const {dark, lang, said} of looks(langs)) {
      page = await open(run, `?lang=${lang}${hash}`, {raw: true, first: hash === '', dark, again: page});
      await ready(page);
      for (const one of await violations(page)) found.push(`${said}: ${one}`);
    }
    assert.deepEqual(found, []);
  }]),
  ...IN_FILE.map((
    [run, pages],
  ) => [`axe finds nothing: every page of a report, ${run}`, async (open, tools) => {
    const found = [], path = reportOf(tools, run);
    for (const {dark, lang, said} of looks(['en', 'zh'])) {
      let opened;
      for (const [hash, ready] of pages) {
        opened = await openReport(tools.files, path, `?lang=${lang}#/${hash}`, {dark, again: opened});
        await ready(opened.page);
        for (const one of await violations(opened.page)) found.push(`${said}, ${hash}: ${one}`);
        assert.deepEqual(opened.problems, []);
      }
      await opened.page.close();
    }
    assert.deepEqual(found, []);
  }]),
];
