"""Communication hidden under computation."""
from ._of import analysis_of


class CommunicationAnalysis:
    """HTA's entry by a Trace; TraceAnalysis has the same question."""

    def __init__(self):
        pass

    @classmethod
    def get_comm_comp_overlap(cls, t, visualize=True):
        return analysis_of(t).get_comm_comp_overlap(visualize)
