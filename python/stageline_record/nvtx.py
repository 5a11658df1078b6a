"""In the place of torch.cuda.nvtx: the same calls, recorded.

    from stageline_record import nvtx          # instead of: from torch.cuda import nvtx
"""
import contextlib

from . import mark as _mark
from ._drop_in import end_range, pop_range, push_range, start_range

__all__ = ['range_push', 'range_pop', 'range_start', 'range_end', 'mark', 'range']


def range_push(msg):
    return push_range(msg)


def range_pop():
    return pop_range()


def range_start(msg):
    return start_range(msg, None)


def range_end(range_id):
    end_range(range_id)


def mark(msg):
    _mark(str(msg))


@contextlib.contextmanager
def range(msg, *args, **kwargs):  # noqa: A001
    range_push(str(msg).format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
