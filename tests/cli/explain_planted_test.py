"""stageline explain and diff on runs with one planted cause each, of which the same run without it says what it costs: it is named with its
place, priced, and said with its time where it has one; the account of a step closes; nothing that is lost is denied."""
import json
import os
import sys
import unittest

from support import Case, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'gen'))
from planted import Planted, chance  # noqa: E402

WELL = dict(stages=4, micro_batches=8, steps=10)
SHARE, POINTS = 0.15, 0.01  # of the true cost; of the period


def only(step):
    return lambda s, ms: ms if s == step else 0


# name → (what is planted, how the run is beside, words of the key, words that some text of the finding holds)
CASES = {
    'data before every step': (dict(gaps=lambda s: [('', 60)]), {}, 'between-steps', 'nothing that was recorded runs'),
    'data, recorded': (dict(gaps=lambda s: [('load_batch', 60)]), {}, 'between-steps:load-batch', 'load_batch'),
    'one checkpoint': (dict(gaps=lambda s: [('checkpoint', 2000)] if s == 5 else []), {}, 'between-steps:checkpoint', 'Before step 6'),
    'exposed reduction': (dict(tail=lambda s: (90.0, 3.0)), {}, 'tail:all-reduce', 'no compute beside'),
    'long optimizer': (dict(tail=lambda s: (2.0, 120.0)), {}, 'tail:optimizer', 'optimizer'),
    'late messages, recorded': (dict(message=lambda st, d, a, b, mb, k: 25 if (a, b) == (1, 2) and chance(st, mb) < 0.15 else 0),
                                dict(messages=True), 'message-tail:1-2', 'retransmission'),
    'late messages, not recorded': (dict(message=lambda st, d, a, b, mb, k: 25 if (a, b) == (2, 3) and chance(st, mb) < 0.2 else 0), {},
                                    'message-tail:2-3', 'No messages were recorded'),
    'one hang': (dict(message=lambda st, d, a, b, mb, k: 4000 if (st, a, b, mb, k) == (7, 2, 3, 4, 'F') else 0), dict(messages=True),
                 'hang:2-3', 'Step 7'),
    'one pause': (dict(pause=lambda st, d, s, k, mb: 300 if (st, s, k, mb) == (4, 2, 'B', 3) else 0), dict(messages=True), 'rank:2', 'Step 4'),
    'slow from a step on': (dict(cost=lambda st, d, s, k, mb: 1.3 if s == 1 and st >= 10 else 1), dict(steps=20), 'stage:1', 'from step 10'),
    'slower every step': (dict(cost=lambda st, d, s, k, mb: 1 + 0.015 * st if s == 2 else 1), dict(steps=20), 'stage:2', 'trend'),
    'slow every third step': (dict(cost=lambda st, d, s, k, mb: 1.3 if s == 1 and st % 3 == 0 else 1), dict(steps=12), 'stage:1', 'every third'),
    'all slow from a step on': (dict(cost=lambda st, d, s, k, mb: 1.2 if st >= 8 else 1), dict(steps=16), 'onset:8', 'step 8'),
    'first micro-batch': (dict(cost=lambda st, d, s, k, mb: 2 if mb == 0 else 1), {}, 'micro-batch:0', 'every stage'),
    'first backward': (dict(cost=lambda st, d, s, k, mb: 4 if (s, k, mb) == (3, 'B', 0) else 1), {}, 'cell:3.B0', 'B0'),
    'a slow replica': (dict(cost=lambda st, d, s, k, mb: 1.2 if d == 1 else 1), dict(dp=4), 'replica:1', 'Replica 1'),
    'slow every fifth step': (dict(cost=lambda st, d, s, k, mb: 1.5 if s == 3 and st % 5 == 2 else 1), dict(steps=20), 'stage:3', 'every 5th'),
    'very slow from a late step on': (dict(cost=lambda st, d, s, k, mb: 1.6 if s == 0 and st >= 15 else 1), dict(steps=20), 'stage:0', 'from step 15'),
    'slow in two steps': (dict(cost=lambda st, d, s, k, mb: 2 if s == 1 and st in (4, 11) else 1), dict(steps=16), 'stage:1', 'Steps 4, 11'),
    'all slow every third step': (dict(cost=lambda st, d, s, k, mb: 1.4 if st % 3 == 0 else 1), dict(stages=1, steps=12), 'every:3', 'every third'),
    'a replica slow in one step': (dict(cost=lambda st, d, s, k, mb: 2 if d == 3 and st == 5 else 1), dict(dp=4), 'replica:3', 'Step 5'),
    'one hang in all replicas': (dict(message=lambda st, d, a, b, mb, k: 1500 if (st, a, b, mb, k) == (5, 1, 2, 4, 'F') else 0),
                                 dict(messages=True, dp=4), 'hang:1-2', '3 other replicas'),
    'a link slow from a step on': (dict(message=lambda st, d, a, b, mb, k: 8 if (a, b) == (1, 2) and st >= 10 else 0),
                                   dict(messages=True, steps=20, micro_batches=16), 'link:1-2', 'from step 10'),
    'a link slow every third step': (dict(message=lambda st, d, a, b, mb, k: 15 if (a, b) == (1, 2) and st % 3 == 0 else 0),
                                     dict(messages=True, steps=12, micro_batches=16), 'link:1-2', 'every third'),
    'one rank begins late': (dict(pause=lambda st, d, s, k, mb: 90 if (d, s, k, mb) == (1, 2, 'F', 0) else 0), dict(dp=4, micro_batches=16), 'rank:6',
                             'between steps'),
    'two replicas slow': (dict(cost=lambda st, d, s, k, mb: 1.2 if d >= 4 else 1), dict(dp=6, micro_batches=6), 'replica:4', 'Replicas 4, 5'),
    'two slow ranks': (dict(cost=lambda st, d, s, k, mb: 1.25 if d == 0 and s in (2, 3) else 1), dict(dp=4), 'rank:2', 'Ranks 2, 3'),
    'most links slow': (dict(message=lambda st, d, a, b, mb, k: 4 if (a, b) in ((0, 1), (1, 2)) else 0), dict(micro_batches=12), 'link:0-1', 'Slow too'),
    'a link slower with every step': (dict(message=lambda st, d, a, b, mb, k: st if (a, b) == (2, 1) else 0), dict(messages=True, steps=16, micro_batches=12),
                                      'link:2-1', 'Messages from stage 2 to stage 1'),
    'a link slow both ways every second step': (dict(message=lambda st, d, a, b, mb, k: 5 * (st % 2)), dict(stages=2, steps=20), 'link:0-1', 'Slow too'),
    'two slow stages': (dict(cost=lambda st, d, s, k, mb: 1.3 if s in (0, 2) else 1), {}, 'stage:0', 'All of them'),
    'one of three micro-batches': (dict(cost=lambda st, d, s, k, mb: 2 if mb == 2 else 1), dict(micro_batches=3), 'micro-batch:2', 'every stage'),
}


