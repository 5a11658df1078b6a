#include "engine/one_run.h"

#include <filesystem>

#include "base/input_files.h"

namespace stageline {
namespace {

// Returns the folder of a file: the one that was named, or the one below the only one that was named; "" for its own
// files.
std::string folder_of(const Source& source, const std::string& path) {
  for (const std::string& root : source.roots) {
    if (path == root) return std::filesystem::path(path).parent_path().string();
    const std::string below = root.ends_with('/') ? root : root + "/";
    if (!path.starts_with(below)) continue;
    const size_t cut = path.find('/', below.size());
    return source.roots.size() > 1 ? root : cut == std::string::npos ? "" : path.substr(0, cut);
  }
  return {};
}

Error not_one_run(const Source& source, std::string a, std::string b, const std::string& why) {
  if (std::ranges::find(source.roots, a) > std::ranges::find(source.roots, b)) std::swap(a, b);
  return make_error(ErrorCode::kBadInput, "it and " + valid_utf8(b) + " are not one run: " + why,
                    "name one of them, or compare the two: stageline diff" + shell_words({a, b}), {a});
}

// Returns the first problem of files that claim to be of one rank; "" without one.
std::string one_rank_twice(const Trace& trace) {
  for (const Diagnostic& d : trace.diagnostics.items())
    for (const std::string_view end : {".duplicate_cells", ".earlier_run", ".other_run", ".other_runs", ".rank_twice",
                                       ".older_profile", ".same_stamp", ".other_source", ".repeated_rank"})
      if (d.name.ends_with(end)) return d.message.en;
  return {};
}

// Returns for each rank its number of chunks, and whether its backwards are split, as one number.
std::vector<int64_t> shapes_of(const Trace& trace) {
  std::vector<std::set<int32_t>> chunks(trace.parts.size());
  std::vector<int64_t> shapes(trace.parts.size());
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.kind[i] == CellKind::kForward) chunks[trace.cells.part[i]].insert(trace.cells.chunk[i]);
    else if (trace.cells.kind[i] == CellKind::kWeightGrad) shapes[trace.cells.part[i]] = 1;
  for (size_t p = 0; p < shapes.size(); ++p) shapes[p] += 2 * std::ssize(chunks[p]);
  return shapes;
}

// Returns true when the order of work showed the stages. Times of starts alone also fit two runs, one after the other.
bool is_by_order(const Trace& trace, bool placed) {
  return placed &&
         std::ranges::none_of(trace.diagnostics.items(), [how = words("layout.starts").en](const Diagnostic& d) {
           return d.name == "layout.inferred" && d.message.en.find(how) != std::string::npos;
         });
}

// Returns true when the order of work of these ranks shows their stages without the others.
bool is_placed_alone(const Trace& trace, const std::vector<size_t>& parts) {
  Trace alone = trace.copy();
  auto ranks = mapped<int32_t>(parts, [&](const size_t p) { return trace.parts[p].rank; });
  filter_trace(alone, ranks, INT64_MIN, INT64_MAX);
  for (size_t p = 0; p < alone.parts.size(); ++p)  // numbered from 0, as where it is the only run
    alone.parts[p].stage = alone.parts[p].dp = kUnknown, alone.parts[p].rank = static_cast<int32_t>(p);
  alone.diagnostics = {};
  return is_by_order(alone, infer_layout(alone, {}));
}

}  // namespace

