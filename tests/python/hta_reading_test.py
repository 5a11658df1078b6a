"""stageline.hta finds files as HTA does: in one folder, by relative names, with the ranks that are given. On traces of our own
generator; skipped without pandas."""
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


if __name__ == '__main__':
    unittest.main()
