"""Written by tools/hta_stubs.py."""
from typing import Any
from stageline.hta.configs.default_values import AttributeSpec as AttributeSpec
from stageline.hta.configs.default_values import EventArgs as EventArgs
from stageline.hta.configs.default_values import ValueType as ValueType
from stageline.hta.configs.default_values import YamlVersion as YamlVersion

INDEX_KEYS: Any

def event_args(available: Any) -> Any: ...

DEFAULT_EVENT_ARGS: Any
