"""Small Ascend profiler databases: two pipeline ranks, one fault each when asked.

    ascend_db.py OUT [--level none|1] [--ranks N] [--schema 1.0.0|1.2.0] [--mindspore] [--units] [--fault NAME]

Every number is chosen so that tests can count it. Per rank there are 2 steps of 3 forwards and 3 backwards marked with
mstx. At level 1 there are also a kernel, its launch and operator in every range, an all-reduce per step, a send or
receive per forward, a copy, counters and memory. --units adds what the compute units, accelerators and the graph engine
counted, and the profiler's own overlap sums. The generator uses the standard library only. The bytes are the same
at every run.
"""
import argparse
import contextlib
import json
import pathlib
import sqlite3

T0 = 1_700_000_000_000_000_000
US, MS = 1_000, 1_000_000
NONE = 4294967295
PP_GROUP = '10.0.0.1%eth0_60000_0_1700000000000000'
FAULTS = ('no-mstx', 'no-steps', 'nulls', 'reversed', 'negative', 'missing-strings', 'dangling', 'one-connection', 'overlapping-steps',
          'wrong-schema', 'no-schema', 'corrupt', 'corrupt-units', 'empty', 'no-database', 'cut', 'wal', 'journal')

TABLES = {
    'STRING_IDS': 'id INTEGER PRIMARY KEY, value TEXT',
    'META_DATA': 'name TEXT, value TEXT',
    'HOST_INFO': 'hostUid TEXT, hostName TEXT',
    'NPU_INFO': 'id INTEGER, name TEXT',
    'RANK_DEVICE_MAP': 'rankId INTEGER, deviceId INTEGER',
    'STEP_TIME': 'id INTEGER, startNs INTEGER, endNs INTEGER',
    'MSTX_EVENTS': 'startNs INTEGER, endNs INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, message INTEGER, '
                   'globalTid INTEGER, endGlobalTid INTEGER, domainId INTEGER, connectionId INTEGER',
    'TASK': 'startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, '
            'taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER',
    'ENUM_HCCL_DATA_TYPE': 'id INTEGER PRIMARY KEY, name TEXT',
    'ENUM_HCCL_LINK_TYPE': 'id INTEGER PRIMARY KEY, name TEXT',
    'ENUM_HCCL_TRANSPORT_TYPE': 'id INTEGER PRIMARY KEY, name TEXT',
    'ENUM_MEMCPY_OPERATION': 'id INTEGER PRIMARY KEY, name TEXT',
}
LEVEL1 = {
    'COMPUTE_TASK_INFO': {
        '1.0.0': 'name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER, mixBlockDim INTEGER, taskType INTEGER, '
                 'opType INTEGER, inputDataTypes INTEGER, inputShapes INTEGER, outputShapes INTEGER',
        '1.2.0': 'name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockNum INTEGER, mixBlockNum INTEGER, taskType INTEGER, '
                 'opType INTEGER, inputDataTypes INTEGER, inputShapes INTEGER, outputShapes INTEGER, opState INTEGER'},
    'COMMUNICATION_OP': {
        '1.0.0': 'opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, opId INTEGER PRIMARY KEY, '
                 'relay INTEGER, retry INTEGER, dataType INTEGER, algType INTEGER, count NUMERIC, opType INTEGER',
        '1.2.0': 'opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, opId INTEGER PRIMARY KEY, '
                 'relay INTEGER, retry INTEGER, dataType INTEGER, algType INTEGER, count NUMERIC, opType INTEGER, deviceId INTEGER'},
    'COMMUNICATION_TASK_INFO': 'name INTEGER, globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, groupName INTEGER, '
                               'notifyId INTEGER, rdmaType INTEGER, srcRank INTEGER, dstRank INTEGER, transportType INTEGER, '
                               'size INTEGER, dataType INTEGER, linkType INTEGER, opId INTEGER',
    'CANN_API': 'startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER PRIMARY KEY, name INTEGER',
    'PYTORCH_API': 'startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER, sequenceNumber INTEGER, '
                   'fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, callchainId INTEGER, type INTEGER',
    'CONNECTION_IDS': 'id INTEGER, connectionId INTEGER',
    'PYTORCH_CALLCHAINS': 'id INTEGER, stack INTEGER, stackDepth INTEGER',
    'MEMCPY_INFO': 'globalTaskId INTEGER, size INTEGER, memcpyOperation INTEGER',
    'OP_MEMORY': 'name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, allocationTotalAllocated INTEGER, '
                 'allocationTotalReserved INTEGER, releaseTotalAllocated INTEGER, releaseTotalReserved INTEGER, deviceId INTEGER',
    'AICORE_FREQ': 'deviceId INTEGER, timestampNs NUMERIC, freq INTEGER',
    'HBM': 'deviceId INTEGER, timestampNs INTEGER, bandwidth NUMERIC, hbmId INTEGER, type INTEGER',
    'GC_RECORD': 'startNs INTEGER, endNs INTEGER, globalTid INTEGER',
}
UNITS = {
    'TASK_PMU_INFO': 'globalTaskId INTEGER, name INTEGER, value NUMERIC',
    'ACC_PMU': 'accId INTEGER, readBwLevel INTEGER, writeBwLevel INTEGER, readOstLevel INTEGER, writeOstLevel INTEGER, '
               'timestampNs NUMERIC, deviceId INTEGER',
    'SOC_BANDWIDTH_LEVEL': 'l2BufferBwLevel INTEGER, mataBwLevel INTEGER, timestampNs NUMERIC, deviceId INTEGER',
    'NPU_OP_MEM': 'operatorName INTEGER, addr INTEGER, type INTEGER, size INTEGER, timestampNs INTEGER, globalTid INTEGER, '
                  'totalAllocate NUMERIC, totalReserve NUMERIC, component INTEGER, deviceId INTEGER',
    'OVERLAP_ANALYSIS': 'id INTEGER PRIMARY KEY AUTOINCREMENT, deviceId INTEGER, startNs INTEGER, endNs INTEGER, type INTEGER',
    'ENUM_MEMORY': 'id INTEGER PRIMARY KEY, name TEXT',
}
ENUMS = {'ENUM_HCCL_DATA_TYPE': {4: 'FP32', 11: 'BFP16'}, 'ENUM_HCCL_LINK_TYPE': {1: 'HCCS', 65535: 'INVALID_TYPE'},
         'ENUM_HCCL_TRANSPORT_TYPE': {0: 'SDMA', 2: 'LOCAL'}, 'ENUM_MEMCPY_OPERATION': {1: 'host to device'}}


