"""Changes of the files of a run, for each family of formats: a class takes a folder that holds a copy of the run and changes it there.

A method that the format cannot carry out raises NotGiven with the reason.
"""
import copy
import csv
import gzip
import io
import json
import pathlib
import pickle
import re
import sqlite3
import subprocess
from decimal import Decimal

DAY_NS = 86_400 * 10 ** 9


class NotGiven(Exception):
    """This source cannot have this change; the text says why."""


def read_bytes(path):
    data = path.read_bytes()
    if data[:2] == b'\x1f\x8b':
        return gzip.decompress(data)
    if data[:4] == b'\x28\xb5\x2f\xfd':
        return subprocess.run(['zstd', '-dcq', path], capture_output=True, check=True).stdout
    return data


def write_bytes(path, data):
    path.write_bytes(gzip.compress(data, 1, mtime=0) if path.suffix == '.gz' else data if path.suffix != '.zst' else
                     subprocess.run(['zstd', '-cq'], input=data, capture_output=True, check=True).stdout)


class Source:
    """A run whose stamps cannot be written by these tests."""
    family = 'other'
    device = frozenset()

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = sorted(p for p in ([self.root] if self.root.is_file() else self.root.rglob('*')) if p.is_file())

    def times(self, change, only=None):
        """Stamps become change(stamp), in ns; of every file, or of the one with this index."""
        raise NotGiven('no writer of this format in tests/relations')

    def __getattr__(self, name):
        if name in ('events', 'ranks', 'save'):
            raise NotGiven('no events to add to in this format')
        raise AttributeError(name)


