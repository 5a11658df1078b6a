"""Compares HTA's state after loading: every row, and the classes of every name."""
from support import check, number, same

COLUMNS = ['index', 'cat', 'name', 'pid', 'tid', 'ts', 'dur', 'end', 'stream', 'correlation', 'bytes', 'memory_bw_gbps',
           'wait_on_stream', 'wait_on_cuda_event_record_corr_id', 'collective_name', 'in_msg_nelems', 'out_msg_nelems',
           'msg_dtype', 'group_size', 'process_rank', 'index_correlation', 'iteration']


def row_differences(theirs, ours, columns, tolerance):
    """Rows of both in the same order; column values compared."""
    problems = []
    at = {c: i for i, c in enumerate(theirs[0])}
    mine = {c: i for i, c in enumerate(ours[0])}
    missing = [c for c in columns if c not in mine]
    if missing:
        return [f'columns missing: {missing}']
    places = [(c, at[c], mine[c], tolerance.get(c, 1e-12)) for c in columns if c in at]
    key = lambda row, place: (number(row[place['index']]), number(row[place['ts']]))
    a, b = sorted(theirs[1:], key=lambda r: key(r, at)), sorted(ours[1:], key=lambda r: key(r, mine))
    if len(a) != len(b):
        extra = {r[at['index']] for r in a} ^ {r[mine['index']] for r in b}
        return [f'{len(a)} rows in HTA, {len(b)} in ours; indexes of one only: {sorted(extra, key=int)[:8]}']
    for x, y in zip(a, b):
        for column, i, j, most in places:
            p, q = x[i], y[j]
            if p != q and not same(p, q, most):
                problems.append(f'index {x[at["index"]]}: {column}: HTA {p}, ours {q}')
    return problems


@check(r'loaded_events_rank(\d+)')
def loaded(case, name, record, match):
    code, tables, words = case.run('events')
    if code != 0:
        return [f'exit {code}: {words.strip()}']
    rank = match[1]
    ours = [tables[0][0]] + [row for row in tables[0][1:] if row[0] == rank]
    return row_differences(case.golden(name), ours, COLUMNS, {'end': 1e-15, 'ts': 1e-15})


@check('symbols')
def symbols(case, name, record, match):
    code, tables, words = case.run('events')
    if code != 0:
        return [f'exit {code}: {words.strip()}']
    golden, ours = case.golden(name), tables[1]
    theirs = {row[1]: row[2:] for row in golden[1:]}
    mine = {row[0]: row[1:] for row in ours[1:]}
    problems = [f'symbol of one only: {s!r}' for s in sorted(theirs.keys() ^ mine.keys())]
    problems += [f'{s}: HTA {theirs[s]}, ours {mine[s]}' for s in theirs.keys() & mine.keys() if theirs[s] != mine[s]]
    return problems
