"""A trace file as a frame with HTA's columns (docs/analyses/hta-loading.md has the rules). Python's own JSON reads it, at Python's
speed: the analyses of TraceAnalysis need no frame, the engine reads for them."""
import contextlib
import enum
import gzip
import json

from ..configs import env_options
from ..configs.config import logger
from ..configs.default_values import ValueType
from ..configs.parser_config import ParserBackend, ParserConfig
from .trace_symbol_table import TraceSymbolTable
from .types import GPUType



class MetaDataKey(enum.Enum):
    """Keys of a trace's metadata that HTA adds."""
    DEVICE_TYPE = 'device_type'

    def __str__(self):
        return self.value


_default_backend = ParserBackend.JSON
_MTIA_LAUNCH = 'runFunction - job_prep_and_submit_for_execution'


def _auto_detect_parser_backend():
    """Files need not fit into memory twice here, whatever is installed."""
    return ParserBackend.IJSON_BATCH_AND_COMPRESS


def get_default_trace_parsing_backend():
    return _default_backend


def set_default_trace_parsing_backend(parser_backend):
    """The ijson kinds pass over the event types that the configuration says; else they are one."""
    global _default_backend
    _default_backend = parser_backend


@contextlib.contextmanager
def _open_trace_file(path):
    if not path.endswith(('.gz', '.json')):
        raise ValueError(f'{path}: a trace file ends in .gz or .json')
    with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as file:
        yield file


def parse_trace_dict(trace_file_path):
    """The whole file."""
    with _open_trace_file(trace_file_path) as file:
        return json.loads(file.read().decode('utf-8', 'surrogateescape'), strict=False)


def parse_metadata_ijson(fh):
    """Reads all top-level keys of an opened file but its events; lists inside of an object are None, as in HTA's reader
    of parts."""
    made = json.loads(fh.read().decode('utf-8', 'surrogateescape'), strict=False)
    made.pop('traceEvents', None)
    return {key: {k: None if isinstance(v, list) else v for k, v in value.items()} if isinstance(value, dict) else value
            for key, value in made.items()}


def infer_gpu_type(metadata=None, name_set=None):
    """Decides by the backend, else by the calls that occur."""
    name_set = name_set or ()
    backend = ((metadata or {}).get('distributedInfo') or {}).get('backend') or ''
    if 'mtia:hccl' in backend or _MTIA_LAUNCH in name_set:
        return GPUType.MTIA.value
    if 'cudaLaunchKernel' in name_set:
        return GPUType.NVIDIA.value
    return (GPUType.AMD if 'hipLaunchKernel' in name_set else GPUType.UNKNOWN).value


def round_down_time_stamps(df):
    """Fractional times become whole: starts up, ends down, so a short row may last 0 or -1 (fault F1)."""
    import numpy
    if df['ts'].dtype.kind != 'f' or env_options.disable_ns_rounding():
        return
    end = numpy.floor(df['ts'] + df['dur'])
    df['ts'] = numpy.ceil(df['ts'])
    df['dur'], df['end'] = end - df['ts'], end
    if not df['ts'].isna().any():
        df['ts'] = df['ts'].astype('int64')


def _text(value, default):
    return default if value is None else value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict) else str(value)


def _argument_columns(frame, arguments, specs):
    """Adds one column per argument."""
    import pandas
    for spec in specs:
        raw, default = spec.raw_name, spec.default_value
        values = [one.get(raw, default) if one.__class__ is dict else default for one in arguments]
        if spec.value_type == ValueType.String:
            values = [v if v.__class__ is str else _text(v, default) for v in values]
        column = pandas.Series(values, index=frame.index)
        if spec.value_type in (ValueType.Int, ValueType.Float) and column.dtype == object:
            column = pandas.to_numeric(column, errors='coerce').fillna(default if default is not None else 0)
            if spec.value_type == ValueType.Int:
                column = column.astype('int64')
        frame[spec.name] = column


def _smallest_integers(frame):
    import pandas
    for column in frame.columns:
        if frame[column].dtype.kind == 'i' and column not in ('name', 'cat', 'ts'):
            frame[column] = pandas.to_numeric(frame[column], downcast='integer')


def _compress_df(frame, config=None):
    """(rows that last, with arguments as columns and names as numbers; their symbols)."""
    import pandas
    config = config or ParserConfig.get_default_cfg()
    if not {'dur', 'cat'} <= set(frame.columns):
        logger.warning('the trace has no events that last')
        return pandas.DataFrame(), TraceSymbolTable()
    if 'index' not in frame.columns:
        frame = frame.assign(index=range(len(frame)))
    frame = frame.dropna(subset=['dur', 'cat'])
    frame = frame[frame['cat'] != 'Trace']
    if _default_backend != ParserBackend.JSON:
        frame = frame[~frame['cat'].isin(config.skip_event_types)]
    frame = frame.copy()
    arguments = frame['args'].tolist() if 'args' in frame else [None] * len(frame)
    frame = frame[[c for c in ('index', 'cat', 'name', 'pid', 'tid', 'ts', 'dur', 'end') if c in frame.columns]]
    specs = list(config.get_args())
    if config.parse_all_args:
        inferred = ParserConfig.infer_attribute_specs(arguments)
        specs += [spec for spec in inferred.values() if spec.name not in {s.name for s in specs}]
    if (frame['cat'] == 'cuda_profiler_range').any():
        counters = [a for a, c in zip(arguments, frame['cat']) if c == 'cuda_profiler_range']
        specs += [spec._replace(name=raw, default_value=-1) for raw, spec in ParserConfig.infer_attribute_specs(counters, {}).items()
                  if raw not in {s.raw_name for s in specs}]
    specs = list({spec.name: spec for spec in specs}.values())
    streams = next((s for s in specs if s.name == 'stream'), None)
    _argument_columns(frame, arguments, [s for s in specs if s is not streams])
    if streams is not None:
        from ..utils.utils import normalize_gpu_stream_numbers
        frame.insert(frame.columns.get_loc('end' if 'end' in frame else 'dur') + 1, 'stream', [a.get('stream', -1) if a.__class__ is dict else -1 for a in arguments])
        normalize_gpu_stream_numbers(frame)
    symbols = TraceSymbolTable.create_from_df(frame)
    symbols.encode_df(frame)
    _smallest_integers(frame)
    return frame.set_index('index', drop=False).rename_axis(None), symbols


def parse_trace_dataframe(trace_file_path, cfg):
    """(metadata, frame, symbols) of one file, as recorded: not aligned, nothing dropped."""
    import pandas
    config = cfg or ParserConfig.get_default_cfg()
    whole = parse_trace_dict(trace_file_path)
    if isinstance(whole, list):
        whole = {'traceEvents': whole}
    frame = pandas.DataFrame(whole.pop('traceEvents', []))
    frame['index'] = range(len(frame))
    if {'ts', 'dur'} <= set(frame.columns):
        round_down_time_stamps(frame)
    frame, symbols = _compress_df(frame, config)
    if not frame.empty:
        frame['end'] = frame['ts'] + frame['dur']
    return whole, frame, symbols