class Rank:
    """The rows of one rank; connection and task numbers run on."""

    def __init__(self, rank, options):
        self.rank, self.o, self.fault = rank, options, options.fault
        self.rows = {table: [] for table in [*TABLES, *LEVEL1, *(UNITS if options.units else ())]}
        self.texts = {}
        self.pid = 1000 + rank
        self.main, self.queue = self.pid << 32 | self.pid, self.pid << 32 | self.pid + 50
        self.task_count = self.mark_count = self.op_count = 0
        self.connection = 10

    def text(self, value):
        return self.texts.setdefault(value, len(self.texts))

    def task(self, start, end, connection, kind, stream):
        self.rows['TASK'].append((start, end, self.rank, connection, self.task_count, self.pid, self.text(kind), NONE, stream,
                                  self.task_count, NONE))
        self.task_count += 1
        return self.task_count - 1

    def mark(self, host, start, end, message, domain='default', stream=2):
        connection = 4000000001 + self.mark_count
        self.mark_count += 1
        self.rows['MSTX_EVENTS'].append((host, host + 50 * US, 2, NONE, NONE, self.text(message), self.main, self.main,
                                         self.text(domain), connection))
        self.task(start, end, connection, 'MsTx', stream)

    def next_connection(self):
        self.connection += 1
        return self.connection

    def kernel(self, host, start, end, name, sequence):
        """Operator → launch → kernel, tied by numbers as torch_npu ties them."""
        connection, own = self.next_connection(), 100 + sequence
        self.rows['PYTORCH_API'].append((str(host), str(host + 40 * US), self.main, own, self.text('aten::mm'), sequence, 0,
                                         self.text('float;\r\nfloat'), self.text('4,8;8,16'), 1, 50001))
        self.rows['CONNECTION_IDS'].append((own, connection))
        self.rows['CANN_API'].append((host + 60 * US, host + 70 * US, 10000, self.queue, connection, self.text('launch')))
        task = self.task(start, end, connection, 'KERNEL_AICORE', 2)
        self.rows['COMPUTE_TASK_INFO'].append((self.text(name), task, 24, 0, self.text('AI_CORE'), self.text('MatMulV2'),
                                               self.text('FLOAT;FLOAT'), self.text('"4,8;8,16"'), self.text('"4,16"'))
                                              + ((0,) if self.o.schema == '1.2.0' else ()))

        if self.o.units:  # what the n-th kernel counted says which one it is
            nth = len(self.rows['COMPUTE_TASK_INFO'])
            if self.fault == 'corrupt-units':  # several pages: rows of tasks that are nowhere
                self.rows['TASK_PMU_INFO'] += [(1 << 40, self.text('aic_total_time'), 0)] * 100
            self.rows['TASK_PMU_INFO'] += [(task, self.text(name), value) for name, value in (
                ('aic_total_time', end - start), ('aic_mac_ratio', nth / 16), ('aic_mte2_ratio', 0.5), ('aiv_vec_ratio', 0))]

    def operation(self, host, start, end, kind, peer, count):
        connection = self.next_connection()
        full, tag = self.text(f'hcom_{kind}__123_{self.op_count}_1'), self.text(f'hcom_{kind}_')
        row = (full, start, end, connection, self.text(PP_GROUP), self.op_count, 0, 0, 4, self.text('MESH'), count, tag)
        self.rows['COMMUNICATION_OP'].append(row + ((self.rank,) if self.o.schema == '1.2.0' else ()))
        self.rows['CANN_API'].append((host, host + 10 * US, 5500, self.queue, connection, tag))
        third = (end - start) // 3
        for k, (task, size) in enumerate((('Notify_Record', 0), ('Memcpy', count * 4), ('Notify_Wait', 0))):
            number = self.task(start + k * third, start + (k + 1) * third, connection, 'Notify Wait' if k == 2 else 'SDMA', 4)
            self.rows['COMMUNICATION_TASK_INFO'].append((full, number, self.text(task), 0, self.text(PP_GROUP), 7, 65535, self.rank,
                                                         peer, 0, size, 4, 1, self.op_count))
        self.op_count += 1

    def fill(self):
        for step in (5, 6):
            begin = T0 + (step - 5) * 40 * MS
            self.rows['STEP_TIME'].append((step, begin, begin + 39 * MS))
            for mb in range(3):
                self.pair_of_cells(step, begin, mb)
            if self.o.level == '1':
                self.operation(begin + 30 * MS, begin + 33 * MS, begin + 36 * MS, 'allReduce', 1 - self.rank, 1000)
        if self.o.level == '1':
            self.extras()
        if self.o.units:
            self.units()

    def pair_of_cells(self, step, begin, mb):
        for kind, at in (('forward', begin + (1 + mb + self.rank) * MS), ('backward', begin + (10 + 4 * mb + 2 * (1 - self.rank)) * MS)):
            long = MS if kind == 'forward' else 2 * MS
            host = at - 500 * US
            self.mark(host, at, at + long, str({'name': f'{kind}_step', 'current_microbatch': mb}))
            if self.o.level == '1':
                self.kernel(host + 5 * US, at + 10 * US, at + long - 10 * US, f'MatMul_{kind}', self.task_count)
            if self.o.level == '1' and kind == 'forward' and self.o.ranks == 2:
                self.operation(host, at + long - 5 * US if self.rank == 0 else at - 300 * US, at + long + 25 * US if self.rank == 0 else at,
                               'send' if self.rank == 0 else 'receive', 1 - self.rank, 512)
        if self.o.level == 'none' and mb == 0:
            said = {'count': '512', 'dataType': 'fp32', 'groupName': PP_GROUP, 'streamId': '9',
                    'opName': 'HcclRecv' if self.rank else 'HcclSend', 'srcRank' if self.rank else 'destRank': str(1 - self.rank)}
            self.mark(begin + MS, begin + 2 * MS, begin + 2 * MS + 100 * US, json.dumps(said).replace('"', '\\"'), 'communication', 9)

    def extras(self):
        connection = self.next_connection()
        task = self.task(T0 + 500 * US, T0 + 600 * US, connection, 'MEMCPY_ASYNC', 2)
        self.rows['MEMCPY_INFO'].append((task, 4096, 1))
        self.rows['CANN_API'].append((T0 + 300 * US, T0 + 350 * US, 20000, self.main, connection, self.text('aclrtMemcpyAsync')))
        self.task(T0 + 600 * US, T0 + 610 * US, self.next_connection(), 'EVENT_RECORD', 2)
        self.rows['PYTORCH_CALLCHAINS'] += [(1, self.text('train.py(7): step'), 0), (1, self.text('train.py(30): <module>'), 1)]
        self.rows['OP_MEMORY'] += [(self.text('aten::mm'), 1024, T0 + MS, T0 + 2 * MS, 1024, 4096, 0, 4096, self.rank),
                                   (self.text('aten::mm'), 2048, T0 + 3 * MS, None, 2048, 4096, None, None, self.rank)]
        self.rows['AICORE_FREQ'] += [(self.rank, T0 + k * MS, 1800 - 1000 * (k == 2)) for k in range(3)]
        self.rows['HBM'] += [(self.rank, T0 + k * MS, 1e6 * k, 0, self.text(way)) for k in range(3) for way in ('read', 'write')]
        self.rows['GC_RECORD'].append((T0 + 38 * MS, T0 + 38 * MS + 5 * US, self.main))

    def units(self):
        """Accelerator 7 works, 8 never does; the graph engine holds 64 KiB, and 4 KiB more from 1 to 2 ms."""
        old = self.o.schema == '1.0.0'  # an ENUM_MEMORY instead of texts
        self.rows['ACC_PMU'] = [(acc, level * (acc == 7), 0, 1 * (acc == 7), 2 * (acc == 7), T0 + level * MS, self.rank)
                                for acc in (7, 8) for level in range(4)]
        self.rows['SOC_BANDWIDTH_LEVEL'] = [(level, 2 * level, T0 + level * MS, self.rank) for level in range(3)]
        self.rows['ENUM_MEMORY'] = [(5, 'MALLOC'), (6, 'FREE')] if old else []
        self.rows['NPU_OP_MEM'] = [(self.text('MatMul'), 4096, number if old else self.text(kind), 4096, T0 + number * MS - 4 * MS, self.main,
                                    65536 + 4096, 1 << 20, self.text('GE'), self.rank) for number, kind in ((5, 'allocate'), (6, 'release'))]

    def identity(self):
        world = self.o.ranks
        version = {'wrong-schema': '9.7.1'}.get(self.fault, self.o.schema)
        rows = [] if self.fault == 'no-schema' else [('SCHEMA_VERSION', version)]
        rows.append(('distributed_args', json.dumps({'tensor_model_parallel_size': 1, 'pipeline_model_parallel_size': world,
                                                     'data_parallel_size': 1, 'context_parallel_size': 1, 'rank': self.rank,
                                                     'world_size': world})))
        rows.append(('parallel_group_info', json.dumps({PP_GROUP: {'group_name': 'pp', 'group_rank': self.rank,
                                                                   'global_ranks': list(range(world))}})))
        rows.append(('pp_info', json.dumps(json.dumps({'pp_type': '1f1b', 'microbatch_num': 3}))))  # a string in a string
        self.rows['META_DATA'] = rows
        self.rows['HOST_INFO'] = [('1', 'node0')]
        self.rows['NPU_INFO'] = [(self.rank, 'Ascend910B')]
        self.rows['RANK_DEVICE_MAP'] = [(self.rank, self.rank)]
        for table, names in ENUMS.items():
            self.rows[table] = sorted(names.items())

    def spoil(self):
        mstx, task, steps = self.rows['MSTX_EVENTS'], self.rows['TASK'], self.rows['STEP_TIME']
        if self.fault == 'nulls':
            mstx[0] = (None, *mstx[0][1:])
            task[1] = ('soon', *task[1][1:])
            steps[0] = (steps[0][0], None, None)
        if self.fault == 'reversed':
            mstx[0] = (mstx[0][1], mstx[0][0], *mstx[0][2:])
        if self.fault == 'negative':
            mstx[0] = (-mstx[0][0], *mstx[0][1:])
        if self.fault == 'dangling':
            mstx[0] = (*mstx[0][:9], 4100000000)
        if self.fault == 'one-connection':
            task.append((task[0][0] + 10, task[0][1] + 10, *task[0][2:4], 999999, *task[0][5:]))
        if self.fault == 'overlapping-steps':
            steps[1] = (steps[1][0], steps[0][1] + MS, steps[1][2])


