"""A stand-in for torch: the names that stageline.hooks looks for, and nothing behind them."""
from . import distributed  # noqa: F401
