"""pp-chart on faulty profiles: the messages, the exit code, and that every byte of the profile stays."""
import os
import pathlib
import shutil
import sqlite3
import subprocess
import unittest

from pp_chart_test import ask, change, databases, digest
from support import BIN, Case, run

SLOW = os.environ.get('STAGELINE_SLOW_TESTS')
MODES = ([], ['--compat', 'msprof'])
STAGES, MICRO_BATCHES, STEPS = 4, 5, 2
ROWS = 2 * MICRO_BATCHES * STEPS  # of a rank


class PpChartFaults(Case):
    def make(self, *flags, folder='in'):
        run('simulate', '1f1b', '--format', 'ascend', '--stages', STAGES, '--micro-batches', MICRO_BATCHES, '--steps', STEPS, '--level', 1,
            '-q', '--force', '-o', self.dir / folder, *flags, check=0)
        return self.dir / folder

    def write(self, source, *flags, check=0):
        """Runs, and holds the profile to its bytes of before. Rank → blocks of what was written."""
        before = digest(source)
        shutil.rmtree(self.dir / 'out', ignore_errors=True)
        self.done = run('pp-chart', '-d', source, '-o', self.dir / 'out', *flags, check=check)
        self.assertEqual(digest(source), before)
        return {rank: ask(path, 'SELECT name FROM StepTaskInfo') if self.has_blocks(path) else None
                for rank, path in databases(self.dir / 'out').items()}

    def has_blocks(self, path):
        return bool(ask(path, "SELECT 1 FROM sqlite_master WHERE name = 'StepTaskInfo'"))

    def all_labelled(self, blocks, ranks=range(STAGES)):
        self.assertEqual(sorted(blocks), list(ranks))
        for rows in blocks.values():
            self.assertEqual(len(rows), ROWS)
            self.assertTrue(all(name[-1] in 'FB' and name[:-1].isdigit() for name, in rows), rows)

    def test_no_markers(self):
        source = self.make()
        change(databases(source)[1], 'DROP TABLE MSTX_EVENTS')
        for flags in MODES:
            blocks = self.write(source, *flags)
            self.assertIn('rank 1: the database has no MSTX_EVENTS', self.done.err)
            self.assertIsNone(blocks[1])  # copied all the same: its operations have links
            self.assertEqual({len(rows) for rank, rows in blocks.items() if rank != 1}, {ROWS})
        for path in databases(source).values():
            change(path, 'DROP TABLE IF EXISTS MSTX_EVENTS')
        for flags in MODES:
            self.assertEqual(self.write(source, *flags, check=2), {})
            self.assertIn('no rank has a forward or backward block to show', self.done.err)
            self.assertIn('hint:', self.done.err)

    def test_no_steps(self):
        source = self.make()
        for path in databases(source).values():
            change(path, 'DROP TABLE STEP_TIME')
        self.all_labelled(self.write(source))

    def test_a_damaged_page(self):
        source = self.make()
        path = databases(source)[2]
        size = path.stat().st_size // 4096
        for page in range(1, size, max(1, size // 20)):
            with self.subTest(page):
                whole = path.read_bytes()
                with open(path, 'r+b') as file:
                    file.seek(page * 4096)
                    file.write(b'\xff' * 4096)
                for flags in MODES:
                    before = digest(source)
                    shutil.rmtree(self.dir / 'out', ignore_errors=True)
                    done = run('pp-chart', '-d', source, '-o', self.dir / 'out', *flags)
                    self.assertEqual(digest(source), before)
                    self.assertIn(done.returncode, (0, 2), done.err)
                    if done.returncode == 2:  # the others are written, and it is said
                        self.assertIn(path.name, done.err)
                        self.assertIn('3 databases written', done.err)
                        self.assertEqual(sorted(databases(self.dir / 'out')), [0, 1, 3])
                path.write_bytes(whole)

    def test_locked_by_a_writer(self):
        source = self.make()
        before = digest(source)
        for flags in MODES:
            writer = sqlite3.connect(databases(source)[3], isolation_level=None)
            writer.execute('BEGIN EXCLUSIVE')
            done = run('pp-chart', '-d', source, '-o', self.dir / 'out', *flags, check=2)
            self.assertIn('another program is writing', done.err)
            self.assertEqual(sorted(databases(self.dir / 'out')), [0, 1, 2])
            writer.execute('ROLLBACK')
            writer.close()
            self.assertEqual(digest(source), before)  # not sooner: this process closing the file would drop its own lock
        self.all_labelled(self.write(source))

    def test_two_folders_of_one_rank(self):
        source = self.make()
        folder = databases(source)[2].parent.parent
        older = folder.with_name(folder.name.replace('20240720', '20230720'))
        shutil.copytree(folder, older)
        for path in older.rglob('ascend_pytorch*.db'):
            change(path, 'DELETE FROM MSTX_EVENTS')
        for flags in MODES:
            blocks = self.write(source, *flags)
            self.assertEqual({len(rows) for rows in blocks.values()}, {ROWS})
            self.assertIn(older.name, self.done.err)

    def test_another_schema(self):
        source = self.make()
        for path in databases(source).values():
            change(path, "UPDATE META_DATA SET value = '7.1.0' WHERE name = 'SCHEMA_VERSION'",
                   "UPDATE META_DATA SET value = '7' WHERE name = 'SCHEMA_VERSION_MAJOR'")
        self.all_labelled(self.write(source))
        self.assertIn('does not know (7.1.0)', self.done.err)

    def test_a_rank_is_missing_inside_a_stage(self):
        source = self.make('--dp', 2)
        shutil.rmtree(databases(source)[3].parent.parent)
        self.all_labelled(self.write(source), [0, 1, 2, 4, 5, 6, 7])
        self.assertIn('the first one missing is rank 3', self.done.err)
        self.assertIn('rank 1 sent 10 times to a rank that is not there', self.done.err)

    def test_a_log_that_is_not_merged(self):
        source = self.make()
        path = databases(source)[0]
        writer = sqlite3.connect(path)
        writer.execute('PRAGMA journal_mode=WAL')
        writer.execute('DELETE FROM MSTX_EVENTS WHERE rowid > 4')
        writer.commit()
        before = digest(source)
        for flags in MODES:
            done = run('pp-chart', '-d', source, '-o', self.dir / 'out', *flags, check=0)
            self.assertIn('write-ahead log has not been merged', done.err)
            done = run('pp-chart', '-d', source, '--in-place', *flags, check=2)
            self.assertIn('wal_checkpoint(TRUNCATE)', done.err)
            self.assertEqual(digest(source)[path], before[path])
            self.assertEqual(digest(source)[pathlib.Path(f'{path}-wal')], before[pathlib.Path(f'{path}-wal')])
        writer.close()

    def test_names_and_links(self):
        """Spaces and Chinese in names; folders and databases that are symbolic links; a link that leads back up."""
        source = self.make(folder='我的 运行 (1)')
        self.all_labelled(self.write(source))
        linked = self.dir / 'by links'
        linked.mkdir()
        for folder in sorted(source.glob('*_ascend_pt')):
            (linked / folder.name).symlink_to(folder, target_is_directory=True)
        (linked / 'up').symlink_to(linked, target_is_directory=True)
        self.all_labelled(self.write(linked))
        self.assertNotIn('several profiles', self.done.err)
        path = databases(source)[0]
        real = path.with_name('real.db')
        path.rename(real)
        path.symlink_to(real)
        self.all_labelled(self.write(source))
        content = real.read_bytes()
        run('pp-chart', '-d', source, '--in-place', check=0)
        self.assertTrue(path.is_symlink())
        self.assertTrue(self.has_blocks(real))
        self.assertEqual(pathlib.Path(f'{real}.stageline-backup').read_bytes(), content)

    @unittest.skipUnless(SLOW, 'minutes: ./dev slow')
    def test_twenty_gigabytes(self):
        """A database of 20 GB, nearly all of it a hole: read and copied within 1.5 GB of addresses, and the hole stays one."""
        source = self.make()
        path, size = databases(source)[0], 20 << 30
        with open(path, 'r+b') as file:
            file.seek(28)  # pages of the database
            file.write((size // 4096).to_bytes(4, 'big'))
            file.truncate(size)
        said = path.stat()
        for flags in (*MODES, ['--tables-only']):
            done = subprocess.run(['bash', '-c', 'ulimit -v 1500000; exec "$0" "$@"', BIN, 'pp-chart', '-d', source, '-o', self.dir / 'out', *flags], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(ask(databases(self.dir / 'out')[0], 'SELECT count(*) FROM StepTaskInfo'), [(ROWS,)])
            self.assertLess(sum(p.stat().st_blocks * 512 for p in databases(self.dir / 'out').values()), 100 << 20)
        run('pp-chart', '-d', source, '--in-place', check=0)
        backup = pathlib.Path(f'{path}.stageline-backup').stat()
        self.assertEqual((backup.st_size, backup.st_mtime_ns, backup.st_ino), (size, said.st_mtime_ns, said.st_ino))
        self.assertLess(path.stat().st_blocks * 512, 100 << 20)


if __name__ == '__main__':
    unittest.main()
