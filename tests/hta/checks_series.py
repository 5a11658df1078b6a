"""Series over time, comparisons, counters."""
import gzip
import json
import os
import pathlib
import subprocess
import tempfile

from support import BIN, check, compare, expect


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
    golden, ours = case.golden(name), tables[0]
    for number, rows in enumerate((golden, ours)):
        at = [rows[0].index(c) for c in columns]
        rows[:] = [['row', *columns]] + [[str(i), *(row[k] for k in at)] for i, row in enumerate(rows[1:])]
    return compare(golden, ours, ['row'])


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
    """What was appended to the source, and that the source is all there before it."""
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
        rows.append([str(i), e['name'], repr(e['ts']), str(e['pid']), str(e.get('id', '')), json.dumps(e['args'])])
    golden = [['row', 'name', 'ts', 'pid', 'id', 'value']] + case.golden(name)[1:]
    for table in (golden, rows):
        for row in table[1:]:
            (row[5],) = map(str, json.loads(row[5]).values())
    return problems + compare(golden, rows, ['row'])
