"""Conditions on slices, answered by the engine and never row by row in Python.

    from stageline import f
    trace.slices(where=f.name.contains('nccl') & f.rank.isin([0, 3]) & ~f.step.between(0, 2))
    trace.slices(where=f.under('aten::linear') & f.on_device)
"""
from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NoReturn, Tuple

# (kind, column, values, low, high, parts), as the engine takes it
_Node = Tuple[str, str, Tuple[object, ...], int, int, Tuple[Any, ...]]


def _node(kind: str, column: str = '', values: Iterable[object] = (), low: int = 0, high: int = 0, parts: Iterable[_Node] = ()) -> _Node:
    return (kind, column, tuple(values), low, high, tuple(parts))


def _named(kind: str, names: Sequence[str], occurrence: int | None) -> _Node:
    if occurrence is None:
        return _node(kind, values=names)
    return _node(kind, 'occurrence', names, low=operator.index(occurrence))


class Filter:
    """Holds a condition; & | ~ join conditions."""
    __slots__ = ('node',)

    def __init__(self, node: _Node) -> None:
        self.node: _Node = node

    def __and__(self, other: Filter) -> Filter:
        return Filter(_node('and', parts=(self.node, _taken(other))))

    def __or__(self, other: Filter) -> Filter:
        return Filter(_node('or', parts=(self.node, _taken(other))))

    def __invert__(self) -> Filter:
        return Filter(_node('not', parts=(self.node,)))

    def __bool__(self) -> NoReturn:
        raise TypeError('conditions are joined by & | ~, not by and, or, not')

    def __repr__(self) -> str:
        return f'Filter({_text(self.node)})'


def _taken(other: object) -> _Node:
    if not isinstance(other, Filter):
        raise TypeError(f'{other!r} is no condition; conditions are made of stageline.f')
    return other.node


def _text(node: _Node) -> str:
    kind, column, values, low, high, parts = node
    if kind in ('and', 'or'):
        return '(' + f' {"&" if kind == "and" else "|"} '.join(map(_text, parts)) + ')'
    if kind == 'not':
        return f'~{_text(parts[0])}'
    if kind == 'between':
        return f'f.{column}.between({low}, {high})'
    if kind in ('under', 'before', 'after'):
        words = [*map(repr, values), *([f'occurrence={low}'] if column else [])]
        return f'f.{kind}({", ".join(words)})'
    return f'f.{column}.{ {"numbers": "isin", "texts": "isin"}.get(kind, kind)}({list(values)!r})'


_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class _Numbers:
    def __init__(self, column: str) -> None:
        self.column: str = column

    def isin(self, values: Iterable[int]) -> Filter:
        return Filter(_node('numbers', self.column, [int(v) for v in values]))

    def between(self, low: int | None, high: int | None) -> Filter:
        """Both ends are included; None leaves one open."""
        return Filter(_node('between', self.column, (), _LEAST if low is None else int(low), _MOST if high is None else int(high)))

    def __eq__(self, value: int) -> Filter:  # type: ignore[override]
        return self.isin([value])

    def __ne__(self, value: int) -> Filter:  # type: ignore[override]
        return ~self.isin([value])

    def __ge__(self, value: int) -> Filter:
        return self.between(value, None)

    def __gt__(self, value: int) -> Filter:
        return self.between(int(value) + 1, None)

    def __le__(self, value: int) -> Filter:
        return self.between(None, value)

    def __lt__(self, value: int) -> Filter:
        return self.between(None, int(value) - 1)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]


class _Texts:
    def __init__(self, column: str) -> None:
        self.column: str = column

    def isin(self, values: str | Iterable[str]) -> Filter:
        return Filter(_node('texts', self.column, [values] if isinstance(values, str) else [str(v) for v in values]))

    def contains(self, *parts: str) -> Filter:
        """Holds one of these."""
        return Filter(_node('contains', self.column, parts))

    def glob(self, *patterns: str) -> Filter:
        """Fits one of these: * is any text, ? any letter."""
        return Filter(_node('glob', self.column, patterns))

    def matches(self, *expressions: str) -> Filter:
        """Matches if one of these regular expressions occurs in it; ^ and $ are its ends, letters match either case.
        There are . [a-z] [^…] \\d \\w \\s ( ) | * + ?: the engine's time is bounded by expression and text."""
        return Filter(_node('matches', self.column, expressions))

    def __eq__(self, value: str) -> Filter:  # type: ignore[override]
        return self.isin([value])

    def __ne__(self, value: str) -> Filter:  # type: ignore[override]
        return ~self.isin([value])

    __hash__: ClassVar[None] = None  # type: ignore[assignment]


class _Columns:
    rank: _Numbers = _Numbers('rank')
    step: _Numbers = _Numbers('step')
    stream: _Numbers = _Numbers('stream')
    start_ns: _Numbers = _Numbers('start_ns')
    end_ns: _Numbers = _Numbers('end_ns')
    dur_ns: _Numbers = _Numbers('dur_ns')
    name: _Texts = _Texts('name')
    category: _Texts = _Texts('category')
    lane: _Texts = _Texts('lane')
    kernel_class: _Texts = _Texts('class')

    @staticmethod
    def under(*names: str, occurrence: int | None = None) -> Filter:
        """Matches calls below a slice with one of these names, at any depth, or launched in there. `occurrence`: only
        below that one of its name in its
        step (and rank), by start, from 0; -1 is the last."""
        return Filter(_named('under', names, occurrence))

    @staticmethod
    def before(*names: str, occurrence: int | None = None) -> Filter:
        """Had ended when the first slice of one of these names in the same step (and rank) began; of device work its launch counts.
        `occurrence`: before that one of its name in its step instead."""
        return Filter(_named('before', names, occurrence))

    @staticmethod
    def after(*names: str, occurrence: int | None = None) -> Filter:
        """Began once the last such slice of the same step had ended, or the one that `occurrence` names."""
        return Filter(_named('after', names, occurrence))

    @staticmethod
    def time(low: int, high: int) -> Filter:
        """Runs at some time from `low` to `high` (ns, as start_ns counts)."""
        return (_Columns.start_ns <= high) & (_Columns.end_ns >= low)

    @property
    def on_device(self) -> Filter:
        """Work of a device: computation, communication, memory, other."""
        return self.kernel_class.isin(['COMPUTATION', 'COMMUNICATION', 'MEMORY', 'OTHER'])

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f'slices have no column {name!r} to choose by; there are rank, step, stream, start_ns, end_ns, dur_ns, name, '
                             'category, kernel_class, lane, and on_device, under(…), before(…), after(…), time(…)')


f: _Columns = _Columns()
