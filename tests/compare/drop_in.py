#!/usr/bin/env python3
"""Asks HTA and stageline.hta the same questions about folders of traces and compares the frames whole: columns, types,
index, order and values.

  drop_in.py [--python PYTHON] [--older PYTHON] [--keep FOLDER] [--show N] [--only NAME,NAME] [FOLDER…]
  drop_in.py --ask MODULE FOLDER ANSWERS                          what the program starts in PYTHON: one module's answers

PYTHON holds HTA and pandas, and what it imports as stageline is the module of this build. HTA answers twice there: by the
sort that numpy takes for this processor, and by numpy's portable one. Each leaves equal keys in its own order. HTA does not
repeat an answer that differs between the two. Where an answer still differs, stageline.hta is asked once more under
STAGELINE_FAIL_AS_HTA=1. --older is a Python with another pandas and numpy; its differences are
printed, too. Without FOLDER: 22 sets made by tests/gen/kineto.py, of all eras and vendors.

Prints how many answers are equal, not repeated by HTA, refused by HTA, equal in that mode, or different. Exit 1 if one differs.
"""
import argparse
import collections
import contextlib
import gzip
import io
import json
import logging
import math
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings

from hta_live import once

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OPERATORS = ('aten::linear', 'aten::add', 'Optimizer.step')
PORTABLE = 'AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V3 X86_V4'
SECONDS = 900
MADE = {
    'ns': ['--ranks', 3, '--events', 6000, '--steps', 4, '--fault', 'host-delay:1,3'],
    'ns_sync_triton': ['--ranks', 1, '--events', 4000, '--steps', 3, '--sync', '--triton'],
    'ns_old_nccl': ['--ranks', 2, '--events', 5000, '--steps', 4, '--old-nccl', '--fault', 'host-delay:0,3'],
    'ns_python_memory': ['--ranks', 1, '--events', 5000, '--steps', 3, '--python', '--memory'],
    'ns_graphs': ['--ranks', 1, '--events', 4000, '--steps', 3, '--graphs'],
    'ns_minified': ['--ranks', 2, '--events', 3000, '--steps', 3, '--minify'],
    'ns_one_step': ['--ranks', 1, '--events', 3000, '--steps', 1],
    'ns_mlp': ['--ranks', 2, '--events', 3000, '--steps', 3, '--model', 'mlp'],
    'ns_pipeline': ['--ranks', 4, '--events', 3000, '--steps', 2, '--shape', 'pipeline'],
    'ns_dualpipe': ['--ranks', 4, '--events', 3000, '--steps', 2, '--shape', 'dualpipe'],
    'ns_clock': ['--ranks', 2, '--events', 3000, '--steps', 3, '--fault', 'clock:1,5'],
    'us': ['--ranks', 3, '--events', 6000, '--steps', 4, '--era', 'us', '--fault', 'host-delay:1,3'],
    'us_old_nccl': ['--ranks', 4, '--events', 5000, '--steps', 4, '--era', 'us', '--old-nccl', '--fault', 'slow-rank:2,1.5'],
    'us_no_device_annotations': ['--ranks', 1, '--events', 4000, '--steps', 3, '--era', 'us', '--no-device-annotations', '--sync'],
    'us_python': ['--ranks', 1, '--events', 4000, '--steps', 3, '--era', 'us', '--python'],
    'us_triton': ['--ranks', 2, '--events', 4000, '--steps', 3, '--era', 'us', '--triton', '--memory'],
    'us_no_distributed': ['--ranks', 1, '--events', 3000, '--steps', 3, '--era', 'us', '--no-distributed-info'],
    'old': ['--ranks', 1, '--events', 4000, '--steps', 3, '--era', 'old', '--memory'],
    'old_two': ['--ranks', 2, '--events', 3000, '--steps', 4, '--era', 'old'],
    'amd': ['--ranks', 2, '--events', 4000, '--steps', 3, '--vendor', 'amd'],
    'amd_us': ['--ranks', 1, '--events', 4000, '--steps', 3, '--vendor', 'amd', '--era', 'us', '--python'],
    'amd_old_nccl': ['--ranks', 2, '--events', 3000, '--steps', 3, '--vendor', 'amd', '--old-nccl'],
}


# ---- asking ----

