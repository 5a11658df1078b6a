// The report: the viewer in one file. It opens from disk with the network off, shows what the server shows, and answers
// every question of its timeline as the server does.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, readFileSync, readdirSync, statSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {gunzipSync, gzipSync} from 'node:zlib';
import {launchFirefox} from './firefox.mjs';
import {openReport, reportOf, timelineOf} from './onefile_help.mjs';
import {blocksOf, decode, moduleOf, questions, said, storeModule} from './onefile_vectors.mjs';
import {program, rowsOf} from './pipeline_help.mjs';
import {clickSlice, count, laneOf, poorContrast, settle, state} from './viewer_help.mjs';
import {HOSTILE} from './viewer_runs.mjs';

const tests = join(dirname(fileURLToPath(import.meta.url)), '..');
const said_ = async (server, path, params) => {
  const query = new URLSearchParams(Object.entries(params).map(([key, value]) => [key, String(value)]));
  const answer = await fetch(`${server}/api/${path}?${query}`);
  return {status: answer.status, body: await answer.arrayBuffer()};
};
async function ready(server) {
  for (;;) {
    const status = await (await fetch(`${server}/api/status`)).json();
    if (status.state === 'ready') return;
    assert.notEqual(status.state, 'failed', status.error);
    await new Promise(done => setTimeout(done, 50));
  }
}

// A report lacks these: arguments, recorded stacks, the profiler's own word for a category.
function withoutFileWords(path, answer) {
  if (path !== 'slice') return answer;
  const {args: _, args_missing: __, category: ___, ...rest} = answer;
  return rest;
}

async function sameAnswers(tools, name, rounds, seed, more = answer => answer) {
  const module = await storeModule(tools.folder), {packed} = blocksOf(reportOf(tools, name)),
    made = await module.makeStore(packed);
  const server = await tools.serve(name);
  await ready(server);
  const run = await (await fetch(`${server}/api/run`)).json(), asked = questions(run, made.store.names, rounds, seed);
  for (const [path, params] of asked) {
    // Nothing is read yet.
    const from = path === 'slice' ? await module.makeStore(blocksOf(reportOf(tools, name)).packed) : made;
    const own = await module.answer(from, path, params), theirs = await said_(server, path, params),
      where = `${name} ${path} ${JSON.stringify(params)}`;
    assert.equal(own.status, theirs.status, where);
    if (own.status === 200)
      assert.deepEqual(more(withoutFileWords(path, said(path, own.body, params))),
        more(withoutFileWords(path, said(path, theirs.body, params))), where);
  }
  return asked.length;
}

