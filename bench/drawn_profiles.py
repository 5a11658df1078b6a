"""Asks explain about profiles of jobs drawn at random (tests/gen/drawn_jobs.py). It counts healthy runs with a false finding, and planted faults that are named.

  STAGELINE_BIN=PROGRAM python3 bench/drawn_profiles.py FIRST:COUNT [--healthy] [--keep DIR] [--verbose]

A fault counts from a cost of 1 % of the run on. A slow link or card is named where the places of a finding on links hold a rank of it.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'tests' / 'gen'))
import drawn_jobs  # noqa: E402

LEAST = 0.01
# Findings that name the fault; `None`: any rank, since the fault is everybody's.
NAMES = {'nic': ('comm.slow_link',), 'link': ('comm.slow_link',), 'late': ('rank.late', 'input.loading', 'host.busy', 'device.idle'), 'slow': ('rank.slow',),
         'storm': ('comm.small',), 'bucket': ('comm.bucket',), 'saturated': ('comm.exposed',)}
EVERYBODYS = ('storm', 'bucket', 'saturated')
# Findings that a healthy run may have: communication that nothing covers is a fact of its layout.
FACTS = ('none', 'comm.exposed', 'device.unused')


def explain(folder):
    out = subprocess.run([os.environ['STAGELINE_BIN'], 'explain', folder, '--format', 'json', '-q'], capture_output=True, text=True)
    if out.returncode:
        raise SystemExit(out.stderr)
    return json.loads(out.stdout)['findings']


def ranks_of(finding):
    return {rank for place in finding.get('places', []) for rank in place.get('ranks', [])} | ({finding['rank']} if isinstance(finding.get('rank'), int) else set())


def names(case, finding):
    return finding['id'] in NAMES[case.kind] and (case.kind in EVERYBODYS or case.rank in ranks_of(finding))


def judge(job):
    seed, faulty, keep = job
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(keep or scratch, str(seed))
        case, cost = drawn_jobs.make(seed, faulty, folder)
        return case, cost, explain(folder)


def is_true(case, finding):
    """Whether a rank of a healthy run costs what it is told to: devices are not equally fast, and rarely one is some percent slower than all others."""
    if finding['id'] not in ('rank.late', 'rank.slow'):
        return False
    without = drawn_jobs.Job(case, None, level=finding['places'][0]['ranks'][0]).wall()
    return abs(1 - without / drawn_jobs.Job(case, None).wall() - finding['lost_share']) <= 0.01


def false_of(case, findings):
    """Findings that are about nothing that was planted."""
    if case.kind is None:
        return [f for f in findings if f['id'] not in FACTS and not is_true(case, f)]
    return [f for f in findings if f['id'] == 'comm.slow_link' and not names(case, f)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('seeds')
    parser.add_argument('--healthy', action='store_true')
    parser.add_argument('--keep')
    parser.add_argument('--verbose', action='store_true')
    parser.add_argument('--jobs', type=int, default=1)
    options = parser.parse_args()
    first, count = map(int, options.seeds.split(':'))
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])  # drawn, named, named first, price right
    false = 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for case, cost, findings in pool.map(judge, [(seed, not options.healthy, options.keep) for seed in range(first, first + count)]):
            wrong = false_of(case, findings)
            false += bool(wrong)
            said = [(f['id'], sorted(ranks_of(f)), round(100 * f['lost_share'], 1)) for f in findings]
            hit = [k for k, f in enumerate(findings) if case.kind and names(case, f)]
            if wrong or options.verbose or (case.kind and cost >= LEAST and not hit):
                print(case.seed, case.traffic, '%d×%d' % (case.hosts, case.per_host), case.kind, 'rank %d' % case.rank, '×%.2f' % case.by, '%.1f %%' % (100 * cost), 'FALSE' if wrong else 'named' if hit else '', said)
            if not case.kind or cost < LEAST:
                continue
            kind = case.kind + (' ×%.2f' % case.by if case.kind in ('nic', 'link') else '')
            sums[kind][0] += 1
            sums[kind][1] += bool(hit)
            sums[kind][2] += hit[:1] == [0]
            sums[kind][3] += bool(hit) and abs(findings[hit[0]]['lost_share'] - cost) <= max(0.01, 0.15 * cost)
    print('runs with a false finding: %d of %d' % (false, count))
    for kind in sorted(sums):
        print('%-12s drawn %3d  named %3d  first %3d  cost within 1 point or 15 %% %3d' % (kind, *sums[kind]))


if __name__ == '__main__':
    main()
