#!/usr/bin/env python3
"""Torch profiles in the form of Nsight Systems, for tools that read nothing else: nsys_form.py TRACES OUT.sqlite

Has what a capture with NVTX of operators would: each rank a process with its device, ranges of steps, operators and Python functions, calls of
the runtime, kernels, copies, and waiting for the device. Only names and tables that the exports of 2024 and later have."""
import gzip
import json
import pathlib
import sqlite3
import sys

DEVICE = 'start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,greenContextId INTEGER,streamId INTEGER,correlationId INTEGER,globalPid INTEGER'
TABLES = {
    'StringIds': 'id INTEGER NOT NULL PRIMARY KEY,value TEXT NOT NULL',
    'META_DATA_EXPORT': 'name TEXT,value TEXT',
    'TARGET_INFO_SESSION_START_TIME': 'utcEpochNs INTEGER,utcTime TEXT,localTime TEXT,systemClockNs INTEGER',
    'TARGET_INFO_SYSTEM_ENV': 'globalVid INTEGER,devStateName TEXT,name TEXT,nameEnum INTEGER,value TEXT',
    'TARGET_INFO_GPU': 'vmId INTEGER,id INTEGER,name TEXT,busLocation TEXT,smCount INTEGER,memoryBandwidth INTEGER,totalMemory INTEGER,computeMajor INTEGER,computeMinor INTEGER,chipName TEXT',
    'TARGET_INFO_CUDA_DEVICE': 'gpuId INTEGER,cudaId INTEGER,pid INTEGER',
    'PROCESSES': 'globalPid INTEGER,pid INTEGER,name TEXT',
    'ThreadNames': 'nameId INTEGER,priority INTEGER,globalTid INTEGER',
    'CUPTI_ACTIVITY_KIND_RUNTIME': 'start INTEGER,end INTEGER,eventClass INTEGER,globalTid INTEGER,correlationId INTEGER,nameId INTEGER,returnValue INTEGER,callchainId INTEGER',
    'CUPTI_ACTIVITY_KIND_KERNEL': DEVICE + ',demangledName INTEGER,shortName INTEGER,registersPerThread INTEGER,gridX INTEGER,gridY INTEGER,gridZ INTEGER,'
                                           'blockX INTEGER,blockY INTEGER,blockZ INTEGER,staticSharedMemory INTEGER,dynamicSharedMemory INTEGER',
    'CUPTI_ACTIVITY_KIND_MEMCPY': DEVICE + ',bytes INTEGER,copyKind INTEGER,srcKind INTEGER,dstKind INTEGER',
    'CUPTI_ACTIVITY_KIND_SYNCHRONIZATION': DEVICE + ',syncType INTEGER,eventId INTEGER,eventSyncId INTEGER',
    'NVTX_EVENTS': 'start INTEGER,end INTEGER,eventType INTEGER,rangeId INTEGER,category INTEGER,color INTEGER,text TEXT,globalTid INTEGER,endGlobalTid INTEGER,'
                   'textId INTEGER,domainId INTEGER,binaryData TEXT',
}
COPIES = {'HtoD': (1, 1, 2), 'DtoH': (2, 2, 1), 'DtoD': (8, 2, 2)}  # copyKind, srcKind, dstKind
PAGEABLE = 0  # of srcKind and dstKind


def traces(folder):
    """[(rank, events)] of the profiles in a folder."""
    found = []
    for path in sorted(pathlib.Path(folder).iterdir()):
        content = json.loads((gzip.open(path, 'rt') if path.suffix == '.gz' else path.open()).read())
        found.append((content.get('distributedInfo', {}).get('rank', len(found)), [event for event in content['traceEvents'] if event.get('ph') == 'X']))
    return found


def write(folder, to):
    db = sqlite3.connect(to)
    names = {}

    def row(table, *values):
        db.execute(f'INSERT INTO {table} VALUES ({",".join("?" * len(values))})', values)

    def name_id(text):
        if text not in names:
            names[text] = len(names) + 1
            row('StringIds', names[text], text)
        return names[text]
    for table, columns in TABLES.items():
        db.execute(f'CREATE TABLE {table} ({columns})')
    row('META_DATA_EXPORT', 'EXPORT_PRODUCT_VERSION', '2026.2.1.210')
    row('TARGET_INFO_SESSION_START_TIME', 1_700_000_000_000_000_000, '', '', 0)
    for rank, events in traces(folder):
        process = 1 << 48 | (4000 + rank) << 24
        row('PROCESSES', process, 4000 + rank, 'python3')
        row('TARGET_INFO_GPU', 0, rank, 'NVIDIA A100-SXM4-80GB', '', 108, 2_039_000_000_000, 85_899_345_920, 8, 0, 'GA100')
        row('TARGET_INFO_CUDA_DEVICE', rank, rank, 4000 + rank)
        for event in events:
            begin, end = round(event['ts'] * 1000), round((event['ts'] + event['dur']) * 1000)
            args, kind = event.get('args', {}), event['cat']
            thread = process | (4000 + rank if event.get('tid') == 100 else int(event['tid']) & 0xffffff)
            device = (begin, end, rank, 1, None, args.get('stream', 0), args.get('correlation', 0), process)
            if kind in ('user_annotation', 'cpu_op', 'python_function'):
                row('NVTX_EVENTS', begin, end, 59, None, None, None, event['name'], thread, None, None, 0, None)
            elif kind in ('cuda_runtime', 'cuda_driver'):
                row('CUPTI_ACTIVITY_KIND_RUNTIME', begin, end, 0, thread, args.get('correlation', 0), name_id(event['name']), 0, None)
                if 'Synchronize' in event['name']:
                    row('CUPTI_ACTIVITY_KIND_SYNCHRONIZATION', begin, end, rank, 1, None, 7, args.get('correlation', 0), process, 3, None, None)
            elif kind == 'kernel':
                row('CUPTI_ACTIVITY_KIND_KERNEL', *device, name_id(event['name']), name_id(event['name'].split('(')[0]), 32, 108, 1, 1, 256, 1, 1, 0, 0)
            elif kind == 'gpu_memcpy':
                copy_kind, source, target = next((value for word, value in COPIES.items() if word in event['name']), COPIES['DtoD'])
                if 'Pageable' in event['name']:
                    source, target = (PAGEABLE, target) if copy_kind == 1 else (source, PAGEABLE)
                row('CUPTI_ACTIVITY_KIND_MEMCPY', *device, args.get('bytes', 0), copy_kind, source, target)
    db.commit()
    db.close()


if __name__ == '__main__':
    write(sys.argv[1], sys.argv[2])
