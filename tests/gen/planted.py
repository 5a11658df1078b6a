"""A table of cells of a 1F1B run with planted causes, and its mean period: `Planted(...).write(path)`. The cost of a
cause is the period of the run minus that of the same run without it. Every random number belongs to its place and not
to the order of requests."""
import csv
import hashlib
import struct
from statistics import NormalDist


def noise(*place):
    """A standard normal number of this place."""
    digest = hashlib.sha256(repr(place).encode()).digest()
    return NormalDist().inv_cdf((struct.unpack('>Q', digest[:8])[0] + 0.5) / 2 ** 64)


def chance(*place):
    return NormalDist().cdf(noise('chance', *place))


class Planted:
    """Hooks, all in milliseconds: cost(step, dp, stage, kind, mb) → factor; pause(same) → before a cell; message(step, dp, source, stage, mb,
    kind) → more than `latency`; blocking: a rank's next cell waits for its send; gaps(step) → [(name or '', ms)] after the step; tail(step) → (reduce, or one of each stage,
    optimizer), and what gathers the parameters after it; overlapped: the share of a reduction that runs beside the last backward. meet: the
    ranks of a stage meet in the middle and at the end of every cell, as replicas ('replicas': experts) or as peers of one replica ('peers': ring
    attention, where dp counts the peers); split: a backward is two cells, for inputs and weights; forwards: there are no backwards, as in inference; barrier: a step begins on all ranks at once, otherwise on each when it is done with the one before; beside: collectives over the replicas that run beside every backward, and nobody waits for."""

    def __init__(self, stages=4, micro_batches=8, dp=1, steps=10, jitter=0.01, seed=1, messages=False, latency=0.2, forward=10.0, backward=20.0,
                 cost=None, pause=None, message=None, gaps=None, tail=None, blocking=False, overlapped=0.0, meet='', beside=False, barrier=True, forwards=False, split=False):
        self.__dict__.update({k: v for k, v in locals().items() if k != 'self'})
        self.rows, self.periods = [], []
        self.begins = {(d, s): 1000.0 for d in range(dp) for s in range(stages)}
        for step in range(steps):
            begin = min(self.begins.values())
            end, done = self.step(step, begin)
            next_begin = (end if barrier else min(done.values())) + 1.0
            for name, ms in (gaps(step) if gaps else []):
                if name:
                    self.rows.append((0, 0, step, 'other', name, next_begin, next_begin + ms, -1))
                next_begin += ms
            self.periods.append((next_begin if step + 1 < steps else end) - begin)
            self.begins = {rank: next_begin if barrier else max(own + 1.0, next_begin) for rank, own in done.items()}
        # The last step has no next one: its gap is the mean of the others.
        self.period = sum(self.periods) / steps + (sum(self.periods[:-1]) - sum(self.spans[:-1])) / max(steps - 1, 1) / steps

    spans: list = []

    def step(self, step, begin):
        p, m = self.stages, self.micro_batches
        done, ends, links = {}, [], {}
        lists = []
        for s in range(p):
            w = min(m, p - s)
            order = [('F', i) for i in range(w)]
            for i in range(m - w):
                order += [('B', i), ('F', w + i)]
            lists.append([('F', i) for i in range(m)] if self.forwards else order + [('B', i) for i in range(m - w, m)])
        for members in [list(range(self.dp))] if self.meet else [[d] for d in range(self.dp)]:
            free, at = {(d, s): self.begins[d, s] for d in members for s in range(p)}, [0] * p
            while any(at[s] < len(lists[s]) for s in range(p)):
                for s in range(p):
                    while at[s] < len(lists[s]):
                        kind, mb = lists[s][at[s]]
                        source = s - 1 if kind == 'F' else s + 1
                        if 0 <= source < p and (members[0], source, kind, mb) not in done:
                            break
                        starts, lengths = [], []
                        for d in members:
                            ready = begin
                            if 0 <= source < p:
                                sent = max(done[d, source, kind, mb], links.get((d, source, s), begin))
                                ready = sent + self.latency + (self.message(step, d, source, s, mb, kind) if self.message else 0)
                                links[d, source, s] = ready
                                if self.messages:
                                    self.rows += [(d, source, step, 'S' + kind, '', sent, ready, mb), (d, s, step, 'R' + kind, '', sent, ready, mb)]
                            elif kind == 'B':
                                ready = done[d, s, 'F', mb]
                            starts.append(max(ready, free[d, s]) + (self.pause(step, d, s, kind, mb) if self.pause else 0))
                            length = self.forward if kind == 'F' else self.backward
                            length *= max(0.2, 1 + self.jitter * noise(self.seed, step, d, s, kind, mb))
                            lengths.append(length * (self.cost(step, d, s, kind, mb) if self.cost else 1))
                        stops = [start + length for start, length in zip(starts, lengths)]
                        if self.meet:
                            now = starts
                            for _ in range(2):
                                come = [t + length / 2 for t, length in zip(now, lengths)]
                                now = [max(come) + 0.1] * len(members)
                                self.rows += [(d, s, step, 'C', {'peers': 'ring-attention', 'replicas': 'all-to-all'}[self.meet], arrived, now[0], mb) for d, arrived in zip(members, come)]
                            stops = now
                        to = s + 1 if kind == 'F' else s - 1
                        for d, start, stop in zip(members, starts, stops):
                            free[d, s] = done[d, s, kind, mb] = stop
                            if self.split and kind == 'B':
                                done[d, s, kind, mb] = (start + stop) / 2
                                self.rows += [(d, s, step, 'I', '', start, (start + stop) / 2, mb), (d, s, step, 'W', '', (start + stop) / 2, stop, mb)]
                                continue
                            self.rows.append((d, s, step, kind, '', start, stop, mb))
                            if self.blocking and 0 <= to < p:
                                free[d, s] += self.latency + (self.message(step, d, s, to, mb, kind) if self.message else 0)
                        at[s] += 1
            ends += [(d, s, free[d, s]) for d in members for s in range(p)]
        for s, mb in [(s, mb) for s in range(p) for mb in range(m)] if self.beside else []:
            begins = [done[d, s, 'B', mb] - self.backward * 0.6 for d in range(self.dp)]
            over = min(max(begins) + 2, min(done[d, s, 'B', mb] for d in range(self.dp)))
            self.rows += [(d, s, step, 'C', 'reduce-scatter', b, over, mb) for d, b in enumerate(begins) if b < over]
        reduce, optimizer, *gather = self.tail(step) if self.tail else (2.0, 3.0)
        # Gradients of a stage are reduced over its replicas; the norm of all of them lets every optimizer start at once.
        of_stage = reduce if isinstance(reduce, list) else [reduce] * p
        reduced = [max(e for _, s, e in ends if s == stage) + of_stage[stage] * (1 - self.overlapped) for stage in range(p)]
        last = max(reduced)
        over = {(d, s): own for d, s, own in ends}
        for d, s, own in [] if self.forwards else ends:
            begins = last if self.barrier else reduced[s]
            self.rows.append((d, s, step, 'C', 'reduce-scatter' if gather else 'all-reduce', own - of_stage[s] * self.overlapped, reduced[s], -1))
            self.rows.append((d, s, step, 'O', '', begins, begins + optimizer, -1))
            self.rows += [(d, s, step, 'C', 'all-gather', begins + optimizer, begins + optimizer + ms, -1) for ms in gather]
            over[d, s] = begins + optimizer + sum(gather)
        end = max(over.values())
        self.spans = self.spans + [end - begin]
        return end, over

    def write(self, path):
        with open(path, 'w', newline='') as out:
            table = csv.writer(out)
            table.writerow('dp_rank stage rank step kind name start_us dur_us mb'.split())
            for d, s, step, kind, name, start, end, mb in self.rows:
                dp, rank = (0, s * self.dp + d) if self.meet == 'peers' else (d, d * self.stages + s)
                table.writerow([dp, s, rank, step, kind, name, f'{start * 1e3:.3f}', f'{(end - start) * 1e3:.3f}', mb])
        return path
