"""The number of floating-point operations per executed instruction of a SASS counter."""

CUDA_SASS_INSTRUCTION_COUNTER_FLOPS = {
    f'smsp__sass_thread_inst_executed_op_{kind}{op}_pred_on.sum': weight
    for kind in 'hfd' for op, weight in (('fma', 2), ('mul', 1), ('add', 1))}
