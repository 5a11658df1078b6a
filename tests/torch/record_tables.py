#!/usr/bin/env python3
"""Records the tables of torch's profiler about small programs, next to the trace it exports of them: the truth of
tests/torch/tables.py.

  record_tables.py OUT [--only CASE,CASE] [--python-export]    run with a Python that has torch; every case is one process

  OUT/CASE.trace.json.gz   export_chrome_trace of the capture
  OUT/CASE.truth.json.gz   {torch, program, options, tables: [{grouping…, sort_by…, text}], stacks: {metric: text}, total: {…}}
                           and where the export loses something (LOST): {lost: what, tables: [{…, exported: text}]}, torch's table
                           of the events as exported

The programs are tiny on purpose (CPU, some hundred rows), but each has a feature that makes the table hard. Such
features are nested ranges of one name, autograd on its own thread, views, in-place operators, lists of tensors, several
steps, threads, and asynchronous collectives.
"""
import argparse
import gzip
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings

# Every case: what the program does, and how the profiler is asked. `tables` names the groupings whose tables are recorded.
CASES = {
    'plain': {'program': 'train', 'profile': {}, 'groupings': ['none']},
    'no-steps': {'program': 'mlp', 'profile': {}, 'groupings': ['none']},
    'shapes': {'program': 'train', 'profile': {'record_shapes': True}, 'groupings': ['none', 'shapes']},
    'memory': {'program': 'train', 'profile': {'profile_memory': True}, 'groupings': ['none']},
    'memory-shapes': {'program': 'views', 'profile': {'profile_memory': True, 'record_shapes': True}, 'groupings': ['none', 'shapes']},
    'flops': {'program': 'flops', 'profile': {'with_flops': True}, 'groupings': ['none']},
    'flops-shapes': {'program': 'flops', 'profile': {'with_flops': True, 'record_shapes': True}, 'groupings': ['none', 'shapes']},
    'stack': {'program': 'mlp', 'profile': {'with_stack': True}, 'groupings': ['none', 'stack5', 'frames']},
    'stack-verbose': {'program': 'mlp', 'profile': {'with_stack': True, 'verbose': True},
                      'groupings': ['none', 'stack1', 'stack3', 'stack40', 'frames']},
    'stack-verbose-all': {'program': 'flops', 'groupings': ['none', 'stack2', 'stack2-shapes'],
                          'profile': {'with_stack': True, 'verbose': True, 'record_shapes': True, 'with_flops': True,
                                      'profile_memory': True, 'with_modules': True}},
    'modules': {'program': 'mlp', 'profile': {'with_modules': True}, 'groupings': ['none']},
    'overloads': {'program': 'train', 'profile': {'capture_overload_names': True, 'record_shapes': True},
                  'groupings': ['none', 'overload', 'overload-shapes']},
    'threads': {'program': 'threads', 'profile': {'profile_all_threads': True}, 'groupings': ['none']},
    'threads-memory': {'program': 'threads', 'profile': {'profile_all_threads': True, 'profile_memory': True, 'record_shapes': True},
                       'groupings': ['none', 'shapes']},
    'gloo': {'program': 'gloo', 'profile': {'record_shapes': True}, 'groupings': ['none', 'shapes']},
    'future': {'program': 'future', 'profile': {}, 'groupings': ['none']},
    'backslash': {'program': 'backslash', 'profile': {}, 'groupings': ['none']},
    'long-names': {'program': 'long_names', 'profile': {'record_shapes': True}, 'groupings': ['none', 'shapes']},
    'out-of-memory': {'program': 'out_of_memory', 'profile': {'profile_memory': True}, 'groupings': ['none']},
}
# Facts that the export lacks or changes: the reason, and the resulting event.
LOST = {
    'future': ('whether an annotation is asynchronous is not exported: one that another thread ends looks like any other',
               lambda event: setattr(event, 'is_async', False)),
    'backslash': ('the export writes a slash for every backslash of a name',
                  lambda event: setattr(event, 'name', event.name.replace('\\', '/'))),
}
# Of export_chrome_trace(…, use_python_export=True): it writes no start of the capture, so times count from the first event. The last
# digit of a mean that lies between two printable numbers may then be another one.
PYTHON_EXPORT_LOSES = 'the export that Python writes has no start of the capture: times count from its first event'
EXPERIMENTAL = ('verbose', 'capture_overload_names', 'profile_all_threads')
GROUPINGS = {
    'none': {},
    'shapes': {'group_by_input_shape': True},
    'overload': {'group_by_overload_name': True},
    'overload-shapes': {'group_by_overload_name': True, 'group_by_input_shape': True},
    'stack1': {'group_by_stack_n': 1},
    'stack2': {'group_by_stack_n': 2},
    'stack2-shapes': {'group_by_stack_n': 2, 'group_by_input_shape': True},
    'stack3': {'group_by_stack_n': 3},
    'stack5': {'group_by_stack_n': 5},
    'stack40': {'group_by_stack_n': 40},
    'frames': {'include_python_functions': True},  # since torch 2.14; before that, frames are always rows
}
SORT_KEYS = ['cpu_time', 'cpu_time_total', 'self_cpu_time_total', 'count', 'cuda_time', 'cuda_time_total', 'self_cuda_time_total',
             'xpu_time_total', 'device_time_total', 'cpu_memory_usage', 'self_cpu_memory_usage', 'cuda_memory_usage',
             'self_cuda_memory_usage', 'flops']
