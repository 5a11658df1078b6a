// Answers of many numbers: the length of a JSON header (u32), the header, zeros up to a multiple of 8, then columns;
// offsets count from the first column. All little-endian (docs/viewer-protocol.md).
export interface Column {
  name: string;
  type: 'f64' | 'f32' | 'u32' | 'i32' | 'u8';
  offset: number;
  count: number;
}
export interface Wire<Header> {
  header: Header;
  buffer: ArrayBuffer;
  base: number;
}

export function decode<Header>(buffer: ArrayBuffer): Wire<Header> {
  if (buffer.byteLength < 4) throw new Error('the answer is cut off');
  const length = new DataView(buffer).getUint32(0, true);
  if (4 + length > buffer.byteLength) throw new Error('the answer is cut off');
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as Header;
  return {header, buffer, base: Math.ceil((4 + length) / 8) * 8};
}

// Frees bytes that are read, where the browser can: a worker that makes few objects collects its garbage late.
export function release({buffer}: Uint8Array): void {
  (buffer as {transfer?: (size: number) => unknown}).transfer?.(0);
}

// The same the other way round, for answers that the page makes itself.
export class WireWriter {
  readonly columns: Column[] = [];
  private readonly parts: {at: number; bytes: Uint8Array}[] = [];
  private size = 0;

  // Takes the values: afterwards they are gone. Returns where they begin.
  bytes(values: Uint8Array): number {
    const at = Math.ceil(this.size / 8) * 8;
    this.parts.push({at, bytes: values});
    this.size = at + values.byteLength;
    return at;
  }
  add(name: string, type: Column['type'], values: Numbers): void {
    const offset = this.bytes(new Uint8Array(values.buffer as ArrayBuffer, values.byteOffset, values.byteLength));
    this.columns.push({name, type, offset, count: values.length});
  }
  finish(header: object): ArrayBuffer {
    const text = new TextEncoder().encode(JSON.stringify(header)), base = Math.ceil((4 + text.length) / 8) * 8;
    const out = new Uint8Array(base + this.size);
    new DataView(out.buffer).setUint32(0, text.length, true);
    out.set(text, 4);
    for (const {at, bytes} of this.parts) {
      out.set(bytes, base + at);
      release(bytes);
    }
    return out.buffer;
  }
}

type Numbers = Float64Array | Float32Array | Uint32Array | Int32Array | Uint8Array;
function column(wire: Wire<{columns: Column[]}>, name: string, type: Column['type']): Numbers | null {
  const found = wire.header.columns.find(c => c.name === name);
  if (!found || found.type !== type) return null;
  const at = wire.base + found.offset;
  switch (type) {
    case 'f64':
      return new Float64Array(wire.buffer, at, found.count);
    case 'f32':
      return new Float32Array(wire.buffer, at, found.count);
    case 'u32':
      return new Uint32Array(wire.buffer, at, found.count);
    case 'i32':
      return new Int32Array(wire.buffer, at, found.count);
    case 'u8':
      return new Uint8Array(wire.buffer, at, found.count);
  }
}

type Columns = Wire<{columns: Column[]}>;
const needed = <T>(values: T | null, name: string): T => {
  if (values === null) throw new Error(`the answer has no column "${name}"`);
  return values;
};
export const f64 = (wire: Columns, name: string): Float64Array =>
  needed(column(wire, name, 'f64') as Float64Array | null, name);
export const f32 = (wire: Columns, name: string): Float32Array =>
  needed(column(wire, name, 'f32') as Float32Array | null, name);
export const u32 = (wire: Columns, name: string): Uint32Array =>
  needed(column(wire, name, 'u32') as Uint32Array | null, name);
export const i32 = (wire: Columns, name: string): Int32Array =>
  needed(column(wire, name, 'i32') as Int32Array | null, name);
export const u8 = (wire: Columns, name: string): Uint8Array =>
  needed(column(wire, name, 'u8') as Uint8Array | null, name);
