"""A trace file as a frame with HTA's columns (docs/analyses/hta-loading.md has the rules). The engine reads the file; what HTA's
configuration makes of it is done here. The analyses of TraceAnalysis need no frame."""
import contextlib
import enum
import gzip
import json
import re

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


def _starts_are_long(path):
    """Whether the first starts of a file need 64 bits, as those of all real clocks do; HTA keeps the others in fewer."""
    with _open_trace_file(path) as file:
        starts = [abs(int(found)) for found in re.findall(rb'"ts"\s*:\s*"?(-?\d+)', file.read(1 << 16))]
    return min(starts, default=0) >= 2 ** 31


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


def _of_dictionaries(arguments):
    """{argument: (its values, for each row the index of its value or -1)}."""
    import numpy
    out = {}
    for row, one in enumerate(arguments):
        for name, value in one.items() if isinstance(one, dict) else ():
            values, codes = out.setdefault(name, ([], numpy.full(len(arguments), -1)))
            codes[row] = len(values)
            values.append(value)
    return out


def _of_json(texts):
    """The values of JSON texts, all at once."""
    return json.loads(f'[{",".join(texts)}]', strict=False)


def _used(values, codes):
    """Without the values that no row has, which would decide the column's type."""
    import numpy
    used, codes = numpy.unique(codes, return_inverse=True)
    missing = int(len(used) > 0 and used[0] < 0)
    return [values[i] for i in used[missing:]], codes - missing


def _argument_column(found, spec, rows):
    """A column: the values of an argument, and the default in rows without it."""
    import numpy
    import pandas
    values, codes = found or ((), numpy.full(rows, -1))
    default = spec.default_value
    if (codes < 0).any():
        values = [*values, default]  # where the index -1 leads
    number = rows and spec.value_type in (ValueType.Int, ValueType.Float)
    column = pandas.Series(values, dtype=None if number else object)  # texts and lists stay what they are
    if number and column.dtype == object:
        column = pandas.to_numeric(column, errors='coerce').fillna(default if default is not None else 0)
        if spec.value_type == ValueType.Int:
            column = column.astype('int64')
    return column.to_numpy()[codes]


def _smallest_integers(frame):
    import pandas
    for column in frame.columns:
        if frame[column].dtype.kind == 'i':
            frame[column] = pandas.to_numeric(frame[column], downcast='integer')


def _compress_df(frame, config=None):
    """(rows that last, with arguments as columns and names as numbers; their symbols)."""
    import pandas
    if not {'dur', 'cat'} <= set(frame.columns):
        logger.warning('the trace has no events that last')
        return pandas.DataFrame(), TraceSymbolTable()
    if 'index' not in frame.columns:
        frame = frame.assign(index=range(len(frame)))
    frame = frame.dropna(subset=['dur', 'cat'])
    frame = frame[frame['cat'] != 'Trace']
    arguments = _of_dictionaries(frame['args'].tolist() if 'args' in frame else [])
    return _with_arguments(frame, arguments, config or ParserConfig.get_default_cfg())


def _specs(config, arguments, categories):
    """The arguments that become columns."""
    def inferred(names, *known):
        """By the first value of each, in the order of these."""
        first = {name: int((arguments[name][1] >= 0).argmax()) for name in names}
        return ParserConfig.infer_attribute_specs([{name: arguments[name][0][arguments[name][1][row]]}
                                                   for name, row in sorted(first.items(), key=lambda item: item[1])], *known)

    specs = list(config.get_args())
    if config.parse_all_args:  # those that occur, and what the links between rows need
        used = [name for name, (_, codes) in arguments.items() if (codes >= 0).any()]
        specs = [spec for spec in specs if spec.raw_name in (*used, 'stream', 'correlation')]
        specs += [spec for spec in inferred(used).values() if spec.name not in {s.name for s in specs}]
    counters = (categories == 'cuda_profiler_range').to_numpy()
    if counters.any():
        used = [name for name, (_, codes) in arguments.items() if (codes[counters] >= 0).any()]
        specs += [spec._replace(name=raw, default_value=-1) for raw, spec in inferred(used, {}).items() if raw not in {s.raw_name for s in specs}]
    return list({spec.name: spec for spec in specs}.values())


