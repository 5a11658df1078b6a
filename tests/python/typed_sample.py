"""Code as users of the package write it, for type checkers: libraries_test.py runs mypy --strict on it. Never run."""
import stageline
import stageline.torch
from stageline import record
from stageline.hta import redirect
from stageline.hta.analyzers.critical_path_analysis import CPGraph
from stageline.hta.common.trace import Trace
from stageline.hta.common.trace_call_graph import CallGraph
from stageline.hta.common.trace_filter import CPUOperatorFilter
from stageline.hta.common.trace_symbol_table import TraceSymbolTable
from stageline.hta.memory_analysis import MemoryAnalysis
from stageline.hta.trace_analysis import TimeSeriesTypes, TraceAnalysis
from stageline.hta.trace_diff import DeviceType, LabeledTrace, TraceDiff

trace = stageline.open('traces', ranks=[0, 1])
trace.operators(row_limit=5, format='torch')
trace.findings[0].answer().table.to_pandas()
rows = stageline.torch.key_averages(trace, group_by_stack_n=5)
text: str = rows.table(row_limit=-1, max_name_column_width=None) + rows[0].key + rows.total_average().cpu_time_total_str
failed: int = stageline.torch.handler('captures', ranks=[0, 1]).wait()

late = trace.slices(where=stageline.f.name.contains('nccl') & ~stageline.f.step.between(0, 2)).to_dicts()
if record.init('recording', rank=0):
    with record.job('F', micro_batch=3, chunk=0), record.range('load'):
        record.counter('loss', 1.5)
    record.shutdown()

@record.annotate('load')
def load(number: int) -> int:
    return number

loaded_twice: int = load(2)

redirect.install()
analyzer = TraceAnalysis(trace_dir='traces')
analyzer.get_temporal_breakdown(visualize=False)
kinds, kernels = analyzer.get_gpu_kernel_breakdown(num_kernels=5, visualize=False)
idle, stats = analyzer.get_idle_time_breakdown(ranks=[0], visualize=False, show_idle_interval_stats=True)
queue = analyzer.get_queue_length_time_series(ranks=[0])[0]
analyzer.generate_trace_with_counters(time_series=TimeSeriesTypes.QUEUE_LENGTH, ranks=[0])
found = analyzer.critical_path_analysis(rank=0, annotation='ProfilerStep', instance_id=1)
if found is not None:
    graph, sound = found
    path: CPGraph = graph
    analyzer.overlay_critical_path_analysis(0, path, output_dir='out')
names: TraceSymbolTable = analyzer.t.symbol_table
operators = CPUOperatorFilter()(analyzer.t.get_trace(0), names)
loaded = Trace(trace_dir='traces')
loaded.parse_traces()
CallGraph(loaded)
TraceDiff.ops_diff(LabeledTrace(trace_dir='a'), LabeledTrace(trace_dir='b'), device_type=DeviceType.CPU)
MemoryAnalysis('memory')
