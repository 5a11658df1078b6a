"""The traces of a job as HTA holds them: a frame of rows for each rank (common.trace.Trace)."""
import gzip
import json
import os
import warnings

from stageline import _engine

from ..configs.config import logger
from ..configs.default_values import ValueType  # noqa: F401
from ..configs.parser_config import ParserConfig
from ..utils.utils import normalize_path
from ._row_links import (  # noqa: F401
    STEP_NAME, add_fwd_bwd_links, add_iteration, get_cpu_gpu_correlation, gpu_side, transform_correlation_to_index)
from .trace_file import create_rank_to_trace_dict, create_rank_to_trace_dict_from_dir
from .trace_parser import frame_of_run, infer_gpu_type, parse_trace_dataframe, parse_trace_dict
from .trace_symbol_table import TraceSymbolTable, decode_symbol_id_to_symbol_name
from .types import GPUType

DEFAULT_TRACE_DIR = '/tmp/trace'
TRACE_ENDINGS = ('.gz', '.json')
PHASE_COUNTER = 'C'
PHASE_FLOW_START = 's'
PHASE_FLOW_END = 'f'


def parse_trace_file(trace_file_path, cfg=None):
    """Reads a file: its metadata, its rows with their partners and steps, and its symbols."""
    if not trace_file_path.endswith(TRACE_ENDINGS):
        raise ValueError(f'{trace_file_path}: a trace file ends in .gz or .json')
    return _related(*parse_trace_dataframe(trace_file_path, cfg))


def _related(metadata, frame, symbols):
    if not frame.empty:
        transform_correlation_to_index(frame, symbols)
        add_iteration(frame, symbols)
        frame['end'] = frame['ts'] + frame['dur']
    return metadata, frame, symbols


def trace_event_timestamp_to_unixtime_ns(trace_event_ts_us, trace_metadata):
    """Converts a timestamp of the file, in µs, to Unix time in ns."""
    return int(trace_event_ts_us * 1000) + trace_metadata['baseTimeNanoseconds']


