"""The critical path of one rank as a graph of networkx. Nodes, edges, path and breakdown are the engine's
(docs/analyses/critical-path-analysis.md); the object can be changed and asked again."""
import dataclasses
import enum
import functools
import io
import json
import os
import pathlib
import time
import zipfile

import networkx

from stageline import _engine

from ..configs import env_options


class CPEdgeType(enum.Enum):
    """Gives the kind of an edge."""
    OPERATOR_KERNEL = 'critical_path_operator'
    DEPENDENCY = 'critical_path_dependency'
    KERNEL_LAUNCH_DELAY = 'critical_path_kernel_launch_delay'
    KERNEL_KERNEL_DELAY = 'critical_path_kernel_kernel_delay'
    SYNC_DEPENDENCY = 'critical_path_sync_dependency'


class BoundType(enum.Enum):
    """Names the limit of an edge of the path."""
    GPU_KERNEL_KERNEL_OVERHEAD = 'gpu_kernel_kernel_overhead'
    GPU_KERNEL_LAUNCH_OVERHEAD = 'gpu_kernel_launch_overhead'
    DATA_LOADING = 'data_loading'
    CPU_BOUND = 'cpu_bound'
    GPU_COMPUTE_BOUND = 'gpu_compute_bound'
    GPU_COMMUNICATION_BOUND = 'gpu_communication_bound'


DEFAULT_EDGE_TYPES_IN_VIZ = {CPEdgeType.DEPENDENCY, CPEdgeType.KERNEL_LAUNCH_DELAY, CPEdgeType.SYNC_DEPENDENCY}
PROFILE_TIMES = {}  # seconds by name of what timeit wraps


def timeit(func):
    """The function, whose last duration PROFILE_TIMES holds."""
    @functools.wraps(func)
    def timed(*args, **keywords):
        begin = time.perf_counter()
        result = func(*args, **keywords)
        PROFILE_TIMES[func.__name__] = time.perf_counter() - begin
        return result
    return timed


@dataclasses.dataclass(frozen=True)
class CPNode:
    """The start or end of an event; ts in µs."""
    idx: int = -1
    ev_idx: int = -1
    ts: float = 0
    is_start: bool = False
    is_blocking: bool = False


@dataclasses.dataclass(frozen=True)
class CPEdge:
    """An edge leads from one node to another; the weight is in µs."""
    begin: int
    end: int
    type: CPEdgeType
    weight: float = 0


_ATTRIBUTED = (CPEdgeType.OPERATOR_KERNEL, CPEdgeType.KERNEL_KERNEL_DELAY)
_LAUNCHES = ('cudaLaunchKernel', 'cudaLaunchKernelExC', 'cuLaunchKernel', 'cuLaunchKernelEx', 'cudaMemcpyAsync', 'cudaMemsetAsync')


