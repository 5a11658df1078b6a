// The page Plan: each move of a slider is priced as `stageline plan` prices it. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {openReport} from './onefile_help.mjs';
import {poorContrast} from './viewer_help.mjs';

const LLAMA = {model_type: 'llama', hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32,
  num_key_value_heads: 8, intermediate_size: 14336, vocab_size: 128256};
const plan = (program, ...flags) =>
  JSON.parse(execFileSync(program, ['plan', '--json', '--top', '1', ...flags.map(String)], {maxBuffer: 1 << 28}));
const LLAMA_FILE = folder => {
  const path = join(folder, 'plan-llama.json');
  writeFileSync(path, JSON.stringify(LLAMA));
  return path;
};
// Waits until the last question is answered.
const rest = async page => {
  await page.waitForFunction(() => window.stageline?.planned?.() && !stageline.planned().busy);
  return page.evaluate(() => stageline.planned());
};
const ESTIMATED = '?lang=en#/plan?recorded=false';

export const cases = [
  ['plan: the page says what the program says, at every move', async (open, {stageline, folder}) => {
    const config = join(folder, 'plan-config.json');
    writeFileSync(config, JSON.stringify({...LLAMA, architectures: ['LlamaForCausalLM'], note: 'x'.repeat(9000)}));
    const page = await open('slower', ESTIMATED, {raw: true, complaints: true}),
      flags = ['--gpus', 16, '--tp', 1, '--memory', '80GiB', '--seq', 8192, '--micro-batch-size', 1];
    await page.setInputFiles('#plan-model', config);
    let now = await rest(page);
    const same = (...more) => {
      const own = plan(stageline, config, ...flags, ...more);
      assert.deepEqual(now.answer.plans, own.plans);
      assert.deepEqual(now.answer.infeasible, own.infeasible);
    };
    same('--pp', 4, '--schedule', '1f1b', '--micro-batches', 16);
    assert.equal(await page.locator('.plan-bars .bar').count(), 4);
    assert.match(await page.textContent('h1'), /per step ± .*GiB on the fullest stage/);
    await page.focus('#plan-pp');
    await page.keyboard.press('ArrowRight');
    now = await rest(page);
    assert.equal(now.asked.pp, 6);
    await page.waitForSelector('.plan .notice'); // six stages do not divide 16 devices
    await page.keyboard.press('ArrowRight');
    now = await rest(page);
    same('--pp', 8, '--schedule', '1f1b', '--micro-batches', 16);
    await page.selectOption('#plan-schedule', 'vpp');
    await rest(page);
    await page.focus('#plan-micro_batches');
    await page.keyboard.press('ArrowRight');
    now = await rest(page);
    same('--pp', 8, '--schedule', 'vpp', '--chunks', 2, '--micro-batches', 24);
    await page.waitForFunction(() => location.hash.includes('pp=8') && location.hash.includes('micro_batches=24'));
    assert.match(await page.textContent('.plan-type'), /--pipeline-model-parallel-size 8/);
    const address = new URL(page.url()),
      again = await open('slower', address.search + address.hash, {raw: true, complaints: true, again: page});
    assert.deepEqual((await rest(again)).answer.plans, now.answer.plans, 'the address has the description');
    assert.equal(await again.textContent('#plan-model + output'), 'plan-config.json');
  }],
  ['plan: what does not fit says why, and in which change it fits', async open => {
    const page = await open('slower', ESTIMATED + '&memory=16&pp=1&gpus=1', {raw: true}), now = await rest(page);
    assert.equal(now.answer.plans.length, 0);
    assert.match(await page.textContent('h1'), /^Does not fit: stage 0 needs /);
    assert.equal(await page.locator('.plan-fixes li').count(), now.answer.infeasible.fixes.length);
  }],
  ['plan: the times of the run, and the address that shows them', async (open, {stageline, runs}) => {
    const page = await open('slower', '?lang=en#/plan?layers=32', {raw: true}), now = await rest(page);
    const own = plan(stageline, '--from', [runs.slower].flat()[0], '--layers', 32, '--micro-batch-size', 1, '--seq',
      8192);
    assert.equal(now.answer.basis.times, 'recorded');
    assert.equal(now.answer.plans[0].step_ns, own.plans[0].step_ns);
    assert.equal(now.asked.pp, own.plans[0].pp);
    assert.equal(await page.locator('#plan-gpus').isDisabled(), true, 'the run has its devices');
    const again = await open('slower', new URL(page.url()).search + new URL(page.url()).hash, {raw: true});
    assert.equal((await rest(again)).answer.plans[0].step_ns, own.plans[0].step_ns);
  }],
  ['plan: a description that is none is said, and the page goes on', async (open, {folder}) => {
    const bad = join(folder, 'plan-bad.json');
    writeFileSync(bad, '{"model_type": "nothing", "hidden_size": 1}');
    const page = await open('slower', ESTIMATED, {raw: true, complaints: true});
    await rest(page);
    await page.setInputFiles('#plan-model', bad);
    await page.waitForSelector('.plan .notice');
    assert.match(await page.textContent('.plan .notice'), /nothing/);
    writeFileSync(bad, JSON.stringify(LLAMA));
    await page.setInputFiles('#plan-model', []);
    await page.setInputFiles('#plan-model', bad);
    await page.waitForFunction(() => !document.querySelector('.plan .notice'));
    assert.equal((await rest(page)).answer.plans.length, 1);
  }],
  ['plan: both themes and languages can be read', async (open, {folder}) => {
    let page;
    for (const [lang, dark] of [['en', false], ['zh', true]]) {
      page = await open('slower', `?lang=${lang}#/plan?recorded=false`, {raw: true, dark, again: page});
      await rest(page);
      assert.deepEqual(await poorContrast(page), []);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
      await page.screenshot({path: join(folder, `plan-${lang}-${dark ? 'dark' : 'light'}.png`), fullPage: true});
    }
    assert.match(await page.textContent('h1'), /每步/);
  }],
  ['plan: without a run, from the start page, with an address of its own', async (open, {stageline, folder}) => {
    let page;
    for (const [lang, dark] of [['en', false], ['zh', true]]) {
      page = await open('start', `?lang=${lang}`, {raw: true, first: true, dark, complaints: true, again: page});
      await page.click('a[href="#/plan"]');
      const now = await rest(page),
        own = plan(stageline, LLAMA_FILE(folder), '--gpus', 16, '--tp', 1, '--memory', '80GiB', '--seq', 8192,
          '--micro-batch-size', 1, '--pp', 4, '--schedule', '1f1b', '--micro-batches', 16);
      assert.deepEqual(now.answer.plans, own.plans);
      assert.deepEqual(await poorContrast(page), []);
      const colours = await page.evaluate(() =>
        [...document.querySelectorAll('.plan-bars .bar:first-of-type b')].map(one =>
          getComputedStyle(one).backgroundColor
        )
      );
      assert.ok(colours.length > 3 && !colours.includes('rgba(0, 0, 0, 0)'), 'every part has its colour');
      await page.screenshot({path: join(folder, `start-plan-${lang}.png`), fullPage: true});
    }
    await page.focus('#plan-pp');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await rest(page);
    await page.waitForFunction(() => location.hash.includes('pp=8'));
    const again = await open('start', '?lang=en' + new URL(page.url()).hash, {raw: true, first: true});
    assert.equal((await rest(again)).answer.plans[0].pp, 8);
    assert.match(await again.title(), /^Plan a pipeline/);
    await again.click('#lang');
    await again.waitForFunction(() => document.querySelector('h1').textContent.includes('每步'));
    await again.click('a.logo');
    await again.waitForFunction(() => window.stageline?.start?.().folder);
  }],
  ['plan: a report of a plan opens on it, without sliders', async (open, tools) => {
    const {stageline, folder} = tools, config = join(folder, 'plan-report.json'),
      path = join(folder, 'plan-report.html');
    writeFileSync(config, JSON.stringify(LLAMA));
    const flags = ['--gpus', '16', '--memory', '80GiB', '--seq', '8192', '--pp', '4', '--schedule', '1f1b'];
    execFileSync(stageline, ['plan', config, ...flags, '-o', path]);
    const {page, problems} = await openReport(tools.files, path, '?lang=en'), now = await rest(page);
    assert.equal(await page.evaluate(() => stageline.page()), 'plan');
    assert.equal(await page.locator('.plan-form').count(), 0);
    assert.equal(now.answer.plans[0].pp, 4);
    assert.equal(await page.locator('.plan-bars .bar').count(), 4);
    assert.deepEqual(problems, []);
    await page.close();
  }],
];
