"""pp-chart: what is written, that the profile stays as it is, what Insight asks of the tables, and faults."""
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from support import BIN, SHARED, Case, needs_shared, run

GENERATOR = SHARED.parent / 'tools' / 'gen_ascend.py'


def databases(folder):
    return {int(re.search(r'_(\d+)\.db$', p.name)[1]): p for p in pathlib.Path(folder).rglob('ascend_pytorch_profiler_*.db')}


def digest(folder):
    return {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(pathlib.Path(folder).rglob('*')) if p.is_file()}


def ask(path, sql):
    db = sqlite3.connect(f'file:{path}?immutable=1', uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def change(path, *statements):
    db = sqlite3.connect(path)
    for sql in statements:
        db.execute(sql)
    db.commit()
    db.close()


class PpChart(Case):
    def make(self, *arguments):
        subprocess.run([sys.executable, GENERATOR, '--out', self.dir / 'in', *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
        return self.dir / 'in'

    def write(self, source, *flags, check=0):
        return run('pp-chart', '-d', source, '-o', self.dir / 'out', *flags, check=check)

    def insight(self, folder, ranks):
        """Returns what Insight's server makes of the tables for one pipeline (`ranks`): blocks and bars of every rank,
        curves between them."""
        blocks, points, bars = {}, {}, []
        for rank, path in databases(folder).items():
            if rank not in ranks:
                continue
            blocks[rank] = ask(path, 'SELECT name, startNs, endNs, type FROM StepTaskInfo ORDER BY startNs')
            for name, start, end, link in ask(path, "SELECT s.value, c.startNs, c.endNs, c.opConnectionId FROM COMMUNICATION_OP c JOIN STRING_IDS s "
                                                    "ON s.id = c.opName WHERE s.value LIKE '%send%' OR s.value LIKE '%receive%'"):
                kind = 'SEND' if name.startswith('hcom_send') else 'RECV' if name.startswith('hcom_receive') else 'BATCH_SEND_RECV'
                bars.append((rank, kind, start, end))
                if link is not None:
                    points.setdefault(link, []).append((rank, start))
        return blocks, bars, sorted(tuple(sorted(ends)) for ends in points.values() if len(ends) == 2)

    def true_chart(self, source, ranks):
        """The same from what the generator says that ran."""
        blocks = {}
        for rank in ranks:
            with open(source / 'truth' / f'rank{rank}.csv', newline='') as file:
                blocks[rank] = [(int(row['startNs']), int(row['endNs'])) for row in csv.DictReader(file)]
        with open(source / 'truth' / 'links.csv', newline='') as file:
            links = [row for row in csv.DictReader(file) if int(row['src_rank']) in ranks]
        bars = [(int(row[f'{end}_rank']), kind, int(row[start]), int(row['end']))
                for row in links for end, kind, start in (('src', 'SEND', 'send_start'), ('dst', 'RECV', 'recv_start'))]
        return blocks, bars, sorted(tuple(sorted(((int(r['src_rank']), int(r['send_start'])), (int(r['dst_rank']), int(r['recv_start'])))))
                                    for r in links)

    @needs_shared
    def test_insight_draws_what_ran(self):
        """Its queries (rows of StepTaskInfo by start; sends and receives; points with one opConnectionId) give every block, bar and curve."""
        one, many = [range(4)], [range(first, 16, 4) for first in range(4)]
        dualpipev = ['--schedule', 'dualpipev', '--pp', 4, '--mb', 9, '--pp-info', '--level', 1]
        for name, pipelines, flags, arguments in [
                ('level 1', one, [], ['--level', 1]), ('level none', one, [], ['--level-none-comm', 'escaped']),
                ('level none, peers unsaid', one, [], ['--level-none-comm', 'plain']),
                ('level none, peers unsaid, replicas', many, [], ['--level-none-comm', 'plain', '--dp', 2, '--tp', 2]),
                ('level 1, compat', one, ['--compat', 'msprof'], ['--level', 1]),
                ('replicas', many, [], ['--level', 1, '--dp', 2, '--tp', 2]),
                ('context parallel', many, [], ['--level', 1, '--cp', 2, '--tp', 2]),
                ('DualPipeV', one, [], dualpipev), ('DualPipeV, compat', one, ['--compat', 'msprof'], dualpipev),
                ('DualPipeV, detached', one, [], [*dualpipev, '--dw-detach'])]:
            with self.subTest(name):
                source = self.make('--pp', 4, '--mb', 6, *arguments)
                before = digest(source)
                self.write(source, *flags)
                for ranks in pipelines:
                    blocks, bars, links = self.insight(self.dir / 'out', ranks)
                    true_blocks, true_bars, true_links = self.true_chart(source, ranks)
                    self.assertEqual({rank: [row[1:3] for row in rows] for rank, rows in blocks.items()}, true_blocks)
                    self.assertTrue(all(row[0] and row[3] in range(7) for rows in blocks.values() for row in rows))
                    self.assertEqual(sorted(bars), sorted(true_bars))
                    self.assertEqual(links, true_links)
                    self.assertGreater(len(links), 40)
                self.assertEqual(digest(source), before)
                shutil.rmtree(source)
                shutil.rmtree(self.dir / 'out')

    @needs_shared
    def test_links_that_times_leave_open_are_none(self):
        source = self.make('--schedule', 'dualpipev', '--pp', 4, '--mb', 9, '--level-none-comm', 'plain')
        done = self.write(source)
        links = self.insight(self.dir / 'out', range(4))[2]
        true = set(self.true_chart(source, range(4))[2])
        self.assertEqual(len(set(links) - true), 0)
        self.assertGreater(len(links), len(true) // 3)
        said = sum(int(n) for n in re.findall(r'(\d+) sends and receives do not say with whom', done.err))
        self.assertEqual(said, 2 * (len(true) - len(links)))

    @needs_shared
    def test_lost_head_is_paired_by_time(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 8, '--level', 1)
        change(databases(source)[0], "DELETE FROM COMMUNICATION_OP WHERE opId IN (SELECT c.opId FROM COMMUNICATION_OP c JOIN "
               "STRING_IDS s ON s.id = c.opName WHERE s.value LIKE 'hcom_send%' ORDER BY c.startNs LIMIT 3)")
        done = self.write(source)
        self.assertIn('paired where both ends end together', done.err)
        ends = {}
        for path in databases(self.dir / 'out').values():
            for link, end in ask(path, 'SELECT opConnectionId, endNs FROM COMMUNICATION_OP WHERE opConnectionId IS NOT NULL'):
                ends.setdefault(link, []).append(end)
        self.assertEqual({len(e) for e in ends.values()}, {2})
        self.assertTrue(all(a == b for a, b in ends.values()))  # the generator ends both sides of a transfer at once

    @needs_shared
    def test_in_place_twice_and_backup(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 4)
        before = {p: p.read_bytes() for p in databases(source).values()}
        for _ in range(2):
            run('pp-chart', '-d', source, '--in-place', '--compat', 'msprof', check=0)
        for path, content in before.items():
            self.assertEqual(pathlib.Path(f'{path}.stageline-backup').read_bytes(), content)
            self.assertEqual(ask(path, 'SELECT count(*) FROM StepTaskInfo'), [(16,)])
            self.assertEqual(ask(path, "SELECT count(*) FROM sqlite_master WHERE type = 'index'"),
                             ask(f'{path}.stageline-backup', "SELECT count(*) FROM sqlite_master WHERE type = 'index'"))
            self.assertEqual(ask(path, 'PRAGMA integrity_check'), [('ok',)])

    @needs_shared
    def test_failures_leave_the_file_as_it_was(self):
        source = self.make('--schedule', '1f1b', '--pp', 1, '--mb', 4, '--bulk', 3000)
        path = databases(source)[0]
        before = hashlib.sha256(path.read_bytes()).hexdigest()
        whole = lambda: self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), before)
        lock = sqlite3.connect(path, isolation_level=None)
        lock.execute('BEGIN EXCLUSIVE')
        for flags in (['--in-place'], ['-o', self.dir / 'out']):
            done = run('pp-chart', '-d', source, '--compat', 'msprof', *flags, check=2)
            self.assertIn('another program is writing', done.err)
        lock.execute('ROLLBACK')
        lock.close()
        whole()
        # A file size limit stands for a full disk: the journal and the growing file meet it. The backup is there already.
        shutil.copy(path, f'{path}.stageline-backup')
        limit = path.stat().st_size // 1024 + 8
        done = subprocess.run(['bash', '-c', f'ulimit -f {limit}; exec "$0" "$@"', BIN,
                               'pp-chart', '-d', source, '--in-place', '--compat', 'msprof'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        whole()
        self.assertEqual(list(path.parent.glob('*-journal')), [])
        damaged = bytearray(path.read_bytes())
        damaged[len(damaged) // 2:len(damaged) // 2 + 9000] = b'\xff' * 9000
        path.write_bytes(damaged)
        done = run('pp-chart', '-d', source, '--in-place', '--compat', 'msprof', check=2)
        self.assertIn(path.name, done.err)
        self.assertEqual(path.read_bytes(), damaged)

    @needs_shared
    def test_never_onto_the_profile_or_strange_files(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 4)
        before = digest(source)
        done = run('pp-chart', '-d', source, '-o', source, check=2)
        self.assertIn('--in-place', done.err)
        self.assertEqual(digest(source), before)
        self.write(source, '--compat', 'msprof')
        self.write(source, '--compat', 'msprof')  # a folder of ours is written again
        (self.dir / 'out' / 'stageline_pp_chart.json').unlink()
        self.assertIn('another file', self.write(source, '--compat', 'msprof', check=2).err)

    @needs_shared
    def test_a_folder_with_a_strange_file_is_refused(self):
        source = self.make('--schedule', '1f1b', '--pp', 1, '--mb', 2)
        for place in ('notes', 'below/notes', 'below/ascend_pytorch_profiler_0.db'):
            with self.subTest(place):
                strange = self.dir / 'out' / place
                strange.parent.mkdir(parents=True)
                strange.write_text('mine')
                self.assertIn('another file', self.write(source, check=2).err)
                self.assertEqual(digest(self.dir / 'out'), {strange: hashlib.sha256(b'mine').hexdigest()})
                shutil.rmtree(self.dir / 'out')
        self.write(source)
        (self.dir / 'out' / 'notes').write_text('mine')  # next to Stageline's files
        before = digest(self.dir / 'out')
        self.assertIn('another file', self.write(source, check=2).err)
        self.assertEqual(digest(self.dir / 'out'), before)

    @needs_shared
    def test_an_earlier_run_leaves_nothing_in_the_folder(self):
        many = self.make('--schedule', '1f1b', '--pp', 4, '--mb', 4, '--dp', 2)
        self.write(many)
        self.assertEqual(sorted(databases(self.dir / 'out')), list(range(8)))
        shutil.rmtree(many)
        few = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 4, '--stamp', '20260101000000000')
        done = self.write(few, '--rank-list', '1')
        self.assertIn('8 databases of an earlier run removed', done.err)
        self.assertEqual(sorted(databases(self.dir / 'out')), [1])
        self.assertEqual(len(list((self.dir / 'out').glob('*_ascend_pt'))), 1)
        mark = json.loads((self.dir / 'out' / 'stageline_pp_chart.json').read_text())
        files = {str(p.relative_to(self.dir / 'out')) for p in (self.dir / 'out').rglob('*') if p.is_file()}
        self.assertEqual(set(mark['files']) | {'stageline_pp_chart.json'}, files)

    @needs_shared
    def test_a_mark_that_lies_removes_nothing_else(self):
        source = self.make('--schedule', '1f1b', '--pp', 1, '--mb', 2)
        self.write(source)
        mine = self.dir / 'mine.db'
        mine.write_text('mine')
        (self.dir / 'out' / 'way').symlink_to(self.dir)
        mark = self.dir / 'out' / 'stageline_pp_chart.json'
        mark.write_text(json.dumps({'files': ['../mine.db', str(mine), 'way/mine.db', 'way/../../mine.db', '', '.', 7]}))
        self.write(source, check=2)  # what lies there is no longer known as ours
        self.assertEqual(mine.read_text(), 'mine')

    @needs_shared
    def test_a_step_that_is_not_there_is_named(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 4)
        self.assertIn('--step-id 77 is not there; steps are 10, 11', self.write(source, '--step-id', '77', check=2).err)
        self.assertIn('which has 10, 11', self.write(source, '--step-id', '77', '--compat', 'msprof').err)

    @needs_shared
    def test_tables_alone_say_what_they_hold(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 4, '--level', 1)
        self.assertRegex(self.write(source).err, r'\d+ linked operations')
        done = self.write(source, '--tables-only')
        self.assertNotIn('linked operation', done.err)
        self.assertIn('no links', done.err)
        mark = json.loads((self.dir / 'out' / 'stageline_pp_chart.json').read_text())
        self.assertEqual([r['linked_operations'] for r in mark['ranks']], [0, 0])
        self.assertEqual(mark['holds'], 'tables')
        self.assertEqual(len(list((self.dir / 'out').rglob('profiler_*.json'))), 0)  # of the copies before

    @needs_shared
    def test_their_spellings(self):
        source = self.make('--schedule', '1f1b', '--pp', 4, '--mb', 4)
        done = run('pp-chart', 'cluster', '-m', 'pp_chart', '--profiling_path', source, '--output_path', self.dir / 'out', '--rank_list',
                   '0,2,9', '--step_id', 10, '--export_type', 'db', '--parallel_mode', 'concurrent', '--force', check=0)
        for word in ('--parallel-mode changes nothing', '--force changes nothing', 'not there: 9'):
            self.assertIn(word, done.err)
        self.assertEqual(sorted(databases(self.dir / 'out')), [0, 2])
        for path in databases(self.dir / 'out').values():
            self.assertEqual(ask(path, 'SELECT count(*) FROM StepTaskInfo'), [(8,)])  # one step of two
        summary = json.loads((self.dir / 'out' / 'stageline_pp_chart.json').read_text())
        self.assertEqual([r['rank'] for r in summary['ranks']], [0, 2])
        self.assertIn('export', run('pp-chart', '-d', source, '--export_type', 'text', check=2).err)

    @needs_shared
    def test_two_folders_of_a_rank(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 4)
        self.make('--schedule', '1f1b', '--pp', 2, '--mb', 5, '--stamp', '20250521101718000')
        done = self.write(source, '--compat', 'msprof')
        self.assertEqual(ask(databases(self.dir / 'out')[0], 'SELECT count(*) FROM StepTaskInfo'), [(20,)])
        self.assertIn('20250521091718000', done.err)

    @needs_shared
    def test_interrupted_nothing_is_half_written(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 50, '--bulk', 60000)
        before = digest(source)
        sizes = {p: p.stat().st_size for p in databases(source).values()}
        for sign in (signal.SIGTERM, signal.SIGINT):
            for flags in (['--in-place'], ['-o', self.dir / 'out']):
                for wait in (0, 0.01, 0.03):
                    child = subprocess.Popen([BIN, 'pp-chart', '-d', source, '--compat', 'msprof', *map(str, flags)],
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    while child.poll() is None and not [p for p in self.dir.rglob('*') if '.partial.' in p.name or p.name.endswith('-journal')]:
                        time.sleep(0.001)
                    time.sleep(wait)
                    child.send_signal(sign)
                    child.wait()
                    for folder in (source, self.dir / 'out'):
                        self.assertEqual([p.name for p in folder.rglob('*') if '.partial.' in p.name or p.name.endswith('-journal')], [])
                    for path in [*sizes, *databases(self.dir / 'out').values()]:  # each is the old one or a whole new one
                        self.assertEqual(ask(path, 'PRAGMA quick_check'), [('ok',)])
                        rows = ask(path, "SELECT count(*) FROM sqlite_master WHERE name = 'StepTaskInfo'")[0][0]
                        if rows:
                            self.assertGreater(ask(path, 'SELECT count(*) FROM StepTaskInfo')[0][0], 0)
                        elif path in sizes:
                            self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), before[path])
                    shutil.rmtree(self.dir / 'out', ignore_errors=True)

    @needs_shared
    def test_full_disk_and_folder_that_may_not_be_written(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 4, '--bulk', 3000)
        before = digest(source)
        for flags in (['--in-place'], ['-o', self.dir / 'out'], ['--in-place', '--compat', 'msprof']):
            done = subprocess.run(['bash', '-c', 'ulimit -f 64; exec "$0" "$@"', BIN, 'pp-chart', '-d', source, *map(str, flags)],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, r'ascend_pytorch_profiler_\d\.db: .*(too large|full)')
            self.assertEqual(digest(source), before)
            self.assertEqual(databases(self.dir / 'out'), {})
            shutil.rmtree(self.dir / 'out', ignore_errors=True)
        who = {'user': 65534} if os.geteuid() == 0 else {}
        for folder in [source, *source.rglob('*')]:
            folder.chmod(0o555 if folder.is_dir() else 0o444)
        self.dir.chmod(0o755)
        locked = self.dir / 'locked'
        locked.mkdir(0o555)
        for flags, words in ((['--in-place'], 'the file is as it was'), (['-o', locked / 'out'], 'name another one with -o')):
            done = subprocess.run([BIN, 'pp-chart', '-d', source, *map(str, flags)], capture_output=True, text=True, **who)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)
        self.assertEqual(digest(source), before)
        for folder in [source, *source.rglob('*')]:
            folder.chmod(0o755 if folder.is_dir() else 0o644)

    @needs_shared
    def test_a_backup_of_another_measurement_is_none(self):
        source = self.make('--schedule', '1f1b', '--pp', 1, '--mb', 4)
        path = databases(source)[0]
        run('pp-chart', '-d', source, '--in-place', check=0)
        backup = pathlib.Path(f'{path}.stageline-backup')
        first = backup.read_bytes()
        shutil.rmtree(path.parent.parent)
        self.make('--schedule', '1f1b', '--pp', 1, '--mb', 5)
        path.chmod(0o640)
        backup.write_bytes(first)
        before = path.read_bytes()
        done = run('pp-chart', '-d', source, '--in-place', check=2)
        self.assertIn("another measurement's", done.err)
        self.assertIn('move it away', done.err)
        self.assertEqual((path.read_bytes(), backup.read_bytes()), (before, first))
        backup.unlink()
        run('pp-chart', '-d', source, '--in-place', check=0)
        self.assertEqual(backup.read_bytes(), before)
        self.assertEqual(path.stat().st_mode & 0o777, 0o640)

    @needs_shared
    def test_nothing_to_show_removes_no_earlier_copies(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 4, '--level', 1)
        self.write(source)
        before = digest(self.dir / 'out')
        for path in databases(source).values():
            change(path, 'DELETE FROM MSTX_EVENTS')
        for flags in ([], ['--compat', 'msprof']):
            self.assertIn('no rank has a forward or backward block to show', self.write(source, *flags, check=2).err)
            self.assertEqual(digest(self.dir / 'out'), before)

    @needs_shared
    def test_copies_inside_the_profile_are_not_its_own(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 4)
        for flags in ([], [], ['--compat', 'msprof'], ['--tables-only']):
            done = run('pp-chart', '-d', '.', *flags, cwd=source, check=0)
            self.assertIn('2 databases written below stageline_pp_chart', done.err)
            self.assertNotIn('several profiles', done.err)
        self.assertNotIn('several profiles', run('info', source, check=0).err)
        run('pp-chart', '-d', '.', cwd=source, check=0)
        self.assertIn('2 ranks', run('info', source / 'stageline_pp_chart', check=0).out)

    @needs_shared
    def test_damaged_pages_end_in_an_error_or_a_whole_copy(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 6, '--level', 1)
        path = databases(source)[0]
        whole, random = path.read_bytes(), __import__('random').Random(6)
        for _ in range(25):
            damaged = bytearray(whole)
            for _ in range(random.choice([1, 20, 400])):
                damaged[random.randrange(100, len(damaged))] = random.randrange(256)
            path.write_bytes(damaged)
            flags = random.choice([[], ['--compat', 'msprof']])
            done = run('pp-chart', '-d', source, '-o', self.dir / 'out', *flags)
            self.assertIn(done.returncode, (0, 2), done.err)
            if done.returncode == 2:
                self.assertRegex(done.err, r'\.db|nothing to show')
            self.assertEqual(path.read_bytes(), bytes(damaged))
            done = run('pp-chart', '-d', source, '--in-place', *flags)
            backup = pathlib.Path(f'{path}.stageline-backup')
            self.assertIn(done.returncode, (0, 2), done.err)
            self.assertIn(bytes(damaged), (path.read_bytes(), backup.read_bytes() if backup.exists() else b''))
            for p in source.rglob('*.stageline-backup'):
                p.unlink()
            shutil.rmtree(self.dir / 'out', ignore_errors=True)

    @needs_shared
    def test_profiles_of_one_stamp_are_reported_by_name(self):
        source = self.make('--schedule', '1f1b', '--pp', 2, '--mb', 4)
        shutil.copytree(source, source / 'z_again')
        for p in (source / 'z_again').glob('truth*'):
            shutil.rmtree(p)
        done = self.write(source)
        self.assertIn('have the same timestamp', done.err)
        self.assertIn('(2 times)', done.err)
        self.assertIn('z_again', done.err)

    @needs_shared
    def test_backwards_that_nobody_marked_are_known(self):
        source = self.dir / 'in'
        run('simulate', 'dualpipe-v-mindspeed', '--format', 'ascend', '--micro-batches', 10, '--marks', 'helper', '-o', source, check=0)
        self.assertNotIn('have no backward', self.write(source).err)
        for path in databases(source).values():
            change(path, "DELETE FROM MSTX_EVENTS WHERE message IN (SELECT id FROM STRING_IDS WHERE value LIKE '%\"backward_step%')")
        said = self.write(source).err
        # Backwards that ran within a forward are marked with it.
        found = re.search(r'(\d+) of (\d+) forwards have no backward in the profile, first on rank 0 in step 10', said)
        self.assertTrue(found, said)
        self.assertLess(int(found[1]), int(found[2]))

    def test_clocks_of_hosts_that_are_apart(self):
        source = self.dir / 'in'
        run('simulate', '1f1b', '--format', 'ascend', '--stages', 4, '--micro-batches', 6, '--machines', 2, '--clock-skew', '5ms',
            '--level', 1, '-o', source, check=0)
        self.assertRegex(self.write(source).err, r'clocks of these hosts differ by up to [0-9.]+\s*ms')

    def test_their_command_is_pointed_here(self):
        done = run('cluster', '-m', 'pp_chart', '-d', 'P', check=2)
        self.assertIn('stageline pp-chart -d P', done.err)

    def test_nothing_there(self):
        self.assertIn('no Ascend profiler database', self.write(self.dir, check=2).err)
        self.assertIn('needs the folder', run('pp-chart', check=2).err)


if __name__ == '__main__':
    unittest.main()
