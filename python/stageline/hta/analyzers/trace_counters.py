"""Lengths of queues and bandwidths of copies over time."""
from ._of import analysis_of


class TraceCounters:
    """HTA's entry by a Trace; TraceAnalysis has the same questions."""

    def __init__(self):
        pass

    @classmethod
    def get_queue_length_time_series(cls, t, ranks=None):
        return analysis_of(t).get_queue_length_time_series(ranks)

    @classmethod
    def get_queue_length_summary_from_time_series(cls, queue_length_dict):
        """The statistics of series that get_queue_length_time_series gave."""
        import pandas
        parts = [frame.assign(rank=rank) for rank, frame in queue_length_dict.items()]
        return pandas.concat(parts)[['rank', 'stream', 'queue_length']].groupby(['rank', 'stream']).describe() if parts else None

    @classmethod
    def get_queue_length_summary(cls, t, ranks=None):
        return analysis_of(t).get_queue_length_summary(ranks)

    @classmethod
    def get_time_spent_blocked_on_full_queue(cls, t, queue_length_dict, max_queue_length):
        return analysis_of(t).get_time_spent_blocked_on_full_queue(queue_length_dict, max_queue_length)

    @classmethod
    def get_memory_bw_time_series(cls, t, ranks=None):
        return analysis_of(t).get_memory_bw_time_series(ranks)

    @classmethod
    def get_memory_bw_summary(cls, t, ranks=None):
        return analysis_of(t).get_memory_bw_summary(ranks)
