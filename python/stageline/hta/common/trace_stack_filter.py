"""Selects rows under, before and after an operator. The frame has the column s_name (Trace.decode_symbol_ids)."""
import abc

from ..configs.config import logger
from .trace_df import find_op_occurrence
from .trace_filter import Filter, FirstIterationFilter


def _with_kernels(df, chosen, include):
    """With the device work that the chosen rows launched."""
    if not include:
        return df.loc[chosen]
    launched = df['stream'].ge(0) & df['index_correlation'].isin(df.loc[chosen, 'index'])
    return df.loc[chosen | launched]


class OperatorFilter(Filter):
    """By the position-th occurrence of an operator; without it all rows stay, and the log says so."""

    def __init__(self, op_name, position=0, include_gpu_kernels=True, name_column='s_name'):
        self.op_name, self.position, self.include_gpu_kernels, self.name_column = op_name, position, include_gpu_kernels, name_column

    @abc.abstractmethod
    def _chosen(self, df, op):
        ...

    def __call__(self, df, symbol_table=None):
        found, op = find_op_occurrence(df, self.op_name, self.position, self.name_column)
        if not found:
            logger.warning('%s: there is no occurrence %d of it among these rows, which stay all', self.op_name, self.position)
            return df
        return _with_kernels(df, self._chosen(df, op) & df['stream'].eq(op['stream']), self.include_gpu_kernels)


class UnderOperatorFilter(OperatorFilter):
    """Keeps rows within the operator's time."""

    def _chosen(self, df, op):
        return df['ts'].ge(op['ts']) & (df['ts'] + df['dur']).le(op['ts'] + op['dur'])


class AfterOperatorFilter(OperatorFilter):
    """Keeps rows that start once it has ended."""

    def _chosen(self, df, op):
        return df['ts'].ge(op['ts'] + op['dur'])


class BeforeOperatorFilter(OperatorFilter):
    """Keeps rows that have ended when it starts."""

    def _chosen(self, df, op):
        return (df['ts'] + df['dur']).le(op['ts'])


class CombinedOperatorFilter(Filter):
    """Filters the first step: rows under an operator, after one, before another; then, if given, at depths."""

    def __init__(self, root_op_name, after_op_name='', before_op_name='', include_gpu_kernels=True, depths=None):
        self.filters = [FirstIterationFilter()]
        for kind, name in ((UnderOperatorFilter, root_op_name), (AfterOperatorFilter, after_op_name), (BeforeOperatorFilter, before_op_name)):
            if name:
                self.filters.append(kind(name, 0, False))
        self.include_gpu_kernels, self.depths = include_gpu_kernels, depths

    def __call__(self, df, symbol_table=None):
        rows = df
        for one in self.filters:
            rows = one(rows, symbol_table)
        if self.depths is not None and 'depth' in rows.columns:
            rows = rows[rows['depth'].isin(self.depths)]
        return _with_kernels(df, df.index.isin(rows.index), self.include_gpu_kernels)
