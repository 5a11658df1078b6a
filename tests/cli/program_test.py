"""Command-line manners: flags, help, exit codes, pipes, interruption, simulate, analyze, export."""
import csv
import io
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import time
import unittest

from support import BIN, SHARED, SOURCE, Case, info, needs_shared, one_step, page_answer, run, sanitized

KIND_OF_TYPE = {'forward': 'F', 'backward': 'B', 'backward_b': 'I', 'backward_w': 'W'}


def order_of(log):
    """The job list of one worker log: (kind, micro-batch, chunk)."""
    pattern = re.compile(r'type = ([a-z_]+?)(\d*), micro_batch_id = (\d+)')
    found = [pattern.search(line) for line in log.read_text().splitlines()]
    return [(KIND_OF_TYPE[m[1]], int(m[3]), int(m[2] or 0)) for m in found if m and m[1] in KIND_OF_TYPE]


def table(path, name, *flags):
    out = run('analyze', 'pipeline-summary', path, '--table', name, '--format', 'csv', *flags, check=0).out
    return list(csv.DictReader(io.StringIO(out)))


class Flags(Case):
    def test_near_misses(self):
        for words, hint in [(['analyse', 'x'], '"analyze"'), (['reprot'], '"report"'), (['report', '.', '--ouput', 'x'], '--output'),
                            (['analyze', 'pipeline-sumary', '.'], 'pipeline-summary'), (['simulate', '1f1', '-o', 'x'], '1f1b'),
                            (['export', '.', '-o', 'a', '--to', 'perfeto'], 'perfetto'), (['info', '.', '--reader', 'padle-log'], 'paddle-log'),
                            (['help', 'reader'], 'readers')]:
            done = run(*words, check=2, cwd=self.dir)
            self.assertIn(hint, done.err, words)
            self.assertEqual(done.out, '')

    def test_underscores_serve_for_dashes(self):
        run('simulate', '1f1b', '--micro_batches=4', '--clock_skew', '1', '-o', self.dir / 'logs', check=0)
        run('paddle_timeline', '--log_dir', self.dir / 'logs', check=0)
        run('analyze', 'pipeline_summary', self.dir / 'logs', check=0)

    def test_usage_errors(self):
        self.two_ranks()
        for words in [['report'], ['info', self.dir, '--format'], ['info', self.dir, '--format', 'xml'], ['info', self.dir, '--lang', 'fr'],
                      ['info', self.dir, '--steps', '5:3'], ['info', self.dir, '--ranks', 'x'], ['info', self.dir, '--compat', 'hta'],
                      ['paddle-timeline', '--log_dir', self.dir, '--compat'], ['analyze', 'pipeline-summary', self.dir, '--table', 'nope'],
                      ['export', self.dir], ['export', self.dir, '-o', self.dir / 'x.nothing'], ['export', self.dir, '-o', self.dir / 'no/x.svg'],
                      ['export', self.dir, '-o', self.dir / 'x.svg', '--range', '5'], ['simulate', '1f1b'], ['simulate', 'vpp', '-o', self.dir / 's', '--chunks', '65'],
                      ['simulate', '1f1b', '-o', self.dir / 's', '--chunks', '2'], ['simulate', '1f1b', '-o', self.dir / 's', '--stages', '0'],
                      ['simulate', '1f1b', '-o', self.dir / 's', '--cost', '1'], ['simulate', '1f1b', '-o', self.dir / 's', '--fault', 'slow-stage:9,2'],
                      ['simulate', 'zb-h1-paddle', '-o', self.dir / 's', '--micro-batches', '2'], ['help', 'nothing-like-it'], ['completion', 'tcsh'],
                      ['report', self.dir, '--fail-on', 'nonsense'], ['man', 'x'], []]:
            done = run(*words, check=2)
            self.assertTrue(done.err.startswith('stageline'), words)

    def test_help_man_and_completions_name_everything(self):
        commands = re.findall(r'^  (\S+) ', run('help', check=0).out, re.M)
        self.assertIn('paddle-timeline', commands)
        man, bash = run('man', check=0).out, run('completion', 'bash', check=0).out
        zsh, fish = run('completion', 'zsh', check=0).out, run('completion', 'fish', check=0).out
        for command in commands:
            text = run(command, '--help', check=0).out
            self.assertIn('--lang', text)
            for flag in set(re.findall(r'--([a-z-]+)', text)) - {'color', 'lang'}:
                if flag not in ('format',):
                    self.assertIn(flag, bash + fish, (command, flag))
            self.assertIn(command.replace('-', '\\-'), man)
            self.assertTrue(command in bash and command in zsh and command in fish)
        for line in run('help', check=0).out.splitlines():
            self.assertLessEqual(len(line), 80, line)
        self.assertEqual(subprocess.run(['bash', '-n'], input=bash.encode()).returncode, 0)

    def test_commands_in_the_documents_exist(self):
        helps, checked = {}, 0
        for page in [*SOURCE.glob('*.md'), *SOURCE.glob('docs/**/*.md')]:
            for line in page.read_text().splitlines():
                found = re.match(r'\s*(?:build/release/)?stageline ([a-z-]+)(.*)', line)
                if not found or not re.search(r'[/.A-Z-]', found[2]):
                    continue  # a sentence about stageline, not a command
                name = found[1]
                if name not in helps:
                    helps[name] = run(name, '--help', check=0).out
                own = found[2].split('  ')[0].split(' -- ')[0]  # behind it stands another program
                for flag in re.findall(r'--([a-z_-]+)', own):
                    self.assertIn('--' + flag.replace('_', '-'), helps[name], (page.name, line))
                checked += 1
        self.assertGreater(checked, 15)

    def test_lists(self):
        for topic, name in [('readers', 'paddle-log'), ('analyses', 'pipeline-summary'), ('exporters', 'perfetto'), ('schedules', 'zb-h1-paddle')]:
            self.assertIn(name, run('help', topic, check=0).out)

    def test_forced_reader(self):
        self.write('rank0.txt', one_step())
        self.assertEqual(info('--reader', 'paddle_log', self.dir / 'rank0.txt')['cells'], 7)


