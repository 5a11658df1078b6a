"""The installed Holistic Trace Analysis, answered by the engine where answers are equal: `stageline.hta.accelerate()`.

All of HTA's code stays. Reading into frames, where most of its time goes, is put off until the first use of
`analysis.t`; until then the engine answers the questions below. HTA's own code answers whatever draws, whatever is
asked after `.t` was touched (it may have been changed), whatever the engine refuses, and traces whose ranks the two
read differently.
"""
import functools
import inspect

# Frames only: what draws or writes is HTA's own.
_ANSWERED = ('get_temporal_breakdown', 'get_gpu_kernel_breakdown', 'get_idle_time_breakdown', 'get_comm_comp_overlap',
             'get_gpu_user_annotation_breakdown', 'get_cuda_kernel_launch_stats', 'get_queue_length_summary', 'get_memory_bw_summary',
             'get_profiler_steps')  # time series are HTA's own, too: their index is what is left of its sorting

_kept = {}


def accelerate():
    """Puts the engine before the installed HTA; twice is once. Needs hta and pandas. undo() takes it back."""
    from hta.trace_analysis import TraceAnalysis
    if _kept:
        return
    _kept.update({name: getattr(TraceAnalysis, name) for name in ('__init__', *_ANSWERED)})
    TraceAnalysis.__init__ = _begin
    TraceAnalysis.t = property(_frames, _set_frames)
    for name in _ANSWERED:
        setattr(TraceAnalysis, name, _answered(name, _kept[name]))


def undo():
    """HTA as it was installed."""
    from hta.trace_analysis import TraceAnalysis
    for name, own in _kept.items():
        setattr(TraceAnalysis, name, own)
    if _kept:
        del TraceAnalysis.t
    _kept.clear()


def _begin(self, trace_files=None, trace_dir=None, include_last_profiler_step=False):
    import hta.trace_analysis as module
    # Looks for the files and their ranks, and says at once what is wrong with them.
    trace = module.Trace(trace_files, module.DEFAULT_TRACE_DIR if trace_dir is None else trace_dir)
    self.__dict__.update(_unread=trace, _last=include_last_profiler_step, _ours=None)


def _frames(self):
    unread = self.__dict__.pop('_unread', None)
    if unread is not None:
        unread.load_traces(self._last)
        assert unread.is_parsed is True
        self.__dict__['t'] = unread
    if 't' not in self.__dict__:
        raise AttributeError('t')
    return self.__dict__['t']  # also of those that HTA made before


def _set_frames(self, trace):
    self.__dict__.pop('_unread', None)
    self.__dict__['t'] = trace


def _engine_of(self):
    """Our TraceAnalysis of the same files; None where it reads other ranks."""
    if self._ours is None:
        from stageline.hta import TraceAnalysis
        files = dict(self._unread.trace_files)
        ours = TraceAnalysis(trace_files=files, trace_dir=self._unread.trace_path, include_last_profiler_step=self._last)
        self.__dict__['_ours'] = ours if sorted(files) == ours._trace.ranks else False
    return self._ours or None


def _is_empty(answer):
    """HTA's frames without rows differ from question to question in columns and index; its own code makes them."""
    if isinstance(answer, dict):
        return not answer or any(map(_is_empty, answer.values()))
    if isinstance(answer, tuple):
        return _is_empty(answer[0])
    return answer is None or len(answer) == 0


def _answered(name, own):
    signature = inspect.signature(own)

    @functools.wraps(own)
    def method(self, *args, **keywords):
        if '_unread' not in self.__dict__:
            return own(self, *args, **keywords)
        import stageline
        given = signature.bind(self, *args, **keywords)
        given.apply_defaults()
        if given.arguments.get('visualize'):
            return own(self, *args, **keywords)
        asked = {k: v for k, v in given.arguments.items() if k != 'self'}
        try:
            ours = _engine_of(self)
            if ours is None:
                return own(self, *args, **keywords)
            answer = getattr(ours, name)(**asked)
            return own(self, *args, **keywords) if _is_empty(answer) else answer
        except (stageline.Error, ValueError, TypeError):  # HTA says in its own words what is wrong
            return own(self, *args, **keywords)
    return method
