"""Call graphs, sequences, operators and the critical path."""
from support import check, compare, expect


@check(r'call_graph_(call_stack|trace_call_graph)_rank(\d+)')
def call_graph(case, name, record, match):
    table = match[1].replace('_', '-')
    options = ['--ranks', match[2], '--builder', table, '--table', table]
    return expect(case, record, name, 'call-graph', options, ['index'])


@check(r'aten_op_kernels_and_delay_rank(\d+)')
def aten(case, name, record, match):
    options = ['--ranks', match[1]]
    return expect(case, record, name, 'aten-op-kernels-and-delay', options, ['aten_op_name', 'kernel_sequence'], tolerances={
        'avg_aten_op_launch_delay': 1.1e-6, 'avg_runtime_delay': 1.1e-6})


@check(r'frequent_sequences_rank(\d+)__.*')
def sequences(case, name, record, match):
    params = record['params']
    options = ['--rank', match[1], '--operator-name', params['operator_name'], '--min-pattern-len', params['min_pattern_len'],
               '--top-k', params['top_k']]
    return expect(case, record, name, 'frequent-cuda-kernel-sequences', options, ['pattern'])
