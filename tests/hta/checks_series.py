"""Series over time, comparisons, counters."""
from support import check, compare, expect


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
