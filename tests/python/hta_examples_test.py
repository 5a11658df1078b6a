"""What the example notebooks of Holistic Trace Analysis ask runs under `redirect`, on traces that are generated here: names that modules
had in earlier releases, filters, timelines, parser configurations, execution traces, figures. As notebooks, cell by cell, where nbclient and a
kernel are installed, else as scripts. Skipped without pandas, plotly and networkx."""
import ast
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import HAVE_ENGINE, PACKAGE, ROOT  # noqa: E402

HAVE_LIBRARIES = all(importlib.util.find_spec(name) for name in ('pandas', 'plotly', 'networkx'))
HAVE_NOTEBOOKS = all(importlib.util.find_spec(name) for name in ('nbclient', 'nbformat', 'ipykernel'))
BEFORE = """
import glob, gzip, json, sys
import stageline.hta.redirect
import pandas as pd
import plotly.io
plotly.io.renderers.default = 'json'
from hta.trace_analysis import TimeSeriesTypes, TraceAnalysis
"""
EXAMPLES = {
    'customize_trace_parser': """
from hta.common.trace import Trace
from hta.configs.parser_config import ParserConfig
def columns():
    trace = Trace(trace_dir=folder)
    trace.parse_traces(use_multiprocessing=False)
    return set(trace.get_trace(0).columns)
ParserConfig.set_default_cfg(ParserConfig(ParserConfig.get_minimum_args()))
few = columns()
config = ParserConfig.get_default_cfg()
config.add_args(ParserConfig.ARGS_INPUT_SHAPE)
ParserConfig.set_default_cfg(config)
assert columns() - few >= {'input_dims', 'input_type'}, columns() - few
""",
    'execution_trace_demo': """
from hta.common import execution_trace
analyzer = TraceAnalysis(trace_dir=folder)
frame = analyzer.t.get_trace(0)
ids = sorted(int(i) for i in frame['external_id'].unique() if i > 0)
nodes = [{'name': 'node', 'id': 100 + i, 'rf_id': i, 'op_schema': f'schema {i}', 'input_shapes': [[i]]} for i in ids[:-1]]
nodes.append({'name': 'node', 'id': 100 + ids[-1], 'inputs': {'shapes': [[7]]}, 'attrs': [{'name': 'rf_id', 'value': ids[-1]}, {'name': 'op_schema', 'value': 'new'}]})
with gzip.open(out + '/et.json.gz', 'wt') as file:
    json.dump({'schema': '1.0.1', 'nodes': nodes}, file)
read = execution_trace.load_execution_trace(out + '/et.json.gz')
execution_trace.correlate_execution_trace(analyzer.t, 0, read)
for column in ('op_schema', 'input_shapes', 'et_node_name'):
    execution_trace.add_et_column(frame, read, column)
linked = frame[frame['et_node'].notna()]
assert len(linked) > 10 and (linked['et_node'] == linked['external_id'] + 100).all()
assert linked['op_schema'].tolist() == ['new' if i == ids[-1] else f'schema {i}' for i in linked['external_id']]
""",
    'identify_stragglers': """
from hta.trace import Trace
import hta.common.trace
assert Trace is hta.common.trace.Trace
analyzer = TraceAnalysis(trace_dir=folder)
steps = analyzer.get_profiler_steps()
analyzer.get_potential_stragglers(profiler_steps=steps[:1], num_candidates=1)
""",
    'kernel_breakdown_demo': """
kinds, kernels = TraceAnalysis(trace_dir=folder).get_gpu_kernel_breakdown(num_kernels=5, include_memory_kernels=True, image_renderer='json')
assert len(kinds) and len(kernels)
""",
    'timeline_demo': """
from hta.common.timeline import Timeline, align_module_with_kernels
from hta.common.trace import Trace, TraceSymbolTable
from hta.common.trace_call_graph import CallGraph
from hta.common.trace_filter import Filter, GPUKernelFilter, IterationIndexFilter, NameFilter
trace = Trace(trace_dir=folder)
trace.parse_traces()
trace.decode_symbol_ids()
CallGraph(trace, ranks=[0, 1])
frame, names = trace.get_trace(0), trace.symbol_table
Timeline(frame, names).plot('all')
class Chosen(Filter):
    def __call__(self, df, symbol_table):
        return NameFilter('(^nccl)|(gemm)')(GPUKernelFilter()(IterationIndexFilter(0)(df, symbol_table), symbol_table), symbol_table)
Timeline(frame, names, filter_func=Chosen()).plot('some')
""",
    'plot_timeline': """
from hta.analyzers.timeline import plot_timeline_gpu_kernels
from hta.common.trace import Trace
trace = Trace(trace_dir=folder)
trace.parse_traces()
ranks = list(trace.get_all_traces())
frame = pd.concat([trace.get_trace(r) for r in ranks], axis=0, keys=ranks, names=['rank', 'idx']).reset_index()
names = pd.Series(trace.symbol_table.get_sym_id_map())
others = frame[~frame['name'].isin(names[names.index.str.startswith('Memcpy')].values)]
plot_timeline_gpu_kernels('kernels', others, trace.symbol_table, ranks=[0, 1], duration_threshold=2)
""",
    'trace_analysis_demo': """
analyzer = TraceAnalysis(trace_dir=folder)
analyzer.get_temporal_breakdown()
analyzer.get_idle_time_breakdown(ranks=[0], visualize_pctg=False, show_idle_interval_stats=True)
analyzer.get_comm_comp_overlap()
analyzer.get_cuda_kernel_launch_stats(ranks=[0, 1])
analyzer.get_memory_bw_summary(ranks=[0, 1])
analyzer.get_queue_length_time_series(ranks=[0])
analyzer.get_frequent_cuda_kernel_sequences(operator_name='aten::', output_dir=out)
""",
    # By no notebook: frames of kernels have the trace's own columns and types.
    'kernels_with_annotations': """
def event(cat, name, ts, dur, tid, pid=1, **args):
    return {'ph': 'X', 'cat': cat, 'name': name, 'ts': 1000 + ts, 'dur': dur, 'pid': pid, 'tid': tid, 'args': args}
events = [event('cpu_op', 'aten::mm', 0, 30, 1), event('cuda_runtime', 'cudaLaunchKernel', 5, 5, 1, correlation=1),
          event('cuda_runtime', 'cudaLaunchKernel', 15, 5, 1, correlation=2), event('gpu_user_annotation', 'forward', 20, 30, 7, 0, stream=7),
          event('kernel', 'first', 25, 20, 7, 0, stream=7, correlation=1), event('kernel', 'second', 60, 20, 7, 0, stream=7, correlation=2)]
with open(out + '/rank-0.json', 'w') as file:
    json.dump({'traceEvents': events, 'distributedInfo': {'rank': 0}}, file)
analyzer = TraceAnalysis(trace_dir=out)
kernels = analyzer.get_gpu_kernels_with_user_annotations(0)
frame = analyzer.t.get_trace(0)
assert set(frame.columns) <= set(kernels.columns) and {'user_annotation', 's_name', 's_cat', 's_user_annotation'} <= set(kernels.columns), kernels.columns
assert all(kernels[c].dtype == frame[c].dtype for c in ('index', 'ts', 'dur', 'stream', 'name', 'cat'))
texts = analyzer.t.symbol_table.get_sym_table()
assert [texts[i] if i >= 0 else '' for i in kernels['user_annotation']] == kernels['s_user_annotation'].tolist()
assert kernels[['s_name', 's_user_annotation']].values.tolist() == [['first', 'forward'], ['second', '']]
assert 's_name' not in analyzer.get_gpu_kernels_with_user_annotations(0, expand_names=False)
""",
    'trace_diff_demo': """
from hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
before, after = LabeledTrace(label='before', trace_dir=folder), LabeledTrace(label='after', trace_dir=folder)
changed = TraceDiff.compare_traces(before, after, device_type=DeviceType.ALL)
TraceDiff.visualize_counts_diff(changed.head(10))
TraceDiff.visualize_duration_diff(changed.head(10))
TraceDiff.ops_diff(before, after)
""",
    'trace_filter_demo': """
from hta.common.trace import Trace
from hta.common.trace_filter import CompositeFilter, GPUKernelFilter, IterationIndexFilter, NameFilter, TimeRangeFilter
trace = Trace(trace_dir=folder)
trace.parse_traces()
trace.decode_symbol_ids()
frame, names = trace.get_trace(0), trace.symbol_table
assert len(NameFilter('aten::.*')(frame, names)) and len(TimeRangeFilter((frame['ts'].min(), frame['ts'].max()))(frame))
CompositeFilter([IterationIndexFilter(0), GPUKernelFilter(), NameFilter('.', symbol_table=names)])(frame)[['iteration', 'ts', 's_cat', 's_name']]
""",
    'critical_path_analysis': """
analyzer = TraceAnalysis(trace_dir=folder)
graph, sound = analyzer.critical_path_analysis(rank=0, annotation='ProfilerStep', instance_id=1)
assert sound and len(graph.critical_path_nodes)
assert analyzer.overlay_critical_path_analysis(0, graph, output_dir=out)
""",
    'cupti_flops_analysis': """
from hta.analyzers.counters_analysis import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS
assert len(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS) == 9
assert TraceAnalysis(trace_dir=folder).get_cupti_counter_data_with_operators(ranks=[0]) == []
""",
}


