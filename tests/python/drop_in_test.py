"""stageline.record in the place of torch.cuda.nvtx, torch_npu.npu.mstx and torch.profiler.record_function."""
import unittest

import slrec
from recorded import Recorded, flaws, info, needs_extension

# `stageline info` needs one cell at least.
BEGIN = 'from stageline import record\nrecord.init(rank=0)\nwith record.job("F", 0, 0): pass\n'
# A torch whose device is in use. Its streams have no driver here, so each range on one is counted as refused.
TORCH = '''
import sys, types
class Stream:
    cuda_stream = 0x7f00
torch = sys.modules['torch'] = types.ModuleType('torch')
torch.version = types.SimpleNamespace(hip=None)
torch.cuda = types.SimpleNamespace(is_initialized=lambda: True, current_stream=Stream)
'''


@needs_extension
class DropIn(Recorded):
    def rows(self):
        return slrec.rows(next(self.out.glob('*.slrec')))

    def names(self, kind='range'):
        return [row.name for row in self.rows() if row.type == kind and not row.kind]

    def test_nvtx(self):
        self.python(BEGIN + '''
import threading
from stageline.record import nvtx
assert nvtx.range_pop() == -1                   # nothing is open
assert [nvtx.range_push('outer'), nvtx.range_push('inner')] == [0, 1]
threading.Thread(target=lambda: nvtx.range_push('elsewhere') or nvtx.range_pop()).start()
assert [nvtx.range_pop(), nvtx.range_pop()] == [1, 0]
number = nvtx.range_start('started')
other = threading.Thread(target=nvtx.range_end, args=(number,)); other.start(); other.join()
nvtx.range_end(number); nvtx.range_end(12345)   # the first has ended, the second never began
with nvtx.range('step {} of {n}', 3, n=9):
    nvtx.mark('a mark')
try:
    with nvtx.range('fails'):
        raise KeyError
except KeyError:
    pass
''')
        self.assertEqual(sorted(self.names()), ['elsewhere', 'fails', 'inner', 'outer', 'started', 'step 3 of 9'])
        self.assertEqual(self.names('mark'), ['a mark'])
        self.assertNotIn('recording.bad_handle', flaws(info(self.out)))

    def test_mstx(self):
        self.python(BEGIN + '''
from stageline.record.mstx import mstx
from stageline.record import mstx as module
mstx.range_end(mstx.range_start('plain'))
first = mstx.range_start('in a domain', domain='pp')
second = mstx.range_start('overlaps', None, 'pp')
mstx.range_end(first, 'pp'); mstx.range_end(second, domain='pp')
mstx.mark('a mark'); module.mark('another', domain='pp')
@mstx.mstx_range('wrapped')
def twice(x):
    return 2 * x
assert twice(4) == 8
mstx.range_end(0); mstx.range_end(99)
''')
        rows = {row.name: row for row in self.rows() if not row.kind}
        self.assertEqual(set(rows), {'plain', 'in a domain', 'overlaps', 'wrapped', 'a mark', 'another'})
        self.assertEqual(rows['in a domain'].lane, rows['another'].lane)
        self.assertNotEqual(rows['in a domain'].lane, rows['plain'].lane)

    def test_record_function(self):
        self.python(BEGIN + '''
from stageline.record import record_function
with record_function('forward'):
    with record_function('layer', '3'):
        pass
@record_function('wrapped')
def once():
    return 1
assert once() + once() == 2
''')
        self.assertEqual(sorted(self.names()), ['forward', 'layer 3', 'wrapped', 'wrapped'])

    def test_ranges_lie_on_the_current_stream_two_deep(self):
        self.python(BEGIN + TORCH + '''
from stageline.record import nvtx, mstx, record_function
for name in ('one', 'two', 'three', 'four'):
    nvtx.range_push(name)
for _ in range(4):
    nvtx.range_pop()
with record_function('alone'):
    pass
mstx.range_end(mstx.range_start('on a stream', Stream()))
mstx.range_end(mstx.range_start('on the host'))
''')
        self.assertEqual(flaws(info(self.out))['recording.device_refused']['count'], 4)  # one, two, alone, on a stream

    def test_without_a_recording_they_do_nothing(self):
        self.python('''
from stageline.record import nvtx, mstx, record_function
assert nvtx.range_push('x') == 0 and nvtx.range_pop() == 0
assert nvtx.range_start('x') == 0
nvtx.range_end(0); nvtx.mark('x'); mstx.mark('x'); mstx.range_end(mstx.range_start('x'))
with nvtx.range('x'), record_function('x'):
    pass
from stageline.record import _drop_in
assert not _drop_in._started
''')
        self.assertFalse(self.out.exists())


if __name__ == '__main__':
    unittest.main()
