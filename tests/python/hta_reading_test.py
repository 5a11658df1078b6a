"""stageline.hta finds files as HTA does: in one folder, by relative names, with the ranks that are given. On traces of our own
generator; skipped without pandas."""
import gzip
import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import HAVE_ENGINE, ROOT  # noqa: E402

try:
    import pandas
except ImportError:
    pandas = None


def generate(folder, ranks, *more):
    subprocess.run([sys.executable, ROOT / 'tests/gen/kineto.py', '-o', folder, '--ranks', str(ranks), '--events', '2000', '--steps', '4',
                    '--era', 'us', '--format', 'gz', *more], check=True, capture_output=True)
    return sorted(pathlib.Path(folder).rglob('*.json.gz'))


def three_steps():
    """Steps of a main thread with one call and its kernel each; a second thread has one call of the backward pass, in the first."""
    def row(name, category, ts, dur, tid, **arguments):
        return {'ph': 'X', 'name': name, 'cat': category, 'pid': 5, 'tid': tid, 'ts': ts, 'dur': dur, 'args': arguments}
    start, rows = 1_700_000_000_000_000, []
    for step in (1, 2, 3):
        at = start + 1000 * step
        rows += [row(f'ProfilerStep#{step}', 'user_annotation', at, 900, 1), row('aten::mm', 'cpu_op', at + 10, 100, 1),
                 row('cudaLaunchKernel', 'cuda_runtime', at + 20, 10, 1, correlation=step),
                 {**row('gemm', 'kernel', at + 200, 20, 7, stream=7, correlation=step, device=0), 'pid': 0}]
    return rows + [row('autograd::engine::evaluate_function: MmBackward0', 'cpu_op', start + 1500, 50, 2)]


