"""ZIP archives written field by field: as tools write them, and contradicting themselves in every way that a reader must notice.

    zip_archive.py OUT.zip FILE…

archive() makes the bytes from (name, content) pairs. zipfile, which also writes archives, refuses to write most of the faults.
"""
import pathlib
import struct
import sys
import zlib

STORED, DEFLATED = 0, 8


def deflate(content):
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def archive(files, method=DEFLATED, *, zip64=False, streamed=False, comment=b'', flags=0, crc=None, entry=None, count=None):
    """`zip64` moves all numbers into the extra fields, `streamed` the lengths behind the data. `entry(fields, k)` changes the fields of
    the k-th entry of the list; `crc` and `count` are written instead of the true ones."""
    out, entries = b'', b''
    for k, (name, content) in enumerate(files):
        data = content if method == STORED else deflate(content)
        raw, at = name.encode(), len(out)
        check = zlib.crc32(content) if crc is None else crc
        bits = flags | (8 if streamed else 0)
        lengths = (0, 0, 0) if streamed else (check, len(data), len(content))
        out += struct.pack('<4s5H3I2H', b'PK\3\4', 20, bits, method, 0, 0, *lengths, len(raw), 0) + raw + data
        if streamed:
            out += struct.pack('<4s3I', b'PK\7\x08', check, len(data), len(content))
        fields = {'name': raw, 'flags': bits, 'method': method, 'packed': len(data), 'size': len(content), 'at': at}
        if entry:
            entry(fields, k)
        extra = b''
        shown = fields['packed'], fields['size'], fields['at']
        if zip64:
            extra = struct.pack('<2H3Q', 1, 24, fields['size'], fields['packed'], fields['at'])
            shown = (0xffffffff,) * 3
        entries += struct.pack('<4s6H3I5H2I', b'PK\1\2', 45, 20, fields['flags'], fields['method'], 0, 0, check, shown[0], shown[1], len(fields['name']), len(extra),
                               0, 0, 0, 0, shown[2]) + fields['name'] + extra
    at, count = len(out), len(files) if count is None else count
    out += entries
    if zip64:
        out += struct.pack('<4sQ2H2I4Q', b'PK\6\6', 44, 45, 45, 0, 0, count, count, len(entries), at)
        out += struct.pack('<4sIQI', b'PK\6\7', 0, at + len(entries), 1)
    numbers = (0xffff, 0xffff, 0xffffffff, 0xffffffff) if zip64 else (count, count, len(entries), at)
    return out + struct.pack('<4s4H2IH', b'PK\5\6', 0, 0, *numbers, len(comment)) + comment


if __name__ == '__main__':
    pathlib.Path(sys.argv[1]).write_bytes(archive([(pathlib.Path(f).name, pathlib.Path(f).read_bytes()) for f in sys.argv[2:]]))
