#!/usr/bin/env python3
"""Compares `stageline pp-chart --compat msprof` with the output of msprof-analyze for every golden of
../shared/data/ascend/golden. The input is made by ../shared/tools/gen_ascend.py as its how.txt describes. Without
--compat the result is compared with the true order, which the generator writes too. Skips, with a count, without
../shared."""
import csv
import os
import pathlib
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / 'shared'
GOLDEN = SHARED / 'data' / 'ascend' / 'golden'
GENERATOR = SHARED / 'tools' / 'gen_ascend.py'
STAGELINE = os.environ.get('STAGELINE_BIN', str(ROOT / 'build' / 'dev' / 'stageline'))
NAMES = {'name': 'opn.value', 'groupName': 'g.value', 'opType': 't.value'}  # decoded columns of COMMUNICATION_OP


def databases(folder):
    """rank → path, of a cluster's profile."""
    found = {}
    for path in pathlib.Path(folder).rglob('ascend_*_profiler_*.db'):
        found[int(re.search(r'_(\d+)\.db$', path.name)[1])] = path
    return found


def make_case(how, folder):
    """The input that a how.txt describes: generator arguments, then perhaps SQL for every database."""
    command, _, rest = how.strip().partition(' ; ')
    words = shlex.split(command)[1:]
    words[words.index('--out') + 1] = str(folder)
    subprocess.run([sys.executable, GENERATOR, *words], check=True, stdout=subprocess.DEVNULL)
    if sql := re.match(r'then per database: (.*)', rest, re.S):
        for path in databases(folder).values():
            with sqlite3.connect(path) as db:
                db.execute(sql[1])
            db.close()


def run(*words, check=0):
    done = subprocess.run([STAGELINE, *map(str, words)], capture_output=True, text=True)
    assert check is None or done.returncode == check, f'{words}: exit {done.returncode}\n{done.stderr}'
    return done


def blocks_of(path):
    db = sqlite3.connect(f'file:{path}?immutable=1', uri=True)
    try:
        return [tuple(map(str, row)) for row in db.execute('SELECT name, startNs, endNs, type FROM StepTaskInfo')]
    except sqlite3.OperationalError:
        return None
    finally:
        db.close()


def operations_of(path, columns):
    """Rows of COMMUNICATION_OP by start, texts decoded, as strings; NULL is ''."""
    db = sqlite3.connect(f'file:{path}?immutable=1', uri=True)
    try:
        asked = ', '.join(NAMES.get(c, f'c.{c}') for c in columns)
        rows = db.execute(f'SELECT {asked} FROM COMMUNICATION_OP c LEFT JOIN STRING_IDS opn ON opn.id = c.opName LEFT JOIN '
                          'STRING_IDS g ON g.id = c.groupName LEFT JOIN STRING_IDS t ON t.id = c.opType ORDER BY c.startNs, opn.value')
        return [tuple('' if v is None else str(v) for v in row) for row in rows]
    except sqlite3.OperationalError:
        return None
    finally:
        db.close()


def csv_rows(path):
    with open(path, newline='') as file:
        rows = list(csv.reader(file))
    return rows[0], [tuple(row) for row in rows[1:]]


def compare_case(golden, scratch):
    """Returns the differences, one per line."""
    source, out = scratch / 'in', scratch / 'out'
    make_case((golden / 'how.txt').read_text(), source)
    before = {path: path.read_bytes() for path in databases(source).values()}
    has_tables = any(golden.glob('StepTaskInfo_rank*.csv'))
    run('pp-chart', '-d', source, '-o', out, '--compat', 'msprof', check=0 if has_tables else 2)
    wrong = [f'{path} was changed' for path, content in before.items() if path.read_bytes() != content]
    copies = databases(out)
    for rank in databases(source):
        expected = golden / f'StepTaskInfo_rank{rank}.csv'
        got = blocks_of(copies[rank]) if rank in copies else None
        want = csv_rows(expected)[1] if expected.exists() else None
        if got != want:
            wrong.append(f'StepTaskInfo of rank {rank}: {difference(got, want)}')
        expected = golden / f'COMMUNICATION_OP_rank{rank}.csv'
        if not expected.exists():
            continue
        columns, want = csv_rows(expected)
        keep = [i for i, c in enumerate(columns) if c != 'opId']  # theirs follows the order of a Python set
        got = operations_of(copies[rank], [columns[i] for i in keep]) if rank in copies else None
        want = sorted((tuple(row[i] for i in keep) for row in want), key=lambda r: (int(r[1]), r[0]))
        if got != want:
            wrong.append(f'COMMUNICATION_OP of rank {rank}: {difference(got, want)}')
    return wrong


def true_blocks(path, dualpipev):
    """Returns the true order of a rank, in Stageline's names; DualPipeV's forwards have no letter except on the last
    stage, where it is removed here."""
    names = {'F': '{f}' if dualpipev else '{f}F', 'B': '{b}B', 'b': '{b}b', 'w': '{b}w', 'FB': '{f}F+{b}B', 'L': 'logits'}
    with open(path, newline='') as file:
        return [(names[r['kind']].format(f=r['fwd_mb'], b=r['bwd_mb']), r['startNs'], r['endNs']) for r in csv.DictReader(file)]


def compare_truth(scratch, dualpipev):
    """Every block of our own chart is what ran: a line a rank where not."""
    source, out = scratch / 'in', scratch / 'ours'
    run('pp-chart', '-d', source, '-o', out, '--fail-on', 'unlabelled')
    wrong = []
    for rank, path in databases(out).items():
        got = [(re.sub(r'^(\d+)F$', r'\1', name) if dualpipev else name, start, end) for name, start, end, _ in blocks_of(path)]
        want = true_blocks(source / 'truth' / f'rank{rank}.csv', dualpipev)
        if got != want:
            wrong.append(f'blocks of rank {rank} and what ran: {difference(got, want)}')
    return wrong


def difference(got, want):
    if got is None or want is None:
        return f'{"no table" if got is None else f"{len(got)} rows"}, expected {"no table" if want is None else f"{len(want)} rows"}'
    for i, (a, b) in enumerate(zip(got, want)):
        if a != b:
            return f'row {i}: {a}, expected {b}'
    return f'{len(got)} rows, expected {len(want)}'


def main():
    if not GENERATOR.exists() or not GOLDEN.is_dir():
        print('skipped: goldens of msprof-analyze, ../shared is not there')
        return 0
    passed = failed = 0
    for golden in sorted(GOLDEN.iterdir()):
        with tempfile.TemporaryDirectory() as scratch:
            wrong = compare_case(golden, pathlib.Path(scratch))
            if any(golden.glob('StepTaskInfo_rank*.csv')):
                wrong += compare_truth(pathlib.Path(scratch), 'dualpipev' in (golden / 'how.txt').read_text())
        passed += not wrong
        failed += bool(wrong)
        for line in wrong:
            print(f'{golden.name}: {line}')
    print(f'{passed} passed, {failed} failed, 0 skipped')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
