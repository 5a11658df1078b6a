"""./dev bench nsys: opens and sums up an export of Nsight Systems with many rows, and compares the cost with the SQL of
`nsys stats`.

nsys itself cannot be installed here. Its reports cuda_gpu_kern_sum, cuda_api_sum, nvtx_pushpop_sum,
cuda_gpu_mem_time_sum and nvtx_gpu_proj_sum are sums by name of (end - start) over the same tables. They are rewritten
below as SQL, and run on the same file with the same SQLite. Stageline is one process that reads the file and gives the
same sums. Both print their rows, and the sums must be equal.
"""
import csv
import io
import os
import pathlib
import sqlite3
import subprocess
import sys

import measure

BIN = os.environ.get("STAGELINE_BIN", os.path.join("build", "release", "stageline"))
FASTER = 10  # times less CPU
NAMES = 40

# One query a report: name, count, sum, min, max of the durations. The vendor's have the median and the deviation too; neither side makes these here.
SUMS = "SELECT {name} AS name, count(*), sum(end - start), min(end - start), max(end - start) FROM {table} WHERE {where} GROUP BY 1 ORDER BY 3 DESC"
TEXT = "(SELECT value FROM StringIds WHERE id = {})"
REPORTS = {
    "cuda_gpu_kern_sum": SUMS.format(name=TEXT.format("demangledName"), table="CUPTI_ACTIVITY_KIND_KERNEL", where="1"),
    "cuda_api_sum": SUMS.format(name=TEXT.format("nameId"), table="CUPTI_ACTIVITY_KIND_RUNTIME", where="1"),
    "cuda_gpu_mem_time_sum": SUMS.format(name="copyKind", table="CUPTI_ACTIVITY_KIND_MEMCPY", where="1"),
    "nvtx_pushpop_sum": SUMS.format(name="coalesce(text, " + TEXT.format("textId") + ")", table="NVTX_EVENTS", where="eventType = 59"),
    # Ranges on the device: the first start and the last end of what was launched inside each. Its joins get the indexes that they need.
    "nvtx_gpu_proj_sum": """WITH launched AS (SELECT r.globalTid AS tid, r.start AS at, k.start AS s, k.end AS e FROM CUPTI_ACTIVITY_KIND_RUNTIME r
JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId AND k.globalPid >> 24 = r.globalTid >> 24),
projected AS (SELECT n.rowid AS id, coalesce(n.text, (SELECT value FROM StringIds WHERE id = n.textId)) AS name, min(l.s) AS s, max(l.e) AS e
FROM NVTX_EVENTS n JOIN launched l ON l.tid = n.globalTid AND l.at >= n.start AND l.at < n.end WHERE n.eventType = 59 GROUP BY n.rowid)
SELECT name, count(*), sum(e - s) FROM projected GROUP BY name ORDER BY 3 DESC""",
}


def make(path, kernels):
    if os.path.exists(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    db = sqlite3.connect(path + ".partial")
    run = db.execute
    run("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY,value TEXT NOT NULL)")
    run("CREATE TABLE META_DATA_EXPORT (name TEXT,value TEXT)")
    run("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER,utcTime TEXT,localTime TEXT,systemClockNs INTEGER)")
    run("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER,end INTEGER,eventClass INTEGER,globalTid INTEGER,correlationId INTEGER,nameId INTEGER,returnValue INTEGER,callchainId INTEGER)")
    run("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,greenContextId INTEGER,streamId INTEGER,correlationId INTEGER,globalPid INTEGER,"
        "demangledName INTEGER,shortName INTEGER,mangledName INTEGER,registersPerThread INTEGER,gridX INTEGER,gridY INTEGER,gridZ INTEGER,blockX INTEGER,blockY INTEGER,blockZ INTEGER,"
        "staticSharedMemory INTEGER,dynamicSharedMemory INTEGER)")
    run("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,greenContextId INTEGER,streamId INTEGER,correlationId INTEGER,globalPid INTEGER,"
        "bytes INTEGER,copyKind INTEGER,srcKind INTEGER,dstKind INTEGER)")
    run("CREATE TABLE NVTX_EVENTS (start INTEGER,end INTEGER,eventType INTEGER,rangeId INTEGER,category INTEGER,color INTEGER,text TEXT,globalTid INTEGER,endGlobalTid INTEGER,textId INTEGER,domainId INTEGER,"
        "binaryData TEXT)")
    db.executemany("INSERT INTO StringIds VALUES (?,?)", [(i, f"void kernel_{i}<float>(float*)") for i in range(NAMES)] + [(100, "cudaLaunchKernel_v7000"), (101, "cudaMemcpyAsync_v3020")])
    run("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1795382776000000000,'','',5000000000)")
    pid = 1 << 48 | 4000 << 24
    tid = pid | 4000
    calls, work, copies, ranges = [], [], [], []
    for k in range(kernels):
        at = 1000 + 10_000 * k
        calls.append((at, at + 3000 + k % 500, 0, tid, k + 1, 101 if k % 10 == 9 else 100, 0, None))
        if k % 10 == 9:
            copies.append((at + 4000, at + 6000 + k % 900, 0, 1, None, 9, k + 1, pid, 4096 + k % 77, 1 + k % 2, 1, 2))
        else:
            work.append((at + 4000, at + 8000 + k % 1700, 0, 1, None, 7, k + 1, pid, k % NAMES, k % NAMES, None, 32, 8, 1, 1, 128, 1, 1, 0, 1024))
        if k % 2 == 0:
            ranges.append((at - 500, at + 9400, 59, None, None, None, f"layer {k % 64}", tid, None, None, 0, None))
        if k % 100 == 0:
            ranges.append((at - 900, at + 990_000, 59, None, None, None, "forward", tid, None, None, 0, None))
    for table, rows in (("CUPTI_ACTIVITY_KIND_RUNTIME", calls), ("CUPTI_ACTIVITY_KIND_KERNEL", work), ("CUPTI_ACTIVITY_KIND_MEMCPY", copies), ("NVTX_EVENTS", ranges)):
        db.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)
    db.commit()
    db.close()
    os.replace(path + ".partial", path)


