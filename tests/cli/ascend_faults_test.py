"""Ascend profiles that were read wrongly: numbers of messages, marks without a device side, names of the users' own,
metadata that contradicts marks, DualPipeV without overlap. Each has twins with other numbers."""
import csv
import io
import json
import pathlib
import subprocess
import sys
import unittest

from pp_chart_test import ask, change, databases
from support import SHARED, SOURCE, Case, needs_shared, run

GENERATOR = SHARED.parent / 'tools' / 'gen_ascend.py'
APART = SOURCE / 'tests' / 'gen' / 'ascend_apart.py'
BLOCKS = 'SELECT name, startNs, endNs FROM StepTaskInfo ORDER BY startNs'


class Faults(Case):
    def make(self, name, *arguments, generator=GENERATOR):
        subprocess.run([sys.executable, generator, '--out', self.dir / name, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
        return self.dir / name

    def simulate(self, name, schedule, *flags):
        run('simulate', schedule, '--format', 'ascend', '-q', '--force', '-o', self.dir / name, *flags, check=0)
        return self.dir / name

    def alter(self, folder, *statements, ranks=None):
        for rank, path in databases(folder).items():
            if ranks is None or rank in ranks:
                change(path, *statements)

    def chart(self, folder, *flags, check=0):
        """Rank → blocks that pp-chart writes; its notes are in self.said."""
        out = self.dir / f'chart{len(list(self.dir.iterdir()))}'
        done = run('pp-chart', '-d', folder, '-o', out, *flags, check=check)
        self.said = ' '.join(done.err.split()) + done.out
        return {rank: ask(path, BLOCKS) for rank, path in databases(out).items() if ask(path, "SELECT 1 FROM sqlite_master WHERE name = 'StepTaskInfo'")}

    def clocks(self, folder):
        out = run('align', folder, '--format', 'csv', '--trust-clocks', check=0).out
        return {int(r['rank']): r for r in csv.DictReader(io.StringIO(out)) if not r['from_ns']}

    def info(self, folder, *flags):
        out = json.loads(run('info', folder, '--json', *flags, check=0).out)
        self.notes = {d['name']: d['message'] for d in out['diagnostics']}
        return out


class Messages(Faults):
    @needs_shared
    def test_each_rank_counts_its_own_messages(self):
        for schedule, pp, mb, skew in (('1f1b', 4, 8, 3_000_000), ('1f1b', 8, 12, -2_000_000), ('dualpipev', 4, 10, 7_000_000)):
            with self.subTest(schedule=schedule, pp=pp):
                root = self.make(f'{schedule}{pp}', '--schedule', schedule, '--pp', pp, '--mb', mb, '--level', 1, '--per-host', 1, '--skew-ns', skew)
                for rank, row in self.clocks(root).items():
                    error = abs(int(row['offset_ns']) - skew * rank)
                    self.assertLessEqual(error, int(row['offset_half_ns']), (rank, row))
                    self.assertLess(error, 2_000_000)
                run('report', root, '-o', self.dir / f'{schedule}{pp}.html', check=0)

    def test_a_batch_names_its_peer(self):
        for stages, machines, batches in ((4, 2, 12), (6, 3, 9)):
            with self.subTest(stages=stages):
                root = self.simulate(f'batch{stages}', '1f1b', '--pp', stages, '--micro-batches', batches, '--p2p', 'batch', '--machines', machines, '--level', 1,
                                     '--latency', 0.2)
                for row in self.clocks(root).values():
                    self.assertLessEqual(abs(int(row['offset_ns'])), int(row['offset_half_ns']), row)
                run('report', root, '-o', self.dir / 'r.html', check=0)


class Marks(Faults):
    def test_without_a_device_side_there_are_no_blocks(self):
        source = self.simulate('in', '1f1b', '--pp', 3, '--micro-batches', 5, '--steps', 2, '--level', 1)
        self.alter(source, 'UPDATE MSTX_EVENTS SET connectionId = 4000000000', ranks=(1,))
        blocks = self.chart(source)
        self.assertEqual(sorted(blocks), [0, 2])
        self.assertIn('without a device side', self.said)
        self.assertIn('20 times', self.said)
        self.alter(source, 'UPDATE MSTX_EVENTS SET connectionId = 4000000000')
        self.assertEqual(self.chart(source, check=2), {})
        self.assertIn('have no device side', self.said)
        bare = self.simulate('bare', '1f1b', '--pp', 2, '--level', 'none')
        self.alter(bare, 'DELETE FROM TASK')
        self.assertEqual(self.chart(bare, check=2), {})

    def test_receives_of_a_rank_without_marks_on_the_device_are_no_collectives(self):
        source = self.simulate('host', '1f1b', '--pp', 3, '--micro-batches', 5, '--steps', 2, '--level', 1)
        self.alter(source, 'UPDATE MSTX_EVENTS SET connectionId = 4000000000')
        rows = json.loads(run('sql', source, 'SELECT kind, count(*) AS n FROM cells GROUP BY kind', '--format', 'json', '-q', check=0).out)['rows']
        kinds = dict(rows)
        self.assertNotIn('C', kinds)
        self.assertEqual((kinds['SF'], kinds['RF'], kinds['SB'], kinds['RB']), (20, 20, 20, 20))

    def rename(self, source, forward, backward):
        for old, new in (('forward_step', forward), ('backward_step', backward)):
            self.alter(source, f"UPDATE STRING_IDS SET value = replace(value, '{old}', '{new}') WHERE value LIKE '%{old}%'")

    def test_names_of_the_users_own(self):
        names = (('my forward of layer', 'backward_step'), ('fwd', 'bwd'), ('ForwardPass', 'BackwardPass'), ('stage_fwd_step', 'stage_bwd_step'),
                 ('pp.forward', 'pp.backward'), ('FORWARD', 'BACKWARD'), ('train forward', 'train backward'))
        for k, (forward, backward) in enumerate(names):
            with self.subTest(forward):
                source = self.simulate(f'own{k}', '1f1b', '--pp', 4, '--micro-batches', 6, '--steps', 2, '--level', 1, '--marks', 'guide')
                self.rename(source, forward, backward)
                told = self.info(source)
                self.assertNotIn('cells.unknown_ranges', self.notes)
                self.assertEqual(told['micro_batches'], 6)
                self.assertEqual(told['schedule']['name'], '1f1b')
                blocks = self.chart(source)
                self.assertEqual({len(rows) for rows in blocks.values()}, {24})

    def test_names_that_no_rule_knows_are_told_with_the_rule(self):
        source = self.simulate('odd', '1f1b', '--pp', 4, '--micro-batches', 7, '--steps', 2, '--level', 1, '--marks', 'guide')
        self.rename(source, 'tower pass', 'backward_step')
        self.chart(source)
        self.assertIn('"tower pass"', self.said)
        self.assertIn('--cell-rules', self.said)
        rules = self.dir / 'my.rules'
        rules.write_text('annotation F tower pass\nannotation B backward_step\n')
        blocks = self.chart(source, '--cell-rules', rules)
        self.assertEqual({len(rows) for rows in blocks.values()}, {28})
        self.assertIn('all labelled', self.said)

    def test_time_in_ranges_without_a_rule_is_not_called_waiting(self):
        source = self.simulate('half', '1f1b', '--pp', 4, '--micro-batches', 10, '--steps', 2, '--level', 0, '--marks', 'guide')
        self.rename(source, 'forward_step', 'grad_compute')
        told = json.loads(run('explain', source, '--json', '-q', check=0).out)
        waiting = next(p for p in told['parts'] if p['id'] == 'waiting')
        self.assertEqual(waiting['label_en'] if 'label_en' in waiting else waiting['label'], 'between known forwards')
        text = run('explain', source, '-q', check=0).out
        self.assertIn('of it in known forwards', text)
        self.assertNotIn('not computing', text)
        self.assertNotIn('waiting in the pipeline', text)
        self.assertNotIn('0 micro-batches', text)
        self.assertIn('--cell-rules FILE', ' '.join(text.split()))
        # Where everything is known, the same run is described as before.
        whole = self.simulate('whole', '1f1b', '--pp', 4, '--micro-batches', 10, '--steps', 2, '--level', 0, '--marks', 'guide')
        self.assertIn('10 micro-batches', run('explain', whole, '-q', check=0).out)

    def test_metadata_that_contradicts_marks_is_not_used(self):
        said = '{"pp_type": "dualpipev", "microbatch_num": %d}'
        for stages, ran, claimed in ((4, 10, 12), (3, 8, 7)):
            with self.subTest(ran=ran):
                source = self.simulate(f'v{ran}', 'dualpipe-v-mindspeed', '--pp', stages, '--micro-batches', ran, '--steps', 2, '--pp-info', '--level', 'none')
                true = self.chart(source)
                self.assertNotIn('contradicts', self.said)
                self.alter(source, f"UPDATE META_DATA SET value = '{said % claimed}' WHERE name = 'pp_info'")
                self.assertEqual(self.chart(source), true)
                self.assertIn('contradicts the marks', self.said)
        source = self.simulate('plain', '1f1b', '--pp', 4, '--micro-batches', 8, '--level', 'none')
        true = self.chart(source)
        self.alter(source, f"INSERT INTO META_DATA VALUES ('pp_info', '{said % 8}')")
        self.assertEqual(self.chart(source), true)
        self.assertIn('contradicts the marks', self.said)


class DualPipeV(Faults):
    @needs_shared
    def test_without_overlap(self):
        for pp, mb, flags in ((4, 10, ['--pp-info']), (4, 9, []), (6, 17, ['--pp-info'])):
            with self.subTest(pp=pp, mb=mb):
                source = self.make(f'apart{pp}_{mb}', '--pp', pp, '--mb', mb, '--steps', 2, *flags, generator=APART)
                told = self.info(source)
                self.assertEqual(told['micro_batches'], mb)
                self.assertEqual(told['schedule']['name'], 'dualpipe-v-mindspeed')
                self.assertNotIn('cells.unproven', self.notes)
                blocks = self.chart(source, '--fail-on', 'unlabelled')
                self.assertNotIn('was expected', self.said)
                for rank, rows in blocks.items():
                    with open(source / 'truth' / f'rank{rank}.csv', newline='') as file:
                        true = [(r['fwd_mb'] if r['kind'] == 'F' else r['bwd_mb'], r['startNs'], r['endNs']) for r in csv.DictReader(file) if r['kind'] != 'w']
                    got = [(''.join(c for c in name if c.isdigit()), str(start), str(end)) for name, start, end in rows if not name.endswith('w')]
                    self.assertEqual(got, true, rank)

    def test_one_micro_batch_fewer_than_two_a_stage(self):
        for stages in (2, 3, 5):
            source = self.simulate(f'm{stages}', 'dualpipe-v-mindspeed', '--pp', stages, '--micro-batches', 2 * stages - 1, '--steps', 2, '--pp-info', '--level', 'none')
            told = self.info(source)
            self.assertEqual((told['micro_batches'], told['schedule']['name']), (2 * stages - 1, 'dualpipe-v-mindspeed'))
            self.chart(source, '--fail-on', 'unlabelled')
            self.assertNotIn('was expected', self.said)
        run('simulate', 'dualpipe-v-mindspeed', '--pp', 4, '--micro-batches', 6, '-o', self.dir / 'few', check=2)
        run('simulate', 'dualpipe-v', '--pp', 4, '--micro-batches', 7, '-o', self.dir / 'few', check=2)


if __name__ == '__main__':
    unittest.main()
