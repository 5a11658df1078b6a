// node embed.mjs DIR [WASM]: the scripts and styles that build.mjs made in DIR, and what-if as WebAssembly where it
// could be built, become DIR/web_bundle.cc. They are compressed, in string literals that any C++ compiler takes fast
// (see src/server/http/viewer_bundle.h). The texts are unpacked when they are first asked for, in 5 ms; the WebAssembly
// never is, since a report holds it compressed.
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {deflateSync, gzipSync} from 'node:zlib';

const [dir, wasm] = process.argv.slice(2);
if (!dir) throw new Error('usage: node embed.mjs DIR [WASM]');

function literal(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 100) {
    let line = '';
    for (const byte of bytes.subarray(at, at + 100)) {
      const c = String.fromCharCode(byte);
      if (c === '"' || c === '\\' || c === '?') line += '\\' + c;
      else if (byte >= 0x20 && byte < 0x7f) line += c;
      else line += '\\' + byte.toString(8).padStart(3, '0');
    }
    lines.push(`    "${line}"`);
  }
  return lines.join('\n') || '    ""';
}

function text(name, forbidden) {
  const bytes = readFileSync(join(dir, name));
  const found = forbidden?.exec(bytes.toString('utf8'));
  if (found) throw new Error(`${name} holds "${found[0]}", which would end the element it is inlined in`);
  const hash = 'sha256-' + createHash('sha256').update(bytes).digest('base64');
  return {bytes: deflateSync(bytes, {level: 9}), size: bytes.length, hash};
}

const texts = [
  ['viewer_js', text('viewer.js')],
  ['chunk_js', text('chunk.js')],
  ['late_pages_js', text('late_pages.js')],
  ['viewer_css', text('viewer.css', /<\/style|<!--/i)], // a server's file, and inlined in a report
  ['report_js', text('report.js', /<\/script|<!--/i)],
  ['live_js', text('live.js')],
  ['live_css', text('live.css')],
];
const whatIf = wasm ? gzipSync(readFileSync(wasm), {level: 9}) : new Uint8Array(0); // as a report holds it
writeFileSync(join(dir, 'web_bundle.cc'), `// Made by web/embed.mjs from web/src.
#include "server/http/viewer_bundle.h"

#include <zlib.h>

#include <cassert>
#include <string>

namespace stageline {
namespace {

${texts.map(([name, {bytes}]) => `constexpr char k_${name}[] =\n${literal(bytes)};`).join('\n')}
${
  whatIf.length === 0 ? '' : `constexpr char kWhatIf[] =
${literal(whatIf)};
`
}
template <size_t N>
std::string unpacked(const char (&packed)[N], size_t size) {
  std::string text(size, '\\0');
  uLongf length = size;
  [[maybe_unused]] const int code =
      uncompress(reinterpret_cast<Bytef*>(text.data()), &length, reinterpret_cast<const Bytef*>(packed), N - 1);
  assert(code == Z_OK && length == size);
  return text;
}

}  // namespace

${
  texts.map(([name, {size, hash}]) =>
    `std::string_view web_${name}() {
  static const std::string text = unpacked(k_${name}, ${size});
  return text;
}
std::string_view web_${name}_hash() { return "${hash}"; }`
  ).join('\n')
}
std::string_view web_what_if_gzip() { return ${whatIf.length === 0 ? '{}' : '{kWhatIf, sizeof(kWhatIf) - 1}'}; }

}  // namespace stageline
`);
