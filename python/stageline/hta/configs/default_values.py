"""Describes an argument of events: its column, its type, its value if it is missing."""
import dataclasses
import enum
import re
import typing

DEFAULT_CONFIG_FILENAME = 'trace_analyzer.json'


class ValueType(enum.Enum):
    Int = 1
    Float = 2
    String = 3
    Object = 4


class YamlVersion(typing.NamedTuple):
    """A version of the list of arguments."""
    major: int
    minor: int
    patch: int

    def get_version_str(self):
        return f'{self.major}.{self.minor}.{self.patch}'

    @staticmethod
    def from_string(version_str):
        found = re.fullmatch(r'(\d+)\.(\d+)\.(\d+)', version_str)
        if not found:
            raise ValueError(f'{version_str!r} is no version: 1.0.0 is one')
        return YamlVersion(*map(int, found.groups()))


class AttributeSpec(typing.NamedTuple):
    """An argument: the column's name, the argument's in the file, the values' type, the value of events without it."""
    name: str
    raw_name: str
    value_type: ValueType
    default_value: object
    min_supported_version: YamlVersion

    def __eq__(self, other):
        return isinstance(other, AttributeSpec) and tuple(self) == tuple(other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((self.name, self.raw_name, self.value_type, str(self.default_value)))


@dataclasses.dataclass
class EventArgs:
    """All arguments by key, and the lists that are asked for by name."""
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
