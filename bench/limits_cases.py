"""./dev bench limits: inputs of one extreme kind each, in peak memory and CPU. They are two million events one after
the other, a million threads, ten million rows of a table, and names of ten megabytes in a database."""
import os
import shutil
import sqlite3

EVENTS, THREADS, ROWS, NAME_BYTES = 2_000_000, 1_000_000, 10_000_000, 10_000_000
SMALL_BY = 1000
MOST_MB, MOST_THREAD_SECONDS = 600, 60  # of the report
MOST_ROW_BYTES = 140  # of info on a table: a row takes 68 while it is read, a slice and its cell 61
MOST_NAME_SECONDS = 3
NAMES = ("aten::add", "aten::mul", "aten::mm", "aten::copy_")
DATABASE = "tests/golden/readers/nsys/input/report.sqlite"


def written(path, write):
    if not os.path.exists(path):
        with open(path + ".partial", "w", encoding="utf-8") as file:
            write(file)
        os.rename(path + ".partial", path)
    return path


def events(count, thread_of):
    def write(file):
        file.write('{"traceEvents":[\n')
        for i in range(count):
            file.write(f'{"," if i else ""}{{"ph":"X","cat":"cpu_op","name":"{NAMES[i % 4]}","pid":1,"tid":{thread_of(i)},"ts":{1000 + 2 * i}.000,"dur":1.0,"args":{{"External id":{i}}}}}\n')
        file.write("]}")
    return write


def table(file, count):
    """Writes forwards and backwards of four stages, with a thousand micro-batches per step."""
    file.write("dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n")
    for i in range(count):
        stage, at = i % 4, i // 4
        half = at % 2000
        kind = "forward-compute" if half < 1000 else "backward-compute"
        file.write(f"0,{stage},{stage},{at // 2000},{kind},{at * 0.01 + stage * 0.002:.6f},0.007{i % 1000:03},{half % 1000},0,{half % 1000},0\n")


def long_names(path, size):
    """The golden's database with four names of that many bytes each."""
    if not os.path.exists(path):
        shutil.copyfile(DATABASE, path + ".partial")
        with sqlite3.connect(path + ".partial") as db:
            rows = [r for r, in db.execute("SELECT id FROM StringIds ORDER BY id LIMIT 4 OFFSET 2")]
            db.executemany("UPDATE StringIds SET value = value || ? WHERE id = ?", [("abcdefghij" * (size // 10), row) for row in rows])
        db.close()
        os.rename(path + ".partial", path)
    return path


def run(bench, measure, cases, said):
    many, many_threads, many_rows, name_bytes = (size // (SMALL_BY if bench.small else 1) for size in (EVENTS, THREADS, ROWS, NAME_BYTES))
    flat = written(os.path.join(cases.CACHE, "flat.json"), events(many, lambda i: 1))
    threads = written(os.path.join(cases.CACHE, "threads.json"), events(many_threads, lambda i: i + 1))
    rows = written(os.path.join(cases.CACHE, "rows.csv"), lambda file: table(file, many_rows))
    names = long_names(os.path.join(cases.CACHE, "names.sqlite"), name_bytes)
    outputs = {"html": ["report"], "json": ["export", "--to", "json"], "sqlite": ["export", "--to", "sqlite"]}
    measured = {}

    def one(name, command, source, ending):
        out = os.path.join(cases.CACHE, "limits." + ending)
        if os.path.exists(out):
            os.unlink(out)
        measured[name] = measure.run([cases.STAGELINE, command[0], source, *command[1:], "-o", out, "-q"], said)
        os.unlink(out)
        return measured[name]

    measured["2 M events: info"] = measure.run([cases.STAGELINE, "info", flat], said)
    for ending, command in outputs.items():
        cost = one(f"2 M events: {' '.join(command)}", command, flat, ending)
        if ending == "html":
            bench.bar(f"report of 2 M events in {cost.rss:.0f} MB (at most {MOST_MB})", cost.rss <= MOST_MB)
    cost = one("1 M threads: report", outputs["html"], threads, "html")
    bench.bar(f"report of 1 M threads in {cost.cpu:.1f} s of CPU (at most {MOST_THREAD_SECONDS})", cost.cpu <= MOST_THREAD_SECONDS)
    cost = measured["10 M rows of CSV: info"] = measure.run([cases.STAGELINE, "info", rows], said)
    bench.bar(f"10 M rows of CSV in {cost.rss * 1e6 / many_rows:.0f} B a row (at most {MOST_ROW_BYTES})", cost.rss * 1e6 / many_rows <= MOST_ROW_BYTES)
    one("10 M rows of CSV: explain", ["explain"], rows, "txt")
    for ending, command in outputs.items():
        cost = one(f"four names of 10 MB in a database: {' '.join(command)}", command, names, ending)
        bench.bar(f"four names of 10 MB, {command[-1]}, in {cost.cpu:.1f} s of CPU (at most {MOST_NAME_SECONDS})", cost.cpu <= MOST_NAME_SECONDS)
    bench.costs(measured)
