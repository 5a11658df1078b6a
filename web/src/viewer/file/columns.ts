// Reads the columns of slices that a report carries (src/server/page/page_slices.h says how they lie). A lane comes in
// blocks of up to 65 536 slices; a piece of bytes holds whole blocks, and the next of the same lanes goes on where it
// ended.
import type {Lane, Links, Numbers} from './lanes';

export const STEPS = 1, FACTS = 2, CELLS = 4, PARTNERS = 8, PARENTS = 16;
const BLOCK_SLICES = 65_536;

export class Bytes {
  at = 0;
  constructor(readonly bytes: Uint8Array) {}

  varint(): number {
    const {bytes} = this;
    let byte = bytes[this.at++]!;
    if (byte < 128) return byte;
    let value = byte & 127, scale = 128;
    do {
      if (this.at >= bytes.length) fail();
      byte = bytes[this.at++]!;
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return value;
  }
  // Into out[begin, end), each `unit` times. The loop that everything waits for.
  varints(out: Float64Array | Uint32Array | Uint16Array, begin: number, end: number, unit = 1): void {
    const {bytes} = this, {length} = bytes;
    let {at} = this;
    for (let i = begin; i < end; ++i) {
      let byte = bytes[at++]!;
      if (byte < 128) {
        out[i] = byte * unit;
        continue;
      }
      let value = byte & 127, scale = 128;
      do {
        if (at >= length) fail();
        byte = bytes[at++]!;
        value += (byte & 127) * scale;
        scale *= 128;
      } while (byte >= 128);
      out[i] = value * unit;
    }
    this.at = at;
  }
  signed(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
  done(): boolean {
    return this.at >= this.bytes.length;
  }
}

// With as few bytes a number as they need.
function joined(parts: number[][]): Numbers {
  let low = 0, high = 0, count = 0, at = 0;
  for (const part of parts) {
    count += part.length;
    for (const value of part) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  const fits = (bits: number): boolean => low >= -(2 ** bits) && high < 2 ** bits,
    out = new (fits(7) ? Int8Array : fits(15) ? Int16Array : low < 0 ? Int32Array : Uint32Array)(count);
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

const SPARSE = (): number[][][] => Array.from({length: 7}, () => []);

// The types of number columns, the same for all lanes.
export interface Arrays {
  starts: Uint32ArrayConstructor | Float64ArrayConstructor;
  durations: Uint32ArrayConstructor | Float64ArrayConstructor;
  places: Uint16ArrayConstructor | Uint32ArrayConstructor;
}

// Takes the pieces of some lanes in order and fills them.
export class ColumnReader {
  private lane: number;
  private slice = 0;
  private unit = 1;
  private lastStart = 0;
  private lastEnd = 0;
  private lastPartner = 0;
  private lastParent = 0;
  // Of the lane, by block: steps (at, value), facts (slice, micro-batch, chunk), parents (slice, parent).
  private sparse: number[][][] = SPARSE();

  // `bases`: by lane, the number of slices in the lanes before it. It reads the lanes [first, last].
  constructor(private readonly lanes: readonly Lane[], private readonly bases: readonly number[], first: number,
    private readonly last: number, private readonly arrays: Arrays)
  {
    this.lane = first;
  }

  piece(bytes: Uint8Array): void {
    const from = new Bytes(bytes);
    while (!from.done()) {
      if (this.lane > this.last) fail();
      this.block(from, this.lanes[this.lane]!);
      if (this.slice >= this.lanes[this.lane]!.count) this.next();
    }
  }
  finish(): void {
    if (this.lane <= this.last) fail();
  }

  private next(): void {
    const lane = this.lanes[this.lane++]!;
    const [at, value, slice, microBatch, chunk, child, parent] = this.sparse.map(joined);
    lane.step = {at: at!, value: value!};
    lane.facts = {slice: slice!, microBatch: microBatch!, chunk: chunk!};
    lane.parents = {slice: child!, parent: parent!};
    this.sparse = SPARSE();
    this.slice =
      this.lastStart =
      this.lastEnd =
      this.lastPartner =
      this.lastParent =
        0;
  }

  private block(from: Bytes, lane: Lane): void {
    if (this.slice === 0) {
      this.unit = from.varint();
      lane.start = new this.arrays.starts(lane.count);
      if (lane.type === 'counter') {
        lane.value = new Float64Array(lane.count);
      } else {
        lane.dur = new this.arrays.durations(lane.count);
        lane.place = new this.arrays.places(lane.count);
      }
    }
    const begin = this.slice, end = Math.min(lane.count, begin + BLOCK_SLICES), {start, dur, place} = lane,
      {unit} = this;
    // A start counts from the end of the slice before it, or (odd) from its start; ends are known once durations are.
    const steps = new Float64Array(end - begin);
    from.varints(steps, 0, end - begin);
    if (lane.value) {
      for (let i = begin; i < end; ++i) this.lastStart = start[i] = this.lastStart + steps[i - begin]! * unit;
      this.values(from, lane.value, begin, end);
      this.slice = end;
      return;
    }
    from.varints(dur, begin, end, unit);
    let {lastStart, lastEnd} = this;
    for (let i = begin; i < end; ++i) {
      const coded = steps[i - begin]!, odd = coded % 2;
      lastStart = odd ? lastStart + (coded - 1) / 2 * unit : lastEnd + coded / 2 * unit;
      start[i] = lastStart;
      lastEnd = lastStart + dur[i]!;
    }
    this.lastStart = lastStart;
    this.lastEnd = lastEnd;
    from.varints(place, begin, end);
    const has = from.varint();
    if (has & STEPS) this.steps(from, begin, end);
    if (has & FACTS) this.facts(from, begin);
    if (has & CELLS) {
      lane.microBatch ??= new Int32Array(lane.count);
      lane.chunk ??= new Int32Array(lane.count);
      for (let i = begin; i < end; ++i) lane.microBatch[i] = from.signed();
      for (let i = begin; i < end; ++i) lane.chunk[i] = from.signed();
    }
    if (has & PARTNERS) this.partners(from, lane, begin, end);
    if (has & PARENTS) this.parents(from, begin);
    this.slice = end;
  }
  private values(from: Bytes, value: Float64Array, begin: number, end: number): void {
    if (from.varint() === 1) {
      const view = new DataView(from.bytes.buffer, from.bytes.byteOffset + from.at, (end - begin) * 8);
      for (let i = begin; i < end; ++i) value[i] = view.getFloat64((i - begin) * 8, true);
      from.at += (end - begin) * 8;
      return;
    }
    let last = 0;
    for (let i = begin; i < end; ++i) last = value[i] = last + from.signed();
  }
  private steps(from: Bytes, begin: number, end: number): void {
    const at: number[] = [], value: number[] = [];
    for (let i = begin; i < end;) {
      at.push(i);
      i += Math.max(1, from.varint());
      value.push(from.signed());
    }
    this.keep(0, at, value);
  }
  private facts(from: Bytes, begin: number): void {
    const slice: number[] = [], microBatch: number[] = [], chunk: number[] = [];
    let at = begin;
    for (let left = from.varint(); left > 0; --left) {
      slice.push(at += from.varint());
      microBatch.push(from.signed());
      chunk.push(from.signed());
    }
    this.keep(2, slice, microBatch, chunk);
  }
  private partners(from: Bytes, lane: Lane, begin: number, end: number): void {
    lane.partner ??= new Uint32Array(lane.count);
    const lanes = new Uint32Array(end - begin);
    from.varints(lanes, 0, lanes.length);
    for (let k = 0; k < lanes.length; ++k) {
      if (lanes[k] === 0) continue;
      this.lastPartner += from.signed();
      lane.partner[begin + k] = this.bases[lanes[k]! - 1]! + this.lastPartner + 1;
    }
  }
  private parents(from: Bytes, begin: number): void {
    const slice: number[] = [], parent: number[] = [];
    let at = begin;
    for (let left = from.varint(); left > 0; --left) {
      slice.push(at += from.varint());
      const lane = from.varint();
      if (lane > 0) this.lastParent += from.signed();
      parent.push(lane > 0 ? this.bases[lane - 1]! + this.lastParent + 1 : 0);
    }
    this.keep(5, slice, parent);
  }
  private keep(first: number, ...lists: number[][]): void {
    lists.forEach((list, i) => this.sparse[first + i]!.push(list));
  }
}

export function fail(): never {
  throw new Error('the report is cut off');
}

export function readLinks(from: Bytes, count: number): Links {
  const links: Links = {fromLane: new Uint32Array(count), fromSlice: new Uint32Array(count),
    toLane: new Uint32Array(count), toSlice: new Uint32Array(count), type: new Uint8Array(count)};
  for (const column of [links.fromLane, links.fromSlice, links.toLane, links.toSlice]) {
    let last = 0;
    for (let i = 0; i < count; ++i) column[i] = last += from.signed();
  }
  for (let i = 0; i < count; ++i) links.type[i] = from.varint();
  return links;
}
