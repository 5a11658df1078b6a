#!/usr/bin/env python3
"""Spans of OpenTelemetry (OTLP) as Megatron exports them, and as vLLM does.

    otlp.py [--stages 2] [--replicas 1] [--chunks 1] [--micro-batches 4] [--steps 2] -o FOLDER

Every rank has a file rankN.jsonl. A run is a list of resources, each with its spans; to_json and to_protobuf write them
in the containers that exporters and collectors use. A forward takes 3 ms, a backward 6; `slow` multiplies those of a
rank. Messages take no time.
"""
import argparse
import json
import pathlib
import struct

from protobuf import field, fixed64, varint

EPOCH_NS = 1_793_001_600_000_000_000
FORWARD_NS, BACKWARD_NS = 3_000_000, 6_000_000


def order_of(stage, stages, chunks, micro_batches):
    """(kind, chunk, micro-batch) in the order in which Megatron's schedules run them."""
    forwards = []
    for first in range(0, micro_batches, stages if chunks > 1 else micro_batches):
        group = range(first, min(first + stages, micro_batches) if chunks > 1 else micro_batches)
        forwards += [(chunk, mb) for chunk in range(chunks) for mb in group]
    backwards = [(chunks - 1 - chunk, mb) for chunk, mb in forwards]
    warm = min(len(forwards), 2 * (stages - 1 - stage) + (chunks - 1) * stages if chunks > 1 else stages - 1 - stage)
    out = [('F', *cell) for cell in forwards[:warm]]
    for k in range(len(forwards)):
        out += [('F', *forwards[warm + k])] if warm + k < len(forwards) else []
        out += [('B', *backwards[k])]
    return out


