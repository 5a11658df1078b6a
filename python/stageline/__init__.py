"""Where the time of a distributed training run goes.

    import stageline
    trace = stageline.open('logs/')
    print(trace.findings)
    trace.analyze('pipeline-summary').ranks.to_pandas()

`stageline.record` writes when each job of a pipeline ran, on its device's own clock; `stageline.hta` answers as Holistic Trace
Analysis does; `stageline.torch` takes torch.profiler's traces. Nothing is needed but Python: pandas, polars and pyarrow are
asked for when a table is turned into theirs.
"""
# Loaded when first asked for: a training program that imports `stageline.record` pays for nothing else.
_WHERE = {name: '_trace' for name in ('open', 'diff', 'from_arrow', 'analyses', 'versions', 'set_threads', 'Trace', 'Answer', 'Info',
                                      'Figures', 'Figure', 'Findings', 'Finding', 'Diagnostic', 'WhatIf', 'Diff', 'TraceWarning')}
_WHERE.update({'schedule': '_plans', 'simulate': '_plans', 'plan': '_plans', 'Schedule': '_plans', 'Plans': '_plans', 'CallGraph': '_calls', 'Slice': '_calls'})
_WHERE.update({'Table': '_table', 'Column': '_table', 'f': 'filters', 'Filter': 'filters'})
_WHERE.update({name: '_engine' for name in ('Error', 'UsageError', 'NotFound', 'IoError', 'UnknownFormat', 'AmbiguousFormat', 'BadInput',
                                            'LimitExceeded', 'Unavailable', 'InternalError')})
__all__ = sorted(_WHERE)
__version__ = '0.1.0'


def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(f"module 'stageline' has no attribute {name!r}")
    from importlib import import_module
    try:
        value = getattr(import_module(f'{__name__}.{_WHERE[name]}'), name)
    except ImportError:
        from importlib.util import find_spec
        if find_spec(f'{__name__}._engine'):
            raise
        raise ImportError('this installation of stageline has the recorder alone, without the engine (stageline._engine); '
                          'install a wheel with it, or build one where Python has its headers (./dev wheel)') from None
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(__all__))


def load_ipython_extension(shell):
    """%load_ext stageline: the cell magic %%stageline."""
    from .magic import register
    register(shell)
