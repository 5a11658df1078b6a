"""Digests: the same bytes as the source, nothing made twice, damage and mixtures found, what breaks at many ranks."""
import csv
import io
import json
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'server'))
import digest_file
from serving import Server
from support import BIN, SOURCE, Case, flaws, info, job, one_step, run, sanitized

OPTIONS = ['--stages', 4, '--dp', 2, '--machines', 2, '--micro-batches', 8, '--steps', 5, '--jitter', 0.05, '--latency', 0.2, '--seed', 3]
# Everything that is asked of cells, messages, steps and sums, and every kind of output.
QUESTIONS = [
    ['info'], ['info', '--json'], ['explain'], ['explain', '--json'], ['explain', '--lang', 'zh'], ['align', '--json'], ['what-if'], ['what-if', '--json'],
    *(['analyze', name] for name in ('pipeline-summary', 'schedule', 'theory', 'slowdown', 'stragglers', 'pipeline-critical-path', 'waterfall', 'links')),
    ['analyze', 'waterfall', '--format', 'csv', '--steps', '2:3'], ['analyze', 'links', '--format', 'json', '--ranks', '0-3'],
    ['report', '-o', '-', '--title', 'run'],
    *(['export', '-o', '-', '--title', 'run', '--to', kind] for kind in ('csv', 'json', 'chrome', 'perfetto', 'svg', 'html')),
    ['sql', 'SELECT kind, count(*), sum(dur_ns) FROM cells GROUP BY kind'],
]


