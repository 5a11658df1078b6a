"""Ascend profiles that have text exports and no database: read whole, cut, half and half; blocks against the truth."""
import csv
import hashlib
import io
import json
import pathlib
import shutil
import sys
import unittest

from support import SHARED, Case, flaws, info, needs_shared, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import ascend_text  # noqa: E402


def cells(folder, *args):
    out = run('export', folder, *args, '--to', 'csv', '-o', '-', '-q', check=0).out
    return list(csv.DictReader(io.StringIO(out)))


def table(folder, name, *args):
    return json.loads(run('analyze', name, folder, '--format', 'json', '-q', *args, check=0).out)


class TextExports(Case):
    def make(self, *args, name='run'):
        folder = self.dir / name
        ascend_text.generate([folder, *args])
        return folder

    def output(self, folder, rank, name):
        return folder / f'rank_{rank}_ascend_pt' / 'ASCEND_PROFILER_OUTPUT' / name

    def check_truth(self, folder, *args):
        """Every block of the ranks that have kernels: kind, micro-batch, start and end."""
        with open(folder / 'truth.csv') as f:
            truth = sorted((r['rank'], r['step'], r['kind'], r['micro_batch'], int(r['start_ns']), int(r['end_ns']))
                           for r in csv.DictReader(f))
        found = sorted((r['rank'], r['step'], r['kind'], r['micro_batch'], int(r['start_ns']),
                        int(r['start_ns']) + int(r['dur_ns'])) for r in cells(folder, *args) if r['kind'] in 'FB')
        ranks = {row[0] for row in found}
        self.assertGreaterEqual(len(ranks), 2)
        self.assertEqual(found, [row for row in truth if row[0] in ranks])
        return found

    def test_the_job_whose_bubble_is_said_to_be_zero(self):
        folder = self.make('--kernels', '0,2')
        self.assertEqual(len(self.check_truth(folder)), 8)
        report = info(folder)
        self.assertEqual(report['format'], 'ascend')
        for name in ('cells.ranks_without_kernels', 'ascend.no_kernels'):
            self.assertEqual(flaws(report)[name]['count'], 2)
        # Rank 0 waits for B0 and for B1: 168.755 and 102.635 ms of messages, and 0.15 ms between its forwards.
        with open(self.output(folder, 0, 'step_trace_time.csv')) as f:
            self.assertEqual(next(csv.DictReader(f))['Bubble'], '0.000')
        rows = cells(folder)
        work = sorted((int(r['start_ns']), int(r['start_ns']) + int(r['dur_ns'])) for r in rows if r['rank'] == '0' and r['kind'] in 'FB')
        waits = [b[0] - a[1] for a, b in zip(work, work[1:])]
        out = run('analyze', 'pipeline-summary', folder, '--format', 'csv', '-q', check=0).out
        rank0 = next(r for r in csv.DictReader(io.StringIO(out)) if r['rank'] == '0')
        self.assertEqual(int(rank0['inner_bubble_ns']), sum(waits))
        self.assertGreater(sum(waits), 270_000_000)

    def test_device_work_without_a_name_of_the_device(self):
        out = run('info', self.make(), check=0).out
        self.assertNotIn('no device work', out)
        self.assertRegex(out, r'device +not named in the profile ×4')

    def test_sums_alone_are_reported(self):
        folder = self.make('--only', 'steps')
        self.assertIn('no device work', run('info', folder, check=0).out)
        out = run('analyze', 'cluster-time-summary', folder, '--format', 'csv', '-q', check=0).out
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(sorted({r['rank'] for r in rows}), ['0', '1', '2', '3'])
        for rank in range(4):
            with open(self.output(folder, rank, 'step_trace_time.csv')) as f:
                reported = [round(float(r['Computing']) * 1000) for r in csv.DictReader(f)]
            self.assertEqual([int(r['compute_ns']) for r in rows if r['rank'] == str(rank)], reported)
        self.assertIn('with slices', run('analyze', 'hccl-sum', folder, check=2).err)

    def test_what_a_batched_message_carries(self):
        rows = cells(self.make('--kernels', '0,2'))
        of = lambda rank: ' '.join(r['kind'] + r['micro_batch'] for r in rows if r['rank'] == rank and r['kind'] in ('SF', 'RF', 'SB', 'RB'))
        self.assertEqual(of('0'), 'SF0 SF1 RB0 RB1')
        self.assertEqual(of('2'), 'RF0 SB0 RF1 SB1')

    def test_other_sizes_and_shapes(self):
        for args in (['--pp', 4, '--mb', 8, '--dp', 1], ['--pp', 3, '--mb', 2, '--dp', 2, '--steps', 2],
                     ['--pp', 2, '--mb', 6, '--recompute'], ['--pp', 4, '--mb', 6, '--dp', 1, '--send-recv'],
                     ['--pp', 2, '--mb', 4, '--old']):
            with self.subTest(args):
                self.check_truth(self.make(*args, '--layers', 3, name='-'.join(map(str, args))))

    def test_the_whole_trace_says_the_same_and_more(self):
        kernels, whole = self.make('--layers', 3), self.make('--layers', 3, '--trace-view', 'all', name='whole')
        self.assertEqual(self.check_truth(kernels), self.check_truth(whole))
        breakdown = [run('analyze', 'temporal-breakdown', f, '--format', 'csv', '-q', check=0).out for f in (kernels, whole)]
        self.assertEqual(breakdown[0], breakdown[1])
        self.assertGreater(info(whole)['slices'], 2 * info(kernels)['slices'])

    def rewrite(self, folder, rank, change):
        """Rows of kernel_details.csv as change(row) makes them; None drops one."""
        path = self.output(folder, rank, 'kernel_details.csv')
        with open(path, newline='') as f:
            rows = list(csv.DictReader(f))
        with open(path, 'w', newline='') as f:
            out = csv.DictWriter(f, rows[0].keys())
            out.writeheader()
            out.writerows(filter(None, map(change, rows)))

    def test_an_order_that_no_schedule_has_is_not_numbered(self):
        folder = self.make('--kernels', '0,2', '--layers', 3)
        with open(folder / 'truth.csv') as f:
            f1 = next(r for r in csv.DictReader(f) if (r['rank'], r['kind'], r['micro_batch']) == ('0', 'F', '1'))
        inside = lambda row: int(f1['start_ns']) <= int(row['Start Time(us)'].strip().replace('.', '')) < int(f1['end_ns'])
        self.rewrite(folder, 0, lambda row: None if inside(row) else row)
        rows = [r for r in cells(folder) if r['kind'] in 'FB']
        self.assertEqual([r['kind'] for r in rows if r['rank'] == '0'], ['F', 'B', 'B'])
        self.assertEqual({r['micro_batch'] for r in rows}, {''})
        self.assertEqual(flaws(info(folder))['cells.kernels_unproven']['count'], 7)

    def test_without_gradient_kernels_nothing_is_assumed(self):
        folder = self.make('--kernels', '0,2', '--layers', 3)
        rename = lambda row: {k: v.replace('Grad', '') for k, v in row.items()}
        for rank in (0, 2):
            self.rewrite(folder, rank, rename)
        report = info(folder)
        self.assertIn('cells.no_gradients', flaws(report))
        self.assertNotIn('cells.from_kernels', flaws(report))

    def test_messages_beside_kernels_do_not_cut(self):
        folder = self.make('--kernels', '0,2', '--layers', 3)

        def longer(row):
            if 'batchSendRecv' in row['Name']:
                row['Duration(us)'] = str(float(row['Duration(us)']) + 50000)
            return row
        for rank in (0, 2):
            self.rewrite(folder, rank, longer)
        self.assertGreater(flaws(info(folder))['cells.kernels_overlap']['count'], 0)

    def test_text_stands_in_for_a_database_that_cannot_be_used(self):
        folder = self.make('--layers', 2)
        plain = cells(folder)
        self.output(folder, 0, 'ascend_pytorch_profiler_0.db').write_text('no database')
        self.assertEqual(flaws(info(folder))['ascend.text_instead']['count'], 1)
        self.assertEqual(cells(folder), plain)

    def test_sums_alone(self):
        folder = self.make('--only', 'steps')
        report = info(folder)
        self.assertEqual((report['format'], report['slices']), ('ascend', 0))
        self.assertEqual(len(report['ranks']) if isinstance(report['ranks'], list) else report['ranks'], 4)

    def test_cut_and_damaged_files_keep_what_was_whole(self):
        folder = self.make('--layers', 3, '--no-database')
        path = self.output(folder, 0, 'kernel_details.csv')
        text = path.read_text()
        lines = text.splitlines(keepends=True)
        lines[5] = lines[5].replace('"""', '""', 1)          # a quote too many
        lines[6] = lines[6].split('\t')[0]  + '\n'           # cut
        lines[7] = lines[7].replace('\t,', '\t,-')  # a negative duration
        path.write_text(''.join(lines[:-1]) + lines[-1][:40])
        for name in ('communication.json', 'communication_matrix.json'):
            other = self.output(folder, 2, name)
            other.write_text(other.read_text()[:-200])
        report = info(folder)
        self.assertEqual(flaws(report)['ascend.kernel_line']['count'], 4)
        self.assertEqual(flaws(report)['ascend.kernel_line']['line'], 6)
        self.assertEqual(flaws(report)['ascend.cut_json']['count'], 2)

    def test_op_summary_of_msprof_is_read_where_it_is_named(self):
        folder = self.make('--layers', 2, '--no-database')
        table = self.output(folder, 0, 'kernel_details.csv')
        text = table.read_text()
        head, rest = text.split('\n', 1)
        for ours, theirs in (('Name', 'Op Name'), ('Type', 'OP Type'), ('Accelerator Core', 'Task Type'), ('Start Time(us)', 'Task Start Time(us)'),
                             ('Duration(us)', 'Task Duration(us)'), ('Wait Time(us)', 'Task Wait Time(us)')):
            head = ','.join(theirs if column == ours else column for column in head.split(','))
        lone = self.dir / 'mindstudio_profiler_output'
        lone.mkdir()
        (lone / 'op_summary_20250101000000.csv').write_text(head + '\n' + rest)
        (self.dir / 'alone').mkdir()
        (self.dir / 'alone' / 'kernel_details.csv').write_text(text)
        one, two = info(lone / 'op_summary_20250101000000.csv'), info(self.dir / 'alone')
        self.assertGreater(one['slices'], 10)
        self.assertEqual({k: one[k] for k in ('format', 'slices', 'slices_by_kind', 'step_numbers', 'ranks')}, {k: two[k] for k in ('format', 'slices', 'slices_by_kind', 'step_numbers', 'ranks')})
        self.assertEqual(flaws(one).keys(), flaws(two).keys())
        self.assertIn('op_summary tables of msprof', run('info', lone, check=2).err)
        # A folder with the profiler's own table has the same work twice.
        before = info(folder)['slices']
        (table.parent / 'op_summary_20250101000000.csv').write_text(head + '\n' + rest)
        self.assertEqual(info(folder)['slices'], before)

    def test_a_table_without_its_columns_says_which(self):
        folder = self.make('--layers', 1)
        path = self.output(folder, 0, 'kernel_details.csv')
        path.write_text(path.read_text().replace('Duration(us)', 'Length'))
        flaw = flaws(info(folder))['ascend.unreadable_text']
        self.assertEqual(flaw['message'], 'no column "Duration(us)"')

    def test_a_trace_cut_in_the_middle(self):
        folder = self.make('--layers', 2, '--trace-view', 'all')
        path = self.output(folder, 1, 'trace_view.json')
        path.write_text(path.read_text()[:-5000])
        self.assertEqual(flaws(info(folder))['ascend.trace_cut']['count'], 1)

    def test_nothing_is_written_beside_the_data(self):
        folder = self.make('--layers', 1)
        digest = lambda: {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob('*') if p.is_file()}
        before = digest()
        info(folder)
        self.assertEqual(before, digest())


