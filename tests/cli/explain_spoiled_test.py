"""stageline explain on tables in which single rows are spoiled: timestamps years away, rows that no reader can use,
labels that mean something else. Findings about the rest must not follow from them."""
import csv
import json
import unittest

from support import Case, run

YEARS = 1e8  # seconds: three of them
RUN = ['--stages', 4, '--micro-batches', 8, '--steps', 8, '--jitter', 0.01, '--format', 'cells']


class Spoiled(Case):
    def rows(self, *words):
        run('simulate', '1f1b', *RUN, *words, '--force', '-o', self.dir / 'made', '-q', check=0)
        with open(self.dir / 'made/cells.csv', encoding='utf-8') as file:
            return list(csv.DictReader(file))

    def table(self, rows, without=()):
        path = self.dir / 'spoiled.csv'
        with open(path, 'w', encoding='utf-8', newline='') as file:
            writer = csv.DictWriter(file, [name for name in rows[0] if name not in without], extrasaction='ignore')
            writer.writeheader()
            writer.writerows(rows)
        return path

    def reported(self, path):
        return json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)

    def notes(self, path):
        return {d['name']: d for d in json.loads(run('info', path, '--json', check=0).out)['diagnostics']}


def work(rows, **wanted):
    """The forwards and backwards of these steps, ranks, …, in order of their starts."""
    found = [r for r in rows if 'compute' in r['optype'] and all(r[k] == str(v) for k, v in wanted.items())]
    return sorted(found, key=lambda r: float(r['start_ts']))


class Impossible(Spoiled):
    """One row that says three years, in its duration or in its start, forwards or backwards in time."""
    FLAWS = {'long': ('duration', YEARS), 'late': ('start_ts', YEARS), 'early': ('start_ts', -YEARS)}

    def test_a_row_that_runs_on_through_later_steps_is_lost_and_named(self):
        for name, (column, value) in self.FLAWS.items():
            with self.subTest(name):
                rows = self.rows()
                usual = self.reported(self.table(rows))
                row = work(rows, step=3, rank=2)[5]
                row[column] = str(value)
                path = self.table(rows)
                note = self.notes(path)['cells.impossible_times']
                self.assertEqual((note['severity'], note['count']), ('loss', 1))
                self.assertIn('of rank 2 in step 3', note['message'])
                reported = self.reported(path)
                self.assertEqual(reported['findings'], usual['findings'])
                self.assertAlmostEqual(reported['step_ns'], usual['step_ns'], delta=0.01 * usual['step_ns'])
                self.assertAlmostEqual(reported['period_ns'], usual['period_ns'], delta=0.01 * usual['period_ns'])

    def test_several_at_once_are_all_lost(self):
        rows = self.rows()
        for step, rank in ((1, 0), (2, 0), (3, 0), (3, 3), (6, 1)):
            work(rows, step=step, rank=rank)[4]['start_ts'] = str(YEARS + step)
        self.assertEqual(self.notes(self.table(rows))['cells.impossible_times']['count'], 5)

    def test_what_a_rank_may_do_stays(self):
        # A hang moves all that comes after it, and a return to an earlier step does its work again.
        rows = self.rows('--fault', 'slow-step:3,40')
        self.assertNotIn('cells.impossible_times', self.notes(self.table(rows)))
        self.assertEqual(self.reported(self.table(rows))['findings'][0]['id'], 'step.outlier')
        length = max(float(r['start_ts']) for r in rows) - min(float(r['start_ts']) for r in rows)
        again = [{**r, 'start_ts': str(float(r['start_ts']) + 1.1 * length)} for r in rows if r['step'] in ('6', '7')]
        self.assertNotIn('cells.impossible_times', self.notes(self.table(rows + again[:len(again) * 3 // 4])))

    def test_no_step_takes_less_than_no_time(self):
        # In the last step nothing comes after the row, and with many rows so spoiled nothing says which are right.
        for spoiled in ([(7, 0)], [(s, r) for s in range(8) for r in range(4)]):
            for value in (YEARS, 70 * YEARS):
                with self.subTest(rows=len(spoiled), value=value):
                    rows = self.rows()
                    for step, rank in spoiled:
                        for row in work(rows, step=step, rank=rank)[1::4]:
                            row['duration'] = str(value)
                    path = self.table(rows)
                    reported = self.reported(path)
                    for key in ('step_ns', 'period_ns', 'lost_ns'):
                        self.assertGreaterEqual(reported[key], 0, key)
                    text = run('explain', path, '-q', check=0).out
                    self.assertNotRegex(text, r'[-−]\d[\d\u202f]* (days|years)')
                    self.assertNotRegex(text, r'[-−][\d\u202f]{4,} %|−[2-9]\d\d\.\d %')
                    found = json.loads(run('analyze', 'waterfall', path, '--format', 'json', '-q', check=0).out)
                    period = [r for r in found['tables'][0]['rows'] if r['part'] == 'period']
                    self.assertTrue(all(r['mean_ns'] >= 0 for r in period), period)


    def test_a_step_of_one_row_that_holds_later_steps_shortens_no_gap(self):
        # Nothing else shows if that row is wrong: it is a hang, or a wrong duration. The other steps' gaps are
        # unaffected.
        rows = ''.join(f'0,F&B,{s},0,{s * 1100},{10**14 if s == 3 else 1000}\n' for s in range(8))
        path = self.write('one.csv', 'stage,kind,step,micro_batch,start_us,dur_us\n' + rows)
        found = json.loads(run('analyze', 'waterfall', path, '--format', 'json', '-q', check=0).out)
        means = {r['part']: r['mean_ns'] for r in found['tables'][0]['rows']}
        self.assertEqual((means['between steps'], means['period']), (100_000, 1_100_000))


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
                reported = self.reported(path)
                self.assertEqual(reported['findings'], [])
                notes = self.notes(path)
                self.assertEqual('op_table.micro_batches_unknown' in notes, lose)
                self.assertEqual('op_table.bad_time' in notes, lose)
                self.assertFalse([n for n in notes if n.startswith('clock.')], notes)
                self.assertEqual('missing' in reported['note_en'], lose, reported['note_en'])

    def test_a_step_that_lost_a_whole_micro_batch_is_not_judged(self):
        # Its lists agree with each other; only the reader knows that rows are missing.
        rows = self.rows()
        for row in work(rows, step=4, mb_id=3):
            row['start_ts'] = ''
        self.assertIn('could not be read', self.reported(self.table(rows))['note_en'])

    def test_one_row_is_missing_and_not_are(self):
        rows = self.rows()
        work(rows, step=4, rank=1)[3]['start_ts'] = 'nan'
        self.assertIn('expected forwards and backwards is missing', self.reported(self.table(rows))['note_en'])


class TooManyStages(Case):
    def test_ranks_that_would_be_stages_are_refused_with_what_to_do(self):
        stages = 5000
        path = self.write('ranks.csv', 'rank,step,kind,micro_batch,start_us,dur_us\n' +
                          ''.join(f'{r},0,F,0,{r * 10},5\n{r},0,B,0,{(2 * stages - r) * 10},8\n' for r in range(stages)))
        reported = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        self.assertEqual(reported['findings'], [])
        self.assertIn('a pipeline of 5000 stages', reported['note_en'].replace('\u202f', ''))
        self.assertIn('--stages', reported['note_en'])
        self.assertEqual(self.reported_of_four(path), '')

    def reported_of_four(self, path):
        return json.loads(run('explain', path, '--stages', 4, '--format', 'json', '-q', check=0).out)['why_not']


if __name__ == '__main__':
    unittest.main()
