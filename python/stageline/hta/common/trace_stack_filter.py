"""Selects rows under, before and after an operator. The frame has its names as texts (Trace.decode_symbol_ids)."""
import enum

from ..configs.config import logger
from ..utils.utils import get_symbol_column_names
from .trace_df import find_op_occurrence
from .trace_filter import Filter, FirstIterationFilter


def get_matching_kernels(df_ops, df_both, cat_column):
    """The device work that the calls of CUDA's runtime among `df_ops` launched."""
    calls = df_ops.loc[df_ops[cat_column].eq('cuda_runtime'), 'index']
    return df_both[df_both['index_correlation'].isin(calls)]


class OperatorFilterMethod(enum.Enum):
    """Which rows an operator selects; HTA has no filter of the last two either."""
    Under = 0
    After = 1
    Before = 2
    Ancestors = 3
    Stack = 4


class OperatorFilter(Filter):
    """Rows of the operator's stream by the position-th occurrence of it, from the end where negative; none without it."""

    def __init__(self, op_name, position, method, include_gpu_kernels=False, name_column=None):
        self.op_name, self.position, self.method = op_name, position, method
        self.include_gpu_kernels, self.name_column = include_gpu_kernels, name_column or ''

    def __call__(self, df, symbol_table=None):
        import pandas
        name, category = (self.name_column, self.name_column.replace('name', 'cat')) if self.name_column else get_symbol_column_names(df)
        if not {name, category} <= set(df.columns):
            logger.error('the frame has no names as texts: decode_symbol_ids adds them')
            return df
        found, op = find_op_occurrence(df, self.op_name, self.position, name)
        if not found:
            logger.warning('%s: there is no occurrence %d of it among these rows', self.op_name, self.position)
            return pandas.DataFrame()
        begin, end = op['ts'], op['ts'] + op['dur']
        ends = df['ts'] + df['dur']
        if self.method == OperatorFilterMethod.Under:
            chosen = df['ts'].ge(begin) & ends.le(end)
        elif self.method == OperatorFilterMethod.After:
            chosen = df['ts'].ge(end)
        elif self.method == OperatorFilterMethod.Before:
            chosen = ends.le(begin)
        else:
            raise NotImplementedError(f'there is no filter of {self.method}')
        rows = df[chosen & df['stream'].eq(op['stream'])]
        return pandas.concat([rows, get_matching_kernels(rows, df, category)]) if self.include_gpu_kernels else rows


class UnderOperatorFilter(OperatorFilter):
    """Keeps rows within the operator's time."""

    def __init__(self, op_name, position, include_gpu_kernels=False, name_column=None):
        super().__init__(op_name, position, OperatorFilterMethod.Under, include_gpu_kernels, name_column)


class AfterOperatorFilter(OperatorFilter):
    """Keeps rows that start once it has ended."""

    def __init__(self, op_name, position, include_gpu_kernels=False, name_column=None):
        super().__init__(op_name, position, OperatorFilterMethod.After, include_gpu_kernels, name_column)


class BeforeOperatorFilter(OperatorFilter):
    """Keeps rows that have ended when it starts."""

    def __init__(self, op_name, position, include_gpu_kernels=False, name_column=None):
        super().__init__(op_name, position, OperatorFilterMethod.Before, include_gpu_kernels, name_column)


class CombinedOperatorFilter(Filter):
    """Keeps rows of the first step: under the first `root`, after the last `preceding`, before the first `following`; an operator that
    does not occur is passed over. Then, where given, host rows at these depths."""

    def __init__(self, root_op_name, preceding_op_name, following_op_name, include_gpu_kernels=False, stack_depths=None):
        self.root_op_name, self.preceding_op_name, self.following_op_name = root_op_name, preceding_op_name, following_op_name
        self.include_gpu_kernels, self.stack_depths = include_gpu_kernels, stack_depths or []

    def __call__(self, df, symbol_table=None):
        import pandas
        name, category = get_symbol_column_names(df)
        if not name or not category:
            logger.error('the frame has no names as texts: decode_symbol_ids adds them')
            return df
        rows = FirstIterationFilter()(df)
        for kind, operator, place in ((UnderOperatorFilter, self.root_op_name, 0), (AfterOperatorFilter, self.preceding_op_name, -1),
                                      (BeforeOperatorFilter, self.following_op_name, 0)):
            if not rows.empty and find_op_occurrence(rows, operator, place, name)[0]:
                rows = kind(operator, place, False, name)(rows)
        if not rows.empty and self.include_gpu_kernels:
            rows = pandas.concat([get_matching_kernels(rows, df, category), rows])
        if self.stack_depths and 'depth' in rows.columns:
            rows = rows[rows['stream'].gt(0) | rows['depth'].isin(self.stack_depths)]
        return rows
