"""Snapshots of PyTorch's allocator: sums, replay, out-of-memory, eras, other forms, damage."""
import csv
import gzip
import io
import json
import pathlib
import pickle
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import memory_snapshot as ms
from support import SHARED, flaws, info, needs_shared, run


def table(path, name, *options):
    return list(csv.DictReader(io.StringIO(run('analyze', 'allocator-snapshot', path, '--table', name, '--format', 'csv', '-q', *options, check=0).out)))


def segsum(snapshot):
    """Returns the sums that torch.cuda._memory_viz prints for a snapshot, recomputed."""
    out = dict(reserved_bytes=0, allocated_bytes=0, free_internal_bytes=0, free_external_bytes=0)
    for segment in snapshot['segments']:
        out['reserved_bytes'] += segment['total_size']
        for block in segment['blocks']:
            if block['state'] == 'active_allocated':
                asked = block['history'][0]['real_size'] if 'history' in block else block['requested_size']
                out['allocated_bytes'] += asked
                out['free_internal_bytes'] += block['size'] - asked
            else:
                out['free_external_bytes'] += block['size']
    assert out['reserved_bytes'] == sum(v for k, v in out.items() if k != 'reserved_bytes')
    return out


class MemorySnapshotTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)
        self.addCleanup(self.temp.cleanup)

    def write(self, name='rank0.pickle', **options):
        path = self.folder / name
        return path, ms.write(path, **options)

    def test_diff_says_what_compares_snapshots(self):
        path, _ = self.write()
        said = run('diff', path, path, check=2).err
        self.assertIn('no step times', said)
        self.assertIn('stageline view A --compare B', said)

    def test_sums_equal_torchs_in_every_form(self):
        for name, options in {'plain': {}, 'old': {'old': True}, 'json': {'as_json': True}, 'protocol2': {'protocol': 2}, 'protocol5': {'protocol': 5}, 'zeros': {'zeros': 64},
                              'expandable': {'expandable': True}, 'high': {'base': (1 << 63) + (1 << 40)}}.items():
            with self.subTest(name):
                path, allocator = self.write(f'{name}.pickle', **options)
                report = info(path)
                self.assertEqual((report['format'], report['ranks']), ('memory-snapshot', 1))
                sums = table(path, 'allocator-sums')
                self.assertEqual(len(sums), 1)
                for key, value in segsum(allocator.snapshot(options.get('old', False))).items():
                    self.assertEqual(int(sums[0][key]), value, key)
                self.assertEqual(int(sums[0]['peak_bytes']), allocator.peak)

    def test_the_history_ends_in_what_is_held(self):
        path, allocator = self.write()
        rows = table(path, 'allocator-timeline')
        self.assertEqual(int(rows[-1]['allocated_bytes']), allocator.held)
        self.assertEqual(int(rows[-1]['reserved_bytes']), sum(allocator.segments.values()))
        held = 4 * (3 * ms.MIB + 100)
        for row in rows:
            held += int(row['bytes']) if row['action'] in ('alloc', 'free_completed') else 0
            self.assertEqual(int(row['allocated_bytes']), held)
        categories = {r['category']: r for r in table(path, 'allocator-categories')}
        self.assertEqual(int(categories['before']['at_end_bytes']), 4 * (3 * ms.MIB + 100))
        self.assertEqual(int(categories['optimizer_state']['allocations']), 4)
        self.assertEqual(int(categories['activation']['at_end_bytes']), 0)
        self.assertEqual(sum(int(c['at_peak_bytes']) for c in categories.values()), allocator.peak)
        stacks = table(path, 'allocator-stacks')
        self.assertEqual(sum(int(s['at_peak_bytes']) for s in stacks), allocator.peak)
        self.assertTrue(any(s['stack'].startswith('/job/train.py(10): forward;/job/train.py(90): main') for s in stacks))

    def test_the_curve_splits_what_is_held_by_category_and_by_stack(self):
        for options in ({}, {'oom': 'fragmented'}, {'categories': False}):
            with self.subTest(str(options)):
                path, allocator = self.write(**options)
                rows = [{key: int(value) for key, value in row.items() if value} for row in table(path, 'allocator-curve')]
                categories = ('parameter', 'optimizer_state', 'input', 'activation', 'gradient', 'autograd_detail', 'temporary', 'before', 'unknown')
                for row in rows:
                    self.assertEqual(sum(row[f'{name}_bytes'] for name in categories), row['allocated_bytes'])
                    self.assertEqual(sum(value for key, value in row.items() if key.startswith('stack_')), row['allocated_bytes'])
                self.assertEqual(max(row['allocated_bytes'] for row in rows), allocator.peak)
                self.assertEqual(rows[0]['allocated_bytes'], rows[0]['before_bytes'])
                stacks = table(path, 'allocator-stacks')
                peak = next(row for row in rows if row['allocated_bytes'] == allocator.peak)
                self.assertEqual([peak[f'stack_{k + 1}_bytes'] for k in range(len(stacks))], [int(one['at_peak_bytes']) for one in stacks])
                # Events, thinned or not, are at most one row each: here every event is in a stretch of its own.
                held = [int(row['allocated_bytes']) for row in table(path, 'allocator-timeline') if row['action'] in ('alloc', 'free_completed')]
                self.assertTrue(set(held) <= {row['allocated_bytes'] for row in rows})

    def test_the_curve_of_a_long_history_is_thinned_and_keeps_its_peak(self):
        path, allocator = self.write(steps=300)
        rows = table(path, 'allocator-curve')
        self.assertLessEqual(len(rows), 401)
        self.assertEqual(max(int(row['allocated_bytes']) for row in rows), allocator.peak)

    def test_records_without_addresses_have_no_categories(self):
        """torch 1.9 and before: no block is ever freed by its address, so sums by category would pass what was allocated."""
        def trace(with_addresses):
            memory = [{'ph': 'i', 's': 't', 'name': '[memory]', 'pid': 1, 'tid': 1, 'ts': 10 + k,
                       'args': {'Device Type': 1, 'Device Id': 0, 'Bytes': 1 << 20 if k % 2 == 0 else -(1 << 20), **({'Addr': 4096} if with_addresses else {})}} for k in range(20)]
            op = {'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::empty', 'pid': 1, 'tid': 1, 'ts': 5, 'dur': 50, 'args': {}}
            path = self.folder / f'rank-{with_addresses}.json'
            path.write_text(json.dumps({'schemaVersion': 1, 'distributedInfo': {'rank': 0, 'world_size': 1}, 'traceEvents': [op, *memory]}))
            return json.loads(run('analyze', 'memory-categories', path, '--format', 'json', '-q', check=0).out)
        with_them, without = trace(True), trace(False)
        peaks = [next(table for table in answer['tables'] if table['name'] == 'memory-category-peaks')['rows'] for answer in (with_them, without)]
        self.assertEqual(peaks[0][0]['total_bytes'], 1 << 20)
        self.assertEqual(peaks[1], [])
        self.assertIn('memory.no_addresses', [note['name'] for note in without['notes']])
        self.assertNotIn('memory.no_addresses', [note['name'] for note in with_them['notes']])

    def test_why_memory_ran_out(self):
        for reason in ('full', 'fragmented', 'split', 'elsewhere'):
            with self.subTest(reason):
                path, allocator = self.write(f'{reason}.pickle', oom=reason)
                rows = table(path, 'allocator-ooms')
                self.assertEqual([r['reason'] for r in rows], [reason])
                said = next(e for e in allocator.trace if e['action'] == 'oom')
                self.assertEqual((int(rows[0]['wanted_bytes']), int(rows[0]['device_free_bytes'])), (said['size'], said['device_free']))
                self.assertEqual(int(table(path, 'allocator-sums')[0]['ooms']), 1)
        free = int(table(self.folder / 'fragmented.pickle', 'allocator-ooms')[0]['free_bytes'])
        self.assertGreaterEqual(free, 19 * ms.MIB)

    def test_only_memory_that_a_request_can_use_is_free_for_it(self):
        """3 MiB are refused with 2.5 MiB free, and with memory that such a request cannot use."""
        half, base = ms.MIB // 2, 0x7F0000000000

        def segment(address, kind, *blocks):
            made, at = [], address
            for size, requested in blocks:
                made.append({'address': at, 'size': size * half, 'requested_size': requested * half, 'state': 'active_allocated' if requested else 'inactive', 'frames': []})
                at += size * half
            return {'device': 0, 'address': address, 'total_size': at - address, 'stream': 0, 'segment_type': kind, 'segment_pool_id': (0, 0), 'is_expandable': False, 'frames': [], 'blocks': made}
        large = segment(base, 'large', (34, 34), (5, 0), (1, 1))
        other = base + 64 * ms.MIB
        freed = {'action': 'free_completed', 'addr': other, 'size': 39 * half, 'stream': 0, 'time_us': 1_795_382_536_000_010, 'frames': []}
        cases = {'in segments for small requests': ([large, segment(other, 'small', (1, 1), (3, 0))], 0, []),
                 'left of a block by rounding': ([large, segment(other, 'large', (40, 0))], 0, [freed]),
                 'on the device, less than a segment': ([large], 4 * ms.MIB, [])}
        for name, (segments, left, later) in cases.items():
            path = self.folder / 'rank0.pickle'
            oom = {'action': 'oom', 'size': 6 * half, 'device_free': left, 'stream': 0, 'time_us': 1_795_382_536_000_000, 'frames': []}
            path.write_bytes(pickle.dumps({'segments': segments, 'device_traces': [[oom, *later]], 'allocator_settings': {}, 'external_annotations': []}))
            row, = table(path, 'allocator-ooms')
            self.assertEqual((row['reason'], int(row['free_bytes'])), ('full', 5 * half), name)

    def test_explain_says_it_in_sentences_and_fails_on_it(self):
        for reason, words in (('full', 'was too little'), ('fragmented', 'in pieces of at most'), ('split', 'The request would fit only with'), ('elsewhere', 'another memory pool')):
            path, _ = self.write(f'{reason}.pickle', oom=reason)
            out = ' '.join(run('explain', path, check=0).out.split())
            self.assertIn('Memory ran out on device 0', out)
            self.assertIn(words, out)
            self.assertIn('The request was made at /job/train.py(', out)
            self.assertNotIn('ProfilerActivity', out)
            run('report', path, '-o', self.folder / 'r.html', '--fail-on', 'memory.oom', check=1)
        calm, _ = self.write('calm.pickle')
        self.assertIn('No out-of-memory error', run('explain', calm, check=0).out)
        run('report', calm, '-o', self.folder / 'r.html', '--fail-on', 'memory.oom', check=0)

    def test_without_times_events_stand_in_their_order(self):
        path, _ = self.write(times=False)
        self.assertIn('memory_snapshot.no_times', flaws(info(path)))
        times = [int(r['time_ns']) for r in table(path, 'allocator-timeline')]
        self.assertEqual(times, sorted(times))

    def test_no_history_is_known(self):
        path = self.folder / 'a.pickle'
        snapshot = ms.make().snapshot()
        path.write_bytes(pickle.dumps({**snapshot, 'device_traces': [[]]}))
        self.assertIn('memory_snapshot.no_history', flaws(info(path)))
        self.assertEqual(int(table(path, 'allocator-sums')[0]['allocated_bytes']), segsum(snapshot)['allocated_bytes'])

    def test_a_list_of_segments_alone(self):
        path = self.folder / 'old.pickle'
        snapshot = ms.make().snapshot(old=True)
        path.write_bytes(pickle.dumps(snapshot['segments']))
        self.assertEqual(info(path)['format'], 'memory-snapshot')
        self.assertEqual(int(table(path, 'allocator-sums')[0]['allocated_bytes']), segsum(snapshot)['allocated_bytes'])

    def test_names_say_the_ranks(self):
        for rank in (3, 1):
            self.write(f'rank{rank}_memory_snapshot.pickle')
        self.assertEqual([p['rank'] for p in info(self.folder)['parts']], [1, 3])

    def test_every_cut_is_survived(self):
        path, _ = self.write()
        whole = path.read_bytes()
        cut = self.folder / 'cut.pickle'
        for at in range(2, len(whole), 211):
            cut.write_bytes(whole[:at])
            done = run('info', cut, '--json')
            self.assertIn(done.returncode, (0, 2), at)
            if done.returncode == 0:
                self.assertIn('memory_snapshot.damaged', {d['name'] for d in json.loads(done.out)['diagnostics']}, at)

    def test_more_than_plain_data_is_refused_by_its_opcode(self):
        path = self.folder / 'bad.pickle'
        path.write_bytes(pickle.dumps({'segments': [], 'device_traces': [[]], 'total_size': pathlib.PurePosixPath('x')}, 4))
        err = run('info', path, '--reader', 'memory-snapshot', check=2).err
        self.assertRegex(err, 'GLOBAL|REDUCE|NEWOBJ')

    def test_compressed_snapshots_are_the_same(self):
        path, _ = self.write()
        packed = self.folder / 'p.pickle.gz'
        packed.write_bytes(gzip.compress(path.read_bytes()))
        self.assertEqual(table(path, 'allocator-sums'), table(packed, 'allocator-sums'))

    @needs_shared
    def test_a_profile_made_into_a_snapshot_by_torch(self):
        path = SHARED / 'imports/memory_snapshot/cpu_snapshot.pickle'
        snapshot = pickle.loads(path.read_bytes())
        sums = table(path, 'allocator-sums')[0]
        for key, value in segsum(snapshot).items():
            self.assertEqual(int(sums[key]), value, key)
        self.assertEqual(int(sums['reserved_bytes']), 143_713_152)
        rows = table(path, 'allocator-timeline')
        self.assertEqual((sum(r['action'] == 'alloc' for r in rows), sum(r['action'] == 'free_completed' for r in rows)), (68, 64))
        self.assertEqual(int(rows[-1]['allocated_bytes']), segsum(snapshot)['allocated_bytes'])
        self.assertEqual({r['category']: int(r['allocations']) for r in table(path, 'allocator-categories') if int(r['allocations'])},
                         {'optimizer_state': 16, 'temporary': 12, 'input': 10, 'activation': 10, 'gradient': 8, 'parameter': 8, 'autograd_detail': 4})


if __name__ == '__main__':
    unittest.main()
