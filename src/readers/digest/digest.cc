// Folders of digests (`stageline digest`) → Trace, as the reader of the source would have given it. See
// docs/formats/digest.md.
#include <algorithm>
#include <map>
#include <optional>

#include "base/input.h"
#include "base/parallel.h"
#include "base/text.h"
#include "readers/common/join_ranks.h"
#include "readers/digest/digest_file.h"
#include "readers/reader.h"

namespace stageline {
namespace digest {
namespace {

constexpr size_t kMostFileBytes = size_t{1} << 32;

bool is_named_so(const SourceFile& file) { return file.rel.ends_with(kExtension); }

Match sniff(const Source& source) {
  for (size_t i = 0; i < source.files.size(); ++i)
    if ((is_named_so(source.files[i]) || source.files[i].given) && source.head(i).starts_with(kMagic))
      return Match::kCertain;
  return Match::kNo;
}

struct File {
  std::string path;
  Head head;
  std::optional<Trace> trace;
  std::optional<Error> error;
};

File read_file(const std::string& path, Progress* progress) {
  File file;
  file.path = path;
  Result<std::string> bytes = read_all(path, kMostFileBytes, progress);
  if (!bytes) {
    file.error = std::move(bytes).error();
    return file;
  }
  Result<Digest> digest = parse(*bytes, path);
  Result<Trace> trace = digest ? unpack(*digest, path) : Result<Trace>(digest.error());
  if (!trace) {
    file.error = std::move(trace).error();
    return file;
  }
  file.head = std::move(digest->head);
  file.trace = std::move(*trace);
  return file;
}

// Digests of several sources, and of one rank: what does not belong to the run of the first is left out.
void drop_strangers(std::vector<File>& files, Diagnostics& notes) {
  const File* first = nullptr;
  std::map<int32_t, const File*> by_rank;
  for (File& file : files) {
    if (!file.trace) continue;
    if (!first) first = &file;
    const auto [known, added] = by_rank.try_emplace(file.head.rank, &file);
    if (file.head.reader != first->head.reader || file.head.root != first->head.root) {
      notes.add("digest.other_source", Severity::kLoss,
                "a digest of " + file.head.root + " lies among those of " + first->head.root +
                    "; it was left out, a folder holds the digests of one run",
                {file.path});
    } else if (!added) {
      notes.add("digest.rank_twice", Severity::kLoss,
                "a second digest of rank " + std::to_string(file.head.rank) + ", of " + file.head.source +
                    "; it was left out, that of " + known->second->head.source + " counts",
                {file.path});
    } else {
      continue;
    }
    file.trace.reset();
    if (known->second == &file) by_rank.erase(known);
  }
}

// Trace-wide facts of a source that was read as a whole are the same in all of its digests.
void take_facts(Trace& trace, Trace& one) {
  trace.format = one.format;
  trace.writer = one.writer;
  trace.description = one.description;
  trace.clock = one.clock;
  trace.steps_laid_end_to_end = one.steps_laid_end_to_end;
  trace.chunks_are_pieces = one.chunks_are_pieces;
  trace.messages_are_calls = one.messages_are_calls;
  trace.numbers_messages_per_rank = one.numbers_messages_per_rank;
  trace.device_family = one.device_family;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  std::vector<std::string> paths;
  for (const SourceFile& file : source.files) {
    if (!is_named_so(file) && !file.given) continue;
    paths.push_back(file.path);
    if (options.progress) options.progress->expect(file.size_bytes);
  }
  std::vector<File> files(paths.size());
  parallel_for(files.size(), [&](size_t i) { files[i] = read_file(paths[i], options.progress); });
  Trace trace;
  std::optional<Error> first_error;
  size_t cell_count = 0;
  for (const File& file : files) {
    if (file.trace) cell_count += file.trace->cells.size();
    if (!file.error) continue;
    if (!first_error) first_error = file.error;
    trace.diagnostics.add("digest.damaged", Severity::kLoss,
                          file.error->what + "; the other ranks are kept, stageline digest makes it again",
                          {file.path});
  }
  drop_strangers(files, trace.diagnostics);
  std::stable_sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.head.rank < b.head.rank; });
  trace.cells.reserve(cell_count);
  std::string reader_name;
  int64_t whole = 0;  // digests that the source makes, where it was read as a whole
  for (File& file : files) {
    if (!file.trace) continue;
    if (trace.parts.empty()) take_facts(trace, *file.trace);
    reader_name = file.head.reader;
    whole = file.head.ranks_of_source;
    join_rank(trace, std::move(*file.trace));
    file.trace.reset();
  }
  if (trace.parts.empty()) {
    if (first_error) return *std::move(first_error);
    return Error{ErrorCode::kBadInput,
                 "no digest here",
                 {source.roots.empty() ? "" : source.roots[0]},
                 "stageline digest LOGS -o DIR makes them"};
  }
  const auto found = static_cast<int64_t>(trace.parts.size());
  if (whole > found)
    trace.diagnostics.add("digest.missing_ranks", Severity::kLoss,
                          "the source made digests of " + std::to_string(whole) + " ranks, and " +
                              std::to_string(found) + " are here; stageline digest makes those that are missing",
                          {source.roots.empty() ? "" : source.roots[0]}, whole - found);
  const Reader* reader = find_reader(reader_name);
  if (reader && reader->ranks) {
    if (Status s = reader->ranks->settle(trace, options); !s) return std::move(s).error();
  } else {
    trace.cells.sort();
  }
  return trace;
}

}  // namespace
}  // namespace digest

extern const Reader digest_reader;
const Reader digest_reader = {.name = "digest",
                              .summary = "digests of ranks, made by stageline digest",
                              .sniff = digest::sniff,
                              .read = digest::read,
                              .accounts_files = true};

}  // namespace stageline
