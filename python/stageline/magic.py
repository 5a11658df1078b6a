"""The cell magic %%stageline: records what a cell does with stageline.record and shows what came of it.

    %load_ext stageline

    %%stageline
    train(steps=5)

The cell runs in the notebook's own process; stageline.record's calls in it, or in what it calls, are what is recorded.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import Trace


def stageline_cell(shell: Any, line: str, cell: str) -> Trace | None:
    """Runs `cell` recorded into a folder of its own and returns the opened run; `line`: a folder to keep the recording in."""
    import pathlib
    import tempfile

    import stageline
    from stageline import record
    if not cell.strip():
        print('stageline: the cell is empty; what is written below %%stageline is run and recorded')
        return None
    folder = pathlib.Path(line.strip()) if line.strip() else pathlib.Path(tempfile.mkdtemp(prefix='stageline-'))
    if not record.init(str(folder)):
        return None  # record says why, on stderr
    try:
        done = shell.run_cell(cell)
    finally:
        taken = record.stats()['records']
        record.shutdown()
    if done.error_in_exec or done.error_before_exec:
        return None  # the cell's own error is shown already
    if not taken:
        print('stageline: this cell recorded nothing; record.job(…) and record.range(…) in it, or in what it calls, are recorded')
        return None
    return stageline.open(folder)


def register(shell: Any) -> None:
    def magic(line: str, cell: str) -> Trace | None:
        return stageline_cell(shell, line, cell)
    magic.__doc__ = stageline_cell.__doc__
    shell.register_magic_function(magic, 'cell', 'stageline')