def ask(path):
    """Runs the reports in this process, as the reference side of the bench. Rows go to stdout as CSV."""
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    db.execute("CREATE TEMP TABLE launches AS SELECT correlationId, globalPid >> 24 AS process, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL")
    db.execute("CREATE INDEX temp.by_correlation ON launches (correlationId, process)")
    db.execute("CREATE TEMP TABLE calls AS SELECT r.globalTid AS tid, r.start AS at, k.start AS s, k.end AS e FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN launches k "
               "ON k.correlationId = r.correlationId AND k.process = r.globalTid >> 24")
    db.execute("CREATE INDEX temp.by_time ON calls (tid, at)")
    out = csv.writer(sys.stdout)
    for name, query in REPORTS.items():
        if name == "nvtx_gpu_proj_sum":
            query = query[query.index("projected AS"):].replace("projected AS", "WITH projected AS", 1).replace("JOIN launched l", "JOIN calls l")
        for row in db.execute(query):
            out.writerow((name, *row))


def ours(path):
    one = "SELECT '{0}' AS category, key, count, total_ns, min_ns, max_ns FROM totals('name') WHERE of_category = '{0}'"
    kinds = ("kernel", "cuda_runtime", "gpu_memcpy", "user_annotation", "gpu_user_annotation")
    return [BIN, "sql", path, " UNION ALL ".join(one.format(kind) for kind in kinds), "--format", "csv", "-q"]


def same_sums(path):
    """Returns true if both sides say the same of kernels, ranges and calls: count and sum by category."""
    theirs, mine = {}, {}
    kind = {"cuda_gpu_kern_sum": "kernel", "cuda_api_sum": "cuda_runtime", "cuda_gpu_mem_time_sum": "gpu_memcpy", "nvtx_pushpop_sum": "user_annotation"}
    asked = subprocess.run([sys.executable, os.path.abspath(__file__), path], capture_output=True, text=True, check=True).stdout
    for row in csv.reader(io.StringIO(asked)):
        if row[0] in kind:
            count, total = theirs.get(kind[row[0]], (0, 0))
            theirs[kind[row[0]]] = (count + int(row[2]), total + int(row[3]))
    for row in csv.DictReader(io.StringIO(subprocess.run(ours(path), capture_output=True, text=True, check=True).stdout)):
        values = list(row.values())
        count, total = mine.get(row["category"], (0, 0))
        mine[row["category"]] = (count + int(values[2]), total + int(values[3]))
    return all(mine.get(k) == v for k, v in theirs.items()), theirs, mine


def run(bench, full, cache):
    kernels = 2_000_000 if full else 200_000
    path = os.path.join(cache, f"nsys-{kernels}.sqlite")
    make(path, kernels)
    same, theirs, mine = same_sums(path)
    own, other = measure.interleave(lambda: measure.run(ours(path), bench.SAID), lambda: measure.run([sys.executable, os.path.abspath(__file__), path], bench.SAID), 1, 2)
    a, b = measure.median(own), measure.median(other)
    print(f"\nNsight Systems: {kernels} calls, as many kernels and copies, half as many ranges, {pathlib.Path(path).stat().st_size / 1e6:.0f} MB; beside five of nsys' reports as SQL.\n")
    bench.costs({"stageline: read, linked, projected, summed": a, "the reports as SQL": b})
    bench.bar(f"nsys: {b.cpu / a.cpu:.1f} times less CPU than the reports as SQL, asked ≥ {FASTER}", b.cpu >= FASTER * a.cpu)
    bench.bar(f"nsys: the same counts and sums as the reports", same)
    if not same:
        print(theirs, mine, file=sys.stderr)


if __name__ == "__main__":
    ask(sys.argv[1])
