#!/usr/bin/env python3
"""Records of AMD's profilers, small and with planted facts, after the published schema of rocprofiler-sdk (MIT) and of
rocmProfileData. They are databases, and rocprofv3's output for the same run as JSON and as tables (make_json,
make_csv).

    rocpd.py [--pid 4242] [--rank 1] [--rpd | --json | --csv] [--no-suffix] -o FILE (--csv: FOLDER)

Per step: hipLaunchKernel and a kernel, hipMemcpyAsync and a copy, a roctx range that says a micro-batch, an
ncclAllReduce with its arguments and kernel. The environment contains a secret besides RANK: no output may have it.
"""
import argparse
import json
import pathlib
import sqlite3

SECRET = 'hunter2-secret-token'
BOOT = 1_234_000_000_000  # nanoseconds since the machine began


def make(path, pid=4242, rank=None, steps=2, suffix='_0199aaaa_bbbb', host='node0', environment=True, drop=()):
    path = pathlib.Path(path)
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.execute('PRAGMA page_size = 512')
    tables = {
        'string': 'id INTEGER PRIMARY KEY, guid TEXT, string TEXT',
        'metadata': 'id INTEGER PRIMARY KEY, tag TEXT, value TEXT',
        'info_node': 'id INTEGER PRIMARY KEY, guid TEXT, hash INT, machine_id TEXT, system_name TEXT, hostname TEXT',
        'info_process': 'id INTEGER PRIMARY KEY, guid TEXT, nid INT, ppid INT, pid INT, start INT, end INT, command TEXT, environment TEXT, extdata TEXT',
        'info_thread': 'id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, tid INT, name TEXT',
        'info_agent': 'id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, type TEXT, absolute_index INT, logical_index INT, type_index INT, name TEXT, product_name TEXT',
        'info_kernel_symbol': 'id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, kernel_name TEXT, display_name TEXT, arch_vgpr_count INT',
        'info_pmc': 'id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, agent_id INT, name TEXT',
        'event': 'id INTEGER PRIMARY KEY, guid TEXT, category_id INT, stack_id INT, parent_stack_id INT, correlation_id INT, call_stack TEXT, line_info TEXT, extdata TEXT',
        'arg': 'id INTEGER PRIMARY KEY, guid TEXT, event_id INT, position INT, type TEXT, name TEXT, value TEXT',
        'region': 'id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, tid INT, start INT, end INT, name_id INT, event_id INT, extdata TEXT',
        'sample': 'id INTEGER PRIMARY KEY, guid TEXT, track_id INT, timestamp INT, event_id INT',
        'pmc_event': 'id INTEGER PRIMARY KEY, guid TEXT, event_id INT, pmc_id INT, value REAL',
        'kernel_dispatch': 'id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, tid INT, agent_id INT, kernel_id INT, dispatch_id INT, queue_id INT, stream_id INT, start INT, end INT, '
                           'private_segment_size INT, group_segment_size INT, workgroup_size_x INT, workgroup_size_y INT, workgroup_size_z INT, grid_size_x INT, grid_size_y INT, grid_size_z INT, region_name_id INT, event_id INT',
        'memory_copy': 'id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, tid INT, start INT, end INT, name_id INT, dst_agent_id INT, src_agent_id INT, size INT, queue_id INT, stream_id INT, region_name_id INT, event_id INT',
        'memory_allocate': 'id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, tid INT, agent_id INT, type TEXT, level TEXT, start INT, end INT, address INT, size INT, event_id INT',
    }
    for name, columns in tables.items():
        if name in drop:
            continue
        db.execute(f'CREATE TABLE "rocpd_{name}{suffix}" ({columns})')
    guid, counts = 'guid0', {}

    def add(table, **values):
        if table in drop:
            return 0
        counts[table] = counts.get(table, 0) + 1
        values = {'id': counts[table], **({} if table == 'metadata' else {'guid': guid}), **values}
        db.execute(f'INSERT INTO "rocpd_{table}{suffix}" ({",".join(values)}) VALUES ({",".join("?" * len(values))})', tuple(values.values()))
        return counts[table]
    texts = {}

    def text(value):
        if value not in texts:
            texts[value] = add('string', string=value)
        return texts[value]
    add('metadata', tag='schema_version', value='3.0.0')
    add('info_node', machine_id='m0', system_name='Linux', hostname=host)
    reported = {'HOME': '/root', 'API_TOKEN': SECRET} | ({} if rank is None else {'RANK': str(rank)})
    process = add('info_process', nid=1, pid=pid, start=BOOT, command='python train.py', environment=json.dumps(reported) if environment else None)
    thread = add('info_thread', nid=1, pid=process, tid=pid + 1, name='python')
    cpu = add('info_agent', nid=1, pid=process, type='CPU', absolute_index=0, type_index=0, name='EPYC')
    gpu = add('info_agent', nid=1, pid=process, type='GPU', absolute_index=1, type_index=0, name='gfx942', product_name='AMD Instinct MI300X')
    kernels = [add('info_kernel_symbol', kernel_name=f'{n}.kd', display_name=n, arch_vgpr_count=64)
               for n in ('Cijk_Ailk_Bljk_gemm', 'ncclDevKernel_Generic_1(ncclDevKernelArgs)')]
    stack = 1 << 40  # beyond 32 bits
    at = BOOT + 1000

    def event(category, message=None, shared=None):
        nonlocal stack
        stack += 1
        return add('event', category_id=text(category), stack_id=shared or stack, extdata=json.dumps({'message': message} if message else {})), shared or stack

    def region(category, name, start, end, message=None, shared=None):
        e, s = event(category, message, shared)
        add('region', nid=1, pid=process, tid=thread, start=start, end=end, name_id=text(name), event_id=e)
        return e, s
    for step in range(steps):
        region('MARKER_CORE_RANGE_API', 'roctxRangePushA', at, at + 9000, f'forward_step mb={step}')
        for k, kernel in enumerate(kernels):
            begin = at + 100 + 3000 * k
            if k == 1:
                call, _ = region('RCCL_API', 'ncclAllReduce', begin - 50, begin + 600)
                for position, (name, value) in enumerate((('count', '1024'), ('datatype', 'ncclBfloat16'), ('op', 'ncclSum'), ('comm', '0x55aa'))):
                    add('arg', event_id=call, position=position, type='text', name=name, value=value)
            _, s = region('HIP_RUNTIME_API_EXT', 'hipLaunchKernel', begin, begin + 500)
            e, _ = event('KERNEL_DISPATCH', shared=s)
            add('kernel_dispatch', nid=1, pid=process, tid=thread, agent_id=gpu, kernel_id=kernel, dispatch_id=step, queue_id=1, stream_id=3, start=begin + 700, end=begin + 2700,
                group_segment_size=4096, workgroup_size_x=256, workgroup_size_y=1, workgroup_size_z=1, grid_size_x=1000, grid_size_y=2, grid_size_z=1, event_id=e)
        _, s = region('HIP_RUNTIME_API_EXT', 'hipMemcpyAsync', at + 6500, at + 6700)
        e, _ = event('MEMORY_COPY', shared=s)
        add('memory_copy', nid=1, pid=process, tid=thread, start=at + 7000, end=at + 8000, name_id=text('MEMORY_COPY_HOST_TO_DEVICE'), dst_agent_id=gpu, src_agent_id=cpu, size=8192, stream_id=3, event_id=e)
        add('memory_allocate', nid=1, pid=process, tid=thread, agent_id=gpu, type='ALLOC', level='REAL', start=at + 10, end=at + 20, address=0x7000 + step, size=65536)
        at += 10_000
    add('memory_allocate', nid=1, pid=process, tid=thread, agent_id=gpu, type='FREE', level='REAL', start=at, end=at + 1, address=0x7000, size=0)
    e, _ = event('PMC')
    add('sample', timestamp=BOOT + 2000, event_id=e)
    pmc = add('info_pmc', nid=1, pid=process, agent_id=gpu, name='SQ_WAVES')
    add('pmc_event', event_id=e, pmc_id=pmc, value=17.0)
    db.commit()
    db.close()
    return path


