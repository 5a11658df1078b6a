"""stageline diff: a run with itself is silent, one cause is named, the sum closes, exit codes are for CI."""
import json
import unittest

from support import SHARED, Case, needs_shared, run

COMMON = ['--stages', 4, '--micro-batches', 8, '--dp', 2, '--steps', 6, '--jitter', 0.02, '--optimizer', 5, '--latency', 0.2]
# (what the second run has, the cause in words)
CAUSES = [
    (['--fault', 'slow-stage:2,1.3'], 'compute of stage 2'),
    (['--fault', 'slow-rank:5,1.5'], 'compute of rank 5 (stage 1)'),
    (['--fault', 'slow-link:1,2,+6ms'], 'messages from stage 1 to stage 2'),
    (['--fault', 'heavy-head:0.3'], 'compute of stage 3'),
    (['--fault', 'late-launch:5,4ms'], 'late starts on stage 1'),
    (['--cost', '12,12,12,20'], 'compute on several stages'),
    (['--micro-batches', 16], 'schedule and sizes'),
]


class Diff(Case):
    def simulate(self, name, schedule='1f1b', *words):
        run('simulate', schedule, *COMMON, *words, '--force', '-o', self.dir / name, '-q', check=0)
        return self.dir / name

    def diff(self, a, b, check=0):
        return json.loads(run('diff', a, b, '--format', 'json', '-q', check=check).out)

    def assert_closes(self, diff):
        groups = next(t for t in diff['tables'] if t['name'] == 'groups')
        self.assertEqual(groups['rows'][-1]['cause'], 'rest')
        self.assertEqual(sum(row['effect_ns'] for row in groups['rows']), diff['change_ns'])
        runs = {row['run']: row for row in next(t for t in diff['tables'] if t['name'] == 'runs')['rows']}
        self.assertAlmostEqual(runs['b']['step_ns'] - runs['a']['step_ns'], diff['change_ns'], delta=2)
        return groups['rows']

    def test_a_slow_stage_is_found_next_to_another_schedule(self):
        def made(name, *words):
            run('simulate', *words, '-q', '--force', '-o', self.dir / name, check=0)
            return self.dir / name
        slow = ('--fault', 'slow-stage:2,1.4')
        plain, plain_slow = made('a', '1f1b', '--cost', '10,20'), made('b', '1f1b', '--cost', '10,20', *slow)
        vpp, vpp_slow = (made(name, 'vpp', '--chunks', 2, '--cost', '5,10', *words) for name, words in (('c', ()), ('d', slow)))
        for a, b in ((plain_slow, vpp), (vpp_slow, plain), (plain, vpp_slow), (vpp, plain_slow)):
            said = run('diff', a, b, '-q', check=0).out
            self.assertIn('Main cause: compute of stage 2.', said)
            self.assertNotRegex(said, 'stage [013] (for|back)ward')
        # Where both are slow, nothing has changed.
        self.assertNotIn('stage 2', run('diff', plain_slow, vpp_slow, '-q', check=0).out)

    def test_a_run_with_itself_and_with_its_twin_is_silent(self):
        a, twin = self.simulate('a'), self.simulate('twin', '1f1b', '--seed', 7)
        for b in (a, twin):
            out = run('diff', a, b, '--fail-on', '0.1%', check=0).out
            self.assertIn('No difference beyond noise', out)
            self.assertNotIn('rest', out)
            self.assertFalse(self.diff(a, b)['beyond_noise'])
        self.assertEqual(self.diff(a, a)['change_ns'], 0)
        self.assertEqual(self.diff(a, a)['unmatched'], 0)

    def test_one_cause_is_named_and_the_sum_closes(self):
        a = self.simulate('a')
        for i, (words, cause) in enumerate(CAUSES):
            with self.subTest(words=words):
                diff = self.diff(a, self.simulate(f'b{i}', '1f1b', '--seed', 5, *words))
                self.assertTrue(diff['beyond_noise'])
                self.assertEqual(diff['cause_en'], cause)
                rows = self.assert_closes(diff)
                self.assertLess(abs(rows[-1]['effect_ns']), 0.05 * abs(diff['change_ns']))

    def test_twice_the_work_is_judged_by_the_micro_batch(self):
        a, more = self.simulate('a'), self.simulate('more', '1f1b', '--micro-batches', 16)
        slow = self.simulate('slow', '1f1b', '--micro-batches', 16, '--cost', '13,13,13,26')
        self.assertIn('slower per step', run('diff', a, more, '--fail-on', '3%', check=0).out)  # a step is, a micro-batch is not
        run('diff', more, a, '--fail-on', '3%', check=1)  # a step is shorter, a micro-batch longer
        run('diff', a, slow, '--fail-on', '3%', check=1)

    def test_a_step_of_no_length_has_no_shares(self):
        nothing = self.dir / 'nothing.csv'
        nothing.write_text('stage,rank,step,kind,start_ns,dur_ns,mb_id\n0,0,0,F,0,0,0\n')
        out = run('diff', nothing, self.simulate('b'), check=0).out
        self.assertNotIn('inf', out)
        self.assertNotIn('nan', out)
        diff = self.diff(nothing, self.dir / 'b')
        self.assertIsNone(diff['change_share'])
        self.assertTrue(all(row['effect_share'] is None for row in self.assert_closes(diff)))

    def test_schedule_changes_come_first(self):
        a, b = self.simulate('a'), self.simulate('b', 'zb-h1')
        diff = self.diff(a, b)
        self.assertEqual(diff['differences'][0]['en'], 'schedule: A 1f1b, B zb-h1')
        rows = self.assert_closes(diff)
        self.assertEqual(rows[0]['cause'], 'schedule')
        self.assertAlmostEqual(rows[0]['effect_ns'] / diff['change_ns'], 1, delta=0.05)
        self.assertIn('调度：A 1f1b，B zb-h1', run('diff', a, b, '--lang', 'zh', check=0).out)

    def test_an_optimizer_that_one_run_did_not_record_is_no_change(self):
        rows = (self.simulate('with', '1f1b', '--format', 'cells') / 'cells.csv').read_text().splitlines()
        fewer = [row for row in rows if ',optimizer,' not in row]
        self.assertLess(len(fewer), len(rows))
        (self.dir / 'without').mkdir()
        (self.dir / 'without' / 'cells.csv').write_text('\n'.join(fewer) + '\n')
        for a, b, which in (('with', 'without', 'A'), ('without', 'with', 'B')):
            out = run('diff', self.dir / a, self.dir / b, check=0)
            self.assertIn('No difference beyond noise', out.out)
            self.assertIn(f'only {which} recorded its optimizer', out.out + out.err)

    def test_pauses_of_three_steps_are_enough(self):
        # The number of pauses per step differs at random; their existence does not.
        a = self.simulate('a', 'vpp', '--steps', 3, '--jitter', 0, '--stages', 8, '--micro-batches', 16, '--reduce', 2, '--format', 'cells')
        for seed in (507, 508, 509):
            with self.subTest(seed=seed):
                b = self.simulate('b', 'vpp', '--steps', 3, '--jitter', 0, '--stages', 8, '--micro-batches', 16, '--reduce', 2, '--format', 'cells',
                                  '--seed', seed, '--fault', 'gc:60ms,0.03')
                run('diff', a, b, '--fail-on', '3%', check=1)
                diff = self.diff(a, b)
                self.assertEqual(diff['cause_en'], 'pauses on several stages')
                rows = self.assert_closes(diff)
                self.assertGreater(max(row['effect_ns'] for row in rows if row['cause'] == 'launch-delay'), 0.9 * diff['change_ns'])

    def test_a_large_change_that_may_be_chance_is_not_called_none(self):
        words = ['--stages', 2, '--micro-batches', 4, '--dp', 1, '--jitter', 0, '--messages', '--reduce', 2, '--format', 'cells']
        a, b = self.simulate('a', 'dualpipe-v', *words), self.simulate('b', 'dualpipe-v', *words, '--seed', 507, '--fault', 'long-sequences:0.2,2')
        reported = ' '.join(run('diff', a, b, '--fail-on', '3%', check=0).out.split())
        self.assertRegex(reported, r'B is .* slower per step, within noise for 6 steps \(standard error [\d.]+ \S+\): record more steps\.')
        self.assertNotIn('No difference', reported)
        self.assertIn('请多记录几步', run('diff', b, a, '--lang', 'zh', check=0).out.replace('\n', ''))

    def test_exit_codes(self):
        a, b = self.simulate('a'), self.simulate('b', '1f1b', '--fault', 'slow-stage:2,1.3')
        run('diff', a, b, check=0)
        self.assertIn('slower (--fail-on): exit code 1', run('diff', a, b, '--fail-on', '3%', check=1).err)
        self.assertNotIn('--fail-on', run('diff', a, b, '--fail-on', '60%', check=0).err)
        run('diff', b, a, '--fail-on', '3%', check=0)  # faster does not count as a failure
        self.assertIn('--fail-on 3%', run('diff', a, b, '--fail-on', 'x', check=2).err)
        self.assertIn('not "x"', run('diff', a, b, '--fail-on', 'x', check=2).err)
        run('diff', a, check=2)
        run('diff', a, self.dir / 'nowhere', check=2)
        self.assertEqual(run('diff', a, b, '--format', 'csv', '--table', 'runs', check=0).out.count('\n'), 3)

    @needs_shared
    def test_real_jobs(self):
        st, se = (SHARED / 'pipeline_ops/bytedance' / f'trace-{n}.csv.gz' for n in ('ST', 'SE'))
        for job in (st, se):
            self.assertIn('No difference beyond noise', run('diff', job, job, check=0).out)
        self.assert_closes(self.diff(st, se))
        other = self.diff(st, SHARED / 'pipeline_ops/primus_pp8')  # another framework, without messages
        self.assertIn('B has 8 stages, A 4', [c['en'] for c in other['differences']])
        self.assert_closes(other)


if __name__ == '__main__':
    unittest.main()
