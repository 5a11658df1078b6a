"""Holistic Trace Analysis' questions with its own frames, answered by the engine with HTA's numbers, its bugs included
(docs/analyses/hta-faults.md lists them).

    from stageline.hta import TraceAnalysis
    analysis = TraceAnalysis(trace_dir='traces/')
    analysis.get_temporal_breakdown(visualize=False)

Needs pandas; networkx at the first critical path, plotly at the first figure. The modules are arranged as HTA's are
(trace_diff, common.trace_filter, common.trace_call_graph …), and `import stageline.hta.redirect` lets `import hta` find
them. The engine reads files; frames of whole traces are made at the first use of `.t`. docs/reference/python.md lists what
exists here and what does not.
"""
__all__ = ['TraceAnalysis', 'TimeSeriesTypes', 'accelerate']


def __getattr__(name):
    import importlib
    if name in ('TraceAnalysis', 'TimeSeriesTypes'):
        from .._table import library
        library('pandas', 'hta')
        value = getattr(importlib.import_module(f'{__name__}.trace_analysis'), name)
        globals()[name] = value
        return value
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def accelerate():
    """Puts the engine before the installed HTA, whose code all stays: stageline/hta/overlay.py says where."""
    from .overlay import accelerate as put
    put()
