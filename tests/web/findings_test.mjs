// Every finding of the first screen leads to the place that shows it, over the ten faults that `stageline simulate`
// adds. It also tests rows of a table past those that one answer carries. viewer_run.mjs runs it.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {follows, settle} from './viewer_help.mjs';

const [PROFILE_FAULTS, KINETO] = ['profile_faults.py', 'kineto.py'].map(name =>
  join(dirname(fileURLToPath(import.meta.url)), '../gen', name)
);
const BIG = {maxBuffer: 1 << 28, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']};
const USUAL = [
  '1f1b',
  '--stages',
  '4',
  '--dp',
  '2',
  '--micro-batches',
  '8',
  '--steps',
  '5',
  '--cost',
  '10,20',
  '--jitter',
  '0.02',
  '--messages',
  '--optimizer',
  '5',
];

// `finds` is the finding's name, with the part of the run that its links must show. There are 8 ranks: two replicas of
// the stages 0 to 3.
const FAULTS = [
  {fault: 'slow-stage:2,1.4', finds: 'stage.slow', stages: [2]},
  {fault: 'slow-rank:5,1.5', finds: 'rank.slow', ranks: [5]},
  {fault: 'slow-step:1,2', finds: 'step.outlier', step: 'longest'},
  {fault: 'slow-link:1,2,+30ms', finds: 'link.slow', stages: [1, 2]},
  {fault: 'long-sequences:0.2,3', finds: 'sequence.long'},
  {fault: 'gc:40ms,0.02', finds: 'host.pauses'},
  {fault: 'late-launch:5,4ms', finds: 'rank.late_launch', ranks: [5]},
  {fault: 'wrong-order:2', finds: 'schedule.order', stage: 2, step: 'said'},
  {fault: 'heavy-head:0.8', finds: 'stage.slow', stages: [3]},
  // Backwards without weight gradients are a run of 1F1B, list for list (docs/reference/causes.md): no fault is seen.
  {fault: 'missing-dw', finds: null, args: ['zb-h1', '--stages', '4', '--micro-batches', '8', '--steps', '4']},
];

function runOf({stageline, folder, runs}, {fault, args = USUAL}) {
  const name = `fault-${fault.replace(/\W+/g, '-')}`, out = join(folder, name);
  if (!existsSync(out)) execFileSync(stageline, ['simulate', ...args, '--fault', fault, '-o', out], {stdio: 'ignore'});
  runs[name] = out;
  return name;
}
const overview = async (open, name) => {
  const page = await open(name, '?lang=en', {first: true});
  await page.waitForFunction(() => window.stageline?.overviewReady?.());
  return page;
};

// The scene of the finding is staged, its words and numbers are above it, and something is chosen.
async function lightOfTimeline(page, finding) {
  assert.equal(await page.innerText('.evidence-words b'), finding.title_en);
  assert.ok((await page.innerText('.evidence-words')).replace(/\s/g, ' ').includes(finding.value.replace(/\s/g, ' ')));
  await page.waitForFunction(() => /scene=/.test(location.hash)); // the address is written after the page is drawn
  const {selected, area, scene} = await page.evaluate(() => stageline.state());
  assert.ok(selected || area, `${finding.id}: nothing is chosen`);
  if (selected && scene.kinds)
    assert.ok(await page.evaluate(() => stageline.state().scene.kinds.has(stageline.state().selected.kind)));
}
async function lightOfPipeline(page, finding, fault) {
  // On a busy machine the words of the page before may stand for a moment.
  await page.waitForFunction(title => document.querySelector('.evidence-words b')?.innerText === title,
    finding.title_en);
  const lit = await page.evaluate(() =>
    stageline.pipeline.lit().flatMap((level,
      i) => (level === 2 ? [stageline.pipeline.parts[stageline.pipeline.cell(i).part]] : [])
    )
  );
  assert.ok(lit.length > 0, `${finding.id}: nothing is lit`);
  if (finding.id !== fault.finds) return;
  if (fault.stages) assert.deepEqual([...new Set(lit.map(one => one.stage))].sort(), fault.stages);
  if (fault.ranks) assert.deepEqual([...new Set(lit.map(one => one.rank))], fault.ranks);
}

const linkCase = fault => [`findings: each of ${fault.fault} leads to the place that shows it`, async (open, tools) => {
  const name = runOf(tools, fault),
    reported = JSON.parse(execFileSync(tools.stageline, ['explain', tools.runs[name], '--json'], BIG));
  const page = await overview(open, name), all = [...reported.findings, ...reported.offers];
  if (fault.finds === null) assert.deepEqual(reported.findings, []);
  else assert.ok(reported.findings.some(one => one.id === fault.finds),
      `${fault.finds} of ${reported.findings.map(one => one.id)}`);
  // The list begins with that nothing stands out, where it does not.
  const first = reported.findings.length > 0 ? 0 : 1;
  assert.equal(await page.locator('.find').count(), all.length + first);
  for (const [i, finding] of all.entries()) {
    const places = page.locator('.find').nth(first + i).locator('a.place'), words = await places.allInnerTexts();
    assert.ok(words.length > 0, `${finding.id} leads nowhere`);
    for (const [k, word] of words.entries()) {
      await places.nth(k).click();
      if (word === 'table') {
        await page.waitForFunction(() =>
          stageline.page() === 'answers' && stageline.answers?.().family && stageline.answers().waiting.length === 0
        );
        const answer = page.locator(finding.analysis ? `#answer-${finding.analysis}` : '.answer:has(details[open])')
          .first();
        await answer.locator(finding.table ? `#table-${finding.table} tbody tr` : 'details').first().waitFor();
        assert.equal(await page.locator('.lost:visible').count(), 0, `${finding.id}: the address leads to something`);
      } else if (word === 'pipeline') {
        await page.waitForFunction(() =>
          stageline.page() === 'pipeline' && stageline.pipeline?.state?.() && stageline.pipeline.frames() > 0 &&
          !stageline.pipeline.staging()
        );
        const step = await page.evaluate(() => stageline.pipeline.state().step);
        if (finding.id.startsWith('offer.')) await page.locator('.what-if').waitFor();
        else {
          assert.equal(step, await wantedStep(page, finding, fault));
          await lightOfPipeline(page, finding, fault);
        }
      } else {
        assert.equal(word, 'timeline');
        await page.waitForFunction(() => stageline.page() === 'timeline' && stageline.frames?.() > 0);
        await settle(page);
        await lightOfTimeline(page, finding);
        // The address has followed by now: what a link shows is one step of Back, however long one looks at it.
        await page.waitForFunction(() => /[?&]v=/.test(location.hash));
        const shown = await page.evaluate(() => ({view: stageline.view(), steps: stageline.run.steps,
          pinned: stageline.state().pinned.map(id => ({...stageline.run.ranks[stageline.run.lanes[id].rank_index],
            guilty: stageline.state().scene.lanes.includes(id)})
          )})
        );
        const number = await wantedStep(page, finding, fault), step = shown.steps.find(one => one.number === number);
        // The whole step is visible, and little else.
        assert.ok(shown.view.t0 <= step.start_ns + 1 && shown.view.t1 >= step.end_ns - 1,
          `${finding.id}: step ${number}`);
        // A long step has its neighbours next to it, for comparison.
        const around = /^step\.|^run\.|^between/.test(finding.id) ? 3.5 : 1.5;
        assert.ok(shown.view.t1 - shown.view.t0 < around * (step.end_ns - step.start_ns),
          `${finding.id}: more than step ${number}`);
        if (finding.id === fault.finds) {
          const guilty = shown.pinned.filter(one => one.guilty), peers = shown.pinned.filter(one => !one.guilty);
          if (fault.ranks) assert.deepEqual([...new Set(guilty.map(one => one.rank))], fault.ranks);
          if (fault.stages) assert.deepEqual([...new Set(guilty.map(one => one.stage))].sort(), fault.stages);
          if (fault.stage !== undefined)
            assert.ok(guilty.length > 0 && guilty.every(one => one.stage === fault.stage && one.rank === finding.rank));
          if (fault.ranks || fault.stages)
            assert.ok(peers.length > 0, `${finding.id}: nobody stands beside the guilty`);
        }
      }
      await follows(page, 'back', 'overview');
    }
  }
  // One rank's fault is seen in the picture of its replica.
  const one = reported.findings.find(finding => /^rank:/.test(finding.key));
  if (one) {
    const dp = await page.evaluate(rank => stageline.run.ranks.find(found => found.rank === rank).dp,
      one.places[0].ranks[0]);
    assert.match(await page.innerText('.step-picture h2'), new RegExp(`replica ${dp}$`));
  }
}];

// The step that a finding is about, else the one of median length.
const wantedStep = async (page, finding, fault) => {
  const steps = await page.evaluate(() => stageline.run.steps),
    byLength = [...steps].sort((a, b) => (a.end_ns - a.start_ns) - (b.end_ns - b.start_ns));
  if (finding.id === 'step.outlier') assert.equal(finding.step, byLength.at(-1).number);
  if (finding.id === fault.finds && fault.step === 'said')
    assert.match(finding.detail_en, new RegExp(`step ${finding.step}\\b`));
  return finding.step ?? byLength[byLength.length >> 1].number;
};

// Profiles: each finding is seen in a slice or a pause of the device, with the rank that it names among the pinned
// ones.
const PROFILES = [
  ['late-rank', 'rank.late', /nccl/],
  ['checkpoint', 'host.busy', /save_checkpoint/],
  ['pageable', 'copies.pageable', /emcpy/],
  ['waits', 'host.sync', /./],
  ['input', 'input.loading', /./],
  ['small', 'launch.bound', /./],
];
const rgbOf = colour => (/^#/.test(colour) ? [1, 3, 5].map(k => parseInt(colour.slice(k, k + 2), 16))
  : colour.match(/\d+/g).slice(0, 3).map(Number));
const faultProfile = ({folder, runs}, name) => {
  if (name === 'slow-link') {
    const out = runs['slow-link'] = join(folder, name);
    if (!existsSync(out))
      execFileSync('python3', [
        KINETO,
        '-o',
        out,
        '--ranks',
        '2',
        '--events',
        '6000',
        '--steps',
        '3',
        '--link-us',
        '3000',
        '--format',
        'json',
      ], {stdio: 'ignore'});
    return name;
  }
  const out = join(folder, 'profile-faults');
  if (!existsSync(join(out, name))) execFileSync('python3', [PROFILE_FAULTS, '-o', out, name], {stdio: 'ignore'});
  runs[`profile-fault-${name}`] = join(out, name);
  return `profile-fault-${name}`;
};

export const cases = [
  ...PROFILES.map(([name, id, slice]) => [`evidence of a profile: ${id} chooses what shows it`, async (open, tools) => {
    const run = faultProfile(tools, name),
      reported = JSON.parse(execFileSync(tools.stageline, ['explain', tools.runs[run], '--json'], BIG));
    const finding = reported.findings.find(one => one.id === id);
    assert.ok(finding, `${id} of ${reported.findings.map(one => one.id)}`);
    const page = await overview(open, run), at = reported.findings.indexOf(finding);
    await page.locator('.find h3 a.scene').nth(at).click();
    await page.waitForFunction(() => stageline.page() === 'timeline' && stageline.frames?.() > 0);
    await settle(page);
    await lightOfTimeline(page, finding);
    const {selected, area, pinned, view} = await page.evaluate(() => ({...stageline.state(),
      pinned: stageline.state().pinned.map(id => stageline.run.ranks[stageline.run.lanes[id].rank_index].rank)})
    );
    if (selected) assert.match(selected.name, slice);
    const t = selected ? selected.start : area.t0;
    assert.ok(t < view.t1 && t + (selected ? selected.dur : area.t1 - area.t0) > view.t0, 'what is chosen is in sight');
    if (finding.rank !== null) assert.ok(pinned.includes(finding.rank));
  }]),
  ...[['checkpoint', 'host.busy', 'gaps'], ['small', 'launch.bound', 'gaps'], ['slow-link', 'comm.exposed', 'exposed']]
    .map((
      [name, id, kind],
    ) => [`evidence of a profile: the ${kind} of ${id} are painted, and as long as they last`, async (
      open,
      tools,
    ) => {
      const run = faultProfile(tools, name), page = await open(run, `?lang=en#/timeline?scene=${id}`, {dark: true});
      await page.waitForFunction(() => stageline.state().scene && stageline.settled());
      const {stretches} = await page.evaluate(() => stageline.state().scene),
        rank = await page.evaluate(at => stageline.run.ranks[at].rank, stretches.rank);
      assert.equal(stretches.kind, kind);
      // Moment by moment, of SQL's slices: what runs between one edge and the next.
      const {rows} = JSON.parse(
        execFileSync(tools.stageline, [
          'sql',
          tools.runs[run],
          `SELECT start_ns, end_ns, class FROM slices WHERE rank = ${rank} AND lane_kind = 'device' AND class IN
         ('COMPUTATION', 'COMMUNICATION', 'MEMORY')`,
          '--json',
          '--rows',
          '1000000',
        ], BIG),
      );
      // Gaps begin in the window, and last until the next work.
      const last = kind === 'gaps' ? Infinity : stretches.t1;
      const within = rows.map(([t0, t1, what]) => [Math.max(t0, stretches.t0), Math.min(t1, last), what])
        .filter(([t0, t1]) => t1 > t0);
      const edges = [...new Set(within.flatMap(([t0, t1]) => [t0, t1]))].sort((a, b) => a - b);
      let together = 0;
      for (let k = 0; k + 1 < edges.length; ++k) {
        const now = within.filter(([t0, t1]) => t0 <= edges[k] && t1 > edges[k]).map(one => one[2]);
        const counts = kind === 'gaps' ? now.length === 0 && edges[k] < stretches.t1
          : now.includes('COMMUNICATION') && !now.includes('COMPUTATION');
        if (counts) together += edges[k + 1] - edges[k];
      }
      assert.equal(stretches.together, together);
      assert.ok(stretches.count > 0 && stretches.list.every(one => one.t1 > one.t0));
      // Where the longest one is, the row has the colour of evidence.
      const [seen, hot] = await page.evaluate(() => {
        const {list, at} = stageline.state().scene.stretches, {lane, t0, t1} = list[at],
          box = stageline.sliceBox({lane, row: 0, start: t0, dur: t1 - t0}),
          canvas = document.querySelector('canvas.rows'), corner = canvas.getBoundingClientRect(),
          ratio = canvas.width / corner.width;
        const {data} = canvas.getContext('2d').getImageData(Math.round((box.x + box.w / 2 - corner.left) * ratio),
          Math.round((box.y - corner.top) * ratio), 1, Math.round(box.h * ratio));
        return [
          Array.from({length: data.length / 4}, (_, k) => [...data.slice(4 * k, 4 * k + 3)]),
          stageline.paints().page.hot,
        ];
      });
      assert.ok(seen.some(pixel => pixel.join() === rgbOf(hot).join()), `${id}: ${hot} in ${seen.join(' ')}`);
      // Goes from one to the next, and back.
      const at = () => page.evaluate(() => stageline.state().scene.stretches.at);
      const first = await at(), by = first > 0 ? 'previous' : 'next', back = first > 0 ? 'next' : 'previous';
      if (stretches.list.length === 1) return;
      await page.click(`#stretch-${by}`);
      await settle(page);
      const {area, view} = await page.evaluate(() => ({area: stageline.state().area, view: stageline.view()}));
      assert.ok(area.t0 >= view.t0 && area.t1 <= view.t1, 'it is in sight');
      assert.equal(area.t0, stretches.list[first + (first > 0 ? -1 : 1)].t0);
      await page.click(`#stretch-${back}`);
      await settle(page);
      assert.equal(await at(), first);
    }]),
  [
    'evidence: one finding after the other, by buttons, keys and the lane; left, and again from its address',
    async (open, tools) => {
      const name = runOf(tools, {fault: 'slow-stage:2,1.4', args: [...USUAL, '--fault', 'slow-step:1,2']}),
        reported = JSON.parse(execFileSync(tools.stageline, ['explain', tools.runs[name], '--json'], BIG));
      assert.ok(reported.findings.length >= 2);
      const page = await open(name), title = () => page.innerText('.evidence-words b'),
        scene = () => page.evaluate(() => stageline.state().scene?.key ?? null);
      assert.equal(await page.locator('#evidence').count(), 0);
      await page.click('#scenes');
      await page.waitForSelector('#evidence');
      await settle(page);
      assert.equal(await title(), reported.findings[0].title_en);
      assert.ok(await page.isDisabled('#scene-previous'));
      await page.click('#scene-next');
      await page.waitForFunction(wanted => document.querySelector('.evidence-words b').textContent === wanted,
        reported.findings[1].title_en);
      await settle(page);
      const second = await scene(), view = await page.evaluate(() => stageline.view());
      await page.keyboard.press('Shift+KeyE');
      await page.waitForFunction(wanted => document.querySelector('.evidence-words b').textContent === wanted,
        reported.findings[0].title_en);
      await settle(page);
      // A flag stands where its step does.
      const where = await page.evaluate(number => {
        const flag = document.querySelector('.flags:has([aria-pressed=true])').getBoundingClientRect(),
          {start_ns} = stageline.run.steps.find(step => step.number === number);
        return [flag.x, stageline.xOf(start_ns)];
      }, reported.findings[0].step);
      assert.ok(Math.abs(where[0] - where[1]) < 3, `flag at ${where[0]}, its step at ${where[1]}`);
      // In the lane the flag of the second finding leads there again.
      await page.locator('.flags button', {hasText: '2'}).click();
      await page.waitForFunction(wanted => stageline.state().scene?.key === wanted, second);
      await settle(page);
      assert.deepEqual(await page.evaluate(() => stageline.view()), view);
      const address = await page.evaluate(async key => {
          while (!new RegExp(`sel=.*scene=${key}(&|$)`).test(location.hash))
            await new Promise(done => setTimeout(done, 20));
          return location.hash;
        }, second), chosen = await page.evaluate(() => stageline.state().selected);
      const again = await open(name, `?lang=en${address}`, {raw: true});
      await again.waitForFunction(() =>
        window.stageline?.frames?.() > 0 && document.querySelector('#evidence') && stageline.state().selected
      );
      await settle(again);
      assert.equal(await again.evaluate(() => stageline.state().selected.start), chosen.start);
      assert.equal(await again.evaluate(() => stageline.state().scene.key), second);
      await page.click('#scene-leave');
      await page.waitForFunction(() => !document.querySelector('#evidence') && stageline.state().scene === null);
      assert.deepEqual(await page.evaluate(() => stageline.state().pinned), []);
      const lost = await open(name, '?lang=en#/timeline?scene=stage.none', {raw: true});
      await lost.waitForFunction(() =>
        document.querySelector('.astray:not([hidden])')?.textContent.includes('scene=stage.none')
      );
    },
  ],
  [
    'evidence: the stage balance of many stages shows the slow one, and an offer leads to its what-if',
    async (open, tools) => {
      const name = runOf(tools, {fault: 'slow-stage:14,1.4',
          args: ['1f1b', '--stages', '16', '--micro-batches', '16', '--steps', '4']}),
        page = await overview(open, name);
      const rows = () =>
        page.$$eval('#stages tbody tr', list =>
          list.filter(row => !row.hidden).map(row =>
            row.cells[0]
              .textContent
          ));
      assert.equal((await rows()).length, 8);
      assert.ok((await rows()).includes('14'));
      assert.ok(
        await page.$eval('#stages', at =>
          [...at.querySelectorAll(':not(.live)')].every(one =>
            one.scrollHeight <=
              one.clientHeight + 1 || getComputedStyle(one).overflowY === 'visible'
          )),
        'no scroll of its own',
      );
      await page.click('#stages button');
      assert.deepEqual(await rows(), Array.from({length: 16}, (_, stage) => String(stage)));
      const {offers} = JSON.parse(execFileSync(tools.stageline, ['explain', tools.runs[name], '--json'], BIG));
      assert.ok(offers.length > 0);
      await page.locator('.find', {hasText: offers[0].title_en}).locator('a.place').click();
      await page.waitForFunction(() => stageline.page() === 'pipeline' && /if=fix/.test(location.hash));
      const {fixes} = await page.evaluate(async () => (await fetch('api/pipeline/fixes')).json()),
        asked = Number(/if=fix%3D(\d+)/.exec(page.url())?.[1] ?? /if=fix=(\d+)/.exec(page.url())?.[1]);
      assert.equal(fixes[asked].name, offers[0].title_en);
    },
  ],
  ['evidence: a link of one rank opens the replica of that rank', async (open, tools) => {
    const page = await overview(open, 'slowWorker'), rank = await page.evaluate(() =>
      stageline.run.ranks.find(one => one.rank === 5)
    );
    assert.ok(rank.dp > 0, 'rank 5 is of another replica than the first');
    await page.locator('.find', {hasText: 'Rank 5'}).first().locator('h3 a.scene').click();
    await page.waitForFunction(() =>
      stageline.page() === 'pipeline' && stageline.pipeline?.frames?.() > 0 && !stageline.pipeline.staging() &&
      stageline.pipeline.scene()
    );
    assert.equal(await page.evaluate(() => stageline.pipeline.state().dp), rank.dp);
    assert.equal(await page.evaluate(() =>
      stageline.pipeline.parts[stageline.pipeline.cell(stageline.pipeline.state().selected).part].rank
    ), 5);
  }],
  ['evidence: what makes the difference of two runs leads to both, lit', async (open, {runs}) => {
    const page = await open('compared', '?lang=en#/compare', {raw: true});
    await page.waitForFunction(() => window.stageline?.compared?.());
    const link = page.locator('.effects a.scene', {hasText: 'stage 3'}).first(), words = await link.innerText();
    await link.click();
    await page.waitForFunction(() =>
      stageline.page() === 'pipeline' && stageline.pipeline?.frames?.() > 0 && !stageline.pipeline.staging() &&
      stageline.pipeline.scene()
    );
    assert.equal(await page.innerText('.evidence-words b'), words);
    const stages = await page.evaluate(
      () => [
        ...new Set(
          stageline.pipeline.lit().flatMap((level,
            i) => (level === 2 ? [stageline.pipeline.parts[stageline.pipeline.cell(i).part].stage] : [])
          ),
        ),
      ],
    );
    assert.deepEqual(stages, [3]);
    assert.equal(runs.compared.length, 3);
  }],
  ...FAULTS.map(linkCase),
  [
    'a table of more rows than an answer carries: the rest is reached, sorted, filtered and copied',
    async (open, {stageline, runs, context}) => {
      const csv = execFileSync(stageline, ['analyze', 'events', runs.spread, '--table', 'events', '--format', 'csv'], {
        ...BIG,
        maxBuffer: 1 << 29,
      }).trimEnd().split('\n');
      const all = csv.length - 1;
      assert.ok(all > 100_000 && all < 200_000, `${all} rows`);
      await context.grantPermissions(['clipboard-read', 'clipboard-write']);
      const page = await open('spread', '?lang=en#/answers/other?answer=events&table=events', {raw: true});
      await page.waitForFunction(() =>
        window.stageline?.answers?.().family && stageline.answers().waiting.length === 0
      );
      const table = page.locator('#table-events'), plain = text => text.replace(/[\u202f\u00a0]/g, ' ');
      const said = () => table.locator('.pager [role=status]');
      await said().waitFor();
      const number = value => String(value).replace(/\B(?=(\d{3})+$)/g, ' ');
      assert.equal(
        plain(await said().innerText()).match(/\d[\d ]*\d|\d/g).map(text => Number(text.replaceAll(' ', ''))).join(),
        `1,100000,${all}`,
      );
      await table.locator('.pager button:not(:disabled)').first().click();
      await page.waitForFunction(() =>
        /^\D*100.001/.test(document.querySelector('#table-events .pager [role=status]').textContent)
      );
      assert.ok(plain(await said().innerText()).includes(number(all)));
      const heads = await table.locator('thead th').allInnerTexts(), names = csv[0].split(','),
        name = names.indexOf('name'), dur = names.indexOf('dur_ns');
      assert.ok(name >= 0 && dur >= 0 && heads.length === names.length, csv[0]);
      const rest = csv.slice(100_001).map(line =>
        line.match(/("([^"]|"")*"|[^,]*)(,|$)/g).map(one =>
          one.replace(/,$/, '').replace(/^"|"$/g, '').replaceAll('""', '"')
        )
      );
      const column = i => table.locator(`tbody td:nth-child(${i + 1})`).allInnerTexts();
      assert.deepEqual(await column(name), rest.slice(0, 100).map(row => row[name]));
      // All that are there, sorted and filtered among themselves.
      await table.locator('thead th').nth(dur).locator('button').click();
      const longest = rest.map(row => Number(row[dur])).sort((a, b) => b - a).slice(0, 100).map(ns =>
        (ns / 1e6).toFixed(3)
      );
      assert.deepEqual(await column(dur), longest);
      // A start as it is shown is one row's, or few rows'.
      const start = names.indexOf('start_ns'), wanted = (await column(start))[2];
      assert.match(wanted, /^\d+\.\d{3}$/);
      await table.locator('input.filter').fill(wanted);
      const fits = await table.locator('tbody tr').allInnerTexts();
      assert.ok(fits.length > 0 && fits.length < 100 && fits.every(line => line.includes(wanted)),
        `${fits.length} rows have ${wanted}`);
      assert.match(plain(await table.locator('.table-tools').innerText()),
        new RegExp(`${fits.length} of ${number(rest.length)}`));
      await table.locator('button.copy').click();
      await page.waitForFunction(() => /copied/.test(document.querySelector('#table-events .copy').textContent));
      const copied = (await page.evaluate(() => navigator.clipboard.readText())).trimEnd().split('\n');
      assert.deepEqual(copied.slice(1).map(line => line.split('\t')[start]), await column(start));
    },
    {alone: true},
  ],
];
