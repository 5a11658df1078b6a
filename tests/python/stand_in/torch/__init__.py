"""A stand-in for torch: the names that stageline.hooks looks for, and nothing behind them."""
from . import distributed  # noqa: F401

_grad = [True]


def is_grad_enabled():
    return _grad[0]


class no_grad:
    def __enter__(self):
        self._before, _grad[0] = _grad[0], False

    def __exit__(self, *_):
        _grad[0] = self._before
