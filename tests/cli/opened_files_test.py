"""Every file that a command opens, as the system reports it, is refused as any output of this command. The test takes all commands, all options that name an output, all roles
of an input. STAGELINE_TRUST_ALL=1 takes every fixture, every kind of file in it and every command; otherwise a part of them."""
import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from support import BIN, SOURCE, Case, run

GOLDEN = SOURCE / 'tests/golden/readers'
ALL = bool(os.environ.get('STAGELINE_TRUST_ALL'))
# One fixture for each way to open files: text, compressed text, SQLite, text exports next to each other, mapped recordings, pickles, protobuf.
SOME = ('paddle-log', 'kineto', 'ascend-1f1b', 'ascend-text', 'recording', 'flight-recorder', 'nsys', 'rocprofv3-csv', 'xplane', 'perfetto', 'primus', 'digest')
# Words with the places of a run, and of what else is read; OUT is what is written.
COMMANDS = [
    ['info', 'RUN', '-o', 'OUT'], ['info', 'RUN', '--json', '-o', 'OUT'], ['explain', 'RUN', '-o', 'OUT'], ['report', 'RUN', '-o', 'OUT'], ['align', 'RUN', '-o', 'OUT'],
    ['what-if', 'RUN', '-o', 'OUT'], ['sql', 'RUN', 'SELECT * FROM slices LIMIT 3', '-o', 'OUT'], ['sql', 'RUN', '--file', 'QUERY', '-o', 'OUT'], ['event', 'RUN', '--index', '0', '-o', 'OUT'],
    ['export', 'RUN', '--to', 'json', '-o', 'OUT'], ['export', 'RUN', '--to', 'sqlite', '-o', 'OUT'], ['export', 'RUN', '--to', 'perfetto', '-o', 'OUT'], ['export', 'RUN', '--to', 'csv', '-o', 'OUT'],
    ['export', 'RUN', '--to', 'trace-with-counters', '-o', 'OUT'], ['export-stacks', 'RUN', '-o', 'OUT'], ['analyze', 'events', 'RUN', '-o', 'OUT'],
    ['analyze', 'critical-path-analysis', 'RUN', '--overlay', 'OUT'], ['analyze', 'trace-diff', '--control', 'RUN', '--test', 'SECOND', '-o', 'OUT'], ['diff', 'RUN', 'SECOND', '-o', 'OUT'],
    ['report', 'RUN', '--compare', 'SECOND', '-o', 'OUT'], ['explain', 'RUN', '--cell-rules', 'RULES', '-o', 'OUT'], ['digest', 'RUN', '-o', 'OUT'], ['recover', 'RUN', '-o', 'OUT'],
    ['history', 'add', 'RUN', '--db', 'OUT'], ['pp-chart', 'RUN', '-o', 'OUT'], ['schedule', '--from-csv', 'ORDER', '--format', 'csv', '-o', 'OUT']]
FEW = [c for c in COMMANDS if c[0] in ('info', 'sql', 'digest', 'history') or 'json' in c]


def bytes_below(folder):
    return {p: p.read_bytes() for p in folder.rglob('*') if p.is_file()}


@unittest.skipUnless(shutil.which('strace'), 'needs strace')
class EveryOpenedFileStays(Case):
    def opened_by(self, words, work):
        """Files below `work` that the command opens, except those that it makes."""
        log, new = work.parent / f'{work.name}.strace', work.parent / f'{work.name}.out'
        subprocess.run(['strace', '-f', '-qq', '-e', 'trace=open,openat', '-o', log, BIN, *(str(new) if w == 'OUT' else w for w in words), '-q'],
                       capture_output=True, timeout=120, check=False, cwd=work.parent)
        opened = {os.path.realpath(p) for p in re.findall(r'open(?:at)?\([^"]*"([^"]+)"[^\n]*\) = \d', log.read_text()) if p.startswith(f'{work}/')}
        log.unlink()
        for path in work.parent.glob(f'{work.name}.out*'):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return sorted(p for p in opened if os.path.isfile(p))

    def try_fixture(self, fixture, commands):
        """(tries, what was lost or taken)"""
        work, lost, tries = self.dir / fixture.name, [], 0
        for role in ('run', 'second'):
            shutil.copytree(fixture / 'input', work / role)
        for name, text in (('rules.txt', ''), ('query.sql', 'SELECT 1'), ('order.csv', 'stage,index,kind,microbatch,chunk\n0,0,F,0,0\n0,1,B,0,0\n')):
            (work / name).write_text(text)
        before = bytes_below(work)
        kinds = {}
        for path in sorted(p for p in (work / 'run').rglob('*') if p.is_file()):
            kinds.setdefault(re.sub(r'[0-9a-f]{16}|\d+', '#', str(path.relative_to(work))), path)
        single = list(kinds.values()) if ALL else list(kinds.values())[:2]
        for given, words in [(work / 'run', w) for w in commands] + [(path, w) for path in single for w in (commands if ALL else FEW[:1] + FEW[-1:])]:
            if given != work / 'run' and 'RUN' not in words:
                continue
            places = {'RUN': given, 'SECOND': work / 'second', 'RULES': work / 'rules.txt', 'QUERY': work / 'query.sql', 'ORDER': work / 'order.csv'}
            words = [str(places.get(w, w)) for w in words]
            by_kind = {}
            for path in self.opened_by(words, work):
                by_kind.setdefault(re.sub(r'[0-9a-f]{16}|\d+', '#', path), path)
            for path in by_kind.values():
                done = run(*[path if w == 'OUT' else w for w in words], '-q', timeout=120, cwd=work.parent)
                tries += 1
                if done.returncode != 2:
                    lost.append((fixture.name, 'taken', words, path))
                if bytes_below(work) != before:
                    lost.append((fixture.name, 'LOST', words, path))
                    for changed, data in before.items():
                        changed.write_bytes(data)
                    for new in set(bytes_below(work)) - set(before):
                        new.unlink()
        shutil.rmtree(work)
        return tries, lost

    def test_no_output_destroys_what_its_command_reads(self):
        fixtures = [f for f in sorted(GOLDEN.iterdir()) if ALL or f.name in SOME]
        # Each fixture sees some of the commands, and all fixtures together each of them several times.
        of = [COMMANDS if ALL else FEW[:1] + [c for n, c in enumerate(COMMANDS) if n % 3 == i % 3] for i in range(len(fixtures))]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(self.try_fixture, fixtures, of))
        lost = list(itertools.chain.from_iterable(lost for _, lost in results))
        tries = sum(n for n, _ in results)
        print(f'{tries} outputs tried, {len(lost)} taken or lost')
        self.assertEqual(lost, [])
        self.assertGreater(tries, 150)


if __name__ == '__main__':
    unittest.main()
