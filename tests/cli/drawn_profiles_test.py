"""stageline explain on profiles of jobs that are drawn at random (tests/gen/drawn_jobs.py): healthy ones have no culprit, planted faults have the right one at its cost. bench/drawn_profiles.py asks of hundreds."""
import itertools
import json
import re
import sys
import unittest

from support import SOURCE, Case, run

sys.path[:0] = [str(SOURCE / 'tests' / 'gen'), str(SOURCE / 'bench')]
import drawn_jobs  # noqa: E402
import drawn_profiles  # noqa: E402

CULPRITS = ('comm.slow_link', 'comm.small', 'comm.bucket', 'rank.late', 'rank.slow')


class DrawnProfiles(Case):
    def findings(self, seed):
        return json.loads(run('explain', self.dir / str(seed), '--format', 'json', '-q', check=0).out)['findings']

    def faulty(self, kind, count, first=3000):
        """Cases of a kind that cost 2 % or more."""
        for seed in itertools.count(first):
            if count == 0:
                return
            if drawn_jobs.Case(seed, True).kind == kind:
                case, cost = drawn_jobs.make(seed, True, str(self.dir / str(seed)))
                if cost >= 0.02:
                    count -= 1
                    yield case, cost, self.findings(seed)

    def test_a_healthy_job_has_no_culprit(self):
        for seed in range(3000, 3012):
            drawn_jobs.make(seed, False, str(self.dir / str(seed)))
            self.assertEqual([f['id'] for f in self.findings(seed) if f['id'] in CULPRITS], [], seed)

    def test_slow_links_and_cards_are_named_at_their_cost(self):
        for kind in ('nic', 'link'):
            for case, cost, findings in self.faulty(kind, 3):
                with self.subTest(kind, seed=case.seed):
                    links = [f for f in findings if f['id'] == 'comm.slow_link']
                    self.assertEqual(len(links), 1)
                    self.assertTrue(drawn_profiles.names(case, links[0]))
                    self.assertNotIn('rank.late', [f['id'] for f in findings])
                    told = float(re.search(r'take ([0-9.]+)×', links[0]['detail_en']).group(1))
                    self.assertAlmostEqual(told, case.by, delta=0.1 * case.by)
                    self.assertAlmostEqual(links[0]['lost_share'], cost, delta=max(0.01, 0.15 * cost))
                    self.assertIn('network cards' if kind == 'nic' else 'links within the host', links[0]['detail_en'])
                    self.assertTrue(links[0]['title_zh'] and links[0]['detail_zh'])

    def test_the_title_names_the_rank_whose_host_alone_is_late(self):
        for case, _, findings in self.faulty('late', 3):
            with self.subTest(seed=case.seed):
                for f in findings:
                    if f['id'] in ('host.busy', 'device.idle', 'input.loading'):
                        self.assertIn(f'on rank {case.rank}', f['title_en'])
                        self.assertIn(f'rank {case.rank}', f['title_zh'])

    def test_gradients_in_one_piece_and_in_too_many(self):
        for kind, words in (('bucket', 'in one allreduce|in one all_reduce'), ('storm', 'is latency')):
            for case, cost, findings in self.faulty(kind, 2):
                with self.subTest(kind, seed=case.seed):
                    named = [f for f in findings if f['id'] in drawn_profiles.NAMES[kind]]
                    self.assertEqual(len(named), 1)
                    self.assertRegex(named[0]['detail_en'], words)
                    self.assertIn('bucket_cap_mb', named[0]['detail_en'])
                    self.assertAlmostEqual(named[0]['saving_ns'], named[0]['lost_ns'], delta=1)

    def test_late_and_slow_ranks(self):
        for kind in ('late', 'slow'):
            for case, cost, findings in self.faulty(kind, 4):
                with self.subTest(kind, seed=case.seed):
                    of_rank = [f for f in findings if case.rank in drawn_profiles.ranks_of(f) or f['id'] in ('rank.late', 'rank.slow', 'device.idle')]
                    self.assertEqual(len(of_rank), 1, findings)  # one finding for one time
                    self.assertTrue(drawn_profiles.names(case, of_rank[0]))
                    self.assertAlmostEqual(of_rank[0]['lost_share'], cost, delta=max(0.01, 0.15 * cost))
                    self.assertNotIn('comm.slow_link', [f['id'] for f in findings])

    def test_exposed_communication_says_how_fast_it_is(self):
        case, _, findings = next(self.faulty('saturated', 1))
        exposed = next(f for f in findings if f['id'] == 'comm.exposed')
        self.assertRegex(exposed['detail_en'], r'Most of it is all_reduce of \d+ ranks.*: [0-9.]+ GB/s on the bus without waiting')


if __name__ == '__main__':
    unittest.main()
