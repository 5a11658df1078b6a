"""stageline history: runs that are kept, and the changes that are found among them."""
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from support import BIN, SOURCE, Case, run

sys.path.insert(0, str(SOURCE / 'tests/gen'))
import recording  # noqa: E402


class History(Case):
    def setUp(self):
        super().setUp()
        self.db = self.dir / 'h.sqlite'

    def run_of(self, name, fault=''):
        folder = self.dir / name
        folder.mkdir()
        recording.make_training(folder, fault)
        return folder

    def add(self, *runs, label='', check=0):
        return run('history', 'add', *runs, '--db', self.db, '--label', label, check=check)

    def test_a_change_is_found_with_its_run_and_its_part(self):
        fast, slow = self.run_of('fast'), self.run_of('slow', 'between')
        for i in range(12):
            self.add(slow if i >= 7 else fast, label=f'v{i}')
        done = run('history', 'check', '--db', self.db, check=1)
        self.assertIn('Since run 8 (v7), steps are 30.0', done.out)
        self.assertIn('Largest change: not recorded, +11.1', done.out)
        said = json.loads(run('history', 'list', '--db', self.db, '--format', 'json', check=0).out)
        self.assertEqual([len(said['runs']), [c['run'] for c in said['changes']]], [12, [8]])
        self.assertEqual(len(run('history', '--db', self.db, check=0).out.splitlines()), 13)
        # The other way round steps are faster, which does not count as a fault.
        with sqlite3.connect(self.db) as file:
            file.execute('update runs set step_ns = 1e9 - step_ns')
        self.assertIn('faster', run('history', 'check', '--db', self.db, check=0).out)

    def test_runs_that_are_alike(self):
        same = self.run_of('same')
        self.add(*[same] * 9)
        self.assertIn('9 runs are too few to detect a change: at least 12 are needed', run('history', 'check', '--db', self.db, check=0).out)

    def test_jobs_that_end_at_once(self):
        same = self.run_of('same')
        jobs = [subprocess.Popen([BIN, 'history', 'add', same, '--db', self.db], stderr=subprocess.PIPE) for _ in range(4)]
        for job in jobs:
            said = job.communicate(timeout=120)[1]
            self.assertEqual(job.returncode, 0, said)
        self.assertEqual(len(json.loads(run('history', 'list', '--db', self.db, '--format', 'json', check=0).out)['runs']), 4)

    def test_a_job_that_was_killed_while_it_added(self):
        one = self.run_of('one')
        self.add(one)
        for i in range(12):  # killed at any moment, it has added the run or not
            job = subprocess.Popen([BIN, 'history', 'add', one, '--db', self.db], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.01 * i)
            job.kill()
            job.wait()
            before = len(json.loads(run('history', '--json', '--db', self.db, check=0).out)['runs'])
            self.assertIn(before, range(1, i + 3))
        # Another program was killed while it changed the file. Its journal is not applied: SQLite would do whatever it says.
        child = os.fork()
        if child == 0:
            db = sqlite3.connect(self.db)
            db.execute('PRAGMA cache_size = 1')  # so that the file is written to before the end
            db.execute('BEGIN')
            for _ in range(1000):
                db.execute("INSERT INTO runs(label, added_s, path, steps, step_ns) VALUES(?, 1, 'x', 1, 1.0)", ('y' * 500,))
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        self.assertTrue(self.db.with_name(self.db.name + '-journal').exists())
        changed = self.db.read_bytes()
        self.assertIn('-journal', run('history', '--json', '--db', self.db, check=2).err)
        self.assertIn('-journal', self.add(one, check=2).err)
        self.assertEqual(self.db.read_bytes(), changed)

    def test_the_history_lies_beside_the_run(self):
        run('history', 'add', self.run_of('one'), check=0)
        self.assertTrue((self.dir / 'stageline-history.sqlite').exists())

    def test_a_profile_without_steps_has_nothing_to_keep(self):
        events = []
        for i in range(50):
            same = {'ph': 'X', 'pid': 1, 'tid': 1, 'args': {'External id': i, 'correlation': i}}
            events += [{**same, 'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'ts': 1005 + 100 * i, 'dur': 5},
                       {**same, 'pid': 0, 'tid': 7, 'cat': 'kernel', 'name': 'gemm', 'ts': 1020 + 100 * i, 'dur': 60}]
        profile = self.write('rank0.pt.trace.json', json.dumps({'schemaVersion': 1, 'distributedInfo': {'rank': 0, 'world_size': 1}, 'traceEvents': events}))
        self.assertIn('no steps', self.add(profile, check=2).err)
        self.assertFalse(self.db.exists())

    def test_what_is_no_run_or_no_history(self):
        self.assertIn('there is no history', run('history', 'check', '--db', self.db, check=2).err)
        self.assertIn('no such file', self.add(self.dir / 'nowhere', check=2).err)
        self.assertFalse(self.db.exists())
        good = self.run_of('good')
        self.add(good, self.dir / 'nowhere', check=2)  # all or nothing
        self.assertFalse(self.db.exists())
        self.db.write_text('text')
        self.assertIn('no SQLite database', run('history', 'list', '--db', self.db, check=2).err)
        self.assertIn('not "bogus"', run('history', 'bogus', check=2).err)
        self.assertIn('takes no runs', run('history', 'check', good, check=2).err)


if __name__ == '__main__':
    unittest.main()
