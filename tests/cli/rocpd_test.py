"""Databases of AMD's profilers: ranks, launches, ranges, collectives, memory, dialects, secrets, damage."""
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

    def test_processes_are_ranks_by_their_environments_and_nothing_else_of_these_is_told(self):
        for k, rank in enumerate((1, 0)):
            rocpd.make(self.folder / f'{100 + k}_results.db', pid=100 + k, rank=rank)
        report = info(self.folder)
        self.assertEqual(report['ranks'], 2)
        self.assertIn('environments', flaws(report)['rocpd.ranks']['message'])
        # The first file says rank 1.
        self.assertEqual([p['rank'] for p in report['parts']], [0, 1])
        for words in (run('info', self.folder, '--json').out, run('export', self.folder, '--to', 'json', '-o', '-', '-q').out, run('info', self.folder).out):
            self.assertNotIn(rocpd.SECRET, words)

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

    def test_a_column_that_is_gone_is_said(self):
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

    def test_a_database_of_which_nothing_can_be_read_is_said(self):
        rocpd.make(self.folder / '1_results.db', rank=0)
        whole = rocpd.make(self.folder / '2_results.db', rank=1)
        for size in (60, 7000):
            whole.write_bytes(whole.read_bytes()[:size])
            self.assertEqual(flaws(info(self.folder))['rocpd.unusable_file']['severity'], 'loss')
            rocpd.make(whole, rank=1)

    def test_csv_of_rocprofv3_is_told_what_to_do(self):
        path = self.folder / '7_kernel_trace.csv'
        path.write_text('"Kind","Agent_Id","Queue_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"\n"KERNEL_DISPATCH",1,1,"k",1,10,20\n')
        self.assertIn('rocpd convert', run('info', path, check=2).err)


if __name__ == '__main__':
    unittest.main()
