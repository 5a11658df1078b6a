#!/usr/bin/env python3
"""Runs the parts of record/gpu/run.sh, holds every number to its bound, prints pass or fail and writes results.json and table.md.

Each number is the median of --repeats runs of its part; the minimum and maximum are printed next to it. A part without
what it needs is skipped, with the reason.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
NAMES = {1: 'events against torch.profiler', 2: 'cost of a range', 3: 'gap on the stream', 4: 'cost of a step', 5: 'clock', 6: 'overlap', 7: 'graphs',
         8: "another thread's captures", 9: 'NVTX', 10: 'kernels', 11: 'NCCL', 12: 'frameworks', 13: 'kill', 14: 'exits', 15: 'soak'}
# Where the device's own part of the error ends: half the documented resolution of an event, and what reading adds.
CLOCK_P99_NS = 800


class Skip(Exception):
    pass


class Parts:
    def __init__(self, device, out, short):
        self.device, self.out, self.short = device, out, short
        self.library, self.program = os.environ['STAGELINE_RECORD_LIBRARY'], os.environ['STAGELINE_BIN']

    def folder(self, name):
        folder = self.out / 'recordings' / f'{name}-{time.monotonic_ns()}'
        folder.mkdir(parents=True)
        return folder

    def run(self, command, name, env=None, timeout=3600, check=True):
        """Runs it recorded to a folder of its own; returns the numbers that it printed, and the folder."""
        folder = self.folder(name)
        done = subprocess.run([str(part) for part in command], env={**os.environ, 'STAGELINE_DIR': str(folder), 'RANK': '0', **(env or {})},
                              capture_output=True, text=True, timeout=timeout)
        if done.returncode == 3:
            raise Skip(done.stderr.strip().splitlines()[-1])
        if check and done.returncode:
            raise RuntimeError(f'{name} ended with {done.returncode}: {done.stderr.strip()[-500:]}')
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')], folder, done

    def c(self, *arguments, env=None, name=None):
        return self.run([self.device, *arguments], name or arguments[0], env)[0]

    def python(self, name, env=None):
        done = self.run([sys.executable, HERE / 'torch_parts.py', name, *(['--short'] if self.short else [])], name, {'PYTHONPATH': self.python_path(), **(env or {})})
        return done[0]

    def python_path(self):
        return os.pathsep.join(filter(None, [str(HERE.parents[1] / 'python'), os.environ.get('PYTHONPATH', '')]))

    def info(self, folder):
        return json.loads(subprocess.run([self.program, 'info', '--json', str(folder)], capture_output=True, text=True, check=True).stdout)

    def cells(self, folder, columns):
        text = subprocess.run([self.program, 'sql', str(folder), f'select {columns} from cells order by micro_batch', '--format', 'json', '--rows', '0'],
                              capture_output=True, text=True, check=True).stdout
        return json.loads(text)['rows']

    def few(self, many, short):
        return short if self.short else many

    def part_1(self):
        return self.python('one')

    def part_2(self):
        return self.c('cost', self.few(2000, 20))

    def part_3(self):
        return self.c('gap', self.few(10_000, 200))

    def part_4(self):
        return self.python('step')

    def part_5(self):
        out = []
        for load in (0, 1):
            stamps = self.out / f'stamps-{load}.txt'
            said, folder, _ = self.run([self.device, 'clocks', self.few(300, 3), load, stamps], 'clocks')
            out += said + [self.clock_error(folder, stamps, ', another stream busy' if load else ', idle')]
        return out

    def clock_error(self, folder, stamps, how):
        """Returns how far recorded ends are from a straight line through the kernel's own stamps: both clocks run
        evenly, whatever their zero and rate."""
        ends = {int(i): int(end) for i, _, end in (line.split() for line in stamps.read_text().splitlines())}
        points = [(ends[mb], end) for mb, end in self.cells(folder, 'micro_batch, end_ns') if mb in ends]
        if len(points) < 10:
            raise RuntimeError(f'{len(points)} of {len(ends)} ranges were recorded')
        x0, y0 = points[0]
        xs, ys = [x - x0 for x, _ in points], [y - y0 for _, y in points]
        mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
        rate = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)
        off = sorted(abs(y - mean_y - rate * (x - mean_x)) for x, y in zip(xs, ys))
        return {'part': 5, 'what': 'error of converted times, 99th percentile' + how, 'value': off[len(off) * 99 // 100], 'unit': 'ns', 'at_most': CLOCK_P99_NS}

    def part_6(self):
        return self.c('overlap', self.few(20, 4)) + self.c('overlap', 2, env={'CUDA_DEVICE_MAX_CONNECTIONS': '1'})

    def part_7(self):
        replays = self.few(100, 20)
        out = self.c('graphs', replays)
        for apart_us, bound in ((20_000, {'at_least': 90}), (2000, {})):
            said, folder, _ = self.run([self.device, 'graphs', replays, apart_us], 'graphs', {'STAGELINE_GRAPHS': '1'})
            # Each replay is a step of its own; what was recorded around them is of none.
            seen = len({step for (step,) in self.cells(folder, 'step') if step is not None and step >= 0})
            out += said + [{'part': 7, 'what': f'share of replays seen, replays {apart_us // 1000} ms apart', 'value': seen / replays * 100, 'unit': '%', **bound}]
        return out

    def part_8(self):
        return self.c('captures', self.few(1000, 50))

    def part_9(self):
        return self.python('nvtx', {'NVTX_INJECTION64_PATH': self.library})

    def part_10(self):
        return self.python('kernels', {'CUDA_INJECTION64_PATH': self.library})

    def part_11(self):
        return self.python('nccl', {'NCCL_PROFILER_PLUGIN': self.library})

    def part_12(self):
        return self.python('frameworks')

    def part_13(self):
        """Killed with events in flight: what had ended is there."""
        kills, lost, unreadable, ended = self.few(100, 5), 0, 0, 0
        for k in range(kills):
            folder, count = self.folder('kill'), self.out / f'ended-{k}'
            count.unlink(missing_ok=True)
            child = subprocess.Popen([str(self.device), 'endless', str(count)], env={**os.environ, 'STAGELINE_DIR': str(folder), 'RANK': '0'}, stderr=subprocess.PIPE, text=True)
            until = time.monotonic() + 60
            while child.poll() is None and time.monotonic() < until and not (count.exists() and int.from_bytes(count.read_bytes(), 'little') > 200 + 37 * k):
                time.sleep(0.002)
            if child.poll() == 3:
                raise Skip(child.stderr.read().strip())
            child.kill()
            child.wait()
            truth = int.from_bytes(count.read_bytes(), 'little')
            count.unlink()
            try:
                found = len({row[0] for row in self.cells(folder, 'micro_batch')})
            except (subprocess.CalledProcessError, ValueError, KeyError):
                unreadable += 1
                continue
            ended += truth
            lost += max(0, truth - found)
        return [{'part': 13, 'what': 'kills', 'value': kills, 'unit': ''},
                {'part': 13, 'what': 'ranges that had ended', 'value': ended, 'unit': '', 'at_least': 1},
                {'part': 13, 'what': 'of these, lost', 'value': lost, 'unit': '', 'at_most': 0},
                {'part': 13, 'what': 'recordings that cannot be read', 'value': unreadable, 'unit': '', 'at_most': 0}] + self.torch_errors()

    def torch_errors(self):
        try:
            return self.python('errors')
        except Skip:
            return []  # only the driver's part runs

    def part_14(self):
        out = []
        for how in ('return', '_exit', 'reset', 'fork'):
            began = time.monotonic()
            _, folder, done = self.run([self.device, 'leave', how], f'leave-{how}', timeout=60, check=False)
            out.append({'part': 14, 'what': f'{how}: exit code', 'value': done.returncode, 'unit': '', 'at_most': 0})
            out.append({'part': 14, 'what': f'{how}: from begin to end', 'value': time.monotonic() - began, 'unit': 's'})
            if how != '_exit':
                out.append({'part': 14, 'what': f'{how}: ranges recorded of 100', 'value': self.info(folder)['cells'], 'unit': '', 'at_least': 100})
        return out

    def part_15(self):
        return self.c('soak', self.few(1200, 6))


def holds(row):
    value = row['value']
    return not ('at_most' in row and value > row['at_most']) and not ('at_least' in row and value < row['at_least'])


def shown(value):
    return f'{value:,.0f}'.replace(',', ' ') if abs(value) >= 1000 or value == int(value) else f'{value:.3g}'


def bound(row):
    return f'≤ {shown(row["at_most"])}' if 'at_most' in row else f'≥ {shown(row["at_least"])}' if 'at_least' in row else ''


def collect(runs):
    """The same number of several runs as one: median, least, largest."""
    rows = collections.OrderedDict()
    for run in runs:
        for row in run:
            rows.setdefault((row['part'], row['what']), []).append(row)
    out = []
    for same in rows.values():
        values = [row['value'] for row in same]
        out.append({**same[0], 'value': statistics.median(values), 'least': min(values), 'largest': max(values), 'runs': len(values)})
        out[-1]['holds'] = holds(out[-1])
    return out


def machine():
    """Returns the device of the measurement, if the driver's tool reports it."""
    try:
        said = subprocess.run(['nvidia-smi', '--query-gpu=name,driver_version', '--format=csv,noheader'], capture_output=True, text=True, timeout=30, check=True).stdout
        return re.sub(r'\s*\n\s*', '; ', said.strip())
    except (OSError, subprocess.SubprocessError):
        return 'no NVIDIA GPU'