def make_rpd(path, steps=2):
    path = pathlib.Path(path)
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.execute('PRAGMA page_size = 512')
    run = db.execute
    run('CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT)')
    run('CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid INT, tid INT, start INT, end INT, apiName_id INT, args_id INT)')
    run('CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId INT, queueId INT, sequenceId INT, completionSignal TEXT, start INT, end INT, description_id INT, opType_id INT)')
    run('CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id INT, op_id INT)')
    run('CREATE TABLE rocpd_copyapi (api_ptr_id INT, stream TEXT, size INT)')
    texts = {}

    def text(value):
        if value not in texts:
            texts[value] = len(texts) + 1
            run('INSERT INTO rocpd_string VALUES (?,?)', (texts[value], value))
        return texts[value]
    n = 0
    for step in range(steps):
        at = BOOT + 10_000 * step
        for call, kind, what, start, end, size in (('hipLaunchKernel', 'KernelExecution', 'gemm', 700, 2700, None), ('hipMemcpyAsync', 'CopyHostToDevice', '', 3000, 3500, 8192)):
            n += 1
            run('INSERT INTO rocpd_api VALUES (?,?,?,?,?,?,?)', (n, 9, 10, at + start - 600, at + start - 100, text(call), text('')))
            run('INSERT INTO rocpd_op VALUES (?,?,?,?,?,?,?,?,?)', (n, 0, 2, n, '', at + start, at + end, text(what), text(kind)))
            run('INSERT INTO rocpd_api_ops VALUES (?,?,?)', (n, n, n))
            if size:
                run('INSERT INTO rocpd_copyapi VALUES (?,?,?)', (n, '0', size))
        n += 1
        run('INSERT INTO rocpd_api VALUES (?,?,?,?,?,?,?)', (n, 9, 10, at, at + 9000, text('UserMarker'), text('forward_step')))
    db.commit()
    db.close()
    return path


