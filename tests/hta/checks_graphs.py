"""Call graphs, sequences, operators and the critical path."""
import re

from support import check, compare, expect, normal


@check(r'call_graph_(call_stack|trace_call_graph)_rank(\d+)')
def call_graph(case, name, record, match):
    table = match[1].replace('_', '-')
    options = ['--ranks', match[2], '--builder', table, '--table', table]
    problems = expect(case, record, name, 'call-graph', options, ['index'])
    # Operators of no duration at one microsecond: which of them nest in which is left to HTA's two unstable sorts.
    rows = {problem.split(':')[0] for problem in problems if re.search(r': (parent|depth|height): ', problem)}
    few = match[1] == 'trace_call_graph' and len(rows) * 1000 <= record.get('rows', 0)
    return [problem for problem in problems if not (few and problem.split(':')[0] in rows)]


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


PATH_KEYS = {'nodes': ['node'], 'edges': ['begin', 'end'], 'summary': ['bound_by']}


def path_options(record):
    params = record['params']
    instance = params['instance_id']
    text = '0' if instance is None else ':'.join(map(str, instance)) if isinstance(instance, list) else str(instance)
    options = ['--rank', params['rank'], '--annotation', params['annotation'], '--instance-id', text]
    return options + (['--add-zero-weight-launch-edges', 'true'] if params['add_zero_weight_launch_edges'] else [])


def path_tables(case, record):
    """All five tables of one call."""
    return case.run('critical-path-analysis', *path_options(record))


def rows_by_name(table):
    return [dict(zip(table[0], row)) for row in table[1:]]


@check(r'critical_path_\d+(?:_zerolaunch)?')
def path_counts(case, name, record, match):
    code, tables, words = path_tables(case, record)
    if code != 0:
        return [f'exit {code}: {words.strip()}']
    if record['status'] == 'none':
        rows = sum(len(t) - 1 for t in tables)
        return [] if rows == 0 else [f'HTA has no answer; ours has {rows} rows']
    edges, breakdown, want = rows_by_name(tables[3]), rows_by_name(tables[1]), record['value']
    path = len(tables[4]) - 1
    mine = {'success': path > 0, 'nodes': len(tables[2]) - 1, 'edges': len(edges), 'path_nodes': path,
            'path_weight': sum(float(e['weight']) for e in edges if e['critical'] == '1')}
    return [f'{k}: HTA {want[k]}, ours {v}' for k, v in mine.items() if want[k] != v and not (k == 'edges' and abs(v - want[k]) <= 2)]


@check(r'critical_path_\d+(?:_zerolaunch)?_(nodes|edges|path|summary|breakdown)')
def path_table(case, name, record, match):
    code, tables, words = path_tables(case, record)
    if code != 0:
        return [f'exit {code}: {words.strip()}']
    ours = tables[['summary', 'breakdown', 'nodes', 'edges', 'path'].index(match[1])]
    if match[1] == 'path':
        mine = [int(row['node']) for row in rows_by_name(ours)]
        return [] if mine == record['value'] else [f'HTA {len(record["value"])} nodes, ours {len(mine)}']
    golden = case.golden(name)
    if match[1] == 'breakdown':
        # HTA's rows carry no order of their own: compared as sets, by all columns but the unnamed one.
        columns = [c for c in golden[0] if c]
        at = {c: i for i, c in enumerate(ours[0])}
        key = lambda row: tuple(normal(v) for v in row)
        theirs = sorted(key(row[1:]) for row in golden[1:])
        mine = sorted(key([row[at[c]] for c in columns]) for row in ours[1:])
        bad = [(a, b) for a, b in zip(theirs, mine) if a != b]
        return [f'{len(theirs)} rows in HTA, {len(mine)} in ours'] * (len(theirs) != len(mine)) + [f'HTA {a}, ours {b}' for a, b in bad[:2]]
    problems = compare(golden, ours, PATH_KEYS[match[1]])
    if match[1] == 'edges' and problems:
        problems = [p for p in problems if not tied(case, record, tables, p)]
    return problems


def tied(case, record, tables, problem):
    """The order of a launch and a kernel's start at one timestamp is numpy's: such a kernel may have the other edge."""
    begin, end = re.findall(r"'([\d.e+]+)'", problem)[:2]
    nodes = rows_by_name(tables[2])
    times = [float(n['ts']) for n in nodes]
    node = nodes[int(float(end))]
    sharing = {n['is_start'] for n, t in zip(nodes, times) if t == float(node['ts']) and n['event'] != node['event']}
    starts = [n for n, t in zip(nodes, times) if t in (float(node['ts']), float(nodes[int(float(begin))]['ts']))]
    return node['is_start'] == 'True' and (bool(sharing) or len(starts) > 2)