class Manners(Case):
    def test_closed_pipe_is_quiet(self):
        run('simulate', '1f1b', '--steps', '400', '-o', self.dir / 'logs', check=0)
        shell = subprocess.run(['bash', '-c', '"$0" export "$1" --to csv -o - | head -1; exit ${PIPESTATUS[0]}', BIN, self.dir / 'logs'],
                               capture_output=True, text=True)
        self.assertEqual((shell.returncode, shell.stderr), (0, ''))
        self.assertTrue(shell.stdout.startswith('step,'))

    def test_interrupt_leaves_nothing(self):
        # A fifo as input keeps the program waiting with its output file open.
        fifo = self.dir / 'workerlog.0'
        os.mkfifo(fifo)
        out = self.dir / 'out.csv'
        process = subprocess.Popen([BIN, 'analyze', 'pipeline-summary', str(fifo), '--reader', 'paddle-log', '-o', str(out)],
                                   stderr=subprocess.PIPE)
        with open(fifo, 'wb') as f:
            f.write(one_step().encode())
            f.flush()
            deadline = time.time() + 120
            while not list(self.dir.glob('out.csv.partial.*')) and time.time() < deadline:
                time.sleep(0.01)
            self.assertTrue(list(self.dir.glob('out.csv.partial.*')))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=120), 130)
        process.stderr.close()
        self.assertEqual([p.name for p in self.dir.iterdir()], ['workerlog.0'])

    def test_failed_run_keeps_the_old_file(self):
        out = self.write('report.html', 'old')
        run('report', self.dir / 'nowhere', '-o', out, '--force', check=2)
        self.assertEqual(out.read_text(), 'old')
        self.assertEqual([p.name for p in self.dir.iterdir()], ['report.html'])

    def test_the_input_is_never_the_output(self):
        log = self.write('workerlog.0', one_step())
        self.assertIn('is the input', run('export', log, '--to', 'csv', '-o', log, check=2).err)
        self.assertEqual(log.read_text(), one_step())

    def test_links_are_followed(self):
        self.write('logs/workerlog.0', one_step())
        target = self.write('real.csv', 'old')
        os.symlink(target, self.dir / 'link.csv')
        run('export', self.dir / 'logs', '-o', self.dir / 'link.csv', '--force', check=0)
        self.assertTrue((self.dir / 'link.csv').is_symlink())
        self.assertIn('forward', target.read_text())

    def test_closed_descriptors_do_not_reach_the_page(self):
        self.write('logs/workerlog.0', one_step())
        subprocess.run(['bash', '-c', 'exec "$0" report "$1/logs" -o "$1/r.html" <&- >&- 2>&-', BIN, self.dir])
        self.assertTrue((self.dir / 'r.html').read_text().rstrip().endswith('>'))

    def test_too_little_memory_is_an_error(self):
        if sanitized():
            self.skipTest('sanitizers reserve more address space than the limit')
        run('simulate', '1f1b', '--steps', 9000, '-o', self.dir / 'logs', check=0)
        shell = subprocess.run(['bash', '-c', 'ulimit -v 90000; "$0" export "$1/logs" -o "$1/x.json" --threads 1', BIN, self.dir],
                               capture_output=True, text=True)
        self.assertEqual((shell.returncode, 'not enough memory' in shell.stderr), (2, True), shell.stderr)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir() if 'partial' in p.name), [])

    def test_devices_of_a_format_without_them(self):
        run('simulate', '1f1b', '--format', 'cells', '-o', self.dir / 'cells', check=0)
        self.assertIn('filter.no_devices', run('info', '--devices', '0', self.dir / 'cells', check=0).out)

    def test_simulate_spares_the_logs_of_others(self):
        log = self.write('mine/workerlog.0', one_step())
        self.assertIn('no simulation', run('simulate', '1f1b', '-o', self.dir / 'mine', check=2).err)
        self.assertEqual(log.read_text(), one_step())
        run('simulate', '1f1b', '--stages', 4, '-o', self.dir / 'own', check=0)
        run('simulate', '1f1b', '--stages', 2, '--force', '-o', self.dir / 'own', check=0)
        self.assertEqual(info(self.dir / 'own')['ranks'], 2)
        # A table of that name does not count as a mark. Neither does a mark for a log that was added or changed since.
        truth = self.write('mine/truth.csv', 'what,measured\n')
        self.assertIn('no simulation', run('simulate', '1f1b', '-o', self.dir / 'mine', check=2).err)
        alone = self.write('table/truth.csv', 'what,measured\n')
        self.assertIn('no simulation', run('simulate', '1f1b', '-o', self.dir / 'table', check=2).err)
        self.assertEqual((log.read_text(), truth.read_text(), alone.read_text()), (one_step(), 'what,measured\n', 'what,measured\n'))
        for name in ('own/workerlog.7', 'own/workerlog.1', 'own/machine3/workerlog.0', 'own/truth.csv'):
            ours = (self.dir / name).read_bytes() if (self.dir / name).exists() else None
            theirs = self.write(name, one_step())
            self.assertIn('no simulation', run('simulate', '1f1b', '-o', self.dir / 'own', check=2).err, name)
            self.assertEqual(theirs.read_text(), one_step())
            theirs.unlink() if ours is None else theirs.write_bytes(ours)
        (self.dir / 'own/workerlog.1').unlink()
        (self.dir / 'own/workerlog.1').symlink_to(log)
        self.assertIn('no simulation', run('simulate', '1f1b', '-o', self.dir / 'own', check=2).err)

    def test_full_disk(self):
        self.two_ranks()
        self.assertIn('No space', run('export', self.dir, '--to', 'csv', '-o', '/dev/full', check=2).err)

    def test_stdout_holds_data_only(self):
        self.write('workerlog.0', 'Profiler Info: Job (\n' + one_step())
        done = run('analyze', 'pipeline-summary', self.dir, '--format', 'json', check=0)
        json.loads(done.out)
        self.assertIn('workerlog.0:1', done.err)
        self.assertEqual(run('analyze', 'pipeline-summary', self.dir, '--format', 'json', '--quiet', check=0).err, '')

    def test_fail_on(self):
        run('simulate', '1f1b', '--fault', 'slow-stage:2,1.5', '-o', self.dir / 'logs', check=0)
        out = self.dir / 'r.html'
        run('report', self.dir / 'logs', '-o', out, '--fail-on', 'stage.slow', check=1)
        run('report', self.dir / 'logs', '-o', out, '--fail-on', 'rank.slow,step.outlier', check=0)

    def test_report_of_a_profiler_trace(self):
        trace = pathlib.Path(__file__).resolve().parents[1] / 'golden/readers/kineto/input'
        out = self.dir / 'r.html'
        done = run('report', trace, '-o', out, '--fail-on', 'input.loading', '--lang', 'en', check=1)
        self.assertIn('do not compute for', done.out)
        # A trace without graphs and shapes of inputs is read whole.
        for command in (['report', '-o', out], ['export', '--to', 'json', '-o', self.dir / 'r.json']):
            self.assertNotIn('is skipped', run(*command, trace.parents[1] / 'kineto-amd/input', check=0).err)
        slices = json.loads(run('info', trace, '--json').out)['slices']
        self.assertIn(f'2 ranks, {slices} slices', done.out)
        self.assertIn('没有在计算', run('report', trace, '-o', out, '--fail-on', 'rank.slow', '--lang', 'zh', check=0).out)
        self.assertIn('Steps wait for input data', done.out)
        for quiet in ('device.idle', 'comm.waiting', 'tensor_cores.unused', 'memory.full', 'data_parallel.one_process'):
            run('report', trace, '-o', out, '--fail-on', quiet, check=0)
        self.assertEqual(page_answer(out, 'run')['slices'], slices)
        self.assertIn('kernels', [table['name'] for table in page_answer(out, 'answer gpu-kernel-breakdown')['tables']])

    def test_a_share_fails_a_profile_too(self):
        trace = pathlib.Path(__file__).resolve().parents[1] / 'golden/readers/kineto/input'
        reported = json.loads(run('explain', trace, '--format', 'json', '-q', check=0).out)
        largest = max(f['lost_share'] for f in reported['findings'])
        self.assertGreater(largest, 0.1)
        self.assertAlmostEqual(reported['lost_share'], largest, places=3)
        run('explain', trace, '--fail-on', '10%', '-q', check=1)
        run('explain', trace, '--fail-on', f'{100 * largest + 1:.0f}%', '-q', check=0)

    def test_a_report_above_its_slices_keeps_the_pipeline(self):
        trace = pathlib.Path(__file__).resolve().parents[1] / 'golden/readers/kineto-pipeline/input'
        out = self.dir / 'r.html'
        run('report', trace, '-o', out, check=0)
        whole = page_answer(out, 'run')
        run('report', trace, '-o', out, '--slices', 100, check=0)
        cells = page_answer(out, 'run')
        self.assertEqual({lane['type'] for lane in cells['lanes']}, {'cells'})
        self.assertEqual((whole['file']['left_out'], cells['file']['left_out']),
                         (0, sum(lane['slices'] for lane in whole['lanes'] if lane['type'] in ('stream', 'thread'))))
        self.assertIn('stageline view', cells['file']['command'])
        run('report', trace, '-o', out, '--slices', 0, check=0)
        self.assertEqual(page_answer(out, 'run')['lanes'], [])
        self.assertIn('--slices', run('report', trace, '-o', out, '--slices', -1, check=2).err)

    def test_reports_are_the_same_bytes_for_any_number_of_threads(self):
        run('simulate', '1f1b', '--stages', 4, '--steps', 3, '--jitter', 0.1, '-o', self.dir / 'logs', check=0)
        for of in (self.dir / 'logs', pathlib.Path(__file__).resolve().parents[1] / 'golden/readers/kineto/input'):
            pages = [run('report', of, '-o', '-', '--threads', n, check=0).stdout for n in (1, 4, 4)]
            self.assertEqual(pages[0], pages[1])
            self.assertEqual(pages[1], pages[2])

    def test_a_report_with_a_second_run_compares_as_diff_does(self):
        sizes = ['1f1b', '--stages', 4, '--micro-batches', 8, '--steps', 3]
        run('simulate', *sizes, '-o', self.dir / 'a', check=0)
        run('simulate', *sizes, '--fault', 'slow-stage:2,1.5', '-o', self.dir / 'b', check=0)
        out = self.dir / 'r.html'
        run('report', self.dir / 'a', '--compare', self.dir / 'b', '-o', out, check=0)
        self.assertEqual(page_answer(out, 'compare'), json.loads(run('diff', self.dir / 'a', self.dir / 'b', '--json', check=0).out))
        self.assertEqual(page_answer(out, 'answers')['other'], {'title': 'b', 'paths': [str(self.dir / 'b')]})
        self.assertEqual(page_answer(out, 'pipeline other')['report']['cells']['count'], info(self.dir / 'b')['cells'])
        self.assertTrue(page_answer(out, 'run')['other'])
        self.assertIn(f'--compare {self.dir}/b', page_answer(out, 'run')['file']['command'])
        golden = pathlib.Path(__file__).resolve().parents[1] / 'golden/readers'
        profiles = golden / 'kineto/input', golden / 'kineto-us/input'
        run('report', profiles[0], '--compare', profiles[1], '-o', out, check=0)
        self.assertEqual(page_answer(out, 'compare'), json.loads(run('diff', *profiles, '--json', check=0).out))
        self.assertTrue(any(table['row_count'] for table in page_answer(out, 'answer trace-diff')['tables']))
        self.assertIsNone(page_answer(out, 'pipeline other'))
        run('report', self.dir / 'a', '-o', out, check=0)
        self.assertEqual((page_answer(out, 'run').get('other'), page_answer(out, 'compare')), (None, None))
        missing = run('report', self.dir / 'a', '--compare', self.dir / 'none', '-o', out, check=2)
        self.assertIn('none', missing.err)

    def test_no_name_is_markup_in_a_report(self):
        bad = '</script><img src=x onerror=alert(1)><!--<script>'
        events = [{'ph': 'X', 'cat': 'cpu_op', 'name': bad, 'pid': 1, 'tid': 1, 'ts': i * 10, 'dur': 5, 'args': {bad: bad}} for i in range(5)]
        events.append({'ph': 'M', 'name': 'thread_name', 'pid': 1, 'tid': 1, 'args': {'name': bad}})
        trace = self.write(f'a"><b>.json', json.dumps({'schemaVersion': 1, 'traceEvents': events}))
        out = self.dir / 'r.html'
        run('report', trace, '-o', out, '--title', bad, check=0)
        text = out.read_text()
        self.assertNotIn(bad, text)
        page = re.sub(r'<script>.*?</script>|<style>.*?</style>', '', text, flags=re.S)
        self.assertEqual(page.count('<img'), 1)  # the picture for readers without scripts
        self.assertRegex(page, r'<noscript><img width="\d+" height="\d+" alt="[^"<>]*" src="data:image/png;base64,[\w+/=]*">')
        self.assertNotIn('"><b>', text)
        self.assertEqual(page_answer(out, 'run')['title'], bad)

    def test_languages(self):
        run('simulate', '1f1b', '--fault', 'slow-stage:2,1.5', '-o', self.dir / 'logs', check=0)
        english = run('report', self.dir / 'logs', '-o', self.dir / 'r.html', '--lang', 'en', check=0).out
        chinese = run('report', self.dir / 'logs', '-o', self.dir / 'r.html', env={'LC_ALL': 'zh_CN.UTF-8'}, check=0).out
        self.assertIn('Stage 2 is slow (1.50', english)
        self.assertIn('第 2 级的用时是其他级的', chinese)
        for line in english.splitlines():
            self.assertLessEqual(len(line), 80)


