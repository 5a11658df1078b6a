"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace import Trace as Trace
from typing import Callable
from typing import List
from typing import Optional
import pandas as pd
from stageline.hta.analyzers.straggler import find_stragglers_with_late_start_comm_kernels as find_stragglers_with_late_start_comm_kernels

class StragglerAnalysis:
    def __init__(self) -> None: ...
    @classmethod
    def get_profiler_steps(cls, t: 'Trace') -> List[int]: ...
    @classmethod
    def get_potential_stragglers(cls, t: 'Trace', profiler_steps: Optional[List[int]] = ..., num_candidates: int = ..., visualize: bool = ..., straggler_identification_impl: Callable[..., pd.Series] = ...) -> List[int]: ...
