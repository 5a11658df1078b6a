#include "engine/account_files.h"

#include <sys/stat.h>

#include "base/file_sample.h"
#include "base/input_files.h"
#include "engine/problems.h"
#include "pipeline/cells/rank_layout.h"
#include "readers/foreign.h"
#include "readers/xspace_head.h"

namespace stageline {
namespace {

constexpr size_t kMaxNamed = 40;  // this number of skipped files is listed one by one

// Returns a name without numbers, hashes (eight or more hexadecimal digits) and compression: "rank-3.pt.trace.json.gz"
// → "rank-#.pt.trace.json". Files of one kind differ only in these.
std::string without_numbers(std::string name) {
  constexpr const char* kDigits = "0123456789";
  for (const char* suffix : {".gz", ".zst"})
    if (name.ends_with(suffix)) name.resize(name.size() - std::string_view(suffix).size());
  std::string shape;
  for (size_t i = 0; i < name.size();) {
    const size_t digits = std::min(name.size(), name.find_first_not_of(kDigits, i)) - i;
    const std::string_view hash =
        std::string_view(name).substr(i, std::min(name.size(), name.find_first_not_of("0123456789abcdef", i)) - i);
    const bool is_hash = hash.size() >= 8 && hash.find_first_of(kDigits) != hash.npos;
    if (is_hash || digits > 0) shape += '#';
    else shape += name[i];
    i += std::max<size_t>(1, is_hash ? hash.size() : digits);
  }
  return shape;
}
// A name of numbers alone ("20260914_10.jsonl") does not say what it is of, so its folder's is added.
std::string shape_of(const std::string& path) {
  const std::string shape = without_numbers(file_name(path));
  const size_t cut = path.rfind('/');
  const bool is_number = shape.find_first_not_of("#_-.") >= shape.find('.');
  return is_number && cut != std::string::npos ? shape_of(path.substr(0, cut)) + '/' + shape : shape;
}

// Returns how many bytes of a file's relative name say whose it is: up to the last folder with a number,
// "node0/rank1/memory.csv" → "node0/rank1/". Without one, or where the rest begins with a number, the first number of
// the rest belongs to it: "4242_kernel_trace.csv" → "4242".
size_t owner_bytes(const std::string& rel) {
  constexpr const char* kDigits = "0123456789";
  const size_t name = rel.rfind('/') + 1;  // 0 without a folder
  const size_t last = name == 0 ? std::string::npos : rel.find_last_of(kDigits, name - 1);
  const size_t folder = last == std::string::npos ? 0 : rel.find('/', last) + 1;
  const size_t number = rel.find_first_of(kDigits, folder);
  if (number == std::string::npos || (folder > 0 && number > folder)) return folder;
  return std::min(rel.size(), rel.find_first_not_of(kDigits, number));
}

bool all_zeros(std::string_view head) {
  return !head.empty() && std::ranges::all_of(head, [](char c) { return c == '\0'; });
}

// Returns true for an output of Stageline that was not finished: "out.json.partial.4711.a1b2c3".
bool is_unfinished_output(const std::string& path) {
  const std::string name = file_name(path);
  const size_t at = name.find(".partial.");
  return at != std::string::npos && at + 9 < name.size() && name[at + 9] >= '0' && name[at + 9] <= '9';
}

// Returns what is wrong with a file's bytes, judged by its name alone, as the name of a sentence; "" when nothing is.
std::string_view flaw_of_bytes(const Source& source, size_t file) {
  const SourceFile& f = source.files[file];
  const std::string_view head = source.head(file);
  const std::string name = file_name(f.path);
  if (head.empty() && f.size_bytes == 0 && f.path != "-") return "damage.empty";
  if (all_zeros(head)) return "damage.zeros";
  const size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf"), last = head.find_last_not_of(" \t\r\n");
  const char opens = first == std::string_view::npos ? ' ' : head[first];
  const bool packed = name.ends_with(".gz") || name.ends_with(".zst");
  if (packed && opens != '{' && opens != '[' && source.head_as_it_is(file)) return "damage.not_compressed";
  // This is checked only for files that are in the head as a whole. A longer one is a measurement, and its reader
  // checks it.
  if (file_extension(name) != "json" || source.head_error(file) || head.size() >= size_t{1} << 16) return {};
  const char closes = opens == '{' ? '}' : opens == '[' ? ']' : '\0';
  return closes != '\0' && head[last] == closes ? "" : "damage.not_json";
}

Where place_of(const std::string& path, const Error& error) {
  Where where = error.where;
  where.file = path;
  return where;
}

// Returns the names of files whose loss has already been reported.
std::set<std::string> files_reported_lost(const Trace& trace) {
  std::set<std::string> reported;
  for (const Diagnostic& d : trace.diagnostics.items())
    if (d.severity == Severity::kLoss) reported.insert(d.first.file);
  return reported;
}

// Two ranks never record the same bytes: a copy under the wrong name counts one rank twice and loses another.
void find_identical(Trace& trace) {
  std::map<int64_t, std::vector<std::string>> by_size;
  std::set<std::string> seen;
  for (const Part& part : trace.parts)
    if (struct stat st; seen.insert(part.source).second && stat(part.source.c_str(), &st) == 0 && st.st_size > 0)
      by_size[st.st_size].push_back(part.source);
  for (const auto& [size, files] : by_size) {
    std::map<uint32_t, std::string> first;
    for (const std::string& file : files)
      if (files.size() > 1)
        if (const auto [at, is_new] = first.try_emplace(file_sample(file, size), file);
            !is_new && file_sample(file, size, true) == file_sample(at->second, size, true))
          trace.diagnostics.add(problem::source_identical, Args().set("other", file_name(at->second)), {file});
  }
}

// Adds ranks that others name, or that lack in the row of numbers, and that are not here. A reader that compared them
// with what its format says has reported so itself.
void find_missing_ranks(Trace& trace) {
  constexpr int64_t kMaxRanks = 1 << 20;  // of a number that is none
  for (const Diagnostic& d : trace.diagnostics.items())
    if (d.name.ends_with("missing_ranks") || d.name.ends_with("missing_rank")) return;
  std::set<int32_t> here, missing;
  int64_t world = 0;
  for (const Part& part : trace.parts) here.insert(part.rank);
  const auto name = [&](int64_t rank) {
    if (rank >= 0 && rank < kMaxRanks && !here.contains(static_cast<int32_t>(rank)))
      missing.insert(static_cast<int32_t>(rank));
  };
  for (const FlightGroup& group : trace.flight_groups) std::ranges::for_each(group.ranks, name);
  for (const Part& part : trace.parts) {
    for (const RankGroup& group : groups_of_metadata(part)) std::ranges::for_each(group.ranks, name);
    for (const LinkSummary& link : part.link_summaries) name(link.src_rank), name(link.dst_rank);
    world = std::max<int64_t>(world, part.rank);
    for (const MetaField& field : part.metadata)
      if (field.key == "world_size") world = std::max(world, parse_int(field.json).value_or(0));
  }
  for (int64_t rank = 0; rank < std::min(world, kMaxRanks); ++rank) name(rank);
  if (missing.empty()) return;
  std::string list;  // "0, 3-5"
  size_t spans = 0;
  for (auto at = missing.begin(); at != missing.end() && ++spans <= kMaxNamed;) {
    const int32_t first = *at;
    int32_t last = first;
    while (++at != missing.end() && *at == last + 1) ++last;
    append_item(list, std::to_string(first) + (last > first ? "-" + std::to_string(last) : ""));
  }
  trace.diagnostics.add(problem::source_missing_ranks,
                        Args().set("list", list).flag("one", missing.size() == 1).flag("more", spans > kMaxNamed), {},
                        std::ssize(missing));
}

// Steps that end early -------------------------------------------------------------------------------------------

struct StepCount {
  int32_t step = 0;
  int64_t cells = 0;
};

// Returns the steps of each part in order, with how many cells each has.
std::vector<std::vector<StepCount>> steps_of_parts(const Trace& trace) {
  std::vector<std::map<int32_t, int64_t>> counts(trace.parts.size());
  for (const RankRange& range : rank_ranges(trace.cells))
    counts[range.part][range.step] += static_cast<int64_t>(range.end - range.begin);
  std::vector<std::vector<StepCount>> out(trace.parts.size());
  for (size_t p = 0; p < counts.size(); ++p)
    for (const auto& [step, count] : counts[p]) out[p].push_back({step, count});
  return out;
}

int64_t usual_count(const std::vector<StepCount>& steps) {
  auto counts = mapped<int64_t>(steps, &StepCount::cells);
  std::nth_element(counts.begin(), counts.begin() + counts.size() / 2, counts.end());
  return counts[counts.size() / 2];
}

// A text that was cut at the end of a line looks whole to its reader; only the other ranks show that something is
// missing.
void find_early_ends(Trace& trace, const std::set<std::string>& lost) {
  const std::vector<std::vector<StepCount>> steps = steps_of_parts(trace);
  int32_t last = INT32_MIN;  // the last step that some rank has whole
  int64_t max = 0;
  for (const std::vector<StepCount>& own : steps) {
    if (own.empty()) continue;
    const int64_t usual = usual_count(own);
    max = std::max(max, usual);
    for (const StepCount& one : own)
      if (one.cells >= usual) last = std::max(last, one.step);
  }
  for (size_t p = 0; p < steps.size(); ++p) {
    const Part& part = trace.parts[p];
    const std::vector<StepCount>& own = steps[p];
    if (own.empty() || part.source.empty() || lost.contains(part.source)) continue;
    const StepCount& end = own.back();
    // When a rank has a single step, the usual number is taken from the other ranks.
    const int64_t usual = own.size() > 2 ? usual_count({own.begin(), own.end() - 1}) : own.front().cells;
    const bool fewer = own.size() > 1 && end.cells < usual && last >= end.step;
    const bool missing = last > end.step;
    if (!fewer && !missing) continue;
    trace.diagnostics.add(problem::source_ends_early,
                          Args()
                              .set("step", std::to_string(end.step))
                              .set("cells", std::to_string(end.cells))
                              .set("usual", std::to_string(usual))
                              .set("last", std::to_string(last))
                              .flag("within", fewer),
                          {part.source});
  }
}

// Skipped files: their names by reason, of the first kMaxNamed.
class Skipped {
 public:
  // `why` names a sentence.
  void add(const std::string& path, const std::string& rel, std::string_view why) {
    if (static_cast<size_t>(++count_) > kMaxNamed) return;
    if (first_.empty()) first_ = path;
    const auto at = std::ranges::find_if(by_reason_, [&](const auto& one) { return one.first == why; });
    if (at == by_reason_.end()) by_reason_.emplace_back(why, rel);
    else at->second += ", " + rel;
  }
  // Reports them together with `more` that have no names.
  void report(int64_t more, Diagnostics& diagnostics) const {
    const int64_t count = count_ + more, unnamed = count - static_cast<int64_t>(kMaxNamed);
    if (count <= 0) return;
    std::vector<Text> reasons;
    for (const auto& [why, of] : by_reason_)
      reasons.push_back(words("left.files", Args().set("names", of).set("why", words(why))));
    Text names = joined(reasons, {"; ", "；"});
    if (unnamed > 0) names += words("left.more", Args().count("count", unnamed));
    diagnostics.add(problem::source_passed_over, Args().set("names", names), {first_}, count);
  }

