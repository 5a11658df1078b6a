"""stageline explain on ranks that meet inside cells: a small simulation of experts behind two exchanges a layer, planted faults, and what each costs by
simulating the same run without it."""
import json
import random
import unittest

from support import Case, run

STAGES, RANKS, BATCHES, LAYERS, STEPS = 4, 4, 8, 2, 4
LATENCY, WIRE = 250, 120  # µs


class Experts:
    """Times in µs, by drawn noise of 1 %. A fault is a function that a plan without it leaves out."""

    def __init__(self, seed, load=None, device=None, source=None, wire=None, pause=None):
        self.seed, self.load, self.device, self.source, self.wire, self.pause = seed, load, device, source, wire, pause

    def cell(self, rng, step, stage, rank, kind, mb):
        at = dict(step=step, stage=stage, rank=rank, kind=kind, mb=mb)
        times = (1 if kind == 'F' else 2) * (self.device(**at) if self.device else 1)
        around = times * (self.source(**at) if self.source else 1)
        noise = lambda: 1 + 0.01 * rng.gauss(0, 1)  # noqa: E731
        work = []
        for layer in range(LAYERS):
            work += [900 * around * noise(), 500 * times * noise() * (self.load(layer=layer, **at) if self.load else 1)]
        work.append(300 * around * noise())
        if self.pause:
            work[0] += self.pause(**at)
        return work, [WIRE * (self.wire(**at) if self.wire else 1)] * (2 * LAYERS)

    def rows(self):
        rng, zero, rows, spans = random.Random(self.seed), 1e6, [], 0
        for step in range(STEPS):
            done, free, lists = {}, {}, {}
            for stage in range(STAGES):
                warm = min(STAGES - 1 - stage, BATCHES)
                lists[stage] = [('F', i) for i in range(warm)]
                for i in range(BATCHES - warm):
                    lists[stage] += [('F', warm + i), ('B', i)]
                lists[stage] += [('B', i) for i in range(BATCHES - warm, BATCHES)]
            while any(lists.values()):
                for stage, todo in lists.items():
                    if not todo:
                        continue
                    kind, mb = todo[0]
                    other = stage - 1 if kind == 'F' else stage + 1
                    if 0 <= other < STAGES and (other, 0, kind, mb) not in done:
                        continue
                    todo.pop(0)
                    now, work, wires, starts = [], [], [], []
                    for rank in range(RANKS):
                        ready = done.get((other, rank, kind, mb), zero - LATENCY) + LATENCY
                        starts.append(max(ready, free.get((stage, rank), zero)) + 2)
                        own, wire = self.cell(random.Random(f'{self.seed}/{step}/{stage}/{rank}/{kind}/{mb}'), step, stage, rank, kind, mb)
                        now.append(starts[-1] + own[0]), work.append(own), wires.append(wire)
                    for k in range(2 * LAYERS):
                        last = max(now)
                        for rank in range(RANKS):
                            rows.append((rank, stage, step, 'C', ('dispatch', 'combine')[k % 2], now[rank], last + wires[rank][k] - now[rank], mb))
                            now[rank] = last + wires[rank][k] + work[rank][k + 1]
                    for rank in range(RANKS):
                        done[stage, rank, kind, mb] = free[stage, rank] = now[rank]
                        rows.append((rank, stage, step, kind, '', starts[rank], now[rank] - starts[rank], mb))
            end = max(free.values())
            rows += [(rank, stage, step, 'O', '', end, 2000, '') for rank in range(RANKS) for stage in range(STAGES)]
            spans, zero = spans + end - zero, end + 2000
        return rows, spans / STEPS

    def write(self, path):
        rows, span = self.rows()
        with open(path, 'w') as out:
            out.write('dp_rank,stage,rank,step,kind,name,start_us,dur_us,mb,chunk\n')
            for rank, stage, step, kind, name, start, dur, mb in sorted(rows, key=lambda r: (r[2], r[5])):
                out.write(f'{rank},{stage},{rank * STAGES + stage},{step},{kind},{name},{start:.3f},{dur:.3f},{mb},0\n')
        return path, span


def drawn(*words):
    return random.Random('/'.join(map(str, words))).random()


def hot(rank, stage, layer, **_):  # a rank of each layer: its experts are warm
    return 1.6 if rank == (layer + 1) % RANKS else 0.8


def moving(rank, layer, step, stage, mb, **_):  # forward and backward have the same rows
    busiest = int(drawn('busy', step, stage, mb, layer) * RANKS)
    return 1.9 if rank == busiest else 0.7


FAULTS = {
    'experts': dict(load=hot),
    'routing': dict(load=moving),
    'rank:9': dict(device=lambda rank, stage, **_: 1.2 if (rank, stage) == (2, 1) else 1),
    'sequences': dict(source=lambda rank, **_: 1.4 if rank == 3 else 1),
    'link:6': dict(wire=lambda rank, stage, **_: 6 if (rank, stage) == (1, 2) else 1),
    'collective:2': dict(wire=lambda stage, **_: 5 if stage == 2 else 1),
    'host:5': dict(pause=lambda rank, stage, kind, step, mb: 25000 if (rank, stage, kind) == (1, 1, 'F') and drawn(step, mb) < 0.15 else 0),
}


