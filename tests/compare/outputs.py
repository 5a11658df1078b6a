#!/usr/bin/env python3
"""./dev compare --outputs OLD [NEW]: do two programs say and write the same, byte for byte?

  outputs.py [--only TEXT] [--server] [--keep DIR] OLD NEW.

Both programs run the commands of output_cases.py on the same inputs, each in its own folder, with the same paths
inside. Then both serve a run and answer requests over HTTP (output_server.py). Exit code, stdout, stderr and every
written file are compared, databases row by row. It prints a line for each difference, and a count; the exit code is 1
if there is any. It is for changes that must not change any output: keep the old program, and compare.

--only TEXT   those commands alone whose line holds this text; with --server those requests
--server      only what is asked over HTTP
--keep DIR    make the inputs there and leave them, and of every command that differs both folders
"""
import argparse
import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import output_bytes  # noqa: E402
import output_cases  # noqa: E402
import output_inputs  # noqa: E402
import output_server  # noqa: E402

SECONDS = 300  # until a command is given up
SIDES = ('old', 'new')  # of one length, so that texts that hold a path are of one length too


def environment():
    """Both sides have the same environment: no colours, one language, one time zone."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(('STAGELINE_', 'LC_', 'LANG'))}
    return {**kept, 'LC_ALL': 'C.UTF-8', 'TZ': 'UTC', 'NO_COLOR': '1', 'TERM': 'dumb', 'COLUMNS': '100'}


def make_folder(folder, inputs, case):
    """A folder to run in: `in` leads to the inputs; what a command changes is copied into it."""
    folder.mkdir(parents=True)
    (folder / 'in').symlink_to(inputs, target_is_directory=True)
    for name in case.copies:
        shutil.copytree(inputs / name, folder / pathlib.Path(name).name)


def outcome(program, folder, case, env):
    """{what: bytes} of one run: exit code, stdout, stderr, and each file by its path."""
    try:
        done = subprocess.run([program, *shlex.split(case.command)], cwd=folder, env=env, timeout=SECONDS, capture_output=True,
                              stdin=subprocess.DEVNULL)
        found = {'exit code': str(done.returncode).encode(), 'stdout': done.stdout, 'stderr': done.stderr}
    except subprocess.TimeoutExpired:
        found = {'exit code': b'none: it took too long'}
    for path in sorted(folder.rglob('*')):
        if path.is_file() and path.relative_to(folder).parts[0] != 'in':
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def left_alone(folder):
    """Detects changes of the inputs: a measurement belongs to its user."""
    found = {path: path.lstat() for path in folder.rglob('*')}
    return {str(path.relative_to(folder)): f'{at.st_size} bytes of {at.st_mtime_ns}'.encode() for path, at in found.items()}


class Comparison:
    """Counts and prints; both sides of a case at a time."""

    def __init__(self, programs, scratch, keep):
        self.programs, self.scratch, self.keep, self.environment = programs, scratch, keep, environment()
        self.commands = self.streams = self.differences = 0
        self.code = False  # the page's program differs, which does not count as an output

    def without_place(self, side, data):
        """The bytes with what only this side has in its paths taken out."""
        program = str(self.programs[side]).encode()
        return data.replace(str(self.scratch / side).encode(), b'SCRATCH').replace(program, b'PROGRAM')

    def run(self, number, case):
        """Both sides of one case; returns it with what came of them, and leaves no folder."""
        found = {}
        for side in SIDES:
            folder = self.scratch / side / f'{number:04}'
            make_folder(folder, self.scratch / 'in', case)
            raw = outcome(self.programs[side], folder, case, self.environment)
            found[side] = {what: self.without_place(side, data) for what, data in raw.items()}
        lines = self.compare(case.command, found['old'], found['new'])
        for side in SIDES:
            if not (lines and self.keep):
                shutil.rmtree(self.scratch / side / f'{number:04}')
        return lines

    def compare(self, label, old, new):
        lines = []
        for what in [*old, *(what for what in new if what not in old)]:
            self.streams += 1
            if what not in old or what not in new:
                lines.append(f'{label}: {what}: only {"OLD" if what in old else "NEW"} has it')
            elif old[what] != new[what]:
                where, only_code = ('', True) if what == 'page' else output_bytes.first_difference(what, old[what], new[what])
                self.code |= only_code
                if where:
                    lines.append(f'{label}: {what}: {where}')
        return lines

    def take(self, lines):
        self.commands += 1
        self.differences += len(lines)
        for line in lines:
            print(line, flush=True)


def compare_commands(comparison, cases):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = [pool.submit(comparison.run, number, case) for number, case in enumerate(cases)]
        for one in running:
            comparison.take(one.result())


def main():
    parser = argparse.ArgumentParser(prog='./dev compare --outputs', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('old', type=pathlib.Path)
    parser.add_argument('new', type=pathlib.Path)
    parser.add_argument('--only', default='')
    parser.add_argument('--server', action='store_true')
    parser.add_argument('--keep', type=pathlib.Path)
    options = parser.parse_args()
    programs = dict(zip(SIDES, (options.old.resolve(), options.new.resolve())))
    for program in programs.values():
        if not os.access(program, os.X_OK):
            parser.error(f'{program} is no program')
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix='stageline-outputs-') as folder:
        scratch = options.keep.resolve() if options.keep else pathlib.Path(folder)
        for side in SIDES:
            shutil.rmtree(scratch / side, ignore_errors=True)
        output_inputs.make_inputs(scratch / 'in', programs['old'], environment())
        made = time.monotonic()
        comparison, untouched = Comparison(programs, scratch, options.keep), left_alone(scratch / 'in')
        if not options.server:
            compare_commands(comparison, output_cases.cases(programs['old'], scratch / 'in', options.only))
        commands = comparison.commands
        if options.server or not options.only:
            output_server.compare(comparison, options.only)
        requests = comparison.commands - commands
        comparison.take(comparison.compare('in', untouched, left_alone(scratch / 'in')))
        if comparison.code:
            print('note: the page\'s own program (its script and style) differs; the tests in the browser look at that')
        took = f'{made - started:.0f} s for the inputs, {time.monotonic() - made:.0f} s for all else'
        print(f'{comparison.differences} differences in {commands} commands and {requests} requests '
              f'({comparison.streams} streams and files); {took}')
    return 1 if comparison.differences or not commands + requests else 0


if __name__ == '__main__':
    sys.exit(main())