def _with_arguments(frame, arguments, config):
    """Rows without the skipped kinds, with their arguments as columns and names as numbers; their symbols."""
    from ..utils.utils import normalize_gpu_stream_numbers
    if _default_backend != ParserBackend.JSON:
        kept = ~frame['cat'].isin(config.skip_event_types).to_numpy()
        frame, arguments = frame[kept], {name: _used(values, codes[kept]) for name, (values, codes) in arguments.items()}
    frame = frame[[c for c in ('index', 'cat', 'name', 'pid', 'tid', 'ts', 'dur', 'end') if c in frame.columns]].copy()
    for spec in _specs(config, arguments, frame['cat']):
        column = _argument_column(arguments.get(spec.raw_name), spec, len(frame))
        if spec.name == 'stream':
            frame.insert(frame.columns.get_loc('end' if 'end' in frame else 'dur') + 1, 'stream', column)
            normalize_gpu_stream_numbers(frame)
        else:
            frame[spec.name] = column
    symbols = TraceSymbolTable.create_from_df(frame)
    symbols.encode_df(frame)
    _smallest_integers(frame)
    return frame.set_index('index', drop=False).rename_axis(None), symbols


def _columns(frame):
    """[(name, dictionary or None, values or codes, -1 for none)] of the engine's frame."""
    import numpy
    for place, column in enumerate(frame.columns):
        values = [numpy.asarray(frame.data(batch, place)[0]) for batch in range(len(frame.batch_rows()))]
        texts = frame.dictionary(place)
        values = values[0] if values else numpy.zeros(0)
        yield column[0], texts, values if texts is None else values.astype('int32')


def _mixed(values, codes):
    """Processes or threads: numbers if all of the file are, else what each is."""
    import pandas
    all_of_file = pandas.Series([*values, float('nan')] if (codes < 0).any() else values)
    return pandas.Series(all_of_file.to_numpy()[codes], dtype=all_of_file.dtype)


def frame_of_run(trace, rank, config=None):
    """(metadata, frame, symbols) of a rank of an opened run, as recorded: not aligned, nothing dropped."""
    import numpy
    import pandas
    config = config or ParserConfig.get_default_cfg()
    counters = 'cuda_profiler_range' in trace._run.slices(None, ['category'], 1).dictionary(0)
    wanted = [] if config.parse_all_args or counters else list(dict.fromkeys(spec.raw_name for spec in config.get_args()))
    events, fractional, all_starts, whole_durations, metadata = trace._run.events(rank, wanted)
    columns = list(_columns(events))
    (_, _, index), *texts, (_, _, ts), (_, _, dur) = columns[:5]
    frame = pandas.DataFrame({'index': index.astype('int64')})
    for name, listed, codes in texts:
        frame[name] = numpy.array(listed, dtype=object)[codes]
    (_, *pid), (_, *tid), *arguments = ((name, _of_json(listed), codes) for name, listed, codes in columns[5:])
    frame['pid'], frame['tid'] = _mixed(*pid), _mixed(*tid)
    frame['ts'] = ts if fractional else ts.astype('int64')
    frame['dur'] = dur.astype('int64') if whole_durations else dur
    round_down_time_stamps(frame)
    if not all_starts:
        frame['ts'] = frame['ts'].astype('float64')
    frame, symbols = _with_arguments(frame, {name: (values, codes) for name, values, codes in arguments}, config)
    return {key: _of_json([value])[0] for key, value in zip(metadata[::2], metadata[1::2])}, frame, symbols


def parse_trace_dataframe(trace_file_path, cfg):
    """(metadata, frame, symbols) of one file, as recorded: not aligned, nothing dropped."""
    import pandas
    import stageline
    with _open_trace_file(trace_file_path):
        pass  # whose ending and place are good
    try:
        trace = stageline.open(trace_file_path, file_ranks=[0], align='never', cells='off', progress=False)
    except stageline.Error:
        whole = parse_trace_dict(trace_file_path)
        whole = whole if isinstance(whole, dict) else {'traceEvents': whole}
        if any(isinstance(event, dict) and {'dur', 'cat'} <= event.keys() for event in whole.pop('traceEvents', ())):
            raise
        logger.warning('the trace has no events that last')
        return whole, pandas.DataFrame(), TraceSymbolTable()
    with trace:
        return frame_of_run(trace, 0, cfg)
