// node embed.mjs DIR: DIR/report.js and DIR/report.css become DIR/web_bundle.cc, DIR/viewer.js and DIR/viewer.css
// DIR/viewer_bundle.cc: string literals that any C++ compiler takes quickly (src/exporters/html/web_bundle.h,
// src/server/viewer_bundle.h).
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';

const dir = process.argv[2];
if (!dir) throw new Error('usage: node embed.mjs DIR');

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
  const found = forbidden.exec(bytes.toString('utf8'));
  if (found) throw new Error(`${name} holds "${found[0]}", which would end the element it is inlined in`);
  const hash = 'sha256-' + createHash('sha256').update(bytes).digest('base64');
  return {bytes, hash};
}

// One C++ source with the two texts of a page and their hashes, as `header` declares them.
function embed(page, header) {
  const js = text(`${page}.js`, /<\/script|<!--/i);
  const css = text(`${page}.css`, /<\/style|<!--/i);
  writeFileSync(join(dir, page === 'report' ? 'web_bundle.cc' : `${page}_bundle.cc`), `// Made by web/embed.mjs from web/src.
#include "${header}"

namespace stageline {
namespace {

constexpr char kJs[] =
${literal(js.bytes)};
constexpr char kCss[] =
${literal(css.bytes)};

}  // namespace

std::string_view web_${page}_js() { return {kJs, sizeof kJs - 1}; }
std::string_view web_${page}_css() { return {kCss, sizeof kCss - 1}; }
std::string_view web_${page}_js_hash() { return "${js.hash}"; }
std::string_view web_${page}_css_hash() { return "${css.hash}"; }

}  // namespace stageline
`);
}

embed('report', 'exporters/html/web_bundle.h');
embed('viewer', 'server/viewer_bundle.h');
