"""Written by tools/hta_stubs.py."""
from stageline.hta.common.trace_symbol_table import TraceSymbolTable as TraceSymbolTable
from stageline.hta.configs.parser_config import ParserBackend as ParserBackend
from stageline.hta.configs.parser_config import ParserConfig as ParserConfig
from typing import Any
from typing import Dict
from typing import Optional
from typing import Tuple
import enum
import io
import pandas as pd
from stageline.hta.common.types import GPUType as GPUType
from stageline.hta.configs import env_options as env_options
from stageline.hta.configs.config import logger as logger
from stageline.hta.configs.default_values import ValueType as ValueType

MetaData = Any
class MetaDataKey(enum.Enum):
    DEVICE_TYPE = ...

def get_default_trace_parsing_backend() -> ParserBackend: ...

def set_default_trace_parsing_backend(parser_backend: ParserBackend) -> Any: ...

def parse_trace_dict(trace_file_path: str) -> Dict[str, Any]: ...

def parse_metadata_ijson(fh: io.BufferedIOBase) -> MetaData: ...

def infer_gpu_type(metadata: Optional[MetaData] = ..., name_set: Optional[dict[str, int]] = ...) -> str: ...

def round_down_time_stamps(df: pd.DataFrame) -> None: ...

def frame_of_run(trace: Any, rank: Any, config: Any = ...) -> Any: ...

def parse_trace_dataframe(trace_file_path: str, cfg: ParserConfig) -> Tuple[MetaData, pd.DataFrame, TraceSymbolTable]: ...
