"""./dev bench incidents: how often `explain` names what was planted, at what price. It uses runs with one planted cause
(tests/gen/planted.py, the cases of tests/cli/explain_planted_test.py). If ../shared/tools/incidents exists, it also
uses the runs of its independent simulator, by its own rules: those that come with it, and random ones
(bench/drawn_incidents.py). Last come the incidents of bench/diagnosis, which others can run too. The truth is the run without the cause: the same
random numbers, one difference."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.path.join(HERE, "..", "..", "shared", "tools", "incidents")
NEAR_SHARE, NEAR_POINTS = 0.15, 0.01


def explained(tool, path):
    return json.loads(subprocess.run([tool, "explain", path, "--format", "json", "--quiet"], capture_output=True, check=True).stdout)


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def share(part, whole):
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "none"


def planted(tool, folder):
    sys.path.insert(0, os.path.join(HERE, "..", "tests", "gen"))
    sys.path.insert(0, os.path.join(HERE, "..", "tests", "cli"))
    from finding_keys import keys_of  # noqa: PLC0415
    from planted import Planted  # noqa: PLC0415
    from explain_planted_test import CASES, WELL  # noqa: PLC0415
    named = near = covered = 0
    errors = []
    row("planted", "true cost", "first finding", "told", "±")
    row("---", "---:", "---", "---:", "---:")
    for name, (cause, how, key, _) in CASES.items():
        options = {**WELL, **how}
        ill, well = Planted(**options, **cause), Planted(**options)
        found = explained(tool, ill.write(os.path.join(folder, "planted.csv")))
        true = ill.period - well.period
        first = found["findings"][0] if found["findings"] else {"places": [], "or_else": [], "key": "none", "lost_ns": 0, "uncertainty_ns": 0}
        reported, off = first["lost_ns"] / 1e6, first["uncertainty_ns"] / 1e6
        hit = key in keys_of(first)
        named += hit
        near += hit and abs(reported - true) <= max(NEAR_POINTS * ill.period, NEAR_SHARE * true)
        covered += hit and abs(reported - true) <= max(off, 0.01 * true)
        errors += [abs(reported - true) / true] if hit else []
        row(name, f"{true:.1f} ms, {100 * true / ill.period:.1f} %", first["key"] + ("" if hit else " (not " + key + ")"), f"{reported:.1f} ms", f"{off:.1f}")
    row("**named first**", share(named, len(CASES)), "**priced within 1 point or 15 %**", share(near, len(CASES)),
        f"± covers {share(covered, named)}")
    if errors:
        print(f"\nMedian error of a price {100 * statistics.median(errors):.1f} %, largest {100 * max(errors):.0f} %.\n")


def keys_of_row(score, row):
    """A row of diff in the scorer's vocabulary, with what that does not read: its long step, its micro-batch, all ranks."""
    found = {"step:" + n for n in re.findall(r"in the longest, step (\d+)", row.get("en", ""))}
    found |= {"micro-batch:" + n for n in re.findall(r"micro-batch (\d+), on every stage", row.get("en", ""))}
    found |= {"onset", "trend", "all"} if "all ranks" in row.get("en", "") else set()
    return score.plain_diff_keys(row) | found


def simulated(tool, folder, title, cases):
    """The shared scorer's own counts, and what it leaves out: shares of what is missed and false, whether ± covers the truth, and rows of
    diff that name a long step or a micro-batch."""
    import score  # noqa: PLC0415
    import simulate  # noqa: PLC0415
    if not hasattr(score, "plain_diff_keys"):
        score.plain_diff_keys, score.diff_keys = score.diff_keys, lambda row: keys_of_row(score, row)
    rows, findings, covered, priced, classes = [], 0, 0, 0, {}
    for case in cases:
        path = os.path.join(folder, case.name + ".csv")
        true = simulate.truth(case, path)
        reported = explained(tool, path)
        judged = score.judge(case, true, reported)
        well = os.path.join(folder, "well.csv")
        run = score.replace(case.run, seed=case.run.seed + 1000)
        simulate.write(simulate.play(run), run, well)
        judged["diff"] = score.judge_diff(case, true, *score.run(tool, "diff", well, path, "--fail-on", "3%", "--format", "json", "--quiet"))
        rows.append(judged)
        findings += len(reported["findings"])
        for fault, cost, of_fault in zip(case.faults, true["faults"], judged["faults"]):
            if cost["share"] < score.NAMED:
                continue
            hits = [f for f in reported["findings"] if f["priced"] and score.match(score.keys(f), fault.accept)]
            within = any(abs(f[fault.price + "_ns"] - cost["cost_ns"]) <= max(f["uncertainty_ns"], 0.01 * true["period_ns"]) for f in hits)
            priced += bool(hits)
            covered += within
            counts = classes.setdefault(fault.cls, [0, 0, 0, 0, 0])
            for i, count in enumerate((1, of_fault["named"], of_fault["named"] and of_fault["near"], bool(hits), within)):
                counts[i] += count
        os.remove(path)
    totals = score.totals_tables(rows)
    due = totals["faults that cost 2 % or more"]
    totals["missed"] = share(totals["missed"], due)
    totals["false findings"] = share(totals["false findings"], findings)
    totals["price ± (or 1 point) covers the truth"] = share(covered, priced)
    print()
    row(title, "")
    row("---", "---:")
    for name, value in totals.items():
        row(name, value)
    print()
    row("kind of fault (of 2 % or more)", "drawn", "named", "priced", "± covers")
    row("---", "---:", "---:", "---:", "---:")
    for name, (drawn, named, near, with_price, within) in sorted(classes.items()):
        row(name, drawn, named, near, share(within, with_price))


def diagnosed(tool, folder):
    """The public benchmark (docs/reference/diagnosis.md), answered by this program and by StragglerAnalysis' method."""
    sys.path.insert(0, os.path.join(HERE, "diagnosis"))
    import judge  # noqa: PLC0415
    import make  # noqa: PLC0415
    import tools  # noqa: PLC0415
    made = pathlib.Path(folder, "diagnosis")
    make.make(made, tool)
    tools.BIN = tool
    print()
    print(judge.table(judge.lines(made / "truth.jsonl"), {name: list(tools.ask(name, made)) for name in ("stageline", "slowdown")}))


def main(tool):
    with tempfile.TemporaryDirectory() as folder:
        planted(tool, folder)
        if os.path.isdir(SHARED):
            sys.path.insert(0, SHARED)
            import cases_shared  # noqa: PLC0415
            import drawn_incidents  # noqa: PLC0415
            simulated(tool, folder, "independent simulator, its cases", cases_shared.cases())
            simulated(tool, folder, "independent simulator, drawn by chance", drawn_incidents.cases())
        else:
            print("../shared/tools/incidents is not there: its runs are skipped.")
        diagnosed(tool, folder)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build/release/stageline")