class CPGraph(networkx.DiGraph):
    """edges[u, v]['object'] is a CPEdge, node_list[i] the node i."""

    def __init__(self, t, t_full, rank, G=None, data_load_events=None):
        super().__init__(G)
        self.rank, self.full_trace, self.asked = rank, t_full, {'data_load_events': data_load_events}
        self.node_list, self.edge_to_event_map = [], {}
        self.event_to_start_node_map, self.event_to_end_node_map = {}, {}
        self.critical_path_nodes, self.critical_path_edges_set, self.critical_path_events_set = [], set(), set()
        self._reported = None  # (nodes of the path, the engine's breakdown of it)

    def to_directed_class(self):
        return networkx.DiGraph

    to_undirected_class = to_directed_class

    # ---- building ----

    def _fill(self, nodes, edges, path):
        for idx, event, ts, starts, blocks in nodes:
            starts, blocks = (flag in (True, 'True') for flag in (starts, blocks))
            self.node_list.append(CPNode(idx, event, ts, starts, blocks))
            (self.event_to_start_node_map if starts else self.event_to_end_node_map)[event] = idx
        for begin, end, kind, weight, used, event in edges:
            self._add_edge(CPEdge(begin, end, CPEdgeType(kind), weight), used)
            if event is not None:
                self.edge_to_event_map[begin, end] = event
        self._set_path(path)

    def _add_edge(self, edge, used=None):
        self.add_edge(edge.begin, edge.end, weight=max(0, edge.weight) if used is None else used, object=edge)

    def _attribute_edge(self, edge, src_parent):
        """Whose time an edge is: of the event it starts in, or ends in, or of the call around what has ended."""
        if edge.type not in _ATTRIBUTED:
            return
        begin, end = self.node_list[edge.begin], self.node_list[edge.end]
        event = begin.ev_idx if begin.is_start or edge.type == CPEdgeType.KERNEL_KERNEL_DELAY else end.ev_idx if not end.is_start else src_parent
        assert event is not None, 'an edge from an end to a start is of the call around them, which is not known'
        self.edge_to_event_map[edge.begin, edge.end] = event

    def _add_gpu_cpu_sync_edge(self, gpu_node, runtime_eid):
        """The call ends no sooner than the work; a call that is not in the graph is passed over."""
        _, end = self.get_nodes_for_event(runtime_eid)
        if end is not None:
            self._add_edge(CPEdge(gpu_node.idx, end.idx, CPEdgeType.SYNC_DEPENDENCY))

    def _add_kernel_launch_delay_edge(self, runtime_index, kernel_start_node, zero_weight=False):
        """From a call to its work; whether the call is in the graph."""
        start, _ = self.get_nodes_for_event(runtime_index)
        if start is None:
            return False
        weight = 0 if zero_weight else kernel_start_node.ts - start.ts
        self._add_edge(CPEdge(start.idx, kernel_start_node.idx, CPEdgeType.KERNEL_LAUNCH_DELAY, weight))
        return True

    # ---- asking ----

    def get_nodes_for_event(self, ev_id):
        """(start, end); None for each that is not there."""
        def of(places):
            return self.node_list[places[ev_id]] if ev_id in places else None
        return of(self.event_to_start_node_map), of(self.event_to_end_node_map)

    def get_event_attribution_for_edge(self, edge):
        return self.edge_to_event_map.get((edge.begin, edge.end)) if edge.type in _ATTRIBUTED else None

    def get_edges_attributed_to_event(self, ev_idx):
        return [self.edges[at]['object'] for at, event in self.edge_to_event_map.items() if event == ev_idx and self.has_edge(*at)]

    @property
    def _frame(self):
        return self.full_trace.get_trace(self.rank)

    def _get_node_name(self, ev_idx):
        """The event's name."""
        return self.full_trace.symbol_table.sym_table[self._frame.loc[ev_idx, 'name']] if ev_idx in self._frame.index else ''

    def _named(self, *names):
        ids = [self.full_trace.symbol_table.sym_index[n] for n in names if n in self.full_trace.symbol_table.sym_index]
        return self._frame[self._frame['name'].isin(ids)]

    def _launches(self):
        """Calls with the stream of their work."""
        frame = self._frame
        calls = self._named(*_LAUNCHES)
        calls = calls[calls['index_correlation'].gt(0)]
        streams = frame.groupby(level=0)['stream'].last()
        return calls.assign(stream=calls['index_correlation'].map(streams)).dropna(subset=['stream'])

    def _waits(self, column):
        frame = self._frame
        return frame[frame[column].ge(0)] if column in frame.columns else frame.iloc[:0]

    def _beside_launches(self, calls, forward, index_name):
        """Calls with the launch before or after them on the same thread and stream; -1 where there is none."""
        import pandas
        launches = self._launches()
        if calls.empty or launches.empty:
            return None
        keys = ['pid', 'tid', 'stream']
        calls = calls.astype({'stream': 'int64', 'pid': 'string', 'tid': 'string'}).sort_values('ts')
        launches = launches.astype({'stream': 'int64', 'pid': 'string', 'tid': 'string'}).sort_values('ts')
        launches = launches[['ts', *keys, 'index', 'correlation']].rename(columns={'index': index_name, 'correlation': 'correlation_launch_event'})
        made = pandas.merge_asof(calls, launches, on='ts', by=keys, direction='forward' if forward else 'backward')
        for column in (index_name, 'correlation_launch_event'):
            made[column] = made[column].fillna(-1).astype('int64')
        return made

    def _get_cuda_event_record_df(self):
        """Calls of cudaEventRecord that something waited for, with the launch before each; None without."""
        waited = self._waits('wait_on_cuda_event_record_corr_id')
        streams = dict(zip(waited['wait_on_cuda_event_record_corr_id'], waited['wait_on_stream'])) if len(waited) else {}
        calls = self._named('cudaEventRecord', 'cudaEventRecordWithFlags')
        calls = calls.assign(stream=calls['correlation'].map(streams)).dropna(subset=['stream'])
        return self._beside_launches(calls[['index', 'ts', 'pid', 'tid', 'stream', 'correlation']], False, 'index_previous_launch')

    def _get_cuda_stream_wait_event_df(self):
        """Calls of cudaStreamWaitEvent with the launch after each; None without."""
        waits = self._named('Stream Wait Event')
        streams = dict(zip(waits['correlation'], waits['stream']))
        calls = self._named('cudaStreamWaitEvent')
        calls = calls.assign(stream=calls['correlation'].map(streams)).dropna(subset=['stream'])
        return self._beside_launches(calls[['index', 'ts', 'pid', 'tid', 'stream', 'correlation']], True, 'index_next_launch')

    # ---- the path ----

    def _validate_graph(self):
        """No circle."""
        return networkx.is_directed_acyclic_graph(self)

    def _set_path(self, path):
        self.critical_path_nodes = list(path)
        steps = list(zip(path, path[1:]))
        self.critical_path_edges_set = {self.edges[step]['object'] for step in steps}
        self.critical_path_events_set = {self.node_list[n].ev_idx for n in path}

    def critical_path(self):
        """Finds the longest path again; returns False if the graph has none."""
        if not self._validate_graph():
            return False
        self._set_path(networkx.dag_longest_path(self, weight='weight'))
        return True

    def get_events_for_edge(self, edge):
        """(the event that it starts in, the event that it ends in)."""
        return int(self.node_list[edge.begin].ev_idx), int(self.node_list[edge.end].ev_idx)

    def bound_by(self, row):
        """Returns the limit of an edge of the path: `row` has its type, and stream and s_name of the event whose time it is."""
        kind = CPEdgeType(row['type'])
        if kind == CPEdgeType.KERNEL_KERNEL_DELAY:
            return BoundType.GPU_KERNEL_KERNEL_OVERHEAD.value
        if kind == CPEdgeType.KERNEL_LAUNCH_DELAY:
            return BoundType.GPU_KERNEL_LAUNCH_OVERHEAD.value
        if kind not in _ATTRIBUTED:
            return ''
        if row['stream'] is None or row['stream'] < 0:
            import re
            loads = self.asked.get('data_load_events') or []
            return (BoundType.DATA_LOADING if any(re.search(p, row['s_name']) for p in loads) else BoundType.CPU_BOUND).value
        from ..utils.utils import is_comm_kernel
        return (BoundType.GPU_COMMUNICATION_BOUND if is_comm_kernel(row['s_name']) else BoundType.GPU_COMPUTE_BOUND).value

    def get_critical_path_breakdown(self):
        """One row an edge of the path: whose time it is, how long, what bound it."""
        if self._reported is not None and self._reported[0] == self.critical_path_nodes:
            return self._reported[1].copy()
        import pandas
        from ..common.trace_symbol_table import decode_symbol_id_to_symbol_name
        frame, rows = self._frame.copy(), []
        decode_symbol_id_to_symbol_name(frame, self.full_trace.symbol_table)
        for begin, end in zip(self.critical_path_nodes, self.critical_path_nodes[1:]):
            edge = self.edges[begin, end]['object']
            event = self.get_event_attribution_for_edge(edge)
            row = frame.loc[event] if event is not None and event in frame.index else None
            reported = [row[c] for c in ('s_name', 's_cat', 'pid', 'tid', 'stream', 'index')] if row is not None else ['', '', '', '', None, None]
            rows.append([event, self.edges[begin, end]['weight'], edge.type.value, *reported,
                         self.bound_by({'type': edge.type.value, 's_name': reported[0], 'stream': reported[4]})])
        return pandas.DataFrame(rows, columns=['event_idx', 'duration', 'type', 's_name', 'cat', 'pid', 'tid', 'stream', 'index', 'bound_by'])

    def summary(self):
        """Percent of the path by what bound it."""
        reported = self.get_critical_path_breakdown()
        total = reported['duration'].sum()
        return reported.groupby('bound_by')['duration'].sum() * (100 / total if total else 0)

    def show_critical_path(self):
        for begin, end in zip(self.critical_path_nodes, self.critical_path_nodes[1:]):
            edge = self.edges[begin, end]['object']
            print(f'{edge.type.value:40} {edge.weight:12.3f} us  {self._get_node_name(self.node_list[begin].ev_idx)}')

    # ---- files ----

    def save(self, out_dir):
        """Writes the graph; returns the path of the zip file. restore_cpgraph reads it."""
        folder = pathlib.Path(out_dir)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder.parent / f'{folder.name}.zip'
        reported = self.get_critical_path_breakdown()
        content = {'rank': self.rank, 'asked': self.asked, 'path': self.critical_path_nodes,
                   'nodes': [[n.idx, n.ev_idx, n.ts, n.is_start, n.is_blocking] for n in self.node_list],
                   'edges': [[u, v, d['object'].type.value, d['object'].weight, d['weight'], self.edge_to_event_map.get((u, v))]
                             for u, v, d in self.edges(data=True)]}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as archive:
            archive.writestr('graph.json', json.dumps(content, default=float))
            archive.writestr('breakdown.json', reported.to_json(orient='split'))
        _engine.write_file(str(path), packed.getvalue())
        return str(path)


