"""Written by tools/hta_stubs.py."""
from typing import Any
import dataclasses
import enum
import typing

DEFAULT_CONFIG_FILENAME: Any

class ValueType(enum.Enum):
    Int = ...
    Float = ...
    String = ...
    Object = ...

class YamlVersion(typing.NamedTuple):
    major: int
    minor: int
    patch: int
    def get_version_str(self) -> str: ...
    @staticmethod
    def from_string(version_str: str) -> 'YamlVersion': ...

class AttributeSpec(typing.NamedTuple):
    name: str
    raw_name: str
    value_type: ValueType
    default_value: object
    min_supported_version: YamlVersion

@dataclasses.dataclass
class EventArgs:
    AVAILABLE_ARGS: dict[str, Any]
    ARGS_INPUT_SHAPE: list[Any]
    ARGS_BANDWIDTH: list[Any]
    ARGS_SYNC: list[Any]
    ARGS_MINIMUM: list[Any]
    ARGS_COMPLETE: list[Any]
    ARGS_INFO: list[Any]
    ARGS_COMMUNICATION: list[Any]
    ARGS_TRITON_KERNELS: list[Any]
    ARGS_DEFAULT: list[Any]
