"""Exports of Nsight Systems as folders of tables (`nsys export --type parquetdir` or `arrowdir`): made one SQLite file, which the engine reads.

Tables and columns are named as in the SQLite export. pyarrow reads them; without it the folder is refused with the other way.
"""
import builtins
import contextlib
import os
import pathlib
import sqlite3
import tempfile

from ._words import _bad_input, _usage

_KINDS = {'.parquet', '.arrow'}
_KNOWN = ('StringIds', 'NVTX_EVENTS', 'CUPTI_ACTIVITY_KIND_KERNEL', 'CUPTI_ACTIVITY_KIND_RUNTIME')


def is_export(path):
    """Returns true if a path is a folder of such tables."""
    return os.path.isdir(path) and any(os.path.exists(os.path.join(path, name + kind)) for name in _KNOWN for kind in _KINDS)


def _batches(file):
    import pyarrow
    import pyarrow.parquet
    if file.suffix == '.parquet':
        with pyarrow.parquet.ParquetFile(file) as table:
            yield table.schema_arrow, table.iter_batches()
        return
    with pyarrow.memory_map(str(file)) as source:
        try:
            table = pyarrow.ipc.open_file(source)
            yield table.schema, (table.get_batch(i) for i in builtins.range(table.num_record_batches))
        except pyarrow.ArrowInvalid:
            table = pyarrow.ipc.open_stream(source)
            yield table.schema, table


def _value(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and value >= 1 << 63:
        return value - (1 << 64)  # SQLite's numbers are signed; the engine looks at the bits
    return value


def _name(text):
    return '"' + text.replace('"', '""') + '"'


def _copy(file, db):
    for schema, batches in _batches(file):
        db.execute(f'CREATE TABLE {_name(file.stem)} ({", ".join(_name(n) for n in schema.names)})')
        row = f'INSERT INTO {_name(file.stem)} VALUES ({",".join("?" * len(schema.names))})'
        for batch in batches:
            columns = [[_value(v) for v in column.to_pylist()] for column in batch.columns]
            db.executemany(row, zip(*columns))


def _convert(folder, to):
    import pyarrow
    db = sqlite3.connect(to)
    try:
        for file in sorted(pathlib.Path(folder).iterdir()):
            if file.suffix not in _KINDS:
                continue
            try:
                _copy(file, db)
            except (pyarrow.ArrowException, OSError, sqlite3.Error, UnicodeError) as error:  # a run without one of its tables is another run
                raise _bad_input(f'this table cannot be read: {error}', file) from None
        db.commit()
    finally:
        db.close()


@contextlib.contextmanager
def converted(paths):
    """The paths with each such folder replaced by an SQLite file of its name, which is gone afterwards."""
    if not any(is_export(p) for p in paths):
        yield paths
        return
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise _usage('this is a folder of Parquet or Arrow tables of Nsight Systems, and pyarrow is not installed',
                     'pip install pyarrow, or nsys export --type sqlite --include-blobs=true REPORT.nsys-rep') from None
    with tempfile.TemporaryDirectory(prefix='stageline-') as made:
        out = []
        for number, path in enumerate(paths):
            if is_export(path):
                stem = pathlib.Path(os.path.abspath(path)).name.removesuffix('.parquetdir').removesuffix('.arrowdir').removesuffix('_pqtdir').removesuffix('_arwdir')
                file = os.path.join(made, str(number), f'{stem}.sqlite')
                os.mkdir(os.path.dirname(file))
                _convert(path, file)
                path = file
            out.append(path)
        yield out
