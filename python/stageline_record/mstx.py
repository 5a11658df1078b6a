"""In the place of torch_npu.npu.mstx: the same calls, recorded; ranges that name a stream have the device's times.

    from stageline_record.mstx import mstx          # instead of: from torch_npu.npu import mstx
"""
import functools

from . import lane as _lane
from . import mark as _mark
from ._drop_in import domain_lane, end_range, start_range


class mstx:
    @staticmethod
    def mark(message='', stream=None, domain='default'):
        _mark(str(message), domain_lane(domain))  # an instant has the host's time, whatever the stream

    @staticmethod
    def range_start(message, stream=None, domain='default'):
        return start_range(message, domain_lane(domain) if stream is None else _lane(stream))

    @staticmethod
    def range_end(range_id, domain='default'):
        end_range(range_id)

    @staticmethod
    def mstx_range(message, stream=None, domain='default'):
        def of(function):
            @functools.wraps(function)
            def marked(*args, **kwargs):
                number = mstx.range_start(message, stream, domain)
                try:
                    return function(*args, **kwargs)
                finally:
                    mstx.range_end(number)
            return marked
        return of


mark, range_start, range_end, mstx_range = mstx.mark, mstx.range_start, mstx.range_end, mstx.mstx_range
