"""Series over time, comparisons, counters."""
import gzip
import json
import os
import pathlib
import subprocess
import tempfile

from support import BIN, DATA, check, compare, expect


@check(r'queue_length_series_rank(\d+)')
def queue_series(case, name, record, match):
    return series(case, name, record, match, 'queue-length-time-series', ['index', 'ts', 'pid', 'tid', 'stream', 'queue_length'])


@check(r'memory_bw_series_rank(\d+)')
def bandwidth_series(case, name, record, match):
    return series(case, name, record, match, 'memory-bw-time-series', ['ts', 'pid', 'name', 'memory_bw_gbps'])


def series(case, name, record, match, analysis, columns):
    """Row by row: numpy's order of equal times is ours too."""
    code, tables, words = case.run(analysis, '--ranks', match[1])
    if code != 0:
        return [f'exit {code}: {words.strip()}']
    if record['status'] == 'none':
        return [] if not tables or len(tables[0]) == 1 else [f'HTA has no answer; ours has {len(tables[0]) - 1} rows']
    def by_row(rows):
        at = [rows[0].index(c) for c in columns]
        return [['row', *columns]] + [[str(i), *[row[k] for k in at]] for i, row in enumerate(rows[1:])]
    return compare(by_row(case.golden(name)), by_row(tables[0]), ['row'])


@check(r'(queue_length|memory_bw)_summary_rank(\d+)')
def summaries(case, name, record, match):
    keys = ['rank', 'stream' if match[1] == 'queue_length' else 'name']
    analysis = match[1].replace('_', '-') + '-summary'
    if record.get('rows') == 0:  # pandas wrote headers of another shape
        code, tables, words = case.run(analysis, '--ranks', match[2])
        return [] if code == 0 and len(tables[0]) == 1 else [f'exit {code}, {len(tables[0]) - 1} rows']
    return expect(case, record, name, analysis, ['--ranks', match[2]], keys)


@check(r'queue_full_(\d+)_rank(\d+)')
def queue_full(case, name, record, match):
    return expect(case, record, name, 'time-spent-blocked-on-full-queue',
                  ['--ranks', match[2], '--max-queue-length', match[1]], ['rank', 'stream'])


@check(r'counter_events_rank(\d+)')
def counter_events(case, name, record, match):
    """Returns the appended text; checks that the source is complete before it."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'out.json.gz')
        done = subprocess.run([BIN, 'export', *case.paths, '--to', 'trace-with-counters', '--compat', 'hta', '--ranks', match[1], '-o', out],
                              capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1'})
        if record['status'] == 'error':  # HTA writes nothing where there is nothing to count
            return [] if done.returncode == 2 and 'nothing to count' in done.stderr else [f'exit {done.returncode}: {done.stderr}']
        if done.returncode != 0:
            return [f'exit {done.returncode}: {done.stderr}']
        ours = json.load(gzip.open(out))
    source = case.manifest['load']['files'][match[1]]['file']
    path = next(p for p in pathlib.Path(case.paths[0]).parent.rglob(source))
    theirs = json.loads((gzip.open if source.endswith('.gz') else open)(path, 'rb').read())
    events, own = theirs.pop('traceEvents'), ours.pop('traceEvents')
    problems = [] if theirs == ours and own[:len(events)] == events else ['the source changed on the way']
    rows = [['row', 'name', 'ts', 'pid', 'id', 'value']]
    for i, e in enumerate(own[len(events):]):
        (value,) = e['args'].values()
        rows.append([str(i), e['name'], repr(e['ts']), str(e['pid']), str(e.get('id', '')), str(value)])
    golden = rows[:1] + case.golden(name)[1:]
    for row in golden[1:]:
        (row[5],) = map(str, json.loads(row[5]).values())
    return problems + compare(golden, rows, ['row'])


@check(r'stragglers_(\w+)')
def stragglers(case, name, record, match):
    params = record['params']
    options = ['--num-candidates', params.get('num_candidates', 2)]
    if 'profiler_steps' in params:
        options += ['--profiler-steps', ','.join(map(str, params['profiler_steps']))]
    if record['status'] == 'error':
        return expect(case, record, name, 'potential-stragglers', options, ['rank'])
    code, tables, words = case.run('potential-stragglers', *options)
    ours = [int(row[0]) for row in tables[0][1:]] if code == 0 else words
    return [] if ours == record['value'] else [f'HTA {record["value"]}, ours {ours}']


def diff_options(case, record):
    options = []
    for side, path in zip(('--control', '--test'), case.manifest['input']['diff']):
        options += [side, str(DATA / path)]
    for key, value in record['params'].items():
        if key == 'use_short_name':
            options += ['--use-short-name', str(value).lower()]
        else:
            options += ['--' + key.replace('_', '-'), ','.join(map(str, value)) if isinstance(value, list) else value]
    return options


@check(r'compare_(cpu|gpu|all|iterations)_\w+')
def compare_traces(case, name, record, match):
    index = 'short_name' if record['params'].get('use_short_name') else 'name'
    return expect(case, record, name, 'trace-diff', [*diff_options(case, record), '--table', 'compare-traces'], [index])


@check(r'ops_diff_(cpu|gpu|all)')
def ops_diff(case, name, record, match):
    code, tables, words = case.run('trace-diff', *diff_options(case, record), '--table', 'ops-diff')
    if code != 0:
        return [f'exit {code}: {words.strip()}']
    ours = {key: [] for key in record['value']}
    for change, op in tables[0][1:]:
        ours[change].append(op)
    return [f'{key}: HTA {ops}, ours {sorted(ours[key])}' for key, ops in record['value'].items() if sorted(ours[key]) != ops]


@check('memory_timeline')
def memory_timeline(case, name, record, match):
    code, tables, words = case.run('memory-timeline')
    if code != 0:
        return [f'exit {code}: {words.strip()}']
    def by_row(table):
        start = 1 if table[0][0] == '' else 0
        return [['row', *table[0][start:]]] + [[str(i), *row[start:]] for i, row in enumerate(table[1:])]
    return compare(by_row(case.golden(name)), by_row(tables[0]), ['row'])


CUPTI_BY_OTHER_CALLS = {  # columns that earlier calls left in HTA's shared table (F30), and constants of the loading
    'user_annotation', 's_user_annotation', 'depth', 'height', 'parent', 'num_kernels', 'kernel_dur_sum', 'kernel_span',
    'first_kernel_start', 'last_kernel_end', 'bytes', 'memory_bw_gbps', 'wait_on_stream', 'wait_on_cuda_event_record_corr_id',
    'input_dims', 'input_type', 'input_strides', 'external_id', 'python_id', 'python_parent_id', 'collective_name',
    'in_msg_nelems', 'out_msg_nelems', 'msg_dtype', 'group_size', 'process_rank', 'in_split_size', 'out_split_size'}


@check('cupti_counters')
def cupti_counters(case, name, record, match):
    rank = case.manifest['load']['ranks'][0]
    options = ['--ranks', rank]
    golden = case.golden(name)
    if record['status'] == 'ok':
        keep = [i for i, c in enumerate(golden[0]) if c not in CUPTI_BY_OTHER_CALLS]
        case.golden = lambda _: [[row[i] for i in keep] for row in golden]
    problems = expect(case, record, name, 'cupti-counter-data-with-operators', options, ['index'])
    case.__dict__.pop('golden', None)
    return problems
