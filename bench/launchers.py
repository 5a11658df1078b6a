"""./dev bench launchers: `stageline record` in front of the common launchers, two ranks on this machine's CPU, and what it costs.

Each launcher starts a small DDP run of torch, or a program that marks itself, with and without the recorder in turn. What is counted is
processor time of the ranks' training thread, which other work on the machine changes little. A launcher that is not installed is left out:
STAGELINE_LAUNCHERS_PYTHON and STAGELINE_LAUNCHERS_PADDLE are Pythons that have torch, accelerate and deepspeed, or paddle."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

STEPS, WARM, ROUNDS = 60, 10, int(os.environ.get("STAGELINE_LAUNCHERS_ROUNDS", "3"))
COMMON = '''
import json, os, sys, time
times = []
def write(rank):
    with open(os.path.join(os.environ["TIMES"], f"{rank}.json"), "w") as file:
        json.dump(times, file)
'''
DDP = COMMON + '''
import torch, torch.distributed as dist
torch.set_num_threads(1)
os.environ.setdefault("RANK", os.environ.get("SLURM_PROCID", "0"))
os.environ.setdefault("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1"))
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)]))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(%d):
    begin = time.thread_time()
    model(torch.ones(64, 256)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    times.append(time.thread_time() - begin)
write(dist.get_rank())
dist.destroy_process_group()
''' % STEPS
# Paddle's pipelines need GPUs, so here a program marks itself; without the recorder the calls do nothing.
MARKED = COMMON + '''
import paddle
try:
    import stageline_record as record
    record.init()
except ImportError:
    import contextlib, types
    record = types.SimpleNamespace(step=lambda n: None, job=lambda *a: contextlib.nullcontext())
rank = int(os.environ["PADDLE_TRAINER_ID"])
model = paddle.nn.Sequential(*[paddle.nn.Linear(256, 256) for _ in range(8)])
optimizer = paddle.optimizer.SGD(0.01, parameters=model.parameters())
for step in range(%d):
    begin = time.thread_time()
    record.step(step)
    with record.job("F", 0, 0):
        loss = model(paddle.ones([64, 256])).sum()
    with record.job("B", 0, 0):
        loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    times.append(time.thread_time() - begin)
write(rank)
''' % STEPS


def launchers():
    """{name: (the words that start two ranks of a program, the program)}, of those that are installed."""
    torch_python, paddle_python = (pathlib.Path(os.environ.get(name, sys.executable)) for name in ("STAGELINE_LAUNCHERS_PYTHON", "STAGELINE_LAUNCHERS_PADDLE"))

    def has(python, module):
        return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0
    found = {}
    if has(torch_python, "torch"):
        found["torchrun"] = ([torch_python, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29611"], DDP)
        if has(torch_python, "accelerate"):
            found["accelerate"] = ([torch_python, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no",
                                    "--dynamo_backend", "no", "--main_process_port", "29612"], DDP)
        if has(torch_python, "deepspeed"):
            found["deepspeed"] = ([torch_python, "-m", "deepspeed.launcher.runner", "--num_gpus", "2", "--master_port", "29613"], DDP)
        if shutil.which("srun"):  # or a Slurm of this machine alone: tools/one_slurm.sh build/slurm ./dev bench launchers
            found["srun"] = (["srun", "--overcommit", "-n", "2", torch_python], DDP)
    if has(paddle_python, "paddle"):
        found["paddle.distributed.launch"] = ([paddle_python, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", "paddle_log"], MARKED)
    return found


def start(words, folder, tool=None):
    """One run: (processor ms of a step, the last lines on stderr). Without `tool` it is not recorded."""
    times = folder / "times"
    shutil.rmtree(times, ignore_errors=True)
    times.mkdir()
    environment = {**os.environ, "TIMES": str(times), "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29614"}
    command = [*([tool, "record", "-o", folder / "rec", "--"] if tool else []), *words, folder / "train.py"]
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    ranks = [json.loads(path.read_text()) for path in sorted(times.glob("*.json"))]
    if done.returncode != 0 or len(ranks) != 2:
        raise RuntimeError(f"exit {done.returncode}, {len(ranks)} ranks\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}")
    return 1000 * statistics.median(time for rank in ranks for time in rank[WARM:]), done.stderr


def measure(tool):
    rows = []
    for name, (words, program) in launchers().items():
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "train.py").write_text(program)
            try:
                with_recorder, without, said = [], [], ""
                for _ in range(ROUNDS):
                    without.append(start(words, folder)[0])
                    shutil.rmtree(folder / "rec", ignore_errors=True)
                    took, said = start(words, folder, tool)
                    with_recorder.append(took)
                read = json.loads(subprocess.run([tool, "info", folder / "rec", "--json", "--quiet"], check=True, capture_output=True, text=True).stdout)
                summary = next((line for line in said.splitlines() if line.startswith("stageline: ") and " in " in line), "nothing was recorded")
                rows.append((name, summary.removeprefix("stageline: ").replace(str(folder) + "/", ""), len(read["ranks"]) if isinstance(read.get("ranks"), list) else read.get("ranks"),
                             statistics.median(without), statistics.median(with_recorder)))
            except (RuntimeError, subprocess.SubprocessError) as error:
                rows.append((name, f"failed: {error}", None, None, None))
    return rows


def run(bench, tool):
    print("\nTwo ranks on CPU; processor time of the training thread per step, medians\n", flush=True)
    bench.row("launcher", "`stageline record` says", "without", "recorded", "added")
    bench.row("---", "---", "---:", "---:", "---:")
    for name, said, _, before, after in measure(tool):
        bench.row(name, said.split("\n")[0], *([f"{before:.2f} ms", f"{after:.2f} ms", f"{1000 * (after - before):+.0f} µs"] if before else ["–"] * 3))
        bench.bar(f"launchers: {name} is recorded", before is not None and "2 ranks" in said)


if __name__ == "__main__":
    for made in measure(sys.argv[1]):
        print(*made, sep=" | ")
