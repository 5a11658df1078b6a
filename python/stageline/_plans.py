"""Schedules at given costs, and runs that never were."""
import csv
import io
import json
import os
import shutil
import tempfile
import weakref

from . import _engine
from ._table import Table
from ._words import words


class Schedule:
    """An order of work and what it costs: .ranks is a table, .order the list of every rank, .to_dict() the figures; str() draws it."""

    def __init__(self, reported, text, order, frames):
        self._values, self._text, self._order = json.loads(reported), text, order
        self.ranks = Table(frames[0])

    def __getattr__(self, name):
        if name.startswith('_') or name not in self._values or name == 'table':
            raise AttributeError(f'a Schedule has no {name!r}')
        return self._values[name]

    def __dir__(self):
        return [*(k for k in self._values if k != 'table'), 'ranks', 'order', 'to_csv', 'to_dict']

    @property
    def order(self):
        """The rows of to_csv(), each a list of texts: the work of each stage in its order; with format='torch' a list a rank."""
        rows = list(csv.reader(io.StringIO(self._order)))
        return [[cell for cell in row if cell] for row in rows if row and not row[0].startswith('#')]

    def to_csv(self):
        """The order as `stageline schedule --format csv` prints it, or, if it was made with format='torch', as torch reads it."""
        return self._order

    def to_dict(self):
        return {k: v for k, v in self._values.items() if k != 'table'}

    def __str__(self):
        return self._text

    __repr__ = __str__

    def _repr_html_(self):
        from ._notebook import table_html
        return table_html(self.ranks, f'{self.schedule}: {self.stages} stages, {self.micro_batches} micro-batches')


def schedule(name=None, stages=None, micro_batches=None, **flags):
    """A schedule by its name, replayed: cost='10,20', latency='1ms', chunks=2 … as `stageline schedule`. from_csv reads an order.

        stageline.schedule('1f1b', 4, 8).span_bubble_ns
    """
    asked = words('schedule', {'stages': stages, 'micro_batches': micro_batches, **flags})
    return Schedule(*_engine.schedule([name] if name else [], asked))


class Plans:
    """The pipelines that fit, the best first: .plans and the other keys of `stageline plan --format json`; str() is its text."""

    def __init__(self, reported, text):
        self._values, self._text = json.loads(reported), text

    def __getattr__(self, name):
        if name.startswith('_') or name not in self._values:
            raise AttributeError(f'Plans have no {name!r}')
        return self._values[name]

    def __dir__(self):
        return [*self._values, 'to_dict']

    def __len__(self):
        return len(self._values['plans'])

    def __getitem__(self, index):
        return self._values['plans'][index]

    def __str__(self):
        return self._text

    def to_dict(self):
        return self._values


def plan(model=None, *, run=None, **flags):
    """The fastest pipelines that fit: `model` is a config.json or a dict of its keys; flags are those of `stageline plan`.

        stageline.plan('config.json', gpus=1024, memory='80GiB', seq=8192, global_batch=2048)[0]['step_ns']

    `run` is a recorded run, from which the times are taken.
    """
    described = None
    if isinstance(model, dict):
        with tempfile.NamedTemporaryFile('w', suffix='.json', delete=False) as file:
            json.dump(model, file)
        model = described = file.name
    try:
        asked = words('plan', {'from': None if run is None else os.fspath(run), **flags})
        return Plans(*_engine.plan([os.fspath(model)] if model is not None else [], asked))
    finally:
        if described:
            os.unlink(described)


def simulate(name=None, stages=None, micro_batches=None, *, out=None, open_options=None, **flags):
    """A run that never was, opened: faults, jitter and costs as `stageline simulate`. The logs go to the folder `out`, or to one that
    is removed with the Trace.

        trace = stageline.simulate('1f1b', 4, 8, steps=6, cost='10,20', fault='slow-stage:2,1.4', seed=7)
    """
    from ._trace import open as open_run
    folder = os.fspath(out) if out is not None else tempfile.mkdtemp(prefix='stageline-')
    try:
        asked = words('simulate', {'stages': stages, 'micro_batches': micro_batches, **flags, 'output': folder})
        _engine.simulate([name] if name else [], asked)
        trace = open_run(folder, **(open_options or {}))
    except BaseException:
        if out is None:
            shutil.rmtree(folder, True)
        raise
    if out is None:
        weakref.finalize(trace, shutil.rmtree, folder, True)  # outputs read it again
    return trace
