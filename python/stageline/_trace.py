"""Opened runs, and the questions to them. Every number comes from the engine."""
import atexit
import builtins
import dataclasses
import inspect
import json
import os
import pathlib
import threading
import warnings
from collections.abc import Mapping, Sequence

from . import _engine
from ._table import Column, Table, columns_of
from ._words import _usage, all_in_python, in_python, words

atexit.register(_engine.finish)

_threads = None


class TraceWarning(UserWarning):
    """Part of an input could not be used or is odd; Trace.diagnostics says what."""


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One kind of flaw, or a fact about how an input was read."""
    name: str
    severity: str
    message: str
    count: int
    where: str

    def __str__(self):
        place = f'{self.where}: ' if self.where else ''
        return f'{self.severity}  {place}{self.message}' + (f' (× {self.count})' if self.count > 1 else '')


def _plain(text):
    """Narrow spaces between a number and its unit as usual ones: Python's repr would show their code."""
    return text.replace('\u202f', ' ')


def _notes(tuples):
    return [Diagnostic(name, severity, _plain(message), count, where) for name, severity, message, count, where in tuples]


def set_threads(count):
    """Sets how many threads the engine uses; None for all that this process may."""
    global _threads
    _threads = count


def _paths(paths):
    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]
    return [os.path.expanduser(os.fspath(p)) for p in paths]


def open(paths, *, ranks=None, steps=None, range=None, align=None, align_on=(), trust_clocks=False, cells=None, cell_rules=None,
         pp=None, tp=None, cp=None, ep=None, dp=None, order=None, devices=None, file_ranks=None, reader=None, max_memory=None, threads=None,
         progress=None):
    """Reads a run: files or folders of every format that `stageline report` takes, and with pyarrow what
    `nsys export --type parquetdir` or `arrowdir` makes.

    ranks: [0, 1] or '0-3,8'. steps: 3, (3, 5) or '3:5', both ends included. range: (from, to) in ns or as '200ms:1.5s'.
    progress: True, False, None (a bar in a terminal or notebook after half a second) or a callable of (bytes done, bytes
    expected or 0, events). file_ranks: [3, 5] are the ranks of two named profiler traces, whatever they say. max_memory: '8G': reading stops when the process holds this much, and says so. The rest are the
    program's flags (`stageline report --help`).
    Raises UsageError, NotFound, UnknownFormat, BadInput …, all of them stageline.Error.

        trace = stageline.open('traces/')
    """
    flags = words('analyze', {'ranks': ranks, 'steps': steps, 'range': range, 'align': align, 'align_on': align_on or None,
                              'trust_clocks': trust_clocks, 'cells': cells, 'cell_rules': cell_rules, 'pp': pp, 'tp': tp, 'cp': cp,
                              'ep': ep, 'dp': dp, 'order': order, 'devices': devices, 'file_ranks': file_ranks, 'reader': reader, 'max_memory': max_memory,
                              'threads': threads if threads is not None else _threads})
    paths = _paths(paths)
    from ._notebook import progress_for
    from ._parquet import converted
    with converted(paths) as readable, progress_for(progress) as report:
        run = _engine.open(readable, flags, report)
    trace = Trace(run, paths)
    flaws = sorted((d for d in trace.diagnostics if d.severity != 'info'), key=lambda d: d.severity != 'loss')
    if flaws:
        more = f' (and {len(flaws) - 1} more; Trace.diagnostics has all)' if len(flaws) > 1 else ''
        warnings.warn(f'{flaws[0]}{more}', TraceWarning, stacklevel=2)
    return trace


class Info(Mapping):
    """A description of the run, as in `stageline info --json`: keys are attributes, too."""

    def __init__(self, values, text=''):
        self._values, self._text = values, text

    def __getitem__(self, key):
        value = self._values[key]
        return Info(value) if isinstance(value, dict) else value

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __getattr__(self, name):
        if name.startswith('_'):
            raise AttributeError(name)
        if name not in self._values:
            raise AttributeError(f'no {name!r}; there are {", ".join(self._values)}')
        return self[name]

    def __dir__(self):
        return list(self._values) + ['to_dict']

    def to_dict(self):
        return self._values

    def __repr__(self):
        return self._text or repr(self._values)

    def _repr_html_(self):
        from ._notebook import info_html
        return info_html(self._text or repr(self._values))


