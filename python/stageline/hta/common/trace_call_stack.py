"""The newer call stacks: a root of its own for each thread, device work under its call, sums of kernels for every call
(docs/analyses/call-graph.md, builder trace-call-graph)."""
import dataclasses
import functools
import typing

from ..configs.config import logger
from .call_stack import CallStackIdentity  # noqa: F401
from .call_tree import CallTree
from .constants import NON_EXISTENT_NODE_INDEX, NULL_NODE_INDEX  # noqa: F401
from ..configs.env_options import fail_as_hta
from .types import DeviceType, infer_device_type

OPEN_END, CLOSE_END = -1, 1
_INDEX, _DUR, _KIND, _TS = range(4)
STACK_COLUMNS = {'depth': 'Int16', 'height': 'Int16', 'parent': 'Int64', 'num_kernels': 'Int64', 'kernel_dur_sum': 'Int64',
                 'kernel_span': 'Int64', 'first_kernel_start': 'Int64', 'last_kernel_end': 'Int64'}


@dataclasses.dataclass
class CallStackNode:
    """Leaves of the host have the height 1, work of devices 0; roots the depth -1."""
    parent: int = NULL_NODE_INDEX
    depth: int = -1
    height: int = -1
    device: DeviceType = DeviceType.CPU
    children: 'list[int]' = dataclasses.field(default_factory=list)


def _cmp_events_with_zero_duration(x, y):
    """x before y at one time, of which at least one lasts for nothing: such a row lies inside the others."""
    if x[_DUR] == 0 and y[_DUR] > 0:
        return bool(y[_KIND] == CLOSE_END)
    if x[_DUR] > 0 and y[_DUR] == 0:
        return bool(x[_KIND] == OPEN_END)
    if x[_DUR] == 0 and y[_DUR] == 0:
        if x[_KIND] == y[_KIND]:
            return bool(x[_INDEX] < y[_INDEX] if x[_KIND] == OPEN_END else x[_INDEX] > y[_INDEX])
        return bool(x[_KIND] == OPEN_END)
    raise ValueError(f'unexpected case: neither row lasts for nothing, or one for less: {x} and {y}')


def _less_than(x, y):
    """Returns true if the end x of a row comes before y: (index, duration, kind, time)."""
    if x[_TS] != y[_TS]:
        return bool(x[_TS] < y[_TS])
    if x[_INDEX] == y[_INDEX]:
        return bool(x[_KIND] == OPEN_END)
    if x[_DUR] == 0 or y[_DUR] == 0:
        return _cmp_events_with_zero_duration(x, y)
    if x[_KIND] != y[_KIND]:
        return bool(x[_KIND] == CLOSE_END)
    opens = x[_KIND] == OPEN_END
    if x[_DUR] != y[_DUR]:
        return bool(x[_DUR] > y[_DUR] if opens else x[_DUR] < y[_DUR])
    return bool(x[_INDEX] < y[_INDEX] if opens else x[_INDEX] > y[_INDEX])


def sort_events(a):
    """Sorts an array of ends in place: by time, and only where times are equal by the rest."""
    import numpy
    a[:] = a[numpy.argsort(a[:, _TS], kind='stable')]
    cuts = numpy.flatnonzero(numpy.diff(a[:, _TS])) + 1
    key = functools.cmp_to_key(lambda x, y: -1 if _less_than(x, y) else 1)
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(a)]):
        if end - begin > 1:
            a[begin:end] = sorted(a[begin:end].tolist(), key=key)


def is_events_sorted(arr):
    return all(_less_than(arr[i], arr[i + 1]) for i in range(len(arr) - 1))


def _sorted_ends(rows):
    """Starts and ends of rows (index, duration, time) in order. Raises ValueError for negative durations next to others of nothing, as HTA does."""
    import numpy
    events = numpy.empty((2 * len(rows), 4), 'int64')
    events[0::2] = numpy.column_stack([rows[:, 0], rows[:, 1], numpy.full(len(rows), OPEN_END), rows[:, 2]])
    events[1::2] = numpy.column_stack([rows[:, 0], rows[:, 1], numpy.full(len(rows), CLOSE_END), rows[:, 2] + rows[:, 1]])
    sort_events(events)
    return events


