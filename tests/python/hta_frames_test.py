"""stageline.hta's frames against those that HTA itself made: columns, types, index and values. The frames are not part
of the project (../shared/data/hta_golden): skipped with a count without them, or without pandas."""
import csv
import gzip
import json
import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import HAVE_ENGINE, ROOT  # noqa: E402

DATA = ROOT.parent / 'shared' / 'data'
try:
    import pandas
except ImportError:
    pandas = None
csv.field_size_limit(1 << 30)

# The large ones are compared by tests/hta already, through the program.
CASES = ('gen_small_8ranks_ns', 'real_h100_owlv2', 'nccl', 'triton_example', 'simple_add', 'alexnet', 'cuda_event_sync', 'amd_mi250',
         'df_index_resolver', 'execution_trace', 'negative_queue_length', 'trace_file_list')


def golden(folder, name):
    for suffix, opener in (('.csv', open), ('.csv.gz', gzip.open)):
        path = folder / (name + suffix)
        if path.exists():
            with opener(path, 'rt', newline='') as file:
                return list(csv.reader(file))
    return None


def methods(analysis, rank, every):
    """(name of the golden, its parameters → frame)."""
    yield 'temporal_breakdown', lambda p: analysis.get_temporal_breakdown(visualize=False)
    yield 'comm_comp_overlap', lambda p: analysis.get_comm_comp_overlap(visualize=False)
    for form in ('default', 'all', 'top3_ratio50', 'top5_ratio100', 'nomem'):
        yield f'kernel_breakdown_types_{form}', lambda p: analysis.get_gpu_kernel_breakdown(visualize=False, **p)[0]
        yield f'kernel_breakdown_kernels_{form}', lambda p: analysis.get_gpu_kernel_breakdown(visualize=False, **p)[1]
    for delay in (1, 30, 1000):
        yield f'idle_breakdown_{delay}', lambda p: analysis.get_idle_time_breakdown(visualize=False, **p)[0]
        yield f'idle_interval_stats_{delay}', lambda p: analysis.get_idle_time_breakdown(visualize=False, show_idle_interval_stats=True, **p)[1]
    for side in ('gpu', 'cpu'):
        for form in ('all', 'top3', 'top3_allow'):
            yield f'user_annotation_{side}_{form}', lambda p: analysis.get_gpu_user_annotation_breakdown(visualize=False, **p)
    yield f'launch_stats_rank{rank}', lambda p: analysis.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False, **p)[rank]
    yield f'launch_stats_rank{rank}_nomem', lambda p: analysis.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False, **p)[rank]
    yield f'queue_length_summary_rank{rank}', lambda p: analysis.get_queue_length_summary(ranks=[rank])
    yield f'queue_full_2_rank{rank}', lambda p: analysis.get_time_spent_blocked_on_full_queue({rank: None}, **p)
    yield f'memory_bw_summary_rank{rank}', lambda p: analysis.get_memory_bw_summary(ranks=[rank])


@unittest.skipUnless(pandas is not None and HAVE_ENGINE and (DATA / 'hta_golden').is_dir(), 'no pandas, no module, or no frames of HTA here')
class Frames(unittest.TestCase):
    """Order at equal values is numpy's own in HTA, so rows are compared sorted."""

    def test_frames(self):
        from stageline.hta import TraceAnalysis
        compared = 0
        for name in CASES:
            folder = DATA / 'hta_golden' / name
            if not (folder / 'manifest.json').exists():
                continue
            manifest = json.loads((folder / 'manifest.json').read_text())
            path = DATA / manifest['input']['path']
            files = manifest['input'].get('files')
            analysis = TraceAnalysis(trace_files=[str(path / f) for f in files] if files else None, trace_dir=None if files else str(path),
                                     include_last_profiler_step=bool(manifest['input'].get('last')))
            rank = analysis._trace.ranks[0]
            for result, ask in methods(analysis, rank, analysis._trace.ranks):
                record = manifest['results'].get(result)
                if not record or record['status'] != 'ok' or not record.get('columns') or not record.get('rows'):
                    continue
                with self.subTest(case=name, result=result):
                    frame = ask({k: v for k, v in record['params'].items() if k not in ('rank',)})
                    rows = golden(folder, result)
                    self.compare(frame, record, rows)
                    compared += 1
        print(f'note: {compared} frames of HTA compared', file=sys.stderr)
        self.assertGreater(compared, 50)

    def compare(self, frame, record, rows):
        names = ['|'.join(c) if isinstance(c, tuple) else c for c in frame.columns]
        self.assertEqual(names, list(record['columns']))
        for name, kind in zip(names, frame.dtypes):
            wanted = record['columns'][name]  # the frames are pandas 1.5's, which keeps texts as objects
            self.assertEqual(str(kind), str(pandas.Series(['']).dtype) if wanted == 'object' else wanted, name)
        if any('|' in name for name in names):
            rows = rows[3:]  # two lines of columns and one of the index
            ours = [list(index if isinstance(index, tuple) else (index,)) + list(row) for index, row in zip(frame.index, frame.values.tolist())]
        elif record['index'] == ['idle_category']:
            rows = rows[1:]
            ours = [[index, *row] for index, row in zip(frame.index, frame.values.tolist())]
        else:
            rows = [row[1:] for row in rows[1:]]
            ours = [list(row) for row in frame.itertuples(index=False)]
        key = lambda row: [f'{v:.6g}' if isinstance(v, float) else str(v) for v in row]  # noqa: E731
        self.assertEqual(len(ours), len(rows))
        theirs = sorted(([self.value(v) for v in row] for row in rows), key=key)
        for a, b in zip(sorted(([self.value(str(v)) for v in row] for row in ours), key=key), theirs):
            for x, y in zip(a, b):
                close = isinstance(x, float) and isinstance(y, float) and (math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-6) or x != x and y != y)
                self.assertTrue(close or x == y, (a, b))

    @staticmethod
    def value(text):
        if text in ('', 'nan'):
            return math.nan
        try:
            return float(text)
        except ValueError:
            return text


if __name__ == '__main__':
    unittest.main()
