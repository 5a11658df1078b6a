"""Training on hosts alone: which rank the others wait for, at which price, and which rank makes a step long."""
import json
import sys
import unittest

from support import SOURCE, Case, run

sys.path.insert(0, str(SOURCE / 'tests/gen'))
import host_training  # noqa: E402


class LateRanks(Case):
    def told(self, **of):
        for old in self.dir.glob('rank*.json'):
            old.unlink()
        host_training.write(self.dir, host_training.make(**of))
        return json.loads(run('explain', self.dir, '--format', 'json', '-q', check=0).out)

    def late(self, **of):
        found = [f for f in self.told(**of)['findings'] if f['id'] == 'rank.late']
        return found[0] if found else None

    def test_the_rank_that_comes_last_is_told_at_what_the_others_wait(self):
        # Far more of each collective is transfer than waiting.
        for kind, world, who, ms, how in (('ddp', 2, 1, 9, 'computes'), ('ddp', 4, 2, 9, 'sleeps'), ('ddp', 3, 0, 7, 'computes'), ('fsdp', 2, 1, 8, 'computes')):
            with self.subTest(kind=kind, world=world, how=how):
                args = dict(kind=kind, world=world, transfer=14 if kind == 'ddp' else 3, scatter=0.02)
                found = self.late(more=lambda rank, step: ms if rank == who else 0, how=how, **args)
                self.assertIsNotNone(found)
                self.assertEqual((found['rank'], found['places'][0]['ranks']), (who, [who]))
                usual = {'ddp': 20 + 14, 'fsdp': 20 + 8 * 3}[kind] + 1.3  # the buckets are reduced at one time
                self.assertAlmostEqual(found['lost_share'], ms / (usual + ms), delta=0.02)
                self.assertRegex(found['detail_en'], r'waits [0-9.]+\s\w+ in collectives per step \(median of the others: [0-9.]+\s\w+\), so the others wait')
                self.assertEqual('It computes for' in found['detail_en'], how == 'computes')

    def test_without_steps_no_share_is_of_a_step(self):
        told = []
        for steps in (True, False):
            ranks = host_training.make(transfer=3, more=lambda rank, step: 12 if rank == 1 else 0, how='computes')
            for events in ranks:
                events[:] = [e for e in events if steps or not e.get('name', '').startswith('ProfilerStep')]
            host_training.write(self.dir, ranks)
            found = json.loads(run('explain', self.dir, '--format', 'json', '-q', check=0).out)['findings']
            late = next(f for f in found if f['id'] == 'rank.late')
            told.append((late, ' '.join(f[key] for f in found for key in ('title_en', 'note_en', 'detail_en'))))
        (with_steps, said), (without, said_without) = told
        self.assertEqual(with_steps['rank'], without['rank'])
        self.assertIn('of each step', said)
        self.assertNotRegex(said_without, 'each step|per step|step time')

    def test_ranks_that_are_late_by_chance_are_not_told(self):
        for kind, world, scatter in (('ddp', 2, 0.2), ('ddp', 4, 0.1), ('fsdp', 2, 0.2)):
            for seed in range(1, 6):
                told = self.told(kind=kind, world=world, scatter=scatter, seed=seed, transfer=14 if kind == 'ddp' else 3)
                self.assertFalse({'rank.late', 'step.outlier'} & {f['id'] for f in told['findings']}, (kind, world, seed, told['findings']))

    def test_waiting_in_a_node_of_autograd_is_no_computing(self):
        for units, work, transfer in ((2, 10, 4), (6, 24, 3)):
            told = self.told(kind='fsdp', units=units, work=work, transfer=transfer)
            share = {p['id']: p['share'] for p in told['parts']}
            step = work + 2 * units * transfer + 1.3
            self.assertAlmostEqual(share['compute'], (work + 1) / step, delta=0.03)
            self.assertAlmostEqual(share['comm'], 2 * units * transfer / step, delta=0.03)

    def test_a_long_step_is_of_the_rank_that_delays_it(self):
        for world, who, ms, slow in ((2, 0, 110, (1, 4, 6)), (3, 2, 70, (5,))):
            # The others wait for it in the step after that, which is the longest one.
            told = self.told(world=world, more=lambda rank, step: ms if rank == who and step in slow else 5 if step - 1 in slow else 0, how='saves', scatter=0.03)
            found = next(f for f in told['findings'] if f['id'] == 'step.outlier')
            self.assertEqual((found['rank'], found['places'][0]['ranks']), (who, [who]))
            self.assertIn(f'longer than usual for rank {who}', found['detail_en'])

    def test_a_step_that_is_long_without_waiting_is_of_its_ranks(self):
        told = self.told(more=lambda rank, step: 60 if step == 4 else 0, scatter=0.02)
        found = next(f for f in told['findings'] if f['id'] == 'step.outlier')
        self.assertEqual(found['step'], 6)
        self.assertIn('does not show which one', found['detail_en'])

    def test_a_rank_that_is_always_late_makes_no_single_step_long(self):
        told = self.told(more=lambda rank, step: 12 if rank == 1 else 50 if step == 3 and rank == 0 else 0)
        found = [f for f in told['findings'] if f['id'] == 'step.outlier']
        self.assertTrue(found)
        self.assertNotIn('longer than usual for rank 1', found[0]['detail_en'])


if __name__ == '__main__':
    unittest.main()