def restore_cpgraph(zip_filename, t_full, rank):
    """The graph that save() wrote, over its trace."""
    import pandas
    with zipfile.ZipFile(zip_filename) as archive:
        content = json.loads(archive.read('graph.json'))
        reported = pandas.read_json(io.StringIO(archive.read('breakdown.json').decode()), orient='split')
    graph = CPGraph(None, t_full, rank)
    graph.asked = content['asked']
    graph._fill(content['nodes'], content['edges'], content['path'])
    reported['bound_by'] = reported['bound_by'].fillna('')
    graph._reported = (content['path'], reported)
    return graph


class CriticalPathAnalysis:
    """HTA's entry by a Trace; TraceAnalysis has the same questions."""

    def __init__(self):
        pass

    @staticmethod
    def _is_zero_weight_launch_edge(edge):
        return edge.type == CPEdgeType.KERNEL_LAUNCH_DELAY and edge.weight == 0

    @staticmethod
    def options(annotation, instance_id, data_load_events):
        """Returns the question as the engine's options."""
        if isinstance(instance_id, tuple):
            instance_id = f'{instance_id[0]}:{instance_id[1]}'
        zero = env_options.critical_path_add_zero_weight_launch_edges() or os.environ.get(env_options.CP_LAUNCH_EDGE_ENV) == '1'
        return {'annotation': annotation, 'instance_id': 0 if instance_id is None else instance_id, 'data_load_events': data_load_events or None,
                'add_zero_weight_launch_edges': zero}

    @classmethod
    def critical_path_analysis(cls, t, rank, annotation, instance_id, data_load_events=None):
        """(graph, whether it is sound), or None where nothing has the annotation's name."""
        import stageline
        t = _analysis(t)
        asked = cls.options(annotation, instance_id, data_load_events)
        try:
            answer = t._ask('critical-path-analysis', rank=rank, **asked)
        except stageline.BadInput:
            return None
        if not len(answer['nodes']):
            return None
        graph = CPGraph(None, _Late(t), rank)
        graph.asked = asked
        nodes, edges = answer['nodes'], answer['edges']
        graph._fill(zip(*(nodes[c] for c in ('node', 'event', 'ts', 'is_start', 'is_blocking'))),
                    zip(*(edges[c] for c in ('begin', 'end', 'type', 'weight', 'weight_used', 'event'))), answer['path']['node'])
        reported = answer['breakdown'].to_pandas(categories=False)
        reported['bound_by'] = reported['bound_by'].fillna('')
        graph._reported = (list(graph.critical_path_nodes), reported)
        return graph, graph._validate_graph()

    @classmethod
    def overlay_critical_path_analysis(cls, t, rank, critical_path_graph, output_dir, only_show_critical_events, show_all_edges, edge_types_to_viz=None):
        """Writes the rank's trace with the path marked; returns the file's path. Other kinds of edges than HTA's three come with
        show_all_edges alone."""
        if edge_types_to_viz is not None and set(edge_types_to_viz) != DEFAULT_EDGE_TYPES_IN_VIZ:
            raise NotImplementedError('the kinds of edges are HTA\'s three, or all of them: show_all_edges=True')
        t = _analysis(t)
        folder = pathlib.Path(output_dir).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f'overlaid_critical_path_{pathlib.Path(t._source(rank)).name}'
        t._ask('critical-path-analysis', rank=rank, overlay=path, only_show_critical_events=bool(only_show_critical_events),
                      show_all_edges=bool(show_all_edges), **critical_path_graph.asked)
        return str(path)


def _analysis(t):
    """The TraceAnalysis of a Trace; that which is one."""
    from ..common.trace import Trace
    from ._of import analysis_of
    return analysis_of(t) if isinstance(t, Trace) else t


class _Late:
    """The analysis' frames, made when the graph needs one."""

    def __init__(self, analysis):
        self._analysis = analysis

    def __getattr__(self, name):
        return getattr(self._analysis.t, name)