 private:
  std::vector<std::pair<std::string_view, std::string>> by_reason_;  // (reason, names)
  int64_t count_ = 0;
  std::string first_;
};

// The files of a source: the shapes of the names of those that were read, and those that no reader reported.
class FileAccount {
 public:
  FileAccount(const Source& source, bool all_wanted, Trace& trace)
      : source_(source), all_wanted_(all_wanted), trace_(trace) {
    for (const Diagnostic& d : trace.diagnostics.items()) named_.insert(d.first.file);
  }

  // Finds the files that a reader left, by what it read and named.
  void sort_by_reader(size_t i) {
    const std::string& path = source_.files[i].path;
    if (was_read(path) || named_.contains(path)) add_shapes(source_.files[i]);
    else rest_.push_back(i);
  }

  // Reports a file that is damaged, and finds those that belong to no part.
  void sort_by_parts(size_t i, const std::set<std::string>& of_parts) {
    const std::string& path = source_.files[i].path;
    if (const Error* error = source_.head_error(i)) {
      trace_.diagnostics.add(problem::source_damaged_skipped, Args().set("why", error_text(*error)),
                             place_of(path, *error));
    } else if (const std::string why = input_failure(path); !why.empty()) {
      trace_.diagnostics.add(problem::source_damaged, Args().set("why", why), {path});
    } else if (of_parts.contains(path)) {
      add_shapes(source_.files[i]);
    } else if (!was_read(path)) {
      rest_.push_back(i);
    } else if (const std::string_view flaw = flaw_of_bytes(source_, i); !flaw.empty()) {
      trace_.diagnostics.add(problem::source_damaged_skipped, Args().set("why", words(flaw)), {path, 0, 0});
    } else {
      add_shapes(source_.files[i]);
    }
  }