class Chrome(Source):
    """JSON with traceEvents, or a list of events: Kineto's, op-json, Paddle's, other profilers'."""
    family = 'chrome'
    device = frozenset(('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_user_annotation', 'memcpy', 'memset'))

    def __init__(self, root):
        super().__init__(root)
        self.documents = {}
        for path in self.files:
            if re.search(r'\.(json|chrome_trace)(\.gz|\.zst)?$', path.name):
                try:
                    self.documents[path] = json.loads(read_bytes(path), parse_float=Decimal)
                except ValueError:
                    continue
        self.documents = {p: d for p, d in self.documents.items() if self.of(d) is not None}
        if not self.documents:
            raise NotGiven('no Chrome trace')
        self.paths = list(self.documents)

    @staticmethod
    def of(document):
        events = document.get('traceEvents') if isinstance(document, dict) else document
        return events if isinstance(events, list) and all(isinstance(e, dict) for e in events[:50]) else None

    def events(self, index):
        return self.of(self.documents[self.paths[index]])

    @staticmethod
    def stamp(value):
        try:
            return None if isinstance(value, bool) else Decimal(value) if isinstance(value, (int, str)) else value
        except ArithmeticError:
            return None

    @staticmethod
    def like(old, new):
        """The number in the form that the old one had."""
        if isinstance(old, str):
            return format(new, 'f')
        return int(new) if new == int(new) and isinstance(old, int) else new

    def times(self, change, only=None, lengths=True):
        begin = self.first()
        epoch = begin > 10 ** 13  # then a stamp of 0 is none
        for index in range(len(self.paths)) if only is None else [only]:
            for event in self.events(index):
                start = self.stamp(event.get('ts'))
                if start is None or event.get('ph') == 'M' or start == 0 and (epoch or self.stamp(event.get('dur')) == 0):
                    continue
                moved = change(start * 1000)
                if lengths and (length := self.stamp(event.get('dur'))) is not None:
                    event['dur'] = self.like(event['dur'], (change((start + length) * 1000) - moved) / 1000)
                event['ts'] = self.like(event['ts'], moved / 1000)
                args = event.get('args')
                if isinstance(args, dict) and {'BeginNs', 'EndNs', 'DurationNs'} <= set(args):  # rocprof v1 writes exact times there
                    if change(Decimal(1000)) - change(Decimal(0)) != 1000 or change(Decimal(0)) % 1000:
                        raise NotGiven('whole µs stand beside exact ns, and another change than by whole µs sets them apart')
                    args.update({key: format(change(Decimal(args[key])), 'f') for key in ('BeginNs', 'EndNs')})
                # Paddle writes exact times there, from the start of the recording on.
                for key in ('start_time', 'end_time') if isinstance(args, dict) else ():
                    if re.fullmatch(r'[\d.]+ us', str(args.get(key))):
                        args[key] = f'{(change(begin + Decimal(args[key][:-3]) * 1000) - change(begin)) / 1000:.3f} us'

    def extent(self, index=None):
        """From the first start to the last end, in ns, without the few stamps that are absurd already."""
        spans = sorted((at, at + (self.stamp(e.get('dur')) or 0)) for i in (range(len(self.paths)) if index is None else [index]) for e in self.events(i)
                       if e.get('ph') in ('X', 'B', 'E') and (at := self.stamp(e.get('ts'))) is not None and (at or self.stamp(e.get('dur')) != 0))
        low, high = spans[len(spans) // 10][0], spans[len(spans) * 9 // 10][1]
        far = max(20 * (high - low), 3600 * 10 ** 6)
        near = [(a, b) for a, b in spans if a > low - far and b < high + far]
        return min(a for a, _ in near) * 1000, max(b for _, b in near) * 1000

    def first(self, index=None):
        return self.extent(index)[0]

    def last(self, index=None):
        return self.extent(index)[1]

    def is_device(self, event):
        return str(event.get('cat', '')).lower() in self.device

    def steps(self, index):
        """The host's ranges of steps, in order."""
        found = [e for e in self.events(index) if e.get('ph') == 'X' and re.match(r'ProfilerStep\s?#\d+$', str(e.get('name'))) and not self.is_device(e)]
        return sorted(found, key=lambda e: self.stamp(e['ts']))

    def save(self, only=None):
        for index, path in enumerate(self.paths):
            if only is None or index == only:
                self.write(path, self.documents[path])

    @staticmethod
    def write(path, document):
        text = json.dumps(document, default=lambda number: '\x01' + format(number, 'f'), ensure_ascii=False)
        write_bytes(path, re.sub(r'"\\u0001([^"]*)"', r'\1', text).encode())


class Log(Source):
    """Changes Paddle's worker logs: timestamps in ms, in lines."""
    family = 'worker log'
    STAMP = re.compile(rb'(job_(?:start|end)_time = )([0-9]+\.[0-9]{6})(?![0-9])')

    def __init__(self, root):
        super().__init__(root)
        self.texts = {p: data for p in self.files if self.STAMP.search(data := read_bytes(p))}
        if not self.texts:
            raise NotGiven('no worker log')
        self.paths = list(self.texts)

    def values(self):
        return [v for data in self.texts.values() for _, text in self.STAMP.findall(data) if (v := Decimal(text.decode()) * 10 ** 6)]

    def first(self):
        return min(self.values())

    def last(self):
        return max(self.values())

    def times(self, change, only=None):
        def moved(match):
            old = Decimal(match[2].decode())
            return match[1] + (f'{change(old * 10 ** 6) / 10 ** 6:.6f}'.encode() if old else match[2])
        for index, path in enumerate(self.paths):
            if only is None or index == only:
                self.texts[path] = self.STAMP.sub(moved, self.texts[path])

    def save(self):
        for path, data in self.texts.items():
            write_bytes(path, data)


class Cells(Source):
    """A table of operations: start and end or duration in a unit that the column names."""
    family = 'table'
    UNITS = {'ns': 1, 'us': 10 ** 3, 'ms': 10 ** 6, 's': 10 ** 9, 'ts': 10 ** 9}

    def __init__(self, root):
        super().__init__(root)
        self.tables = {}
        for path in self.files:
            if re.search(r'\.csv(\.gz|\.zst)?$', path.name):
                rows = list(csv.reader(io.StringIO(read_bytes(path).decode())))
                head = rows[0] if rows else []
                start = [i for i, c in enumerate(head) if re.match(r'start(_|$)', c)]
                if start and any(re.match(r'(optype|kind|op|type)$', c) for c in head):
                    ends = [i for i, c in enumerate(head) if re.match(r'(end|dur|duration)(_|$)', c)]
                    self.tables[path] = (rows, start[0], ends[0], self.UNITS[head[start[0]].rpartition('_')[2]])
        if not self.tables:
            raise NotGiven('no table')
        self.paths = list(self.tables)

    @staticmethod
    def whole(rows, start, end):
        return (row for row in rows[1:] if len(row) > max(start, end) and re.match(r'\d', row[start]) and re.match(r'\d', row[end]))

    def ends(self):
        for rows, start, end, unit in self.tables.values():
            for row in self.whole(rows, start, end):
                at, to = Decimal(row[start]) * unit, Decimal(row[end]) * unit
                yield at, to if rows[0][end].startswith('end') else at + to

    def first(self):
        return min(at for at, _ in self.ends())

    def last(self):
        return max(to for _, to in self.ends())

    def times(self, change, only=None):
        if only is not None:
            raise NotGiven('one table holds all ranks')
        for rows, start, end, unit in self.tables.values():
            length = not rows[0][end].startswith('end')
            for row in self.whole(rows, start, end):
                at, to = Decimal(row[start]) * unit, Decimal(row[end]) * unit
                moved = change(at)
                row[start] = format(moved / unit, 'f')
                row[end] = format((change(at + to) - moved if length else change(to)) / unit, 'f')

    def save(self):
        for path, (rows, *_) in self.tables.items():
            out = io.StringIO()
            csv.writer(out, lineterminator='\n').writerows(rows)
            write_bytes(path, out.getvalue().encode())


class Database(Source):
    """SQLite: reports of Nsight Systems, rocpd, Ascend's databases."""
    family = 'database'
    STAMPS = ('start', 'end', 'startNs', 'endNs', 'timestamp', 'rawTimestamp', 'timestampNs', 'startTimeNs', 'endTimeNs', 'allocationTime', 'releaseTime')

    def __init__(self, root):
        super().__init__(root)
        self.paths = [p for p in self.files if p.read_bytes()[:16] == b'SQLite format 3\0']
        if not self.paths:
            raise NotGiven('no database')
        self.columns = {}
        for path in self.paths:
            db = sqlite3.connect(path)
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'").fetchall():
                found = [(r[1], r[2]) for r in db.execute(f'PRAGMA table_info("{table}")') if r[1] in self.STAMPS]
                if found:
                    self.columns.setdefault(path, []).append((table, found))
            db.close()
        if not self.columns:
            raise NotGiven('no table with stamps that these tests know')

    def values(self):
        found = []
        for path, tables in self.columns.items():
            db = sqlite3.connect(path)
            for table, columns in tables:
                for name, _ in columns:
                    found += [v for v in db.execute(f'SELECT min(CAST("{name}" AS INTEGER)), max(CAST("{name}" AS INTEGER)) FROM "{table}" WHERE CAST("{name}" AS INTEGER) > 0')
                              .fetchone() if v is not None]
            db.close()
        return found

    def first(self):
        return min(self.values())

    def last(self):
        return max(self.values())

    def times(self, change, only=None):
        for index, (path, tables) in enumerate(self.columns.items()):
            if only is not None and index != only:
                continue
            db = sqlite3.connect(path)
            moved = lambda old: None if old is None else old if int(old) <= 0 else type(old)(change(int(old)))
            db.create_function('moved', 1, moved)
            for table, columns in tables:
                db.execute(f'UPDATE "{table}" SET ' + ', '.join(f'"{name}" = moved("{name}")' for name, _ in columns))
            db.commit()
            db.close()

    def save(self):
        pass


class Dumps(Source):
    """Changes dumps of torch's flight recorder."""
    family = 'flight recorder'
    FIELDS = ('time_created_ns', 'time_discovered_started_ns', 'time_discovered_completed_ns')

    class Plain(pickle.Unpickler):
        def find_class(self, module, name):
            raise NotGiven(f'a pickle with {module}.{name}')

    def __init__(self, root):
        super().__init__(root)
        self.dumps = {}
        for path in self.files:
            try:
                dump = self.Plain(io.BytesIO(path.read_bytes())).load()
            except Exception:
                continue
            if isinstance(dump, dict) and isinstance(dump.get('entries'), list):
                self.dumps[path] = dump
        if not self.dumps:
            raise NotGiven('no flight recorder')
        self.paths = list(self.dumps)

    def values(self):
        return [e[f] for d in self.dumps.values() for e in d['entries'] for f in self.FIELDS if e.get(f)]

    def first(self):
        return min(self.values())

    def last(self):
        return max(self.values())

    def times(self, change, only=None):
        for index, path in enumerate(self.paths):
            for entry in self.dumps[path]['entries'] if only is None or index == only else ():
                entry.update({f: int(change(entry[f])) for f in self.FIELDS if entry.get(f)})

    def save(self):
        for path, dump in self.dumps.items():
            path.write_bytes(pickle.dumps(dump, protocol=2))


class Lines(Source):
    """JSON lines or documents with stamps in fields of these names, and their unit in ns."""
    family = 'json lines'
    FIELDS = {'startTimeUnixNano': 1, 'endTimeUnixNano': 1, 'timeUnixNano': 1, 'time_created_ns': 1, 'time_discovered_started_ns': 1, 'time_discovered_completed_ns': 1}
    STAMP = re.compile(rb'("(' + '|'.join(FIELDS).encode() + rb')"\s*:\s*"?)(\d+)')
    LENGTH = re.compile(rb'("gen_ai\.latency\.\w+"\s*,\s*"value"\s*:\s*\{\s*"doubleValue"\s*:\s*)([\d.]+)')  # seconds

    def __init__(self, root):
        super().__init__(root)
        self.texts = {p: data for p in self.files if self.STAMP.search(data := read_bytes(p))}
        if not self.texts:
            raise NotGiven('no such fields')
        self.paths = list(self.texts)

    def values(self):
        return [int(text) for data in self.texts.values() for *_, text in self.STAMP.findall(data) if int(text)]

    first, last = Log.first, Log.last

    def times(self, change, only=None):
        first = self.first()

        def length(match):
            ns = change(first + round(float(match[2]) * 1e9)) - change(first)
            return match[1] + repr(int(ns) / 1e9).encode()
        for index, path in enumerate(self.paths):
            if only is None or index == only:
                text = self.LENGTH.sub(length, self.texts[path])
                self.texts[path] = self.STAMP.sub(lambda m: m[1] + (str(int(change(int(m[3])))).encode() if int(m[3]) else m[3]), text)

    save = Log.save


def open_source(root):
    for family in (Log, Database, Chrome, Cells, Dumps, Lines):
        try:
            return family(root)
        except NotGiven:
            continue
    return Source(root)
