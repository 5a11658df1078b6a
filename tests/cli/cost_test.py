"""Measures the memory of a run with many events: bytes per additional event, counted at one, two and four times as
many. No clock is read."""
import os
import unittest

from support import BIN, Case, sanitized

SIZES = (100_000, 200_000, 400_000)
NAMES = ('aten::add', 'aten::mul', 'aten::mm', 'aten::copy_')


def write_flat(path, events):
    """Operators one after the other on one thread: nothing nests, nothing is launched."""
    with open(path, 'w', encoding='utf-8') as file:
        file.write('{"traceEvents":[\n')
        for i in range(events):
            file.write(f'{"," if i else ""}{{"ph":"X","cat":"cpu_op","name":"{NAMES[i % 4]}","pid":1,"tid":1,"ts":{1000 + 2 * i}.000,"dur":1.0,"args":{{"External id":{i}}}}}\n')
        file.write(']}')
    return path


def peak(arguments):
    """Bytes of memory that the program had at most."""
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.execv(BIN, [BIN, *map(str, arguments)])
    _, status, used = os.wait4(child, 0)
    if status != 0:
        raise AssertionError(f'{arguments} ended with status {status}')
    return used.ru_maxrss * 1024


@unittest.skipIf(sanitized(), 'sanitizers take memory of their own')
class Cost(Case):
    def test_memory_grows_with_events_by_no_more_than_a_row_takes(self):
        inputs = [write_flat(self.dir / f'{n}.json', n) for n in SIZES]
        # A slice takes 64 B, its row of a profile 64, both ends of it in the critical path's graph 100 and the graph of
        # calls 150. A table's row, 300 to 400, is made when it is written.
        for name, most, words in (('report', 400, ['report', 'IN', '-o', 'out.html']), ('json', 750, ['export', 'IN', '--to', 'json', '-o', 'out.json']),
                                  ('sqlite', 750, ['export', 'IN', '--to', 'sqlite', '-o', 'out.sqlite']), ('csv', 300, ['analyze', 'events', 'IN', '--format', 'csv'])):
            with self.subTest(name):
                peaks = []
                for path in inputs:
                    words_now = [path if w == 'IN' else self.dir / w if w.startswith('out.') else w for w in words]
                    peaks.append(peak([*words_now, '-q']))
                    for made in self.dir.glob('out.*'):
                        made.unlink()
                each = [(more - less) / (n - m) for m, n, less, more in zip(SIZES, SIZES[1:], peaks, peaks[1:])]
                self.assertLess(each[1], most, f'{name}: bytes for each event, peaks {peaks}')
                self.assertLess(each[1], 1.5 * each[0] + 50, f'{name}: more for each event as they grow, {each}')


if __name__ == '__main__':
    unittest.main()