def happenings(steps):
    """Yields the planted rows of make() as (kind, category or name, text, start, end, correlation, further facts)."""
    stack, at = 100, BOOT + 1000
    for step in range(steps):
        yield 'marker', 'MARKER_CORE_RANGE_API', f'forward_step mb={step}', at, at + 9000, stack + 90_000, {}
        for k, kernel in enumerate(('Cijk_Ailk_Bljk_gemm', 'ncclDevKernel_Generic_1(ncclDevKernelArgs, int)')):
            begin = at + 100 + 3000 * k
            if k == 1:
                stack += 1
                yield 'rccl', 'RCCL_API', 'ncclAllReduce', begin - 50, begin + 600, stack, {}
            stack += 1
            yield 'hip', 'HIP_RUNTIME_API_EXT', 'hipLaunchKernel', begin, begin + 500, stack, {}
            yield 'kernel', 'KERNEL_DISPATCH', kernel, begin + 700, begin + 2700, stack, {'kernel_id': 7 + k}
        stack += 1
        yield 'hip', 'HIP_RUNTIME_API_EXT', 'hipMemcpyAsync', at + 6500, at + 6700, stack, {}
        yield 'copy', 'MEMORY_COPY', 'MEMORY_COPY_HOST_TO_DEVICE', at + 7000, at + 8000, stack, {}
        yield 'allocation', 'MEMORY_ALLOCATION', 'MEMORY_ALLOCATION_ALLOCATE', at + 10, at + 20, stack + 50_000, {'address': 0x7000 + step, 'bytes': 65536}
        at += 10_000
    yield 'allocation', 'MEMORY_ALLOCATION', 'MEMORY_ALLOCATION_FREE', at, at + 1, stack + 60_000, {'address': 0x7000, 'bytes': 0}


def make_json(path, pid=4242, steps=2, host='node0'):
    """PID_results.json of rocprofv3 --output-format json."""
    rows = list(happenings(steps))
    kinds, agent = {}, {'handle': 0x5555_0001}

    def place(category, operation):
        names = kinds.setdefault(category, [])
        if operation not in names:
            names.append(operation)
        return list(kinds).index(category), names.index(operation)

    lists, messages = {'kernel_dispatch': [], 'hip_api': [], 'marker_api': [], 'rccl_api': [], 'memory_copy': [], 'memory_allocation': []}, []
    for what, category, name, start, end, stack, more in rows:
        kind, operation = place(category, {'marker': 'roctxThreadRangeA', 'kernel': 'KERNEL_DISPATCH_COMPLETE'}.get(what, name))
        record = {'size': 64, 'kind': kind, 'operation': operation, 'thread_id': pid + 1, 'correlation_id': {'internal': stack, 'external': 0, 'ancestor': 0}, 'start_timestamp': start, 'end_timestamp': end}
        if what == 'marker':
            messages.append({'key': stack, 'value': name})
        if what == 'kernel':
            record['dispatch_info'] = {'size': 64, 'agent_id': agent, 'queue_id': {'handle': 1}, 'kernel_id': more['kernel_id'], 'dispatch_id': 1, 'private_segment_size': 0, 'group_segment_size': 4096,
                                       'workgroup_size': {'x': 256, 'y': 1, 'z': 1}, 'grid_size': {'x': 1000, 'y': 2, 'z': 1}}
            record['stream_id'] = {'handle': 3}
        if what == 'copy':
            record |= {'dst_agent_id': agent, 'src_agent_id': {'handle': 1}, 'bytes': 8192, 'stream_id': {'handle': 3}}
        if what == 'allocation':
            record |= {'agent_id': agent, 'address': f'0x{more["address"]:016x}', 'allocation_size': more['bytes']}
        lists[{'kernel': 'kernel_dispatch', 'copy': 'memory_copy', 'allocation': 'memory_allocation'}.get(what, what + '_api')].append(record)
    symbols = [{'size': 64, 'kernel_id': 7 + k, 'kernel_name': f'_Z{k}.kd', 'formatted_kernel_name': name, 'arch_vgpr_count': 64}
               for k, name in enumerate(('Cijk_Ailk_Bljk_gemm', 'ncclDevKernel_Generic_1(ncclDevKernelArgs, int)'))]
    tool = {'metadata': {'node': {'hostname': host}, 'pid': pid, 'init_time': BOOT, 'fini_time': BOOT + 1, 'command': ['python'], 'config': {'env': SECRET}},
            'agents': [{'id': {'handle': 1}, 'type': 1, 'name': 'EPYC', 'node_id': 0, 'logical_node_type_id': 0},
                       {'id': agent, 'type': 2, 'name': 'gfx942', 'product_name': 'AMD Instinct MI300X', 'node_id': 1, 'logical_node_type_id': 0}],
            'counters': [{'name': 'not looked at', 'description': 'brackets ]} and "quotes"'}],
            'strings': {'callback_records': [], 'buffer_records': [{'kind': k, 'operations': v} for k, v in kinds.items()], 'marker_api': messages},
            'code_objects': [], 'kernel_symbols': symbols, 'host_functions': [], 'callback_records': {'counter_collection': []}, 'buffer_records': lists}
    path = pathlib.Path(path)
    path.write_text(json.dumps({'rocprofiler-sdk-tool': [tool]}, indent=1))
    return path


