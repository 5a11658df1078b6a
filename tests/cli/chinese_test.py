"""--lang zh: no English sentence of ours is left in tables and notes, in terminal and report."""
import json
import pathlib
import re
import unittest

from support import SOURCE, Case, page_answer, run

READERS = SOURCE / 'tests/golden/readers'


def dictionary(section):
    """Reads the sentences of every folder and, for names of columns, those that all analyses share."""
    read = [json.loads(file.read_text(encoding='utf-8')).get(section, {}) for file in sorted((SOURCE / 'src').rglob('words.json'))]
    if section == 'columns_zh':
        read.append(json.loads((SOURCE / 'web/src/i18n/columns_zh.json').read_text(encoding='utf-8')))
    return {key: chinese for part in read for key, chinese in part.items()}


SENTENCES = dictionary('sentences_zh')
# Five words in a row are a sentence; names of kernels and operators, paths and commands are not.
WORDS = re.compile(r"(?<![\w:/.'\"-])[a-z][a-z'-]*(?:,? [a-z][a-z'-]*){4,}")
CELLS = ['pipeline-summary', 'waterfall', 'slowdown', 'stragglers', 'links', 'pipeline-critical-path', 'theory', 'schedule', 'rank-map']  # rank-map last: it asks for a profile as well
INPUTS = ['paddle-log', 'op-table', 'ascend-1f1b', 'kineto-pipeline', 'primus']


def english(text):
    return sorted({m[0] for line in text.splitlines() if 'stageline ' not in line for m in WORDS.finditer(line)})


class Chinese(Case):
    def test_tables_and_notes_of_pipelines(self):
        for name in INPUTS:
            source = READERS / name / 'input'
            for analysis in CELLS:
                done = run('analyze', analysis, source, '--lang', 'zh', '--trust-clocks')
                if done.returncode != 0:  # this input has no answer: an error is in English
                    continue
                with self.subTest(input=name, analysis=analysis):
                    self.assertEqual(english(done.out + done.err), [])

    def test_tables_and_notes_of_profiles(self):
        listed = run('help', 'analyses', check=0).out
        names = [n for n in re.findall(r'^  ([a-z][a-z0-9-]+)  ', listed, re.M) if n not in CELLS]
        self.assertGreater(len(names), 15)
        for name in ('kineto', 'ascend'):
            for analysis in names:
                done = run('analyze', analysis, READERS / name / 'input', '--lang', 'zh')
                if done.returncode != 0:
                    continue
                with self.subTest(input=name, analysis=analysis):
                    self.assertEqual(english(done.out + done.err), [])

    def test_faults_on_the_terminal_and_in_the_report(self):
        run('simulate', '1f1b', '--stages', 4, '--micro-batches', 8, '--steps', 6, '--latency', 0.2, '--jitter', 0.02, '--dp', 2, '--reduce', '2ms', '--messages', '--format', 'cells',
            '--fault', 'slow-rank:5,1.3', '--fault', 'wrong-order:2', '-o', self.dir / 'run', '-q', check=0)
        for command in (['explain'], ['what-if'], ['align'], ['diff', self.dir / 'run'], *(['analyze', a] for a in CELLS[:-1])):
            with self.subTest(command=command[:2]):
                done = run(*command, self.dir / 'run', '--lang', 'zh')
                self.assertLessEqual(done.returncode, 1, done.err)
                self.assertEqual(english(done.out + done.err), [])
        run('report', self.dir / 'run', '--lang', 'zh', '-o', self.dir / 'r.html', check=0)
        said, known = set(), set()
        for analysis in CELLS[:-1]:
            answer = page_answer(self.dir / 'r.html', f'answer {analysis}')
            known |= {en for en, zh in answer['sentences'] if re.search('[\u4e00-\u9fff]', zh)}
            said |= {note['message'] for note in answer['notes']}
            for table in answer['tables']:
                for i, column in enumerate(table['columns']):
                    if column['type'] == 'text' and column['name'] in ('words', 'sentence', 'what_to_do'):
                        said |= {row[i] for row in table['rows'] if row[i] and ' ' in row[i]}
        self.assertGreater(len(said), 3)
        self.assertEqual(sorted(said - known), [])


class Dictionary(unittest.TestCase):
    def test_every_explanation_of_a_table_head_has_its_chinese(self):
        explained, missing = 0, []
        for file in sorted(path for room in ('analyses', 'diagnosis', 'engine') for path in (SOURCE / 'src' / room).rglob('words.json')):
            said = json.loads(file.read_text(encoding='utf-8'))
            lists = [table.get('columns', []) for tables in said.get('tables', {}).values() for name, table in tables.items() if '/' not in name]
            for column in [c for columns in lists + list(said.get('column_sets', {}).values()) for c in columns if isinstance(c, list) and len(c) > 3 and c[3]]:
                explained += 1
                if re.search('[a-z] [a-z]', column[3]) and column[3] not in SENTENCES and not (len(column) == 5 and re.search('[\u4e00-\u9fff]', column[4])):
                    missing.append((file.parent.name, column[3]))
        self.assertGreater(explained, 1000)
        self.assertEqual(missing, [])

    def test_fixed_sentences_have_their_chinese(self):
        for en, zh in SENTENCES.items():
            self.assertNotRegex(en, r'\{\d\}', 'a sentence with something measured in it is made in both languages (base/words.h)')
            self.assertRegex(zh, '[\u4e00-\u9fff]', en)

    def test_readings_of_links_have_their_chinese(self):
        names = dictionary('columns_zh')
        of_links = re.findall(r'"([^"]+)"', (SOURCE / 'src/pipeline/measure/links.cc').read_text(encoding='utf-8').split('link_reading_name')[1].split('return')[0])
        of_ends = re.findall(r'[?:] "([^"]+)"', (SOURCE / 'src/analyses/links/links.cc').read_text(encoding='utf-8').split('std::string reading =')[1].split(';')[0])
        self.assertGreater(min(len(of_links), len(of_ends)), 5)
        for table, readings in (('links', of_links), ('link-endpoints', of_ends)):
            for reading in readings:
                # A single word is listed with the column's name, others are sentences.
                with self.subTest(table=table, reading=reading):
                    self.assertTrue(f'value.{table}.reading.{reading}' in names or (' ' in reading and reading in SENTENCES))


if __name__ == '__main__':
    unittest.main()
