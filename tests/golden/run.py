"""Goldens: fixture in, expected text out. `run.py --update` rewrites the expected files; review reads the diff.

  readers/CASE/input/…    a tiny input (CASE begins with the reader's name)
  readers/CASE/cells.csv  what `export --to csv` makes of it; where it has no pipeline cells,
  readers/CASE/events.csv what `analyze events` makes of it; of a flight recorder's dumps, which have neither,
  readers/CASE/calls.csv  what `analyze flight-recorder` makes of them
  readers/CASE/layers.csv what `analyze experts` makes of a trace of routers
  readers/CASE/timeline.csv  what `analyze allocator-snapshot` makes of a snapshot of an allocator
  readers/CASE/info.txt   what `info` says
  sql/schema.csv          tables and columns of SQL
  schedules/NAME.txt      the order on 4 stages with 8 micro-batches, one line a rank, as simulated logs have it; drawing and numbers
  analyses/NAME.txt       its tables: of pipeline cells on readers/paddle-log, of profiler traces on readers/kineto in
                          both modes, of two runs on readers/kineto and readers/kineto-us, of files on files/…
  align/NAME.txt          the clocks of small runs whose clocks are off, made on the spot (ALIGN below)
  what-if/NAME.txt        the fixes of small runs made on the spot (WHAT_IF below), in every form
  exporters/NAME.txt      the bytes, or facts read back from them by an outside decoder, on readers/paddle-log

readers/kineto* are made by tests/gen/kineto.py, readers/ascend* by tests/gen/ascend_db.py; `run.py --make-inputs` makes them again
(KINETO and ASCEND_FILES below), others of them by `stageline simulate` (ASCEND), ascend-text by ascend_text.py (ASCEND_TEXT).
"""
import contextlib
import difflib
import gzip
import json
import os
import pathlib
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
BIN = os.environ.get('STAGELINE_BIN', str(HERE.parents[1] / 'build/dev/stageline'))
UPDATE = '--update' in sys.argv
sys.path.insert(0, str(HERE.parent / 'gen'))
SAMPLE = pathlib.Path('readers/paddle-log/input')  # relative: messages and titles hold paths
TORCH = pathlib.Path('readers/kineto/input')
TWO_RUNS = ['--control', TORCH, '--test', 'readers/kineto-us/input']
# How the inputs of readers/kineto* are made, one call of tests/gen/kineto.py a line.
SMALL = ['--model', 'mlp', '--layers', 1, '--bucket', 1, '--steps', 3, '--gpus', 2, '--ranks', 2, '--memory', '--sync', '--no-shapes']
PIPELINE = ['--shape', 'pipeline', '--ranks', 2, '--micro-batches', 3, '--steps', 2]
KINETO = {
    'kineto': [[*SMALL, '--format', 'json', '--only-ranks', 0], [*SMALL, '--format', 'gz', '--only-ranks', 1]],
    'kineto-us': [[*SMALL, '--era', 'us', '--format', 'gz', '--fault', 'slow-rank:1,1.5']],
    'kineto-old': [[*SMALL, '--era', 'old', '--format', 'gz', '--only-ranks', 0]],
    'kineto-modules': [[*SMALL, '--python', '--format', 'gz', '--only-ranks', 0]],
    'kineto-amd': [[*SMALL, '--vendor', 'amd', '--python', '--graphs', '--format', 'gz', '--only-ranks', 0]],
    # Pipelines: torch's annotations on GPUs, numbered names, Megatron's frames, nothing named at all, DualPipe's modules.
    'kineto-pipeline': [[*PIPELINE, '--notes', 'actions']],
    'kineto-numbers': [[*PIPELINE, '--notes', 'numbers']],
    'kineto-megatron': [[*PIPELINE, '--notes', 'megatron']],
    'kineto-inferred': [[*PIPELINE]],
    'kineto-dualpipe': [['--shape', 'dualpipe']],
}
# Keywords of ascend_db.write. SQLite's versions lay files out differently, so that what is there is not compared with new ones.
ASCEND_FILES = {'ascend': {}, 'ascend-level-none': {'level': 'none', 'schema': '1.0.0'}, 'ascend-mindspore': {'mindspore': True, 'ranks': 1}}
# How the inputs of readers/ascend-* are made, by `stageline simulate --format ascend`.
ASCEND = {
    'ascend-1f1b': ['1f1b', '--stages', 2, '--micro-batches', 3, '--steps', 2, '--level', 1, '--optimizer', 4, '--jitter', 0.05],
    'ascend-dualpipev': ['dualpipe-v-mindspeed', '--stages', 2, '--micro-batches', 4, '--steps', 1, '--pp-info', '--level-none-comm', 'escaped'],
    'ascend-helper': ['zb-h1', '--stages', 2, '--micro-batches', 3, '--tp', 2, '--machines', 2, '--clock-skew', 5, '--steps', 1, '--level', 0,
                      '--marks', 'helper', '--p2p', 'batch'],
}
# Insight's own system test in small: two pipelines of two stages, kernels of one of them, no database.
ASCEND_TEXT = ['--kernels', '0,2', '--layers', 2, '--scale', 100, '--no-database']
# Options of analyses that say little, or nothing, without; each line is one call.
OPTIONS = {
    'operators': [[], ['--group-by-input-shape', 'true', '--group-by-stack-n', '2', '--include-python-functions', 'true', '--sort-by', 'count'],
                  ['--rank', '0', '--format', 'torch', '--sort-by', 'self_cuda_time_total', '--row-limit', '12']],
    'critical-path-analysis': [['--annotation', 'ProfilerStep#101']],
    'tb-kernel': [[], ['--group-by', 'kernel-and-operator']],
    'tb-operator': [[], ['--group-by', 'operator-and-shape']],
    'frequent-cuda-kernel-sequences': [['--operator-name', 'aten::linear', '--min-pattern-len', '1']],
}
# Analyses that need more than TORCH holds.
INPUTS = {**dict.fromkeys(('tb-module', 'memory-categories'), 'readers/kineto-modules/input'), 'rank-map': 'readers/ascend-helper/input',
          'flight-recorder': 'readers/flight-recorder/input', 'xla-steps': 'readers/xplane/input', 'allocator-snapshot': 'readers/memory-snapshot/input',
          'execution-trace': 'files/execution_trace', 'roofline': 'readers/kineto-shapes/input', 'expert-load': 'readers/kineto-experts/input', 'requests': 'readers/otlp-requests/input'}
