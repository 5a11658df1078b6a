"""Runs the installed HTA on one folder of traces and keeps every answer, as tests/hta reads goldens.

  hta_live.py TRACES OUT [--deep]     under a Python that holds HTA; OUT/manifest.json and OUT/RESULT.csv

--deep adds what takes HTA minutes on large traces: call graphs, sequences, ATen delays, the critical path."""
import contextlib
import io
import json
import logging
import os
import shutil
import sys
import tempfile
import warnings

OPERATORS = ["aten::linear", "aten::add", "Optimizer.step", "DistributedDataParallel.forward"]


class Answers:
    def __init__(self, out, traces):
        self.out, self.results = out, {}
        self.manifest = {"input": {"path": os.path.abspath(traces)}, "results": self.results}
        os.makedirs(out, exist_ok=True)

    def ask(self, name, call, params=None):
        """Calls and keeps a frame as CSV, another value as JSON, a failure as its type and words; returns the answer."""
        import pandas
        record = self.results[name] = {"params": params or {}}
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                answer = call()
        except Exception as error:
            record.update(status="error", type=type(error).__name__, message=str(error)[:400])
            return None
        if answer is None:
            record["status"] = "none"
        elif isinstance(answer, pandas.DataFrame):
            record.update(status="ok", rows=len(answer))
            answer.to_csv(os.path.join(self.out, name + ".csv"))
        else:
            record.update(status="ok", value=json.loads(json.dumps(answer, default=plain)))
        return answer

    def close(self):
        with open(os.path.join(self.out, "manifest.json"), "w") as out:
            json.dump(self.manifest, out, default=plain)


def plain(value):
    """Converts numpy's numbers and Python's sets for JSON."""
    return value.item() if hasattr(value, "item") else sorted(value) if isinstance(value, (set, frozenset)) else str(value)


def once(call):
    """One call whose parts are asked for one after the other; a failure is met at each part."""
    kept = []

    def part(which):
        if not kept:
            kept.append(call())
        return kept[0][which]
    return part


def loading(a, run, rank):
    def events():
        names = run.t.symbol_table.sym_table
        frame = run.t.traces[rank].copy()
        for column in ("name", "cat"):
            frame[column] = [names[i] for i in frame[column]]
        for column in frame.columns:
            if frame[column].dtype == object and column not in ("name", "cat"):
                frame[column] = frame[column].map(lambda v: v if isinstance(v, (int, float)) else str(v))
        return frame.sort_values(["index", "ts"], kind="stable").reset_index(drop=True)
    a.ask(f"loaded_events_rank{rank}", events)


def symbols(a, run):
    import pandas
    from hta.utils.utils import get_kernel_type, get_memory_kernel_type, shorten_name
    names = sorted(run.t.symbol_table.sym_table)
    a.ask("symbols", lambda: pandas.DataFrame([(n, get_kernel_type(n), get_memory_kernel_type(n), shorten_name(n)) for n in names],
                                              columns=["symbol", "kernel_type_by_name", "memory_kernel_type", "shorten_name"]))


def whole_run(a, run, ranks):
    a.ask("temporal_breakdown", lambda: run.get_temporal_breakdown(visualize=False))
    a.ask("comm_comp_overlap", lambda: run.get_comm_comp_overlap(visualize=False))
    for tag, params in (("default", {}), ("all", {"num_kernels": 1000000}), ("top3_ratio50", {"num_kernels": 3, "duration_ratio": 0.5}),
                        ("nomem", {"include_memory_kernels": False})):
        part = once(lambda p=params: run.get_gpu_kernel_breakdown(visualize=False, **p))
        a.ask("kernel_breakdown_types_" + tag, lambda: part(0), params)
        a.ask("kernel_breakdown_kernels_" + tag, lambda: part(1), params)
    for delay in (30, 1):
        part = once(lambda d=delay: run.get_idle_time_breakdown(ranks=ranks, visualize=False, show_idle_interval_stats=True,
                                                               consecutive_kernel_delay=d))
        params = {"ranks": ranks, "consecutive_kernel_delay": delay}
        a.ask(f"idle_breakdown_{delay}", lambda: part(0), params)
        a.ask(f"idle_interval_stats_{delay}", lambda: part(1), params)
    for device in (True, False):
        for tag, params in (("all", {}), ("top3", {"num_kernels": 3})):
            a.ask(f"user_annotation_{'gpu' if device else 'cpu'}_{tag}", lambda: run.get_gpu_user_annotation_breakdown(
                use_gpu_annotation=device, visualize=False, **params), {**params, "use_gpu_annotation": device})
    a.ask("profiler_steps", lambda: [int(i) for i in run.get_profiler_steps()])
    if len(ranks) > 1:
        for n in (1, 2):
            a.ask(f"stragglers_{n}", lambda: [int(i) for i in run.get_potential_stragglers(num_candidates=n)], {"num_candidates": n})