Status check_one_run(const Source& source, const Trace& trace, bool placed) {
  const Diagnostics& notes = trace.diagnostics;
  const bool mixed = notes.count("kineto.overlapping_files") + notes.count("kineto.world_sizes_differ") > 0;
  std::map<std::string, std::vector<size_t>> parts;  // by folder
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const std::string folder = folder_of(source, trace.parts[p].source);
    if (!folder.empty()) parts[folder].push_back(p);
    for (const SourceRef& file : trace.parts[p].files)
      if (const std::string other = folder_of(source, file.path); mixed && other != folder && !other.empty())
        return not_one_run(source, folder, other, "both hold rank " + std::to_string(trace.parts[p].rank));
  }
  if (parts.empty()) return {};      // the reader does not say which rank is of which file
  std::map<std::string, bool> read;  // the folders that were named, and whether a file was read or reported as lost
  for (const std::string& root : source.roots)
    if (std::error_code no; source.roots.size() > 1 && std::filesystem::is_directory(root, no)) read[root] = false;
  for (const SourceFile& file : source.files)
    if (const auto at = read.find(folder_of(source, file.path)); at != read.end()) at->second |= was_read(file.path);
  for (const Diagnostic& d : notes.items())
    if (const auto at = read.find(folder_of(source, d.first.file)); at != read.end())
      at->second |= d.severity == Severity::kLoss;
  const std::string& first = parts.begin()->first;
  for (const auto& [folder, used] : read) {
    if (parts.contains(folder)) continue;
    if (const std::string twice = one_rank_twice(trace); !twice.empty())
      return not_one_run(source, first, folder, twice);
    if (!used)
      return make_error(
          ErrorCode::kBadInput,
          "nothing of this folder was read as " + trace.format + ", as which " + valid_utf8(first) + " was read",
          "name one of the two", {folder});
  }
  const std::vector<int64_t> shapes = shapes_of(trace);
  std::string simulated, shaped, whole;  // the first folder of each kind
  for (const auto& [folder, own] : parts) {
    if (std::filesystem::exists(std::filesystem::path(folder) / "truth.csv")) {
      if (!simulated.empty()) return not_one_run(source, simulated, folder, "stageline simulate wrote each as a whole");
      simulated = folder;
    }
    const bool even = std::ranges::all_of(own, [&](size_t p) { return shapes[p] > 1 && shapes[p] == shapes[own[0]]; });
    if (own.size() < 2 || !even) continue;
    if (shaped.empty()) shaped = folder;
    if (shapes[parts[shaped][0]] != shapes[own[0]])
      return not_one_run(source, shaped, folder, "their ranks have other chunks, or other kinds of backwards");
    if (is_by_order(trace, placed) || !is_placed_alone(trace, own)) continue;
    if (!whole.empty()) return not_one_run(source, whole, folder, "each is a pipeline of its own");
    whole = folder;
  }
  return {};
}

Status check_one_time(const Source& source, const Trace& trace) {
  if (source.roots.size() < 2) return {};
  struct Span {
    int64_t first = INT64_MAX, last = INT64_MIN;
    std::set<int32_t> parts;
  };
  std::map<int32_t, Span> replicas;
  for (size_t i = 0; trace.comparable() && i < trace.cells.size(); ++i) {
    Span& span = replicas[trace.parts[trace.cells.part[i]].dp];
    span.first = std::min(span.first, trace.common_start_ns(i)),
    span.last = std::max(span.last, trace.common_end_ns(i));
    span.parts.insert(trace.cells.part[i]);
  }
  std::vector<Span> order;
  int64_t longest = 0;
  for (const auto& [dp, span] : replicas) {
    if (dp == kUnknown || span.parts.size() < 2) return {};
    order.push_back(span), longest = std::max(longest, span.last - span.first);
  }
  std::ranges::sort(order, {}, &Span::first);
  for (size_t i = 1; i < order.size(); ++i) {
    const int64_t gap = order[i].first - order[i - 1].last;
    if (gap <= longest) continue;
    const Part &a = trace.parts[*order[i - 1].parts.begin()], &b = trace.parts[*order[i].parts.begin()];
    const std::string one = folder_of(source, a.source), other = folder_of(source, b.source);
    if (one == other) return {};
    return make_error(
        ErrorCode::kBadInput,
        "it and " + valid_utf8(other) + " are two runs, or one on clocks that nothing connects: " +
            human_duration(static_cast<double>(gap)) + " lie between them, more than either lasts",
        "compare two runs: stageline diff" + shell_words({one, other}) +
            "; of one run, name the folder that holds both, or connect the clocks: --align-on RANK:RANK:NAME",
        {one});
  }
  return {};
}

}  // namespace stageline
