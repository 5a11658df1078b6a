// The runs that the viewer's tests look at, made by generators of ours.
import {execFileSync} from 'node:child_process';
import {existsSync, mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const gen = join(dirname(fileURLToPath(import.meta.url)), '../gen');

// A Chrome trace of one rank; times are microseconds.
function chrome(folder, name, events) {
  const path = join(folder, `${name}.json`);
  writeFileSync(path,
    JSON.stringify({schemaVersion: 1, distributedInfo: {rank: 0, world_size: 1}, traceEvents: events}));
  return path;
}
const slice = (name, ts, dur, more = {}) => ({ph: 'X', cat: 'cpu_op', name, pid: 1, tid: 1, ts, dur, args: {},
  ...more});

export const HOSTILE = '<img src=x onerror=alert(1)></script><b>bold</b>';

// Every byte that a page or a parser could take for something else: in a name, a category, a thread's name, twice 10 kB
// long.
const ATTACK = `</script><img src=x onerror=alert(1)><!--<script>&"' \u2028\u2029\u0000\ufeff]]>`;
function attack(path) {
  const events = [
    slice(ATTACK, 0, 100, {cat: ATTACK}),
    slice(ATTACK.repeat(150), 20, 30),
    slice(`${ATTACK} BAD`, 120, 5, {args: {[ATTACK]: ATTACK}}),
    {ph: 'M', name: 'thread_name', pid: 1, tid: 1, args: {name: ATTACK}},
    {ph: 'M', name: 'process_name', pid: 1, args: {name: ATTACK}},
    {ph: 'C', name: ATTACK, pid: 1, ts: 5, args: {[ATTACK]: 3}},
  ];
  const text = Buffer.from(
      JSON.stringify({schemaVersion: 1, distributedInfo: {rank: 0, world_size: 1}, traceEvents: events}),
    ), at = text.indexOf('BAD');
  text.set([0xff, 0xc0, 0x80], at); // no UTF-8
  writeFileSync(path, text);
  return path;
}

export function makeRuns(stageline, folder) {
  const at = name => join(folder, name);
  const once = (name, make) => {
    if (!existsSync(at(name))) {
      mkdirSync(at(name), {recursive: true});
      make(at(name));
    }
    return at(name);
  };
  const python = (...args) => execFileSync('python3', [join(gen, 'kineto.py'), ...args], {stdio: 'ignore'});
  const simulated = (name, ...args) =>
    once(name, out => execFileSync(stageline, ['simulate', ...args, '-o', out], {stdio: 'ignore'}));
  const busy = [];
  for (let i = 0; i < 40000; ++i)
    busy.push(slice(i % 3 ? 'small op' : 'other op', i * 10 + (i * 7919) % 5, 1 + (i * 104729) % 7, {tid: 1 + i % 2}));
  // Threads that work in bursts: a pixel's move changes much of the picture. Every other burst is of slices too short
  // to be seen.
  const bursts = [], random = (seed => () => (seed = (seed * 48271) % 2147483647) / 2147483647)(7);
  for (let tid = 1; tid <= 40; ++tid) {
    for (let t = random() * 900, k = 0; t < 400000; t += 300 + random() * 2500, ++k) {
      const dur = 400 + random() * 2200;
      if (k % 2) bursts.push(slice(`long op ${k % 7}`, t, dur, {tid}));
      else for (let at = t; at < t + dur; at += 70) bursts.push(slice('small op', at, 60, {tid}));
      t += dur;
    }
  }
  // One thread of more slices than a block of a report has, and thirty others.
  const spread = [];
  for (let i = 0; i < 66000; ++i) spread.push(slice(`long op ${i % 5}`, i * 10, 3 + (i * 104729) % 7));
  for (let i = 0; i < 45000; ++i)
    spread.push(
      slice(`op ${(i * 7919) % 40}`, Math.floor(i / 30) * 440 + (i * 31) % 200, (i * 104729) % 230, {tid: 2 + i % 30}),
    );
  const pipeline = simulated('pipeline', '1f1b', '--stages', '4', '--dp', '2', '--micro-batches', '8', '--steps', '4',
    '--cost', '10,20', '--jitter', '0.08', '--messages', '--optimizer', '5');
  const slower = simulated('slower', '1f1b', '--stages', '4', '--dp', '2', '--micro-batches', '8', '--steps', '4',
    '--cost', '10,20', '--jitter', '0.02', '--fault', 'slow-stage:3,1.5', '--fault', 'slow-rank:5,1.4', '--messages',
    '--optimizer', '5');
  const profileOf = (name, ...args) =>
    once(name, out =>
      python('-o', out, '--ranks', '2', '--events', '6000', '--steps', '3', '--format', 'json', ...args));
  const snapshot = (name, ...args) =>
    once(name, out =>
      execFileSync('python3', [join(gen, 'memory_snapshot.py'), ...args, '-o', join(out, 'rank0.pickle')], {
        stdio: 'ignore',
      }));
  const made = name =>
    once(name, out => execFileSync('python3', [join(gen, `${name}.py`), '-o', out], {stdio: 'ignore'}));
  // The folder is next to the checkout, if it exists.
  const bytedance = join(gen, '../../../shared/data/pipeline_ops/bytedance/ideal-timeline-ST.json.gz');
  return {
    pipeline,
    slower,
    compared: [pipeline, '--compare', slower],
    profiles: [profileOf('profile-a'), '--compare', profileOf('profile-b', '--link-us', '480')],
    reordered: [
      pipeline,
      '--compare',
      simulated('fthenb', 'fthenb', '--stages', '4', '--dp', '2', '--micro-batches', '6', '--steps', '2', '--cost',
        '10,20', '--messages'),
    ],
    ascend: simulated('ascend', '1f1b', '--stages', '2', '--dp', '2', '--micro-batches', '4', '--steps', '2',
      '--format', 'ascend', '--level', '1'),
    ...(existsSync(bytedance) ? {bytedance} : {}),
    dualpipe: simulated('dualpipe', 'dualpipe-v', '--stages', '4', '--micro-batches', '10', '--steps', '2'),
    vpp: simulated('vpp', 'vpp', '--stages', '4', '--chunks', '2', '--micro-batches', '8', '--steps', '2'),
    zbv: simulated('zbv', 'zb-v', '--stages', '4', '--micro-batches', '8', '--steps', '2'),
    // Sends that queue at a slow link last at once, and the others last no time.
    queued: simulated('queued', '1f1b', '--stages', '4', '--micro-batches', '8', '--steps', '3', '--cost', '10,20',
      '--messages', '--fault', 'slow-link:1,2,+30ms'),
    split: simulated('split', 'zb-h1', '--stages', '4', '--micro-batches', '6', '--steps', '2'),
    profile: once('profile',
      out =>
        python('-o', out, '--ranks', '4', '--events', '12000', '--shape', 'pipeline', '--micro-batches', '8', '--steps',
          '3', '--memory', '--notes', 'actions', '--format', 'json')),
    recorded: once('recorded',
      out => execFileSync('python3', [join(gen, 'recording.py'), '-o', out], {stdio: 'ignore'})),
    snapshot: snapshot('snapshot', '--oom', 'fragmented'),
    snapshots: [snapshot('snapshot-a'), '--compare', snapshot('snapshot', '--oom', 'fragmented')],
    experts: made('experts'),
    collectives: made('collectives'),
    router_trace: made('router_trace'),
    // Eight ranks on four clocks, which are further apart than a step is long; one rank is late.
    apart: join(
      once('apart',
        out => execFileSync('python3', [join(gen, 'drawn_jobs.py'), '-o', out, '745005:1'], {stdio: 'ignore'})),
      '745005',
    ),
    hang: once('hang',
      out =>
        execFileSync('python3', [join(gen, 'flight_recorder.py'), '--fault', 'missing:2', '--messages', '-o', out], {
          stdio: 'ignore',
        })),
    stacks: once('stacks',
      out => python('-o', out, '--ranks', '1', '--events', '4000', '--steps', '2', '--python', '--format', 'json')),
    // Step 12 is slow: of a pipeline whose stage 2 is slow too, and of a torch job in which a rank waits for its input.
    twelfth: simulated('twelfth', '1f1b', '--stages', '4', '--dp', '2', '--micro-batches', '8', '--steps', '16',
      '--cost', '10,20', '--jitter', '0.02', '--fault', 'slow-step:12,1.6', '--fault', 'slow-stage:2,1.2'),
    twelfthOfTorch: once('twelfth-of-torch',
      out =>
        python('-o', out, '--ranks', '2', '--events', '16000', '--steps', '16', '--first-step', '0', '--fault',
          'host-delay:1,25,12', '--format', 'json')),
    graphs: profileOf('graphs', '--graphs'),
    busy: chrome(folder, 'busy', busy),
    bursts: chrome(folder, 'bursts', bursts),
    spread: chrome(folder, 'spread', spread),
    counter: chrome(folder, 'counter', [
      slice('work', 0, 1000),
      ...Array.from({length: 200}, (_, i) => ({ph: 'C', name: 'level', pid: 1, ts: i * 5, args: {value: i * i}})),
    ]),
    counters: chrome(folder, 'counters', [
      slice('work', 0, 400000),
      ...Array.from({length: 12},
        (_, k) =>
          Array.from({length: 1500},
            (_, i) => ({ph: 'C', name: `level ${k}`, pid: 1, ts: i * 266,
              args: {value: 40 + (k + 1) * ((i * (k + 3)) % 97) + (i % 400 === 7 ? 3000 : 0)}}))).flat(),
    ]),
    formula: chrome(folder, 'formula', [slice('=1+1', 0, 100), slice('@sum', 200, 100), slice('plain', 400, 100)]),
    one: chrome(folder, 'one', [slice('alone', 10, 5)]),
    empty: chrome(folder, 'empty', []),
    gap: chrome(folder, 'gap', [slice('before', 0, 1000), slice('after', 30 * 86400e6, 1000)]),
    odd: chrome(folder, 'odd', [
      slice('whole', 0, 100),
      slice('zero', 20, 0),
      slice('negative', 50, -7),
      slice('end', 90, 10),
    ]),
    hostile: chrome(folder, 'hostile', [
      slice(HOSTILE, 0, 100, {args: {[HOSTILE]: HOSTILE}}),
      slice('long '.repeat(2000), 120, 100),
    ]),
    attack: attack(join(folder, 'attack.json')),
    late: simulated('late', '1f1b', '--stages', '4', '--dp', '2', '--micro-batches', '8', '--steps', '2', '--cost',
      '30,62', '--latency', '4', '--fault', 'slow-stage:2,1.4'),
    // A slow worker in the second replica; a rank whose stamps are 15 ms early.
    slowWorker: simulated('slow-worker', '1f1b', '--stages', '4', '--dp', '2', '--micro-batches', '8', '--steps', '3',
      '--cost', '10,20', '--jitter', '0.02', '--fault', 'slow-rank:5,1.4'),
    // More ranks than a chart has rows for; one of stage 1 and one of stage 2 are slow.
    many: simulated('many', '1f1b', '--stages', '4', '--dp', '40', '--micro-batches', '6', '--steps', '4', '--cost',
      '10,20', '--jitter', '0.03', '--messages', '--optimizer', '5', '--fault', 'slow-rank:57,1.4', '--fault',
      'slow-rank:130,1.2'),
    early: once('early', out => {
      execFileSync(stageline, [
        'simulate',
        '1f1b',
        '--stages',
        '4',
        '--micro-batches',
        '8',
        '--steps',
        '2',
        '--cost',
        '10,20',
        '-o',
        out,
      ], {stdio: 'ignore'});
      const log = join(out, 'workerlog.2'), text = readFileSync(log, 'utf8');
      writeFileSync(log, text.replace(/(job_(?:start|end)_time = )(\d+)/g, (_, name, ms) => name + (Number(ms) - 15)));
    }),
    large: simulated('large', '1f1b', '--stages', '8', '--dp', '2', '--micro-batches', '16', '--steps', '136',
      '--jitter', '0.05', '--messages'),
    lanes: chrome(folder, 'lanes', Array.from({length: 10000}, (_, i) => slice(`op ${i % 7}`, i, 500, {tid: i + 1}))),
    // A page without a run, and below it four runs of one job, of which the last is slower.
    start: (() => {
      const root = at('job');
      mkdirSync(join(root, 'notes'), {recursive: true});
      for (const seed of [1, 2, 3, 4])
        if (!existsSync(join(root, `run-${seed}`)))
          execFileSync(stageline, [
            'simulate',
            '1f1b',
            '--stages',
            '4',
            '--micro-batches',
            '8',
            '--steps',
            '6',
            '--cost',
            '10,20',
            '--jitter',
            '0.02',
            '--seed',
            String(seed),
            ...(seed === 4 ? ['--fault', 'slow-stage:2,1.3'] : []),
            '-o',
            join(root, `run-${seed}`),
          ], {stdio: 'ignore'});
      return ['--root', root];
    })(),
    // Twelve runs of which the last six are slower: enough for levels.
    jobs: (() => {
      const root = at('jobs');
      mkdirSync(root, {recursive: true});
      for (let k = 1; k <= 12; ++k)
        if (!existsSync(join(root, `run-${String(k).padStart(2, '0')}`)))
          execFileSync(stageline, [
            'simulate',
            '1f1b',
            '--stages',
            '4',
            '--micro-batches',
            '8',
            '--steps',
            '6',
            '--cost',
            '10,20',
            '--jitter',
            '0.02',
            '--seed',
            String(k + 10),
            ...(k > 6 ? ['--fault', 'slow-stage:1,1.2'] : []),
            '-o',
            join(root, `run-${String(k).padStart(2, '0')}`),
          ], {stdio: 'ignore'});
      return ['--root', root];
    })(),
    noted: simulated('noted', '1f1b', '--stages', '2', '--micro-batches', '4', '--steps', '2', '--cost', '10,20'),
    broken: (() => {
      writeFileSync(at('broken.json'), 'this is no trace');
      return at('broken.json');
    })(),
  };
}
