"""./dev bench sql: the queries of docs/howto/sql.md over a profile, compared with DuckDB over Stageline's Arrow streams
in the same process.

sql_cases.py runs it with a Python that has duckdb and pyarrow: sql_bench.py PACKAGE TRACES RUNS [alone], `alone` without DuckDB. Prints one JSON object
per query: the minimum milliseconds of both over RUNS, a comparison of the rows, and how far each rose above its memory
before. DuckDB's queries use its own syntax; where there is none (holes, arguments, trees) its column is empty. PERFETTO
contains the queries that sql_cases.py runs on the same files with Perfetto's trace processor, in its syntax."""
import json
import math
import sys
import time

# name, bar in ms on 10 M slices (None: none), ours, DuckDB's (None: none)
QUERIES = [
    ("count and sum", 600, "SELECT count(*), sum(dur_ns) FROM slices", "SELECT count(*), sum(dur_ns) FROM slices"),
    ("one id", 0.1, "SELECT name, dur_ns FROM slices WHERE id = {id}", "SELECT name, dur_ns FROM slices WHERE id = {id}"),
    ("a window of time", 2, "SELECT count(*), sum(dur_ns) FROM slices WHERE start_ns BETWEEN {from_ns} AND {to_ns}",
     "SELECT count(*), sum(dur_ns) FROM slices WHERE start_ns BETWEEN {from_raw} AND {to_raw}"),
    ("names by pattern", 30, "SELECT count(*), sum(dur_ns) FROM slices WHERE name GLOB '*softmax*'",
     "SELECT count(*), sum(dur_ns) FROM slices WHERE name::VARCHAR GLOB '*softmax*'"),
    ("totals('name')", 40, "SELECT key, sum(count), sum(total_ns) FROM totals('name') GROUP BY key ORDER BY 3 DESC, 1",
     "SELECT name::VARCHAR AS n, count(*), sum(dur_ns) FROM slices GROUP BY n ORDER BY 3 DESC, 1"),
    ("GROUP BY name", 2500, "SELECT name, count(*), sum(dur_ns) FROM slices GROUP BY name ORDER BY 3 DESC, 1",
     "SELECT name::VARCHAR AS n, count(*), sum(dur_ns) FROM slices GROUP BY n ORDER BY 3 DESC, 1"),
    ("kernels by name", None, "SELECT name, count(*), sum(dur_ns) FROM kernels GROUP BY name ORDER BY 3 DESC, 1",
     "SELECT name::VARCHAR AS n, count(*), sum(dur_ns) FROM kernels GROUP BY n ORDER BY 3 DESC, 1"),
    ("GROUP BY rank", None, "SELECT rank, count(*), max(dur_ns) FROM slices GROUP BY rank", "SELECT rank, count(*), max(dur_ns) FROM slices GROUP BY rank ORDER BY 1"),
    ("ten longest", None, "SELECT id, dur_ns FROM slices ORDER BY dur_ns DESC, id LIMIT 10", "SELECT id, dur_ns FROM slices ORDER BY dur_ns DESC, id LIMIT 10"),
    ("union_ns by rank", 1200, "SELECT rank, union_ns(start_ns, dur_ns) FROM kernels GROUP BY rank",
     "WITH e AS (SELECT rank, start_ns AS s, start_ns + dur_ns AS t, max(start_ns + dur_ns) OVER (PARTITION BY rank ORDER BY start_ns, dur_ns ROWS BETWEEN "
     "UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM kernels) SELECT rank, sum(greatest(t - greatest(s, coalesce(before, s)), 0))::BIGINT FROM e GROUP BY rank ORDER BY 1"),
    ("launch delays", None, "SELECT c.name, quantile(k.launch_delay_ns, 0.5), count(*) FROM kernels k JOIN slices c ON c.id = k.call_id GROUP BY c.name ORDER BY 1",
     "SELECT c.name::VARCHAR AS n, quantile_cont(greatest(k.start_ns - c.start_ns - c.dur_ns, 0), 0.5), count(*) FROM kernels k JOIN slices c ON c.id = k.launch_id "
     "GROUP BY n ORDER BY 1"),
    ("holes of rank 0", None, "SELECT dur_ns, before_id, after_id, cause FROM gaps(0) ORDER BY 1 DESC LIMIT 10", None),
    ("self time of operators", None, "SELECT tid, name, sum(self_ns) FROM slices WHERE rank = 0 AND category = 'cpu_op' GROUP BY tid, name ORDER BY 3 DESC, 2 LIMIT 20", None),
    ("arguments of the ten longest", None,
     "SELECT k.name, a.key, a.value FROM (SELECT id, name FROM kernels ORDER BY dur_ns DESC LIMIT 10) k JOIN args a ON a.slice_id = k.id", None),
]