def run_notebook(code):
    """One statement a cell. Raises nbclient's CellExecutionError; returns all outputs as text."""
    import nbclient
    import nbformat
    lines = code.splitlines()
    cells = [nbformat.v4.new_code_cell('\n'.join(lines[node.lineno - 1:node.end_lineno])) for node in ast.parse(code).body]
    book = nbformat.v4.new_notebook(cells=cells)
    kept = dict(os.environ)
    os.environ.update(PYTHONPATH=str(PACKAGE), JUPYTER_PLATFORM_DIRS='1')
    try:
        nbclient.NotebookClient(book, timeout=300, kernel_name='python3').execute()
    finally:
        os.environ.clear()
        os.environ.update(kept)
    return json.dumps([cell.outputs for cell in book.cells])


def run_script(code):
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', code], capture_output=True, text=True, env={**os.environ, 'PYTHONPATH': str(PACKAGE)})
    if done.returncode:
        raise AssertionError(done.stderr[-2000:])
    return done.stdout


@unittest.skipUnless(HAVE_ENGINE and HAVE_LIBRARIES, 'no module, or no pandas, plotly and networkx')
class Examples(unittest.TestCase):
    def test_they_run(self):
        with tempfile.TemporaryDirectory() as folder:
            traces = os.path.join(folder, 'traces')
            subprocess.run([sys.executable, ROOT / 'tests/gen/kineto.py', '--ranks', '2', '--events', '900', '--old-nccl', '--era', 'us', '--format', 'json', '-o', traces],
                           check=True, capture_output=True)
            for name, code in EXAMPLES.items():
                with self.subTest(name), tempfile.TemporaryDirectory() as out:
                    shown = (run_notebook if HAVE_NOTEBOOKS else run_script)(f'{BEFORE}folder, out = {traces!r}, {out!r}\n{code}')
                    self.assertNotIn('--compat', shown)  # a flag of the program


if __name__ == '__main__':
    unittest.main()