class Simulate(Case):
    GOLDENS = [('fthenb', 'FThenB_pp4_m8', 1), ('1f1b', '1F1B_pp4_m8', 1), ('eager-1f1b', 'Eager1F1B_pp4_m8', 1),
               ('vpp', 'VPP_pp4_m8_v2', 2), ('zb-h1-paddle', 'ZBH1_paddle_pp4_m8', 1)]
    # At F = I = W = 1 ms: span and span bubble of the whole pipeline, in ms.
    SPANS = {'fthenb': (33, 9), '1f1b': (33, 9), 'eager-1f1b': (33, 9), 'vpp': (57, 9), 'zb-h1-paddle': (29, 5)}

    def logs(self, schedule, *flags):
        folder = self.dir / schedule
        run('simulate', schedule, *flags, '--force', '-o', folder, check=0)
        return folder

    @needs_shared
    def test_order_equals_the_tables(self):
        for schedule, golden, chunks in self.GOLDENS:
            folder = self.logs(schedule, '--stages', 4, '--micro-batches', 8, '--chunks', chunks, '--steps', 2)
            wanted = {}
            with open(SHARED / 'schedules' / f'{golden}.csv') as f:
                for row in csv.DictReader(f):
                    wanted.setdefault(int(row['stage']), []).append((row['kind'], int(row['microbatch']), int(row['chunk'])))
            for stage, order in wanted.items():
                self.assertEqual(order_of(folder / f'workerlog.{stage}'), order * 2, (schedule, stage))

    @needs_shared
    def test_vpp_orders_of_other_sizes(self):
        for p, m, v in [(4, 8, 2), (4, 12, 3)]:
            folder = self.logs('vpp', '--stages', p, '--micro-batches', m, '--chunks', v, '--steps', 1)
            with open(SHARED / 'schedules' / 'reference' / f'Megatron_pp{p}_m{m}_v{v}_g4.csv') as f:
                rows = list(csv.DictReader(f))
            for stage in range(p):
                wanted = [(r['kind'], int(r['microbatch']), int(r['chunk'])) for r in rows if int(r['stage']) == stage]
                self.assertEqual(order_of(folder / f'workerlog.{stage}'), wanted, (p, m, v, stage))

    def test_spans_and_bubbles_at_unit_cost(self):
        for schedule, (span, bubble) in self.SPANS.items():
            chunks = 2 if schedule == 'vpp' else 1
            rows = table(self.logs(schedule, '--stages', 4, '--micro-batches', 8, '--chunks', chunks, '--cost', '1,1,1'), 'ranks')
            for row in rows:
                self.assertEqual((row['span_ns'], row['pipeline_span_ns'], row['span_bubble_ns']),
                                 (str(span * 10**6), str(span * 10**6), str(bubble * 10**6)), (schedule, row))

    def test_every_size_can_run(self):
        for schedule in self.SPANS:
            for p, m, v in [(1, 1, 1), (1, 5, 1), (2, 2, 1), (3, 7, 1), (8, 8, 1), (2, 5, 3), (4, 4, 2), (3, 10, 2)]:
                if v > 1 and schedule != 'vpp':
                    continue
                folder = self.logs(schedule, '--stages', p, '--micro-batches', m, '--chunks', v, '--steps', 1)
                wanted = 3 if schedule.startswith('zb') else 2
                count = sum(len(order_of(log)) for log in folder.glob('workerlog.*'))
                self.assertTrue(2 * p * m * v <= count <= wanted * p * m * v, (schedule, p, m, v))
                for log in folder.iterdir():
                    log.unlink()

    def test_deterministic_by_seed(self):
        flags = ['--jitter', 0.1, '--clock-skew', 5, '--machines', 2, '--dp', 2, '--optimizer', 4, '--seed']
        read = lambda folder: {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob('*') if p.is_file()}
        a = read(self.logs('1f1b', *flags, 3))
        run('simulate', '1f1b', *flags, 3, '-o', self.dir / 'b', check=0)
        run('simulate', '1f1b', *flags, 4, '-o', self.dir / 'c', check=0)
        self.assertEqual(a, read(self.dir / 'b'))
        self.assertNotEqual(a, read(self.dir / 'c'))
        self.assertIn('machine1/workerlog.3', a)

    def test_skew_moves_the_logs_and_not_the_truth(self):
        skewed, plain = self.dir / 'skewed', self.dir / 'plain'
        run('simulate', '1f1b', '--machines', 2, '--clock-skew', 40, '-o', skewed, check=0)
        run('simulate', '1f1b', '--machines', 2, '-o', plain, check=0)
        self.assertEqual((skewed / 'truth.csv').read_bytes(), (plain / 'truth.csv').read_bytes())
        self.assertNotEqual((skewed / 'machine0/workerlog.0').read_bytes(), (plain / 'machine0/workerlog.0').read_bytes())
        self.assertEqual(order_of(skewed / 'machine0/workerlog.0'), order_of(plain / 'machine0/workerlog.0'))

    def test_latency_and_faults_show(self):
        rows = table(self.logs('1f1b', '--latency', 2, '--stages', 2, '--micro-batches', 2, '--cost', '10,20'), 'ranks')
        # F0, hop, F0 on stage 1, B0, hop, B0; then F1/B1 behind it: worked out by hand.
        self.assertEqual(rows[0]['span_ns'], str((10 + 2 + 10 + 20 + 10 + 20 + 2 + 20) * 10**6))
        stages = table(self.logs('fthenb', '--fault', 'slow-stage:1,1.5', '--cost', '10,20'), 'stages')
        ratio = {(r['stage'], r['kind']): float(r['ratio_to_median']) for r in stages}
        self.assertAlmostEqual(ratio['1', 'F'], 1.5)
        self.assertAlmostEqual(ratio['1', 'B'], 1.5)
        self.assertAlmostEqual(ratio['0', 'all'], 1.0)