class CallStackGraph(CallTree):
    """The calls of one thread. `nodes` may be shared by the stacks of a rank, so that work moves from one to the other."""

    def __init__(self, df, identity, cpu_gpu_correlation, full_df, symbol_table, nodes=None, use_existing_stack_columns=True,
                 save_call_stack_to_df=True):
        self.df, self.full_df, self.identity, self.symbol_table = df, full_df, identity, symbol_table
        self.correlations = cpu_gpu_correlation
        self.nodes = nodes if nodes is not None else {}
        self.root_index = -abs(int(identity.tid)) if str(identity.tid).lstrip('-').isdigit() else -1
        self.device_type = infer_device_type(df)
        if self.device_type == DeviceType.GPU:
            logger.error('%s: calls are made of rows of the host, and these are of a device', identity)
            return
        if use_existing_stack_columns and self._has_valid_stack_columns():
            self._take_columns()
        else:
            self._nest()
            self._add_kernels()
            self._measure(self.root_index)
        logger.debug('%s: %d calls', identity, len(self.nodes))
        if save_call_stack_to_df:
            self._save_call_stack_to_df()

    # ---- building ----

    def _exact_times(self):
        """A frame of durations and starts by index, or None: for rows that HTA's rounding leaves without an order."""
        return None

    def _nest(self):
        import numpy
        rows = self.df[['index', 'dur', 'ts']].to_numpy('int64')
        try:
            events = _sorted_ends(rows)
        except ValueError:
            if fail_as_hta():
                raise
            exact = self._exact_times()
            if exact is None:
                rows[:, 1] = numpy.maximum(rows[:, 1], 0)  # HTA's rounding made them negative
            else:
                rows[:, 1:] = exact.loc[rows[:, 0]]
            events = _sorted_ends(rows)
        if len(set(map(tuple, events.tolist()))) != len(events):
            logger.error('%s: there are duplicates among the ends of calls', self.identity)
            raise ValueError(f'{self.identity}: a row is in the frame twice, so calls do not nest; drop duplicates of the column index')
        self.nodes[self.root_index] = CallStackNode(NULL_NODE_INDEX, -1, -1, DeviceType.CPU, [])
        stack = [self.root_index]
        for index, _, kind, _ in events.tolist():
            if kind == CLOSE_END:
                stack.pop()
                continue
            self._add_edge(stack[-1], index)
            stack.append(index)

    def _add_edge(self, parent, child, device=DeviceType.CPU):
        self.nodes[child] = CallStackNode(parent, self.nodes[parent].depth + 1, -1, device, [])
        self.nodes[parent].children.append(child)

    def _add_kernels(self):
        """Work of a device with a stream above 0 under its call."""
        if not {'stream', 'index_correlation'} <= set(self.full_df.columns) or not len(self.correlations):
            return
        launched = self.full_df[self.full_df['stream'].gt(0) & self.full_df['index_correlation'].gt(0)]
        known = set(launched['index'].tolist())
        mine = set(self.df['index'].tolist())
        for call, work in zip(self.correlations['cpu_index'].tolist(), self.correlations['gpu_index'].tolist()):
            if call in mine and work in known:
                self._add_edge(call, work, DeviceType.GPU)

    def _measure(self, top):
        """Sets depths and heights from `top` down."""
        for at, enters in list(self._walk(top)):
            node = self.nodes[at]
            if enters:
                if at >= 0:
                    node.depth = self.nodes[node.parent].depth + 1
            else:
                node.height = 0 if node.device == DeviceType.GPU else max([1, *(self.nodes[c].height + 1 for c in node.children)])

    def _has_valid_stack_columns(self):
        columns = {'parent', 'depth', 'height'}
        return columns <= set(self.full_df.columns) and columns <= set(self.df.columns) and not self.df['parent'].fillna(-1).eq(-1).all()

    def _take_columns(self):
        """Reads the calls from the frame's columns."""
        self.nodes[self.root_index] = CallStackNode(NULL_NODE_INDEX, -1, -1, DeviceType.CPU, [])
        rows = self.full_df[self.full_df['parent'].notna()].sort_values(['depth', 'ts'], kind='stable')
        mine = {self.root_index}
        for index, parent, depth, height, stream in zip(*(rows[c].tolist() for c in ('index', 'parent', 'depth', 'height', 'stream'))):
            if parent in mine:
                mine.add(index)
                self.nodes[index] = CallStackNode(parent, depth, height, DeviceType.GPU if stream > 0 else DeviceType.CPU, [])
                self.nodes[parent].children.append(index)
        self._measure(self.root_index)

    # ---- moving ----

    def _update_parent(self, children, new_parent_index):
        """Puts nodes under another parent."""
        if new_parent_index not in self.nodes:
            raise ValueError(f'there is no node {new_parent_index}')
        for child in children:
            old = self.nodes[child].parent
            if old in self.nodes:
                self.nodes[old].children.remove(child)
            self.nodes[child].parent = new_parent_index
            self.nodes[new_parent_index].children.append(child)
        self._measure(self.get_root(new_parent_index))

    def update_parent_of_first_layer_nodes(self, new_parent_index):
        """The calls below this stack's root that lie within the time of a node of another stack go under it; an empty root is given up."""
        if new_parent_index not in self.nodes:
            raise ValueError(f'there is no node {new_parent_index}')
        old, frame = self.root_index, self.full_df
        around = frame[frame['index'] == new_parent_index]
        if around.empty:
            raise ValueError(f'the frame has no row {new_parent_index}')
        begin, end = around['ts'].iloc[0], (around['ts'] + around['dur']).iloc[0]
        inside = frame['index'].isin(self.nodes[old].children) & frame['ts'].ge(begin) & (frame['ts'] + frame['dur']).le(end)
        self._update_parent(frame.loc[inside, 'index'].tolist(), new_parent_index)
        if not self.nodes[old].children:
            del self.nodes[old]
            self.root_index = self.get_root(new_parent_index)
        self._save_call_stack_to_df()

    # ---- columns ----

    def save_call_stack_to_dataframe(self, apply_whole_graph=False):
        """Writes the stack into the frame's columns; with apply_whole_graph those of all stacks that share the nodes."""
        roots = [i for i in self.nodes if i < 0] if apply_whole_graph else [self.root_index]
        for root in roots:
            self._measure(root)
        self._save_call_stack_to_df(roots)

    def _save_call_stack_to_df(self, roots=None):
        """Depth, height, parent and sums of kernels into the frame, where it has the columns."""
        if self.device_type == DeviceType.GPU or 'parent' not in self.full_df.columns:
            return
        reached = [i for root in roots or [self.root_index] for i in self._below(root) if i >= 0]
        frame, at = self.full_df, self._places(reached)
        for column in ('depth', 'height', 'parent'):
            if column in frame.columns:
                frame.loc[at, column] = [getattr(self.nodes[i], column) for i in reached]
        self._add_kernel_info_to_cpu_ops()

    def _places(self, indices):
        """Labels of the rows with these `index`."""
        frame = self.full_df
        if frame.index.is_unique and (frame.index.to_numpy() == frame['index'].to_numpy()).all():
            return indices
        place = dict(zip(frame['index'], frame.index))
        return [place[i] for i in indices]

    def _add_kernel_info_to_cpu_ops(self):
        """Computes for each call: how many kernels it and those below launched, their time, and their first start and
        last end."""
        if 'num_kernels' not in self.full_df.columns:
            return
        frame, info = self.full_df, {}
        work = {i: (ts, dur, end) for i, ts, dur, end in zip(*(frame[c].tolist() for c in ('index', 'ts', 'dur', 'end')))
                if i in self.nodes and self.nodes[i].device == DeviceType.GPU}
        for at, enters in list(self._walk(self.root_index)):
            if enters:
                continue
            if at in work:
                ts, dur, end = work[at]
                info[at] = (1, dur, ts, end)
                continue
            below = [info[c] for c in self.nodes[at].children if info.get(c, (0,))[0]]
            info[at] = (sum(b[0] for b in below), sum(b[1] for b in below), min(b[2] for b in below), max(b[3] for b in below)) if below else (0, 0, -1, -1)
        reached = [i for i in info if i >= 0 and info[i][0]]
        at = self._places(reached)
        for column, values in (('num_kernels', [info[i][0] for i in reached]), ('kernel_dur_sum', [info[i][1] for i in reached]),
                               ('first_kernel_start', [info[i][2] for i in reached]), ('last_kernel_end', [info[i][3] for i in reached]),
                               ('kernel_span', [info[i][3] - info[i][2] for i in reached])):
            if column in frame.columns and reached:
                frame.loc[at, column] = [int(v) for v in values]

    # ---- asking ----

    def get_paths_to_leaves(self, idx, include_cuda_kernel=False):
        """Paths from the node to what calls nothing more. Without device work, paths that end in it are left out."""
        paths = super().get_paths_to_leaves(idx)
        return paths if include_cuda_kernel else [p for p in paths if self.nodes[p[-1]].device == DeviceType.CPU]

    def get_leaf_nodes(self, idx, include_gpu_kernel=False):
        return [path[-1] for path in self.get_paths_to_leaves(idx, include_gpu_kernel)]

    def get_descendants(self, idx, include_gpu_kernel=False):
        """The node and what lies on the paths from it to its leaves."""
        return list({node for path in self.get_paths_to_leaves(idx, include_gpu_kernel) for node in path})

    def get_dataframe(self):
        return self.df

    def get_depth(self):
        import pandas
        return pandas.Series({i: node.depth for i, node in self.nodes.items() if i >= 0}, dtype=pandas.Int16Dtype(), name='depth')

    def __repr__(self):
        lines = [f'CallStackGraph({self.identity}, root={self.root_index})']
        depth = 0
        for at, enters in list(self._walk(self.root_index)) if self.root_index in self.nodes else ():
            if enters and len(lines) < 200:
                lines.append('  ' * depth + f'{at}: {self.nodes[at]}')
            depth += 1 if enters else -1
        return '\n'.join(lines)
