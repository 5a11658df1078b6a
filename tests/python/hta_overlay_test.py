"""The installed HTA before and after stageline.hta.accelerate(): the same frames, with types, index and order. Needs
HTA and pandas (`./dev compare` installs both); the traces are not part of the project. Skipped with a count without
either."""
import logging
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import HAVE_ENGINE, ROOT  # noqa: E402

# HTA's order of rows with equal keys is that of numpy's sort, which is another one for each kind of processor; ours is the portable one.
os.environ.setdefault('NPY_DISABLE_CPU_FEATURES', 'AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V3 X86_V4')
TRACES = ROOT.parent / 'shared/data/kineto/hta'
try:
    import pandas
    from hta.trace_analysis import TraceAnalysis
except ImportError:
    TraceAnalysis = None

ASKED = [('get_temporal_breakdown', {'visualize': False}), ('get_comm_comp_overlap', {'visualize': False}),
         ('get_gpu_kernel_breakdown', {'visualize': False, 'num_kernels': 5}), ('get_gpu_kernel_breakdown', {'visualize': False, 'num_kernels': 3,
                                                                                 'duration_ratio': 0.5, 'include_memory_kernels': False}),
         ('get_idle_time_breakdown', {'visualize': False, 'show_idle_interval_stats': True}),
         ('get_gpu_user_annotation_breakdown', {'visualize': False}), ('get_gpu_user_annotation_breakdown', {'visualize': False, 'use_gpu_annotation': False}),
         ('get_cuda_kernel_launch_stats', {'visualize': False}), ('get_queue_length_summary', {}), ('get_queue_length_time_series', {}),
         ('get_memory_bw_summary', {}), ('get_memory_bw_time_series', {}), ('get_profiler_steps', {})]


def outcome(analysis, method, keywords):
    try:
        return getattr(analysis, method)(**keywords)
    except Exception as error:  # what it raises is an outcome, too
        return type(error)


@unittest.skipUnless(TraceAnalysis and HAVE_ENGINE and TRACES.is_dir(), 'no HTA, no module, or no traces here')
class Overlay(unittest.TestCase):
    def equal(self, a, b, what):
        self.assertEqual(type(a), type(b), what)
        if isinstance(a, pandas.DataFrame):
            if list(a.columns) == ['kernel_type', 'sum', 'percentage']:  # a kind without time comes of how HTA's sort falls at equal times
                a, b = (x[x['sum'] != 0].reset_index(drop=True) for x in (a, b))
            pandas.testing.assert_frame_equal(a, b, rtol=1e-9, obj=what)
        elif isinstance(a, dict):
            self.assertEqual(list(a), list(b), what)
            for key in a:
                self.equal(a[key], b[key], f'{what}[{key}]')
        elif isinstance(a, tuple):
            for i, (x, y) in enumerate(zip(a, b)):
                self.equal(x, y, f'{what}[{i}]')
        else:
            self.assertEqual(a, b, what)

    def test_answers_are_equal(self):
        from stageline.hta import overlay
        logging.disable(logging.CRITICAL)
        compared = 0
        for name in ('critical_path/alexnet', 'critical_path/simple_add', 'nccl_parser_config', 'triton_example', 'trace_diff/test',
                     'rank_non_gpu', 'df_index_resolver'):
            if not (TRACES / name).is_dir():
                continue
            overlay.undo()
            own = TraceAnalysis(trace_dir=str(TRACES / name))
            expected = [outcome(own, method, keywords) for method, keywords in ASKED]
            overlay.accelerate()
            try:
                fast = TraceAnalysis(trace_dir=str(TRACES / name))
                for (method, keywords), wanted in zip(ASKED, expected):
                    with self.subTest(trace=name, method=method, **keywords):
                        self.equal(wanted, outcome(fast, method, keywords), method)
                        compared += 1
                self.assertEqual(sorted(fast.t.traces), sorted(own.t.traces))
            finally:
                overlay.undo()
        self.assertGreater(compared, 50)


if __name__ == '__main__':
    unittest.main()
