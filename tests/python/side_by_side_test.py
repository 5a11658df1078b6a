"""A pipeline that is recorded and exports spans at once: both give the same schedule and order, and times within 10 µs."""
import collections
import csv
import io
import pathlib
import shutil
import subprocess
import unittest

from recorded import BIN, Recorded, clean_environment, info

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = pathlib.Path(BIN).resolve().parent / 'record'
STAGES, MICRO_BATCHES, STEPS = 4, 8, 3
WITHIN_NS = 10_000


def cells(path):
    """Rank → [(kind, step, chunk, micro-batch, start, end)] in order of start."""
    query = 'SELECT rank, kind, step, chunk, micro_batch, start_ns, end_ns FROM cells ORDER BY rank, start_ns'
    done = subprocess.run([BIN, 'sql', str(path), query, '--format', 'csv', '-q'], capture_output=True, text=True, check=True)
    out = collections.defaultdict(list)
    for c in csv.DictReader(io.StringIO(done.stdout)):
        out[int(c['rank'])].append((c['kind'], int(c['step']), int(c['chunk']), int(c['micro_batch']), int(c['start_ns']), int(c['end_ns'])))
    return dict(out)


@unittest.skipUnless(shutil.which('cc') and (LIBRARY / 'libstageline_record.so').exists(), 'needs cc and the build tree')
class SideBySide(Recorded):
    def test_the_recording_and_the_spans_agree(self):
        program, spans = self.dir / 'side_by_side', self.dir / 'spans'
        spans.mkdir()
        subprocess.run(['cc', '-O1', '-I', HERE.parents[1] / 'record/include', HERE / 'side_by_side.c', '-o', program, '-L', LIBRARY, f'-Wl,-rpath,{LIBRARY}',
                        '-lstageline_record'], check=True)
        subprocess.run([program, *map(str, (STAGES, MICRO_BATCHES, STEPS)), spans], check=True, env=clean_environment(STAGELINE_DIR=str(self.out)))
        stamps = {rank: [line.split() for line in (spans / f'rank{rank}.stamps').read_text().splitlines()] for rank in range(STAGES)}
        for path in (self.out, spans):
            said = info(path)
            self.assertEqual((said['ranks'], said['cells'], said['steps'], said['schedule']['name']), (STAGES, STAGES * STEPS * MICRO_BATCHES * 2, STEPS, '1f1b'))
        recorded, exported = cells(self.out), cells(spans)
        order = {rank: [(kind, int(step), 0, int(mb)) for kind, step, mb, *_ in of] for rank, of in stamps.items()}
        for found in (recorded, exported):
            self.assertEqual({rank: [cell[:4] for cell in of] for rank, of in found.items()}, order)
        # Tables count from the first slice of a run.
        first = int(stamps[0][0][4]) - exported[0][0][4]
        behind = []
        for rank, of in stamps.items():
            for (*_, start, end), (*_, span_start, span_end), (*_, before, begin, stop, after) in zip(recorded[rank], exported[rank], of, strict=True):
                self.assertEqual((span_start + first, span_end + first), (int(begin), int(stop)))
                behind += [(start + first - int(begin), int(before) - int(begin)), (end + first - int(stop), int(after) - int(stop))]
        shift = sorted(a for a, _ in behind)[len(behind) // 2]
        for apart, allowed in behind:
            low, high = min(0, allowed), max(0, allowed)  # where the recorder's own stamp may lie
            self.assertTrue(low - WITHIN_NS <= apart - shift <= high + WITHIN_NS, (apart - shift, allowed))


if __name__ == '__main__':
    unittest.main()
