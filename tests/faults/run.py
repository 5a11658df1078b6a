"""Whole commands over a file system that lies: short reads and writes, EINTR, EIO, a full disk, files that end early, vanish or change.

    run.py [--seeds N] [--seed S]      N seeds from S on (default 400 from 1); a failing seed is printed and can be run alone

Each seed is a command on a small run and a plan of one to three lies (lying_files.c, preloaded). Whatever happens:

  1. the inputs are, byte for byte, what they were;
  2. an output is whole or absent: what was there before stays until then, and nothing unfinished is left behind;
  3. the program ends by itself, with 0, 1 or 2, and 2 comes with a message;
  4. if there is an answer, it is the one without the lie, or the unreadable input is named with it.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
BIN = os.environ.get('STAGELINE_BIN', str(SOURCE / 'build/dev/stageline'))
GOLDEN = SOURCE / 'tests/golden/readers'
FIXTURES = sorted(p.name for p in GOLDEN.iterdir())  # every reader has some

# (words; IN and OUT stand for the run and the output, the output's name)
COMMANDS = [(['info', 'IN', '--json', '-o', 'OUT'], 'info.json'), (['info', 'IN'], None), (['report', 'IN', '-o', 'OUT'], 'report.html'),
            (['export', 'IN', '-o', 'OUT'], 'all.json'), (['export', 'IN', '-o', 'OUT'], 'all.sqlite'), (['export', 'IN', '-o', 'OUT'], 'run.pftrace'),
            (['explain', 'IN', '--json', '-o', 'OUT'], 'explain.json'), (['export', 'IN', '--to', 'trace-with-counters', '-o', 'OUT'], 'counters.json'),
            (['sql', 'IN', 'SELECT * FROM slices', '--format', 'json', '-o', 'OUT'], 'rows.json'), (['analyze', 'events', 'IN', '--format', 'json', '-o', 'OUT'], 'events.json'),
            (['diff', 'IN', 'IN', '--json', '-o', 'OUT'], 'diff.json'), (['align', 'IN', '--json', '-o', 'OUT'], 'clocks.json'),
            (['what-if', 'IN', '--json', '-o', 'OUT'], 'fixes.json'), (['export-stacks', 'IN', '-o', 'OUT'], 'stacks.txt'),
            (['event', 'IN', '--rank', '0', '--index', '0', '-o', 'OUT'], 'event.txt'), (['digest', 'IN', '-o', 'OUT'], 'digests'), (['history', 'add', 'IN', '--db', 'OUT'], 'h.sqlite')]
LIES = {'read': ['short', 'again', 'eio', 'end', 'flip'], 'write': ['short', 'again', 'eio', 'full'], 'sync': ['eio', 'full'],
        'open': ['gone', 'barred', 'many'], 'rename': ['eio', 'full']}
USUAL = {'read': 60, 'write': 12, 'sync': 3, 'open': 25, 'rename': 3}  # calls of a kind that such a command makes, about


class Broken(Exception):
    pass


def preload(folder):
    library = pathlib.Path(folder, 'lying_files.so')
    subprocess.run([os.environ.get('CC', 'cc'), '-shared', '-fPIC', '-O1', '-o', library, HERE / 'lying_files.c', '-ldl', '-lpthread'], check=True)
    return library


def state(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob('*')) if p.is_file()}



def whole(path):
    """Whether an output of this name was written to its end."""
    if path.is_dir():  # digests, each a file of its own with sums
        if any(b' damaged' in subprocess.run([BIN, 'info', digest], capture_output=True).stderr for digest in path.iterdir()):
            raise Broken(f'{path.name} holds a damaged digest')
        return
    data = path.read_bytes()
    if path.suffix == '.json':
        json.loads(data)
    elif path.suffix == '.html':
        if not data.rstrip().endswith(b'>') or b'</body>' not in data[-4000:] and b'</html>' not in data[-4000:]:
            raise Broken(f'{path.name}: the page has no end')
    elif path.suffix == '.sqlite':
        with sqlite3.connect(path) as db:
            if db.execute('PRAGMA integrity_check').fetchone()[0] != 'ok':
                raise Broken(f'{path.name}: not whole')
    elif not data:
        raise Broken(f'{path.name} is empty')


def content(path):
    """Returns the content of an output. For a database it is the rows: two with the same content may have different
    pages; a history also keeps when a run was added."""
    if path.is_dir():  # digests: their cells. The file after which one is named may have been unreadable then
        return subprocess.run([BIN, 'export', path, '--to', 'csv', '-o', '-', '-q'], capture_output=True).stdout
    if path.suffix != '.sqlite':
        return path.read_bytes()
    with sqlite3.connect(path) as db:
        return db.execute('SELECT path, steps, step_ns FROM runs').fetchall() if path.name == 'h.sqlite' else list(db.iterdump())


def shifted(plan, without, by):
    """The plan without one lie, the others `by` calls later."""
    rest = [one.split(':') for one in plan.split(',') if one != without]
    return ','.join(f'{kind}:{max(0, int(number) + by)}:{lie}' for kind, number, lie in rest)


def play(seed, library, scratch):
    dice = random.Random(seed)
    place = pathlib.Path(tempfile.mkdtemp(prefix=f'seed{seed}-', dir=scratch))
    try:
        fixture = dice.choice(FIXTURES)
        shutil.copytree(GOLDEN / fixture / 'input', place / 'run')
        words, name = dice.choice(COMMANDS)
        out = place / 'out' / (name or 'none')
        out.parent.mkdir()
        old = dice.random() < 0.5 and name is not None and words[0] not in ('digest', 'history')
        if old:
            out.write_text('old')
        kinds = dice.choices(list(LIES), [5, 4, 2, 3, 2], k=dice.randint(1, 3))
        plan = ','.join(f'{kind}:{dice.randrange(USUAL[kind])}:{dice.choice(LIES[kind])}' for kind in kinds)
        log = place / 'told'
        before = state(place / 'run')
        command = [BIN, *({'IN': str(place / 'run'), 'OUT': str(out)}.get(w, w) for w in words), '--threads', '1', *(['--force'] if old else [])]
        env = {**os.environ, 'LC_ALL': 'C.UTF-8', 'LD_PRELOAD': str(library), 'STAGELINE_FAULT_ROOT': str(place), 'STAGELINE_FAULT_PLAN': plan,
               'STAGELINE_FAULT_LOG': str(log), 'TMPDIR': str(scratch)}
        done = subprocess.run(command, capture_output=True, env=env, timeout=120)
        reported = [line.split(' ', 1) for line in log.read_text().splitlines()] if log.exists() else []
        reported = [(lie, path) for lie, path in reported if path != str(log)]
        err = done.stderr.decode('utf-8', 'replace')
        said = err + done.stdout.decode('utf-8', 'replace')

        def broken(what):
            raise Broken(f'seed {seed}: {what}\n  plan {plan}\n  told {reported}\n  {" ".join(command)}\n  exit {done.returncode}\n  {err[-1500:]}')

        def honest(plan):
            shutil.rmtree(out.parent)
            out.parent.mkdir()
            again = subprocess.run(command, capture_output=True, env={**env, 'STAGELINE_FAULT_PLAN': plan}, timeout=120)
            return again.returncode, again.stdout, {p.name: content(p) for p in out.parent.iterdir()}

        if state(place / 'run') != before:
            broken('an input was changed')
        if done.returncode not in (0, 1, 2):
            broken('it did not end by itself')
        if done.returncode == 2 and not err.strip():
            broken('it failed without a word')
        left = sorted(p.name for p in out.parent.iterdir())
        # A disk that is full may keep SQLite from taking back what it began; the journal then lets the next one do it.
        if [p for p in out.parent.rglob('*') if '.partial.' in p.name or (p.name.endswith('-journal') and words[0] != 'history')]:
            broken(f'unfinished files are left: {left}')
        # align says what it found, whole, and that it was not enough.
        answered = done.returncode == 0 or (words[0] == 'align' and 'not every rank could be tied' in err)
        if name and answered:
            made = [out.parent / n for n in left if not (n == name and 'trace-with-counters' in words and old and (out.parent / n).read_text() == 'old')]
            try:
                for path in made:
                    whole(path)
                    said += path.read_text(errors='replace') if path.suffix == '.json' else ''
            except (Broken, ValueError, sqlite3.Error) as error:
                broken(f'an output is not whole: {error}')
            if not made:
                broken('no output, and no error')
        elif words[0] == 'history':
            if out.exists() and out.stat().st_size > 0:  # tables without the run, or a half-done transaction, which SQLite takes back
                whole(out)
                with sqlite3.connect(out) as db:
                    if db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'runs'").fetchone()[0] and db.execute('SELECT count(*) FROM runs').fetchone()[0]:
                        broken('it failed, and the run is in the history')
        elif words[0] == 'digest':  # what could be made is there and whole, the others are named
            if out.exists():
                whole(out)
        elif name:
            rest = {n for n in left if n != name}
            if rest:
                broken(f'it failed, and left {rest}')
            if old != out.exists() or (old and out.read_text() != 'old'):
                broken('it failed, and what was there before is gone or another')
        for lie, path in reported:
            lost = lie.split(':')[2] in ('eio', 'gone', 'barred', 'many') and path.startswith(str(place / 'run'))
            if lost and done.returncode != 2 and pathlib.Path(path).name not in said:
                # A file may be opened more than once, and another try give all of it: then this lie changes nothing.
                # The other lies may then fall on other calls, so they are tried a few calls earlier and later too.
                lied = done.returncode, done.stdout, {p.name: content(p) for p in out.parent.iterdir()}
                if any(lied == honest(shifted(plan, lie, by)) for by in (0, -1, 1, -2, 2)):
                    continue
                broken(f'{pathlib.Path(path).name} could not be read ({lie}), and nothing was said of it')
        return bool(reported)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--seeds', type=int, default=400)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--jobs', type=int, default=2)
    arguments = parser.parse_args()
    if b'__asan_init' in pathlib.Path(BIN).read_bytes():
        print('0 passed, 0 failed, 1 skipped (a sanitizer wants to be loaded first)')
        return 0
    failed = reported = 0
    with tempfile.TemporaryDirectory(prefix='stageline-faults-') as scratch:
        library = preload(scratch)
        seeds = range(arguments.seed, arguments.seed + arguments.seeds)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for future in [pool.submit(play, seed, library, scratch) for seed in seeds]:
                try:
                    reported += future.result()
                except Broken as error:
                    failed += 1
                    print(f'== {error}')
    print(f'{len(seeds) - failed} passed, {failed} failed; lies were told in {reported} of {len(seeds)} runs')
    return 1 if failed or reported < len(seeds) / 4 else 0


if __name__ == '__main__':
    sys.exit(main())
