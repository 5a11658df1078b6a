#include "exporters/export_sink.h"

#include <zlib.h>

namespace stageline {

struct ExportSink::Deflater {
  z_stream stream{};
  std::array<char, size_t{1} << 16> buffer;

  ~Deflater() { deflateEnd(&stream); }

  void run(OutputFile& out, std::string_view bytes, int flush) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, flush);  // cannot fail: the stream is valid and there is room for output
      out.write({buffer.data(), buffer.size() - stream.avail_out});
    } while (stream.avail_out == 0);
  }
};

ExportSink::ExportSink(OutputFile out, std::unique_ptr<Deflater> deflater)
    : out_(std::move(out)), deflater_(std::move(deflater)) {}
ExportSink::ExportSink(ExportSink&&) noexcept = default;
ExportSink::~ExportSink() = default;

Result<ExportSink> ExportSink::create(const std::string& path) {
  TRY(out, OutputFile::create(path));
  std::unique_ptr<Deflater> deflater;
  if (path.ends_with(".gz")) {
    deflater = std::make_unique<Deflater>();
    constexpr int kGzipWindow = 15 + 16;  // zlib.h: "add 16 to windowBits to write a simple gzip header"
    if (deflateInit2(&deflater->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      return make_error(ErrorCode::kUnavailable, "gzip cannot start", "write without .gz", {path});
  }
  return ExportSink(*std::move(out), std::move(deflater));
}

void ExportSink::write(std::string_view bytes) {
  if (!deflater_) return out_.write(bytes);
  constexpr size_t kPiece = size_t{1} << 30;  // zlib counts its input in 32 bits
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size())))
    deflater_->run(out_, bytes.substr(0, kPiece), Z_NO_FLUSH);
}

Status ExportSink::commit() {
  if (deflater_) deflater_->run(out_, {}, Z_FINISH);
  return out_.commit();
}

}  // namespace stageline
