"""Reads and writes digests from the description of their format alone (docs/formats/digest.md), without the program."""
import json
import struct
import subprocess

_TABLE = []
for _n in range(256):
    for _ in range(8):
        _n = _n >> 1 ^ (0x82F63B78 if _n & 1 else 0)
    _TABLE.append(_n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def _take(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read(data):
    """(head, {name: values}) of a digest's bytes."""
    magic, version, head_size, body_size, raw_size, sum_all, sum_fixed = struct.unpack_from('<8sIIQQII', data)
    assert (magic, version) == (b'SLDIGEST', 1) and sum_fixed == crc32c(data[:36]) and sum_all == crc32c(data[40:])
    body = subprocess.run(['zstd', '-dc'], input=data[40 + head_size:], capture_output=True, check=True).stdout
    assert len(body) == raw_size and len(data) == 40 + head_size + body_size
    columns, at = {}, 0
    while at < len(body):
        size, at = _take(body, at)
        name, kind = body[at:at + size].decode(), chr(body[at + size])
        count, at = _take(body, at + size + 1)
        size, at = _take(body, at)
        end, values, before = at + size, [], 0
        for _ in range(count):
            if kind == 'i':
                value, at = _take(body, at)
                before += value >> 1 if value & 1 == 0 else -(value + 1 >> 1)
                before = (before + 2**63) % 2**64 - 2**63
                values.append(before)
            elif kind == 'd':
                values.append(struct.unpack_from('<d', body, at)[0])
                at += 8
            else:
                size, at = _take(body, at)
                values.append(body[at:at + size].decode())
                at += size
        assert at == end, name
        columns[name] = values
    return json.loads(data[40:40 + head_size]), columns


def write(head, columns, counts=None, raw=None):
    """Bytes of a digest with sums that fit, whatever the columns hold. `counts`: columns that claim another length; `raw`: more columns as
    {name: (type, count, bytes)}."""
    body = b''
    for name, (kind, count, data) in (raw or {}).items():
        body += _varint(len(name)) + name.encode() + kind.encode() + _varint(count) + _varint(len(data)) + data
    for name, values in columns.items():
        kind, data, before = 't' if values and isinstance(values[0], str) else 'd' if values and isinstance(values[0], float) else 'i', b'', 0
        for value in values:
            if kind == 't':
                data += _varint(len(value.encode())) + value.encode()
            elif kind == 'd':
                data += struct.pack('<d', value)
            else:
                more = (value - before + 2**63) % 2**64 - 2**63
                data += _varint((more << 1 ^ more >> 63) % 2**64)
                before = value
        body += _varint(len(name)) + name.encode() + kind.encode() + _varint((counts or {}).get(name, len(values))) + _varint(len(data)) + data
    packed = subprocess.run(['zstd', '-c', '-q'], input=body, capture_output=True, check=True).stdout
    text = json.dumps(head).encode()
    fixed = struct.pack('<8sIIQQI', b'SLDIGEST', 1, len(text), len(packed), len(body), crc32c(text + packed))
    return fixed + struct.pack('<I', crc32c(fixed)) + text + packed