def make_csv(folder, pid=4242, steps=2, sums=True):
    """Writes PID_….csv of rocprofv3 --output-format csv: one table for each kind of record, and `sums` of one kind,
    which no reader uses."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    quoted = lambda values: ','.join(f'"{v}"' if isinstance(v, str) else str(v) for v in values) + '\n'
    calls = ('Domain', 'Function', 'Process_Id', 'Thread_Id', 'Correlation_Id', 'Start_Timestamp', 'End_Timestamp')
    heads = {'agent_info': ('Node_Id', 'Logical_Node_Id', 'Agent_Type', 'Name', 'Vendor_Name', 'Product_Name'), 'hip_api_trace': calls, 'marker_api_trace': calls, 'rccl_api_trace': calls,
             'kernel_trace': ('Kind', 'Agent_Id', 'Queue_Id', 'Stream_Id', 'Thread_Id', 'Dispatch_Id', 'Kernel_Id', 'Kernel_Name', 'Correlation_Id', 'Start_Timestamp', 'End_Timestamp', 'LDS_Block_Size', 'Scratch_Size',
                              'VGPR_Count', 'Accum_VGPR_Count', 'SGPR_Count', 'Workgroup_Size_X', 'Workgroup_Size_Y', 'Workgroup_Size_Z', 'Grid_Size_X', 'Grid_Size_Y', 'Grid_Size_Z'),
             'memory_copy_trace': ('Kind', 'Direction', 'Stream_Id', 'Source_Agent_Id', 'Destination_Agent_Id', 'Correlation_Id', 'Start_Timestamp', 'End_Timestamp'),
             'memory_allocation_trace': ('Kind', 'Operation', 'Agent_Id', 'Allocation_Size', 'Address', 'Correlation_Id', 'Start_Timestamp', 'End_Timestamp'),
             'kernel_stats': ('Name', 'Calls', 'TotalDurationNs')}
    tables = {name: quoted(head) for name, head in heads.items()}
    tables['agent_info'] += quoted((0, 0, 'CPU', 'EPYC', 'AMD', 'EPYC')) + quoted((4, 1, 'GPU', 'gfx942', 'AMD', 'AMD Instinct MI300X'))
    for what, category, name, start, end, stack, more in happenings(steps):
        if what == 'kernel':
            tables['kernel_trace'] += quoted((category, 'Agent 4', 1, 3, pid + 1, 1, more['kernel_id'], name, stack, start, end, 4096, 0, 64, 0, 32, 256, 1, 1, 1000, 2, 1))
        elif what == 'copy':
            tables['memory_copy_trace'] += quoted((category, name, 3, 'Agent 0', 'Agent 4', stack, start, end))
        elif what == 'allocation':
            tables['memory_allocation_trace'] += quoted((category, name, '' if name.endswith('FREE') else 'Agent 4', more['bytes'], f'0x{more["address"]:016x}', stack, start, end))
        else:
            tables[what + '_api_trace'] += quoted((category, name, pid, pid + 1, stack, start, end))
    if not sums:
        del tables['kernel_stats']
    for name, text in tables.items():
        (folder / f'{pid}_{name}.csv').write_text(text)
    return folder


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--pid', type=int, default=4242)
    parser.add_argument('--rank', type=int)
    parser.add_argument('--rpd', action='store_true')
    parser.add_argument('--json', action='store_true')
    parser.add_argument('--csv', action='store_true')
    parser.add_argument('--no-suffix', action='store_true')
    parser.add_argument('-o', '--output', required=True)
    args = parser.parse_args()
    make_rpd(args.output) if args.rpd else make_json(args.output, args.pid) if args.json else make_csv(args.output, args.pid) if args.csv else make(args.output, args.pid, args.rank, suffix='' if args.no_suffix else '_0199aaaa_bbbb')
