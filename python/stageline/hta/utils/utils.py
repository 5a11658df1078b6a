"""Names of kernels and columns as HTA sorts and shortens them (docs/analyses/kernel-classes.md)."""
import enum
import os
import re
import warnings

_COMMUNICATION = re.compile(r'nccl|hip|hccl|.*ncclKernel', re.S)
_MEMORY = re.compile(r'Memcpy|Memset|hipMemcpy|hipMemset|dma')
_OTHER = re.compile(r'Stream Wait Event|runFunction|job_exe|packet|pe_exe|cpum_exe_subgraph|collective_subgraph_execution|'
                    r'cuda.*LaunchKernel|.*(?:Memcpy|Memset|dma|Sync)', re.S)


class KernelType(enum.Enum):
    COMPUTATION = 0
    COMMUNICATION = 1
    MEMORY = 2
    OTHER = 3


class IdleTimeType(enum.Enum):
    HOST_WAIT = 0
    KERNEL_WAIT = 1
    OTHER = 2


def is_comm_kernel(name):
    return _COMMUNICATION.match(name) is not None


def is_memory_kernel(name):
    return _MEMORY.match(name) is not None


def is_compute_kernel(name):
    return get_kernel_type(name) == KernelType.COMPUTATION.name


def is_computer_kernel(name):
    """The older name of is_compute_kernel."""
    warnings.warn('is_computer_kernel is now is_compute_kernel', DeprecationWarning, stacklevel=2)
    return is_compute_kernel(name)


def get_kernel_type(name):
    """COMMUNICATION, MEMORY, OTHER or COMPUTATION: by the name alone, the first rule that fits."""
    if is_comm_kernel(name):
        return KernelType.COMMUNICATION.name
    if is_memory_kernel(name):
        return KernelType.MEMORY.name
    return (KernelType.OTHER if _OTHER.match(name) else KernelType.COMPUTATION).name


def get_memory_kernel_type(name):
    """Memset, or the copy with its direction."""
    if name.startswith('Memset'):
        return 'Memset'
    return name[:11] if name.startswith('Memcpy') else 'Memcpy Unknown'


def shorten_name(name):
    """The name without template arguments, parameters and what stands before its last blank."""
    if is_memory_kernel(name) or not ('<' in name or '(' in name):
        return name
    opened = {'>': '<', ')': '('}
    kept = []
    for letter in name.replace('->', ''):
        if letter not in opened:
            kept.append(letter)
            continue
        while kept and kept.pop() != opened[letter]:
            pass
    return ''.join(kept).split(' ')[-1]


def flatten_column_names(df):
    """Columns of several levels become one, joined by an underscore."""
    df.columns = ['_'.join(filter(None, map(str, c))) if isinstance(c, tuple) else c for c in df.columns]


def normalize_path(path):
    """A path that begins with ./ or ~/ as an absolute one."""
    path = os.fspath(path)
    if path.startswith('./'):
        return os.path.join(os.getcwd(), path[2:])
    return os.path.expanduser(path) if path.startswith('~/') else path


def normalize_gpu_stream_numbers(df):
    """Streams become whole numbers in place; what is none becomes -1."""
    if 'stream' not in df.columns:
        return
    import pandas
    df['stream'] = pandas.to_numeric(df['stream'], errors='coerce').fillna(-1).astype(int)


def _is_text(frame, column):
    from pandas.api.types import is_string_dtype
    if column not in frame.columns or not is_string_dtype(frame[column]):
        return False
    return len(frame) == 0 or isinstance(frame[column].iloc[0], str)


def get_symbol_column_names(df):
    """Returns which columns hold names and categories as text; '' where none does."""
    def of(*columns):
        return next((c for c in columns if _is_text(df, c)), '')
    return of('name', 's_name'), of('cat', 's_cat')


def merge_kernel_intervals(kernel_df):
    """The union of the rows' intervals: sorted by start, those that overlap or touch as one."""
    import pandas
    kernel_df = kernel_df.sort_values('ts')
    ends = kernel_df['ts'] + kernel_df['dur']
    group = (kernel_df['ts'] > ends.cummax().shift()).cumsum()
    merged = pandas.DataFrame({'ts': kernel_df['ts'], 'end': ends, 'group': group}).groupby('group').agg(ts=('ts', 'min'), end=('end', 'max'))
    return merged.reset_index(drop=True)


def get_mp_pool_size(obj_size, num_objs):
    """How many processes work on objects of this size at once: four fifths of the free memory hold them."""
    free = os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    return min(int(0.8 * free / obj_size), num_objs, os.cpu_count() or 1)


def get_value_from_dict(d, key, default=None):
    """The value of a dotted key in nested dictionaries."""
    for part in key.split('.'):
        if not isinstance(d, dict) or part not in d:
            return default
        d = d[part]
    return d
