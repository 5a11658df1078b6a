"""Reads recordings by the description of their format alone (docs/formats/recording.md): what the program's own reader is held to here."""
import collections
import struct

Row = collections.namedtuple('Row', 'type name lane step start_ns dur_ns kind micro_batch chunk value')
TYPES = ['range', 'mark', 'counter', 'step', 'open']


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def u8(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)


def rows(path):
    """Records of a cold file whose clock is the host's, in file order."""
    data = path.read_bytes()
    shift, ticks_per_second = data[17], struct.unpack_from('<Q', data, 24)[0]
    names, out, at = {0: ''}, [], 64
    while at < len(data):
        magic, kind, _, flags, size, _, _, _, first = struct.unpack_from('<4sBBHIIIIQ', data, at)
        assert magic == b'SLCK', at
        payload = data[at + 32:at + 32 + size]
        at += 32 + (size + 7) // 8 * 8
        if kind == 2:
            offset = 0
            while offset < len(payload):
                number, length = struct.unpack_from('<HH', payload, offset)
                names[number] = payload[offset + 4:offset + 4 + length].decode()
                offset += 4 + length
        elif kind == 4:
            out.extend(ranges(Bytes(payload), names, first >> (flags or shift), (1 << (flags or shift)) * 1e9 / ticks_per_second))
    return out


def ranges(b, names, first, unit_ns):
    b.varint(), b.varint(), b.varint()
    lane, step, end = 0, -1, first
    for _ in range(b.varint()):
        flags = b.u8()
        assert not flags & 128, 'times of a device'
        if flags & 8:
            lane = b.varint()
        if flags & 32:
            step += b.zigzag()
        name, kind, micro_batch, chunk, duration, value = names[b.varint()], 0, -1, -1, 0, None
        start = end + b.zigzag()
        form = TYPES[flags & 7]
        if form == 'range':
            duration = b.varint()
        elif form == 'counter':
            value = struct.unpack_from('<d', b.data, b.at)[0]
            b.at += 8
        elif form == 'step':
            value = b.zigzag()
        end = start + duration
        if flags & 16:
            kind, micro_batch, chunk = b.u8(), b.varint() - 1, b.varint() - 1
        if flags & 64:
            facts = b.u8()
            for _ in [bit for bit in (1, 2, 4, 8) if facts & bit]:
                b.varint()
        yield Row(form, name, lane, step, start * unit_ns, duration * unit_ns, kind, micro_batch, chunk, value)