class Answer(Mapping):
    """The tables of one analysis by name, `-` or `_`, also as attributes; .notes says what it assumes or leaves out."""

    def __init__(self, name, frames, notes, foreign=''):
        self.name, self.notes, self.foreign = name, _notes(notes), foreign
        self._tables = {frame.name: Table(frame) for frame in frames}

    @classmethod
    def _of(cls, name, tables, notes):
        made = cls(name, (), ())
        made._tables, made.notes = tables, notes
        return made

    def __getitem__(self, name):
        for known in (name, name.replace('_', '-'), name.replace('-', '_')):
            if known in self._tables:
                return self._tables[known]
        raise KeyError(f'{self.name} has no table {name!r}; it has {", ".join(self._tables)}')

    def __iter__(self):
        return iter(self._tables)

    def __len__(self):
        return len(self._tables)

    def __getattr__(self, name):
        if name.startswith('_'):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __dir__(self):
        return [n.replace('-', '_') for n in self._tables] + ['name', 'notes', 'table', 'text', 'foreign', 'to_pandas']

    @property
    def table(self):
        """The table, where there is one."""
        if len(self._tables) != 1:
            raise _usage(f'{self.name} has {len(self._tables)} tables: {", ".join(self._tables)}', 'choose one: answer[name]')
        return next(iter(self._tables.values()))

    def to_pandas(self, **how):
        """Returns the DataFrame of a single table, or a dictionary of the DataFrames of several."""
        if len(self._tables) == 1:
            return self.table.to_pandas(**how)
        return {name: table.to_pandas(**how) for name, table in self._tables.items()}

    def text(self, wide=False, lang='en'):
        """Returns the text that `stageline analyze` prints."""
        if self.foreign:
            return self.foreign
        return '\n'.join((f'{t.title}:\n' if len(self._tables) > 1 and len(t) else '') + t.text(wide=wide, lang=lang)
                         for t in self._tables.values())

    __repr__ = text

    def _repr_html_(self):
        from ._notebook import answer_html
        return answer_html(self)


@dataclasses.dataclass(frozen=True)
class Finding:
    """One fact worth reporting about a run, its cost and the saving of its fix; times are ns per step."""
    id: str
    key: str
    title: str
    detail: str
    value: str
    value_note: str
    lost_ns: 'int | None'
    lost_share: 'float | None'
    uncertainty_ns: 'int | None'
    saving_ns: int
    saving_share: float
    fix: str
    assumption: str
    command: str
    step: 'int | None'
    rank: 'int | None'
    evidence: 'tuple'
    places: 'tuple'
    or_else: 'tuple'
    _trace: object = dataclasses.field(default=None, repr=False, compare=False)

    def __str__(self):
        return f'{self.title}. {self.detail}' if self.detail else self.title

    def answer(self):
        """Runs the analysis that gives the evidence of the finding; what-if, where none does."""
        analysis, table = self.evidence
        if self._trace is None:
            raise _usage(f'{self.id} came out of a pickle, without its trace', 'open the trace, and ask its findings')
        if not self.id.startswith('offer.'):
            try:
                return self._trace.analyze(analysis, table=table or None)
            except _engine.BadInput:
                pass  # a recording without slices: what-if has its numbers
        priced = self._trace.what_if()
        return Answer._of('what-if', priced._tables, priced.notes)

    # Nothing of it changes, so a copy is as good; a pickle leaves the trace behind.
    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __getstate__(self):
        return {**self.__dict__, '_trace': None}


