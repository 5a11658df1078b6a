// Execution traces of Chakra (*.et): docs/formats/chakra.md.
#include "readers/chakra/problems.h"
#include "readers/chakra/trace_file.h"
#include "readers/common/ranks.h"
#include "readers/common/read_files.h"
#include "readers/common/rows/identity.h"

namespace stageline::chakra {
namespace {

// "llama.3.et", "llama.3.et.gz" → "llama.3"; "" for other names.
std::string_view stem_of(std::string_view path) {
  for (const std::string_view end : {".gz", ".zst"})
    if (path.ends_with(end)) path.remove_suffix(end.size());
  if (!path.ends_with(".et")) return {};
  path.remove_suffix(3);
  return path;
}

// "llama.3.et" is rank 3's; else what other names of ranks say. −1: nothing.
int64_t rank_of(const std::string& path) {
  const std::string name = file_name(path);
  if (const auto rank = rows::rank_in_name(name)) return *rank;
  const std::string_view stem = stem_of(name);
  const size_t from = stem.find_last_not_of("0123456789") + 1;  // 0 where there is nothing else
  return parse_int(stem.substr(from)).value_or(-1);
}

}  // namespace

Match sniff(const Source& source) {
  Match best = Match::kNo;
  for (size_t i = 0; i < source.files.size(); ++i) {
    if (!looks_like_chakra(source.head(i))) continue;
    if (!stem_of(source.files[i].path).empty()) return Match::kCertain;
    best = Match::kMaybe;
  }
  return best;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "chakra";
  trace.categories.push_back({"", Category::kOther});
  std::vector<size_t> chosen;
  for (size_t i = 0; i < source.files.size(); ++i) {
    if (looks_like_chakra(source.head(i)) || source.files.size() == 1) {  // one alone: it is tried
      chosen.push_back(i);
      if (options.progress) options.progress->expect(source.files[i].size_bytes);
    } else if (source.files[i].given) {
      trace.diagnostics.add(problem::chakra_unusable_file_foreign, {source.files[i].path});
    }
  }
  std::vector<TraceFile> files;
  const auto first_error = read_files(
      chosen.size(), [&](size_t k) { return read_trace_file(source.files[chosen[k]].path, options.progress); },
      [&](size_t, TraceFile file) { files.push_back(std::move(file)); },
      [&](size_t k, const Error& error) {
        trace.diagnostics.add(problem::chakra_unusable_file, Args().set("why", error_text(error)),
                              {source.files[chosen[k]].path});
      });
  if (files.empty()) return nothing_read(first_error, source, "chakra.nothing");
  // Ranks by the files' names, where every name says another; else in their order.
  std::vector<int64_t> ranks;
  std::set<int64_t> seen;
  bool reported = true;
  for (const TraceFile& file : files) {
    ranks.push_back(rank_of(file.path));
    reported = reported && ranks.back() >= 0 && ranks.back() <= kMaxRankNumber && seen.insert(ranks.back()).second;
  }
  if (!reported) {
    for (size_t k = 0; k < files.size(); ++k) ranks[k] = k;
    if (files.size() > 1) trace.diagnostics.add(problem::chakra_ranks_in_order, {files.front().path});
  }
  std::vector<size_t> order(files.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  sort_stably(order, {}, [&](size_t a) { return ranks[a]; });
  for (const size_t k : order) {
    TraceFile& file = files[k];
    trace.diagnostics.merge(file.notes);
    file.part.rank = static_cast<int32_t>(ranks[k]);
    rename_part(adopt_names(file.names, trace), file.part);
    trace.parts.push_back(std::move(file.part));
  }
  number_machines(trace);
  trace.clock = files.size() == 1 ? ClockState::kShared : ClockState::kUnaligned;
  trace.writer = "Chakra" + (files.front().version.empty() ? "" : " " + files.front().version);
  trace.description = counted(files.size(), "execution trace", "execution traces") + " of Chakra";
  return trace;
}

}  // namespace stageline::chakra
