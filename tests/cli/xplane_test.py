"""Profiles of XLA: planes, steps and their split, launches, collectives, times, ranks, runs, twins, damage."""
import csv
import gzip
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import xplane
from support import SHARED, flaws, info, needs_shared, run

US = xplane.US


def events(path, *options):
    return list(csv.DictReader(io.StringIO(run('analyze', 'events', path, '--table', 'events', '--format', 'csv', '-q', '--include-last-profiler-step', *options, check=0).out)))


def steps(path):
    return list(csv.DictReader(io.StringIO(run('analyze', 'xla-steps', path, '--format', 'csv', '-q', check=0).out)))


class XplaneTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)
        self.addCleanup(self.temp.cleanup)

    def write(self, planes, name='vm.xplane.pb', **options):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(xplane.space(planes, **options))
        return path

    def test_devices_are_ranks_and_the_host_stands_at_the_first(self):
        path = self.write(xplane.gpu(devices=2, steps=3))
        report = info(path)
        self.assertEqual((report['format'], report['ranks'], report['clock']), ('xplane', 2, 'shared'))
        self.assertEqual([p['device_name'] for p in report['parts']], ['NVIDIA H100 80GB HBM3'] * 2)
        self.assertEqual(report['parts'][0]['torch'], '')
        self.assertEqual(flaws(report)['xplane.shared_host']['count'], 1)
        rows = events(path)
        self.assertEqual({r['rank'] for r in rows if r['category'] == 'python_function'}, {'0', '1'})  # the one host is that of each
        self.assertEqual({r['name'] for r in rows if r['category'] == 'python_function'}, {'train.py(31): step'})
        kernels = [r for r in rows if r['category'] == 'kernel']
        self.assertEqual(len(kernels), 2 * 3 * 3)  # XProf's derived rows do not count as work
        self.assertEqual({(r['rank'], r['name']) for r in rows if r['category'] == 'gpu_memcpy'}, {('0', 'Memcpy HtoD'), ('1', 'Memcpy HtoD')})
        self.assertEqual(sum(int(r['dur_ns']) for r in kernels if r['rank'] == '0'), 3 * 450_000)

    def test_an_operation_is_what_its_program_says_whatever_its_name(self):
        def parts(name, opcode):
            path = self.write(xplane.communicating(name, opcode), name.replace('.', '-') + opcode + '.xplane.pb')
            return {row['id']: row['share'] for row in json.loads(run('explain', path, '--format', 'json', '-q').out)['parts']}
        named = parts('all-reduce.7', 'all-reduce')
        self.assertIn('comm', named)
        self.assertEqual(parts('psum_invariant.7', 'all-reduce'), named)
        self.assertEqual(parts('loss.3', 'all-reduce'), named)
        self.assertNotIn('comm', parts('psum_invariant.7', 'fusion'))

    def test_a_call_stands_at_the_device_whose_work_it_launched(self):
        path = self.write(xplane.gpu(devices=2, steps=3))
        rows = events(path)
        for rank in ('0', '1'):
            calls = [r for r in rows if r['rank'] == rank and r['category'] == 'cuda_runtime']
            self.assertEqual(len(calls), 3 * 4)
            first = run('analyze', 'cuda-kernel-launch-stats', path, '--ranks', rank, '--include-last-profiler-step', '--format', 'csv', '-q', check=0).out.split('\n\n')[0]
            row = next(csv.DictReader(io.StringIO(first)))
            self.assertEqual((row['events'], row['orphans']), ('12', '0'))
        self.assertEqual({r['rank'] for r in rows if r['name'] == 'forward' and r['category'] == 'gpu_user_annotation'}, {'0', '1'})

    def test_what_is_not_recorded_is_not_explained(self):
        tpu = run('explain', self.write(xplane.tpu(devices=2, steps=2)), check=0).out
        self.assertNotIn('launched long before', tpu)
        self.assertNotIn('waiting to start', tpu)
        host = run('explain', self.write(xplane.cpu(steps=2), 'cpu.xplane.pb'), check=0).out
        self.assertNotIn('ProfilerActivity', host)

    def test_steps_of_devices_are_split_by_priority(self):
        planes = xplane.gpu(devices=1, steps=2)
        planes[1].lines = planes[1].lines[:2]  # what a profiler writes; the rest is XProf's
        rows = steps(self.write(planes))
        self.assertEqual([r['name'] for r in rows], ['train 0', 'train 1'])
        want = dict.fromkeys((k for k in rows[0] if k.endswith('_ms')), 0.0)
        # XProf 2.24.2 says the same, but takes the copy for compute: 0.39 and 0.
        want.update(step_ms=0.52, device_compute_ms=0.35, collectives_ms=0.1, input_ms=0.04, other_ms=0.03)
        for row in rows:
            self.assertEqual({k: float(v) for k, v in row.items() if k.endswith('_ms')}, want)

    def test_an_instant_that_hands_work_over_counts_until_the_next_end(self):
        rows = steps(self.write(xplane.cpu(steps=2)))
        # 10..100 µs on the thread, and from the region's begin at 120 to the end of Await at 710: XProf 2.24.2 says 0.68.
        self.assertEqual([(r['name'], float(r['step_ms']), float(r['host_compute_ms']), float(r['other_ms'])) for r in rows],
                         [('train 0', 0.8, 0.68, 0.12), ('train 1', 0.8, 0.68, 0.12)])

    def test_functions_that_tf_data_calls_are_no_steps(self):
        planes = xplane.cpu(steps=2)
        host = next(p for p in planes if p.name == '/host:CPU')
        for line, around in ((90, 'InstantiatedCapturedFunction::RunAsync'), (91, 'EagerKernelExecute')):
            host.line(line, f'line {line}', [(around, 100 * US, 90 * US, {}), ('FunctionRun', 110 * US, 50 * US, {'_r': 1})])
        self.assertEqual([r['name'].split()[0] for r in steps(self.write(planes))], ['train', 'FunctionRun', 'train'])

    def test_waits_are_no_operators(self):
        waits = ('ThunkExecutor::Execute (wait for completion)', 'Wait for usage holds', 'KernelAndDeviceFunc::Run')
        works = ('ThunkExecutor::Execute', 'EagerLocalExecute: Conv2D')
        planes = xplane.cpu(steps=2)
        host = next(p for p in planes if p.name == '/host:CPU')
        others = ('EagerLocalExecute: __inference_step_17',)
        for k, name in enumerate((*waits, *works, *others)):
            host.line(50 + k, f'line {k}', [(name, 100 * US, 2000 * US, {})])
        host.line(70, 'eager', [('KernelAndDeviceOp::Run', 110 * US, 1900 * US, {}), ('EagerLocalExecute: Conv2D', 100 * US, 2000 * US, {})])
        path = self.write(planes)
        kinds = {r['name']: r['category'] for r in events(path)}
        self.assertEqual(kinds['KernelAndDeviceOp::Run'], 'cpu_op')  # within an operator: its work
        self.assertEqual([kinds[name] for name in (*waits, *others)], ['user_annotation'] * 4)
        self.assertEqual([kinds[name] for name in works], ['cpu_op'] * 2)

    def test_a_frame_s_file_may_have_a_blank(self):
        planes = xplane.cpu(steps=1)
        host = next(p for p in planes if p.name == '/host:CPU')
        host.line(60, 'frames', [('$<frozen os>:756 encode', 100 * US, 10 * US, {}), ('$builtins isinstance', 120 * US, 1 * US, {})])
        self.assertLessEqual({'<frozen os>(756): encode', 'builtins(0): isinstance'}, {r['name'] for r in events(self.write(planes))})

    def test_two_processes_of_one_host_are_one_host(self):
        for k, host in enumerate(('vm', 'vm', 'other')):
            self.write(xplane.cpu(steps=2), f'proc{k}/plugins/profile/2026_11_22_21_22_16/{host}.xplane.pb', host=host)
        self.assertIn('(2 hosts, no devices)', run('info', self.folder, check=0).out)
        self.assertEqual(info(self.folder)['ranks'], 3)

    def test_loops_are_no_work_and_collectives_are_communication(self):
        path = self.write(xplane.tpu(devices=2, steps=2))
        report = info(path)
        self.assertEqual((report['ranks'], report['steps']), (2, 2))
        rows = events(path)
        self.assertEqual({r['name'] for r in rows if r['category'] == 'kernel'}, {'fusion.7', 'all-reduce.3'})
        self.assertIn('while.1', {r['name'] for r in rows if r['category'] == 'gpu_user_annotation'})
        out = run('analyze', 'comm-comp-overlap', path, '--table', 'comm-comp-overlap', '--format', 'csv', '-q', check=0).out
        self.assertEqual(len(out.strip().splitlines()), 3)
        self.assertEqual({r['dur_ns'] for r in rows if r['name'] == 'fusion.7'}, {'70001'})  # 70.0005 µs: its end goes to the even nanosecond, and the epoch is odd

    def test_arguments_of_annotations_are_ranges_and_make_cells(self):
        path = self.write(xplane.gpu(devices=1, steps=3))
        names = {r['name'] for r in events(path) if r['category'] == 'user_annotation'}
        self.assertIn('forward', names)
        self.assertIn('ProfilerStep#2', names)

    def test_epochs_and_relative_times_are_the_same_moments(self):
        relative, epoch = self.write(xplane.gpu(1, 2), 'a.xplane.pb'), self.write(xplane.gpu(1, 2, epoch=True), 'b.xplane.pb')
        self.assertEqual(info(relative)['start_ns'], xplane.START_NS + 5000 + 100_000)
        self.assertEqual(info(epoch)['start_ns'], xplane.START_NS + 100_000)
        undated = self.write(xplane.gpu(1, 2), 'c.xplane.pb', dated=False)
        self.assertEqual(info(undated)['start_ns'], 105_000)
        self.assertIn('xplane.undated', flaws(info(undated)))

    def test_hosts_are_machines_and_runs_are_reported_apart(self):
        for k in range(2):
            self.write(xplane.tpu(1, 2), f'plugins/profile/2026_11_22_21_22_16/host{k}.xplane.pb', host=f'host{k}')
        self.write(xplane.tpu(1, 1), 'plugins/profile/2026_11_21_01_00_00/host0.xplane.pb')
        report = info(self.folder)
        self.assertEqual((report['ranks'], report['machines'], report['clock']), (2, 2, 'unaligned'))
        self.assertEqual(flaws(report)['xplane.other_runs']['count'], 1)

    def test_json_of_the_same_profile_is_left_out(self):
        self.write(xplane.gpu(1, 2), 'vm.xplane.pb')
        (self.folder / 'vm.trace.json.gz').write_bytes(gzip.compress(json.dumps({'traceEvents': [{'ph': 'X', 'name': 'a', 'cat': 'cpu_op', 'pid': 1, 'tid': 1, 'ts': 1, 'dur': 2}]}).encode()))
        report = info(self.folder)
        self.assertEqual(report['format'], 'xplane')
        self.assertIn('xplane.json_twin', flaws(report))

    def test_compressed_files_are_the_same(self):
        path = self.write(xplane.gpu(2, 2))
        (self.folder / 'g').mkdir()
        packed = self.folder / 'g' / 'vm.xplane.pb.gz'
        packed.write_bytes(gzip.compress(path.read_bytes()))
        self.assertEqual(events(path), events(packed))

    def test_every_cut_says_so_or_is_refused(self):
        whole = self.write(xplane.gpu(1, 1)).read_bytes()
        path = self.folder / 'cut.xplane.pb'
        for at in range(1, len(whole), 97):
            path.write_bytes(whole[:at])
            done = run('info', path, '--json')
            self.assertIn(done.returncode, (0, 2), at)
            if done.returncode == 0:
                names = {d['name'] for d in json.loads(done.out)['diagnostics']}
                at_boundary = names & {'xplane.undated'}
                self.assertTrue(names & {'xplane.truncated', 'xplane.damaged'} or at_boundary, at)

    def test_bytes_that_went_through_a_text_filter_are_named(self):
        whole = self.write(xplane.gpu(2, 3)).read_bytes()
        path = self.folder / 'filtered.xplane.pb'
        path.write_bytes(whole.decode('utf-8', 'replace').encode())
        done = run('info', path)
        self.assertTrue('filter for text' in done.err if done.returncode == 2 else 'xplane.damaged' in done.out, done)

    def test_what_the_profiler_says_went_wrong_is_known(self):
        planes = xplane.gpu(1, 1)
        planes[0].set('dropped_traces', 12)
        found = flaws(info(self.write(planes, errors=['dropped 12 traces'], warnings=['buffer small'])))
        self.assertIn('12', found['xplane.lost_events']['message'])
        self.assertIn('dropped 12 traces', found['xplane.writer_error']['message'])
        self.assertIn('xplane.writer_warning', found)

    @needs_shared
    def test_jax_on_a_cpu_equals_xprof(self):
        folder = SHARED / 'imports/xplane'
        truth = json.loads((folder / 'truth_xprof_2.24.2_steps.json').read_text())
        names = {'stepTimeMs': 'step_ms', 'hostComputeTimeMs': 'host_compute_ms', 'otherTimeMs': 'other_ms', 'deviceComputeTimeMs': 'device_compute_ms', 'infeedTimeMs': 'input_ms',
                 'outfeedTimeMs': 'output_ms', 'compileTimeMs': 'compile_ms', 'kernelLaunchTimeMs': 'host_prepare_ms', 'deviceCollectivesTimeMs': 'collectives_ms'}
        rows = steps(folder)
        self.assertEqual([r['name'] for r in rows], [t['stepnum'] for t in truth])
        for row, said in zip(rows, truth):
            for theirs, ours in names.items():
                self.assertAlmostEqual(float(row[ours]), said[theirs], places=9)
        self.assertIn('jax 0.10.2', run('info', folder, check=0).out)
        found = events(folder)
        self.assertEqual(sum(int(r['dur_ns']) for r in found if r['name'] == 'train'), 8_066_126)
        self.assertEqual(sum(int(r['dur_ns']) for r in found if r['name'] == 'forward'), 402_105)


if __name__ == '__main__':
    unittest.main()
