"""Profiles of training jobs drawn at random: ranks on hosts, one of five kinds of traffic, noise, clocks apart, and one planted fault or none.

  python3 tests/gen/drawn_jobs.py -o DIR FIRST:COUNT [--healthy | --faulty]

A host launches operations in order, a device runs them on streams, and a collective transfers once its last member has come: it takes what the slowest link or network card of
its members lets through. What a fault costs is measured: the wall time of the same job, with the same noise, without it.
"""
import argparse
import json
import os
import random

GEMMS = {'forward': 'nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT', 'backward': 'nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT', 'optimizer': 'multi_tensor_apply_kernel'}
KERNEL = {'allreduce': 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL', '_allgather_base': 'ncclDevKernel_AllGather_RING_LL',
          '_reduce_scatter_base': 'ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL', 'all_to_all': 'ncclDevKernel_SendRecv'}
FACTOR = {'allreduce': lambda n: 2 * (n - 1) / n}
TRAFFIC = ('ddp', 'fsdp', 'tp', 'ep', 'hsdp')
FAULTS = ('nic', 'nic', 'link', 'link', 'late', 'slow', 'storm', 'bucket', 'saturated')
LINK_GBPS, NIC_GBPS = 350.0, 45.0


class Case:
    """Everything that is drawn; `kind` is the fault, None in healthy runs."""

    def __init__(self, seed, faulty):
        r = random.Random(seed)
        self.seed = seed
        self.hosts, self.per_host = r.choice([(1, 4), (1, 8), (2, 2), (2, 4), (2, 8), (3, 2), (3, 4), (4, 2), (4, 4), (4, 4)])
        self.ranks = self.hosts * self.per_host
        self.traffic = r.choice(TRAFFIC)
        self.layers, self.steps = r.randint(4, 8), r.randint(4, 7)
        self.layer_us = r.uniform(400, 1500)         # forward; backward takes twice as long
        self.spread = r.choice([0.002, 0.005, 0.01, 0.02])  # of a kernel's time
        self.between = r.choice([0, 0.003, 0.008])   # of devices: they do not compute equally fast
        self.wires = r.choice([0, 0.005, 0.01])      # of links and cards
        self.jitter = r.choice([0.01, 0.02, 0.04])   # of a transfer
        self.retries = r.choice([0, 0, 0.01])        # of transfers that take twice as long
        self.pauses = r.choice([0, 0, 0.01])         # chance that an operation's launch is held up
        self.skew_us = [r.choice([0, 1, 1]) * r.uniform(-3e4, 3e4) for _ in range(self.hosts)]
        self.load = r.uniform(0.3, 0.9)              # communication of a layer to its computing
        self.kind = r.choice(FAULTS) if faulty else None
        self.rank, self.by = r.randrange(self.ranks), r.choice([1.1, 1.1, 1.15, 1.3, 2.0])
        if self.kind in ('nic', 'link') and self.hosts < 2:  # groups of a kind are compared with each other
            self.hosts, self.per_host = r.choice([(2, 4), (3, 4), (4, 2), (4, 4)])
            self.ranks, self.skew_us = self.hosts * self.per_host, [r.uniform(-3e4, 3e4) for _ in range(self.hosts)]
            self.rank = r.randrange(self.ranks)
        # A fault shows where other groups of the same kind do without it.
        if self.kind in ('nic', 'link'):
            self.traffic = r.choice(['tp', 'ep', 'hsdp'])
            self.load = r.uniform(1.2, 3) if self.kind == 'nic' else r.uniform(0.7, 1.8)
        if self.kind in ('storm', 'bucket', 'saturated'):
            self.traffic = 'ddp'
        self.host = self.rank // self.per_host
        self.late_us = r.uniform(0.06, 0.2) * 3 * self.layers * self.layer_us
        if self.kind == 'slow':
            self.by = r.choice([1.15, 1.3, 1.5])

    def members(self, kind, rank):
        """Groups of a kind that the rank is in: the ranks of its host, those at its place on all hosts, or all."""
        if kind == 'inner':
            return tuple(range(rank // self.per_host * self.per_host, (rank // self.per_host + 1) * self.per_host))
        if kind == 'outer':
            return tuple(range(rank % self.per_host, self.ranks, self.per_host))
        return tuple(range(self.ranks))

    def program(self, fault):
        """Operations of a step: (compute, length, phase) and (collective, kind of group, operation, time at full rate, whether computing waits for it), or (wait)."""
        layer, load, one_host = self.layer_us, self.load, self.hosts == 1
        forward, backward, end = [], [], []
        for at in range(self.layers):
            if self.traffic == 'ddp':
                forward += [('compute', layer, 'forward')]
                size = 2 * layer * load * (2.2 if fault == 'saturated' else 1)
                pieces = 10 if fault == 'storm' else 0 if fault == 'bucket' else 1
                for _ in range(3):  # a third of the layer's gradients is ready
                    backward += [('compute', 2 / 3 * layer, 'backward')] + [('collective', 'all', 'allreduce', size / 3 / max(pieces, 1), False)] * pieces
                if fault == 'bucket' and at == 0:
                    end += [('collective', 'all', 'allreduce', size * self.layers, False)]
            elif self.traffic == 'fsdp':
                forward += [('collective', 'all', '_allgather_base', layer * load, 'before'), ('compute', layer, 'forward')]
                backward += [('collective', 'all', '_allgather_base', layer * load, 'before'), ('compute', 2 * layer, 'backward'), ('collective', 'all', '_reduce_scatter_base', layer * load, False)]
            elif self.traffic == 'tp':
                forward += [('compute', layer / 2, 'forward'), ('collective', 'inner', 'allreduce', layer * load / 4, True)] * 2
                backward += [('compute', layer, 'backward'), ('collective', 'inner', 'allreduce', layer * load / 4, True)] * 2
                backward += [] if one_host else [('collective', 'outer', 'allreduce', 1.5 * layer * load, False)]
            elif self.traffic == 'ep':
                pair = [('compute', layer / 2, 'forward'), ('collective', 'inner', 'all_to_all', layer * load / 4, True)]
                forward += pair * 2
                backward += [('compute', layer, 'backward'), ('collective', 'inner', 'all_to_all', layer * load / 4, True)] * 2
                backward += [] if one_host else [('collective', 'outer', 'allreduce', 1.5 * layer * load, False)]
            else:
                forward += [('collective', 'inner', '_allgather_base', layer * load, 'before'), ('compute', layer, 'forward')]
                backward += [('compute', 2 * layer, 'backward'), ('collective', 'inner', '_reduce_scatter_base', layer * load, False)]
                backward += [] if one_host else [('collective', 'outer', 'allreduce', 1.2 * layer * load, False)]
        return forward + backward + end + [('wait',), ('compute', layer / 2, 'optimizer')]


class Job:
    """Plays a case, with its fault or without; times in µs. `level`: a rank whose device is as fast as the median one."""

    def __init__(self, case, fault, level=None):
        self.c, self.fault = case, fault
        n, r = case.ranks, random.Random(case.seed * 7919 + 1)
        self.random = random.Random(case.seed * 7919 + 2)  # the same draws with and without the fault
        self.speed = [r.gauss(1, case.between) for _ in range(n)]
        self.link = [LINK_GBPS * r.gauss(1, case.wires) for _ in range(n)]
        self.nic = [NIC_GBPS * r.gauss(1, case.wires) for _ in range(n)]
        if fault == 'link':
            self.link[case.rank] /= case.by
        if fault == 'nic':
            self.nic[case.rank] /= case.by
        if fault == 'slow':
            self.speed[case.rank] *= case.by
        if level is not None:
            self.speed[level] = sorted(self.speed)[n // 2]
        self.host, self.free, self.comm = [0.0] * n, [0.0] * n, [{} for _ in range(n)]
        self.events, self.number, self.correlation, self.launched = [[] for _ in range(n)], {}, 0, 0
        self.run()

    def run(self):
        c = self.c
        program = c.program(self.fault)
        for step in range(c.steps):
            begun = list(self.host)
            for rank in range(c.ranks):
                self.host[rank] += 150 * self.random.uniform(0.8, 1.6)
                if self.fault == 'late' and rank == c.rank:
                    self.host[rank] += c.late_us
            ends = [[] for _ in range(c.ranks)]  # of collectives that the step's end waits for
            for op in program:
                if op[0] == 'compute':
                    for rank in range(c.ranks):
                        lasts = op[1] * self.speed[rank] * max(0.5, self.random.gauss(1, c.spread))
                        start = max(self.free[rank] + 1, self.launch(rank) + 4)
                        self.free[rank] = start + lasts
                        self.kernel(rank, GEMMS[op[2]], start, lasts, 7, {})
                elif op[0] == 'collective':
                    self.collective(op, ends)
                else:
                    for rank in range(c.ranks):
                        self.free[rank] = max([self.free[rank]] + ends[rank])
            for rank in range(c.ranks):
                at = self.host[rank]
                self.host[rank] = max(at + 3, self.free[rank] + 3, *ends[rank]) if ends[rank] else max(at + 3, self.free[rank] + 3)
                self.slice(rank, 'cuda_runtime', 'cudaStreamSynchronize', at, self.host[rank] - at, 7, {})
                self.slice(rank, 'user_annotation', 'ProfilerStep#%d' % (step + 3), begun[rank], self.host[rank] - begun[rank], 7, {})
                self.host[rank] += 10

    def launch(self, rank):
        at = self.host[rank]
        held = 400 * self.random.random() if self.random.random() < self.c.pauses else 0
        self.host[rank] += 12 * self.random.uniform(0.8, 1.3) + held
        self.launched += 1
        self.correlation = self.launched
        self.slice(rank, 'cuda_runtime', 'cudaLaunchKernel', at, 5, 7, {'correlation': self.correlation})
        return at

    def collective(self, op, ends):
        c, (_, kind, name, at_full_rate, waits) = self.c, op
        for members in sorted({c.members(kind, rank) for rank in range(c.ranks)}):
            n, across = len(members), len({rank // c.per_host for rank in members}) > 1
            factor = FACTOR.get(name, lambda n: (n - 1) / n)(n)
            full = NIC_GBPS * (c.per_host if kind == 'all' else 1) if across else LINK_GBPS
            # Rings pass all cards of a host, so the slowest decides; links of a host are faster than its cards together.
            rate = min((self.nic if across else self.link)[rank] for rank in members) / (NIC_GBPS if across else LINK_GBPS) * min(full, LINK_GBPS)
            size = int(at_full_rate * min(full, LINK_GBPS) * 1e3 / factor / 2 / n) * 2 * n
            noise, again = max(0.7, self.random.gauss(1, c.jitter)), self.random.random() < c.retries
            takes = (25 if across else 12) + size * factor / rate / 1e3 * noise * (2 if again else 1)
            came, correlations = [], {}
            for rank in members:
                launched, key = self.launch(rank), (kind, name if kind == 'all' else '')
                correlations[rank] = self.correlation
                # A gather for the next layer does not wait for what is computed now.
                ready = 0 if waits == 'before' else self.free[rank]
                came.append((rank, max(launched + 4, ready + 2, self.comm[rank].get(key, 0) + 1)))
            end = max(start for _, start in came) + takes
            number = self.number[members, name] = self.number.get((members, name), 0) + 1
            for rank, start in came:
                own_end = end + self.random.uniform(0, 2)
                self.comm[rank][kind, name if kind == 'all' else ''] = own_end
                ends[rank].append(own_end)
                if waits:
                    self.free[rank] = max(self.free[rank], own_end + 1)
                elements = size // 2
                each = {'allreduce': (elements, elements), '_allgather_base': (elements // n, elements), '_reduce_scatter_base': (elements, elements // n)}.get(name, (elements, elements))
                self.correlation = correlations[rank]
                self.kernel(rank, KERNEL[name], start, own_end - start, 20 + ('inner', 'outer', 'all').index(kind) * 2 + (name == '_reduce_scatter_base' and kind == 'all'),
                            {'Collective name': name, 'dtype': 'BFloat16', 'In msg nelems': each[0], 'Out msg nelems': each[1], 'Group size': n, 'Process Group Name': str(('inner', 'outer', 'all').index(kind)),
                             'Process Group Description': {'inner': 'mesh_' + c.traffic, 'outer': 'mesh_dp', 'all': 'default_pg'}[kind], 'Process Group Ranks': str(list(members)), 'Seq': number})

    def kernel(self, rank, name, start, lasts, stream, args):
        self.slice(rank, 'kernel', name, start, lasts, stream, {'device': rank % self.c.per_host, 'stream': stream, 'correlation': self.correlation, **args})

    def slice(self, rank, category, name, start, lasts, tid, args):
        self.events[rank].append({'ph': 'X', 'cat': category, 'name': name, 'pid': rank % self.c.per_host if category == 'kernel' else 1000 + rank, 'tid': tid,
                                  'ts': round(start + 1e5 + self.c.skew_us[rank // self.c.per_host], 3), 'dur': round(lasts, 3), 'args': args})

    def wall(self):
        """When the last step ends, mean over the ranks: those that a fault delays only through others do not wait for it after their last collective."""
        return sum(self.host) / len(self.host)

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        c = self.c
        for rank, events in enumerate(self.events):
            with open(os.path.join(folder, 'rank%d.json' % rank), 'w') as out:
                json.dump({'schemaVersion': 1, 'deviceProperties': [{'id': k, 'name': 'NVIDIA H100 80GB HBM3', 'numSms': 132} for k in range(c.per_host)],
                           'distributedInfo': {'backend': 'nccl', 'rank': rank, 'world_size': c.ranks}, 'host_name': 'node%02d' % (rank // c.per_host),
                           'baseTimeNanoseconds': 1780000000000000000, 'traceEvents': events}, out)


def make(seed, faulty, folder):
    """Writes the run and returns its case and what the fault costs, as a share of the wall time."""
    case = Case(seed, faulty)
    bad = Job(case, case.kind)
    bad.write(folder)
    return case, 1 - Job(case, None).wall() / bad.wall() if case.kind else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-o', '--out', required=True)
    parser.add_argument('seeds')
    parser.add_argument('--healthy', action='store_true')
    options = parser.parse_args()
    first, count = map(int, options.seeds.split(':'))
    for seed in range(first, first + count):
        case, cost = make(seed, not options.healthy, os.path.join(options.out, str(seed)))
        print(seed, case.traffic, '%d×%d' % (case.hosts, case.per_host), case.kind, 'rank %d' % case.rank, '%.2f' % case.by, '%.1f %%' % (100 * cost))


if __name__ == '__main__':
    main()