# These layouts are tried on the first grouping of a case; the others get FEW.
LAYOUTS = [
    {}, {'row_limit': -1}, {'row_limit': 0}, {'row_limit': 1}, {'row_limit': 7, 'top_level_events_only': True},
    {'row_limit': -1, 'top_level_events_only': True}, {'row_limit': 5, 'time_unit': 's'}, {'row_limit': 5, 'time_unit': 'ms'},
    {'row_limit': 5, 'time_unit': 'us'}, {'row_limit': 5, 'header': 'what took the time'},
    {'row_limit': 4, 'header': 'both', 'top_level_events_only': True, 'sort_by': 'count', 'time_unit': 'ms'},
    {'row_limit': 8, 'max_name_column_width': 20}, {'row_limit': 8, 'max_name_column_width': 9},
    {'row_limit': 8, 'max_name_column_width': 200}, {'row_limit': 8, 'max_shapes_column_width': 24},
    {'row_limit': 8, 'max_src_column_width': 30}, {'row_limit': 8, 'max_src_column_width': 300},
    {'row_limit': 8, 'max_src_column_width': None}, {'row_limit': -1, 'max_name_column_width': None, 'max_shapes_column_width': None},
    *({'row_limit': 12, 'sort_by': key} for key in SORT_KEYS),
]
FEW = [{'row_limit': 60}, {'row_limit': 12, 'sort_by': 'self_cpu_time_total'}, {'row_limit': 6, 'sort_by': 'cpu_time_total',
        'top_level_events_only': True}, {'row_limit': 12, 'sort_by': 'count', 'max_shapes_column_width': 30,
        'max_src_column_width': 24, 'max_name_column_width': 24}]
METRICS = ['self_cpu_time_total', 'self_cuda_time_total', 'self_xpu_time_total', 'self_privateuse1_time_total']
TOTALS = ['key', 'count', 'cpu_time_total', 'self_cpu_time_total', 'device_time_total', 'self_device_time_total', 'cpu_memory_usage',
          'self_cpu_memory_usage', 'device_memory_usage', 'self_device_memory_usage', 'flops']


# ---- the programs: each yields once per training step ---------------------------------------------------------------


