"""The shared part of checks of HTA's goldens: running the program, reading both tables, comparing by the written
rules."""
import csv
import gzip
import io
import json
import math
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT.parent / 'shared' / 'data'
BIN = os.environ.get('STAGELINE_BIN', str(ROOT / 'build/dev/stageline'))
csv.field_size_limit(1 << 30)

_checks = []


def check(pattern):
    """Registers `function(case, name, record, match)` for results whose whole name matches; it returns problems."""
    def register(function):
        _checks.append((re.compile(pattern + '$'), function))
        return function
    return register


def check_for(name):
    for pattern, function in _checks:
        if match := pattern.match(name):
            return function, match
    return None


class Case:
    def __init__(self, folder):
        self.folder, self.name = folder, folder.name
        self.manifest = json.load(open(folder / 'manifest.json'))
        given = self.manifest['input']
        self.paths = []
        if given.get('path'):
            path = DATA / given['path']
            self.paths = [str(path / f) for f in given['files']] if given.get('files') else [str(path)]
        self.last = bool(given.get('last'))
        self.ran = {}  # the last commands and their answers, which several checks ask for

    def golden(self, name):
        """Returns the rows of a golden table: header first. None when there is no file."""
        for suffix, opener in (('.csv', open), ('.csv.gz', gzip.open)):
            path = self.folder / (name + suffix)
            if path.exists():
                return list(csv.reader(opener(path, 'rt', newline='')))
        return None

    def run(self, analysis, *options, paths=None):
        """(exit code, tables as lists of rows with the header first, stderr) of `analyze … --compat hta --format csv`,
        not to be changed by who asks."""
        command = [BIN, 'analyze', analysis, *(self.paths if paths is None else paths), '--compat', 'hta', '--format', 'csv', *map(str, options)]
        if self.last:
            command.append('--include-last-profiler-step')
        if tuple(command) not in self.ran:
            if len(self.ran) == 4:
                self.ran.pop(next(iter(self.ran)))
            done = subprocess.run(command, capture_output=True, env={**os.environ, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1'})
            self.ran[tuple(command)] = done.returncode, split_tables(done.stdout.decode()), done.stderr.decode()
        return self.ran[tuple(command)]


def split_tables(text):
    """CSV tables, separated by blank lines, as lists of rows."""
    tables, rows = [], []
    for row in csv.reader(io.StringIO(text, newline='')):
        if not row:
            if rows:
                tables.append(rows)
            rows = []
        else:
            rows.append(row)
    return tables + ([rows] if rows else [])


def number(text):
    if text == '':
        return math.nan
    try:
        return float(text)
    except ValueError:
        return None


def same(a, b, tolerance=1e-9):
    """Numbers within `tolerance` (relative to at least 1), anything else as text."""
    if a == b:
        return True
    x, y = number(a), number(b)
    if x is None or y is None:
        return a == b
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return abs(x - y) <= tolerance * max(1.0, abs(x), abs(y))


def flat_header(rows):
    """A golden's rows with one header: pandas writes three for describe() tables (name, statistic, index names)."""
    if len(rows) > 2 and rows[0][0] == '' and rows[1][0] == '' and rows[1][-1] == 'max':
        index = [name for name in rows[2] if name]
        return [index + rows[1][len(index):]] + rows[3:]
    return rows


def compare(golden, ours, keys, columns=None, tolerance=1e-9, tolerances=None):
    """Problems: rows joined by `keys` (each must be unique), `columns` (default: all of the golden's that have a
    name) compared. Order of rows does not matter."""
    golden = flat_header(golden)
    if not ours:
        return ['no table was printed']
    header, ours_header = golden[0], ours[0]
    missing = [c for c in header if c and c not in ours_header]
    if missing:
        return [f'columns missing: {missing}; ours are {ours_header}']
    columns = columns or [c for c in header if c and c not in keys]
    if in_order(golden, ours, keys, columns, {c: (tolerances or {}).get(c, tolerance) for c in columns}):
        return []
    def table(rows):
        at = {c: i for i, c in enumerate(rows[0])}
        out = {}
        for row in rows[1:]:
            key = tuple(normal(row[at[k]]) for k in keys)
            out.setdefault(key, []).append([row[at[c]] for c in columns])
        return out
    theirs, mine = table(golden), table(ours)
    problems = []
    for key in theirs.keys() | mine.keys():
        a, b = theirs.get(key, []), mine.get(key, [])
        if len(a) != len(b):
            problems.append(f'{key}: {len(a)} rows in HTA, {len(b)} in ours')
            continue
        for x, y in zip(sorted(a), sorted(b)) if len(a) > 1 else zip(a, b):
            for column, p, q in zip(columns, x, y):
                if not same(p, q, (tolerances or {}).get(column, tolerance)):
                    problems.append(f'{key}: {column}: HTA {p}, ours {q}')
    return problems


def in_order(golden, ours, keys, columns, tolerances):
    """Whether the tables agree row by row as they stand, as most do: without a look-up by keys."""
    if len(golden) != len(ours) or not set(keys) <= set(golden[0]):
        return False
    for column in [*keys, *columns]:
        i, j = golden[0].index(column), ours[0].index(column)
        for x, y in zip(golden[1:], ours[1:]):
            p, q = x[i], y[j]
            if p != q and not (normal(p) == normal(q) if column in keys else same(p, q, tolerances[column])):
                return False
    return True


def normal(text):
    """Keys compare as numbers where they are numbers."""
    value = number(text)
    return text if value is None or math.isnan(value) else f'{value:.10g}'


def expect(case, record, golden_name, analysis, options, keys, table=0, **how):
    """The usual check: HTA's error → exit 2 and its reason; None → an empty table; a table → compared."""
    code, tables, words = case.run(analysis, *options)
    if record['status'] == 'error':
        if code != 2:
            return [f'HTA fails with {record["type"]}; ours exits {code}']
        return [] if record['type'] in words else [f'HTA\'s reason {record["type"]} is not in: {words.strip()}']
    if code != 0:
        return [f'exit {code}: {words.strip()}']
    if record['status'] == 'none':
        rows = sum(len(t) - 1 for t in tables)
        return [] if rows == 0 else [f'HTA has no answer; ours has {rows} rows']
    return compare(case.golden(golden_name), tables[table] if table < len(tables) else None, keys, **how)
