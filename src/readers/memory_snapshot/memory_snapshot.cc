// Reads snapshots of PyTorch's allocator: docs/formats/memory-snapshot.md.
#include <algorithm>
#include <set>

#include "base/counted.h"
#include "base/error_words.h"
#include "readers/common/read_files.h"
#include "readers/common/rows/identity.h"
#include "readers/memory_snapshot/problems.h"
#include "readers/memory_snapshot/snapshot_file.h"
#include "readers/reader.h"

namespace stageline {
namespace memory_snapshot {
namespace {

std::vector<size_t> snapshots(const Source& source) {
  std::vector<size_t> out;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (looks_like_snapshot(source.head(i))) out.push_back(i);
  return out;
}

Match sniff(const Source& source) { return snapshots(source).empty() ? Match::kNo : Match::kCertain; }

// Makes a file's part one of the trace, with the trace's ids of names.
void add_part(SnapshotFile& file, int32_t rank, Trace& trace) {
  std::vector<StringId> id;
  for (StringId k = 0; k < file.names.size(); ++k) id.push_back(trace.names.intern(file.names.text(k)));
  Part& part = file.part;
  part.rank = rank;
  for (StringId& name : part.slices.name_id) name = id[name];
  for (Mark& mark : part.marks) mark.name = id[mark.name];
  for (AllocatorEvent& event : part.allocator.events)
    event.stack = id[event.stack], event.category = id[event.category];
  for (AllocatorSegment& segment : part.allocator.segments)
    segment.pool = id[segment.pool], segment.stack = id[segment.stack];
  for (AllocatorBlock& block : part.allocator.blocks) block.stack = id[block.stack];
  part.event_count = std::max<size_t>(1, part.allocator.events.size());
  trace.parts.push_back(std::move(part));
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "memory-snapshot";
  trace.writer = "PyTorch's allocator";
  trace.categories.push_back({"", Category::kOther});
  std::vector<size_t> chosen = snapshots(source);
  // With --reader memory-snapshot it is tried in any case.
  if (chosen.empty() && source.files.size() == 1) chosen.push_back(0);
  for (size_t i = 0; i < source.files.size(); ++i)
    if (source.files[i].given && std::ranges::find(chosen, i) == chosen.end())
      trace.diagnostics.add(problem::memory_snapshot_unusable_file_foreign, {source.files[i].path});
  expect_bytes(source, chosen, options.progress);
  std::vector<SnapshotFile> files;
  std::vector<rows::FileFacts> facts;
  const auto path_of = [&](size_t k) -> const std::string& { return source.files[chosen[k]].path; };
  const auto first_error = read_files(
      chosen.size(), [&](size_t k) { return read_snapshot(path_of(k), options.progress); },
      [&](size_t k, SnapshotFile file) {
        files.push_back(std::move(file));
        facts.push_back({path_of(k), rows::identify({}, path_of(k)), 0, 0});
        trace.diagnostics.merge(files.back().notes);
      },
      [&](size_t k, const Error& error) {
        trace.diagnostics.add(problem::memory_snapshot_unusable_file, Args().set("why", error_text(error)),
                              {path_of(k)});
      });
  if (files.empty()) return nothing_read(first_error, source, "memory_snapshot.nothing");
  const std::vector<int32_t> ranks = rows::assign_ranks(facts, trace.diagnostics, "memory_snapshot");
  std::vector<size_t> order(files.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t a) { return ranks[a]; });
  std::set<int32_t> taken;
  bool dated = true;
  for (const size_t i : order) {
    if (taken.insert(ranks[i]).second) {
      dated &= files[i].is_dated;
      add_part(files[i], ranks[i], trace);
    } else {
      trace.diagnostics.add(problem::memory_snapshot_repeated_rank, {files[i].part.source});
    }
  }
  trace.clock = trace.parts.size() == 1 ? ClockState::kShared : dated ? ClockState::kUnaligned : ClockState::kPerRank;
  trace.description = counted(trace.parts.size(), "snapshot", "snapshots") + " of an allocator";
  return trace;
}

}  // namespace
}  // namespace memory_snapshot

extern const Reader memory_snapshot_reader = {
    .name = "memory-snapshot",
    .summary = "snapshots of PyTorch's allocator (torch.cuda.memory._dump_snapshot)",
    .sniff = memory_snapshot::sniff,
    .read = memory_snapshot::read};

}  // namespace stageline
