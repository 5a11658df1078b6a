"""stageline.hta's modules that work on frames: the redirect of `import hta`, reading, filters, call stacks, the graph of the critical path.
On traces of our own generator; HTA's own tests are run by hta_suite.py. Skipped without pandas."""
import contextlib
import importlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hta_suite  # noqa: E402
from engine_test import HAVE_ENGINE, PACKAGE, ROOT  # noqa: E402

try:
    import pandas
except ImportError:
    pandas = None


@unittest.skipUnless(HAVE_ENGINE and pandas is not None, 'no module, or no pandas')
class Mirror(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([sys.executable, ROOT / 'tests/gen/kineto.py', '-o', cls.folder.name, '--ranks', '2', '--events', '4000', '--steps', '4',
                        '--era', 'us', '--seed', '3', '--format', 'gz'], check=True, capture_output=True)
        from stageline.hta import TraceAnalysis
        files = sorted(pathlib.Path(cls.folder.name).rglob('*.json.gz'))
        cls.analysis = TraceAnalysis(trace_files={r: str(p) for r, p in enumerate(files)}, trace_dir='')

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_frames_are_the_rows_that_the_engine_has(self):
        """Read by Python's JSON here and by the engine there: the same rows after loading, with partners and steps."""
        table = self.analysis._ask('events', table='events').table.to_pandas(categories=False)
        for rank in (0, 1):
            theirs, ours = table[table['rank'] == rank], self.analysis.t.get_trace(rank)
            self.assertEqual(ours['index'].tolist(), theirs['index'].tolist())
            names = self.analysis.t.symbol_table.sym_table
            self.assertEqual([names[i] for i in ours['name']], theirs['name'].tolist())
            for column in ('ts', 'dur', 'end', 'stream', 'correlation', 'index_correlation', 'iteration', 'bytes', 'in_msg_nelems'):
                self.assertEqual(ours[column].tolist(), theirs[column].tolist(), column)

    def test_import_hta_is_ours(self):
        code = ('import stageline.hta.redirect, hta, sys\n'
                'from hta.trace_analysis import TraceAnalysis\n'
                'import hta.common.trace as a, stageline.hta.common.trace as b\n'
                'from hta.common.trace_filter import CompositeFilter\n'
                'assert a is b and hta.common.trace is b and TraceAnalysis.__module__ == "stageline.hta.trace_analysis"\n'
                'assert b.__name__ == "stageline.hta.common.trace" and b.__spec__.name == b.__name__\n'
                'try:\n    import hta.nothing_of_that_name\nexcept ImportError:\n    print("good")\n')
        done = subprocess.run([sys.executable, '-c', code], env={**os.environ, 'PYTHONPATH': str(PACKAGE)}, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ('good\n', ''))

    def test_call_graphs_agree_with_the_engine(self):
        from stageline.hta.common.trace_call_graph import CallGraph
        CallGraph(self.analysis.t, ranks=[0])
        ours = self.analysis.t.get_trace(0).set_index('index')
        theirs = self.analysis._ask('call-graph', builder='trace-call-graph')['trace-call-graph'].to_pandas(categories=False)
        theirs = theirs[theirs['rank'] == 0].drop_duplicates('index').set_index('index')
        compared = 0
        for column in ('depth', 'height', 'num_kernels', 'kernel_dur_sum'):
            both = theirs[column].dropna()
            both = both[theirs.loc[both.index, 'depth'] >= 0]
            self.assertEqual(ours.loc[both.index, column].astype('float64').tolist(), both.astype('float64').tolist(), column)
            compared += len(both)
        self.assertGreater(compared, 1000)

    def test_trace_diff_agrees_with_the_engine(self):
        from stageline.hta.trace_diff import TraceDiff
        from stageline.hta.common.trace import Trace
        traces = [Trace(trace_files={0: path}, trace_dir='') for path in self.analysis._frames.trace_files.values()]
        frame = TraceDiff.compare_traces(*traces)
        self.assertEqual(frame['diff_counts'].sum(), frame.iloc[:, 2].sum() - frame.iloc[:, 0].sum())
        changed = TraceDiff.ops_diff(*traces)
        self.assertEqual(sum(map(len, changed.values())), len(frame))
        self.assertEqual(set(frame['counts_change_categories']) - set('+-='), set())

    def test_filters_leave_the_frame_alone(self):
        from stageline.hta.common.trace_filter import CompositeFilter, CPUOperatorFilter, FirstIterationFilter, GPUKernelFilter, NameFilter
        frame, symbols = self.analysis.t.get_trace(0), self.analysis.t.symbol_table
        before = frame.copy()
        host, device = CPUOperatorFilter()(frame, symbols), GPUKernelFilter()(frame, symbols)
        self.assertEqual(len(host) + len(device), len(frame))
        first = CompositeFilter([FirstIterationFilter(), NameFilter('^aten::', symbol_table=symbols)])(frame)
        self.assertEqual(set(first['iteration']), {min(i for i in frame['iteration'] if i >= 0)})
        pandas.testing.assert_frame_equal(frame, before)

    def test_the_graph_of_the_critical_path(self):
        try:
            importlib.import_module('networkx')
        except ImportError:
            self.skipTest('no networkx')
        from stageline.hta.analyzers.critical_path_analysis import restore_cpgraph
        graph, sound = self.analysis.critical_path_analysis(0, 'ProfilerStep', 1)
        self.assertTrue(sound)
        reported = graph.get_critical_path_breakdown()
        self.assertEqual(len(reported), len(graph.critical_path_edges_set))
        path = list(graph.critical_path_nodes)
        self.assertTrue(graph.critical_path())  # networkx' own way through the engine's edges
        weigh = lambda nodes: sum(graph.edges[e]['weight'] for e in zip(nodes, nodes[1:]))  # noqa: E731
        self.assertEqual(weigh(graph.critical_path_nodes), weigh(path))
        with tempfile.TemporaryDirectory() as folder:
            again = restore_cpgraph(graph.save(folder + '/graph'), self.analysis.t, 0)
            self.assertEqual((len(again.nodes), len(again.edges)), (len(graph.nodes), len(graph.edges)))
            self.assertAlmostEqual(again.summary().sum(), 100)
        self.assertIsNone(self.analysis.critical_path_analysis(0, 'nothing is called so', 0))

    def test_a_stack_of_a_row_that_is_twice_there(self):
        from stageline.hta.common.trace_call_stack import CallStackGraph, CallStackIdentity
        from stageline.hta.common.trace_symbol_table import TraceSymbolTable
        frame = pandas.DataFrame({'index': [0, 0], 'ts': [1, 1], 'dur': [5, 5], 'stream': [-1, -1], 'index_correlation': [-1, -1]})
        with self.assertLogs('hta', 'ERROR'), self.assertRaises(ValueError):
            CallStackGraph(frame, CallStackIdentity(0, 1, 1), pandas.DataFrame({'cpu_index': [], 'gpu_index': []}), frame, TraceSymbolTable())

    def test_the_suite_says_what_it_lacks(self):
        said = io.StringIO()
        arguments, sys.argv = sys.argv, ['hta_suite.py', '--sources', self.folder.name]
        try:
            with contextlib.redirect_stdout(said):
                self.assertEqual(hta_suite.main(), 0)
        finally:
            sys.argv = arguments
        self.assertTrue(said.getvalue().startswith('skipped: '))


if __name__ == '__main__':
    unittest.main()
