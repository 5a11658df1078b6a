"""Runs the tests of the package stageline and of `stageline record`, and prints one closing line with the counts."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'cli'))
import run  # noqa: E402

if __name__ == '__main__':
    sys.exit(run.main(HERE))
