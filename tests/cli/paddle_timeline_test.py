"""The drop-in for Paddle's script: byte for byte where V3 works, right where it fails."""
import hashlib
import json
import os
import shutil
import unittest

from support import BASE_MS, GLOG, SHARED, Case, job, needs_shared, one_step, run

GOLDEN_TIMES = [('forward', 0, '213.760986', '254.006104'), ('forward', 1, '254.742920', '299.168945'),
                ('backward', 0, '300.000000', '380.500000'), ('backward', 1, '381.000000', '461.500000'),
                ('optimizer', 0, '462.000000', '470.250000')]


def events(path):
    return json.loads(path.read_text())['traceEvents']


class Bytes(Case):
    def outputs(self, *flags):
        run('paddle-timeline', '--log_dir', self.dir, *flags, check=0)
        return [(self.dir / name).read_bytes() for name in ('pipeline_profile.json', 'pipeline_profile_perfetto.json')]

    def test_golden_vector(self):
        # Two logs, five jobs, and the digests of what V3 writes for them.
        for rank in range(2):
            text = 'LAUNCH INFO 2023-10-20 09:15:00,000 noise\n'
            for i, (kind, mb, start, end) in enumerate(GOLDEN_TIMES):
                stamp = ['326', '338', '350', '360', '370'][i]
                text += (f'I1020 09:15:07.265{stamp} {22317 + rank} standalone_executor.cc:217] Profiler Info: Job ({mb}), '
                         f'type = {kind}, micro_batch_id = {mb}, job_start_time = 1697793307{start}, job_end_time = 1697793307{end}\n')
            self.write(f'workerlog.{rank}', text)
        for flags in (['--devices', '0,1'], [], ['--devices', '0,1', '--compat', 'paddle-v3']):
            chrome, perfetto = self.outputs(*flags)
            self.assertEqual((len(chrome), hashlib.md5(chrome).hexdigest()), (2911, '5cf20794354e0badd1f240e0adbb6572'))
            self.assertEqual((len(perfetto), hashlib.md5(perfetto).hexdigest()), (3214, 'd46d16851edd56815265b2b2478fd0fe'))

    @needs_shared
    def test_goldens(self):
        for name, devices in [('golden_2x1', '0,1'), ('1f1b_4x3', '0,1,2,3'), ('fthenb_4x3', '0,1,2,3'), ('zbh1_4x2', '0,1,2,3')]:
            for path in (SHARED / 'paddle' / name).glob('workerlog.*'):
                shutil.copy(path, self.dir)
            for flags in ([], ['--compat', 'paddle-v3']):
                chrome, perfetto = self.outputs('--devices', devices, *flags)
                self.assertEqual(chrome, (SHARED / 'paddle' / name / 'pipeline_profile.json').read_bytes(), name)
                self.assertEqual(perfetto, (SHARED / 'paddle' / name / 'pipeline_profile_perfetto.json').read_bytes(), name)
            for path in self.dir.glob('workerlog.*'):
                path.unlink()

    @needs_shared
    def test_two_machines(self):
        # V3 numbers machine folders in directory order; this golden was written where machine1 came
        # first. So our natural order gives its bytes once the folders are swapped.
        source = SHARED / 'paddle' / '1f1b_2x2_machines'
        shutil.copytree(source / 'machine0', self.dir / 'machine1')
        shutil.copytree(source / 'machine1', self.dir / 'machine0')
        chrome, perfetto = self.outputs('--devices', '0,1', '--multi_machine')
        self.assertEqual(chrome, (source / 'pipeline_profile.json').read_bytes())
        self.assertEqual(perfetto, (source / 'pipeline_profile_perfetto.json').read_bytes())

    def test_permuted_devices_keep_v3_numbers(self):
        self.two_ranks()
        chrome, perfetto = self.outputs('--devices', '1, 0')
        compat = self.outputs('--devices', '1, 0', '--compat', 'paddle-v3')
        self.assertEqual([chrome, perfetto], compat)
        self.assertEqual(json.loads(chrome)['traceEvents'][0]['tid'], 'GPU1')
        self.assertEqual(json.loads(perfetto)['traceEvents'][0]['tid'], 2335)

    def test_threads_do_not_change_bytes(self):
        self.two_ranks(steps=5)
        self.assertEqual(self.outputs('--threads', '1'), self.outputs('--threads', '4'))


