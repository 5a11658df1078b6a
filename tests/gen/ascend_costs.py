#!/usr/bin/env python3
"""Ascend profiler databases of one rank or two: two steps of operators that each launch a kernel, with one thing that costs time, or recorded FLOPs.

    ascend_costs.py OUT [--plant NAME]

A step is 20 products of 400 µs on 24 blocks; the host launches one every 30 µs and waits for them at the end. The generator uses the standard library only.
"""
import argparse
import json
import pathlib

import ascend_db
from ascend_db import MS, NONE, T0, US

PRODUCTS, PRODUCT_US = 20, 400
FLOPS = 40_000_000_000  # of a product, where they are recorded: 100 TFLOP/s without its cast
CAST_US = 100
CORES, MHZ = 24, 1800
PLANTS = ('none', 'aicpu', 'few-cores', 'half-cores', 'collector', 'compile', 'changing', 'blocking', 'allocator', 'busy', 'flops', 'aligned', 'unaligned', 'padded', 'odd-axes', 'slow-axes', 'latency', 'no-latency')
RANKS = {'aligned': 2, 'unaligned': 2, 'latency': 2, 'no-latency': 2}
REDUCE_US, LONGER_US, FLOATS = 300, 150, 1 << 18  # of an all-reduce; of an unaligned one beyond that
AXIS, ODD, SLOWER = 1024, 1000, 1.5  # inner axes of products, and how much slower for their work those of the odd one are
LATENCY_US, SMALL, MEBI_US = 250, 1 << 16, 40  # of an all-reduce: apart from its size, FLOATS of every other one, for each MiB


