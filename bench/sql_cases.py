"""./dev bench sql: makes a profile of half a million slices (--full: five million) and runs sql_bench.py on it."""
import glob
import json
import os
import re
import subprocess
import sys

import cases
import kineto_cases
import perfetto_bench
import rival
import sql_bench

PACKAGE = os.path.join(cases.BUILD, "python")
MOST_MB = 64  # beyond the trace


def traces(events, cache):
    folder = os.path.join(cache, f"sql-{events}")
    recipe = ["--ranks", 2, "--events", events // 2, "--steps", 6, "--format", "json"]
    if not os.path.exists(os.path.join(folder, "made")):
        kineto_cases.kineto.generate([*recipe, "-o", folder])
        open(os.path.join(folder, "made"), "w").close()
    return folder


def perfetto_ms(cache, folder, values):
    """Returns milliseconds by query of Perfetto's trace processor over the same files, the minimum of three; empty if
    it is not available."""
    shell = perfetto_bench.engine(cache)
    if not shell:
        return {}
    both = folder.rstrip("/") + "-perfetto.json"  # the engine takes one file: each rank's processes get numbers of their own
    if not os.path.exists(both):
        events = []
        for rank, path in enumerate(sorted(glob.glob(os.path.join(folder, "*.json")))):
            with open(path) as text:
                own = json.load(text)["traceEvents"]
            for event in own:
                if isinstance(event.get("pid"), int):
                    event["pid"] += rank << 20
            events += own
        with open(both + ".partial", "w") as out:
            json.dump({"traceEvents": events}, out)
        os.replace(both + ".partial", both)
    # Longer answers stop at a page and wait for a key. All but the last rows are sorted or added up for them all the same.
    asked = "".join(f"SELECT * FROM ({text.format(**values)}) LIMIT 20;\n" for text in sql_bench.PERFETTO.values() for _ in range(3))
    done = subprocess.run([shell, both], input=asked, capture_output=True, text=True)
    times = [float(ms) for ms in re.findall(r"Query executed in ([0-9.]+) ms", done.stdout + done.stderr)]
    if len(times) != 3 * len(sql_bench.PERFETTO):
        return {}
    return {name: min(times[3 * k:3 * k + 3]) for k, name in enumerate(sql_bench.PERFETTO)}


def run(bench, full, cache, alone=False):
    """`alone`: without DuckDB and Perfetto."""
    python = sys.executable if alone else rival.find_duckdb()
    if not python:
        print("\nSQL: skipped, DuckDB cannot be installed here.")
        return
    # Two events in five are arrows, and no slices.
    made = traces(8_000_000 if full else 8_000 if bench.small else 800_000, cache)
    done = subprocess.run([python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "sql_bench.py"), os.path.abspath(PACKAGE), made, "3", *(["alone"] if alone else [])],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        raise RuntimeError("the SQL bench did not run")
    head, *rows = [json.loads(line) for line in done.stdout.splitlines()]
    theirs_too = {} if full or alone else perfetto_ms(cache, made, head["values"])  # it would need a quarter of an hour to read the large ones
    print(f"\nSQL: {head['slices']} slices, {head['kernels']} kernels, opened in {head['open_s']:.2f} s; beside DuckDB {head['duckdb']} on two threads over our Arrow "
          "streams, rows into Python both, and Perfetto's trace processor over the same files; the least of 3; memory is how far the process rises.\n")
    bench.row("query", "stageline", "DuckDB", "Perfetto", "same rows", "memory", "DuckDB's")
    bench.row("---", "---:", "---:", "---:", "---", "---:", "---:")
    for one in rows:
        theirs = "–" if one["theirs_ms"] is None else f"{one['theirs_ms']:.1f} ms"
        third = theirs_too.get(one["name"])
        bench.row(one["name"], f"{one['ours_ms']:.1f} ms", theirs, "–" if third is None else f"{third:.1f} ms", {None: "–", True: "yes", False: "**no**"}[one["same"]],
                  f"{one['ours_bytes'] / 1e6:.0f} MB", "–" if one["theirs_bytes"] is None else f"{one['theirs_bytes'] / 1e6:.0f} MB")
        if third is not None:
            most = 2 * third if one["name"] == "GROUP BY name" else third
            bench.bar(f"sql, {one['name']}: {one['ours_ms']:.1f} ms, asked ≤ {most:.1f} ms as Perfetto has it", one["ours_ms"] <= most)
        if one["bar_ms"] is not None:
            bench.bar(f"sql, {one['name']}: {one['ours_ms']:.1f} ms of {head['slices']} slices, asked ≤ {one['bar_ms']} ms of 10 million",
                      one["ours_ms"] <= one["bar_ms"])
        bench.bar(f"sql, {one['name']}: rises by {one['ours_bytes'] / 1e6:.0f} MB, asked ≤ {MOST_MB}", one["ours_bytes"] <= MOST_MB * 1e6)
        if one["same"] is False:
            bench.bar(f"sql, {one['name']}: the same rows as DuckDB", False)
