// Files that lie behind a network address: "s3://bucket/key" (S3, and what speaks as it does), "https://host/path",
// "http://host/path". They are read in parts, by range requests, as files are read in windows; a folder of S3 is a
// prefix that ends at a slash. base/input.h opens them like any file.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

bool is_remote(std::string_view path);

// Whether remote files may be opened at all; false until a command says so that takes names from its own command line
// alone. What a page or an agent names must not make this process ask other machines.
void allow_remote_files(bool allowed);

struct RemoteFile {
  std::string path;
  int64_t size_bytes = 0;
  int64_t modified_ns = 0;  // 0 where the server does not say
  std::string version;      // its ETag, "" where it has none: another one is another file
};

// The file of this name, or with a path that is a folder of S3 the files below it, in no order, at most `at_most` and
// one more. What is found is remembered: remote_file() and reading ask nobody again. Errors: kNotFound, kIo with the
// server's reason, kUnavailable.
Result<std::vector<RemoteFile>> find_remote(const std::string& path, size_t at_most);
// What find_remote() found under exactly this path, or the server says of it now.
Result<RemoteFile> remote_file(const std::string& path);

// A remote file from its start on. Parts grow from 64 KiB, which a head takes, to 8 MiB; the next one is fetched while
// one is read. Not thread-safe.
class RemoteStream {
 public:
  static Result<std::unique_ptr<RemoteStream>> open(const std::string& path);
  // Up to `capacity` bytes to `out`; 0 at the end. Errors: kIo, also when the file changed since it was opened.
  Result<size_t> read(char* out, size_t capacity);
  ~RemoteStream();

 private:
  explicit RemoteStream(RemoteFile file) : file_(std::move(file)) {}
  Result<std::string> next_part();

  RemoteFile file_;
  std::string part_;
  size_t used_ = 0;        // of part_
  int64_t asked_to_ = 0;   // bytes of the file in part_, before it, and in what is being fetched
  size_t part_bytes_ = 0;  // of the last request
  std::future<Result<std::string>> ahead_;
};

}  // namespace stageline
