"""Profiles of hosts: compilation, counted once whatever the threads, loading and the time of steps."""
import gzip
import json
import unittest

from support import Case, run

FIRST = 1_700_000_000_000_000.0


def x(name, at, dur, tid=1, cat='user_annotation'):
    return {'ph': 'X', 'cat': cat, 'name': name, 'pid': 7, 'tid': tid, 'ts': FIRST + at, 'dur': dur, 'args': {}}


class HostProfileTest(Case):
    def explain(self, name, events, **members):
        doc = {'traceEvents': events, **(members or {'schemaVersion': 1})}
        path = self.dir / f'{name}.json.gz'
        path.write_bytes(gzip.compress(json.dumps(doc).encode()))
        found = json.loads(run('explain', path, '--format', 'json', check=0).out)['findings']
        return path, [f for f in found if f['id'] == 'host.compile']

    def said(self, path):
        return run('explain', path, check=0).out.replace('\u202f', ' ')

    def test_nested_and_parallel_ranges_count_once(self):
        """40 of 100 ms: 30 ms in nested ranges, of which another thread overlaps the last 10 and works on for 10."""
        events = [x('aten::mm', 0, 100_000, cat='cpu_op'), x('_compile.compile_inner (dynamo_timed)', 10_000, 30_000),
                  x('compile_fx_inner (dynamo_timed)', 12_000, 20_000, cat='cpu_op'),
                  x('async_compile.wait (dynamo_timed)', 30_000, 20_000, tid=2)]
        path, found = self.explain('torch', events)
        self.assertEqual([f['value'].replace('\u202f', ' ') for f in found], ['40.0 %'])
        said = self.said(path)
        self.assertIn('Code is compiled during the recording', said)
        flat = ' '.join(said.split())
        self.assertIn('Compiling takes 40.0 ms, for example in _compile.compile_inner (dynamo_timed); the last of it ends 50.0 ms after the recording starts', flat)
        self.assertIn('The operators of the bar include it.', flat)

    def test_running_compiled_code_is_no_compilation(self):
        events = [x('Torch-Compiled Region: 0/0', 0, 90_000, cat='cpu_op'), x('TorchDynamo Cache Lookup', 90_000, 5_000, cat='cpu_op'),
                  x('## Call CompiledFxGraph f6ts7eo6 ##', 10_000, 70_000, cat='cpu_op'), x('PjitFunction(compile)', 0, 95_000)]
        self.assertEqual(self.explain('warm', events)[1], [])

    def test_jax_names_its_compiler(self):
        meta = [{'ph': 'M', 'name': 'process_name', 'pid': 7, 'args': {'name': '/host:CPU'}},
                {'ph': 'M', 'name': 'thread_name', 'pid': 7, 'tid': 1, 'args': {'name': 'python'}}]
        rows = [('PjitFunction(step)', 0, 80_000, 1), ('backend_compile_and_load', 20_000, 50_000, 1), ('PjRtCpuClient::Compile', 22_000, 40_000, 2),
                ('PjitFunction(step)', 90_000, 10_000, 1)]
        events = meta + [{k: v for k, v in x(*row).items() if k != 'cat'} for row in rows]
        path, found = self.explain('jax', events, displayTimeUnit='ns')
        self.assertEqual([f['value'].replace('\u202f', ' ') for f in found], ['50.0 %'])
        self.assertNotIn('TORCH_LOGS', self.said(path))

    def test_devices_have_the_account_and_compiling_a_note(self):
        """The idle time of a device has owners, so the time of a compiler is not added to them. The one stream waits for no other."""
        events = []
        for k in range(3):
            at = 1_000 + 30_000 * k
            events.append({**x('cudaLaunchKernel', at, 10, cat='cuda_runtime'), 'args': {'correlation': k + 1}})
            events.append({**x('gemm', at + (5_010 if k == 1 else 20), 5_000, tid=20, cat='kernel'), 'args': {'correlation': k + 1, 'device': 0, 'stream': 7}})
        events.append(x('entire_frame_compile (dynamo_timed)', 7_000, 20_000))
        events.append(x('entire_frame_compile (dynamo_timed)', 7_000, 20_000, tid=20, cat='gpu_user_annotation'))
        path, found = self.explain('gpu', events)
        said = self.said(path)
        self.assertIn('7.7 %  waiting to start', said)  # 5 of 65 ms
        self.assertNotIn('waiting for streams', said)
        self.assertEqual(found[0]['value'].replace('\u202f', ' '), '30.8 %')  # 20 of 65.02 ms

    def test_bar_and_finding_print_one_share_of_loading(self):
        """Loading takes 5.656 %, which the bar prints as 5.6 so that its lines add up."""
        events = []
        for k in range(2):
            at = 1_000_000 * k
            events += [x(f'ProfilerStep#{k}', at, 1_000_000, cat='user_annotation'),
                       x('enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__', at, 56_560),
                       x('aten::mm', at + 60_000, 925_580, cat='cpu_op')]
        said = self.said(self.explain('load', events)[0])
        shares = {line.split('%')[0].strip() for line in said.splitlines() if 'waiting for input' in line}
        self.assertEqual(len(shares), 1)
        self.assertIn(f'Steps wait for input data – {shares.pop()} %', said)

    def test_host_time_is_that_of_the_steps(self):
        """Steps of 1 ms with 14 ms between two of them: 3 ms, of which operators take 2, and not 17."""
        events = []
        for k, at in enumerate((0, 15_000, 16_000)):
            events += [x(f'ProfilerStep#{k}', at, 1_000), x('aten::mm', at + 100, 600, cat='cpu_op')]
        said = self.said(self.explain('gap', events)[0])
        self.assertIn('(3 steps, 3.00 ms of host time)', said)
        self.assertIn('60.0 %  operators', said)


if __name__ == '__main__':
    unittest.main()
