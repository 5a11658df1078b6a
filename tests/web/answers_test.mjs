// The viewer's pages other than the timeline: the first screen, answers, two runs compared. Every number is that of the
// command line for the same input. Run by viewer_run.mjs.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import {join} from 'node:path';
import {follows, patience, poorContrast, resize, settle, tooWide, view, visibleTexts} from './viewer_help.mjs';

const BIG = {maxBuffer: 1 << 28, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']};
const json = (program, ...args) => JSON.parse(execFileSync(program, args, BIG));
const percent = share => `${(share * 100).toFixed(1)}\u202f%`;
const texts = (page, selector) => page.locator(selector).allInnerTexts();

// As Table::shown_text has it.
const shown = (value, type) =>
  value === null ? '–' : typeof value === 'string' ? value
    : type === 'duration' || type === 'time' ? (value / 1e6).toFixed(3) : type === 'real' ? value.toFixed(3)
    : type === 'share' ? (value * 100).toFixed(1) : type === 'ratio' ? value.toFixed(2) : String(value);

// Bytes as the terminal prints them (human_bytes).
function bytes(value) {
  let size = Math.abs(value), unit = 0;
  for (; size >= 999.5 && unit < 4; ++unit) size /= 1000;
  return `${value < 0 ? '−' : ''}${
    unit === 0 ? Math.round(size) : size.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)
  }` +
    `\u202f${['B', 'KB', 'MB', 'GB', 'TB'][unit]}`;
}

// Times since 1970 are shown from the run's start, which the answer names; JSON.parse would round them.
const WHOLE = /("[a-z_]*_ns":)(-?\d{16,})/g;
function answersOf(program, run, names) {
  const text = execFileSync(program, ['analyze', names.join(), run, '--format', 'json'], BIG);
  const made = JSON.parse(text.replace(WHOLE, '$1"$2"')); // several analyses are one document, a list of their answers
  return Array.isArray(made) ? made : [made];
}

// All that a chart may say of a value: a duration, a share, a ratio, a count (web/src/format.ts).
function ways(value) {
  const ns = Math.abs(value), sign = value < 0 ? '−' : '',
    [size, unit] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']].find(([one]) => ns / one >= 0.9995) ?? [1, 'ns'];
  const digits = unit === 'ns' || ns / size >= 99.95 ? 0 : ns / size >= 9.995 ? 1 : 2;
  return [
    `${sign}${(ns / size).toFixed(digits)}\u202f${unit}`,
    `${sign}${(ns * 100).toFixed(1)}\u202f%`,
    `${value.toFixed(2)}×`,
    String(value),
  ];
}

const firstOpen = async (open, run, options = {}) => {
  const page = await open(run, options.query ?? '?lang=en', {...options, first: true});
  await page.waitForFunction(() => window.stageline?.overviewReady?.());
  return page;
};
const family = async (page, id) => {
  await page.click(`.families a[href="#/answers/${id}"]`);
  await page.waitForFunction(
    wanted => stageline.answers?.().family === wanted && stageline.answers().waiting.length === 0,
    id,
  );
};

// Every table of the page that is shown, opened by a click on its name, against the command line's.
async function compareTables(page, program, run, names) {
  let cells = 0;
  const known = new Map(answersOf(program, run, names).map(answer => [answer.analysis, answer]));
  for (const name of names) {
    const section = page.locator(`#answer-${name}`), expected = known.get(name);
    const origins = await page.evaluate(
      async one =>
        Object.fromEntries((await (await fetch(`/api/answer?name=${one}`)).json())
          .tables.map(table => [table.name, table.origin_ns])),
      name,
    );
    for (const table of expected.tables.filter(one => one.rows.length > 0)) {
      const fold = section.locator(`details#table-${table.name}`);
      if (await fold.getAttribute('open') === null) await fold.locator('> summary').click();
      await fold.locator('tbody tr').first().waitFor(); // a fold is filled once the browser says that it is open
      const rows = await fold.locator('tbody tr').evaluateAll(list =>
        list.map(row => [...row.cells].map(cell => cell.textContent))
      );
      const origin = BigInt(origins[table.name]);
      const wanted = table.rows.slice(0, 100).map(row =>
        table.columns.map(column => {
          const value = row[column.name];
          if (column.type === 'integer' && value !== null && /(^|_)bytes$/.test(column.name)) return bytes(value);
          if (column.type !== 'time' || value === null)
            return shown(typeof value === 'string' &&
                column.type !== 'text' ? Number(value) : value, column.type);
          return shown(Number(BigInt(value) - origin), 'time');
        })
      );
      assert.deepEqual(rows, wanted, `${name}, ${table.name}`);
      cells += rows.length * table.columns.length;
    }
  }
  return cells;
}

export const cases = [
  ['glossary: every part of a bar has its definition in its tip, in both languages', async open => {
    for (const lang of ['en', 'zh']) {
      for (const [run, page_] of [['slower', 'overview'], ['ascend', 'overview'], ['profile', 'overview'], [
        'slower',
        'pipeline',
      ]]) {
        const page = await open(run, `?lang=${lang}#/${page_}`, {raw: true});
        const terms = await page.evaluate(async () => {
          for (;;) {
            const reply = await fetch('api/figures');
            if (reply.status === 200) return (await reply.json()).terms;
          }
        });
        await page.waitForFunction(([texts, where]) => {
          const parts = [...document.querySelectorAll(`.page-${where} .split .part`)];
          return parts.length > 2 && parts.every(one => texts.some(text => one.title.split('\n').includes(text)));
        }, [terms.map(term => term[lang]), page_]).catch(async error => {
          const titles = await page.$$eval(`.page-${page_} .split .part`, all => all.map(one => one.title));
          throw new Error(`${run} ${page_} ${lang}: ${titles.join(' | ')} ${error}`);
        });
      }
    }
  }],
  ['overview: of a pipeline in a profile the time of its devices is a bar too, as explain gives it', async open => {
    for (const [run, isThere] of [['ascend', true], ['slower', false]]) {
      const page = await open(run, '?lang=en#/overview', {raw: true});
      await page.waitForFunction(() => window.stageline?.overviewReady?.());
      const parts = await page.evaluate(async () => {
        for (;;) {
          const reply = await fetch('api/explain');
          if (reply.status === 200) return (await reply.json()).device_parts;
        }
      });
      assert.equal(parts.length > 0, isThere, run);
      const seen = await page.$$eval('.device-time .part[data-part]', all =>
        all.filter(one => one.matches('div')).map(
          one => [
            one.dataset.part,
            one.getBoundingClientRect().width / one.parentElement.getBoundingClientRect().width,
          ],
        ));
      assert.deepEqual(seen.map(([id]) => id), parts.filter(part => part.share > 0).map(part => part.id));
      for (const [id, width] of seen)
        assert.ok(Math.abs(width - parts.find(part => part.id === id).share) < 0.01, `${id} ${width}`);
    }
  }],
  ['Overview opens first and says what explain says', async (open, {shot, stageline, runs}) => {
    const page = await firstOpen(open, 'slower'), reported = json(stageline, 'explain', runs.slower, '--json');
    assert.equal(await page.getAttribute('.pages [aria-current]', 'id'), 'page-overview');
    assert.equal(await page.innerText('h1'), reported.title_en);
    assert.equal(await page.innerText('.lead'), reported.lead_en);
    assert.ok((await page.innerText('.run-line')).includes(reported.run_en));
    const bar = await page.getAttribute('.split', 'aria-label');
    for (const part of reported.parts.filter(one => one.share >= 0.0005))
      assert.ok(bar.includes(`${percent(part.share)} ${part.label_en}`), part.label_en);
    const all = [...reported.findings, ...reported.offers];
    assert.ok(reported.findings.length >= 2, 'the faults put in are found');
    assert.deepEqual(await texts(page, '.find h3'), all.map(one => one.title_en));
    assert.deepEqual(await texts(page, '.find .detail:not(.places)'), all.map(one => one.detail_en));
    assert.deepEqual((await texts(page, '.find .price')).map(text => text.split('\n')[0]), all.filter(one =>
      one.value
    ).map(one => one.value));
    assert.deepEqual(await texts(page, '.find .places code'), all.filter(one => one.command).map(one => one.command));
    // Each part of the bar says what it is, in the words of the list of figures.
    await page.waitForSelector('.glossary');
    const defined = new Map(await page.locator('.glossary tbody tr').evaluateAll(rows =>
      rows.map(row => [row.cells[0].textContent, row.cells[3].textContent])
    ));
    const tips = await page.locator('.headline [data-figure]').evaluateAll(parts =>
      parts.map(part => [part.dataset.figure, part.title])
    );
    assert.ok(tips.length > 2);
    for (const [name, tip] of tips)
      assert.ok(defined.get(name) && tip.includes(defined.get(name)), `${name}: ${tip}`);
    await shot(page, 'overview');
  }],
  ...['pipeline', 'profile', 'ascend', 'recorded', 'dualpipe'].map(
    run => [`every number of Overview is the command line's: ${run}`, async (open, {stageline, runs}) => {
      const page = await firstOpen(open, run), reported = json(stageline, 'explain', runs[run], '--json'),
        info = json(stageline, 'info', runs[run], '--json');
      await page.waitForFunction(() => !document.querySelector('.overview .working'));
      assert.equal(await page.innerText('h1'), reported.title_en);
      assert.equal(await page.innerText('.lead'), reported.lead_en);
      assert.deepEqual(await texts(page, '.find h3'),
        [...reported.findings.length > 0 ? reported.findings : [{title_en: reported.closing_en}], ...reported.offers]
          .map(one => one.title_en));
      assert.deepEqual(await texts(page, '.find .detail:not(.places)'),
        [...reported.findings, ...reported.offers].map(one => one.detail_en).filter(Boolean));
      assert.deepEqual((await texts(page, '.find .price')).map(text => text.split('\n')[0]),
        [...reported.findings, ...reported.offers].map(one => one.value).filter(Boolean));
      const bar = await page.getAttribute('.split', 'aria-label'), said = reported.parts.filter(one =>
        Math.abs(one.share) >= 0.0005
      );
      for (const part of said) assert.ok(bar.includes(`${percent(part.share).replace('-', '−')} ${part.label_en}`),
          part.label_en);
      assert.equal(bar.match(/%/g).length, said.length);
      // The list at the side.
      const facts = Object.fromEntries(
        await page.$$eval('.facts dt', list => list.map(one => [one.textContent, one.nextElementSibling.textContent])),
      );
      const plain = text => Number(text.replace(/\D/g, ''));
      assert.equal(plain(facts.Ranks), info.ranks);
      assert.equal(plain(facts.Steps), info.steps);
      if (info.stages > 1) assert.equal(plain(facts.Stages), info.stages);
      if (info.machines > 1) assert.equal(plain(facts.Machines), info.machines);
      assert.ok(facts.Source.startsWith(info.format), facts.Source);
      if (info.cells === 0) return;
      const tables = json(stageline, 'analyze', 'pipeline-summary', runs[run], '--format', 'json').tables,
        rowsOf = name => tables.find(table => table.name === name).rows;
      const stages = await page.$$eval('#stages tbody tr',
        list => list.map(row => [...row.cells].map(cell => cell.textContent)));
      const heads = await texts(page, '#stages thead th'), kinds = heads.slice(2, -1);
      assert.ok(stages.length > 0 && kinds.length > 0);
      for (const [stage, , ...cells] of stages)
        kinds.forEach((kind, k) => {
          const row = rowsOf('stages').find(one => String(one.stage) === stage && one.kind === kind);
          if (row)
            assert.ok([(row.mean_ns / 1e6).toFixed(1), (row.mean_ns / 1e6).toPrecision(3)].includes(cells[k]),
              `stage ${stage}, ${kind}: ${cells[k]}`);
          else assert.equal(cells[k], '–');
        });
      const spans = rowsOf('steps').map(one => Number(one.span_ns)),
        titles = await page.$$eval('.steps rect title, svg rect[data-step] title',
          list => list.map(one => one.textContent));
      assert.equal(titles.length, spans.length);
      spans.forEach((span, i) => assert.ok(titles[i].endsWith(`: ${ways(span)[0]}`), `${titles[i]} is ${span} ns`));
    }],
  ),
  [
    'a finding leads to its table and to its ranks in the timeline, and Back returns',
    async (open, {stageline, runs}) => {
      const page = await firstOpen(open, 'slower'), reported = json(stageline, 'explain', runs.slower, '--json');
      const first = reported.findings.findIndex(one => one.key.startsWith('rank:')),
        rank = reported.findings[first].places[0].ranks[0];
      const places = page.locator('.find').nth(first).locator('a.place');
      await places.first().click();
      await page.waitForFunction(() => stageline.answers?.().waiting.length === 0);
      const table = page.locator(
        `#answer-${reported.findings[first].analysis} #table-${reported.findings[first].table}`,
      );
      assert.equal(await table.getAttribute('open'), '');
      assert.ok(await table.locator('tbody tr').count() > 0);
      await follows(page, 'back', 'overview');
      await places.last().click();
      await page.waitForFunction(() => stageline.frames?.() > 0);
      await settle(page);
      // The accused rank, with its peers next to it.
      const {pinned, guilty} = await page.evaluate(() => {
        const {pinned, scene} = stageline.state(),
          rankOf = id => stageline.run.ranks[stageline.run.lanes[id].rank_index].rank;
        return {pinned: pinned.map(rankOf), guilty: pinned.filter(id => scene.lanes.includes(id)).map(rankOf)};
      });
      assert.ok(guilty.length > 0 && guilty.every(one => one === rank), String(guilty));
      assert.ok(pinned.length > guilty.length, String(pinned));
      const at = await view(page), home = await page.evaluate('stageline.home');
      assert.ok(at.t1 - at.t0 < (home.t1 - home.t0) / 2, 'one step of four');
    },
  ],
  ['the pages by keys; the timeline is as it was left', async open => {
    const page = await open('pipeline');
    await page.keyboard.press('2');
    await page.keyboard.press('w');
    await page.keyboard.press('.');
    await page.waitForFunction(() => stageline.state().selected);
    const before = await page.evaluate('({view: stageline.view(), selected: stageline.state().selected})');
    // G waits a while for its letter, not as long as a slow machine may take to look: the page keeps what it showed.
    await page.evaluate(() => {
      window.letters = [];
      new MutationObserver(() => window.letters.push(document.querySelectorAll('.pages.armed kbd').length))
        .observe(document.querySelector('.pages'), {subtree: true, childList: true, attributes: true});
    });
    await patience(page, 20);
    for (const [key, id] of [['o', 'overview'], ['a', 'answers'], ['c', 'compare'], ['p', 'pipeline']]) {
      await page.keyboard.press('g');
      await page.keyboard.press(key);
      assert.deepEqual(await page.evaluate('[letters.includes(6), letters.at(-1)]'), [true, 0], key);
      await page.evaluate('letters.length = 0');
      assert.equal(await page.evaluate('stageline.page()'), id);
      assert.match(page.url(), new RegExp(`#/${id}`));
      await page.keyboard.press('w');
    }
    await page.keyboard.press('g');
    await page.keyboard.press('t');
    assert.equal(await page.evaluate('document.activeElement.className'), 'rows');
    assert.deepEqual(await page.evaluate('({view: stageline.view(), selected: stageline.state().selected})'), before);
    await follows(page, 'back', 'pipeline');
    await follows(page, 'forward', 'timeline');
    assert.deepEqual(await page.evaluate('stageline.view()'), before.view);
    await page.keyboard.press('?');
    assert.match(await page.innerText('#help'), /to the page Answers[\s\S]*zoom in and out/);
  }],
  ...['pipeline', 'slower', 'dualpipe', 'profile', 'ascend', 'recorded', 'bytedance'].map(
    run => [`every table of ${run} is the command line's`, async (open, {stageline, runs, shot, skip}) => {
      if (!runs[run]) return skip(`${run} is not beside the checkout`);
      const page = await open(run, '?lang=en#/answers', {}), seen = [];
      await page.waitForFunction(() => window.stageline?.families?.().length > 0);
      const families = await page.evaluate('stageline.families()');
      const offered = new Map(
        (await page.evaluate(async () => (await (await fetch('/api/answers')).json()).answers)).map(
          one => [one.name, one],
        ),
      );
      let cells = 0;
      for (const {id, answers} of families) {
        await family(page, id);
        const failed = new Set(
          await page.locator('.answer:has([role=alert])').evaluateAll(list =>
            list.map(one => one.id.slice('answer-'.length))
          ),
        );
        const names = answers.filter(name => offered.get(name)?.in_report && !failed.has(name));
        if (names.length > 0) cells += await compareTables(page, stageline, runs[run], names);
        for (const name of answers) // how each was made, whatever came of it
          if (await page.locator(`#answer-${name} .working, #answer-${name} .ask`).count() === 0)
            assert.equal(await page.locator(`#answer-${name} .how-made`).count(), 1,
              `${name} does not say how it was made`);
        seen.push(...names);
        assert.equal(await page.innerText('h1'), await page.innerText('.families [aria-current]'));
        if (run === 'ascend' && id === 'cluster') await shot(page, 'answers-cluster');
      }
      assert.ok(seen.length >= 6 && cells > 200, `${seen.length} answers, ${cells} cells`);
    }],
  ),
  ...['slower', 'dualpipe', 'ascend', 'profile'].map(
    run => [`what charts of ${run} say are the command line's numbers`, async (open, {stageline, runs}) => {
      const page = await open(run, '?lang=en#/answers', {});
      await page.waitForFunction(() => window.stageline?.families?.().length > 0);
      let seen = 0;
      for (const {id, answers} of await page.evaluate('stageline.families()')) {
        await family(page, id);
        const drawn = page.locator(
          ['waterfall', 'schedulePlot', 'slowness', 'critical', 'transfers'].map(topic => `#topic-${topic}`).join(),
        );
        if (await drawn.count() === 0) continue;
        const failed = new Set(
          await page.locator('.answer:has([role=alert])').evaluateAll(list =>
            list.map(one => one.id.slice('answer-'.length))
          ),
        );
        const asked = answers.filter(name => name !== 'align' && !failed.has(name)), numbers = new Set(['–', '']);
        const offered = await page.evaluate(
          async list =>
            (await (await fetch('/api/answers')).json()).answers.filter(one => one.in_report && list.includes(one.name))
              .map(one => one.name),
          asked,
        );
        if (offered.length === 0) continue;
        for (const answer of answersOf(stageline, runs[run], offered))
          for (const table of answer.tables) {
            // The chart of a step shows each part as a share of the period, which the table gives in ns.
            const period = table.name === 'waterfall' && table.rows.find(row => row.part === 'period');
            for (const row of period ? table.rows : [])
              for (const text of ways(row.mean_ns / period.mean_ns)) numbers.add(text);
            for (const row of table.rows)
              for (const column of table.columns) {
                const value = row[column.name] === null ? null : Number(row[column.name]);
                if (value === null || Number.isNaN(value)) continue;
                for (const text of ways(value)) numbers.add(text);
              }
          }
        // Charts whose cells are values of a table as they are; others add some up.
        for (const topic of ['waterfall', 'schedulePlot', 'slowness', 'critical', 'transfers']) {
          const cells = await page.locator(`#topic-${topic} table.plot tbody td:not(.bar)`).allInnerTexts();
          for (const text of cells.filter(one => /\d/.test(one) && !/[a-z]{4}/.test(one))) {
            const parts = text.replace(/^±\s*/, '').split(' / ');
            for (const part of parts) assert.ok(numbers.has(part), `${id}, ${topic}: "${part}" is in no table`);
            ++seen;
          }
        }
      }
      assert.ok(seen >= (run === 'profile' ? 4 : 12), `${seen} numbers`);
    }],
  ),
  ['a table is sorted, filtered and copied', async (open, {context}) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const page = await open('pipeline', '?lang=en#/answers/time?answer=pipeline-summary&table=ranks');
    await page.waitForFunction(() => window.stageline?.answers?.().waiting.length === 0);
    const table = page.locator('#answer-pipeline-summary #table-ranks');
    const heads = await table.locator('thead th').allInnerTexts(), busy = heads.findIndex(head =>
      /^busy/.test(head)
    ) + 1;
    await table.locator('thead th').nth(busy - 1).locator('button').click();
    const down = (await table.locator(`tbody td:nth-child(${busy})`).allInnerTexts()).map(Number);
    assert.deepEqual(down, [...down].sort((a, b) => b - a));
    await page.keyboard.press('Enter'); // the head keeps the focus
    const up = (await table.locator(`tbody td:nth-child(${busy})`).allInnerTexts()).map(Number);
    assert.deepEqual(up, [...down].reverse());
    await table.locator('input.filter').click();
    await page.keyboard.type(String(up[0]));
    assert.ok(await table.locator('tbody tr').count() < up.length);
    await page.waitForFunction(() => /table=ranks.*sort=busy_ns.*filter=/.test(location.hash));
    await table.locator('button.copy').click();
    await page.waitForFunction(() => /copied/.test(document.querySelector('#table-ranks .copy').textContent));
    const copied = (await page.evaluate(() => navigator.clipboard.readText())).trim().split('\n').map(line =>
      line.split('\t')
    );
    assert.equal(copied.length, await table.locator('tbody tr').count() + 1);
    assert.deepEqual(copied.slice(1).map(line => line[busy - 1]),
      await table.locator(`tbody td:nth-child(${busy})`).allInnerTexts());
    const other = await open('pipeline', '?lang=en' + new URL(page.url()).hash);
    await other.waitForFunction(() => window.stageline?.answers?.().waiting.length === 0);
    assert.deepEqual(await other.locator('#table-ranks tbody tr').allInnerTexts(),
      await table.locator('tbody tr').allInnerTexts());
  }, {alone: true}],
  ['how a number was made: the command, the columns, other options', async (open, {stageline, runs}) => {
    const page = await open('profile', '?lang=en#/answers/kernels');
    await page.waitForFunction(() => window.stageline?.answers?.().waiting.length === 0);
    const section = page.locator('#answer-gpu-kernel-breakdown');
    await section.locator('.how-made > summary').click();
    await section.locator('.how-made .columns-help').first().waitFor(); // filled once the browser says that it is open
    assert.match(await section.locator('.how-made').innerText(), /stageline analyze gpu-kernel-breakdown \S*profile/);
    const columns = json(stageline, 'analyze', 'gpu-kernel-breakdown', runs.profile, '--format', 'json').tables.flatMap(
      table => table.columns,
    );
    const help = await section.locator('.how-made').innerText();
    for (const column of columns.filter(one => one.help).slice(0, 12))
      assert.ok(help.includes(column.help), column.help);
    await section.locator('#option-gpu-kernel-breakdown-num-kernels').fill('1');
    await section.locator('.options button').click();
    await page.waitForFunction(() => stageline.answers?.().waiting.length === 0 && /num-kernels=1/.test(location.hash));
    const wanted = json(stageline, 'analyze', 'gpu-kernel-breakdown', runs.profile, '--num-kernels', '1', '--format',
      'json');
    for (const table of wanted.tables.filter(one => one.rows.length > 0))
      assert.match(await section.locator(`#table-${table.name} > summary`).innerText(),
        new RegExp(`${table.rows.length} rows?$`));
    assert.match(await section.locator('.how-made').innerText(), /--num-kernels 1/);
  }],
  ['what takes long shows how long, and can be left', async (open, {context}) => {
    let held = false;
    await context.route('**/api/answer?*',
      route => (held ? route.fulfill({status: 202, json: {state: 'running', seconds: 7}}) : route.continue()));
    const page = await firstOpen(open, 'pipeline');
    await patience(page, 20);
    held = true;
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.waitForFunction(() =>
      /7 s; you may leave/.test(document.querySelector('.answer .working')?.textContent ?? '')
    );
    await page.keyboard.press('g');
    await page.keyboard.press('t');
    await page.waitForFunction(() => stageline.frames?.() > 0);
    held = false;
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.waitForFunction(() => stageline.answers?.().waiting.length === 0);
    assert.ok(await page.locator('.answer .fold').count() > 0);
  }, {alone: true}],
  ['a part below 0 stays within its bar: nothing is drawn over the names', async (open, {stageline, folder, runs}) => {
    // On clocks that are 5 ms apart and taken as one, work starts before its inputs are ready.
    const out = join(folder, 'early-work');
    if (!existsSync(out))
      execFileSync(stageline, [
        'simulate',
        '1f1b',
        '--stages',
        '4',
        '--micro-batches',
        '8',
        '--steps',
        '4',
        '--machines',
        '2',
        '--clock-skew',
        '5',
        '--messages',
        '-o',
        out,
      ], {stdio: 'ignore'});
    runs['early-work'] = [out, '--align', 'never'];
    const page = await open('early-work', '?lang=en#/answers/time', {first: true});
    await page.waitForFunction(() =>
      window.stageline?.answers?.().waiting.length === 0 &&
      /late starts/i.test(document.querySelector('.page-answers .plot')?.innerText)
    );
    assert.match(await page.innerText('.page-answers .plot'), /late starts\s+−7\.17/i);
    const beyond = await page.$$eval('.page-answers .stack', stacks =>
      stacks.flatMap(stack => {
        const box = stack.getBoundingClientRect();
        return [...stack.children].map(part => part.getBoundingClientRect()).filter(part =>
          part.width > 0 &&
          (part.left < box.left - 0.5 || part.right > box.right + 0.5)
        ).map(part => [part.left - box.left, part.width]);
      }));
    assert.deepEqual(beyond, []);
  }],
  ['Compare says what diff says, and without a second run how to open one', async (open, {stageline, runs, shot}) => {
    const page = await open('compared', '?lang=en', {first: true}), // two runs open on what differs
      diff = json(stageline, 'diff', runs.pipeline, runs.slower, '--format', 'json');
    await page.waitForFunction(() => window.stageline?.compared?.());
    assert.equal(await page.innerText('h1'), diff.headline_en + '.');
    if (diff.cause_en) assert.ok((await page.innerText('.lead')).includes(diff.cause_en));
    assert.deepEqual(await texts(page, '.effects tbody tr:not(.whole) th'), diff.changes.map(one => one.en));
    const effects = await texts(page, '.effects tbody tr td:nth-child(3)');
    assert.deepEqual(effects.map(text => text[0]), [
      ...diff.changes.map(one => one.effect_ns),
      diff.change_ns,
    ].map(ns => (ns < 0 ? '−' : '+')));
    const shares = await texts(page, '.effects tbody tr td:nth-child(4)');
    assert.equal(shares.at(-1), `${diff.change_share < 0 ? '−' : '+'}${percent(Math.abs(diff.change_share))}`);
    assert.equal((await texts(page, '.runs dd')).length, 2);
    await shot(page, 'compare');
    await page.click('#theme');
    await shot(page, 'compare-dark');
    const alone = await open('pipeline', '?lang=en#/compare');
    await alone.waitForFunction(() => window.stageline?.compared?.());
    assert.match(await alone.innerText('main.compare'), /stageline view \S*pipeline --compare OTHER_RUN/);
  }],
  ['Compare of profiles says what changed most and which run is which', async (open, {stageline, runs}) => {
    const page = await open('profiles', '?lang=en#/compare');
    await page.waitForFunction(() => window.stageline?.compared?.());
    const [a, , b] = runs.profiles,
      {tables, notes} = json(stageline, 'analyze', 'trace-diff', '--control', a, '--test', b, '--format', 'json');
    const most = tables.find(one => one.name === 'compare-traces').rows[0];
    assert.equal(await page.innerText('h1'), json(stageline, 'diff', a, b, '--json').headline_en + '.');
    assert.deepEqual((await texts(page, '.runs dd')).map(text => text.split(' ')[0]), [a, b].map(path =>
      path.split('/').at(-1)
    ));
    // The parts behind a change are set in from it: only the changes add up.
    const [change, item] = await page.evaluate(() => {
      const head = document.querySelector('.effects tbody tr:not(.behind) th'),
        left = () => parseFloat(getComputedStyle(head).paddingLeft),
        before = left();
      head.parentElement.classList.add('behind'); // this pair has none
      const after = left();
      head.parentElement.classList.remove('behind');
      return [before, after];
    });
    assert.ok(item > change + 10, `${item} ${change}`);
    assert.equal((await texts(page, '.operators .notes li')).length, notes.length);
    await page.click('#lang');
    await page.waitForFunction(() => /总览/.test(document.querySelector('.pages').textContent));
    const left = (await texts(page, '.operators h3, .operators th')).filter(text => /[a-z]{3}/.test(text));
    assert.deepEqual(left, [], 'no head is left in English');
    await page.click('#lang');
    assert.deepEqual(
      await texts(page, '.operators .data-table:first-of-type tbody tr:first-child td:first-child').then(list =>
        list[0]
      ),
      most.name,
    );
  }],
  [
    'pages in Chinese, light and dark, narrow and 4k: nothing overflows, all text meets AA, no English is left',
    async (open, {shot}) => {
      let page;
      for (const [run, hash] of [['slower', '#/overview'], ['ascend', '#/answers/time'], ['compared', '#/compare']])
        for (const dark of [false, true]) {
          page = await open(run, '?lang=zh' + hash, {dark, first: true, again: page});
          await page.waitForFunction(() =>
            window.stageline?.page && !document.querySelector('.working') && {
              overview: () => stageline.overviewReady(),
              answers: () => stageline.answers?.().waiting.length === 0,
              compare: () => stageline.compared(),
            }[stageline.page()]()
          );
          assert.deepEqual(await poorContrast(page), [], `${hash} ${dark}`);
          for (const [width, height] of [[420, 760], [900, 700], [3840, 2160], [1440, 900]]) {
            await resize(page, width, height);
            const wide = await page.evaluate(() => {
              const shownPage = [...document.querySelectorAll('.page')].find(one => !one.hidden);
              return [document.documentElement.scrollWidth - innerWidth, shownPage.scrollWidth - shownPage.clientWidth];
            });
            assert.ok(wide.every(by => by <= 0), `${hash} at ${width}: ${wide}, too wide: ${await tooWide(page)}`);
            if (width !== 900) await shot(page, `zh-${hash.slice(2).replace('/', '-')}-${width}${dark ? '-dark' : ''}`);
          }
          const words = (await visibleTexts(page)).join('\n');
          assert.match(words, /总览/);
          assert.doesNotMatch(words, /\b(What|Where|How|The same|rows|Copy)\b/, hash);
          await page.click('#lang');
          await page.waitForFunction(() =>
            /Overview/.test(document.querySelector('.pages').textContent) &&
            !document.querySelector('.working')
          );
          assert.match(await page.innerText('.sheet'), /[A-Za-z]{4}/);
        }
    },
  ],
  [
    "SQL: rows are the command line's, the schema is the run's, a plot, a link to the timeline; errors are said",
    async (open, {stageline, runs, shot}) => {
      const run = [runs.profile].flat()[0], page = await open('profile', '?lang=en#/answers/sql', {first: true});
      const answered = () =>
        page.waitForFunction(() =>
          window.stageline?.answers?.().family === 'sql' && stageline.answers().waiting.length === 0
        );
      const ask = async query => {
        await page.fill('#sql-query', query);
        await page.press('#sql-query', 'Control+Enter');
        await answered();
      };
      await answered();
      await page.waitForFunction(() => document.querySelectorAll('.sql-schema details').length > 20);
      const query = 'SELECT id, name, start_ns, dur_ns FROM kernels ORDER BY dur_ns DESC, id LIMIT 7';
      await ask(query);
      const {rows} = json(stageline, 'sql', run, query, '--format', 'json');
      assert.equal(rows.length, 7);
      const cells = await page.locator('.sql-answer .data-table tbody tr').evaluateAll(list =>
        list.map(row => [...row.cells].map(cell => cell.textContent.replace(/\s/g, '')))
      );
      assert.deepEqual(cells, rows.map(row => row.map(value => String(value).replace(/\s/g, ''))));
      assert.equal(await page.locator('.sql-plot tbody tr').count(), 7);
      // A unit is said once: in the name, where it ends with it.
      assert.deepEqual((await texts(page, '.sql-answer .data-table th')).map(text => text.trim()), [
        'id',
        'name',
        'start_ns',
        'dur_ns',
      ]);
      assert.match(await page.innerText('.sql-answer code'), /^stageline sql .*'SELECT id, name/);
      // The address holds the query, and the link shows the time that the rows cover, with a fiftieth more on each
      // side.
      const from = Math.min(...rows.map(row => row[2])), to = Math.max(...rows.map(row => row[2] + row[3])),
        margin = (to - from) / 50;
      await page.waitForFunction(() => /q=SELECT/.test(location.hash));
      await page.click('#sql-timeline');
      await page.waitForFunction(() =>
        stageline.page() === 'timeline' && window.stageline.frames?.() > 0 && window.stageline.settled()
      );
      const shown = /v=(-?\d+),(-?\d+)/.exec(await page.evaluate(() => location.hash));
      assert.ok(Math.abs(shown[1] - (from - margin)) <= margin + 2 && Math.abs(shown[2] - (to + margin)) <= margin + 2,
        `${shown[0]} of ${from} to ${to}`);
      // The rows are a lane there, as high as their share of a pixel.
      const lane = await page.evaluate(() => stageline.query()), window_ = shown[2] - shown[1],
        edges = [...new Set(rows.flatMap(row => [row[2], row[2] + row[3]]))].sort((a, b) => a - b);
      const covered = edges.slice(1).reduce(
        (sum, edge, i) => sum + (rows.some(row => row[2] <= edges[i] && row[2] + row[3] >= edge) ? edge - edges[i] : 0),
        0,
      );
      assert.equal(lane.rows, 7);
      assert.ok(Math.abs(lane.painted / lane.pixels - covered / window_) <= 8 / lane.pixels,
        `${lane.painted} of ${lane.pixels} pixels for ${covered} of ${window_} ns`);
      assert.match(await page.textContent('.query-lane'), /7 rows/);
      const longest = rows[0], place = await page.locator('.query-lane canvas').boundingBox();
      await page.mouse.click(place.x + (longest[2] + longest[3] / 2 - shown[1]) / window_ * place.width,
        place.y + place.height / 2);
      await page.waitForFunction(([from, to]) => {
        const {t0, t1} = stageline.view();
        return t0 < from && t1 > to && t1 - t0 < 2.5 * (to - from) + 200;
      }, [longest[2], longest[2] + longest[3]]);
      await page.reload();
      await page.waitForFunction(() => window.stageline?.query?.().rows === 7);
      await page.click('.query-lane button');
      await page.waitForFunction(() => document.querySelector('.query-lane').hidden && !/[?&]q=/.test(location.hash));
      await page.goto(`${page.url().split('#')[0]}#/answers/sql?q=${encodeURIComponent(query)}`);
      await answered();
      assert.equal(await page.inputValue('#sql-query'), query);
      await ask('SELECT a FROM nowhere');
      assert.match(await page.innerText('.sql-answer .notice'), /nowhere/);
      await ask("SELECT key AS name, count, total_ns FROM totals('name') ORDER BY total_ns DESC LIMIT 12");
      for (const dark of [false, true]) {
        await page.emulateMedia({colorScheme: dark ? 'dark' : 'light'});
        await page.evaluate(theme => {
          document.documentElement.dataset.theme = theme;
        }, dark ? 'dark' : 'light');
        assert.deepEqual(await poorContrast(page), [], `dark ${dark}`);
        await shot(page, `sql${dark ? '-dark' : ''}`);
      }
      for (const [width, height] of [[420, 760], [1440, 900]]) {
        await resize(page, width, height);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
          `nothing overflows at ${width}`);
        await shot(page, `sql-${width}`);
      }
      await page.click('#lang');
      await page.waitForFunction(() => /时间线/.test(document.querySelector('.pages').textContent));
      await shot(page, 'sql-zh');
      assert.doesNotMatch(await page.innerText('.sql header, .sql-form'), /Ask|anything/);
    },
    {complaints: true},
  ],
  ['the critical path is a lane of the timeline, with the rows of its answer', async (open, {stageline, runs}) => {
    for (const [run, table] of [['pipeline', 'pipeline_critical_path__path'], [
      'profile',
      'critical_path_analysis__breakdown',
    ]]) {
      const {rows: [[count, busy]]} = json(stageline, 'sql', ...[runs[run]].flat(),
        `SELECT count(*), sum(${run === 'pipeline' ? 'path_ns' : 'dur_ns'}) FROM ${table}`, '--format', 'json');
      assert.ok(count > 5, `${run}: ${count}`);
      const page = await open(run, '?lang=en#/answers/critical', {raw: true});
      const link = page.locator(`a[href*="${table}"]`);
      await link.or(page.locator('button.ask')).first().waitFor();
      if (await link.count() === 0) await page.locator('button.ask').first().click();
      await link.first().click();
      await page.waitForFunction(wanted => window.stageline?.query?.().rows === wanted, count);
      await page.waitForFunction(() => window.stageline.frames?.() > 0 && window.stageline.settled());
      assert.match(await page.textContent('.query-lane'), /critical path/);
      const lane = await page.evaluate(() => ({...stageline.query(), view: stageline.view()})),
        share = busy / (lane.view.t1 - lane.view.t0);
      assert.ok(Math.abs(lane.painted / lane.pixels - share) < 0.02, `${run}: ${lane.painted / lane.pixels}, ${share}`);
      const canvas = page.locator('.query-lane canvas'), place = await canvas.boundingBox();
      let title = '';
      for (let x = 0; x < 20 && !title; ++x) {
        await page.mouse.move(place.x + place.width * (x + 0.5) / 20, place.y + place.height / 2);
        title = await canvas.getAttribute('title');
      }
      assert.match(title, /dur_ns: [\d.]+/);
      await page.close();
    }
  }],
];