class Findings(Sequence):
    """The breakdown of step time and its causes; str() is what `stageline explain` prints."""

    def __init__(self, trace, lang):
        reported, en, zh = trace._run.explain()
        values = all_in_python(json.loads(_plain(reported)))
        pick = 'zh' if lang == 'zh' else 'en'
        self._text = in_python(zh if pick == 'zh' else en, trace.paths)
        self.headline = values[f'run_{pick}'] or values[f'title_{pick}']
        self.lead, self.closing, self.why_not = values[f'lead_{pick}'], values[f'closing_{pick}'], values['why_not']
        self.steps, self.step_ns, self.lost_ns, self.lost_share = (values[k] for k in ('steps', 'step_ns', 'lost_ns', 'lost_share'))
        self.parts = [(p[f'label_{pick}'], p['share']) for p in values['parts']]
        make = lambda f: Finding(  # noqa: E731
            f['id'], f['key'], f[f'title_{pick}'], f[f'detail_{pick}'], f['value'], f[f'note_{pick}'], f['lost_ns'], f['lost_share'],
            f['uncertainty_ns'], f['saving_ns'], f['saving_share'], f[f'fix_{pick}'], f[f'assumption_{pick}'], f['command'], f['step'],
            f['rank'], (f['analysis'], f['table']), tuple(f['places']), tuple(f['or_else']), trace)
        self._list = [make(f) for f in values['findings']]
        self.offers = [make(f) for f in values['offers']]

    def __getitem__(self, key):
        return self._list[key]

    def __len__(self):
        return len(self._list)

    def __str__(self):
        return self._text

    def __repr__(self):
        return _plain(self._text)

    def _repr_html_(self):
        from ._notebook import findings_html
        return findings_html(self)


@dataclasses.dataclass(frozen=True)
class Figure:
    """A number with its unit and base. `value` is None where it is unknown; `why_unknown` then gives the reason."""
    name: str
    value: 'float | None'
    unit: str
    base: str
    error: 'float | None'
    definition: str
    why_unknown: str


class Figures(Mapping):
    """The figures of a run by name, each computed when it is first asked for: run.figures['step_period'].value."""

    def __init__(self, run):
        self._run, self._known, self._all = run, {}, None

    def _asked(self, *name):
        en = lambda text: text['en'] if text else ''  # noqa: E731
        made = [Figure(f['name'], f['value'], f['unit'], en(f['base']), f['error'], en(f['definition']), en(f['why_unknown']))
                for f in json.loads(_plain(self._run.figures(*name)))]
        return {f.name: f for f in made}

    def __getitem__(self, name):
        if name not in self._known and self._run is not None:
            self._known.update(self._asked(name))
        if name not in self._known:
            raise KeyError(name)
        return self._known[name]

    def _whole(self):
        if self._all is None:
            self._all = self._asked()
        return self._all

    def __getstate__(self):
        return {'_run': None, '_known': self._whole(), '_all': self._whole()}

    def __iter__(self):
        return iter(self._whole())

    def __len__(self):
        return len(self._whole())

    def __repr__(self):
        return f'Figures({", ".join(self)})'


class WhatIf:
    """Fixes of a run, each replayed. .fixes, .layers and .own are tables or None."""

    def __init__(self, frames, notes, reported):
        values = all_in_python(json.loads(reported))
        self._tables = {frame.name: Table(frame) for frame in frames}
        self.sentence, self.tried, self.no_gain, self.over_memory = (values[k] for k in ('sentence', 'tried', 'no_gain', 'over_memory'))
        self.notes = _notes(notes)

    @property
    def base(self):
        """The replayed run, and the error of its replay."""
        return self._tables['what-if-base']

    @property
    def fixes(self):
        """One row a fix: what a step saves, what that assumes, how to make it."""
        return self._tables['fixes']

    @property
    def layers(self):
        """Layers of each stage, before and after; None without a known schedule."""
        return self._tables.get('layers')

    def __repr__(self):
        return _plain(f'{self.sentence}\n\n{self.fixes.text()}')

    def _repr_html_(self):
        from ._notebook import table_html
        return table_html(self.fixes, self.sentence)


class Diff:
    """Explains why a step of b takes longer or shorter than one of a."""

    def __init__(self, frames, notes, reported):
        self._tables = {frame.name: Table(frame) for frame in frames}
        self._values = all_in_python(json.loads(_plain(reported)))
        self.notes = _notes(notes)

    def __getattr__(self, name):
        if not name.startswith('_') and name in self._values:
            return self._values[name]
        raise AttributeError(name)

    @property
    def runs(self):
        return self._tables['runs']

    @property
    def groups(self):
        """The parts of the change; effects add up to it."""
        return self._tables['groups']

    @property
    def items(self):
        """The items of each group of two profiles: operators, collectives, copies, calls. Pipelines have none."""
        return self._tables.get('items')

    def to_dict(self):
        return self._values

    def __repr__(self):
        return self.groups.text()

    def _repr_html_(self):
        from ._notebook import table_html
        return table_html(self.groups)


