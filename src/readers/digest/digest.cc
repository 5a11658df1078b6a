// Reads folders of digests (`stageline digest`) into the Trace that the reader of the source would have returned. See
// docs/formats/digest.md.
#include "base/input.h"
#include "base/machine_memory.h"
#include "base/parallel.h"
#include "base/remote_file.h"
#include "readers/common/ranks.h"
#include "readers/digest/digest_file.h"
#include "readers/digest/problems.h"
#include "readers/reader.h"

namespace stageline::digest {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 32;

bool is_named_so(const SourceFile& file) { return file.rel.ends_with(kExtension); }

struct File {
  std::string path;
  Head head;
  std::optional<Trace> trace;
  std::optional<Error> error;
  size_t bytes = 0;
  bool left_out = false;
};

File read_file(const SourceFile& source, MemoryLeft& memory, Progress* progress) {
  const std::string& path = source.path;
  File file;
  file.path = path;
  // No more of the file is read than its first bytes say that there is, and one byte to see that there is no more.
  size_t limit = kMaxFileBytes;
  if (!is_remote(path)) limit = std::min<uint64_t>(limit, announced_bytes(read_head(path, kFixedBytes)));
  const auto max = std::min<int64_t>(source.size_bytes, limit);
  const MemoryLeft::Taken room(memory, max);
  if (!room) {
    file.error = no_room(path, max);
    return file;
  }
  Result<std::string> bytes = read_all(path, limit, progress);
  if (!bytes) {
    file.error = std::move(bytes).error();
    if (file.error->code == ErrorCode::kLimit)
      file.error = worded_error(ErrorCode::kBadInput, "digest.length", {}, {path});
    return file;
  }
  Result<Digest> digest = parse(*bytes, path);
  Result<Trace> trace = digest ? unpack(*digest, path, memory) : Result<Trace>(digest.error());
  if (!trace) {
    file.error = std::move(trace).error();
    return file;
  }
  file.bytes = bytes->size();
  file.head = std::move(digest->head);
  file.trace = std::move(*trace);
  return file;
}

// Leaves out digests that do not belong to the run of the first one: those of other sources, and second digests of one
// rank. Files come in the order of their names.
class Strangers {
 public:
  void look_at(File& file, Diagnostics& notes) {
    if (file.error) {
      notes.add(problem::digest_damaged, Args().set("why", error_text(*file.error)), {file.path});
      return;
    }
    const Head& head = file.head;
    if (!first_) first_ = head;
    if (head.reader != first_->reader || head.root != first_->root) {
      notes.add(problem::digest_other_source, Args().set("root", head.root).set("root2", first_->root), {file.path});
      file.left_out = true;
    } else if (const auto [known, added] = by_rank_.try_emplace(head.rank, head.source); !added) {
      notes.add(problem::digest_rank_twice,
                Args().set("rank", std::to_string(head.rank)).set("source", head.source).set("kept", known->second),
                {file.path});
      file.left_out = true;
    }
    if (file.left_out) file.trace.reset();
  }

 private:
  std::optional<Head> first_;
  std::map<int32_t, std::string> by_rank_;
};

// Estimates the cells of all files from this one, and a little more. Room for all of them is reserved at once, since a
// column that outgrows its memory exists twice for a while. A cell takes more than a byte.
size_t likely_cells(const File& file, int64_t total_bytes) {
  const double per_byte = 1.06 * file.trace->cells.size() / std::max<size_t>(file.bytes, 1);
  return static_cast<size_t>(total_bytes * std::min(per_byte, 1.0));
}

// Names begin with the rank, so parts come in order of ranks unless files were renamed.
void order_parts(Trace& trace) {
  std::vector<Part>& parts = trace.parts;
  const auto by_rank = [](const Part& a, const Part& b) { return a.rank < b.rank; };
  if (std::ranges::is_sorted(parts, by_rank)) return;
  auto order = indexes<int32_t>(parts.size());
  std::vector<int32_t> place(parts.size());
  sort_stably(order, [&](int32_t a, int32_t b) { return by_rank(parts[a], parts[b]); });
  std::vector<Part> sorted;
  for (const int32_t part : order) {
    place[part] = static_cast<int32_t>(sorted.size());
    sorted.push_back(std::move(parts[part]));
  }
  parts = std::move(sorted);
  for (int32_t& part : trace.cells.part) part = place[part];
}

}  // namespace

Match sniff(const Source& source) {
  for (size_t i = 0; i < source.files.size(); ++i)
    if ((is_named_so(source.files[i]) || source.files[i].given) && source.head(i).starts_with(kMagic))
      return Match::kCertain;
  return Match::kNo;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  std::vector<const SourceFile*> own;
  int64_t total_bytes = 0;
  for (const SourceFile& file : source.files) {
    if (!is_named_so(file) && !file.given) continue;
    own.push_back(&file);
    total_bytes += file.size_bytes;
    if (options.progress) options.progress->expect(file.size_bytes);
  }
  MemoryLeft memory(machine_memory_bytes());
  // A few hundred at a time, so that what is unpacked is soon part of the whole.
  constexpr size_t kAtOnce = 256;
  Trace trace;
  Diagnostics notes;  // about files; they come before what the digests themselves say
  Strangers strangers;
  std::optional<Error> first_error;
  std::string reader_name;
  int64_t whole = 0;  // digests that the source makes, where it was read as a whole
  for (size_t begin = 0; begin < own.size(); begin += kAtOnce) {
    std::vector<File> files(std::min(kAtOnce, own.size() - begin));
    parallel_for(files.size(), [&](size_t i) { files[i] = read_file(*own[begin + i], memory, options.progress); });
    std::vector<Trace> ranks;
    for (File& file : files) {
      if (file.error && file.error->code == ErrorCode::kLimit) return *std::move(file.error);
      strangers.look_at(file, notes);
      if (file.error && !first_error) first_error = file.error;
      if (!file.trace) continue;
      if (trace.parts.empty() && ranks.empty()) {
        take_facts(trace, *file.trace);
        trace.cells.reserve(likely_cells(file, total_bytes));
      }
      reader_name = file.head.reader;
      whole = file.head.ranks_of_source;
      ranks.push_back(std::move(*file.trace));
      file.trace.reset();
    }
    join_ranks(trace, std::move(ranks));
  }
  order_parts(trace);
  notes.merge(trace.diagnostics);
  trace.diagnostics = std::move(notes);
  if (trace.parts.empty()) {
    if (first_error) return *std::move(first_error);
    return make_error(ErrorCode::kBadInput, "no digest here", "stageline digest LOGS -o DIR makes them",
                      {source.roots.empty() ? "" : source.roots[0]});
  }
  const int64_t found = trace.parts.size();
  if (whole > found)
    trace.diagnostics.add(problem::digest_missing_ranks,
                          Args().set("whole", std::to_string(whole)).set("found", std::to_string(found)),
                          {source.roots.empty() ? "" : source.roots[0]}, whole - found);
  const Reader* reader = find_reader(reader_name);
  if (reader && reader->ranks) TRY_OK(reader->ranks->settle(trace, options));
  else trace.cells.sort();
  return trace;
}

}  // namespace stageline::digest
