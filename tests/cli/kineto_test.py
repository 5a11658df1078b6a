"""PyTorch profiler traces as a user gives them: info, ranks, steps, events, pipes, and memory that stays bounded."""
import gzip
import json
import os
import resource
import subprocess
import sys
import unittest

from support import BIN, SHARED, Case, flaws, info, needs_shared, run, sanitized

MB = 1 << 20


def event(name, ts, dur, cat='cpu_op', pid=7, tid=7, **args):
    return {'ph': 'X', 'cat': cat, 'name': name, 'pid': pid, 'tid': tid, 'ts': ts, 'dur': dur, 'args': args}


def trace(rank=0, world=2, steps=(5, 6), **members):
    events = []
    for k, step in enumerate(steps):
        at = 1000 * k
        events += [event(f'ProfilerStep#{step}', at, 900, 'user_annotation'), event('aten::mm', at + 10, 100, **{'External id': k + 1}),
                   event('cudaLaunchKernel', at + 20, 5, 'cuda_runtime', correlation=k + 10, **{'External id': k + 1}),
                   event('gemm', at + 50, 200, 'kernel', 0, 7, stream=7, correlation=k + 10, **{'External id': k + 1})]
    return json.dumps({'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': 'NVIDIA H100'}],
                       'distributedInfo': {'backend': 'nccl', 'rank': rank, 'world_size': world}, **members, 'traceEvents': events})


def peak_bytes(*args):
    """(exit code, peak resident bytes, words) of a run of stageline alone in its process."""
    code = ('import os, resource, subprocess, sys\n'
            'done = subprocess.run(sys.argv[1:], capture_output=True)\n'
            'print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)\n'
            'sys.stdout.write(done.stderr.decode("utf-8", "replace"))')
    done = subprocess.run([sys.executable, '-c', code, BIN, *map(str, args)], capture_output=True, text=True, timeout=300)
    first, _, words = done.stdout.partition('\n')
    rc, peak = first.split()
    return int(rc), int(peak), words


class Rivals(Case):
    def test_an_analysis_names_the_rivals_it_can_answer_for(self):
        path = self.write('rank0.json', trace())
        self.assertIn('it has: hta', run('analyze', 'temporal-breakdown', path, '--compat', 'msprof', check=2).err)
        self.assertIn('--compat hta ', run('help', 'temporal-breakdown', check=0).out)
        ours = run('analyze', 'temporal-breakdown', path, '--format', 'csv', check=0).out
        rival = run('analyze', 'temporal-breakdown', path, '--format', 'csv', '--compat', 'hta', check=0).out
        self.assertNotEqual(ours.splitlines()[0], rival.splitlines()[0])

    def test_operators_are_named_without_their_overload_and_steps_are_none(self):
        events = [event('ProfilerStep#5', 0, 900, 'Operator'), event('aten::add.Tensor', 10, 100), event('aten::add.Scalar', 200, 50)]
        path = self.write('rank0.json', json.dumps({'schemaVersion': 1, 'traceEvents': events}))
        rows = run('analyze', 'tb-operator', path, '--format', 'csv', check=0).out.splitlines()[1:]
        self.assertEqual([row.split(',')[1:3] for row in rows], [['aten::add', '2']])

    def test_grouping_is_checked_by_analysis(self):
        path = self.write('rank0.json', trace())
        for analysis, grouping in (('tb-kernel', 'kernel-and-operator'), ('tb-operator', 'operator-and-shape')):
            run('analyze', analysis, path, '--group-by', grouping, check=0)
        self.assertIn('kernel-and-operator', run('analyze', 'tb-kernel', path, '--group-by', 'operator', check=2).err)


