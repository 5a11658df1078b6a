"""pp-chart --in-place under SIGKILL. At every moment the database is the old one or the new one, whole by SQLite's own
check. The old one is kept once it is replaced. 25 kills; 1 000 with STAGELINE_SLOW_TESTS."""
import os
import random
import shutil
import sqlite3
import subprocess
import time
import unittest

from support import BIN, Case, run

KILLS = 1000 if os.environ.get('STAGELINE_SLOW_TESTS') else 25


class InPlaceKill(Case):
    def rows(self, path):
        with sqlite3.connect(f'file:{path}?immutable=1', uri=True) as db:
            self.assertEqual(db.execute('PRAGMA integrity_check').fetchone()[0], 'ok')
            tables = {name for name, in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
            return db.execute('SELECT count(*) FROM StepTaskInfo').fetchone()[0] if 'StepTaskInfo' in tables else None

    def test_killed_at_any_moment(self):
        run('simulate', '1f1b', '--stages', 2, '--micro-batches', 8, '--steps', 6, '--format', 'ascend', '--level', 1, '-o', self.dir / 'made', check=0)
        self.assertIsNone(self.rows(next((self.dir / 'made').rglob('ascend_pytorch_profiler_*.db'))))
        began = time.monotonic()
        whole = self.dir / 'whole'
        shutil.copytree(self.dir / 'made', whole)
        run('pp-chart', '-d', whole, '--in-place', check=0)
        lasts = time.monotonic() - began
        names = sorted(p.relative_to(whole) for p in whole.rglob('ascend_pytorch_profiler_*.db'))
        done_rows = {name: self.rows(whole / name) for name in names}
        self.assertTrue(all(done_rows.values()))
        dice, killed = random.Random(1), 0
        for _ in range(KILLS):
            folder = self.dir / 'run'
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self.dir / 'made', folder)
            process = subprocess.Popen([BIN, 'pp-chart', '-d', folder, '--in-place', '--quiet'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(dice.random() * lasts)  # any moment does; which one is met decides nothing about the outcome
            process.kill()
            killed += process.wait() == -9
            for name in names:
                old = (self.dir / 'made' / name).read_bytes()
                rows = self.rows(folder / name)
                if rows is None:
                    self.assertEqual((folder / name).read_bytes(), old)
                else:
                    self.assertEqual(rows, done_rows[name])
                    backups = [p for p in (folder / name).parent.iterdir() if p.name.startswith(name.name + '.') and '.partial.' not in p.name]
                    self.assertEqual([p.read_bytes() for p in backups], [old])
            run('pp-chart', '-d', folder, '--in-place', check=0)  # and files left by the kill do not disturb it
            self.assertEqual({name: self.rows(folder / name) for name in names}, done_rows)
            self.assertEqual([p for p in folder.rglob('*.partial.*')], [])
        self.assertGreater(killed, 0)


if __name__ == '__main__':
    unittest.main()
