"""Written by tools/hta_stubs.py."""
from stageline.hta.configs.default_values import EventArgs as EventArgs
from stageline.hta.configs.default_values import YamlVersion as YamlVersion
from typing import Any
from stageline.hta.configs.default_event_args import DEFAULT_EVENT_ARGS as DEFAULT_EVENT_ARGS
from stageline.hta.configs.default_event_args import INDEX_KEYS as INDEX_KEYS
from stageline.hta.configs.default_event_args import event_args as event_args
from stageline.hta.configs.default_values import AttributeSpec as AttributeSpec
from stageline.hta.configs.default_values import ValueType as ValueType

ARGS_INDEX_FUNC: Any
ARGS_INPUT_SHAPE_FUNC: Any
ARGS_BANDWIDTH_FUNC: Any
ARGS_SYNC_FUNC: Any
ARGS_MINIMUM_FUNC: Any
ARGS_COMPLETE_FUNC: Any
ARGS_INFO_FUNC: Any
ARGS_COMMUNICATION_FUNC: Any
ARGS_TRITON_KERNELS_FUNC: Any
ARGS_DEFAULT_FUNC: Any

def yaml_path(version: Any) -> Any: ...

def parse_event_args_yaml(version: YamlVersion) -> EventArgs: ...

def main() -> None: ...
