// Runs Perfetto's trace processor (a WebAssembly module) under node, without the JavaScript that usually comes with it.
// This file answers the few imports of the module, and speaks its remote procedure call protocol
// (perfetto/protos/perfetto/trace_processor/trace_processor.proto).
//
//   const tp = openTraceProcessor("trace_processor.wasm");
//   tp.load(bytes);                       // throws when the trace is refused
//   tp.query("select name from slice");   // [{name: "F3 (8.05 ms)"}, …]

import fs from "node:fs";

const kPieceBytes = 16 << 20; // a request must stay below 64 MiB
const kHeapLimit = 65535 * 65536; // 4 GiB less a page

// Protobuf, as much as is needed to ask and to understand the answer.

function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const message = (field, bytes) => Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  get done() {
    return this.at >= this.bytes.length;
  }
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  take(count) {
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }
  // [field, value] pairs: BigInt, or bytes for lengths and fixed widths.
  *fields() {
    while (!this.done) {
      const key = Number(this.varint());
      const wire = key & 7;
      if (wire === 0) yield [key >>> 3, this.varint()];
      else if (wire === 1) yield [key >>> 3, this.take(8)];
      else if (wire === 2) yield [key >>> 3, this.take(Number(this.varint()))];
      else if (wire === 5) yield [key >>> 3, this.take(4)];
      else throw new Error(`wire type ${wire}`);
    }
  }
}
const fieldsOf = (bytes) => new Reader(bytes).fields();
const text = (bytes) => Buffer.from(bytes).toString("utf8");

// Rows of a QueryResult: batches hold the kinds of all cells, then one column of values per kind.
function* cellsOfBatch(batch) {
  let kinds = [], strings = [];
  const varints = [], doubles = [], blobs = [];
  for (const [field, value] of fieldsOf(batch)) {
    if (field === 1) kinds = value;
    if (field === 2) for (const r = new Reader(value); !r.done; ) varints.push(BigInt.asIntN(64, r.varint()));
    if (field === 3) for (let i = 0; i < value.length; i += 8) doubles.push(Buffer.from(value).readDoubleLE(i));
    if (field === 4) blobs.push(value);
    if (field === 5) strings = text(value).split("\0");
  }
  const taken = [0, 0, 0, 0];
  const safe = (n) => (n >= Number.MIN_SAFE_INTEGER && n <= Number.MAX_SAFE_INTEGER ? Number(n) : n);
  for (const kind of kinds) {
    if (kind === 1) yield null;
    else if (kind === 2) yield safe(varints[taken[0]++]);
    else if (kind === 3) yield doubles[taken[1]++];
    else if (kind === 4) yield strings[taken[2]++];
    else yield blobs[taken[3]++];
  }
}

