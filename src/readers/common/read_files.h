// Reads the files of a reader on all threads, keeping those that can be read.
#pragma once

#include "base/parallel.h"
#include "readers/reader.h"

namespace stageline {

// Calls read(k), which gives a Result, for k < `count` on all threads. Then, on this thread and in order, calls take(k,
// result). Where reading failed it calls lose(k, error) instead, which counts the file in the trace's diagnostics and
// may word the error better. Returns the first error. The rows of a file are freed once they are taken.
template <class Read, class Take, class Lose>
std::optional<Error> read_files(size_t count, Read read, Take take, Lose lose) {
  std::vector<std::optional<std::invoke_result_t<Read, size_t>>> results(count);
  parallel_for(count, [&](size_t k) { results[k].emplace(read(k)); });
  std::optional<Error> first_error;
  for (size_t k = 0; k < count; ++k) {
    if (*results[k]) {
      take(k, std::move(**results[k]));
    } else {
      Error error = results[k]->error();
      lose(k, error);
      if (!first_error) first_error = std::move(error);
    }
    results[k].reset();
  }
  return first_error;
}

// Why a reader read nothing: its first file's error or, where it had no file, the sentence `name`: none is here.
inline Error nothing_read(std::optional<Error> first_error, const Source& source, std::string_view name) {
  return first_error ? std::move(*first_error) : no_such_input(name, source);
}
inline Error nothing_read(std::optional<Error> first_error, const Source& source, const char* what, const char* hint) {
  if (first_error) return std::move(*first_error);
  return make_error(ErrorCode::kBadInput, what, hint, {source.roots.empty() ? "" : source.roots[0]});
}

// Reports to the progress how many bytes these files of the source have.
inline void expect_bytes(const Source& source, const std::vector<size_t>& files, Progress* progress) {
  if (!progress) return;
  for (const size_t i : files) progress->expect(source.files[i].size_bytes);
}

// Certain where `looks` knows the head of a file.
template <class Looks> Match sniff_heads(const Source& source, Looks looks) {
  for (size_t i = 0; i < source.files.size(); ++i)
    if (looks(source.head(i))) return Match::kCertain;
  return Match::kNo;
}
// The same for formats that take longer to recognise: `is_one` is asked of the first files that `may_be` one.
template <class MayBe, class IsOne> Match sniff_some(const Source& source, MayBe may_be, IsOne is_one) {
  constexpr size_t kSniffedFiles = 64;
  size_t looked = 0;
  for (size_t i = 0; i < source.files.size() && looked < kSniffedFiles; ++i)
    if (may_be(i) && ++looked && is_one(i)) return Match::kCertain;
  return Match::kNo;
}

// The paths of these files, whose bytes are reported to the progress. Others that the user named count as `unusable`.
template <class Looks>
std::vector<std::string> files_that(Looks looks, const Source& source, const ReadOptions& options,
                                    const Problem& unusable, Diagnostics& diagnostics) {
  std::vector<std::string> paths;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (looks(source.head(i))) chosen.push_back(i), paths.push_back(source.files[i].path);
    else if (source.files[i].given) diagnostics.add(unusable, {source.files[i].path});
  expect_bytes(source, chosen, options.progress);
  return paths;
}

}  // namespace stageline
