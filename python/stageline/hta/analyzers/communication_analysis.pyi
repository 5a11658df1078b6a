"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace import Trace as Trace
import pandas as pd

class CommunicationAnalysis:
    def __init__(self) -> None: ...
    @classmethod
    def get_comm_comp_overlap(cls, t: 'Trace', visualize: bool = ...) -> pd.DataFrame: ...
