"""Protocol Buffers, as much as it takes to write traces by hand: Perfetto's, XLA's."""
import struct


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """An int is a varint, a float a double, bytes and text a length and bytes; a list repeats."""
    if value is None:
        return b''
    if isinstance(value, (list, tuple)):
        return b''.join(field(number, v) for v in value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack('<d', value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def fixed64(number, values):
    return b''.join(varint(number << 3 | 1) + struct.pack('<Q', v) for v in values)
