"""stageline explain with rounded timestamps, as doubles and short decimals round them. Cells of one rank that then
overlap by a little wait for each other as before, and no rank is reported to start late."""
import csv
import json
import unittest

from support import Case, run

BASE = ['--stages', 4, '--micro-batches', 16, '--dp', 2, '--steps', 6, '--jitter', 0.02, '--latency', 0.2, '--optimizer', 5, '--format', 'cells']


class Runs(Case):
    def made(self, name, *words):
        run('simulate', *words, *BASE, '--force', '-o', self.dir / name, '-q', check=0)
        return self.dir / name

    def reported(self, *words):
        return json.loads(run('explain', *words, '--format', 'json', '-q', check=0).out)

    def rounded(self, path, start, length):
        """The run with its stamps as start() and length() leave them, and how many cells of a rank then overlap."""
        with open(path / 'cells.csv', encoding='utf-8') as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            at, dur = float(row['start_ts']), float(row['duration'])
            row['start_ts'], row['duration'] = start(at), length(at, dur)
        out = self.dir / 'rounded.csv'
        with open(out, 'w', encoding='utf-8', newline='') as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return out


class Stamps(Runs):
    def test_seconds_in_a_double(self):
        # Seconds since 1970 have a resolution of a quarter of a microsecond.
        for schedule in ('1f1b', 'fthenb', 'vpp', 'zb-h1', 'zb-v', 'dualpipe'):
            for form in ([], ['--messages']):
                with self.subTest(schedule=schedule, form=form):
                    path = self.made('exact', schedule, *form)
                    doubles = self.rounded(path, repr, lambda at, dur: f'{at + dur - at:.12f}')
                    exact, reported = self.reported(path), self.reported(doubles)
                    self.assertEqual((exact['findings'], reported['findings']), ([], []))
                    for part, same in zip(reported['parts'], exact['parts'], strict=True):
                        self.assertAlmostEqual(part['share'], same['share'], delta=0.001)

    def test_short_decimals(self):
        # A start and a duration, each rounded by itself: a cell reaches over the next one's start.
        for schedule in ('vpp', 'zb-v'):
            path = self.made('exact', schedule)
            for digits in (4, 3):
                with self.subTest(schedule=schedule, digits=digits):
                    short = self.rounded(path, lambda at, d=digits: f'{at:.{d}f}', lambda at, dur, d=digits: f'{dur:.{d}f}')
                    self.assertEqual([f['id'] for f in self.reported(short)['findings'] if f['id'].startswith('host.')], [])

    def test_a_fault_keeps_its_price(self):
        slow = self.made('slow', 'zb-v', '--fault', 'slow-stage:2,1.3')
        exact = self.reported(slow)['findings']
        reported = self.reported(self.rounded(slow, repr, lambda at, dur: f'{at + dur - at:.12f}'))['findings']
        self.assertEqual([f['id'] for f in reported], ['stage.slow'])
        self.assertAlmostEqual(reported[0]['lost_ns'] / exact[0]['lost_ns'], 1, delta=0.01)


class OnePause(Runs):
    def test_a_single_pause_is_no_slow_link(self):
        # One pause of one rank in one step: half of its two cells of that direction.
        path = self.dir / 'one'
        run('simulate', 'eager-1f1b', '--stages', 2, '--micro-batches', 2, '--dp', 4, '--steps', 1, '--seed', 136, '--latency', 0.2, '--optimizer', 5,
            '--fault', 'gc:60ms,0.01', '--format', 'cells', '-o', path, '-q', check=0)
        reported = self.reported(path)['findings']
        self.assertEqual([f['id'] for f in reported], ['host.pauses'])
        self.assertIn('60.0\u202fms', reported[0]['title_en'])


if __name__ == '__main__':
    unittest.main()