def plain(value):
    """Returns an answer as Python's own values, so that it can be read under another pandas."""
    import numpy
    import pandas
    if isinstance(value, pandas.Series):
        value = value.to_frame('' if value.name is None else value.name)
    if isinstance(value, pandas.DataFrame):
        return {'columns': [plain(c) for c in value.columns], 'types': [str(t) for t in value.dtypes], 'index names': list(value.index.names),
                'index type': str(value.index.dtype), 'index': [plain(i) for i in value.index],
                'values': [[plain(v) for v in value.iloc[:, i].tolist()] for i in range(len(value.columns))]}
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value] if isinstance(value, list) else tuple(plain(v) for v in value)
    if isinstance(value, (set, frozenset)):
        return sorted((plain(v) for v in value), key=str)
    if isinstance(value, numpy.ndarray):
        return plain(value.tolist())
    if isinstance(value, numpy.generic):
        return value.item()
    return value if value is None or isinstance(value, (int, float, str, bool)) else str(value)


def named(value, trace):
    """A frame's columns of numbers of texts as the texts: HTA numbers them in the order of a set, which each process has of its own."""
    import pandas
    texts = trace.symbol_table.sym_table
    if isinstance(value, dict):
        return {k: named(v, trace) for k, v in value.items()}
    if isinstance(value, list):
        return [named(v, trace) for v in value]
    if isinstance(value, pandas.DataFrame):
        value = value.copy()
        for column in ('name', 'cat', 'user_annotation'):
            if column in value and pandas.api.types.is_integer_dtype(value[column]):
                value[column] = [texts[i] if i >= 0 else i for i in value[column]]
    return value


def whole_run(run, ranks):
    yield 'temporal breakdown', lambda: run.get_temporal_breakdown(visualize=False)
    yield 'overlap', lambda: run.get_comm_comp_overlap(visualize=False)
    for options in ({}, {'num_kernels': 1000000}, {'num_kernels': 3, 'duration_ratio': 0.5}, {'include_memory_kernels': False}):
        part = once(lambda o=options: run.get_gpu_kernel_breakdown(visualize=False, **o))
        yield f'kernel types {options}', lambda p=part: p(0)
        yield f'kernels {options}', lambda p=part: p(1)
    for delay in (30, 1):
        part = once(lambda d=delay: run.get_idle_time_breakdown(ranks=ranks, visualize=False, show_idle_interval_stats=True,
                                                               consecutive_kernel_delay=d))
        yield f'idle time {delay}', lambda p=part: p(0)
        yield f'idle intervals {delay}', lambda p=part: p(1)
    for device in (True, False):
        for options in ({}, {'num_kernels': 3}):
            yield f'annotations device={device} {options}', lambda d=device, o=options: run.get_gpu_user_annotation_breakdown(
                use_gpu_annotation=d, visualize=False, **o)
    yield 'steps', run.get_profiler_steps
    if len(ranks) > 1:
        for n in (1, 2):
            yield f'stragglers {n}', lambda n=n: run.get_potential_stragglers(num_candidates=n)
        yield 'queue summary of all', lambda: run.get_queue_length_summary(ranks=ranks)
        yield 'bandwidth summary of all', lambda: run.get_memory_bw_summary(ranks=ranks)


def one_rank(run, rank):
    for memory in (True, False):
        yield f'launches memory={memory} {rank}', lambda m=memory: run.get_cuda_kernel_launch_stats(
            ranks=[rank], include_memory_events=m, visualize=False)
    yield f'queue series {rank}', lambda: run.get_queue_length_time_series(ranks=[rank])
    yield f'queue summary {rank}', lambda: run.get_queue_length_summary(ranks=[rank])
    yield f'queue summary of series {rank}', lambda: run.get_queue_length_summary_from_time_series(run.get_queue_length_time_series(ranks=[rank]))
    for most in (1024, 10, 2):
        yield f'full queue {most} {rank}', lambda m=most: run.get_time_spent_blocked_on_full_queue(
            run.get_queue_length_time_series(ranks=[rank]), max_queue_length=m)
    yield f'bandwidth series {rank}', lambda: run.get_memory_bw_time_series(ranks=[rank])
    yield f'bandwidth summary {rank}', lambda: run.get_memory_bw_summary(ranks=[rank])
    for expand, shorten in ((True, True), (True, False), (False, False)):
        yield f'annotated kernels {expand} {shorten} {rank}', lambda e=expand, s=shorten: run.get_gpu_kernels_with_user_annotations(rank, e, s)


