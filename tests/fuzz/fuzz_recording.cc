// Reads recordings from arbitrary bytes: a .slrec file, a hot file, or both. Half of the inputs have their CRCs put
// right first, to reach the code behind them. The result is recovered and read again: the same records.
//
// Input: byte 0: bit 0 put CRCs right, bit 1 there is a hot file, whose length in 64-byte units is byte 1 · 256 +
// byte 2.
#include "base/crc32c.h"
#include "fuzz.h"
#include "readers/recording/recordings.h"

namespace stageline::fuzz {
namespace {

using namespace recording;

void put_number(std::string& to, size_t at, uint32_t value) {
  to.replace(at, 4, reinterpret_cast<const char*>(&value), 4);
}

// Every magic word begins a chunk as long as it says, or as there is room for.
std::string with_right_sums(std::string bytes) {
  if (bytes.size() >= kFileHeaderBytes && bytes.starts_with(kFileMagic)) {
    put_number(bytes, kFileCrcAt, 0);
    put_number(bytes, kFileCrcAt, crc32c(std::string_view(bytes).substr(0, kFileHeaderBytes)));
  }
  for (size_t at = bytes.find(kChunkMagic); at != std::string::npos; at = bytes.find(kChunkMagic, at + 1)) {
    if (bytes.size() - at < kChunkHeaderBytes) break;
    const size_t room = std::min(bytes.size() - at - kChunkHeaderBytes, kMaxPayloadBytes);
    const size_t size = std::min<size_t>(number_at<uint32_t>(bytes, at + kChunkBytesAt), room);
    put_number(bytes, at + kChunkBytesAt, static_cast<uint32_t>(size));
    put_number(bytes, at + kChunkHeaderCrcAt, 0);
    put_number(bytes, at + kChunkPayloadCrcAt, 0);
    const uint32_t sum = crc32c(std::string_view(bytes).substr(at, kChunkHeaderBytes));
    put_number(bytes, at + kChunkPayloadCrcAt, crc32c(std::string_view(bytes).substr(at + kChunkHeaderBytes, size)));
    put_number(bytes, at + kChunkHeaderCrcAt, sum);
    at += size;
  }
  return bytes;
}

}  // namespace
}  // namespace stageline::fuzz

FUZZ_TARGET(recording) {
  using namespace stageline::recording;
  using namespace stageline;
  using namespace stageline::fuzz;
  static const TempFolder folder, out;
  folder.clear();
  out.clear();
  Bytes input{data, size};
  const uint8_t how = input.byte();
  const size_t hot_bytes = (size_t{input.byte()} * 256 + input.byte()) * 64;
  std::string_view rest = input.rest();
  if ((how & 2) != 0) {
    folder.write("h.r00000.p1.1.slhot", rest.substr(0, hot_bytes));
    rest.remove_prefix(std::min(hot_bytes, rest.size()));
  }
  std::string cold(rest);
  if ((how & 1) != 0) cold = with_right_sums(std::move(cold));
  folder.write("h.r00000.p1.1.000.slrec", cold);
  Result<Source> source = scan_source({folder.path()});
  FUZZ_CHECK(source, source.error().text());
  Diagnostics diagnostics;
  const auto recordings = read_recordings(*source, nullptr, diagnostics);
  int64_t records = 0;
  for (const auto& r : recordings) records += static_cast<int64_t>(r.content.rows.size());
  const auto recovered = recover(*source, out.path(), diagnostics);
  FUZZ_CHECK(recovered || recordings.empty() || recordings.size() > 1, recovered ? "" : recovered.error().text());
  if (!recovered) return 0;
  int64_t said = 0;
  for (const auto& file : *recovered) said += file.ranges;
  FUZZ_CHECK(said == records, std::to_string(said) + " of " + std::to_string(records));
  const Reader* reader = find_reader("recording");
  const Result<Trace> trace = reader->read(*source, {});
  FUZZ_CHECK(trace || !trace.error().what.empty(), "no words");
  return 0;
}
