"""HTA's own tests, unmodified, three times: by HTA itself, by HTA with stageline.hta.accelerate(), and with every
import of `hta` redirected to stageline.hta. A test that passes with HTA must pass with stageline.hta.

  hta_suite.py --python PYTHON --sources FOLDER [--data FOLDER] [--modes own,overlay,standalone] [--keep FOLDER] [--
  pytest's options].

PYTHON has pandas, plotly, networkx and pytest; FOLDER is a release of `traceinsight` unpacked (hta/ and tests/), or a
clone. Releases come without traces. The traces of a clone are used. For the rest stand-ins are generated: a test with a
published number fails on a stand-in with HTA, too, and so is not counted. Nothing of HTA is part of this project.

Prints, for each mode, N of M, and what fails; the exit code is 1 where overlay or standalone miss what `--least MODE=N` asks for.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GENERATOR = ROOT / 'tests/gen/kineto.py'
SECONDS = 1800


def annotation(name, ts, dur, tid, pid=3914, cat='user_annotation', **arguments):
    return {'ph': 'X', 'cat': cat, 'name': name, 'pid': pid, 'tid': tid, 'ts': ts, 'dur': dur, 'args': arguments}


def backward_thread():
    """A main thread with its backward pass on another: the seven events that the call graph's tests name."""
    start = 1_700_000_000_000_000
    return {'traceEvents': [
        annotation('ProfilerStep#552', start, 400_000, 3914), annotation('## backward ##', start + 250_000, 110_000, 3914),
        annotation('autograd::engine::evaluate_function: AddmmBackward0', start + 330_000, 150, 24922, cat='cpu_op'),
        annotation('AddmmBackward0', start + 330_002, 100, 24922, cat='cpu_op'),
        annotation('aten::mm', start + 330_008, 60, 24922, cat='cpu_op'),
        annotation('void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>', start + 395_000, 45, 7, 0, 'kernel',
                   stream=7, correlation=4711, device=0),
        annotation('cudaLaunchKernel', start + 330_050, 10, 24922, cat='cuda_runtime', correlation=4711)],
        'distributedInfo': {'rank': 0}}


def without_steps():
    """Ten operators with a launch each, and no step around them."""
    start, events = 1_700_000_000_000_000, []
    for i in range(10):
        at = start + 100 * i
        events += [annotation('aten::mul', at, 40, 1, 1, 'cpu_op'),
                   annotation('runFunction - job_prep_and_submit_for_execution', at + 5, 20, 1, 1, 'cuda_runtime', correlation=i + 1),
                   annotation('customized_mul', at + 50, 30, 1, 0, 'kernel', stream=1, correlation=i + 1)]
    return {'traceEvents': events, 'distributedInfo': {'rank': 0, 'backend': 'mtia:hccl'}}


def generate(folder, names, *options):
    """Traces of our generator, renamed."""
    with tempfile.TemporaryDirectory() as made:
        subprocess.run([sys.executable, GENERATOR, '-o', made, '--format', 'gz', *options], check=True, capture_output=True)
        folder.mkdir(parents=True, exist_ok=True)
        for path, name in zip(sorted(pathlib.Path(made).rglob('*.json.gz')), names):
            shutil.copy(path, folder / name)


def stand_ins(data):
    """Traces in the places of those that are published nowhere; returns their folders."""
    made = []

    def missing(name):
        if (data / name).exists():
            return False
        made.append(name)
        return True
    if missing('vision_transformer'):
        generate(data / 'vision_transformer', [f'rank-{r}.json.gz' for r in range(8)], '--ranks', '8', '--events', '6000', '--steps', '5',
                 '--first-step', '15', '--era', 'us', '--old-nccl')
    if missing('inference_single_rank'):
        generate(data / 'inference_single_rank', ['inference_rank_0.json.gz'], '--ranks', '1', '--events', '3000', '--era', 'us', '--old-nccl')
    if missing('h100'):
        generate(data / 'h100', ['rank-0.json.gz', 'rank-1.json.gz'], '--ranks', '2', '--events', '3000', '--era', 'us')
    if missing('ns_resolution_trace'):
        generate(data / 'ns_resolution_trace', ['rank-0.json.gz'], '--ranks', '1', '--events', '6000', '--steps', '4')
    if missing('critical_path/cuda_event_sync_multi_stream'):
        generate(data / 'critical_path/cuda_event_sync_multi_stream', ['rank-0.json.gz'], '--ranks', '1', '--events', '3000', '--era', 'us', '--sync')
    if missing('mixed_files'):
        generate(data / 'mixed_files', ['a.json.gz'], '--ranks', '1', '--events', '1000', '--era', 'us')
        shutil.copy(data / 'mixed_files/a.json.gz', data / 'mixed_files/b.json.gz')
        (data / 'mixed_files/notes.txt').write_text('no trace\n')
    for name, content in (('call_stack/backward_thread.json', backward_thread()), ('mtia_inference_trace/mtia_inference_rank_0.json.gz', without_steps())):
        if missing(name):
            (data / name).parent.mkdir(parents=True, exist_ok=True)
            import gzip
            with (gzip.open if name.endswith('.gz') else open)(data / name, 'wt') as file:
                json.dump(content, file)
    return made