def run(stages=2, replicas=1, chunks=1, micro_batches=4, steps=2, slow=None, first_iteration=100):
    """Resources as (attributes, spans); a span is a dict of name, start, end, id, parent and attributes."""
    world = stages * replicas
    orders = {rank: order_of(rank // replicas, stages, chunks, micro_batches) for rank in range(world)}
    spans = {rank: [] for rank in range(world)}

    def add(rank, name, start, end, parent=None, **attributes):
        number = (rank + 1) << 32 | len(spans[rank]) + 1
        spans[rank].append({'name': name, 'start': start, 'end': end, 'id': number, 'parent': parent, 'attributes': {k.replace('__', '.'): v for k, v in attributes.items()}})
        return number

    at = EPOCH_NS
    for step in range(steps):
        done, free, todo = {}, {rank: at + 200_000 for rank in orders}, {rank: list(order) for rank, order in orders.items()}
        ran = {rank: [] for rank in orders}
        while any(todo.values()):
            for rank, left in todo.items():
                while left:
                    kind, chunk, mb = left[0]
                    place = chunk * stages + rank // replicas
                    needs = ('F', place - 1) if kind == 'F' else ('B', place + 1)
                    if kind == 'B' and place == stages * chunks - 1:
                        needs = ('F', place)
                    key = (*needs, mb, rank % replicas)
                    if needs[1] >= 0 and key not in done:
                        break
                    start = max(free[rank], done.get(key, 0)) + 10_000
                    end = start + int((FORWARD_NS if kind == 'F' else BACKWARD_NS) / chunks * (slow or {}).get(rank, 1))
                    done[(kind, place, mb, rank % replicas)] = free[rank] = end
                    ran[rank].append((kind, start, end))
                    left.pop(0)
        last = max(free.values())
        for rank in orders:
            whole = add(rank, 'megatron.train.iteration', at + 100_000, last + 2_300_000, is_goodput_span=True, megatron__iteration=first_iteration + step)
            inside = add(rank, 'megatron.train.iteration.forward_backward', at + 150_000, free[rank] + 50_000, whole, num_microbatches=micro_batches)
            for kind, start, end in ran[rank]:
                if kind == 'F' and rank >= replicas:
                    add(rank, 'megatron.p2p.recv_forward', start - 9_000, start - 1_000, inside)
                add(rank, f'megatron.microbatch.{"forward" if kind == "F" else "backward"}', start, end, inside)
            add(rank, 'megatron.train.iteration.optimizer', last + 200_000, last + 2_200_000, whole)
        at = last + 3_000_000
    resources = []
    for rank in orders:
        attributes = {'service.instance.id': f'run-7-rank{rank}', 'service.name': 'megatron-lm', 'dl.rank': rank, 'dl.world_size': world, 'nemo.run.id': 'run-7',
                      'dl.tensor_parallel.size': 1, 'dl.pipeline_parallel.size': stages, 'dl.data_parallel.size': replicas,
                      'dl.batch_size': micro_batches * replicas, 'megatron.micro_batch_size': 1, 'host.name': 'node-0', 'process.pid': 5000 + rank}
        resources.append((attributes, sorted(spans[rank], key=lambda s: (s['end'], -s['start']))))  # as they end
    return resources


def requests(count=3):
    """Requests as a server of vLLM traces them: one span each, with the latencies of its phases in seconds."""
    spans = []
    for k in range(count):
        start, queue, prefill, decode = EPOCH_NS + 40_000_000 * k, 0.01 * (k + 1), 0.02, 0.5
        spans.append({'name': 'llm_request', 'start': start, 'end': start + int((queue + prefill + decode) * 1e9), 'id': 900 + k, 'trace': 90 + k, 'parent': None,
                      'attributes': {'gen_ai.latency.time_in_queue': queue, 'gen_ai.latency.time_in_model_prefill': prefill,
                                     'gen_ai.latency.time_in_model_decode': decode, 'gen_ai.latency.time_to_first_token': queue + prefill,
                                     'gen_ai.usage.completion_tokens': 50, 'gen_ai.request.id': f'cmpl-{k}'}})
    return [({'service.name': 'vllm', 'service.instance.id': 'c964f28e', 'vllm.process_id': '5100', 'vllm.process_name': 'EngineCore_DP0'}, spans)]


def json_value(value):
    kind = 'boolValue' if isinstance(value, bool) else 'intValue' if isinstance(value, int) else 'doubleValue' if isinstance(value, float) else 'stringValue'
    return {kind: str(value) if kind == 'intValue' else value}


def json_attributes(attributes):
    return {'attributes': [{'key': key, 'value': json_value(value)} for key, value in attributes.items()]} if attributes else {}


def json_span(span):
    out = {'traceId': format(span.get('trace', 7), '032x'), 'spanId': f'{span["id"]:016x}', 'name': span['name'], 'kind': 1}
    if span['parent']:
        out['parentSpanId'] = f'{span["parent"]:016x}'
    return {**out, 'startTimeUnixNano': str(span['start']), 'endTimeUnixNano': str(span['end']), **json_attributes(span['attributes']), 'status': {}}


def document(resources):
    return {'resourceSpans': [{'resource': json_attributes(attributes), 'scopeSpans': [{'scope': {'name': 'test'}, 'spans': [json_span(s) for s in spans]}]}
                              for attributes, spans in resources]}


def to_json(resources, batch=None):
    """JSON lines: one a resource, or one for every `batch` spans of it."""
    lines = [document([(attributes, spans[at:at + (batch or len(spans))])]) for attributes, spans in resources for at in range(0, len(spans), batch or len(spans))]
    return ''.join(json.dumps(line, separators=(',', ':')) + '\n' for line in lines)


def proto_attribute(key, value):
    any_value = field(2, int(value)) if isinstance(value, bool) else field(3, value) if isinstance(value, int) else field(4, value) if isinstance(value, float) else field(1, value)
    return field(1, key) + field(2, any_value)


def proto_span(span):
    return (field(1, struct.pack('>QQ', 0, span.get('trace', 7))) + field(2, struct.pack('>Q', span['id'])) + (field(4, struct.pack('>Q', span['parent'])) if span['parent'] else b'') +
            field(5, span['name']) + field(6, 1) + fixed64(7, [span['start']]) + fixed64(8, [span['end']]) +
            field(9, [proto_attribute(*a) for a in span['attributes'].items()]))


def to_protobuf(resources, framing='bare'):
    """One request a resource: 'bare' in a row, 'len32' after four bytes of length, 'varint' after a varint."""
    out = b''
    for attributes, spans in resources:
        request = field(1, field(1, field(1, [proto_attribute(*a) for a in attributes.items()])) +
                        field(2, field(1, field(1, 'test')) + field(2, [proto_span(s) for s in spans])))
        out += {'bare': b'', 'len32': struct.pack('>I', len(request)), 'varint': varint(len(request))}[framing] + request
    return out


def write(folder, **how):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for rank, resource in enumerate(run(**how)):
        (folder / f'rank{rank}.jsonl').write_text(to_json([resource]))
    return folder


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (('stages', 2), ('replicas', 1), ('chunks', 1), ('micro-batches', 4), ('steps', 2)):
        parser.add_argument(f'--{name}', type=int, default=default)
    parser.add_argument('-o', '--output', required=True)
    args = vars(parser.parse_args())
    print(write(args.pop('output'), **args))
