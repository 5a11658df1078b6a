"""record/gpu/run.sh against the fake driver: gpu_scripts.py FAKE_FOLDER LIBRARY PROGRAM. Parts that need real kernels
of a framework are skipped there."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAKES, LIBRARY, PROGRAM = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])
DRIVER_PARTS = (2, 3, 5, 6, 7, 8, 13, 14, 15)


class GpuScripts(unittest.TestCase):
    def run_parts(self, parts, **env):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        done = subprocess.run([ROOT / 'record/gpu/run.sh', '-o', folder, '-p', ','.join(map(str, parts)), '-r', '1', '--short'], capture_output=True, text=True,
                              env={**os.environ, 'LD_LIBRARY_PATH': FAKES, 'STAGELINE_BIN': PROGRAM, 'STAGELINE_RECORD_LIBRARY': LIBRARY, **env}, timeout=570)
        results = pathlib.Path(folder, 'results.json')
        return done, json.loads(results.read_text()) if results.exists() else None, pathlib.Path(folder, 'table.md').read_text() if results.exists() else ''

    def test_every_part_of_the_driver_runs_and_says_its_numbers(self):
        done, said, table = self.run_parts(DRIVER_PARTS)
        self.assertEqual(said['failed'], [], done.stdout + done.stderr)
        self.assertEqual(said['skipped'], [])
        rows = {(row['part'], row['what']): row for row in said['rows']}
        self.assertEqual({part for part, _ in rows}, set(DRIVER_PARTS))
        # Counts hold on any machine; times on one that does other things besides are not asked for.
        for row in rows.values():
            if row['unit'] in ('', '%') and 'share of replays' not in row['what']:
                self.assertTrue(row['holds'], row)
            self.assertIn(row['what'], table)
        self.assertGreater(rows[7, 'share of replays seen, replays 20 ms apart']['value'], 50)  # on a busy machine some are overtaken by the next
        self.assertEqual(rows[13, 'of these, lost']['value'], 0)
        self.assertGreater(rows[13, 'ranges that had ended']['value'], 1000)
        self.assertEqual(rows[8, 'captures that failed']['value'], 0)
        self.assertEqual(rows[2, 'records lost']['value'], 0)
        self.assertEqual(rows[3, 'gap that a range adds']['value'], 0)  # the fake's events take no time
        # Times of the fake are those of its own clock, which is read exactly: what is left is the anchors' error.
        self.assertIn(5, {part for part, what in rows if 'error of converted times' in what})

    def test_a_clock_that_ticks_too_coarsely_fails(self):
        done, said, table = self.run_parts([5], FAKE_GPU_TICK_NS='200000')
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        broken = [row['what'] for row in said['rows'] if not row['holds']]
        self.assertTrue(any('error of converted times' in what for what in broken), said['rows'])
        self.assertIn('**fail**', table)

    def test_a_driver_that_refuses_is_seen(self):
        done, said, _ = self.run_parts([8], FAKE_GPU_QUERY_ERROR='700')
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertFalse({row['what']: row for row in said['rows']}["ranges with the device's times meanwhile"]['holds'])

    def test_without_a_driver_nothing_is_claimed(self):
        done, said, table = self.run_parts([2, 13], LD_LIBRARY_PATH='')
        if 'no CUDA driver' not in json.dumps(said):
            self.skipTest('this machine has a CUDA driver')
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual((said['rows'], [part for part, _ in said['skipped']]), ([], [2, 13]))
        self.assertIn('Not run', table)

    def test_parts_of_frameworks_say_what_they_miss(self):
        done, said, _ = self.run_parts([1, 4, 9, 10, 11, 12])
        self.assertEqual(said['failed'], [], done.stdout)
        self.assertEqual([part for part, _ in said['skipped']], [1, 4, 9, 10, 11, 12])
        for _, why in said['skipped']:
            self.assertRegex(why, r'torch( \S+)? (is not installed|sees no CUDA device)')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
