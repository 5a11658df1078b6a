"""Things that profilers write wrongly or in their own way: absurd times, lost records, arrows, other dialects, several runs."""
import gzip
import json
import pathlib
import re
import sqlite3
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import flight_recorder
import nsys
import rocpd
import xplane
from support import Case, flaws, info, run

BASE_NS = 1_710_000_000_000_000_000


def x(cat, name, ts, dur, pid=4001, tid=4001, **args):
    return {'ph': 'X', 'cat': cat, 'name': name, 'pid': pid, 'tid': tid, 'ts': ts, 'dur': dur, 'args': args}


def kineto(events, **members):
    return json.dumps({'schemaVersion': 1, 'baseTimeNanoseconds': BASE_NS, 'deviceProperties': [{'id': 0, 'name': 'NVIDIA H100 80GB HBM3'}],
                       **members, 'traceEvents': events})


def launches(count=40, period=100, kernel=60, at=1000, delay=20, number=1, pid=4001, device=0, call='cudaLaunchKernel', per_step=10, first_step=1):
    """A host that launches a kernel every `period` µs, and annotates steps of `per_step` of them."""
    events = []
    for i in range(count):
        start, corr = at + period * i, number + i
        events += [x('cpu_op', 'aten::mm', start, 12, pid, pid, **{'External id': corr}),
                   x('cuda_runtime', call, start + 3, 6, pid, pid, correlation=corr, **{'External id': corr}),
                   x('kernel', 'ampere_sgemm_64x64', start + 3 + delay, kernel, device, 7, stream=7, device=device, correlation=corr, **{'External id': corr})]
    for k in range(count // per_step):
        events.append(x('user_annotation', f'ProfilerStep#{first_step + k}', at - 1 + period * per_step * k, period * per_step, pid, pid))
    return events


def answer(path):
    told = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
    told['share'] = {part['id']: round(100 * part['share'], 1) for part in told['parts']}
    told['ids'] = [f['id'] for f in told['findings']]
    return told


def launched(path):
    """(device work whose call is known, work without one)"""
    query = "SELECT sum(launch_id IS NOT NULL) AS linked, sum(launch_id IS NULL) AS orphans FROM slices WHERE category IN ('kernel', 'gpu_memcpy', 'gpu_memset')"
    return tuple(map(int, run('sql', path, query, '--format', 'csv', '-q', check=0).out.split()[1].split(',')))


class AbsurdTimes(Case):
    def check(self, events, step_ns, compute, **found):
        path = self.write('rank0.json', kineto(events))
        told, notes = answer(path), flaws(info(path))
        self.assertEqual(told['step_ns'], step_ns)
        self.assertAlmostEqual(told['share']['compute'], compute, delta=2.5)
        self.assertEqual({name: notes[name]['count'] for name in notes if name in ('kineto.zero_time', 'kineto.far_time', 'kineto.impossible_duration')}, found)

    def test_kernels_without_a_time_are_left_out(self):
        for count in (3, 1):
            events = launches()
            for event in [e for e in events if e['cat'] == 'kernel'][3::7][:count]:
                event['ts'] = event['dur'] = 0
            self.check(events, 1_000_000, 60, **{'kineto.zero_time': count})

    def test_one_record_of_every_kind_far_away_is_none_of_a_small_file(self):
        for at in (lambda ts: -BASE_NS // 1000, lambda ts: ts - 86_400_000_000, lambda ts: 2**61 // 1000):
            events = launches(count=4, per_step=2)
            stray = [{**e, 'ts': at(e['ts']), 'args': {}} for e in events[:3]]
            self.check(events + stray, 200_000, 60, **{'kineto.far_time': 3})

    def test_records_far_away_at_several_times_are_left_out(self):
        events = launches()
        kernel = [e for e in events if e['cat'] == 'kernel'][5]
        stray = [{**e, 'ts': e['ts'] - 172_400_000_000, 'args': {}} for e in events[:2]]
        kernel['ts'] -= 86_000_000_000
        self.check(events + stray, 1_000_000, 60, **{'kineto.far_time': 3})

    def test_the_rest_of_a_file_without_times_is_left_out(self):
        events = launches(count=40)
        lost = [e for e in events if e['ts'] > 3000 and e['cat'] != 'user_annotation']
        for event in lost:
            event['ts'] = event['dur'] = 0
        notes = flaws(info(self.write('rank0.json', kineto(events))))
        self.assertEqual(notes['kineto.zero_time']['count'], len(lost))

    def test_steps_of_which_nothing_was_recorded_do_not_count(self):
        events = launches(count=40)
        steps = [e for e in events if e['name'].startswith('ProfilerStep')]
        whole = answer(self.write('rank0.json', kineto(events)))
        for empty in (steps[-2:], steps[1:2]):
            inside = lambda e: any(s['ts'] <= e['ts'] < s['ts'] + s['dur'] for s in empty)
            path = self.write('empty/rank0.json', kineto([e for e in events if e['cat'] == 'user_annotation' or not inside(e)]))
            told = answer(path)
            self.assertEqual(told['steps'], whole['steps'] - len(empty))
            self.assertAlmostEqual(told['share']['compute'], whole['share']['compute'], delta=1)
            run('export', path, '--to', 'perfetto', '-o', self.dir / 'empty.pftrace', '--force', '-q', check=0)
            self.assertEqual(answer(self.dir / 'empty.pftrace')['share'], told['share'])

    def test_a_kernel_far_from_everything_is_left_out(self):
        for far in (-86_000_000_000, -30_000_000, 5_000_000, 2**61 // 1000):
            events = launches()
            [e for e in events if e['cat'] == 'kernel'][5]['ts'] += far
            self.check(events, 1_000_000, 60, **{'kineto.far_time': 1})

    def test_a_host_slice_hours_away_is_left_out_and_one_of_a_minute_is_not(self):
        for seconds, found in ((-100_000, 1), (-60, 0)):
            events = launches() + [x('cuda_runtime', 'cudaDeviceSynchronize', 1000 + seconds * 1_000_000, 5)]
            notes = flaws(info(self.write('rank0.json', kineto(events))))
            self.assertEqual('kineto.far_time' in notes, bool(found))

    def test_a_device_that_lags_behind_its_host_keeps_its_work(self):
        for lag in (20_000, 3_000_000):
            events = launches() + [x('python_function', f'f{k}', 1000 + k, 1) for k in range(600)]
            for event in events:
                event['ts'] += lag * (event['cat'] == 'kernel')
            told = info(self.write('rank0.json', kineto(events)))
            self.assertEqual(told['slices_by_kind']['kernels'], sum(e['cat'] == 'kernel' for e in events))
            self.assertNotIn('kineto.far_time', flaws(told))

    def test_counters_and_marks_far_away_do_not_stretch_the_recording(self):
        plain = info(self.write('rank0.json', kineto(launches())))
        far = -90_000_000_000
        events = launches() + [{'ph': 'C', 'name': 'power', 'pid': 0, 'ts': far, 'args': {'W': 1}}, {'ph': 'i', 'name': 'mark', 'pid': 4001, 'tid': 4001, 'ts': far, 's': 't'}]
        told = info(self.write('rank0.json', kineto(events)))
        self.assertEqual((told['start_ns'], told['end_ns']), (plain['start_ns'], plain['end_ns']))
        self.assertEqual(flaws(told)['kineto.far_time']['count'], 2)

    def test_a_quiet_recording_loses_nothing(self):
        # Two phases, apart for longer than either lasts, are both kept: each has its own calls.
        for apart in (20_000, 3_000_000):
            notes = flaws(info(self.write('rank0.json', kineto(launches() + launches(at=1000 + apart, number=500, first_step=9)))))
            self.assertFalse({'kineto.far_time', 'kineto.zero_time'} & set(notes))

    def test_databases_too(self):
        path = nsys.make(self.dir / 'report.sqlite', ranks=1, steps=3)
        whole = info(path)['slices_by_kind']['kernels']
        db = sqlite3.connect(path)
        db.execute('UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 0, end = 0 WHERE rowid IN (SELECT rowid FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 2)')
        db.commit()
        db.close()
        told = info(path)
        self.assertEqual(told['slices_by_kind']['kernels'], whole - 2)
        self.assertGreaterEqual(flaws(told)['nsys.zero_time']['count'], 2)  # and the device side of a range

    def test_a_time_that_is_no_number_is_not_called_bad_json(self):
        text = kineto(launches()).replace('"ts": 1000,', '"ts": 1e400,', 1)
        notes = flaws(info(self.write('rank0.json', text)))
        self.assertIn('kineto.bad_time', notes)
        self.assertNotIn('kineto.bad_event', notes)


class ImpossibleDurations(Case):
    def test_a_late_end_is_cut_at_the_next_start(self):
        for index, dur in ((5, 900_000), (20, 1_700)):
            events = launches()
            [e for e in events if e['cat'] == 'kernel'][index]['dur'] = dur
            path = self.write('rank0.json', kineto(events))
            self.assertEqual(flaws(info(path))['kineto.impossible_duration']['count'], 1)
            self.assertEqual(answer(path)['step_ns'], 1_000_000)

    def test_a_graph_s_kernels_and_the_next_kernel_may_overlap(self):
        events = launches(count=10, per_step=10) + [x('cuda_runtime', 'cudaGraphLaunch', 3000, 5, correlation=900)]
        events += [x('kernel', 'ncclDevKernel_AllReduce', 3020, 500, 0, 7, stream=7, correlation=900)]
        events += [x('kernel', 'gemm', 3030 + 50 * i, 40, 0, 7, stream=7, correlation=900) for i in range(8)]
        self.assertNotIn('kineto.impossible_duration', flaws(info(self.write('rank0.json', kineto(events)))))
        events = launches()
        [e for e in events if e['cat'] == 'kernel'][5]['dur'] = 110  # programmatic dependent launch
        self.assertNotIn('kineto.impossible_duration', flaws(info(self.write('rank0.json', kineto(events)))))


class OtherTraces(Case):
    def test_frames_from_before_a_recording_of_chrome_do_not_stretch_it(self):
        """A frame that began 171 s earlier ends in the recording, whose own times are 4.9 s."""
        work = [x('toplevel,disabled-by-default-devtools.timeline', 'RunTask', 171e6 + 49e3 * k, 9e3) for k in range(100)]
        frame = [{'ph': ph, 'cat': 'cc', 'id': '7', 'name': 'PipelineReporter', 'pid': 1, 'tid': 1, 'ts': ts} for ph, ts in (('b', 5e3), ('e', 172e6), ('b', 173e6), ('e', 174e6))]
        told = info(self.write('trace.json', json.dumps(work + frame)))
        self.assertEqual(told['end_ns'] - told['start_ns'], 4_860_000_000)
        self.assertEqual(flaws(told)['kineto.far_time']['count'], 1)
        other = json.dumps(work + frame).replace('devtools.timeline', 'work')  # elsewhere a range is what it says it is
        told = info(self.write('other.json', other))
        self.assertEqual(told['end_ns'] - told['start_ns'], 175_855_000_000)

    def test_ranges_that_wait_are_not_the_most_time_by_itself(self):
        """Chrome's asynchronous ranges overlap, and wait: threads' slices come first, and ranges alone count whole."""
        ranges = [{'ph': ph, 'cat': 'loading', 'id': str(k), 'name': 'Pipeline', 'pid': 1, 'tid': 1, 'ts': ts}
                  for k in range(2) for ph, ts in (('b', 1000 + 100 * k), ('e', 9000 + 100 * k))]
        work = [x('toplevel', 'RunTask', 1000, 3000), x('toplevel', 'Layout', 2000, 1000)]
        mark = [{'ph': 'I', 'cat': 'loading', 'name': 'Paint', 'pid': 1, 'tid': 1, 'ts': 1500}]
        for events, names in ((work + ranges, 'RunTask (2.00 ms), Layout (1.00 ms).'), (ranges, 'Pipeline (16.0 ms).'), (ranges + mark, 'Pipeline (16.0 ms).')):
            said = ' '.join(run('explain', self.write('trace.json', json.dumps(events)), '-q', check=0).out.split())
            self.assertIn('Most time by itself: ' + names, said)


class LostWork(Case):
    def test_launches_without_work_are_told_and_their_time_does_not_count(self):
        for kept, period in ((20, 100), (10, 240)):
            events = launches(count=100, period=period)
            events = [e for e in events if e['cat'] != 'kernel' or e['args']['correlation'] <= kept]
            path = self.write('rank0.json', kineto(events))
            note = flaws(info(path))['kineto.lost_work']
            self.assertAlmostEqual(note['count'], 100 - kept, delta=1)
            self.assertAlmostEqual(answer(path)['share']['compute'], 100 * 60 / period, delta=3)

    def test_what_was_lost_is_not_called_the_span_of_the_work(self):
        events = [e for e in launches(count=100, per_step=1000) if e['cat'] != 'kernel' or e['args']['correlation'] <= 25 or e['args']['correlation'] == 100]
        said = ' '.join(run('explain', self.write('rank0.json', kineto(events)), '-q', check=0).out.split())
        known = float(re.search(r'What the device did is known for ([0-9.]+) % of the time', said).group(1))
        self.assertAlmostEqual(known, 25, delta=1.5)  # 25 of 100 periods; of the others only the last one's kernel is there
        self.assertNotIn('Device work spans', said)
        whole = ' '.join(run('explain', self.write('rank0.json', kineto(launches(per_step=1000))), '-q', check=0).out.split())
        self.assertIn('Device work spans 3.96 ms', whole)

    def test_lost_replays_of_graphs(self):
        events = []
        for k in range(40):
            at = 1000 + 1000 * k
            events += [x('cuda_runtime', 'hipGraphLaunch', at, 30, correlation=100 + k)]
            if k % 5 == 0:
                events += [x('kernel', 'gemm', at + 40 + 95 * i, 95, 0, 3, stream=3, correlation=100 + k) for i in range(10)]
        path = self.write('rank0.json', kineto(events))
        self.assertAlmostEqual(flaws(info(path))['kineto.lost_work']['count'], 32, delta=1)
        self.assertGreater(answer(path)['share']['compute'], 90)

    def test_a_device_of_which_nothing_is_left(self):
        for call in ('hipLaunchKernel', 'urEnqueueKernelLaunchWithArgsExp', 'cudaGraphLaunch'):
            events = [e for e in launches(call=call) if e['cat'] != 'kernel']
            self.assertEqual(flaws(info(self.write('rank0.json', kineto(events))))['kineto.lost_work']['count'], 40)

    def test_a_capture_launches_nothing(self):
        events = launches() + [x('cuda_runtime', 'cudaStreamBeginCapture', 500, 2, correlation=800), x('cuda_runtime', 'cudaStreamEndCapture', 700, 2, correlation=801)]
        events += [x('cuda_runtime', 'cudaLaunchKernel', 510 + 10 * i, 4, correlation=810 + i) for i in range(15)]
        self.assertNotIn('kineto.lost_work', flaws(info(self.write('rank0.json', kineto(events)))))


class Links(Case):
    def test_numbers_above_32_bits_link(self):
        for first in (2**32 + 1, 5 * 2**32, 2**40 + 7, 2**62):
            path = self.write('rank0.json', kineto(launches(number=first)))
            self.assertEqual(launched(path), (40, 0))

    def test_rocm_profile_data_of_a_later_session(self):
        for shift in (2**32, 3 * 2**32 + 5):
            path = rocpd.make_rpd(self.dir / 'trace.rpd')
            before = (launched(path), run('sql', path, 'SELECT name, bytes FROM kernels WHERE bytes > 0', '--format', 'csv', '-q', check=0).out)
            db = sqlite3.connect(path)
            for table, columns in (('rocpd_api', ('id',)), ('rocpd_op', ('id',)), ('rocpd_api_ops', ('api_id', 'op_id')), ('rocpd_copyapi', ('api_ptr_id',))):
                for column in columns:
                    db.execute(f'UPDATE {table} SET {column} = {column} + {shift}')
            db.commit()
            db.close()
            self.assertEqual((launched(path), run('sql', path, 'SELECT name, bytes FROM kernels WHERE bytes > 0', '--format', 'csv', '-q', check=0).out), before)

    def test_arrows_alone(self):
        for offset in (0, 3):  # an arrow begins at its call or within it
            events = launches()
            arrows = []
            for event in events:
                number = event['args'].pop('correlation', None)
                if number is not None:
                    arrows.append({'ph': 's' if event['cat'] == 'cuda_runtime' else 'f', 'bp': 'e', 'id': number, 'cat': 'ac2g', 'name': 'ac2g',
                                   'pid': event['pid'], 'tid': event['tid'], 'ts': event['ts'] + (offset if event['cat'] == 'cuda_runtime' else 0)})
            path = self.write('rank0.json', kineto(events + arrows))
            self.assertEqual(launched(path), (40, 0))
            delays = run('sql', path, 'SELECT DISTINCT launch_delay_ns FROM kernels', '--format', 'csv', '-q', check=0).out.split()
            self.assertEqual(delays[1:], ['14000'])  # each leads to its own call: "2" and "12" are two numbers

    def test_external_ids_alone_link_a_call_and_its_work(self):
        for arrows, shared in ((False, False), (True, False), (False, True)):
            events = launches()
            for event in [e for e in events if e['args'].pop('correlation', None)]:
                if shared:  # one operator has two calls and two kernels: which belong together is not said
                    event['args']['External id'] = (event['args']['External id'] + 1) // 2
                if arrows and event['cat'] == 'kernel':  # from the work to itself, as a merging tool wrote them
                    events += [{'ph': ph, 'id': event['args']['External id'], 'cat': 'ac2g', 'name': 'ac2g', 'pid': event['pid'], 'tid': event['tid'], 'ts': event['ts'], 'bp': 'e'}
                               for ph in 'sf']
            self.assertEqual(launched(self.write('rank0.json', kineto(events))), (0, 40) if shared else (40, 0))

    def test_node_0_of_graph_0_is_no_graph(self):
        for graph, named in ((0, False), (9, True)):
            events = launches()
            for number, event in enumerate(e for e in events if e['cat'] == 'kernel'):
                event['args'] |= {'graph id': graph, 'graph node id': (number + 1) * graph}
            self.assertEqual('kineto.unnamed_graphs' in flaws(info(self.write('rank0.json', kineto(events)))), named)

    def test_a_device_clock_that_is_behind_keeps_its_launches(self):
        for behind in (26, 400):
            path = self.write('rank0.json', kineto(launches(delay=-behind)))
            told = answer(path)
            self.assertIn(f'{behind}', flaws(info(path))['kineto.clock_behind']['message'])
            self.assertNotIn('idle', told['share'])
            self.assertAlmostEqual(told['share']['compute'], 60, delta=3)

    def test_named_ends_end_their_own_slice(self):
        for ends in ((('a', 300), ('b', 350)), (('b', 350), ('a', 300))):
            events = [{'ph': 'B', 'name': 'a', 'pid': 1, 'tid': 1, 'ts': 200}, {'ph': 'B', 'name': 'b', 'pid': 1, 'tid': 1, 'ts': 280}]
            events += [{'ph': 'E', 'name': name, 'pid': 1, 'tid': 1, 'ts': ts} for name, ts in ends]
            for order in (events, events[::-1]):  # a file may have its events in any order
                path = self.write('named.json', json.dumps(order))
                out = run('sql', path, 'SELECT name, dur_ns FROM slices ORDER BY name', '--format', 'csv', '-q', check=0).out.split()
                self.assertEqual(out[1:], ['a,100000', 'b,70000'])


class Files(Case):
    def test_two_runs_are_not_two_ranks(self):
        for gap, cpu in ((409, True), (7, False)):
            for k, pid in enumerate((811, 812)):
                events = [e for e in launches(pid=pid) if not cpu or e['cat'] in ('cpu_op', 'user_annotation')]
                self.write(f'{gap}/trainer_{pid}.{1_700_000_000_000 + 1000 * gap * k}.pt.trace.json', kineto(events, baseTimeNanoseconds=BASE_NS + gap * 10**9 * k))
            told = info(self.dir / str(gap))
            self.assertEqual((told['ranks'], told['end_ns'] - told['start_ns']), (1, 4_000_000))
            self.assertIn('kineto.earlier_run', flaws(told))

    def test_two_runs_of_a_job_are_not_one(self):
        """A folder for each run, and the ranks of both runs say who they are. The profiler's cycles of one process are one run."""
        for gap, restarted in ((40, True), (3, True), (40, False)):
            for k, name in enumerate(('first', 'second')):
                for rank in (0, 1):
                    events = launches(pid=811 + rank + 20 * k * restarted, first_step=1 if restarted else 1 + 10 * k)
                    self.write(f'{gap}{restarted}/{name}/rank{rank}.json', kineto(events, host_name='vm', baseTimeNanoseconds=BASE_NS + gap * 10**9 * k,
                                                                                 distributedInfo={'backend': 'nccl', 'rank': rank, 'world_size': 2}))
            told = info(self.dir / f'{gap}{restarted}')
            self.assertEqual((told['ranks'], told['steps'], 'kineto.earlier_run' in flaws(told)), (2, 4 if restarted else 8, restarted))

    def test_two_runs_of_other_profilers_are_not_two_ranks(self):
        """Names as the profilers number runs; NCCL says rank 0 in both reports, and records of AMD say none."""
        def later(path, seconds, process):
            db = sqlite3.connect(path)
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                columns = {row[1] for row in db.execute(f'PRAGMA table_info("{table}")')}
                for column in columns & ({'utcEpochNs', 'systemClockNs'} if 'nsys' in str(path) else {'start', 'end', 'timestamp'}):
                    db.execute(f'UPDATE "{table}" SET "{column}" = "{column}" + {seconds * 10**9}')
                for column in columns & {'globalTid', 'globalPid'}:
                    db.execute(f'UPDATE "{table}" SET "{column}" = "{column}" + {process << 24}')
                if table == 'PROCESSES':
                    db.execute(f'UPDATE PROCESSES SET pid = pid + {process}')
            db.commit()
            db.close()
        for gap, ranks in ((90, 1), (0, 2)):
            folder = self.dir / f'nsys{gap}'
            folder.mkdir()
            for k in range(2):
                later(nsys.make(folder / f'report{k + 1}.sqlite', ranks=1), gap * k, 7 * k)
            told = info(folder)
            self.assertEqual((told['ranks'], 'nsys.earlier_run' in flaws(told)), (ranks, ranks == 1))
            folder = self.dir / f'amd{gap}'
            folder.mkdir()
            for k in range(2):
                later(rocpd.make(folder / f'{900 + k}_results.db', pid=900 + k, environment=False), gap * k, 0)
            told = info(folder)
            self.assertEqual((told['ranks'], 'rocpd.earlier_run' in flaws(told)), (ranks, ranks == 1))

    def test_ranks_that_overlap_are_ranks(self):
        for k, pid in enumerate((811, 812)):
            self.write(f'trainer_{pid}.pt.trace.json', kineto(launches(pid=pid), baseTimeNanoseconds=BASE_NS + 10**6 * k))
        told = info(self.dir)
        self.assertEqual(told['ranks'], 2)
        self.assertNotIn('kineto.earlier_run', flaws(told))

    def test_recordings_of_one_process_are_one_rank(self):
        for names in (('trace_4.json', 'trace_8.json'), ('a.json', 'b.json')):
            for k, name in enumerate(names):
                self.write(name, kineto(launches(pid=99, first_step=1 + 4 * k, at=1000 + 50 * k), baseTimeNanoseconds=BASE_NS + 10**8 * k))
            told = info(*[self.dir / name for name in names])
            self.assertEqual((told['ranks'], told['step_numbers']), (1, [1, 2, 3, 4, 5, 6, 7, 8]))

    def test_a_worker_s_name_is_no_machine(self):
        for pattern, machines in (('worker{k}_step_12.pt.trace.json', 1), ('node{k}_{pid}.pt.trace.json', 4)):
            folder = self.dir / pattern[:4]
            folder.mkdir()
            for k in range(4):
                (folder / pattern.format(k=k, pid=700 + k)).write_text(kineto(launches(pid=700 + k, device=k)))
            told = info(folder)
            self.assertEqual((told['ranks'], told['machines']), (4, machines))

    def test_traces_lie_deep(self):
        for where in ('lightning_logs/version_0', 'outputs/profiling/traces/iteration_10', 'a/b/c/d/e'):
            root = self.dir / where.split('/')[-1]
            (root / where).mkdir(parents=True)
            for rank in range(2):
                with gzip.open(root / where / f'rank{rank}_trace.json.gz', 'wt') as out:
                    out.write(kineto(launches()))
            self.assertEqual(info(root)['ranks'], 2)

    def test_logs_of_the_launcher_do_not_hide_traces(self):
        (self.dir / 'log').mkdir()
        (self.dir / 'log' / 'workerlog.0').write_text('LAUNCH INFO\n')
        self.write('rank0.pt.trace.json', kineto(launches()))
        self.assertEqual(info(self.dir)['format'], 'kineto')
        (self.dir / 'log' / 'workerlog.1').write_text('x' * 100_000 + '\n' + 'Profiler Info: Job (0), type = forward, micro_batch_id = 0, job_start_time = 1.5, job_end_time = 2.5\n')
        self.assertEqual(info(self.dir)['format'], 'paddle-log')


class OtherDialects(Case):
    def test_devices_of_jax_and_tensorflow(self):
        for process, thread in (('/device:GPU:0', 'Stream #14(Compute)'), ('/device:TPU:0', 'XLA Ops')):
            events = [{'ph': 'M', 'pid': 1, 'name': 'process_name', 'args': {'name': process}}, {'ph': 'M', 'pid': 1, 'tid': 14, 'name': 'thread_name', 'args': {'name': thread}},
                      {'ph': 'M', 'pid': 1, 'tid': 2, 'name': 'thread_name', 'args': {'name': 'XLA Modules'}}, {'ph': 'M', 'pid': 70, 'name': 'process_name', 'args': {'name': '/host:CPU'}}]
            for k in range(30):
                at = 1000 + 2000 * k
                events += [{'ph': 'X', 'pid': 70, 'tid': 9, 'ts': at, 'dur': 1900, 'name': 'train', 'args': {'step_num': str(k)}},
                           {'ph': 'X', 'pid': 70, 'tid': 9, 'ts': at + 10, 'dur': 9, 'name': 'cuLaunchKernel', 'args': {'correlation_id': str(k + 1)}},
                           {'ph': 'X', 'pid': 1, 'tid': 2, 'ts': at + 100, 'dur': 1500, 'name': 'jit_step'},
                           {'ph': 'X', 'pid': 1, 'tid': 14, 'ts': at + 100, 'dur': 1200, 'name': 'fusion.1', 'args': {'correlation_id': str(k + 1)}},
                           {'ph': 'X', 'pid': 1, 'tid': 14, 'ts': at + 1300, 'dur': 300, 'name': 'all-reduce.1' if 'TPU' in process else 'ncclDevKernel_AllReduce', 'args': {}}]
            path = self.write('perfetto_trace.json', json.dumps({'displayTimeUnit': 'ns', 'traceEvents': events + [{}]}))
            told = info(path)
            self.assertEqual((told['slices_by_kind']['kernels'], told['steps']), (60, 30))
            self.assertEqual(launched(path)[0], 30)
            self.assertAlmostEqual(answer(path)['share']['compute'], 100 * 1200 / 2000, delta=2)

    def test_torch_s_profiler_before_kineto(self):
        events = []
        for k in range(30):
            at = 1000 + 300 * k
            for name, start, dur, pid in (('conv2d', at, 120, 'CPU functions'), ('cudnn_convolution', at + 60, 200, 'CUDA functions')):
                events.append({'name': name, 'ph': 'X', 'ts': start, 'dur': dur, 'tid': 0, 'pid': pid, 'args': {}})
                events.append({'name': name, 'ph': 's' if pid[1] == 'P' else 'f', 'ts': start, 'tid': 0, 'pid': pid, 'id': k, 'cat': 'cpu_to_cuda', 'args': {}})
        path = self.write('trace.json', json.dumps(events))
        told = info(path)
        self.assertEqual(told['slices_by_kind'], {'CPU operators': 30, 'kernels': 30})
        self.assertAlmostEqual(answer(path)['share']['compute'], 100 * 30 * 200 / (29 * 300 + 200), delta=0.2)

    def test_timelines_of_tensorflow_1(self):
        processes = {2: '/job:localhost/replica:0/task:0/device:CPU:0 Compute', 3: '/job:localhost/replica:0/task:0/device:GPU:0 Compute', 5: '/device:GPU:0/stream:all Compute',
                     7: '/device:GPU:0/stream:13 Compute', 9: '/device:GPU:0/memcpy Compute'}
        for old in (False, True):  # "/gpu:0/…" before 1.4
            events = [{'ph': 'M', 'name': 'process_name', 'pid': pid, 'args': {'name': name.replace('/device:GPU', '/gpu') if old and name.startswith('/device') else name}} for pid, name in processes.items()]
            for k in range(12):
                at = 1_504_526_218_000_000 + 500 * k
                events += [{'ph': 'X', 'cat': 'Op', 'name': op, 'pid': pid, 'tid': 0, 'ts': start, 'dur': dur, 'args': {'name': f'layer{k}/{op}', 'op': op}}
                           for op, pid, start, dur in (('MatMul', 3, at, 40), ('MatMul', 5, at + 60, 300), ('MatMul', 7, at + 60, 300), ('Const', 2, at + 5, 4), ('MEMCPYHtoD', 9, at + 380, 20))]
            path = self.write('timeline.json', json.dumps({'traceEvents': events}))
            told = info(path)
            self.assertEqual({k: told['slices_by_kind'].get(k) for k in ('kernels', 'copies', 'CPU operators')}, {'kernels': 12, 'copies': 12, 'CPU operators': 24}, told['slices_by_kind'])
            found = answer(path)
            self.assertAlmostEqual(found['share']['compute'], 100 * 12 * 300 / (11 * 500 + 340), delta=0.2)
            self.assertNotIn('ProfilerActivity', json.dumps(found))

    def test_advice_names_the_profiler_that_recorded(self):
        for process, calls, expected in (('/device:GPU:0', 'cuLaunchKernel', 'python_tracer_level=1'), ('GPU0', 'hipLaunchKernel', 'rocprofv3')):
            events = [{'ph': 'M', 'name': 'process_name', 'pid': p, 'args': {'name': name}} for p, name in ((1, process), (701, '/host:CPU'))]
            for i in range(20):
                args = {'correlation_id': str(500 + i), 'correlation': 500 + i}
                events += [{'ph': 'X', 'name': 'fusion.%d' % i, 'pid': 1, 'tid': 14, 'ts': 60 + 1000 * i, 'dur': 300, 'args': args},
                           {'ph': 'X', 'name': calls, 'pid': 701, 'tid': 9, 'ts': 50 + 1000 * i, 'dur': 5, 'args': args}]
            path = self.write(f'{calls}.json', json.dumps({'traceEvents': events}))
            with self.subTest(process=process):
                out = run('explain', path, '-q', check=0).out
                self.assertIn('unrecorded host work', out)
                self.assertIn(expected, ' '.join(out.split()))
                self.assertNotIn('with_stack', out)

    def test_devices_of_rocprof(self):
        events = [{'ph': 'M', 'name': 'process_name', 'pid': 9, 'args': {'name': 'GPU0'}}, {'ph': 'M', 'name': 'process_name', 'pid': 6, 'args': {'name': 'COPY'}},
                  {'ph': 'M', 'name': 'process_name', 'pid': 2, 'args': {'name': 'CPU HIP API'}}]
        for k in range(20):
            at = 213_757_592_800 + 300 * k
            events += [{'ph': 'X', 'name': 'hipLaunchKernel', 'pid': 2, 'tid': 100, 'ts': str(at), 'dur': '5', 'args': {}},
                       {'ph': 'X', 'name': 'vector_add(int*)', 'pid': 9, 'tid': 1, 'ts': str(at + 20), 'dur': '150', 'args': {}},
                       {'ph': 'X', 'name': 'CopyHostToDevice', 'pid': 6, 'tid': 0, 'ts': str(at + 200), 'dur': '50', 'args': {}}]
            events += [{'ph': phase, 'cat': 'DataFlow', 'name': 'dep', 'id': k, 'pid': pid, 'tid': tid, 'ts': str(ts)} for phase, pid, tid, ts in (('s', 2, 100, at), ('t', 9, 1, at + 20))]
        path = self.write('results.json', json.dumps({'otherData': {}, 'traceEvents': events}))
        told = info(path)
        self.assertEqual((told['slices_by_kind']['kernels'], told['slices_by_kind']['copies']), (20, 20))
        self.assertEqual(launched(path), (20, 20))  # arrows lead to the kernels

    def test_categories_of_rocprof_s_traces_as_json(self):
        for kernel, copy, call in (('kernel_dispatch', 'memory_copy', 'hip_api'), ('gpu_activity', 'gpu_memcpy', 'hip_runtime_api')):
            words = {'kernel': kernel, 'cuda_runtime': call, 'cpu_op': 'marker_api'}
            events = [{**e, 'cat': words.get(e['cat'], e['cat'])} for e in launches(call='hipLaunchKernel')]
            told = info(self.write('rank0.json', kineto(events + [x(copy, 'MEMORY_COPY_HOST_TO_DEVICE', 900, 20, 0, 9)])))
            self.assertEqual({k: told['slices_by_kind'].get(k) for k in ('kernels', 'copies', 'runtime calls')}, {'kernels': 40, 'copies': 1, 'runtime calls': 40}, told['slices_by_kind'])

    def test_rocprof_says_its_times_to_the_nanosecond(self):
        events = [{'ph': 'M', 'name': 'process_name', 'pid': pid, 'args': {'name': name}} for pid, name in ((2, 'CPU HIP API'), (5, 'COPY'), (6, 'GPU0'))]
        want = []
        for k in range(20):
            at = 812_345_678_901_234 + 300_123 * k
            for name, pid, begin, ns in (('hipLaunchKernel', 2, at, 5400), ('gemm', 6, at + 20_000, 140_550), ('hipMemcpyAsync', 2, at + 7000, 9300), ('hcCommandHostToDevice', 5, at + 200_000, 40_123)):
                want.append((name, begin, ns))
                events.append({'ph': 'X', 'name': name, 'pid': str(pid), 'tid': '1', 'ts': str(begin // 1000), 'dur': str(ns // 1000),
                               'args': {'BeginNs': str(begin), 'EndNs': str(begin + ns), 'DurationNs': str(ns)}})
            for number, ends in ((2 * k, ((2, at), (6, at + 20_000))), (2 * k + 1, ((2, at + 7000), (5, at + 200_000)))):
                events += [{'ts': ns // 1000, 'ph': phase, 'cat': 'DataFlow', 'id': number, 'pid': pid, 'tid': 1, 'name': 'dep'} for phase, (pid, ns) in zip('st', ends)]
        path = self.write('rocprof.json', json.dumps({'traceEvents': [{}, *events]}))
        got = [r.split(',') for r in run('sql', path, 'SELECT name, start_ns, dur_ns FROM slices', '--format', 'csv', '-q', check=0).out.split()[1:]]
        first = min(begin for _, begin, _ in want)
        self.assertEqual(sorted((n, int(s), int(d)) for n, s, d in got), sorted((n, b - first, d) for n, b, d in want))
        told = info(path)['slices_by_kind']
        self.assertEqual((told['kernels'], told['copies'], told['runtime calls']), (20, 20, 40))
        self.assertEqual(launched(path), (40, 0))

    def paddle(self, steps, unit, schema):
        pid, zero, events = 4242, 1_700_000_000_000_000, []

        def add(cat, name, start_us, dur_us, lane, **args):
            shown = f'{dur_us / 1000:.3f} ms' if unit == 'ms' else f'{dur_us:.3f} us'
            events.append({'name': f'{name}[{shown}]', 'pid': pid if lane != 7 else 0, 'tid': lane, 'ts': zero + int(start_us), 'dur': dur_us, 'ph': 'X', 'cat': cat,
                           'cname': 'rail', 'args': {'start_time': f'{start_us:.3f} us', 'end_time': f'{start_us + dur_us:.3f} us', **args}})
        python, cpp = f'{pid}(Python)', f'{pid}(C++)'
        for step in range(steps):
            at = 10_000.25 * step
            add('ProfileStep', f'ProfileStep#{step + 3}', at, 10_000, python)
            add('Dataloader', '_DataLoaderIter', at + 10, 400.5, python)
            add('Forward', 'Linear', at + 500, 9000.125, python)
            for k in range(4):
                begin, number = at + 600.125 + 2000 * k, 4 * step + k + 1
                add('Operator', 'matmul dygraph', begin, 100 + k, cpp)
                add('CudaRuntime', 'cudaLaunchKernel_v7000', begin + 10, 20, cpp, **{'correlation id': number})
                add('Kernel', 'void cutlass::Kernel<gemm>(Params)', begin + 50, 1000.5 + k, 7, device=0, stream=7, **{'correlation id': number, 'registers per thread': 128})
        events += [{'name': 'process_name', 'pid': pid, 'tid': python, 'ph': 'M', 'args': {'name': f'Process {pid} (CPU)'}},
                   {'name': 'process_name', 'pid': 0, 'tid': 7, 'ph': 'M', 'args': {'name': 'Device 0 (GPU)'}}, {}]
        return self.write('host_x.paddle_trace.json', json.dumps({'schemaVersion': schema, 'displayTimeUnit': 'ms', 'span_index' if schema == '1.0.2' else 'span_indx': '0', 'traceEvents': events}))

    def test_paddle_s_own_profiler(self):
        for steps, unit, schema in ((3, 'ms', '1.0.1'), (5, 'us', '1.0.2')):
            path = self.paddle(steps, unit, schema)
            told = info(path)
            self.assertEqual((told['steps'], told['step_numbers'][0], told['parts'][0]['torch']), (steps, 3, ''))
            self.assertIn('paddle.profiler', run('info', path, check=0).out)
            self.assertEqual(launched(path), (4 * steps, 0))
            rows = run('sql', path, "SELECT category, name, count(*), min(dur_ns), min(start_ns) FROM slices GROUP BY 1, 2 ORDER BY 1, 2", '--format', 'csv', '-q', check=0).out.splitlines()[1:]
            found = {tuple(row.split(',')[:2]): row.split(',')[2:] for row in rows}
            self.assertEqual(found['cpu_op', 'matmul dygraph'][:2], [str(4 * steps), '100000'])
            self.assertEqual(found['kernel', 'void cutlass::Kernel<gemm>(Params)'][:2], [str(4 * steps), '1000500'])
            self.assertEqual(found['user_annotation', '_DataLoaderIter'][0], str(steps))
            first = int(found['user_annotation', 'ProfilerStep#3'][2])
            self.assertEqual(int(found['cpu_op', 'matmul dygraph'][2]) - first, 600_125)  # "ts" is cut to µs
            alone = json.loads(path.read_text())
            alone['traceEvents'] = [e for e in alone['traceEvents'] if e.get('cat') not in ('Kernel', 'CudaRuntime')]
            host = answer(self.write('host_y.paddle_trace.json', json.dumps(alone)))
            self.assertEqual((host['share']['idle-input'], host['share']['compute']), (4.0, 4.1))  # the wait for the loader, the operators
            (self.dir / 'host_y.paddle_trace.json').unlink()
            lanes = run('sql', path, "SELECT count(DISTINCT lane) AS lanes FROM slices WHERE category <> 'kernel'", '--format', 'csv', '-q', check=0).out.split()
            self.assertEqual(lanes[1], '1')


class Xla(Case):
    def space(self, planes, name='host0.xplane.pb'):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(xplane.space(planes))
        return path

    def test_awaiting_a_transfer_is_no_computing(self):
        for name, category in (('copy-done.3', 'copy-done'), ('slice-done.1', ''), ('infeed.2', 'infeed')):
            plane = xplane.Plane('/device:TPU:0', 20)
            for op, said in (('fusion.1', 'loop fusion'), (name, category), ('all-reduce.1', 'all-reduce')):
                plane.name_event(op, **({'hlo_category': said} if said else {}))
            ops, marks = [], []
            for step in range(4):
                at = (100 + 10_000 * step) * xplane.US
                marks.append((str(step), at, 10_000 * xplane.US, {'group_id': step}))
                ops += [('fusion.1', at, 1500 * xplane.US, {}), (name, at + 1500 * xplane.US, 8000 * xplane.US, {}), ('all-reduce.1', at + 9500 * xplane.US, 500 * xplane.US, {})]
            plane.line(1, 'Steps', marks, 3000)
            plane.line(3, 'XLA Ops', ops, 3000)
            share = answer(self.space([plane]))['share']
            self.assertEqual((share['compute'], share['memory'], share['comm']), (15.0, 80.0, 5.0))

    def test_launches_by_their_number_alone(self):
        for rename in ('KernelLaunch', 'MatMul:MatMul'):
            planes = xplane.gpu(devices=1, steps=3)
            for old in ('cuLaunchKernel', 'cuMemcpyHtoDAsync'):
                planes[0].events = {(rename + old[:3] if key == old else key): at for key, at in planes[0].events.items()}
            self.assertEqual(launched(self.space(planes)), (12, 0))

    def test_processes_of_one_job_on_one_host(self):
        for k in range(2):
            self.space(xplane.cpu(), f'proc{k}/plugins/profile/2026_01_02_03_04_05/vm.xplane.pb')
        told = info(self.dir)
        self.assertEqual(told['ranks'], 2)
        self.assertFalse({'xplane.other_runs', 'source.damaged'} & set(flaws(told)))

    def test_earlier_runs_are_not_called_damaged(self):
        for time in ('2026_01_02_03_04_05', '2026_01_02_03_09_05', '2026_01_02_04_04_05'):
            self.space(xplane.cpu(), f'log/plugins/profile/{time}/vm.xplane.pb')
        told = info(self.dir)
        self.assertEqual((told['ranks'], flaws(told)['xplane.other_runs']['count']), (1, 2))
        self.assertNotIn('source.damaged', flaws(told))


class Ascend(Case):
    def trace(self, kind='AI_CORE', inside=0, calls=True, count=60, period=50, first=0):
        folder = self.dir / 'node_1_20260101_ascend_pt/ASCEND_PROFILER_OUTPUT'
        folder.mkdir(parents=True, exist_ok=True)
        base, events = 1_778_650_000_000_000, []
        for pid, name in ((101, 'Python'), (102, 'CANN'), (900, 'Ascend Hardware')):
            if calls or pid != 102:
                events.append({'ph': 'M', 'name': 'process_name', 'pid': pid, 'tid': 0, 'args': {'name': name}})
        events.append({'ph': 'M', 'name': 'thread_name', 'pid': 900, 'tid': 3, 'args': {'name': 'Stream 3'}})
        for k in range(count):
            at = base + period * k
            flow = 'HostToDevice' if calls else 'async_npu'
            events.append({'ph': 'X', 'name': 'aten::mul', 'pid': 101, 'tid': 201, 'ts': f'{at}.000', 'dur': 20, 'cat': 'cpu_op', 'args': {'Sequence number': k}})
            if calls:
                events.append({'ph': 'X', 'name': 'AscendCL@aclnnMul', 'pid': 102, 'tid': 201, 'ts': f'{at + 2}.000', 'dur': 14, 'args': {'connection_id': first + k + 1}})
            events.append({'ph': 'X', 'name': 'aclnnMul_MulAiCore_Mul', 'pid': 900, 'tid': 3, 'ts': f'{at + 25}.000', 'dur': 8, 'args': {'Task Type': kind, 'Stream Id': 3, 'connection_id': first + k}})
            events.append({'ph': 's', 'bp': 'e', 'name': flow, 'id': str(k), 'pid': 102 if calls else 101, 'tid': 201, 'ts': f'{at + (2 + inside if calls else inside)}.000', 'cat': flow})
            events.append({'ph': 'f', 'bp': 'e', 'name': flow, 'id': str(k), 'pid': 900, 'tid': 3, 'ts': f'{at + 25}.000', 'cat': flow})
        (folder / 'trace_view.json').write_text(json.dumps(events))
        return self.dir

    def test_tasks_of_type_other_compute(self):
        for period in (50, 80):
            self.assertAlmostEqual(answer(self.trace('Other', period=period))['share']['compute'], 100 * 8 / period, delta=1)

    def test_arrows_that_begin_inside_their_call(self):
        for inside in (0, 5, 13):
            self.assertEqual(launched(self.trace(inside=inside)), (60, 0))

    def test_without_calls_the_operator_launches(self):
        for inside in (0, 4):
            path = self.trace(calls=False, inside=inside)
            self.assertEqual(launched(path), (60, 0))
            self.assertNotIn('idle', answer(path)['share'])

    def test_an_annotation_that_begins_with_an_operator_launches_nothing(self):
        path = self.trace(calls=False)
        file = next(self.dir.rglob('trace_view.json'))
        events = json.loads(file.read_text())
        first = next(e for e in events if e.get('cat') == 'cpu_op')
        file.write_text(json.dumps(events + [{**first, 'name': 'whole program', 'cat': 'user_annotation', 'dur': 60 * 50, 'args': {}}]))
        query = "SELECT count(*) AS n FROM slices AS work JOIN slices AS call ON call.id = work.launch_id WHERE call.name = 'whole program'"
        self.assertEqual(run('sql', path, query, '--format', 'csv', '-q', check=0).out.split()[1], '0')

    def test_ranks_of_which_only_sums_are_there_have_no_share(self):
        for rank in range(2):
            folder = self.dir / f'rank_{rank}_ascend_pt/ASCEND_PROFILER_OUTPUT'
            folder.mkdir(parents=True)
            (folder.parent / f'profiler_info_{rank}.json').write_text(json.dumps({'config': {}, 'rank_id': rank}))
            (folder / 'step_trace_time.csv').write_text('Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n'
                                                        f'{rank},3,70000.0,20000.0,0.0,20000.0,10000.0\n')
            collective = {'Communication Time Info': {'Start Timestamp(us)': 1764246877070000.0, 'Elapse Time(ms)': 20.0, 'Transit Time(ms)': 18.0, 'Wait Time(ms)': 0, 'Synchronization Time(ms)': 0, 'Idle Time(ms)': 2.0},
                          'Communication Bandwidth Info': {}}
            (folder / 'communication.json').write_text(json.dumps({'step3': {'p2p': {}, 'collective': {'hcom_allReduce__097_0_1@58622': collective}}}))
            if rank == 0:
                rows = ''.join(f'3,0,1,{k},2,aclnnMatmul_{k},MatMulV2,dynamic,AI_CORE,{1764246877000000 + 10000 * k}.000,10000.000,0,24\n' for k in range(7))
                (folder / 'kernel_details.csv').write_text('Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim\n' + rows)
        self.assertIn('ascend.no_kernels', flaws(info(self.dir)))
        self.assertGreater(answer(self.dir)['share']['compute'], 70)
        self.assertIn('2 ranks', answer(self.dir)['lead_en'])
        rows = run('analyze', 'temporal-breakdown', self.dir, '--format', 'csv', '-q', check=0).out.split('\n\n')[0].splitlines()[1:]
        self.assertEqual([row.split(',')[0] for row in rows if row], ['0'])


class FlightRecorder(Case):
    def test_members_counted_within_a_replica(self):
        for first, gone in ((4, None), (3, None), (8, 9)):
            options = flight_recorder.parse(['--ranks', '4', '--steps', '2', '--fault', 'missing:2'])
            folder = self.dir / f'from{first}'
            dumps = {first + rank: dump for rank, dump in flight_recorder.make(options).items() if first + rank != gone}
            flight_recorder.write(dumps, folder)
            self.assertIn('flight_recorder.local_ranks', flaws(info(folder)))
            out = run('explain', folder).out
            self.assertIn(f'ank {first + 2}', out)
            self.assertNotIn('All calls fit', out)


class TensorCores(Case):
    def attend(self, kernel, op, dtype):
        events = []
        for k in range(20):
            at = 1000 + 1000 * k
            events += [x('cpu_op', op, at, 20, **{'External id': k + 1, 'Input Dims': [[8, 16, 1024, 64]] * 3, 'Input type': [dtype] * 3}),
                       x('cuda_runtime', 'cudaLaunchKernel', at + 5, 6, correlation=k + 1, **{'External id': k + 1}),
                       x('kernel', kernel, at + 30, 800, 0, 7, stream=7, device=0, correlation=k + 1, **{'External id': k + 1})]
        props = [{'id': 0, 'name': 'NVIDIA H100 80GB HBM3', 'computeMajor': 9, 'computeMinor': 0}]
        return answer(self.write('rank0.json', kineto(events, deviceProperties=props)))['ids']

    def test_names_of_triton_say_nothing(self):
        for kernel in ('attn_fwd.kd', 'matmul_kernel', '_fwd_kernel', 'triton_tem_fused_mm_3', 'kernel_unified_attention_2d'):
            self.assertNotIn('tensor_cores.unused', self.attend(kernel, 'aten::mm', 'c10::BFloat16'))
        for kernel in ('volta_sgemm_128x64_nn', 'cutlass_80_simt_sgemm_128x32_8x5_nn_align1'):
            self.assertIn('tensor_cores.unused', self.attend(kernel, 'aten::mm', 'float'))

    def test_overloads_are_operators_too(self):
        # No event has the name without the overload: a trace of some backends records "aten::mm.out" alone.
        self.assertEqual(self.attend('volta_sgemm_128x64_nn', 'aten::mm.out', 'float'), self.attend('volta_sgemm_128x64_nn', 'aten::mm', 'float'))


if __name__ == '__main__':
    unittest.main()