class Trace:
    """An opened run. Many threads may ask it at once; tables made of it keep what they look into alive."""

    def __init__(self, run, paths):
        self._run, self.paths = run, paths
        self._lock, self._made = threading.Lock(), {}

    def _once(self, key, make):
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    # ---- what it is ----

    @property
    def info(self):
        """A description of the run, and the problems of its input."""
        def make():
            reported, text = self._run.info()
            return Info(all_in_python(json.loads(_plain(reported))), in_python(_plain(text), self.paths))
        return self._once('info', make)

    @property
    def findings(self):
        """The breakdown of step time, its causes and the saving of each fix."""
        return self._once('findings', lambda: Findings(self, 'en'))

    @property
    def figures(self):
        """Numbers that several outputs show, by name, with unit, base and definition; computed when asked for."""
        return self._once('figures', lambda: Figures(self._run))

    def explain(self, lang='en'):
        """Returns the findings in English ('en') or Chinese ('zh')."""
        return self.findings if lang != 'zh' else self._once('findings zh', lambda: Findings(self, 'zh'))

    @property
    def diagnostics(self):
        """The problems of the input, and how each was handled."""
        return self._once('diagnostics', lambda: _notes(self._run.diagnostics()))

    @property
    def format(self):
        """The reader that took it."""
        return self._run.facts[0]

    @property
    def ranks(self):
        return self._run.facts[1]

    @property
    def epoch_ns(self):
        """The first slice's start, as start_ns of slices() counts."""
        return self._run.facts[4]

    @property
    def names(self):
        """Every name once."""
        return self._once('names', self._run.names)

    def __repr__(self):
        if self._closed():
            return f'Trace({self.paths!r}, closed)'
        _, ranks, slices, cells, _, _ = self._run.facts
        return f'Trace({self.format}: {len(ranks)} ranks, {slices} slices, {cells} cells; {", ".join(map(str, self.paths))})'

    def _closed(self):
        try:
            return self._run.facts is None
        except _engine.UsageError:
            return True

    # ---- questions ----

    def analyze(self, name, /, *, table=None, compat=None, include_last_profiler_step=None, overlay=None, test=None, format=None,
                **options):
        """One analysis: an Answer of its tables. `stageline.analyses()` lists them and their options.

        compat='hta' gives a rival's numbers. `test` is the second run of analyses that compare two.
        """
        asked = {'table': table, 'compat': compat, 'include_last_profiler_step': include_last_profiler_step, 'overlay': overlay,
                 'format': format, **options}
        frames, notes, foreign = _engine.analyze(self._run, test._run if test is not None else None, [], name, words('analyze', asked))
        return Answer(name, frames, notes, foreign)

    def slices(self, *, where=None, columns=None, batch_rows=1 << 20):
        """All slices, or those that a condition of `stageline.f` names. Without one, name, start_ns, dur_ns and file_index are the
        engine's own memory, not copies."""
        return Table(self._run.slices(where.node if where is not None else None, list(columns or ()), batch_rows),
                     self.epoch_ns)

    def kernels(self, *, where=None, columns=None, batch_rows=1 << 20):
        """Work of devices."""
        from .filters import f
        return self.slices(where=f.on_device if where is None else f.on_device & where, columns=columns, batch_rows=batch_rows)

    def slice(self, id):
        """One slice by its id: facts, .args from the file, .parent, .children, .launch, .kernels, .stack."""
        from ._calls import _COLUMNS, Slice
        return Slice(self, Table(self._run.one_slice(int(id), list(_COLUMNS)))[0])

    def calls(self, rank):
        """Who called whom on a rank: a CallGraph with parent, children, path_to_root, leaves, kernels, find."""
        from ._calls import CallGraph
        if rank not in self.ranks:
            raise _usage(f'the run has no rank {rank}', f'it has {", ".join(map(str, self.ranks))}')
        return self._once(('calls', rank), lambda: CallGraph(self, rank))

    @property
    def cells(self):
        """The pipeline's cells are forward, backward, messages …"""
        return Table(self._run.cells([]))

    @property
    def messages(self):
        """Messages between stages, with the time each took."""
        return Table(self._run.model_table('messages'))

    @property
    def steps(self):
        """Steps: of the pipeline, else of each rank's profiler."""
        return Table(self._run.model_table('steps'))

    @property
    def devices(self):
        """Where each rank ran and what was read from it."""
        return Table(self._run.model_table('devices'))

    def sql(self, query, params=(), *, timeout=30, max_rows=None):
        """A query in SQLite's language over the run: tables slices, kernels, cells, steps …, every analysis as a function, all of
        them in `SELECT * FROM tables`. Times are ns from the run's first slice: `epoch_ns` more as slices() has them.

        params: values of ?, or a mapping for :name. timeout: seconds, None for none. max_rows: a TraceWarning says when there
        were more. Raises UsageError for what is no query, LimitExceeded.

            trace.sql('SELECT name, sum(dur_ns) FROM kernels WHERE rank = ? GROUP BY name', [0])
        """
        pairs = list(params.items()) if isinstance(params, Mapping) else [('', value) for value in params]
        milliseconds = 0 if timeout is None else max(1, round(timeout * 1000))
        frame, more = self._run.sql(query, pairs, milliseconds, max_rows or 0)
        if more:
            warnings.warn(f'there are more than {max_rows} rows', TraceWarning, stacklevel=2)
        return Table(frame)

    def what_if(self, *, scale=(), schedule=None, chunks=None, group=None, micro_batches=None, latency=None, layers=None,
                more_memory=False, model=None, memory=None, seq=None, micro_batch_size=None, optimizer=None, recompute=None):
        """Prices the fixes of the run and, if one is given, your change: scale={'stage': 3, 'by': 0.9}. A profile has
        the time that a step saves without each loss that explain reports, and without all of them. With model='config.json' the
        fixes say the bytes of the stages; memory='80GiB' leaves out those that do not fit."""
        asked = {'scale': scale or None, 'schedule': schedule, 'chunks': chunks, 'group': group, 'micro_batches': micro_batches,
                 'latency': latency, 'layers': layers, 'more_memory': more_memory, 'model': model, 'memory': memory, 'seq': seq,
                 'micro_batch_size': micro_batch_size, 'optimizer': optimizer, 'recompute': recompute}
        return WhatIf(*self._run.what_if(words('what-if', asked)))

    def plan(self, model=None, **flags):
        """The fastest pipelines with this run's times and, with the description of the model, the memory that it measured:
        layers=32, or the description. Reads the run again, which one path must name."""
        from ._plans import plan
        if len(self.paths) != 1:
            raise _engine.UsageError('plan takes its times from a run that was opened by one path')
        return plan(model, run=self.paths[0], **flags)

    # ---- outputs ----

    def export(self, path, to=None, *, lang='en', **flags):
        """Writes the run for other tools and returns the paths: `stageline help exporters` lists the kinds. The input is read
        again, as the output needs its clocks."""
        written, _ = self._run.export(path, words('export', {'to': to, **flags}), lang)
        return [pathlib.Path(p) for p in written]

    def report(self, path='report.html', *, lang='en', **flags):
        """The viewer with the run in one file."""
        return self.export(path, 'html', lang=lang, **flags)[0]

    def chart(self, *, width=None, format='svg', ghosts=None, steps=None, lang='en', dark=False):
        """The pipeline's chart as an object that notebooks draw; .data is its bytes."""
        from ._notebook import Chart
        return Chart(self._file(format, width=width, ghosts=ghosts, steps=steps, lang=lang, dark=dark), format)

    def _file(self, to, *, lang='en', **flags):
        """An output's bytes."""
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = self.export(os.path.join(folder, f'run.{to}'), to, lang=lang, title=flags.pop('title', None) or self._title(), **flags)[0]
            return path.read_bytes()

    def _title(self):
        return os.path.basename(os.path.abspath(self.paths[0])) if self.paths else 'run'

    def view(self, *, height=720, lang='en', dark=None):
        """Opens the viewer: in a notebook as a part of the page, else in the browser. It needs no server: the page
        holds the run. Its colours are those that the browser prefers; dark=True suits a notebook that is dark by itself."""
        from ._notebook import View
        return View(self, height, lang, dark)

    def close(self):
        """Gives the memory back that no table looks into."""
        self._run.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        raise TypeError('a Trace is not pickled: pickle its paths, and open them again')

    def _repr_html_(self):
        from ._notebook import trace_html
        return trace_html(self)


