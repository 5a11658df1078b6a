"""For torch.profiler: a handler that explains each capture while the job goes on, and tables as torch prints them.

    import torch, stageline.torch
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3),
                                on_trace_ready=stageline.torch.handler('traces')) as profiler:
        ...

Nothing here imports torch: what the handler gets is the profiler itself.
"""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import Trace

_ANALYSE = ('import sys, stageline\n'
            'trace = stageline.open(sys.argv[1], progress=False)\n'
            'if sys.argv[2]: trace.report(sys.argv[2])\n'
            'sys.stderr.write(f"stageline: {sys.argv[1]}\\n{trace.findings}")\n')


def _rank() -> int:
    for name in ('STAGELINE_RANK', 'RANK', 'OMPI_COMM_WORLD_RANK', 'SLURM_PROCID', 'PMI_RANK'):
        if os.environ.get(name, '').isdigit():
            return int(os.environ[name])
    return 0


class Handler:
    """The result of `handler()`; .paths are the written traces, .seconds is the time that the training process spent on
    the last one."""

    def __init__(self, out: str | os.PathLike[str] | None, analyze: bool, report: str | os.PathLike[str] | None, keep_trace: bool,
                 ranks: str | Collection[int]) -> None:
        self.folder: pathlib.Path = pathlib.Path(out or 'stageline-traces')
        self.analyze: bool = analyze
        self.report: str | os.PathLike[str] | None = report
        self.keep_trace: bool = keep_trace
        self.ranks: str | Collection[int] = ranks
        self.paths: list[pathlib.Path] = []
        self.seconds: float = 0.0
        self._running: list[subprocess.Popen[bytes]] = []

    def __call__(self, profiler: Any) -> None:
        begin = time.monotonic()
        try:
            self._take(profiler)
        except Exception as error:  # training goes on, whatever is wrong with a capture
            warnings.warn(f'stageline.torch: this capture was not analysed: {type(error).__name__}: {error}', stacklevel=2)
        self.seconds = time.monotonic() - begin

    def _take(self, profiler: Any) -> None:
        rank = _rank()
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f'rank-{rank}.{len(self.paths)}.pt.trace.json.gz'
        profiler.export_chrome_trace(str(path))
        self.paths.append(path)
        if not self.analyze or not (self.ranks == 'all' or self.ranks == 'own' and rank == 0 or not isinstance(self.ranks, str) and rank in self.ranks):
            return
        page = str(self.report).format(rank=rank, index=len(self.paths) - 1) if self.report else ''
        # Runs in another process: the job's own threads, memory and Python are left alone. PYTHONPATH leads it to this
        # package.
        environment = dict(os.environ)
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        environment['PYTHONPATH'] = os.pathsep.join(filter(None, [package, environment.get('PYTHONPATH')]))
        code = _ANALYSE if self.keep_trace else _ANALYSE + 'import os; os.unlink(sys.argv[1])\n'
        self._running.append(subprocess.Popen([sys.executable, '-c', code, str(path), page], env=environment, stdin=subprocess.DEVNULL))

    def wait(self, timeout: float | None = None) -> int:
        """Waits until the processes have ended; returns the number that failed."""
        return sum(process.wait(timeout) != 0 for process in self._running)


def handler(out: str | os.PathLike[str] | None = None, *, analyze: bool = True, report: str | os.PathLike[str] | None = None,
            keep_trace: bool = True, ranks: str | Collection[int] = 'own') -> Handler:
    """For `on_trace_ready=`: writes the capture to the folder `out` and says headline and findings on stderr, in another process.

    report: a path for the viewer's page, {rank} and {index} are filled in. ranks: 'own' (rank 0 alone), 'all', or numbers.
    Never raises into training: what goes wrong is one warning.
    """
    return Handler(out, analyze, report, keep_trace, ranks)


_TIMES = {'self_cpu_time_total': 'self_host_ns', 'cpu_time_total': 'host_ns', 'cpu_time': 'host_mean_ns',
          'self_device_time_total': 'self_device_ns', 'device_time_total': 'device_ns', 'device_time': 'device_mean_ns'}
_OTHERS = {'key': 'name', 'count': 'count', 'cpu_memory_usage': 'host_bytes', 'self_cpu_memory_usage': 'self_host_bytes',
           'device_memory_usage': 'device_bytes', 'self_device_memory_usage': 'self_device_bytes', 'flops': 'flops',
           'input_shapes': 'input_shapes', 'stack': 'stack', 'overload_name': 'overload'}


_SUMS = ('count', 'self_host_ns', 'host_ns', 'self_device_ns', 'device_ns', 'host_bytes', 'self_host_bytes', 'device_bytes', 'self_device_bytes', 'flops')


def _time_text(us: float) -> str:
    """A time as torch writes it."""
    return f'{us / 1e6:.3f}s' if us >= 1e6 else f'{us / 1e3:.3f}ms' if us >= 1e3 else f'{us:.3f}us'


