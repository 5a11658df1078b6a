"""The parts of run.sh that need torch with CUDA: torch_parts.py one|step|nvtx|kernels|nccl|frameworks|errors [--short].

Prints a line of JSON for each number, as device.cc does. Exit 3 with the reason on standard error where something that the part needs is not there.
"""
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

SHORT = '--short' in sys.argv
PROGRAM = os.environ['STAGELINE_BIN']


def give_up(why):
    print(why, file=sys.stderr)
    sys.exit(3)


def measured(part, what, value, unit='', **bound):
    print(json.dumps({'part': part, 'what': what, 'value': value, 'unit': unit, **bound}), flush=True)


def torch_with_gpu():
    try:
        import torch
    except ImportError:
        give_up('torch is not installed')
    if not torch.cuda.is_available():
        give_up(f'torch {torch.__version__} sees no CUDA device')
    return torch


def few(many, short):
    return short if SHORT else many


def stageline(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def sql(folder, query):
    return json.loads(stageline('sql', folder, query, '--format', 'json', '--rows', '0'))['rows']


def here():
    return os.environ['STAGELINE_DIR']


def kernel_times(profile, name):
    """(start, duration) in ns of the device's kernels whose names hold `name`, in order."""
    with tempfile.NamedTemporaryFile(suffix='.json') as file:
        profile.export_chrome_trace(file.name)
        events = json.load(open(file.name))['traceEvents']
    return sorted((e['ts'] * 1000, e['dur'] * 1000) for e in events if e.get('cat') == 'kernel' and name in e['name'])


def one():
    """Every range of a stream is there, and as long as its kernels."""
    torch = torch_with_gpu()
    from stageline import record
    record.init(rank=0, max_overhead=-1.0)
    count, a = few(200, 20), torch.randn(4096, 4096, device='cuda')
    for _ in range(5):
        torch.mm(a, a)
    torch.cuda.synchronize()
    stream = torch.cuda.current_stream()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for i in range(count):
            with record.job('F', i, 0, stream=stream):
                torch.mm(a, a)
        torch.cuda.synchronize()
    stats = record.stats()
    record.flush(5000)
    measured(1, 'jobs', count)
    measured(1, 'ranges with the device\'s times', record.stats()['device_ranges'], at_least=count)
    measured(1, 'dropped', sum(stats['drops'].values()) if isinstance(stats['drops'], dict) else sum(stats['drops']), at_most=0)
    kernels = kernel_times(profile, 'gemm')
    ranges = [row[0] for row in sql(here(), "select end_ns - start_ns from cells where kind = 'F' order by micro_batch")]
    if len(kernels) != count:
        give_up(f'{len(kernels)} kernels of {count} products were seen by torch.profiler: its numbers are no measure here')
    # Each within 2 % or 3 µs, whichever is more.
    off = [abs(r - k) - max(0.02 * k, 3000) for r, (_, k) in zip(ranges, kernels)]
    measured(1, 'ranges further than 2 % and 3 µs from their kernel', sum(o > 0 for o in off), at_most=0)
    measured(1, 'median of range less kernel', statistics.median(r - k for r, (_, k) in zip(ranges, kernels)), 'ns')


def step():
    """Measures the cost of recording per step: blocks of 20 steps with it and without, in ABBA order; a bootstrap's 95
    % interval of the difference."""
    torch = torch_with_gpu()
    from stageline import record
    record.init(rank=0)
    streams = [torch.cuda.Stream() for _ in range(4)]
    stages = [torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, device='cuda') for _ in streams]
    data = [torch.randn(8, 512, 768, device='cuda') for _ in range(8)]

    def train():
        for m, batch in enumerate(data):
            out = batch
            for s, (stream, stage) in enumerate(zip(streams, stages)):
                stream.wait_stream(streams[s - 1] if s else torch.cuda.current_stream())
                with torch.cuda.stream(stream), record.job('F', m, s, stream=stream):
                    out = stage(out)
            with torch.cuda.stream(streams[-1]), record.job('B', m, 3, stream=streams[-1]):
                out.sum().backward()
        torch.cuda.synchronize()

    for _ in range(10):
        train()
    times, number, blocks = {True: [], False: []}, 0, few(10, 2)
    for block in range(2 * blocks):
        recorded = block % 4 in (0, 3)
        record.window(*((-1, 0) if recorded else (1 << 40, (1 << 40) + 1)))
        spans = []
        for _ in range(few(20, 4)):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            record.step(number)
            number += 1
            begin.record()
            train()
            end.record()
            end.synchronize()
            spans.append(begin.elapsed_time(end))
        times[recorded] += spans
    chance, with_, without = random.Random(1), times[True], times[False]
    draws = sorted(statistics.median(chance.choices(with_, k=len(with_))) / statistics.median(chance.choices(without, k=len(without))) - 1 for _ in range(2000))
    measured(4, 'median step without recording', statistics.median(without), 'ms')
    measured(4, 'what recording adds', (statistics.median(with_) / statistics.median(without) - 1) * 100, '%', at_most=0.1)
    measured(4, 'upper end of its 95 % interval', draws[int(len(draws) * 0.975)] * 100, '%', at_most=0.2)