def diff(a, b):
    """Explains why a step of run b takes longer or shorter than one of run a."""
    return Diff(*_engine.diff(a._run, b._run))


@dataclasses.dataclass(frozen=True)
class AnalysisInfo:
    """An analysis: what it is asked of ('cells', 'slices', 'two runs', 'files'), its tables and options, and the columns
    of each table, which are known before it runs (options and what was recorded may add some)."""
    name: str
    summary: str
    needs: str
    compat: 'list[str]'
    format: str
    makes_overlay: bool
    tables: 'list[tuple[str, str]]'
    options: 'list[tuple[str, str, str, str]]'
    columns: 'dict[str, list[Column]]'


def analyses():
    """Lists the available analyses as AnalysisInfo."""
    return [AnalysisInfo(n, s, needs, [c for c in compat.split(',') if c], form, overlay, tables, options,
                         {table: columns_of(own) for (table, _), own in zip(tables, columns)})
            for n, s, needs, compat, form, overlay, tables, options, columns in _engine.analyses()]


def arguments_of(info):
    """The keywords that an analysis takes: those of analyze() that concern it, and its options."""
    own = [('table', True), ('compat', info.compat), ('include_last_profiler_step', info.compat), ('overlay', info.makes_overlay),
           ('test', info.needs == 'two runs'), ('format', info.format)]
    return [name for name, is_taken in own if is_taken] + [option[0].replace('-', '_') for option in info.options
                                                           if info.needs != 'two runs' or option[0] not in ('control', 'test')]


