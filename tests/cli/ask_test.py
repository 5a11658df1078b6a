"""The evaluation: every question of tests/agent is answered right by the tools alone, with evidence, in few calls and characters."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'agent'))
import evaluate
import independent
from support import BIN, Case


class AskTest(Case):
    def test_questions_are_answered_by_tools_alone(self):
        rows, absent = evaluate.evaluate(BIN)
        self.assertEqual([(row['id'], row['why']) for row in rows if not row['right']], [])
        self.assertGreaterEqual(len(rows), 15)
        for row in rows:
            self.assertLessEqual(row['calls'], evaluate.MOST_CALLS, row['id'])
            self.assertLessEqual(row['tokens'], evaluate.MOST_TOKENS, row['id'])
        if absent:
            print(f'note: {absent} of {absent + len(rows)} questions are about runs that are not here', file=sys.stderr)

    def test_there_are_a_hundred(self):
        questions = evaluate.questions()
        self.assertEqual((len(questions), len({q['id'] for q in questions})), (100, 100))
        kinds = [q['kind'] for q in questions]
        self.assertEqual((kinds.count('cannot'), kinds.count('premise')), (10, 10))
        for question in questions:
            self.assertTrue(question['independent'][0] != 'same' or question['source'], question['id'])

    def test_wrong_answers_are_found(self):
        """A wrong answer must count as wrong: another number, another name, another reason, an answer without its
        claim."""
        checked = 0
        with evaluate.Client(BIN) as client:
            for question in evaluate.questions():
                place = evaluate.place_of(question)
                if not question['run'].startswith('golden:') or not place.exists():
                    continue
                truth = independent.answer(question, place)
                if question['kind'] == 'cannot':
                    spoiled = {**question, 'answer': 'limit'}
                    self.assertFalse(evaluate.ask(client, spoiled, truth)['right'], question['id'])
                else:
                    other = truth + 1 if isinstance(truth, (int, float)) else [*truth, 1] if isinstance(truth, list) else truth + 'x'
                    self.assertFalse(evaluate.ask(client, question, other)['right'], question['id'])
                checked += 1
        self.assertGreater(checked, 10)


if __name__ == '__main__':
    unittest.main()