def ddl(table, options):
    columns = TABLES.get(table) or LEVEL1.get(table) or UNITS[table]
    return f'CREATE TABLE {table} ({columns if isinstance(columns, str) else columns[options.schema]})'


def write_rank(rank, options, stamp='20250521091718000', make=Rank):
    r = make(rank, options)
    r.fill()
    r.identity()
    r.spoil()
    folder = pathlib.Path(options.out) / f'node0_{r.pid}_{stamp}_ascend_{"ms" if options.mindspore else "pt"}'
    data = folder / 'ASCEND_PROFILER_OUTPUT'
    data.mkdir(parents=True, exist_ok=True)
    info = {'config': {'experimental_config': {'_profiler_level': 'Level1' if options.level == '1' else 'Level_none'}}, 'rank_id': str(rank)}
    (folder / f'profiler_info_{rank}.json').write_text(json.dumps(info))
    if options.level == '1':
        write_analysis(data / 'analysis.db')
    path = data / f'ascend_{"mindspore" if options.mindspore else "pytorch"}_profiler_{rank}.db'
    if options.fault == 'no-database':
        return path
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.execute('PRAGMA page_size=1024')
    drop = {'no-mstx': 'MSTX_EVENTS', 'no-steps': 'STEP_TIME'}.get(options.fault)
    for table, rows in [] if options.fault == 'empty' else r.rows.items():
        if table == drop or (table in LEVEL1 and options.level == 'none') or table == 'STRING_IDS':
            continue
        db.execute(ddl(table, options))
        if rows:
            db.executemany(f'INSERT INTO {table} VALUES ({",".join("?" * len(rows[0]))})', rows)
    if options.fault != 'empty':
        db.execute(ddl('STRING_IDS', options))
        gone = r.text('aten::mm' if options.level == '1' else 'MsTx') if options.fault == 'missing-strings' else -1
        db.executemany('INSERT INTO STRING_IDS VALUES (?,?)', [(i, s) for s, i in r.texts.items() if i != gone])
    else:
        db.execute('PRAGMA user_version=1')
    db.commit()
    spoilt = 'TASK_PMU_INFO' if options.fault == 'corrupt-units' else 'TASK'
    root = db.execute('SELECT rootpage FROM sqlite_master WHERE name = ?', (spoilt,)).fetchone()
    db.close()
    spoil_file(path, options.fault, root)
    return path