  void report_rest() {
    for (const size_t i : rest_) report_file(i);
    for (const Source::Passed& entry : source_.passed) {
      // A link to a log, or to a folder of logs, like those that were read: what it led to is missed.
      const std::string shape = shape_of(entry.path);
      if (entry.leads_nowhere && all_wanted_ && (shapes_.contains(shape) || folders_.contains(shape)))
        trace_.diagnostics.add(problem::source_damaged_skipped, Args().set("why", words("damage.leads_nowhere")),
                               {entry.path});
      else skipped_.add(entry.path, entry.rel, entry.why);
    }
    skipped_.report(source_.passed_count - std::ssize(source_.passed), trace_.diagnostics);
  }

  // Reports kinds of files that were read of at least half of the ranks or processes, and that others lack.
  void report_uneven() {
    for (const auto& [_, owners] : owners_) {
      std::map<std::string, std::set<std::string>> of_kind;
      for (const auto& [owner, kinds] : owners)
        for (const std::string& kind : kinds) of_kind[kind].insert(owner);
      const std::set<std::string>& all =
          std::ranges::max_element(of_kind, {}, [](const auto& one) { return one.second.size(); })->second;
      for (const auto& [kind, have] : of_kind) {
        if (have.size() * 2 < all.size() || all.size() * 2 <= owners.size()) continue;
        std::string list;
        int64_t count = 0;
        for (const std::string& owner : all)
          if (!have.contains(owner) && static_cast<size_t>(++count) <= kMaxNamed) append_item(list, owner + kind);
        trace_.diagnostics.add(
            problem::source_uneven,
            Args().set("list", list).flag("one", count == 1).flag("more", static_cast<size_t>(count) > kMaxNamed), {},
            count);
      }
    }
  }

