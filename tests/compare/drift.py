#!/usr/bin/env python3
"""./dev drift: fetches the newest releases of the tools whose outputs Stageline reads or equals, lets each make its outputs on a CPU, and says by
name what changed since the ones that Stageline is held to (drift_held.json; docs/reference/held-versions.md has them as a table).

  drift.py [--only NAME,NAME] [--update]     exit 1 when something changed

Each package has an environment of its own under .cache/drift, or that of $STAGELINE_DRIFT_TORCH_PYTHON (NAME in capitals), as it is. One that cannot be installed or run here is skipped, with the reason. --update
holds to what was found. The outputs' contents are compared by ./dev compare; this looks at their form: keys, columns, tables, signatures, modes.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HELD, PAGE = HERE / 'drift_held.json', ROOT / 'docs' / 'reference' / 'held-versions.md'
# Packages to install with each one (its dependencies, or those of its probe), and the outputs to compare.
PACKAGES = {
    'torch': ([], 'events and their arguments in a trace, columns of the table, pipeline schedules'),
    'traceinsight': (['pandas<3', 'numpy', 'plotly', 'networkx', 'psutil', 'pyyaml', 'pydot'], 'modules and signatures'),
    'msprof-analyze': ([], 'modes, and the tables of six of them on a generated cluster'),
    'paddlepaddle': ([], 'events and their arguments in a trace, the timeline script'),
    'megatron-core': ([], 'functions of the pipeline, fields of the configurations'),
    'perfetto': ([], 'fields of the messages in a trace'),
}
ALONE = {'megatron-core', 'traceinsight'}  # without what they depend on, which is much and not asked here
SECONDS = 1800
TABLE_FROM, TABLE_TO = '<!-- made by ./dev drift --update -->\n', '<!-- end -->\n'


class Skipped(Exception):
    pass


def python_with(name):
    """The Python of an environment that has the newest release that installs here, or of one that was given."""
    if given := os.environ.get(f'STAGELINE_DRIFT_{name.upper().replace("-", "_")}_PYTHON'):
        return given
    home = ROOT / '.cache' / 'drift' / name
    python = home / 'bin' / 'python'
    if not python.exists() and subprocess.run([sys.executable, '-m', 'venv', home]).returncode:
        raise Skipped('no virtual environment')
    beside, _ = PACKAGES[name]
    pip = [python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--upgrade']
    for packages in ([name, '--no-deps'] if name in ALONE else [name], beside):
        if packages and (done := subprocess.run([*pip, *packages], capture_output=True, text=True)).returncode:
            raise Skipped('not installed: ' + (done.stderr.strip().splitlines() or ['no reason given'])[-1])
    return python


def version_of(python, name):
    return subprocess.run([python, '-c', f'import importlib.metadata as m; print(m.version({name!r}))'], capture_output=True, text=True, check=True).stdout.strip()


def newest_of(python, name):
    """The newest release that the index names, which may not install here; '' where it does not say."""
    done = subprocess.run([python, '-m', 'pip', 'index', 'versions', name, '--disable-pip-version-check'], capture_output=True, text=True)
    first = done.stdout.partition('\n')[0]
    return first[first.find('(') + 1:first.find(')')] if '(' in first else ''


def lines_of(python, name):
    done = subprocess.run([python, HERE / 'drift_probe.py', name], capture_output=True, text=True, timeout=SECONDS, env={**os.environ, 'OMP_NUM_THREADS': '1'})
    if done.returncode:
        raise Skipped('its outputs could not be made: ' + (done.stderr.strip().splitlines() or ['no reason given'])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def look(name):
    python = python_with(name)
    return {'version': version_of(python, name), 'newest': newest_of(python, name), 'date': datetime.date.today().isoformat(), 'lines': lines_of(python, name)}


def differences(held, found):
    """Lines that say what is new and what is gone."""
    before, now = set(held['lines']), set(found['lines'])
    return [f'  gone  {line}' for line in sorted(before - now)] + [f'  new   {line}' for line in sorted(now - before)]


def write_table(held):
    rows = [f'| `{name}` | {one["version"]} | {one["date"]} | {len(one["lines"])} | {PACKAGES[name][1]} |' for name, one in sorted(held.items())]
    text = PAGE.read_text()
    before, after = text.split(TABLE_FROM)[0], text.split(TABLE_TO)[1]
    table = ['| package | held to | looked at | lines | compared |', '|---|---|---|---|---|', *rows]
    PAGE.write_text(before + TABLE_FROM + '\n'.join(table) + '\n' + TABLE_TO + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default='', metavar='NAMES')
    parser.add_argument('--update', action='store_true')
    options = parser.parse_args()
    wanted = options.only.split(',') if options.only else list(PACKAGES)
    if unknown := set(wanted) - set(PACKAGES):
        parser.error(f'no package {sorted(unknown)[0]}; there are {", ".join(PACKAGES)}')
    held = json.loads(HELD.read_text()) if HELD.exists() else {}
    changed = skipped = 0
    for name in wanted:
        try:
            found = look(name)
        except (Skipped, subprocess.SubprocessError, ValueError) as reason:
            print(f'{name}: skipped: {reason}', flush=True)
            skipped += 1
            continue
        ahead = f'; {found["newest"]} is out and was not compared' if found['newest'] not in ('', found['version']) else ''
        own = held.get(name)
        lines = differences(own, found) if own else [f'  new   {len(found["lines"])} lines, held to none']
        since = f'{own["version"]} -> {found["version"]}' if own and own['version'] != found['version'] else found['version']
        print(f'{name} {since}: {len(lines)} changes in {len(found["lines"])} lines{ahead}', *lines, sep='\n', flush=True)
        changed += len(lines)
        if options.update:
            held[name] = {key: value for key, value in found.items() if key != 'newest'}
    if options.update:
        HELD.write_text(json.dumps(held, indent=1, sort_keys=True, ensure_ascii=False) + '\n')
        write_table(held)
    print(f'drift: {len(wanted) - skipped} packages, {changed} changes, {skipped} skipped')
    return 1 if changed and not options.update else 0


if __name__ == '__main__':
    sys.exit(main())
