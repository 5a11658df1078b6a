"""Lists the outputs of another package as lines that can be compared. drift.py runs this with that package's Python.

  drift_probe.py NAME     prints a JSON list of lines
"""
import ast
import gzip
import importlib
import importlib.util
import inspect
import json
import pathlib
import pkgutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def shape_of_trace(path):
    """Lists top-level keys, and the keys of arguments of each kind of event."""
    text = pathlib.Path(path).read_bytes()
    trace = json.loads(gzip.decompress(text) if text[:2] == b'\x1f\x8b' else text)
    lines = {f'key {key}: {type(value).__name__}' for key, value in trace.items()}
    for event in trace['traceEvents']:
        kind = f"{event.get('ph', '?')} {event.get('cat', '-')}" + (f" {event['name']}" if event.get('ph') in ('M', 'i') else '')
        lines.update(f'event {kind}: {key}' for key in event if key != 'args')
        lines.update(f'event {kind}: args.{key}' for key in event.get('args') or {})
    return lines


def signatures(module):
    lines = set()
    for name, value in vars(module).items():
        if name.startswith('_') or getattr(value, '__module__', None) != module.__name__:
            continue
        if inspect.isfunction(value):
            lines.add(f'{module.__name__}.{name}{inspect.signature(value)}')
        for method, of in vars(value).items() if inspect.isclass(value) else ():
            of = of.__func__ if isinstance(of, (classmethod, staticmethod)) else of
            if inspect.isfunction(of) and (not method.startswith('_') or method == '__init__'):
                lines.add(f'{module.__name__}.{name}.{method}({", ".join(inspect.signature(of).parameters)})')
    return lines


def torch():
    import torch
    from torch.distributed.pipelining import schedules
    from torch.profiler import ProfilerActivity, profile, record_function, schedule
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tempfile.TemporaryDirectory() as folder:
        path, tables = pathlib.Path(folder) / 'trace.json', []

        def ready(profiler):
            profiler.export_chrome_trace(str(path))
            tables.append(profiler.key_averages().table(max_name_column_width=20))  # after the cycle its events are gone
        with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=2), record_shapes=True, profile_memory=True, with_stack=True,
                     with_flops=True, on_trace_ready=ready) as profiler:
            for _ in range(3):
                with record_function('forward'):
                    loss = model(torch.ones(4, 8)).sum()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                profiler.step()
        lines = shape_of_trace(path)
    lines |= {f'table column: {name.strip()}' for name in tables[0].splitlines()[1].split('  ') if name.strip()}
    lines |= {f'schedule {name}' for name, value in vars(schedules).items() if inspect.isclass(value) and name.startswith('Schedule')}
    lines |= {f'action {action}' for action in schedules._ComputationType}
    for name in ('torch.cuda.graph_annotations', 'torch.distributed.flight_recorder.fr_trace'):
        found = importlib.util.find_spec(name) is not None
        lines.add(f'module {name}: {"there" if found else "not there"}')
    return lines


def traceinsight():
    import hta
    lines = set()
    for found in pkgutil.walk_packages(hta.__path__, 'hta.'):
        try:
            lines |= signatures(importlib.import_module(found.name))
        except ImportError as error:
            lines.add(f'{found.name}: {error}')
    return lines


def msprof_analyze():
    """Its modes, and the tables that some of them write for a generated cluster."""
    program = pathlib.Path(sys.executable).with_name('msprof-analyze')
    import msprof_analyze
    recipes = pathlib.Path(msprof_analyze.__file__).parent / 'cluster_analyse' / 'recipes'
    lines = {f'mode {path.name}' for path in recipes.iterdir() if path.is_dir() and not path.name.startswith('_')}
    for mode in ('all', 'compute_op_sum', 'hccl_sum', 'communication_group_map', 'slow_rank', 'pp_chart'):
        with tempfile.TemporaryDirectory() as folder:
            given, out = pathlib.Path(folder) / 'in', pathlib.Path(folder) / 'out'
            subprocess.run([sys.executable, HERE.parent / 'gen' / 'ascend_db.py', given, '--level', '1'], check=True, capture_output=True)
            done = subprocess.run([program, 'cluster', '-m', mode, '-d', given, '-o', out, '--force'], capture_output=True, text=True)
            lines.add(f'{mode}: exit {done.returncode}')
            for path in sorted([*out.rglob('*.db'), *given.rglob('ascend_pytorch_profiler_*.db')]):
                database = sqlite3.connect(path)
                made = {name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
                for table in made if path.is_relative_to(out) else made & {'StepTaskInfo'}:
                    lines.update(f'{mode}: {table}.{name} {kind}' for _, name, kind, *_ in database.execute(f'PRAGMA table_info("{table}")'))
    return lines


def paddlepaddle():
    import hashlib
    import paddle
    from paddle import profiler
    script = pathlib.Path(paddle.__file__).parent / 'distributed/auto_parallel/static/profiler_helper_static.py'
    lines = {f'profiler_helper_static.py {hashlib.sha256(script.read_bytes()).hexdigest()[:16]}'}
    with tempfile.TemporaryDirectory() as folder:
        model = paddle.nn.Linear(8, 2)
        optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
        with profiler.Profiler(targets=[profiler.ProfilerTarget.CPU], record_shapes=True, profile_memory=True,
                               on_trace_ready=profiler.export_chrome_tracing(folder)) as recorded:
            for _ in range(3):
                model(paddle.ones([4, 8])).sum().backward()
                optimizer.step()
                optimizer.clear_grad()
                recorded.step()
        for path in pathlib.Path(folder).glob('*.json'):
            lines |= shape_of_trace(path)
    return lines


def megatron_core():
    """Functions that the hooks wrap or the planner names, by their text: nothing of it is imported."""
    root = next(pathlib.Path(p) / 'megatron' / 'core' for p in sys.path if (pathlib.Path(p) / 'megatron' / 'core').is_dir())
    lines = set()
    for name in ('pipeline_parallel/schedules.py', 'pipeline_parallel/p2p_communication.py', 'pipeline_parallel/combined_1f1b.py', 'model_parallel_config.py',
                 'transformer/transformer_config.py'):
        if not (root / name).exists():
            lines.add(f'{name}: not there')
            continue
        for node in ast.walk(ast.parse((root / name).read_text())):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith('_'):
                lines.add(f'{name}: {node.name}({", ".join(a.arg for a in [*node.args.args, *node.args.kwonlyargs])})')
            elif name.endswith('config.py') and isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                lines.add(f'{name}: {node.target.id}: {ast.unparse(node.annotation)}')
    return lines


def perfetto():
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
    return {f'{name}.{field.name} = {field.number}' for name in ('Trace', 'TracePacket', 'TrackDescriptor', 'TrackEvent', 'CounterDescriptor', 'InternedData', 'ThreadDescriptor',
                                                                 'ProcessDescriptor', 'ClockSnapshot', 'DebugAnnotation')
            for field in getattr(protos, name).DESCRIPTOR.fields}


if __name__ == '__main__':
    print(json.dumps(sorted(globals()[sys.argv[1].replace('-', '_')]())))