class Peers(Case):
    def findings(self, name, faults, seed):
        path, span = Experts(seed, **faults).write(self.dir / f'{name.replace(":", "-")}.csv')
        found = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        return [f for f in found['findings'] if f['priced']], span * 1000

    def test_the_reason_and_its_price(self):
        for key, faults in FAULTS.items():
            for seed in (1, 2):
                with self.subTest(key, seed=seed):
                    found, ill = self.findings(key, faults, seed)
                    _, well = self.findings('well', {}, seed)
                    self.assertEqual([f['key'] for f in found], [key])
                    self.assertLess(abs(found[0]['lost_ns'] - (ill - well)), 0.01 * ill + 0.1 * (ill - well))

    def test_the_bar_has_slow_exchanges_beside_the_imbalance_of_stages(self):
        path, _ = Experts(1, **FAULTS['collective:2']).write(self.dir / 'collective.csv')
        told = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        parts = {part['id']: part['share'] for part in told['parts']}
        self.assertAlmostEqual(sum(parts.values()), 1, places=6)
        self.assertGreater(parts['imbalance-peers'], 0.03)
        self.assertLess(parts['imbalance'], 0.01)
        self.assertLessEqual(parts['imbalance-peers'], told['findings'][0]['lost_share'] + 1e-9)

    def test_analyze_experts_lists_the_causes_with_their_cost(self):
        for key, name in (('experts', 'experts'), ('routing', 'routing'), ('rank:9', 'rank:9'), ('sequences', 'sequences replica 3'), ('link:6', 'link rank 6'),
                          ('collective:2', 'collective stage 2'), ('host:5', 'pauses rank 5')):
            with self.subTest(key):
                found, _ = self.findings(key, FAULTS[key], 1)
                path = self.dir / f'{key.replace(":", "-")}.csv'
                rows = json.loads(run('analyze', 'experts', path, '--table', 'expert-causes', '--format', 'json', '-q', check=0).out)['tables'][0]['rows']
                self.assertEqual([row['cause'] for row in rows], [name])
                self.assertAlmostEqual(rows[0]['cost_share'], found[0]['lost_share'], places=6)

    def test_a_placement_is_learned_from_the_first_steps_and_judged_on_the_others(self):
        """Eight experts, two a rank: the two of rank 0 are hot, one of them moves to another rank; in the second half another expert is hot as well."""
        path, _ = Experts(1, **FAULTS['experts']).write(self.dir / 'rows.csv')
        rows = ['step,stage,layer,micro_batch,expert,rows']
        for step in range(STEPS):
            for expert, load in enumerate([30, 30, 10, 10, 10, 10, 10, 10 if step < 2 else 30]):
                rows.append(f'{step},0,0,0,{expert},{load}')
        counts = self.dir / 'counts.csv'
        counts.write_text('\n'.join(rows) + '\n')
        row = json.loads(run('analyze', 'experts', path, '--expert-rows', counts, '--table', 'expert-placements', '--format', 'json', '-q', check=0).out)['tables'][0]['rows'][0]
        self.assertAlmostEqual(row['now'], 60 / 35)
        self.assertAlmostEqual(row['least'], 1)
        self.assertIn(round(row['placed'] * 35), (40, 60))  # the expert that is hot later sits with a cold one, or with a hot one
        counts.write_text('0,0,0,0,0\n')
        self.assertIn('line 1 is not step,stage,layer,micro_batch,expert,rows', run('analyze', 'experts', path, '--expert-rows', counts, check=2).err)

    def test_two_reasons_are_told_apart(self):
        found, _ = self.findings('two', dict(FAULTS['experts'], **FAULTS['rank:9']), 3)
        self.assertEqual(sorted(f['key'] for f in found), ['experts', 'rank:9'])

    def test_nothing_is_said_of_equal_ranks(self):
        for seed in range(10, 20):
            self.assertEqual(self.findings('well', {}, seed)[0], [])

    def test_a_clock_that_is_off_is_no_slow_link(self):
        rows, _ = Experts(4).rows()
        path = self.dir / 'off.csv'
        with open(path, 'w') as out:
            out.write('dp_rank,stage,rank,step,kind,name,start_us,dur_us,mb,chunk\n')
            for rank, stage, step, kind, name, start, dur, mb in rows:
                off = 100 if (rank, stage) == (1, 2) else 0
                out.write(f'{rank},{stage},{rank * STAGES + stage},{step},{kind},{name},{start + off:.3f},{dur:.3f},{mb},0\n')
        found = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        self.assertEqual([f['key'] for f in found['findings'] if f['priced']], [])


if __name__ == '__main__':
    unittest.main()
