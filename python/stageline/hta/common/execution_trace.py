"""Chakra execution traces. `stageline.open` reads them with the profiles that they belong to (docs/formats/chakra.md); HTA's way through
the package param is not offered."""
import stageline


class ExecutionTrace:
    def __init__(self, *args, **kwargs):
        _refuse()


def _refuse():
    raise stageline.Unavailable('stageline.hta takes no execution traces: open them beside their profiles with stageline.open')


def load_execution_trace(et_file):
    _refuse()


def correlate_execution_trace(trace, rank, et):
    _refuse()


def add_et_column(trace_df, et, column):
    _refuse()
