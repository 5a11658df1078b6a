#include "readers/common/rows/identity.h"

#include "base/json_members.h"
#include "readers/common/rows/problems.h"

namespace stageline::rows {
namespace {

constexpr int64_t kMaxRank = 1 << 24;
constexpr std::string_view kDigits = "0123456789";

// Returns the number after text[at], past one separator; nullopt when there is none.
std::optional<int32_t> number_at(std::string_view text, size_t at) {
  if (at < text.size() && std::string_view("-_.=:#").find(text[at]) != std::string_view::npos) ++at;
  size_t end = at;
  while (end < text.size() && kDigits.find(text[end]) != std::string_view::npos) ++end;
  const auto value = parse_int(text.substr(at, end - at));
  if (end == at || !value || *value > kMaxRank) return std::nullopt;
  return static_cast<int32_t>(*value);
}

bool overlap(const FileFacts& a, const FileFacts& b) { return a.start_ns < b.end_ns && b.start_ns < a.end_ns; }

// Returns the worker, "host_4711.1700000000000.pt.trace.json.gz" → "host_4711"; "" when the name is not the torch
// handler's.
std::string handler_worker(const std::string& path) {
  std::string name = file_name(path);
  const size_t suffix = name.find(".pt.trace.json");
  if (suffix == std::string::npos) return {};
  name.resize(suffix);
  const size_t dot = name.rfind('.');
  if (dot != std::string::npos && dot + 1 < name.size() &&
      name.find_first_not_of(kDigits, dot + 1) == std::string::npos)
    name.resize(dot);
  return name;
}

bool says_rank(const FileFacts& file) { return file.identity.stated_rank || file.identity.named_rank; }
bool may_share_host(const FileFacts& a, const FileFacts& b) {
  return a.identity.host.empty() || b.identity.host.empty() || a.identity.host == b.identity.host;
}

std::optional<int32_t> rank_of(const Identity& id) { return id.stated_rank ? id.stated_rank : id.named_rank; }

}  // namespace

std::optional<int32_t> rank_in_name(std::string_view given) {
  const std::string name = to_lower(given);
  for (size_t at = name.rfind("rank"); at != std::string::npos;
       at = at == 0 ? std::string::npos : name.rfind("rank", at - 1))
    if (const auto number = number_at(name, at + 4)) return number;
  // SGLang writes "1700-TP-0.trace.json". With -DP-, -PP- or -EP- in the name the global rank is not known.
  std::optional<int32_t> tensor;
  for (const std::string_view word : {"-tp-", "-dp-", "-pp-", "-ep-"}) {
    const size_t at = name.find(word);
    if (at == std::string::npos) continue;
    if (word != "-tp-") return std::nullopt;
    tensor = number_at(name, at + 3);
  }
  return tensor;
}

Identity identify(const std::vector<MetaField>& metadata, const std::string& path) {
  Identity out;
  for (const MetaField& field : metadata) {
    if (field.key == "distributedInfo") {
      const auto rank = json_integer(json_member(field.json, "rank"));
      if (rank && *rank >= 0 && *rank <= kMaxRank) {
        out.contradicts_itself |= out.stated_rank && *out.stated_rank != *rank;
        out.stated_rank = static_cast<int32_t>(*rank);
      }
      if (const auto world = json_integer(json_member(field.json, "world_size")); world && *world > 0)
        out.world_size = *world;
    } else if (field.key == "host_name") {
      out.host = json_text(field.json);
    }
  }
  const std::string name = file_name(path);
  out.named_rank = rank_in_name(name);
  const std::string folder = path.substr(0, path.size() - std::min(path.size(), name.size() + 1));
  if (!out.named_rank) out.named_rank = rank_in_name(file_name(folder));
  const std::string worker = handler_worker(path);
  out.worker = worker.empty() ? path : folder + "/" + worker;
  if (out.host.empty() && !worker.empty() && !rank_in_name(worker)) {
    const size_t pid = worker.rfind('_');
    if (pid != std::string::npos && pid > 0 && pid + 1 < worker.size() &&
        worker.find_first_not_of(kDigits, pid + 1) == std::string::npos)
      out.host = worker.substr(0, pid), out.host_process = worker.substr(pid + 1);
  }
  return out;
}

std::pair<int64_t, int64_t> times_of(const Part& part) {
  std::pair<int64_t, int64_t> times{INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < part.slices.size(); ++i)
    times = {std::min(times.first, part.slices.start_ns[i]), std::max(times.second, part.slices.end_ns(i))};
  return part.slices.size() == 0 ? std::pair<int64_t, int64_t>{} : times;
}

void find_process(const Part& part, FileFacts& file) {
  std::map<std::string, size_t> slices;
  for (const Lane& lane : part.lanes)
    if (lane.kind == LaneKind::kHostThread) slices[lane.pid] += lane.end - lane.begin;
  size_t max = 0;
  for (const auto& [pid, count] : slices)
    if (count > max) max = count, file.process = pid;
  file.device = part.device;
  Identity& id = file.identity;
  if (!id.host_process.empty() && !slices.empty() && !slices.contains(id.host_process)) id.host.clear();
}

void join_processes(std::vector<FileFacts>& files) {
  constexpr int64_t kDayNs = 86'400'000'000'000;  // later, the system may have used the number again
  for (size_t b = 0; b < files.size(); ++b)
    for (size_t a = 0; a < b; ++a) {
      FileFacts &one = files[a], &other = files[b];
      const bool first = one.start_ns < other.start_ns;
      const int64_t gap = first ? other.start_ns - one.end_ns : one.start_ns - other.end_ns;
      if (one.process.empty() || one.process != other.process || says_rank(one) || says_rank(other) || gap < 0 ||
          gap > kDayNs || !may_share_host(one, other))
        continue;
      other.identity.worker = one.identity.worker;
      break;
    }
}

std::vector<size_t> earlier_runs(const std::vector<FileFacts>& files) {
  std::vector<size_t> out;
  const bool ranked = std::ranges::any_of(files, says_rank);
  // Runs use one place in turn: a rank, or a device of files that say no rank.
  const auto same_place = [&](const FileFacts& a, const FileFacts& b) {
    if (ranked) return rank_of(a.identity).has_value() && rank_of(a.identity) == rank_of(b.identity);
    return a.device == b.device && a.identity.worker != b.identity.worker;
  };
  for (size_t f = 0; f < files.size(); ++f) {
    const FileFacts& file = files[f];
    // A process that was recorded at the same time belongs to the same job, whatever it recorded later.
    const auto is_of_this_run = [&](const FileFacts& later) {
      return std::ranges::any_of(files, [&](const FileFacts& other) {
        return other.process == later.process && may_share_host(other, later) && other.start_ns <= file.end_ns;
      });
    };
    const bool superseded = std::ranges::any_of(files, [&](const FileFacts& later) {
      const int64_t apart = std::max(file.end_ns - file.start_ns, later.end_ns - later.start_ns);
      return !file.process.empty() && !later.process.empty() && later.process != file.process &&
             same_place(file, later) && may_share_host(file, later) && later.start_ns - file.end_ns > apart &&
             !is_of_this_run(later);
    });
    if (superseded) out.push_back(f);
  }
  return out;
}

std::vector<size_t> merged_copies(const std::vector<FileFacts>& files) {
  std::vector<size_t> out;
  for (size_t f = 0; f < files.size(); ++f) {
    const FileFacts& file = files[f];
    const auto is_same = [&](const FileFacts& other) {
      const auto rank = rank_of(file.identity), other_rank = rank_of(other.identity);
      const int64_t missing = std::abs(file.known_count - other.known_count);
      return other.path != file.path && (!other.merged_at || &other < &file) &&
             other.raw_start_ns == file.raw_start_ns && missing * 100 <= other.known_count &&
             (rank && other_rank ? rank == other_rank : other.process == file.process);
    };
    if (file.merged_at && std::ranges::any_of(files, is_same)) out.push_back(f);
  }
  return out;
}

std::vector<int32_t> assign_ranks(const std::vector<FileFacts>& files, Diagnostics& diagnostics,
                                  std::string_view format) {
  constexpr int32_t kNone = -1;
  std::vector<int32_t> ranks(files.size(), kNone);
  std::map<int32_t, std::vector<size_t>> by_rank;
  for (size_t f = 0; f < files.size(); ++f) {
    const Identity& id = files[f].identity;
    if (id.stated_rank) {
      by_rank[*id.stated_rank].push_back(f);
      ranks[f] = *id.stated_rank;
    }
    if (id.contradicts_itself) diagnostics.add(problem::reader_rank_said_twice.of(format), {files[f].path});
  }
  // Several processes may claim to be rank 0 (in tensor-parallel serving); their files' names distinguish them.
  for (const auto& [rank, group] : by_rank) {
    bool at_once = false;
    std::set<int32_t> named;
    for (size_t i = 0; i < group.size(); ++i) {
      if (files[group[i]].identity.named_rank) named.insert(*files[group[i]].identity.named_rank);
      for (size_t j = 0; j < i && !at_once; ++j) at_once = overlap(files[group[i]], files[group[j]]);
    }
    if (group.size() < 2 || !at_once || named.size() != group.size()) continue;
    for (const size_t f : group) ranks[f] = *files[f].identity.named_rank;
    diagnostics.add(problem::reader_rank_conflict.of(format), {files[group[0]].path}, group.size());
  }
  std::map<std::string, int32_t> workers;
  std::set<int32_t> taken(ranks.begin(), ranks.end());
  for (size_t f = 0; f < files.size(); ++f) {
    if (ranks[f] != kNone || !files[f].identity.named_rank) continue;
    ranks[f] = *files[f].identity.named_rank;
    taken.insert(ranks[f]);
    diagnostics.add(problem::reader_ranks_from_names.of(format), {files[f].path});
  }
  int32_t next = 0;
  for (size_t f = 0; f < files.size(); ++f) {
    if (ranks[f] != kNone) continue;
    const auto [it, added] = workers.try_emplace(files[f].identity.worker, 0);
    if (added) {
      while (taken.count(next) > 0) ++next;
      it->second = next++;
    }
    ranks[f] = it->second;
    diagnostics.add(problem::reader_ranks_by_order.of(format), {files[f].path});
  }
  return ranks;
}

void check_world(const std::vector<FileFacts>& files, const std::vector<int32_t>& ranks, Diagnostics& diagnostics) {
  int64_t world = -1;
  bool differ = false;
  for (const FileFacts& file : files) {
    const int64_t size = file.identity.world_size;
    if (size < 0) continue;
    differ |= world >= 0 && world != size;
    world = std::max(world, size);
  }
  if (world < 0) return;
  if (differ) diagnostics.add(problem::kineto_world_sizes_differ, {files[0].path});
  const std::set<int32_t> present(ranks.begin(), ranks.end());
  if (!present.empty() && *present.rbegin() >= world)
    diagnostics.add(problem::kineto_rank_beyond_world,
                    Args().set("rank", std::to_string(*present.rbegin())).set("world", std::to_string(world)));
  const auto missing = world - std::ssize(present);
  if (missing > 0 && !differ)
    diagnostics.add(problem::kineto_missing_ranks,
                    Args()
                        .set("world", std::to_string(world))
                        .set("present", std::to_string(present.size()))
                        .flag("one", present.size() == 1),
                    {}, missing);
}

}  // namespace stageline::rows