def spoil_file(path, fault, root):
    if fault in ('corrupt', 'corrupt-units'):  # a leaf of the table becomes noise; the leaves before it stay whole
        raw = bytearray(path.read_bytes())
        page = 1024 * (root[0] - 1)
        cells = int.from_bytes(raw[page + 3:page + 5], 'big')
        pointer = int.from_bytes(raw[page + 12 + 2 * (cells - 1):][:2], 'big')
        leaf = int.from_bytes(raw[page + pointer:page + pointer + 4], 'big')
        raw[1024 * (leaf - 1):1024 * leaf] = b'\xa5' * 1024
        path.write_bytes(raw)
    if fault == 'cut':
        path.write_bytes(path.read_bytes()[:4096])
    if fault == 'wal':
        pathlib.Path(f'{path}-wal').write_bytes(b'\0' * 64)
    if fault == 'journal':
        pathlib.Path(f'{path}-journal').write_bytes(b'\xd9\xd5\x05\xf9\x20\xa1\x63\xd7' + b'\0' * 504)


def write_analysis(path):
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.execute('PRAGMA page_size=1024')
    db.execute('CREATE TABLE StepTraceTime (step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, overlapped NUMERIC, '
               'communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, '
               'communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC)')
    db.execute("INSERT INTO StepTraceTime VALUES ('5', 8.903, 1.5, 0.25, 1.75, 2, 3, 4, 1.25, 0)")
    db.execute('CREATE TABLE CommAnalyzerMatrix (hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, '
               'transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type TEXT, op_name TEXT)')
    db.execute("INSERT INTO CommAnalyzerMatrix VALUES ('allreduce-top1', '1', '0', '1', 'HCCS', 4.128, 0.5, 8, 'step5', 'collective', "
               "'hcom_allReduce__123_3_1')")
    db.commit()
    db.close()


def write(out, **options):
    """All ranks; returns the paths of the databases."""
    defaults = {'out': str(out), 'level': '1', 'ranks': 2, 'schema': '1.2.0', 'mindspore': False, 'units': False, 'fault': None, 'unplaced': False}
    o = argparse.Namespace(**{**defaults, **options})
    databases = [write_rank(rank, o) for rank in range(o.ranks)]
    for path in databases if o.unplaced else ():
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM META_DATA WHERE name <> 'SCHEMA_VERSION'")
            db.execute('DELETE FROM MSTX_EVENTS')
    return databases


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('out')
    p.add_argument('--level', choices=['none', '1'], default='1')
    p.add_argument('--ranks', type=int, default=2)
    p.add_argument('--schema', choices=['1.0.0', '1.2.0'], default='1.2.0')
    p.add_argument('--mindspore', action='store_true')
    p.add_argument('--units', action='store_true')
    p.add_argument('--unplaced', action='store_true', help='nothing says the places of the ranks')
    p.add_argument('--fault', choices=FAULTS)
    a = vars(p.parse_args())
    write(a.pop('out'), **a)


if __name__ == '__main__':
    main()