class Trace:
    """The files of a job, one a rank, and what was read of them: traces[rank] is a frame."""

    include_last_profiler_step = False
    _run = None  # the files as an analysis has opened them

    def __init__(self, trace_files=None, trace_dir=DEFAULT_TRACE_DIR, parser_config=None):
        self.trace_path = normalize_path(trace_dir)
        self.parser_config = parser_config
        if trace_files is None:
            _, self.trace_files = create_rank_to_trace_dict_from_dir(self.trace_path)
        elif isinstance(trace_files, dict):
            self.trace_files = dict(trace_files)
        elif isinstance(trace_files, list):
            _, self.trace_files = create_rank_to_trace_dict([self._placed(f) for f in trace_files])
        else:
            logger.error('trace_files is a dictionary or a list, not %r', trace_files)
            return
        self._normalize_trace_filenames()
        if not self._validate_trace_files():
            raise ValueError('trace files are missing or of another kind; the log says which')
        self.traces, self.symbol_table, self.meta_data = {}, TraceSymbolTable(), {}
        self.min_ts, self.is_parsed = 0, False
        logger.debug('files of ranks: %s', self.trace_files)

    def _normalize_trace_filenames(self):
        if not isinstance(self.trace_files, dict):
            raise ValueError(f'trace_files is a dictionary of rank and path, not {type(self.trace_files).__name__}')
        self.trace_files = {rank: self._placed(path) for rank, path in self.trace_files.items()}

    def _placed(self, path):
        """A name is one in the folder, unless it is absolute or has the folder in front already."""
        path, folder = os.fspath(path), os.path.join(self.trace_path, '') if self.trace_path else ''
        return path if os.path.isabs(path) or path.startswith(folder) else folder + path

    def _validate_trace_files(self):
        good = True
        for rank, path in self.trace_files.items():
            if not os.path.isfile(path) or not os.access(path, os.R_OK):
                logger.error('rank %s: %s cannot be read', rank, path)
            elif not path.endswith(TRACE_ENDINGS):
                logger.error('rank %s: %s: a trace file ends in .gz or .json', rank, path)
            else:
                continue
            good = False
        return good

    # ---- reading ----

    def load_traces(self, include_last_profiler_step=False, use_multiprocessing=True, use_memory_profiling=True):
        """Reads all ranks and puts them on one axis from 0. The last step is dropped unless it is asked for."""
        if self.is_parsed:
            logger.warning('the traces are loaded already')
            return
        self.parse_traces(use_multiprocessing=use_multiprocessing, use_memory_profiling=use_memory_profiling)
        self.include_last_profiler_step = bool(include_last_profiler_step)
        self.align_and_filter_trace(include_last_profiler_step)
        for rank, frame in self.traces.items():
            logger.debug('rank %d: %d rows', rank, len(frame))
        self.is_parsed = True

    def parse_multiple_ranks(self, ranks, use_multiprocessing=True, use_memory_profiling=True):
        """Reads these ranks; of a run that is open already, only what its slices lack."""
        import numpy
        config = self.parser_config or ParserConfig.get_default_cfg()
        run = self._run
        for rank in ranks:
            path = self.trace_files[rank]
            metadata, frame, symbols = (parse_trace_file(path, config) if run is None or rank not in run.ranks
                                        else _related(*frame_of_run(run, rank, config)))
            self.meta_data[rank] = metadata
            if frame.empty:
                self.traces.pop(rank, None)
                continue
            self.symbol_table.add_symbols(symbols.sym_table)
            numbers = numpy.array([self.symbol_table.sym_index[s] for s in symbols.sym_table], 'int64')
            for column in ('name', 'cat'):
                frame[column] = numbers[frame[column].to_numpy()]
            self.traces[rank] = frame

    def parse_single_rank(self, rank):
        if rank in self.trace_files:
            self.parse_multiple_ranks([rank])

    def parse_traces(self, max_ranks=-1, use_multiprocessing=True, use_memory_profiling=True):
        """Reads the ranks, the lowest first, with their recorded times."""
        ranks = sorted(self.trace_files)
        ranks = ranks[:max_ranks] if max_ranks > 0 else ranks
        if not ranks:
            logger.error('there is no rank to read')
            return
        self.parse_multiple_ranks(ranks)
        self.is_parsed = True

    def align_and_filter_trace(self, include_last_profiler_step=False):
        self._align_all_ranks()
        self._filter_irrelevant_gpu_kernels(include_last_profiler_step)

    def _align_all_ranks(self):
        """The earliest start of all ranks becomes 0; `end` stays on the file's clock (HTA's fault F10)."""
        if self.traces:
            self.min_ts = min(frame['ts'].min() for frame in self.traces.values())
            for frame in self.traces.values():
                frame['ts'] = frame['ts'] - self.min_ts

    def _filter_irrelevant_gpu_kernels(self, include_last_profiler_step=False):
        """Drops the last step if there are several, and device work whose launch is dropped."""
        steps = self.symbol_table.get_profiler_step_ids()
        if len(steps) < 2:
            logger.info('fewer than two profiler steps: nothing is dropped')
            return
        chosen = self._within_steps if self.get_device_type() == GPUType.MTIA.value else self._before_last_step
        for rank, frame in list(self.traces.items()):
            self.traces[rank] = chosen(frame, steps, include_last_profiler_step)

    def _before_last_step(self, frame, steps, include_last):
        import pandas
        side = gpu_side(frame, self.symbol_table)
        host, device = frame[~side], frame[side]
        if host.empty:
            return frame
        marks = host[host['name'].isin(steps)]
        if include_last:
            host = host[host['ts'] <= (marks if len(marks) else host)['end'].max()]
        else:
            host = host[host['ts'] < (marks['ts'].max() if len(marks) else host['ts'].min())]
        # A device row is repeated for every host row of its correlation (HTA's fault F14).
        times = device['correlation'].map(host['correlation'].value_counts()).fillna(0).astype('int64')
        return pandas.concat([device.loc[device.index.repeat(times)] if device.index.is_unique else device[times > 0], host])

    def _within_steps(self, frame, steps, include_last):
        import pandas
        table = self.symbol_table
        marks = frame[frame['name'].isin(steps) & frame['stream'].lt(0)]
        if marks.empty:
            return frame.iloc[:0]
        begin, end = marks['ts'].min(), (marks['ts'] + marks['dur']).max()
        inside = frame['ts'].ge(begin) & (frame['ts'] + frame['dur']).le(end)
        host = frame[frame['cat'].isin(table.get_cpu_event_cat_ids()) & inside]
        device = frame[frame['cat'].isin(table.get_kernel_cat_ids())]
        memory = device['name'].isin(table.get_memory_name_ids()) & inside[device.index]
        device = device[(device['correlation'].ge(0) & device['correlation'].isin(host['correlation'])) | memory].copy()
        lost = device['name'].isin(table.get_memory_name_ids()) & device['stream'].eq(-1)
        if lost.any():
            device.loc[lost, 'stream'] = pandas.to_numeric(device.loc[lost, 'tid'], errors='coerce').fillna(-1)
        return pandas.concat([device, host])

    def _fix_mtia_memory_kernels(self, frame):
        """Gives MTIA copies without a step or stream the step around them and their thread's number, in place."""
        warnings.warn('_fix_mtia_memory_kernels is needed for older traces alone', DeprecationWarning, stacklevel=2)
        memory = frame['name'].isin(self.symbol_table.get_memory_name_ids())
        for s, i in self.symbol_table.sym_index.items():
            found = STEP_NAME.match(s)
            if not found:
                continue
            for row in frame[frame['name'] == i].itertuples():
                frame.loc[memory & frame['iteration'].eq(-1) & frame['ts'].ge(row.ts) & frame['ts'].lt(row.ts + row.dur), 'iteration'] = int(found.group(1))
        lost = memory & frame['stream'].eq(-1)
        if lost.any():
            frame.loc[lost, 'stream'] = frame.loc[lost, 'tid']

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != '_run'}

    def _exact_times(self, rank):
        """A frame of dur_ns and start_ns by index, as HTA's rounding loses them."""
        import stageline
        run = self._run if self._run is not None else stageline.open(
            self.trace_files[rank], file_ranks=[rank], align='never', cells='off', progress=False)
        return run.slices(where=stageline.f.rank == rank, columns=['file_index', 'dur_ns', 'start_ns']).to_pandas().set_index('file_index')

    # ---- asking ----

    def get_ranks(self):
        return sorted(self.traces)

    def get_iterations(self, rank=None):
        """Returns the steps of a rank (the lowest by default)."""
        rank = rank if rank is not None else min(self.traces, default=None)
        if rank not in self.traces or 'iteration' not in self.traces[rank].columns:
            return []
        return sorted(int(i) for i in self.traces[rank]['iteration'].dropna().unique() if i >= 0)

    def get_trace_duration(self, rank=None):
        """From the first start to the last one, as HTA has it: the last event's own time is left out."""
        starts = self.get_trace(rank if rank is not None else min(self.traces))['ts']
        return starts.max() - starts.min()

    def get_trace(self, rank):
        if rank not in self.traces:
            raise ValueError(f'no trace of rank {rank}; there are {self.get_ranks()}')
        return self.traces[rank]

    def get_all_traces(self):
        return self.traces

    def get_raw_trace_for_one_rank(self, rank=0):
        """Returns the file's JSON."""
        if rank not in self.trace_files:
            raise ValueError(f'no file of rank {rank}; there are {sorted(self.trace_files)}')
        return parse_trace_dict(self.trace_files[rank])

    def write_raw_trace(self, output_file, trace_contents):
        """Writes JSON. It is compressed, whatever the name says (HTA's fault F27)."""
        text = json.dumps(trace_contents, indent=2).encode('utf-8', 'surrogateescape')
        _engine.write_file(output_file, gzip.compress(text))

    def decode_symbol_ids(self, use_shorten_name=True):
        """Adds s_name and s_cat to every frame."""
        for frame in self.traces.values():
            decode_symbol_id_to_symbol_name(frame, self.symbol_table, use_shorten_name)

    def get_device_type(self):
        return infer_gpu_type(self.meta_data[min(self.meta_data)] if self.meta_data else None, self.symbol_table.sym_index)

    def convert_time_series_to_events(self, series, counter_name, counter_col):
        """Returns Chrome counter events of a series, whose columns are pid, ts, `counter_col`, and maybe name and id."""
        if not {'pid', 'ts', counter_col} <= set(series.columns):
            logger.warning('a series has the columns pid, ts and %s, not %s', counter_col, list(series.columns))
            return []
        return [{'ph': PHASE_COUNTER, 'name': row.get('name', counter_name), 'pid': row['pid'], 'ts': row['ts'] + self.min_ts,
                 'args': {counter_name: row[counter_col]}, **({'id': row['id']} if 'id' in row else {})}
                for row in series.to_dict('records')]

    @staticmethod
    def flow_event(id, pid, tid, ts, is_start, name, cat, args=None):
        """Returns the event at one end of a flow."""
        event = {'ph': PHASE_FLOW_START if is_start else PHASE_FLOW_END, 'id': id, 'pid': pid, 'tid': tid, 'ts': ts, 'name': name, 'cat': cat}
        if not is_start:
            event['bp'] = 'e'
        if args:
            event['args'] = args
        return event

    def get_trace_start_unixtime_ns(self, rank):
        self.get_trace(rank)  # fails for an unknown rank
        return trace_event_timestamp_to_unixtime_ns(self.min_ts, self.meta_data[rank])


_OWN_WRITER = Trace.write_raw_trace


def _write_trace_text(path, text):
    """Writes JSON as it is, compressed; a write_raw_trace that the user's program has replaced gets Python's objects, as in HTA."""
    if Trace.write_raw_trace is _OWN_WRITER:
        _engine.write_file(path, gzip.compress(text))
    else:
        Trace.__new__(Trace).write_raw_trace(path, json.loads(text.decode('utf-8', 'surrogateescape')))
