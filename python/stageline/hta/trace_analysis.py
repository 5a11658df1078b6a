"""HTA's TraceAnalysis: its questions, asked of the engine, answered with its frames."""
import ast
import enum
import functools
import json
import os
import pathlib
import tempfile

from .analyzers import _figures
from .analyzers.straggler import find_stragglers_with_late_start_comm_kernels
from .analyzers.trace_memory_analysis import MemoryAnalysis, classify_torchtitan_calls
from .common.trace import DEFAULT_TRACE_DIR, Trace, _write_trace_text
from .common.trace_parser import _starts_are_long
from .common.trace_symbol_table import decode_symbol_id_to_symbol_name
from .configs.config import logger
from .configs.env_options import FAIL_AS_HTA_ENV, fail_as_hta

# The exact columns that stand for HTA's where HTA has no answer.
_ATEN_COLUMNS = {'aten_op_name': 'aten_op_name', 'kernel_sequence': 'kernel_sequence', 'occurrence_count': 'occurrence_count',
                 'avg_launch_delay_ns': 'avg_aten_op_launch_delay', 'avg_runtime_delay_ns': 'avg_runtime_delay'}
_SEQUENCE_COLUMNS = {'pattern': 'pattern', 'count': 'count', 'kernel_ns': 'GPU kernel duration (us)', 'op_ns': 'CPU op duration (us)'}
_STATISTICS = ['count', 'mean', 'std', 'min', '25%', '50%', '75%', 'max']


class TimeSeriesTypes(enum.Flag):
    """The series that generate_trace_with_counters adds."""
    QUEUE_LENGTH = enum.auto()
    MEMCPY_BANDWIDTH = enum.auto()


def _smallest(series):
    """The smallest signed type that holds the values, as HTA keeps whole numbers."""
    import numpy
    low, high = (series.min(), series.max()) if len(series) else (0, 0)
    for kind in ('int8', 'int16', 'int32', 'int64'):
        if numpy.iinfo(kind).min <= low and high <= numpy.iinfo(kind).max:
            return series.astype(kind)
    return series


def _frame(table, small=(), reals=(), without=()):
    """Returns the engine's table as HTA's frame: `small` in the smallest type, `reals` as floats, texts in pandas' own type for them."""
    import pandas
    frame = table.to_pandas(categories=False).drop(columns=list(without))
    for name in frame.columns[[kind == object for kind in frame.dtypes]]:  # pandas 3 has a type of its own for texts
        frame[name] = pandas.Series(frame[name].tolist(), index=frame.index, dtype=None if len(frame) else object)
    for name in small:
        frame[name] = _smallest(frame[name])
    for name in reals:
        frame[name] = frame[name].astype('float64')
    return frame


def _empty_intervals_overlap():
    """HTA asks pandas which kernels an annotation overlaps: one of 0 µs is within it up to pandas 2, and in none since."""
    import pandas
    return bool(pandas.IntervalIndex.from_arrays([1], [1], closed='left').overlaps(pandas.Interval(0, 2, closed='left'))[0])


def _as_written(series):
    """Processes and threads as JSON has them: numbers, or texts such as 'Spans'."""
    return series.map(lambda text: int(text) if text.lstrip('-').isdigit() else text).astype(object)


def _by_rank(frame, ranks):
    """Returns {rank: its rows without the column}, renumbered."""
    return {rank: frame[frame['rank'] == rank].drop(columns='rank').reset_index(drop=True) for rank in ranks}


def _statistics(frame, index, value):
    """describe()'s shape: rows by `index`, columns (value, count … max)."""
    import pandas
    if frame is None or frame.empty:
        return None
    made = frame.set_index(index)[_STATISTICS].astype('float64')
    made.columns = pandas.MultiIndex.from_product([[value], _STATISTICS])
    return made


