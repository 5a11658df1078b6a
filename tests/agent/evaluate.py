"""Questions about runs, answered by the tools of `stageline mcp` alone and by independent.py from the files, and compared.

A question is a line of questions.jsonl. It has the run, the call that a client makes, the place of the value in its
answer, and the function that computes the same from the raw files. The client needs three calls: it opens the run,
makes that call, and has every value verified under the answer's handle. An answer is right if it equals the independent
one and all its claims hold. `evaluate(program)` gives a row per question."""
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLACES = {'golden': ROOT / 'tests/golden/readers', 'shared': ROOT.parent / 'shared/data'}
MOST_CALLS, MOST_TOKENS = 3, 4000

sys.path.insert(0, str(HERE))
import independent  # noqa: E402


def questions():
    return [json.loads(line) for line in (HERE / 'questions.jsonl').read_text().splitlines()]


def place_of(question):
    root, _, path = question['run'].partition(':')
    return PLACES[root] / path


class Client:
    """Raw JSON-RPC; counts what goes over the wire."""

    def __init__(self, program, *more):
        roots = [word for place in (*PLACES.values(), *more) if pathlib.Path(place).is_dir() for word in ('--root', str(place))]
        self.process = subprocess.Popen([program, 'mcp', *roots], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = self.calls = self.characters = 0
        self.seconds = 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def call(self, tool, arguments):
        self.number += 1
        self.calls += 1
        body = json.dumps({'name': tool, 'arguments': arguments})
        start = time.perf_counter()
        self.process.stdin.write(f'{{"jsonrpc":"2.0","id":{self.number},"method":"tools/call","params":{body}}}\n'.encode())
        self.process.stdin.flush()
        result = json.loads(self.process.stdout.readline())['result']
        self.seconds = time.perf_counter() - start
        # A model reads the text; the same JSON next to it is for programs.
        self.characters += len(body) + len(result['content'][0]['text'])
        return result['structuredContent'], result['isError']


def value_at(answer, pointer):
    for part in pointer.split('/')[1:]:
        answer = answer[int(part)] if isinstance(answer, list) else answer[part]
    return answer


def same(one, other, tolerance):
    if isinstance(one, list) or isinstance(other, list):
        return isinstance(one, list) and isinstance(other, list) and len(one) == len(other) and all(same(a, b, tolerance) for a, b in zip(one, other))
    if isinstance(one, str) and '…' in one:  # longer than 300 bytes, and cut in the middle
        head, tail = one.split('…', 1)
        return isinstance(other, str) and len(other) > 300 and other.startswith(head) and other.endswith(tail)
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return one is not None and abs(one - other) <= tolerance


def ask(client, question, truth):
    """One question: {right, why, calls, characters, ms}."""
    client.calls = client.characters = 0
    opened, wrong = client.call('open', {'paths': [str(place_of(question))], **question.get('open', {})})
    if wrong:
        return {'right': False, 'why': opened['error'], 'calls': 1, 'tokens': 0, 'ms': 0}
    trace, open_ms = opened['trace'], client.seconds * 1000
    reported, wrong = client.call(question['tool'], {'trace': trace, **question['arguments']})
    ms, why, values = client.seconds * 1000, '', None
    tolerance = question.get('tolerance', 0)
    if wrong:
        why = reported['error']
    elif question['kind'] == 'cannot':
        values = reported.get('reason')
        if values != question['answer'] or not truth:
            why = f'{values}, and the files say {truth}'
    elif reported.get('cannot_answer'):
        why = reported['why']
    else:
        at = question['at'] if isinstance(question['at'], list) else [question['at']]
        values = [value_at(reported, pointer) for pointer in at]
        claims = [{'text': question['question'][:400], 'handle': reported['handle'], 'at': pointer, 'expect': {'value': value}} for pointer, value in zip(at, values)]
        checked, _ = client.call('verify', {'trace': trace, 'claims': claims})
        unproven = [c['verdict'] for c in checked.get('claims', []) if c['verdict'] != 'holds']
        if unproven or len(checked.get('claims', [])) != len(values):
            why = f'without evidence: {unproven or checked}'
        if not isinstance(question['at'], list):
            values = values[0]
        if not same(values, truth, tolerance):
            why = f'{values}, and the files say {truth}'
        elif not same(values, question['answer'], tolerance):
            why = f'{values}, and questions.jsonl says {question["answer"]}'
    row = {'id': question['id'], 'right': not why, 'why': why, 'calls': client.calls, 'tokens': -(-client.characters // 4), 'ms': ms, 'open_ms': open_ms, 'kind': question['kind'],
           'unproven': why.startswith('without evidence')}
    client.call('close', {'trace': trace})
    return row


def evaluate(program, every=1):
    """(rows, questions whose run is not there), of every question or of each `every`th."""
    rows, absent = [], 0
    with Client(program) as client:
        for question in questions()[::every]:
            place = place_of(question)
            if not place.exists():
                absent += 1
                continue
            rows.append(ask(client, question, independent.answer(question, place)))
    return rows, absent


if __name__ == '__main__':
    rows, absent = evaluate(sys.argv[1])
    for row in rows:
        if not row['right']:
            print(f'{row["id"]}: {row["why"]}')
    print(f'{sum(r["right"] for r in rows)} of {len(rows)} right, {sum(r["unproven"] for r in rows)} without evidence, {absent} without their run; at most {max(r["calls"] for r in rows)} calls and '
          f'{max(r["tokens"] for r in rows)} tokens')
