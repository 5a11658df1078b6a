"""Kernels, their launches and their sequences."""
from . import _figures
from ._of import analysis_of


class CudaKernelAnalysis:
    """HTA's entry by a Trace; TraceAnalysis has the same questions."""

    def __init__(self):
        pass

    @classmethod
    def get_frequent_cuda_kernel_sequences(cls, t, operator_name, output_dir, min_pattern_len=3, rank=0, top_k=5, visualize=True,
                                           compress_other_kernels=True):
        return analysis_of(t).get_frequent_cuda_kernel_sequences(operator_name, output_dir, min_pattern_len, rank, top_k, visualize,
                                                                 compress_other_kernels)

    @classmethod
    def visualize_aten_op_kernels_and_overhead(cls, rank, df):
        _figures.aten_op_kernels(rank, df)

    @classmethod
    def visualize_cuda_launch_kernel_info(cls, rank, df, runtime_cutoff, launch_delay_cutoff):
        _figures.launch_stats(rank, df, runtime_cutoff, launch_delay_cutoff)

    @classmethod
    def get_aten_op_kernels_and_delay(cls, trace, ranks=None, sort_by=None):
        return analysis_of(trace).get_aten_op_kernels_and_delay(ranks, sort_by)

    @classmethod
    def cuda_kernel_launch_stats(cls, t, ranks=None, runtime_cutoff=50, launch_delay_cutoff=100, include_memory_events=True, visualize=True):
        return analysis_of(t).get_cuda_kernel_launch_stats(ranks, runtime_cutoff, launch_delay_cutoff, include_memory_events, visualize)
