"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace import Trace as Trace
from stageline.hta.common.trace_symbol_table import TraceSymbolTable as TraceSymbolTable
from typing import List
from typing import Optional
import pandas as pd

def prepare_timeline_gpu_events(df: pd.DataFrame, symbol_table: TraceSymbolTable, ranks: Optional[List[int]] = ..., iterations: Optional[List[int]] = ..., streams: Optional[List[int]] = ..., duration_threshold: int = ...) -> pd.DataFrame: ...

def plot_timeline(title: str, events: pd.DataFrame, ranks: Optional[List[int]] = ...) -> None: ...

def plot_timeline_gpu_kernels(title: str, df: pd.DataFrame, symbol_table: TraceSymbolTable, ranks: Optional[List[int]] = ..., iterations: Optional[List[int]] = ..., streams: Optional[List[int]] = ..., duration_threshold: int = ...) -> None: ...

def plot_timeline_gpu_kernels_from_trace(title: str, trace_data: Trace, ranks: Optional[List[int]] = ..., iterations: Optional[List[int]] = ..., streams: Optional[List[int]] = ..., duration_threshold: int = ...) -> None: ...