class TraceAnalysis:
    """HTA's TraceAnalysis: the same methods, arguments and frames; times in µs."""

    def __init__(self, trace_files=None, trace_dir=DEFAULT_TRACE_DIR, include_last_profiler_step=False):
        # Which files there are, and whose: as HTA finds them, in one folder and not below it.
        self._frames = Trace(trace_files, trace_dir if trace_dir is not None else DEFAULT_TRACE_DIR)
        self._last = bool(include_last_profiler_step)
        if self._frames.trace_files:
            self._trace  # reads now; without a file HTA fails at the first question

    @classmethod
    def _of_trace(cls, trace):
        """Makes an analysis of the files of a Trace, which was loaded or not."""
        made = cls.__new__(cls)
        made._frames, made._last = trace, trace.include_last_profiler_step
        return made

    def _open(self, ranks):
        import stageline
        files = self._frames.trace_files
        if not files:
            raise ValueError(f'{self._frames.trace_path}: there is no trace file')
        # As stamped: HTA aligns no clocks.
        return stageline.open([files[r] for r in ranks], file_ranks=ranks, align='never', cells='off', progress=False)

    @functools.cached_property
    def _trace(self):
        return self._open(sorted(self._frames.trace_files))

    def _ask(self, analysis, ranks=None, run=None, **options):
        """Asks for all ranks. If HTA would fail on one of them, asks again for `ranks` alone, as HTA does."""
        import stageline
        options.update(compat='hta', include_last_profiler_step=self._last or None)
        try:
            return (run or self._trace).analyze(analysis, **options)
        except stageline.BadInput:
            if ranks is None or set(ranks) >= set(self._trace.ranks):
                raise
            with self._open(ranks) as some:
                return some.analyze(analysis, **options)

    def _ask_or_exact(self, analysis, columns, ranks=None, run=None, **options):
        """(answer, None), or where HTA fails, as on most traces with nanoseconds, the exact (answer, first table in HTA's columns)."""
        import stageline
        try:
            return self._ask(analysis, ranks, run, **options), None
        except stageline.BadInput as error:
            if fail_as_hta():
                raise
            answer = (run or self._trace).analyze(analysis, include_last_profiler_step=self._last or None, **options)
            logger.warning('%s: HTA fails on this trace (%s), so times are exact ones. With %s=1 this fails, too', analysis, error.what, FAIL_AS_HTA_ENV)
            frame = _frame(next(iter(answer.values())))
            times = [name for name in columns if name.endswith('_ns')]
            frame[times] /= 1000
            return answer, frame[[c for c in ('rank', *columns) if c in frame]].rename(columns=columns)

    @functools.cached_property
    def t(self):
        """Frames of whole traces, read when first asked for: no question of this class needs them."""
        if not self._frames.is_parsed:
            self._frames._run = self._trace
            self._frames.load_traces(self._last)
        return self._frames

    def _ranks(self, ranks):
        """HTA's default is the rank 0, whatever ranks there are."""
        ranks = [0] if ranks is None or len(ranks) == 0 else list(ranks)
        missing = [r for r in ranks if r not in self._trace.ranks]
        if missing:
            raise ValueError(f'the trace has no rank {missing[0]}; it has {self._trace.ranks}')
        return ranks

    def _type_of(self, column):
        """HTA keeps streams, correlations and indices in the smallest type that holds those of all its rows, -1 among them; 4294967295
        is a stream in some traces."""
        known = self.__dict__.setdefault('_types', {})
        if column not in known:
            import pandas
            values = self._trace.slices(columns=[column]).to_pandas()[column].dropna()
            known[column] = _smallest(pandas.Series([-1, *([values.min(), values.max()] if len(values) else [])])).dtype
        return known[column]

    def _of(self, frame, ranks):
        """Returns the rows of these ranks, renumbered."""
        frame = frame[frame['rank'].isin(ranks)].reset_index(drop=True)
        if 'stream' in frame:
            frame['stream'] = frame['stream'].astype(self._type_of('stream'))
        return frame

    @staticmethod
    def _by_asked(frame, ranks):
        import pandas
        return pandas.concat([frame[frame['rank'] == rank] for rank in ranks])

    # ---- breakdowns ----

    def get_temporal_breakdown(self, visualize=True):
        frame = _frame(self._ask('temporal-breakdown').table, reals=['idle_time(us)', 'compute_time(us)', 'non_compute_time(us)',
                                                                     'kernel_time(us)'])
        if visualize:
            _figures.temporal_breakdown(frame)
        return frame

    def get_gpu_kernel_breakdown(self, visualize=True, duration_ratio=0.8, num_kernels=10, include_memory_kernels=True, image_renderer=''):
        answer = self._ask('gpu-kernel-breakdown', duration_ratio=duration_ratio, num_kernels=num_kernels,
                           include_memory_kernels=bool(include_memory_kernels))
        types, kernels = list(answer.values())
        types = _frame(types)
        kernels = _frame(kernels, reals=['sum (us)', 'max (us)', 'min (us)', 'stddev', 'mean (us)'])
        if visualize:
            _figures.kernel_breakdown(types, kernels, image_renderer)
        return types, kernels

    def get_idle_time_breakdown(self, ranks=None, streams=None, visualize=True, visualize_pctg=True, show_idle_interval_stats=False,
                                consecutive_kernel_delay=30):
        ranks = self._ranks(ranks)
        answer = self._ask('idle-time-breakdown', ranks, streams=streams or None,
                           show_idle_interval_stats=bool(show_idle_interval_stats), consecutive_kernel_delay=consecutive_kernel_delay)
        frame = self._of(_frame(answer['idle-time'], reals=['idle_time', 'idle_time_ratio']), ranks)
        if len(ranks) > 1:  # in the order that was asked for, each rank's rows from 0
            frame = self._by_asked(frame.set_index(frame.groupby('rank').cumcount()), ranks)
        stats = None
        if show_idle_interval_stats and 'interval-stats' in answer:
            stats = self._by_asked(self._of(_frame(answer['interval-stats'], reals=_STATISTICS), ranks).set_index('idle_category'), ranks)
        if visualize:
            _figures.idle_time_breakdown(frame, visualize_pctg)
        return frame, stats

    def get_comm_comp_overlap(self, visualize=True):
        frame = _frame(self._ask('comm-comp-overlap').table)
        if visualize:
            _figures.comm_comp_overlap(frame)
        return frame

    def get_gpu_user_annotation_breakdown(self, use_gpu_annotation=True, visualize=True, duration_ratio=0.8, num_kernels=1000,
                                          allowlist_patterns=None, image_renderer=None):
        answer = self._ask('gpu-user-annotation-breakdown', use_gpu_annotation=bool(use_gpu_annotation), duration_ratio=duration_ratio,
                           num_kernels=num_kernels, allowlist_patterns=allowlist_patterns or None)
        frame = _frame(answer.table, reals=['sum (us)', 'max (us)', 'min (us)', 'stddev', 'mean (us)'])
        if frame.empty:
            return None
        if visualize:
            _figures.annotation_breakdown(frame, image_renderer)
        return frame

    # ---- kernels and launches ----

    def get_cuda_kernel_launch_stats(self, ranks=None, runtime_cutoff=50, launch_delay_cutoff=100, include_memory_events=True, visualize=True):
        ranks = self._ranks(ranks)
        answer = self._ask('cuda-kernel-launch-stats', ranks, runtime_cutoff=runtime_cutoff, launch_delay_cutoff=launch_delay_cutoff,
                           include_memory_events=bool(include_memory_events))
        frame = _frame(list(answer.values())[-1], reals=['cpu_duration', 'gpu_duration', 'launch_delay'])
        made = _by_rank(frame, ranks)
        for one in made.values():
            one['correlation'] = one['correlation'].astype(self._type_of('correlation'))
        if visualize:
            for rank, one in made.items():
                _figures.launch_stats(rank, one, runtime_cutoff, launch_delay_cutoff)
        return made

    def get_aten_op_kernels_and_delay(self, ranks=None, sort_by=None):
        ranks = self._ranks(ranks)
        answer, exact = self._ask_or_exact('aten-op-kernels-and-delay', _ATEN_COLUMNS, ranks, sort_by=sort_by)
        frame = exact if exact is not None else _frame(answer.table)
        made = _by_rank(frame, ranks)
        for rank, one in made.items():
            one.index = one.groupby(['aten_op_name', 'kernel_sequence']).ngroup().tolist()  # HTA sorts rows that were numbered by these
            _figures.aten_op_kernels(rank, one)  # always, as in HTA
        return made

    def get_gpu_kernels_with_user_annotations(self, rank, expand_names=True, shorten_names=True):
        answer, exact = self._ask_or_exact('gpu-kernels-with-user-annotations', {}, [rank], expand_names=False, shorten_names=False)
        work = answer['kernels'].to_pandas(categories=False).rename(columns={'annotation': 'user_annotation'})
        work = work[work['rank'] == rank]
        if work.empty:
            return None
        # HTA's frame has every column of the trace's; names are numbers there.
        numbers = self.t.symbol_table.get_sym_id_map()
        frame = self.t.get_trace(rank).loc[work['index']].reset_index(drop=True)
        frame['end'] = frame['ts'] + frame['dur']
        frame['user_annotation'] = [numbers.get(name, -1) for name in work['user_annotation']]
        if exact is None and not _empty_intervals_overlap():
            frame.loc[frame['dur'] == 0, 'user_annotation'] = -1
        if expand_names:
            decode_symbol_id_to_symbol_name(frame, self.t.symbol_table, shorten_names)
        return frame

    def get_frequent_cuda_kernel_sequences(self, operator_name, output_dir, min_pattern_len=3, rank=0, top_k=5, visualize=False,
                                           compress_other_kernels=True):
        pathlib.Path(output_dir).mkdir(parents=True, exist_ok=True)
        source = pathlib.Path(self._source(rank)).name
        with self._open([rank]) as one:
            answer, exact = self._ask_or_exact(
                'frequent-cuda-kernel-sequences', _SEQUENCE_COLUMNS, run=one, rank=rank, operator_name=operator_name, min_pattern_len=min_pattern_len,
                top_k=top_k, compress_other_kernels=bool(compress_other_kernels), overlay=os.path.join(output_dir, f'overlaid_{source}'))
        frame = exact if exact is not None else _frame(next(iter(answer.values())))
        if frame.empty:
            return frame[[]]
        frame = frame.drop(columns=[c for c in ('rank',) if c in frame])
        if visualize:
            _figures.kernel_sequences(frame, rank, top_k)
        return frame

    def _source(self, rank):
        return self._frames.trace_files[rank]

    # ---- series ----

    def get_queue_length_time_series(self, ranks=None):
        ranks = self._ranks(ranks)
        frame = _frame(self._ask('queue-length-time-series', ranks).table)
        made = {}
        for rank, one in _by_rank(frame, ranks).items():
            one['index'] = one['index'].astype(self._type_of('file_index'))
            one = one.set_index('index')
            one['stream'] = one['stream'].astype(self._type_of('stream'))
            one['ts'] = one['ts'].astype('int64' if _starts_are_long(self._source(rank)) else self.t.get_trace(rank)['ts'].dtype)
            one['pid'], one['tid'] = _as_written(one['pid']), _as_written(one['tid'])
            made[rank] = one
        return {rank: one for rank, one in made.items() if len(one)}

    def get_queue_length_summary(self, ranks=None):
        ranks = self._ranks(ranks)
        frame = self._of(_frame(self._ask('queue-length-summary', ranks)['queue-length-summary']), ranks)
        return _statistics(frame, ['rank', 'stream'], 'queue_length')

    def get_time_spent_blocked_on_full_queue(self, queue_length_dict, max_queue_length=1024):
        """The ranks are those of `queue_length_dict`; lengths are the engine's own."""
        ranks = self._ranks(list(queue_length_dict or ()))
        frame = self._of(_frame(self._ask('time-spent-blocked-on-full-queue', ranks, max_queue_length=max_queue_length).table,
                                reals=['duration_at_max_queue_length', 'relative_duration_at_max_queue_length']), ranks)
        if frame.empty:
            import pandas
            return pandas.DataFrame.from_dict({}, orient='index', columns=list(frame.columns[1:])).reset_index(names='rank')  # types are pandas' own
        return frame

    def get_memory_bw_time_series(self, ranks=None):
        ranks = self._ranks(ranks)
        frame = _frame(self._ask('memory-bw-time-series', ranks).table, reals=['ts', 'memory_bw_gbps'])
        frame['pid'] = _as_written(frame['pid'])
        return {rank: one.set_index('index').rename_axis(None) for rank, one in _by_rank(frame, ranks).items() if len(one)}

    def get_memory_bw_summary(self, ranks=None):
        ranks = self._ranks(ranks)
        frame = self._of(_frame(self._ask('memory-bw-summary', ranks)['memory-bw-summary']), ranks)
        return _statistics(frame, ['rank', 'name'], 'memory_bw_gbps')

    def get_queue_length_summary_from_time_series(self, queue_length_dict):
        """The statistics of series that get_queue_length_time_series gave."""
        from .analyzers.trace_counters import TraceCounters
        return TraceCounters.get_queue_length_summary_from_time_series(queue_length_dict)

    def generate_trace_with_counters(self, time_series=None, ranks=None, output_suffix='_with_counters'):
        """Writes each rank's trace with its counters next to the source."""
        wanted = time_series if time_series is not None else TimeSeriesTypes.QUEUE_LENGTH | TimeSeriesTypes.MEMCPY_BANDWIDTH
        for rank in self._ranks(ranks):
            source = self._source(rank)
            with tempfile.TemporaryDirectory() as folder:
                made = os.path.join(folder, 'counters.json')
                with self._open([rank]) as one:
                    one.export(made, 'trace-with-counters', compat='hta')
                text = pathlib.Path(made).read_bytes()
            if wanted != TimeSeriesTypes.QUEUE_LENGTH | TimeSeriesTypes.MEMCPY_BANDWIDTH:
                queue, content = bool(wanted & TimeSeriesTypes.QUEUE_LENGTH), json.loads(text.decode('utf-8', 'surrogateescape'))
                content['traceEvents'] = [e for e in content['traceEvents'] if e.get('ph') != 'C' or (e['name'] == 'Queue Length') == queue]
                text = json.dumps(content).encode('utf-8', 'surrogateescape')
            folder, name = os.path.split(source)
            name = name.replace('.json', f'{output_suffix}.json') if '.json' in name else name + output_suffix
            _write_trace_text(os.path.join(folder, name), text)

    # ---- steps ----

    def get_profiler_steps(self):
        table = self._ask('profiler-steps').table
        return sorted(set(table[_step_column(table)]))

    def get_potential_stragglers(self, profiler_steps=None, num_candidates=2, visualize=False,
                                 straggler_identification_impl=find_stragglers_with_late_start_comm_kernels):
        """A way of your own gets (rows of the steps with rank, symbol table, num_candidates, visualize) and returns a series by rank."""
        if straggler_identification_impl is find_stragglers_with_late_start_comm_kernels and not visualize:
            answer, exact = self._ask_or_exact('potential-stragglers', {'is_candidate': 'is_candidate'}, profiler_steps=profiler_steps or None,
                                               num_candidates=num_candidates)
            return next(iter(answer.values()))['rank'] if exact is None else exact['rank'][exact['is_candidate'] == 1].tolist()
        known = self.get_profiler_steps()
        steps = known if profiler_steps is None else [i for i in profiler_steps if i in known]
        if not steps:
            raise ValueError(f'the trace has none of the steps {profiler_steps}; it has {known}')
        import pandas
        rows = pandas.concat([frame.assign(rank=rank) for rank, frame in self.t.get_all_traces().items()])
        late = straggler_identification_impl(rows[rows['iteration'].isin(steps)], self.t.symbol_table, max(1, num_candidates), visualize)
        return late.sort_values(ascending=False)[:num_candidates].index.tolist()

    # ---- counters of CUPTI, the critical path ----

    def get_cupti_counter_data_with_operators(self, ranks=None):
        """One frame a rank that has counters: each kernel with its counters and the operators around its launch."""
        from .common.trace_call_graph import CallGraph
        table = self._ask('cupti-counter-data-with-operators').table
        if not len(table):
            return []
        found = table.to_pandas(categories=False)
        found['op_stack'] = found['op_stack'].map(ast.literal_eval)
        made = []
        for rank, one in _by_rank(found, self._ranks(ranks)).items():
            if not len(one):
                continue
            CallGraph(self.t, ranks=[rank])  # HTA's frame has its columns
            frame = self.t.get_trace(rank).loc[one['index']].reset_index(drop=True)
            for column in ('name', 'cat', 'index_runtime', 'op_stack', 'top_level_op', 'bottom_level_op'):
                frame[column] = one[column].tolist()
            frame['index_runtime'] = _smallest(frame['index_runtime'])
            made.append(frame)
        return made

    def critical_path_analysis(self, rank, annotation, instance_id, data_load_events=None):
        """(graph, whether it is sound) of the annotation's instance; None where nothing is named so."""
        from .analyzers.critical_path_analysis import CriticalPathAnalysis
        return CriticalPathAnalysis.critical_path_analysis(self, rank, annotation, instance_id, data_load_events)

    def overlay_critical_path_analysis(self, rank, critical_path_graph, output_dir, only_show_critical_events=True, show_all_edges=False):
        """Writes the rank's trace with the path marked; returns the file's path."""
        from .analyzers.critical_path_analysis import CriticalPathAnalysis
        return CriticalPathAnalysis.overlay_critical_path_analysis(self, rank, critical_path_graph, output_dir, only_show_critical_events,
                                                                   show_all_edges)

    # ---- memory, which HTA asks since its release 0.6.1 ----

    def get_memory_timeline(self, rank=None, visualize=True):
        """One row an allocation or release, with the totals after it; the first rank, unless another is given."""
        return MemoryAnalysis(self._frames).get_memory_timeline(rank=rank, visualize=visualize)

    def get_memory_timeline_per_category(self, rank=None, visualize=True, classification_func=classify_torchtitan_calls):
        """({device: bytes by category over time}, {device: events}); the function names an event's category from its stack_name."""
        return MemoryAnalysis(self._frames).get_classified_memory_timelines(rank=rank, visualize=visualize, classification_func=classification_func)


def _step_column(table):
    names = [c.name for c in table.columns]
    return next(n for n in ('iteration', 'step', 'profiler_step') if n in names)