def deep(run, rank, fresh, hta):
    names = list(run.t.symbol_table.sym_table)
    for operator in OPERATORS:
        if any(operator in name for name in names):
            def sequences(operator=operator):
                with tempfile.TemporaryDirectory() as folder:
                    return run.get_frequent_cuda_kernel_sequences(operator_name=operator, output_dir=folder, rank=rank, visualize=False)
            yield f'sequences {operator} {rank}', sequences
    yield f'operators and delays {rank}', lambda: run.get_aten_op_kernels_and_delay(ranks=[rank])
    yield f'counters of CUPTI {rank}', lambda: run.get_cupti_counter_data_with_operators(ranks=[rank])

    def graph(where):
        other = fresh()  # both builders write columns into it
        hta(where).CallGraph(other.t, ranks=[rank])
        return named(other.t.traces[rank], other.t)
    yield f'call graph {rank}', lambda: graph('common.trace_call_graph')
    yield f'call stacks {rank}', lambda: graph('common.call_stack')
    part = once(lambda: run.critical_path_analysis(rank, 'ProfilerStep', 1))
    yield f'critical path is sound {rank}', lambda: part(1)
    yield f'critical path {rank}', lambda: list(part(0).critical_path_nodes)
    yield f'critical path parts {rank}', lambda: part(0).summary()


def frames_of(run, rank):
    yield f'rows {rank}', lambda: run.t.get_trace(rank)
    yield f'duration {rank}', lambda: run.t.get_trace_duration(rank)
    yield f'steps of a rank {rank}', lambda: run.t.get_iterations(rank)


def written(run, rank):
    """The trace with counters that is written next to the source, which `run` has in a folder of its own."""
    def made(series, suffix):
        run.generate_trace_with_counters(**({} if series is None else {'time_series': series}), ranks=[rank], output_suffix=suffix)
        path = run.t.trace_files[rank]
        with open(path.replace('.json', suffix + '.json'), 'rb') as file:
            data = file.read()
        return json.loads(gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data)
    yield f'with counters {rank}', lambda: made(None, '_all')
    yield f'raw trace {rank}', lambda: run.t.get_raw_trace_for_one_rank(rank)


def every(run, ranks, fresh, hta):
    for rank in ranks:
        yield from frames_of(run, rank)
    yield from whole_run(run, ranks)
    for rank in ranks:
        yield from one_rank(run, rank)
    yield from deep(run, ranks[0], fresh, hta)
    yield from written(run, ranks[0])


def ask(module, folder, answers):
    import importlib
    warnings.filterwarnings('ignore')
    logging.disable(logging.ERROR)
    import plotly.graph_objects
    plotly.graph_objects.Figure.show = lambda *_, **__: None
    hta = lambda name: importlib.import_module(f'{module}.{name}')  # noqa: E731
    fresh = lambda: hta('trace_analysis').TraceAnalysis(trace_dir=folder)  # noqa: E731
    kept = {}
    try:
        run = fresh()
        ranks = sorted(run.t.traces)
    except Exception as error:
        kept['load'] = ('failed', f'{type(error).__name__}: {error}')
    else:
        kept['load'] = ('ok', plain(ranks))
        for name, call in every(run, ranks, fresh, hta) if ranks else ():
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    kept[name] = ('ok', plain(named(call(), run.t)))
            except Exception as error:
                kept[name] = ('failed', f'{type(error).__name__}: {str(error)[:200]}')
    pathlib.Path(answers).write_bytes(pickle.dumps(kept))


# ---- comparing ----

def close(a, b):
    if isinstance(a, float) or isinstance(b, float):
        if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
            return False
        return a == b or math.isnan(a) and math.isnan(b) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b


