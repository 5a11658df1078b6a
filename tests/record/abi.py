"""The recorder's ABI against abi.txt: abi.py PROGRAM LIBRARY [--update]. Functions may be added, nothing else may change.

Nor may it need anything by which it could end the program that it is in (record/README.md, "How a process ends").
"""
import difflib
import pathlib
import subprocess
import sys

# `raise` is not here: it hands on a SIGBUS from another process, which would have ended the program without the recorder too (hot_file.cc).
ENDS = ('abort', 'exit', '_exit', '_Exit', 'quick_exit', 'kill', 'tgkill', 'pthread_kill', 'pthread_exit', 'pthread_cancel', '__assert_fail', '__cxa_throw',
        '__cxa_pure_virtual', '_ZSt9terminatev')
GOLDEN = pathlib.Path(__file__).resolve().parent / 'abi.txt'


def main():
    program, library = sys.argv[1:3]
    text = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    symbols = subprocess.run(['nm', '-D', '--defined-only', library], capture_output=True, text=True, check=True).stdout
    # Symbols that the sanitizers add to every library are excluded.
    text += '\n'.join(sorted(line.split()[-1] for line in symbols.splitlines() if line.split()[-1].startswith(('slr', 'Init', 'nccl')))) + '\n'
    if '--update' in sys.argv:
        GOLDEN.write_text(text)
    if text != GOLDEN.read_text():
        print(''.join(difflib.unified_diff(GOLDEN.read_text().splitlines(True), text.splitlines(True), 'abi.txt', 'as built')))
        print('0 passed, 1 failed')
        return 1
    wanted = subprocess.run(['nm', '-D', '--undefined-only', library], capture_output=True, text=True, check=True).stdout
    ends = sorted(name for name in (line.split()[-1].split('@')[0] for line in wanted.splitlines()) if name in ENDS)
    if ends:
        print(f'{library} needs {", ".join(ends)}')
        print('1 passed, 1 failed')
        return 1
    print('2 passed, 0 failed')
    return 0


sys.exit(main())
