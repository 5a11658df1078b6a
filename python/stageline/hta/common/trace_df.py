"""Answers questions about one rank's frame."""
import re


def get_iterations(df):
    """The steps of the rows, ascending, without -1."""
    from pandas.api.types import is_numeric_dtype
    if 'iteration' not in df.columns or not is_numeric_dtype(df['iteration']):
        raise TypeError('the frame has no column iteration of whole numbers')
    return sorted(int(i) for i in df['iteration'].dropna().unique() if i != -1)


def find_op_occurrence(df, op_name, position, name_column='s_name'):
    """(found, row): the position-th row by time whose name the pattern matches whole; negative positions count from the end."""
    import pandas
    if df.empty or not {name_column, 'ts'} <= set(df.columns):
        return False, pandas.Series(dtype=object)
    rows = df[df[name_column].str.fullmatch(op_name) | df[name_column].eq(op_name)].sort_values('ts', kind='stable')
    if not -len(rows) <= position < len(rows):
        return False, pandas.Series(dtype=object)
    return True, rows.iloc[position]


def find_events_by_name_patterns_using_decoded_names(df, list_name_patterns, name_column='s_name'):
    """`index` of the rows whose text one of the patterns matches from its start."""
    pattern = re.compile('|'.join(f'(?:{p})' for p in list_name_patterns))
    return df.loc[df[name_column].map(lambda name: pattern.match(name) is not None), 'index']


def find_events_by_name_patterns_using_symbol_table(df, list_name_patterns, symbol_table):
    """The same for names that are numbers of a symbol table."""
    return df.loc[df['name'].isin(symbol_table.find_matches(list_name_patterns)), 'index']
