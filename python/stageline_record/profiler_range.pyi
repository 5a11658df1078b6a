"""Types of Paddle's window of iterations."""
from typing import Literal

class job_schedule_profiler_range:
    iter_id: int
    start: int
    end: int
    exit_after_prof: bool
    def __init__(self, iter_id: int, start: int, end: int, exit_after_prof: bool = True) -> None: ...
    def __enter__(self) -> bool: ...
    def __exit__(self, *_: object) -> Literal[False]: ...
