"""Keywords as the flags of the program: one declaration says what both take."""
import datetime
import os

from . import _engine

_flags = {}


def _flags_of(command):
    if command not in _flags:
        _flags[command] = {name: value for name, value, _, _ in _engine.flags(command)}
    return _flags[command]


def time_text(value):
    """A point or length of time as the program reads it: whole numbers are nanoseconds."""
    if value is None:
        return ''
    if isinstance(value, str):
        return value
    if isinstance(value, datetime.timedelta):
        value = (value.days * 86_400 + value.seconds) * 1_000_000_000 + value.microseconds * 1000
    return f'{int(value)}ns'


def _range_text(value, one):
    if isinstance(value, str):
        return value
    if isinstance(value, slice):
        if value.step is not None:
            raise _usage('a range of steps has no stride', 'steps=(3, 5) is steps 3 to 5')
        return f'{one(value.start)}:{one(value.stop)}'
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise _usage(f'{value!r} is no range', 'a range is (first, last), both included')
        return f'{one(value[0])}:{one(value[1])}'
    return one(value)


def _usage(what, hint):
    error = _engine.UsageError(what + (f'\n  hint: {hint}' if hint else ''))
    error.what, error.where, error.hint, error.code = what, '', hint, 'usage'
    return error


def _bad_input(what, file):
    error = _engine.BadInput(f'{file}: {what}')
    error.what, error.where, error.hint, error.code = what, os.fspath(file), '', 'bad_input'
    return error


def _mapping_text(value):
    """Writes {'stage': 3, 'by': 0.9} as stage=3,by=0.9."""
    return ','.join(f'{k}={v}' for k, v in value.items())


def _one(value):
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, dict):
        return _mapping_text(value)
    if isinstance(value, datetime.timedelta):
        return time_text(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


_REPEATED = {'scale', 'align-on', 'fault'}
_TIMES = {'latency'}


def words(command, keywords):
    """['--pp=4', '--steps=3:5', …] of {'pp': 4, 'steps': (3, 5)}; None leaves a flag out."""
    known = _flags_of(command)
    out = []
    for key, value in keywords.items():
        name = key.replace('_', '-').rstrip('-')
        if value is None:
            continue
        if known.get(name) == '':  # a switch
            if value not in (True, False):
                raise _usage(f'{key} is True or False, not {value!r}', '')
            if value:
                out.append(f'--{name}')
            continue
        if name == 'steps':
            value = _range_text(value, lambda v: '' if v is None else str(v))
        elif name == 'range':
            value = _range_text(value, time_text)
        elif name in _TIMES:
            value = time_text(value)
        elif name in _REPEATED:
            values = [value] if isinstance(value, (str, dict)) else list(value)
            out += [f'--{name}=' + (':'.join(map(str, v)) if isinstance(v, (tuple, list)) else _one(v)) for v in values]
            continue
        elif isinstance(value, (list, tuple, set, frozenset)) or (hasattr(value, '__iter__') and not isinstance(value, (str, bytes, dict))):
            value = ','.join(_one(v) for v in value)
            if not value:
                continue
        out.append(f'--{name}={_one(value)}')
    return out
