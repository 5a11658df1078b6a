"""Paddle's job_schedule_profiler_range, for any program: the iterations of a window are recorded, then the program may end."""
import sys


class job_schedule_profiler_range:
    """`with job_schedule_profiler_range(iteration, start, end) as profiled:` in each iteration, as in Paddle.

    Iterations start … end − 1 are recorded, whether the training step runs inside the block or after it. With exit_after_prof the program
    ends when the next iteration begins, so that the last one is whole (Paddle leaves it out when the step runs after the block), also when
    it resumed past the window; never in place of an exception. An empty window (start >= end) records nothing and ends nothing."""

    def __init__(self, iter_id, start, end, exit_after_prof=True):
        self.iter_id, self.start, self.end, self.exit_after_prof = iter_id, start, end, exit_after_prof

    def __enter__(self):
        from . import init, shutdown, step, window
        if self.start >= self.end:
            return False
        if self.exit_after_prof and self.iter_id >= self.end:
            shutdown()
            sys.exit(0)
        init()
        window(self.start, self.end)
        step(self.iter_id)
        return self.start <= self.iter_id < self.end

    def __exit__(self, *_):
        return False