# Analyses that msprof-analyze has too.
INPUTS |= dict.fromkeys(('compute-op-sum', 'hccl-sum', 'cann-api-sum', 'mstx-sum', 'cluster-time-summary', 'communication-matrix',
                         'communication-time-sum', 'slow-rank', 'slow-link', 'free-analysis'), 'readers/ascend/input')
# A second input of analyses of cells: one with recorded messages and collectives.
OPERATIONS = dict.fromkeys(('slowdown', 'pipeline-critical-path'), 'readers/op-table/input')
# Calls of export-stacks.
STACKS = [[], ['--metric', 'self_cuda_time_total', '--aggregate', '--leaf', 'kernel'], ['--aggregate', '--leaf', 'none'],
          ['--aggregate', '--metric', 'samples', '--format', 'speedscope']]
# Analyses of files that are not traces.
FILES = dict.fromkeys(('memory-timeline', 'memory-analysis'), 'files/memory_timeline.raw.gz')
# Runs for `align`: how they are made (a folder follows), its options, and the exit code.
KINETO_PY = [sys.executable, HERE.parent / 'gen/kineto.py']
FAULTS = ['--fault', 'clock:1,-4', '--fault', 'clock:2,25']
ALIGN = {
    # Gaps between cells that wait for each other; one clock a machine.
    'gaps': ([BIN, 'simulate', '1f1b', '--machines', 4, '--clock-skew', '25ms', '--latency', '100us', '--jitter', 0.02, '--seed', 3], [], 0),
    # Replicas that nothing ties, but for an operator named by hand.
    'by-hand': ([BIN, 'simulate', '1f1b', '--machines', 2, '--dp', 2, '--stages', 2, '--clock-skew', '25ms'], ['--align-on', '0:2:F0'], 0),
    'apart': ([BIN, 'simulate', '1f1b', '--machines', 2, '--dp', 2, '--stages', 2, '--clock-skew', '25ms'], [], 2),
    # Profiles: messages of a pipeline, and collectives of replicas without one.
    'profile-messages': ([*KINETO_PY, *PIPELINE, '--ranks', 3, '--notes', 'actions', *FAULTS], [], 0),
    'profile-collectives': ([*KINETO_PY, *SMALL, '--ranks', 3, *FAULTS], [], 0),
}
# Runs for `what-if`: how they are made (`-o FOLDER` follows), and its options.
WHAT_IF = {
    'slow-worker': (['1f1b', '--dp', 2, '--fault', 'slow-rank:5,1.5', '--latency', '0.5', '--jitter', 0.02, '--steps', 4], []),
    'heavy-head': (['1f1b', '--stages', 3, '--micro-batches', 6, '--fault', 'slow-stage:2,1.5', '--optimizer', 5], ['--layers', '24', '--more-memory']),
    'own': (['vpp', '--stages', 2, '--micro-batches', 4, '--latency', 2], ['--scale', 'stage=1,kind=F,by=0.5', '--schedule', 'zb-v', '--latency', '1ms']),
    'no-schedule': (['dualpipe', '--stages', 4, '--jitter', 0.1], ['--ranks', '1', '--scale', 'by=0.5']),
}
counts = {'passed': 0, 'failed': 0}