class Info(Case):
    def two(self):
        for rank in range(2):
            self.write(f'rank{rank}.json', trace(rank))
        return self.dir

    def test_text_speaks_of_slices_and_not_of_cells(self):
        out = run('info', self.two(), check=0).out
        for words in ('2  (0, 1)', 'NVIDIA H100 ×2', 'kernels', 'CPU operators', '2  (5, 6)', 'torch 1.12–2.2'):
            self.assertIn(words, out)
        for words in ('micro-batches', 'cells', 'stages'):
            self.assertNotIn(words, out)

    def test_json(self):
        found = info(self.two())
        self.assertEqual((found['ranks'], found['steps'], found['step_numbers'], found['slices']), (2, 2, [5, 6], 16))
        self.assertEqual(found['slices_by_kind'], {'CPU operators': 4, 'annotations': 4, 'runtime calls': 4, 'kernels': 4})
        self.assertIsNone(found['micro_batches'])
        self.assertEqual([p['device_name'] for p in found['parts']], ['NVIDIA H100'] * 2)
        self.assertEqual(found['end_ns'] - found['start_ns'], 1_900_000)

    def test_filters_count_what_is_left(self):
        self.two()
        self.assertEqual(info('--ranks', '1', self.dir)['slices'], 8)
        self.assertEqual(info('--steps', '6', self.dir)['slices'], 8)
        self.assertEqual(info('--range', '0:200us', self.dir)['slices'], 8)

    def test_filters_that_leave_nothing_say_what_there_is(self):
        self.two()
        self.assertIn('ranks 0-1', run('info', '--ranks', '7', self.dir, check=2).err)
        self.assertIn('steps 5-6', run('info', '--steps', '9:', self.dir, check=2).err)
        self.assertIn('--range', run('info', '--range', '5s:6s', self.dir, check=2).err)
        self.assertIn('filter.no_such_rank', run('info', '--ranks', '0,7', self.dir, check=0).out)
        self.write('bare.json', trace(steps=()).replace('"traceEvents": []', '"traceEvents": ' + json.dumps([event('a', 1, 2)])))
        self.assertIn('no steps', run('info', '--steps', '1', self.dir / 'bare.json', check=2).err)

    def test_pattern_pipe_and_suffixes(self):
        self.two()
        self.assertEqual(info(self.dir / 'rank*.json')['ranks'], 2)
        packed = self.write('packed', gzip.compress(trace(3).encode()))
        self.assertEqual(info(packed)['parts'][0]['rank'], 3)
        done = run('info', '--json', '-', stdin=trace(4).encode(), check=0)
        self.assertEqual(json.loads(done.out)['parts'][0]['rank'], 4)
        if subprocess.run(['which', 'zstd'], capture_output=True).returncode == 0:
            subprocess.run(['zstd', '-q', self.dir / 'rank1.json', '-o', self.dir / 'z.json.zst'], check=True)
            self.assertEqual(info(self.dir / 'z.json.zst')['parts'][0]['rank'], 1)

    def test_foreign_formats_are_named(self):
        for name, text, word in [('et.json', b'{"schema": "1.0.1", "nodes": [{"rf_id": 1}]}', 'Chakra'), ('s.pickle', b'\x80\x04\x95', 'pickle'),
                                 ('m.json', b'[[1, 1, 2, 3]]', 'memory timeline')]:
            done = run('info', self.write(name, text), check=2)
            self.assertIn(word, done.err)
            self.assertIn('hint', done.err)


class Event(Case):
    def test_event_of_every_kind_of_file(self):
        text = trace()
        index = [e['name'] for e in json.loads(text)['traceEvents']].index('gemm')
        for name, content in [('t.json', text.encode()), ('t.json.gz', gzip.compress(text.encode()))]:
            found = json.loads(run('event', self.write(name, content), '--index', index, check=0).out)
            self.assertEqual((found['name'], found['args']['correlation']), ('gemm', 10))
        self.assertIn('is not a slice', run('event', self.dir / 't.json', '--index', 999, check=2).err)
        self.assertIn('--index', run('event', self.dir / 't.json', check=2).err)
        self.write('u.json', trace(1))
        self.assertIn('--rank', run('event', self.dir / 't.json', self.dir / 'u.json', '--index', 0, check=2).err)


