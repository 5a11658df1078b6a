#!/usr/bin/env python3
"""A profile and the execution trace of the same steps, as torch.profiler.ExecutionTraceObserver writes it, small and with planted facts.

    execution_trace.py [--old] -o FOLDER

Two operators nested and one after them, a launch and its kernel, four tensors. --old has the flat fields of schema 1.0.1.
"""
import argparse
import json
import pathlib


def profile(record='Record function id'):
    """`record`: what the profile calls the record ids; "External id" in older ones."""
    events = [('aten::linear', 0, 100, 5), ('aten::addmm', 10, 60, 6), ('aten::relu', 200, 30, 7)]
    out = [{'ph': 'X', 'cat': 'cpu_op', 'name': name, 'pid': 1, 'tid': 1, 'ts': 1000 + start, 'dur': dur,
            'args': {'External id': number} if record == 'External id' else {'External id': number + 900, record: number}} for name, start, dur, number in events]
    out.append({'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'pid': 1, 'tid': 1, 'ts': 1020, 'dur': 5, 'args': {'correlation': 77}})
    out.append({'ph': 'X', 'cat': 'kernel', 'name': 'gemm', 'pid': 0, 'tid': 7, 'ts': 1030, 'dur': 40, 'args': {'correlation': 77, 'stream': 7, 'device': 0}})
    return {'schemaVersion': 1, 'traceEvents': out}


def execution(old=False):
    def node(number, name, parent, record, inputs, outputs):
        if old:
            return {'id': number, 'name': name, 'parent': parent, 'rf_id': record, 'inputs': inputs, 'outputs': outputs, 'op_schema': name + '()'}
        return {'id': number, 'name': name, 'ctrl_deps': parent, 'inputs': {'values': inputs, 'shapes': [], 'types': []}, 'outputs': {'values': outputs, 'shapes': [], 'types': []},
                'attrs': [{'name': 'rf_id', 'type': 'uint64', 'value': record}, {'name': 'op_schema', 'type': 'string', 'value': name + '()'}]}
    x, w, y, z = [1, 10, 0, 64, 4, 'cuda:0'], [2, 11, 0, 32, 4, 'cuda:0'], [3, 12, 0, 128, 4, 'cuda:0'], [4, 13, 0, 128, 2, 'cuda:0']
    nodes = [node(2, '[pytorch|profiler|execution_trace|thread]', 1, 0, [], []), node(4, 'aten::addmm', 3, 6, [x, w, 1], [y]),
             node(3, 'aten::linear', 2, 5, [x, w], [y]), node(5, 'aten::relu', 2, 7, [[y, 'note']], [z])]
    return {'schema': '1.0.1' if old else '1.1.1-chakra.0.0.4', 'pid': 1, 'nodes': nodes, 'finish_ts': 5}


def write(folder, old=False):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'rank0.json').write_text(json.dumps(profile()))
    (folder / 'et_rank0.json').write_text(json.dumps(execution(old)))


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--old', action='store_true')
    parser.add_argument('-o', '--output', required=True)
    args = parser.parse_args()
    write(args.output, args.old)
