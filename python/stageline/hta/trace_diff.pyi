"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace import Trace as Trace
from stageline.hta.common.types import DeviceType as DeviceType
from typing import Dict
from typing import List
from typing import Optional
from typing import Union
import pandas as pd
from stageline.hta.utils.utils import shorten_name as shorten_name
from typing import Any

TraceDir = Any
class LabeledTrace:
    label: str
    t: Trace
    iteration_df: pd.DataFrame
    def __init__(self, label: Optional[str] = ..., t: Optional[Trace] = ..., trace_dir: Optional[str] = ...) -> None: ...
    def ranks(self) -> List[int]: ...
    def iterations(self) -> List[int]: ...
    def extract_ops(self, rank: Optional[Union[int, List[int]]] = ..., iteration: Optional[Union[int, List[int]]] = ..., device_type: DeviceType = ...) -> pd.DataFrame: ...
    def get_ops_summary(self, ops: pd.DataFrame) -> pd.DataFrame: ...

class TraceDiff:
    @classmethod
    def compare_traces(cls, control: Union[LabeledTrace, TraceDir], test: Union[LabeledTrace, TraceDir], control_rank: Optional[Union[int, List[int]]] = ..., test_rank: Optional[Union[int, List[int]]] = ..., control_iteration: Optional[Union[int, List[int]]] = ..., test_iteration: Optional[Union[int, List[int]]] = ..., device_type: DeviceType = ..., use_short_name: bool = ...) -> pd.DataFrame: ...
    @classmethod
    def ops_diff(cls, control: Union[LabeledTrace, TraceDir], test: Union[LabeledTrace, TraceDir], control_rank: Optional[Union[int, List[int]]] = ..., test_rank: Optional[Union[int, List[int]]] = ..., control_iteration: Optional[Union[int, List[int]]] = ..., test_iteration: Optional[Union[int, List[int]]] = ..., device_type: DeviceType = ...) -> Dict[str, List[str]]: ...
    @classmethod
    def visualize_counts_diff(cls, df: pd.DataFrame, show_image: bool = ..., export_image_path: Optional[str] = ...) -> None: ...
    @classmethod
    def visualize_duration_diff(cls, df: pd.DataFrame, show_image: bool = ..., export_image_path: Optional[str] = ...) -> None: ...