 private:
  void add_shapes(const SourceFile& file) {
    const size_t own = owner_bytes(file.rel);
    if (own > 0 && own < file.rel.size())
      owners_[without_numbers(file.rel.substr(0, own))][file.rel.substr(0, own)].insert(
          without_numbers(file.rel.substr(own)));
    shapes_.insert(shape_of(file.path));
    for (const std::string_view folder : split(file.rel, '/')) folders_.insert(shape_of(std::string(folder)));
  }

  void report_file(size_t i) {
    const std::string& path = source_.files[i].path;
    const std::string_view flaw = flaw_of_bytes(source_, i);
    // A file that looks like those that were read, and that no reader reported on, is missed. Some files of an Ascend
    // profiler are needed only where others are missing, and earlier runs of XLA's are left out, so these are not.
    const bool of_the_kind =
        shapes_.contains(shape_of(path)) && all_wanted_ && !named_.contains(path) &&
        (!flaw.empty() || !(is_ascend_file(file_name(path)) || looks_like_xspace(source_.head(i))));
    const bool named_so = path.ends_with(".gz") || path.ends_with(".zst") || file_extension(path) == "json";
    if (!is_unfinished_output(path) && (of_the_kind || (named_so && !flaw.empty()))) {
      trace_.diagnostics.add(problem::source_damaged_start,
                             Args().set("why", words(flaw.empty() ? "damage.start" : flaw)), {path, 0, 0});
      return;
    }
    const char* why = is_unfinished_output(path)                                     ? "left.unfinished"
                      : !flaw.empty()                                                ? "left.empty"
                      : is_page_or_picture(source_.head(i))                          ? "left.picture"
                      : trace_.format == "ascend" && is_ascend_file(file_name(path)) ? "left.not_needed"
                                                                                     : "left.other_format";
    skipped_.add(path, source_.files[i].rel, why);
  }

