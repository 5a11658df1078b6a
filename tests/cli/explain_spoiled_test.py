"""stageline explain of tables in which single rows are spoiled: stamps years away, rows that no reader can use, labels that mean
something else. What is said of the rest must not follow from them."""
import csv
import json
import unittest

from support import Case, run

RUN = ['--stages', 4, '--micro-batches', 8, '--steps', 8, '--jitter', 0.01, '--format', 'cells']


class Spoiled(Case):
    def rows(self, *words):
        run('simulate', '1f1b', *RUN, *words, '-o', self.dir / 'made', '-q', check=0)
        with open(self.dir / 'made/cells.csv', encoding='utf-8') as file:
            return list(csv.DictReader(file))

    def table(self, rows, without=()):
        path = self.dir / 'spoiled.csv'
        with open(path, 'w', encoding='utf-8', newline='') as file:
            writer = csv.DictWriter(file, [name for name in rows[0] if name not in without], extrasaction='ignore')
            writer.writeheader()
            writer.writerows(rows)
        return path

    def told(self, path):
        return json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)

    def notes(self, path):
        return {d['name']: d for d in json.loads(run('info', path, '--json', check=0).out)['diagnostics']}


def work(rows, **wanted):
    """The forwards and backwards of these steps, ranks, …, in order of their starts."""
    found = [r for r in rows if 'compute' in r['optype'] and all(r[k] == str(v) for k, v in wanted.items())]
    return sorted(found, key=lambda r: float(r['start_ts']))


class Lost(Spoiled):
    """Rows that cannot be read: their neighbours must not bear what is missing."""

    def lose(self, rows):
        """Takes the time of ten rows in a row of one step, and of single ones in others."""
        gone = work(rows, step=2)[20:30] + [work(rows, step=s, rank=r)[6] for s, r in ((0, 1), (1, 2), (3, 3), (4, 0), (5, 1))]
        for k, row in enumerate(gone):
            row['start_ts'] = 'nan' if k % 2 == 0 else '1e300'

    def test_nothing_is_said_of_orders_and_clocks_where_numbers_were_lost_with_rows(self):
        # Without a column of micro-batches they are numbered by their order, in which some are now missing.
        for lose in (False, True):
            rows = self.rows()
            if lose:
                self.lose(rows)
            path = self.table(rows, without=('mb_id',))
            with self.subTest(lost=lose):
                told = self.told(path)
                self.assertEqual(told['findings'], [])
                notes = self.notes(path)
                self.assertEqual('op_table.micro_batches_unknown' in notes, lose)
                self.assertEqual('op_table.bad_time' in notes, lose)
                self.assertFalse([n for n in notes if n.startswith('clock.')], notes)
                self.assertEqual('missing' in told['note_en'], lose, told['note_en'])

    def test_a_step_that_lost_a_whole_micro_batch_is_not_judged(self):
        # Its lists agree with each other; only the reader knows that rows are missing.
        rows = self.rows()
        for row in work(rows, step=4, mb_id=3):
            row['start_ts'] = ''
        self.assertIn('could not be used', self.told(self.table(rows))['note_en'])

    def test_one_row_is_missing_and_not_are(self):
        rows = self.rows()
        work(rows, step=4, rank=1)[3]['start_ts'] = 'nan'
        self.assertIn('should hold is missing', self.told(self.table(rows))['note_en'])


if __name__ == '__main__':
    unittest.main()
