"""Tables in the libraries that people have: pandas, polars, pyarrow, pytest, IPython. Each test needs its library in the Python that
runs it and is skipped without; `./dev python` runs them in an environment that has all."""
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import GOLDEN, HAVE_ENGINE, PACKAGE, ROOT, simulated  # noqa: E402

if HAVE_ENGINE:
    import stageline
    from stageline import f


def needs(*names):
    missing = []
    for name in names:
        if name.endswith('-stubs'):  # a folder of types, which cannot be imported
            if not any(pathlib.Path(path, name).is_dir() for path in sys.path):
                missing.append(name)
            continue
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    return unittest.skipIf(missing or not HAVE_ENGINE, f'no {", ".join(missing)}' if missing else 'the module was not built')


class NsightFolders(unittest.TestCase):
    """`nsys export --type parquetdir` and `arrowdir`: made here of our own SQLite export, table by table."""

    def folder(self, made, kind):
        import sqlite3

        import pyarrow
        import pyarrow.parquet
        database = GOLDEN / 'nsys/input/report.sqlite'
        folder = pathlib.Path(made) / f'report_rank0.{kind}dir'
        folder.mkdir()
        db = sqlite3.connect(f'file:{database}?mode=ro&immutable=1', uri=True)
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = db.execute(f'SELECT * FROM "{name}"')
            names = [d[0] for d in rows.description]
            columns = list(zip(*rows.fetchall())) or [()] * len(names)
            table = pyarrow.table({n: pyarrow.array(c) for n, c in zip(names, columns)})
            if kind == 'parquet':
                pyarrow.parquet.write_table(table, folder / f'{name}.parquet')
            else:
                with pyarrow.ipc.new_file(folder / f'{name}.arrow', table.schema) as out:
                    out.write_table(table)
        return folder

    @needs('pyarrow')
    def test_they_are_the_same_run_as_the_sqlite_export(self):
        want = stageline.open(GOLDEN / 'nsys/input/report.sqlite')
        for kind in ('parquet', 'arrow'):
            with self.subTest(kind), tempfile.TemporaryDirectory() as made:
                got = stageline.open(self.folder(made, kind))
                self.assertEqual(got.info['format'], 'nsys')
                for name in ('name', 'start_ns', 'dur_ns', 'category', 'rank'):
                    self.assertEqual(list(got.slices()[name]), list(want.slices()[name]), name)

    @needs('pyarrow')
    def test_a_spoiled_table_is_named(self):
        for kind in ('parquet', 'arrow'):
            with tempfile.TemporaryDirectory() as made:
                folder = self.folder(made, kind)
                for file in sorted(folder.iterdir()):
                    data = file.read_bytes()
                    for how, spoiled in (('emptied', b''), ('zeroed', bytes(len(data))), ('cut', data[:len(data) // 2]), ('its end cut', data[:-9])):
                        with self.subTest(f'{file.name} {how}'):
                            file.write_bytes(spoiled)
                            with self.assertRaises(stageline.BadInput) as said:
                                stageline.open(folder)
                            self.assertIn(file.name, str(said.exception))
                    file.write_bytes(data)
                self.assertEqual(stageline.open(folder).info['format'], 'nsys')

    @unittest.skipIf(not HAVE_ENGINE, 'the module was not built')
    def test_without_pyarrow_the_other_way_is_named(self):
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made) / 'r.parquetdir'
            folder.mkdir()
            (folder / 'StringIds.parquet').write_bytes(b'PAR1')
            hidden, sys.modules['pyarrow'] = sys.modules.get('pyarrow'), None
            try:
                with self.assertRaises(stageline.UsageError) as said:
                    stageline.open(folder)
            finally:
                sys.modules.pop('pyarrow')
                if hidden:
                    sys.modules['pyarrow'] = hidden
            self.assertIn('--type sqlite', str(said.exception))


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if HAVE_ENGINE:
            cls.trace = stageline.open(GOLDEN / 'kineto/input')
            cls.pipeline = stageline.open(GOLDEN / 'kineto-pipeline/input')

    def tables(self):
        for trace in (self.trace, self.pipeline):
            yield trace.slices()
            yield trace.slices(batch_rows=13)
            yield trace.slices(where=f.on_device)
            yield trace.slices(where=f.name == 'nothing is called so')
            yield trace.steps
            yield trace.analyze('gpu-kernel-breakdown')['kernels']
            yield from trace.analyze('operators').values()
        yield self.pipeline.cells
        yield self.pipeline.messages
        yield self.trace.cells

    @needs('pandas', 'numpy')
    def test_pandas_without_pyarrow(self):
        import pandas
        for table in self.tables():
            for how in ({}, {'categories': False}, {'times': 'timedelta'}):
                frame = table.to_pandas(**how)
                self.assertEqual(list(frame.columns), [c.name for c in table.columns])
                self.assertEqual(len(frame), len(table))
            frame = table.to_pandas()
            for column in table.columns:
                made = [None if pandas.isna(v) else v for v in frame[column.name].tolist()]
                self.assertEqual(made, table[column.name], (table.name, column.name))
        with self.assertRaises(stageline.UsageError):
            self.trace.steps.to_pandas(times='seconds')

    @needs('pandas', 'numpy')
    def test_numbers_are_views(self):
        import numpy
        frame = self.trace.slices(columns=['start_ns', 'dur_ns'])._frame
        for batch in range(len(frame.batch_rows())):
            array = numpy.asarray(frame.data(batch, 0)[0])
            self.assertEqual(array.__array_interface__['data'][0], self.trace._run.start_address(batch))
            self.assertFalse(array.flags.writeable)
        del frame
        self.assertGreater(int(array[0]), 0)  # the array keeps what it looks into

    @needs('polars', 'numpy')
    def test_polars_copies_no_numbers(self):
        """This is counted, not timed: each chunk's values are at the engine's addresses."""
        import polars
        for trace in (self.trace, stageline.open(GOLDEN / 'kineto/input', align='never')):
            table = trace.slices(columns=['start_ns', 'dur_ns', 'file_index'], batch_rows=64)
            frame, same = polars.DataFrame(table), 0
            for place, name in enumerate(frame.columns):
                chunks = frame[name].get_chunks()
                self.assertEqual(len(chunks), len(table._frame.batch_rows()))
                for batch, chunk in enumerate(chunks):
                    same += chunk.to_numpy(allow_copy=False).__array_interface__['data'][0] == table._frame.data(batch, place)[0].address
            self.assertEqual(same, 3 * len(table._frame.batch_rows()))

    @needs('pyarrow')
    def test_arrow(self):
        import pyarrow
        for table in self.tables():
            made = table.to_arrow()
            made.validate(full=True)
            self.assertEqual(made.num_rows, len(table))
            self.assertEqual(made.to_pylist(), table.to_dicts(), table.name)
            field = made.schema.field(0)
            self.assertEqual(field.metadata[b'stageline.title'].decode(), table.columns[0].title)
        table = self.trace.slices(columns=['start_ns', 'name'])
        made = pyarrow.table(table)
        self.assertEqual(made['start_ns'].chunk(0).buffers()[1].address, self.trace._run.start_address(0))
        self.assertTrue(pyarrow.types.is_dictionary(made.schema.field('name').type))
        self.assertEqual(pyarrow.schema(table), made.schema)

    @needs('pyarrow')
    def test_arrays_outlive_all(self):
        trace = stageline.open(GOLDEN / 'kineto/input')
        made = trace.slices(columns=['start_ns', 'name']).to_arrow()
        expected = self.trace.slices(columns=['start_ns', 'name']).to_dicts()
        trace.close()
        del trace
        self.assertEqual(made.to_pylist(), expected)

    @needs('pyarrow')
    def test_streams_that_nobody_reads(self):
        for _ in range(50):
            self.trace.slices().__arrow_c_stream__()
            self.trace.slices().__arrow_c_schema__()
            reader = importlib.import_module('pyarrow').RecordBatchReader.from_stream(self.trace.slices(batch_rows=5))
            reader.read_next_batch()

    @needs('polars')
    def test_polars(self):
        for table in self.tables():
            made = table.to_polars()
            self.assertEqual(made.height, len(table))
            self.assertEqual(made.to_dicts(), table.to_dicts(), table.name)

    @needs('duckdb')
    def test_duckdb(self):
        import duckdb
        kernels = self.trace.kernels(columns=['name', 'dur_ns'])  # noqa: F841
        rows = duckdb.sql('SELECT name, count(*), sum(dur_ns) FROM kernels GROUP BY name ORDER BY 3 DESC, 1').fetchall()
        sums = {}
        for row in self.trace.kernels().to_dicts():
            count, total = sums.get(row['name'], (0, 0))
            sums[row['name']] = (count + 1, total + row['dur_ns'])
        self.assertEqual({name: (count, total) for name, count, total in rows}, sums)

    @needs('pyarrow')
    def test_from_arrow(self):
        import pyarrow.csv
        path = GOLDEN / 'op-table/input'
        source = next(p for p in sorted(path.iterdir()) if p.suffix == '.csv') if path.is_dir() else path
        rows = pyarrow.csv.read_csv(source)
        a, b = stageline.from_arrow(rows), stageline.open(source)
        self.assertEqual(a.cells.to_dicts(), b.cells.to_dicts())
        a.chart()
        with self.assertRaises(stageline.UsageError):
            stageline.from_arrow(rows, units={'no_such_column': 's'})

    @needs('pyarrow', 'polars')
    def test_parquet_of_a_published_job(self):
        """StragglerAnalysis' Parquet, whose columns are int8, float and dictionaries, through pyarrow and polars: the run of its CSV twin."""
        shared = ROOT.parent / 'shared/data'
        path, twin = shared / 'imports/parquet/trace-ST.parquet', shared / 'pipeline_ops/bytedance/trace-ST.csv.gz'
        if not path.exists() or not twin.exists():
            self.skipTest('needs ../shared (published traces)')
        import polars
        import pyarrow.parquet
        wanted = stageline.open(twin)
        for table in (pyarrow.parquet.read_table(path), polars.read_parquet(path)):
            trace = stageline.from_arrow(table)
            self.assertEqual(len(trace.cells), 6784)
            self.assertEqual(trace.cells.to_dicts(), wanted.cells.to_dicts())
            self.assertEqual(trace.findings.headline, wanted.findings.headline)


class Tools(unittest.TestCase):
    @needs('pytest')
    def test_budgets(self):
        with tempfile.TemporaryDirectory() as folder:
            run = simulated(folder)
            pathlib.Path(folder, 'test_budget.py').write_text(f'''
pytest_plugins = ['stageline.pytest_plugin']
def test_kept(stageline_budget):
    stageline_budget({str(run)!r}, bubble=0.99, step_ms=1e6, lost=0.99, findings=['link.slow'])
def test_slow(stageline_budget):
    stageline_budget({str(run)!r}, step_ms=1)
def test_bubble(stageline_budget):
    stageline_budget({str(run)!r}, bubble=0.01)
def test_finding(stageline_budget):
    stageline_budget({str(run)!r}, findings=['stage.slow'])
''')
            done = subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', folder], capture_output=True, text=True, cwd=folder,
                                  env={**os.environ, 'PYTHONPATH': str(PACKAGE)})
            self.assertIn('3 failed, 1 passed', done.stdout, done.stdout + done.stderr)
            for words in ('the budget is 1 ms', 'the budget is 1.00%', 'stage.slow: '):
                self.assertIn(words, done.stdout)

    @needs('IPython')
    def test_the_cell_magic(self):
        code = '''
import sys
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
shell.run_line_magic('load_ext', 'stageline')
trace = shell.run_cell_magic('stageline', '', """
import time
from stageline import record
for s in range(2):
    record.step(s)
    with record.job('F', micro_batch=0):
        time.sleep(0.002)
    with record.job('B', micro_batch=0):
        time.sleep(0.002)
""")
assert len(trace.cells) >= 4, trace
again = shell.run_cell_magic('stageline', '', "from stageline import record\\nwith record.job('F', micro_batch=1): pass")
assert again is not None and len(again.cells) == 1, again
for nothing in ('\\n', '# nothing', 'x = 1'):
    assert shell.run_cell_magic('stageline', '', nothing) is None
print('shown')
'''
        done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, env={**os.environ, 'PYTHONPATH': str(PACKAGE),
                                                                                              'STAGELINE_RANK': '0'})
        self.assertIn('shown', done.stdout, done.stdout + done.stderr)
        self.assertEqual((done.stdout.count('the cell is empty'), done.stdout.count('this cell recorded nothing')), (1, 2))