def mlp(torch):
    """One linear layer, its loss and its backward pass; two same-name ranges, one inside the other."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    x = torch.randn(4, 8)
    with torch.profiler.record_function('batch'):
        with torch.profiler.record_function('batch'):
            model(x).sum().backward()
    yield


def train(torch):
    """A transformer layer with an optimizer that passes lists of tensors, annotations, in-place operators."""
    model = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    for _ in range(3):
        x = torch.randn(2, 5, 16)
        with torch.profiler.record_function('forward'):
            out = model(x)
            with torch.profiler.record_function('loss'):
                loss = out.mul_(1.5).pow(2).mean()
        with torch.profiler.record_function('backward'):
            loss.backward()
        with torch.profiler.record_function('update'):
            with torch.profiler.record_function('update'):
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            with torch.profiler.record_function('update'):
                optimizer.step()
                optimizer.zero_grad()
        del out, loss
        yield


def views(torch):
    """Views, concatenations, frees outside of any operator, scalars, empty tensors, growing allocations."""
    kept = []
    for size in (3, 300, 300_000):
        x = torch.zeros(size)
        y = x.view(-1, 3).t().contiguous().add_(1).unsqueeze(0)
        kept.append(torch.cat([y, y], 0).chunk(2)[0].clone())
        del x, y
        torch.empty(0).sum()
        torch.stack([torch.ones(2, 2), torch.ones(2, 2)]).index_select(0, torch.tensor([1]))
        torch.where(torch.ones(3) > 0, 1.0, 2.0)
        if len(kept) == 2:
            kept.clear()
        yield


def flops(torch):
    """Every operator for which torch counts floating point operations."""
    a, b, c = torch.randn(32, 48), torch.randn(48, 24), torch.randn(24)
    images, kernels = torch.randn(2, 3, 12, 12), torch.randn(4, 3, 3, 3)
    grouped = torch.randn(6, 1, 3, 3)
    for _ in range(2):
        with torch.profiler.record_function('multiply'):
            torch.mm(a, b)
            torch.addmm(c, a, b)
            torch.bmm(torch.randn(3, 4, 5), torch.randn(3, 5, 6))
            torch.baddbmm(torch.randn(3, 4, 6), torch.randn(3, 4, 5), torch.randn(3, 5, 6))
        with torch.profiler.record_function('convolve'):
            torch.nn.functional.conv2d(images, kernels, stride=2, padding=1)
            torch.nn.functional.conv2d(torch.randn(1, 6, 9, 9), grouped, groups=6, dilation=(2, 1), padding=(1, 2))
        torch.add(a, a, alpha=2)
        torch.mul(a, 3.0)
        a * a
        a + 1
        yield


def threads(torch):
    """A second Python thread whose operators and allocations run at the same time as the first's."""
    def work():
        with torch.profiler.record_function('second thread'):
            for _ in range(4):
                torch.randn(64, 64).mm(torch.randn(64, 64)).relu_()
    for _ in range(2):
        second = threading.Thread(target=work)
        with torch.profiler.record_function('first thread'):
            second.start()
            x = torch.randn(32, 32, requires_grad=True)
            (x @ x).sum().backward()
            second.join()
        yield


def gloo(torch):
    """Collectives of one process: their annotations end on another thread."""
    import torch.distributed as dist
    dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    x = torch.ones(64)
    for _ in range(2):
        with torch.profiler.record_function('exchange'):
            dist.all_reduce(x)
            work = dist.all_reduce(x, async_op=True)
            x2 = torch.ones(16).exp()
            work.wait()
            dist.broadcast(x2, 0)
            dist.all_gather([torch.empty(64)], x)
            dist.barrier()
        yield
    dist.destroy_process_group()


def future(torch):
    """An annotation that another thread ends: asynchronous, which the trace does not say."""
    for _ in range(2):
        done = torch.futures.Future()
        with torch.profiler.record_function('waits for a future') as record:
            handed = record._call_end_callbacks_on_future(done)
            torch.ones(8).exp()
        thread = threading.Thread(target=lambda: done.set_result(torch.ones(1)))
        thread.start()
        thread.join()
        torch.ones(8).log()
        handed.wait()
        yield


def backslash(torch):
    """A name the export changes: a backslash becomes a slash."""
    with torch.profiler.record_function('C:\\data'):
        torch.ones(2).exp()
    yield


def long_names(torch):
    """Names at, below and above every cut of the layout, one character, none ASCII, quotes, and long shapes."""
    for size in (1, 2, 15, 16, 17, 50, 51, 52, 53, 54, 55, 56, 90):
        with torch.profiler.record_function('n' * size):
            torch.ones(2)
    with torch.profiler.record_function('a "quoted" name'):
        torch.cat([torch.ones(1, 2, 3, 4, 5) for _ in range(12)])
    for dims in ((1,) * 20, (1,) * 25, (1,) * 26, (1,) * 27):
        torch.ones(dims).add(torch.ones(dims))
    yield


def out_of_memory(torch):
    """Allocations that fail, inside an operator and an annotation."""
    for _ in range(2):
        with torch.profiler.record_function('too much'):
            torch.ones(3)
            try:
                torch.empty(1 << 58)
            except RuntimeError:
                pass
    yield


PROGRAMS = {f.__name__: f for f in (mlp, train, views, flops, threads, gloo, future, long_names, backslash, out_of_memory)}


