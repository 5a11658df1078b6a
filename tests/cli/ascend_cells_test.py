"""Cells of Ascend profiles against what the generator of ../shared says it wrote: every label, every message."""
import csv
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import unittest

from support import SHARED, SOURCE, Case, flaws, needs_shared, run

GENERATOR = SOURCE.parent / 'shared' / 'tools' / 'gen_ascend.py'
KINDS = {'FB': 'B', 'b': 'I', 'w': 'W', 'L': 'B'}
DUALPIPE = ['--schedule', 'dualpipev', '--pp', '4', '--mb', '10']


@needs_shared
class Cells(Case):
    def make(self, *arguments):
        root = self.dir / 'run'
        subprocess.run([sys.executable, str(GENERATOR), '--out', str(root), *map(str, arguments)], check=True)
        return root

    def databases(self, root):
        return sorted(root.glob('*_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_*.db'))

    def alter(self, root, sql, ranks=None):
        for path in self.databases(root):
            if ranks is not None and int(path.stem.rsplit('_', 1)[1]) not in ranks:
                continue
            with sqlite3.connect(path) as db:
                db.execute(sql)
            db.close()

    def cells(self, root, *options):
        out = self.dir / 'out.json'
        run('export', root, '--to', 'json', '--output', out, *options, check=0)
        tables = {table['name']: table for table in json.loads(out.read_text())['tables']}
        self.notes = {row['name']: row for row in tables['diagnostics']['rows']}
        return [(c['rank'], c['step'], c['kind'], c['chunk'], c['micro_batch'], c['start_ns'], c['start_ns'] + c['dur_ns'])
                for c in tables['cells']['rows']]

    def truth(self, root, m, first_step=0):
        wanted = set()
        for path in root.glob('truth/rank*.csv'):
            rank = int(path.stem[4:])
            with open(path) as rows:
                for row in csv.DictReader(rows):
                    times = int(row['startNs']), int(row['endNs'])
                    for kind, label in (('F', row['fwd_mb']), (KINDS.get(row['kind'], row['kind']), row['bwd_mb'])):
                        if label:
                            wanted.add((rank, int(row['step']) - first_step, kind, int(label) // m, int(label) % m, *times))
        return wanted

    def check(self, *arguments, m, schedule, first_step=0, links=False):
        root = self.make(*arguments)
        cells = self.cells(root)
        work = [c for c in cells if c[2] in ('F', 'B', 'I', 'W')]
        self.assertEqual(set(work), self.truth(root, m, first_step))
        self.assertEqual(len(work), len(set(work)))
        self.assertIn(schedule, self.notes['cells.schedule']['message'])
        if links:
            with open(root / 'truth/links.csv') as rows:
                wanted = set()
                for row in csv.DictReader(rows):
                    kind, (chunk, mb) = row['token'][0], map(int, row['token'][1:].split('.'))
                    step, end = int(row['step']) - first_step, int(row['end'])
                    wanted.add((int(row['src_rank']), step, 'S' + kind, chunk, mb, int(row['send_start']), end))
                    wanted.add((int(row['dst_rank']), step, 'R' + kind, chunk, mb, int(row['recv_start']), end))
            self.assertEqual({c for c in cells if c[2] in ('SF', 'RF', 'SB', 'RB')}, wanted)
        return root

    def test_1f1b(self):
        self.check('--pp', 4, '--mb', 8, '--level', 1, m=8, schedule='1f1b', links=True)

    def test_1f1b_without_communication(self):
        self.check('--pp', 8, '--mb', 12, '--jitter', 0.2, '--slow', 1.5, m=12, schedule='1f1b')

    def test_1f1b_of_several_replicas_and_tensor_ranks(self):
        root = self.check('--pp', 2, '--dp', 2, '--tp', 2, '--mb', 4, '--level', 1, m=4, schedule='1f1b', links=True)
        self.assertEqual(flaws(json.loads(run('info', '--json', root).out)).get('cells.layout_contradicted'), None)

    def test_dualpipev(self):
        root = self.check(*DUALPIPE, '--level', 1, m=10, schedule='dualpipe-v-mindspeed', links=True)
        self.assertIn('dualpipe-v-mindspeed', run('info', root).out)

    def test_dualpipev_of_context_ranks(self):
        root = self.check(*DUALPIPE, '--cp', 2, m=10, schedule='dualpipe-v-mindspeed')
        reported = json.loads(run('info', '--json', root).out)
        self.assertEqual((reported['replicas'], reported['context_parallel']), (1, 2))
        self.assertIn(' × 2 context-parallel pipelines', run('info', root).out)
        self.assertIn(' × 2 context-parallel pipelines', run('explain', root).out)
        one = json.loads(run('info', '--json', '--ranks', 0, root).out)
        self.assertEqual((one['replicas'], one['context_parallel']), (1, 2))

    def test_dw_detached(self):
        self.check(*DUALPIPE, '--dw-detach', '--level', 1, m=10, schedule='dualpipe-v-mindspeed', links=True)
        self.assertIn('cells.dw_detached', self.notes)

    def test_empty_pops(self):
        self.check(*DUALPIPE, '--empty-pop', m=10, schedule='dualpipe-v-mindspeed')
        self.assertEqual(self.notes['cells.empty_pop']['count'], 32)

    def test_no_step_time(self):
        self.check(*DUALPIPE, '--no-step-time', m=10, schedule='dualpipe-v-mindspeed', first_step=10)
        self.assertIn('cells.steps', self.notes)

    def test_level_none_with_peers(self):
        self.check(*DUALPIPE, '--level-none-comm', 'escaped', m=10, schedule='dualpipe-v-mindspeed', links=True)

    def messages_of(self, cells):
        return {c for c in cells if c[2] in ('SF', 'RF', 'SB', 'RB') and c[4] is not None}

    def true_messages(self, root):
        with open(root / 'truth/links.csv') as rows:
            for row in csv.DictReader(rows):
                kind, (chunk, mb) = row['token'][0], map(int, row['token'][1:].split('.'))
                yield int(row['src_rank']), int(row['step']), 'S' + kind, chunk, mb, int(row['send_start']), int(row['end'])
                yield int(row['dst_rank']), int(row['step']), 'R' + kind, chunk, mb, int(row['recv_start']), int(row['end'])

    def test_level_none_without_peers(self):
        """Older torch_npu: 1F1B has every message all the same; DualPipeV all but those of both directions that begin together."""
        self.check('--pp', 4, '--mb', 8, '--level-none-comm', 'plain', m=8, schedule='1f1b', links=True)
        root = self.make(*DUALPIPE, '--level-none-comm', 'plain', '--out', self.dir / 'v')
        found, true = self.messages_of(self.cells(self.dir / 'v')), set(self.true_messages(self.dir / 'v'))
        self.assertEqual(len(found - true), 0)
        self.assertEqual({m for m in true - found if m[0] in (0, 3)}, set())  # the ends have one neighbour
        self.assertGreater(len(found), 300)
        missing = sorted((m[0], m[2][0], m[5], m[2]) for m in true - found)
        together = [a for a in missing if any(a[:2] == b[:2] and a[3] != b[3] and abs(a[2] - b[2]) < 5000 for b in missing)]
        self.assertGreaterEqual(len(together), len(missing) - 4)

    def test_an_end_without_its_neighbour_is_not_labelled_by_the_other(self):
        """Rank 2 of 0, 1, 2 has messages with rank 3, which is not here: they are not taken for rank 1's."""
        root = self.make('--pp', 4, '--mb', 8, '--level-none-comm', 'plain')
        true = set(self.true_messages(root))
        shutil.rmtree(self.databases(root)[3].parent.parent)
        found = self.messages_of(self.cells(root))
        self.assertEqual((len(found - true), len([m for m in found if m[0] == 0])), (0, 32))

    def test_skewed_hosts(self):
        for skew in (7_000_000, -3_000_000):
            with self.subTest(skew):
                root = self.check(*DUALPIPE, '--level', 1, '--per-host', 2, '--skew-ns', skew, '--out', self.dir / 'run',
                                  m=10, schedule='dualpipe-v-mindspeed')
                rows = json.loads(run('align', root, '--format', 'json', check=0).out)
                clocks = (rows['tables'] if isinstance(rows, dict) else rows)[0]['rows']
                self.assertAlmostEqual(clocks[3]['offset_ns'], skew, delta=300_000)

    def test_a_step_that_step_time_lacks(self):
        root = self.make(*DUALPIPE)
        self.alter(root, 'delete from STEP_TIME where id = 11')
        work = {c for c in self.cells(root) if c[2] in ('F', 'B', 'I', 'W')}
        self.assertEqual(work, self.truth(root, 10))

    def test_a_lost_row_costs_only_itself(self):
        root = self.make(*DUALPIPE, '--level', 1)
        self.alter(root, 'delete from MSTX_EVENTS where connectionId in '
                         '(select connectionId from MSTX_EVENTS order by startNs limit 1 offset 3)', ranks={1})
        work = {c for c in self.cells(root) if c[2] in ('F', 'B', 'I', 'W')}
        wanted = self.truth(root, 10)
        self.assertLessEqual(work, wanted)
        self.assertEqual(len(wanted) - len(work), 1)
        self.assertIn('step 10', self.notes['cells.off_schedule.rank_1']['message'])

    def test_ranges_beyond_the_steps_have_none(self):
        root = self.make('--pp', 2, '--mb', 4, '--bulk', 500)
        work = [c for c in self.cells(root) if c[2] in ('F', 'B')]
        self.assertEqual({c for c in work if c[1] is not None}, self.truth(root, 4))
        self.assertEqual(sum(c[1] is None for c in work), 1000)


if __name__ == '__main__':
    unittest.main()
