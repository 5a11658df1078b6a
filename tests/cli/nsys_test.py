"""Exports of Nsight Systems: ranks, launches, ranges, payloads, clocks; old versions, missing columns, damage."""
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
import nsys
from support import SHARED, flaws, info, needs_shared, run


def events(path, *options):
    return list(csv.DictReader(io.StringIO(run('analyze', 'events', path, '--table', 'events', '--format', 'csv', '-q', *options, check=0).out)))


class NsysTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)
        self.addCleanup(self.temp.cleanup)

    def make(self, name='report.sqlite', **options):
        return nsys.make(self.folder / name, **options)

    def test_ranges_that_hold_operators_are_modules(self):
        out = run('analyze', 'tb-module', self.make(modules=True), '--table', 'modules', '--format', 'csv', '-q', '--include-last-profiler-step', check=0).out
        rows = [row for row in csv.DictReader(io.StringIO(out)) if row['rank'] == '0']
        self.assertEqual([(row['path'], row['occurrences'], row['device_ns']) for row in rows], [('Net', '3', '690000'), ('Net/Linear', '3', '690000')])

    def test_processes_with_devices_are_ranks_and_nccl_says_which(self):
        report = info(self.make(ranks=3))
        self.assertEqual((report['format'], report['ranks']), ('nsys', 3))
        self.assertEqual(flaws(report)['nsys.other_processes']['count'], 1)
        self.assertIn('NCCL', flaws(report)['nsys.ranks']['message'])
        # The payload numbers them backwards: the process of device 0 is the last rank, and the slow one of device 1 the middle.
        rows = events(self.folder / 'report.sqlite')
        slow = {r['rank'] for r in rows if r['name'].startswith('void gemm') and r['dur_ns'] == '200000'}
        self.assertEqual(slow, {'1'})
        self.assertIn('nsys.ranks_by_device', flaws(info(self.make('b.sqlite', ranks=3, blobs=False))))

    def test_metrics_of_gpus_stand_at_their_ranks(self):
        path = self.make(ranks=2, metrics=True)
        report = info(path)
        self.assertEqual(report['counter_values'], 3 * 2 * 4)
        self.assertEqual(flaws(report)['nsys.bad_metric']['count'], 1)
        rows = list(csv.DictReader(io.StringIO(run('sql', path, 'SELECT rank, name, count(*) AS n, sum(value) AS s FROM counters GROUP BY rank, name ORDER BY name, rank', '--format', 'csv', '-q', check=0).out)))
        sums = {r['name']: float(r['s']) for r in rows if r['name'].endswith('SM Active')}
        self.assertEqual(sums, {f'GPU {g} / SM Active': 4 * (10 * g + 1) + 6 for g in range(3)})
        ranks = {r['name']: r['rank'] for r in rows}
        # NCCL numbers the processes backwards; GPU 2 has no process and is listed with the first one.
        self.assertEqual((ranks['GPU 0 / SM Active'], ranks['GPU 1 / SM Active']), ('1', '0'))

    def test_all_versions_give_the_same_work(self):
        keep = ('rank', 'category', 'name', 'dur_ns')
        base = [{k: r[k] for k in keep} for r in events(self.make(blobs=False))]
        self.assertGreater(len(base), 50)
        for name, options in {'old': {'old': True}, 'normalized': {'normalized': True}}.items():
            with self.subTest(name):
                path = self.make(f'{name}.sqlite', blobs=False, **options)
                self.assertEqual([{k: r[k] for k in keep} for r in events(path)], base)
        starts = [[int(r['start_ns']) for r in events(self.folder / f'{n}.sqlite')] for n in ('report', 'normalized')]
        self.assertEqual(starts[0], starts[1])

    def test_work_knows_its_launch_though_numbers_collide(self):
        path = self.make()
        lag = json.loads(run('analyze', 'cuda-kernel-launch-stats', path, '--format', 'json', '-q', check=0).out)
        self.assertTrue(lag)
        breakdown = run('analyze', 'temporal-breakdown', path, '--format', 'csv', '-q', check=0).out
        self.assertEqual(len(breakdown.strip().splitlines()), 3)

    def test_old_exports_that_do_not_say_whose_work_it_was(self):
        path = nsys.make(self.folder / 'new.sqlite')
        sums = 'SELECT rank, name, count(*), sum(dur_ns) FROM kernels GROUP BY rank, name ORDER BY 1, 2'
        wanted = run('sql', path, sums, '--format', 'csv', '-q', check=0).out
        with contextlib.closing(sqlite3.connect(path)) as db:
            # Numbers of launches that no other process has: by them alone work finds its process.
            db.execute('UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = correlationId + 1000 * (globalTid >> 24 & 15)')
            for table in ('KERNEL', 'MEMCPY', 'SYNCHRONIZATION'):
                table = f'CUPTI_ACTIVITY_KIND_{table}'
                db.execute(f'UPDATE {table} SET correlationId = correlationId + 1000 * (globalPid >> 24 & 15)')
                columns = [row[1] for row in db.execute(f'PRAGMA table_info({table})') if row[1] != 'globalPid']
                db.execute(f'CREATE TABLE kept AS SELECT {",".join(columns)} FROM {table}')
                db.execute(f'DROP TABLE {table}')
                db.execute(f'ALTER TABLE kept RENAME TO {table}')
            db.commit()
        self.assertEqual(run('sql', path, sums, '--format', 'csv', '-q', check=0).out, wanted)

    def test_ranges_become_operators_steps_and_device_ranges(self):
        rows = events(self.make())
        names = {(r['category'], r['name']) for r in rows}
        for wanted in (('cpu_op', 'aten::mm'), ('user_annotation', 'iteration 5'), ('gpu_user_annotation', 'iteration 6'), ('cuda_driver', 'cuLaunchKernelEx'),
                       ('cuda_runtime', 'cudaMemcpyAsync'), ('gpu_memcpy', 'Memcpy HtoD (Pinned -> Device)'), ('cuda_sync', 'Stream Sync')):
            self.assertIn(wanted, names)
        steps = run('analyze', 'profiler-steps', self.folder / 'report.sqlite', '--format', 'csv', '-q', check=0).out
        self.assertEqual([line.split(',')[1] for line in steps.strip().splitlines()[1:]], ['5', '6'] * 2)
        self.assertEqual(flaws(info(self.folder / 'report.sqlite'))['nsys.open_ranges']['count'], 2)

    def test_sizes_of_nccl_come_from_payloads_or_are_missed(self):
        self.assertNotIn('nsys.no_nccl_sizes', flaws(info(self.make())))
        self.assertEqual(flaws(info(self.make('b.sqlite', blobs=False)))['nsys.no_nccl_sizes']['count'], 6)

    def test_counts_of_one_ranks_part_are_taken_as_often_as_there_are_ranks(self):
        for call, size in (('ncclAllReduce', 4096), ('ncclAllGather', 3 * 4096), ('ncclReduceScatter', 3 * 4096), ('ncclAlltoAll', 3 * 4096), ('ncclBroadcast', 4096)):
            path = self.make(ranks=3)
            with contextlib.closing(sqlite3.connect(path)) as db:
                db.execute("UPDATE StringIds SET value = ? WHERE value = 'ncclAllReduce'", (call,))
                db.commit()
            self.assertEqual({r['size_bytes'] for r in events(path) if r['name'].startswith('ncclDevKernel')}, {str(size)}, call)

    def test_whole_graphs_and_lost_events_are_known(self):
        names = flaws(info(self.make(graphs=True, lost=True)))
        self.assertEqual(names['nsys.whole_graphs']['count'], 6)
        self.assertEqual(names['nsys.lost_events']['severity'], 'loss')

    def test_reports_of_ranks_by_name_and_what_was_not_exported(self):
        self.make('run_rank1.sqlite', ranks=1)
        self.make('run_rank0.sqlite', ranks=1)
        (self.folder / 'run_rank2.nsys-rep').write_bytes(b'QuadD report, not for others' * 4)
        report = info(self.folder)
        self.assertEqual(report['ranks'], 2)
        self.assertIn('run_rank2', flaws(report)['nsys.not_exported']['file'])
        alone = run('info', self.folder / 'run_rank2.nsys-rep', check=2)
        self.assertIn('nsys export --type sqlite', alone.err)

    def test_missing_tables_and_columns_and_damage(self):
        path = self.make()
        db = sqlite3.connect(path)
        db.execute('DROP TABLE NVTX_EVENTS')
        db.execute('ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN bytes')
        db.commit()
        db.close()
        names = flaws(info(path))
        self.assertEqual(names['nsys.missing_column']['severity'], 'loss')
        whole = path.read_bytes()
        for size in range(0, len(whole), 4096 * 3):
            cut = self.folder / 'cut.sqlite'
            cut.write_bytes(whole[:size])
            done = run('info', cut)
            self.assertIn(done.returncode, (0, 2))
            if size >= 4096 and done.returncode == 2:
                self.assertIn('shorter than it says', done.err)

    def test_explain_and_exports_work_on_it(self):
        path = self.make(ranks=3)
        said = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        self.assertTrue(any('Rank 1' in f['title_en'] for f in said['findings']), said['findings'])
        run('report', path, '-o', self.folder / 'report.html', check=0)
        run('export', path, '--to', 'sqlite', '-o', self.folder / 'tables.sqlite', check=0)

    @needs_shared
    def test_real_databases_hold_their_sums(self):
        root = SHARED / 'imports' / 'nsys'

        def sums(name):
            out = {}
            for r in events(root / name):
                count, ns = out.get(r['category'], (0, 0))
                out[r['category']] = (count + 1, ns + int(r['dur_ns']))
            return out
        h100 = sums('h100_2gpu_1s.sqlite')
        self.assertEqual(h100['kernel'], (3442, 44829522))
        self.assertEqual(h100['gpu_memcpy'], (904, 1880842214))
        self.assertEqual(tuple(map(sum, zip(h100['cuda_runtime'], h100.get('cuda_driver', (0, 0))))), (5796, 1799142046))
        self.assertEqual(tuple(map(sum, zip(h100['cpu_op'], h100.get('user_annotation', (0, 0))))), (16782, 4642216888))
        mfu = sums('mfu_2gpu_after.sqlite')
        self.assertEqual(mfu['kernel'], (3587, 488835406))
        self.assertEqual((mfu['cuda_runtime'][0], mfu['cuda_driver'][0]), (5722, 960))
        self.assertEqual(info(root / 'mfu_2gpu_after.sqlite')['ranks'], 2)
        mock = sums('mock.sqlite')
        self.assertEqual((mock['kernel'], mock['cuda_runtime'][0] + mock.get('cuda_driver', (0, 0))[0]), ((2, 4129), 9))
        graphs = sums('nsight-2025.5.2.sqlite')
        self.assertEqual(graphs['kernel'][0], 5)  # three and two graphs as wholes


if __name__ == '__main__':
    unittest.main()
