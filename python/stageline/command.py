"""The command `stageline`, where the wheel carries the program."""
import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bin', 'stageline')
    if not os.path.exists(program):
        sys.exit('stageline: this wheel has the recorder alone; build the program (./dev build), and a wheel with it: '
                 './dev wheel')
    os.execv(program, [program, *sys.argv[1:]])