class Options(Case):
    def test_choices_that_leave_nothing_are_known(self):
        path = self.write('t.json', trace())
        for options, word in [(('idle-time-breakdown', '--streams', '99'), '--streams'),
                              (('potential-stragglers', '--profiler-steps', '99'), '--profiler-steps')]:
            self.assertIn(word, run('analyze', options[0], path, *options[1:], check=0).err)
        self.assertNotIn('--streams', run('analyze', 'idle-time-breakdown', path, '--streams', '7,99', check=0).err)


class Stacks(Case):
    def stacked(self, rank):
        frames = [event(name, ts, dur, 'python_function', **{'Python id': k + 1, 'Python parent id': k or None})
                  for k, (name, ts, dur) in enumerate((('train.py(1): main', 0, 1900), ('net.py(2): forward', 5, 500)))]
        text = json.loads(trace(rank))
        text['traceEvents'] += frames
        return json.dumps(text)

    def test_ranks_are_files_frames_or_profiles(self):
        paths = [self.write(f'rank{r}.json', self.stacked(r)) for r in (0, 1)]
        out = self.dir / 'stacks.txt'
        run('export-stacks', *paths, '-o', out, check=0)
        for rank in (0, 1):
            lines = (self.dir / f'stacks.rank{rank}.txt').read_text().splitlines()
            self.assertIn('train.py(1):_main;net.py(2):_forward 95', lines)  # aten::mm without its call
        said = run('export-stacks', *paths, '-o', '-', check=2)
        self.assertIn('--aggregate', said.err)
        whole = run('export-stacks', *paths, '--aggregate', '--leaf', 'none', '--metric', 'self_cuda_time_total', '-o', '-', check=0).out
        self.assertEqual(whole, ''.join(f'rank_{r};train.py(1):_main 200\nrank_{r};train.py(1):_main;net.py(2):_forward 200\n' for r in (0, 1)))
        scope = json.loads(run('export-stacks', *paths, '--format', 'speedscope', '-o', '-', check=0).out)
        self.assertEqual([p['name'] for p in scope['profiles']], ['rank 0', 'rank 1'])

    def test_what_cannot_be_written_is_known(self):
        path = self.write('rank0.json', self.stacked(0))
        self.assertIn('self_cuda_time_total', run('export-stacks', path, '-o', '-', '--metric', 'cuda', check=2).err)
        self.assertIn('verbose=True', run('export-stacks', path, '--stacks', 'torch', '-o', self.dir / 'none', check=0).err)
        self.assertEqual((self.dir / 'none').read_text(), '')
        self.assertIn('-o', run('export-stacks', path, check=2).err)
        bare = self.write('bare.json', trace(0))
        said = run('export-stacks', bare, '-o', self.dir / 'bare.txt', check=2).err
        self.assertIn('with_stack=True', said)
        self.assertFalse((self.dir / 'bare.txt').exists())
        self.assertIn('--stacks torch', run('export-stacks', path, '--stacks', 'torch', '--leaf', 'op', '-o', '-', check=2).err)
        self.assertIn('flamegraph.pl', run('export-stacks', path, '-o', self.dir / 'a.svg', check=2).err)

    def test_names_choose_the_form_and_counts_are_those_of_the_file(self):
        path, out = self.write('rank0.json', self.stacked(0)), self.dir / 'a.speedscope.json'
        run('export-stacks', path, '-o', out, check=0)
        self.assertIn('speedscope', json.loads(out.read_text())['$schema'])
        for options in ([], ['--aggregate'], ['--unit', 'ns']):
            out = self.dir / 'stacks.txt'
            said = run('export-stacks', path, '-o', out, *options, check=0).err
            self.assertIn(f'  {len(out.read_text().splitlines())} stack', said)