def nvtx():
    """torch.cuda.nvtx under a stream of its own: the range has that stream's times."""
    torch = torch_with_gpu()
    stream, a = torch.cuda.Stream(), torch.randn(4096, 4096, device='cuda')
    torch.cuda.synchronize()
    count = 20
    for _ in range(count):
        with torch.cuda.stream(stream):
            torch.cuda.nvtx.range_push('forward_step')
            torch.mm(a, a)
            torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    import ctypes
    statistics_of = ctypes.CDLL(os.environ['STAGELINE_RECORD_LIBRARY'])
    statistics_of.slr_flush(5000)
    rows = sql(here(), "select count(*), min(end_ns - start_ns) from slices where name = 'forward_step'")
    measured(9, 'ranges', rows[0][0], at_least=count)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    torch.mm(a, a)
    end.record()
    end.synchronize()
    # The host's times of a launch are a tenth of that.
    measured(9, 'shortest range by the time of its kernel', rows[0][1] / (begin.elapsed_time(end) * 1e6), at_least=0.8)


def kernels():
    """Kernels by CUPTI against torch.profiler's of the same steps, and that torch.profiler works after the time is up."""
    torch = torch_with_gpu()
    os.environ.setdefault('STAGELINE_KERNELS_S', '3')
    from stageline import record
    record.init(rank=0, max_overhead=-1.0)
    a, count = torch.randn(2048, 2048, device='cuda'), few(2000, 200)
    for i in range(count):
        with record.job('F', i, 0, stream=torch.cuda.current_stream()):
            torch.mm(a, a)
    torch.cuda.synchronize()
    import time
    time.sleep(4)
    torch.mm(a, a)  # the first kernel after it ends it
    torch.cuda.synchronize()
    record.flush(5000)
    seen = sql(here(), "select count(*), avg(end_ns - start_ns) from kernels where name like '%gemm%'")[0]
    measured(10, 'kernels recorded of those launched', seen[0] / count * 100, '%', at_least=99)
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(100):
                torch.mm(a, a)
            torch.cuda.synchronize()
        theirs = kernel_times(profile, 'gemm')
    except RuntimeError as error:
        theirs = []
        print(error, file=sys.stderr)
    measured(10, 'torch.profiler afterwards: kernels of 100', len(theirs), at_least=100)
    if theirs and seen[1]:
        measured(10, 'mean kernel against torch.profiler\'s', (seen[1] / statistics.fmean(d for _, d in theirs) - 1) * 100, '%')


