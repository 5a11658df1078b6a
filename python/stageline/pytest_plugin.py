"""Budgets for training runs in pytest: `pytest -p stageline.pytest_plugin`, or `pytest_plugins = ['stageline.pytest_plugin']`.

    def test_pipeline(stageline_budget):
        stageline_budget('logs/', bubble=0.35, step_ms=520, findings=['stage.slow'])

Numbers are those of `trace.findings` and of the analysis pipeline-summary; what a budget is broken by is said with the run's findings.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from . import Trace


class Broken(AssertionError):
    """A run is over its budget."""


def check(run: str | os.PathLike[str] | Trace, *, bubble: float | None = None, step_ms: float | None = None, lost: float | None = None,
          findings: Iterable[str] = ()) -> Trace:
    """Raises Broken unless the run (a path, or an opened Trace) keeps to what is given: the share of bubbles in each step, the mean step
    in ms, the share of the step lost to causes, and that none of these findings is there."""
    import stageline
    trace = run if isinstance(run, stageline.Trace) else stageline.open(run, progress=False)
    reported = trace.findings
    said: list[str] = []
    if step_ms is not None:
        if not reported.step_ns:
            raise Broken(f'{trace!r} has no step to measure')
        if reported.step_ns > step_ms * 1e6:
            said.append(f'a step takes {reported.step_ns / 1e6:.3f} ms on average, and the budget is {step_ms} ms')
    if bubble is not None:
        outliers = {s['step'] for s in trace.steps.to_dicts() if s['outlier']}
        steps = trace.analyze('pipeline-summary', table='steps').table.to_dicts()
        over = [s for s in steps if s['step'] not in outliers and s['span_bubble_share'] is not None and s['span_bubble_share'] > bubble]
        if over:
            worst = max(over, key=lambda s: s['span_bubble_share'])
            said.append(f'bubbles take {worst["span_bubble_share"]:.2%} of step {worst["step"]}, and the budget is {bubble:.2%} '
                        f'({len(over)} of {len(steps)} steps are over it)')
    if lost is not None and reported.lost_share > lost:
        said.append(f'causes cost {reported.lost_share:.2%} of a step, and the budget is {lost:.2%}')
    there = {f.id: f for f in reported}
    said += [f'{id}: {there[id].title}' for id in findings if id in there]
    if said:
        raise Broken('\n'.join(said) + f'\n\n{reported}')
    return trace


@pytest.fixture
def stageline_budget() -> Callable[..., Trace]:
    """check() of this module."""
    return check