def stageline(*args):
    done = subprocess.run([BIN, *map(str, args)], capture_output=True, cwd=HERE, env={**os.environ, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1'})
    if done.returncode != 0:
        raise RuntimeError(f'stageline {" ".join(map(str, args))}: exit {done.returncode}\n{done.stderr.decode()}')
    return done.stdout


def what_if_text(made, options):
    with tempfile.TemporaryDirectory() as folder:
        stageline('simulate', *made, '--format', 'cells', '--force', '-o', folder)
        text = ''
        for form in (['--lang', 'en'], ['--lang', 'zh'], ['--format', 'csv'], ['--format', 'json']):
            text += f'$ what-if {" ".join(options + form)}\n{stageline("what-if", folder, *options, *form, "-q").decode()}\n'
        return text


def compare(path, text):
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    expected = path.read_text() if path.exists() else ''
    if expected == text:
        counts['passed'] += 1
        return
    counts['failed'] += 1
    diff = difflib.unified_diff(expected.splitlines(), text.splitlines(), str(path.relative_to(HERE)), 'now', lineterm='')
    print('\n'.join(line[:240] for line in list(diff)[:60]))


# ---- decoders of our own, so that no exporter is checked by the code that wrote it ----------------------------------


def protobuf_text(data, depth=0):
    """A protobuf message as indented `field: value` lines, nested messages guessed by whether they parse."""
    lines, i = [], 0

    def varint():
        nonlocal i
        value, shift = 0, 0
        while True:
            byte = data[i]
            i += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while i < len(data):
        key = varint()
        field, wire = key >> 3, key & 7
        if field == 0 or field > 10000:
            raise ValueError('not a message')
        pad = '  ' * depth
        if wire == 0:
            lines.append(f'{pad}{field}: {varint()}')
        elif wire == 1:
            lines.append(f'{pad}{field}: fixed {struct.unpack_from("<Q", data, i)[0]}')
            i += 8
        elif wire == 2:
            size = varint()
            inner = data[i:i + size]
            if len(inner) != size:
                raise ValueError('cut')
            i += size
            if inner and all(32 <= b or b >= 128 for b in inner) and inner.decode('utf-8', 'ignore').isprintable():
                lines.append(f'{pad}{field}: "{inner.decode("utf-8", "replace")}"')
            else:
                try:
                    lines += [f'{pad}{field}:', *protobuf_text(inner, depth + 1)]
                except (ValueError, IndexError, struct.error):
                    lines.append(f'{pad}{field}: bytes {inner.hex()}')
        else:
            raise ValueError('wire type')
    return lines


def png_facts(data):
    """Size, and which saturated colours cover how much, to a tenth of a percent (fonts and edges blur the rest)."""
    width, height, depth, kind = struct.unpack_from('>IIBB', data, 16)
    packed, i = b'', 8
    while i < len(data):
        size, name = struct.unpack_from('>I4s', data, i)
        if name == b'IDAT':
            packed += data[i + 8:i + 8 + size]
        i += 12 + size
    raw, bpp = zlib.decompress(packed), {2: 3, 6: 4}[kind]
    stride, rows, above = width * bpp, [], bytes(width * bpp)
    for y in range(height):
        line = bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        filter_type = raw[y * (stride + 1)]
        for x in range(stride):
            a, b, c = (line[x - bpp] if x >= bpp else 0), above[x], (above[x - bpp] if x >= bpp else 0)
            if filter_type == 1:
                line[x] = (line[x] + a) & 255
            elif filter_type == 2:
                line[x] = (line[x] + b) & 255
            elif filter_type == 3:
                line[x] = (line[x] + (a + b) // 2) & 255
            elif filter_type == 4:
                p = a + b - c
                best = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                line[x] = (line[x] + best) & 255
        rows.append(line)
        above = line
    colours = {}
    for line in rows:
        for x in range(0, stride, bpp):
            rgb = bytes(line[x:x + 3])
            if max(rgb) - min(rgb) > 80:
                colours[rgb.hex()] = colours.get(rgb.hex(), 0) + 1
    common = {c: n / (width * height) for c, n in colours.items() if n / (width * height) > 0.004}
    return f'{width} x {height}, {depth} bits\n' + ''.join(f'#{c} {100 * n:.0f} %\n' for c, n in sorted(common.items()))


def pdf_objects(data):
    """Returns a PDF's text with its compressed streams unfolded: newer Cairos keep the page itself in one."""
    unfolded = [data]
    for stream in re.findall(rb'stream\r?\n(.*?)endstream', data, re.S):
        try:
            unfolded.append(zlib.decompressobj().decompress(stream))
        except zlib.error:
            pass  # not compressed that way
    return b'\n'.join(unfolded)


def facts(kind, data):
    """Returns the checked part of an exporter's bytes, as text."""
    if kind in ('chrome', 'csv', 'json', 'otlp', 'trace-with-counters', 'kernel-details'):
        return data.decode()
    if kind == 'perfetto':
        return '\n'.join(protobuf_text(data)) + '\n'
    if kind == 'png':
        return png_facts(data)
    if kind == 'svg':
        text = data.decode()
        size = re.search(r'<svg[^>]*viewBox="([^"]*)"', text)[1]
        return f'viewBox {size}\n'
    if kind == 'pdf':
        data = pdf_objects(data)
        box = re.search(rb'/MediaBox\s*\[([^\]]*)\]', data)[1].decode().split()
        return f'{len(re.findall(rb"/Type /Page[^s]", data))} page of {" ".join(box)}\n'
    if kind == 'html':
        text = data.decode()
        names = [' '.join(found) for found in re.findall(r'<script[^>]* data-(answer|timeline|lanes)="([^"]*)"', text)]
        policy = re.search(r"default-src 'none'", text) is not None
        return f'scripts {names}\npolicy {policy}\noutside addresses {len(re.findall(r"(?:src|href)=.https?:", text))}\n'
    if kind in ('sqlite', 'cluster-db'):
        with tempfile.NamedTemporaryFile() as f:
            f.write(data)
            f.flush()
            with sqlite3.connect(f.name) as db:
                return '\n'.join(shortest_reals(line).replace(str(HERE), '.') for line in db.iterdump()) + '\n'
    raise ValueError(kind)


def shortest_reals(line):
    """Writes reals of an SQL statement with enough digits to distinguish them: the number of digits that SQLite writes
    depends on its version."""
    return re.sub(r"('(?:[^']|'')*')|\b\d+\.\d+(?:e[+-]\d+)?", lambda m: m[1] or repr(float(m[0])), line)


def without_version(text):
    return re.sub(r'stageline \d+\.\d+\.\d+|("version":\s*)"\d+\.\d+\.\d+"', r'\1stageline', text)


def job_order(folder):
    kinds = {'forward': 'F', 'backward': 'B', 'backward_b': 'I', 'backward_w': 'W'}
    out = ''
    for log in sorted(folder.glob('workerlog.*'), key=lambda p: int(p.suffix[1:])):
        found = re.findall(r'type = ([a-z_]+?)(\d*), micro_batch_id = (\d+)', log.read_text())
        out += ' '.join(f'{kinds[k]}{mb}' + (f'.c{chunk}' if chunk else '') for k, chunk, mb in found) + '\n'
    return out


def make_kinetos(root):
    import ascend_text
    import experts
    import kineto
    import roofline
    experts.write(root / 'kineto-experts' / 'input')
    roofline.write(root / 'kineto-shapes' / 'input')
    ascend_text.generate([root / 'ascend-text' / 'input', *ASCEND_TEXT])
    (root / 'ascend-text' / 'input' / 'truth.csv').unlink()
    for case, calls in KINETO.items():
        for arguments in calls:
            kineto.generate([*arguments, '-o', root / case / 'input'])
        (root / case / 'input' / 'truth.json').unlink(missing_ok=True)  # tests/torch/pipelines.py looks at that


def check_kinetos():
    """The generator still makes the inputs that are here: what it promises for (options, seed)."""
    with tempfile.TemporaryDirectory() as folder:
        make_kinetos(pathlib.Path(folder))
        for made in sorted(pathlib.Path(folder).rglob('*.json*')):
            here = HERE / 'readers' / made.relative_to(folder)
            same = content(here) == content(made)
            counts['passed' if same else 'failed'] += 1
            if not same:
                print(f'{here.relative_to(HERE)} is not what tests/gen makes now; run.py --make-inputs writes it')


def make_ascends(folder):
    """Profile folders, without the truth next to them, are compared."""
    for case, options in ASCEND.items():
        with tempfile.TemporaryDirectory() as made:
            stageline('simulate', *options, '--format', 'ascend', '--force', '-o', made, '-q')
            shutil.rmtree(folder / case / 'input', ignore_errors=True)
            for profile in sorted(pathlib.Path(made).glob('*_ascend_pt')):
                shutil.copytree(profile, folder / case / 'input' / profile.name)


def check_ascends():
    """Does the same for `simulate`. Rows are compared: the bytes of a database also depend on the version of SQLite
    that wrote it."""
    def rows(path):
        if path.suffix != '.db':
            return path.read_text()
        with contextlib.closing(sqlite3.connect(f'file:{path}?immutable=1', uri=True)) as db:
            return list(db.iterdump())

    with tempfile.TemporaryDirectory() as folder:
        make_ascends(pathlib.Path(folder))
        for made in sorted(p for p in pathlib.Path(folder).rglob('*') if p.is_file()):
            here = HERE / 'readers' / made.relative_to(folder)
            same = here.exists() and rows(here) == rows(made)
            counts['passed' if same else 'failed'] += 1
            if not same:
                print(f'{here.relative_to(HERE)} is not what simulate makes now; run.py --make-inputs writes it')


def content(path):
    return (gzip.open if path.name.endswith('.gz') else open)(path, 'rb').read()


def make_inputs():
    make_kinetos(HERE / 'readers')
    import ascend_db
    for case, options in ASCEND_FILES.items():
        ascend_db.write(HERE / 'readers' / case / 'input', **options)
    make_ascends(HERE / 'readers')
    import recording
    recording.make(HERE / 'readers' / 'recording' / 'input')
    recording.make_kernels(HERE / 'readers' / 'recording-kernels' / 'input')
    import flight_recorder
    wanted = flight_recorder.parse(['--fault', 'missing:2', '--messages'])
    flight_recorder.write(flight_recorder.make(wanted), HERE / 'readers' / 'flight-recorder' / 'input')
    import memory_snapshot
    (HERE / 'readers' / 'memory-snapshot' / 'input').mkdir(parents=True, exist_ok=True)
    memory_snapshot.write(HERE / 'readers' / 'memory-snapshot' / 'input' / 'rank0.pickle', oom='fragmented', steps=1)
    import rocpd
    for rank in (0, 1):
        (HERE / 'readers' / 'rocpd' / 'input').mkdir(parents=True, exist_ok=True)
        rocpd.make(HERE / 'readers' / 'rocpd' / 'input' / f'{4242 + rank}_results.db', pid=4242 + rank, rank=rank, steps=1)
        (HERE / 'readers' / 'rocprofv3-json' / 'input').mkdir(parents=True, exist_ok=True)
        rocpd.make_json(HERE / 'readers' / 'rocprofv3-json' / 'input' / f'rank{rank}_results.json', pid=4242 + rank, steps=1)
        rocpd.make_csv(HERE / 'readers' / 'rocprofv3-csv' / 'input', pid=4242 + rank, steps=1, sums=False)
    import xplane
    (HERE / 'readers' / 'xplane' / 'input').mkdir(parents=True, exist_ok=True)
    xplane.make(HERE / 'readers' / 'xplane' / 'input' / 'host0.xplane.pb', steps=2)
    import otlp
    otlp.write(HERE / 'readers' / 'otlp' / 'input', chunks=2, micro_batches=2)
    import torchtitan
    (HERE / 'readers' / 'torchtitan' / 'input').mkdir(parents=True, exist_ok=True)
    for log in torchtitan.run(steps=2):  # rank 1 compressed
        path, text = HERE / 'readers' / 'torchtitan' / 'input' / log.name(), log.text().encode()
        path.write_bytes(text) if log.rank == 0 else path.with_name(f'{path.name}.gz').write_bytes(gzip.compress(text, mtime=0))
    import miles
    miles.Dashboard(ranks=2, steps=3, long_step=1).write(HERE / 'readers' / 'miles' / 'input')
    import paddle_details
    paddle_details.write(HERE / 'readers' / 'paddle-details' / 'input', micro_batches=4)
    import nccl_inspector
    nccl_inspector.write(HERE / 'readers' / 'nccl-inspector' / 'input', steps=2, late=2)
    import chakra
    chakra.write(HERE / 'readers' / 'chakra' / 'input')
    import execution_trace
    execution_trace.write(HERE / 'files' / 'execution_trace')
    import nsys
    nsys.make(HERE / 'readers' / 'nsys' / 'input' / 'report.sqlite', steps=2)
    import perfetto
    (HERE / 'readers' / 'perfetto' / 'input').mkdir(parents=True, exist_ok=True)
    for rank in (0, 1):
        perfetto.torch(HERE / 'readers' / 'perfetto' / 'input' / f'rank{rank}.pftrace{".gz" if rank else ""}', rank, steps=1)
    # [time in µs (−1: before the capture), action, bytes, category], as torch writes a raw memory timeline.
    rows = [[-1, 0, 4096, 0], [-1, 0, 8192, 1]]
    for step in range(3):
        rows += [[1000 * step + 10 * k, (1, 1, 2, 3)[k % 4], 512 * (k + 1), 2 + k % 6] for k in range(12)]
    (HERE / 'files').mkdir(exist_ok=True)
    with gzip.GzipFile(HERE / 'files' / 'memory_timeline.raw.gz', 'wb', mtime=0) as out:
        out.write(json.dumps(rows).encode())


def called(*args):
    """Returns the output of a call, also if it fails: both modes of an analysis may refuse an input, each with its own
    message."""
    done = subprocess.run([BIN, *map(str, args)], capture_output=True, cwd=HERE, env={**os.environ, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1'})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def analysis_text(name):
    """The tables of an analysis as CSV: with default options, with those of OPTIONS, and with --compat. A golden that
    begins with a call on an input says itself what is asked: at first it is such lines alone."""
    golden = HERE / 'analyses' / f'{name}.txt'
    text = golden.read_text() if golden.is_file() else ''
    if re.match(rf'\$ analyze {name} \S*/', text):
        calls = re.findall(rf'^\$ analyze ({name} \S*/.*)$', text, re.M)
        said = [(call, called('analyze', *call.split(), '--format', 'csv', '-q')) for call in calls]
        return '\n'.join(f'$ analyze {call}\n' + (tables if code == 0 else f'exit {code}\n{words}') for call, (code, tables, words) in said)
    code, tables, words = called('analyze', name, SAMPLE, '-q')
    if code == 0 and name in OPERATIONS:
        tables += f'\n$ analyze {name} {OPERATIONS[name]}\n' + stageline('analyze', name, OPERATIONS[name], '-q').decode()
    if code == 0 and name not in FILES:
        return tables
    about = stageline('help', name).decode()
    source = TWO_RUNS if '--control A' in about.splitlines()[0] else [FILES.get(name, INPUTS.get(name, TORCH))]
    out = ''
    for mode in [[], *(['--compat', rival] for rival in re.findall(r'^  --compat (\w+)', about, re.M))]:
        for options in OPTIONS.get(name, [[]]):
            code, tables, words = called('analyze', name, *source, '--format', 'csv', '-q', *options, *mode)
            out += f'$ analyze {" ".join(map(str, [name, *options, *mode]))}\n' + (tables if code == 0 else f'exit {code}\n{words}') + '\n'
    return out.rstrip('\n') + '\n'


def stacks_text():
    """Returns the output of export-stacks for a short trace with Python frames: each call and its output, at most 60
    lines of it."""
    out = ''
    for options in STACKS:
        lines = stageline('export-stacks', 'readers/kineto-modules/input', *options, '-o', '-', '-q').decode().splitlines()
        out += f'$ export-stacks {" ".join(options)}\n' + ''.join(f'{line}\n' for line in lines[:60]) + f'({len(lines)} lines)\n\n'
    return out.rstrip('\n') + '\n'


def align_text(make, options, code):
    """The table, and the notes without the input's path."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*map(str, make), '-o', folder], check=True, capture_output=True)
        done = subprocess.run([BIN, 'align', folder, '--format', 'csv', *options], capture_output=True,
                              env={**os.environ, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1'})
        if done.returncode != code:
            raise RuntimeError(f'stageline align: exit {done.returncode}, not {code}\n{done.stderr.decode()}')
        return (done.stdout + b'\n' + done.stderr).decode().replace(folder, 'RUN')


def main():
    if '--make-inputs' in sys.argv:
        return make_inputs()
    check_kinetos()
    check_ascends()
    topics = {t: re.findall(r'^  (\S+)', stageline('help', t).decode(), re.M) for t in ('schedules', 'analyses', 'exporters')}
    for case in sorted((HERE / 'readers').iterdir()):
        inputs = sorted((case / 'input').iterdir()) if (case / 'input').is_dir() else []
        source = case / 'input' if len(inputs) > 1 or inputs[0].is_dir() else inputs[0]
        source = source.relative_to(HERE)
        about = json.loads(stageline('info', source, '--json'))
        if about['format'] == 'flight-recorder':
            compare(case / 'calls.csv', stageline('analyze', 'flight-recorder', source, '--table', 'flight-calls', '--format', 'csv', '-q').decode())
        elif about['format'] == 'memory-snapshot':
            compare(case / 'timeline.csv', stageline('analyze', 'allocator-snapshot', source, '--table', 'allocator-timeline', '--format', 'csv', '-q').decode())
        elif about['format'] == 'router-trace':
            compare(case / 'layers.csv', stageline('analyze', 'experts', source, '--table', 'expert-layers', '--format', 'csv', '-q').decode())
        elif about['cells']:
            compare(case / 'cells.csv', stageline('export', source, '--to', 'csv', '-o', '-', '-q').decode())
        elif 'events' in topics['analyses']:
            compare(case / 'events.csv', stageline('analyze', 'events', source, '--format', 'csv', '-q').decode())
        compare(case / 'info.txt', without_version(stageline('info', source).decode()))
    compare(HERE / 'sql' / 'schema.csv', stageline('sql', 'readers/kineto/input', '--schema', '--format', 'csv', '-q').decode())
    for name in topics['schedules']:
        with tempfile.TemporaryDirectory() as folder:
            sizes = [name, '--stages', 4, '--micro-batches', 8]
            stageline('simulate', *sizes, '--steps', 1, '--force', '-o', folder)
            orders = job_order(pathlib.Path(folder)) + '\n' + stageline('schedule', *sizes).decode()
            compare(HERE / 'schedules' / f'{name}.txt', orders)
    for name in topics['analyses']:
        compare(HERE / 'analyses' / f'{name}.txt', analysis_text(name))
    for name, how in ALIGN.items():
        compare(HERE / 'align' / f'{name}.txt', align_text(*how))
    for name, how in WHAT_IF.items():
        compare(HERE / 'what-if' / f'{name}.txt', what_if_text(*how))
    for name in topics['exporters']:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'out'
            sample = {'trace-with-counters': [TORCH, '--ranks', '0'], 'cluster-db': [pathlib.Path('readers/ascend-1f1b/input')],
                      'kernel-details': [pathlib.Path('readers/ascend/input'), '--ranks', '0']}.get(name, [SAMPLE])
            stageline('export', *sample, '--to', name, '-o', path, '-q', '--title', 'golden', '--lang', 'en')
            data = path.read_bytes()
        compare(HERE / 'exporters' / f'{name}.txt', without_version(facts(name, data)))
    compare(HERE / 'exporters' / 'export-stacks.txt', stacks_text())
    print(f'{counts["passed"]} passed, {counts["failed"]} failed')
    return 1 if counts['failed'] or not counts['passed'] else 0


sys.exit(main())