class Outputs(Case):
    def test_formats(self):
        self.two_ranks()
        for name in ['a.svg', 'a.png', 'a.pdf', 'a.csv', 'a.json', 'a.pftrace', 'a.sqlite', 'a.html', 'a.json.gz']:
            run('export', self.dir / 'workerlog.0', self.dir / 'workerlog.1', '-o', self.dir / name, check=0)
            self.assertGreater((self.dir / name).stat().st_size, 500, name)
        starts = {'a.png': b'\x89PNG', 'a.pdf': b'%PDF', 'a.pftrace': b'\x0a', 'a.sqlite': b'SQLite', 'a.json.gz': b'\x1f\x8b'}
        for name, start in starts.items():
            self.assertTrue((self.dir / name).read_bytes().startswith(start), name)
        with sqlite3.connect(self.dir / 'a.sqlite') as db:
            self.assertEqual(db.execute('select count(*) from cells').fetchone()[0], 28)
            self.assertEqual(db.execute('select count(*) from ranks').fetchone()[0], 4)
        document = json.loads(run('export', self.dir / 'workerlog.0', '--to', 'json', '-o', '-', check=0).out)
        self.assertEqual({t['name'] for t in document['tables']} >= {'ranks', 'stages', 'steps', 'cells', 'diagnostics'}, True)

    def test_filters(self):
        self.two_ranks(steps=4)
        count = lambda *flags: len(run('export', self.dir, '--to', 'csv', '-o', '-', *flags, check=0).out.splitlines()) - 1
        self.assertEqual(count(), 56)
        self.assertEqual(count('--steps', '1:2'), 28)
        self.assertEqual(count('--steps', '3:'), 14)
        self.assertEqual(count('--ranks', '1'), 28)
        self.assertEqual(count('--range', '0:150ms'), 14)
        self.assertEqual(count('--range', '200:'), 42)
        self.assertIn('none of the steps named by --steps', run('export', self.dir, '--to', 'csv', '-o', '-', '--steps', '99', check=2).err)

    def test_filtered_ranks_keep_their_arrows(self):
        run('simulate', 'vpp', '--stages', 4, '--micro-batches', 8, '--steps', 1, '-o', self.dir / 'logs', check=0)
        run('export', self.dir / 'logs', '--ranks', '0-1', '-o', self.dir / 'x.json', check=0)
        arrows = [e for e in json.loads((self.dir / 'x.json').read_text())['traceEvents'] if e['ph'] == 's']
        # There are arrows between ranks 0 and 1 only: 8 micro-batches x 2 chunks down and as many up. Chunk 0 of rank 1
        # does not lead to chunk 1 of rank 0, because ranks 2 and 3 are between.
        self.assertEqual(len(arrows), 32)

    def test_same_bytes_for_any_number_of_threads(self):
        run('simulate', '1f1b', '--stages', 8, '--steps', 5, '--jitter', 0.1, '-o', self.dir / 'logs', check=0)
        for kind in ['csv', 'json', 'chrome', 'perfetto', 'html']:
            outputs = [run('export', self.dir / 'logs', '--to', kind, '-o', '-', '--threads', n, check=0).stdout for n in (1, 4)]
            self.assertEqual(outputs[0], outputs[1], kind)

    def test_both_bubbles_by_hand(self):
        self.two_ranks(steps=1)
        rows = table(self.dir, 'ranks')
        # Rank 0 has F 0–30, B 70–130; rank 1 has F 10–40, B 50–110. Both have the optimizer at 150–155.
        got = [(r['rank'], *(int(r[c]) // 10**6 for c in ('span_ns', 'pipeline_span_ns', 'busy_ns', 'span_bubble_ns', 'inner_bubble_ns'))) for r in rows]
        self.assertEqual(got, [('0', 155, 130, 90, 40, 40), ('1', 155, 130, 90, 40, 10)])


class Shared(Case):
    """Real inputs: complete reading and the published step times."""

    @needs_shared
    def test_counts(self):
        ops = SHARED / 'pipeline_ops'
        for path, cells, steps, ranks in [(ops / 'bytedance/timeline-ST.json.gz', 6784, 32, 8), (ops / 'bytedance/trace-ST.csv.gz', 6784, 32, 8),
                                          (ops / 'bytedance/timeline-SE.json.gz', 112320, 45, 64), (ops / 'bytedance/trace-SE.csv.gz', 107328, 43, 64),
                                          (ops / 'primus_pp8', 5120, 20, 8), (ops / 'megatronapp/dpp-aggregated.json.gz', 5120, 20, 4)]:
            found = info(path)
            self.assertEqual((found['cells'], found['steps'], found['ranks']), (cells, steps, ranks), path.name)

    @needs_shared
    def test_step_spans(self):
        # The published spans are by the clocks as recorded; aligning moves them by some microseconds.
        for job in ('ST', 'SE'):
            wanted = json.loads((SHARED / f'pipeline_ops/bytedance/result-{job}.json').read_text())['step_t_base']
            rows = {r['step']: int(r['span_ns']) for r in table(SHARED / f'pipeline_ops/bytedance/trace-{job}.csv.gz', 'steps', '--align', 'never')}
            self.assertEqual(set(rows), set(wanted))
            for step, seconds in wanted.items():
                self.assertLess(abs(rows[step] / 1e9 - seconds) / seconds, 1e-6, (job, step))

    @needs_shared
    def test_report_shows_the_heavy_last_stage(self):
        done = run('report', SHARED / 'pipeline_ops/bytedance/timeline-ST.json.gz', '-o', self.dir / 'r.html', check=0)
        self.assertIn('Stage 3', done.out)


if __name__ == '__main__':
    unittest.main()
