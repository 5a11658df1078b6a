"""Devices, and patterns that group names."""
import dataclasses
import enum
import re


class DeviceType(enum.Enum):
    """Where the rows of a frame ran."""
    UNKNOWN = 0
    CPU = 1
    GPU = 2
    ALL = 3


class MemcpyType(enum.Enum):
    """The direction of a copy."""
    DTOD = 0
    DTOH = 1
    HTOD = 2
    UNKNOWN = 3


MEMCPY_TYPE_TO_STR = {kind: f'memcpy_{kind.name.lower()}' for kind in MemcpyType if kind != MemcpyType.UNKNOWN}
MEMCPY_TYPE_TO_STR[MemcpyType.UNKNOWN] = 'memcpy_type_unknown'


class GPUType(enum.Enum):
    UNKNOWN = 'UNKNOWN GPU'
    NVIDIA = 'NVIDIA GPU'
    AMD = 'AMD GPU'
    MTIA = 'MTIA'


def infer_device_type(df):
    """GPU where every row has a stream, CPU where none has, else UNKNOWN. Process or thread 0 is a device, too."""
    if 'stream' in df.columns and len(df):
        if (df['stream'] >= 0).all() and (df['stream'] > 0).any():
            return DeviceType.GPU
        if {'pid', 'tid'} <= set(df.columns) and ((df['pid'] == 0).all() or (df['tid'] == 0).all()):
            return DeviceType.GPU
        if (df['stream'] < 0).all():
            return DeviceType.CPU
    return DeviceType.UNKNOWN


@dataclasses.dataclass
class GroupingPattern:
    """A group of names: those that the pattern matches from their start, or with inverse_match those that it does not."""
    pattern: 're.Pattern'
    inverse_match: bool = False
    group_name: str = ''

    def match(self, name):
        return (self.pattern.match(name) is not None) != self.inverse_match

    def __hash__(self):
        return hash((self.pattern, self.inverse_match))


def to_grouping_pattern(pattern, group_name=None, inverse_match=None):
    """A GroupingPattern of a regular expression, of several (any of them), or of one that is one already."""
    if isinstance(pattern, GroupingPattern):
        return pattern
    if isinstance(pattern, str):
        pattern = re.compile(pattern)
    elif isinstance(pattern, (list, tuple, set)):
        pattern = re.compile('|'.join(f'(?:{one})' for one in pattern))
    if not isinstance(pattern, re.Pattern):
        raise ValueError(f'{pattern!r} is no pattern: give a regular expression, compiled or as text, or a list of them')
    return GroupingPattern(pattern, bool(inverse_match), group_name or '')