def _method_of(info):
    """trace.operators(…): the analysis as a method with its own signature."""
    def ask(self, **options):
        ask.__signature__.bind(self, **options)
        return self.analyze(info.name, **options)

    ask.__name__ = info.name.replace('-', '_')
    ask.__qualname__ = f'Trace.{ask.__name__}'
    ask.__signature__ = inspect.Signature(
        [inspect.Parameter('self', inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        + [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in arguments_of(info)])
    lines = [f'{info.summary[0].upper()}{info.summary[1:]}.', '', 'Tables:', *(f'    {name}: {help}' for name, help in info.tables)]
    if info.options:
        lines += ['', 'Options:', *(f"    {name.replace('-', '_')}: {help}" for name, _, help, _ in info.options)]
    ask.__doc__ = '\n'.join(lines)
    return ask


for _info in analyses():
    setattr(Trace, _info.name.replace('-', '_'), _method_of(_info))


def versions():
    """Versions of stageline, of Python, and of the libraries that tables can be turned into, where they are installed."""
    import platform
    from importlib import metadata
    out = {'stageline': _engine.version, 'python': platform.python_version()}
    for name in ('pandas', 'polars', 'pyarrow', 'numpy', 'duckdb'):
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            out[name] = None
    return out


def from_arrow(table, *, columns=None, units=None, **open_options):
    """A run from a table of operations: any object with __arrow_c_stream__ (pyarrow, polars, DuckDB, pandas ≥ 3).

    The columns and their units are those of docs/formats/op-table.md; `columns` renames: {'duration_ms': 'dur'}. They are
    written to a temporary CSV file that the op-table reader takes, so a table means what the same rows in a file mean.
    """
    import csv
    import shutil
    import tempfile
    import weakref
    import pyarrow
    rows = pyarrow.table(table)
    names = [(columns or {}).get(n, n) for n in rows.column_names]
    if units:
        unknown = set(units) - set(names)
        if unknown:
            raise _usage(f'units of columns that are not there: {", ".join(sorted(unknown))}', f'there are {", ".join(names)}')
        names = [f'{n}_{units[n]}' if n in units else n for n in names]
    folder = tempfile.mkdtemp(prefix='stageline-')
    path = os.path.join(folder, 'table.csv')
    with builtins.open(path, 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for batch in rows.to_batches():
            writer.writerows(zip(*(['' if v is None else v for v in column.to_pylist()] for column in batch.columns)))
    try:
        trace = open(path, **open_options)
    except BaseException:
        shutil.rmtree(folder, True)
        raise
    weakref.finalize(trace, shutil.rmtree, folder, True)  # outputs read it again
    return trace
