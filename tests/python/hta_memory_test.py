"""stageline.hta: get_memory_timeline and get_memory_timeline_per_category, against a trace whose allocations are known. Skipped without pandas."""
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import HAVE_ENGINE  # noqa: E402

# µs from the first slice, device, address, bytes, total after it; before the recording 100 bytes of device 0 and 7 of device 1 were in use.
MEMORY = [(10, 0, 0x100, 64, 164), (20, 0, 0x200, 32, 196), (30, 0, 0x300, -40, 156), (40, 1, 0x100, 8, 15), (50, 0, 0x100, -64, 92), (60, 0, 0x100, 16, 108)]
SLICES = [('user_annotation', 'forward', 0, 25), ('cpu_op', 'aten::embedding', 5, 10), ('cpu_op', 'aten::mm', 18, 5), ('user_annotation', 'Optimizer.step', 35, 35),
          ('cpu_op', 'aten::addcdiv', 55, 10)]


def write(folder):
    events = [{'ph': 'X', 'cat': cat, 'name': name, 'pid': 1, 'tid': 1, 'ts': 1000 + ts, 'dur': dur, 'args': {}} for cat, name, ts, dur in SLICES]
    events += [{'ph': 'i', 's': 't', 'cat': 'cpu_instant_event', 'name': '[memory]', 'pid': 1, 'tid': 1, 'ts': 1000 + ts,
                'args': {'Total Reserved': 4096, 'Total Allocated': total, 'Bytes': size, 'Addr': address, 'Device Id': device, 'Device Type': 1}}
               for ts, device, address, size, total in MEMORY]
    path = pathlib.Path(folder) / 'rank-0.json'
    path.write_text(json.dumps({'traceEvents': events, 'distributedInfo': {'rank': 0}}))


@unittest.skipUnless(HAVE_ENGINE and importlib.util.find_spec('pandas'), 'no module, or no pandas')
class Memory(unittest.TestCase):
    def setUp(self):
        from stageline.hta.trace_analysis import TraceAnalysis
        with tempfile.TemporaryDirectory() as folder:
            write(folder)
            self.analysis = TraceAnalysis(trace_dir=folder)
            self.events = self.analysis.get_memory_timeline(visualize=False)
            self.timelines, self.classified = self.analysis.get_memory_timeline_per_category(visualize=False)
            self.by_op, _ = self.analysis.get_memory_timeline_per_category(0, False, lambda event: event['stack_name'].split(';')[-1])

    def test_timeline(self):
        columns = self.events[['ts', 'device_id', 'addr', 'bytes_delta', 'total_allocated']]
        self.assertEqual(columns.values.tolist(), [[ts * 1000, device, address, size, total] for ts, device, address, size, total in MEMORY])
        self.assertEqual(set(self.events['total_reserved']), {4096})

    def test_partners_are_of_one_size_address_and_device(self):
        partners = {i: at for own in self.classified.values() for i, at in own['alloc_or_dealloc_id'].dropna().items()}
        self.assertEqual(partners, {0: 4, 4: 0})

    def test_stacks_and_categories(self):
        kinds = {i: kind for own in self.classified.values() for i, kind in own['stack_type'].items() if i < len(MEMORY)}
        before = 'allocated_before_profile'
        self.assertEqual(kinds, {0: 'forward:embedding', 1: 'forward:unknown', 2: before, 3: 'optimizer:unknown', 4: 'forward:embedding', 5: 'optimizer:unknown'})
        self.assertEqual(self.classified[0]['stack_name'][0], 'forward;aten::embedding')

    def test_categories_add_up_to_what_is_allocated(self):
        for device, timeline in self.timelines.items():
            kinds = sorted(set(timeline['category']))
            curves = timeline.sort_values('ts', kind='stable')[['ts', 'is_plotting_event_only', *kinds]].ffill().fillna(0)
            curves = curves[~curves['is_plotting_event_only']].groupby('ts')[kinds].last().sum(axis=1)
            whole = {ts * 1000: total for ts, of, _, _, total in MEMORY if of == device}
            self.assertEqual({ts: curves[ts] for ts in whole}, whole)
            self.assertEqual(curves.iloc[0], {0: 100, 1: 7}[device])
            self.assertEqual((timeline['ms'] * 1e6).round().tolist(), timeline['ts'].tolist())

    def test_own_categories(self):
        self.assertEqual(set(self.by_op[0]['category']), {'allocated_before_profile', 'aten::embedding', 'aten::mm', 'aten::addcdiv'})


if __name__ == '__main__':
    unittest.main()
