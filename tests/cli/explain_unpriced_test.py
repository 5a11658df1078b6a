"""stageline explain on runs that cannot be simulated: the causes are those of the same run on one clock, and none has a cost."""
import csv
import json
import unittest

from support import Case, run

FAULTS = {
    '': [],
    'slow-stage:2,1.3': [('stage.slow', 'stage:2')],
    'slow-rank:5,1.4': [('rank.slow', 'rank:5')],
    'long-sequences:0.2,2': [('sequence.long', 'sequences')],
    'wrong-order:2': [('schedule.order', 'order')],
    'slow-rank:5,1.01': [],
}


class Unpriced(Case):
    def reported(self, path, *words):
        return json.loads(run('explain', path, '--format', 'json', '-q', *words, check=0).out)

    def made(self, fault):
        words = ['--fault', fault] if fault else []
        run('simulate', '1f1b', '--stages', 4, '--micro-batches', 8, '--dp', 2, '--steps', 8, '--jitter', 0.02, '--seed', 3, *words, '--format', 'cells',
            '--force', '-o', self.dir / 'run', '-q', check=0)
        return self.dir / 'run' / 'cells.csv'

    def shifted(self, path):
        """The run with the clock of stage 1 set back by 150 ms: its cells start long before their inputs."""
        with open(path, encoding='utf-8') as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            if row['stage'] == '1':
                row['start_ts'] = repr(float(row['start_ts']) - 0.15)
        with open(self.dir / 'shifted.csv', 'w', encoding='utf-8', newline='') as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return self.dir / 'shifted.csv'

    def test_the_same_causes_without_a_cost(self):
        for fault, expected in FAULTS.items():
            with self.subTest(fault=fault):
                path = self.made(fault)
                priced, reported = self.reported(path), self.reported(self.shifted(path), '--align', 'never')
                self.assertEqual([(f['id'], f['key']) for f in priced['findings']], expected)
                self.assertIn('cannot be simulated', reported['closing_en'])
                causes = [f for f in reported['findings'] if f['key']]
                self.assertEqual([(f['id'], f['key']) for f in causes], expected)
                self.assertEqual(causes, reported['findings'][:len(causes)])  # they explain the waits, so they come first
                self.assertEqual(reported['lost_ns'], 0)
                for cause, twin in zip(causes, priced['findings'], strict=True):
                    self.assertEqual(cause['title_en'], twin['title_en'])
                    self.assertEqual(cause['places'], twin['places'])
                    self.assertEqual((cause['lost_ns'], cause['lost_share'], cause['saving_ns'], cause['priced'], cause['assumption_en']), (None, None, 0, False, ''))
                    self.assertIn('Its cost is unknown', cause['detail_en'])
                    self.assertIn('代价未知', cause['detail_zh'])
                    self.assertNotIn('save', cause['detail_en'])
                    self.assertNotIn('costs', reported['title_en'].split('.')[0])

    def test_work_that_repeats_has_no_causes(self):
        path = self.made('slow-stage:2,1.3')
        with open(path, encoding='utf-8') as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row['step'] = str(int(row['step']) // 2)
        with open(path, 'w', encoding='utf-8', newline='') as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        self.assertEqual([f['id'] for f in self.reported(path)['findings'] if f['key']], [])


if __name__ == '__main__':
    unittest.main()
