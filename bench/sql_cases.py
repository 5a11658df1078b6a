"""./dev bench sql: makes a profile of half a million slices (--full: five million) and runs sql_bench.py on it."""
import json
import os
import subprocess
import sys

import kineto_cases
import rival

PACKAGE = os.path.join("build", "release", "python")


def traces(events, cache):
    folder = os.path.join(cache, f"sql-{events}")
    recipe = ["--ranks", 2, "--events", events // 2, "--steps", 6, "--format", "json"]
    if not os.path.exists(os.path.join(folder, "made")):
        kineto_cases.kineto.generate([*recipe, "-o", folder])
        open(os.path.join(folder, "made"), "w").close()
    return folder


def run(bench, full, cache):
    python = rival.find_duckdb()
    if not python:
        print("\nSQL: skipped, DuckDB cannot be installed here.")
        return
    # Two events in five are arrows, and no slices.
    made = traces(8_000_000 if full else 800_000, cache)
    done = subprocess.run([python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "sql_bench.py"), os.path.abspath(PACKAGE), made, "3"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        raise RuntimeError("the SQL bench did not run")
    head, *rows = [json.loads(line) for line in done.stdout.splitlines()]
    print(f"\nSQL: {head['slices']} slices, {head['kernels']} kernels, opened in {head['open_s']:.2f} s; beside DuckDB {head['duckdb']} on two threads over our Arrow "
          "streams, rows into Python both; the least of 3.\n")
    bench.row("query", "stageline", "DuckDB", "same rows")
    bench.row("---", "---:", "---:", "---")
    for one in rows:
        theirs = "–" if one["theirs_ms"] is None else f"{one['theirs_ms']:.1f} ms"
        bench.row(one["name"], f"{one['ours_ms']:.1f} ms", theirs, {None: "–", True: "yes", False: "**no**"}[one["same"]])
        if one["bar_ms"] is not None:
            bench.bar(f"sql, {one['name']}: {one['ours_ms']:.1f} ms of {head['slices']} slices, asked ≤ {one['bar_ms']} ms of 10 million",
                      one["ours_ms"] <= one["bar_ms"])
        if one["same"] is False:
            bench.bar(f"sql, {one['name']}: the same rows as DuckDB", False)
