"""stageline explain on profiles with one planted fault each: who is named, with which call, operator, line or rank, and what it costs against the same run without."""
import json
import re
import sys
import unittest

from support import SOURCE, Case, run

sys.path.insert(0, str(SOURCE / 'tests' / 'gen'))
import profile_faults  # noqa: E402


class ProfileFaults(Case):
    def reported(self, name):
        cost = profile_faults.make(name, str(self.dir / name))
        return cost, json.loads(run('explain', self.dir / name, '--format', 'json', '-q', check=0).out)

    def test_first_finding_names_the_fault_and_its_price(self):
        for name, (fault, _, ids, words) in profile_faults.CASES.items():
            with self.subTest(name):
                cost, reported = self.reported(name)
                self.assertAlmostEqual(sum(part['share'] for part in reported['parts']), 1, places=6)
                if fault is None:
                    self.assertEqual([f['id'] for f in reported['findings']], [])
                    continue
                first = reported['findings'][0]
                self.assertIn(first['id'], ids)
                said = first['title_en'] + ' ' + first['detail_en']
                for word in words:
                    self.assertIn(word, said)
                doubt = first['uncertainty_ns'] / reported['step_ns']  # of a price that says how sure it is
                self.assertLessEqual(abs(first['lost_share'] - cost), max(0.01, 0.15 * cost) + doubt, f'{first["lost_share"]:.3f} told, {cost:.3f} true')
                self.assertAlmostEqual(first['lost_ns'] / reported['step_ns'], first['lost_share'], places=6)
                self.assertTrue(first['title_zh'] and first['detail_zh'])

    def test_findings_stand_by_what_a_step_wins(self):
        for name in ('waits', 'late-rank', 'small'):
            _, reported = self.reported(name)
            prices = [f['saving_ns'] or f['lost_ns'] for f in reported['findings']]
            self.assertEqual(prices, sorted(prices, reverse=True))

    def test_waiting_for_a_rank_is_reported_once_and_the_bar_has_it_apart(self):
        for name, who in (('slow-rank', 'rank.slow'), ('late-rank', 'rank.late')):
            with self.subTest(name):
                _, reported = self.reported(name)
                self.assertEqual([f['id'] for f in reported['findings']], [who])
                share = {part['id']: part['share'] for part in reported['parts']}
                self.assertGreater(share['comm-wait'], 5 * share['comm'])
                # The closing sentence has the bar's own numbers.
                self.assertIn(f"waiting for other ranks ({100 * share['comm-wait']:.1f}\u202f%)", reported['closing_en'])
                self.assertIn(f"exposed communication ({100 * share['comm']:.1f}\u202f%)", reported['closing_en'])

    def test_a_step_on_average_is_the_one_that_prices_are_shares_of(self):
        _, reported = self.reported('checkpoint')  # one slow step
        self.assertIn(' on average', reported['lead_en'])
        spoken = float(re.match(r'Steps take ([0-9.]+)\u202fms on average', reported['lead_en']).group(1))
        self.assertAlmostEqual(spoken, reported['step_ns'] / 1e6, delta=0.051)

    def test_a_cut_file_is_called_cut_first_and_its_end_is_nobodys_idle_time(self):
        profile_faults.make('healthy', str(self.dir / 'cut'))
        path = self.dir / 'cut' / 'rank0.json'
        text = path.read_text()
        path.write_text(text[:int(0.7 * len(text))])
        reported = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        self.assertEqual(reported['findings'], [])
        self.assertRegex(reported['title_en'], 'cut off')

    def test_what_ranks_that_were_not_given_hold_up_is_not_called_transfer(self):
        profile_faults.make('late-rank', str(self.dir / 'part'))
        (self.dir / 'part' / 'rank1.json').unlink()
        reported = json.loads(run('explain', self.dir / 'part', '--format', 'json', '-q', check=0).out)
        first = reported['findings'][0]
        self.assertEqual(first['id'], 'comm.exposed')
        self.assertIn('Only 2 of the 3 ranks in that group were read', first['detail_en'])

    def test_kernels_are_not_judged(self):
        _, reported = self.reported('healthy')
        self.assertNotIn('Healthy', reported['title_en'])
        self.assertIn('there is little waiting to fix', reported['title_en'])

    def test_the_closing_sentence_names_every_line(self):
        _, reported = self.reported('healthy')
        for part in reported['parts']:
            if part['id'] != 'compute' and part['share'] >= 0.01:
                self.assertIn(part['label_en'], reported['closing_en'])

    def later(self, path, seconds, steps=0):
        """The same recording again, so much later, with its steps numbered on."""
        recording = json.loads(path.read_text())
        for event in recording['traceEvents']:
            if 'ts' in event:
                event['ts'] += seconds * 1e6
            if event['name'].startswith('ProfilerStep#'):
                event['name'] = f"ProfilerStep#{int(event['name'].split('#')[1]) + steps}"
        return json.dumps(recording)

    def test_time_between_two_recordings_of_a_rank_is_no_loss(self):
        for name in ('healthy', 'sleeping', 'barrier', 'small'):
            with self.subTest(name):
                _, once = self.reported(name)
                folder = self.dir / name
                (folder / 'rank0_again.json').write_text(self.later(folder / 'rank0.json', 600, profile_faults.STEPS))
                twice = json.loads(run('explain', folder, '--format', 'json', '-q', check=0).out)
                self.assertEqual([f['id'] for f in twice['findings']], [f['id'] for f in once['findings']])
                self.assertAlmostEqual(twice['step_ns'], once['step_ns'], delta=0.02 * once['step_ns'])
                for a, b in zip(once['parts'], twice['parts']):
                    self.assertEqual(a['id'], b['id'])
                    self.assertAlmostEqual(a['share'], b['share'], delta=0.01)
                for a, b in zip(once['findings'], twice['findings']):
                    self.assertAlmostEqual(a['lost_share'], b['lost_share'], delta=0.01)
                for question, column in (('temporal-breakdown', 'idle_ns'), ('idle-time-breakdown', 'idle_ns'), ('profiler-steps', 'device_ns')):
                    for table in json.loads(run('analyze', question, folder, '--format', 'json', '-q', check=0).out)['tables']:
                        for row in table['rows']:
                            self.assertLess(int(row.get(column) or 0), 100e9, table['name'])

    def test_ranks_recorded_on_different_days_are_not_compared(self):
        folder = self.dir / 'late-rank'
        _, together = self.reported('late-rank')
        self.assertIn('rank.late', [f['id'] for f in together['findings']])
        path = folder / 'rank1.json'
        path.write_text(self.later(path, 8 * 86400))
        apart = json.loads(run('explain', folder, '--format', 'json', '-q', check=0).out)
        self.assertFalse({f['id'] for f in apart['findings']} & {'rank.late', 'rank.slow'})
        self.assertIn('more than a day apart', apart['lead_en'])

    @staticmethod
    def launches(count, call_us, kernel_us, period_us, late_us=1):
        """Kernels that are launched one after the other; the first begins `late_us` after its call."""
        events = []
        for i in range(count):
            at, link = 1000 + period_us * i, {'correlation': 1 + i}
            start = 1000 + call_us + late_us + (kernel_us if late_us > 1 else period_us) * i
            events += [{'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'pid': 40, 'tid': 40, 'ts': at, 'dur': call_us, 'args': link},
                       {'ph': 'X', 'cat': 'kernel', 'name': 'fill_kernel', 'pid': 0, 'tid': 7, 'ts': start, 'dur': kernel_us, 'args': {'stream': 7, 'device': 0, **link}}]
        return json.dumps({'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': 'NVIDIA H100 80GB HBM3'}], 'traceEvents': events})

    def test_a_device_that_is_never_idle_is_not_held_up_by_launches(self):
        for count in (1, 50):
            with self.subTest(count):
                path = self.write('busy.json', self.launches(count, call_us=20, kernel_us=8, period_us=20, late_us=2000))
                reported = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
                self.assertEqual({part['id']: round(part['share'], 3) for part in reported['parts'] if part['share'] > 0}, {'compute': 1})
                self.assertNotIn('launch.bound', [f['id'] for f in reported['findings']])

    def test_pauses_between_kernels_are_not_told_by_a_synchronisation(self):
        events, at, end = [], 1000, 0
        for i in range(100):  # four kernels with pauses of 20 µs, then a wait that leaves the device idle for 37 µs
            link, start = {'correlation': 1 + i}, max(at + 5, end + 20)
            end = start + 100
            events += [{'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'pid': 40, 'tid': 40, 'ts': at, 'dur': 4, 'args': link},
                       {'ph': 'X', 'cat': 'kernel', 'name': 'fill_kernel', 'pid': 0, 'tid': 7, 'ts': start, 'dur': 100, 'args': {'stream': 7, 'device': 0, **link}}]
            at += 6
            if i % 4 == 3:
                events.append({'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaStreamSynchronize', 'pid': 40, 'tid': 40, 'ts': at, 'dur': end + 2 - at, 'args': {'correlation': 9000 + i}})
                at = end + 32
        path = self.write('waits.json', json.dumps({'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': 'NVIDIA H100 80GB HBM3'}], 'traceEvents': events}))
        reported = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        self.assertEqual([f['id'] for f in reported['findings'] if f['lost_share'] > 0], ['host.sync'])
        parts = {part['id']: part['share'] for part in reported['parts']}
        self.assertAlmostEqual(reported['findings'][0]['lost_share'], sum(share for name, share in parts.items() if name.startswith('idle-') and name != 'idle-kernel'), delta=0.002)
        self.assertAlmostEqual(parts['idle-kernel'], 75 * 20 / (100 * 100 + 75 * 20 + 24 * 39), delta=0.005)
        self.assertIn('between kernels (%.1f\u202f%%)' % (100 * parts['idle-kernel']), reported['closing_en'])

    def test_idle_time_of_two_kinds_is_told_apart(self):
        def x(cat, name, ts, dur, pid, tid, **args):
            return {'ph': 'X', 'cat': cat, 'name': name, 'ts': ts, 'dur': dur, 'pid': pid, 'tid': tid, 'args': args}
        for silent, waits, kinds in ((3000, 250, 1), (200, 900, 1), (2000, 800, 2)):  # µs of a step of 10 ms
            events = []
            for step in range(6):
                begin = 10 ** 9 + step * 10000
                events.append(x('user_annotation', f'ProfilerStep#{step}', begin, 10000, 1, 1))
                at, device = begin + silent, begin + silent + 30
                for k in range(4):
                    link = step * 4 + k + 1
                    device += waits if k == 2 else 0  # launched long before
                    length = (9700 - silent - waits) // 4
                    events += [x('cpu_op', 'aten::mm', at, 20, 1, 1, **{'External id': link}), x('cuda_runtime', 'cudaLaunchKernel', at + 5, 8, 1, 1, correlation=link),
                               x('kernel', 'gemm', device, length, 0, 7, correlation=link, stream=7, device=0)]
                    at, device = at + 25, device + length
            self.write('run.json', json.dumps({'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': 'NVIDIA H100'}], 'traceEvents': events}))
            told = json.loads(run('explain', self.dir / 'run.json', '--json', '-q', check=0).out)
            idle = [f['lost_share'] for f in told['findings'] if f['id'] == 'device.idle']
            self.assertEqual(len(idle), kinds, told['closing_en'])
            for share in idle:
                self.assertLess(min(abs(part['share'] - share) for part in told['parts']), 0.001)

    def test_one_short_kernel_is_one(self):
        path = self.write('one.json', self.launches(2, call_us=20, kernel_us=16, period_us=60))
        launch = next(f for f in json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)['findings'] if f['id'] == 'launch.bound')
        self.assertIn('2 kernels are shorter', launch['detail_en'])
        whole = json.loads(path.read_text())
        whole['traceEvents'][1]['dur'] = 30
        path.write_text(json.dumps(whole))
        launch = next(f for f in json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)['findings'] if f['id'] == 'launch.bound')
        self.assertIn('1 kernel is shorter than its launch call', launch['detail_en'])

    def test_of_devices_that_were_not_recorded_nothing_is_known(self):
        profile_faults.make('healthy', str(self.dir / 'host'))
        path = self.dir / 'host' / 'rank0.json'
        recording = json.loads(path.read_text())
        recording['traceEvents'] = [e for e in recording['traceEvents'] if e.get('cat') not in ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_runtime')]
        path.write_text(json.dumps(recording))
        reported = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        self.assertIn('No device work was recorded', reported['title_en'])
        self.assertIn('Devices were not recorded', reported['closing_en'])


if __name__ == '__main__':
    unittest.main()
