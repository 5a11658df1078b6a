"""stageline analyze experts on traces of routers, on exchanges of profiles, and the price of other loads."""
import collections
import itertools
import json
import math
import random
import statistics
import sys
import unittest

import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'gen'))
import collectives  # noqa: E402
import router_trace  # noqa: E402
from explain_peers_test import BATCHES, LAYERS, RANKS, STAGES, STEPS, Experts  # noqa: E402
from support import Case, run  # noqa: E402


def answer(path, *options):
    out = json.loads(run('analyze', 'experts', path, '--format', 'json', '-q', *options, check=0).out)
    return {table['name']: table['rows'] for table in out['tables']}, [note['name'] for note in out.get('notes', [])]


class RouterTest(Case):
    EXPERTS = 8

    def loads(self, decisions):
        """Rows of each expert and of each source, by layer and step."""
        experts = collections.defaultdict(lambda: collections.defaultdict(lambda: [0] * self.EXPERTS))
        sources = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
        for rank, block, layer, step, chosen in decisions:
            for expert in itertools.chain(*chosen):
                if expert >= 0:
                    experts[block, layer][step][expert] += 1
                    sources[block, layer][step][rank] += 1
        return experts, sources

    def placed(self, load, ranks):
        """The fullest rank ÷ the mean of the best placement, by trying all."""
        each, best = self.EXPERTS // ranks, math.inf

        def go(left, worst):
            nonlocal best
            if worst >= best:
                return
            if not left:
                best = worst
                return
            for mates in itertools.combinations(left[1:], each - 1):
                mine = (left[0], *mates)
                go([e for e in left if e not in mine], max(worst, sum(load[e] for e in mine)))
        go(list(range(self.EXPERTS)), 0)
        return best / (sum(load) / ranks)

    def test_loads_are_those_of_the_decisions(self):
        for seed in range(4):
            decisions = router_trace.draw(seed=seed, ranks=4, hot=(seed,))
            folder = router_trace.write(self.dir / str(seed), decisions)
            rows = {(r['block'], r['layer']): r for r in answer(folder, '--ep', '2', '--capacity-factor', '1.1', '--redundant-experts', '2')[0]['expert-layers']}
            experts, sources = self.loads(decisions)
            self.assertEqual(set(rows), set(experts))
            for place, steps in experts.items():
                row, spread = rows[place], lambda v: max(v) * len(v) / sum(v)
                total = [sum(load[e] for load in steps.values()) for e in range(self.EXPERTS)]
                ranks = lambda load: [sum(load[:4]), sum(load[4:])]
                self.assertEqual((row['steps'], row['assignments'], row['hottest_expert']), (len(steps), sum(total), total.index(max(total))))
                mean = lambda of, some=steps: statistics.mean(of(some[s]) for s in some)
                self.assertAlmostEqual(row['expert_max_mean'], mean(spread), 9)
                self.assertAlmostEqual(row['expert_cv'], mean(lambda v: statistics.pstdev(v) / statistics.mean(v)), 9)
                self.assertAlmostEqual(row['rank_max_mean'], mean(lambda v: spread(ranks(v))), 9)
                self.assertAlmostEqual(row['source_max_mean'], statistics.mean(spread(list(s.values())) for s in sources[place].values()), 9)
                later = {s: steps[s] for s in sorted(steps)[len(steps) // 2:]}
                self.assertAlmostEqual(row['now_judged'], mean(lambda v: spread(ranks(v)), later), 9)
                self.assertAlmostEqual(row['least_possible'], mean(lambda v: max(1, max(v) / (sum(v) / 2)), later), 9)
                learned = [sum(steps[s][e] for s in sorted(steps)[:len(steps) // 2]) for e in range(self.EXPERTS)]
                self.assertLessEqual(row['placed_learned'], self.placed(learned, 2) * 1.02)
                self.assertGreaterEqual(row['placed_learned'], self.placed(learned, 2) - 1e-9)
                self.assertLessEqual(row['replicated_learned'], row['placed_learned'] + 1e-9)
            dropped = collections.Counter()
            for rank, block, layer, step, chosen in decisions:
                counts = collections.Counter(e for e in itertools.chain(*chosen) if e >= 0)
                room = math.ceil(len(chosen) * 2 / self.EXPERTS * 1.1)
                dropped[block, layer] += sum(max(0, n - room) for n in counts.values())
            for place, row in rows.items():
                self.assertAlmostEqual(row['dropped'], dropped[place] / row['assignments'], 9)

    def test_what_was_hot_before_and_is_not_now_cannot_be_placed(self):
        said = {}
        for moves in (False, True):
            folder = router_trace.write(self.dir / str(moves), router_trace.draw(seed=3, ranks=2, layers=1, tokens=400, hot=(0, 1), moves=moves))
            said[moves] = 'experts.not_carried' in answer(folder, '--ep', '2')[1]
        self.assertEqual(said, {False: False, True: True})

    def test_order_of_files_and_lines_changes_nothing_and_a_torn_line_is_counted(self):
        decisions = router_trace.draw(ranks=3, hot=(2,))
        first = answer(router_trace.write(self.dir / 'a', decisions))[0]
        shuffled = decisions[:]
        random.Random(1).shuffle(shuffled)
        folder = router_trace.write(self.dir / 'b', shuffled)
        (folder / 'router_trace_rank1.jsonl').rename(folder / 'zz.jsonl')
        self.assertEqual(answer(folder)[0], first)
        path = folder / 'zz.jsonl'
        path.write_text(path.read_text()[:-40])
        about = json.loads(run('info', folder, '--json', check=0).out)
        self.assertEqual(about['format'], 'router-trace')
        self.assertTrue([d for d in about['diagnostics'] if d['severity'] == 'loss'])

    def test_hostile_lines(self):
        good = router_trace.line(router_trace.draw()[0])
        for bad in ('"layer":-1', '"rank":99999999999', '"topk":0', '"num_tokens":1e400', '"step":-3', '"top_indices":[[70000,1]]', '"top_indices":[[-7,1]]'):
            key = bad.split(':')[0]
            record = json.loads(good)
            text = good.replace(f'{key}:{json.dumps(record[json.loads(key)], separators=(",", ":"))}', bad)
            self.assertNotEqual(text, good)
            (self.dir / 'router_trace_rank0.jsonl').write_text(text + '\n' + good + '\n')
            about = json.loads(run('info', self.dir, '--json', check=0).out)
            self.assertEqual([d['count'] for d in about['diagnostics'] if d['name'] == 'router_trace.bad_line'], [1], bad)


class ExchangesTest(Case):
    """Four ranks that share experts: outside, dispatch, grouped product, combine; times in µs, 10 rows take 1 µs."""
    RANKS, LAYERS, STEPS, ROWS, HIDDEN = 4, 3, 2, 4000, 64

    def write(self, name, rows=None, outside=None, expert=None, wire=None):
        """Returns the folder and the time from the first dispatch to the last combine."""
        rng = random.Random(7)
        n = self.RANKS
        job = collectives.Job(['node'] * n, groups=[('3', 'mesh_ep', list(range(n)))])
        at, number, began = [1000.0] * n, 0, None
        for step in range(self.STEPS):
            start = min(at)
            for layer in range(self.LAYERS):
                to = [[self.ROWS // n + rng.randrange(-20, 20) for _ in range(n)] for _ in range(n)]  # from a rank to a rank
                if rows:
                    rows(to, step, layer)
                back = [[to[i][r] for i in range(n)] for r in range(n)]
                for way, sent in (('dispatch', to), ('combine', back)):
                    for r in range(n):
                        own = outside(r) if outside else 1
                        length = 300 * own if way == 'dispatch' else sum(sent[r]) / 10 * (expert(r) if expert else 1)
                        job.compute(r, at[r], at[r] + length)
                        at[r] += length + 2
                    began = began or max(at)
                    last = max(at)
                    number += 1
                    for r in range(n):
                        came = [sent[i][r] for i in range(n)]
                        took = 10 + max(sum(sent[r]), sum(came)) / 200 * (wire(r) if wire else 1)
                        splits = {'In_split_size': str(sent[r]), 'Out_split_size': str(came)}
                        job.call(r, at[r], last + took, [job.args('all_to_allv', 0, (sum(sent[r]) * self.HIDDEN, sum(came) * self.HIDDEN), number, **splits)])
                        at[r] = last + took + 2
            job.step(step + 3, start - 30, max(at))
        job.write(self.dir / name)
        return self.dir / name, max(at) - 2 - began

    def causes(self, name, **faults):
        path, ill = self.write(name, **faults)
        tables, notes = answer(path)
        said = ' '.join(run('explain', path, '-q').out.split())
        for row in tables['expert-causes']:  # the finding that has the time says why
            self.assertIn(row['how'] + '.', said)
        return tables, {row['cause']: row for row in tables['expert-causes']}, ill, notes

    def test_each_cause_and_its_price(self):
        def hot(to, *_):
            for row in to:
                row[2] += 500

        def moving(to, step, layer):
            for row in to:
                row[random.Random(f'{step}/{layer}').randrange(4)] += 700

        def none(*_):
            pass
        _, well = self.write('well')
        self.assertEqual(answer(self.dir / 'well')[0]['expert-causes'], [])
        for key, faults in (('rank:1', dict(outside=lambda r: 1.2 if r == 1 else 1, expert=lambda r: 1.2 if r == 1 else 1)),
                            ('kernel rank 3', dict(expert=lambda r: 1.3 if r == 3 else 1)), ('sequences rank 0', dict(outside=lambda r: 1.4 if r == 0 else 1)),
                            ('link rank 2', dict(wire=lambda r: 4 if r == 2 else 1))):
            with self.subTest(key):
                _, causes, ill, _ = self.causes(key.replace(':', '-').replace(' ', '-'), **faults)
                self.assertEqual(list(causes), [key])
                self.assertAlmostEqual(causes[key]['cost_share'], 1 - well / ill, delta=0.01 + 0.1 * (1 - well / ill))
        for key, fault in (('experts rank 2', hot), ('routing', moving)):
            with self.subTest(key):
                tables, causes, _, _ = self.causes(key.replace(' ', '-'), rows=fault)
                self.assertEqual(list(causes), [key])
                self.assertGreater(causes[key]['cost_share'], 0.1)

    def test_rows_and_times_are_those_of_the_plan(self):
        def hot(to, *_):
            for row in to:
                row[2] += 500
        tables, _, _, _ = self.causes('hot', rows=hot)
        ranks = {row['rank']: row for row in tables['experts']}
        sent = self.RANKS * 500 * self.LAYERS * self.STEPS
        self.assertEqual(sum(r['rows_sent'] for r in ranks.values()), sum(r['rows_received'] for r in ranks.values()))
        self.assertGreater(ranks[2]['rows_received'] - ranks[1]['rows_received'], sent * 0.95)
        for rank, row in ranks.items():
            self.assertAlmostEqual(row['expert_ns'], row['rows_received'] * 100, delta=len(ranks) * 20)
            self.assertEqual(row['outside_ns'], (300 * self.LAYERS * self.STEPS + 250) * 1000)
            others = statistics.median(r['rows_received'] for k, r in ranks.items() if k != rank)
            self.assertAlmostEqual(row['rows_ratio'], row['rows_received'] / others, 9)

    def test_padded_rows_show_no_hot_expert(self):
        def padded(to, *_):
            for row in to:
                row[:] = [self.ROWS // self.RANKS] * self.RANKS
        self.assertIn('experts.padded', self.causes('padded', rows=padded)[3])

    def test_a_profile_without_splits_says_so(self):
        job = collectives.example()
        job.write(self.dir / 'plain')
        self.assertIn('all-to-alls have splits', run('analyze', 'experts', self.dir / 'plain', check=2).err)


class PricesTest(Case):
    """The experts of a stage and layer on its four ranks, two each; a row takes a microsecond."""

    def rows_of(self, step, layer, mb, where, cut=None):
        rng = random.Random(f'{step}/{layer}/{mb}')
        rows = [60 + rng.randrange(-5, 5) + (110 if e in (2 * layer, 2 * layer + 1) else 0) for e in range(2 * RANKS)]
        if cut:
            rows = [min(n, math.ceil(sum(rows) / len(rows) * cut)) for n in rows]
        return rows, [sum(n for e, n in enumerate(rows) if where(layer, e) == r) for r in range(RANKS)]

    def span(self, name, where, cut=None):
        def load(rank, layer, step, mb, **_):
            return self.rows_of(step, layer, mb, where, cut)[1][rank] / 150
        return Experts(1, load=load).write(self.dir / name)

    def test_a_placement_and_a_capacity_save_what_the_run_without_them_takes_longer(self):
        now = lambda layer, e: e // 2
        path, ill = self.span('now.csv', now)
        lines = ['step,stage,layer,micro_batch,expert,rows']
        for step, stage, layer, mb in itertools.product(range(STEPS), range(STAGES), range(LAYERS), range(BATCHES)):
            lines += [f'{step},{stage},{layer},{mb},{e},{n}' for e, n in enumerate(self.rows_of(step, layer, mb, now)[0])]
        (self.dir / 'rows.csv').write_text('\n'.join(lines) + '\n')
        tables, _ = answer(path, '--expert-rows', self.dir / 'rows.csv', '--capacity-factor', '1.2', '--redundant-experts', '4')
        saved = {row['change']: row for row in tables['expert-prices']}
        # The two hot experts of a layer on two ranks.
        _, placed = self.span('placed.csv', lambda layer, e: e // 2 if e % 2 == 0 else (e // 2 + 1) % RANKS)
        self.assertGreater(1 - placed / ill, 0.05)
        self.assertAlmostEqual(saved['placement']['saving_share'], 1 - placed / ill, delta=0.006)
        _, capped = self.span('capped.csv', now, cut=1.2)
        self.assertAlmostEqual(saved['capacity']['saving_share'], 1 - capped / ill, delta=0.006)
        self.assertGreater(saved['capacity']['dropped'], 0.05)
        self.assertGreater(saved['copies']['saving_share'], saved['placement']['saving_share'])
        self.assertEqual({row['rank'] for row in tables['experts']}, set(range(STAGES * RANKS)))


if __name__ == '__main__':
    unittest.main()