PERFETTO = {
    "count and sum": "SELECT count(*), sum(dur) FROM slice",
    "one id": "SELECT name, dur FROM slice WHERE id = {id}",
    "a window of time": "SELECT count(*), sum(dur) FROM slice WHERE ts BETWEEN {from_raw} AND {to_raw}",
    "names by pattern": "SELECT count(*), sum(dur) FROM slice WHERE name GLOB '*softmax*'",
    "totals('name')": "SELECT name, count(*), sum(dur) FROM slice GROUP BY name ORDER BY 3 DESC, 1",
    "GROUP BY name": "SELECT name, count(*), sum(dur) FROM slice GROUP BY name ORDER BY 3 DESC, 1",
    "kernels by name": "SELECT name, count(*), sum(dur) FROM slice WHERE category IN ('kernel', 'gpu_memcpy', 'gpu_memset') GROUP BY name ORDER BY 3 DESC, 1",
    "ten longest": "SELECT id, dur FROM slice ORDER BY dur DESC, id LIMIT 10",
    "launch delays": "SELECT c.name, avg(max(0, k.ts - c.ts - c.dur)), count(*) FROM flow f JOIN slice c ON c.id = f.slice_out JOIN slice k ON k.id = f.slice_in "
                     "WHERE k.category IN ('kernel', 'gpu_memcpy', 'gpu_memset') GROUP BY c.name ORDER BY 1",
    "arguments of the ten longest": "SELECT k.name, a.key, a.display_value FROM (SELECT name, arg_set_id FROM slice WHERE category = 'kernel' ORDER BY dur DESC LIMIT 10) k "
                                    "JOIN args a USING (arg_set_id)"}


def status_bytes(key):
    with open("/proc/self/status") as lines:
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), 0)


def risen(ask):
    """Returns the additional memory of the process during a query."""
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    before = status_bytes("VmRSS:")
    ask()
    return status_bytes("VmHWM:") - before


def same(a, b):
    return len(a) == len(b) and all(len(x) == len(y) and all(
        v == w or (isinstance(v, float) or isinstance(w, float)) and math.isclose(v, w, rel_tol=1e-9) for v, w in zip(x, y)) for x, y in zip(a, b))


def least(runs, ask):
    best, rows = math.inf, None
    for _ in range(runs):
        begin = time.perf_counter()
        rows = ask()
        best = min(best, time.perf_counter() - begin)
    return best * 1000, rows


def beside(slices, kernels):
    """Opens DuckDB over our streams; returns it and its version."""
    import duckdb
    db = duckdb.connect()
    db.register("slices", slices.to_arrow())  # our own memory, but for chosen rows
    db.register("kernels", kernels.to_arrow())
    db.execute("SET threads = 2")
    return db, duckdb.__version__


def main(package, traces, runs, alone):
    sys.path.insert(0, package)
    import stageline
    begin = time.perf_counter()
    trace = stageline.open(traces)
    opened = time.perf_counter() - begin
    slices, kernels = trace.slices(), trace.kernels()
    db, version = (None, None) if alone else beside(slices, kernels)
    middle = trace.sql("SELECT max(end_ns) / 2 FROM slices")[0][0]
    values = {"id": trace.sql("SELECT max(id) - 1000 FROM slices")[0][0], "from_ns": middle, "to_ns": middle + 1_000_000,
              "from_raw": middle + trace.epoch_ns, "to_raw": middle + 1_000_000 + trace.epoch_ns}
    print(json.dumps({"slices": len(slices), "kernels": len(kernels), "open_s": opened, "duckdb": version, "values": values}), flush=True)
    for name, bar, ours, theirs in QUERIES:
        query = ours.format(**values)
        bytes_risen = risen(lambda: trace.sql(query, timeout=None))
        mine, rows = least(runs, lambda: trace.sql(query, timeout=None))
        reported = {"name": name, "bar_ms": bar, "ours_ms": mine, "ours_bytes": bytes_risen, "theirs_ms": None, "theirs_bytes": None, "same": None}
        if theirs and db:
            text = theirs.format(**values)
            reported["theirs_bytes"] = risen(lambda: db.sql(text).fetchall())
            reported["theirs_ms"], other = least(runs, lambda: db.sql(text).fetchall())
            reported["same"] = same([tuple(r) for r in rows], other)
        print(json.dumps(reported), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), "alone" in sys.argv[4:])
