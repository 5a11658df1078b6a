"""The figures of stageline.hta: how many each question draws, of what, and with the renderer that was asked for. Skipped without plotly."""
import logging
import pathlib
import sys
import tempfile
import unittest
import warnings
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import HAVE_ENGINE  # noqa: E402
from hta_reading_test import generate  # noqa: E402

try:
    import pandas  # noqa: F401
    import plotly.basedatatypes
    HAVE_PLOTLY = True
except ImportError:
    HAVE_PLOTLY = False


@unittest.skipUnless(HAVE_ENGINE and HAVE_PLOTLY, 'no module, or no pandas and plotly')
class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        logging.disable(logging.CRITICAL)
        cls.folder = tempfile.TemporaryDirectory()
        generate(cls.folder.name, 4, '--old-nccl', '--seed', '4')
        from stageline.hta import TraceAnalysis
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            cls.analysis = TraceAnalysis(trace_dir=str(next(pathlib.Path(cls.folder.name).rglob('*.gz')).parent))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        logging.disable(logging.NOTSET)

    def drawn(self, method, **keywords):
        """(what the question returns, [(figure, its keywords of show)])."""
        shown = []
        with mock.patch.object(plotly.basedatatypes.BaseFigure, 'show', lambda figure, **how: shown.append((figure, how))):
            return getattr(self.analysis, method)(**keywords), shown

    def test_kernels(self):
        (kinds, kernels), shown = self.drawn('get_gpu_kernel_breakdown', num_kernels=3, image_renderer='json')
        named = kernels[kernels['name'] != 'others'].groupby('kernel_type')['name'].nunique()
        self.assertEqual(len(shown), 1 + len(named) + named.sum())
        self.assertTrue(all(how == {'renderer': 'json'} for _, how in shown))
        pies = next(f for f, _ in shown if f.layout.title.text == f'Kernel type "{named.index[0]}" - kernel distribution on each rank')
        self.assertEqual([pie.title.text for pie in pies.data], [f'Rank {r}' for r in range(4)])
        one = kernels[kernels['name'] == kernels['name'].iloc[0]]
        bar = next(f for f, _ in shown if f.layout.title.text == f'Kernel type "{one["kernel_type"].iloc[0]}" - {one["name"].iloc[0]}').data[0]
        self.assertEqual(list(bar.y), one['mean (us)'].tolist())
        self.assertEqual([bool(bar.error_y.array is not None), bool(bar.error_y.arrayminus is not None)], [True, True])

    def test_launches_heed_the_cutoffs(self):
        frames, shown = self.drawn('get_cuda_kernel_launch_stats', ranks=[0, 2], runtime_cutoff=7, launch_delay_cutoff=20)
        self.assertEqual(len(shown), 6)
        for place, rank in enumerate((0, 2)):
            frame, (short, runtime, delay) = frames[rank], [figure.data[0].x for figure, _ in shown[3 * place:3 * place + 3]]
            self.assertEqual(len(short), ((frame['cpu_duration'] <= 7) & (frame['gpu_duration'] < frame['cpu_duration'])).sum())
            self.assertEqual(len(runtime), (frame['cpu_duration'] > 7).sum())
            self.assertEqual(len(delay), (frame['launch_delay'] > 20).sum())
            self.assertGreater(len(delay), 0)

    def test_the_others(self):
        for method, keywords, count in (('get_temporal_breakdown', {}, 1), ('get_comm_comp_overlap', {}, 1), ('get_idle_time_breakdown', {'ranks': [0, 3]}, 2),
                                        ('get_aten_op_kernels_and_delay', {'ranks': [1]}, 1),
                                        ('get_potential_stragglers', {'visualize': True}, 3)):
            with self.subTest(method=method):
                self.assertEqual(len(self.drawn(method, **keywords)[1]), count)
        frame, shown = self.drawn('get_gpu_user_annotation_breakdown', use_gpu_annotation=False)
        self.assertEqual(len(shown), 1 + frame['name'].nunique())

    def test_stragglers_are_those_of_the_engine(self):
        """With the figures they are found in the frames, without them by the engine; a way of one's own gets the rows of the steps."""
        late, _ = self.drawn('get_potential_stragglers', visualize=True, num_candidates=2)
        self.assertEqual(sorted(late), sorted(self.analysis.get_potential_stragglers(num_candidates=2)))
        step = self.analysis.get_profiler_steps()[1]
        asked = []

        def own(rows, symbols, count, visualize):
            asked.append((sorted(rows['iteration'].unique().tolist()), count, visualize))
            return rows.groupby('rank').size()
        self.assertEqual(len(self.analysis.get_potential_stragglers([step], 1, straggler_identification_impl=own)), 1)
        self.assertEqual(asked, [([step], 1, False)])


if __name__ == '__main__':
    unittest.main()