def one_rank(a, run, rank):
    for memory in (True, False):
        a.ask(f"launch_stats_rank{rank}" + ("" if memory else "_nomem"), lambda: run.get_cuda_kernel_launch_stats(
            ranks=[rank], include_memory_events=memory, visualize=False)[rank], {"include_memory_events": memory})
    series = a.ask(f"queue_length_series_rank{rank}", lambda: run.get_queue_length_time_series(ranks=[rank]).get(rank))
    a.ask(f"queue_length_summary_rank{rank}", lambda: run.get_queue_length_summary(ranks=[rank]))
    if series is not None:
        for most in (1024, 10, 2):
            a.ask(f"queue_full_{most}_rank{rank}", lambda: run.get_time_spent_blocked_on_full_queue(
                {rank: series.drop(columns=["rank"], errors="ignore")}, max_queue_length=most), {"max_queue_length": most})
    a.ask(f"memory_bw_series_rank{rank}", lambda: run.get_memory_bw_time_series(ranks=[rank]).get(rank))
    a.ask(f"memory_bw_summary_rank{rank}", lambda: run.get_memory_bw_summary(ranks=[rank]))

    def annotated():
        frame = run.get_gpu_kernels_with_user_annotations(rank=rank)
        return None if frame is None else frame[["index", "ts", "dur", "stream", "correlation", "s_name", "s_user_annotation"]]
    a.ask(f"kernels_with_annotations_rank{rank}", annotated)


def deep(a, run, ranks, fresh):
    rank = ranks[0]
    for operator in OPERATORS:
        if not any(operator in name for name in run.t.symbol_table.sym_table):
            continue
        folder = tempfile.mkdtemp()
        a.ask(f"frequent_sequences_rank{rank}__{operator.replace(':', '_')}", lambda: run.get_frequent_cuda_kernel_sequences(
            operator_name=operator, output_dir=folder, rank=rank, visualize=False),
            {"operator_name": operator, "min_pattern_len": 3, "top_k": 5})
        shutil.rmtree(folder, ignore_errors=True)

    def graph(newer):
        # On a table of its own: both builders write columns into it.
        if newer:
            from hta.common.trace_call_graph import CallGraph
        else:
            from hta.common.call_stack import CallGraph
        other = fresh()
        CallGraph(other.t, ranks=[rank])
        columns = ["index", "parent", "depth"] + (["height", "num_kernels", "kernel_dur_sum", "kernel_span", "first_kernel_start",
                                                   "last_kernel_end"] if newer else [])
        return other.t.traces[rank][columns].sort_values("index", kind="stable").reset_index(drop=True)
    a.ask(f"call_graph_trace_call_graph_rank{rank}", lambda: graph(True))
    a.ask(f"call_graph_call_stack_rank{rank}", lambda: graph(False))
    a.ask(f"aten_op_kernels_and_delay_rank{rank}", lambda: run.get_aten_op_kernels_and_delay(ranks=[rank])[rank])


def main():
    traces, out = sys.argv[1:3]
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    import plotly.graph_objects
    plotly.graph_objects.Figure.show = lambda *_, **__: None
    from hta.trace_analysis import TraceAnalysis
    a = Answers(out, traces)
    try:
        run = TraceAnalysis(trace_dir=traces)
        ranks = [int(r) for r in run.t.get_ranks()] if hasattr(run.t, "get_ranks") else sorted(run.t.traces)
    except Exception as error:
        a.manifest["load"] = {"status": "error", "type": type(error).__name__, "message": str(error)[:400]}
        return a.close()
    a.manifest["load"] = {"status": "ok", "ranks": ranks}
    if ranks:
        for rank in ranks:
            loading(a, run, rank)
        symbols(a, run)
        whole_run(a, run, ranks)
        for rank in ranks:
            one_rank(a, run, rank)
        if "--deep" in sys.argv:
            deep(a, run, ranks, lambda: TraceAnalysis(trace_dir=traces))
    a.close()


if __name__ == "__main__":
    main()