class Rank(ascend_db.Rank):
    def fill(self):
        self.device, self.host = 0, T0
        self.blocks = CORES // 2 if self.o.plant == 'half-cores' else CORES
        for step in (5, 6):
            begin = self.host
            self.host += 5 * US
            for k in range(PRODUCTS):
                rows = 4 + step if self.o.plant == 'changing' and k == 0 else 4
                self.operator('aten::mm', [('MatMul', 'MatMulV2', 'AI_CORE', self.product_us(k), self.blocks, self.shapes(rows, k))],
                              flops=self.o.plant == 'flops')
                if k == PRODUCTS // 2:
                    self.plant()
                if self.o.ranks > 1 and k % 2:
                    self.all_reduce(unaligned=k % 4 == 3)
            self.wait()
            self.rows['STEP_TIME'].append((step, begin, self.host))

    def inner(self, k):
        return ODD if k % 2 and self.o.plant in ('odd-axes', 'slow-axes') else AXIS

    def shapes(self, rows, k):
        if self.o.plant in ('padded', 'odd-axes', 'slow-axes'):
            return f'"{AXIS},{self.inner(k)};{self.inner(k)},{AXIS}"'
        return f'"{rows},8;8,16"'

    def product_us(self, k):
        """Products take their time by their work; those of the odd axis longer."""
        us = PRODUCT_US * self.inner(k) / AXIS
        return us * SLOWER if self.o.plant == 'slow-axes' and k % 2 else us

    def plant(self):
        if self.o.plant == 'aicpu':
            self.operator('aten::nonzero', [('NonZero', 'NonZero', 'AI_CPU', 2000, 0, '"4,8"')])
        if self.o.plant == 'few-cores':
            self.operator('aten::cumsum', [('Cumsum', 'Cumsum', 'AI_CORE', 2400, 6, '"4,8"')])
        if self.o.plant == 'collector':
            self.wait()
            self.rows['GC_RECORD'].append((self.host, self.host + 10 * MS, self.main))
            self.host += 10 * MS
        if self.o.plant in ('compile', 'changing'):
            self.wait()
            for _ in range(20):
                self.call('aclopCompileAndExecute', 500)
        if self.o.plant == 'allocator':
            self.wait()
            for _ in range(6):
                self.call('aclMallocMemInner', 1500)
        if self.o.plant == 'busy':
            self.wait()
            self.operator('aten::item_of_a_table', [('MatMul', 'MatMulV2', 'AI_CORE', PRODUCT_US, 24, '"4,8;8,16"')], host_us=8000)

    def all_reduce(self, unaligned):
        start = max(self.device, self.host + 20 * US)
        floats, us = FLOATS - (25 if unaligned else 0), REDUCE_US + (LONGER_US if unaligned and self.o.plant == 'unaligned' else 0)
        if self.o.plant in ('latency', 'no-latency'):
            floats = SMALL if unaligned else 16 * SMALL
            us = MEBI_US * floats * 4 / (1 << 20) + (LATENCY_US if self.o.plant == 'latency' else 0)
        self.device = start + int(us * US)
        self.operation(self.host, start, self.device, 'allReduce', 1 - self.rank, floats)
        self.host += 15 * US

    def call(self, name, us):
        self.rows['CANN_API'].append((self.host, self.host + us * US, 20000, self.main, self.next_connection(), self.text(name)))
        self.host += (us + 2) * US

    def wait(self):
        self.call('aclrtSynchronizeStream', max(1, -((self.host - self.device) // US)))

    def operator(self, name, kernels, host_us=25, flops=False):
        """The host is in the operator for that time, and launches its kernels at the end."""
        own, end = 100 + self.next_connection(), self.host + host_us * US
        if flops:
            kernels = [('Cast', 'Cast', 'AI_VECTOR_CORE', CAST_US, 48, '"4,8"'), *kernels]
            self.rows['MSTX_EVENTS'].append((self.host - 300, end + 300, 2, NONE, NONE, self.text(f'{FLOPS}-mm'), self.main, self.main,
                                             self.text('mfu_flops'), 4000000000))
            self.rows['MSTX_EVENTS'].append((self.host - 600, end + 600, 2, NONE, NONE, self.text('Linear'), self.main, self.main,
                                             self.text('Module'), 4000000000))
        self.rows['PYTORCH_API'].append((str(self.host), str(end), self.main, own, self.text(name), -1, 0, None, None, None, 50001))
        for k, (kernel, kind, unit, us, blocks, shapes) in enumerate(kernels):
            connection = self.next_connection()
            launch = end - (4 - k) * US
            self.rows['CONNECTION_IDS'].append((own, connection))
            self.rows['CANN_API'].append((launch, launch + 500, 20000, self.main, connection, self.text('launch')))
            start = max(self.device, launch + 5 * US)
            self.device = start + int(us * US)
            task = self.task(start, self.device, connection, 'KERNEL_AICORE', 2)
            types = 'DT_BF16;DT_BF16' if ';' in shapes else 'DT_BF16'
            self.rows['COMPUTE_TASK_INFO'].append((self.text(kernel), task, blocks, 0, self.text(unit), self.text(kind), self.text(types),
                                                   self.text(shapes), self.text(f'"{AXIS},{AXIS}"' if str(AXIS) in shapes else '"4,16"'), 0))
        self.host = end + 5 * US
        if self.o.plant == 'blocking':
            self.wait()

    def identity(self):
        super().identity()
        settings = {'ASCEND_GLOBAL_LOG_LEVEL': '1' if self.o.plant == 'busy' else '', 'ASCEND_LAUNCH_BLOCKING': '1' if self.o.plant == 'blocking' else '',
                    'PYTORCH_NPU_ALLOC_CONF': 'max_split_size_mb:64' if self.o.plant == 'allocator' else 'expandable_segments:True'}
        self.rows['META_DATA'].append(('ENV_VARIABLES', json.dumps(settings)))


def write(out, plant='none'):
    out = pathlib.Path(out)
    ranks = RANKS.get(plant, 1)
    options = argparse.Namespace(out=str(out), level='1', ranks=ranks, schema='1.2.0', mindspore=False, units=False, fault=None, plant=plant)
    for rank in range(ranks):
        path = ascend_db.write_rank(rank, options, make=Rank)
        info = path.parents[1] / 'PROF_000001_20250521091718000_AAAA' / f'device_{rank}' / f'info.json.{rank}'
        info.parent.mkdir(parents=True)
        info.write_text(json.dumps({'DeviceInfo': [{'id': rank, 'ai_core_num': CORES, 'aic_frequency': str(MHZ)}], 'rank_id': rank}))


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('--plant', choices=PLANTS, default='none')
    given = parser.parse_args()
    write(given.out, given.plant)