class Typed(unittest.TestCase):
    WRONG = ('trace.operators(row_limits=5)', 'trace.operatorz()', "trace.operators(format='pdf')", 'TraceAnalysis(trace_folder=1)',
             'stageline.torch.key_averages(trace, group_by=5)', "record.init(folder='x')", "record.job('X')", "stageline.f.name.like('x')")
    # These modules are for users and have no stub. The hooks are for the frameworks into which they are put.
    MODULES = ('torch', 'filters', 'magic', 'pytest_plugin', 'command')
    UNTYPED = ('stageline.hooks.', 'stageline.launch.')

    @needs('mypy')
    def test_a_sample_is_clean_and_misspelt_options_are_not(self):
        sample = (pathlib.Path(__file__).resolve().parent / 'typed_sample.py').read_text()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'sample.py'
            path.write_text(sample + ''.join(f'{line}\n' for line in self.WRONG))
            done = subprocess.run([sys.executable, '-m', 'mypy', '--strict', path.name], cwd=folder, capture_output=True, text=True,
                                  env={**os.environ, 'MYPYPATH': str(PACKAGE)})
        places = [int(line.split(':')[1]) for line in done.stdout.splitlines() if line.startswith(path.name) and ': error:' in line]
        first = len(sample.splitlines()) + 1
        self.assertEqual(places, list(range(first, first + len(self.WRONG))), done.stdout)

    @needs('pyright')
    def test_the_sample_is_clean_in_pyright_too(self):
        sample = (pathlib.Path(__file__).resolve().parent / 'typed_sample.py').read_text()
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, 'sample.py').write_text(sample + ''.join(f'{line}\n' for line in self.WRONG))
            pathlib.Path(folder, 'pyrightconfig.json').write_text(json.dumps({'include': ['sample.py'], 'extraPaths': [str(PACKAGE)],
                                                                              'typeCheckingMode': 'strict'}))
            found = self.pyright(folder)
        places = {f['range']['start']['line'] + 1 for f in found['generalDiagnostics'] if f['severity'] == 'error'}
        first = len(sample.splitlines()) + 1
        self.assertEqual(sorted(places), list(range(first, first + len(self.WRONG))), found)


    @staticmethod
    def stubs():
        return sorted(str(path) for package in ('stageline', 'stageline_record') for path in (ROOT / 'python' / package).rglob('*.pyi'))

    @needs('mypy', 'pytest', 'pandas-stubs', 'networkx-stubs')
    def test_the_stubs_are_clean(self):
        with tempfile.TemporaryDirectory() as folder:
            modules = [str(ROOT / f'python/stageline/{name}.py') for name in self.MODULES]
            done = subprocess.run([sys.executable, '-m', 'mypy', '--strict', '--cache-dir', folder, *self.stubs(), *modules], cwd=ROOT / 'python',
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @needs('pyright', 'pandas-stubs', 'networkx-stubs')
    def test_the_stubs_are_clean_in_pyright_too(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, 'sources').symlink_to(ROOT / 'python')
            pathlib.Path(folder, 'pyrightconfig.json').write_text(json.dumps({
                'include': ['sources/stageline/**/*.pyi', 'sources/stageline_record/**/*.pyi'], 'extraPaths': ['sources'], 'typeCheckingMode': 'strict'}))
            found = self.pyright(folder)
        self.assertGreaterEqual(found['summary']['filesAnalyzed'], len(self.stubs()))
        self.assertEqual([f'{f["file"]}: {f["message"]}' for f in found['generalDiagnostics'] if f['severity'] == 'error'], [])

    @needs('pyright', 'pandas-stubs', 'networkx-stubs')
    def test_everything_for_users_has_a_type(self):
        for package in ('stageline', 'stageline_record'):
            with tempfile.TemporaryDirectory() as folder:
                found = self.pyright(folder, '--verifytypes', package, '--ignoreexternal')['typeCompleteness']
            self.assertGreater(found['exportedSymbolCounts']['withKnownType'], 50)
            without = [s['name'] for s in found['symbols'] if s['isExported'] and not s['isTypeKnown'] and not s['name'].startswith(self.UNTYPED)]
            self.assertEqual(without, [])

    def pyright(self, folder, *options):
        done = subprocess.run([sys.executable, '-m', 'pyright', '--outputjson', '--pythonpath', sys.executable, *options], cwd=folder, capture_output=True,
                              text=True, env={**os.environ, 'PYTHONPATH': str(PACKAGE)})
        if not done.stdout.startswith('{'):
            self.skipTest('pyright does not start here (it needs node)')
        return json.loads(done.stdout)


class Torch(unittest.TestCase):
    @needs()
    def test_key_averages_is_the_programs_table(self):
        import stageline.torch
        from engine_test import program
        path = GOLDEN / 'kineto/input'
        trace = stageline.open(path)
        averages = stageline.torch.key_averages(trace)
        reported = program('analyze', 'operators', path, '--format', 'torch', '--ranks', trace.ranks[0])
        self.assertEqual(averages.table(), reported)
        self.assertEqual(averages[0].key, trace.analyze('operators').operators['name'][0])
        self.assertIsInstance(averages[0].self_cpu_time_total, float)

    @needs()
    def test_key_averages_have_what_torchs_have(self):
        """Totals, texts of times and stacks, on traces that torch recorded; the total is the one that the table prints."""
        import re
        import stageline.torch
        compared = stacks = 0
        for path in sorted((ROOT / 'tests/torch/recorded').glob('*.trace.json.gz')):
            trace = stageline.open(path)
            averages = stageline.torch.key_averages(trace, group_by_stack_n=5)
            whole = stageline.torch.key_averages(trace)
            total = whole.total_average()
            self.assertEqual((total.key, total.count), ('Total', sum(row.count for row in whole)))
            self.assertAlmostEqual(total.cpu_time_total, sum(row.cpu_time_total for row in whole), 6)
            printed = whole.table(row_limit=-1)
            found = re.search(r'Self CPU time total: (\S+)', printed)
            if found and whole.self_cpu_time_total:
                self.assertEqual(found.group(1), stageline.torch._time_text(whole.self_cpu_time_total), path.name)
                compared += 1
            with tempfile.TemporaryDirectory() as folder:
                written = pathlib.Path(folder) / 'stacks.txt'
                averages.export_stacks(written, 'self_cpu_time_total')
                wanted = [row for row in averages if row.stack and int(row.self_cpu_time_total) > 0]
                self.assertEqual(len(written.read_text().splitlines()), len(wanted))
                for line, row in zip(written.read_text().splitlines(), wanted):
                    self.assertEqual((line.count(';') + 1, int(line.rsplit(' ', 1)[1])), (len(row.stack), int(row.self_cpu_time_total)))
                stacks += len(wanted)
        self.assertGreater(min(compared, stacks), 5)
        with self.assertRaises(ValueError):
            averages.export_stacks('nowhere', 'count')

    @needs()
    def test_the_handler_never_raises_and_says_what_it_found(self):
        import stageline.torch
        source = next(p for p in sorted((GOLDEN / 'kineto/input').rglob('*')) if p.is_file())

        class Profiler:
            def export_chrome_trace(self, path):
                import gzip
                data = source.read_bytes()
                pathlib.Path(path).write_bytes(data if data[:2] == b'\x1f\x8b' else gzip.compress(data))

        class Broken:
            def export_chrome_trace(self, path):
                raise RuntimeError('no events')

        with tempfile.TemporaryDirectory() as folder:
            handler = stageline.torch.handler(folder, report=os.path.join(folder, 'page-{rank}-{index}.html'))
            handler(Profiler())
            self.assertEqual(handler.wait(120), 0)
            self.assertTrue((pathlib.Path(folder) / 'page-0-0.html').exists())
            self.assertEqual(len(list(pathlib.Path(folder).glob('rank-0.*.json.gz'))), 1)
            with self.assertWarns(UserWarning):
                handler(Broken())


if __name__ == '__main__':
    unittest.main()
