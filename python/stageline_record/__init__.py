"""Record the jobs of a pipeline from a running program.

    import stageline_record as record               # or, where the program is installed too: from stageline import record

    record.init()                                   # once a process; STAGELINE_DIR says where to
    for number, batch in enumerate(batches):
        record.step(number)
        with record.job('F', micro_batch=3, chunk=0, stream=torch.cuda.current_stream()):
            ...                                     # launch the forward of micro-batch 3

Programs of a framework that stageline.hooks knows need none of this: `stageline record -- COMMAND`.

Every call does nothing before init(), after shutdown(), in forked children and without the library. Ranges of a stream
have the device's times, others the calling thread's. Calls of push() and pop() pair up per thread; coroutines, which
share one, use job(), range() and annotate(). The settings are listed in docs/reference/recorder.md.
"""
import functools
import inspect
import os
import re
import sys

from .profiler_range import job_schedule_profiler_range  # noqa: F401

try:
    if sys.version_info < (3, 9):
        raise ImportError('stageline_record needs Python 3.9')
    from . import _record as _core
except ImportError:  # no wheel for this interpreter
    from . import _nothing as _core

Job, job, range = _core.Job, _core.job, _core.range  # noqa: A001
push, pop, mark, counter, step, window = _core.push, _core.pop, _core.mark, _core.counter, _core.step, _core.window
intern, lane_close, name_thread = _core.intern, _core.lane_close, _core.name_thread
path, stats, shutdown = _core.path, _core.stats, _core.shutdown

__all__ = ['init', 'shutdown', 'flush', 'recording', 'why_not', 'path', 'stats', 'job', 'range', 'push', 'pop', 'mark', 'counter', 'step',
           'window', 'job_schedule_profiler_range', 'annotate', 'lane', 'lane_close', 'name_thread', 'intern', 'Job', 'record_function']

_HOST, _CUDA, _HIP, _ACL = 0, 1, 2, 3  # enum slr_device
_WHY = {2: 'STAGELINE_OFF=1 is set', 3: 'its folder cannot be made or written', 4: 'there is no memory for it', 5: 'no thread can be started'}
_why_not = 'init() was not called'
_lanes = {}  # (device kind, handle) → lane


def _library():
    """Where libstageline_record may lie, the best place first."""
    here = os.path.dirname(os.path.abspath(__file__))
    return os.environ.get('STAGELINE_RECORD_LIBRARY') or os.path.join(here, 'lib', 'libstageline_record.so.1')


_not_loaded = _core.load(_library())  # None: done. The interpreter's own start costs a hundred times as much


def _of_torch():
    """(rank, world) as torch.distributed says them, None where it does not."""
    distributed = sys.modules.get('torch.distributed')
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except Exception:  # half imported, or another torch
        pass
    return None


def init(dir=None, *, job=None, rank=None, world=None, stage=None, dp_rank=None, pp=0, tp=0, dp=0, vp=0,  # noqa: A002
         max_overhead=0.0, quiet=False):
    """Opens this process's file and starts recording; True when it records, also when it did already.

    dir: $STAGELINE_DIR, else "stageline-rec". rank, world: torch.distributed's where it is set up, else the launcher's variables.
    stage, dp_rank, pp, tp, dp, vp: this rank's place, where you know it. False: why_not() says why, as does one line on stderr
    unless `quiet` or STAGELINE_OFF=1."""
    global _why_not
    if recording():
        return True
    known = _of_torch() if rank is None else None
    if known:
        rank, world = known[0], world or known[1]
    folder = None if dir is None else os.fspath(dir)
    if _not_loaded:
        _why_not, result = _not_loaded, 3
    else:
        result = _core.init(folder, job, -1 if rank is None else rank, world or 0, -1 if stage is None else stage,
                            -1 if dp_rank is None else dp_rank, pp or 0, tp or 0, dp or 0, vp or 0, max_overhead)
        _why_not = _WHY.get(result, '')
    if result in (0, 1):
        _why_not = ''
        steps = os.environ.get('STAGELINE_STEPS')
        form = re.fullmatch(r'(\d+):(\d+)', steps or '')
        if steps and not (form and int(form[1]) <= int(form[2])):
            print(f'stageline: all steps are recorded: STAGELINE_STEPS is "{steps}", not as 10:15', file=sys.stderr)
        return True
    if result == 3 and not _not_loaded:
        _why_not = f'{folder or os.environ.get("STAGELINE_DIR") or "stageline-rec"}: {_why_not}'
    if result != 2 and not quiet:
        print(f'stageline: not recording: {_why_not}', file=sys.stderr)
    return False


