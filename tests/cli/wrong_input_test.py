"""Files of the wrong kind, outputs that cannot be written and impossible faults: each error has the name, the place,
and a remedy."""
import os
import unittest

from support import SOURCE, Case, info, run

ROWS = ('stage,kind,step,micro_batch,start_us,dur_us\n0,F,0,0,0,1000\n1,F,0,0,1010,1000\n1,B,0,0,2010,2000\n0,B,0,0,4020,2000\n')


class Tables(Case):
    def test_semicolons_and_tabs_are_read_as_commas_are(self):
        plain = info(self.write('plain.csv', ROWS))
        for name, separator in (('semicolons.csv', ';'), ('tabs.csv', '\t'), ('tabs.tsv', '\t')):
            with self.subTest(name):
                other = info(self.write(name, ROWS.replace(',', separator)))
                for key in ('format', 'cells', 'stages', 'steps', 'micro_batches'):
                    self.assertEqual(other.get(key), plain.get(key), key)
        quoted = ROWS.replace(',', ';').replace('0;F;', '0;"F";')
        self.assertEqual(info(self.write('quoted.csv', quoted))['format'], 'op-table')

    def test_a_decimal_comma_is_reported(self):
        rows = ROWS.replace(',', ';').replace('000\n', '000,5\n').replace('dur_us;', 'dur_us')
        self.assertIn('12.5, not 12,5', run('info', self.write('comma.csv', rows), check=2).err)


class Wrong(Case):
    def said(self, name, content, *words):
        """The error about a file names it, describes its content and a remedy, and lists no readers."""
        said = run('explain', self.write(name, content), *words, check=2).err
        self.assertIn(name, said.splitlines()[0])
        self.assertIn('\n  hint: ', said)
        self.assertNotIn('no reader recognises', said)
        return said

    def test_what_a_file_holds_instead_of_a_trace(self):
        text = ROWS.split('\n', 1)[1]
        for name, content, words in (
                ('table.csv', text, 'its first line holds values'), ('tabs.tsv', text.replace(',', '\t'), 'its first line holds values'),
                ('le.csv', ROWS.encode('utf-16'), 'UTF-16'), ('be.csv', b'\xfe\xff' + ROWS.encode('utf-16-be'), 'UTF-16'),
                ('unmarked.csv', ROWS.encode('utf-16-le'), 'UTF-16'), ('trace.json', '{"traceEvents":[]}'.encode('utf-16'), 'UTF-16'),
                ('null.json', 'null\n', 'one value'), ('number.json', '42', 'one value'), ('text.json', '"a"', 'one value'),
                ('empty.json', '{}', 'nothing in it'), ('none.json', ' [ ] '.replace(' ', ''), 'nothing in it'),
                ('list.json', '[1, 2, 3]', 'values instead of events'), ('texts.json', '["a"]', 'values instead of events'),
                ('other.json', '[{"a": 1}]', 'no events'), ('settings.json', '{"model": {"layers": 4}}', 'no events'),
                ('bytes.csv', bytes(range(256)) * 4, 'not text'), ('bytes.json', bytes(range(256)) * 4, 'not text'),
                ('bytes', bytes(range(256)) * 4, 'not text'), ('cut.json', '{"a": [1, 2', 'does not start and end'),
                ('zero.json', '', 'the file is empty')):
            with self.subTest(name):
                self.assertIn(words, self.said(name, content))

    def test_a_folder_where_a_file_is_wanted(self):
        folder = self.dir / 'rank0.pt.trace.json'
        folder.mkdir()
        for words in ([], ['--reader', 'kineto'], ['--reader', 'op-table'], ['--reader', 'op-json']):
            with self.subTest(words):
                said = run('explain', folder, *words, check=2).err
                self.assertIn('rank0.pt.trace.json: there is no file in this folder', said)
                self.assertIn('name the file', said)
        said = run('explain', self.write('t.csv', ROWS), '--cell-rules', folder, check=2).err
        self.assertIn('is a folder, a file was expected\n  hint: name a file in it', said)

    @unittest.skipUnless(os.geteuid(), 'root may read everything')
    def test_a_file_that_may_not_be_read_is_one_note(self):
        self.write('a.csv', ROWS)
        self.write('b.csv', ROWS).chmod(0)
        notes = [d for d in info(self.dir)['diagnostics'] if d.get('file', '').endswith('b.csv')]
        self.assertEqual([d['name'] for d in notes], ['source.unreadable'])
        self.assertIn('hint', run('info', self.dir / 'b.csv', check=2).err)


class Outputs(Case):
    def test_a_choice_that_there_is_not_is_refused(self):
        log = self.dir / 'ops.csv'
        run('simulate', '1f1b', '--format', 'cells', '-o', log)
        for command in (('export', log, '-o', self.dir / 'picture.svg'), ('report', log, '-o', self.dir / 'page.html')):
            self.assertIn('--ghosts is one of on,off, not "foo"', run(*command, '--ghosts', 'foo', check=2).err)

    def test_outputs_that_cannot_be(self):
        table = self.write('t.csv', ROWS)
        missing = self.dir / 'missing/x.html'
        for path, what, hint in (('/proc/x.html', 'no file can be made in this folder', 'another folder'),
                                 (missing, 'cannot write here', 'make it first'), ('', 'name is empty', '-o report.html')):
            with self.subTest(path):
                said = run('report', table, '-o', path, check=2).err
                self.assertIn(what, said)
                self.assertIn(hint, said)


class Faults(unittest.TestCase):
    def test_a_fault_that_cannot_be_names_what_is_wrong_and_what_it_may_be(self):
        for fault, words in (('slow-stage:2,-1.4', '"-1.4" is not a factor above 0 and at most 1000'),
                             ('slow-stage:2,0', '"0" is not a factor'), ('slow-stage:2,nan', '"nan" is not a factor'),
                             ('slow-stage:2,1e9', '"1e9" is not a factor'), ('slow-stage:-1,2', '"-1" is not a stage'),
                             ('slow-stage:2', 'something is missing'), ('slow-stage:2,1,3', 'there is more than it takes'),
                             ('gc:40ms,2', '"2" is not a share from 0 to 1'), ('late-launch:1,-2ms', '"-2ms" is not a time'),
                             ('slow-link:1,2,+nan', '"+nan" is not a factor'), ('heavy-head:-1', '"-1" is not a share')):
            with self.subTest(fault):
                said = run('simulate', '1f1b', '--fault', fault, '-o', '/dev/null', check=2).err
                self.assertIn(f'--fault {fault}: {words}', said)
                self.assertIn('\n  hint: write ' + fault.split(':')[0], said)


class Recorded(Case):
    def test_help_and_messages_name_what_the_page_names(self):
        page = (SOURCE / 'docs/reference/record-python.md').read_text(encoding='utf-8')
        page = page[page.index('| framework |'):page.index('Evaluation (`eval`')]
        said = ' '.join(run('record', '--help', check=0).out.split())
        nothing = ' '.join(run('record', '-o', self.dir / 'rec', '--', 'true', check=0).err.split())
        for framework in ('torch.distributed.pipelining', 'DDP', 'FSDP', 'FSDP2', 'Trainer', 'Accelerate', 'Lightning', 'torchtitan',
                          'torch.compile', 'Megatron-Core', 'MindSpeed', 'DeepSpeed', 'Paddle'):
            for where, text in (('page', page), ('help', said), ('message', nothing)):
                self.assertIn(framework, text, where)


if __name__ == '__main__':
    unittest.main()
