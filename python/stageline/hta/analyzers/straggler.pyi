"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace import Trace as Trace
from stageline.hta.common.trace_symbol_table import TraceSymbolTable as TraceSymbolTable
import pandas as pd

def extract_iteration_info(trace: Trace) -> pd.DataFrame: ...

def find_stragglers_with_late_start_comm_kernels(df: pd.DataFrame, symbol_table: TraceSymbolTable, n_stragglers: int = ..., visualize: bool = ...) -> pd.Series: ...
