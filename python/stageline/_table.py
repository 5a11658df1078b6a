"""Tables: columns of the engine, for Arrow's consumers as they stand, for pandas and people on demand."""
import json
import warnings
from collections import namedtuple

from . import _engine

Column = namedtuple('Column', 'name title type unit help')
Column.__doc__ = 'What a column holds: its name, its title for people, integer, real, text, duration, time, share or ratio, its unit, one sentence.'

_MANY_ROWS = 100_000


def columns_of(described):
    from ._words import in_python
    return [Column(*column, in_python(help)) for *column, help in described]


def library(name, extra=None):
    """A library that only some answers need; where it is missing the error says how to get it."""
    import importlib
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(f"{name} is not installed: pip install '{f'stageline[{extra}]' if extra else name}'", name=name) from None


class Table:
    """A table has rows and typed columns. Times and durations are whole nanoseconds, shares fractions of 1, None is
    unknown.

    Anything that reads Arrow takes it: `polars.DataFrame(table)`, `pyarrow.table(table)`, `duckdb.sql('FROM table')`.
    """

    def __init__(self, frame, epoch_ns=None):
        self._frame, self._epoch_ns = frame, epoch_ns  # epoch_ns: what people see times from, where columns have them from an epoch
        self.columns = columns_of(frame.columns)

    @property
    def name(self):
        """The table's name within its answer."""
        return self._frame.name

    @property
    def title(self):
        """Returns the title for people."""
        return self._frame.title

    def __len__(self):
        return len(self._frame)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self):
        return self._frame.__arrow_c_schema__()

    # ---- columns and rows ----

    def _place(self, name):
        names = [c.name for c in self.columns]
        if name not in names:
            raise KeyError(f'{self.name} has no column {name!r}; it has {", ".join(names)}')
        return names.index(name)

    def _list(self, place):
        """Returns a column as Python values."""
        codes = self._frame.dictionary(place)
        out = []
        for batch in range(len(self._frame.batch_rows())):
            values, valid = self._frame.data(batch, place)
            values = list(values)
            if codes is not None:
                values = [codes[v] for v in values]
            if valid is not None:
                bits = bytes(valid)
                values = [v if bits[i >> 3] >> (i & 7) & 1 else None for i, v in enumerate(values)]
            out += values
        return out

    def __getitem__(self, key):
        """table['dur_ns'] is a column as a list, table[3] a row, table[3:5] a list of rows."""
        if isinstance(key, str):
            return self._list(self._place(key))
        if isinstance(key, slice):
            return self._rows()[key]
        return self._rows()[key]

    def _rows(self):
        if not hasattr(self, '_made_rows'):
            if len(self) > _MANY_ROWS:
                warnings.warn(f'{len(self)} rows become Python objects; to_polars() and to_arrow() take columns as they stand', stacklevel=3)
            row = namedtuple('Row', [c.name for c in self.columns], rename=True)
            self._made_rows = [row(*values) for values in zip(*(self._list(c) for c in range(len(self.columns))))]
        return self._made_rows

    def __iter__(self):
        return iter(self._rows())

    def to_dicts(self):
        """Rows as dictionaries."""
        return [dict(zip((c.name for c in self.columns), row)) for row in self._rows()]

    # ---- other libraries ----

    def to_arrow(self):
        """A pyarrow.Table; numbers are not copied."""
        return library('pyarrow').table(self)

    def to_polars(self):
        """A polars.DataFrame; numbers are not copied, names become Categorical."""
        return library('polars').DataFrame(self)

    def to_pandas(self, *, categories=True, times='int'):
        """Returns a pandas.DataFrame, without pyarrow. Names are categories, or objects with categories=False;
        times='timedelta' turns
        nanoseconds into pandas' own; whole numbers with unknown ones among them become Int64."""
        numpy, pandas = library('numpy', 'pandas'), library('pandas', 'pandas')
        if times not in ('int', 'timedelta'):
            from ._words import _usage
            raise _usage(f"times is 'int' or 'timedelta', not {times!r}", '')
        frame, columns = self._frame, {}
        batches = range(len(frame.batch_rows()))
        for place, column in enumerate(self.columns):
            codes = frame.dictionary(place)
            pieces = [frame.data(batch, place) for batch in batches]
            if pieces and isinstance(pieces[0][0], list):
                columns[column.name] = pandas.Series([v for values, _ in pieces for v in values], dtype=object)
                continue
            if not pieces:
                kind = object if column.type == 'text' else 'float64' if column.type in ('real', 'share', 'ratio') else 'int64'
                columns[column.name] = pandas.Series([], dtype=kind)
                continue
            arrays = [numpy.asarray(values) for values, _ in pieces]
            values = arrays[0] if len(arrays) == 1 else numpy.concatenate(arrays)
            missing = None
            if any(valid is not None for _, valid in pieces):
                missing = numpy.concatenate([
                    numpy.zeros(len(a), bool) if valid is None else
                    ~numpy.unpackbits(numpy.asarray(valid), bitorder='little')[:len(a)].astype(bool)
                    for a, (_, valid) in zip(arrays, pieces)])
            if codes is not None:
                series = _category(pandas, numpy, codes, values, missing, categories)
            elif values.dtype.kind == 'f':
                series = pandas.Series(values, copy=False)  # unknown is NaN already
            elif times == 'timedelta' and column.type in ('duration', 'time'):
                values = values.astype('timedelta64[ns]')
                series = pandas.Series(values if missing is None else numpy.where(missing, numpy.timedelta64('NaT'), values))
            elif missing is not None:
                series = pandas.Series(pandas.arrays.IntegerArray(values.astype('int64'), missing))
            else:
                series = pandas.Series(values, copy=False)
            columns[column.name] = series
        return pandas.DataFrame(columns, copy=False)

    # ---- text ----

    def to_csv(self, path=None):
        """RFC 4180 with raw values, as `--format csv` prints it; to `path`, or as text."""
        text = self._frame.form('csv')
        if text is None:
            import csv
            import io
            out = io.StringIO()
            writer = csv.writer(out, lineterminator='\n')
            writer.writerow([c.name for c in self.columns])
            writer.writerows([['' if v is None else v for v in row] for row in self._rows()])
            text = out.getvalue()
        return _to(path, text)

    def to_json(self, path=None):
        """One JSON object with columns and rows, as `--format json` prints it; to `path`, or as text."""
        text = self._frame.form('json')
        if text is None:
            text = json.dumps({'name': self.name, 'title': self.title, 'columns': [c._asdict() for c in self.columns],
                               'rows': self.to_dicts()}, ensure_ascii=False)
        return _to(path, text)

    def text(self, rows=40, wide=False, lang='en'):
        """Returns the text that `stageline analyze` prints: scaled values with units. rows=0 for all."""
        text = self._frame.form('text', rows=rows, wide=wide, chinese=lang == 'zh')
        if text is not None:
            from ._words import table_in_python
            return table_in_python(text)
        units, body, note = self._for_people(rows or len(self))
        head = [' '.join(filter(None, (column.title, unit))) for column, unit in zip(self.columns, units)]
        lines = [[_cut(text, None if wide else 60) for text in row] for row in (head, *body)]
        widths = [max(map(len, column)) for column in zip(*lines)]
        lefts = [column.type == 'text' for column in self.columns]
        return f'{self.title}: {len(self)} rows\n' + ''.join('  '.join(
            text.ljust(width) if left else text.rjust(width) for text, width, left in zip(line, widths, lefts)).rstrip() + '\n'
            for line in lines) + (note and note + '\n')

    def __repr__(self):
        return self.text(rows=10) if len(self.columns) else f'Table({self.name!r})'

    def _head(self, count):
        """Returns the first rows, without making all."""
        names = range(len(self.columns))
        if not self._frame.batch_rows():
            return []
        pieces = []
        for place in names:
            codes = self._frame.dictionary(place)
            values, valid = self._frame.data(0, place)
            bits = None if valid is None else bytes(list(valid)[:(count + 7) // 8])
            column = []
            for i in range(min(count, len(values))):
                known = bits is None or bits[i >> 3] >> (i & 7) & 1
                column.append(None if not known else values[i] if codes is None else codes[values[i]])
            pieces.append(column)
        return list(zip(*pieces))

    def _repr_html_(self):
        from ._notebook import table_html
        return table_html(self)

    def __reduce__(self):
        return _unpickled, (self.name, self.title, [tuple(c) for c in self.columns],
                            [self._list(c) for c in range(len(self.columns))])

    def _for_people(self, count):
        """(units, the first rows as texts, a note): times from the table's epoch or its first time, durations in one unit a column."""
        rows = self._head(count)
        units = list(self._frame.shown_units or [''] * len(self.columns))
        times = [v for place, c in enumerate(self.columns) if c.type == 'time' for v in (row[place] for row in rows) if v is not None]
        base = self._epoch_ns if self._epoch_ns is not None else min(times, default=0) if min(times, default=0) > _LONGEST_RUN_NS else 0
        columns = []
        for place, column in enumerate(self.columns):
            values = [row[place] for row in rows]
            shown = [self._frame.shown(r, place) for r in range(len(rows))]
            if column.type == 'time' and (base or None in shown) or column.type == 'duration' and None in shown:
                values = [None if v is None else v - base if column.type == 'time' else v for v in values]
                most = max((abs(v) for v in values if v is not None), default=0)
                units[place], scale = next((u for u in _UNITS if most >= u[1]), _UNITS[-1])
                shown = [None if v is None else f'{v / scale:,.3f}' if scale > 1 else f'{v:,}' for v in values]
            columns.append(['–' if v is None else text if text is not None else str(v) for v, text in zip(values, shown)])
        return units, list(zip(*columns)), f'times are from {base} ns' if base and times else ''


_UNITS = (('s', 10**9), ('ms', 10**6), ('µs', 1000), ('ns', 1))
_LONGEST_RUN_NS = 10**15  # later times are from an epoch


def _cut(text, width):
    return text if width is None or len(text) <= width else text[:width // 2] + '…' + text[-(width - width // 2 - 1):]


class _Plain:
    """The frame of a table that came out of a pickle: Python lists."""

    def __init__(self, name, title, columns, values):
        self.name, self.title, self.columns, self._values = name, title, columns, values
        self.shown_units = []

    def __len__(self):
        return len(self._values[0]) if self._values else 0

    def batch_rows(self):
        return [len(self)] if len(self) else []

    def dictionary(self, place):
        return None

    def data(self, batch, place):
        return self._values[place], None

    def form(self, *args, **keywords):
        return None

    def shown(self, row, place):
        return None


def _unpickled(name, title, columns, values):
    return Table(_Plain(name, title, columns, values))


def _category(pandas, numpy, codes, values, missing, categories):
    """Codes into a pool of names: only names that occur become categories, each once."""
    used = numpy.unique(values if missing is None else values[~missing])
    texts, place = [], {}
    at = numpy.zeros(int(used[-1]) + 1 if len(used) else 1, 'int32')
    for code in used.tolist():
        text = codes[code]
        if text not in place:
            place[text] = len(texts)
            texts.append(text)
        at[code] = place[text]
    mapped = at[numpy.where(missing, 0, values)] if missing is not None else at[values]
    if missing is not None:
        mapped = numpy.where(missing, -1, mapped)
    made = pandas.Categorical.from_codes(mapped, categories=pandas.Index(texts, dtype=object))
    return pandas.Series(made if categories else numpy.asarray(made, dtype=object))


def _to(path, text):
    if path is None:
        return text
    _engine.write_file(path, text.encode('utf-8', 'surrogateescape'))
    return None
