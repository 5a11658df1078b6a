"""Every file that a command opens, as the system reports it, is refused as any output of this command. The test takes all commands, all options that name an output, all roles
of an input. STAGELINE_TRUST_ALL=1 takes every fixture, every kind of file in it and every command; otherwise a part of them."""
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest
import urllib.error
import urllib.request

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
    ['report', 'RUN', '--compare', 'SECOND', '-o', 'OUT'], ['explain', 'RUN', '--cell-rules', 'RULES', '-o', 'OUT'], ['explain', 'RUN', '--model', 'MODEL', '-o', 'OUT'],
    ['analyze', 'idle-time-breakdown', 'RUN', '--compat', 'hta', '-o', 'OUT'], ['plan', 'MODEL', '--gpus', '8', '--memory', '80GiB', '-o', 'OUT'], ['digest', 'RUN', '-o', 'OUT'], ['recover', 'RUN', '-o', 'OUT'],
    ['history', 'add', 'RUN', '--db', 'OUT'], ['pp-chart', 'RUN', '-o', 'OUT'], ['schedule', '--from-csv', 'ORDER', '--format', 'csv', '-o', 'OUT']]
MODEL = json.dumps({'model_type': 'llama', 'hidden_size': 1024, 'num_hidden_layers': 8, 'num_attention_heads': 16, 'intermediate_size': 4096, 'vocab_size': 32000})
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
        for name, text in (('rules.txt', ''), ('model.json', MODEL), ('query.sql', 'SELECT 1'), ('order.csv', 'stage,index,kind,microbatch,chunk\n0,0,F,0,0\n0,1,B,0,0\n')):
            (work / name).write_text(text)
        before = bytes_below(work)
        kinds = {}
        for path in sorted(p for p in (work / 'run').rglob('*') if p.is_file()):
            kinds.setdefault(re.sub(r'[0-9a-f]{16}|\d+', '#', str(path.relative_to(work))), path)
        single = list(kinds.values()) if ALL else list(kinds.values())[:2]
        for given, words in [(work / 'run', w) for w in commands] + [(path, w) for path in single for w in (commands if ALL else FEW[:1] + FEW[-1:])]:
            if given != work / 'run' and 'RUN' not in words:
                continue
            places = {'RUN': given, 'SECOND': work / 'second', 'RULES': work / 'rules.txt', 'MODEL': work / 'model.json', 'QUERY': work / 'query.sql', 'ORDER': work / 'order.csv'}
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

    def changed_by(self, words, talk, cwd):
        """Names that a command and its processes open for writing, make, rename or remove, while `talk` talks to it."""
        log = self.dir / 'changes.strace'
        child = subprocess.Popen(['strace', '-f', '-qq', '-s', '999', '-e', 'trace=%file', '-o', log, BIN, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True, cwd=cwd, env={**os.environ, 'TMPDIR': str(cwd)})
        try:
            talk(child)
        finally:  # strace passes no signal on
            for pid in subprocess.run(['ps', '-o', 'pid=', '--ppid', str(child.pid)], capture_output=True, text=True).stdout.split():
                os.kill(int(pid), signal.SIGTERM)
            child.wait(60)
            child.stdin.close()
            child.stdout.close()
        changes = set()
        for line in log.read_text(errors='replace').splitlines():
            call = re.search(r'\b(open|openat|creat|unlink|unlinkat|rename|renameat2?|truncate|mkdir|mkdirat|rmdir|link|linkat|symlink|symlinkat|chmod|fchmodat|chown|fchownat)\((.*)', line)
            if call and ' = -1' not in line and (not call[1].startswith('open') or re.search('O_WRONLY|O_RDWR|O_CREAT|O_TRUNC', call[2])):
                changes |= {os.path.join(cwd, name) for name in re.findall(r'"([^"]+)"', call[2])}
        return changes

    def test_a_viewer_and_its_companion_change_notes_alone(self):
        for fixture in ('paddle-log', 'kineto', 'nsys', 'recording'):
            work, own = self.dir / fixture / 'run', self.dir / fixture / 'own'
            shutil.copytree(GOLDEN / fixture / 'input', work)
            own.mkdir()
            notes, precious = work.parent / 'run.stageline-notes.json', work.parent / 'precious'
            precious.write_text('mine')
            before = bytes_below(work)

            def talk(child, work=work, notes=notes, precious=precious):
                url = child.stdout.readline().strip().rstrip('/')
                ask = lambda path, **how: urllib.request.urlopen(urllib.request.Request(url + path, **how), timeout=60).read()
                while b'ready' not in ask('/api/status'):
                    time.sleep(0.1)
                kept = 0
                for plant in (lambda: None, lambda: notes.symlink_to(precious), lambda: os.link(precious, notes), lambda: notes.symlink_to(next(p for p in work.rglob('*') if p.is_file())),
                              lambda: os.mkfifo(notes), notes.mkdir, lambda: notes.write_text('{"by": "hand"}'), lambda: None):
                    if notes.is_symlink() or notes.exists():
                        notes.rmdir() if notes.is_dir() and not notes.is_symlink() else notes.unlink()
                    plant()
                    try:
                        kept += b'written' in ask('/api/notes', method='PUT', data=b'{"notes": [{"t": 5, "text": "written"}]}', headers={'Content-Type': 'application/json'})
                    except urllib.error.HTTPError as refused:
                        refused.close()
                    self.assertEqual(precious.read_text(), 'mine')
                self.assertGreaterEqual(kept, 1, 'without what was planted they are kept')

            changes = self.changed_by(['serve', work, '--port', '0', '-q'], talk, own)
            self.assertIn(str(notes), changes)
            self.assertEqual([c for c in changes if not c.startswith((f'{own}/', str(notes), '/dev/'))], [])
            self.assertEqual(bytes_below(work), before)
            self.assertEqual(list(own.iterdir()), [])

    def test_an_agents_report_takes_no_file_that_was_opened(self):
        tried = 0
        for fixture in ('paddle-log', 'kineto', 'nsys', 'ascend-text', 'rocprofv3-csv'):
            top = self.dir / f'agent-{fixture}'
            work, page = top / 'run', top / 'page.html'
            shutil.copytree(GOLDEN / fixture / 'input', work)
            before = bytes_below(work)

            def talk(child, top=top, work=work, before=before, page=page):
                nonlocal tried

                def call(tool, **arguments):
                    child.stdin.write(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': tool, 'arguments': arguments}}) + '\n')
                    child.stdin.flush()
                    return json.loads(child.stdout.readline()).get('result', {})

                child.stdin.write(json.dumps({'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': {'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 't', 'version': '1'}}}) + '\n')
                child.stdin.flush()
                child.stdout.readline()
                call('open', paths=[str(work)])
                self.assertFalse(call('report', trace='t1', path=str(page)).get('isError'))
                for path in before:
                    hard, link = top / f'hard{tried}.html', top / f'link{tried}.html'
                    os.link(path, hard)
                    link.symlink_to(path)
                    for out in (path, hard, link):
                        self.assertTrue(call('report', trace='t1', path=str(out)).get('isError'), out)
                        tried += 1
                self.assertEqual(bytes_below(work), before)

            changes = self.changed_by(['mcp', '--root', top, '--allow-write', top], talk, top)
            own = [c for c in changes if c.startswith(f'{top}/stageline-view-')]
            self.assertEqual([c for c in changes if not c.startswith((str(page), '/dev/')) and c not in own], [])
        self.assertGreater(tried, 60)


if __name__ == '__main__':
    unittest.main()
