"""Holistic Trace Analysis' questions with its own frames, answered by the engine with HTA's numbers, its faults included
(docs/analyses/hta-faults.md names them).

    from stageline.hta import TraceAnalysis
    analysis = TraceAnalysis(trace_dir='traces/')
    analysis.get_temporal_breakdown(visualize=False)

Needs pandas; networkx at the first critical path, plotly at the first figure. The modules stand as HTA's do (trace_diff,
common.trace_filter, common.trace_call_graph …), and `import stageline.hta.redirect` lets `import hta` find them. Reading is the
engine's; frames of whole traces are made when somebody touches `.t`. docs/howto/python.md says what is here and what is not.
"""
__all__ = ['TraceAnalysis', 'TimeSeriesTypes', 'accelerate']


def __getattr__(name):
    import importlib
    if name in ('TraceAnalysis', 'TimeSeriesTypes'):
        value = getattr(importlib.import_module(f'{__name__}.trace_analysis'), name)
        globals()[name] = value
        return value
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def accelerate():
    """Puts the engine before the installed HTA, whose code all stays: stageline/hta/overlay.py says where."""
    from .overlay import accelerate as put
    put()
