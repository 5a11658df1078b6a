"""Measures the cost of recording for the recorded program, while the file is written. Device ranges go to
tests/record's fake driver."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import cases

PROGRAM = os.environ.get("STAGELINE_RECORDER_BENCH", os.path.join(cases.BUILD, "stageline_recorder_bench"))
FAKE = os.environ.get("STAGELINE_FAKE_CUDA", os.path.join(cases.BUILD, "bench_fake", "libcuda.so.1"))
LIBRARY = os.environ.get("STAGELINE_RECORD_LIBRARY", os.path.join(cases.BUILD, "record", "libstageline_record.so"))
ROWS = (("off_by_window", "push and pop outside the window"), ("push_pop", "push and pop"), ("push_job_pop", "push a job and pop"), ("nvtx_push_pop", "nvtxRangePushA and nvtxRangePop, recorded"),
        ("begin_end", "begin and end, any thread may end it"), ("mstx_start_end", "mstxRangeStartA and mstxRangeEnd, recorded"), ("driver_alone", "the fake driver's calls of a device range alone"),
        ("device_range", "device range, those calls included"))
MOST_NS, MOST_P99_NS, MOST_BYTES, MOST_BEYOND_NS, MOST_LIBRARY, MOST_INJECTED_NS, MOST_PYTHON_NS = 50, 100, 12, 100, 300_000, 30, 200
PACKAGE = os.environ.get("STAGELINE_PYTHON_PACKAGE", os.path.join(cases.BUILD, "python"))
BURSTS, SMALL_BURSTS = 250, 2  # of the program; Python makes 100
PYTHON_BURSTS = 100
PYTHON_ROWS = (("with_job", "with job('F', i, 0)"), ("with_range", "with range('forward')"), ("push_pop", "push and pop"), ("annotate", "a call of an @annotate function"))
# One loop a row, so that what a name costs is the loop's; bursts with pauses, as in recorder_bench.cc.
PYTHON_PROGRAM = '''
import json, sys, time
from stageline import record

BURSTS, BURST = int(sys.argv[1]), 2000
assert record.init(rank=0, max_overhead=-1.0), record.why_not()
def empty():
    for i in range(BURST):
        pass
def with_job():
    for i in range(BURST):
        with record.job('F', i, 0):
            pass
def with_range():
    for i in range(BURST):
        with record.range('forward'):
            pass
def push_pop():
    push, pop = record.push, record.pop
    for i in range(BURST):
        push('forward')
        pop()
@record.annotate('forward')
def nothing():
    pass
def annotate():
    for i in range(BURST):
        nothing()
def bursts(loop):
    times = []
    for _ in range(BURSTS):
        start = time.thread_time_ns()
        loop()
        times.append((time.thread_time_ns() - start) / BURST)
        time.sleep(0.005)
    return sorted(times)
found, nothing_at_all = {}, bursts(empty)[BURSTS // 2]
for loop in (with_job, with_range, push_pop, annotate):
    times = bursts(loop)
    found[loop.__name__] = [times[k] - nothing_at_all for k in (BURSTS // 2, BURSTS - 1 - BURSTS // 100, 0)]
print(json.dumps(found))
'''


# The time that hooks add to a call of a framework's function, in CPU time of the thread. Signatures and calls are those
# of the framework (Megatron-Core 0.16, torch 2.13, DeepSpeed 0.18), with bodies that do nothing. An empty function with
# the same wrapper's frame is part of the cost.
HOOK_ROWS = (("torch_forward", "torch: stage.forward_one_chunk"), ("torch_backward", "torch: stage.backward_one_chunk"),
             ("megatron_forward", "Megatron-Core: forward_step, 14 arguments"), ("megatron_backward", "Megatron-Core: backward_step"),
             ("megatron_message", "Megatron-Core: recv_backward"), ("deepspeed_forward", "DeepSpeed: _exec_forward_pass"),
             ("ddp_forward", "torch: DistributedDataParallel.forward"), ("autograd_backward", "torch: autograd.backward"),
             ("all_reduce", "torch: all_reduce"), ("all_reduce_and_wait", "torch: all_reduce(async_op=True) and its wait(), each of both"))
MOST_HOOK_NS = 1500
HOOKS_PROGRAM = '''
import json, sys, time, types
from stageline import record
from stageline.hooks import deepspeed, megatron, run, torch_pipelining, torch_training

BURSTS, BURST = int(sys.argv[1]), 500
class Module:
    class _PipelineStageBase:
        stage_index, group_rank, group_size = 1, 1, 4
        stage_index_to_group_rank = {0: 0, 1: 1, 2: 2, 3: 3}
        def forward_one_chunk(self, fwd_chunk_id, args, kwargs=None, save_forward_output=True):
            pass
        def backward_one_chunk(self, bwd_chunk_id, loss=None, full_backward=True, last_backward=False):
            pass
    def forward_step(forward_step_func, data_iterator, model, num_microbatches, input_tensor, forward_data_store, config, cp_group_size,
                     collect_non_loss_data=False, checkpoint_activations_microbatch=None, is_first_microbatch=False, current_microbatch=None,
                     vp_stage=None, is_last_stage=True):
        return output
    def backward_step(input_tensor, output_tensor, output_tensor_grad, model_type, config):
        return gradient
    def recv_backward(tensor_shapes, config):
        pass
    def exec_forward_pass(self, buffer_id):
        pass
class Work:
    def wait(self, timeout=None):
        return True
class Tensor:
    def numel(self):
        return 1 << 20
    def element_size(self):
        return 2
class DistributedDataParallel:
    training = True
    def forward(self, *inputs, **kwargs):
        pass
class Autograd:
    def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
        pass
class Collectives:
    Work = Work
    def all_reduce(tensor, op=None, group=None, async_op=False):
        return Work() if async_op else None
output, gradient, plain = object(), object(), {}
stage = Module._PipelineStageBase()
def torch_forward(i):
    stage.forward_one_chunk(i, (output,), {}, save_forward_output=True)
def torch_backward(i):
    stage.backward_one_chunk(i, loss=None, full_backward=True, last_backward=False)
def megatron_forward(i):
    Module.forward_step(None, None, None, 8, None, [], None, 1, collect_non_loss_data=False, checkpoint_activations_microbatch=None,
                        is_first_microbatch=False, current_microbatch=i, vp_stage=0, is_last_stage=False)
def megatron_backward(i):
    Module.backward_step(None, output, None, None, None)
def megatron_message(i):
    Module.recv_backward(None, None)
def deepspeed_forward(i):
    Module.exec_forward_pass(None, buffer_id=i & 3)
tensor, ddp = Tensor(), DistributedDataParallel()
def ddp_forward(i):
    ddp.forward(tensor)
def autograd_backward(i):
    Autograd.backward((tensor,), (None,), False, False, inputs=())
def all_reduce(i):
    Collectives.all_reduce(tensor)
def all_reduce_and_wait(i):
    Collectives.all_reduce(tensor, async_op=True).wait()
CALLS = (torch_forward, torch_backward, megatron_forward, megatron_backward, megatron_message, deepspeed_forward)
PLAIN = (ddp_forward, autograd_backward, all_reduce, all_reduce_and_wait)  # of training without a pipeline
def median(call):
    times = []
    for _ in range(BURSTS):
        start = time.thread_time_ns()
        for i in range(BURST):
            call(i)
        times.append((time.thread_time_ns() - start) / BURST)
        time.sleep(0.002)
    times.sort()
    return [times[k] for k in (BURSTS // 2, BURSTS - 1 - BURSTS // 100, 0)]
before = {call.__name__: median(call) for call in CALLS + PLAIN}
torch_pipelining.stages(Module)
run.wrap(Module, 'forward_step', 'current_microbatch vp_stage', megatron._forward, megatron._forward_done)
run.wrap(Module, 'backward_step', 'output_tensor', megatron._backward, megatron._backward_done)
megatron._neighbours([0, 1, 2, 3], 1)
run.wrap(Module, 'recv_backward', 'output_tensor input_tensor_grad recv_prev recv_next', *megatron._message('recv_backward', ('RB',)))
deepspeed._numbers['forwards'] = 0
run.wrap(Module, 'exec_forward_pass', 'buffer_id', deepspeed._job('F'))
record_place = {'rank': 0, 'stage': 1, 'pp': 4}
def added(calls):
    return {call.__name__: [a - b for a, b in zip(median(call), before[call.__name__])] for call in calls}
with run.training_step(lambda: record_place):
    assert record.recording(), record.why_not()
    found = added(CALLS)
world = types.SimpleNamespace(group_name='0', size=lambda: 8)
sys.modules['torch'] = types.SimpleNamespace(is_grad_enabled=lambda: True, distributed=types.SimpleNamespace(group=types.SimpleNamespace(WORLD=world)))
run.wrap(DistributedDataParallel, 'forward', 'self', torch_training._forward, None, run.PLAIN, torch_training._FORWARD)
torch_training.autograd(Autograd)
torch_training.collectives(Collectives)
run.allow(run.PLAIN, True)
found.update(added(PLAIN))
found['all_reduce_and_wait'] = [ns / 2 for ns in found['all_reduce_and_wait']]
counted = record.stats()  # a busy machine's writer may drop some, which it counts
assert counted['records'] + counted['drops'] >= (len(CALLS) + len(PLAIN) + 1) * BURSTS * BURST, counted
print(json.dumps(found))
'''


def bursts_of(bench):
    return str(SMALL_BURSTS if bench.small else PYTHON_BURSTS)


def hook_rows(bench):
    """The dearest median of what hooks add to a call; None where there is no extension."""
    if not (pathlib.Path(PACKAGE) / "stageline_record/_record.abi3.so").exists():
        return None
    with tempfile.TemporaryDirectory(dir=bench.cases.CACHE) as folder:
        environment = {**os.environ, "PYTHONPATH": os.path.abspath(PACKAGE), "STAGELINE_DIR": folder}
        found = json.loads(subprocess.run([sys.executable, "-c", HOOKS_PROGRAM, bursts_of(bench)], check=True, capture_output=True, text=True, env=environment).stdout)
    print("\n| hooks, added to a call | median of bursts | 99th of 100 bursts | best burst of 500 |\n| --- | --- | --- | --- |", flush=True)
    for key, what in HOOK_ROWS:
        bench.row(what, *(f"{ns:.0f} ns" for ns in found[key]))
    return max(ns[0] for ns in found.values())


def python_rows(bench):
    """Returns the median of `with job`, None where there is no extension."""
    if not (pathlib.Path(PACKAGE) / "stageline_record/_record.abi3.so").exists():
        bench.absent("Python's rows: there were no headers of Python when building")
        return None
    with tempfile.TemporaryDirectory(dir=bench.cases.CACHE) as folder:
        environment = {**os.environ, "PYTHONPATH": os.path.abspath(PACKAGE), "STAGELINE_DIR": folder}
        found = json.loads(subprocess.run([sys.executable, "-c", PYTHON_PROGRAM, bursts_of(bench)], check=True, capture_output=True, text=True, env=environment).stdout)
    print("\n| recorder in Python | median of bursts | 99th of 100 bursts | best burst of 2 000 |\n| --- | --- | --- | --- |", flush=True)
    for key, what in PYTHON_ROWS:
        bench.row(what, *(f"{ns:.0f} ns" for ns in found[key]))
    return found["with_job"][0]


def run(bench):
    with tempfile.TemporaryDirectory(dir=bench.cases.CACHE) as folder:
        done = subprocess.run([PROGRAM, folder, FAKE, str(SMALL_BURSTS if bench.small else BURSTS)], check=True, capture_output=True, text=True)
        stripped = os.path.join(folder, "stripped.so")
        subprocess.run(["strip", "-o", stripped, LIBRARY], check=True)
        size = os.path.getsize(stripped)
    found = json.loads(done.stdout)
    print("\n| recorder | median | p99 | best burst of 2 000 |\n| --- | --- | --- | --- |", flush=True)
    for key, what in ROWS:
        cost = found[key]
        bench.row(what, *(f"{cost[k]:.0f} ns" for k in ("median_ns", "p99_ns", "best_burst_ns")))
    print(f"\n{found['bytes_a_job']:.1f} B a job and {found['bytes_a_push']:.1f} B a push on disk, everything included; {found['records']} records, "
          f"{found['dropped']} dropped, {found['host_instead']} device ranges without the device's times of {found['device_ranges']}; library {size} B stripped.",
          flush=True)
    push = found["push_pop"]
    beyond = found["device_range"]["median_ns"] - found["driver_alone"]["median_ns"]
    bench.bar(f"push and pop: {push['median_ns']:.0f} ns, asked ≤ {MOST_NS} ns", push["median_ns"] <= MOST_NS)
    bench.bar(f"push and pop, p99: {push['p99_ns']:.0f} ns, asked ≤ {MOST_P99_NS} ns", push["p99_ns"] <= MOST_P99_NS)
    # The extra cost of a recorded range, compared with a range that calls the recorder itself.
    nvtx = found["nvtx_push_pop"]["median_ns"] - push["median_ns"]
    bench.bar(f"NVTX above push and pop: {nvtx:.0f} ns, asked ≤ {MOST_INJECTED_NS} ns", nvtx <= MOST_INJECTED_NS)
    mstx = found["mstx_start_end"]["median_ns"] - found["begin_end"]["median_ns"]
    bench.bar(f"mstx above begin and end: {mstx:.0f} ns, asked ≤ {MOST_INJECTED_NS} ns", mstx <= MOST_INJECTED_NS)
    bench.bar(f"a job on disk: {found['bytes_a_job']:.1f} B, asked ≤ {MOST_BYTES} B", found["bytes_a_job"] <= MOST_BYTES)
    bench.bar(f"a device range beyond the driver's calls: {beyond:.0f} ns, asked ≤ {MOST_BEYOND_NS} ns", beyond <= MOST_BEYOND_NS)
    bench.bar(f"the library: {size} B, asked ≤ {MOST_LIBRARY} B", size <= MOST_LIBRARY)
    dearest = hook_rows(bench)
    if dearest is not None:
        bench.bar(f"what hooks add to a call of a framework: {dearest:.0f} ns at most, asked ≤ {MOST_HOOK_NS} ns", dearest <= MOST_HOOK_NS)
    with_job = python_rows(bench)
    if with_job is not None:
        bench.bar(f"Python's with job: {with_job:.0f} ns, asked ≤ {MOST_PYTHON_NS} ns", with_job <= MOST_PYTHON_NS)
