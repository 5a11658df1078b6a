"""./dev bench ask: a hundred questions, answered by the tools of `stageline mcp` alone; then what a warm answer costs on a large profile."""
import os
import statistics
import sys

import cases
import sql_cases

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "tests", "agent"))
import evaluate  # noqa: E402

WARM_MS = 200  # of 10 million slices
SMALL_EVERY = 10  # questions
WARM = [("explain", {}), ("ask", {"analysis": "idle-time-breakdown"}), ("ask", {"analysis": "gpu-kernel-breakdown"}), ("slices", {"name": "aten::linear"}), ("slice", {"id": 7}),
        ("analyses", {"about": "idle"}), ("schema", {"table": "kernels"})]


def run(bench, full, cache):
    program = os.path.abspath(cases.STAGELINE)
    rows, absent = evaluate.evaluate(program, SMALL_EVERY if bench.small else 1)
    print(f"\nQuestions to runs, answered by tools alone and from the files by other code: {len(rows)} asked, {absent} without their run here. Calls are open, the question and verify; "
          "tokens are characters of requests and answers by 4.\n")
    bench.row("questions", "asked", "right", "without evidence", "calls, most", "tokens, median", "tokens, most", "answer, median", "answer, most")
    bench.row("---", *["---:"] * 8)
    for kind, words in (("number", "numbers"), ("name", "names"), ("list", "lists"), ("cannot", "that cannot be answered"), ("premise", "with a false premise"), (None, "all")):
        some = [row for row in rows if kind in (None, row["kind"])]
        if some:
            bench.row(words, str(len(some)), str(sum(row["right"] for row in some)), str(sum(row["unproven"] for row in some)), str(max(row["calls"] for row in some)),
                      f"{statistics.median(row['tokens'] for row in some):.0f}", str(max(row["tokens"] for row in some)),
                      f"{statistics.median(row['ms'] for row in some):.1f} ms", f"{max(row['ms'] for row in some):.0f} ms")
    for row in rows:
        if not row["right"]:
            print(f"\n**wrong** {row['id']}: {row['why'][:300]}")
    bench.bar(f"ask: {sum(row['right'] for row in rows)} of {len(rows)} right", all(row["right"] for row in rows))
    bench.bar("ask: no number without evidence", not any(row["unproven"] for row in rows))
    bench.bar(f"ask: at most {evaluate.MOST_CALLS} calls and {evaluate.MOST_TOKENS} tokens a question",
              all(row["calls"] <= evaluate.MOST_CALLS and row["tokens"] <= evaluate.MOST_TOKENS for row in rows))
    warm(bench, full, program, os.path.abspath(sql_cases.traces(16_000_000 if full else 8_000 if bench.small else 800_000, cache)))


def warm(bench, full, program, traces):
    with evaluate.Client(program, traces) as client:
        opened, _ = client.call("open", {"paths": [traces]})
        print(f"\nWarm answers of a profile of {opened['slices']} slices, opened in {client.seconds:.2f} s; the first, and the least of three more.\n")
        bench.row("tool", "first", "warm")
        bench.row("---", "---:", "---:")
        for tool, arguments in WARM:
            words = " ".join([tool, *(str(v) for v in arguments.values())])
            times = []
            for _ in range(4):
                client.call(tool, {"trace": opened["trace"], **arguments})
                times.append(client.seconds * 1000)
            least = min(times[1:])
            bench.row(words, f"{times[0]:.1f} ms", f"{least:.1f} ms")
            if full:
                bench.bar(f"ask, {words}: {least:.1f} ms of {opened['slices']} slices, asked ≤ {WARM_MS} ms of 10 million", least <= WARM_MS)