class RealSums(Case):
    @needs_shared
    def test_analysis_db_of_the_vendors_own_tests(self):
        folder = self.dir / 'real'
        for rank in (0, 1):
            source = SHARED / f'ascend/msinsight_db/level1/rank{rank}_ascend_pt/ASCEND_PROFILER_OUTPUT/analysis.db'
            target = folder / f'rank{rank}_ascend_pt' / 'ASCEND_PROFILER_OUTPUT'
            target.mkdir(parents=True)
            shutil.copy(source, target)
        report = info(folder)
        self.assertEqual(report['format'], 'ascend')
        self.assertEqual(report['slices'], 8)  # four all-reduces a rank
        tables = json.loads(run('analyze', 'gpu-kernel-breakdown', folder, '--format', 'json', '-q', check=0).out)['tables']
        sums = [row['sum_ns'] for table in tables for row in table['rows'] if row.get('rank') == 0 and row.get('name') == 'hcom_allReduce']
        # This is 88.750993 + 2.180324 + 2.412628 + 8.764155 ms of rank 0.
        self.assertEqual(sums, [102_108_100])
        # Nothing else was recorded, so what computing covers is unknown.
        self.assertIn('needs what devices computed', run('analyze', 'temporal-breakdown', folder, check=2).err)

    @needs_shared
    def test_one_rank_has_a_database_and_one_has_not(self):
        source = SHARED / 'ascend/msinsight_db/level1'
        folder = self.dir / 'half'
        shutil.copytree(source, folder)
        whole = info(folder)
        next(folder.rglob('ascend_pytorch_profiler_1.db')).unlink()
        half = info(folder)
        self.assertEqual(flaws(half)['ascend.no_kernels']['count'], 1)
        self.assertLess(4, half['slices'])
        self.assertLess(half['slices'], whole['slices'])


if __name__ == '__main__':
    unittest.main()
