#!/usr/bin/env python3
"""Files that the program carries: `embed.py ZSTD OUT_FOLDER LIST NAME=FILE...`, ZSTD being the program that compresses them, LIST the
array of EmbeddedFile (src/base/embedded.h) that has them, and NAME as they are asked for.

Writes the compressed files, LIST.S, which an assembler takes them from, and LIST.cc, which knows where they lie. (A compiler would need a
minute for five million characters.)
"""
import pathlib
import struct
import subprocess
import sys

# Where constants are and how a label is written, of Mach-O (macOS) and of ELF.
SECTION = """#if defined(__APPLE__)
.section __TEXT,__const
#define BEGIN(label) .globl _##label %% .private_extern _##label %% _##label:
#else
.section .rodata
#define BEGIN(label) .global label ; .hidden label ; label:
#endif"""
# Without this note the linker would make the stack executable.
NOTE = """#if !defined(__APPLE__)
.section .note.GNU-stack,"",%progbits
#endif"""


# Tables of a font that only those read who place pairs of letters, join them, write downwards or ask for a letter's name.
UNREAD_TABLES = {b'GPOS', b'GSUB', b'GDEF', b'kern', b'post', b'vhea', b'vmtx', b'VORG', b'FFTM', b'DSIG'}


def lean_font(content):
    """The font, the first one of a collection (.ttc), without UNREAD_TABLES. Layout: the directory of tables of TrueType."""
    start = struct.unpack_from('>I', content, 12)[0] if content.startswith(b'ttcf') else 0
    kind, count = struct.unpack_from('>4sH', content, start)
    entries = [struct.unpack_from('>4sIII', content, start + 12 + 16 * number) for number in range(count)]
    entries = [entry for entry in entries if entry[0] not in UNREAD_TABLES]
    log = len(entries).bit_length() - 1
    head = struct.pack('>4sHHHH', kind, len(entries), 16 << log, log, 16 * (len(entries) - (1 << log)))
    body, at = b'', len(head) + 16 * len(entries)
    for tag, checksum, offset, length in entries:
        head += struct.pack('>4sIII', tag, checksum, at + len(body), length)
        body += content[offset:offset + length] + bytes(-length % 4)
    return head + body


def main():
    zstd, out, listed, files = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], [word.split('=', 1) for word in sys.argv[4:]]
    assembly, extern, rows = [SECTION], [], []
    for number, (name, path) in enumerate(files):
        content = pathlib.Path(path).read_bytes()
        if path.endswith(('.ttf', '.ttc')):
            content = lean_font(content)
        packed = f'{listed}_{number}.zst'
        subprocess.run([zstd, '-22', '--ultra', '--single-thread', '--quiet', '--stdout'], input=content, stdout=(out / packed).open('wb'), check=True)
        label = f'stageline_{listed}_{number}'
        assembly += [f'BEGIN({label})', f'.incbin "{packed}"', f'BEGIN({label}_end)', '.byte 0']
        extern.append(f'extern const char {label}[], {label}_end[];')
        rows.append(f'    {{"{name}", {label}, {label}_end, {len(content)}}},')
    (out / f'{listed}.S').write_text('\n'.join([*assembly, NOTE, '']))
    (out / f'{listed}.cc').write_text('\n'.join([
        '// Made by tools/embed.py.', '#include "base/embedded.h"', '', 'extern "C" {', *extern, '}', '', 'namespace stageline {',
        f'extern const EmbeddedFile {listed}[];', f'const EmbeddedFile {listed}[] = {{', *rows, '    {{}, nullptr, nullptr, 0},', '};',
        '}  // namespace stageline', '']))


if __name__ == '__main__':
    main()
