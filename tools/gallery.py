#!/usr/bin/env python3
"""Ten diagnosed runs: `gallery.py PROGRAM` writes docs/gallery.md, docs/gallery.zh.md and their pictures; `--check` compares the pages with what
the program says now (tests/cli/gallery_test.py). Each run is one command of `stageline simulate`, so that a reader can repeat it."""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BASE = '--stages 4 --micro-batches 8 --cost 10,20 --latency 0.2 --jitter 0.02'
# (name, title in English and Chinese, words of simulate, the steps of the picture)
RUNS = (
    ('slow-stage', 'A slow stage', '偏慢的级', f'1f1b {BASE} --steps 6 --fault slow-stage:2,1.4', '2:3'),
    ('heavy-head', 'The loss and the head on the last stage', '最后一级上的 loss 和 head', f'1f1b {BASE} --steps 6 --fault heavy-head:0.6', '2:3'),
    ('slow-rank', 'One slow rank among four replicas', '四个副本里一个慢 rank', f'1f1b {BASE} --dp 4 --steps 6 --reduce 5 --fault slow-rank:6,1.5', '2:2'),
    ('slow-link', 'A slow link between two stages', '两级之间的慢链路', f'1f1b {BASE} --messages --steps 6 --fault slow-link:1,2,+8ms', '2:3'),
    ('long-sequences', 'Sequences of different lengths', '长短不一的序列', f'1f1b {BASE} --dp 2 --steps 12 --fault long-sequences:0.2,2.5', '2:2'),
    ('pauses', 'Pauses of the hosts', '主机停顿', f'1f1b {BASE} --dp 2 --steps 12 --messages --fault gc:60ms,0.03', '2:2'),
    ('late-launch', 'A rank that launches late', '下发偏晚的 rank', f'1f1b {BASE} --dp 2 --steps 8 --messages --fault late-launch:5,4ms', '2:2'),
    ('wrong-order', 'A stage that leaves the schedule', '偏离调度的级', f'1f1b {BASE} --steps 6 --fault wrong-order:1', '2:3'),
    ('interleaved', 'An interleaved schedule on Ascend NPUs, with a slow stage', '昇腾 NPU 上的交错调度，有一级偏慢', 'vpp --stages 4 --micro-batches 8 --cost 5,10 --jitter 0.02 --steps 5 --format ascend --level 1 --fault slow-stage:1,1.3', '11:12'),
    ('zero-bubble', 'A zero-bubble schedule without a fault', '没有问题的零气泡调度', 'zb-v --stages 4 --micro-batches 12 --cost 10,10,10 --jitter 0.01 --steps 5', '2:3'),
)
END = {'en': '.', 'zh': '。'}
PAGES = {
    'en': ('gallery.md', '# Ten diagnosed runs\n\nEach run is simulated by one command. Below its picture is what `stageline explain` says first. The same pictures and\nsentences come from runs of Paddle, '
           'PyTorch, Megatron and Ascend. [中文](gallery.zh.md)\n', 'No cause costs 1 % or more of a step.'),
    'zh': ('gallery.zh.md', '# 十次诊断\n\n每次训练都由一条命令模拟。图下是 `stageline explain` 的第一条结论。Paddle、PyTorch、Megatron、昇腾上的训练得到同样的图和说明。[English](gallery.md)\n', '没有任何原因占一步的 1 % 以上。'),
}


def call(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def diagnosed(program, name, words, steps, folder, pictures):
    call(program, 'simulate', *words.split(), '-o', folder / name, '--quiet')
    if pictures:
        call(program, 'export', folder / name, '--steps', steps, '--width', 1100, '--ghosts', 'off', '-o', pictures / f'{name}.png', '--force', '--quiet')
    return json.loads(call(program, 'explain', folder / name, '--format', 'json', '--quiet'))


def page(language, said):
    name, head, nothing = PAGES[language]
    text = [head]
    for run, answer in zip(RUNS, said):
        first = answer['findings'][0] if answer['findings'] else None
        text += [f'## {run[1] if language == "en" else run[2]}', '', '```text', f'stageline simulate {run[3]} -o {run[0]}', f'stageline explain {run[0]}', '```', '',
                 f'![{run[1] if language == "en" else run[2]}](images/gallery/{run[0]}.png)', '',
                 f'**{first["title_" + language]}{END[language]}** {first["detail_" + language]}' if first else f'{nothing} {answer["lead_" + language]}', '']
    return name, '\n'.join(text)


def main():
    program, checks = sys.argv[1], '--check' in sys.argv[2:]
    pictures = None if checks else ROOT / 'docs/images/gallery'
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        said = [diagnosed(program, name, words, steps, pathlib.Path(folder), pictures) for name, _, _, words, steps in RUNS]
    other = []
    for language in PAGES:
        name, text = page(language, said)
        path = ROOT / 'docs' / name
        if not checks:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            other.append(name)
    if other:
        sys.exit(f'{", ".join(other)}: not what the program says now; python3 tools/gallery.py PROGRAM writes the pages')


if __name__ == '__main__':
    main()
