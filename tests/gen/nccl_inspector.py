#!/usr/bin/env python3
"""Writes logs of NCCL Inspector: a line of JSON for each recorded call, one file a process.

    nccl_inspector.py [--steps 3] [--late RANK] [--plain] [--hosts 1] -o FOLDER

Four ranks: tensor-parallel pairs 0-1 and 2-3, data-parallel pairs 0-2 and 1-3, and all together. In a step each pair of the first kind
reduces and scatters, each of the second gathers, rank 0 sends to 2 and 1 to 3, and all reduce. A late rank comes 800 µs after the others.
"""
import argparse
import json
import pathlib

EPOCH_US = 1_795_785_233_000_000
GROUPS = [('0x5f3a6b2c91e4d7', 'default_pg', [0, 1, 2, 3]), ('0x71c4a2e9035d1b', 'tp', [0, 1]), ('0x72d7a2e9035d1b', 'tp', [2, 3]), ('0x82d97f10ac3e44', 'dp', [0, 2]),
          ('0x84f07f10ac3e44', 'dp', [1, 3]), ('0x13aa5e20bb6f77', 'unknown', [0, 2]), ('0x16c35e20bb6f77', 'unknown', [1, 3])]
PLAN = [(1, 'AllReduce', 8 << 20, 400), (2, 'AllReduce', 8 << 20, 400), (1, 'ReduceScatter', 8 << 20, 420), (2, 'ReduceScatter', 8 << 20, 420), (3, 'AllGather', 32 << 20, 1300),
        (4, 'AllGather', 32 << 20, 1300), (5, 'Send', 4 << 20, 300), (6, 'Send', 4 << 20, 300), (0, 'AllReduce', 1 << 16, 200)]


def calls(steps=3, late=None, late_us=800):
    """Returns calls as (rank, group, operation, number, bytes, start µs, µs), in order of time for each rank."""
    out, numbers, at = [], {}, [EPOCH_US + 1000] * 4
    for step in range(steps):
        for group, operation, size, took in PLAN:
            members = GROUPS[group][2]
            began = {rank: at[rank] + (late_us if rank == late else 0) + 7 * rank for rank in members}
            end = max(began.values()) + took
            number = numbers[group, operation] = numbers.get((group, operation), 0) + 1  # of messages from 1, else from 0
            for rank in members:
                name = operation if operation != 'Send' else 'Send' if rank == members[0] else 'Recv'
                out.append((rank, group, name, number - (operation != 'Send'), size, began[rank], end - began[rank]))
                at[rank] = end + 150
    return out


def line(call, plain, hosts):
    rank, group, name, number, size, start, took = call
    id_, label, members = GROUPS[group]
    own, peer = members.index(rank), 1 - members.index(rank) if len(members) == 2 else 0
    message = name in ('Send', 'Recv')
    rate = size / took / 1000 if took else float('nan')
    key = 'p2p' if message else 'coll'
    perf = {key: name, f'{key}_sn': number, **({'p2p_peer': peer} if message else {}), f'{key}_msg_size_bytes': size, f'{key}_exec_time_us': took,
            f'{key}_timing_source': 'kernel_gpu', f'{key}_algobw_gbs': rate, f'{key}_busbw_gbs': rate}
    if not plain:
        channels = [{'channel_id': k, 'kernel_start_ts': start + k, 'kernel_stop_ts': start + took - (3 if k else 0), 'kernel_record_ts': start + took} for k in range(2)]
        perf |= {'event_trace_sn': {f'{key}_start_sn': 1}, 'event_trace_ts': {f'{key}_start_ts': start - 20, f'{key}_stop_ts': start - 18, 'kernel_events': channels}}
    return json.dumps({'header': {'id': id_, 'comm_name': label, 'rank': own, 'n_ranks': len(members), 'nnodes': 1},
                       'metadata': {'inspector_output_format_version': 'v4.0', 'git_rev': '', 'rec_mechanism': 'nccl_profiler_interface',
                                    'dump_timestamp_us': (start + took) // 500 * 500 + 500, 'hostname': f'node-{rank * hosts // 4}', 'pid': 4000 + rank * 7 % 5},
                       f'{key}_perf': perf}, separators=(',', ':')).replace('NaN', 'nan')


def write(folder, steps=3, late=None, plain=False, hosts=1, ranks=range(4)):
    """Writes the logs and returns their calls. Numbers of processes are not in the order of ranks."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made = calls(steps, late)
    for rank in ranks:
        lines = [line(call, plain, hosts) for call in made if call[0] == rank]
        (folder / f'node-{rank * hosts // 4}-pid{4000 + rank * 7 % 5}.log').write_text('\n'.join(lines) + '\n')
    return [call for call in made if call[0] in ranks]


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--late', type=int)
    parser.add_argument('--plain', action='store_true')
    parser.add_argument('--hosts', type=int, default=1)
    parser.add_argument('-o', '--output', required=True)
    args = vars(parser.parse_args())
    print(len(write(args.pop('output'), **args)), 'calls')
