// ExportSink: the place where a streaming exporter writes its bytes. It is an OutputFile, with gzip before it when the
// path ends in ".gz". The output is deterministic: the gzip header contains neither name nor time.
#pragma once

#include "base/output_file.h"

namespace stageline {

class ExportSink {
 public:
  // Errors: those of OutputFile::create().
  static Result<ExportSink> create(const std::string& path);

  ExportSink(ExportSink&&) noexcept;
  ~ExportSink();

  // Appends bytes. Works best with pieces of some tens of kilobytes.
  void write(std::string_view bytes);
  // Ends the stream and makes the file appear under its name. Errors: those of OutputFile::commit().
  Status commit();

 private:
  struct Deflater;
  ExportSink(OutputFile out, std::unique_ptr<Deflater> deflater);

  OutputFile out_;
  std::unique_ptr<Deflater> deflater_;  // null when the bytes are not compressed
};

}  // namespace stageline
