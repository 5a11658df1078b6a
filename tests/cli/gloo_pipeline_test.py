"""Pipelines of torch on hosts alone: the first finding names the planted culprit at its price, with frames and without, however busy the machine."""
import json
import pathlib
import re
import sys
import unittest

from support import SHARED, Case, flaws, info, needs_shared, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import gloo_pipeline  # noqa: E402

FAULTS = {'sleep:1,5': ('rank.late_launch', 1), 'gc:3,200': ('host.pauses', 3), 'send:1,40': ('sends.late', 1), 'data:0,30': ('between.steps', 0)}


class Faults(Case):
    def told(self, name, **options):
        ranks, step = gloo_pipeline.make(**options)
        gloo_pipeline.write(self.dir / name, ranks)
        return json.loads(run('explain', self.dir / name, '--format', 'json', '-q', check=0).out), step

    def test_the_culprit_is_named_first_at_its_price(self):
        for frames in (False, True):
            for noise in (False, True):
                healthy = gloo_pipeline.make(frames=frames, noise=noise)[1]
                for fault, (id_, rank) in FAULTS.items():
                    with self.subTest(fault=fault, frames=frames, noise=noise):
                        answer, step = self.told(f'{fault[:4]}{frames}{noise}', fault=fault, frames=frames, noise=noise)
                        first = answer['findings'][0]
                        self.assertEqual((first['id'], first['places'][0].get('ranks')), (id_, [rank]), first['title_en'])
                        self.assertAlmostEqual(100 * first['lost_share'], 100 * (1 - healthy / step), delta=3 if noise else 1.5)

    def test_frames_say_what_the_host_did(self):
        for fault, words in (('gc:3,200', 'collect (train.py:92)'), ('send:1,40', 'sleep (train.py:100)')):
            first = self.told(fault[:4], fault=fault, frames=True, noise=True)[0]['findings'][0]
            self.assertIn(words, first['title_en'])
            self.assertNotIn('garbage', first['title_en'] + first['detail_en'])

    def test_a_loader_is_named(self):
        first = self.told('data', fault='data:0,30')[0]['findings'][0]
        self.assertIn('(DataLoader)', first['title_en'])
        self.assertIn('on rank 0', first['detail_en'])

    def test_a_loader_with_worker_processes_needs_more_of_them(self):
        ranks, _ = gloo_pipeline.make(fault='data:0,30')
        for event in (e for events in ranks for e in events):
            event['name'] = event['name'].replace('_SingleProcessDataLoaderIter', '_MultiProcessingDataLoaderIter')
        gloo_pipeline.write(self.dir, ranks)
        found = json.loads(run('explain', self.dir, '--format', 'json', '-q', check=0).out)['findings']
        told = next(f for f in found if f['id'] == 'between.steps')
        self.assertIn('raise num_workers', told['detail_en'])
        self.assertNotIn('Give the DataLoader worker processes', told['detail_en'])
        rows = json.loads(run('analyze', 'tb-overview', self.dir, '--table', 'recommendations', '--format', 'json', '-q', check=0).out)['tables'][0]['rows']
        advice = [row['text'] for row in rows if row['recommendation'] == 'input-loading']
        self.assertTrue(advice)
        for text in advice:
            self.assertIn('raise num_workers', text)

    def test_late_starts_say_how_much_of_them_is_open_receives(self):
        shares = []
        for stages, wake in ((3, 0.0), (3, 4.0), (3, 20.0), (4, 20.0)):
            found = self.told(f'{stages}{wake}', stages=stages, noise=0.2, wake=wake)[0]['findings']
            told = next(f for f in found if f['id'] == 'host.late_starts')['detail_en']
            share = re.match(r'For at least ([\d.]+)\u202f% of that time the recorded receives have not ended', told)
            shares.append(float(share[1]) if share else 0.0)
            self.assertEqual(told.startswith('Inputs are ready'), not share)
        self.assertLess(shares[0], shares[1])
        self.assertLess(shares[1], min(shares[2:]))
        self.assertGreater(min(shares[2:]), 25)
        self.assertLess(max(shares[2:]), 75)  # 72 and 74 % were planted

    def test_one_link_has_one_cause(self):
        for stages, fault, seed in ((2, '', 1), (2, '', 3), (3, 'link:0,4', 2), (4, 'link:0,4', 3), (2, 'link:0,4', 1)):
            keys = [f['key'] for f in self.told(f'{stages}{fault[:4]}{seed}', stages=stages, fault=fault, seed=seed, wake=8.0)[0]['findings'] if f['key'].startswith('link:')]
            self.assertTrue(keys)
            self.assertEqual(len(keys), len(set(keys)), keys)

    def test_our_export_keeps_what_fills_a_gap(self):
        self.told('data', fault='data:0,30')
        run('export', self.dir / 'data', '--to', 'perfetto', '-o', self.dir / 'run.pftrace', '-q', check=0)
        said = [json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)['findings'][0] for path in (self.dir / 'data', self.dir / 'run.pftrace')]
        self.assertEqual(*[(f['title_en'], f['detail_en'], f['lost_ns']) for f in said])

    def test_hosts_alone_are_offered_nothing_for_devices(self):
        self.told('sleep', fault='sleep:1,5')
        said = run('what-if', self.dir / 'sleep', '-q', check=0).out
        self.assertIn('no launch delays', said)
        self.assertNotIn('CUDA', said)

    def test_a_send_that_waits_for_its_host_is_no_slow_link(self):
        found = self.told('sends', fault='send:1,40')[0]['findings']
        self.assertFalse({'link.slow', 'message.tail', 'cell.slow'} & {f['id'] for f in found}, [f['title_en'] for f in found])

    @needs_shared
    def test_a_receive_that_ends_with_its_host_s_work_is_no_slow_link(self):
        # An interleaved schedule posts receives, computes, and then waits for them.
        found = json.loads(run('explain', SHARED / 'faults/torch_runs/01-zb-empty-input-gradients/input', '--json', '-q', check=0).out)['findings']
        self.assertEqual((found[0]['id'], found[0]['places'][0]['stage']), ('stage.slow', 2))
        self.assertNotIn('link.slow', [f['id'] for f in found])

    def test_neighbours_of_a_missing_rank_are_not_each_other_s(self):
        ranks, _ = gloo_pipeline.make()
        for events in ranks:
            for event in events:
                event.get('args', {}).pop('Concrete Inputs', None)  # nothing says the peers
        gloo_pipeline.write(self.dir / 'run', ranks)
        self.assertEqual(info(self.dir / 'run')['stages'], 4)
        (self.dir / 'run/rank2.json').unlink()
        report = info(self.dir / 'run')
        self.assertIn('cells.no_flow', flaws(report))
        self.assertEqual(report['cells'], 0)

    def test_the_pass_that_finds_shapes_is_no_micro_batch(self):
        steps = []
        for shapes in (False, True):
            answer = self.told(f'shapes{shapes}', fault='sleep:1,5', shapes=shapes)[0]
            steps.append((answer['steps'], answer['findings'][0]['id']))
            report = info(self.dir / f'shapes{shapes}')
            self.assertNotIn('cells.inferred_unknown', flaws(report))
            self.assertEqual((report['stages'], report['micro_batches'], report['steps']), (4, 8, 8))
            ends = run('sql', self.dir / f'shapes{shapes}', "SELECT count(*) FROM cells WHERE (rank = 0 AND kind = 'RF') OR (rank = 3 AND kind = 'RB')",
                       '--format', 'csv', '-q', check=0).out.split()[-1]
            self.assertEqual(ends, '0')
        self.assertEqual(*steps)


if __name__ == '__main__':
    unittest.main()
