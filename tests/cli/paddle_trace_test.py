"""Traces of paddle.profiler (export_chrome_tracing): times to the nanosecond, operators, kernels with their launches, memory."""
import csv
import gzip
import io
import json
import unittest

from support import SHARED, Case, info, needs_shared, run

SAMPLES = SHARED / 'sources' / 'paddle'


def rows(path, query):
    return list(csv.DictReader(io.StringIO(run('sql', path, query, '--format', 'csv', '-q', check=0).out)))


def memory(cat, place, increase, allocated, reserved, ts):
    return {'name': '[memory]', 'pid': 7, 'tid': '7(C++)', 'ts': ts, 'ph': 'i', 'cat': cat,
            'args': {'place': place, 'addr': '4096', 'increase_bytes': increase, 'current_allocated': allocated, 'current_reserved': reserved, 'peak_allocated': 9, 'peak_reserved': 9}}


class PaddleTraceTest(Case):
    def test_memory_of_each_place(self):
        events = [{'name': 'ProfileStep#1[0.100 ms]', 'pid': 7, 'tid': '7(Python)', 'ts': 1000, 'dur': 100.0, 'ph': 'X', 'cat': 'ProfileStep', 'args': {'start_time': '0.000 us', 'end_time': '100.000 us'}},
                  memory('ReservedAllocate', 'Place(gpu:1)', 8192, 0, 8192, 1009), memory('Allocate', 'Place(gpu:1)', 4096, 4096, 8192, 1010), memory('Allocate', 'Place(cpu)', 64, 64, 64, 1020),
                  memory('Free', 'Place(gpu:1)', -4096, 0, 8192, 1030), memory('Free', 'Place(gpu_pinned)', -64, 0, 64, 1040)]
        path = self.write('rank0.paddle_trace.json', json.dumps({'displayTimeUnit': 'ms', 'schemaVersion': '1.0.2', 'span_index': 0, 'traceEvents': [*events, {}]}))
        self.assertEqual(info(path)['memory_events'], 4)  # what is reserved is in these, too
        got = [(r['bytes'], r['address'], r['allocated_bytes'], r['reserved_bytes'], r['device_type'], r['device']) for r in rows(path, 'SELECT * FROM memory ORDER BY time_ns')]
        self.assertEqual(got, [('4096', '4096', '4096', '8192', '1', '1'), ('64', '4096', '64', '64', '0', ''), ('-4096', '4096', '0', '8192', '1', '1'), ('-64', '4096', '0', '64', '0', '')])

    @needs_shared
    def test_the_host_s_sample(self):
        truth = json.loads((SAMPLES / 'cpu.truth.json').read_text())
        for name, of in truth.items():
            path = SAMPLES / f'{name}.paddle_trace.json.gz'
            got = [(r['name'], int(r['start_ns']), int(r['dur_ns'])) for r in rows(path, "SELECT name, start_ns, dur_ns FROM slices WHERE name LIKE 'ProfilerStep#%' ORDER BY start_ns")]
            # The truth has rounded milliseconds in names, and starts from the first event.
            want = [(step.replace('ProfileStep', 'ProfilerStep'), round(1000 * float(start.split()[0])), round(1000 * us)) for step, _, us, start in of['steps']]
            self.assertEqual(got, want, name)
            kinds = of['complete_events_by_cat']
            self.assertEqual(info(path)['memory_events'], of['memory_events'], name)
            operators = rows(path, "SELECT count(*) AS n FROM slices WHERE category = 'cpu_op'")[0]['n']
            self.assertEqual(int(operators), kinds['Operator'] + kinds['OperatorInner'] + kinds['DygraphKernelLaunch'], name)

    @needs_shared
    def test_the_device_s_sample(self):
        truth = json.loads((SAMPLES / 'gpu/truth.json').read_text())
        path = SAMPLES / 'gpu'
        about = info(path)
        self.assertEqual((about['ranks'], about['step_numbers']), (2, [10, 11, 12, 13]))
        for rank, of in truth.items():
            got = {r['name']: (int(r['n']), int(r['ns']), int(r['l'])) for r in rows(path, f"SELECT name, count(*) AS n, sum(dur_ns) AS ns, count(launch_id) AS l FROM slices WHERE category = 'kernel' AND rank = {rank} GROUP BY 1")}
            self.assertEqual(got, {name: (n, ns, n) for name, (n, ns) in of['kernels'].items()})  # each with its launch
            calls = rows(path, f"SELECT count(*) AS n FROM slices WHERE category = 'cuda_runtime' AND rank = {rank}")[0]['n']
            self.assertEqual(int(calls), of['launches'])
            self.assertEqual(rows(path, f"SELECT count(*) AS n FROM slices WHERE category LIKE 'gpu_mem%' AND launch_id IS NULL AND rank = {rank}")[0]['n'], '0')

    @needs_shared
    def test_protobuf_is_refused_with_the_command(self):
        for path in (SAMPLES / 'gpu_rank0.pb.gz', self.write('a.pb', gzip.decompress((SAMPLES / 'gpu_rank0.pb.gz').read_bytes()))):
            self.assertIn("load_profiler_result('F.pb').save", run('info', path, check=2).err)


if __name__ == '__main__':
    unittest.main()