class Repairs(Case):
    """F1 to F20: where V3 fails, what we write, and what we say."""

    def convert(self, *flags, check=0):
        done = run('paddle-timeline', '--log_dir', self.dir, *flags, check=check)
        if check == 0:
            done.chrome = events(self.dir / 'pipeline_profile.json')
            done.perfetto = events(self.dir / 'pipeline_profile_perfetto.json')
            done.steps = [e for e in done.chrome if e['tid'] == 'Step']
        return done

    def assert_sane(self, done, steps):
        self.assertEqual(len(done.steps), 2 * steps)
        for event in done.chrome:
            self.assertGreater(event['ts'], 1.6e15, event)
        tids = {e['tid'] for e in done.perfetto}
        self.assertTrue(all(isinstance(t, int) for t in tids), tids)

    def test_f2_pir_communication_jobs_without_times(self):
        text = ''
        for step in range(2):
            at = 200 * step
            text += job('recv_forward', 0, None, None) + job('forward', 0, at + 1, at + 10) + job('backward', 0, at + 10, at + 30)
            text += job('send_backward', 0, None, None) + job('optimizer', 0, at + 30, at + 35)
        self.write('workerlog.0', text)
        done = self.convert()
        self.assert_sane(done, 2)
        self.assertEqual([e['name'] for e in done.chrome if e['ph'] == 'B'][:3], ['forward_0', 'backward_0', 'optimizer_0'])
        # V3 draws them at 1970 and never splits the steps.
        v3 = self.convert('--compat', 'paddle-v3')
        self.assertEqual(len(v3.steps), 2)
        self.assertEqual(v3.chrome[0]['ts'], 0.0)

    def test_f3_rank_without_lines(self):
        self.two_ranks()
        self.write('workerlog.1', 'Traceback (most recent call last):\n')
        done = self.convert()
        self.assert_sane(done, 2)
        self.assertIn('workerlog.1', done.err)
        self.assertEqual(self.convert('--compat', 'paddle-v3').steps[0]['ts'], 0)

    def test_f4_parenthesised_chunks(self):
        self.write('workerlog.0', job('forward', 0, 0, 9) + job('backward(chunk0)', 0, 9, 20) + job('forward(chunk0)', 1, 20, 25) +
                   job('backward(chunk1)', 0, 25, 35) + job('optimizer', 0, 35, 40))
        done = self.convert()
        self.assert_sane(done, 1)
        self.assertIn('backward(chunk1)_0', [e['name'] for e in done.chrome])
        self.assertEqual(len(self.convert('--compat', 'paddle-v3').chrome), 4 + 2)

    def test_f5_only_default(self):
        self.write('workerlog.0', job('default', 0, 0, 90) + job('default', 0, 100, 190))
        self.assert_sane(self.convert(), 2)

    def test_f6_missing_log(self):
        self.two_ranks()
        done = self.convert('--devices', '0,1,2')
        self.assert_sane(done, 2)
        self.assertIn('workerlog.2', done.err)
        self.assertIn('workerlog.2', self.convert('--devices', '0,1,2', '--compat', 'paddle-v3', check=2).err)

    def test_f7_device_numbers_not_from_zero(self):
        self.two_ranks()
        os.rename(self.dir / 'workerlog.0', self.dir / 'workerlog.4')
        os.rename(self.dir / 'workerlog.1', self.dir / 'workerlog.5')
        done = self.convert('--devices', '4,5')
        self.assert_sane(done, 2)
        names = {e['tid']: e['args']['name'] for e in done.perfetto if e['ph'] == 'M'}
        self.assertEqual(names, {2333: 'STEP', 2334: 'GPU:4', 2335: 'GPU:5'})
        self.assertEqual(self.convert('--devices', '4,5', '--compat', 'paddle-v3').perfetto[0]['tid'], 'GPU4')

    def test_f8_one_machine_folder(self):
        self.two_ranks(folder='machine0/')
        done = self.convert('--multi_machine')
        self.assert_sane(done, 2)

    def test_f10_machines_in_natural_order(self):
        for machine in (0, 1, 2, 10):
            self.write(f'machine{machine}/workerlog.0', one_step(at=1000 * machine))
        done = self.convert('--multi_machine')
        firsts = [e['ts'] for e in done.chrome if e['name'] == 'forward_0' and e['ph'] == 'B']
        self.assertEqual(firsts, sorted(firsts))

    def test_f11_no_machine_folders(self):
        self.two_ranks()
        self.assertIn('--multi_machine', self.convert('--multi_machine', check=2).err.replace('multi-machine', 'multi_machine'))

    def test_machine_folders_without_the_flag(self):
        self.two_ranks(folder='machine0/')
        self.two_ranks(folder='machine1/')
        self.assert_sane(self.convert(), 2)

    def test_f12_bad_utf8(self):
        self.two_ranks()
        with open(self.dir / 'workerlog.0', 'ab') as f:
            f.write(b'loss \xff\xfe 3.2\n')
        done = self.convert()
        self.assert_sane(done, 2)
        self.assertIn('UTF-8', done.err)
        self.assertIn('UTF-8', self.convert('--compat', 'paddle-v3', check=2).err)

    def test_f13_decimal_comma(self):
        self.write('workerlog.0', one_step().replace('000, job_end', '000, job_end').replace('.000000', ',000000'))
        done = self.convert()
        self.assert_sane(done, 1)
        self.assertIn('comma', done.err)

    def test_f14_appended_run(self):
        self.write('workerlog.0', one_step() + one_step(at=200) + one_step(at=6_600_000) + one_step(at=6_600_200))
        done = self.convert()
        self.assert_sane(done, 4)
        self.assertIn('several runs', done.err)

    def test_f15_cut_last_line(self):
        text = one_step() + one_step(at=200)
        self.write('workerlog.0', text[:text.rindex('.')])
        done = self.convert()
        self.assert_sane(done, 2)
        self.assertIn('workerlog.0:14', done.err)
        self.assertEqual(len([e for e in done.chrome if e['name'] == 'optimizer_0']), 2)

    def test_f16_line_cut_by_another_writer(self):
        line = job('forward', 0, 0, 10)
        half = line.index('job_start_time') + 20
        self.write('workerlog.0', line[:half] + '[2023-10-20] loss 3.2\n' + line[half:] + one_step())
        done = self.convert()
        self.assert_sane(done, 1)
        self.assertIn('workerlog.0:1', done.err)

    def test_f17_negative_job(self):
        self.write('workerlog.0', one_step() + job('forward', 0, 250, 240) + job('backward', 0, 250, 260))
        done = self.convert()
        self.assertIn('ends before it starts', done.err)
        self.assertNotIn(BASE_MS * 1000 + 250_000, [e['ts'] for e in done.chrome if e['cat'] == 'forward'])

    def test_f19_start_step(self):
        self.write('workerlog.0', 'INFO:root:Schedule Profiler start at step 3 and end at step 6\n' + one_step() + one_step(at=200))
        self.assertEqual([e['name'] for e in self.convert().steps[::2]], ['step3', 'step4'])
        self.assertEqual([e['name'] for e in self.convert('--compat', 'paddle-v3').steps[::2]], ['step0', 'step1'])

    def test_f20_repeated_device(self):
        self.two_ranks()
        done = self.convert('--devices', '0,0')
        self.assertEqual(len(done.chrome), 2 * 14 + 2 * 2)
        self.assertIn('twice', done.err)

    def test_lines_that_are_there_twice_count_once_and_are_named(self):
        for steps, flags in ((2, []), (3, ['--devices', '0,1'])):
            for rank in range(2):
                text = ''.join(one_step(rank, at=200 * s) for s in range(steps))
                self.write(f'workerlog.{rank}', ''.join(line + line for line in text.splitlines(True)))
            done = self.convert(*flags)
            self.assertEqual(len(done.steps), 2 * steps)
            self.assertIn('a profiler line is repeated', done.err)
            self.assertIn(f'{2 * 7 * steps} times', ' '.join(done.err.split()))
            for rank in range(2):
                self.write(f'workerlog.{rank}', ''.join(one_step(rank, at=200 * s) for s in range(steps)))
            self.assertEqual(self.convert(*flags).chrome, done.chrome)

    def test_jobs_that_overlap_are_named(self):
        for first, at in (((0, 50), (20, 70)), 20), (((3, 9), (8, 30)), 8):
            self.write('workerlog.0', job('forward', 0, *first[0]) + job('forward', 1, *first[1]) + job('backward', 0, 100, 120) + job('optimizer', 0, 120, 125))
            err = ' '.join(self.convert().err.split())
            self.assertIn(f'the first is forward 1, job_start_time = {BASE_MS + at:.6f}', err)
        self.write('workerlog.0', one_step())
        self.assertNotIn('overlap', self.convert().err)

    def test_rank_that_lost_a_step_does_not_shift_the_others(self):
        self.write('workerlog.0', ''.join(one_step(0, at=200 * s) for s in range(4)))
        self.write('workerlog.1', ''.join(one_step(1, at=200 * s) for s in range(4) if s != 1))
        done = self.convert()
        begins = [e['ts'] for e in done.steps if e['ph'] == 'B']
        self.assertEqual(begins, [BASE_MS * 1000 + 200_000 * s for s in range(4)])

    def test_unusable_folder(self):
        self.assertIn('no workerlog', self.convert(check=2).err)
        self.assertIn('nowhere', run('paddle-timeline', '--log_dir', self.dir / 'nowhere', check=2).err)
        self.assertIn('--log-dir', run('paddle-timeline', check=2).err)
        self.write('workerlog.0', 'hello\n')
        self.assertIn('profiler', self.convert(check=2).err)
        self.assertFalse((self.dir / 'pipeline_profile.json').exists())
        self.assertEqual([p.name for p in self.dir.iterdir()], ['workerlog.0'])

    def test_line_forms(self):
        bar = ' 12%|##        | 12/100 [00:01<00:10]' + GLOG
        text = job('forward', 0, 0, 10, prefix=bar) + job('backward', 0, 10, 30).rstrip('\n') + ' ' + job('optimizer', 0, 30, 35)
        for name, content in [('LF', text), ('CRLF', text.replace('\n', '\r\n')), ('CR', text.replace('\n', '\r'))]:
            self.write('workerlog.0', content)
            done = self.convert()
            self.assertEqual([e['name'] for e in done.chrome if e['ph'] == 'B'], ['forward_0', 'backward_0', 'optimizer_0', 'step0'], name)


if __name__ == '__main__':
    unittest.main()
