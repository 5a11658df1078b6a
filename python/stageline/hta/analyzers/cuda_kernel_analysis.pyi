"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace import Trace as Trace
from typing import Any
from typing import Dict
from typing import List
from typing import Optional
import pandas as pd

class CudaKernelAnalysis:
    def __init__(self) -> None: ...
    @classmethod
    def get_frequent_cuda_kernel_sequences(cls, t: Trace, operator_name: str, output_dir: str, min_pattern_len: int = ..., rank: int = ..., top_k: int = ..., visualize: bool = ..., compress_other_kernels: bool = ...) -> pd.DataFrame: ...
    @classmethod
    def visualize_aten_op_kernels_and_overhead(cls, rank: int, df: pd.DataFrame) -> Any: ...
    @classmethod
    def visualize_cuda_launch_kernel_info(cls, rank: int, df: pd.DataFrame, runtime_cutoff: int, launch_delay_cutoff: int) -> None: ...
    @classmethod
    def get_aten_op_kernels_and_delay(cls, trace: Trace, ranks: Optional[List[int]] = ..., sort_by: Optional[List[str]] = ...) -> Dict[int, pd.DataFrame]: ...
    @classmethod
    def cuda_kernel_launch_stats(cls, t: Trace, ranks: Optional[List[int]] = ..., runtime_cutoff: int = ..., launch_delay_cutoff: int = ..., include_memory_events: bool = ..., visualize: bool = ...) -> Dict[int, pd.DataFrame]: ...
