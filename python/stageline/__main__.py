"""python -m stageline runs the command `stageline`."""
from .command import main

main()
