"""stageline analyze packing: a small pipeline whose cells take time by the lengths of their sequences, simulated here as recorded and as it would be."""
import itertools
import json
import random
import unittest

from support import Case, run

STAGES, REPLICAS, BATCHES, STEPS, LATENCY = 2, 3, 6, 4, 50  # µs


def order(stage):
    warm = min(STAGES - 1 - stage, BATCHES)
    out = [('F', i) for i in range(warm)]
    for i in range(BATCHES - warm):
        out += [('F', warm + i), ('B', i)]
    return out + [('B', i) for i in range(BATCHES - warm, BATCHES)]


def simulate(lengths, slow=()):
    """Rows of an operation table, and the time from the first start to the last end, in µs. A token takes 0.05, a square 2e-5; backwards twice as long."""
    rows, zero = [], 1e6
    for step in range(STEPS):
        end = zero
        for replica in range(REPLICAS):
            done, free = {}, {}
            todo = {stage: order(stage) for stage in range(STAGES)}
            while any(todo.values()):
                for stage, left in todo.items():
                    if not left:
                        continue
                    kind, mb = left[0]
                    other = stage - 1 if kind == 'F' else stage + 1
                    if 0 <= other < STAGES and (other, kind, mb) not in done:
                        continue
                    left.pop(0)
                    some = lengths[step, replica, mb]
                    noise = 1 + 0.004 * random.Random(f'{step}/{replica}/{stage}/{kind}/{mb}').gauss(0, 1)
                    dur = (300 + 0.05 * sum(some) + 2e-5 * sum(x * x for x in some)) * (1 if kind == 'F' else 2) * noise * (1.2 if (replica, stage) in slow else 1)
                    start = max(free.get(stage, zero), done.get((other, kind, mb), zero - LATENCY) + LATENCY)
                    free[stage] = done[stage, kind, mb] = start + dur
                    rows.append((replica, stage, step, kind, start, dur, mb))
            end = max(end, *free.values())
        for replica, stage in itertools.product(range(REPLICAS), range(STAGES)):
            rows.append((replica, stage, step, 'O', end, 500, ''))
        zero = end + 500
    return rows, zero - 1e6


def draw(seed, longer=None, equal=False):
    rng = random.Random(seed)
    out = {}
    for at in itertools.product(range(STEPS), range(REPLICAS), range(BATCHES)):
        some = []
        while sum(some) < 8192:
            some.append(1024 if equal else min(max(64, int(rng.lognormvariate(6.5 + (1.2 if at[1] == longer else 0), 0.8))), 8192 - sum(some)))
        out[at] = some
    return out


