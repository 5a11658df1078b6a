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
                    self.assertRegex(links[0]['title_en'], r'^At least one link of ranks [0-9,-]+ is slow')
                    self.assertIn('network card' if kind == 'nic' else 'link within the host', links[0]['detail_en'])
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
        self.assertRegex(exposed['detail_en'], r'The largest part of the transfer without waiting is all_reduce of \d+ ranks.*: its bus bandwidth is [0-9.]+ GB/s, '
                                              r'and (NCCL estimates [0-9.]+ GB/s|the profile does not give the peak rate)')

    def test_exposed_communication_is_that_of_the_bar_and_says_which_causes_it_has(self):
        seen = {False: 0, True: 0}
        for case, cost, _ in itertools.chain(self.faulty('nic', 3, 745000), self.faulty('link', 2, 745000)):
            with self.subTest(seed=case.seed):
                told = json.loads(run('explain', self.dir / str(case.seed), '--format', 'json', '-q', check=0).out)
                text = run('explain', self.dir / str(case.seed), '-q', check=0).out.replace('\u202f', ' ')
                exposed = next((f for f in told['findings'] if f['id'] == 'comm.exposed'), None)
                if exposed is None:
                    continue
                link = next(f for f in told['findings'] if f['id'] == 'comm.slow_link')
                bar = re.search(r'([0-9.]+) %  exposed communication', text).group(1)
                self.assertIn(f'({bar}', exposed['value'].replace('\u202f', ' '))
                part = next(p['share'] for p in told['parts'] if p['id'] == 'comm')
                self.assertAlmostEqual(exposed['lost_share'], part, places=9)
                first = told['findings'].index(link) < told['findings'].index(exposed)
                seen[first] += 1
                of = f"at least one slow link of ranks {re.search(r'ranks ([0-9,-]+)', link['title_en']).group(1)}"
                self.assertIn(of, exposed['detail_en'])
                self.assertEqual(of in exposed['title_en'], not first)
                self.assertEqual(of in told['title_en'], not first)
                self.assertNotIn('largest loss', told['lead_en'])
                self.assertIn(f'exposed communication ({bar}', told['lead_en'].replace('\u202f', ' '))
        self.assertTrue(seen[False] and seen[True], seen)

    def test_costs_are_shares_of_the_one_step_that_the_headline_gives(self):
        apart = 0
        units = {'s': 1e9, 'ms': 1e6, 'µs': 1e3, 'ns': 1}

        def ns(text):
            return float(text[0]) * units[text[1]]
        for seed in (747003, 747007, 747001, 747004):  # in the first, 2 of 16 ranks end a step later than the others
            case, _ = drawn_jobs.make(seed, True, str(self.dir / str(seed)))
            said = json.loads(run('explain', self.dir / str(seed), '--format', 'json', '-q', check=0).out)
            lead = said['lead_en'].replace('\u202f', ' ')
            with self.subTest(seed=seed):
                step = ns(re.search(r'Steps take ([0-9.]+) (\w+) on average', lead).groups())
                window = ns(re.search(rf'{case.steps} steps in ([0-9.]+) (\w+)\.', lead).groups())
                self.assertAlmostEqual(case.steps * step / window, 1, delta=0.006)  # three digits each
                for f in said['findings']:
                    self.assertAlmostEqual(f['lost_ns'], f['lost_share'] * step, delta=0.006 * f['lost_ns'], msg=f['id'])
                larger = [f for f in said['findings'][1:] if f['lost_ns'] > said['findings'][0]['lost_ns']]
                self.assertEqual('listed first, even if another loss is larger' in lead, bool(larger))
                apart += bool(larger)
        self.assertTrue(0 < apart < 4, apart)

    def test_a_launch_alone_is_no_place_and_chance_is_no_evidence(self):
        exposed = late = 0
        for case, _, findings in self.faulty('late', 3, 747000):
            for f in findings:
                self.assertNotIn('from cudaLaunchKernel', f['detail_en'])
                exposed += f['id'] == 'comm.exposed'
                if f['id'] == 'rank.late' and 'collective time' in f['detail_en']:
                    late += 1
                    own, usual = re.search(r'waits ([0-9.]+\s\w+) in collectives per step \(median of the others: ([0-9.]+\s\w+)\)', f['detail_en']).groups()
                    self.assertNotEqual(own, usual)
                    self.assertNotIn('came last', f['detail_en'])
        self.assertTrue(exposed and late, (exposed, late))

    def test_removing_several_losses_saves_at_least_what_each_of_them_does(self):
        several = paced = sums = 0
        for seed in range(745000, 745010):
            drawn_jobs.make(seed, True, str(self.dir / str(seed)))
            said = json.loads(run('what-if', self.dir / str(seed), '--format', 'json', '-q', check=0).out)
            fixes = next(table['rows'] for table in said['tables'] if table['name'] == 'fixes')
            savings = {row['fix']: row['saving_ns'] for row in fixes}
            if 'combined' not in savings:
                continue
            together = savings.pop('combined')
            several += 1
            self.assertGreaterEqual(together, max(savings.values()), seed)
            # The sentence gives the sum of the savings of each, after the explanation of them.
            told = re.search(r'The savings of each alone add up to (?:only )?([\d.]+)\s(ms|µs)', said['sentence'])
            if told:
                self.assertAlmostEqual(float(told[1]) * {'ms': 1e6, 'µs': 1e3}[told[2]] / sum(savings.values()), 1, delta=0.01)
                self.assertNotIn('because ranks then wait for other work', said['sentence'][told.end():])
                sums += 1
            for finding in self.findings(seed):
                if finding['lost_ns'] > 1.02 * together:
                    self.assertIn('because ranks then wait for other work', said['sentence'])
                    paced += 1
        self.assertTrue(several and paced and sums, (several, paced, sums))


if __name__ == '__main__':
    unittest.main()
