"""The wheel as a user gets it: built by pip, installed into an environment that has nothing else, and the package's own tests run there.

wheel.py [PROGRAM]     PROGRAM (default $STAGELINE_BIN) goes into the wheel. Part of ./dev slow: pip builds in an environment of its own."""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ('stageline_record/_record.abi3.so', 'stageline_record/lib/libstageline_record.so.1', 'stageline/bin/stageline', 'stageline/command.py',
         'stageline/launch/sitecustomize.py', 'stageline/hooks/__init__.py', 'stageline/record/__init__.py', 'stageline_record/__init__.py')
ENGINE = 'stageline/_engine.abi3.so'  # built with the program where Python has its headers


def build(program, to):
    """The wheel's path; None where pip cannot get what builds it."""
    subprocess.run([sys.executable, '-m', 'venv', to / 'build'], check=True)
    done = subprocess.run([to / 'build/bin/pip', 'wheel', '--quiet', '--no-deps', ROOT / 'python', '-w', to / 'dist', '-C',
                           f'cmake.define.STAGELINE_PROGRAM={program}'], capture_output=True, text=True)
    if done.returncode != 0 and 'scikit-build-core' in done.stderr and 'No matching distribution' in done.stderr:
        return None
    assert done.returncode == 0, done.stderr[-3000:]
    return next((to / 'dist').glob('stageline-*.whl'))


def check_contents(wheel, program):
    assert '-cp39-abi3-' in wheel.name, wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    engine = [ENGINE] if (program.parent / 'python' / ENGINE).exists() else []
    missing = [part for part in (*PARTS, *engine) if part not in names]
    assert not missing, missing
    strange = [n for n in names if '__pycache__' in n or not n.startswith(('stageline/', 'stageline_record/', 'stageline-'))]
    assert not strange, strange


def install(wheel, to):
    """The folder of the package's environment, which holds nothing but the wheel."""
    subprocess.run([sys.executable, '-m', 'venv', to / 'clean'], check=True)
    python = to / 'clean/bin/python'
    subprocess.run([python, '-m', 'pip', 'install', '--quiet', '--no-index', wheel], check=True)
    said = subprocess.run([python, '-c', 'import stageline, os; print(os.path.dirname(os.path.dirname(stageline.__file__)))'], check=True,
                          capture_output=True, text=True, cwd=to)
    return python, pathlib.Path(said.stdout.strip())


def main():
    program = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.environ['STAGELINE_BIN']).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        wheel = build(program, scratch)
        if wheel is None:
            print('skipped: the wheel, scikit-build-core cannot be had here\n0 passed, 0 failed, 1 skipped')
            return 0
        check_contents(wheel, program)
        python, package = install(wheel, scratch)
        command = subprocess.run([scratch / 'clean/bin/stageline', '--version'], capture_output=True, text=True, cwd=scratch)
        assert command.returncode == 0 and 'stageline' in command.stdout, command
        # The path of this shell must not replace the installed files.
        environment = {k: v for k, v in os.environ.items() if not k.startswith(('STAGELINE_', 'PYTHON'))}
        environment.update(STAGELINE_BIN=str(package / 'stageline/bin/stageline'), STAGELINE_PACKAGE=str(package))
        return subprocess.run([python, ROOT / 'tests/python/run.py'], env=environment).returncode


if __name__ == '__main__':
    sys.exit(main())
