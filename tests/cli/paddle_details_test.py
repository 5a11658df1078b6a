"""Details of Paddle's dynamic pipeline in worker logs: every cell, chunks, damage, logs of both profilers."""
import csv
import io
import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import paddle_details
from support import SHARED, Case, flaws, info, needs_shared, run

SAMPLE = SHARED / 'sources' / 'paddle' / 'pipeline_details'


def cells(path):
    text = run('sql', path, 'SELECT rank, step, kind, chunk, micro_batch, start_ns, end_ns - start_ns AS dur FROM cells', '--format', 'csv', '-q', check=0).out
    return sorted((int(r['rank']), int(r['step']), r['kind'], int(r['chunk']), int(r['micro_batch']), int(r['start_ns']), int(r['dur'])) for r in csv.DictReader(io.StringIO(text)))


def wanted(made):
    first = min(cell[5] for cell in made)
    return sorted((*cell[:5], cell[5] - first, cell[6] - cell[5]) for cell in made)


class PaddleDetailsTest(Case):
    def test_cells_are_those_of_the_lines(self):
        for how in ({'stages': 4, 'micro_batches': 6}, {'micro_batches': 4, 'chunks': 2}, {'stages': 3, 'micro_batches': 5, 'steps': 1, 'chunks': 3}):
            folder = self.dir / '-'.join(map(str, how.values()))
            made = paddle_details.write(folder, **how)
            about = info(folder)
            self.assertEqual(about['format'], 'paddle-details', how)
            self.assertEqual(cells(folder), wanted(made), how)
            self.assertFalse([d for d in about['diagnostics'] if d['severity'] == 'loss'], how)

    def test_a_slow_stage_is_named(self):
        paddle_details.write(self.dir / 'run', stages=4, micro_batches=8, steps=4, slow=2)
        self.assertIn('Stage 2 is slow (1.50× the other stages)', run('explain', self.dir / 'run', check=0).out)

    def test_memory_becomes_counters(self):
        paddle_details.write(self.dir / 'run', steps=1)
        self.assertEqual(info(self.dir / 'run')['ranks'], 2)
        values = run('sql', self.dir / 'run', "SELECT name, max(value) AS most FROM counters WHERE rank = 0 GROUP BY name ORDER BY name", '--format', 'csv', '-q', check=0).out
        self.assertIn('memory_allocated_size (GB),1.5', values)
        self.assertIn('memory_reserved_size (GB),2.5', values)

    def test_logs_of_both_profilers_are_read_by_what_comes_first(self):
        paddle_details.write(self.dir / 'run')
        for path in (self.dir / 'run').iterdir():
            path.write_text('word\n' * 30000 + path.read_text())  # behind what is looked at first
        self.assertEqual(info(self.dir / 'run')['format'], 'paddle-details')
        run('simulate', '1f1b', '--stages', '2', '-o', self.dir / 'jobs', check=0)
        self.assertEqual(info(self.dir / 'jobs')['format'], 'paddle-log')

    def test_damage_is_counted_and_moves_no_cell(self):
        made = set(wanted(paddle_details.write(self.dir / 'run', stages=1, steps=1)))
        path = self.dir / 'run' / 'workerlog.0'
        lines = path.read_text().splitlines()
        draw = random.Random(3)
        lost = 0
        for at in range(2, len(lines) - 1):  # each line that is missing, or cut
            for changed in ('', lines[at][:draw.randrange(len(lines[at]))]):
                path.write_text('\n'.join([*lines[:at], changed, *lines[at + 1:]]) + '\n')
                got = run('sql', path, 'SELECT kind, micro_batch, end_ns - start_ns AS dur FROM cells', '--format', 'csv', '-q', check=0).out.split()[1:]
                self.assertLessEqual(set(got), {f'{c[2]},{c[4]},{c[6]}' for c in made}, (at, changed))
                lost += len(made) - len(got)
        self.assertGreater(lost, 0)
        path.write_text('\n'.join(lines[3:]) + '\n')  # the step's start is missing
        self.assertEqual(run('info', path).returncode, 2)
        path.write_text('\n'.join([*lines, lines[2].replace('2026', '20x6'), lines[3].replace('step_0', 'step_99999999999')]) + '\n')
        self.assertEqual(flaws(info(path))['paddle_details.bad_line']['count'], 1)

    @needs_shared
    def test_logs_of_the_real_logger(self):
        truth = json.loads((SAMPLE / 'truth.json').read_text())['rows']
        got = {(step, rank, kind, m): (start, dur) for rank, step, kind, _, m, start, dur in cells(SAMPLE)}
        self.assertEqual(len(got), len(truth))
        for step, stage, kind, m, start, dur in truth:
            at, length = got[step, stage, kind, m]
            self.assertLess(abs(at / 1e9 - (start - 0.0021)), 0.0011)  # the logger cuts to whole milliseconds
            self.assertLess(abs(length / 1e9 - dur), 0.0011)
        self.assertIn('1f1b, 4 stages, 8 micro-batches, 100\u202f%', run('info', SAMPLE, check=0).out)
        self.assertIn('Stage 2 is slow (1.40×', run('explain', SAMPLE, check=0).out)


if __name__ == '__main__':
    unittest.main()
