"""Written by tools/hta_stubs.py."""
from stageline.hta.common.call_tree import CallTree as CallTree
from stageline.hta.common.trace import Trace as Trace
from stageline.hta.common.trace_filter import Filter as Filter
from stageline.hta.common.types import DeviceType as DeviceType
from typing import Any
from typing import Dict
from typing import List
from typing import Optional
import dataclasses
import pandas as pd
import typing
from stageline.hta.common.constants import NULL_NODE_INDEX as NULL_NODE_INDEX
from stageline.hta.common.types import infer_device_type as infer_device_type

class CallStackIdentity(typing.NamedTuple):
    rank: int = ...
    pid: int = ...
    tid: int = ...

@dataclasses.dataclass
class CallStackNode:
    parent: int
    depth: int
    children: 'list[int]' = ...

class Event(typing.NamedTuple):
    idx: int
    time: int
    dur: int
    type: int

def compare_events(x: Event, y: Event) -> int: ...

class CallStackGraph(CallTree):
    identity: CallStackIdentity
    df: Any
    device_type: DeviceType
    nodes: Dict[int, CallStackNode]
    root_index: Any
    def __init__(self, df: pd.DataFrame, identity: CallStackIdentity, filter_func: Optional[Filter] = ...) -> None: ...
    def get_dataframe(self) -> pd.DataFrame: ...
    def get_depth(self) -> Optional[pd.Series]: ...

class CallGraph:
    trace_data: Trace
    ranks: Any
    mapping: pd.DataFrame
    call_stacks: List[CallStackGraph]
    def __init__(self, trace: Trace, ranks: Optional[List[int]] = ..., filter_func: Optional[Filter] = ..., remapped_tids: Optional[Dict[int, Dict[int, int]]] = ..., pre_process_trace_data: bool = ...) -> None: ...
    def constrain_child_time_withinin_parent(self, df: pd.DataFrame) -> None: ...
    def get_call_stacks(self) -> Any: ...
    def get_csg_of_node(self, node: Any, rank: Any) -> Any: ...
    def get_stack_of_node(self, node_id: int, rank: int, skip_ancestors: bool = ...) -> pd.DataFrame: ...
