"""Steps, and ranks that others wait for."""
from ._of import analysis_of
from .straggler import find_stragglers_with_late_start_comm_kernels


class StragglerAnalysis:
    """HTA's entry by a Trace; TraceAnalysis has the same questions."""

    def __init__(self):
        pass

    @classmethod
    def get_profiler_steps(cls, t):
        return analysis_of(t).get_profiler_steps()

    @classmethod
    def get_potential_stragglers(cls, t, profiler_steps=None, num_candidates=2, visualize=False,
                                 straggler_identification_impl=find_stragglers_with_late_start_comm_kernels):
        return analysis_of(t).get_potential_stragglers(profiler_steps, num_candidates, visualize, straggler_identification_impl)
