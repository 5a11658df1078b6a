"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace_filter import Filter as Filter
from stageline.hta.common.trace_symbol_table import TraceSymbolTable as TraceSymbolTable
from typing import Any
from typing import List
from typing import Optional
import enum
import pandas as pd
from stageline.hta.common.trace_df import find_op_occurrence as find_op_occurrence
from stageline.hta.common.trace_filter import FirstIterationFilter as FirstIterationFilter
from stageline.hta.configs.config import logger as logger
from stageline.hta.utils.utils import get_symbol_column_names as get_symbol_column_names

def get_matching_kernels(df_ops: pd.DataFrame, df_both: pd.DataFrame, cat_column: str) -> pd.DataFrame: ...

class OperatorFilterMethod(enum.Enum):
    Under = ...
    After = ...
    Before = ...
    Ancestors = ...
    Stack = ...

class OperatorFilter(Filter):
    op_name: Any
    position: Any
    method: Any
    include_gpu_kernels: Any
    name_column: str
    def __init__(self, op_name: str, position: int, method: OperatorFilterMethod, include_gpu_kernels: bool = ..., name_column: Optional[str] = ...) -> None: ...
    def __call__(self, df: pd.DataFrame, symbol_table: Optional[TraceSymbolTable] = ...) -> pd.DataFrame: ...

class UnderOperatorFilter(OperatorFilter):
    def __init__(self, op_name: str, position: int, include_gpu_kernels: bool = ..., name_column: Optional[str] = ...) -> None: ...

class AfterOperatorFilter(OperatorFilter):
    def __init__(self, op_name: str, position: int, include_gpu_kernels: bool = ..., name_column: Optional[str] = ...) -> None: ...

class BeforeOperatorFilter(OperatorFilter):
    def __init__(self, op_name: str, position: int, include_gpu_kernels: bool = ..., name_column: Optional[str] = ...) -> None: ...

class CombinedOperatorFilter(Filter):
    root_op_name: str
    preceding_op_name: str
    following_op_name: str
    include_gpu_kernels: bool
    stack_depths: List[int]
    def __init__(self, root_op_name: str, preceding_op_name: str, following_op_name: str, include_gpu_kernels: bool = ..., stack_depths: Optional[List[int]] = ...) -> None: ...
    def __call__(self, df: pd.DataFrame, symbol_table: Optional[TraceSymbolTable] = ...) -> pd.DataFrame: ...
