"""HTA's side of ./dev bench kineto: run by a Python that holds HTA.

  hta_run.py FOLDER CALL[,CALL…] RESULT.json [ours]

Loads FOLDER as a user does and makes the calls. Writes the cost of each: CPU seconds of this process and its children,
wall seconds, and the reason of a failure. Also writes the peak memory of all its processes in MB, with the CPU seconds
of measuring it. Drawing is off where HTA allows it. With `ours` every import of hta is stageline.hta."""
import json
import logging
import resource
import shutil
import sys
import tempfile
import threading
import time
import warnings


class Peak(threading.Thread):
    """Memory of this process and its workers together at the worst moment; pages that they share count once."""

    def __init__(self):
        super().__init__(daemon=True)
        self.mb, self.cpu = 0, 0.0  # and what looking costs, which is not HTA's

    def run(self):
        import psutil
        me = psutil.Process()
        while True:
            total = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    with open(f"/proc/{process.pid}/smaps_rollup") as text:
                        total += next(int(line.split()[1]) for line in text if line.startswith("Pss:"))
                except (OSError, StopIteration):
                    pass  # it ended meanwhile
            self.mb, self.cpu = max(self.mb, total * 1024 / 1e6), time.thread_time()
            time.sleep(1)


def cpu_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def calls(run, ranks):
    """name → what HTA is asked, as its documentation has it. The first eight are the cheap ones."""
    def counters():
        run.t.write_raw_trace = lambda path, content: None  # the analysis, not the writing
        run.generate_trace_with_counters(ranks=ranks[:1])

    def graph():
        from hta.common.trace_call_graph import CallGraph
        CallGraph(run.t, ranks=ranks[:1])

    def sequences():
        folder = tempfile.mkdtemp()
        try:
            run.get_frequent_cuda_kernel_sequences(operator_name="aten::linear", output_dir=folder, rank=ranks[0], min_pattern_len=1,
                                                   visualize=False)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return {
        "temporal-breakdown": lambda: run.get_temporal_breakdown(visualize=False),
        "gpu-kernel-breakdown": lambda: run.get_gpu_kernel_breakdown(visualize=False),
        "comm-comp-overlap": lambda: run.get_comm_comp_overlap(visualize=False),
        "idle-time-breakdown": lambda: run.get_idle_time_breakdown(ranks=ranks, visualize=False),
        "cuda-kernel-launch-stats": lambda: run.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False),
        "queue-length-summary": lambda: run.get_queue_length_summary(ranks=ranks),
        "memory-bw-summary": lambda: run.get_memory_bw_summary(ranks=ranks),
        "gpu-user-annotation-breakdown": lambda: run.get_gpu_user_annotation_breakdown(visualize=False),
        "stragglers": run.get_potential_stragglers,
        "kernels-with-annotations": lambda: run.get_gpu_kernels_with_user_annotations(rank=ranks[0]),
        "counters": counters,
        "critical-path": lambda: run.critical_path_analysis(rank=ranks[0], annotation="ProfilerStep#101", instance_id=0),
        "call-graph": graph,
        "frequent-sequences": sequences,
        "aten-delays": lambda: run.get_aten_op_kernels_and_delay(ranks=ranks[:1]),
    }


def main():
    folder, wanted, result, *ours = sys.argv[1:]
    if ours:
        import stageline.hta.redirect  # noqa: F401
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    import plotly.graph_objects as go
    go.Figure.show = lambda *_, **__: None
    import networkx  # noqa: F401  (HTA imports these two with its module; ours when they are needed)
    import pandas  # noqa: F401
    from hta.trace_analysis import TraceAnalysis
    costs = {}
    peak = Peak()
    if not ours:
        peak.start()  # of one process the kernel knows the peak

    def timed(name, call):
        cpu, wall, failed, value = cpu_seconds(), time.perf_counter(), "", None
        try:
            value = call()
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"[:200]
        costs[name] = {"cpu": cpu_seconds() - cpu, "wall": time.perf_counter() - wall, "failed": failed}
        print(name, costs[name], flush=True)
        return value

    run = timed("load", lambda: TraceAnalysis(trace_dir=folder))
    if run is not None:
        known = calls(run, run._trace.ranks if ours else run.t.get_ranks())
        for name in filter(None, wanted.split(",")):
            timed(name, known[name])
    costs["peak_mb"], costs["peak_cpu"] = peak.mb, peak.cpu
    with open(result, "w") as out:
        json.dump(costs, out)


main()
