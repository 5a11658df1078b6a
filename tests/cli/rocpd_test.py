"""Databases of AMD's profilers: ranks, launches, ranges, collectives, memory, dialects, secrets, damage."""
import contextlib
import csv
import io
import json
import pathlib
import sqlite3
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import rocpd
from support import flaws, info, run


def events(path, *options):
    return list(csv.DictReader(io.StringIO(run('analyze', 'events', path, '--table', 'events', '--format', 'csv', '-q', *options, check=0).out)))


class RocpdTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)
        self.addCleanup(self.temp.cleanup)

    def launched(self, path):
        """Device work whose call is known."""
        first = run('analyze', 'cuda-kernel-launch-stats', path, '--format', 'csv', '-q', check=0).out.split('\n\n')[0]
        row = next(csv.DictReader(io.StringIO(first)))
        self.assertEqual(row['orphans'], '0')
        return int(row['events'])

    def test_one_process(self):
        path = rocpd.make(self.folder / '4242_results.db', steps=2)
        report = info(path)
        self.assertEqual((report['format'], report['ranks'], report['clock']), ('rocpd', 1, 'shared'))
        self.assertEqual(report['parts'][0]['device_name'], 'AMD Instinct MI300X')
        rows = events(path)
        by = {}
        for row in rows:
            by.setdefault(row['category'], []).append(row)
        self.assertEqual({k: len(v) for k, v in by.items()}, {'user_annotation': 2, 'cpu_op': 2, 'cuda_runtime': 6, 'kernel': 4, 'gpu_memcpy': 2, 'gpu_user_annotation': 2})
        self.assertEqual({r['name'] for r in by['gpu_memcpy']}, {'Memcpy HtoD'})
        self.assertEqual({int(r['dur_ns']) for r in by['kernel']}, {2000})
        self.assertEqual(self.launched(path), 6)
        overlap = run('analyze', 'temporal-breakdown', path, '--format', 'csv', '-q', check=0).out
        self.assertEqual(len(overlap.strip().splitlines()), 2)

    def test_processes_are_ranks_by_their_environments_and_nothing_else_of_these_is_reported(self):
        for k, rank in enumerate((1, 0)):
            rocpd.make(self.folder / f'{100 + k}_results.db', pid=100 + k, rank=rank)
        report = info(self.folder)
        self.assertEqual(report['ranks'], 2)
        self.assertIn('environments', flaws(report)['rocpd.ranks']['message'])
        # The first file says rank 1.
        self.assertEqual([p['rank'] for p in report['parts']], [0, 1])
        for words in (run('info', self.folder, '--json').out, run('export', self.folder, '--to', 'json', '-o', '-', '-q').out, run('info', self.folder).out):
            self.assertNotIn(rocpd.SECRET, words)

    def test_counts_of_one_ranks_part_are_taken_as_often_as_there_are_ranks(self):
        for call, size in (('ncclAllReduce', 2048), ('ncclAllGather', 4 * 2048), ('ncclReduceScatter', 4 * 2048), ('ncclAllToAll', 4 * 2048)):
            for with_size in (True, False):
                path = rocpd.make(self.folder / 'sizes_results.db')
                with contextlib.closing(sqlite3.connect(path)) as db:
                    suffix = next(name.removeprefix('rocpd_string') for name, in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_string%'"))
                    db.execute(f"UPDATE rocpd_string{suffix} SET string = ? WHERE string = 'ncclAllReduce'", (call,))
                    if with_size:  # one of the calls made the communicator
                        made, = db.execute(f"SELECT event_id FROM rocpd_arg{suffix} WHERE name = 'count' LIMIT 1").fetchone()
                        db.execute(f"UPDATE rocpd_arg{suffix} SET name = 'nranks', value = '4' WHERE event_id = ? AND name = 'count'", (made,))
                        init, = db.execute(f'SELECT max(id) + 1 FROM rocpd_string{suffix}').fetchone()
                        columns = [row[1] for row in db.execute(f'PRAGMA table_info(rocpd_string{suffix})')]
                        values = {'id': init, 'string': 'ncclCommInitRank'}
                        db.execute(f"INSERT INTO rocpd_string{suffix} ({', '.join(columns)}) SELECT {', '.join('?' if c in values else c for c in columns)} FROM rocpd_string{suffix} LIMIT 1",
                                   [values[c] for c in columns if c in values])
                        db.execute(f'UPDATE rocpd_region{suffix} SET name_id = ? WHERE event_id = ?', (init, made))
                    db.commit()
                known = with_size or call == 'ncclAllReduce'
                self.assertIn(str(size) if known else '', {r['size_bytes'] for r in events(path) if r['name'] == call}, (call, with_size))
                if not known:
                    self.assertEqual({r['size_bytes'] for r in events(path) if r['name'] == call}, {''})

    def test_nothing_says_the_rank(self):
        for k in range(2):
            rocpd.make(self.folder / f'{100 + k}_results.db', pid=100 + k, environment=False)
        self.assertIn('rocpd.ranks_in_order', flaws(info(self.folder)))

    def test_hosts_are_not_on_one_clock(self):
        for k in range(2):
            rocpd.make(self.folder / f'{k}_results.db', pid=k + 1, rank=k, host=f'node{k}')
        report = info(self.folder)
        self.assertEqual((report['machines'], report['clock']), (2, 'unaligned'))

    def test_tables_without_a_uuid_and_missing_ones(self):
        path = rocpd.make(self.folder / 'a.db', suffix='')
        whole = rocpd.make(self.folder / 'b.db')
        strip = lambda rows: [{k: v for k, v in r.items() if k != 'file'} for r in rows]
        self.assertEqual(strip(events(path)), strip(events(whole)))
        few = rocpd.make(self.folder / 'c.db', drop=('arg', 'info_pmc', 'pmc_event', 'sample', 'memory_allocate', 'info_thread', 'info_agent'))
        self.assertEqual(len(events(few)), len(events(whole)))

    def test_a_column_that_is_gone_is_known(self):
        path = rocpd.make(self.folder / 'a.db')
        db = sqlite3.connect(path)
        db.execute('ALTER TABLE "rocpd_region_0199aaaa_bbbb" RENAME COLUMN pid TO track_id')
        db.commit()
        db.close()
        self.assertIn('rocpd.missing_column', flaws(info(path)))
        self.assertEqual({r['category'] for r in events(path)}, {'kernel', 'gpu_memcpy'})

    def test_times_that_run_backwards_and_names_that_are_missing(self):
        path = rocpd.make(self.folder / 'a.db')
        db = sqlite3.connect(path)
        db.execute('UPDATE "rocpd_kernel_dispatch_0199aaaa_bbbb" SET end = start - 5 WHERE id = 1')
        db.execute('UPDATE "rocpd_kernel_dispatch_0199aaaa_bbbb" SET kernel_id = 99 WHERE id = 2')
        db.commit()
        db.close()
        self.assertEqual(flaws(info(path))['rocpd.reversed_time']['count'], 1)
        self.assertIn('kernel 99', {r['name'] for r in events(path)})

    def test_the_older_dialect(self):
        path = rocpd.make_rpd(self.folder / 'trace.rpd')
        report = info(path)
        self.assertEqual((report['format'], report['ranks']), ('rocpd', 1))
        rows = events(path)
        self.assertEqual(sorted({r['name'] for r in rows}), ['Memcpy HtoD', 'forward_step', 'gemm', 'hipLaunchKernel', 'hipMemcpyAsync'])
        self.assertEqual(self.launched(path), 4)

    def test_damage_keeps_what_is_before(self):
        path = rocpd.make(self.folder / 'a.db', steps=40)
        data = bytearray(path.read_bytes())
        for at in range(len(data) // 2, len(data), 4096):
            data[at:at + 64] = bytes(64)
        path.write_bytes(data)
        self.assertIn(run('info', path, '--json').returncode, (0, 2))

    def test_a_database_of_which_nothing_can_be_read_is_known(self):
        rocpd.make(self.folder / '1_results.db', rank=0)
        whole = rocpd.make(self.folder / '2_results.db', rank=1)
        for size in (60, 7000):
            whole.write_bytes(whole.read_bytes()[:size])
            self.assertEqual(flaws(info(self.folder))['rocpd.unusable_file']['severity'], 'loss')
            rocpd.make(whole, rank=1)

    def facts(self, path):
        """Returns the fields of every event on which the forms of a record agree."""
        keys = ('category', 'name', 'start_ns', 'dur_ns', 'stream', 'grid', 'block')
        rows = events(path)
        self.assertTrue(set(keys[:4]) <= set(rows[0]), sorted(rows[0]))
        return sorted(tuple(row.get(key) for key in keys) for row in rows)

    def test_json_and_tables_of_rocprofv3_are_the_same_run(self):
        (self.folder / 'j').mkdir()
        as_json = rocpd.make_json(self.folder / 'j' / '4242_results.json')
        tables = rocpd.make_csv(self.folder / 'node0')
        for path in (as_json, tables):
            report = info(path)
            self.assertEqual((report['format'], report['ranks'], report['clock']), ('rocpd', 1, 'shared'))
            self.assertEqual(report['parts'][0]['device_name'], 'AMD Instinct MI300X')
            self.assertEqual(self.launched(path), 6)
            self.assertFalse([d for d in report['diagnostics'] if d['severity'] == 'loss'])
        first, second = self.facts(as_json), self.facts(tables)
        self.assertEqual(first, second)
        kinds = [row[0] for row in first]
        self.assertEqual({k: kinds.count(k) for k in set(kinds)}, {'user_annotation': 2, 'cpu_op': 2, 'cuda_runtime': 6, 'kernel': 4, 'gpu_memcpy': 2, 'gpu_user_annotation': 2})
        self.assertEqual({row[1] for row in first if row[0] == 'user_annotation'}, {'forward_step'})
        for words in (run('info', as_json, '--json').out, run('export', as_json, '--to', 'json', '-o', '-', '-q').out):
            self.assertNotIn(rocpd.SECRET, words)

    def test_ranks_are_processes_in_json_and_tables_too(self):
        for k in range(2):
            rocpd.make_json(self.folder / f'rank{k}_results.json', pid=100 + k)
        report = info(self.folder)
        self.assertEqual([p['rank'] for p in report['parts']], [0, 1])
        self.assertIn('names', flaws(report)['rocpd.ranks']['message'])
        both = self.folder / 'csv' / 'node0'
        for k in range(2):
            rocpd.make_csv(both, pid=200 + k)
        self.assertEqual(info(both)['ranks'], 2)

    def test_one_process_in_two_forms_is_one_rank(self):
        rocpd.make(self.folder / '4242_results.db')
        rocpd.make_json(self.folder / '4242_results.json')
        rocpd.make_csv(self.folder)
        report = info(self.folder)
        self.assertEqual(report['ranks'], 1)
        self.assertEqual(flaws(report)['rocpd.same_process']['count'], 2)
        self.assertIn('rocpd schema', run('info', self.folder).out)  # the database says most

    def test_json_that_ends_early_keeps_what_is_before_and_says_so(self):
        path = rocpd.make_json(self.folder / '4242_results.json', steps=50)
        text, whole = path.read_bytes(), len(events(path))
        for share in (0.3, 0.5, 0.7):
            path.write_bytes(text[:int(share * len(text))])
            done = run('info', path, '--json')
            if done.returncode == 0:
                self.assertEqual(flaws(json.loads(done.out))['rocpd.read_stopped']['severity'], 'loss')
                self.assertLess(len(events(path)), whole)
            else:
                self.assertEqual(done.returncode, 2)
        path.write_bytes(text.replace(b'"start_timestamp": 1234000011', b'"start_timestamp": x1234000011', 1))
        self.assertEqual(flaws(info(path))['rocpd.bad_row']['count'], 1)
        path.write_bytes(text[:len(text) // 2] + b'}}}]]]' + text[len(text) // 2:])
        self.assertIn(run('info', path, '--json').returncode, (0, 2))

    def test_tables_that_are_cut_or_alone(self):
        folder = rocpd.make_csv(self.folder / 'node0', steps=4)
        table = folder / '4242_kernel_trace.csv'
        lines = table.read_text().splitlines(keepends=True)
        table.write_text(''.join(lines[:3]) + lines[3][:40])
        report = info(folder)
        self.assertEqual(flaws(report)['rocpd.bad_row']['severity'], 'loss')
        self.assertEqual(sum(r['category'] == 'kernel' for r in events(folder)), 2)
        self.assertEqual(len(events(table)), 2)  # without calls: work without a launch
        for path in folder.glob('*.csv'):
            if 'kernel_trace' not in path.name and 'agent' not in path.name:
                path.unlink()
        self.assertEqual(info(folder)['parts'][0]['device_name'], 'AMD Instinct MI300X')

    def test_sums_and_counters_alone_are_reported_what_to_do(self):
        path = self.folder / '7_scratch_memory_trace.csv'
        path.write_text('"Kind","Operation","Agent_Id","Queue_Id","Thread_Id","Alloc_Flags","Start_Timestamp","End_Timestamp"\n"SCRATCH_MEMORY","X",1,1,1,0,10,20\n')
        self.assertIn('_kernel_trace.csv', run('info', path, check=2).err)


if __name__ == '__main__':
    unittest.main()
