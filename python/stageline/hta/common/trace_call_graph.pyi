"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace import Trace as Trace
from stageline.hta.common.trace_call_stack import CallStackGraph as CallStackGraph
from stageline.hta.common.trace_call_stack import CallStackIdentity as CallStackIdentity
from stageline.hta.common.trace_call_stack import CallStackNode as CallStackNode
from stageline.hta.common.trace_symbol_table import TraceSymbolTable as TraceSymbolTable
from typing import Any
from typing import Dict
from typing import Generator
from typing import List
from typing import Optional
import pandas as pd
from stageline.hta.common.constants import NULL_NODE_INDEX as NULL_NODE_INDEX
from stageline.hta.common.trace_call_stack import STACK_COLUMNS as STACK_COLUMNS
from stageline.hta.configs.env_options import fail_as_hta as fail_as_hta

class _OneFrame:
    traces: Any
    symbol_table: Any
    def __init__(self, frame: Any, symbol_table: Any, rank: Any) -> None: ...
    def get_all_traces(self) -> Any: ...
    def get_trace(self, rank: Any) -> Any: ...

class _Stack(CallStackGraph):
    def __init__(self, trace: Any, *thread: Any) -> None: ...

class CallGraph:
    trace_data: Trace
    ranks: List[int]
    mapping: pd.DataFrame
    call_stacks: List[CallStackGraph]
    rank_to_stacks: Dict[int, Dict[CallStackIdentity, CallStackGraph]]
    rank_to_nodes: Dict[int, Dict[int, CallStackNode]]
    def __init__(self, trace: Trace, ranks: Optional[List[int]] = ...) -> None: ...
    @staticmethod
    def from_dataframe(df: pd.DataFrame, symbol_table: Optional[TraceSymbolTable] = ..., rank: int = ...) -> 'CallGraph': ...
    def get_call_stacks(self, rank: Optional[int] = ..., pid: Optional[int] = ..., tid: Optional[int] = ..., stack_index: Optional[int] = ...) -> Generator[CallStackGraph, None, None]: ...
    def get_csg_of_node(self, index: int, rank: Optional[int] = ...) -> CallStackGraph: ...
    def get_stack_of_node(self, index: int, rank: Optional[int] = ..., skip_ancestors: bool = ...) -> pd.DataFrame: ...
    def get_node_attributes(self, index: int, rank: Optional[int] = ...) -> pd.Series: ...
    def get_gpu_kernels(self, rank: Optional[int] = ...) -> pd.DataFrame: ...