export const cases = [
  ['report: opens from disk and draws the timeline', async (open, tools) => {
    const {page, problems} = await openReport(tools.files, reportOf(tools, 'pipeline'));
    await timelineOf(page);
    assert.ok(await page.evaluate(() => stageline.painted().slices) > 20);
    const {slice} = await clickSlice(page, await laneOf(page, 0));
    assert.equal((await state(page)).selected.start, slice.start);
    await page.locator('.panel', {hasText: 'stageline view'}).waitFor(); // what shows the arguments
    assert.deepEqual(problems, []);
  }],
  ['report: every page has its content, and nothing is asked of a network', async (open, tools) => {
    for (const name of ['pipeline', 'profile']) {
      const {page, problems} = await openReport(tools.files, reportOf(tools, name), '?lang=en');
      await page.waitForFunction(() => stageline.overviewReady());
      assert.ok(await page.locator('h1').first().textContent());
      assert.equal(await page.locator('#page-compare').count(), 0); // there is no second run
      await page.click('#page-pipeline');
      await page.locator('.page-pipeline canvas').first().waitFor();
      await page.locator('.what-if').waitFor();
      await page.click('#page-answers');
      await page.locator('.answers table').first().waitFor();
      await page.click('#page-timeline');
      await timelineOf(page);
      await page.keyboard.press('/');
      await page.keyboard.type(name === 'pipeline' ? 'F' : 'aten');
      await page.locator('[role=option]').first().waitFor();
      assert.deepEqual(problems, [], name);
    }
  }],
  ['report: questions get the answers that the server gives', async (open, tools) => {
    let asked = 0;
    for (const [name, rounds] of [
      ['pipeline', 12],
      ['vpp', 8],
      ['profile', 12],
      ['busy', 8],
      ['counter', 8],
      ['odd', 8],
      ['one', 3],
      ['spread', 6],
    ])
      asked += await sameAnswers(tools, name, rounds, rounds + 5);
    // The recorded stacks stay with the run.
    asked += await sameAnswers(tools, 'stacks', 8, 3, ({stack: _, ...rest}) => rest);
    asked += await sameAnswers(tools, 'ascend', 8, 4, ({stack: _, ...rest}) => rest);
    assert.ok(asked > 500, `${asked} questions`);
  }],
  ['report: only what is asked about is read, and what is damaged spoils nothing else', async (open, tools) => {
    const {makeStore, answer} = await storeModule(tools.folder), {packed} = blocksOf(reportOf(tools, 'spread'));
    const groups = packed.groups.map(({first, last}) => [first, last]), [long, short] = [
      groups.findIndex(([a, b]) => a === b),
      groups.findIndex(([a, b]) => a < b),
    ];
    assert.ok(groups.length >= 3 && long >= 0 && short >= 0, JSON.stringify(groups));
    assert.ok(packed.groups[long].pieces[0].length > 0);
    const damaged = groups.length - 1 === short ? groups.length - 2 : groups.length - 1, from = await makeStore(
      {...packed, groups: packed.groups.map((group, g) => ({...group, pieces: g === damaged ? group.pieces.map(bytes =>
        bytes.subarray(0, bytes.length >> 1)
      ) : [...group.pieces]}))},
    );
    assert.equal(from.loader.groupsRead(), 0);
    assert.equal((await answer(from, 'tiles', {lanes: String(groups[short][0]), n: 100})).status, 200);
    assert.equal(from.loader.groupsRead(), 1);
    await assert.rejects(answer(from, 'tiles', {lanes: String(groups[damaged][0]), n: 100}));
    for (const [first, last] of groups.filter((_, g) =>
      g !== damaged
    ))
      assert.equal(
        (await answer(from, 'select', {lanes: `${first}-${last}`})).status,
        200,
      );
    await assert.rejects(answer(from, 'search', {q: 'op'})); // of all of them
    await assert.rejects(makeStore({...packed, groups: packed.groups.slice(1)}), /cut off/);
    await assert.rejects(makeStore({...packed, groups: packed.groups.slice(0, -1)}), /cut off/);
  }],
  ['report: with a second run it compares, and shows both pipelines', async (open, tools) => {
    const {page, problems} = await openReport(tools.files, reportOf(tools, 'compared'), '?lang=en#/compare');
    await page.waitForFunction(() => window.stageline?.compared?.());
    assert.match(await page.textContent('.page-compare h1'), /slower/);
    assert.ok(await page.locator('.page-compare .effects tbody tr').count() > 1);
    await page.click('#page-pipeline');
    await page.waitForFunction(() => stageline.pipeline?.other?.()?.compared);
    assert.equal(await page.locator('.page-pipeline canvas').count() >= 2, true);
    assert.deepEqual(problems, []);
  }],
  ['report: the same without a worker', async (open, tools) => {
    const {page} = await openReport(tools.files, reportOf(tools, 'pipeline'), '?lang=en#/timeline', {
      scripts: 'window.Worker = class { constructor() { throw new Error("forbidden"); } };',
    });
    await timelineOf(page);
    assert.ok(await count(page, await laneOf(page, 0)) > 10);
  }],
  ['report: names are never markup', async (open, tools) => {
    const path = reportOf(tools, 'hostile', '--title', HOSTILE), {page, problems} = await openReport(tools.files, path);
    await timelineOf(page);
    await page.click('#page-overview');
    await page.waitForFunction(() => stageline.overviewReady());
    assert.equal(await page.locator('img').count(), 0);
    assert.ok((await page.title()).startsWith(HOSTILE));
    assert.ok(!readFileSync(path, 'utf8').includes(HOSTILE));
    assert.deepEqual(problems, []);
  }],
  ['report: above its slices it keeps the pipeline and says what shows the rest', async (open, tools) => {
    const {page, problems} = await openReport(tools.files, reportOf(tools, 'profile', '--slices', '600'));
    await timelineOf(page);
    assert.ok((await page.evaluate(() => stageline.run.lanes.map(lane => lane.type))).every(type => type === 'cells'));
    assert.match(await page.locator('.left-out').textContent(), /stageline view/);
    await page.click('#lang');
    assert.match(await page.locator('.left-out').textContent(), /切片.*stageline view/);
    assert.deepEqual(problems, []);
  }],
  ['report: a run without a timeline says so', async (open, tools) => {
    const {page, problems} = await openReport(tools.files, reportOf(tools, 'busy', '--slices', '100'));
    await timelineOf(page);
    assert.match(await page.locator('.left-out').textContent(), /40.000.*stageline view/);
    assert.deepEqual(problems, []);
  }],
  ['report: what a file cannot do is said with the command that can', async (open, tools) => {
    // A program that was built without a compiler for WebAssembly writes such a page.
    const path = join(tools.folder, 'without-what-if.html'), html = readFileSync(reportOf(tools, 'pipeline'), 'utf8');
    const run = JSON.parse(gunzipSync(Buffer.from(blocksOf(reportOf(tools, 'pipeline')).answer('run'), 'base64')));
    run.file.what_if = false;
    writeFileSync(path,
      html.replace(/<script type="application\/octet-stream" data-what-if=[^>]*>[^<]*<\/script>\n/g, '')
        .replace(/(data-answer="run">)[^<]*/, (_, head) => head + gzipSync(JSON.stringify(run)).toString('base64')));
    const {page, problems} = await openReport(tools.files, path, '?lang=en#/pipeline');
    const fix = page.locator('.what-if .fix button').first();
    await fix.waitFor();
    await fix.click();
    // Its price was made with the file.
    await page.waitForFunction(() => document.querySelector('#says')?.dataset.saving);
    assert.equal(await page.locator('.what-if input[type=range]').count(), 0);
    assert.match(await page.locator('.what-if').textContent(), /stageline view/);
    await page.goto(page.url().replace('#/pipeline', '#/answers/steps'));
    await page.locator('.answers table').first().waitFor();
    assert.equal(await page.locator('.answers form').count(), 0);
    assert.deepEqual(problems, []);
  }],
  ['report: what-if says byte for byte what the server says', async (open, tools) => {
    const {startWhatIf} = await moduleOf(tools.folder, 'what_if', `export * from './viewer/file/what_if';`);
    let refused = 0;
    for (const name of ['pipeline', 'slowWorker', 'zbv', 'split']) {
      const html = readFileSync(reportOf(tools, name), 'utf8'), block = of =>
        gunzipSync(Buffer.from(
          new RegExp(`data-what-if="${of}">([^<]*)<`).exec(html)?.[1] ?? '',
          'base64',
        ));
      if (!html.includes('data-what-if="program"'))
        return tools.skip('this program was built without a compiler for WebAssembly');
      assert.match(html, /script-src 'sha256-[^']+' 'wasm-unsafe-eval'; style-src/);
      const program = block('program'), model = block('model');
      const ask = await startWhatIf(program.buffer.slice(program.byteOffset, program.byteOffset + program.length),
        model.buffer.slice(model.byteOffset, model.byteOffset + model.length));
      const server = await tools.serve(name);
      await ready(server);
      const {fixes, schedules} = await (await fetch(`${server}/api/pipeline/fixes`)).json();
      const run = await (await fetch(`${server}/api/run`)).json(),
        step = run.steps[Math.min(1, run.steps.length - 1)].number;
      const asked = [
        `scale=by%3D0.87&step=${step}`,
        `scale=stage%3D1%2Cby%3D0.5&step=${step}&dp=0`,
        'scale=rank%3D0%2Cset%3D3ms',
        'latency_ns=0',
        `micro_batches=24&step=${step}`,
        'scale=stage%3D999%2Cby%3D2',
        'scale=by%3Dx',
        'micro_batches=-1',
        'schedule=none',
        ...fixes.map((_, i) => `fix=${i}&step=${step}`),
        ...schedules.flatMap(one => [`schedule=${one.name}&step=${step}`, `schedule=${one.name}&micro_batches=3`]),
      ];
      for (const one of asked) {
        const theirs = await fetch(`${server}/api/pipeline/what-if?${one}`),
          body = Buffer.from(await theirs.arrayBuffer()),
          own = ask(`/api/pipeline/what-if?${one}`);
        assert.equal(own.status, theirs.status, `${name} ${one}`);
        if (own.status === 200 && decode(own.body).header.why_not) {
          const {why_not_zh} = decode(body.buffer.slice(body.byteOffset, body.byteOffset + body.length)).header;
          ++refused;
          assert.equal(decode(own.body).header.why_not_zh, why_not_zh);
          assert.match(why_not_zh, /[\u4e00-\u9fff]{3}/);
          assert.doesNotMatch(why_not_zh, /[a-z]+ [a-z]+ [a-z]+/, one);
        }
        const plain = bytes => (own.status === 200
          ? (({columns, why_not_zh: _, ...header}) => ({header, columns}))({...decode(bytes).header,
            columns: decode(bytes).columns}) : JSON.parse(Buffer.from(bytes)));
        const slice = body.buffer.slice(body.byteOffset, body.byteOffset + body.length);
        assert.deepEqual(plain(own.body), plain(slice), `${name} ${one}`);
        if (own.status === 200 && !decode(slice).header.why_not)
          assert.ok(Buffer.from(own.body).equals(body), `${name} ${one}: the same bytes`);
      }
    }
    assert.ok(refused > 10, `${refused} were refused`);
  }],
  ['report: what-if is a workbench without the program', async (open, tools) => {
    const {page, problems} = await openReport(tools.files, reportOf(tools, 'pipeline'), '?lang=en#/pipeline');
    await page.locator('.what-if .fix button').first().waitFor();
    if (await page.locator('#cost').count() === 0)
      return tools.skip('this program was built without a compiler for WebAssembly');
    await page.selectOption('#cost-stage', '2');
    await page.locator('#cost').fill('0.9');
    await page.waitForFunction(() =>
      document.querySelector('#says')?.dataset.saving &&
      document.querySelector('.what-if .how:last-child').textContent.includes('stage=2,by=0.9')
    );
    const own = rowsOf(program('what-if', tools.runs.pipeline, '--scale', 'stage=2,by=0.9', '--json'), 'fixes').find(
      row => row.fix === 'own',
    );
    await page.waitForFunction(saving => Number(document.querySelector('#says').dataset.saving) === saving,
      own.saving_ns);
    await page.waitForFunction(() => stageline.pipeline.world?.());
    await page.click('#what-if-keep');
    await page.waitForFunction(() => location.hash.includes('2%3A0.9') || location.hash.includes('2:0.9'));
    await page.selectOption('#schedule', 'fthenb');
    await page.waitForFunction(() =>
      document.querySelector('.what-if .how:last-child').textContent.includes('--schedule fthenb')
    );
    assert.deepEqual(problems, []);
  }],
  // As trace.view() shows it in a notebook: a frame without rights to the page around it, and without an address.
  ['report: in a frame of a notebook, with links and the way back', async (open, tools) => {
    const html = readFileSync(reportOf(tools, 'profile'), 'utf8'), page = await tools.files.newPage(), problems = [];
    page.on('console', message => ['error', 'warning'].includes(message.type()) && problems.push(message.text()));
    page.on('pageerror', error => problems.push(error.message));
    await page.setContent('<iframe sandbox="allow-scripts" style="width:1200px;height:700px"></iframe>');
    await page.$eval('iframe', (frame, text) => {
      frame.srcdoc = text;
    }, html);
    const frame = await (await page.waitForSelector('iframe[srcdoc]')).contentFrame();
    await frame.waitForSelector('.page-overview:not([hidden])');
    for (const id of ['timeline', 'answers']) {
      await frame.click(`#page-${id}`);
      await frame.waitForSelector(`.page-${id}:not([hidden])`);
      assert.ok((await frame.evaluate(() => location.href)).startsWith(`about:srcdoc#/${id}`));
    }
    await frame.evaluate(() => history.back());
    await frame.waitForSelector('.page-timeline:not([hidden])');
    assert.deepEqual(problems.filter(text => !/willReadFrequently/.test(text)), []);
    await page.close();
  }],
  ['report: opens from disk in Firefox', async (open, tools) => {
    const firefox = await launchFirefox(tools.folder);
    if (!firefox) return tools.skip('no Firefox found; set FIREFOX to its path');
    try {
      for (const name of ['pipeline', 'profile', 'hostile']) {
        await firefox.open(`file://${reportOf(tools, name)}?lang=en#/timeline`);
        await firefox.until(() => window.stageline?.frames?.() > 0 && stageline.settled());
        assert.ok(await firefox.ask(() => stageline.painted().slices) > 0, name);
        await firefox.ask(() => {
          location.hash = '#/overview';
        });
        await firefox.until(() => stageline.overviewReady?.());
        assert.ok((await firefox.ask(() => document.querySelector('h1').textContent)).length > 5);
      }
      assert.deepEqual(firefox.problems, []);
    } finally {
      firefox.close();
    }
  }],
  ['report: small, and the script within its budget', async (open, tools) => {
    const path = reportOf(tools, 'busy'), html = readFileSync(path, 'utf8'),
      script = /<script>([\s\S]*?)<\/script>/.exec(html)[1], css = /<style>([\s\S]*?)<\/style>/.exec(html)[1];
    const zipped = gzipSync(script).length + gzipSync(css).length;
    assert.ok(zipped <= 200_000, `script and style are ${zipped} B gzipped`);
    const {packed} = blocksOf(path), slices = packed.groups.flatMap(group =>
      group.pieces
    ).reduce((sum, piece) => sum + Math.ceil(piece.length / 3) * 4, 0);
    assert.ok(slices / 40_000 <= 6, `${slices / 40_000} B a slice`);
    assert.ok(statSync(path).size > slices);
  }],
  ['report: without scripts it has its findings in words and a picture of the run', async (open, tools) => {
    for (const [name, colour] of [['pipeline', [0x00, 0x72, 0xb2]], ['profile', [0x00, 0x72, 0xb2]]]) {
      const page = await tools.files.newPage(), session = await tools.files.newCDPSession(page);
      await session.send('Emulation.setScriptExecutionDisabled', {value: true});
      await page.goto(`file://${reportOf(tools, name)}?lang=en`);
      const picture = page.locator('noscript img');
      await picture.scrollIntoViewIfNeeded();
      assert.ok((await page.locator('noscript h1').textContent()).length > 5, name);
      const [, bytes] = /src="data:image\/png;base64,([^"]+)"/.exec(readFileSync(reportOf(tools, name), 'utf8'));
      assert.ok(bytes.length < 280_000, `${name}: ${bytes.length}`);
      await page.close();
      const reader = await tools.files.newPage();
      const share = await reader.evaluate(async ([source, [r, g, b]]) => {
        const image = new Image();
        image.src = `data:image/png;base64,${source}`;
        await image.decode();
        const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
        canvas.width = image.naturalWidth;
        canvas.height = image.naturalHeight;
        context.drawImage(image, 0, 0);
        const {data} = context.getImageData(0, 0, canvas.width, canvas.height);
        let found = 0;
        for (let i = 0; i < data.length; i += 4)
          found += data[i] === r && data[i + 1] === g && data[i + 2] === b ? 1 : 0;
        return found / (data.length / 4);
      }, [bytes, colour]);
      assert.ok(share > 0.02, `${name}: ${share} of the picture computes`);
      await reader.close();
    }
  }],
  ['report: only a theme that nobody chose follows the system', async (open, tools) => {
    const text = readFileSync(reportOf(tools, 'pipeline'), 'utf8'), page = await tools.files.newPage();
    const system = async scheme => {
      await page.emulateMedia({colorScheme: scheme});
      for (const frame of page.frames().slice(1)) {
        await frame.waitForFunction(name => matchMedia(`(prefers-color-scheme: ${name})`).matches, scheme);
        await frame.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
      }
    };
    // As the extensions of editors show it: in a frame that may store nothing.
    const frameOf = async (name, html) => {
      await page.evaluate(([name, html]) => {
        const frame = document.createElement('iframe');
        Object.assign(frame, {name, srcdoc: html, width: 900, height: 700});
        frame.setAttribute('sandbox', 'allow-scripts');
        document.body.append(frame);
      }, [name, html]);
      const frame = await (await page.waitForSelector(`iframe[name=${name}]`)).contentFrame();
      await frame.waitForFunction(() => window.stageline?.run);
      return frame;
    };
    await page.emulateMedia({colorScheme: 'light'});
    const given = await frameOf('given', text.replace('<html ', '<html data-theme="light" ')),
      free = await frameOf('free', text);
    const themes = () =>
      Promise.all([given, free].map(frame => frame.evaluate(() => document.documentElement.dataset.theme)));
    await system('dark');
    assert.deepEqual(await themes(), ['light', 'dark'], 'a theme that the host gives stays');
    await system('light');
    await free.click('#theme');
    assert.deepEqual(await themes(), ['light', 'dark']);
    await system('dark');
    await system('light');
    assert.deepEqual(await themes(), ['light', 'dark'], 'and so does one that the reader chose');
    await page.close();
  }],
  ['report: prints its first screen, findings and tables', async (open, tools) => {
    const {page} = await openReport(tools.files, reportOf(tools, 'pipeline'), '?lang=en#/overview');
    await page.waitForFunction(() => stageline.overviewReady());
    const medium = async name => {
      await page.emulateMedia({media: name, colorScheme: 'light'});
      await page.waitForFunction(on => document.documentElement.classList.contains('paper') === on, name === 'print');
    };
    await medium('print');
    assert.equal(await page.locator('.top nav').isVisible(), false);
    assert.equal(await page.locator('h1').first().isVisible(), true);
    assert.doesNotMatch((await page.locator('.overview .places').allInnerTexts()).join('\n'), /·/,
      'links are gone, and what stands between them');
    const pdf = await page.pdf({format: 'A4'});
    assert.ok(pdf.length > 10_000);
    await medium('screen');
    await page.click('#page-answers');
    await page.locator('.answers table').first().waitFor();
    await medium('print');
    assert.equal(await page.locator('.families').isVisible(), false);
    assert.equal(await page.locator('.answers table').first().isVisible(), true);
    await medium('screen');
    await page.click('#page-timeline');
    await timelineOf(page);
    const height = () => page.locator('.stage').evaluate(stage => stage.getBoundingClientRect().height),
      onScreen = await height();
    await medium('print');
    assert.ok(await height() > 100, `${await height()} of ${onScreen}`);
    const cut = await page.locator('.stage').evaluate(stage => stage.scrollHeight - stage.clientHeight);
    assert.ok(cut <= 1, `${cut} px of the rows are cut on paper`);
    await medium('screen');
    assert.ok(Math.abs(await height() - onScreen) <= 1, `${await height()} of ${onScreen}`);
  }],
  [
    'report: --dark opens dark where the reader has light, and all text of its first screen can be read',
    async (open, tools) => {
      const ground = {};
      for (const flag of ['--dark', '']) {
        const out = join(tools.folder, `ground${flag}.html`);
        execFileSync(tools.stageline, ['export', tools.runs.pipeline, '-o', out, '--quiet', ...[flag].filter(Boolean)],
          {stdio: 'ignore'});
        const {page, problems} = await openReport(tools.files, out, '?lang=en#/overview');
        await page.waitForFunction(() => stageline.overviewReady());
        ground[flag] = await page.evaluate(() =>
          getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).map(Number)
        );
        assert.deepEqual(await poorContrast(page), []);
        assert.deepEqual(problems, []);
      }
      assert.ok(Math.max(...ground['--dark']) < 60 && Math.min(...ground['']) > 200, JSON.stringify(ground));
    },
  ],
  [
    'report: a hundred thousand cells are all drawn, in less than 5 MB; below a pixel as much as is busy',
    async (open, tools) => {
      const path = reportOf(tools, 'large'),
        {page, problems} = await openReport(tools.files, path, '?lang=en#/pipeline');
      await page.waitForFunction(() => window.stageline?.pipeline?.frames() > 0);
      const [cells, total, drawn] = await page.evaluate(
        '[stageline.pipeline.cells(), stageline.pipeline.total, stageline.pipeline.drawn()]',
      );
      assert.ok(cells > 100_000 && total === cells && drawn === cells, `${cells} ${total} ${drawn}`);
      assert.ok(statSync(path).size < 5e6, `${statSync(path).size}`);
      assert.deepEqual(problems, []);
      const {coverage, decodeCells, makeModel, unpack} = await moduleOf(tools.folder, 'chart',
        `export {coverage} from './chart/raster'; export {decodeCells} from './data/cells';
      export {makeModel} from './data/rows'; export {unpack} from './viewer/file/unpack';`);
      const buffer = await unpack(blocksOf(path).answer('pipeline')), {header, base} = decode(buffer),
        {report} = header;
      const made = decodeCells(buffer, report.cells.columns, report.cells.count, base + header.cells_at),
        model = makeModel(made, report.parts),
        row = model.rows[3],
        busy = [];
      for (let i = 0; i < made.count; ++i)
        if (made.part[i] === row.part && (made.kind[i] <= 4 || made.kind[i] === 10))
          busy.push([made.start[i], made.start[i] + made.dur[i]]);
      const home = model.whole, width = 1100;
      for (let zoom = 1; zoom < 2e4; zoom *= 3) {
        const span = (home.t1 - home.t0) / zoom, t0 = home.t0 + (home.t1 - home.t0 - span) * 0.37, t1 = t0 + span;
        const wanted = busy.reduce((sum, [a, b]) => sum + Math.max(0, Math.min(b, t1) - Math.max(a, t0)), 0) / span *
          width;
        assert.ok(Math.abs(coverage(row.lanes[0], made, {t0, t1}, width) - wanted) < 0.5, `zoom ${zoom}`);
      }
    },
  ],
  ['report: few short cells blank no labels of their kind', async (open, tools) => {
    const {shortDurations} = await moduleOf(tools.folder, 'labels', `export {shortDurations} from './chart/chart';`);
    const short = (...runs) => {
      const dur = Float64Array.from(runs.flatMap(([n, ns]) => Array(n).fill(ns)));
      return shortDurations({count: dur.length, kind: new Uint8Array(dur.length),
        pair: new Int32Array(dur.length).fill(-1), dur})[0];
    };
    assert.equal(short([148, 16], [20, 1]), 16); // DualPipeV: gradients of the loss next to backwards
    assert.equal(short([10, 16], [100, 2]), 2);
    assert.equal(short([1, 7]), 7);
  }],
  ['report: the policy forbids the network', async (open, tools) => {
    const policy = /Content-Security-Policy" content="([^"]*)"/.exec(readFileSync(reportOf(tools, 'one'), 'utf8'))[1];
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  }],
  ['report: hostile bytes in every name are text, on every page', async (open, tools) => {
    const path = reportOf(tools, 'attack'), {page, problems} = await openReport(tools.files, path, '?lang=en');
    await page.waitForFunction(() => stageline.overviewReady());
    for (const id of ['timeline', 'answers', 'overview']) {
      await page.click(`#page-${id}`);
      await page.waitForFunction(wanted => stageline.page() === wanted, id);
      if (id === 'timeline') await timelineOf(page);
      else await page.locator('.page:not([hidden]) h1').first().waitFor();
      assert.equal(await page.evaluate('document.images.length'), 0, id);
    }
    await page.click('#page-timeline');
    await page.keyboard.press('/');
    await page.keyboard.type('onerror');
    await page.locator('[role=option]').first().waitFor();
    const bytes = readFileSync(path);
    assert.equal(bytes.toString('utf8').match(/<\/script>/g).length,
      bytes.toString('utf8').match(/<script[ >]/g).length);
    // In words for readers without scripts it is text: the only picture is the run's.
    const images = bytes.toString('utf8').replace(/<script>[\s\S]*?<\/script>/, '').match(/<img[^>]*>/g);
    assert.equal(images.length, 1);
    assert.match(images[0], /^<img width="\d+" height="\d+" alt="" src="data:image\/png;base64,[\w+/=]*">$/);
    assert.deepEqual(problems, []);
  }],
  ['report: every source is described in Chinese', async (_, tools) => {
    const {setLang, description} = await moduleOf(tools.folder, 'i18n',
      `export {setLang, description} from './i18n/i18n';`);
    const readers = join(tests, 'golden/readers'), folders = readdirSync(readers).filter(name =>
      existsSync(join(readers, name, 'input'))
    );
    const said = folders.map(name =>
      JSON.parse(
        execFileSync(tools.stageline, ['info', join(readers, name, 'input'), '--format', 'json', '--quiet'], {
          maxBuffer: 1 << 28,
        }),
      ).description
    );
    assert.ok(said.length > 25);
    for (const text of said) assert.equal(description(text), text, 'English as it is');
    setLang('zh');
    for (const text of said)
      for (const piece of description(text).split('，'))
        assert.ok(/[\u4e00-\u9fff]|^\d+ 个 rank$|^(NVIDIA|AMD|Ascend)/.test(piece), `${text}: ${piece}`);
    assert.equal(description('1 host, no devices'), '1 台主机，没有设备');
    assert.equal(description('2 worker logs of 2 machines'), '2 份 worker 日志，来自 2 台机器');
    assert.equal(description('8 ranks, 12 events, torch 1.12–2.2 and 2.4–2.6 eras'),
      '8 个 rank，12 个事件，torch 1.12–2.2 与 2.4–2.6 时期的格式');
  }],
  ['report: a single slice; export writes the same page', async (open, tools) => {
    const {page, problems} = await openReport(tools.files, reportOf(tools, 'one'));
    await timelineOf(page);
    assert.equal(await page.evaluate(() => stageline.painted().slices), 1);
    await page.click('#page-overview');
    await page.waitForFunction(() => stageline.overviewReady());
    assert.ok((await page.locator('.page:not([hidden]) h1').textContent()).length > 5);
    assert.deepEqual(problems, []);
    const out = join(tools.folder, 'exported.html');
    execFileSync(tools.stageline, ['export', tools.runs.one, '-o', out, '--quiet', '--lang', 'en'], {stdio: 'inherit'});
    assert.equal(readFileSync(out, 'utf8'), readFileSync(reportOf(tools, 'one', '--lang', 'en'), 'utf8'));
  }],
];
