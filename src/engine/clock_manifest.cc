#include <cstdlib>

#include "base/input.h"
#include "base/json_tree.h"
#include "engine/one_clock.h"
#include "engine/problems.h"
#include "readers/common/ranks.h"
#include "readers/common/relate_slices.h"

namespace stageline {
namespace {

constexpr size_t kMaxManifestBytes = size_t{1} << 22;

struct Entry {
  std::string reference, machine;  // the path of another file, or ""
  int64_t offset_ns = 0;
};
using Entries = std::map<std::string, Entry>;  // by path

bool is_manifest(std::string_view head) {
  const size_t open = head.find('{'), key = head.find("\"perfetto_manifest\"");
  return key != std::string_view::npos && head.find_first_not_of(" \t\r\n", open + 1) == key;
}

Result<Entries> read_manifest(const std::string& path) {
  TRY(text, read_all(path, kMaxManifestBytes));
  TRY(tree, parse_whole_json(*text, path));
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  Entries out;
  const Value files = tree->root()["perfetto_manifest"]["files"];
  for (size_t i = 0; i < files.size(); ++i) {
    const Value file = files.item(i), clocks = file["clocks"];
    Entry& entry = out[folder + std::string(file["path"].text())];
    entry.machine = file["machine"]["name"].text();
    // With a clock of its own name, only that clock is related; a Chrome trace has one without a name.
    const int64_t offset_ns = clocks["offset_ns"].integer().value_or(0);
    if (!clocks["sync_to"].is_dict() || !clocks["clock"].is_none() || std::abs(offset_ns) > kMaxTimeNs) continue;
    entry.offset_ns = offset_ns;
    entry.reference = folder + std::string(clocks["sync_to"]["file"].text());
  }
  return out;
}

// The file whose clock a file is put on, and by how much it moves; nullopt in a circle.
std::optional<std::pair<std::string, int64_t>> root_of(const Entries& entries, std::string path) {
  int64_t sum_ns = 0;
  for (size_t steps = 0; steps <= entries.size(); ++steps) {
    const auto at = entries.find(path);
    if (at == entries.end() || at->second.reference.empty()) return std::pair(path, sum_ns);
    if (__builtin_add_overflow(sum_ns, at->second.offset_ns, &sum_ns)) return std::nullopt;
    path = at->second.reference;
  }
  return std::nullopt;
}

}  // namespace

void apply_clock_manifest(const Source& source, Trace& trace) {
  Entries entries;  // of all manifests
  std::vector<std::string> manifests;
  bool good = true;
  for (size_t i = 0; i < source.files.size() && trace.cells.size() == 0; ++i) {
    if (!is_manifest(source.head(i))) continue;
    manifests.push_back(source.files[i].path);
    Result<Entries> own = read_manifest(manifests.back());
    good &= static_cast<bool>(own);
    if (own)
      for (const auto& [path, entry] : *own) good &= entries.emplace(path, entry).second;
  }
  std::set<std::string> roots;
  for (const Part& part : trace.parts) {
    const auto root = good ? root_of(entries, part.source) : std::nullopt;
    if (!(good = root.has_value())) break;
    roots.insert(root->first);
  }
  for (const std::string& path : manifests)
    trace.diagnostics.add(good ? problem::source_manifest : problem::source_bad_manifest, {path});
  if (!good || manifests.empty()) return;
  for (Part& part : trace.parts) {
    const int64_t by_ns = root_of(entries, part.source)->second;
    shift_part(part, by_ns);
    part.base_time_ns += by_ns;
    if (const auto at = entries.find(part.source); at != entries.end() && !at->second.machine.empty())
      part.machine_name = at->second.machine;
  }
  number_machines(trace);
  if (roots.size() == 1) trace.clock = ClockState::kShared;
}

}  // namespace stageline
