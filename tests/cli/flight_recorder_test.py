"""Dumps of the flight recorder: missing ranks, ranks that differ, and waits between ranks; damaged, strange and hostile
dumps."""
import csv
import io
import json
import pathlib
import pickle
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'server'))
import flight_recorder
from serving import Server
from support import SHARED, flaws, info, needs_shared, run


class FlightRecorderTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name) / 'dumps'
        self.addCleanup(self.temp.cleanup)

    def make(self, *options):
        wanted = flight_recorder.parse([str(o) for o in options])
        flight_recorder.write(flight_recorder.make(wanted), self.folder, wanted.json)
        return self.folder

    def problems(self, *options, folder=None):
        source = folder or self.make(*options)
        text = run('analyze', 'flight-recorder', source, '--table', 'flight-problems', '--format', 'csv', '-q', check=0).out
        return list(csv.DictReader(io.StringIO(text)))

    def explained(self, *options, folder=None):
        return json.loads(run('explain', folder or self.make(*options), '--format', 'json', '-q', check=0).out)

    def test_the_viewer_shows_collectives_of_ranks_without_stages(self):
        server = Server(str(self.make('--ranks', 4)), '--port', '0', '--quiet')
        try:
            self.assertEqual(server.wait_ready(), 'ready')
            shown = json.loads(server.get('/api/run')[2])
        finally:
            server.stop()
        self.assertEqual([rank['stage'] for rank in shown['ranks']], [-1] * 4)
        self.assertEqual([kind['code'] for kind in shown['kinds']], ['comm'])
        self.assertEqual(shown['groupings'], [])

    def test_healthy_dumps_have_no_finding(self):
        for options in ([], ['--messages'], ['--ring', 5], ['--ring', 5, '--messages'], ['--json'], ['--gloo'], ['--ranks', 2], ['--ranks', 64]):
            with self.subTest(options=options):
                self.folder = pathlib.Path(self.temp.name) / '_'.join(map(str, ['ok', *options]))
                self.assertEqual(self.problems(*options), [])
                said = self.explained(folder=self.folder)
                self.assertEqual([f['id'] for f in said['findings'] if f['id'] != 'none'], [])

    def test_every_fault_names_the_rank_whoever_it_is(self):
        # The odd one out may be the first rank: what most ranks say counts, not what rank 0 does.
        for kind, verdict in (('missing', 'missing'), ('type', 'type'), ('sizes', 'sizes'), ('dtype', 'dtype'), ('stuck', 'stuck'), ('twisted', 'sizes')):
            for culprit in (0, 2, 3):
                for more in ([], ['--messages'], ['--json']):
                    with self.subTest(kind=kind, culprit=culprit, more=more):
                        self.folder = pathlib.Path(self.temp.name) / f'{kind}{culprit}{len(more)}{more}'
                        rows = self.problems('--fault', f'{kind}:{culprit}', *more)
                        self.assertEqual([(r['verdict'], r['culprits'], r['group'], r['sequence']) for r in rows], [(verdict, str(culprit), '0', '7')])

    def test_missing_says_who_waits_and_where_the_missing_rank_was_last(self):
        said = self.explained('--fault', 'missing:2')
        self.assertEqual(said['findings'][0]['id'], 'collective.missing')
        self.assertEqual(said['findings'][0]['key'], 'rank:2')
        text = ' '.join(run('explain', self.folder, check=0).out.split())
        self.assertNotIn('1 %', text)
        for words in ('Rank 2 never issued all_reduce 7 of default_pg (group 0)', 'Ranks 0, 1, 3 have been waiting in it since', '/job/train.py(41): train_step'):
            self.assertIn(words, text)

    def test_a_collective_in_which_ranks_wait_is_not_through(self):
        for fault in ('missing:2', 'type:2', 'sizes:2', 'dtype:2'):
            with self.subTest(fault):
                self.folder = pathlib.Path(self.temp.name) / fault.replace(':', '')
                text = run('analyze', 'flight-recorder', self.make('--fault', fault), '--table', 'flight-groups', '--format', 'csv', '-q', check=0).out
                self.assertEqual([row['last_through'] for row in csv.DictReader(io.StringIO(text)) if row['group'] == '0'], ['6'])

    def test_two_sides_of_the_same_size_blame_nobody(self):
        rows = self.problems('--ranks', 2, '--fault', 'sizes:1')
        self.assertEqual([(r['verdict'], r['culprits']) for r in rows], [('sizes', '')])

    def test_ranks_that_wait_for_each_other_in_two_groups_are_a_ring(self):
        said = self.explained('--fault', 'ring:0', '--ranks', 2)
        self.assertEqual(said['findings'][0]['id'], 'collective.cycle')
        self.assertIn('are deadlocked in a cycle', said['findings'][0]['title_en'])

    def test_calls_that_nobody_is_through_with_are_no_fault(self):
        rows = self.problems('--fault', 'underway:0')
        self.assertEqual([(r['verdict'], r['culprits']) for r in rows], [('unfinished', '')])
        self.assertEqual([f['id'] for f in self.explained(folder=self.folder)['findings'] if f['id'] != 'none'], [])

    def test_gloo_keeps_state_scheduled_and_is_through_where_it_is_retired(self):
        self.assertEqual([(r['verdict'], r['culprits']) for r in self.problems('--gloo', '--fault', 'missing:1')], [('missing', '1')])

    def test_a_dump_after_the_time_out_says_what_one_before_it_does(self):
        for fault in ('missing:1', 'type:2'):
            with self.subTest(fault):
                said = [[(r['verdict'], r['culprits'], r['waiting']) for r in self.problems('--gloo', '--fault', fault, *more)]
                        for more in ([], ['--timed-out'])]
                self.assertEqual(said[0], said[1])
                self.assertEqual([row[:2] for row in said[1]], [(fault.split(':')[0], fault.split(':')[1])])

    def test_a_rank_without_a_dump_is_said_and_not_blamed(self):
        self.make('--fault', 'missing:2')
        (self.folder / 'nccl_trace_rank_3').unlink()
        rows = self.problems(folder=self.folder)
        self.assertEqual([(r['verdict'], r['culprits'], r['without_dump']) for r in rows], [('missing', '2', '3')])
        (self.folder / 'nccl_trace_rank_2').unlink()
        self.assertEqual([r['verdict'] for r in self.problems(folder=self.folder)], ['unfinished'])

    def test_pickle_and_json_of_one_rank_are_one_rank(self):
        self.make('--fault', 'missing:2')
        wanted = flight_recorder.parse(['--fault', 'missing:2'])
        flight_recorder.write(flight_recorder.make(wanted), self.folder, True)
        report = info(self.folder)
        self.assertEqual(report['ranks'], 4)
        self.assertEqual(flaws(report)['flight_recorder.repeated_rank']['count'], 4)

    def test_cut_dumps_keep_their_whole_calls_and_never_crash(self):
        self.make('--fault', 'missing:2')
        path = self.folder / 'nccl_trace_rank_1'
        whole = path.read_bytes()
        calls = lambda: len(list(csv.DictReader(io.StringIO(run('analyze', 'flight-recorder', self.folder, '--table', 'flight-calls', '--format', 'csv', '-q').out))))
        everybody = calls()
        seen = set()
        for size in list(range(0, len(whole), 61)) + [len(whole) - 1]:
            path.write_bytes(whole[:size])
            done = run('info', self.folder, '--json', check=0)
            names = flaws(json.loads(done.out))
            self.assertTrue(any(name in names for name in ('flight_recorder.damaged', 'flight_recorder.unusable_dump', 'flight_recorder.not_a_dump')), (size, names))
            seen.add(calls())
        self.assertGreater(len(seen), 8)
        self.assertLess(max(seen), everybody + 1)
        for size in range(0, len(whole), 97):
            text = json.dumps(flight_recorder.make(flight_recorder.parse([]))[1])
            cut = self.folder / 'nccl_trace_rank_1'
            cut.write_text(text[:len(text) * size // len(whole)])
            run('info', self.folder, check=0)

    def test_hostile_pickles_run_nothing_and_are_named(self):
        self.make()
        planted = pathlib.Path(self.temp.name) / 'planted'

        class Evil:
            def __reduce__(self):
                return (open, (str(planted), 'w'))
        dump = {'version': '2.10', 'pg_config': {}, 'pg_status': {}, 'entries': [Evil()]}
        (self.folder / 'nccl_trace_rank_9').write_bytes(pickle.dumps(dump, protocol=2))
        report = info(self.folder)
        self.assertFalse(planted.exists())
        self.assertIn('GLOBAL', flaws(report)['flight_recorder.unusable_dump']['message'])
        alone = run('info', self.folder / 'nccl_trace_rank_9', check=2)
        self.assertIn('nccl_trace_rank_9', alone.err)
        self.assertIn('runs no code', alone.err)

    def test_a_list_that_holds_itself_ends(self):
        self.make()
        ring = []
        ring.append(ring)
        dump = {'version': '2.10', 'pg_config': {'0': {'ranks': ring}}, 'entries': ring}
        (self.folder / 'nccl_trace_rank_9').write_bytes(pickle.dumps(dump, protocol=4))
        run('info', self.folder, check=0)

    def test_other_pickles_are_reported_what_they_are(self):
        path = pathlib.Path(self.temp.name) / 'snapshot.pickle'
        path.write_bytes(pickle.dumps({'segments': [], 'device_traces': []}))
        done = run('info', path, check=2)
        self.assertIn('pickle', done.err)

    @needs_shared
    def test_real_dumps(self):
        root = SHARED / 'imports' / 'flight_recorder'
        expected = {'ok': [], 'size': [('sizes', '3')], 'type': [('type', '1')], 'missing': [('missing', '2')], 'dtype': [('dtype', '2')],
                    'state': [('stuck', '2')]}
        for kind in ('nccl_shaped', 'nccl_shaped_p2p'):
            for fault, rows in expected.items():
                with self.subTest(kind=kind, fault=fault):
                    self.assertEqual([(r['verdict'], r['culprits']) for r in self.problems(folder=root / kind / fault)], rows)
        for fault, rows in {'ok': [], 'missing': [('missing', '2')], 'type': [('type', '1')]}.items():
            with self.subTest(kind='gloo', fault=fault):
                self.assertEqual([(r['verdict'], r['culprits']) for r in self.problems(folder=root / 'gloo_2.15' / fault)], rows)
        self.assertEqual([r['verdict'] for r in self.problems(folder=root / 'gloo_2.15' / 'sizes')], ['sizes'])


if __name__ == '__main__':
    unittest.main()
