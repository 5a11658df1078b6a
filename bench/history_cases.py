"""./dev bench history: the shifts that `history check` finds, compared with the best known test and the theoretical
maximum. No times are taken."""
import json
import os
import subprocess

import cases

PROGRAM = os.environ.get("STAGELINE_HISTORY_BENCH", os.path.join(cases.BUILD, "stageline_history_bench"))
MOST_FALSE, LEAST_OF_BEST = 0.01, 0.8  # where the best finds half of them


def run(bench):
    said = json.loads(subprocess.run([PROGRAM, *(["20"] if bench.small else [])], check=True, capture_output=True, text=True).stdout)
    percent = "{:.1%}".format
    print(f"\n60 runs, {said['histories']} histories a row; the shift in standard deviations of runs on the same code\n", flush=True)
    bench.row("shift", "from run", "found", "by the best test", "at most, place and noise known")
    bench.row("---:", "---:", "---:", "---:", "---:")
    for row in said["rows"]:
        bench.row(f"{row['shift']:.2f}", str(row["from"] + 1), *(percent(row[key]) for key in ("ours", "best", "limit")))
    print(f"\nLevel histories with a change: {percent(said['false_alarms'])}; with one to longer steps at any time, where each new run is checked: {percent(said['ever'])} of "
          f"{said['checked']}.", flush=True)
    bench.bar(f"false alarms: {percent(said['false_alarms'])}, asked ≤ {percent(MOST_FALSE)}", said["false_alarms"] <= MOST_FALSE)
    least = min(row["ours"] / row["best"] for row in said["rows"] if row["best"] >= 0.5)
    bench.bar(f"of what the best test finds, where that is half or more: {percent(least)}, asked ≥ {percent(LEAST_OF_BEST)}", least >= LEAST_OF_BEST)
