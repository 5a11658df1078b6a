"""Runs the whole-program tests in two processes and prints one closing line with the counts."""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def run(path):
    return path.name, subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=path.parent)


def main(folder):
    wanted = sys.argv[1:]
    files = [p for p in sorted(folder.glob('*_test.py')) if not wanted or any(w in p.name for w in wanted)]
    ran = failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, done in pool.map(run, files):
            ran += int(re.search(r'Ran (\d+) test', done.stderr)[1]) if 'Ran ' in done.stderr else 0
            for word in ('failures', 'errors'):
                failed += int((re.search(word + r'=(\d+)', done.stderr) or [0, 0])[1])
            skipped += int((re.search(r'skipped=(\d+)', done.stderr) or [0, 0])[1])
            for line in re.findall(r'^note: .*', done.stderr, re.M) if done.returncode == 0 else []:
                print(f'{name}: {line}')
            if done.returncode != 0:
                failed = max(failed, 1)
                print(f'== {name}\n{done.stderr}')
    print(f'{ran - failed - skipped} passed, {failed} failed, {skipped} skipped')
    return 1 if failed or ran == 0 else 0


if __name__ == '__main__':
    sys.exit(main(HERE))