export function openTraceProcessor(path) {
  const module = new WebAssembly.Module(fs.readFileSync(path));
  let memory;
  const log = [];
  const bytesAt = (address, count) => Buffer.from(memory.buffer, address >>> 0, count >>> 0);
  const textAt = (address) => {
    const all = Buffer.from(memory.buffer);
    return text(all.subarray(address >>> 0, all.indexOf(0, address >>> 0)));
  };
  const stop = (why) => {
    throw new Error(`trace processor: ${why}; ${log.slice(-5).join(" | ")}`);
  };

  const answers = {
    emscripten_get_now: () => performance.now(),
    emscripten_date_now: () => Date.now(),
    emscripten_get_heap_max: () => kHeapLimit,
    emscripten_resize_heap(wanted) {
      const have = memory.buffer.byteLength;
      // Some slack, as growing moves nothing but is not free; then exactly what was asked for.
      for (const bytes of [Math.max(wanted >>> 0, have * 1.2), wanted >>> 0]) {
        const pages = Math.ceil((Math.min(bytes, kHeapLimit) - have) / 65536);
        try {
          memory.grow(Math.max(pages, 0));
          return memory.buffer.byteLength >= wanted >>> 0 ? 1 : 0;
        } catch {}
      }
      return 0;
    },
    clock_time_get(clock, _precision, result) {
      const ns = clock === 0 ? BigInt(Date.now()) * 1000000n : process.hrtime.bigint();
      bytesAt(result, 8).writeBigUInt64LE(ns);
      return 0;
    },
    fd_write(_fd, vectors, count, result) {
      let total = 0;
      for (let i = 0; i < count; ++i) {
        const vector = bytesAt(vectors + 8 * i, 8);
        const length = vector.readUInt32LE(4);
        log.push(text(bytesAt(vector.readUInt32LE(0), length)).trimEnd());
        total += length;
      }
      bytesAt(result, 4).writeUInt32LE(total);
      return 0;
    },
    environ_sizes_get(count, size) {
      bytesAt(count, 4).writeUInt32LE(0);
      bytesAt(size, 4).writeUInt32LE(0);
      return 0;
    },
    emscripten_err: (address) => log.push(textAt(address)),
    emscripten_errn: (address, count) => log.push(text(bytesAt(address, count))),
    _abort_js: () => stop("aborted"),
    exit: (code) => stop(`exit ${code}`),
    proc_exit: (code) => stop(`exit ${code}`),
    __assert_fail: (what, file, line) => stop(`${textAt(what)} at ${textAt(file)}:${line}`),
    __cxa_throw: () => stop("exception"),
  };
  // Everything else is an operating system that has nothing: ENOSYS for its calls, 0 for the rest.
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    const absent = name.startsWith("__syscall") || name.startsWith("_m") ? -52 : name === "fd_read" || name === "fd_seek" ? 8 : 0;
    (imports[from] ??= {})[name] = answers[name] ?? (() => absent);
  }
  const { exports } = new WebAssembly.Instance(module, imports);
  memory = exports.memory;
  exports.emscripten_stack_init?.();
  exports.__wasm_call_ctors();

  // Replies come through a C function pointer, void(const void*, uint32_t). A table of functions
  // takes only WebAssembly functions, so a module of one import and one export wraps ours:
  const replies = [];
  // prettier-ignore
  const wrapper = new WebAssembly.Module(Uint8Array.of(
    0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0,               // "\0asm", version 1
    1, 6, 1, 0x60, 2, 0x7f, 0x7f, 0,                  // type 0: (i32, i32) → ()
    2, 7, 1, 1, 0x61, 1, 0x62, 0, 0,                  // import "a"."b", of type 0
    7, 5, 1, 1, 0x63, 0, 0));                         // export it as "c"
  const onReply = (address, count) => replies.push(Buffer.from(bytesAt(address, count)));
  const table = exports.__indirect_function_table;
  const slot = table.grow(1);
  table.set(slot, new WebAssembly.Instance(wrapper, { a: { b: onReply } }).exports.c);
  const capacity = 32 << 20;
  const requestAt = exports.trace_processor_rpc_init(slot, capacity);

  // TraceProcessorRpcStream { msg = 1 { seq = 1, request = 2, arguments } } → the replies' fields.
  let sequence = 0;
  function call(method, ...args) {
    const request = message(1, Buffer.concat([number(1, sequence++), number(2, method), ...args]));
    for (let at = 0; at < request.length; at += capacity) {
      const piece = request.subarray(at, at + capacity);
      bytesAt(requestAt, piece.length).set(piece);
      exports.trace_processor_on_rpc_request(piece.length);
    }
    const fields = [];
    for (const [, reply] of fieldsOf(Buffer.concat(replies.splice(0)))) fields.push(...fieldsOf(reply));
    for (const [field, value] of fields) if (field === 5) stop(text(value));
    return fields;
  }
  const innerError = (fields, outer, inner) => {
    for (const [field, value] of fields)
      if (field === outer) for (const [f, why] of fieldsOf(value)) if (f === inner && why.length) throw new Error(text(why));
  };

  return {
    load(bytes) {
      for (let at = 0; at < bytes.length; at += kPieceBytes)
        innerError(call(1, message(101, bytes.subarray(at, at + kPieceBytes))), 201, 2);
      innerError(call(2), 212, 1);
    },
    version() {
      for (const [field, value] of call(10))
        if (field === 210) for (const [f, v] of fieldsOf(value)) if (f === 2) return text(v);
      return "";
    },
    query(sql) {
      const fields = call(3, message(103, message(1, Buffer.from(sql))));
      innerError(fields, 203, 2);
      const columns = [], cells = [], rows = [];
      for (const [field, result] of fields) {
        if (field !== 203) continue;
        for (const [f, value] of fieldsOf(result)) {
          if (f === 1) columns.push(text(value));
          if (f === 3) cells.push(...cellsOfBatch(value));
        }
      }
      for (let i = 0; i < cells.length; i += columns.length)
        rows.push(Object.fromEntries(columns.map((name, k) => [name, cells[i + k]])));
      return rows;
    },
  };
}