def arrange(sources, data, root):
    """A tree as a clone has it: hta/, tests/, tests/data/."""
    shutil.copytree(sources / 'hta', root / 'hta', ignore=shutil.ignore_patterns('__pycache__'))
    (root / 'tests').mkdir()
    for path in sorted((sources / 'tests').glob('*.py')):
        shutil.copy(path, root / 'tests')
    given = data if data is not None else sources / 'tests/data'
    if given.is_dir():
        shutil.copytree(given, root / 'tests/data', ignore=shutil.ignore_patterns('*.py'))
        for path in (root / 'tests/data').rglob('*'):
            path.chmod(0o755 if path.is_dir() else 0o644)
    else:
        (root / 'tests/data').mkdir()
    return stand_ins(root / 'tests/data')


def outcomes(report):
    """{test: passed, failed or skipped} of a report in JUnit's form."""
    out = {}
    for case in xml.etree.ElementTree.parse(report).iter('testcase'):
        kinds = {child.tag for child in case}
        name = f'{case.get("classname").replace("tests.", "", 1)}.{case.get("name")}'
        state = 'failed' if kinds & {'failure', 'error'} else 'skipped' if 'skipped' in kinds else 'passed'
        if out.get(name) != 'failed':
            out[name] = state
    return out


def run(mode, python, root, package, options):
    """Runs the suite in one mode. HTA's own code is on the path only if it is requested."""
    tree = root
    if mode == 'standalone':  # without a folder hta next to the tests
        tree = root.parent / 'standalone'
        if not tree.exists():
            tree.mkdir()
            shutil.copytree(root / 'tests', tree / 'tests', ignore=shutil.ignore_patterns('__pycache__'))
    environment = {k: v for k, v in os.environ.items() if k not in ('PYTHONPATH', 'TEST_DATA_PREFIX_PATH')}
    environment['PYTHONDONTWRITEBYTECODE'] = '1'
    plugins = []
    if mode == 'own':
        environment['PYTHONPATH'] = str(tree)
    elif mode == 'overlay':
        environment['PYTHONPATH'] = os.pathsep.join([str(tree), str(package)])
        plugins = ['-p', 'stageline.hta.overlay_plugin']
    else:
        environment['PYTHONPATH'] = str(package)
        environment['STAGELINE_HTA_ROOT'] = str(tree)
        plugins = ['-p', 'stageline.hta.redirect']
    report = root.parent / f'{mode}.xml'
    done = subprocess.run([python, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', *plugins, f'--junit-xml={report}', '-W', 'ignore', *options, 'tests'],
                          cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS)
    if not report.exists():
        raise SystemExit(f'{mode}: pytest did not get to its end\n{done.stdout[-3000:]}{done.stderr[-3000:]}')
    (root.parent / f'{mode}.log').write_text(done.stdout)
    return outcomes(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--sources', type=pathlib.Path, default=os.environ.get('STAGELINE_HTA_TESTS') and pathlib.Path(os.environ['STAGELINE_HTA_TESTS']))
    parser.add_argument('--data', type=pathlib.Path)
    parser.add_argument('--modes', default='own,overlay,standalone')
    parser.add_argument('--package', type=pathlib.Path, default=os.environ.get('STAGELINE_PACKAGE', ROOT / 'build/dev/python'))
    parser.add_argument('--keep', type=pathlib.Path, help='where the tree and the logs stay')
    parser.add_argument('--least', action='append', default=[], metavar='MODE=N')
    parser.add_argument('options', nargs='*')
    arguments = parser.parse_args()
    if not arguments.sources or not (arguments.sources / 'tests').is_dir():
        print("skipped: HTA's tests are not here: pip download --no-binary :all: --no-deps traceinsight, unpack it, and name the folder "
              'by --sources or STAGELINE_HTA_TESTS')
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        root = folder / 'tree'
        if not root.exists():
            made = arrange(arguments.sources.resolve(), arguments.data and arguments.data.resolve(), root)
            (folder / 'stand_ins.json').write_text(json.dumps(made))
        for name in json.loads((folder / 'stand_ins.json').read_text()):
            print(f'stand-in: tests/data/{name}')
        results, failed = {}, 0
        for mode in arguments.modes.split(','):
            results[mode] = run(mode, arguments.python, root, arguments.package.resolve(), arguments.options)
            counts = {state: sum(s == state for s in results[mode].values()) for state in ('passed', 'failed', 'skipped')}
            print(f'{mode}: {counts["passed"]} of {len(results[mode])} pass, {counts["failed"]} fail, {counts["skipped"]} are skipped')
        kept = folder / 'outcomes.json'
        before = json.loads(kept.read_text()) if kept.exists() else {}
        kept.write_text(json.dumps({**before, **results}, indent=1))
        results = {**before, **results}
        least = dict(item.split('=') for item in arguments.least)
        for mode in arguments.modes.split(','):
            if mode == 'own' or 'own' not in results:
                continue
            bar = {name for name, state in results['own'].items() if state == 'passed'}
            missed = sorted(name for name in bar if results[mode].get(name) != 'passed')
            print(f"{mode}: {len(bar) - len(missed)} of the {len(bar)} tests that pass with HTA itself pass unmodified")
            for name in missed:
                print(f'  {results[mode].get(name, "not run"):8} {name}')
            if mode in least and len(bar) - len(missed) < int(least[mode]):
                print(f'{mode}: fewer than {least[mode]}')
                failed = 1
    return failed


if __name__ == '__main__':
    sys.exit(main())