class PackingTest(Case):
    def ask(self, name, lengths, *options, slow=(), write=None):
        rows, span = simulate(lengths, slow)
        path = self.dir / f'{name}.csv'
        with open(path, 'w') as out:
            out.write('dp_rank,stage,rank,step,kind,name,start_us,dur_us,mb,chunk\n')
            for replica, stage, step, kind, start, dur, mb in rows:
                out.write(f'{replica},{stage},{replica * STAGES + stage},{step},{kind},,{start:.3f},{dur:.3f},{mb},0\n')
        table = self.dir / f'{name}.lengths.csv'
        lines = [f'{s},{d},{m},{i},{x}' for (s, d, m), some in (write or lengths).items() for i, x in enumerate(some)]
        table.write_text('step,dp_rank,micro_batch,index,length\n' + '\n'.join(lines) + '\n')
        out = json.loads(run('analyze', 'packing', path, '--lengths', table, '--format', 'json', '-q', *options, check=0).out)
        return {t['name']: t['rows'] for t in out['tables']}, span, [note['name'] for note in out.get('notes', [])]

    def test_the_cost_is_that_of_the_run_with_equal_micro_batches(self):
        for seed, longer in ((1, None), (2, 1), (3, 2)):
            with self.subTest(seed):
                lengths = draw(seed, longer)
                tables, span, _ = self.ask(f'run{seed}', lengths)
                row = tables['packing'][0]
                # With all packs at the mean square of the step, each sequence √(mean of squares ÷ number) long.
                same = {}
                for step in range(STEPS):
                    at = [k for k in lengths if k[0] == step]
                    mean = sum(x * x for k in at for x in lengths[k]) / len(at)
                    for k in at:  # 8 192 tokens as before: n − 1 short ones, and one that makes up for the squares
                        same[k] = self.of_sums(8192, mean)
                _, without = simulate(same)
                self.assertAlmostEqual(row['cost_share'], 1 - without / span, delta=0.003)
                self.assertEqual(row['cause'], 'sequences' if longer is None and row['most_often_count'] < 3 else f'sequences replica {row["most_often"]}')
                if longer is not None:
                    self.assertEqual((row['most_often'], row['most_often_count']), (longer, STEPS))
                for kind, fit in ((r['direction'], r) for r in tables['packing-fit']):
                    self.assertAlmostEqual(fit['ns_per_square'], 0.02 if kind == 'forward' else 0.04, delta=0.002)

    def of_sums(self, tokens, squares):
        """Lengths (not whole numbers) with that sum and sum of squares: one of x and many equal ones."""
        n = 60
        rest = lambda x: x * x + (tokens - x) ** 2 / n
        low, high = tokens / (n + 1), float(tokens)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if rest(middle) < squares else (low, middle)
        return [low] + [(tokens - low) / n] * n

    def test_another_distribution_saves_what_its_run_takes_less(self):
        lengths = draw(5, longer=0)
        tables, span, _ = self.ask('run', lengths)
        best = {}
        for step in range(STEPS):  # the heaviest first, each to the replica with least
            load, got = [0.0] * REPLICAS, [0] * REPLICAS
            some = sorted((k for k in lengths if k[0] == step), key=lambda k: -sum(x * x for x in lengths[k]))
            for k in some:
                replica = min((r for r in range(REPLICAS) if got[r] < BATCHES), key=lambda r: (load[r], r))
                best[step, replica, got[replica]] = lengths[k]
                load[replica] += sum(x * x for x in lengths[k])
                got[replica] += 1
        _, dealt = simulate(best)
        row = tables['packing'][0]
        self.assertGreater(1 - dealt / span, 0.03)
        self.assertAlmostEqual(row['dealt_share'], 1 - dealt / span, delta=0.005)
        self.assertGreater(row['packed_share'] or 1, row['dealt_share'] - 0.01)

    def test_what_is_not_of_lengths_costs_nothing(self):
        for name, lengths, slow in (('equal', draw(1, equal=True), ()), ('slow', draw(1, equal=True), ((1, 1),))):
            tables, _, notes = self.ask(name, lengths, slow=slow)
            row = tables['packing'][0]
            self.assertEqual((row['cause'], row['cost_share'], row['dealt_share']), ('', 0, 0))
            self.assertIn('packing.not_explained', notes)
            self.assertEqual({(r['tokens_max_mean'], r['squares_max_mean']) for r in tables['packing-steps']}, {(1, 1)})

    def test_cells_without_lengths_and_lengths_without_cells(self):
        lengths = draw(1)
        some = {k: v for k, v in lengths.items() if k[0] != 2}
        self.assertIn('packing.without_lengths', self.ask('some', lengths, write=some)[2])
        none = {(s + 50, d, m): v for (s, d, m), v in lengths.items()}
        path, table = self.dir / 'some.csv', self.dir / 'none.csv'
        table.write_text('\n'.join(f'{s},{d},{m},{i},{x}' for (s, d, m), v in none.items() for i, x in enumerate(v)))
        self.assertEqual(run('analyze', 'packing', path, '--lengths', table).returncode, 2)
        table.write_text('0,0,0,0,minus\n')
        self.assertIn('line 1 is not step,dp_rank', run('analyze', 'packing', path, '--lengths', table, check=2).err)
        self.assertIn('--lengths FILE', run('analyze', 'packing', path, check=0).err)

    def test_shares_of_context_are_those_counted_pair_by_pair(self):
        rng = random.Random(9)
        packs = {(s, d, m): [rng.randrange(1, 40) for _ in range(rng.randrange(1, 5))] for s, d, m in itertools.product(range(STEPS), range(REPLICAS), range(BATCHES))}
        for ranks in (2, 3, 4):
            rows = {r['split']: r for r in self.ask(f'context{ranks}', packs, '--context-parallel', str(ranks))[0]['packing-context']}
            for split in ('contiguous', 'zigzag', 'zigzag-sequence'):
                share, ring = [], []
                for lengths in packs.values():
                    owner = self.owners(lengths, ranks, split)
                    block = [[0] * ranks for _ in range(ranks)]
                    at = 0
                    for n in lengths:
                        for q in range(n):
                            for k in range(q + 1):
                                block[owner[at + q]][owner[at + k]] += 1
                        at += n
                    mean = sum(map(sum, block)) / ranks
                    share.append(max(map(sum, block)) / mean)
                    ring.append(sum(max(block[i][(i - k) % ranks] for i in range(ranks)) for k in range(ranks)) / mean)
                self.assertEqual(rows[split]['packs'], len(packs))
                self.assertAlmostEqual(rows[split]['share_max_mean'], sum(share) / len(share), 9)
                self.assertAlmostEqual(rows[split]['ring_max_mean'], sum(ring) / len(ring), 9)

    def owners(self, lengths, ranks, split):
        def of(n, at):
            chunks = ranks if split == 'contiguous' else 2 * ranks
            j = next(j for j in range(chunks) if at < n * (j + 1) // chunks)
            return j if j < ranks else chunks - 1 - j
        if split == 'zigzag-sequence':
            return [of(n, at) for n in lengths for at in range(n)]
        return [of(sum(lengths), at) for at in range(sum(lengths))]


if __name__ == '__main__':
    unittest.main()
