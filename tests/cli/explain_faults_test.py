"""stageline explain: every simulated fault is the first finding, with the price that the run without it proves; a healthy run has none."""
import json
import unittest

from support import Case, run

COMMON = ['--stages', 4, '--micro-batches', 8, '--dp', 4, '--steps', 6, '--jitter', 0.02, '--optimizer', 5, '--latency', 0.2]
# How runs are written: compute cells alone, as worker logs have them, and with messages that were recorded.
FORMS = {'logs': [], 'messages': ['--messages', '--format', 'cells']}
# (schedule, fault, finding, cause)
FAULTS = [
    ('1f1b', 'slow-stage:2,1.3', 'stage.slow', 'stage:2'),
    ('1f1b', 'slow-stage:0,1.5', 'stage.slow', 'stage:0'),
    ('1f1b', 'slow-rank:5,1.5', 'rank.slow', 'rank:5'),
    ('zb-h1', 'slow-rank:12,1.2', 'rank.slow', 'rank:12'),
    ('1f1b', 'slow-link:1,2,+3ms', 'link.slow', 'link:1-2'),
    ('1f1b', 'slow-link:2,1,+3ms,1', 'link.slow', 'link:2-1'),
    ('1f1b', 'long-sequences:0.15,2', 'sequence.long', 'sequences'),
    ('1f1b', 'gc:30ms,0.02', 'host.pauses', 'host'),
    ('1f1b', 'late-launch:6,3ms', 'rank.late_launch', 'host:6'),
    ('1f1b', 'wrong-order:2', 'schedule.order', 'order'),
    ('zb-h1', 'missing-dw:1', 'schedule.unsplit', 'order'),
    ('zb-v', 'missing-dw', 'schedule.unsplit', 'order'),
    ('1f1b', 'heavy-head:0.3', 'stage.slow', 'stage:3'),
    ('vpp', 'slow-stage:1,1.4', 'stage.slow', 'stage:1'),
    ('zb-v', 'heavy-head:0.5', 'stage.slow', 'stage:0'),
]
PRICE = 0.05  # of the time lost


class ExplainFaults(Case):
    def explained(self, name, schedule, *words):
        run('simulate', schedule, *COMMON, *words, '--force', '-o', self.dir / name, '-q', check=0)
        return json.loads(run('explain', self.dir / name, '--format', 'json', '-q', check=0).out)

    def test_each_fault_comes_first_with_its_price(self):
        for form, how in FORMS.items():
            healthy = {s: self.explained(f'{form}-{s}', s, *how) for s in {schedule for schedule, *_ in FAULTS}}
            for i, (schedule, fault, finding, cause) in enumerate(FAULTS):
                with self.subTest(form=form, schedule=schedule, fault=fault):
                    found = self.explained(f'{form}-{i}', schedule, *how, '--fault', fault)
                    self.assertTrue(found['findings'], 'nothing was found')
                    first = found['findings'][0]
                    self.assertEqual((first['id'], first['key']), (finding, cause))
                    lost = found['step_ns'] - healthy[schedule]['step_ns']
                    self.assertAlmostEqual(first['lost_ns'] / lost, 1, delta=PRICE)
                    self.assertGreater(first['lost_ns'], first['uncertainty_ns'])
                    # One cause, one finding; and what all of them cost together is what this one does.
                    self.assertEqual([f['key'] for f in found['findings']].count(cause), 1)
                    self.assertAlmostEqual(found['lost_ns'] / lost, 1, delta=2 * PRICE)

    def test_a_healthy_run_has_none(self):
        for form, how in FORMS.items():
            for seed in (2, 3, 4):
                for schedule in ('1f1b', 'zb-h1', 'vpp', 'zb-v'):
                    with self.subTest(form=form, schedule=schedule, seed=seed):
                        found = self.explained(f'{form}-{schedule}-{seed}', schedule, *how, '--seed', seed)
                        self.assertEqual([f['id'] for f in found['findings']], [])
                        self.assertEqual(found['lost_ns'], 0)

    def test_every_schedule_is_the_same_run_with_and_without_messages(self):
        # The messages that simulate writes take the time that cells are apart: no step gets longer, and no cause appears.
        schedules = ['fthenb', '1f1b', 'eager-1f1b', 'vpp', 'vpp-ep-overlap', 'bfs', 'bfs-unreversed', 'zb-h1', 'zb-h1-paddle', 'zb-h2',
                     'interleaved-zb', 'zb-v', 'zbvpp', 'dualpipe', 'dualpipe-v', 'dualpipe-v-mindspeed']
        words = ['--stages', 4, '--micro-batches', 8, '--steps', 2, '--latency', 0.3]
        for schedule in schedules:
            steps = {}
            for name, how in {'alone': [], 'paddle': ['--messages'], 'cells': ['--messages', '--format', 'cells']}.items():
                with self.subTest(schedule=schedule, form=name):
                    path = self.dir / f'{schedule}-{name}'
                    run('simulate', schedule, *words, *how, '--force', '-o', path, '-q', check=0)
                    found = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
                    self.assertEqual([f['id'] for f in found['findings']], [])
                    self.assertEqual(found['steps'], 2)
                    steps[name] = found['step_ns']
                    self.assertAlmostEqual(steps[name] / steps['alone'], 1, delta=1e-3)
                    base = json.loads(run('what-if', path, '--format', 'json', '-q', check=0).out)['tables'][0]['rows'][0]
                    self.assertAlmostEqual(base['graph_ns'] / steps['alone'], 1, delta=1e-2)

    def test_a_price_is_what_the_fix_brings(self):
        # Evened out: the same work, a quarter of it on each stage.
        heavy = self.explained('heavy', '1f1b', '--fault', 'slow-stage:2,1.4')
        even = self.explained('even', '1f1b', '--cost', '11,22')
        saving = heavy['findings'][0]['saving_ns']
        self.assertAlmostEqual(saving / (heavy['step_ns'] - even['step_ns']), 1, delta=PRICE)

    def test_exit_codes_and_words(self):
        run('simulate', '1f1b', *COMMON, '--fault', 'slow-rank:5,1.5', '-o', self.dir / 'slow', '-q', check=0)
        run('simulate', '1f1b', *COMMON, '-o', self.dir / 'well', '-q', check=0)
        run('explain', self.dir / 'slow', '--fail-on', '3%', check=1)
        run('explain', self.dir / 'slow', '--fail-on', '90%', check=0)
        run('explain', self.dir / 'well', '--fail-on', '3%', check=0)
        self.assertIn('--fail-on 3%', run('explain', self.dir / 'well', '--fail-on', 'much', check=2).err)
        text = run('explain', self.dir / 'slow', check=0).out
        self.assertIn('1. Rank 5 is slow (1.50× the other ranks', text)
        self.assertIn('stageline analyze', text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80 + len(str(self.dir)) + 30, line)
        self.assertIn('rank 5 ', run('explain', self.dir / 'slow', '--lang', 'zh', check=0).out)
        self.assertIn('No problem found', run('explain', self.dir / 'well', check=0).out)


if __name__ == '__main__':
    unittest.main()
