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