class Tables(Case):
    def test_exports_have_every_analysis_and_every_row(self):
        text = json.loads(trace(0))
        text['traceEvents'] += [event(f'aten::op{i}', 3000 + i, 0.5, 'cpu_op') for i in range(300)]
        path, out = self.write('rank0.json', json.dumps(text)), self.dir / 'run.json'
        run('export', path, '--to', 'json', '-o', out, check=0)
        tables = {table['name']: table for table in json.loads(out.read_text())['tables']}
        self.assertGreater(len(tables['operators']['rows']), 300)
        self.assertIn('step-breakdown', tables)
        self.assertIn('recommendations', tables)

    def test_several_tables_have_titles_and_empty_ones_say_none(self):
        path = self.write('rank0.json', trace(0))
        out = run('analyze', 'tb-overview', path, check=0).out
        self.assertIn('The average step of every rank:\n', out)
        self.assertIn('"notes":[', run('analyze', 'tb-overview', path, '--format', 'json', check=0).out)

    def test_options_of_several_analyses_say_whose_they_are(self):
        text = run('analyze', '--help', check=0).out
        self.assertIn('kernel-and-operator', text)
        self.assertIn('operator-and-shape', text)


class Damage(Case):
    def test_more_streams_than_are_reported_apart(self):
        events = [event('k', i, 1, 'kernel', 0, 7, stream=i, correlation=i) for i in range(66_000)]
        path = self.write('t.json', json.dumps({'traceEvents': events}))
        one, many = (run('analyze', 'events', path, '--table', 'events', '--format', 'csv', '--threads', n, check=0) for n in (1, 8))
        self.assertEqual(one.out, many.out)
        for done in (one, many):
            self.assertIn('65534 distinct streams; the rest count as no stream (466 times)', done.err)

    def test_steps_without_length_are_no_outliers(self):
        events = [e | {'dur': 0} for e in json.loads(trace(steps=range(8)))['traceEvents']]
        for last in (0, 500):
            events.append(event('ProfilerStep#99', 9000, last, 'user_annotation'))
            found = run('report', self.write('t.json', json.dumps({'traceEvents': events})), '-o', self.dir / 'r.html', check=0)
            for word in ('nan×', 'inf×'):
                self.assertNotIn(word, found.out)

    def test_nested_by_the_thousand(self):
        """Every launch is inside all of 20 000 ranges: the program must not climb through them again for each, and no
        path may fill memory."""
        n = 20_000
        events = [event('aten::mm', 0, 8 * n)] + [event('range', i + 1, 8 * n - 2 * (i + 1), 'user_annotation') for i in range(n)]
        for i in range(n):
            events += [event('cudaLaunchKernel', 2 * n + i / 2, .25, 'cuda_runtime', correlation=i + 1),
                       event('gemm', 3 * n + i, .5, 'kernel', 0, 7, stream=7, correlation=i + 1)]
        path = self.write('deep.json', json.dumps({'traceEvents': events}))
        started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        found = run('analyze', 'gpu-kernels-with-user-annotations,aten-op-kernels-and-delay', path, '--format', 'csv', check=0)
        self.assertEqual(found.out.count('… / range'), n)
        if not sanitized():
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - started, 20)


