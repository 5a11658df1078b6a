// ExportSink: where a streaming exporter's bytes go. An OutputFile, through gzip when the path ends
// in ".gz". Deterministic: the gzip header carries neither name nor time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/output_file.h"
#include "base/result.h"

namespace stageline {

class ExportSink {
 public:
  // Errors as OutputFile::create().
  static Result<ExportSink> create(const std::string& path);

  ExportSink(ExportSink&&) noexcept;
  ~ExportSink();

  // Best in pieces of some tens of kilobytes.
  void write(std::string_view bytes);
  // Ends the stream and makes the file appear. Errors as OutputFile::commit().
  Status commit();

 private:
  struct Deflater;
  ExportSink(OutputFile out, std::unique_ptr<Deflater> deflater);

  OutputFile out_;
  std::unique_ptr<Deflater> deflater_;  // null: plain bytes
};

}  // namespace stageline
