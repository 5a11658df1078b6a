// The beginnings of files, from which readers recognise their formats.
#include <future>

#include "base/input.h"
#include "base/remote_file.h"
#include "readers/source.h"

namespace stageline {
namespace {

constexpr size_t kHeadsAtOnce = 16;  // this number of heads is requested from a server at once

}  // namespace

const Source::Head& Source::head_of(size_t file) const {
  if (heads_.size() != files.size()) heads_.resize(files.size());
  const auto read = [this](size_t i) {
    Head& head = heads_[i];
    head.read = true;
    head.bytes = read_head(files[i].path, kHeadBytes, &head.error, &head.compressed);
  };
  if (heads_[file].read) return heads_[file];
  if (!is_remote(files[file].path)) {
    read(file);
    return heads_[file];
  }
  // A request to a server takes a round trip, so the next files' heads, which will be wanted too, are requested with
  // it.
  std::vector<std::future<void>> asked;
  for (size_t i = file; i < std::min(files.size(), file + kHeadsAtOnce); ++i)
    if (!heads_[i].read && is_remote(files[i].path)) asked.push_back(std::async(std::launch::async, read, i));
  for (std::future<void>& one : asked) one.get();
  return heads_[file];
}

std::string_view Source::head(size_t file) const { return head_of(file).bytes; }

const Error* Source::head_error(size_t file) const {
  const Head& head = head_of(file);
  return head.error ? &*head.error : nullptr;
}

bool Source::head_as_it_is(size_t file) const { return !head_of(file).compressed; }

}  // namespace stageline
