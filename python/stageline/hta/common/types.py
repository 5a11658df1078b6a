"""Devices, and patterns that group names."""
import dataclasses
import enum
import re


class DeviceType(enum.Enum):
    """Where the rows of a frame ran."""
    UNKNOWN = 'UNKNOWN'
    CPU = 'CPU'
    GPU = 'GPU'
    ALL = 'ALL'


class GPUType(enum.Enum):
    UNKNOWN = 'UNKNOWN GPU'
    NVIDIA = 'NVIDIA GPU'
    AMD = 'AMD GPU'
    MTIA = 'MTIA'


def infer_device_type(frame):
    """GPU where every row has a stream, CPU where none has, else UNKNOWN. Process or thread 0 is a device, too."""
    if 'stream' in frame.columns and len(frame):
        if (frame['stream'] >= 0).all() and (frame['stream'] > 0).any():
            return DeviceType.GPU
        if {'pid', 'tid'} <= set(frame.columns) and ((frame['pid'] == 0).all() or (frame['tid'] == 0).all()):
            return DeviceType.GPU
        if (frame['stream'] < 0).all():
            return DeviceType.CPU
    return DeviceType.UNKNOWN


@dataclasses.dataclass
class GroupingPattern:
    """A group of names: those that the pattern matches from their start, or with inverse_match those that it does not."""
    group_name: str = ''
    pattern: 're.Pattern' = re.compile('')
    inverse_match: bool = False

    def match(self, name):
        return (self.pattern.match(name) is not None) != self.inverse_match

    def __hash__(self):
        return hash((self.group_name, self.pattern, self.inverse_match))


def to_grouping_pattern(pattern, group_name='', inverse_match=False):
    """A GroupingPattern of a regular expression, of several (any of them), or of one that is one already."""
    if isinstance(pattern, GroupingPattern):
        return pattern
    if isinstance(pattern, str):
        pattern = re.compile(pattern)
    elif isinstance(pattern, (list, tuple, set)):
        pattern = re.compile('|'.join(f'(?:{one})' for one in pattern))
    if not isinstance(pattern, re.Pattern):
        raise ValueError(f'{pattern!r} is no pattern: give a regular expression, compiled or as text, or a list of them')
    return GroupingPattern(group_name, pattern, inverse_match)
