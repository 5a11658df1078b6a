"""Answers questions about one rank's frame."""
import re


def get_iterations(frame):
    """The steps of the rows, ascending, without -1."""
    from pandas.api.types import is_numeric_dtype
    if 'iteration' not in frame.columns or not is_numeric_dtype(frame['iteration']):
        raise TypeError('the frame has no column iteration of whole numbers')
    return sorted(int(i) for i in frame['iteration'].dropna().unique() if i != -1)


def find_op_occurrence(frame, op_name, position, name_column='s_name'):
    """(found, row): the position-th row by time whose name the pattern matches whole; negative positions count from the end."""
    import pandas
    if frame.empty or not {name_column, 'ts'} <= set(frame.columns):
        return False, pandas.Series(dtype=object)
    rows = frame[frame[name_column].str.fullmatch(op_name) | frame[name_column].eq(op_name)].sort_values('ts', kind='stable')
    if not -len(rows) <= position < len(rows):
        return False, pandas.Series(dtype=object)
    return True, rows.iloc[position]


def find_events_by_name_patterns_using_decoded_names(frame, patterns, name_column='s_name'):
    """`index` of the rows whose text one of the patterns matches from its start."""
    pattern = re.compile('|'.join(f'(?:{p})' for p in patterns))
    return frame.loc[frame[name_column].map(lambda name: pattern.match(name) is not None), 'index']


def find_events_by_name_patterns_using_symbol_table(frame, patterns, symbol_table):
    """The same for names that are numbers of a symbol table."""
    return frame.loc[frame['name'].isin(symbol_table.find_matches(patterns)), 'index']
