#include "readers/digest/digest_file.h"

#include <zstd.h>

#include <cstdio>

#include "base/crc32c.h"
#include "base/gzip_bytes.h"
#include "base/json_members.h"
#include "base/json_writer.h"
#include "model/source_limits.h"
#include "readers/reader.h"

namespace stageline::digest {
namespace {

constexpr size_t kMaxHeadBytes = size_t{1} << 20;
constexpr uint64_t kMaxBodyBytes = uint64_t{1} << 32;
constexpr int kLevel = 3;  // zstd's level: higher ones save a few percent and take longer than reading the log

template <class T> void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T> T get(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string head_text(const Head& head) {
  JsonWriter json;
  json.begin_object()
      .field("format", "stageline-digest")
      .field("reader", std::string_view(head.reader))
      .field("rank", int64_t{head.rank})
      .field("source", std::string_view(head.source))
      .field("root", std::string_view(head.root))
      .field("ranks_of_source", head.ranks_of_source)
      .field("cells", head.cells)
      .field("slices", head.slices)
      .field("key", std::string_view(head.key))
      .end_object();
  return json.take();
}

}  // namespace

std::string file_name_of(const Head& head) {
  uint64_t hash = 1469598103934665603u;  // FNV-1a, which is enough, for the name only has to differ where the key does
  for (const char c : head.key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  char text[64];
  snprintf(text, sizeof text, "rank-%05d.%016llx", head.rank, static_cast<unsigned long long>(hash));
  return text + std::string(kExtension);
}

std::string pack(const Head& head, const Trace& trace) {
  const std::string body = pack_trace(trace), text = head_text(head);
  std::string packed(ZSTD_compressBound(body.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), body.data(), body.size(), kLevel));
  std::string out(kMagic);
  put(out, kVersion);
  put(out, static_cast<uint32_t>(text.size()));
  put(out, static_cast<uint64_t>(packed.size()));
  put(out, static_cast<uint64_t>(body.size()));
  put(out, crc32c(packed, crc32c(text)));
  put(out, crc32c(out));
  return out + text + packed;
}

uint64_t announced_bytes(std::string_view first) {
  if (first.size() < kFixedBytes || !first.starts_with(kMagic)) return 0;
  return kFixedBytes + get<uint32_t>(first, 12) + std::min<uint64_t>(get<uint64_t>(first, 16), uint64_t{1} << 62);
}

Result<Digest> parse(std::string_view bytes, const std::string& path) {
  const auto damaged = [&](std::string_view name) { return worded_error(ErrorCode::kBadInput, name, {}, {path}); };
  if (!bytes.starts_with(kMagic)) return damaged("digest.foreign");
  if (bytes.size() < kFixedBytes) return damaged("digest.cut");
  if (const auto version = get<uint32_t>(bytes, 8); version > kVersion)
    return input_error("digest.newer", {path},
                       Args().set("version", std::to_string(version)).set("known", std::to_string(kVersion)),
                       ErrorCode::kUnavailable);
  if (get<uint32_t>(bytes, 36) != crc32c(bytes.substr(0, 36))) return damaged("digest.head_damaged");
  const auto head_bytes = get<uint32_t>(bytes, 12);
  const auto body_bytes = get<uint64_t>(bytes, 16);
  Digest digest;
  digest.body_bytes = get<uint64_t>(bytes, 24);
  const std::string_view rest = bytes.substr(kFixedBytes);
  if (head_bytes > kMaxHeadBytes || head_bytes > rest.size() || body_bytes != rest.size() - head_bytes)
    return damaged("digest.length");
  if (digest.body_bytes > kMaxBodyBytes) return damaged("digest.huge");
  if (get<uint32_t>(bytes, 32) != crc32c(rest)) return damaged("digest.damaged");
  const std::string_view head = rest.substr(0, head_bytes);
  digest.body = rest.substr(head_bytes);
  const auto number = [&](const char* name) { return json_integer(json_member(head, name)).value_or(0); };
  digest.head.key = json_text(json_member(head, "key"));
  digest.head.reader = json_text(json_member(head, "reader"));
  digest.head.root = json_text(json_member(head, "root"));
  digest.head.source = json_text(json_member(head, "source"));
  const int64_t rank = number("rank");
  digest.head.ranks_of_source = number("ranks_of_source");
  if (rank < 0 || rank > kMaxRankNumber || digest.head.ranks_of_source < 0 ||
      digest.head.ranks_of_source > kMaxRankNumber + 1)
    return damaged("digest.rank");
  digest.head.rank = static_cast<int32_t>(rank);
  digest.head.cells = number("cells");
  digest.head.slices = number("slices");
  return digest;
}

Result<Trace> unpack(const Digest& digest, const std::string& path, MemoryLeft& memory) {
  const MemoryLeft::Taken room(memory, digest.body_bytes);
  if (!room) return no_room(path, digest.body_bytes);
  const std::optional<std::string> body = unzstd_bytes(digest.body, digest.body_bytes + 1);
  if (!body || body->size() != digest.body_bytes)
    return worded_error(ErrorCode::kBadInput, "digest.packed", {}, {path});
  Result<Trace> trace = unpack_trace(*body, path, memory);
  if (!trace) return trace;
  const Head& head = digest.head;
  if (trace->parts[0].rank != head.rank || trace->format != head.reader ||
      static_cast<int64_t>(trace->cells.size()) != head.cells ||
      static_cast<int64_t>(trace->slice_count()) != head.slices)
    return worded_error(ErrorCode::kBadInput, "digest.contradicts", {}, {path});
  return trace;
}

}  // namespace stageline::digest
