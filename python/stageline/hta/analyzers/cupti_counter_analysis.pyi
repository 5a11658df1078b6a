"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace import Trace as Trace
from typing import Any
from typing import List
from typing import Optional
import pandas as pd

CUDA_SASS_INSTRUCTION_COUNTER_FLOPS: Any

class CuptiCounterAnalysis:
    cuda_profiler_cat: Any
    def __init__(self) -> None: ...
    @classmethod
    def get_counter_data_with_operators(cls, t: Trace, ranks: Optional[List[int]] = ...) -> List[pd.DataFrame]: ...
