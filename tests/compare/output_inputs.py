"""The inputs for comparing two programs: runs simulated by the old one, the readers' fixtures, traces and recordings
made by tests/gen, and damaged files. Real ones of ../shared/data are added if that folder exists."""
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GOLDEN = ROOT / 'tests/golden'
SHARED = ROOT.parent / 'shared/data'
sys.path.insert(0, str(ROOT / 'tests/gen'))

COSTS = '--stages 4 --micro-batches 8 --steps 4 --cost 10,20 --latency 0.3 --jitter 0.03'
SPLIT = COSTS.replace('10,20', '10,11,9')  # W apart from B
SMALL = '--stages 2 --micro-batches 6 --steps 2 --format ascend'
# Every schedule, each with another fault, and every form that simulate writes.
SIMULATED = {
    'fthenb': f'fthenb {COSTS}',
    '1f1b': f'1f1b {COSTS} --dp 2 --optimizer 8 --fault slow-stage:2,1.4',
    '1f1b-healthy': f'1f1b {COSTS} --dp 2 --optimizer 8 --seed 5',
    '1f1b-machines': f'1f1b {COSTS} --dp 2 --machines 2 --fault slow-rank:6,1.3',
    '1f1b-clocks': f'1f1b {COSTS} --machines 4 --clock-skew 25ms --seed 3',
    '1f1b-apart': '1f1b --machines 2 --dp 2 --stages 2 --clock-skew 25ms',
    'eager': f'eager-1f1b {COSTS} --fault slow-rank:1,1.5 --format cells',
    'vpp': f'vpp {COSTS} --chunks 2 --fault slow-step:1,1.5 --messages --format cells',
    'vpp-ep-overlap': f'vpp-ep-overlap {COSTS} --fault gc:40ms,0.01',
    'bfs': f'bfs {COSTS} --fault long-sequences:0.2,3 --dp 2 --reduce 2 --format cells',
    'bfs-unreversed': f'bfs-unreversed {COSTS} --fault late-launch:2,2ms',
    'zb-h1': f'zb-h1 {SPLIT} --fault missing-dw',
    'zb-h1-paddle': f'zb-h1-paddle {SPLIT} --fault wrong-order:2',
    'zb-h2': f'zb-h2 {SPLIT} --fault heavy-head:0.8 --format cells',
    'zb-v': f'zb-v {SPLIT} --messages --fault slow-link:1,2,+6ms --format cells',
    'zbvpp': f'zbvpp {SPLIT} --plan-cost 50,55,45,5 --fault gc:30ms,0.05,3',
    'interleaved-zb': f'interleaved-zb {SPLIT} --fault slow-stage:0,1.2 --format cells',
    'dualpipe': f'dualpipe {SPLIT} --fault slow-rank:3,1.3 --format cells',
    'dualpipe-v': f'dualpipe-v {SPLIT} --fault slow-stage:1,1.3 --format cells',
    'dualpipe-v-mindspeed': f'dualpipe-v-mindspeed {SPLIT} --dw-detach --format cells',
    # Databases of Ascend's profiler: levels, marks, forms, faults.
    'ascend-markers': '1f1b --stages 4 --micro-batches 8 --steps 2 --format ascend --pp-info',
    'ascend-kernels': f'1f1b {SMALL} --dp 2 --tp 2 --level 1 --optimizer 4 --fault slow-rank:2,1.5',
    'ascend-helper': f'zb-h1 {SMALL} --level 0 --marks helper --p2p batch --machines 2 --clock-skew 5',
    'ascend-dualpipev': f'dualpipe-v-mindspeed {SMALL} --level-none-comm escaped --empty-pop',
    'ascend-mindspore': f'vpp {SMALL} --framework mindspore --no-step-time --level-none-comm plain',
}
PIPELINE = '--shape pipeline --ranks 4 --micro-batches 4 --steps 3'
# One call of tests/gen/kineto.py each.
KINETO = {
    'made-ns': '--ranks 3 --events 2500 --steps 4 --fault host-delay:1,3',
    'made-sync-triton': '--ranks 1 --events 2000 --steps 3 --sync --triton',
    'made-old-nccl': '--ranks 2 --events 2000 --steps 4 --old-nccl --fault slow-rank:0,1.4',
    'made-python': '--ranks 1 --events 2500 --steps 3 --python --memory',
    'made-graphs': '--ranks 1 --events 2000 --steps 3 --graphs --minify',
    'made-us': '--ranks 2 --events 2000 --steps 4 --era us --no-device-annotations',
    'made-old': '--ranks 1 --events 2000 --steps 3 --era old --memory',
    'made-amd': '--ranks 2 --events 2000 --steps 3 --vendor amd --fault clock:1,4',
    'made-pipeline': f'{PIPELINE} --notes actions --fault clock:1,-4 --fault clock:2,25',
    'made-dp-pipeline': f'{PIPELINE} --ranks 8 --dp 2 --notes numbers --fault slow-rank:3,1.5',
    'made-dualpipe': '--shape dualpipe',
}
# Real runs, of moderate size.
REAL = {
    'real-paddle': 'paddle/1f1b_4x3', 'real-machines': 'paddle/1f1b_2x2_machines', 'real-zbh1': 'paddle/zbh1_4x2',
    'real-bytedance': 'pipeline_ops/bytedance/trace-ST.csv.gz', 'real-timeline': 'pipeline_ops/bytedance/timeline-ST.json.gz',
    'real-primus': 'pipeline_ops/primus_pp8', 'real-megatronapp': 'pipeline_ops/megatronapp', 'real-ascend': 'ascend/msinsight_db/level1',
    'real-vllm': 'kineto/real_vllm_piecewise', 'real-mi300': 'kineto/real_mi300_qwen', 'real-alexnet': 'kineto/hta/critical_path/alexnet',
    'real-cupti': 'kineto/hta/cupti_profiler', 'real-no-gpu': 'kineto/hta/rank_non_gpu', 'real-tb': 'kineto/tb_plugin',
}


