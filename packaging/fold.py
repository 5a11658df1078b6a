#!/usr/bin/env python3
"""Links as zig does, and has functions of the same machine code folded into one: `fold.py ZIG WORK ROOT COMPILER ARGUMENT...`, which
CMake puts before each link (CMAKE_CXX_LINKER_LAUNCHER).

The linker inside zig can fold (--icf=safe: no function whose address is compared), but zig's compiler takes no such
option. So zig links first and prints the call of its linker, and the linker is called once more with the option. The
words of that line have no quotes. WORK and ROOT, below which all files are that are not named from here, may contain
blanks, so they are replaced first.
"""
import os
import shlex
import subprocess
import sys


def main():
    zig, folders, command = sys.argv[1], sys.argv[2:4], sys.argv[4:]
    done = subprocess.run(command, env=dict(os.environ, ZIG_VERBOSE_LINK='1'), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = [line for line in done.stdout.splitlines() if line.startswith('ld.lld ')]
    if done.returncode != 0 or not said:
        print(done.stdout)
        print(f'fold.py: zig {"did not link" if done.returncode else "did not say how it links"}: {shlex.join(command)}')
        return 1
    line = said[-1].replace(folders[0], '\0').replace(folders[1], '\1')
    words = [word.replace('\1', folders[1]).replace('\0', folders[0]) for word in line.split(' ') if word]
    return subprocess.run([zig, *words, '--icf=safe', '--no-warnings']).returncode


if __name__ == '__main__':
    sys.exit(main())
