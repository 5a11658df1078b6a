"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace import Trace as Trace
from typing import Any
from typing import List
from typing import Optional
from typing import Tuple
import pandas as pd

class BreakdownAnalysis:
    def __init__(self) -> None: ...
    @classmethod
    def get_gpu_kernel_breakdown(cls, t: 'Trace', visualize: bool = ..., duration_ratio: float = ..., num_kernels: int = ..., include_memory_kernels: bool = ..., image_renderer: Any = ...) -> Tuple[pd.DataFrame, pd.DataFrame]: ...
    @classmethod
    def get_gpu_kernels_with_user_annotations(cls, t: 'Trace', rank: int, expand_names: bool = ..., shorten_names: bool = ...) -> Optional[pd.DataFrame]: ...
    @classmethod
    def get_gpu_user_annotation_breakdown(cls, t: 'Trace', use_gpu_annotation: bool = ..., visualize: bool = ..., duration_ratio: float = ..., num_kernels: int = ..., allowlist_patterns: Optional[List[str]] = ..., image_renderer: Optional[str] = ...) -> Optional[pd.DataFrame]: ...
    @classmethod
    def get_temporal_breakdown(cls, t: 'Trace', visualize: bool = ...) -> pd.DataFrame: ...
    @classmethod
    def get_idle_time_breakdown(cls, t: 'Trace', consecutive_kernel_delay: int, rank: int = ..., streams: Optional[List[int]] = ..., visualize: bool = ..., visualize_pctg: bool = ..., show_idle_interval_stats: Any = ...) -> Tuple[pd.DataFrame, Optional[pd.DataFrame]]: ...
