"""The call stacks of all threads of a trace, the backward pass under the step it belongs to."""
from .constants import NULL_NODE_INDEX
from ..configs.env_options import fail_as_hta
from ._row_links import get_cpu_gpu_correlation
from .trace_symbol_table import TraceSymbolTable
from .trace_call_stack import STACK_COLUMNS, CallStackGraph, CallStackIdentity


class _OneFrame:
    """A frame as a trace of one rank."""

    def __init__(self, frame, symbol_table, rank):
        self.traces, self.symbol_table = {rank: frame}, symbol_table

    def get_all_traces(self):
        return self.traces

    def get_trace(self, rank):
        return self.traces[rank]


class _Stack(CallStackGraph):
    """The calls of a thread of a trace whose files are at hand."""

    def __init__(self, trace, *thread):
        self._trace = trace
        super().__init__(*thread, use_existing_stack_columns=False, save_call_stack_to_df=False)

    def _exact_times(self):
        return self._trace._exact_times(self.identity.rank) if hasattr(self._trace, '_exact_times') else None


class CallGraph:
    """call_stacks, one a thread of the host; `mapping` lists them. Adds columns to the frames (docs/analyses/call-graph.md)."""

    def __init__(self, trace, ranks=None):
        self.trace_data = trace
        known = sorted(trace.get_all_traces())
        self.ranks = [r for r in ranks if r in known] if ranks else known
        if not self.ranks:
            raise ValueError(f'the trace has none of the ranks {ranks}; it has {known}')
        self.call_stacks, self.rank_to_stacks, self.rank_to_nodes, listed = [], {}, {}, []
        for rank in self.ranks:
            self.rank_to_stacks[rank], self.rank_to_nodes[rank] = {}, {}
            listed += self._build(rank, trace.get_trace(rank))
        import pandas
        self.mapping = pandas.DataFrame(listed, columns=['rank', 'pid', 'tid', 'stack_index', 'stack_root', 'label', 'num_events'])
        for rank in self.ranks:
            self._link_main_and_bwd_stacks(rank)
            self._normalize_stack_columns(trace.get_trace(rank))

    @staticmethod
    def from_dataframe(df, symbol_table=None, rank=-1):
        """Makes it from a copy of one rank's frame."""
        return CallGraph(_OneFrame(df.copy(), symbol_table or TraceSymbolTable.create_from_df(df), rank))

    def _build(self, rank, frame):
        import pandas
        for column, kind in STACK_COLUMNS.items():
            values = {'depth': -1, 'height': -1, 'parent': -1, 'first_kernel_start': -1, 'last_kernel_end': -1}.get(column, 0)
            frame[column] = pandas.Series([values] * len(frame), index=frame.index, dtype=kind)
        correlations = get_cpu_gpu_correlation(frame) if 'index_correlation' in frame.columns else pandas.DataFrame({'cpu_index': [], 'gpu_index': []})
        names = self.trace_data.symbol_table.sym_table
        listed = []
        threads = frame.groupby([frame['pid'].map(str), frame['tid'].map(str)])
        for (pid, tid), thread in sorted(threads, key=lambda named: [(int(i), '') if i.isdigit() else (-1, i) for i in named[0]]):
            if thread['stream'].gt(0).all() or pid == '0' or tid == '0':
                continue
            thread = thread[thread['stream'].eq(-1)]
            if thread.empty:
                continue
            identity = CallStackIdentity(rank, thread['pid'].iloc[0], thread['tid'].iloc[0])
            stack = _Stack(self.trace_data, thread, identity, correlations, frame, self.trace_data.symbol_table, self.rank_to_nodes[rank])
            called = {names[i] for i in thread['name'].unique()}
            label = 'main' if any(n.startswith('ProfilerStep#') for n in called) else 'bwd' if any(n.startswith('autograd::') for n in called) else ''
            listed.append([rank, identity.pid, identity.tid, len(self.call_stacks), stack.root_index, label, len(thread)])
            self.rank_to_stacks[rank][len(self.call_stacks)] = stack
            self.call_stacks.append(stack)
        return listed

    @staticmethod
    def _normalize_stack_columns(df):
        """Numbers in the smallest type that holds them, times as floats."""
        import pandas
        for column in STACK_COLUMNS:
            if column in df.columns and column in ('depth', 'height', 'parent', 'num_kernels'):
                df[column] = pandas.to_numeric(df[column].astype('int64'), downcast='integer')
            elif column in df.columns:
                df[column] = df[column].astype('float64')

    def _link_main_and_bwd_stacks(self, rank):
        """Where one thread has the steps and one other the backward pass: its outermost calls go under the row of the backward pass,
        else of the step, that is around them."""
        mine = self.mapping[self.mapping['rank'] == rank]
        main, backward = mine[mine['label'] == 'main'], mine[mine['label'] == 'bwd']
        lost = []
        if len(main) == 1 and len(backward) == 1:
            main, backward = (self.call_stacks[int(m['stack_index'].iloc[0])] for m in (main, backward))
            frame, names = self.trace_data.get_trace(rank), self.trace_data.symbol_table.sym_table
            here = main.df
            marks = here[here['name'].map(lambda i: names[i] == '## backward ##')]
            if marks.empty:
                marks = here[here['name'].map(lambda i: names[i].startswith('ProfilerStep#'))]
            times = {i: (ts, dur) for i, ts, dur in zip(backward.df['index'], backward.df['ts'], backward.df['dur'])}
            for index, ts, dur in zip(marks['index'], marks['ts'], marks['dur']):
                if backward.root_index == main.root_index:
                    lost.append(index)  # no call of the backward pass is left for it
                    continue
                tops = self.rank_to_nodes[rank][backward.root_index].children if backward.root_index in self.rank_to_nodes[rank] else []
                inside = [c for c in tops if c in times and ts <= times[c][0] and sum(times[c]) <= ts + dur]
                if inside and backward is not main:
                    backward.update_parent_of_first_layer_nodes(index)
            place = self.mapping['stack_index'] == int(mine[mine['label'] == 'bwd']['stack_index'].iloc[0])
            self.mapping.loc[place, 'stack_root'] = backward.root_index
        for stack in self.rank_to_stacks[rank].values():
            stack._save_call_stack_to_df()
        if lost and fail_as_hta():
            self._cut_off(rank, lost)

    def _cut_off(self, rank, marks):
        """Writes what HTA does of rows that it has moved below themselves: neither they nor the calls below are measured."""
        frame, nodes = self.trace_data.get_trace(rank), self.rank_to_nodes[rank]
        below, stack = list(marks), next(iter(self.rank_to_stacks[rank].values()))
        for index in below:
            below += nodes[index].children  # grows while it is read
        at = stack._places(below)
        for column in ('num_kernels', 'kernel_dur_sum', 'kernel_span'):
            frame.loc[at, column] = 0
        for column in ('height', 'first_kernel_start', 'last_kernel_end'):
            frame.loc[at, column] = -1
        frame.loc[stack._places(marks), 'parent'] = marks

    # ---- asking ----

    def get_call_stacks(self, rank=None, pid=None, tid=None, stack_index=None):
        """Returns the stacks that fit the arguments."""
        for number, stack in enumerate(self.call_stacks):
            identity = stack.identity
            if all(wanted is None or wanted == got for wanted, got in ((rank, identity.rank), (pid, identity.pid), (tid, identity.tid), (stack_index, number))):
                yield stack

    def get_csg_of_node(self, index, rank=None):
        """The stack of the thread that a row ran on; of device work that of its call."""
        for at in ([rank] if rank is not None else self.ranks):
            nodes = self.rank_to_nodes[at]
            while index in nodes and nodes[index].height == 0:
                index = nodes[index].parent
            for stack in self.rank_to_stacks[at].values():
                if (stack.df['index'] == index).any():
                    return stack
        return None

    def get_stack_of_node(self, index, rank=None, skip_ancestors=False):
        """Rows: the calls around a node from the outermost, where they are not skipped, the node, and all below it, by depth."""
        rank = rank if rank is not None else self.ranks[0]
        stack = self.get_csg_of_node(index, rank)
        if stack is None:
            return self.trace_data.get_trace(rank).iloc[:0]
        above = [] if skip_ancestors else [i for i in reversed(stack.get_path_to_root(index)[1:]) if i >= 0]
        below = sorted(stack._below(index), key=lambda i: stack.nodes[i].depth)
        frame = self.trace_data.get_trace(rank)
        return frame.set_index('index', drop=False).loc[[*above, index, *below]]

    def get_node_attributes(self, index, rank=None):
        """Returns the row of a node."""
        rank = rank if rank is not None else self.ranks[0]
        frame = self.trace_data.get_trace(rank)
        return frame[frame['index'] == index].iloc[0]

    def get_gpu_kernels(self, rank=None):
        """Rows of the device work of a rank."""
        frame = self.trace_data.get_trace(rank if rank is not None else self.ranks[0])
        return frame[frame['stream'].ne(-1)]


__all__ = ['CallGraph', 'CallStackGraph', 'CallStackIdentity', 'NULL_NODE_INDEX']
