"""./dev bench own: the cases that need no rival, as one table of their bars. The tables of each case go to own.txt in the
cache. With `--small` (a test does that) nothing is judged but that each case runs to its end and has a bar."""
import contextlib
import os
import sys
import traceback

import action_cases
import ask_cases
import dist_cases
import history_cases
import kineto_bench
import limits_cases
import live_cases
import measure
import recorder_cases
import scale_cases
import schedule_cases
import slowdown_cases
import sql_cases

WORDS = {True: "met", False: "**MISSED**", None: "–"}  # of what was measured; what cannot run here is neither


def cases_of(bench, full):
    where, cache = bench.cases, bench.cases.CACHE
    return {"align": bench.align_clocks, "schedule": lambda: schedule_cases.run(bench), "slowdown": lambda: slowdown_cases.run(bench),
            "recorder": lambda: recorder_cases.run(bench), "limits": lambda: limits_cases.run(bench, measure, where, bench.SAID),
            # Its bars are those of ten batches.
            "scale": lambda: scale_cases.run(bench, measure, not bench.small, cache, said=bench.SAID),
            "live": lambda: live_cases.run(bench), "history": lambda: history_cases.run(bench), "action": lambda: action_cases.run(bench, where.STAGELINE),
            "sql": lambda: sql_cases.run(bench, full, cache, alone=True), "ask": lambda: ask_cases.run(bench, full, cache),
            "operators": lambda: kineto_bench.operators(bench, full), "dist": lambda: dist_cases.run(bench)}


def run(bench, full):
    """The exit status: 1 on a missed bar, or a case that does not run."""
    died, begun = 0, 0
    bench.row("case", "bar", "", "load")
    bench.row("---", "---", "---", "---:")
    with open(os.path.join(bench.cases.CACHE, "own.txt"), "w", encoding="utf-8") as details:
        for name, case in cases_of(bench, full).items():
            load = bench.load()
            try:
                with contextlib.redirect_stdout(details):
                    case()
                if len(bench.bars) == begun:
                    raise RuntimeError(f"{name} has no bar")
            except Exception:  # the other cases run all the same
                traceback.print_exc()
                sys.stderr.flush()
                died += 1
                bench.row(name, "", "**DIED**", "")
            for text, met in bench.bars[begun:]:
                bench.row(name, text, "" if bench.small else WORDS[met], f"{load} to {bench.load()}")
            begun = len(bench.bars)
    judged = [met for _, met in bench.bars if met is not None]
    missed = 0 if bench.small else judged.count(False)
    print(f"\n{len(judged)} bars, {missed} missed, {died} cases died.", flush=True)
    return 1 if missed or died else 0
