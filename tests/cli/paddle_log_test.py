"""The Paddle reader: job types, steps, faults. Each fault has its fixture, exit code and message."""
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import unittest

from support import BIN, GLOG, SHARED, Case, flaws, info, job, needs_shared, one_step, run


def cells(path, *flags):
    return list(csv.DictReader(io.StringIO(run('export', path, '--to', 'csv', '-o', '-', *flags, check=0).out)))


class Reading(Case):
    def test_every_job_type(self):
        types = ['forward', 'backward', 'backward_b', 'backward_w', 'forward1', 'backward_b1', 'backward_w0_reduce', 'backward1',
                 'forward(chunk2)', 'backward(chunk0)', 'optimizer', 'lr', 'default', 'recv_forward', 'send_backward', 'novel_thing']
        self.write('workerlog.0', ''.join(job(t, 1, 10 * i + 1, 10 * i + 9) for i, t in enumerate(types)))
        got = [(c['name'], c['kind'], c['chunk'], c['micro_batch']) for c in cells(self.dir)]
        self.assertEqual(sorted(got), sorted([
            ('forward', 'F', '0', '1'), ('backward', 'B', '0', '1'), ('backward_b', 'I', '0', '1'), ('backward_w', 'W', '0', '1'),
            ('forward1', 'F', '1', '1'), ('backward_b1', 'I', '1', '1'), ('backward_w0_reduce', 'W', '0', '1'),
            ('backward1', 'B', '1', '1'), ('forward(chunk2)', 'F', '2', '1'), ('backward(chunk0)', 'B', '0', '1'),
            ('optimizer', 'O', '0', ''), ('lr', 'other', '0', ''), ('default', 'other', '0', ''), ('recv_forward', 'RF', '0', '1'),
            ('send_backward', 'SB', '0', '1'), ('novel_thing', 'other', '0', '1')]))

    def test_times_are_exact(self):
        self.write('workerlog.0', GLOG + 'Profiler Info: Job (0), type = forward, micro_batch_id = 0, '
                   'job_start_time = 1697793307213.760986, job_end_time = 1697793307254.006104\n')
        (cell,) = cells(self.dir)
        self.assertEqual((cell['start_ns'], cell['dur_ns']), ('1697793307213760986', str(254006104 - 213760986)))

    def test_steps_of_every_schedule(self):
        for schedule in ['fthenb', '1f1b', 'eager-1f1b', 'vpp', 'zb-h1-paddle']:
            run('simulate', schedule, '--stages', 4, '--micro-batches', 8, '--steps', 5, '--optimizer', 3, '--jitter', 0.05,
                '-o', self.dir / schedule, check=0)
            found = info(self.dir / schedule)
            self.assertEqual((found['steps'], found['stages'], found['ranks'], found['micro_batches']), (5, 4, 4, 8), schedule)
            per_step = {}
            for cell in cells(self.dir / schedule):
                per_step[cell['step']] = per_step.get(cell['step'], 0) + 1
            self.assertEqual(len(set(per_step.values())), 1, (schedule, per_step))

    def test_pir_jobs_without_times_are_counted(self):
        self.write('workerlog.0', job('recv_forward', 0, None, None) + one_step() + job('recv_forward', 0, None, None) + one_step(at=200))
        found = info(self.dir)
        self.assertEqual((found['steps'], found['cells']), (2, 14))
        self.assertEqual(flaws(found)['paddle.zero_job']['count'], 2)

    def test_pieces_of_a_forward_are_no_virtual_stages(self):
        for stage in range(2):
            at = 10 * stage
            self.write(f'workerlog.{stage}', job('forward', 0, at, at + 10) + job('forward(chunk0)', 1, at + 10, at + 15) +
                       job('forward(chunk1)', 1, at + 15, at + 20) + job('backward', 0, 60 - at, 70 - at) + job('backward', 1, 80 - at, 90 - at))
        out = self.dir / 'x.json'
        run('export', self.dir, '--stages', 2, '-o', out, check=0)
        arrows = [e for e in json.loads(out.read_text())['traceEvents'] if e['ph'] == 's']
        # F0, F1 (left at its last piece) down; B0, B1 up. Nothing leads back from stage 1 to a piece on stage 0.
        self.assertEqual(len(arrows), 4)

    def test_evaluation_runs_stand_outside_steps(self):
        self.write('workerlog.0', one_step() + job('default', 0, 150, 160) + job('default', 0, 165, 170) + one_step(at=200))
        found = info(self.dir)
        self.assertEqual((found['steps'], found['cells']), (2, 16))

    def test_machines_stand_as_warm_ups_say(self):
        run('simulate', '1f1b', '--stages', 4, '--micro-batches', 8, '--steps', 4, '--machines', 2, '-o', self.dir / 'plain', check=0)
        for first, second in (('machine0', 'machine1'), ('odd', 'even'), ('10.0.0.12', '10.0.0.3')):
            folder = self.dir / f'{first}-{second}'
            for name, machine in ((first, 'machine0'), (second, 'machine1')):
                shutil.copytree(self.dir / 'plain' / machine, folder / name)
            found = info(folder)
            self.assertEqual((found['stages'], found['schedule']['name']), (4, '1f1b'), folder)
            stages = {(c['machine'], c['stage']) for c in cells(folder)}
            named = sorted((first, second), key=lambda n: [int(x) if x.isdigit() else x for x in re.split(r'(\d+)', n)])
            self.assertEqual({s for m, s in stages if m == str(named.index(first))}, {'0', '1'}, stages)

    def test_lines_that_stand_twice_count_once(self):
        run('simulate', '1f1b', '--stages', 2, '--micro-batches', 4, '--steps', 5, '-o', self.dir / 'plain', check=0)
        plain = info(self.dir / 'plain')
        for name, spoil in (('twice', lambda text: ''.join(2 * line for line in text.splitlines(True))), ('appended', lambda text: 2 * text)):
            for log in (self.dir / 'plain').glob('workerlog.*'):
                (self.dir / name).mkdir(exist_ok=True)
                (self.dir / name / log.name).write_text(spoil(log.read_text()))
            found = info(self.dir / name)
            self.assertEqual((found['cells'], found['steps'], found['schedule']), (plain['cells'], plain['steps'], plain['schedule']), name)
            flaw = flaws(found)['paddle.repeated_line' if name == 'twice' else 'paddle.repeated_step']
            self.assertEqual(flaw['count'], plain['cells'] if name == 'twice' else 2 * 5)

    def test_lines_that_a_terminal_coloured_are_called_broken(self):
        self.write('workerlog.0', one_step())
        self.write('workerlog.1', one_step().replace('type = ', 'type = \x1b[32m'))
        found = flaws(info(self.dir))
        self.assertEqual(found['paddle.damaged_line']['count'], 7)
        self.assertIn('all broken', found['paddle.no_jobs']['message'])

    def test_start_step_numbers_the_steps(self):
        self.write('workerlog.0', 'INFO:root:Schedule Profiler start at step -1 and end at step -1\n'
                   'INFO:root:Schedule Profiler start at step 3 and end at step 6\n' + one_step() + one_step(at=200))
        self.assertEqual({c['step'] for c in cells(self.dir)}, {'3', '4'})

    def test_machines_in_natural_order(self):
        for machine in (0, 2, 10, 1):
            self.write(f'machine{machine}/workerlog.0', one_step(at=machine))
            self.write(f'machine{machine}/workerlog.1', one_step(at=machine))
        first = {}
        for c in sorted(cells(self.dir), key=lambda c: int(c['start_ns'])):
            first.setdefault((c['machine'], c['rank']), int(c['start_ns']) // 10**6 - 1697793307000)
        self.assertEqual(first, {(str(i), str(2 * i + d)): m for i, m in enumerate((0, 1, 2, 10)) for d in (0, 1)})
        self.assertEqual(info(self.dir)['machines'], 4)
        # The same, each folder named on the command line.
        self.assertEqual(info(*[self.dir / f'machine{m}' for m in (0, 1, 2, 10)])['machines'], 4)

    def test_devices(self):
        self.two_ranks()
        self.assertEqual(info('--devices', '1', self.dir)['ranks'], 1)
        self.assertEqual(info('--ranks', '0', self.dir)['ranks'], 1)

    def test_compressed_logs(self):
        self.write('workerlog.0.gz', gzip.compress(one_step().encode()) + gzip.compress(one_step(at=200).encode()))
        packed = subprocess.run(['zstd', '-q', '-c'], input=one_step(1).encode(), capture_output=True)
        if packed.returncode == 0:
            self.write('workerlog.1.zst', packed.stdout)
        found = info(self.dir)
        self.assertEqual(found['steps'], 2)
        self.assertEqual(found['cells'], 14 + (7 if packed.returncode == 0 else 0))

    def test_stdin(self):
        done = run('info', '--json', '-', stdin=one_step().encode(), check=0)
        self.assertIn('"cells":7', done.out)

    def test_stages_inferred_with_replicas_and_peers(self):
        for dp in range(2):
            for stage in range(4):
                for peer in range(2):
                    rank = dp * 8 + stage * 2 + peer
                    lines, t, b, warm = '', stage * 10, 0, 4 - stage
                    order = [('forward', i) for i in range(warm)]
                    for i in range(8 - warm):
                        order += [('backward', i), ('forward', warm + i)]
                    order += [('backward', i) for i in range(8 - warm, 8)]
                    for kind, mb in order:
                        lines += job(kind, mb, t, t + 10)
                        t += 10
                    self.write(f'workerlog.{rank}', lines)
        found = info(self.dir)
        self.assertEqual((found['stages'], found['replicas'], found['ranks']), (4, 2, 16))


class Faults(Case):
    """Bad input: what could be saved is saved and counted (exit 0), or nothing could (exit 2)."""

    def saved(self, name, cells_count, line=None, file='workerlog.0'):
        found = info(self.dir)
        self.assertIn(name, flaws(found))
        flaw = flaws(found)[name]
        self.assertTrue(flaw['file'].endswith(file), flaw)
        if line:
            self.assertEqual(flaw['line'], line, flaw)
        self.assertEqual(found['cells'], cells_count)

    def test_noise(self):
        noise = ('LAUNCH INFO 2023-10-20 09:15:00,101 ---  Configuration  ---\n'
                 '[2023-10-20 09:15:07,265] [    INFO] - loss: 10.3512, learning_rate: 1e-05, global_step: 3\n'
                 "The VPP job list: ['forward0', 'forward0', 'forward1']\nnode01:22317:22510 [0] NCCL INFO Channel 00/0\n"
                 'Profiler \nProfiler Info: none\nP\nSchedule Profiler start at step x\n')
        self.write('workerlog.0', noise + noise.join(one_step().splitlines(True)) + noise)
        self.assertEqual(info(self.dir)['cells'], 7)

    def test_damaged_line(self):
        self.write('workerlog.0', 'noise\nProfiler Info: Job (7), type = forward, micro_batch_id = 7, job_start_time = 169779[2023] loss\n' + one_step())
        self.saved('paddle.damaged_line', 7, line=2)

    def test_bad_utf8(self):
        self.write('workerlog.0', b'\xff\xfe\xfa\n' + one_step().encode())
        self.saved('paddle.bad_utf8', 7, line=1)

    def test_long_lines(self):
        self.write('workerlog.0', 'x' * 100_000 + '\n' + one_step() + 'Profiler ' * 20_000 + '\n')
        self.assertEqual(info(self.dir)['cells'], 7)
        self.write('workerlog.0', 'y' * 3_000_000 + job('forward', 0, 0, 1) + one_step(at=200))
        self.assertEqual(info(self.dir)['cells'], 8)

    def test_crlf(self):
        self.write('workerlog.0', one_step().replace('\n', '\r\n'))
        self.assertEqual(info(self.dir)['cells'], 7)

    def test_truncated_last_line(self):
        text = one_step()
        self.write('workerlog.0', text[:-12])
        self.saved('paddle.cut_line', 6, line=7)
        self.write('workerlog.0', text[:-4])  # inside the decimals
        self.saved('paddle.cut_line', 6, line=7)
        self.write('workerlog.0', text[:-1])  # only the line end is missing: nothing is lost
        self.assertEqual(info(self.dir)['cells'], 7)

    def test_missing_rank(self):
        for rank in (0, 1, 3):
            self.write(f'workerlog.{rank}', one_step(rank))
        self.saved('paddle.missing_rank', 21, file='workerlog.2')

    def test_empty_file(self):
        self.write('workerlog.0', one_step())
        self.write('workerlog.1', '')
        self.saved('paddle.no_jobs', 7, file='workerlog.1')

    def test_negative_job(self):
        self.write('workerlog.0', one_step() + job('forward', 7, 90, 80))
        self.saved('paddle.negative_job', 7, line=8)

    def test_appended_runs(self):
        self.write('workerlog.0', one_step() + one_step(at=200) + one_step(at=6_600_000))
        self.saved('paddle.appended_run', 21)
        self.assertEqual(info(self.dir)['steps'], 3)

    def test_appended_after_a_cut(self):
        text = one_step()
        self.write('workerlog.0', text[:-12] + text.replace(GLOG, GLOG))
        found = info(self.dir)
        self.assertEqual(found['steps'], 2)
        self.assertGreaterEqual(found['cells'], 13)

    def test_damaged_gzip(self):
        packed = gzip.compress(b''.join(one_step(at=200 * s).encode() for s in range(400)), mtime=0)
        self.write('workerlog.0.gz', packed[:len(packed) // 2])
        found = info(self.dir)
        self.assertGreater(found['cells'], 100)
        self.assertIn('paddle.unreadable_rest', flaws(found))

    def test_nothing_to_save(self):
        for name, content, words in [('workerlog.0', 'hello\n', 'profiler line'), ('workerlog.0', '', 'profiler line'),
                                     ('workerlog.0', job('forward', 0, None, None), 'nothing can be drawn'),
                                     ('workerlog.0', job('forward', 0, 9, 1), 'nothing can be drawn')]:
            self.write(name, content)
            done = run('info', self.dir, check=2)
            self.assertIn('workerlog.0', done.err)
            self.assertIn(words, done.err)
            self.assertEqual(done.out, '')

    def test_unreadable_paths(self):
        self.assertIn('no such file', run('info', self.dir / 'nowhere', check=2).err)
        self.assertIn('there is no file in this folder', run('info', self.dir, check=2).err)
        self.write('a.txt', 'hello')
        self.assertIn('no reader', run('info', self.dir / 'a.txt', check=2).err)

    def test_pipes_are_read(self):
        done = subprocess.run(['bash', '-c', '"$0" info --json <(cat "$1")', BIN, self.write('log', one_step())], capture_output=True, text=True)
        self.assertIn('"cells":7', done.stdout, done.stderr)

    def test_the_same_file_twice_counts_once(self):
        self.write('logs/workerlog.0', one_step())
        os.symlink('.', self.dir / 'logs' / 'again')
        found = info(self.dir / 'logs', self.dir / 'logs' / 'workerlog.0')
        self.assertEqual(found['cells'], 7)
        self.assertIn('source.repeated', flaws(found))

    def test_damaged_gzip_is_named_when_nothing_else_is_there(self):
        packed = bytearray(gzip.compress(one_step().encode()))
        packed[12:30] = bytes(18)
        self.write('workerlog.0.gz', bytes(packed))
        self.assertIn('gzip', run('info', self.dir, check=2).err)

    def test_bytes_after_gzip_are_counted(self):
        self.write('workerlog.0.gz', gzip.compress(one_step().encode()) + b'xyz')
        self.saved('paddle.unreadable_rest', 7, file='workerlog.0.gz')

    def test_huge_numbers(self):
        line = job('forward', 0, 0, 10)
        self.write('workerlog.0', one_step() + line.replace('micro_batch_id = 0', 'micro_batch_id = 99999999999999999999') +
                   line.replace('169779330', '9' * 400) + line.replace('Job (0)', 'Job (4294967296000)'))
        self.saved('paddle.damaged_line', 7, line=8)


if __name__ == '__main__':
    unittest.main()