def nccl():
    """A communicator of one rank loads the plugin; of two GPUs sends and receives pair up."""
    torch = torch_with_gpu()
    if not torch.distributed.is_nccl_available():
        give_up('this torch has no NCCL')
    world = min(2, torch.cuda.device_count())
    script = pathlib.Path(tempfile.mkdtemp()) / 'nccl_job.py'
    script.write_text('''
import os, torch, torch.distributed as dist
rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
torch.cuda.set_device(rank)
dist.init_process_group('nccl', device_id=torch.device('cuda', rank))
x = torch.ones(1 << 20, device='cuda')
for i in range(10):
    dist.all_reduce(x)
    if world > 1:
        dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
torch.cuda.synchronize()
dist.destroy_process_group()
''')
    env = {**os.environ, 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': '29517', 'WORLD_SIZE': str(world)}
    jobs = [subprocess.Popen([sys.executable, str(script)], env={**env, 'RANK': str(r), 'LOCAL_RANK': str(r)}) for r in range(world)]
    measured(11, 'ranks that ended well', sum(job.wait(timeout=300) == 0 for job in jobs), at_least=world)
    files = list(pathlib.Path(here()).rglob('*.slrec'))
    measured(11, 'recordings', len(files), at_least=world)
    said = json.loads(stageline('info', '--json', here()))
    measured(11, 'losses in them', sum(d['count'] for d in said['diagnostics'] if d['severity'] == 'loss'), at_most=0)
    if world == 2:
        measured(11, 'messages of ten', sql(here(), 'select count(*) from messages')[0][0], at_least=10)


def frameworks():
    """Megatron-Core's schedule without a pipeline and DeepSpeed's pipeline engine, where they are installed, on this GPU."""
    torch_with_gpu()
    done = 0
    for module, command in (('megatron.core', 'megatron_job.py'), ('deepspeed', 'deepspeed_job.py')):
        try:
            __import__(module)
        except ImportError:
            print(f'{module} is not installed', file=sys.stderr)
            continue
        folder = pathlib.Path(here()) / module
        folder.mkdir(parents=True)
        job = subprocess.run([PROGRAM, 'record', '-o', str(folder), '--', sys.executable, str(pathlib.Path(__file__).with_name(command))],
                             capture_output=True, text=True)
        print(job.stderr[-2000:], file=sys.stderr)
        measured(12, f'{module}: exit code', job.returncode, at_most=0)
        if job.returncode == 0:
            said = json.loads(stageline('info', '--json', folder))
            measured(12, f'{module}: cells recorded', said['cells'], at_least=1)
            expected = int(job.stdout.split()[-1])
            measured(12, f'{module}: forwards and backwards that ran and are not there', expected - sql(folder, "select count(*) from cells where kind in ('F', 'B')")[0][0], at_most=0)
        done += 1
    if not done:
        give_up('neither Megatron-Core nor DeepSpeed is installed')


def errors():
    """The program's own error text is what it would be, and what was recorded before it can be read."""
    torch_with_gpu()
    job = pathlib.Path(tempfile.mkdtemp()) / 'job.py'
    texts = {}
    for kind, body in (('memory', 'torch.empty(1 << 45, device="cuda")'),
                       ('illegal access', 'torch.zeros(4, device="cuda")[torch.tensor([1 << 40], device="cuda")]; torch.cuda.synchronize()')):
        for recorded in (False, True):
            job.write_text(f'import torch\nfrom stageline import record\na = torch.ones(64, device="cuda")\n{"record.init(rank=0)" if recorded else ""}\n'
                           f'for i in range(100):\n  with record.job("F", i, 0, stream=torch.cuda.current_stream()):\n    a = a * 1.0\n'
                           f'torch.cuda.synchronize()\ntry:\n  {body}\nexcept Exception as e:\n  print(type(e).__name__, str(e).splitlines()[0])\n')
            folder = pathlib.Path(here()) / f'{kind.split()[0]}-{recorded}'
            done = subprocess.run([sys.executable, str(job)], env={**os.environ, 'STAGELINE_DIR': str(folder)}, capture_output=True, text=True)
            # Free and reserved memory differ from run to run by what the other process left.
            texts[kind, recorded] = ' '.join(word for word in done.stdout.split() if not any(c.isdigit() for c in word))
            if recorded:
                measured(13, f'{kind}: jobs recorded before it, of 100', json.loads(stageline('info', '--json', folder))['cells'], at_least=100)
        measured(13, f'{kind}: error text that differs', int(texts[kind, False] != texts[kind, True]), at_most=0)


if __name__ == '__main__':
    {'one': one, 'step': step, 'nvtx': nvtx, 'kernels': kernels, 'nccl': nccl, 'frameworks': frameworks, 'errors': errors}[sys.argv[1]]()