def recording():
    """Returns true if records are kept now."""
    return _core.path() != ''


def why_not():
    """Returns why nothing is recorded; "" when it is."""
    return '' if recording() else _why_not


def flush(timeout_ms=1000):
    """Brings what ended before into the file; True when it is there."""
    return _core.flush(int(timeout_ms)) == 0


def _handle_of(stream):
    """(device kind, handle) of a stream of torch, torch_npu, Paddle or CuPy."""
    for attribute in ('cuda_stream', 'npu_stream', 'raw_stream', 'ptr'):
        handle = getattr(stream, attribute, None)
        if handle is not None and not callable(handle):
            break
    else:
        inner = getattr(stream, 'stream_base', None)  # paddle.device.Stream
        if inner is None:
            raise TypeError(f'no stream of torch, torch_npu, Paddle or CuPy: {stream!r}')
        return _handle_of(inner)
    if attribute == 'npu_stream':
        return _ACL, int(handle)
    torch = sys.modules.get('torch')
    return (_HIP if getattr(getattr(torch, 'version', None), 'hip', None) else _CUDA), int(handle)


def lane(stream=None, name=None):
    """The lane of a device's stream (with the device's times), or with a name alone one of your own (with the host's).

    Costs a look-up: keep what it returns. The same lane for the same stream."""
    if stream is None:
        return _core.lane_host(name or 'host')
    if isinstance(stream, int):
        return stream
    kind, handle = _handle_of(stream)
    found = _lanes.get((kind, handle), 0)
    if not found or name is not None:
        # The library knows the device too: two devices may have streams of one handle, the default one.
        found = _core.lane_stream(kind, handle, name)
        if handle != 0:
            _lanes[kind, handle] = found
    return found


_core.set_lane_of(lane)


def annotate(name=None, **fields):
    """A decorator: every call of the function is a range. annotate("load"), annotate(kind="F", chunk=0) or plain annotate.

    Functions, methods, coroutines, generators (from the first value that is asked for to the end)."""
    if callable(name) and not fields:
        return annotate(name.__qualname__)(name)

    def of(function):
        said = name or function.__qualname__
        where = fields.get('lane', fields.get('stream'))
        make = (lambda: job(name=name, **fields)) if 'kind' in fields else (lambda: range(said, where))
        make()  # a wrong argument is said where it stands, not at the first call
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def marked(*args, **kwargs):
                with make():
                    return await function(*args, **kwargs)
        elif inspect.isasyncgenfunction(function):
            @functools.wraps(function)
            async def marked(*args, **kwargs):
                with make():
                    async for value in function(*args, **kwargs):
                        yield value
        elif inspect.isgeneratorfunction(function):
            @functools.wraps(function)
            def marked(*args, **kwargs):
                with make():
                    return (yield from function(*args, **kwargs))
        elif 'kind' in fields:
            @functools.wraps(function)
            def marked(*args, **kwargs):
                with make():
                    return function(*args, **kwargs)
        else:  # nothing of the thread runs in between: a push and a pop, which cost less
            @functools.wraps(function)
            def marked(*args, **kwargs):
                push(said, where)
                try:
                    return function(*args, **kwargs)
                finally:
                    pop(where)
        return marked
    return of


from ._drop_in import record_function  # noqa: E402
