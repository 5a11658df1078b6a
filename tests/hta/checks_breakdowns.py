"""Breakdowns of time: by device, kind, kernel, stream, launch and annotation."""
import json

from support import check, compare, expect

KERNEL_OPTIONS = {'default': [], 'all': ['--num-kernels', 1000000], 'top3_ratio50': ['--num-kernels', 3, '--duration-ratio', 0.5],
                  'top5_ratio100': ['--num-kernels', 5, '--duration-ratio', 1.0], 'nomem': ['--include-memory-kernels', 'false']}


@check('temporal_breakdown')
def temporal(case, name, record, match):
    return expect(case, record, name, 'temporal-breakdown', [], ['rank'], tolerance=1e-6)


@check('comm_comp_overlap')
def overlap(case, name, record, match):
    return expect(case, record, name, 'comm-comp-overlap', [], ['rank'], tolerance=1e-6)


@check(r'kernel_breakdown_types_(\w+)')
def kernel_types(case, name, record, match):
    code, tables, words = case.run('gpu-kernel-breakdown', '--table', 'kernel-types', *KERNEL_OPTIONS[match[1]])
    if code != 0 or record['status'] != 'ok':
        return [f'exit {code}, HTA {record["status"]}: {words.strip()}']
    golden = case.golden(name)
    if len(golden) < 2 and 'kernel_type' not in golden[0]:
        return [] if len(tables[0]) == 1 else ['HTA has no rows']
    return compare(golden, tables[0], ['kernel_type'], tolerance=1e-6)


@check(r'kernel_breakdown_kernels_(\w+)')
def kernels(case, name, record, match):
    return expect(case, record, name, 'gpu-kernel-breakdown', ['--table', 'kernels', *KERNEL_OPTIONS[match[1]]],
                  ['name', 'kernel_type', 'rank'], tolerance=1e-8)


@check(r'idle_breakdown_(\d+)')
def idle(case, name, record, match):
    return expect(case, record, name, 'idle-time-breakdown', ['--table', 'idle-time', '--consecutive-kernel-delay', match[1]],
                  ['rank', 'stream', 'idle_category'], tolerance=1e-6, tolerances={'idle_time_ratio': 0.0101})


@check(r'idle_interval_stats_(\d+)')
def idle_statistics(case, name, record, match):
    options = ['--table', 'interval-stats', '--show-idle-interval-stats', '--consecutive-kernel-delay', match[1]]
    return expect(case, record, name, 'idle-time-breakdown', options, ['rank', 'stream', 'idle_category'], tolerance=0.0101)


def of_rank(table, rank):
    at = table[0].index('rank')
    return [table[0]] + [row for row in table[1:] if row[at] == rank]


@check(r'launch_stats_rank(\d+)(_nomem)?')
def launches(case, name, record, match):
    options = ['--include-memory-events', 'false'] if match[2] else []
    code, tables, words = case.run('cuda-kernel-launch-stats', '--table', 'launches', *options)
    if code != 0 or record['status'] != 'ok':
        return [f'exit {code}, HTA {record["status"]}: {words.strip()}']
    golden, ours = case.golden(name), of_rank(tables[0], match[1])
    columns = ['correlation', 'cpu_duration', 'gpu_duration', 'launch_delay']
    at, mine = [golden[0].index(c) for c in columns], [ours[0].index(c) for c in columns]
    if len(golden) != len(ours):
        return [f'{len(golden) - 1} rows in HTA, {len(ours) - 1} in ours']
    problems = []  # in HTA's own order
    for number, (x, y) in enumerate(zip(golden[1:], ours[1:])):
        a, b = [float(x[i]) for i in at], [float(y[i]) for i in mine]
        if any(abs(p - q) > 1e-9 * max(1, abs(p)) for p, q in zip(a, b)):
            problems.append(f'row {number}: HTA {a}, ours {b}')
    return problems


@check(r'launch_outliers_rank(\d+)(_nomem)?')
def outliers(case, name, record, match):
    options = ['--include-memory-events', 'false'] if match[2] else []
    code, tables, words = case.run('cuda-kernel-launch-stats', '--table', 'outliers', *options)
    if code != 0 or record['status'] != 'ok':
        return [f'exit {code}, HTA {record["status"]}: {words.strip()}']
    ours = of_rank(tables[0], match[1])
    mine = {c: int(v) for c, v in zip(ours[0], ours[1]) if c in record['value']}
    return [] if mine == record['value'] else [f'HTA {record["value"]}, ours {mine}']


ANNOTATION_OPTIONS = {'all': [], 'top3': ['--num-kernels', 3],
                      'top3_allow': ['--num-kernels', 3, '--allowlist-patterns', 'Optimizer,nccl']}


@check(r'user_annotation_(gpu|cpu)_(\w+)')
def annotations(case, name, record, match):
    options = [*ANNOTATION_OPTIONS[match[2]], '--use-gpu-annotation', 'true' if match[1] == 'gpu' else 'false']
    return expect(case, record, name, 'gpu-user-annotation-breakdown', options, ['name', 'rank'], tolerance=1e-8)


@check(r'kernels_with_annotations_rank(\d+)')
def annotated(case, name, record, match):
    golden = case.golden(name)
    if golden:
        # pandas writes the table's index again as its first column.
        golden = [row[1:] for row in golden]
        golden = [golden[0]] + sorted(golden[1:], key=lambda row: int(row[golden[0].index('index')]))
    record = dict(record)
    code, tables, words = case.run('gpu-kernels-with-user-annotations', '--ranks', match[1])
    if record['status'] == 'error':
        return [] if code == 2 and record['type'] in words else [f'HTA fails with {record["type"]}; ours exits {code}']
    if code != 0:
        return [f'exit {code}: {words.strip()}']
    if record['status'] == 'none':
        return [] if len(tables[0]) == 1 else [f'HTA has no answer; ours has {len(tables[0]) - 1} rows']
    return compare(golden, tables[0], ['index', 'ts'])


@check('profiler_steps')
def steps(case, name, record, match):
    code, tables, words = case.run('profiler-steps')
    ours = [int(row[0]) for row in tables[0][1:]] if code == 0 else words
    return [] if ours == record['value'] else [f'HTA {json.dumps(record["value"])}, ours {ours}']
