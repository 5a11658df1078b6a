"""Tokens of experts, and communication under computation by kind of group: a torch trace of two ranks that share experts."""
import csv
import json
import sys
import unittest
from unittest import mock

from support import SOURCE, Case, run

sys.path.insert(0, str(SOURCE / 'tests/gen'))
import experts  # noqa: E402
from experts import PRODUCTS, TOKENS, Writer, write  # noqa: E402


class ExpertLoadTest(Case):
    def setUp(self):
        super().setUp()
        write(self.dir / 'trace')

    def ask(self, analysis, table, *options):
        out = run('analyze', analysis, self.dir / 'trace', '--format', 'csv', '--table', table, '--include-last-profiler-step', *options, check=0)
        return list(csv.reader(out.out.splitlines()))[1:]

    def test_tokens_of_forwards_are_counted_once(self):
        rows = self.ask('expert-load', 'expert-load')
        self.assertEqual([[row[0], row[1], *row[-4:]] for row in rows],
                         [[str(rank), str(step), '2', str(2 * TOKENS[rank]), str(TOKENS[rank] * 250), str(TOKENS[rank] * 250)]
                          for rank in range(2) for step in (3, 4)])

    def test_the_fullest_rank_of_a_group_is_named_with_what_it_takes_longer(self):
        rows = self.ask('expert-load', 'expert-groups')
        self.assertEqual([row[0] for row in rows], ['3', '4'])
        for row in rows:
            *_, mean, most, fullest, ratio, longer = row
            self.assertEqual((float(mean), int(most), fullest, float(ratio)), (2048, 3072, '0', 1.5))
            self.assertEqual(int(longer), (1536 - 512) * 500 // 2)

    def test_products_are_listed_in_their_order(self):
        rows = self.ask('expert-load', 'expert-products')
        self.assertEqual([row[2] for row in rows], ['0', '1'] * 4)

    def test_overlap_is_told_by_kind_of_group(self):
        rows = self.ask('comm-comp-overlap', 'comm-comp-overlap-by-kind')
        self.assertEqual([row[:2] for row in rows], [['0', '3'], ['0', '4'], ['1', '3'], ['1', '4']])
        for row in rows:
            rank, step, kind, communication, both, exposed, _ = row
            self.assertEqual((kind, int(communication)), ('mesh_ep', TOKENS[int(rank)] * 1000 // 16))
            self.assertEqual((int(both), int(exposed)), (int(communication), 0))

    def explained(self, tokens):
        with mock.patch.object(experts, 'TOKENS', tokens):
            write(self.dir / 'meets', meets=True)
        return json.loads(run('explain', self.dir / 'meets', '--json', '-q', check=0).out)['findings']

    def test_uneven_experts_are_found_instead_of_a_slow_rank(self):
        found = self.explained(TOKENS)
        self.assertEqual([x['id'] for x in found if x['id'] in ('experts.uneven', 'rank.slow', 'rank.late')], ['experts.uneven'])
        first = next(x for x in found if x['id'] == 'experts.uneven')
        self.assertIn('Rank 0 gets 1.50× the mean tokens of the ranks that share experts with it (0-1)', first['detail_en'])
        # The product for the gradient of the weights does not say its tokens, and keeps its time.
        saving_us = (PRODUCTS - 1 / 4) * (TOKENS[0] - TOKENS[1]) / 2
        self.assertAlmostEqual(first['lost_ns'] / 1000 / saving_us, 1, delta=0.05)

    def test_even_experts_are_not_reported(self):
        self.assertNotIn('experts.uneven', [x['id'] for x in self.explained([1024, 1024])])

    def test_a_trace_without_shapes_says_what_is_missing(self):
        (self.dir / 'bare.json').write_text(Writer(0).text().replace('Input Dims', 'Other Dims'))
        said = run('analyze', 'expert-load', self.dir / 'bare.json', check=2)
        self.assertIn('no grouped matrix product', said.err)
        self.assertIn('record_shapes=True', said.err)

    def test_modes_of_msprof_analyze_are_answered_by_name(self):
        for mode, hint in (('ep_load_balance', 'expert-load'), ('computational-op-masking', 'comm-comp-overlap-by-kind'),
                           ('communication_bottleneck', 'slow-rank'), ('calibrate_npu_gpu', 'diff')):
            said = run('analyze', mode, self.dir / 'trace', check=2)
            self.assertIn(f'no analysis "{mode}"', said.err)
            self.assertIn(hint, said.err)
        for mode, hint in (('all', 'export --to cluster-db'), ('cluster_time_summary', 'analyze cluster-time-summary DIR --compat msprof'), ('slow_link', 'analyze slow-link DIR'),
                           ('operator_mfu', 'analyze roofline --compat msprof'), ('pp_chart', 'pp-chart -d DIR')):
            self.assertIn(hint, run('cluster', '-m', mode, '-d', 'DIR', check=2).err)
        for command, hint in (('advisor', 'explain'), ('compare', 'diff')):
            self.assertIn(hint, run(command, 'all', '-d', 'DIR', check=2).err)


if __name__ == '__main__':
    unittest.main()
