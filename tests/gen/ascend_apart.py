#!/usr/bin/env python3
"""DualPipeV of MindSpeed without --moe-fb-overlap, marked by the vendor's published snippet.

    ascend_apart.py --out DIR --pp 4 --mb 10 …       the flags of ../shared/tools/gen_ascend.py

The generator of ../shared makes the run. Here each overlapped pair becomes a forward and then a backward, the loss has
no range of its own, and functions give the names.
"""
import importlib.util
import pathlib
import sys

GENERATOR = pathlib.Path(__file__).resolve().parents[3] / 'shared' / 'tools' / 'gen_ascend.py'
spec = importlib.util.spec_from_file_location('gen_ascend', GENERATOR)
gen = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gen)
overlapped = gen.dualpipev


def apart(pp, m, cost, dw_detach):
    plan = []
    for row in overlapped(pp, m, cost, dw_detach):
        out = []
        for op in row:
            if op.kind == 'L':
                continue
            op.needs = [('F', 0, 1, n[3]) if n[0] == 'L' else n for n in op.needs]
            if op.kind != 'FB':
                out.append(op)
                continue
            forward = gen.Op('F', fc=op.fc, fm=op.fm, dur=cost['F'])
            backward = gen.Op('B', bc=op.bc, bm=op.bm, dur=cost['B'])
            for half, ours in ((forward, [op.makes[0]]), (backward, [op.makes[1]])):
                half.makes = ours
                # A forward needs a forward; the last stage's first backward needs one too.
                half.needs = [n for n in op.needs if (n[0] == 'F' and (half is forward) != (n[3] == op.bm and n[2] == op.bc)) or (n[0] == 'B' and half is backward)]
            out += [forward, backward]
        plan.append(out)
    return plan


def message(op, m, a):
    if op.kind == 'F':
        return str({'name': 'forward_step_no_model_graph', 'current_microbatch': op.label(m)[0]})
    return str({'name': 'WeightGradStore.pop' if op.kind == 'w' else 'backward_step'})


gen.dualpipev, gen.message = apart, message
sys.argv[1:] += ['--schedule', 'dualpipev']
gen.main()