class FunctionEventAvg:
    """One row of key_averages(), with torch's names and units: times in µs, and as texts where the name ends in _str."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):
            raise AttributeError(name)
        if name.endswith('_str') and name[:-4] in _TIMES:
            return _time_text(getattr(self, name[:-4]))
        if name in _TIMES:
            value = self._row[_TIMES[name]]
            return 0.0 if value is None else value / 1000
        if name == 'stack':
            return self._row['stack'].split('; ') if self._row.get('stack') else []
        if name in _OTHERS:
            value = self._row.get(_OTHERS[name])
            return (0 if name.endswith('usage') or name == 'flops' else '') if value is None else value
        raise AttributeError(name)

    def __dir__(self) -> list[str]:
        return [*_TIMES, *(f'{name}_str' for name in _TIMES), *_OTHERS]

    def __repr__(self) -> str:
        return f'<FunctionEventAvg key={self.key} count={self.count} self_cpu_time={self.self_cpu_time_total} self_device_time={self.self_device_time_total}>'


class EventList(list[FunctionEventAvg]):
    """Computes the result of the profiler's key_averages() from the trace alone."""

    def __init__(self, trace: Trace, rank: int, options: dict[str, Any]) -> None:
        self._trace, self._rank, self._options = trace, rank, options
        # Rows as torch has them: Python frames are callers, with or without rows of their own; stacks only where torch recorded some.
        frames = options['include_python_functions']
        asked: dict[str, Any] = {**options, 'include_python_functions': True}
        rows = trace.analyze('operators', table='operators', stacks='torch', **asked).table.to_dicts()
        super().__init__(FunctionEventAvg(r) for r in rows if r['rank'] == rank and (frames or r['kind'] != 'frame'))

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
              max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80, header: str | None = None,
              top_level_events_only: bool = False, time_unit: str | None = None) -> str:
        """The table, letter by letter as torch prints it."""
        widths = {'max_src_column_width': max_src_column_width, 'max_name_column_width': max_name_column_width,
                  'max_shapes_column_width': max_shapes_column_width}
        options = dict(self._options, sort_by=sort_by, row_limit=row_limit, header=header, top_level_events_only=top_level_events_only,
                       time_unit=time_unit, **{name: 'none' if width is None else width for name, width in widths.items()})
        ranks = self._trace.ranks
        one = self._trace if len(ranks) == 1 else _one_rank(self._trace, self._rank)
        return one.analyze('operators', format='torch', **options).foreign

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of the host in all rows, in µs."""
        return float(sum(row.self_cpu_time_total for row in self))

    def total_average(self) -> FunctionEventAvg:
        """One row, Total: the sums of all, and means over all calls."""
        sums = {name: sum(row._row.get(name) or 0 for row in self) for name in _SUMS}
        calls = sums['count'] or 1
        return FunctionEventAvg({'name': 'Total', **sums, 'host_mean_ns': sums['host_ns'] / calls, 'device_mean_ns': sums['device_ns'] / calls})

    def export_stacks(self, path: str | os.PathLike[str], metric: str = 'self_cpu_time_total') -> None:
        """Writes the rows' stacks for flame graphs, one a line with the metric in µs; needs group_by_stack_n."""
        if metric not in ('self_cpu_time_total', 'self_device_time_total'):
            raise ValueError(f'metric is self_cpu_time_total or self_device_time_total, not {metric!r}')
        marks = str.maketrans(' ;\t\n', '____')
        lines = [';'.join(frame.translate(marks) for frame in reversed(row.stack)) + f' {int(getattr(row, metric))}\n'
                 for row in self if row.stack and int(getattr(row, metric)) > 0]
        from . import _engine  # type: ignore[attr-defined]  # it has no stub: nobody else calls it
        _engine.write_file(path, ''.join(lines).encode('utf-8', 'surrogateescape'))

    def __repr__(self) -> str:
        return f'<EventList of rank {self._rank}: {len(self)} rows>'


def _one_rank(trace: Trace, rank: int) -> Trace:
    """The same trace opened for one rank, for answers that are of one."""
    kept: dict[int, Trace] = trace.__dict__.setdefault('_single', {})
    if rank not in kept:
        import stageline
        kept[rank] = stageline.open(trace.paths, ranks=[rank], progress=False)
    return kept[rank]


def key_averages(trace: Trace, rank: int | None = None, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                 group_by_overload_name: bool = False, include_python_functions: bool = False) -> EventList:
    """As `prof.key_averages(…)` since torch 2.14, of a trace of one rank or of `rank`. Up to torch 2.13 Python frames always were rows:
    include_python_functions=True gives those tables."""
    if rank is None:
        rank = trace.ranks[0]
    return EventList(trace, rank, {'group_by_input_shape': group_by_input_shape or None, 'group_by_stack_n': group_by_stack_n or None,
                                   'group_by_overload_name': group_by_overload_name or None,
                                   'include_python_functions': include_python_functions})
