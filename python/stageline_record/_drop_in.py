"""Implements the drop-ins for marks that programs have already: nvtx, mstx, record_function.

As in the injections of NVTX and mstx, ranges at most two deep are on the current stream, with the device's times.
Deeper ones are on the thread; those that name a stream or a domain are there."""
import functools
import itertools
import sys
import threading

from . import _core, lane, pop, push
from . import range as _range

_ON_DEVICE = 2
_own = threading.local()
_started = {}  # number → the range; what is never ended stays
_numbers = itertools.count(1)


def device_lane():
    """The lane of the current stream of torch's device; None (the thread's) where there is no device in use."""
    torch = sys.modules.get('torch')
    for name in ('cuda', 'npu'):
        device = getattr(torch, name, None)
        if device is not None and device.is_initialized():
            return lane(device.current_stream())
    return None


def domain_lane(domain):
    """A lane of the thread and domain; the default domain has none of its own."""
    if domain in (None, '', 'default'):
        return None
    lanes = _own.__dict__.setdefault('domains', {})
    if domain not in lanes:
        lanes[domain] = lane(name=domain)
    return lanes[domain]


def _open():
    return _own.__dict__.setdefault('open', [])


def push_range(text):
    """Starts a range; returns how many were open on this thread before."""
    here = _open()
    where = device_lane() if len(here) < _ON_DEVICE else None
    here.append(where)
    push(str(text), where)
    return len(here) - 1


def pop_range():
    """The same of the range that it ends; -1: none is open."""
    here = _open()
    if not here:
        return -1
    pop(here.pop())
    return len(here)


def start_range(text, where):
    """A number for end_range(), on any thread; 0 where nothing is recorded, so that nothing is kept either."""
    if not _core.stats()['recording']:
        return 0
    number = next(_numbers)
    _started[number] = _range(str(text), where).begin()
    return number


def end_range(number):
    begun = _started.pop(number, None)
    if begun is not None:
        begun.end()


class record_function:
    """torch.profiler.record_function's place: `with record_function('forward'):`, or a decorator."""

    def __init__(self, name, args=None):
        self.name = name if args is None else f'{name} {args}'

    def __enter__(self):
        push_range(self.name)
        return self

    def __exit__(self, *_):
        pop_range()
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def marked(*args, **kwargs):
            with record_function(self.name):
                return function(*args, **kwargs)
        return marked
