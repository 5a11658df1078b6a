"""python -m stageline: the command `stageline`."""
from .command import main

main()
