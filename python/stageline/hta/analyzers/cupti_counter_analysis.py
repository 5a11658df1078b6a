"""Counters of CUPTI with the operators around each launch."""
from ._of import analysis_of

# Floating-point operations per executed instruction.
CUDA_SASS_INSTRUCTION_COUNTER_FLOPS = {
    f'smsp__sass_thread_inst_executed_op_{kind}{op}_pred_on.sum': weight
    for kind in 'hfd' for op, weight in (('fma', 2), ('mul', 1), ('add', 1))}


class CuptiCounterAnalysis:
    """HTA's entry by a Trace; TraceAnalysis has the same question."""
    cuda_profiler_cat = 'cuda_profiler_range'

    def __init__(self):
        pass

    @classmethod
    def get_counter_data_with_operators(cls, t, ranks=None):
        return analysis_of(t).get_cupti_counter_data_with_operators(ranks)
