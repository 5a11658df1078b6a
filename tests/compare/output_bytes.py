"""Where two outputs begin to differ, in words: the line of a text, the row of a database, the part of a page."""
import base64
import contextlib
import gzip
import re
import sqlite3
import tempfile

AROUND = 45  # characters shown on either side of the first that differs
PLACE = re.compile(rb'<script type="application/octet-stream" ([^>]*)>([^<]*)</script>')
# The page's own program: script, style, and their hashes in the policy.
CODE = re.compile(rb"<script>.*?</script>|<style>.*?</style>|'sha256-[^']*'", re.S)


def first_difference(name, old, new):
    """Returns (the place where the bytes differ, or "" if their meaning is equal; true if the page's own program
    differs)."""
    if name.endswith(('.db', '.sqlite', '.stageline-backup')) and old[:6] == new[:6] == b'SQLite':
        rows = [rows_of(old), rows_of(new)]
        return ('rows, ' + line_difference(*rows) if rows[0] != rows[1] else ''), False
    if b'<script>' in old and b'<script>' in new and old[:9] == new[:9] == b'<!doctype':
        return page_difference(old, new)
    if old[:2] == new[:2] == b'\x1f\x8b':
        with contextlib.suppress(OSError, EOFError):
            if gzip.decompress(old) != gzip.decompress(new):
                return 'inside gzip, ' + line_difference(gzip.decompress(old), gzip.decompress(new)), False
    return line_difference(old, new), False


def rows_of(data):
    """A database as SQL: its bytes also say which SQLite wrote it, and what was deleted in between."""
    with tempfile.NamedTemporaryFile(suffix='.db') as file:
        file.write(data)
        file.flush()
        with contextlib.closing(sqlite3.connect(f'file:{file.name}?immutable=1', uri=True)) as db:
            return '\n'.join(db.iterdump()).encode()


def page_difference(old, new):
    """Compares a page in one file: its data part by part, then the rest without the page's program."""
    parts = [dict(PLACE.findall(page)) for page in (old, new)]
    for name in [*parts[0], *(name for name in parts[1] if name not in parts[0])]:
        if name not in parts[0] or name not in parts[1]:
            return f'{name.decode()}: only {"OLD" if name in parts[0] else "NEW"} has it', False
        if parts[0][name] != parts[1][name]:
            unpacked = [gzip.decompress(base64.b64decode(part[name])) for part in parts]
            return f'{name.decode()}: ' + (line_difference(*unpacked) if unpacked[0] != unpacked[1] else 'packed otherwise'), False
    rest = [CODE.sub(b'', PLACE.sub(b'', page)) for page in (old, new)]
    return (line_difference(*rest), False) if rest[0] != rest[1] else ('', True)


def line_difference(old, new):
    """The first line that differs, and of a long one the place."""
    lines = [data.split(b'\n') for data in (old, new)]
    for number, (a, b) in enumerate(zip(*lines), 1):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            return f'line {number}, column {at + 1}: {shown(a, at)} → {shown(b, at)}'
    longer = lines[0] if len(lines[0]) > len(lines[1]) else lines[1]
    number = min(len(lines[0]), len(lines[1]))
    return f'after line {number} only {"OLD" if longer is lines[0] else "NEW"} goes on: {shown(longer[number], 0)}'


def shown(line, at):
    text = line[max(0, at - AROUND):at + AROUND].decode('utf-8', 'backslashreplace')
    return ('…' if at > AROUND else '') + repr(text) + ('…' if len(line) > at + AROUND else '')
