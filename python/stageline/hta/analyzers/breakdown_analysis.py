"""Where the time of devices goes."""
from ._of import analysis_of


class BreakdownAnalysis:
    """HTA's entry by a Trace; TraceAnalysis has the same questions."""

    def __init__(self):
        pass

    @classmethod
    def get_gpu_kernel_breakdown(cls, t, visualize=True, duration_ratio=0.8, num_kernels=10, include_memory_kernels=False, image_renderer='notebook'):
        return analysis_of(t).get_gpu_kernel_breakdown(visualize, duration_ratio, num_kernels, include_memory_kernels, image_renderer)

    @classmethod
    def get_gpu_kernels_with_user_annotations(cls, t, rank, expand_names=True, shorten_names=True):
        return analysis_of(t).get_gpu_kernels_with_user_annotations(rank, expand_names, shorten_names)

    @classmethod
    def get_gpu_user_annotation_breakdown(cls, t, use_gpu_annotation=True, visualize=True, duration_ratio=0.8, num_kernels=1000, allowlist_patterns=None,
                                          image_renderer=None):
        return analysis_of(t).get_gpu_user_annotation_breakdown(use_gpu_annotation, visualize, duration_ratio, num_kernels, allowlist_patterns,
                                                                image_renderer)

    @classmethod
    def get_temporal_breakdown(cls, t, visualize=True):
        return analysis_of(t).get_temporal_breakdown(visualize)

    @classmethod
    def get_idle_time_breakdown(cls, t, consecutive_kernel_delay, rank=0, streams=None, visualize=True, visualize_pctg=True,
                                show_idle_interval_stats=False):
        return analysis_of(t).get_idle_time_breakdown([rank], streams, visualize, visualize_pctg, show_idle_interval_stats, consecutive_kernel_delay)
