"""The classes of HTA's analyzers ask a Trace; here its files are asked, by the engine."""


def analysis_of(t):
    """The TraceAnalysis of a Trace's files; made once a trace."""
    if '_analysis' not in t.__dict__:
        from ..trace_analysis import TraceAnalysis
        t._analysis = TraceAnalysis._of_trace(t)
    return t._analysis