# ---- recording -------------------------------------------------------------------------------------------------------


def count_from(times, first_ns):
    times.start, times.end = ((round(us * 1000) - first_ns) / 1000 for us in (times.start, times.end))


def record(name, out, python_export):
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
    warnings.simplefilter('ignore')
    torch.manual_seed(1)
    torch.set_num_threads(1)
    case = CASES[name]
    options = dict(case['profile'])
    special = {key: options.pop(key) for key in EXPERIMENTAL if key in options}
    config = torch._C._profiler._ExperimentalConfig(**special)
    stepped = case['program'] not in ('mlp', 'long_names', 'backslash', 'out_of_memory')
    program = PROGRAMS[case['program']]
    for _ in program(torch):  # what the first use loads is not part of the picture
        pass
    with profile(activities=[ProfilerActivity.CPU], experimental_config=config, **options,
                 **({'schedule': schedule(wait=0, warmup=1, active=2, repeat=1)} if stepped else {})) as prof:
        if stepped:
            torch.ones(1)
            prof.step()
        for _ in program(torch):
            if stepped:
                prof.step()
    trace = out / f'{name}.trace.json.gz'
    plain = pathlib.Path('trace.json')  # relative: the trace holds the name
    prof.export_chrome_trace(str(plain), **({'use_python_export': True} if python_export else {}))
    text = re.sub(r'"host_name": "[^"]*"', '"host_name": "host"', plain.read_text())
    trace.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    stacks = {}
    for metric in METRICS if options.get('with_stack') else []:  # torch refuses without
        prof.export_stacks(str(plain), metric)
        stacks[metric] = plain.read_text()
    tables, seen = [], set()
    has_switch = 'include_python_functions' in inspect.signature(prof.key_averages).parameters
    for i, grouping in enumerate(g for g in case['groupings'] if has_switch or g != 'frames'):
        for layout in LAYOUTS if i == 0 else FEW:
            average = prof.key_averages(**GROUPINGS[grouping])
            text = average.table(**layout)
            tables.append({**GROUPINGS[grouping], **layout, 'text': text})
            seen.add(text)
    total = prof.events().total_average()
    lost, change = LOST.get(name, (None, None))
    if python_export:
        first = min(ns for ns in (round(event.time_range.start * 1000) for event in prof.events()))
        lost, change = PYTHON_EXPORT_LOSES, lambda event: count_from(event.time_range, first)
    if lost:
        for event in prof.events():
            event.cpu_children, event.cpu_parent = [], None
            change(event)
        prof.events()._build_tree()
        for table in tables:
            def of_grouping(key):
                return key.startswith('group_by') or key == 'include_python_functions'
            layout = {key: value for key, value in table.items() if key != 'text' and not of_grouping(key)}
            grouping = {key: value for key, value in table.items() if of_grouping(key)}
            table['exported'] = prof.key_averages(**grouping).table(**layout)
    truth = {'torch': torch.__version__, 'program': case['program'], 'options': case['profile'], 'tables': tables, 'stacks': stacks,
             'total': {key: getattr(total, key) for key in TOTALS}, **({'lost': lost} if lost else {})}
    text = json.dumps(truth, indent=0, sort_keys=True)
    (out / f'{name}.truth.json.gz').write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f'{name}: {len(tables)} tables ({len(seen)} distinct), {len(prof.events())} events, trace {trace.stat().st_size} B, '
          f'truth {(out / f"{name}.truth.json.gz").stat().st_size} B', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('--only', default='')
    parser.add_argument('--python-export', action='store_true', help="the trace is written by torch's Python exporter (since 2.14)")
    parser.add_argument('--one', help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.one:
        record(options.one, options.out, options.python_export)
        return 0
    failed = 0
    for name in [n for n in options.only.split(',') if n] or CASES:
        # The program runs as a copy in its working folder, so that paths in stacks say nothing about this machine.
        with tempfile.TemporaryDirectory() as scratch:
            copy = pathlib.Path(scratch) / 'record_tables.py'
            shutil.copy(__file__, copy)
            done = subprocess.run([sys.executable, copy.name, str(options.out.resolve()), '--one', name,
                                   *(['--python-export'] if options.python_export else [])], cwd=scratch,
                                  env={**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': ''})
            failed += done.returncode != 0
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