  const Source& source_;
  bool all_wanted_;
  Trace& trace_;
  std::set<std::string> named_;  // files that some problem names
  std::set<std::string> shapes_, folders_;
  std::map<std::string, std::map<std::string, std::set<std::string>>> owners_;  // shape → owner → kinds of its files
  std::vector<size_t> rest_;
  Skipped skipped_;
};

}  // namespace

Error with_names(Error error, const Source& source) {
  constexpr size_t kMaxFiles = 10;
  if (error.code == ErrorCode::kAmbiguous && source.roots.size() > 1) return error;  // its hint names them
  std::string names;
  for (size_t i = 0; i < source.files.size(); ++i) {
    if (error.where.file == source.files[i].path) return error;
    if (i < kMaxFiles) names += (i > 0 ? ", " : "") + source.files[i].rel;
  }
  if (names.empty()) return error;
  if (source.files.size() > kMaxFiles) names += " and " + std::to_string(source.files.size() - kMaxFiles) + " more";
  error.what += " (looked at " + names + ")";
  return error;
}

std::optional<Error> damage_of(const Source& source) {
  for (size_t i = 0; i < source.files.size(); ++i) {
    if (const Error* error = source.head_error(i)) return *error;
    const SourceFile& file = source.files[i];
    const std::string_view flaw = source.files.size() < 64 ? flaw_of_bytes(source, i) : "";
    if (flaw.empty()) continue;
    // The kind of the bytes is more useful than the fact that they do not fit the name.
    if (flaw == "damage.not_json" &&
        !(foreign_format(source.head(i), file.path).empty() && unknown_content(source.head(i), file.path).empty()))
      continue;
    return worded_error(ErrorCode::kBadInput, flaw, {}, {file.path},
                        "copy or export it once more, whole; the original may be intact");
  }
  return {};
}

void account_files(const Source& source, bool all_wanted, bool by_reader, Trace& trace) {
  const std::set<std::string> lost = files_reported_lost(trace);
  FileAccount account(source, all_wanted, trace);
  std::set<std::string> of_parts;
  for (const Part& part : trace.parts) {
    of_parts.insert(part.source);
    for (const SourceRef& file : part.files) of_parts.insert(file.path);
  }
  for (size_t i = 0; i < source.files.size(); ++i) {
    if (lost.contains(source.files[i].path)) continue;
    if (by_reader) account.sort_by_reader(i);
    else account.sort_by_parts(i, of_parts);
  }
  account.report_rest();
  if (all_wanted) account.report_uneven();
  find_early_ends(trace, files_reported_lost(trace));
  if (!by_reader) find_identical(trace);
  if (all_wanted) find_missing_ranks(trace);
}

}  // namespace stageline