def ask(question, folder, cwd):
    command, *rest = question
    operands = [rest.pop(0), folder] if command in ('analyze',) else [folder]
    if command == 'sql':
        operands, rest = [folder, rest[0]], []
    done = run(command, *operands, *rest, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


class DigestTest(Case):
    def simulate(self, name='one/run', *options):
        run('simulate', '1f1b', *(options or OPTIONS), '-q', '--force', '-o', self.dir / name, check=0)
        (self.dir / name / 'truth.csv').unlink()
        return self.dir / name

    def digest(self, logs, folder='two/run', *options, check=0):
        # Named as it is asked later: messages name files by the path that was given.
        return json.loads(run('digest', logs.name, '-o', self.dir / folder, '--json', '-q', *options, check=check, cwd=logs.parent).out)

    def files(self, folder='two/run'):
        return sorted((self.dir / folder).glob('*.sldigest'))

    def same(self, questions=QUESTIONS):
        for question in questions:
            with self.subTest(' '.join(map(str, question))):
                source, digests = (ask(question, 'run', self.dir / place) for place in ('one', 'two'))
                self.assertEqual(source, digests)

    def test_what_could_not_be_read_is_named(self):
        for files, spoiled in (('paddle-log', 'workerlog.1'), ('primus', 'pp_rank_1.json'), ('paddle-dynamic', 'profile_record_tmp_file_for_rank_1'), ('primus', 'config.json')):
            for data in (b'', None):
                with self.subTest(f'{spoiled}, {"emptied" if data == b"" else "zeroed"}'):
                    folder = self.dir / 'spoiled'
                    shutil.rmtree(folder, ignore_errors=True)
                    shutil.rmtree(self.dir / 'made', ignore_errors=True)
                    shutil.copytree(SOURCE / 'tests/golden/readers' / files / 'input', folder)
                    path = next(folder.rglob(spoiled))
                    path.write_bytes(bytes(path.stat().st_size) if data is None else data)
                    self.assertIn(spoiled, run('digest', folder, '-o', self.dir / 'made').err)

    def test_every_question_is_answered_with_the_same_bytes(self):
        made = self.digest(self.simulate('one/run', *OPTIONS, '--fault', 'slow-stage:2,1.4', '--clock-skew', 5))
        self.assertEqual((made['made'], made['kept'], made['failed']), (8, 0, 0))
        self.same()

    def test_shares_in_any_order_make_the_same_digests(self):
        logs = self.simulate()
        self.digest(logs)
        for share in ('6:', '0:2', '3:5'):
            self.digest(logs, 'three', '--ranks', share)
        self.assertEqual([p.read_bytes() for p in self.files()], [p.read_bytes() for p in self.files('three')])
        self.assertEqual([p.name for p in self.files()], [p.name for p in self.files('three')])
        self.digest(logs, 'one_thread', '--threads', '1')
        self.assertEqual([p.read_bytes() for p in self.files()], [p.read_bytes() for p in self.files('one_thread')])
        self.assertIn('is not a range of ranks', run('digest', logs, '-o', self.dir / 'x', '--ranks', 'a', check=2).err)
        self.assertIn('none of the ranks', run('digest', logs, '-o', self.dir / 'x', '--ranks', '99:', check=2).err)

    def test_a_cell_takes_no_more_than_twelve_bytes(self):
        made = self.digest(self.simulate('one/run', '--stages', 4, '--micro-batches', 32, '--steps', 26, '--jitter', 0.05))
        self.assertLessEqual(made['bytes'] / made['cells'], 12)

    def test_what_is_there_is_not_made_again(self):
        logs = self.simulate()
        self.digest(logs)
        before = {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in self.files()}
        again = self.digest(logs)
        self.assertEqual((again['made'], again['kept']), (0, 8))
        self.assertEqual(before, {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in self.files()})

    def test_a_changed_rank_and_a_damaged_digest_are_made_again(self):
        logs = self.simulate()
        self.digest(logs)
        log = next(logs.rglob('workerlog.1'))
        log.write_text(log.read_text() + job('forward', 0, 9e6, 9e6 + 1))
        changed = self.digest(logs)
        self.assertEqual((changed['made'], changed['remade'], changed['kept']), (1, 1, 7))
        self.assertEqual(len(self.files()), 8, 'the older digest of the rank is gone')
        whole = self.files()[2].read_bytes()
        for damage in (whole[:len(whole) // 2], whole[:60] + b'?' + whole[61:], b'', whole + b'x', whole[:20] + b'\xff' * 8 + whole[28:]):
            self.files()[2].write_bytes(damage)
            report = flaws(info(self.dir / 'two/run'))
            self.assertEqual(report['digest.damaged']['count'], 1)
            again = self.digest(logs)
            self.assertEqual((again['made'], again['remade'], again['kept']), (1, 1, 7))
            self.assertEqual(self.files()[2].read_bytes(), whole)

    def test_a_killed_run_goes_on(self):
        logs = self.simulate('one/run', '--stages', 16, '--dp', 8, '--micro-batches', 32, '--steps', 4, '--jitter', 0.05)
        folder = self.dir / 'two/run'
        process = subprocess.Popen([BIN, 'digest', logs.name, '-o', str(folder), '--threads', '1', '-q'], stdout=subprocess.DEVNULL,
                                   cwd=logs.parent)
        while process.poll() is None and len(self.files()) < 5:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        there = len(self.files())
        made = self.digest(logs)
        self.assertEqual(made['made'] + made['kept'], 128)
        self.assertEqual(made['kept'], there)
        self.assertEqual([p for p in folder.iterdir() if p.suffix != '.sldigest'], [])
        self.same([['info', '--json'], ['explain']])

    def test_a_folder_holds_one_run(self):
        logs = self.simulate()
        self.digest(logs)
        other = self.simulate('other', '--stages', 2, '--micro-batches', 4, '--steps', 2)
        self.assertIn('holds digests of another source', run('digest', other, '-o', self.dir / 'two/run', check=2).err)
        self.assertIn('among the files they are made of', run('digest', logs, '-o', logs / 'digests', check=2).err)
        self.assertIn('digests already', run('digest', self.dir / 'two/run', '-o', self.dir / 'x', check=2).err)
        # Two jobs and a rank twice, by hand.
        self.digest(other, 'others')
        (self.dir / 'two/run/x.sldigest').write_bytes(self.files('others')[1].read_bytes())
        (self.dir / 'two/run/rank-00000.copy.sldigest').write_bytes(self.files()[0].read_bytes())
        report = info(self.dir / 'two/run')
        self.assertEqual((report['ranks'], flaws(report)['digest.other_source']['count'], flaws(report)['digest.rank_twice']['count']), (8, 1, 1))

    def test_missing_truncated_and_uneven_ranks_and_a_clock_off_by_an_hour(self):
        logs = self.simulate('one/run', '--stages', 4, '--dp', 16, '--machines', 4, '--micro-batches', 8, '--steps', 5, '--jitter', 0.05)
        found = sorted(logs.rglob('workerlog.*'))
        found[7].unlink()
        cut = found[20].read_bytes()
        found[20].write_bytes(cut[:len(cut) * 2 // 3])
        found[21].write_bytes(b'')
        found[22].write_text('no profiler line\n' * 3)
        found[40].write_text(found[40].read_text() + found[41].read_text())
        hour = 3_600_000
        shift = lambda line: line if 'job_start_time' not in line else ', '.join(
            f'{p.split(" = ")[0]} = {float(p.split(" = ")[1]) + hour:.6f}' if '_time' in p else p for p in line.split(', '))
        for log in found[48:64]:
            if log.parent.name == 'machine3' and log.exists():
                log.write_text(''.join(shift(line.rstrip('\n')) + '\n' for line in log.read_text().splitlines()))
        self.digest(logs)
        self.same([['info', '--json'], ['explain'], ['align'], ['analyze', 'stragglers'], ['analyze', 'waterfall']])
        (self.files()[3]).unlink()
        self.assertEqual(info(self.dir / 'two/run')['ranks'], 62)

    def test_what_breaks_at_ten_thousand_ranks(self):
        """At 1024 open files: 1 % of the logs missing, 3 % cut, one with two ranks' lines, one machine's clock an hour ahead; then another job and
        a rank twice among the digests."""
        some = self.simulate('some', '--stages', 8, '--dp', 25, '--machines', 25, '--micro-batches', 8, '--steps', 2, '--jitter', 0.05)
        text_of = lambda rank: (some / f'machine{rank // 8 % 25}/workerlog.{rank % 8}').read_text()
        later = lambda stamp: f'{float(stamp[0]) + 3_600_000:.6f}' if float(stamp[0]) else stamp[0]
        logs = self.dir / 'one/run'
        for rank in range(10_000):
            text = text_of(rank)
            if rank == 1001:
                text += text_of(1002)
            if 1600 <= rank < 1608:
                text = re.sub(r'(?<=_time = )[\d.]+', later, text)
            if rank % 100 in (10, 40, 70):
                text = text[:len(text) * 2 // 3]
            if rank % 100 != 99:
                self.write(f'one/run/machine{rank // 8}/workerlog.{rank % 8}', text)

        def at_few_files(*command):
            limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
            return subprocess.run([BIN, *map(str, command)], capture_output=True, preexec_fn=limit, timeout=600)

        done = at_few_files('info', '--json', logs)
        self.assertEqual(done.returncode, 0, done.stderr[-500:])
        report = json.loads(done.stdout)
        self.assertEqual((report['ranks'], report['stages'], flaws(report)['paddle.missing_rank']['count']), (9900, 8, 100))
        self.assertGreaterEqual(flaws(report)['source.ends_early']['count'], 290)
        self.assertEqual(json.loads(at_few_files('info', '--json', '--stages', '4', logs).stdout)['stages'], 4)
        done = at_few_files('explain', logs)
        self.assertEqual(done.returncode, 0, done.stderr[-500:])
        self.assertIn('9900 of the 10\u202f000 stages', done.stdout.decode())
        # A share that is more than the files that may be open.
        done = at_few_files('digest', logs, '-o', self.dir / 'two/run', '--ranks', '800:1999', '--json', '-q')
        self.assertEqual((done.returncode, json.loads(done.stdout)['made']), (0, 1188), done.stderr[-500:])
        self.digest(self.simulate('other', '--stages', 2, '--micro-batches', 2, '--steps', 1), 'others')
        (self.dir / 'two/run/x.sldigest').write_bytes(self.files('others')[0].read_bytes())
        (self.dir / 'two/run/y.sldigest').write_bytes(self.files()[5].read_bytes())
        done = at_few_files('info', '--json', self.dir / 'two/run')
        report = json.loads(done.stdout)
        self.assertEqual((report['ranks'], flaws(report)['digest.other_source']['count'], flaws(report)['digest.rank_twice']['count']), (1188, 1, 1))

    def test_names_are_no_matter(self):
        self.digest(self.simulate())
        for i, path in enumerate(self.files()):
            path.rename(path.with_name(f'{9 - i}.sldigest'))
        self.same([['info', '--json'], ['explain'], ['analyze', 'waterfall']])

    def test_a_rank_that_cannot_be_read_is_named_and_the_others_are_made(self):
        logs = self.dir / 'one/run'
        for rank in range(3):
            self.write(f'one/run/workerlog.{rank}', one_step(rank, 3))
        self.write('one/run/workerlog.1.gz', b'')
        (logs / 'workerlog.1').unlink()
        self.write('one/run/workerlog.1.gz', b'\x1f\x8b\x08\x00 this is no deflate stream at all, whatever its name says')
        done = run('digest', logs, '-o', self.dir / 'two/run', check=2)
        self.assertIn('workerlog.1.gz', done.err)
        self.assertEqual(len(self.files()), 2)

    def test_sources_of_other_formats_are_split(self):
        golden = pathlib.Path(__file__).resolve().parents[1] / 'golden/readers'
        for name in ('op-table', 'op-json-straggler', 'primus', 'paddle-dynamic', 'recording'):
            with self.subTest(name):
                made = self.digest(golden / name / 'input', f'{name}/run')
                self.assertGreater(made['made'], 0)
                again = self.digest(golden / name / 'input', f'{name}/run')
                self.assertEqual((again['made'], again['kept']), (0, made['made']))
                for question in (['analyze', 'waterfall'], ['analyze', 'pipeline-summary'], ['analyze', 'links']):
                    source = ask(question, 'input', golden / name)
                    self.assertEqual(source[:2], ask(question, 'run', self.dir / name)[:2], question)
        self.assertIn('none', run('digest', golden / 'kineto/input', '-o', self.dir / 'k', check=2).err)

    def test_rows_with_one_stamp_keep_the_order_of_their_file(self):
        """A backward of 0 ms stands before the forward that begins at the same millisecond."""
        (self.dir / 'source').mkdir()
        for rank in range(2):
            stamps = [(f'{kind}{k}', 10 * step + at, 10 * step + at + length) for step in range(2) for k in range(2) for kind, at, length in (('B', 4 * k + rank, 0), ('F', 4 * k + rank, 3))]
            rows = [{'name': name, 'cat': 'pipeline timeline', 'ph': phase, 'pid': 0, 'tid': rank + 1, 'ts': 1_795_807_201_000 + at, 'cname': 'rail_idle'}
                    for name, start, end in stamps for phase, at in (('B', start), ('E', end))]
            (self.dir / f'source/profile_record_tmp_file_for_rank_{rank}').write_text('\n'.join(json.dumps(row) for row in rows))
        self.digest(self.dir / 'source', 'digests')
        cells = [run('export', self.dir / name, '--to', 'csv', '-o', '-', '-q', check=0).out for name in ('source', 'digests')]
        self.assertEqual(*cells)

    @unittest.skipUnless(shutil.which('zstd'), 'needs zstd')
    def test_the_format_is_as_its_page_says(self):
        """Read without the program, the columns are what `export --to csv` says of the same rank."""
        logs = self.simulate('one/run', '--stages', 2, '--micro-batches', 3, '--steps', 2, '--jitter', 0.05)
        self.digest(logs)
        head, columns = digest_file.read(self.files()[1].read_bytes())
        self.assertEqual((head['format'], head['reader'], head['rank'], head['cells']), ('stageline-digest', 'paddle-log', 1, len(columns['cells.kind'])))
        starts, cells = columns['slices.start_ns'], columns['cells.slice']
        found = sorted(starts[c] + more for c, more in zip(cells, columns['cells.start_after_slice_ns']))
        rows = list(csv.DictReader(io.StringIO(run('export', logs, '--to', 'csv', '-o', '-', '-q', check=0).out)))
        mine = sorted(int(r['start_ns']) for r in rows if r['rank'] == '1')
        self.assertEqual([s - found[0] for s in found], [s - mine[0] for s in mine])
        again = self.write('again/a.sldigest', digest_file.write(head, columns))
        self.assertEqual(info(again)['cells'], len(found))

    @unittest.skipUnless(shutil.which('zstd'), 'needs zstd')
    def test_crafted_digests_are_refused(self):
        """Sums that fit do not make the columns true."""
        self.digest(self.simulate('one/run', '--stages', 2, '--micro-batches', 2, '--steps', 1))
        digest = self.files()[0].read_bytes()
        path = self.write('crafted/a.sldigest', digest[:8] + struct.pack('<I', 99) + digest[12:])
        self.assertIn('version 99', run('info', path, check=2).err)
        path.write_bytes(b'SLDIGEST')
        self.assertIn('was cut', run('info', path, check=2).err)
        path.write_bytes(digest)
        with open(path, 'ab') as file:
            file.truncate(1 << 34)  # sparse: none of it is read
        self.assertIn('bytes were added to it', run('info', path, check=2).err)
        head, columns = digest_file.read(digest)
        n = len(columns['cells.kind'])
        crafted = {'cells.kind': [99] * n, 'cells.slice': [10**6] * n, 'cells.step': [-7] * n, 'cells.chunk': [2**40] * n, 'cells.micro_batch': [-3] * n,
                   'cells.longer_than_slice_ns': [-2**62] * n, 'cells.start_after_slice_ns': [2**63 - 1] * n, 'slices.name': [10**6] * n,
                   'slices.dur_ns': [-1] * n, 'slices.start_ns': [2**63 - 1] * n, 'lanes.end': [2**50], 'lanes.begin': [5], 'names': ['x', 'x'],
                   'part.rank': [-5], 'part.device': [2**31 - 1], 'slices.category': [1] * n, 'slices.file_index': [1], 'trace.clock': [77],
                   'diagnostics.severity': [9], 'counters.count': [5], 'collectives.slice': [3], 'cells.step ': [0], 'part.source': [3],
                   'part.event_count': [-1], 'part.base_time_ns': [2**63 - 1], 'trace.device_family': [9], 'trace.format': ['kineto'], 'trace.format ': [0],
                   'slices.start_ns ': [0], 'steps.start_ns': [5], 'streams': [-1]}
        for name, values in crafted.items():
            with self.subTest(name):
                path.write_bytes(digest_file.write(head, {**columns, name: values}))
                done = run('info', path)
                # unknown columns
                self.assertEqual(done.returncode, 0 if name[-1] == ' ' or name == 'streams' else 2, done.err)
                self.assertNotIn('Assertion', done.err)
        # Rows that go together: parents in a circle, times that run backwards within a lane, flaws and counters of any kind, facts out of order.
        rows = len(columns['slices.start_ns'])
        facts = {'categories.text': ['cpu_op'], 'categories.kind': [1], **{f'slices.{name}': [0] * rows for name in (
            'parent', 'correlation', 'partner', 'args_offset_low', 'args_offset_high', 'stream', 'step', 'category', 'kernel_class')}}
        none = [2**32 - 1] * rows
        flaw = {'diagnostics.name': ['paddle.x'], 'diagnostics.message': ['a'], 'diagnostics.file': ['b'], 'diagnostics.severity': [0], 'diagnostics.count': [1],
                'diagnostics.line': [0], 'diagnostics.byte': [-1]}
        counter = {'counters.name': ['x'], 'counters.count': [1], 'counters.time_ns': [0], 'counters.value': [1.0]}
        link = {f'link_summaries.{name}': [value] for name, value in (('step', 0), ('op', 'a'), ('group', 'a'), ('type', 'a'), ('transport', 'a'), ('src_rank', 0),
                                                                     ('dst_rank', 0), ('bytes', 1.0), ('transit_ns', 1))}
        whole = {**facts, 'slices.parent': none, 'slices.partner': none, **flaw, **counter, **link}
        path.write_bytes(digest_file.write(head, {**columns, **whole}))
        self.assertEqual(info(path)['cells'], n)
        for name, values in {'slices.parent': [1, 0] + none[2:], 'slices.parent ': [0] * rows, 'slices.kernel_class': [9] * rows, 'categories.kind': [99],
                             'diagnostics.name': ['\x1b]0;x\x07'], 'diagnostics.count': [2**62], 'diagnostics.byte': [-9], 'diagnostics.message': [''],
                             'counters.value': [float('nan')], 'counters.time_ns': [2**62], 'link_summaries.bytes': [float('inf')],
                             'link_summaries.transit_ns': [-5], 'slices.start_ns': columns['slices.start_ns'][::-1]}.items():
            with self.subTest(name):
                path.write_bytes(digest_file.write(head, {**columns, **whole, name.strip(): values}))
                self.assertIn('contradict', run('info', path, check=2).err)
        # A head that says something else than its columns.
        for name, value in {'rank': 1, 'cells': n + 1, 'slices': 0, 'reader': 'op-table', 'ranks_of_source': -1}.items():
            with self.subTest(name):
                path.write_bytes(digest_file.write({**head, name: value}, columns))
                self.assertRegex(run('info', path, check=2).err, 'contradict|out of range')
        for count in (2**20, 2**62):
            path.write_bytes(digest_file.write(head, columns, {'cells.kind': count}))
            self.assertIn('contradict', run('info', path, check=2).err)
        # The numbers by which the reader orders ranks may have any value.
        for numbers in ([], [2**62, -1, 5, 2**62, -2**62], [-2**63] * 9):
            path.write_bytes(digest_file.write(head, {**columns, 'part.reader_numbers': numbers}))
            self.assertIn(run('explain', path).returncode, (0, 2))

    @unittest.skipUnless(shutil.which('zstd'), 'needs zstd')
    def test_a_digest_takes_no_more_memory_than_there_is(self):
        """Some kilobytes that unpack to gigabytes are refused before they do."""
        self.digest(self.simulate('one/run', '--stages', 2, '--micro-batches', 2, '--steps', 1))
        head, columns = digest_file.read(self.files()[0].read_bytes())
        size = 1 << 27  # empty texts, a byte each in the file and 32 in memory
        path = self.write('bomb/a.sldigest', digest_file.write(head, columns, raw={'metadata.key': ('t', size, bytes(size))}))
        self.assertLess(path.stat().st_size, 100_000)
        limit = None if sanitized() else lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        done = subprocess.run([BIN, 'info', path], capture_output=True, preexec_fn=limit, timeout=300)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b'contradict' if sanitized() else b'more memory than there is', done.stderr)

    @unittest.skipUnless(shutil.which('zstd'), 'needs zstd')
    def test_no_digest_opens_a_file_of_this_machine(self):
        self.digest(self.simulate('one/run', '--stages', 2, '--micro-batches', 2, '--steps', 1))
        head, columns = digest_file.read(self.files()[0].read_bytes())
        secret = self.write('secret.json', '{"password": 1}')
        facts = secret.stat()
        rows = len(columns['slices.start_ns'])
        named = {'files.path': [str(secret)], 'files.first_offset': [0], 'files.first_index': [0], 'files.size_bytes': [facts.st_size],
                 'files.modified_ns': [facts.st_mtime_ns], 'categories.text': ['cpu_op'], 'categories.kind': [1],
                 **{f'slices.{name}': [0 if 'p' not in name[:2] else 2**32 - 1] * rows for name in (
                     'parent', 'correlation', 'partner', 'args_offset_low', 'args_offset_high', 'stream', 'step', 'category', 'kernel_class')}}
        path = self.write('crafted/a.sldigest', digest_file.write({**head, 'reader': 'op-table'}, {**columns, **named, 'trace.format': ['op-table']}))
        info(path)
        self.assertIn('are not opened', run('event', path, '--rank', 0, '--index', 0, check=2).err)
        server = Server(str(path), '--port', '0')
        try:
            server.wait_ready()
            self.assertNotIn(b'password', server.get('/api/perfetto')[2])
        finally:
            server.stop()
        # Without cells the viewer would hand out the file itself, as it does for a profile of Chrome's JSON.
        for name in [name for name in columns if name.startswith('cells.')]:
            del columns[name]
        path.write_bytes(digest_file.write({**head, 'reader': 'op-table', 'cells': 0}, {**columns, **named, 'trace.format': ['op-table']}))
        self.assertIn('no pipeline work', run('info', path, check=2).err)

    def test_a_thousand_ranks_at_few_open_files(self):
        for rank in range(1000):
            self.write(f'one/run/workerlog.{rank}', one_step(rank % 4, 4, 4))
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        for command in (['digest', self.dir / 'one/run', '-o', self.dir / 'two/run'], ['info', '--json', self.dir / 'two/run']):
            done = subprocess.run([BIN, *map(str, command)], capture_output=True, preexec_fn=limit, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr[-500:])
        self.assertEqual(json.loads(done.stdout)['ranks'], 1000)


if __name__ == '__main__':
    unittest.main()
