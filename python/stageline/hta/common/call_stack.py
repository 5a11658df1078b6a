"""The older call stacks: root -1, no zero-length rule of their own (docs/analyses/call-graph.md, builder call-stack)."""
import dataclasses
import functools
import typing

from .call_tree import CallTree
from .constants import NULL_NODE_INDEX
from .types import DeviceType, infer_device_type


class CallStackIdentity(typing.NamedTuple):
    rank: int = -1
    pid: int = -1
    tid: int = -1


@dataclasses.dataclass
class CallStackNode:
    parent: int
    depth: int
    children: 'list[int]' = dataclasses.field(default_factory=list)


class Event(typing.NamedTuple):
    """The start (type 0) or end (1) of a row."""
    idx: int
    time: int
    dur: int
    type: int


def compare_events(x, y):
    """Which of two ends of calls is first: below 0 where x is."""
    a, b = (x.time, x.type, x.dur, x.idx), (y.time, y.type, y.dur, y.idx)
    if a[3] == b[3]:
        return a[1] - b[1]
    if a[0] != b[0]:
        return -1 if a[0] < b[0] else 1
    if a[1] == b[1] == 0:
        return -1 if (-a[2], a[3]) < (-b[2], b[3]) else 1
    if a[1] == b[1]:
        return -1 if (a[2], -a[3]) < (b[2], -b[3]) else 1
    if a[2] > 0 and b[2] > 0:
        return b[1] - a[1]  # ends first
    if a[2] <= 0 and b[2] <= 0:
        return -1 if a[3] < b[3] else 1
    return a[1] - b[1]  # starts first


class CallStackGraph(CallTree):
    """The calls of one thread; work of a device has its call as parent."""
    root_index = NULL_NODE_INDEX

    def __init__(self, df, identity, filter_func=None):
        self.identity = identity
        self.df = filter_func(df) if filter_func is not None else df
        self.device_type = infer_device_type(self.df)
        self.nodes = {NULL_NODE_INDEX: CallStackNode(-1, -1, [])}
        if self.device_type == DeviceType.GPU and self.df['stream'].gt(0).any():  # rows of stream 0 are nested as calls are, as in HTA
            for index, call in zip(self.df['index'], self.df['index_correlation']):
                self.nodes[index] = CallStackNode(call, -1, [])
            return
        ends = []
        for index, ts, dur in zip(self.df['index'].tolist(), self.df['ts'].tolist(), self.df['dur'].clip(lower=0).tolist()):
            ends += [Event(index, ts, dur, 0), Event(index, ts + dur, dur, 1)]
        stack = [NULL_NODE_INDEX]
        for index, _, _, closes in sorted(ends, key=functools.cmp_to_key(compare_events)):
            if closes:
                stack.pop()
                continue
            self.nodes[index] = CallStackNode(stack[-1], len(stack) - 1, [])
            self.nodes[stack[-1]].children.append(index)
            stack.append(index)

    def get_dataframe(self):
        return self.df

    def get_depth(self):
        import pandas
        return pandas.Series({i: node.depth for i, node in self.nodes.items() if i >= 0}, name='depth', dtype='int64')


def _trim(frame):
    """Python frames that outlast the frame they were called from end with it, the outer ones first; in place."""
    place = {p: k for k, p in zip(frame.index, frame['python_id']) if p >= 0}
    ts, dur, pid, tid = (frame[c].to_dict() for c in ('ts', 'dur', 'pid', 'tid'))
    parent = {k: place.get(p) for k, p in zip(frame.index, frame['python_parent_id'])}
    done = set()
    for row in frame.index:
        chain = []
        while row is not None and row not in done and row not in chain:
            chain.append(row)
            row = parent.get(row)
        for row in reversed(chain):
            done.add(row)
            up = parent.get(row)
            if up is None or up == row or (pid[up], tid[up]) != (pid[row], tid[row]):
                continue
            end = ts[up] + dur[up]
            if ts[up] <= ts[row] <= end < ts[row] + dur[row]:
                dur[row] = end - ts[row]
                frame.at[row, 'dur'] = dur[row]


class CallGraph:
    """The call stacks of all threads of ranks; adds the columns depth and parent to the frames."""

    def __init__(self, trace, ranks=None, filter_func=None, remapped_tids=None, pre_process_trace_data=False):
        import pandas
        self.trace_data = trace
        self.ranks = [r for r in trace.get_all_traces() if not ranks or r in ranks]
        self.call_stacks, listed = [], []
        for rank in self.ranks:
            frame = trace.get_trace(rank)
            if pre_process_trace_data and {'python_id', 'python_parent_id'} <= set(frame.columns):
                self.constrain_child_time_withinin_parent(frame)
            threads = frame['tid'].replace(remapped_tids) if remapped_tids else frame['tid']
            for (pid, tid), rows in frame.groupby([frame['pid'], threads], sort=False):
                if rows['stream'].gt(0).any():
                    rows = rows[rows['stream'].gt(0)]
                graph = CallStackGraph(rows, CallStackIdentity(rank, pid, tid), filter_func)
                listed.append((rank, pid, tid, len(self.call_stacks)))
                self.call_stacks.append(graph)
            depth, parent = {}, {}
            for graph in self.call_stacks:
                if graph.identity.rank == rank:
                    for index, node in graph.nodes.items():
                        depth[index], parent[index] = node.depth, node.parent
            device = frame[frame['stream'].ne(-1)]
            parent.update(zip(device['index'], device['index_correlation']))  # the call of work of a stream, nested or not
            for column, of in (('depth', depth), ('parent', parent)):
                frame[column] = frame['index'].map(of)  # NaN for rows of a device's thread that are no work of it
        self.mapping = pandas.DataFrame(listed, columns=['rank', 'pid', 'tid', 'csg_index'])

    def constrain_child_time_withinin_parent(self, df):
        """Python frames that outlast the frame they were called from end with it, in place."""
        if not df.empty and {'python_id', 'python_parent_id'} <= set(df.columns):
            _trim(df)

    def get_call_stacks(self):
        return iter(self.call_stacks)

    def get_csg_of_node(self, node, rank):
        """The call stack that holds a node of a rank."""
        return next((g for g in self.call_stacks if g.identity.rank == rank and node in g.nodes), None)

    def get_stack_of_node(self, node_id, rank, skip_ancestors=False):
        """The rows from the outermost call to the node; without its ancestors the node alone."""
        graph = self.get_csg_of_node(node_id, rank)
        path = [node_id] if skip_ancestors else [i for i in reversed(graph.get_path_to_root(node_id)) if i >= 0]
        return self.trace_data.get_trace(rank).set_index('index', drop=False).loc[path]
