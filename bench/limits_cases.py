"""./dev bench limits: inputs of one extreme kind each, in peak memory and CPU: two million events one after the other, and a million threads."""
import os

EVENTS, THREADS = 2_000_000, 1_000_000
MOST_MB, MOST_THREAD_SECONDS = 600, 60  # of the report
NAMES = ("aten::add", "aten::mul", "aten::mm", "aten::copy_")


def written(path, count, thread_of):
    if not os.path.exists(path):
        with open(path + ".partial", "w", encoding="utf-8") as file:
            file.write('{"traceEvents":[\n')
            for i in range(count):
                file.write(f'{"," if i else ""}{{"ph":"X","cat":"cpu_op","name":"{NAMES[i % 4]}","pid":1,"tid":{thread_of(i)},"ts":{1000 + 2 * i}.000,"dur":1.0,"args":{{"External id":{i}}}}}\n')
            file.write("]}")
        os.rename(path + ".partial", path)
    return path


def run(bench, measure, cases, said):
    flat = written(os.path.join(cases.CACHE, "flat.json"), EVENTS, lambda i: 1)
    threads = written(os.path.join(cases.CACHE, "threads.json"), THREADS, lambda i: i + 1)
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
    bench.costs(measured)
