#!/usr/bin/env python3
"""Builds the JupyterLab extension's wheel: make_wheel.py [--out DIR]; called by ./dev jupyterlab. Needs npm and PyPI."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLS = ('jupyterlab>=4.0,<5', 'hatchling>=1.21', 'build')


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, **options)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument('--out', type=pathlib.Path, default=ROOT / 'dist')
    options.add_argument('--venv', type=pathlib.Path, default=ROOT / 'build/jupyterlab_venv')
    given = options.parse_args()
    if not (given.venv / 'bin/python').exists():
        run(sys.executable, '-m', 'venv', given.venv)
    python = given.venv / 'bin/python'
    run(python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', *TOOLS)
    run('npm', 'ci', '--silent', '--no-audit', '--no-fund', '--ignore-scripts', cwd=HERE)
    shutil.rmtree(HERE / 'labextension', ignore_errors=True)
    shutil.copy(ROOT / 'LICENSE', HERE)
    run('npx', 'tsc', cwd=HERE)
    # As `jupyter labextension build` does it, whose own check refuses every builder that is not of the newest JupyterLab's version.
    core = subprocess.run([python, '-c', 'import jupyterlab, os; print(os.path.dirname(jupyterlab.__file__))'], check=True,
                          capture_output=True, text=True).stdout.strip()
    run('node', 'node_modules/@jupyterlab/builder/lib/build-labextension.js', '--core-path', os.path.join(core, 'staging'), HERE, cwd=HERE,
        stdout=subprocess.DEVNULL)
    run(python, '-m', 'build', '--wheel', '--no-isolation', '--outdir', given.out, HERE, stdout=subprocess.DEVNULL)
    print(f'built {max(given.out.glob("stageline_jupyterlab-*.whl"), key=os.path.getmtime)}')


if __name__ == '__main__':
    main()