@unittest.skipIf(sanitized(), 'sanitizers take memory of their own')
class Memory(Case):
    def test_gzip_bomb(self):
        """1 GiB of blanks, and of one text, from 1 MiB: bounded by the window and the largest event."""
        for fill in (b' ', b'"name": "' + b'x' * 55):
            path = self.dir / 'bomb.json.gz'
            with gzip.open(path, 'wb', compresslevel=1) as f:
                f.write(b'{"schemaVersion": 1, "traceEvents": [\n' + json.dumps(event('a', 1, 2)).encode() + b',\n')
                block = fill * (16 * MB // len(fill))
                for _ in range(16):
                    f.write(block)
            code, peak, words = peak_bytes('info', path)
            self.assertIn(code, (0, 2), words)
            self.assertLess(peak, 200 * MB)

    @unittest.skipUnless(os.environ.get('STAGELINE_SLOW_TESTS'), 'set STAGELINE_SLOW_TESTS to read 10 GB of holes')
    def test_sparse_file_of_10_gb(self):
        path = self.dir / 'sparse.json'
        head = b'{"schemaVersion": 1, "traceEvents": [\n' + json.dumps(event('a', 1, 2)).encode() + b',\n'
        with open(path, 'wb') as f:
            f.write(head)
            f.truncate(10 * 1024 * MB)
        code, peak, words = peak_bytes('info', path)
        self.assertEqual(code, 0, words)
        self.assertLess(peak, 200 * MB)

    def test_rows_cost_what_is_promised(self):
        """200 000 events: text is read in windows, so peak memory follows the events and not the file."""
        path = self.dir / 'many.json'
        with open(path, 'w') as f:
            f.write('{"schemaVersion": 1, "traceEvents": [\n')
            filler = 'y' * 600
            for i in range(200_000):
                f.write(f'{{"ph": "X", "cat": "cpu_op", "name": "op{i % 500}", "pid": 7, "tid": 7, "ts": {i * 3}, "dur": 2, '
                        f'"args": {{"External id": {i}, "Call stack": "{filler}"}}}},\n')
            f.write(json.dumps(event('end', 900_000, 1)) + ']}')
        self.assertGreater(path.stat().st_size, 140 * MB)
        code, peak, words = peak_bytes('info', path)
        self.assertEqual(code, 0, words)
        self.assertLess(peak, 110 * MB)


class Real(Case):
    @needs_shared
    def test_the_sets(self):
        for folder, ranks in [('gen_small_8ranks_ns', 8), ('hta/trace_filter', 2), ('real_h100_owlv2', 1)]:
            path = SHARED / 'kineto' / folder
            if path.is_dir():
                found = info(path)
                self.assertEqual(found['ranks'], ranks)
                self.assertGreater(found['slices'], 1000)


class Operators(Case):
    def test_torch_prints_one_rank(self):
        for rank in range(2):
            self.write(f'rank{rank}.json', trace(rank))
        said = run('analyze', 'operators', self.dir, '--format', 'torch', check=2).err
        self.assertIn('--ranks: 0, 1', said)
        out = run('analyze', 'operators', self.dir, '--format', 'torch', '--rank', '1', '--sort-by', 'cuda_time_total', check=0).out
        lines = out.splitlines()
        self.assertTrue(all(line.endswith('  ') for line in lines[:-2]))
        self.assertEqual(lines[-1], 'Self CUDA time total: 400.000us')
        self.assertEqual(out, run('analyze', 'operators', self.dir / 'rank1.json', '--format', 'torch', '--sort-by', 'device_time_total',
                                  '--threads', '1', check=0).out)

    def test_torch_is_refused_where_it_means_nothing(self):
        path = self.write('t.json', trace())
        said = run('analyze', 'temporal-breakdown', path, '--format', 'torch', check=2).err
        self.assertIn('temporal-breakdown has no --format torch', said)
        self.assertIn('operators', said)
        said = run('analyze', 'operators', path, '--format', 'xml', check=2).err
        self.assertIn('xml', said)
        said = run('analyze', 'operators', path, '--time-unit', 'ms', check=2).err
        self.assertIn('--format torch', said)

    def test_rows_cut_the_text(self):
        path = self.write('t.json', trace())
        out = run('analyze', 'operators', path, '--rows', '1', check=0).out
        self.assertIn('… 3 more rows of operators', out)
        self.assertEqual(len(run('analyze', 'operators', path, '--rows', '0', check=0).out.splitlines()), 5)

    def test_steps_choose_what_is_counted(self):
        path = self.write('t.json', trace())
        rows = json.loads(run('analyze', 'operators', path, '--format', 'json', '--steps', '5', check=0).out)['tables'][0]['rows']
        self.assertEqual({r['name']: (r['count'], r['device_ns']) for r in rows}['aten::mm'], (1, 200000))


if __name__ == '__main__':
    unittest.main()
