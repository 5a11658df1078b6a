"""A measurement belongs to its user: no command makes an input its output, under whatever name; files appear whole, and those of a set together."""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from support import BIN, SOURCE, Case, one_step, run

GOLDEN = SOURCE / 'tests/golden/readers'
TORCH = GOLDEN / 'kineto/input'
FRAMES = GOLDEN / 'kineto-modules/input'
RECORDING = GOLDEN / 'recording/input'

# Every command that writes a file, with an input that it takes: (fixture, words before the input, words after it). OUT stands for the output.
WRITERS = {
    'report': [('logs', ['report'], ['-o', 'OUT']), (TORCH, ['report'], ['-o', 'OUT']), (RECORDING, ['report'], ['-o', 'OUT'])],
    'explain': [('logs', ['explain'], ['-o', 'OUT']), (TORCH, ['explain'], ['-o', 'OUT'])],
    'analyze': [('logs', ['analyze', 'pipeline-summary'], ['-o', 'OUT']), (TORCH, ['analyze', 'events'], ['-o', 'OUT'])],
    'diff': [('logs', ['diff'], ['IN', '-o', 'OUT'])],
    'export': [*(('logs', ['export'], ['--to', to, '-o', 'OUT']) for to in ('csv', 'json', 'sqlite', 'chrome', 'perfetto', 'html', 'svg', 'png', 'pdf')),
               (TORCH, ['export'], ['--to', 'trace-with-counters', '--ranks', '0', '-o', 'OUT']), (RECORDING, ['export'], ['--to', 'json', '-o', 'OUT'])],
    'export-stacks': [(FRAMES, ['export-stacks'], ['-o', 'OUT'])],
    'align': [('logs', ['align'], ['-o', 'OUT'])],
    'plan': [('logs', ['plan', '--layers', '8', '--from'], ['-o', 'OUT']),
             *(('logs', ['plan', '--layers', '8', '--schedule', '1f1b', '--from'], ['--to', to, '-o', 'OUT']) for to in ('svg', 'png', 'pdf', 'html'))],
    'what-if': [('logs', ['what-if'], ['-o', 'OUT'])],
    'info': [('logs', ['info'], ['-o', 'OUT']), (TORCH, ['info', '--json'], ['-o', 'OUT']), (RECORDING, ['info'], ['-o', 'OUT'])],
    'sql': [('logs', ['sql'], ['SELECT count(*) FROM cells', '-o', 'OUT']), (TORCH, ['sql'], ['SELECT * FROM slices', '--format', 'arrow', '-o', 'OUT'])],
    'event': [(TORCH, ['event'], ['--rank', '0', '--index', '0', '-o', 'OUT'])],
    'schedule': [('order', ['schedule', '--from-csv'], ['--format', 'csv', '-o', 'OUT'])],
}
# Write folders, or names of their own; each has a test below.
OTHERS = {'record', 'recover', 'pp-chart', 'simulate', 'digest'}
# Every other flag that names a file or folder: read, or written and tried below.
READ = {'--cell-rules', '--compare', '--control', '--expert-rows', '--test', '--file', '--from-csv', '--lengths', '--log-dir', '--model', '--profiling-path', '--root'}
WRITTEN = {'--output', '--output-path', '--overlay', '--db', '--install', '--allow-write'}


def state(folder):
    """Everything below a folder: names, bytes, and what a name is."""
    return {str(p.relative_to(folder)): (os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None)
            for p in sorted(folder.rglob('*'))}


