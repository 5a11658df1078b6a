"""Rows of a frame by conditions: filter(frame) or filter(frame, symbol_table)."""
import abc
import re

from ._row_links import gpu_side


class Filter(abc.ABC):
    """Maps a frame to rows of it. A frame that lacks the column comes back as it is."""

    @abc.abstractmethod
    def __call__(self, df, symbol_table=None):
        ...


class CompositeFilter(Filter):
    """One filter after the other."""

    def __init__(self, filters):
        if any(f is self for f in filters):
            raise ValueError('a composite filter does not hold itself')
        wrong = [f for f in filters if not isinstance(f, Filter)]
        if wrong:
            raise TypeError(f'{wrong[0]!r} is no filter')
        self.filters = list(filters)

    def __call__(self, df, symbol_table=None):
        for one in self.filters:
            df = one(df, symbol_table)
        return df


def _numbers(values, what):
    values = [values] if isinstance(values, int) else values
    if not isinstance(values, (list, tuple, set)) or not all(isinstance(v, int) for v in values):
        raise TypeError(f'{what} is a whole number or a list of them, not {values!r}')
    return list(values)


class IterationFilter(Filter):
    """Rows of these steps."""

    def __init__(self, iterations):
        self.iterations = _numbers(iterations, 'a step')

    def __call__(self, df, symbol_table=None):
        return df[df['iteration'].isin(self.iterations)] if 'iteration' in df.columns else df


class IterationIndexFilter(Filter):
    """Rows of the n-th step, from 0; several numbers for several."""

    def __init__(self, iteration_index):
        self.positions = _numbers(iteration_index, 'the place of a step')

    def __call__(self, df, symbol_table=None):
        import pandas
        if 'iteration' not in df.columns:
            return df
        steps = sorted(i for i in df['iteration'].dropna().unique() if i >= 0)
        if not steps:
            return df
        chosen = [steps[p] for p in self.positions if 0 <= p < len(steps)]
        return df[df['iteration'].isin(chosen)] if chosen else pandas.DataFrame()


class FirstIterationFilter(IterationIndexFilter):
    """Rows of the first step."""

    def __init__(self):
        super().__init__(0)


class RankFilter(Filter):
    """Rows of these ranks."""

    def __init__(self, ranks):
        self.ranks = _numbers(ranks, 'a rank')

    def __call__(self, df, symbol_table=None):
        return df[df['rank'].isin(self.ranks)] if 'rank' in df.columns else df


class TimeRangeFilter(Filter):
    """Rows that lie in (from, to) whole."""

    def __init__(self, time_range):
        if not isinstance(time_range, (list, tuple)) or len(time_range) != 2 or time_range[0] > time_range[1]:
            raise ValueError(f'{time_range!r} is no range of times: (from, to)')
        self.begin, self.end = time_range

    def __call__(self, df, symbol_table=None):
        if not {'ts', 'dur'} <= set(df.columns):
            return df
        return df[df['ts'].ge(self.begin) & (df['ts'] + df['dur']).le(self.end)]


class NameStringColumnFilter(Filter):
    """Rows whose text the pattern matches from its start."""

    name_column = 's_name'

    def __init__(self, name_pattern):
        self.name_pattern = name_pattern

    def __call__(self, df, symbol_table=None):
        from pandas.api.types import is_numeric_dtype
        pattern = re.compile(self.name_pattern)
        column = next((c for c in (self.name_column, 's_name', 'name') if c in df.columns and not is_numeric_dtype(df[c])), None)
        if column is None:
            return df
        return df[df[column].map(lambda name: isinstance(name, str) and pattern.match(name) is not None).astype(bool)]


class NameIdColumnFilter(Filter):
    """Rows whose number stands for a symbol that the pattern matches from its start."""

    def __init__(self, name_pattern):
        self.name_pattern = name_pattern

    def __call__(self, df, symbol_table=None):
        if symbol_table is None or 'name' not in df.columns:
            return df
        return df[df['name'].isin(symbol_table.find_matches([self.name_pattern]))]


class NameFilter(Filter):
    """Rows by name: by texts where the frame has them, else by a symbol table's numbers."""

    def __init__(self, name_pattern, symbol_table=None, name_column=None):
        self.name_pattern, self.symbol_table, self.name_column = name_pattern, symbol_table, name_column

    def __call__(self, df, symbol_table=None):
        table = symbol_table or self.symbol_table
        if df.empty:
            return df
        if not self.name_column and table is not None and df['name'].dtype.kind in 'iu':
            return NameIdColumnFilter(self.name_pattern)(df, table)
        texts = NameStringColumnFilter(self.name_pattern)
        texts.name_column = self.name_column or 's_name'
        return texts(df)


class QueryFilter(Filter):
    """Selects rows by a condition of DataFrame.query."""

    def __init__(self, query_str):
        self.filter_query = query_str

    def __call__(self, df, symbol_table=None):
        return df.query(self.filter_query)


ZeroDurationFilter = QueryFilter('dur > 0')


class GPUKernelFilter(Filter):
    """Rows of devices; with a symbol table waits, too, which have no stream."""

    def __call__(self, df, symbol_table=None):
        return df[gpu_side(df, symbol_table)] if 'stream' in df.columns else df


class CPUOperatorFilter(Filter):
    """The other rows."""

    def __call__(self, df, symbol_table=None):
        return df[~gpu_side(df, symbol_table)] if 'stream' in df.columns else df


class MemCopyEventFilter(Filter):
    """Copies of one direction, such as 'Memcpy HtoD (Pinned -> Device)'."""

    def __init__(self, memory_copy_type, symbol_table=None):
        self.memory_copy_type, self.symbol_table = memory_copy_type, symbol_table

    def __call__(self, df, symbol_table=None):
        table = symbol_table or self.symbol_table
        if df.empty or table is None:
            return df
        name, category = (table.sym_index.get(s, -1) for s in (self.memory_copy_type, 'gpu_memcpy'))
        return df[df['name'].eq(name) & df['cat'].eq(category)]
