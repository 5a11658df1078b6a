"""Training without a pipeline: what explain says of recordings whose faults and times are known."""
import json
import sys
import unittest

from support import SOURCE, Case, run

sys.path.insert(0, str(SOURCE / 'tests/gen'))
import recording  # noqa: E402


class Training(Case):
    def reported(self, fault, *flags):
        folder = self.dir / (fault.replace(' ', '-') or 'none')
        folder.mkdir()
        recording.make_training(folder, fault)
        answer = json.loads(run('explain', folder, '--format', 'json', *flags, check=0).out)
        return answer, {f['id']: f for f in answer['findings']}

    def first(self, fault, id_, ms, within=0.02):
        """Returns the first finding, whose price is the planted one in ms per step."""
        answer, _ = self.reported(fault)
        found = answer['findings'][0]
        self.assertEqual(found['id'], id_, [f['title_en'] for f in answer['findings']])
        self.assertAlmostEqual(found['lost_ns'] / 1e6, ms, delta=within * ms, msg=found)
        return found

    def test_what_is_in_order(self):
        answer, found = self.reported('')
        # 0.5 + 10 + 20 + 4 + 0.3 + 2 + 0.3 ms; the transfer, which is a tenth of it, is all there is to say.
        self.assertAlmostEqual(answer['step_ns'] / 1e6, 37.1, delta=0.1)
        self.assertEqual(list(found), ['comm.exposed'])
        self.assertAlmostEqual(sum(p['share'] for p in answer['parts']), 1, delta=1e-6)

    def test_input(self):
        self.assertIn('Every rank waits at least 15', self.first('data', 'input.loading', 15)['detail_en'])

    def test_input_of_one_rank_is_that_ranks(self):
        found = self.first('data on one', 'rank.late', 8.5)
        self.assertIn('rank 2', found['title_en'])
        self.assertIn('wait for input takes 9', found['detail_en'])

    def test_straggler(self):
        found = self.first('straggler', 'rank.late', 7)
        self.assertIn('rank 1', found['title_en'])
        self.assertIn('forward takes 17', found['detail_en'])

    def test_straggler_whose_batches_no_loader_made(self):
        folder = self.dir / 'own batches'
        folder.mkdir()
        recording.make_training(folder, 'straggler', own_batches=True)
        answer = json.loads(run('explain', folder, '--format', 'json', check=0).out)
        found = answer['findings'][0]
        self.assertEqual([found['id'], found['rank']], ['rank.late', 1])
        self.assertAlmostEqual(found['lost_ns'] / 1e6, 7, delta=0.2)
        self.assertIn('4 ranks, no pipeline', run('explain', folder, check=0).out)

    def test_pause(self):
        found = self.first('pause', 'step.outlier', 2 * 299.7 / 20)
        self.assertIn('Rank 3 runs unrecorded work up to 300\u202fms longer than usual in 2 steps', found['title_en'])
        self.assertIn('steps: 6, 13', found['detail_en'])

    def test_pause_of_all_is_no_ranks_own(self):
        found = self.first('pause of all', 'step.outlier', 2 * 299.7 / 20)
        self.assertIn('All ranks run unrecorded work up to 300\u202fms longer than usual in 2 steps', found['title_en'])
        self.assertIn('all ranks pause together', found['detail_en'])
        self.assertIsNone(found['rank'])
        self.assertEqual(found['key'], 'all')

    def test_collectives_that_nothing_hides(self):
        found = self.first('wire', 'comm.exposed', 25)
        self.assertIn('all_reduce of gradients (default_pg, 4 ranks)', found['detail_en'])
        self.assertIn('for 8.00\u202fMB', found['detail_en'])

    def test_ranks_that_are_late_in_turns(self):
        found = self.reported('in turns')[1]
        self.assertIn('comm.waiting', found)
        self.assertNotIn('rank.late', found)

    def test_what_nobody_recorded(self):
        self.first('between', 'outside', 12.1)

    def test_an_export_is_still_a_training(self):
        for fault in ('straggler', 'data on one', 'in turns'):
            answer, _ = self.reported(fault)
            exported = self.dir / f'{fault}.pftrace'
            run('export', self.dir / fault.replace(' ', '-'), '-o', exported, '--to', 'perfetto', check=0)
            again = json.loads(run('explain', exported, '--format', 'json', check=0).out)
            kept = [[(f['id'], f['rank'], f['lost_ns']) for f in a['findings']] for a in (answer, again)]
            self.assertEqual(kept[0], kept[1])
            self.assertEqual([(p['id'], p['share']) for p in answer['parts']], [(p['id'], p['share']) for p in again['parts']])

    def test_text_in_both_languages(self):
        folder = self.dir / 'said'
        folder.mkdir()
        recording.make_training(folder, 'straggler')
        self.assertIn('Other ranks wait for rank 1', run('explain', folder, check=0).out)
        self.assertIn('4 ranks, no pipeline · 20 steps', run('explain', folder, check=0).out)
        self.assertIn('其他 rank 在等 rank 1', run('explain', folder, '--lang', 'zh', check=0).out)


if __name__ == '__main__':
    unittest.main()
