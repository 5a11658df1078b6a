"""Call graphs, sequences, operators and the critical path."""
from support import check, compare, expect


@check(r'call_graph_(call_stack|trace_call_graph)_rank(\d+)')
def call_graph(case, name, record, match):
    table = match[1].replace('_', '-')
    options = ['--ranks', match[2], '--builder', table, '--table', table]
    return expect(case, record, name, 'call-graph', options, ['index'])