def table(rows, skipped, failed, where):
    lines = [f'Measured by `record/gpu/run.sh` on: {where}.', '', '| part | what | median | least to largest | bound | |', '| --- | --- | --- | --- | --- | --- |']
    for row in rows:
        unit = f' {row["unit"]}' if row['unit'] else ''
        verdict = '' if not bound(row) else 'pass' if row['holds'] else '**fail**'
        lines.append(f'| {row["part"]} {NAMES[row["part"]]} | {row["what"]} | {shown(row["value"])}{unit} | {shown(row["least"])} to {shown(row["largest"])} | {bound(row)}{unit if bound(row) else ""} | {verdict} |')
    lines += [f'| {part} {NAMES[part]} | {why} | | | | **fail** |' for part, why in failed]
    if skipped:
        lines += ['', 'Not run: ' + '; '.join(f'{part} {NAMES[part]} ({why})' for part, why in skipped) + '.']
    return '\n'.join(lines) + '\n'


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument('--device', required=True, type=pathlib.Path)
    arguments.add_argument('-o', '--output', required=True, type=pathlib.Path)
    arguments.add_argument('-p', '--parts', default=','.join(map(str, NAMES)), help='numbers with commas between')
    arguments.add_argument('-r', '--repeats', type=int, default=3)
    arguments.add_argument('--short', action='store_true', help='few rounds of everything: whether it runs, not how well')
    args = arguments.parse_args()
    parts, rows, skipped, failed = Parts(args.device.resolve(), args.output.resolve(), args.short), [], [], []
    chosen = [int(part) for part in args.parts.split(',')]
    if set(chosen) - set(NAMES):
        arguments.error(f'parts are 1 to {len(NAMES)}')
    for part in chosen:
        runs, began = [], time.monotonic()
        try:
            for _ in range(max(1, args.repeats)):
                runs.append(getattr(parts, f'part_{part}')())
        except Skip as why:
            skipped.append((part, str(why)))
            print(f'skip  {part:2} {NAMES[part]}: {why}', flush=True)
            continue
        except Exception as error:  # the other parts are still worth their time
            failed.append((part, f'{type(error).__name__}: {error}'))
            print(f'FAIL  {part:2} {NAMES[part]}: {error}', flush=True)
            continue
        said = collect(runs)
        rows += said
        print(f'{"pass" if all(row["holds"] for row in said) else "FAIL"}  {part:2} {NAMES[part]} ({time.monotonic() - began:.0f} s)')
        for row in said:
            print(f'        {row["what"]}: {shown(row["value"])} {row["unit"]} {"(" + bound(row) + ")" if bound(row) else ""}{"" if row["holds"] else "  <-- does not hold"}', flush=True)
    where = machine()
    text = table(rows, skipped, failed, where)
    (args.output / 'table.md').write_text(text)
    (args.output / 'results.json').write_text(json.dumps({'machine': where, 'rows': rows, 'skipped': skipped, 'failed': failed}, indent=1) + '\n')
    print(f'\n{args.output / "table.md"} is for bench/README.md')
    if not rows and not failed:
        return 2
    return 1 if failed or not all(row['holds'] for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main())
