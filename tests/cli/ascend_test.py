"""Ascend profiler databases as a user gives them: every fault is said, the rest is read, and the files stay as they were."""
import csv
import hashlib
import io
import json
import os
import pathlib
import shutil
import sqlite3
import sys
import unittest

from support import SHARED, SOURCE, Case, flaws, info, needs_shared, run

sys.path.insert(0, str(SOURCE / 'tests' / 'gen'))
import ascend_db  # noqa: E402

REAL = SHARED / 'ascend' / 'msinsight_db'
if not REAL.is_dir():  # a worktree lies one level deeper than the checkout it belongs to
    REAL = SOURCE.parent.parent / 'shared' / 'data' / 'ascend' / 'msinsight_db'


def snapshot(folder):
    """Name, size, time of change and content of everything in a folder, and the folders' own times."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob('*')):
        said = path.stat()
        found[str(path)] = (said.st_mtime_ns, said.st_ctime_ns, hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else '')
    return found


def table(*args):
    return list(csv.DictReader(io.StringIO(run('analyze', *args, '--table', args[0], '--include-last-profiler-step', 'true', '--format', 'csv', '-q', check=0).out)))


class AscendCase(Case):
    def make(self, name='d', **options):
        out = self.dir / name
        self.databases = ascend_db.write(out, **options)
        return out


class Reading(AscendCase):
    def test_level1_counts(self):
        report = info(self.make())
        self.assertEqual(report['format'], 'ascend')
        # per rank: 6 cells per step with a range, a kernel, an operator and a launch each; 3 transfers and an
        # all-reduce per step.
        self.assertEqual(flaws(report).keys() & {'ascend.bad_row', 'ascend.missing_text', 'ascend.damaged_table'}, set())
        events = table('events', self.databases[0])
        kinds = {}
        for row in events:
            kinds[row['category']] = kinds.get(row['category'], 0) + 1
        self.assertEqual(kinds, {'mstx': 12, 'user_annotation': 2, 'cpu_op': 12, 'cann_api': 21, 'kernel': 20, 'gpu_memcpy': 1,
                                 'device_sync': 1, 'gpu_user_annotation': 12, 'hccl_task': 24, 'overhead': 1})

    def test_ranks_without_places_are_listed(self):
        tables = json.loads(run('analyze', 'rank-map', self.make(ranks=4, unplaced=True), '--format', 'json', '-q', check=0).out)['tables']
        ranks, sizes = (next(t['rows'] for t in tables if t['name'] == name) for name in ('rank-map', 'rank-map-sizes'))
        self.assertEqual([row['rank'] for row in ranks], [0, 1, 2, 3])
        self.assertEqual({row[name] for row in ranks for name in ('tp', 'cp', 'ep', 'dp', 'pp')} | {row['size'] for row in sizes}, {None})
        self.assertTrue(all(row['compute_ns'] > 0 for row in ranks))
        self.assertIn('places of the ranks are unknown', sizes[0]['source'])

    def test_old_schema_reads_alike(self):
        new = table('events', self.make('new'))
        old = table('events', self.make('old', schema='1.0.0'))
        self.assertEqual(new, old)

    def test_counters_of_units_and_memory_of_graphs(self):
        """Old and new names of a release give one curve; an accelerator that never worked has none."""
        for schema in ('1.0.0', '1.2.0'):
            d = self.make(schema, schema=schema, units=True, ranks=1)
            rows = json.loads(run('sql', d, 'SELECT name, time_ns, value FROM counters ORDER BY name, time_ns',
                                  '--format', 'json', '-q', check=0).out)['rows']
            series, begin = {}, min(at for name, at, _ in rows if 'SoC' in name)
            for name, at, value in rows:
                series.setdefault(name, []).append(((at - begin) // 1000000, value))
            self.assertEqual(series['NPU 0 graph memory of GE / totalAllocate'], [(1, 69632), (2, 65536)])
            self.assertEqual(series['NPU 0 SoC / mataBwLevel'], [(0, 0), (1, 2), (2, 4)])
            self.assertEqual(series['NPU 0 accelerator 7 / readBwLevel'], [(0, 0), (1, 1), (2, 2), (3, 3)])
            self.assertEqual(sorted(name for name in series if 'accelerator' in name),
                             [f'NPU 0 accelerator 7 / {level}' for level in ('readBwLevel', 'readOstLevel', 'writeOstLevel')])

    def test_counters_of_kernels(self):
        """Each kernel has the counters of its task, and the operator and the call that launched it."""
        d = self.make(units=True)
        rows = table('cupti-counter-data-with-operators', d)
        self.assertEqual(len(rows), 24)
        for rank in '01':
            own = [r for r in rows if r['rank'] == rank]
            made = sqlite3.connect(self.databases[int(rank)])
            names = made.execute('SELECT value FROM COMPUTE_TASK_INFO c JOIN STRING_IDS ON id = name JOIN TASK USING (globalTaskId) '
                                 'ORDER BY startNs').fetchall()
            order = made.execute('SELECT count(*) FROM COMPUTE_TASK_INFO a JOIN TASK t USING (globalTaskId) JOIN COMPUTE_TASK_INFO b '
                                 'ON b.globalTaskId <= a.globalTaskId GROUP BY a.globalTaskId ORDER BY t.startNs').fetchall()
            made.close()
            self.assertEqual([r['name'] for r in own], [n for n, in names])
            self.assertEqual([float(r['aic_mac_ratio']) * 16 for r in own], [n for n, in order])
            self.assertEqual([r['aic_total_time'] for r in own], [r['dur_ns'] for r in own])
            self.assertEqual({(r['launch'], r['top_level_op'], r['aic_mte2_ratio']) for r in own}, {('launch', 'aten::mm', '0.5')})
        self.assertEqual(table('cupti-counter-data-with-operators', self.make('plain')), [])

    def test_same_bytes_for_any_thread_count(self):
        d = self.make()
        one = run('analyze', 'events', d, '--format', 'csv', '-q', '--threads', 1, check=0).out
        self.assertEqual(one, run('analyze', 'events', d, '--format', 'csv', '-q', '--threads', 4, check=0).out)

    def test_mindspore(self):
        self.assertEqual(info(self.make(mindspore=True))['ranks'], 2)

    def test_any_depth_and_one_file(self):
        d = self.make('a')
        deep = self.dir / 'deep' / 'b' / 'c' / 'd' / 'e' / 'f'
        deep.parent.mkdir(parents=True)
        shutil.copytree(d, deep)
        self.assertEqual(info(self.dir / 'deep')['ranks'], 2)
        alone = info(self.databases[1])
        self.assertEqual([p['rank'] for p in alone['parts']], [1])

    def test_level_none_communication(self):
        rows = [r for r in table('events', self.make(level='none')) if r['category'] == 'kernel']
        self.assertEqual(sorted({r['name'] for r in rows}), ['HcclRecv', 'HcclSend'])
        self.assertEqual(len(rows), 4)


class Faults(AscendCase):
    def read(self, fault, **options):
        """Reads a spoilt profile; it stays as it was. Returns the flaws."""
        d = self.make(fault=fault, **options)
        before = snapshot(d)
        report = info(d)
        self.assertEqual(before, snapshot(d))
        return flaws(report), report

    def refused(self, fault, word):
        d = self.make(fault=fault)
        before = snapshot(d)
        done = run('info', d, check=2)
        self.assertEqual(before, snapshot(d))
        self.assertIn(word, done.err)

    def test_nothing_changes(self):
        self.read(None)

    def test_no_mstx(self):
        found, report = self.read('no-mstx')
        self.assertEqual(report['slices'], 212 - 2 * 12)

    def test_no_steps(self):
        self.assertEqual(self.read('no-steps')[1]['slices'], 212 - 2 * 2)

    def test_nulls_and_text(self):
        found, report = self.read('nulls')
        self.assertEqual(found['ascend.bad_row']['count'], 4)
        self.assertEqual(found['ascend.bad_step']['count'], 2)
        self.assertEqual(report['slices'], 212 - 6)

    def test_reversed(self):
        self.assertEqual(self.read('reversed')[0]['ascend.reversed_time']['count'], 2)

    def test_negative(self):
        self.assertEqual(self.read('negative')[0]['ascend.bad_row']['count'], 2)

    def test_missing_strings(self):
        self.assertEqual(self.read('missing-strings')[0]['ascend.missing_text']['count'], 2)

    def test_dangling_connection(self):
        self.read('dangling')
        rows = table('events', self.databases[0])
        self.assertEqual(sum(r['category'] == 'mstx' for r in rows), 12)

    def test_one_connection_on_several_tasks(self):
        self.read('one-connection')
        rows = [r for r in table('events', self.databases[0]) if r['category'] == 'gpu_user_annotation']
        self.assertEqual(len(rows), 13)

    def test_overlapping_steps(self):
        self.assertEqual(self.read('overlapping-steps')[0]['ascend.overlapping_steps']['count'], 2)

    def test_schema_versions(self):
        self.assertEqual(self.read('wrong-schema')[0]['ascend.unknown_schema']['count'], 2)
        self.assertNotIn('ascend.unknown_schema', self.read('no-schema')[0])

    def test_corrupt_page(self):
        found, report = self.read('corrupt')
        self.assertIn('TASK is damaged after', found['ascend.damaged_table']['message'])
        whole = len(table('events', self.make('whole')))
        self.assertGreater(len(table('events', self.dir / 'd')), whole // 2)

    def test_counters_before_a_corrupt_page_are_kept(self):
        asked = ('analyze', 'cupti-counter-data-with-operators', '--include-last-profiler-step', 'true')
        whole = json.loads(run(*asked, self.make('whole', units=True, ranks=1), '--format', 'json', '-q', check=0).out)['tables'][0]['rows']
        told = json.loads(run(*asked, self.make(units=True, ranks=1, fault='corrupt-units'), '--format', 'json', '-q', check=0).out)
        rows = told['tables'][0]['rows']
        self.assertTrue(0 < len(rows) < len(whole), (len(rows), len(whole)))
        cut = [row for row in rows if row not in whole]
        self.assertLessEqual(len(cut), 1)  # a kernel of which the damage has a part
        self.assertTrue(all(row['aic_mte2_ratio'] is None or row['aiv_vec_ratio'] is None for row in cut), cut)
        self.assertIn('the counters of work before the damage are kept', json.dumps(told['diagnostics'] if 'diagnostics' in told else told))

    def test_a_port_s_number_is_no_text(self):
        d = self.make(ranks=1)
        db = sqlite3.connect(self.databases[0])
        text = db.execute('SELECT min(id) FROM STRING_IDS').fetchone()[0]
        db.execute('CREATE TABLE NIC (deviceId INTEGER, timestampNs INTEGER, bandwidth NUMERIC, rxByteRate NUMERIC, txByteRate NUMERIC, funcId INTEGER, portId INTEGER)')
        db.executemany('INSERT INTO NIC VALUES (0, ?, 100, 1, 2, ?, 1)', [(ascend_db.T0 + k, text) for k in range(3)])
        db.commit()
        db.close()
        names = json.loads(run('sql', d, "SELECT DISTINCT name FROM counters WHERE name LIKE '%NIC%'", '--format', 'json', '-q', check=0).out)['rows']
        self.assertEqual({name for name, in names}, {f'NPU 0 NIC {text} 1 / {value}' for value in ('bandwidth', 'rxByteRate', 'txByteRate')})

    def test_endless_view(self):
        d = self.make(ranks=1)
        db = sqlite3.connect(self.databases[0])
        db.execute('DROP TABLE GC_RECORD')
        db.execute('CREATE VIEW GC_RECORD AS WITH RECURSIVE n(startNs) AS (SELECT 1 UNION ALL SELECT startNs + 1 FROM n) '
                   'SELECT startNs, startNs AS endNs, 0 AS globalTid FROM n')
        db.commit()
        db.close()
        self.assertEqual(info(d)['slices'], 75)

    def test_cut_file(self):
        done = run('info', self.make(fault='cut'))
        self.assertIn(done.returncode, (0, 2))
        self.assertIn('damaged' if done.returncode == 0 else 'stageline:', done.out + done.err)

    def test_unmerged_log(self):
        self.assertEqual(self.read('wal')[0]['sqlite.unmerged_log']['count'], 2)

    def test_hot_journal(self):
        self.refused('journal', 'half-done change')

    def test_empty_database(self):
        self.refused('empty', 'no table of an Ascend profiler')

    def test_no_database(self):
        # The other files of the rank are still read: docs/formats/ascend-text.md.
        report = info(self.make(fault='no-database'))
        self.assertEqual((report['format'], report['slices']), ('ascend', 0))

    def test_not_a_database(self):
        d = self.make()
        self.databases[1].write_bytes(b'hello world, this is no database at all')
        self.assertIn('no SQLite database', flaws(info(d))['ascend.unusable_rank']['message'])

    def test_locked_by_a_writer(self):
        d = self.make()
        writer = sqlite3.connect(self.databases[0], isolation_level=None)
        writer.execute('BEGIN IMMEDIATE')
        self.assertIn('writing', flaws(info(d))['ascend.unusable_rank']['message'])
        self.assertIn('writing', run('info', self.databases[0], check=2).err)
        writer.execute('ROLLBACK')
        writer.close()
        self.assertNotIn('ascend.unusable_rank', flaws(info(d)))

    def test_read_only_folder(self):
        d = self.make()
        for path in [*d.rglob('*'), d]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            self.assertEqual(info(d)['slices'], 212)
        finally:
            for path in [d, *d.rglob('*')]:
                path.chmod(0o755 if path.is_dir() else 0o644)

    def test_two_folders_for_one_rank(self):
        d = self.make()
        old = next(d.glob('node0_1000_*'))
        shutil.copytree(old, d / 'node0_1000_20240101000000000_ascend_pt')
        found = flaws(info(d))
        self.assertEqual(found['ascend.older_profile']['count'], 1)
        self.assertIn('20240101000000000', found['ascend.older_profile']['file'])

    def test_missing_rank(self):
        d = self.make()
        shutil.rmtree(next(d.glob('node0_1000_*')))
        self.assertIn('rank 0', flaws(info(d))['ascend.missing_ranks']['message'])

    def test_two_frameworks(self):
        d = self.make('a')
        ascend_db.write(d, mindspore=True)
        self.assertIn('MindSpore', run('info', d, check=2).err)

    def test_rank_without_number(self):
        d = self.make(ranks=1)
        self.databases[0].rename(self.databases[0].with_name('ascend_pytorch_profiler.db'))
        folder = next(d.glob('node0*'))
        text = json.loads((folder / 'profiler_info_0.json').read_text())
        (folder / 'profiler_info_0.json').unlink()
        text['rank_id'] = '7'
        (folder / 'profiler_info.json').write_text(json.dumps(text))
        self.assertIn('ranks         1  (7)', run('info', d, check=0).out)


class RealFiles(AscendCase):
    @unittest.skipUnless(REAL.is_dir(), 'needs ../shared')
    def test_rows_and_totals(self):
        """Rows of every table that is read, and times of kernels and communication, as SQL counts them."""
        for path in sorted(REAL.rglob('ascend_pytorch_profiler_*.db')):
            db = sqlite3.connect(f'file:{path}?immutable=1', uri=True)
            ask = lambda sql: db.execute(sql).fetchone()  # noqa: E731
            rows = table('events', path)
            of = lambda *kinds: [r for r in rows if r['category'] in kinds]  # noqa: E731
            self.assertEqual(len(of('cann_api')), ask('SELECT count(*) FROM CANN_API')[0])
            self.assertEqual(len(of('cpu_op', 'python_function', 'user_annotation')), ask('SELECT count(*) FROM PYTORCH_API')[0])
            device = of('kernel', 'gpu_memcpy', 'gpu_memset', 'device_sync', 'hccl_task', 'gpu_user_annotation')
            operations = [r for r in rows if r['name'].startswith('hcom_') and r['category'] == 'kernel']
            self.assertEqual(len(device) - len(operations), ask('SELECT count(*) FROM TASK')[0])
            self.assertEqual(len(of('hccl_task')), ask('SELECT count(*) FROM TASK JOIN COMMUNICATION_TASK_INFO USING (globalTaskId)')[0])
            count, total = ask('SELECT count(*), sum(endNs - startNs) FROM COMMUNICATION_OP')
            self.assertEqual((len(operations), total), (count, self.total(operations)))
            kernels = [r for r in of('kernel') if not r['name'].startswith('hcom_')]
            count, total = ask('SELECT count(*), sum(endNs - startNs) FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId)')
            self.assertEqual((len(kernels), total), (count, self.total(kernels)))
            db.close()

    # These tables are not read by docs/formats/ascend.md. They are lists of numbers that the program contains, tables
    # that Insight adds, and texts, which are read as rows name them.
    # TASK_PMU_INFO is read when its analysis is asked for.
    NOT_READ = {'TASK_PMU_INFO', 'OVERLAP_ANALYSIS', 'SESSION_TIME_INFO', 'STRING_IDS',
                'ENUM_HCCL_RDMA_TYPE', 'ENUM_MSTX_EVENT_TYPE', 'ENUM_API_TYPE', 'sqlite_sequence', 'status_info', 'connectionCats'}
    COUNTERS = {'NPU_MEM': ['ddr', 'hbm'], 'MEMORY_RECORD': ['totalAllocated', 'totalReserved', 'totalActive'], 'HBM': ['bandwidth'],
                'LLC': ['hitRate', 'throughput'], 'AICORE_FREQ': ['freq'], 'SOC_BANDWIDTH_LEVEL': ['l2BufferBwLevel', 'mataBwLevel'],
                'NPU_OP_MEM': ['totalAllocate', 'totalReserve']}

    @unittest.skipUnless(REAL.is_dir(), 'needs ../shared')
    def test_every_table_is_read_or_named(self):
        """Rows of all tables of both databases of a rank, together; values of counters, blocks of memory, sums of analysis.db, each against SQL."""
        for path in sorted(REAL.rglob('ascend_pytorch_profiler_*.db')):
            folder, rows = path.parent.parent, {}
            main, sums = (sqlite3.connect(f'file:{p}?immutable=1', uri=True) for p in (path, path.parent / 'analysis.db'))
            for db in (main, sums):
                for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    rows[name] = db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            report = info(folder)
            self.assertEqual(report['events'], sum(count for name, count in rows.items() if name not in self.NOT_READ))
            self.assertEqual(report['steps'], rows['STEP_TIME'])
            ask = lambda sql: main.execute(sql).fetchone()[0]  # noqa: E731
            values = sum(ask(f'SELECT count({c}) FROM {name}') for name, columns in self.COUNTERS.items() for c in columns)
            # Modules that never held memory are left out.
            values += ask('SELECT count(*) FROM NPU_MODULE_MEM WHERE (deviceId, moduleId) IN '
                          '(SELECT deviceId, moduleId FROM NPU_MODULE_MEM GROUP BY 1, 2 HAVING max(totalReserved) > 0)')
            # So are levels of accelerators that are always 0.
            for level in ('readBwLevel', 'writeBwLevel', 'readOstLevel', 'writeOstLevel'):
                values += ask(f'SELECT count(*) FROM ACC_PMU WHERE accId IN (SELECT accId FROM ACC_PMU GROUP BY 1 HAVING max({level}) > 0)')
            self.assertEqual(report['counter_values'], values)
            self.assertEqual(report['memory_events'], ask('SELECT count(allocationTime) + count(releaseTime) FROM OP_MEMORY'))
            times = list(csv.DictReader(io.StringIO(run('analyze', 'communication-time-sum', folder, '--table', 'communication-times',
                                                        '--format', 'csv', '-q', check=0).out)))
            named = sums.execute("SELECT count(*), sum(elapse_time) FROM CommAnalyzerTime WHERE hccl_op_name != 'Total Op Info'").fetchone()
            self.assertEqual(len(times), named[0])
            self.assertAlmostEqual(sum(int(r['elapse_ns']) for r in times), named[1] * 1e6, delta=len(times))
            step = table('cluster-time-summary', folder)[0]
            if 'OVERLAP_ANALYSIS' in rows:  # computed again, and the same
                of_type = dict(main.execute('SELECT type, sum(endNs - startNs) FROM OVERLAP_ANALYSIS GROUP BY 1').fetchall())
                self.assertEqual([int(step[c]) for c in ('compute_ns', 'exposed_communication_ns')], [of_type[0], of_type[2]])
            computing, exposed = sums.execute('SELECT computing, communication_not_overlapped FROM StepTraceTime').fetchone()
            self.assertAlmostEqual(int(step['compute_ns']), computing * 1e3, delta=2)
            self.assertAlmostEqual(int(step['exposed_communication_ns']), exposed * 1e3, delta=2)
            main.close()
            sums.close()

    @unittest.skipUnless(REAL.is_dir(), 'needs ../shared')
    def test_counters_of_tasks_are_those_of_sql(self):
        for path in sorted(REAL.rglob('ascend_pytorch_profiler_*.db')):
            main = sqlite3.connect(f'file:{path}?immutable=1', uri=True)
            rows = table('cupti-counter-data-with-operators', path)
            texts = dict(main.execute('SELECT id, value FROM STRING_IDS WHERE id IN (SELECT name FROM TASK_PMU_INFO)').fetchall())
            first = main.execute('SELECT min(startNs) FROM (SELECT startNs FROM TASK UNION SELECT CAST(startNs AS INTEGER) FROM PYTORCH_API UNION '
                                 'SELECT startNs FROM CANN_API UNION SELECT startNs FROM STEP_TIME)').fetchone()[0]
            asked = sorted((start - first, texts[name], float(value)) for start, name, value in main.execute(
                'SELECT startNs, name, value FROM TASK_PMU_INFO JOIN TASK USING (globalTaskId)'))
            self.assertEqual(sorted((int(r['start_ns']), name, float(r[name])) for r in rows for name in texts.values()), asked)
            main.close()

    @needs_shared
    def test_unit_counters_graph_memory_and_overlap_of_the_truth(self):
        path = SHARED / 'sources' / 'ascend' / 'ascend_pytorch_profiler_0.db'
        truth = json.loads((path.parent / 'truth.json').read_text())[path.name]
        rows = table('cupti-counter-data-with-operators', path)
        self.assertEqual([{name: float(r[name]) for name in counted} for r, counted in zip(rows, truth['pmu'].values(), strict=True)],
                         [{name: float(value) for name, value in counted.items()} for counted in truth['pmu'].values()])
        curve = json.loads(run('sql', path, "SELECT value FROM counters WHERE name LIKE '%graph memory%totalAllocate'",
                               '--format', 'json', '-q', check=0).out)['rows']
        self.assertEqual([value for value, in curve], [total for _, _, _, total in truth['npu_op_mem']])
        parts = table('temporal-breakdown', path)[0]
        self.assertEqual([int(parts[c]) for c in ('compute_ns', 'exposed_communication_ns', 'idle_ns')],
                         [truth['overlap'][kind] for kind in '023'])

    def total(self, rows):
        return sum(int(r['dur_ns']) for r in rows)


if __name__ == '__main__':
    unittest.main()
