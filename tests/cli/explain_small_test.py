"""stageline explain on runs with one or two micro-batches or few steps: the schedule's layout, and what is beyond doubt though its price is not."""
import csv
import json
import pathlib
import re
import unittest
from decimal import Decimal

from support import Case, run

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / 'golden/readers'


class Small(Case):
    def reported(self, *words):
        run('simulate', *words, '--latency', 0.2, '--format', 'cells', '--force', '-o', self.dir / 'run', '-q', check=0)
        return json.loads(run('explain', self.dir / 'run', '--format', 'json', '-q', check=0).out)

    def test_one_micro_batch_is_a_v_where_its_chunks_lie_in_one(self):
        # Its lists are those of a loop; read as one, messages between the wrong neighbours cost a fifth of the step.
        for schedule in ('1f1b', 'vpp', 'zb-h1', 'interleaved-zb', 'zb-v', 'zbvpp'):
            for stages in (2, 4, 8):
                for micro_batches in (1, 2):
                    with self.subTest(schedule=schedule, stages=stages, micro_batches=micro_batches):
                        reported = self.reported(schedule, '--stages', stages, '--micro-batches', micro_batches, '--dp', 2, '--jitter', 0.02)
                        self.assertEqual(reported['findings'], [])
                        share = {part['id']: part['share'] for part in reported['parts']}
                        self.assertLess(abs(share['rest']), 0.005)
                        self.assertLess(share['message'], 0.03)

    def test_what_is_certain_is_said_though_its_price_varies(self):
        # Long sequences make steps differ, and with them what the slow rank costs; that it is slow every step shows.
        reported = self.reported('1f1b', '--stages', 3, '--micro-batches', 4, '--dp', 2, '--steps', 6, '--jitter', 0.01, '--seed', 166, '--fault',
                         'long-sequences:0.05,1.5', '--fault', 'slow-rank:4,1.5')
        self.assertEqual([f['key'] for f in reported['findings']], ['rank:4'])
        reported = self.reported('zbvpp', '--stages', 3, '--micro-batches', 16, '--dp', 4, '--steps', 2, '--jitter', 0.03, '--seed', 145, '--fault',
                         'slow-link:1,2,+2ms', '--fault', 'late-launch:8,1ms')
        self.assertEqual([f['key'] for f in reported['findings']], ['host:8'])
        reported = self.reported('1f1b', '--stages', 4, '--micro-batches', 16, '--steps', 3, '--jitter', 0.01, '--fault', 'slow-stage:1,1.2', '--fault',
                         'long-sequences:0.1,2')
        self.assertIn('stage:1', [f['key'] for f in reported['findings']])

    def test_a_few_steps_of_scatter_prove_nothing(self):
        for seed in range(1, 9):
            for jitter in (0.05, 0.2):
                with self.subTest(seed=seed, jitter=jitter):
                    reported = self.reported('1f1b', '--stages', 4, '--micro-batches', 2, '--dp', 4, '--steps', 3, '--jitter', jitter, '--seed', seed)
                    self.assertEqual([f['id'] for f in reported['findings'] if f['id'] in ('rank.slow', 'stage.slow', 'rank.late_launch')], [])

    def test_what_a_larger_fault_hides_comes_next(self):
        both = ['--fault', 'heavy-head:0.2', '--fault', 'slow-rank:6,1.5']
        base = ['bfs', '--stages', 8, '--micro-batches', 16, '--steps', 3, '--jitter', 0.01, '--messages', '--cost', '5,12']
        reported, head, well = self.reported(*base, *both), self.reported(*base, *both[:2]), self.reported(*base)
        self.assertEqual([f['key'] for f in reported['findings']], ['stage:6'])
        next_share = float(re.search(r'is probably a slow stage 7 chunk 1: another ([\d.]+)\u202f%', reported['closing_en'])[1]) / 100
        self.assertAlmostEqual(next_share * reported['step_ns'] / (head['step_ns'] - well['step_ns']), 1, delta=0.07)  # of a share with two digits
        self.assertIn('修复', reported['closing_zh'])
        self.assertIn('第 7 级', reported['closing_zh'])
        # Alone it is a finding, and nothing comes after it.
        self.assertEqual([f['key'] for f in head['findings']], ['stage:7'])
        self.assertNotIn('the next bottleneck', head['closing_en'])

    def test_a_rank_behind_a_slower_one(self):
        reported = self.reported('1f1b', '--stages', 4, '--micro-batches', 16, '--steps', 6, '--dp', 2, '--jitter', 0.02, '--messages', '--fault', 'slow-rank:4,1.5',
                         '--fault', 'late-launch:2,3ms')
        self.assertEqual([f['key'] for f in reported['findings']], ['rank:4'])
        self.assertIn('late launches on rank 2', reported['closing_en'])

    def test_a_stage_that_evening_out_makes_no_faster_is_reported_by_its_cost(self):
        words = ['dualpipe', '--stages', 4, '--micro-batches', 16, '--steps', 6, '--jitter', 0.05, '--seed', 127, '--messages', '--fault']
        self.assertEqual(self.reported(*words, 'heavy-head:0.01')['findings'], [])
        little = self.reported(*words, 'heavy-head:0.1')
        well = self.reported(*words, 'heavy-head:0')
        self.assertEqual([f['id'] for f in little['findings']], ['stage.slow'])
        self.assertAlmostEqual(little['findings'][0]['lost_ns'], little['step_ns'] - well['step_ns'], delta=little['findings'][0]['uncertainty_ns'])
        much = self.reported(*words, 'heavy-head:0.2')['findings']
        self.assertEqual([f['id'] for f in much], ['stage.slow'])
        self.assertIn('Moving layers would save nothing', much[0]['detail_en'])
        self.assertNotIn('move layers', much[0]['title_en'])
        self.assertEqual([f['id'] for f in self.reported(*words, 'heavy-head:0.5')['findings']], ['stage.slow'])

    def mixed(self, slow_steps, *fault):
        """A run of which some steps have a fault, and the one without: their steps end to end."""
        base = ['1f1b', '--stages', 4, '--micro-batches', 8, '--dp', 2, '--steps', 12, '--jitter', 0.02, '--seed', 5, '--latency', 0.2, '--messages',
                '--format', 'cells']
        steps = {}
        for name, words in (('well', []), ('ill', ['--fault', *fault])):
            run('simulate', *base, *words, '--force', '-o', self.dir / name, '-q', check=0)
            with open(self.dir / name / 'cells.csv', encoding='utf-8') as file:
                rows = list(csv.DictReader(file))
            for row in rows:
                row['start_ts'] = Decimal(row['start_ts'])
            steps[name] = [[row for row in rows if row['step'] == str(s)] for s in range(12)]
        out, at = [], Decimal(0)
        for s in range(12):
            rows = steps['ill' if s in slow_steps else 'well'][s]
            first = min(row['start_ts'] for row in rows)
            out += [{**row, 'start_ts': str(row['start_ts'] - first + at)} for row in rows]
            at += max(row['start_ts'] + Decimal(row['duration']) for row in rows) - first
        path = self.dir / 'mixed.csv'
        with open(path, 'w', encoding='utf-8', newline='') as file:
            writer = csv.DictWriter(file, list(out[0]))
            writer.writeheader()
            writer.writerows(out)
        return json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)

    def test_a_rank_that_is_slow_in_some_steps(self):
        well = self.mixed(set(), 'slow-rank:5,1.5')
        self.assertEqual(well['findings'], [])
        for slow in ({0, 3, 6, 9}, set(range(6))):
            with self.subTest(slow=slow):
                reported = self.mixed(slow, 'slow-rank:5,1.5')
                self.assertEqual([f['key'] for f in reported['findings']], ['rank:5'])
                self.assertIn(f'in {len(slow)} of 12 steps', reported['findings'][0]['title_en'])
                self.assertIn(f'在 12 步中的 {len(slow)} 步里', reported['findings'][0]['title_zh'])
                self.assertAlmostEqual(reported['findings'][0]['lost_ns'] / (reported['step_ns'] - well['step_ns']), 1, delta=0.05)

    def test_long_sequences_that_nothing_proves_are_no_ranks_fault(self):
        # One micro-batch a step: long ones make all ranks of a replica slow in some steps.
        for seed in (1, 2, 3, 4):
            reported = self.reported('1f1b', '--stages', 4, '--micro-batches', 1, '--dp', 4, '--steps', 12, '--seed', seed, '--fault', 'long-sequences:0.2,1.2')
            self.assertNotIn('rank.slow', [f['id'] for f in reported['findings']])

    def test_a_headline_says_its_size_once(self):
        reported = json.loads(run('explain', GOLDEN / 'recording-kernels/input', '--format', 'json', '-q', check=0).out)
        self.assertRegex(reported['title_en'], r'^Gap of .* saves .*[\d.]+\u202f%\) of each step\.$')
        for title in (reported['title_en'], reported['title_zh']):
            self.assertEqual(title.count('%'), 1, title)


if __name__ == '__main__':
    unittest.main()
