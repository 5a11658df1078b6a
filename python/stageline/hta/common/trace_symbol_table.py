"""Names and categories once each; rows of frames hold their numbers."""
import re

from ..utils.utils import get_memory_kernel_type, is_memory_kernel, shorten_name  # noqa: F401  (names that scripts import from here)

_LAUNCHES = ('cudaLaunchKernel', 'cudaLaunchKernelExC', 'cuLaunchKernel', 'cuLaunchKernelEx', 'cudaMemcpyAsync', 'cudaMemsetAsync', 'hipLaunchKernel',
             'hipExtModuleLaunchKernel', 'hipMemcpyAsync', 'hipMemsetAsync', 'hipMemcpyWithStream', 'runFunction - job_prep_and_submit_for_execution')


def _is_texts(series):
    from pandas.api.types import is_object_dtype, is_string_dtype
    return is_string_dtype(series) and (not is_object_dtype(series) or series.map(lambda v: isinstance(v, str)).all())


class TraceSymbolTable:
    """sym_table[i] is the text of number i, sym_index[text] its number."""

    def __init__(self):
        self.sym_table, self.sym_index = [], {}

    def add_symbols(self, symbols):
        for symbol in symbols:
            if symbol not in self.sym_index:
                self.sym_index[symbol] = len(self.sym_table)
                self.sym_table.append(symbol)

    def add_symbols_mp(self, symbols_list):
        """Adds several lists; their own order decides the numbers."""
        for symbols in symbols_list:
            self.add_symbols(symbols)

    def get_sym_id_map(self):
        return self.sym_index

    get_sym_index = get_sym_id_map

    def get_sym_table(self):
        return self.sym_table

    def get_sym_table_series(self):
        import pandas
        return pandas.Series(self.sym_table, dtype=object)

    def get_sym_index_series(self):
        import pandas
        return pandas.Series(self.sym_index, dtype='int64')

    def is_empty(self):
        return not self.sym_table

    # ---- choosing ----

    def find_matched_symbols(self, patterns):
        """Symbols that one of the patterns matches from their start."""
        compiled = [re.compile(p) for p in patterns]
        return [s for s in self.sym_table if any(p.match(s) for p in compiled)]

    def find_matches(self, patterns):
        """Their numbers."""
        return [self.sym_index[s] for s in self.find_matched_symbols(patterns)]

    def get_symbol_ids(self, symbol_pattern):
        """{symbol: number} of those that a GroupingPattern takes."""
        return {s: i for s, i in self.sym_index.items() if symbol_pattern.match(s)}

    def get_symbol_names(self, symbol_ids):
        """{number: symbol}; numbers that stand for none are left out."""
        return {i: self.sym_table[i] for i in symbol_ids if 0 <= i < len(self.sym_table)}

    def _ids_of(self, texts):
        return [self.sym_index[t] for t in texts if t in self.sym_index]

    def get_profiler_step_ids(self):
        return self.find_matches([r'ProfilerStep#\d+'])

    def get_runtime_launch_events_query(self):
        """Rows of calls that launch work and have some, as a condition of DataFrame.query."""
        return f'(name in {self._ids_of(_LAUNCHES)}) and (index_correlation > 0)'

    def get_cpu_event_cat_ids(self):
        return self._ids_of(['cpu_op', 'user_annotation', 'cuda_runtime', 'cuda_driver', 'mtia_runtime', 'Operator', 'Runtime', 'python_function'])

    def get_kernel_cat_ids(self):
        return self._ids_of(['kernel', 'Kernel', 'gpu_memset', 'Memset', 'gpu_memcpy', 'Memcpy', 'mtia_ccp_events'])

    def get_memory_name_ids(self):
        return [i for s, i in self.sym_index.items() if is_memory_kernel(s)]

    def get_events_mask(self, df, events):
        return df['name'].isin(self._ids_of(events))

    NULL = -128  # stands for no symbol

    def get_operator_or_cuda_runtime_mask(self, df):
        """Which rows are operators or calls of CUDA's runtime or driver."""
        return df['cat'].isin(self._ids_of(['cpu_op', 'cuda_driver', 'cuda_runtime']))

    def get_runtime_launch_events_mask(self, df):
        """Which rows are calls that launch work and have some."""
        return df['name'].isin(self._ids_of(_LAUNCHES)) & df['index_correlation'].gt(0)

    def get_gpu_kernel_cat_ids(self):
        return self.get_kernel_cat_ids()

    def get_kernel_launch_ids(self):
        return self.find_matches([r'cuda.*LaunchKernel', 'cuLaunchKernel', 'runFunction'])

    def update_encoded_df(self, df, old_symbol_table):
        """The numbers of another table become those of this one, in place."""
        for column in ('cat', 'name'):
            df[column] = df[column].map(lambda i: self.sym_index[old_symbol_table.sym_table[i]])

    # ---- frames ----

    def add_symbols_to_trace_df(self, trace_df, col):
        """Numbers in `column` become their texts, in place."""
        texts = self.sym_table
        trace_df[col] = trace_df[col].map(lambda i: texts[i] if 0 <= i < len(texts) else '').astype(object)

    def encode_df(self, df):
        """Names and categories become numbers, in place."""
        for column in ('name', 'cat'):
            if not _is_texts(df[column]):
                raise ValueError(f'the column {column} holds no texts')
            df[column] = df[column].map(self.sym_index).astype('int64')

    def decode_df(self, df, create_new_columns=True):
        """Adds texts to the numbers, as s_name and s_cat, or replaces them."""
        for column in ('name', 'cat'):
            texts = df[column].map(lambda i: self.sym_table[i])
            df[f's_{column}' if create_new_columns else column] = texts

    @staticmethod
    def create_from_df(df):
        """The symbols of a frame's names and categories."""
        for column in ('name', 'cat'):
            if not _is_texts(df[column]):
                raise ValueError(f'the column {column} holds no texts')
        made = TraceSymbolTable()
        made.add_symbols(df['name'].unique().tolist())
        made.add_symbols(df['cat'].unique().tolist())
        return made

    @staticmethod
    def create_from_symbol_id_map(symbol_id_map):
        """With numbers given; those between that stand for nothing are named Undefined-N."""
        made = TraceSymbolTable()
        by_id = {i: s for s, i in symbol_id_map.items()}
        for i in range(max(by_id) + 1 if by_id else 0):
            made.add_symbols([by_id.get(i, f'Undefined-{i}')])
        return made

    @staticmethod
    def combine_symbol_tables(tables):
        made = TraceSymbolTable()
        for table in tables:
            made.add_symbols(table.sym_table)
        return made

    @staticmethod
    def clone(symbol_table):
        made = TraceSymbolTable()
        made.sym_table, made.sym_index = list(symbol_table.sym_table), dict(symbol_table.sym_index)
        return made

    # ---- files ----

    def _to_csv_file(self, path):
        import csv
        import io
        from stageline import _engine
        file = io.StringIO(newline='')
        writer = csv.writer(file)
        writer.writerow(['id', 'symbol'])
        writer.writerows(enumerate(self.sym_table))
        _engine.write_file(path, file.getvalue().encode('utf-8', 'surrogateescape'))

    to_csv_file = _to_csv_file

    @staticmethod
    def from_csv_file(file_path):
        import csv
        made = TraceSymbolTable()
        with open(file_path, newline='', encoding='utf-8') as file:
            made.add_symbols(row['symbol'] for row in csv.DictReader(file))
        return made


def decode_symbol_id_to_symbol_name(df, symbol_table, use_shorten_name):
    """Adds texts of names and categories to their numbers; names without parameters if requested."""
    texts = symbol_table.get_sym_table()
    shown = [shorten_name(t) for t in texts] if use_shorten_name else texts
    df['s_name'] = [shown[i] for i in df['name']]
    df['s_cat'] = [texts[i] for i in df['cat']]
    if 'user_annotation' in df:
        df['s_user_annotation'] = [shown[i] if i >= 0 else '' for i in df['user_annotation']]
