"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace import Trace as Trace
from typing import Any
import pandas as pd
from stageline.hta.configs.config import logger as logger
from stageline.hta.utils.utils import normalize_path as normalize_path

EXECUTION_TRACE_SUPPORTED_EVENTS: Any

class Node:
    name: Any
    id: Any
    parent_id: Any
    rf_id: Any
    seq_id: Any
    scope: Any
    tid: Any
    fw_parent: Any
    fw_tid: Any
    op_schema: Any
    def __init__(self, raw: Any) -> None: ...

class ExecutionTrace:
    schema: Any
    nodes: Any
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def load_execution_trace(et_file: str) -> ExecutionTrace: ...

def correlate_execution_trace(trace: Trace, rank: int, et: ExecutionTrace) -> None: ...

def add_et_column(trace_df: pd.DataFrame, et: ExecutionTrace, column: str) -> None: ...
