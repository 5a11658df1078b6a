"""stageline what-if as a user sees it: forms, own changes, refusals, and predictions against simulated runs."""
import csv
import io
import json
import unittest

from support import SHARED, Case, needs_shared, run


def answer(path, *flags):
    return json.loads(run('what-if', path, '--json', *flags, check=0).out)


def table(found, name):
    return next(t['rows'] for t in found['tables'] if t['name'] == name)


class WhatIf(Case):
    def simulate(self, name, schedule, *flags):
        run('simulate', schedule, '--format', 'cells', *flags, '--force', '-o', self.dir / name, check=0)
        return self.dir / name

    def step(self, path):
        return table(answer(path), 'what-if-base')[0]['recorded_ns']

    def close(self, predicted, simulated):
        self.assertLess(abs(predicted / simulated - 1), 0.01, (predicted, simulated))

    def test_forms_agree(self):
        path = self.simulate('run', '1f1b', '--dp', 2, '--fault', 'slow-rank:5,1.5')
        found = answer(path)
        rows = table(found, 'fixes')
        self.assertEqual(rows, sorted(rows, key=lambda r: (r['bound'], -r['saving_ns'])))
        printed = list(csv.DictReader(io.StringIO(run('what-if', path, '--format', 'csv', check=0).out)))
        self.assertEqual([r['what'] for r in printed], [r['what'] for r in rows])
        text = run('what-if', path, check=0).out
        for row in rows:
            self.assertIn(' '.join(row['what'].split())[:30], ' '.join(text.split()))
            self.assertTrue(row['assumption'] and row['how'])
            self.assertAlmostEqual(row['saving_share'], row['saving_ns'] / table(found, 'what-if-base')[0]['recorded_ns'], 6)
        chinese = run('what-if', path, '--lang', 'zh', check=0).out
        self.assertIn('更换 rank 5', chinese)
        self.assertIn(found['sentence_zh'][:6], chinese)
        out = self.dir / 'fixes.csv'
        run('what-if', path, '--format', 'csv', '-o', out, check=0)
        self.assertEqual(out.read_text(), run('what-if', path, '--format', 'csv', check=0).out)

    def test_a_worker_replaced_is_the_healthy_run(self):
        healthy = self.step(self.simulate('healthy', 'zb-h1', '--dp', 3, '--latency', 0.3, '--optimizer', 4))
        sick = self.simulate('sick', 'zb-h1', '--dp', 3, '--latency', 0.3, '--optimizer', 4, '--fault', 'slow-rank:6,1.4')
        row = next(r for r in table(answer(sick), 'fixes') if r['fix'] == 'worker')
        self.assertIn('rank 6', row['what'])
        self.close(row['step_ns'], healthy)

    def test_faults_taken_away_where_messages_were_recorded(self):
        # tests/unit/what_if_test.cc has all sixteen schedules without messages.
        words = ['--stages', 4, '--micro-batches', 8, '--dp', 2, '--latency', 0.3, '--messages', '--optimizer', 3]
        for schedule in ('1f1b', 'zb-h1', 'vpp'):
            healthy = self.step(self.simulate(f'{schedule}-well', schedule, *words))
            for fault, fix in (('slow-rank:5,1.4', 'worker'), ('slow-link:1,2,+6ms', 'links'), ('late-launch:2,3ms', 'launch'),
                               ('gc:15ms,0.05', 'launch')):
                with self.subTest(schedule=schedule, fault=fault):
                    path = self.simulate(f'{schedule}-{fix}-{fault[:2]}', schedule, *words, '--fault', fault)
                    row = next(r for r in table(answer(path), 'fixes') if r['fix'] == fix)
                    self.close(row['step_ns'], healthy)

    def test_a_slow_link_is_the_same_on_every_page(self):
        path = self.simulate('slow', '1f1b', '--dp', 2, '--latency', 0.3, '--messages', '--jitter', 0.02, '--steps', 6, '--fault', 'slow-link:1,2,+6ms')
        finding = next(f for f in json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)['findings'] if f['id'] == 'link.slow')
        tables = {t['name']: t['rows'] for t in json.loads(run('analyze', 'links', path, '--format', 'json', '-q', check=0).out)['tables']}
        row = tables['slow-links'][0]
        self.assertEqual(row['words'], finding['title_en'])
        self.assertIn(f"{row['saving_share'] * 100:.1f}", finding['value'])
        slow = [r for r in tables['links'] if r['reading'] not in ('fine', 'slow, worth little')]
        self.assertEqual({(r['from_stage'], r['to_stage']) for r in slow}, {(1, 2)})
        well = self.simulate('well', '1f1b', '--dp', 2, '--latency', 0.3, '--fault', 'late-launch:2,2ms')
        for rows in (t['rows'] for t in json.loads(run('analyze', 'links', well, '--format', 'json', '-q', check=0).out)['tables'] if t['name'] == 'slow-links'):
            self.assertEqual(rows, [])

    def test_own_changes_are_simulated_ones(self):
        base = ['--stages', 4, '--micro-batches', 8, '--cost', '8,10,10']
        path = self.simulate('run', '1f1b', *base, '--latency', 2)
        for flags, schedule, made in ((['--latency', '1ms'], '1f1b', [*base, '--latency', 1]),
                                      (['--micro-batches', 16], '1f1b', ['--stages', 4, '--micro-batches', 16, '--cost', '8,10,10', '--latency', 2]),
                                      (['--schedule', 'zb_h1'], 'zb-h1', [*base, '--latency', 2]),
                                      (['--schedule', 'eager-1f1b', '--latency', 0], 'eager-1f1b', base),
                                      (['--scale', 'stage=2,by=1.5'], '1f1b', [*base, '--latency', 2, '--fault', 'slow-stage:2,1.5'])):
            own = table(answer(path, *flags), 'fixes')[0]
            self.assertEqual(own['fix'], 'own')
            simulated = self.step(self.simulate('-'.join(map(str, flags)).replace('=', ''), schedule, *made))
            self.close(own['step_ns'], simulated / (2 if 16 in flags else 1))

    def test_layers(self):
        path = self.simulate('run', '1f1b', '--micro-batches', 16, '--fault', 'slow-stage:3,1.5')
        rows = table(answer(path, '--layers', 32), 'layers')
        self.assertEqual([r['layers'] for r in rows], [8, 8, 8, 8])
        self.assertEqual(sum(r['new_layers'] for r in rows), 32)
        self.assertLess(rows[3]['new_layers'], 8)
        balance = next(r for r in table(answer(path), 'fixes') if r['fix'] == 'balance')
        self.assertIn('8 layers per stage', balance['assumption'])  # the number was not given
        self.assertIn('pipeline-model-parallel-layout "Et*', balance['how'])
        again = answer(path, '--layers', ','.join(str(r['new_layers']) for r in rows))
        self.assertEqual([r['layers'] for r in table(again, 'layers')], [r['new_layers'] for r in rows])

    def test_a_split_that_nobody_said_is_said_and_blames_no_device(self):
        path = self.simulate('even', '1f1b')  # all stages are alike, and 30 layers divide into 8, 8, 7, 7
        found = answer(path, '--layers', 30)
        self.assertIn('assumed to be split 8, 8, 7, 7', found['sentence'])
        self.assertIn('8, 8, 7, 7', found['sentence_zh'])
        self.assertNotIn('worker', [r['fix'] for r in table(found, 'fixes')])
        self.assertNotIn('assumed to be split', answer(path, '--layers', '8,8,7,7')['sentence'])
        slow = answer(self.simulate('slow', '1f1b', '--fault', 'slow-stage:2,1.6'), '--layers', 30)
        worker = next(r for r in table(slow, 'fixes') if r['fix'] == 'worker')  # whatever the split
        self.assertIn('8, 8, 7, 7', worker['assumption'])

    def test_memory_is_asked_for(self):
        path = self.simulate('run', '1f1b', '--micro-batches', 16)
        same, more = answer(path), answer(path, '--more-memory')
        self.assertGreater(same['over_memory'], 0)
        self.assertEqual(more['over_memory'], 0)
        self.assertTrue(all(r['held'] <= 4 for r in table(same, 'fixes')))
        self.assertTrue(any(r['held'] > 4 for r in table(more, 'fixes')))

    def test_refusals_say_what_to_type(self):
        path = self.simulate('run', '1f1b')
        for flags, words in ((['--scale', 'stage=9,by=2'], 'fits no operation'), (['--scale', 'kind=SF,by=2'], 'write kind=RF or kind=RB'), (['--scale', 'stage=1'], 'by=FACTOR'), (['--scale', 'kind=Q,by=1'], 'kinds are'),
                             (['--schedule', '1f1'], 'did you mean "1f1b"'), (['--chunks', '2'], 'go with --schedule'), (['--layers', '3'], 'fewer layers'),
                             (['--layers', '8,8,x,8'], 'not a number'), (['--latency', '-1'], '--latency'), (['--micro-batches', '0'], '--micro-batches'),
                             (['--schedule', 'dualpipe-v', '--micro-batches', '3'], 'dualpipe-v'), (['--schedule', 'dualpipe'], 'two ranks'),
                             (['--format', 'xml'], 'text, csv or json')):
            done = run('what-if', path, *flags, check=2)
            self.assertIn(words, done.err, flags)
            self.assertEqual(done.out, '')
        self.assertIn('PATH', run('what-if', check=2).err)

    def test_a_change_to_an_outlier_alone_is_refused(self):
        path = self.simulate('outlier', '1f1b', '--steps', 8, '--jitter', 0.01, '--fault', 'slow-step:3,4')
        self.assertIn('the mean step leaves out', run('what-if', path, '--scale', 'step=3,by=2', check=2).err)
        self.assertIn('own', [row['fix'] for row in table(answer(path, '--scale', 'step=4,by=2'), 'fixes')])

    def test_a_single_rank_is_answered_as_far_as_it_goes(self):
        path = self.simulate('run', '1f1b', '--jitter', 0.05)
        found = answer(path, '--ranks', 1, '--scale', 'by=0.5')
        self.assertEqual(table(found, 'fixes')[0]['fix'], 'own')
        self.assertGreater(table(found, 'fixes')[0]['saving_ns'], 0)
        self.assertIsNone(table(found, 'what-if-base')[0]['order_ns'])
        self.assertNotIn('launch', [r['fix'] for r in table(found, 'fixes')])  # what it waited for is not there
        self.assertIn('some stages have no operations', run('what-if', path, '--ranks', 1, check=0).err)
        run('what-if', path, '--ranks', 1, '--layers', 8, check=2)

    def test_one_step_says_that_it_is_one(self):
        path = self.simulate('run', '1f1b', '--steps', 1)
        self.assertIn('one step gives no uncertainty', run('what-if', path, check=0).err)
        self.assertTrue(all(r['error_ns'] is None for r in table(answer(path), 'fixes')))

    def test_a_slow_device_is_no_heavy_stage(self):
        path = self.simulate('run', '1f1b', '--dp', 2, '--fault', 'slow-rank:5,1.5', '--steps', 2)
        kinds = [r['fix'] for r in table(answer(path), 'fixes')]
        self.assertIn('worker', kinds)
        self.assertNotIn('balance', kinds)
        self.assertNotIn('fair-stage', kinds)

    @needs_shared
    def test_real_jobs(self):
        for name, saved_ns in (('ST', 401_657_197), ('SE', 2_179_408_803)):
            found = answer(SHARED / f'pipeline_ops/bytedance/trace-{name}.csv.gz')
            fair = next(r for r in table(found, 'fixes') if r['fix'] == 'fair-stage')
            self.assertLess(abs(fair['saving_ns'] / saved_ns - 1), 0.002)
            base = table(found, 'what-if-base')[0]
            self.assertLess(abs(base['graph_error_share']), 0.005)
            self.assertLess(abs(base['order_error_share']), 0.005)
        for path in ('primus_pp8', 'megatronapp/dpp-aggregated.json.gz'):
            base = table(answer(SHARED / 'pipeline_ops' / path), 'what-if-base')[0]
            self.assertLess(abs(base['order_error_share']), 0.01, path)


if __name__ == '__main__':
    unittest.main()
