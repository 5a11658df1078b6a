#!/usr/bin/env python3
"""SQLite exports of Nsight Systems as `nsys export --type sqlite` lays them out, small and with planted facts.

    nsys.py [--ranks 2] [--steps 3] [--old] [--no-blobs] [--graphs] -o FILE

Every rank is a process of one report. Per step it has a range "iteration N" with a torch operator, two launches, a copy
and an all-reduce whose NCCL call carries a payload. Launch numbers collide between processes, as real ones do. --old
has the columns of 2021.
"""
import argparse
import pathlib
import sqlite3
import struct

KERNEL = 'start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,{green}streamId INTEGER,correlationId INTEGER,globalPid INTEGER,'
GREEN = 'greenContextId INTEGER,'


def make(path, ranks=2, steps=3, old=False, blobs=True, graphs=False, lost=False, normalized=False, metrics=False, modules=False):
    path = pathlib.Path(path)
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    run = db.execute
    head = KERNEL.format(green='' if old else GREEN)
    run('CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY,value TEXT NOT NULL)')
    run('CREATE TABLE META_DATA_EXPORT (name TEXT,value TEXT)')
    run('CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER,utcTime TEXT,localTime TEXT' + (')' if old else ',systemClockNs INTEGER)'))
    run('CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER,devStateName TEXT,name TEXT,nameEnum INTEGER,value TEXT)')
    run('CREATE TABLE TARGET_INFO_GPU (vmId INTEGER,id INTEGER,name TEXT)')
    run('CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER,cudaId INTEGER,pid INTEGER)')
    run('CREATE TABLE PROCESSES (globalPid INTEGER,pid INTEGER,name TEXT)')
    run('CREATE TABLE ThreadNames (nameId INTEGER,priority INTEGER,globalTid INTEGER)')
    run('CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER,end INTEGER,eventClass INTEGER,globalTid INTEGER,correlationId INTEGER,nameId INTEGER,'
        'returnValue INTEGER,callchainId INTEGER)')
    run(f'CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({head}demangledName INTEGER,shortName INTEGER,registersPerThread INTEGER,gridX INTEGER,gridY INTEGER,'
        'gridZ INTEGER,blockX INTEGER,blockY INTEGER,blockZ INTEGER,staticSharedMemory INTEGER,dynamicSharedMemory INTEGER)')
    run(f'CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY ({head}bytes INTEGER,copyKind INTEGER,srcKind INTEGER,dstKind INTEGER)')
    run(f'CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION ({head}{"deprecatedSyncType" if old else "syncType"} INTEGER,eventId INTEGER,eventSyncId INTEGER)')
    run('CREATE TABLE NVTX_EVENTS (start INTEGER,end INTEGER,eventType INTEGER,rangeId INTEGER,category INTEGER,color INTEGER,text TEXT,globalTid INTEGER,'
        'endGlobalTid INTEGER,textId INTEGER,domainId INTEGER,binaryData TEXT)')
    run('CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER,schemaId INTEGER,idx INTEGER,flags INTEGER,type INTEGER,name TEXT,offset INTEGER)')
    run('CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER,timestampType INTEGER,source INTEGER,severity INTEGER,text TEXT,globalPid INTEGER)')
    if graphs:
        run(f'CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE ({head}graphId INTEGER,graphExecId INTEGER)')
    if metrics:
        run('CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER,sourceId INTEGER,typeName TEXT,metricId INTEGER,metricName TEXT)')
        run('CREATE TABLE GPU_METRICS (timestamp INTEGER,typeId INTEGER,metricId INTEGER,value INTEGER)')
        for gpu in range(ranks + 1):  # one GPU more than ranks work on
            kind = 0x1230000 | gpu
            for metric, name in ((1, 'SM Active'), (2, 'DRAM Read Throughput [Throughput %]')):
                run('INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?,0,?,?,?)', (kind, 'GPU', metric, name))
                for k in range(4):
                    run('INSERT INTO GPU_METRICS VALUES (?,?,?,?)', ((1_795_382_776_000_000_000 if normalized else 0) + 1_000_000 * (k + 1), kind, metric, 10 * gpu + metric + k))
        run('INSERT INTO GPU_METRICS VALUES (5,7,9,1)')  # nothing says what this is
    texts = {}

    def text(value):
        if value not in texts:
            texts[value] = 100 + 3 * len(texts)
            run('INSERT INTO StringIds VALUES (?,?)', (texts[value], value))
        return texts[value]
    begin = 1_795_382_776_000_000_000
    base = begin if normalized else 0
    run('INSERT INTO META_DATA_EXPORT VALUES (?,?)', ('EXPORT_PRODUCT_VERSION', '2021.5.1' if old else '2026.2.1.210'))
    run(f'INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?,?,?{"" if old else ",?"})', (begin, '', '') + (() if old else (5_000_000_000,)))
    run("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0,'Local','Hostname',1,'host0')")
    for schema, fields in ((16777218, ('NCCL communicator ID', 'No. of ranks', 'Rank', 'CUDA device')), (16777223, ('NCCL communicator ID', 'Message size [bytes]'))):
        for _ in range(2):  # once per process
            for i, name in enumerate(fields):
                run('INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1,?,?,0,?,?,?)', (schema, i, 18 if i == 0 or 'size' in name else 5, name, None if i == 0 else (8 if i == 1 else 8 + 4 * (i - 1))))
    if lost:
        run("INSERT INTO DIAGNOSTIC_EVENT VALUES (0,1,1,2,'12 CUDA events were lost',0)")
    green = () if old else (None,)

    def device(table, start, end, dev, stream, number, pid, *rest):
        values = (base + start, base + end, dev, 1, *green, stream, number, pid, *rest)
        run(f'INSERT INTO CUPTI_ACTIVITY_KIND_{table} VALUES ({",".join("?" * len(values))})', values)

    def nvtx(start, end, what, tid, domain=0, blob=None, by_id=False, kind=59):
        run('INSERT INTO NVTX_EVENTS VALUES (?,?,?,NULL,NULL,NULL,?,?,NULL,?,?,?)',
            (base + start, None if end is None else base + end, kind, None if by_id else what, tid, text(what) if by_id else None, domain, blob))

    def payload(schema, body):
        return struct.pack('<QQQQ', 1, schema, len(body), 32 + len(body)) + body if blobs else None
    nvtx(0, None, 'NCCL', 1 << 24, 1, kind=75)
    for rank in range(ranks):
        pid = 4000 + 7 * rank
        global_pid = 1 << 48 | pid << 24
        tid = global_pid | pid
        run('INSERT INTO PROCESSES VALUES (?,?,?)', (global_pid, pid, 'python3'))
        run('INSERT INTO ThreadNames VALUES (?,20,?)', (text('main'), tid))
        run('INSERT INTO TARGET_INFO_GPU VALUES (0,?,?)', (rank, 'NVIDIA H100'))
        run('INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?,?,?)', (rank, rank, pid))
        nvtx(500, 900, 'ncclCommInitRank', tid, 1, payload(16777218, struct.pack('<Qiii', 77, ranks, ranks - 1 - rank, rank)), by_id=True)
        for step in range(steps):
            at = 1_000_000 * (step + 1)
            nvtx(at, at + 900_000, f'iteration {step + 5}', tid)
            if modules:
                nvtx(at + 5_000, at + 95_000, 'Net', tid)
                nvtx(at + 7_000, at + 93_000, 'Linear', tid)
            nvtx(at + 10_000, at + 90_000, f'aten::mm, seq = {step}, op_id = {step}, sizes = [[8, 8], [8, 8]]', tid)
            calls = ((20_000, 'cudaLaunchKernel_v7000', 0), (50_000, 'cuLaunchKernelEx', 1), (120_000, 'cudaMemcpyAsync_v3020_ptsz', 0), (210_000, 'cudaLaunchKernelExC_v11060', 0))
            for k, (offset, name, of_driver) in enumerate(calls):
                run('INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,0,NULL)', (base + at + offset, base + at + offset + 5_000, of_driver, tid, 10 * step + k, text(name)))
            shape = (32, 4, 1, 1, 128, 1, 1, 0, 1024)
            slow = 2 if rank == 1 else 1
            device('KERNEL', at + 60_000, at + 60_000 + 100_000 * slow, rank, 7, 10 * step, global_pid, text('void gemm<float>(float*)'), text('gemm'), *shape)
            device('KERNEL', at + 270_000, at + 300_000, rank, 7, 10 * step + 1, global_pid, text('relu'), text('relu'), *shape)
            device('MEMCPY', at + 130_000, at + 150_000, rank, 9, 10 * step + 2, global_pid, 40_000, 1, 1, 2)
            nvtx(at + 200_000, at + 220_000, 'ncclAllReduce', tid, 1, payload(16777223, struct.pack('<QQ', 77, 4096)), by_id=True)
            device('KERNEL', at + 310_000, at + 500_000, rank, 13, 10 * step + 3, global_pid, text('ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)'), text('nccl'), *shape)
            device('SYNCHRONIZATION', at + 510_000, at + 520_000, rank, 7, 10 * step + 4, global_pid, 3, None, None)
            if graphs:
                device('GRAPH_TRACE', at + 600_000, at + 700_000, rank, 7, 10 * step + 5, global_pid, 3, 4)
        nvtx(9_000_000, None, 'never closed', tid)
    # This is a launcher without a device.
    nvtx(100, 200, 'launcher', 1 << 48 | 3000 << 24 | 3000)
    db.commit()
    db.close()
    return path


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--steps', type=int, default=3)
    for flag in ('--old', '--no-blobs', '--graphs'):
        parser.add_argument(flag, action='store_true')
    parser.add_argument('-o', dest='path', required=True)
    o = parser.parse_args()
    make(o.path, o.ranks, o.steps, o.old, not o.no_blobs, o.graphs)