class ExplainPlanted(Case):
    def told(self, name, planted):
        path = planted.write(self.dir / (name.replace(' ', '-').replace(',', '') + '.csv'))
        return path, json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)

    def test_each_is_named_and_priced(self):
        for name, (cause, how, key, words) in CASES.items():
            with self.subTest(name):
                options = {**WELL, **how}
                well, ill = Planted(**options), Planted(**options, **cause)
                path, found = self.told(name, ill)
                true_ns = (ill.period - well.period) * 1e6
                self.assertGreater(true_ns, 0.02 * ill.period * 1e6, 'the case itself')
                self.assertTrue(found['findings'], found['closing_en'])
                first = found['findings'][0]
                self.assertIn(key, first['causes'])
                self.assertEqual(first['cause'], first['causes'][0])
                self.assertIn(words, first['title_en'] + first['detail_en'])
                self.assertAlmostEqual(first['lost_ns'], true_ns, delta=max(SHARE * true_ns, POINTS * ill.period * 1e6))
                self.assertAlmostEqual(found['period_ns'], ill.period * 1e6, delta=0.002 * ill.period * 1e6)
                # The account is a sum.
                self.assertAlmostEqual(sum(line['ns'] for line in found['account']), found['step_ns'], delta=20)
                base = well.write(self.dir / 'well.csv')
                changed = run('diff', base, path, '--fail-on', '3%', '--format', 'json', '-q')
                growth = ill.period / well.period - 1
                if growth > 0.04:
                    self.assertEqual(changed.returncode, 1, f'diff does not see that the period grew by {growth:.3f}')
                self.assertEqual(run('diff', path, base, '--fail-on', '3%', '-q').returncode, 0)

    def test_what_all_stages_do_is_no_stages_own(self):
        for name, at in {'onset': lambda st: st >= 13, 'every third': lambda st: st % 3 == 0}.items():
            for stages, dp, seed in ((2, 4, 1), (4, 3, 2), (3, 1, 3)):
                with self.subTest(name, stages=stages):
                    _, found = self.told(f'all-{name}-{stages}', Planted(**{**WELL, 'stages': stages, 'dp': dp, 'steps': 20, 'jitter': 0.05, 'seed': seed},
                                                                         cost=lambda st, d, s, k, mb: 1.4 if at(st) else 1))
                    self.assertEqual([f['id'] for f in found['findings']], ['run.slower'], [f['title_en'] for f in found['findings']])

    def test_sends_that_block_are_told_from_hosts(self):
        options = dict(WELL, stages=3, micro_batches=12, messages=True, latency=4)
        well, ill = Planted(**options), Planted(**options, blocking=True)
        found = self.told('blocking', ill)[1]['findings']
        told = next((f for f in found if 'blocking' in f['cause'].split()), None)
        self.assertIsNotNone(told, [f['title_en'] for f in found])
        true_ns = (ill.period - well.period) * 1e6
        self.assertLess(abs(told['lost_ns'] - true_ns), max(POINTS * ill.period * 1e6, SHARE * true_ns))
        self.assertFalse([f['title_en'] for f in found if 'rank:' in f['cause'] or 'host' in f['cause']])
        self.assertFalse([f['title_en'] for f in self.told('not-blocking', well)[1]['findings'] if 'blocking' in f['cause'].split()])

    def test_pauses_stand_out_from_late_starts_everywhere(self):
        # A busy machine starts every fifth cell a little late on all ranks; rank 2 alone stops for long, now and then.
        busy = lambda st, d, s, k, mb: 3.0 if chance('busy', st, s, k, mb) < 0.2 else 0.0  # noqa: E731
        stops = lambda st, d, s, k, mb: 150.0 if (s, k, mb) == (2, 'F', 5) and st % 2 else busy(st, d, s, k, mb)  # noqa: E731
        options = dict(WELL, steps=20, messages=True)
        well, ill = Planted(**options, pause=busy), Planted(**options, pause=stops)
        _, found = self.told('stands-out', ill)
        first = found['findings'][0]
        self.assertEqual(first['id'], 'host.pauses', [f['title_en'] for f in found['findings']])
        self.assertIn('host:2', first['causes'])
        true_ns = (ill.period - well.period) * 1e6
        self.assertAlmostEqual(first['lost_ns'], true_ns, delta=max(SHARE * true_ns, POINTS * ill.period * 1e6))

    def test_healthy_runs_are_silent(self):
        for name, how in {'plain': {}, 'messages': dict(messages=True), 'replicas': dict(dp=4), 'jitter': dict(jitter=0.05), 'one stage': dict(stages=1),
                          'long': dict(steps=24)}.items():
            with self.subTest(name):
                _, found = self.told(name, Planted(**{**WELL, **how}))
                self.assertEqual([f['title_en'] for f in found['findings']], [])
                self.assertEqual(found['lost_ns'], 0)

    def test_nothing_that_is_lost_is_denied(self):
        # Short tails and gaps are no fault, and yet a line of the account.
        _, found = self.told('account', Planted(**WELL, tail=lambda s: (8.0, 9.0)))
        self.assertEqual(found['findings'], [])
        self.assertNotIn('Nothing', found['closing_en'])
        self.assertIn('optimizer', found['closing_en'])
        self.assertIn('all-reduce', found['closing_en'])


if __name__ == '__main__':
    unittest.main()
