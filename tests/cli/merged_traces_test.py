"""Several ranks in one file, as SGLang, TraceFuse and plain scripts merge them: every answer is that of the separate files."""
import json
import pathlib
import random
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import kineto
import merge_traces
from support import SHARED, Case, flaws, info, needs_shared, run

QUESTIONS = ['temporal-breakdown', 'idle-time', 'gpu-kernel-breakdown', 'comm-comp-overlap', 'potential-stragglers', 'profiler-steps', 'launch-stats', 'queue-length', 'operators']
COUNTS = 'SELECT rank, category, count(*) AS n, sum(dur_ns) AS ns, count(launch_id) AS launched, min(start_ns) AS first, max(end_ns) AS last FROM slices WHERE category <> \'Trace\' GROUP BY 1, 2'


class Merged(Case):
    def made(self, *arguments):
        out = self.dir / 'apart'
        kineto.generate([*map(str, arguments), '-o', str(out), '--format', 'json'])
        return sorted(out.rglob('*.json*'), key=lambda p: [int(n) for n in re.findall(r'\d+', p.name)])

    def explained(self, path):
        told = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        text = json.dumps(told, sort_keys=True)
        return re.sub(r'[^ "]*/[^ "]*', 'FILE', text)

    def sums(self, path):
        return run('sql', path, COUNTS, '--format', 'csv', '-q', check=0).out

    def known_questions(self):
        known = run('help', 'analyses', check=0).out
        return [q for q in QUESTIONS if q in known]

    def check_same(self, apart, merged):
        self.assertEqual(self.sums(merged), self.sums(apart))
        self.assertEqual(self.explained(merged), self.explained(apart))
        questions = self.known_questions()
        self.assertGreater(len(questions), 3)
        for question in questions:
            with self.subTest(question=question):
                answers = [run('analyze', question, path, '--format', 'csv', '-q').out for path in (apart, merged)]
                self.assertEqual(*answers)
        figures = [re.sub(r'(?m)^flaws_.*\n|[^ \n]*/[^ \n]*', '', run('info', path, '--figures', 'all', '-q', check=0).out) for path in (apart, merged)]
        self.assertEqual(*figures)

    def test_sglang(self):
        for ranks, tp, steps, extra in ((4, 2, 3, []), (3, 3, 2, ['--fault', 'slow-rank:1,1.4'])):
            files = self.made('--ranks', ranks, '--layers', 2, '--steps', steps, *extra)
            merged = merge_traces.sglang(files, self.dir / 'merged-17.trace.json.gz', tp)
            self.assertEqual(info(merged)['ranks'], list(range(ranks)) if isinstance(info(merged)['ranks'], list) else ranks)
            self.check_same(self.dir / 'apart', merged)
            for old in files:
                old.unlink()

    def test_labels_in_another_order_and_with_replicas(self):
        files = self.made('--ranks', 4, '--layers', 2, '--steps', 2)
        shuffled = merge_traces.sglang([files[k] for k in (2, 0, 3, 1)], self.dir / 'm.json', labels=['TP02', 'TP00', 'TP03', 'TP01'])
        self.check_same(self.dir / 'apart', shuffled)
        replicas = merge_traces.sglang(files, self.dir / 'm.json', labels=['TP00-DP00', 'TP01-DP00', 'TP00-DP01', 'TP01-DP01'])
        self.check_same(self.dir / 'apart', replicas)

    def test_a_rank_that_is_missing_is_not_renumbered(self):
        files = self.made('--ranks', 4, '--layers', 2, '--steps', 2)
        merged = merge_traces.sglang(files[:3], self.dir / 'm.json', labels=['TP00-PP00', 'TP00-PP01', 'TP01-PP01'])
        files[1].unlink()
        said = run('sql', merged, 'SELECT DISTINCT rank FROM slices ORDER BY 1', '--format', 'csv', '-q', check=0).out.split()
        self.assertEqual(said[1:], ['0', '2', '3'])

    def test_tracefuse(self):
        for ranks, steps in ((2, 3), (4, 2)):
            files = self.made('--ranks', ranks, '--layers', 2, '--steps', steps)
            merged = merge_traces.tracefuse(files, self.dir / 'fused.json.gz')
            self.assertEqual(self.sums(merged).count('cpu_op'), ranks)
            counts = [re.sub(r',\d+,\d+\n', '\n', self.sums(path)) for path in (self.dir / 'apart', merged)]  # no base time: another zero
            self.assertEqual(*counts)
            told = [json.loads(self.explained(path)) for path in (self.dir / 'apart', merged)]
            # Without the profiler's own span, idle time at the edges has another owner.
            parts = [{p['id']: p['share'] for p in one['parts'] if not p['id'].startswith('idle')} for one in told]
            self.assertEqual(*parts)
            for key in ('step_ns', 'steps'):
                self.assertEqual(told[0][key], told[1][key])
            for old in files:
                old.unlink()

    def test_one_after_another(self):
        files = self.made('--ranks', 3, '--layers', 2, '--steps', 2)
        merged = merge_traces.combine(files, self.dir / 'all.json')
        self.assertIn('reader.ranks_by_order' if 'reader.ranks_by_order' in flaws(info(merged)) else 'kineto.ranks_by_order', flaws(info(merged)))
        self.check_same(self.dir / 'apart', merged)

    def test_a_merge_beside_its_parts_counts_once(self):
        for merge in (merge_traces.sglang, merge_traces.tracefuse, merge_traces.combine):
            files = self.made('--ranks', 2, '--layers', 2, '--steps', 2)
            before = self.sums(self.dir / 'apart')
            merge(files, self.dir / 'apart' / 'merged-all.trace.json')
            self.assertEqual(self.sums(self.dir / 'apart'), before)
            self.assertEqual(flaws(info(self.dir / 'apart'))['kineto.same_file_twice']['count'], 2)
            for old in (self.dir / 'apart').rglob('*.json*'):
                old.unlink()

    def test_processes_that_are_named_after_ranks(self):
        for ranks in ((0, 1), (2, 5, 7)):
            events = []
            for k, rank in enumerate(ranks):
                events.append({'ph': 'M', 'name': 'process_name', 'pid': k, 'args': {'name': f'training.global_rank_{rank}.2026'}})
                events += [{'ph': 'X', 'name': 'fwd_bwd', 'pid': k, 'tid': 1, 'ts': 100 * i, 'dur': 60 + k} for i in range(5)]
            path = self.write('gantt.json', json.dumps({'traceEvents': events}))
            rows = run('sql', path, 'SELECT rank, count(*) AS n FROM slices GROUP BY 1', '--format', 'csv', '-q', check=0).out.split()
            self.assertEqual(rows[1:], [f'{rank},5' for rank in ranks])

    def test_processes_that_launch_on_devices_of_their_own(self):
        """As rpd2tracing writes them: numbers as text, device processes GPUn, arrows api_op from calls to their work."""
        def events(shared=False, swap=False):
            out, arrow = [{}], 0
            for k in (0, 1):
                out.append({'name': 'process_name', 'ph': 'M', 'pid': str(k), 'args': {'name': f'GPU{k}'}})
            for k, host in enumerate(('9002', '9001') if swap else ('9001', '9002')):
                for i in range(6):
                    at, arrow = 1000.0 * i + 7 * k, arrow + 1
                    device = '0' if shared else str(k)
                    out += [{'pid': host, 'tid': host, 'name': 'hipLaunchKernel', 'ts': str(at), 'dur': '6.5', 'ph': 'X', 'args': {'desc': 'stream=0x0'}},
                            {'pid': device, 'tid': '0', 'name': f'Cijk_{k}', 'ts': str(at + 40), 'dur': '150.25', 'ph': 'X', 'args': {'desc': 'KernelExecution'}},
                            {'pid': host, 'tid': host, 'cat': 'api_op', 'name': 'api_op', 'ts': str(at + 2), 'id': str(arrow), 'ph': 's'},
                            {'pid': device, 'tid': '0', 'cat': 'api_op', 'name': 'api_op', 'ts': str(at + 40), 'id': str(arrow), 'ph': 'f', 'bp': 'e'}]
            return out

        query = 'SELECT rank, category, count(*) AS n, sum(dur_ns) AS ns, count(launch_id) AS launched, min(name) AS name FROM slices GROUP BY 1, 2 ORDER BY 1, 2'

        def told(made):
            path = self.write('rpd.json', json.dumps({'traceEvents': made}))
            return run('sql', path, query, '--format', 'csv', '-q', check=0).out.splitlines()[1:]

        apart = [f'{rank},{row}' for rank in (0, 1) for row in ('cuda_runtime,6,39000,0,hipLaunchKernel', f'kernel,6,901500,6,Cijk_{rank}')]
        self.assertEqual(told(events()), apart)
        for seed in range(5):
            mixed = events()[1:]
            random.Random(seed).shuffle(mixed)
            self.assertEqual(told(mixed), apart)
        # Two processes on one device are one rank, as are devices of one process.
        self.assertEqual([row.split(',')[:3] for row in told(events(shared=True))], [['0', 'cuda_runtime', '12'], ['0', 'kernel', '12']])
        one = [{**e, 'pid': '9001', 'tid': '9001'} if str(e.get('pid', '')).startswith('900') else e for e in events()]
        self.assertEqual([row.split(',')[:3] for row in told(one)], [['0', 'cuda_runtime', '12'], ['0', 'kernel', '12']])

    def test_a_folder_of_paddles_ranks_in_any_order(self):
        """Members and events of a file in any order: no rank is skipped as damaged, and no launch is lost."""
        def span(pid, tid, name, cat, start, us, **args):
            return {'name': f'{name}[{us}.000 us]', 'pid': pid, 'tid': tid, 'ts': 1_795_800_000_000_000 + start, 'dur': us, 'ph': 'X', 'cat': cat,
                    'args': {'start_time': f'{start}.000 us', 'end_time': f'{start + us}.000 us', **args}}

        def events(rank):
            out = []
            for step in range(3):
                at = 10_000 * step + 7 * rank
                out.append(span(500, '500(Python)', f'ProfileStep#{step}', 'ProfileStep', at, 9000))
                for k in range(100):
                    more = {'correlation id': 1000 * step + k + 1}
                    out += [span(500, '500(C++)', 'matmul', 'OperatorInner', at + 10 + 80 * k, 60), span(500, '500(C++)', 'cudaLaunchKernel_v7000', 'CudaRuntime', at + 20 + 80 * k, 5, **more),
                            span(0, '7', f'gemm_{rank}', 'Kernel', at + 40 + 80 * k, 30 + rank, device=0, stream=7, **more)]
            return out

        def told(folder):
            query = 'SELECT rank, step, category, count(*) AS n, sum(dur_ns) AS ns, count(launch_id) AS launched FROM slices GROUP BY 1, 2, 3 ORDER BY 1, 2, 3'
            return run('sql', folder, query, '--format', 'csv', '-q', check=0).out

        tail = {'schemaVersion': '1.0.2', 'displayTimeUnit': 'ms', 'span_index': '0', 'ExtraInfo': {'500': 'MainThread'}}
        said = set()
        for seed in range(12):
            draw = random.Random(seed)
            for rank in (0, 1):
                trace, own = {**tail, 'traceEvents': events(rank)}, list(tail) + ['traceEvents']
                if seed:
                    draw.shuffle(trace['traceEvents']), draw.shuffle(own)
                self.write(f'paddle/rank{rank}.paddle_trace.json', json.dumps({key: trace[key] for key in own}, indent=1))
            said.add(told(self.dir / 'paddle'))
        self.assertEqual(len(said), 1)
        self.assertEqual(said.pop().count('kernel,100,3'), 6)

    @needs_shared
    def test_processes_of_rpd2tracing(self):
        truth = json.loads((SHARED / 'sources/chrome/truth.json').read_text())['rpd2tracing.json']['processes']
        query = "SELECT rank, count(*) AS n, sum(dur_ns) AS ns FROM slices WHERE category = 'kernel' GROUP BY 1 ORDER BY 1"
        found = run('sql', SHARED / 'sources/chrome/rpd2tracing.json', query, '--format', 'csv', '-q', check=0).out.splitlines()[1:]
        self.assertEqual([(rank, n) for rank, n, _ in (row.split(',') for row in found)], [(rank, str(of['kernels'])) for rank, of in truth.items()])
        for row, of in zip(found, truth.values()):
            self.assertAlmostEqual(int(row.split(',')[2]), of['kernel_ns'], delta=256 * of['kernels'])  # times went through doubles

    def test_the_end_mark_of_a_recording_may_stand_anywhere(self):
        files = self.made('--ranks', 1, '--layers', 2, '--steps', 2)
        trace = merge_traces.load(files[0])
        events = [e for e in trace['traceEvents'] if e.get('name') != 'Record Window End']
        end = next(e for e in trace['traceEvents'] if e.get('name') == 'Record Window End')

        def told(at):
            path = merge_traces.save(self.dir / 'one.json', {**trace, 'traceEvents': events[:at] + [end] + events[at:]})
            # The arguments of the last kernel, which are read from its place in the file.
            last = "SELECT a.key, a.value FROM (SELECT id FROM slices WHERE category = 'kernel' ORDER BY start_ns DESC LIMIT 1) k JOIN args a ON a.slice_id = k.id"
            return self.sums(path), self.explained(path), run('sql', path, last, '--format', 'csv', '-q', check=0).out

        whole = told(len(events))
        for at in (0, 1, len(events) // 3, len(events) // 2, len(events) - 1):
            self.assertEqual(told(at), whole, at)

    def test_ranks_that_nothing_separates_are_refused(self):
        events = []
        for shift in (0, 300):
            events += [{'ph': 'X', 'cat': 'user_annotation', 'name': f'ProfilerStep#{n}', 'pid': 7, 'tid': 7, 'ts': 1000 * n + shift, 'dur': 900} for n in range(3)]
            events += [{'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::mm', 'pid': 7, 'tid': 7, 'ts': 1000 * n + shift + 10, 'dur': 50} for n in range(3)]
        path = self.write('both.json', json.dumps({'schemaVersion': 1, 'traceEvents': events}))
        self.assertIn('separate files', run('explain', path, check=2).err)

    def test_one_process_with_several_devices_is_one_rank(self):
        files = self.made('--ranks', 1, '--layers', 2, '--steps', 2)
        trace = merge_traces.load(files[0])
        trace['traceEvents'] += [{**e, 'pid': 1, 'ts': e['ts'] + 5, 'args': {**e['args'], 'device': 1}} for e in trace['traceEvents'] if e.get('cat') == 'kernel']
        path = merge_traces.save(self.dir / 'two.json', trace)
        self.assertEqual(self.sums(path).count('cpu_op'), 1)


if __name__ == '__main__':
    unittest.main()
