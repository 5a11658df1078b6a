"""Perfetto traces: pairing, state, clocks, flows, counters, device work, ranks, JSON twins, our own export, damage."""
import csv
import io
import json
import pathlib
import random
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import nsys
import perfetto as pf
from perfetto import BEGIN, CLEARED, COUNTER, END, INSTANT, NEEDS, STATE, event, field, interned, message, packet, thread, track
from support import SHARED, flaws, info, needs_shared, run


def events(path, *options):
    return list(csv.DictReader(io.StringIO(run('analyze', 'events', path, '--table', 'events', '--format', 'csv', '-q', '--include-last-profiler-step', *options, check=0).out)))


def by_category(rows):
    out = {}
    for row in rows:
        count, ns = out.get(row['category'], (0, 0))
        out[row['category']] = (count + 1, ns + int(row['dur_ns']))
    return out


class PerfettoTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)
        self.addCleanup(self.temp.cleanup)

    def write(self, *packets, name='run.pftrace'):
        return pf.write(self.folder / name, *packets)

    def durations(self, *packets):
        """Name → durations of the slices, in order of start."""
        out = {}
        for row in events(self.write(thread(1, 5, 6, 't'), *packets)):
            out.setdefault(row['name'], []).append(int(row['dur_ns']))
        return out

    # ---- which end closes which begin

    def test_runs_of_begins_and_ends_in_no_order_of_time_are_paired_by_index(self):
        for slices in ((('A', 100, 130), ('B', 100, 130), ('D', 130, 140)), (('C', 100, 110), ('B', 100, 120), ('A', 100, 130)),
                       (('A', 100, 150), ('B', 120, 130), ('C', 110, 170))):
            rows = [packet(event(BEGIN, 1, n), time=b, flags=NEEDS) for n, b, _ in slices] + [packet(event(END, 1), time=e) for _, _, e in slices]
            rows.insert(0, packet(flags=CLEARED))
            self.assertEqual(self.durations(*rows), {n: [e - b] for n, b, e in slices})

    def test_slices_that_touch_are_whole_where_ends_need_no_state(self):
        slices = (('A', 100, 110), ('Z', 110, 110), ('B', 110, 120))
        rows = [packet(flags=CLEARED)] + [packet(event(BEGIN, 1, n), time=b, flags=NEEDS) for n, b, _ in slices] + [packet(event(END, 1), time=e) for _, _, e in slices]
        self.assertEqual(self.durations(*rows), {'A': [10], 'Z': [0], 'B': [10]})

    def test_calls_inside_calls_are_a_stack(self):
        rows = [packet(flags=CLEARED)] + [packet(event(k, 1, n), time=t, flags=NEEDS) for k, n, t in
                                          ((BEGIN, 'outer', 100), (BEGIN, 'inner', 110), (END, None, 120), (END, None, 200))]
        self.assertEqual(self.durations(*rows), {'outer': [100], 'inner': [10]})

    def test_files_out_of_order_are_sorted_before_they_are_paired(self):
        rows = [packet(event(k, 1, n), time=t, seq=s) for k, n, t, s in
                ((BEGIN, 'b', 300, 1), (END, None, 310, 1), (BEGIN, 'a', 100, 2), (END, None, 350, 2))]
        self.assertEqual(self.durations(*rows), {'a': [250], 'b': [10]})

    def random_events(self, seed, backwards):
        """Begins and ends of several tracks and sequences, some ends too many, some stamps before the one before on their track; and as rows what a stack of each
        track makes of them in order of time: (name, start, duration)."""
        draw = random.Random(seed)
        tracks, now, log = [1, 2, 3], 1000, {1: [], 2: [], 3: []}
        packets = [thread(t, 5, 10 + t, f't{t}') for t in tracks]
        for seq in (1, 2):
            packets.append(packet(interned([f'op{i}' for i in range(9)], ['cpu', 'call'], ['bytes']), seq=seq, flags=CLEARED))
        for k in range(300):
            now += draw.choice((0, 1, 7))
            on, seq, name = draw.choice(tracks), draw.choice((1, 1, 1, 2)), draw.randrange(1, 10)
            at = now - (draw.randrange(1, 30) if backwards and draw.random() < 0.1 else 0)
            kind = BEGIN if draw.random() < 0.52 else END
            if backwards:
                seq = 1 if kind == BEGIN else 2  # begins and ends of one writer that are in no order are torch's
            notes = [(1, draw.randrange(1 << 40))] if kind == BEGIN and draw.random() < 0.3 else []
            log[on].append((at, k, kind, f'op{name - 1}'))
            packets.append((event(kind, on, name if kind == BEGIN else None, draw.choice((None, 1)) if kind == BEGIN else None, notes), dict(time=at, seq=seq, flags=NEEDS)))
        rows = []
        for on in tracks:
            open_slices = []
            for at, _, kind, name in sorted(log[on], key=lambda e: e[:2]):
                if kind == BEGIN:
                    open_slices.append((name, at))
                elif open_slices:
                    name, begin = open_slices.pop()
                    rows.append((name, begin, at - begin))
            last = max(e[0] for events_of in log.values() for e in events_of)
            rows += [(name, begin, last - begin) for name, begin in open_slices]
        return packets, sorted(rows)

    def test_events_read_the_same_with_fields_beside_them_that_nobody_knows(self):
        # Events of numbers alone are read in one walk; a field that it does not know leaves a packet to the walk over all fields.
        for seed in range(12):
            for backwards in (False, True):
                packets, wanted = self.random_events(seed, backwards)
                seen = []
                for beside in (b'', field(900, 5)):
                    path = self.write(*[p if isinstance(p, bytes) else packet(p[0] + beside, **p[1]) for p in packets])
                    got = events(path)
                    seen.append([{k: v for k, v in row.items() if k != 'args_offset'} for row in got])
                    rows = sorted((r['name'], int(r['ts_ns'] if 'ts_ns' in r else r['start_ns']), int(r['dur_ns'])) for r in got)
                    zero = min(r[1] for r in rows) - min(r[1] for r in wanted)
                    with self.subTest(seed=seed, backwards=backwards, beside=beside):
                        self.assertEqual([(n, s - zero, d) for n, s, d in rows], wanted)
                self.assertEqual(seen[0], seen[1])

    def test_open_slices_and_lone_ends_are_counted(self):
        path = self.write(thread(1, 5, 6), packet(event(BEGIN, 1, 'open'), time=100), packet(event(END, 1), time=50), packet(event(INSTANT, 1, 'i'), time=900))
        self.assertEqual(events(path)[0]['dur_ns'], '800')
        said = flaws(info(path))
        self.assertEqual((said['pftrace.unmatched_begin']['count'], said['pftrace.unmatched_end']['count']), (1, 1))

    # ---- state of sequences

    def test_texts_live_until_the_writer_clears_them(self):
        rows = [packet(interned(['one', 'two'], ['c1']), event(BEGIN, 1, 1, 1), time=10, flags=CLEARED | NEEDS), packet(event(END, 1), time=20, flags=NEEDS),
                packet(interned(['new']), event(BEGIN, 1, 1), time=30, flags=CLEARED | NEEDS), packet(event(END, 1), time=40, flags=NEEDS),
                packet(interned(['other']), event(BEGIN, 1, 1), time=50, seq=2, flags=CLEARED), packet(event(END, 1), time=60, seq=2),
                packet(interned(['redefined']), event(BEGIN, 1, 1), time=70, flags=NEEDS), packet(event(END, 1), time=80, flags=NEEDS)]
        self.assertEqual(list(self.durations(*rows)), ['one', 'new', 'other', 'redefined'])

    def test_what_needs_lost_state_is_left_out_and_known(self):
        rows = [packet(event(BEGIN, 1, 1), time=5, flags=NEEDS),
                packet(interned(['a']), event(BEGIN, 1, 1), time=10, flags=CLEARED | NEEDS), packet(event(END, 1), time=20, flags=NEEDS),
                packet(event(BEGIN, 1, 1), time=30, flags=NEEDS, f42=1), packet(event(END, 1), time=40, flags=NEEDS)]
        self.assertEqual(self.durations(*rows), {'a': [10]})
        said = flaws(info(self.folder / 'run.pftrace'))
        self.assertEqual((said['pftrace.no_state']['count'], said['pftrace.lost_packets']['count']), (3, 1))

    def test_defaults_and_sequences_without_tracks(self):
        rows = [packet(field(59, field(11, field(11, 1))), flags=CLEARED), packet(event(BEGIN, None, 'x'), time=10), packet(event(END), time=20),
                packet(event(BEGIN, None, 'y'), time=10, seq=7), packet(event(END), time=40, seq=7)]
        self.assertEqual(self.durations(*rows), {'x': [10], 'y': [30]})

    def test_packed_packets(self):
        inner = packet(event(BEGIN, 1, 'in'), time=10) + packet(event(END, 1), time=30)
        for codec in ('zlib', 'zstd'):
            self.assertEqual(self.durations(pf.packed(inner, codec), packet(event(BEGIN, 1, 'out'), time=40), packet(event(END, 1), time=50)), {'in': [20], 'out': [10]})
        bomb = field(1, field(50, __import__('zlib').compress(b'\0' * (1 << 24), 9)))
        said = flaws(info(self.write(thread(1, 5, 6), bomb, packet(event(INSTANT, 1, 'i'), time=1))))
        self.assertIn('pftrace.bad_compressed', said)

    # ---- clocks

    def test_stamps_move_to_the_time_of_day_and_through_other_clocks(self):
        one = [packet(event(BEGIN, 1, 'a'), time=1_000), packet(event(END, 1), time=1_500)]
        rows = events(self.write(thread(1, 5, 6), *one, pf.clocks((6, 1_000), (1, pf.EPOCH))))
        self.assertEqual(json.loads(run('info', '--json', self.folder / 'run.pftrace').out)['start_ns'], pf.EPOCH)
        self.assertEqual([r['dur_ns'] for r in rows], ['500'])
        # A clock of the user's own, and one that counts from event to event; the snapshot may come after.
        mono = [packet(event(k, 1, 'm' if k == BEGIN else None), time=t, clock=3) for k, t in ((BEGIN, 500), (END, 900))]
        step = [pf.clocks((6, 5_000), (64, 0, 'incremental'), seq=9)] + [packet(event(k, 1, 's' if k == BEGIN else None), time=t, clock=64, seq=9) for k, t in ((BEGIN, 20), (END, 30))]
        path = self.write(thread(1, 5, 6), *one, *mono, pf.clocks((6, 10_000), (3, 600)), *step)
        start = {r['name']: int(r['start_ns']) for r in events(path)}
        self.assertEqual((start['m'] - start['a'], start['s'] - start['a']), (8_900, 4_020))
        self.assertNotIn('pftrace.unknown_clock', flaws(info(path)))

    def test_clocks_that_nothing_ties_are_known(self):
        path = self.write(thread(1, 5, 6), packet(event(INSTANT, 1, 'i'), time=5, clock=200))
        self.assertIn('pftrace.unknown_clock', flaws(info(path)))

    # ---- flows, counters, states

    def test_arrows_chain_slices_in_order_of_time(self):
        rows = [packet(event(BEGIN, 1, 'a', flows=[7]), time=10), packet(event(END, 1), time=20), packet(event(BEGIN, 1, 'b'), time=30),
                packet(event(END, 1, flows=[7]), time=40), packet(event(INSTANT, 1, 'i', ends=[7]), time=50), packet(event(BEGIN, 1, 'c', flows=[7]), time=60), packet(event(END, 1), time=70)]
        path = self.write(thread(1, 5, 6), *rows)
        self.assertEqual(info(path)['slices'], 4)
        self.assertEqual(info(path)['arrows'], 2)  # a → b → i, and c starts again

    def test_counters_sum_per_sequence_and_multiply(self):
        counter = track(3, 'bytes', f8=message(f5=1, f4=1000))
        rows = [packet(flags=CLEARED, seq=s) for s in (1, 2)] + [packet(event(COUNTER, 3, f30=v), time=t, seq=s, flags=NEEDS) for v, t, s in ((100, 10, 1), (50, 20, 2), (10, 30, 1))]
        path = self.write(counter, thread(1, 5, 6), *rows, packet(event(BEGIN, 1, 'a'), time=1), packet(event(END, 1), time=40))
        self.assertEqual(info(path)['counter_values'], 3)

    def test_states_last_until_the_next(self):
        rows = [packet(event(STATE, 3, n), time=t) for n, t in (('run', 10), ('wait', 40), ('', 45), ('run', 60))]
        path = self.write(track(3, 'state'), *rows)
        self.assertEqual([(r['name'], r['dur_ns']) for r in events(path)], [('run', '30'), ('wait', '5')])
        self.assertEqual(flaws(info(path))['pftrace.open_state']['count'], 1)

    # ---- torch

    def test_torch_and_its_json_say_the_same(self):
        for rank in (0, 1):
            pf.torch(self.folder / f'rank{rank}.pftrace.gz', rank)
        (self.folder / 'json').mkdir()
        for rank in (0, 1):
            pf.torch_json(self.folder / 'json' / f'rank{rank}.json', rank)
        keep = ('rank', 'category', 'name', 'pid', 'tid', 'start_ns', 'dur_ns', 'stream', 'kernel_class', 'correlation', 'step', 'collective', 'dtype', 'group', 'group_size', 'size_bytes')
        order = lambda rows: sorted(tuple(r[k] for k in keep) for r in rows)
        ours = [self.folder / f'rank{r}.pftrace.gz' for r in (0, 1)]
        rows = list(csv.DictReader(io.StringIO(run('analyze', 'events', *ours, '--format', 'csv', '-q', '--table', 'events', '--include-last-profiler-step', check=0).out)))
        self.assertEqual(order(rows), order(events(self.folder / 'json')))
        for question in ('temporal-breakdown', 'cuda-kernel-launch-stats', 'operators'):
            a = run('analyze', question, *ours, '--format', 'csv', '-q', check=0).out
            b = run('analyze', question, self.folder / 'json', '--format', 'csv', '-q', check=0).out
            self.assertEqual(a, b, question)
        self.assertEqual(info(*ours)['ranks'], 2)

    def test_of_two_files_of_one_recording_one_is_read(self):
        for rank in (0, 1):
            pf.torch(self.folder / f'rank{rank}.pftrace.gz', rank)
        pf.torch_json(self.folder / 'rank0.same_window.json')
        report = info(self.folder)
        self.assertEqual((report['format'], report['ranks']), ('perfetto', 2))
        self.assertIn('pftrace.json_twin', flaws(report))
        pf.torch_json(self.folder / 'rank1.json', 1)
        report = info(self.folder)
        self.assertEqual((report['format'], report['ranks']), ('kineto', 2))
        self.assertEqual(flaws(report)['kineto.perfetto_twin']['count'], 2)

    def test_a_cut_file_of_torch_keeps_what_has_ended(self):
        rows = events(pf.torch(self.folder / 'rank0.pftrace', ends=4))
        whole = {(r['name'], r['start_ns']): r['dur_ns'] for r in events(pf.torch(self.folder / 'rank1.pftrace', 0))}
        self.assertEqual(sum(whole[r['name'], r['start_ns']] == r['dur_ns'] for r in rows[:4]), 4)

    def test_processes_with_devices_of_their_own_are_ranks(self):
        def work(seq, pid, gpu):
            specs = field(24, message(f1=1, f2='Kernel')) + field(24, message(f1=2, f2='[07] stream 7')) + field(23, message(f1=1, f2=pid))
            return packet(field(12, specs), field(53, message(f1=seq, f2=100 + gpu, f11=gpu, f13=2, f14=1, f5=1, f17=f'k{gpu}')), time=1000, seq=seq, flags=CLEARED)
        path = self.write(pf.process(1, 50), thread(2, 50, 51, parent=1), packet(event(BEGIN, 2, 'h'), time=5), packet(event(END, 2), time=9), work(2, 50, 1), work(3, 60, 0))
        self.assertEqual({(r['rank'], r['name']) for r in events(path)}, {('0', 'k0'), ('1', 'k1'), ('1', 'h')})
        self.assertIn('pftrace.processes_as_ranks', flaws(info(path)))

    # ---- our own export

    def test_our_own_export_reads_back_as_the_same_run(self):
        logs = self.folder / 'logs'
        run('simulate', '1f1b', '--stages', 4, '--micro-batches', 6, '--steps', 3, '--jitter', 0.1, '-o', logs, check=0)
        run('export', logs, '--to', 'perfetto', '-o', self.folder / 'run.pftrace', check=0)
        cells = lambda path: [{k: v for k, v in r.items() if k != 'name'} for r in csv.DictReader(io.StringIO(run('export', path, '--to', 'csv', '-o', '-', '-q', check=0).out))]
        self.assertEqual(cells(self.folder / 'run.pftrace'), cells(logs))
        a, b = info(logs), info(self.folder / 'run.pftrace')
        for key in ('ranks', 'stages', 'micro_batches', 'steps', 'chunks', 'cells', 'start_ns', 'end_ns', 'schedule'):
            self.assertEqual(a[key], b[key], key)
        said = [json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)['findings'] for path in (logs, self.folder / 'run.pftrace')]
        self.assertEqual([(f['id'], f['title_en']) for f in said[0]], [(f['id'], f['title_en']) for f in said[1]])

    def test_operations_keep_the_names_that_tell_who_waits_for_whom(self):
        source = pathlib.Path(__file__).resolve().parents[1] / 'golden/readers/op-json-straggler/input'
        run('export', source, '--to', 'perfetto', '-o', self.folder / 'run.pftrace', check=0)
        names = lambda path: sorted(r['name'] for r in csv.DictReader(io.StringIO(run('export', path, '--to', 'csv', '-o', '-', '-q', check=0).out)))
        self.assertIn('forward-compute', names(source))
        self.assertEqual(names(self.folder / 'run.pftrace'), names(source))
        types = lambda path: {line.split()[0] for line in run('analyze', 'slowdown', path, '--table', 'types', '-q', check=0).out.splitlines() if line}
        self.assertIn('forward-compute', types(source))
        self.assertEqual(types(self.folder / 'run.pftrace'), types(source))

    def test_ties_are_errors_that_name_both_and_copies_count_once(self):
        logs, both = self.folder / 'logs', self.folder / 'both'
        both.mkdir()
        run('simulate', '1f1b', '--stages', 2, '--micro-batches', 3, '--steps', 2, '-o', logs, check=0)
        for kind, name in (('perfetto', 'run.pftrace'), ('chrome', 'run.json')):
            run('export', logs, '--to', kind, '-o', both / name, check=0)
        err = run('info', both, check=2).err
        self.assertIn('op-json', err)
        self.assertIn('--reader perfetto', err)
        (both / 'run.json').unlink()
        (both / 'copy.pftrace').write_bytes((both / 'run.pftrace').read_bytes())
        report = info(both)
        self.assertEqual(report['cells'], info(both / 'run.pftrace')['cells'])
        self.assertIn('pftrace.repeated_rank', flaws(report))

    def test_profiles_that_we_exported_keep_ranks_and_launches(self):
        (self.folder / 'json').mkdir()
        for rank in (0, 1):
            pf.torch_json(self.folder / 'json' / f'rank{rank}.json', rank)
        run('export', self.folder / 'json', '--to', 'perfetto', '-o', self.folder / 'run.pftrace', check=0)
        keep = ('rank', 'category', 'name', 'start_ns', 'dur_ns', 'kernel_class', 'step')
        order = lambda path: sorted(tuple(r[k] for k in keep) for r in events(path))
        self.assertEqual(order(self.folder / 'run.pftrace'), order(self.folder / 'json'))

    def test_our_export_has_shapes_streams_devices_and_whole_lanes(self):
        readers = pathlib.Path(__file__).resolve().parents[1] / 'golden/readers'
        for name, asked in (('kineto-shapes', ['analyze', 'mfu']), ('kineto-shapes', ['analyze', 'roofline']),
                            ('xplane', ['sql', 'select rank, name, stream, start_ns, parent_id from slices order by 1, 4, 2'])):
            with self.subTest(name=name, asked=asked[0]):
                written = self.folder / f'{name}.pftrace'
                run('export', '--to', 'perfetto', readers / name / 'input', '-o', written, '--force', '-q', check=0)
                answers = [run(asked[0], *([path, *asked[1:]] if asked[0] == 'sql' else [*asked[1:], path]), '--format', 'csv', '-q', check=0).out
                           for path in (readers / name / 'input', written)]
                self.assertGreater(answers[0].count('\n'), 3)
                self.assertEqual(answers[0], answers[1])

    def test_what_no_track_shows_is_in_our_export_too(self):
        graphs = nsys.make(self.folder / 'report.sqlite', graphs=True, ranks=1)
        run('export', graphs, '--to', 'perfetto', '-o', self.folder / 'run.pftrace', check=0)
        bars = [{part['id']: part['share'] for part in json.loads(run('explain', path, '--json', '-q', check=0).out)['parts']} for path in (graphs, self.folder / 'run.pftrace')]
        self.assertAlmostEqual(bars[0]['graphs'], bars[1]['graphs'], places=6)
        one, other = flaws(info(graphs)), flaws(info(self.folder / 'run.pftrace'))
        self.assertEqual([other[name]['message'] for name in one if name.startswith('nsys.')], [d['message'] for name, d in one.items() if name.startswith('nsys.')])

    # ---- damage

    def test_cut_flipped_and_random_bytes_are_survived(self):
        whole = pf.torch(self.folder / 'rank0.pftrace').read_bytes()
        path = self.folder / 'bad.pftrace'
        for size in [*range(0, 400, 7), *range(400, len(whole), 997)]:
            path.write_bytes(whole[:size])
            self.assertIn(run('info', path, timeout=20).returncode, (0, 2), size)
        path.write_bytes(whole[:-3])
        self.assertIn('pftrace.truncated', flaws(info(path)))
        rng = random.Random(5)
        for _ in range(40):
            bytes_ = bytearray(whole)
            for _ in range(rng.choice((1, 3, 40))):
                bytes_[rng.randrange(len(bytes_))] ^= 1 << rng.randrange(8)
            path.write_bytes(bytes_)
            self.assertIn(run('info', path, timeout=20).returncode, (0, 2))
        for _ in range(10):
            path.write_bytes(b'\x0a' + rng.randbytes(3000))
            self.assertIn(run('info', path, '--reader', 'perfetto', timeout=20).returncode, (0, 2))
        path.write_bytes(b'\xff' * 100 + whole)
        self.assertIn('--reader perfetto', run('info', path, check=2).err)
        self.assertGreater(info(path, '--reader', 'perfetto')['slices'], 0)
        path.write_bytes(whole + b'\x0a' * 100_000)
        self.assertEqual(run('info', path, timeout=20).returncode, 0)
        # A length beyond everything, in the middle: what follows is found again.
        half = whole.index(field(9, END)) // 2
        at = 0
        while at < half:
            at += 2 + whole[at + 1] if whole[at + 1] < 128 else 3 + (whole[at + 1] & 127 | whole[at + 2] << 7)
        path.write_bytes(whole[:at] + b'\x0a\xff\xff\xff\xff\xff\x01' + whole[at:])
        said = flaws(info(path))
        self.assertIn('pftrace.huge_packet', said)
        self.assertEqual(info(path)['slices'], info(self.folder / 'rank0.pftrace')['slices'])

    def test_depths_and_circles_end(self):
        deep = field(4, 1)
        for _ in range(2000):
            deep = field(12, deep)
        body = field(11, field(9, BEGIN) + field(11, 1) + field(23, 'deep') + field(4, field(10, 'Input Dims') + deep))
        circle = track(10, 'x', parent=11) + track(11, 'y', parent=10)
        path = self.write(thread(1, 5, 6), packet(body, time=5), packet(event(END, 1), time=9), circle, packet(event(INSTANT, 10, 'i'), time=6))
        self.assertEqual(info(path)['slices'], 1)

    def test_other_formats_with_the_same_first_byte_are_not_taken(self):
        plane = field(1, field(1, 1) + field(2, '/host:CPU') + field(3, message(f2='line')))
        self.write(plane * 4, name='vm.xplane.pb')
        self.assertNotIn('perfetto', run('info', self.folder / 'vm.xplane.pb', check=2).err.split('the readers are')[0])
        (self.folder / 'x.json').write_text('\n[{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"name":"a"}]')
        self.assertEqual(info(self.folder / 'x.json')['format'], 'kineto')

    # ---- real files

    @needs_shared
    def test_the_engines_own_cases(self):
        root = SHARED / 'imports' / 'pftrace' / 'generic'
        truth = (root / 'truth_trace_processor_v55.3.txt').read_text().split('### ')[1:]
        self.assertEqual(len(truth), 14)
        for case in truth:
            name, answers = case.split('\n', 1)
            slices, arrows, counters = [json.loads(a)[0] for a in re.findall(r'\[\{.*?\}\]', answers)[:3]]
            with self.subTest(name):
                if not slices['n'] and not counters['n']:  # nothing to show: said, not invented
                    self.assertIn('no slices, instants or counters', run('info', root / name, '--reader', 'perfetto', check=2).err)
                    continue
                report = info(root / name)
                self.assertEqual(report['slices'] + report['instants'], slices['n'])
                self.assertEqual(report['counter_values'], counters['n'])
                self.assertEqual(report['arrows'], arrows['n'])
                if report['slices']:
                    self.assertEqual(sum(int(r['dur_ns']) for r in events(root / name)), slices['d'] or 0)

    def test_a_stage_of_any_name_is_device_work(self):
        """Vulkan's and other writers' stages are named by what ran, not by Kernel and Memcpy."""
        specs = b''.join(field(24, message(f1=i, f2=t)) for i, t in ((1, 'compute queue'), (2, 'softmax'), (3, 'Annotation')))
        work = [packet(field(53, message(f1=i, f2=dur, f11=0, f13=1, f14=stage)), time=at, flags=NEEDS) for i, (stage, at, dur) in
                enumerate(((2, 100, 50), (2, 200, 40), (3, 100, 140)), 1)]
        path = self.write(packet(interned(more=specs), flags=CLEARED), *work)
        self.assertEqual({c: n for c, (n, _) in by_category(events(path)).items()}, {'kernel': 2, 'gpu_user_annotation': 1})
        told = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        self.assertEqual({part['id']: round(part['share'], 4) for part in told['parts']}['compute'], round(90 / 140, 4))

    def test_instants_and_counters_alone_are_not_called_healthy(self):
        for packets in ((packet(event(INSTANT, track=1, name='mark'), time=5), packet(event(INSTANT, track=1, name='mark'), time=9)),
                        (track(2, 'memory', f8=b''), packet(event(COUNTER, track=2, f30=7), time=5), packet(event(COUNTER, track=2, f30=9), time=8))):
            said = run('explain', self.write(thread(1, 5, 6, 't'), *packets), '-q', check=0).out
            self.assertIn('nothing was looked for', said)
            self.assertNotIn('No problem found', said)

    def test_states_on_tracks_of_their_own_are_not_the_most_time(self):
        """Chrome's tracks hold what a process is in ("RAIL mode"), open to the trace's end: work is on threads."""
        states = [packet(event(BEGIN, track=2, name='Visible'), time=0)]
        work = [packet(event(kind, track=1, name='Layout'), time=at) for kind, at in ((BEGIN, 1000), (END, 4000))]
        work.append(packet(event(BEGIN, track=1, name='Dispatch'), time=5000))  # never closed
        work.append(packet(event(INSTANT, track=1, name='last'), time=90000))
        said = run('explain', self.write(thread(1, 5, 6, 't'), track(2, 'state'), *states, *work), '-q', check=0).out
        self.assertIn('by itself: Layout (3.00 µs).', ' '.join(said.split()))
        self.assertNotIn('Visible', said)

    @needs_shared
    def test_torchs_files_equal_their_json(self):
        root = SHARED / 'imports' / 'pftrace' / 'torch_cuspy'
        for rank in (0, 1):
            ours = by_category(events(root / f'rank{rank}.pftrace.gz'))
            truth = json.loads((root / f'rank{rank}.paired_by_index.json').read_text())['by_category']
            for category in ('user_annotation', 'cpu_op', 'cuda_runtime'):
                self.assertEqual(list(ours[category]), truth[category])
            self.assertEqual(sum(ours[c][1] for c in ('overhead', 'cuda_sync')), truth[''][1])
        twin = by_category(events(root / 'rank0.same_window.json.gz'))
        ours = by_category(events(root / 'rank0.pftrace.gz'))
        self.assertEqual(ours, {c: twin[c] for c in ours})
        self.assertEqual(info(root)['ranks'], 2)


if __name__ == '__main__':
    unittest.main()
