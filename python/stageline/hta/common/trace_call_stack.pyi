"""Written by tools/hta_stubs.py."""
from stageline.hta.common.call_stack import CallStackIdentity as CallStackIdentity
from stageline.hta.common.call_tree import CallTree as CallTree
from stageline.hta.common.trace_symbol_table import TraceSymbolTable as TraceSymbolTable
from stageline.hta.common.types import DeviceType as DeviceType
from typing import Any
from typing import Dict
from typing import List
from typing import Optional
import dataclasses
import numpy as np
import pandas as pd
from stageline.hta.common.constants import NON_EXISTENT_NODE_INDEX as NON_EXISTENT_NODE_INDEX
from stageline.hta.common.constants import NULL_NODE_INDEX as NULL_NODE_INDEX
from stageline.hta.common.types import infer_device_type as infer_device_type
from stageline.hta.configs.config import logger as logger
from stageline.hta.configs.env_options import fail_as_hta as fail_as_hta

OPEN_END: Any
CLOSE_END: Any
STACK_COLUMNS: Any

@dataclasses.dataclass
class CallStackNode:
    parent: int = ...
    depth: int = ...
    height: int = ...
    device: DeviceType = ...
    children: 'list[int]' = ...

def sort_events(a: np.ndarray) -> None: ...

def is_events_sorted(arr: np.ndarray) -> bool: ...

class CallStackGraph(CallTree):
    correlations: pd.DataFrame
    nodes: Dict[int, CallStackNode]
    root_index: int
    device_type: DeviceType
    df: Any
    full_df: Any
    identity: CallStackIdentity
    symbol_table: Any
    def __init__(self, df: pd.DataFrame, identity: CallStackIdentity, cpu_gpu_correlation: pd.DataFrame, full_df: pd.DataFrame, symbol_table: TraceSymbolTable, nodes: Optional[Dict[int, CallStackNode]] = ..., use_existing_stack_columns: bool = ..., save_call_stack_to_df: bool = ...) -> None: ...
    def update_parent_of_first_layer_nodes(self, new_parent_index: int) -> None: ...
    def save_call_stack_to_dataframe(self, apply_whole_graph: bool = ...) -> None: ...
    def get_paths_to_leaves(self, idx: int, include_cuda_kernel: bool = ...) -> List[List[int]]: ...
    def get_leaf_nodes(self, idx: int, include_gpu_kernel: bool = ...) -> List[int]: ...
    def get_descendants(self, idx: int, include_gpu_kernel: bool = ...) -> List[int]: ...
    def get_dataframe(self) -> pd.DataFrame: ...
    def get_depth(self) -> pd.Series: ...
