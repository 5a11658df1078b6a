"""--lang zh: no English sentence of ours is left in tables and notes, in terminal and report; the dictionary is whole and used."""
import json
import pathlib
import re
import unittest

from support import SOURCE, Case, page_answer, run

READERS = SOURCE / 'tests/golden/readers'


def dictionary(section):
    """Reads the sentences that all analyses share, and those of single analyses in their folders."""
    files = [SOURCE / f'web/src/i18n/{section}.json', *sorted(SOURCE.glob('src/analyses/*/words.json'))]
    read = [json.loads(file.read_text(encoding='utf-8')) for file in files]
    return {key: chinese for part in [read[0], *(own.get(section, {}) for own in read[1:])] for key, chinese in part.items()}


SENTENCES = dictionary('sentences_zh')
# Five words in a row are a sentence; names of kernels and operators, paths and commands are not.
WORDS = re.compile(r"(?<![\w:/.'\"-])[a-z][a-z'-]*(?:,? [a-z][a-z'-]*){4,}")
CELLS = ['pipeline-summary', 'waterfall', 'slowdown', 'stragglers', 'links', 'pipeline-critical-path', 'theory', 'schedule', 'rank-map']  # rank-map last: it asks for a profile as well
INPUTS = ['paddle-log', 'op-table', 'ascend-1f1b', 'kineto-pipeline', 'primus']


def english(text):
    return sorted({m[0] for line in text.splitlines() if 'stageline ' not in line for m in WORDS.finditer(line)})


def sources(*folders):
    """Sources with the pieces of a literal joined, as the compiler joins them."""
    for folder in folders:
        for path in sorted((SOURCE / 'src' / folder).rglob('*.cc')):
            yield path, re.sub(r'(?<!\\)"\s*\n?\s*"', '', path.read_text(encoding='utf-8'))


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
    def test_places_are_those_of_the_english(self):
        for en, zh in SENTENCES.items():
            self.assertLessEqual(set(re.findall(r'\{\d\}', zh)), set(re.findall(r'\{\d\}', en)), en)
            self.assertRegex(zh, '[\u4e00-\u9fff]|^rank' , en)

    def test_readings_of_links_have_their_chinese(self):
        names = dictionary('columns_zh')
        of_links = re.findall(r'return "([^"]+)";', (SOURCE / 'src/pipeline/measure/links.cc').read_text(encoding='utf-8').split('link_reading_name')[1].split('}')[0])
        of_ends = re.findall(r'[?:] "([^"]+)"', (SOURCE / 'src/analyses/links/links.cc').read_text(encoding='utf-8').split('std::string reading =')[1].split(';')[0])
        self.assertGreater(min(len(of_links), len(of_ends)), 5)
        for table, readings in (('links', of_links), ('link-endpoints', of_ends)):
            for reading in readings:
                # A single word is listed with the column's name, others are sentences.
                with self.subTest(table=table, reading=reading):
                    self.assertTrue(f'value.{table}.reading.{reading}' in names or (' ' in reading and reading in SENTENCES))

    def test_no_note_on_an_answer_lacks_its_chinese(self):
        known = '\n'.join(SENTENCES)
        for path, text in sources('analyses', 'pipeline', 'engine', 'model'):
            for note in re.finditer(r'\.add\(\s*"[a-z_]+\.[a-z_0-9]+",\s*Severity::k\w+,\s*"((?:[^"\\]|\\.)*)"', text):
                words = note[1].replace('\\"', '"')
                with self.subTest(file=path.name):
                    self.assertTrue(words in known, f'"{words}" goes, with {{0}} for what varies, into sentences_zh of the words.json of its folder, or of web/src/i18n')


if __name__ == '__main__':
    unittest.main()
