"""Measures the cost of recognising a schedule and of replaying it for comparison, by number of cells. The cells are
simulated in memory."""
import os

import cases
import measure

PROGRAM = os.environ.get("STAGELINE_SCHEDULE_BENCH", os.path.join(cases.BUILD, "stageline_schedule_bench"))
# (what, arguments: schedule, stages, replicas, micro-batches, steps, cells lost in a thousand)
SIZES = (63, 250, 625)
SMALL_SIZES = (1, 2)
CASES = (("1f1b, as it should be", ("1f1b", 16, None, 85, 10)),
         ("zb-v, as it should be", ("zb-v", 16, None, 28, 10)),
         ("1f1b, 2 % of the cells lost: no two lists equal", ("1f1b", 16, None, 85, 10, 20)))
MOST_SECONDS = 20
MOST_FINDING_SECONDS = 10
MOST_MB = 4295  # 4 GiB


def run(bench):
    print("\n| schedules | ranks | cells | recognise | theory | late cells | together | ns a cell | waterfall | findings | with offers | peak |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for what, arguments in CASES:
        per_cell = []
        for replicas in SMALL_SIZES if bench.small else SIZES:
            words = [str(replicas if a is None else a) for a in arguments]
            cost = measure.run([PROGRAM, *words], bench.SAID)
            with open(bench.SAID) as said:
                cells, recognised, theory, late, _, _, waterfall, findings, _, offered, _, findings_cpu, offered_cpu = said.read().splitlines()[-1].split("\t")  # behind what goes to stderr
            # theory_of() recognises for itself; the first column is a part of the second.
            together = float(theory) + float(late)
            per_cell.append(together / int(cells) * 1e9)
            bench.row(what, str(16 * replicas), f"{int(cells) / 1e6:.1f} M", bench.seconds(float(recognised)), bench.seconds(float(theory)),
                      bench.seconds(float(late)), bench.seconds(together), f"{per_cell[-1]:.0f}", bench.seconds(float(waterfall)),
                      f"{bench.seconds(float(findings))} ({bench.seconds(float(findings_cpu))} CPU)", f"{bench.seconds(float(offered))} ({bench.seconds(float(offered_cpu))} CPU)", f"{cost.rss:.0f} MB")
        bench.bar(f"{what}, {int(cells) / 1e6:.0f} M cells: {together:.1f} s, asked ≤ {MOST_SECONDS} s", together <= MOST_SECONDS)
        # explain() recognises, replays and splits for itself: it is all that a user waits for. Its processor time, which other work does not lengthen, is never below
        # the time on an idle core.
        bench.bar(f"{what}: findings of explain {float(findings_cpu):.1f} s of CPU, asked ≤ {MOST_FINDING_SECONDS} s", float(findings_cpu) <= MOST_FINDING_SECONDS)
        bench.bar(f"{what}: {cost.rss:.0f} MB at the peak, the cells themselves among them, asked ≤ {MOST_MB} MB", cost.rss <= MOST_MB)
        bench.bar(f"{what}: {per_cell[-1] / per_cell[0]:.2f} times the time a cell at ten times the cells, asked ≤ 2: linear",
                  per_cell[-1] <= 2 * per_cell[0])
