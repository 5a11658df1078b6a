"""No output of the package, nor of the drop-in for HTA, takes the name of an input."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import GOLDEN, HAVE_ENGINE, simulated  # noqa: E402

if HAVE_ENGINE:
    import stageline


@unittest.skipUnless(HAVE_ENGINE, 'the module was not built')
class Gate(unittest.TestCase):
    def test_every_call_that_writes(self):
        with tempfile.TemporaryDirectory() as made:
            run = simulated(os.path.join(made, 'run'))
            log = pathlib.Path(run, 'workerlog.0')
            before = log.read_bytes()
            trace = stageline.open(run, progress=False)
            table = trace.sql('SELECT * FROM cells')
            link = pathlib.Path(made, 'link')
            link.symlink_to(log)
            for path in (log, link, os.fspath(log).encode()):
                for write in (lambda: table.to_csv(path), lambda: table.to_json(path), lambda: trace.chart().save(path)):
                    with self.assertRaises(stageline.UsageError):
                        write()
                    self.assertEqual(log.read_bytes(), before)
            table.to_csv(os.path.join(made, 'ü.csv'))
            self.assertEqual(pathlib.Path(made, 'ü.csv').read_text(), table.to_csv())

    @unittest.skipUnless(shutil.which('strace'), 'needs strace')
    def test_every_file_that_is_opened(self):
        """As the system reports what a script opens: none of these is taken by any call that writes."""
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import stageline; t = stageline.open(sys.argv[2], progress=False); t.findings; t.sql('SELECT count(*) FROM slices'); t.diagnostics")
        warnings.simplefilter('ignore', stageline.TraceWarning)
        tried = 0
        for fixture in ('paddle-log', 'kineto', 'nsys', 'ascend-text', 'rocprofv3-csv', 'recording', 'flight-recorder', 'xplane'):
            with tempfile.TemporaryDirectory() as made:
                work, log = pathlib.Path(made, 'run'), pathlib.Path(made, 'log')
                shutil.copytree(GOLDEN / fixture / 'input', work)
                before = {p: p.read_bytes() for p in work.rglob('*') if p.is_file()}
                subprocess.run(['strace', '-f', '-qq', '-s', '999', '-e', 'trace=open,openat', '-o', log, sys.executable, '-c', script, pathlib.Path(stageline.__file__).parents[1], work],
                               check=True, capture_output=True)
                calls = [line for line in log.read_text(errors='replace').splitlines() if f'"{work}/' in line and ' = -1' not in line]
                self.assertEqual([line for line in calls if re.search('O_WRONLY|O_RDWR|O_CREAT|O_TRUNC', line)], [])
                opened = sorted({os.path.realpath(re.search(r'"([^"]+)"', line)[1]) for line in calls} & {os.path.realpath(p) for p in before})
                self.assertTrue(opened, fixture)
                trace = stageline.open(work, progress=False)
                table = trace.sql('SELECT 1 AS x')
                for path in opened[:12]:
                    for name in (path, os.path.join(made, 'hard.html')):
                        if name != path:
                            os.link(path, name)
                        for write in (table.to_csv, table.to_json, lambda to: trace.export(to, 'json'), lambda to: trace.export(to, 'json', force=True), lambda to: trace.report(to)):
                            with self.assertRaises(stageline.Error):
                                write(name)
                            tried += 1
                    os.unlink(name)
                self.assertEqual({p: p.read_bytes() for p in work.rglob('*') if p.is_file()}, before)
        self.assertGreater(tried, 200)

    def test_an_input_that_got_the_number_of_a_removed_one_stays(self):
        """A removed log's inode number is given to the next run's log, as file systems do; a second name makes it certain here."""
        with tempfile.TemporaryDirectory() as made:
            first = pathlib.Path(simulated(os.path.join(made, 'first')), 'workerlog.0')
            second = pathlib.Path(made, 'second', 'workerlog.0')
            second.parent.mkdir()
            stageline.open(first, progress=False)
            os.link(first, second)
            first.unlink()
            before = second.read_bytes()
            table = stageline.open(second, progress=False).sql('SELECT * FROM cells')
            with self.assertRaises(stageline.UsageError):
                table.to_csv(second)
            self.assertEqual(second.read_bytes(), before)

    def test_a_file_of_another_program_stays(self):
        with tempfile.TemporaryDirectory() as made:
            trace = stageline.open(simulated(os.path.join(made, 'run')), progress=False)
            table = trace.sql('SELECT * FROM cells')
            others = pathlib.Path(made, 'rank0.json')
            try:
                os.setxattr(made, 'user.stageline.test', b'1')
            except OSError:
                self.skipTest('needs a file system with extended attributes')
            for data in (sorted((GOLDEN / 'kineto/input').glob('*.json'))[0].read_bytes(), b'by hand'):
                others.write_bytes(data)
                for write in (table.to_csv, table.to_json, trace.chart().save):
                    with self.assertRaises(stageline.UsageError):
                        write(others)
                    self.assertEqual(others.read_bytes(), data)
            others.unlink()
            for _ in range(2):
                table.to_csv(others)

    def test_a_trace_that_cannot_be_written_stays_as_it_was(self):
        try:
            from stageline.hta.common import trace_file
        except ImportError as error:
            self.skipTest(str(error))
        with tempfile.TemporaryDirectory() as made:
            path = pathlib.Path(made, 'rank0.json')
            path.write_text('{"traceEvents": []}')
            path.chmod(0o600)
            with self.assertRaises(TypeError):
                trace_file.write_trace({'traceEvents': [], 'more': object()}, str(path))
            self.assertEqual(path.read_text(), '{"traceEvents": []}')
            trace_file.update_trace_rank(str(path), 3)
            self.assertEqual(trace_file.get_trace_rank(str(path)), 3)
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
            self.assertEqual(os.listdir(made), ['rank0.json'])

    def test_no_file_is_written_past_the_gate(self):
        """HTA's trace_file replaces traces, as its interface is (above)."""
        fresh = ('path.write_bytes(self.page())', "with builtins.open(path, 'w', newline='') as file:")  # in a folder of mkdtemp()
        package = pathlib.Path(__file__).resolve().parents[2] / 'python/stageline'
        past = re.compile(r"""\.write_(image|html|json)\(|ZipFile\([^)\n]*_?path\b[^)\n]*['"][wax]|\bopen\([^)\n]*,\s*['"][wax]|\.write_(text|bytes)\(""")
        self.assertTrue(past.search("ZipFile(path, 'w')") and past.search("figure.write_image)(p)".replace(')(', '(')) and past.search("open(a, 'wb')"))
        found = [f'{file.relative_to(package)}: {line.strip()}' for file in sorted(package.rglob('*.py')) if file.name != 'trace_file.py'
                 for line in file.read_text().splitlines() if past.search(line) and line.strip() not in fresh]
        self.assertEqual(found, [])

    def test_figures_and_graphs_of_the_drop_in(self):
        try:
            import networkx
            from stageline.hta.analyzers.critical_path_analysis import CPGraph
            from stageline.hta.common._plotly import write_figure
        except ImportError as error:
            self.skipTest(str(error))
        import types
        figure = types.SimpleNamespace(to_html=lambda: '<html></html>', to_image=lambda format: f'picture {format}'.encode())
        with tempfile.TemporaryDirectory() as made:
            run = pathlib.Path(made, 'run.zip')  # what save('run') writes, and an archive of traces
            with zipfile.ZipFile(run, 'w') as archive:
                archive.write(os.path.join(simulated(os.path.join(made, 'logs')), 'workerlog.0'), 'workerlog.0')
            before = run.read_bytes()
            stageline.open(run, progress=False)
            for name in ('figure.html', 'figure.png'):
                os.link(run, os.path.join(made, name))
                with self.assertRaises(stageline.UsageError):
                    write_figure(figure, os.path.join(made, name))
            graph = CPGraph.__new__(CPGraph)
            networkx.DiGraph.__init__(graph)
            graph.__dict__.update(rank=0, asked={}, critical_path_nodes=[], node_list=[], edge_to_event_map={})
            graph.get_critical_path_breakdown = lambda: types.SimpleNamespace(to_json=lambda orient: '{}')
            with self.assertRaises(stageline.UsageError):
                graph.save(os.path.join(made, 'run'))
            self.assertEqual(run.read_bytes(), before)
            write_figure(figure, os.path.join(made, 'new.svg'))
            self.assertEqual(pathlib.Path(made, 'new.svg').read_text(), 'picture svg')
            self.assertTrue(zipfile.is_zipfile(graph.save(os.path.join(made, 'graph'))))

    def test_a_trace_with_counters_goes_next_to_its_source(self):
        try:
            import pandas  # noqa: F401
            from stageline.hta.trace_analysis import TraceAnalysis
        except ImportError as error:
            self.skipTest(str(error))
        import gzip
        with tempfile.TemporaryDirectory() as made:
            source = sorted((GOLDEN / 'kineto/input').rglob('*.json*'))[0]
            data = source.read_bytes()
            path = pathlib.Path(made, 'rank0.gz')  # HTA takes names in .gz and .json; without .json in it nothing is replaced
            path.write_bytes(data if source.name.endswith('.gz') else gzip.compress(data))
            before = path.read_bytes()
            TraceAnalysis(trace_files={0: str(path)}, trace_dir=made).generate_trace_with_counters()
            self.assertEqual(path.read_bytes(), before)
            self.assertEqual(sorted(os.listdir(made)), ['rank0.gz', 'rank0.gz_with_counters'])


if __name__ == '__main__':
    unittest.main()