@unittest.skipUnless(HAVE_ENGINE and pandas is not None, 'no module, or no pandas')
class Reading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        logging.disable(logging.CRITICAL)
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.files = [shutil.copy(path, cls.root) for path in generate(cls.root / 'made', 2, '--seed', '1')]
        shutil.rmtree(cls.root / 'made')

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        logging.disable(logging.NOTSET)

    def opened(self, **how):
        from stageline.hta import TraceAnalysis
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return TraceAnalysis(**how)

    def times(self, analysis):
        frame = analysis.get_temporal_breakdown(visualize=False)
        return dict(zip(frame['rank'].tolist(), frame['kernel_time(us)'].tolist()))

    def test_a_folder_is_read_one_level_deep(self):
        """Another run below the folder, or what an analysis wrote there, is not of it."""
        alone = self.times(self.opened(trace_dir=str(self.root)))
        self.assertEqual(sorted(alone), [0, 1])
        generate(self.root / 'old', 4, '--seed', '2')
        self.assertEqual(self.times(self.opened(trace_dir=str(self.root))), alone)
        import stageline
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter('always')
            flaws = [d for d in stageline.open(self.root).diagnostics if d.severity != 'info']
        self.assertEqual(bool(flaws), any(issubclass(w.category, stageline.TraceWarning) for w in said))
        shutil.rmtree(self.root / 'old')

    def test_relative_names(self):
        here, expected = os.getcwd(), self.times(self.opened(trace_dir=str(self.root)))
        name = os.path.basename(self.files[0])
        try:
            (self.root / 'tr').mkdir()
            (self.root / 'tr/x').symlink_to(self.root)
            os.chdir(self.root)
            for folder in ('tr/x', 'tr/x/', './tr/x', f'../{self.root.name}/tr/x', pathlib.Path('tr/x')):
                with self.subTest(folder=folder):
                    analysis = self.opened(trace_dir=folder)
                    self.assertEqual(self.times(analysis), expected)
                    self.assertGreater(len(analysis.t.get_trace(1)), 100)
            for files in ([name], [f'tr/x/{name}'], [self.files[0]]):
                with self.subTest(files=files):
                    self.assertEqual(self.times(self.opened(trace_files=files, trace_dir='tr/x')), {0: expected[0]})
        finally:
            os.chdir(here)
            shutil.rmtree(self.root / 'tr')

    def test_given_ranks_are_kept(self):
        """Whatever the files say, also where one of them is recorded much later than the other, or says the same rank."""
        expected = self.times(self.opened(trace_dir=str(self.root)))
        analysis = self.opened(trace_files={3: self.files[1], 5: self.files[0]})
        self.assertEqual(self.times(analysis), {3: expected[1], 5: expected[0]})
        self.assertEqual(analysis.t.get_ranks(), [3, 5])
        later = generate(self.root / 'later', 1, '--seed', '9')[0]
        both = self.times(self.opened(trace_files={0: self.files[0], 1: str(later)}))
        self.assertEqual(both, {0: expected[0], 1: self.times(self.opened(trace_files={0: str(later)}))[0]})
        shutil.rmtree(self.root / 'later')

    def test_file_ranks_are_checked(self):
        import stageline
        for ranks in ([0], [4, 4]):
            with self.assertRaises(stageline.UsageError):
                stageline.open(self.files, file_ranks=ranks)
        with self.assertRaises(stageline.UsageError):
            stageline.open(ROOT / 'tests/golden/readers/paddle-log/input', file_ranks=[1])

    def test_the_ranks_of_files_are_found_wherever_they_stand(self):
        from stageline.hta.common.trace_file import get_trace_rank
        for text, rank in (('{"a": 1, "rank": 31}', 31), ('{"rank":3}', -1), ('{"rank":\n3}', -1), (' ' * ((1 << 20) - 5) + '"rank":  27,', 27),
                           (' ' * ((1 << 20) - 10) + '"rank": 271828', 271828)):
            path = self.root / 'other' / 'x.json'
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            self.assertEqual(get_trace_rank(str(path)), rank, text[-20:])
        shutil.rmtree(path.parent)

    def test_an_overlay_of_critical_events_has_no_others(self):
        """Neither those of the last step, which the analysis leaves out, nor the profiler's own."""
        analysis = self.opened(trace_dir=str(self.root))
        graph, _ = analysis.critical_path_analysis(0, 'ProfilerStep', 1)
        written = analysis.overlay_critical_path_analysis(0, graph, self.root / 'overlaid')
        from stageline.hta.common.trace_file import read_trace
        kept = [e for e in read_trace(written)['traceEvents'] if e['ph'] == 'X' and e.get('cat') not in ('user_annotation', 'python_function')]
        self.assertEqual({e.get('args', {}).get('critical') for e in kept}, {1})
        self.assertEqual(len(kept), len(graph.critical_path_events_set))
        self.assertEqual(sorted(self.times(self.opened(trace_dir=str(self.root)))), [0, 1])
        shutil.rmtree(self.root / 'overlaid')

    ARGUMENTS = [{'a"b\\c': 1, 'Küche': 'x', 'name': 'n', 'ts': 3, 'pid': 9, 'stream': 7, 'correlation': 1 << 40}, None, {},
                 {'a"b\\c': 2.5, 'list': [1, {'k': '}'}], 'dict': {'x': [1]}, 'yes': True, 'none': None, 'empty': '', 'stream': 'x'}, [1]]

    def frame_of(self, events, **config):
        """(frame, metadata) of a file with these events."""
        from stageline.hta.common.trace import parse_trace_file
        from stageline.hta.configs.parser_config import ParserConfig
        path = self.root / 'odd' / 'x.json'
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({'schema': {'list': [1]}, 'traceEvents': events, 'distributedInfo': {'rank': 0}, 'baseTimeNanoseconds': 5}))
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            metadata, frame, symbols = parse_trace_file(str(path), ParserConfig(**config))
        shutil.rmtree(path.parent)
        return frame, metadata, symbols

    def test_frames_have_what_the_file_says(self):
        """The engine reads it; Python's own JSON is asked for the same."""
        events = [{'ph': 'X', 'cat': 'cpu_op', 'name': f'op {i}', 'pid': 1, 'tid': 2, 'ts': 10 + i, 'dur': 3, **({} if one is None else {'args': one})}
                  for i, one in enumerate(self.ARGUMENTS)]
        events.insert(2, {'ph': 's', 'id': 1, 'cat': 'flow', 'name': 'flow', 'pid': 1, 'tid': 2, 'ts': 1})
        frame, metadata, symbols = self.frame_of(events, parse_all_args=True)
        self.assertEqual(metadata, {'schema': {'list': [1]}, 'distributedInfo': {'rank': 0}, 'baseTimeNanoseconds': 5})
        rows = [(place, event) for place, event in enumerate(events) if 'dur' in event]
        self.assertEqual(frame.index.tolist(), [place for place, _ in rows])
        self.assertEqual([symbols.sym_table[i] for i in frame['name']], [event['name'] for _, event in rows])
        arguments = [event['args'] if isinstance(event.get('args'), dict) else {} for _, event in rows]
        for column, name, default in (('a"b\\c', 'a"b\\c', 0), ('küche', 'Küche', ''), ('empty', 'empty', ''), ('arg_name', 'name', ''), ('correlation', 'correlation', -1),
                                      ('list', 'list', None), ('yes', 'yes', 0)):
            with self.subTest(name):
                self.assertEqual(frame[column].tolist(), [one.get(name, default) for one in arguments])
        self.assertEqual(frame['stream'].tolist(), [7, -1, -1, -1, -1])
        self.assertEqual(frame['dict'].tolist()[3], {'x': [1]})
        shapes = self.frame_of([{'ph': 'X', 'cat': 'cpu_op', 'name': 'op', 'pid': 1, 'tid': 2, 'ts': 1, 'dur': 1, 'args': {'Input Dims': [[1, 2], []]}},
                                {'ph': 'X', 'cat': 'cpu_op', 'name': 'op', 'pid': 1, 'tid': 2, 'ts': 3, 'dur': 1}])[0]
        self.assertEqual(shapes['input_dims'].tolist(), [[[1, 2], []], '-1'])

    def test_types_follow_all_events_of_the_file(self):
        """As they do in HTA, which makes one frame of all of them."""
        def event(**changed):
            return {'ph': 'X', 'cat': 'cpu_op', 'name': 'op', 'pid': 1, 'tid': 2, 'ts': 10, 'dur': 3, **changed}
        mark = {'ph': 'M', 'name': 'process_name', 'pid': 1, 'tid': 2, 'ts': 0}
        for events, kinds in (([event(), event()], 'iiii'), ([event(), event(dur=1.5)], 'iifi'), ([event(), mark], 'iifi'), ([event(), {**mark, 'pid': 'Spans'}], 'Oifi'),
                              ([event(tid='main'), event()], 'iOii'), ([event(), event(ts=10.5)], 'iifi'),
                              ([event(), {k: v for k, v in mark.items() if k != 'ts'}], 'iiff')):
            with self.subTest(events=events):
                frame = self.frame_of(events)[0]
                self.assertEqual(''.join(frame[c].dtype.kind for c in ('pid', 'tid', 'dur', 'ts')), kinds)
        self.assertTrue(self.frame_of([])[0].empty)
        self.assertTrue(self.frame_of([mark])[0].empty)

    def test_an_analysis_reads_its_files_once(self):
        """The frames of `.t` are of the run that the questions are asked of."""
        import stageline
        opened, kept = [], stageline.open
        stageline.open = lambda *paths, **how: opened.append(paths) or kept(*paths, **how)
        try:
            analysis = self.opened(trace_dir=str(self.root))
            frames = analysis.t.get_all_traces()
        finally:
            stageline.open = kept
        self.assertEqual(len(opened), 1)
        alone = self.opened(trace_dir=str(self.root))._frames
        alone.load_traces()
        for rank, frame in frames.items():
            pandas.testing.assert_frame_equal(frame, alone.get_trace(rank))

    def test_a_writer_of_ones_own_gets_the_trace_with_counters(self):
        from unittest import mock
        from stageline.hta.common.trace import Trace
        from stageline.hta.trace_analysis import TimeSeriesTypes
        analysis = self.opened(trace_dir=str(self.root))
        analysis.generate_trace_with_counters(ranks=[1], output_suffix='_counted')
        made = next(self.root.glob('*_counted.json*'))
        with gzip.open(made) as file:
            written = json.load(file)
        made.unlink()
        names = {}
        for series in (None, TimeSeriesTypes.QUEUE_LENGTH, TimeSeriesTypes.MEMCPY_BANDWIDTH):
            with mock.patch.object(Trace, 'write_raw_trace') as writer:
                analysis.generate_trace_with_counters(time_series=series, ranks=[1])
            writer.assert_called_once()
            path, content = writer.call_args.args
            self.assertIn('with_counters', path)
            self.assertFalse(os.path.exists(path))
            names[series] = {e['name'] for e in content['traceEvents'] if e['ph'] == 'C'}
            if series is None:
                self.assertEqual(content, written)
        self.assertEqual(names[TimeSeriesTypes.QUEUE_LENGTH], {'Queue Length'})
        self.assertEqual(names[TimeSeriesTypes.MEMCPY_BANDWIDTH], names[None] - {'Queue Length'})
        self.assertGreater(len(names[None]), 1)

    def test_rows_have_the_order_and_index_that_hta_gives_them(self):
        from stageline.hta.common.call_stack import CallGraph
        analysis = self.opened(trace_dir=str(self.root))
        idle, intervals = analysis.get_idle_time_breakdown(ranks=[1, 0], visualize=False, show_idle_interval_stats=True)
        self.assertEqual(idle['rank'].tolist(), sorted(idle['rank'].tolist(), reverse=True))
        self.assertEqual(intervals['rank'].tolist(), sorted(intervals['rank'].tolist(), reverse=True))
        self.assertEqual([idle.index[place] for place in range(len(idle)) if place == 0 or idle['rank'].iloc[place] != idle['rank'].iloc[place - 1]], [0, 0])
        CallGraph(analysis.t)  # annotations of a device are in no stack
        frame, texts = analysis.t.get_trace(0), analysis.t.symbol_table.sym_table
        lost = frame[frame['depth'].isna()]
        self.assertEqual({texts[i] for i in lost['cat']}, {'gpu_user_annotation'})
        self.assertTrue((lost['parent'].isna()).all())

    def test_nanoseconds_are_answered_where_hta_fails(self):
        """HTA's rounding makes negative durations, which four of its questions refuse, and it looks for kernels of old NCCL alone."""
        from stageline.hta.common.trace_call_graph import CallGraph
        from stageline.hta.configs.env_options import HTAEnvOptions
        generate(self.root / 'ns', 2, '--seed', '3', '--era', 'ns')
        folder = str(next((self.root / 'ns').rglob('*.gz')).parent)
        questions = (lambda a: a.get_gpu_kernels_with_user_annotations(0),
                     lambda a: a.get_frequent_cuda_kernel_sequences('ProfilerStep', str(self.root / 'ns/out'), min_pattern_len=1),
                     lambda a: a.get_potential_stragglers(num_candidates=1), lambda a: CallGraph(a.t, ranks=[0]).mapping)
        analysis = self.opened(trace_dir=folder, include_last_profiler_step=True)
        kernels, sequences, late, stacks = [ask(analysis) for ask in questions]
        frame = analysis.t.get_trace(0)
        self.assertLess(frame['dur'].min(), 0)
        texts = analysis.t.symbol_table.sym_table
        self.assertEqual(len(kernels), frame['cat'].map(lambda i: texts[i] in ('kernel', 'gpu_memcpy', 'gpu_memset')).sum())
        self.assertGreater((kernels['user_annotation'] >= 0).sum(), 10)
        self.assertEqual(sequences.columns.tolist(), ['pattern', 'count', 'GPU kernel duration (us)', 'CPU op duration (us)'])
        self.assertEqual((len(late), set(late) <= {0, 1}), (1, True))
        # The calls are nested by the times of the file: a parent is around its child.
        times = analysis._trace.slices(columns=['rank', 'file_index', 'start_ns', 'dur_ns']).to_pandas()
        times = times[times['rank'] == 0].set_index('file_index')
        called = frame[frame['stream'].eq(-1) & frame['parent'].ge(0)]
        child, parent = (times.loc[called[c].astype('int64')].reset_index(drop=True) for c in ('index', 'parent'))
        self.assertGreater(len(called), 100)
        self.assertTrue((parent['start_ns'] <= child['start_ns']).all())
        self.assertTrue((child['start_ns'] + child['dur_ns'] <= parent['start_ns'] + parent['dur_ns']).all())
        self.assertGreater(len(stacks), 0)
        HTAEnvOptions.instance().set_fail_as_hta(True)
        try:
            for ask in questions:
                with self.assertRaises(ValueError):
                    ask(self.opened(trace_dir=folder))
        finally:
            HTAEnvOptions.instance().set_fail_as_hta(False)
        shutil.rmtree(self.root / 'ns')

    def test_steps_after_the_last_backward_pass_keep_their_calls(self):
        """The backward thread works in the first of three steps. HTA makes the other two their own parents."""
        from stageline.hta.common.trace_call_graph import CallGraph
        from stageline.hta.configs.env_options import HTAEnvOptions
        (self.root / 'lost').mkdir()
        path = self.root / 'lost/rank0.json'
        path.write_text(json.dumps({'traceEvents': three_steps(), 'distributedInfo': {'rank': 0}}))

        def rows():
            analysis = self.opened(trace_dir=str(path.parent), include_last_profiler_step=True)
            CallGraph(analysis.t)
            frame, texts = analysis.t.get_trace(0), analysis.t.symbol_table.sym_table
            frame = frame.assign(text=[texts[i] for i in frame['name']])
            host, kernels = frame[frame['tid'].isin([1, 2])], frame[frame['text'] == 'gemm']
            self.assertEqual(len(kernels), 3)
            return (host[host['text'].str.startswith('ProfilerStep')].sort_values('ts'), host[host['text'] == 'aten::mm'].sort_values('ts'),
                    host[host['text'].str.startswith('autograd')], kernels.sort_values('ts'))
        steps, calls, backward, kernels = rows()
        self.assertEqual(steps['parent'].tolist(), [-1, -1, -1])
        self.assertEqual(backward['parent'].tolist(), steps['index'].tolist()[:1])
        self.assertEqual(calls['parent'].tolist(), steps['index'].tolist())
        self.assertEqual(steps['num_kernels'].tolist(), [1, 1, 1])
        self.assertEqual(steps['height'].tolist(), [3, 3, 3])
        HTAEnvOptions.instance().set_fail_as_hta(True)
        try:
            steps, calls, backward, kernels = rows()
        finally:
            HTAEnvOptions.instance().set_fail_as_hta(False)
        self.assertEqual(steps['parent'].tolist(), [-1, *steps['index'].tolist()[1:]])
        self.assertEqual(backward['parent'].tolist(), steps['index'].tolist()[:1])
        self.assertEqual(calls['parent'].tolist(), steps['index'].tolist())
        self.assertEqual([f['num_kernels'].tolist() for f in (steps, calls)], [[1, 0, 0]] * 2)
        self.assertEqual([f['kernel_dur_sum'].tolist() for f in (steps, calls)], [[20, 0, 0]] * 2)
        self.assertEqual([f['height'].tolist() for f in (steps, calls, kernels)], [[3, -1, -1], [2, -1, -1], [0, -1, -1]])
        shutil.rmtree(path.parent)


if __name__ == '__main__':
    unittest.main()