def copy(source, to):
    if source.is_dir():
        shutil.copytree(source, to)
    else:
        to.mkdir()
        shutil.copy2(source, to)


def make_damaged(folder):
    """Inputs that are read as far as they go, or not at all."""
    log = (GOLDEN / 'readers/paddle-log/input/workerlog.0').read_bytes()
    trace = (GOLDEN / 'readers/kineto/input/rank-0.pt.trace.json').read_bytes()
    packed = (GOLDEN / 'readers/kineto/input/rank-1.pt.trace.json.gz').read_bytes()
    for name, data in {'cut-log/workerlog.0': log[:-37], 'cut-json/trace.json': trace[:len(trace) // 2],
                       'cut-gzip/trace.json.gz': packed[:len(packed) // 2], 'empty-file/workerlog.0': b'',
                       'no-trace/notes.txt': b'words\n' * 9,
                       'bad-stamps/workerlog.0': log.replace(b'job_end_time = 1', b'job_end_time = x', 3),
                       'bad-table/ops.csv': b'rank,kind,start_ms,end_ms\n0,F,1,2\n0,F,x,3\n0,Q,4,5\n1,B,9,7\n'}.items():
        path = folder / 'damaged' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / 'damaged/empty').mkdir()


def make_inputs(folder, program, environment):
    """Rebuilds everything under `folder`; a run that the program refuses to simulate is an error."""
    import kineto
    import recording
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, words in SIMULATED.items():
        done = subprocess.run([program, 'simulate', *words.split(), '-o', name, '-q'], cwd=folder, env=environment, capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise RuntimeError(f'simulate {words}: {done.stderr}')
    for case in sorted((GOLDEN / 'readers').iterdir()):
        shutil.copytree(case / 'input', folder / 'fixture' / case.name)
    shutil.copytree(GOLDEN / 'files', folder / 'files')
    for name, words in KINETO.items():
        kineto.generate([*words.split(), '-o', folder / name])
        (folder / name / 'truth.json').unlink(missing_ok=True)
    (folder / 'made-recording').mkdir()
    recording.make(folder / 'made-recording')
    (folder / 'made-recorded-kernels').mkdir()
    recording.make_kernels(folder / 'made-recorded-kernels')
    make_damaged(folder)
    for name, source in REAL.items():
        if (SHARED / source).exists():
            copy(SHARED / source, folder / name)