def differs(a, b, types, at=''):
    """None, or where two answers differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        if set(a) != set(b):
            return f'{at}: keys {list(a)[:8]} {list(b)[:8]}'
        for key in a:
            if key in ('types', 'index type') and not types:
                continue
            if found := differs(a[key], b[key], types, f'{at}/{key}'):
                return found
        return None
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        if len(a) != len(b):
            return f'{at}: {len(a)} {len(b)} {str(a)[:150]} | {str(b)[:150]}'
        for i, (x, y) in enumerate(zip(a, b)):
            if found := differs(x, y, types, f'{at}[{i}]'):
                return found
        return None
    return None if close(a, b) and isinstance(a, str) == isinstance(b, str) else f'{at}: {str(a)[:150]!r} {str(b)[:150]!r}'


def answers_of(python, module, folder, kept, **more):
    if not kept.exists():
        # HTA and stageline.hta write next to the traces, so each has its own copy at the same place.
        copy = kept.parent / 'traces'
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        done = subprocess.run([python, '-W', 'ignore', __file__, '--ask', module, str(copy), str(kept)], env={**os.environ, **more}, capture_output=True, text=True,
                              timeout=SECONDS)
        if done.returncode:
            raise RuntimeError(f'{module} on {folder.name}: {done.stderr[-400:]}')
    return pickle.loads(kept.read_bytes())


def compare_sets(options, folders, out):
    counts, other, shown = collections.Counter(), collections.Counter(), collections.Counter()
    for name, folder in folders.items():
        place = out / name
        place.mkdir(parents=True, exist_ok=True)
        quick = answers_of(options.python, 'hta', folder, place / 'hta.pickle')
        stable = answers_of(options.python, 'hta', folder, place / 'portable.pickle', NPY_DISABLE_CPU_FEATURES=PORTABLE)
        older = answers_of(options.older, 'hta', folder, place / 'older.pickle') if options.older else {}
        ours = answers_of(options.python, 'stageline.hta', folder, place / 'ours.pickle')
        here = collections.Counter()
        for question, (state, answer) in quick.items():
            kind, where = 'equal', None
            if state == 'failed':
                kind = 'HTA fails'
                counts['... where stageline.hta answers'] += ours.get(question, ('failed', ''))[0] == 'ok'
            else:
                mine = ours.get(question, ('failed', 'not asked'))
                where = f'{mine[1]}' if mine[0] == 'failed' else differs(answer, mine[1], True)
                same_portable = stable.get(question, ('failed',))[0] == 'ok' and differs(stable[question][1], mine[1], True) is None
                if where and differs(answer, stable.get(question, (0, None))[1], True):
                    kind = 'HTA does not repeat, equal to its portable sort' if same_portable else 'HTA does not repeat, other'
                elif where:
                    as_hta = answers_of(options.python, 'stageline.hta', folder, place / 'as_hta.pickle', STAGELINE_FAIL_AS_HTA='1')
                    same = differs(answer, as_hta.get(question, (0, None))[1], True) is None
                    kind = 'equal under STAGELINE_FAIL_AS_HTA' if same else 'different'
                if question in older and (older[question][0] != 'ok' or differs(answer, older[question][1], False)):
                    other[question.rsplit(' ', 1)[0]] += 1
            here[kind] += 1
            sort = question.rstrip('0123456789')
            if kind in ('different', 'HTA does not repeat, other') and shown[sort] < options.show:
                shown[sort] += 1
                print(f'{name}: {question}: {kind}: {where}')
        counts += here
        print(f'{name}: {dict(here)}', flush=True)
    print(f'{sum(n for k, n in counts.items() if not k.startswith("."))} questions of {len(folders)} sets: {dict(counts)}')
    if options.older:
        print(f'HTA under the older pandas and numpy answers otherwise: {dict(other)}')
    return 1 if counts['different'] or counts['HTA does not repeat, other'] else 0


def main():
    if sys.argv[1:2] == ['--ask']:
        return ask(*sys.argv[2:5])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folders', nargs='*', type=pathlib.Path)
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--older', default='')
    parser.add_argument('--keep', default='', help='leave answers in this folder, and use those that are there')
    parser.add_argument('--show', type=int, default=2, help='differences shown of each kind of question')
    parser.add_argument('--only', default='')
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / 'tests/gen'))
    import kineto
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(options.keep or scratch).resolve()
        folders = {f.name: f for f in options.folders}
        for seed, (name, arguments) in enumerate(() if folders else MADE.items()):
            if options.only and name not in options.only.split(','):
                continue
            folders[name] = out / 'made' / name
            if not folders[name].exists():
                kineto.generate([*map(str, arguments), '--seed', str(4800 + seed), '--format', 'gz', '-o', str(folders[name])])
        return compare_sets(options, folders, out)


if __name__ == '__main__':
    sys.exit(main())