class InputsStay(Case):
    def fixture(self, which):
        folder = self.dir / 'run'
        shutil.rmtree(folder, ignore_errors=True)
        if which == 'logs':
            return self.two_ranks(folder='run/')
        if which == 'order':
            folder.mkdir()
            run('schedule', '1f1b', '--format', 'csv', '-o', folder / 'order.csv', check=0)
            return folder
        shutil.copytree(which, folder)
        return folder

    def refused(self, words, out):
        before = state(self.dir)
        done = run(*words, check=2)
        self.assertIn('input', done.err, words)
        self.assertIn(out.name, done.err, words)
        self.assertEqual(state(self.dir), before, words)

    def test_every_command_and_every_kind_of_name(self):
        tried = 0
        for command, cases in WRITERS.items():
            for which, begin, end in cases:
                folder = self.fixture(which)
                member = sorted(p for p in folder.rglob('*') if p.is_file())[0]
                link, hard = self.dir / 'link.out', self.dir / 'hard.out'
                for path in (link, hard):
                    path.unlink(missing_ok=True)
                link.symlink_to(member)
                os.link(member, hard)
                spelled = member.parent / '..' / member.parent.name / member.name
                for given in ([member] if which == 'order' else [member, folder]):
                    for out in (member, link, hard, spelled):
                        self.refused([w if w not in ('OUT', 'IN') else str(out if w == 'OUT' else given)
                                      for w in [*begin, str(given), *end]], out)
                        tried += 1
        self.assertGreater(tried, 150)

    def test_digests_stay_out_of_their_input_and_replace_no_file_of_it(self):
        folder, out = self.fixture('logs'), self.dir / 'digests'
        member = sorted(p for p in folder.rglob('*') if p.is_file())[0]
        before = state(folder)
        for where in (folder, member, folder / 'new'):
            self.assertIn('among the files they are made of', run('digest', folder, '-o', where, check=2).err)
        (self.dir / 'linked').symlink_to(folder)
        for source, where in ((member, folder), (member, self.dir / 'linked'), (folder, self.dir / 'linked/new')):
            self.assertIn('among the files they are made of', run('digest', source, '-o', where, check=2).err)
        run('digest', folder, '-o', out, check=0)
        first = sorted(out.glob('*.sldigest'))[0]
        whole = first.read_bytes()
        for plant in (lambda: os.link(member, first), lambda: first.symlink_to(member)):
            first.unlink()
            plant()
            run('digest', folder, '-o', out, check=0)
            self.assertEqual(first.read_bytes(), whole)
            self.assertFalse(first.is_symlink())
        self.assertEqual(state(folder), before)

    def test_no_command_is_forgotten(self):
        commands = json.loads((SOURCE / 'tests/cli/contract.json').read_text())['commands']
        self.assertEqual({name for name, said in commands.items() if '--output' in said['flags']} - OTHERS, set(WRITERS))

    def test_no_flag_is_forgotten(self):
        commands = json.loads((SOURCE / 'tests/cli/contract.json').read_text())['commands']
        named = {flag for said in commands.values() for flag, value in said['flags'].items() if value in ('FILE', 'DIR', 'PATH')}
        self.assertEqual(named, READ | WRITTEN)

    def test_every_reader_and_a_file_of_its_own(self):
        tried = 0
        for fixture in sorted(GOLDEN.iterdir()):
            files = sorted(p for p in (fixture / 'input').rglob('*') if p.is_file())
            for source in {files[0], files[-1]}:
                folder, hard = self.fixture(fixture / 'input'), self.dir / 'hard.out'
                member = folder / source.relative_to(fixture / 'input')
                hard.unlink(missing_ok=True)
                os.link(member, hard)
                before = state(self.dir)
                for out in (member, hard):
                    for words in (['info', folder, '-o', out], ['export', folder, '--to', 'json', '-o', out], ['sql', folder, 'SELECT 1', '-o', out],
                                  ['history', 'add', folder, '--db', out]):
                        self.assertEqual(run(*words).returncode, 2, words)
                        self.assertEqual(state(self.dir), before, words)
                        tried += 1
        self.assertGreater(tried, 200)

    def test_a_history_is_no_other_database(self):
        logs = self.two_ranks(folder='run/')
        add = ['history', 'add', logs, '--db']
        other, empty = self.dir / 'other.sqlite', self.write('run/workerlog.9', '')
        with sqlite3.connect(other) as db:
            db.execute('CREATE TABLE runs(mine)')
        linked = self.dir / 'linked.sqlite'
        linked.symlink_to(other)
        before = state(self.dir)
        for out in (other, linked, empty, self.write('run/notes.txt', 'by hand'), self.dir / 'run'):
            before = before | state(self.dir)
            self.assertIn('is not a history file', run(*add, out, check=2).err)
            self.assertEqual(state(self.dir), before)
        # Names that SQLite reads in its own way: "FILE/" is FILE to it, ":memory:" is nothing that stays.
        database = self.dir / 'nsys/report.sqlite'
        shutil.copytree(GOLDEN / 'nsys/input', database.parent)
        before = state(self.dir)
        for out in (f'{database}/', f'{database}//', f'{database}/.', f'{other}/', f'{self.dir}/new.sqlite/'):
            self.assertIn('is not a history file', run(*add, out, check=2).err, out)
            self.assertEqual(state(self.dir), before, out)
        run('history', 'add', logs, '--db', ':memory:', check=0, cwd=self.dir)
        self.assertEqual(len(json.loads(run('history', '--json', '--db', './:memory:', check=0, cwd=self.dir).out)['runs']), 1)
        # One from before there was a mark is still one, and a file that is there and empty becomes one.
        ours, made = self.dir / 'ours.sqlite', self.write('made.sqlite', '')
        run(*add, ours, check=0)
        with sqlite3.connect(ours) as db:
            self.assertEqual(db.execute('PRAGMA application_id').fetchone()[0], 0x534c6869)
            db.execute('PRAGMA application_id = 0')
        for out in (ours, made):
            run(*add, out, check=0)
            with sqlite3.connect(out) as db:
                self.assertEqual(db.execute('PRAGMA application_id').fetchone()[0], 0x534c6869)
        self.assertEqual(len(json.loads(run('history', '--json', '--db', ours, check=0).out)['runs']), 2)

    def test_files_beside_the_output(self):
        # The inputs of a command besides its run, and its outputs besides its answer.
        folder = self.fixture(TORCH)
        query = self.write('query.sql', 'SELECT 1')
        self.refused(['sql', folder, '--file', query, '-o', query], query)
        member = sorted(folder.iterdir())[0]
        self.refused(['analyze', 'critical-path-analysis', folder, '--overlay', member], member)
        shutil.copytree(folder, self.dir / 'second')
        other = sorted((self.dir / 'second').iterdir())[0]
        self.refused(['analyze', 'trace-diff', '--control', folder, '--test', self.dir / 'second', '-o', other], other)

    def test_a_page_of_an_agent(self):
        folder = self.fixture(TORCH)
        page = self.dir / 'page.html'
        os.link(sorted(folder.iterdir())[0], page)
        before = state(self.dir)
        asked = [{'id': 1, 'method': 'initialize', 'params': {'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 't', 'version': '1'}}},
                 {'id': 2, 'method': 'tools/call', 'params': {'name': 'open', 'arguments': {'paths': [str(folder)]}}},
                 {'id': 3, 'method': 'tools/call', 'params': {'name': 'report', 'arguments': {'trace': 't1', 'path': str(page)}}}]
        done = run('mcp', '--root', self.dir, '--allow-write', self.dir, stdin='\n'.join(json.dumps({'jsonrpc': '2.0', **a}) for a in asked).encode() + b'\n')
        last = json.loads(done.out.splitlines()[-1])['result']
        self.assertTrue(last['isError'])
        self.assertIn('overwritten', last['structuredContent']['error'])
        self.assertEqual(state(self.dir), before)

    def test_what_is_installed_into_a_folder_with_links(self):
        folder = self.fixture(TORCH)
        member = sorted(folder.iterdir())[0]
        before = state(folder)
        (self.dir / 'skills/stageline').mkdir(parents=True)
        os.link(member, self.dir / 'skills/stageline/SKILL.md')
        self.assertIn('--force', run('skill', '--install', self.dir / 'skills', check=2).err)
        self.assertEqual([p.name for p in (self.dir / 'skills').rglob('*') if p.is_file()], ['SKILL.md'])
        run('skill', '--install', self.dir / 'skills', '--force', check=0)  # another name of it is replaced, the file stays
        self.assertEqual(state(folder), before)
        run('skill', '--install', self.dir / 'skills', check=0)

    def test_the_second_run_and_the_rules(self):
        first, second = self.two_ranks(folder='a/'), self.two_ranks(folder='b/')
        self.refused(['report', first, '--compare', second, '-o', second / 'workerlog.1'], second / 'workerlog.1')
        self.refused(['diff', first, second, '-o', second / 'workerlog.0'], second / 'workerlog.0')
        rules = self.write('rules.txt', '')
        self.refused(['info', TORCH, '--cell-rules', rules, '-o', rules], rules)

    def test_what_lies_beside_a_database(self):
        run('simulate', '1f1b', '--stages', 2, '--format', 'ascend', '-o', self.dir / 'run', check=0)
        database = next((self.dir / 'run').rglob('ascend_pytorch_profiler_*.db'))
        for suffix in ('-wal', '-shm'):
            beside = self.write(str(database.relative_to(self.dir)) + suffix, '')
            beside.write_bytes(b'not merged')
            self.refused(['info', database, '-o', beside], beside)
            self.refused(['info', self.dir / 'run', '-o', beside], beside)

    def test_files_that_no_reader_takes(self):
        folder = self.two_ranks(folder='run/')
        notes = self.write('run/notes.txt', 'by hand')
        self.refused(['explain', folder, '-o', notes], notes)

    def test_deep_raw_data(self):
        run('simulate', '1f1b', '--stages', 2, '--format', 'ascend', '-o', self.dir / 'run', check=0)
        profile = next((self.dir / 'run').glob('*_ascend_pt'))
        raw = self.write(str(profile.relative_to(self.dir)) + '/PROF_1/device_0/data/stars.slice', b'raw')
        self.refused(['report', self.dir / 'run', '-o', raw], raw)

    def test_a_measurement_that_begins_like_a_page(self):
        """A page among the files of a run may be written again (below). A table whose first bytes are those of a page is damaged, and stays."""
        for fixture, name in (('rocprofv3-csv', '4242_kernel_trace.csv'), ('router-trace', 'router_trace_rank0.jsonl'), ('primus', 'config.json'), ('paddle-log', 'workerlog.1')):
            folder = self.fixture(GOLDEN / fixture / 'input')
            path, = folder.rglob(name)
            for head in (b'<html>\n', b'<svg\n', b'%PDF-\n', b'<?xml <svg\n'):
                path.write_bytes(head + (GOLDEN / fixture / 'input' / path.relative_to(folder)).read_bytes())
                before = state(folder)
                for words in (['info', folder], ['export', folder, '--to', 'json']):
                    self.assertEqual(run(*words, '-o', path).returncode, 2, (fixture, words))
                    self.assertEqual(state(folder), before)

    def test_an_earlier_report_may_be_written_again(self):
        folder = self.two_ranks(folder='run/')
        for _ in range(2):
            run('report', folder, '-o', folder / 'report.html', check=0)
            run('export', folder, '-o', folder / 'chart.svg', check=0)

    def test_one_file_per_rank(self):
        folder = self.fixture(TORCH)
        member = sorted(folder.iterdir())[0]
        os.link(member, self.dir / 'out.rank1.json')
        self.refused(['export', folder, '--to', 'trace-with-counters', '-o', self.dir / 'out.json'], self.dir / 'out.rank1.json')

    def test_names_that_commands_choose(self):
        logs = self.two_ranks(folder='run/')
        os.link(logs / 'workerlog.0', logs / 'pipeline_profile.json')
        self.refused(['paddle-timeline', '--log-dir', logs], logs / 'pipeline_profile.json')
        recorded = self.fixture(RECORDING)
        before = state(recorded)
        run('recover', recorded, '-o', self.dir / 'out', check=0)
        self.assertEqual(state(recorded), before)
        for path in sorted((self.dir / 'out').iterdir()):
            path.unlink()
            os.link(sorted(p for p in recorded.iterdir() if p.is_file())[0], path)
        self.assertEqual(run('recover', recorded, '-o', self.dir / 'out').returncode, 2)
        self.assertEqual(state(recorded), before)

    def test_folders_of_commands_that_write_folders(self):
        run('simulate', '1f1b', '--stages', 2, '--format', 'ascend', '-o', self.dir / 'run', check=0)
        before = state(self.dir / 'run')
        database = next((self.dir / 'run').rglob('ascend_pytorch_profiler_*.db'))
        for out in (self.dir / 'run', database.parent, database):
            self.assertEqual(run('pp-chart', '-d', self.dir / 'run', '-o', out).returncode, 2)
            self.assertEqual(state(self.dir / 'run'), before)

    def test_standard_output_into_the_input(self):
        log = self.write('workerlog.0', one_step())
        for command in ('"$0" info "$1" >> "$1"', '"$0" export "$1" --to csv -o - >> "$1"', '"$0" info - < "$1" >> "$1"'):
            done = subprocess.run(['bash', '-c', command, BIN, log], capture_output=True, text=True)
            self.assertEqual((done.returncode, log.read_text()), (2, one_step()), done.stderr)

    def test_standard_input_as_the_output(self):
        log = self.write('workerlog.0', one_step())
        done = subprocess.run(['bash', '-c', '"$0" export - --reader paddle-log --to csv -o "$1" < "$1"', BIN, log], capture_output=True, text=True)
        self.assertEqual((done.returncode, log.read_text()), (2, one_step()), done.stderr)

    def test_in_place_is_the_exception(self):
        run('simulate', '1f1b', '--stages', 2, '--format', 'ascend', '-o', self.dir / 'run', check=0)
        database = next((self.dir / 'run').rglob('ascend_pytorch_profiler_*.db'))
        before = database.read_bytes()
        run('pp-chart', '-d', self.dir / 'run', '--in-place', check=0)
        self.assertNotEqual(database.read_bytes(), before)


class WholeOrAbsent(Case):
    def partials(self):
        return sorted(p.name for p in self.dir.rglob('*') if '.partial.' in p.name)

    def test_sets_of_files_appear_together(self):
        trace = self.dir / 'run'
        trace.mkdir()
        source = next(p for p in sorted(TORCH.iterdir()) if p.name.endswith('.gz'))
        for rank in range(12):
            shutil.copy(source, trace / source.name.replace('rank-1', f'rank-{rank}'))
        whole = len(list(trace.iterdir()))
        for attempt in range(4):
            process = subprocess.Popen([BIN, 'export', trace, '--to', 'trace-with-counters', '-o', self.dir / 'out.json', '--quiet'],
                                       stderr=subprocess.PIPE)
            while process.poll() is None and len(self.partials()) < 1 + attempt:
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=120)
            process.stderr.close()
            made = len(list(self.dir.glob('out*.json')))
            self.assertIn((code, made), {(130, 0), (130, whole), (0, whole)})
            self.assertEqual(self.partials(), [])
            for path in self.dir.glob('out*.json'):
                path.unlink()

    def test_a_failure_leaves_the_old_set(self):
        # The second file cannot be written: a folder bears its name.
        (self.dir / 'out.rank1.json').mkdir()
        old = self.write('out.rank0.json', 'old')
        run('export', TORCH, '--to', 'trace-with-counters', '-o', self.dir / 'out.json', '--force', check=2)
        self.assertEqual((old.read_text(), self.partials()), ('old', []))

    def test_what_a_killed_program_left_is_swept(self):
        logs = self.two_ranks(folder='run/')
        fifo = self.dir / 'workerlog.9'
        os.mkfifo(fifo)
        process = subprocess.Popen([BIN, 'export', fifo, '--reader', 'paddle-log', '--to', 'csv', '-o', self.dir / 'out.csv'])
        process2 = subprocess.Popen([BIN, 'info', fifo, '--reader', 'paddle-log', '-o', self.dir / 'out.csv'])
        while len(self.partials()) < 1:
            time.sleep(0.01)
        for p in (process, process2):
            p.kill()
            p.wait()
        left = self.partials()
        self.assertTrue(left)
        alive = self.write(f'out.csv.partial.{os.getpid()}.{left[0].split(".")[4]}', 'of a program that still runs')
        try:
            os.setxattr(alive, 'user.stageline.written', b'unfinished')
        except OSError:
            self.skipTest('needs a file system with extended attributes')
        mine = self.write('other.csv.partial.1', 'not of this output')
        run('export', logs, '-o', self.dir / 'out.csv', check=0)
        self.assertEqual(self.partials(), sorted([alive.name, mine.name]))

    def test_a_name_alone_makes_no_remains(self):
        """Files of the user that are called like remains, also as the input, are not swept; what a killed program left is (above)."""
        data, old = one_step().encode(), time.time() - 3 * 86400
        logs = self.two_ranks(folder='run/')
        for name in ('out.csv.partial.4194304', 'out.csv.partial.4194304.notes', 'out.csv.partial.99999999.a1b2c3', 'out.csv.partial.12.bak', 'out.csv.partial.7.json'):
            for given in ([self.dir / name, '--reader', 'paddle-log'], [logs]):
                kept = self.write(name, data)
                os.utime(kept, (old, old))
                run('export', *given, '-o', self.dir / 'out.csv', check=0)
                self.assertEqual(kept.read_bytes(), data, name)
                kept.unlink()

    def test_an_unfinished_output_is_no_input(self):
        folder = self.two_ranks(folder='run/')
        before = json.loads(run('info', '--json', folder, check=0).out)
        self.write('run/workerlog.7.partial.1', one_step())
        self.assertEqual(json.loads(run('info', '--json', folder, check=0).out)['ranks'], before['ranks'])

    def test_planted_links_lead_nowhere(self):
        logs = self.two_ranks(folder='run/')
        victim = self.write('victim', 'precious')
        # The number of the next process is not known; a shell takes its own and becomes the program.
        script = ('for k in "" .2; do ln -s "$2" "$3.partial.$$$k"; ln -s "$2" "$3.partial.$$.$4$k"; done; exec "$0" export "$1" -o "$3"')
        fifo = self.dir / 'fifo'
        os.mkfifo(fifo)
        process = subprocess.Popen([BIN, 'info', fifo, '--reader', 'paddle-log', '-o', self.dir / 'tag.csv'])
        while not list(self.dir.glob('tag.csv.partial.*')):
            time.sleep(0.01)
        tag = self.partials()[0].split('.')[4]
        process.kill()
        process.wait()
        subprocess.run(['bash', '-c', script, BIN, logs, victim, self.dir / 'out.csv', tag], check=True, capture_output=True)
        self.assertEqual(victim.read_text(), 'precious')
        self.assertFalse((self.dir / 'out.csv').is_symlink())
        self.assertIn('forward', (self.dir / 'out.csv').read_text())

    def test_a_file_that_may_not_be_written_stays(self):
        if os.geteuid() == 0:
            self.skipTest('root may write everything')
        logs = self.two_ranks(folder='run/')
        out = self.write('out.csv', 'kept')
        out.chmod(0o444)
        run('info', logs, '-o', out, '--force', check=2)
        self.assertEqual(out.read_text(), 'kept')


if __name__ == '__main__':
    unittest.main()
