"""Written by tools/hta_stubs.py."""
from stageline.hta.configs.parser_config import AttributeSpec as AttributeSpec
from typing import Any
from typing import Dict
from typing import List
from typing import Tuple
import pandas as pd
from stageline.hta.configs.default_values import ValueType as ValueType
from stageline.hta.configs.parser_config import ParserConfig as ParserConfig

def get_argument_spec(level: str = ...) -> List[AttributeSpec]: ...

def get_expected_arguments(attribute_specs: List[AttributeSpec]) -> pd.DataFrame: ...

def validate_trace_format(trace_file_path: str, level: str = ..., ignore_missing_arguments: bool = ...) -> Tuple[bool, Dict[str, Any]]: ...
