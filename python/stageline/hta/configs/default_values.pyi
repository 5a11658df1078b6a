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
    AVAILABLE_ARGS: dict
    ARGS_INPUT_SHAPE: list
    ARGS_BANDWIDTH: list
    ARGS_SYNC: list
    ARGS_MINIMUM: list
    ARGS_COMPLETE: list
    ARGS_INFO: list
    ARGS_COMMUNICATION: list
    ARGS_TRITON_KERNELS: list
    ARGS_DEFAULT: list
