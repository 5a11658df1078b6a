// Opens files at a network address: "s3://bucket/key" (S3 and services with the same interface), "https://host/path",
// "http://host/path". They are read in parts by range requests, just as local files are read in windows. A folder of S3
// is a prefix that ends with a slash. base/input.h opens remote files like any file.
#pragma once

#include <future>

#include "base/vocabulary.h"

namespace stageline {

bool is_remote(std::string_view path);

// Returns an address without its user part and without its query, which may hold passwords and signatures, and keeps
// the whole address for requests. Everything that is shown, written or passed on comes from names, so a path is
// replaced by this where it enters the program. Two addresses that differ only in these parts get different names.
// Other paths are returned as they are.
std::string shown_address(const std::string& path);

// Allows or forbids opening remote files. They are forbidden until a command allows them, and only commands do so that
// take names from nowhere but their own command line. A name that comes from a page or an agent must not make this
// process send requests to other machines.
void allow_remote_files(bool allowed);

struct RemoteFile {
  std::string path;
  int64_t size_bytes = 0;
  int64_t modified_ns = 0;  // 0 when the server does not say
  std::string version;      // its ETag, or "" when it has none; another ETag means another file
};

// Returns the file of this name or, for a path that is a folder of S3, the files below it in no order, at most
// `at_most` plus one. The results are remembered: remote_file() and reading send no further requests for them. Errors:
// kNotFound, kIo with the server's reason, kUnavailable.
Result<std::vector<RemoteFile>> find_remote(const std::string& path, size_t at_most);
// Returns what find_remote() found under exactly this path, or what the server says about it now.
Result<RemoteFile> remote_file(const std::string& path);

// Reads a remote file from its start. Parts grow from 64 KiB, which is enough for the head of a file, to 8 MiB; the
// next part is fetched while one is read. Not thread-safe.
class RemoteStream {
 public:
  static Result<std::unique_ptr<RemoteStream>> open(const std::string& path);
  // Reads up to `capacity` bytes into `out`; 0 at the end. Errors: kIo, also when the file changed since it was opened.
  Result<size_t> read(char* out, size_t capacity);
  ~RemoteStream();

 private:
  explicit RemoteStream(RemoteFile file) : file_(std::move(file)) {}
  Result<std::string> next_part();

  RemoteFile file_;
  std::string part_;
  size_t used_ = 0;        // position in part_
  int64_t asked_to_ = 0;   // end, in the file, of everything that was requested so far
  size_t part_bytes_ = 0;  // size of the last request
  std::future<Result<std::string>> ahead_;
};

}  // namespace stageline
