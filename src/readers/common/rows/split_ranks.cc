#include "base/json_members.h"
#include "readers/common/rows/file_rows.h"
#include "readers/reader.h"

namespace stageline::rows {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

// The part of each process that is known to have one, and the ranks of the parts.
struct Deal {
  std::map<std::string, uint32_t, std::less<>> part_of;
  std::vector<std::optional<int32_t>> ranks;
};

std::string_view pid_of(const FileRows& rows, uint32_t thread) {
  const std::string_view key = rows.dictionaries.threads.text(thread);
  return key.substr(0, key.find('\n'));
}
std::string_view without_label(std::string_view text) {
  const std::string_view label = merge_label(text);
  return label.empty() ? text : text.substr(label.size() + 1);
}

// The number after the first `word`, past one separator: 3 of "RANK 3 - CPU" or "global_rank_3.2026"; −1 without one.
int32_t number_after(std::string_view word, std::string_view text) {
  size_t at = text.find(word);
  if (at == std::string_view::npos) return -1;
  at += word.size();
  if (at < text.size() && std::string_view(" _-[=:").find(text[at]) != std::string_view::npos) ++at;
  const auto value = parse_int(text.substr(at, text.find_first_not_of("0123456789", at) - at));
  return value && *value < 1 << 24 ? static_cast<int32_t>(*value) : -1;
}

// Ranks of labels, in their order. DP and EP follow from TP, except where (PP, TP) repeats.
std::vector<std::optional<int32_t>> ranks_of(const std::vector<std::string>& labels,
                                             const std::vector<MetaField>& metadata) {
  std::vector<std::array<int32_t, 3>> places;  // DP, PP, TP
  std::set<std::pair<int32_t, int32_t>> distinct;
  int32_t stages = 1, tensor = 1;
  for (const std::string& label : labels) {
    const int32_t alone = number_after("[", label);
    places.push_back(
        {number_after("DP", label), number_after("PP", label), std::max(alone, number_after("TP", label))});
    distinct.emplace(places.back()[1], places.back()[2]);
    stages = std::max(stages, places.back()[1] + 1);
    tensor = std::max(tensor, places.back()[2] + 1);
  }
  for (const MetaField& field : metadata)
    if (const auto world = json_integer(json_member(field.json, "world_size"));
        field.key == "distributedInfo" && world && *world >= int64_t{tensor} * stages && *world % stages == 0)
      tensor = static_cast<int32_t>(std::min<int64_t>(*world / stages, 1 << 24));
  std::vector<std::array<int32_t, 3>> order = places;
  std::ranges::sort(order);
  std::vector<std::optional<int32_t>> out;
  for (const auto& place : places) {
    const int64_t number = int64_t{std::max(place[1], 0)} * tensor + std::max(place[2], 0);
    const auto nth = std::ranges::lower_bound(order, place) - order.begin();
    if (place[1] < 0 && place[2] < 0) out.emplace_back();
    else out.emplace_back(static_cast<int32_t>(distinct.size() == labels.size() ? number : nth));
  }
  return out;
}

std::optional<Deal> by_labels(const FileRows& rows) {
  if (rows.rest.owners.empty()) return std::nullopt;
  std::map<std::string, uint32_t, std::less<>> parts;
  std::vector<std::string> labels;
  size_t labelled = 0;
  std::vector<size_t> rows_of(rows.dictionaries.threads.size());
  std::vector<uint32_t> threads;  // in the order of their first rows
  each_row(rows, [&](const Row& row) {
    if (rows_of[row.thread]++ == 0) threads.push_back(row.thread);
  });
  Deal deal;
  for (const uint32_t thread : threads) {
    const std::string_view pid = pid_of(rows, thread), label = merge_label(pid);
    if (label.empty()) continue;
    labelled += rows_of[thread];
    const auto [it, added] = parts.try_emplace(std::string(label), static_cast<uint32_t>(parts.size()));
    if (added) labels.emplace_back(label);
    deal.part_of.emplace(pid, it->second);
  }
  deal.ranks = ranks_of(labels, rows.metadata);
  if (labels.size() > 1 && labelled * 100 >= rows.row_count * 99) return deal;
  return Deal{{}, std::vector<std::optional<int32_t>>(1)};  // one rank, without labels
}

std::optional<Deal> by_names(const FileRows& rows) {
  const TextInterner& names = rows.dictionaries.names;
  std::map<int32_t, std::set<std::string_view>> named;
  for (const ProcessName& entry : rows.rest.process_names)
    if (const int32_t rank = number_after("rank", to_lower(names.text(entry.name))); rank >= 0)
      named[rank].insert(names.text(entry.pid));
  if (named.size() < 2) return std::nullopt;
  std::set<std::string_view> busy;
  each_row(rows, [&](const Row& row) { busy.insert(pid_of(rows, row.thread)); });
  Deal deal;
  for (const auto& [rank, pids] : named) {
    const size_t before = deal.part_of.size();
    for (const std::string_view pid : pids)
      if (busy.contains(pid)) deal.part_of.emplace(pid, static_cast<uint32_t>(deal.ranks.size()));
    if (deal.part_of.size() > before) deal.ranks.emplace_back(rank);
  }
  if (deal.ranks.size() < 2) return std::nullopt;
  return deal;
}

// Several processes that launch work, each of devices of its own, which arrows from their calls name (rpd2tracing).
std::optional<Deal> by_launches(const FileRows& rows) {
  const auto process = [&](const Flow& flow) { return pid_of(rows, flow.thread); };
  std::set<std::string_view> devices;
  for (const Flow& flow : rows.rest.launch_flows)
    if (!flow.is_start) devices.insert(process(flow));
  std::unordered_map<uint64_t, std::string_view> host_of;  // of an arrow
  std::set<std::pair<size_t, std::string_view>> hosts;     // in the order of their numbers
  Deal deal;
  for (const Flow& flow : rows.rest.launch_flows) {
    if (!flow.is_start || devices.contains(process(flow))) continue;
    if (host_of.try_emplace(flow.id_hash, process(flow)).first->second != process(flow)) return std::nullopt;
    hosts.emplace(process(flow).size(), process(flow));
  }
  if (hosts.size() < 2) return std::nullopt;
  for (const auto& [length, pid] : hosts) {
    deal.part_of.emplace(pid, static_cast<uint32_t>(deal.ranks.size()));
    deal.ranks.emplace_back();
  }
  for (const Flow& flow : rows.rest.launch_flows) {
    const auto from = host_of.find(flow.id_hash);
    if (flow.is_start || from == host_of.end()) continue;
    const uint32_t part = deal.part_of.find(from->second)->second;
    if (deal.part_of.try_emplace(std::string(process(flow)), part).first->second != part) return std::nullopt;
  }
  return deal;
}

// Returns true where two steps of one number show two ranks: those of two processes at the same time, or those of one
// thread that overlap.
bool mixes_ranks(const FileRows& rows) {
  struct Step {
    uint32_t thread;
    int64_t start_ns, end_ns;
  };
  constexpr size_t kEnough = 64;
  std::unordered_map<uint32_t, std::vector<Step>> steps;
  std::vector<bool> is_step;
  for (uint32_t id = 0; id < rows.dictionaries.names.size(); ++id)
    is_step.push_back(rows.dictionaries.names.text(id).starts_with("ProfilerStep#"));
  bool mixed = false;
  each_row(rows, [&](const Row& row) {
    if (!is_step[row.name] || rows.dictionaries.categories.text(row.category).starts_with("gpu_")) return;
    const Step one = {row.thread, row.start_ns, row.start_ns + row.dur_ns};
    std::vector<Step>& known = steps[row.name];
    for (const Step& other : known) {
      const Step &first = one.start_ns < other.start_ns ? one : other, &second = &first == &one ? other : one;
      if (second.start_ns >= first.end_ns) continue;
      // Two profilers of one process give nearly the same times.
      const int64_t apart = std::max(second.start_ns - first.start_ns, std::abs(second.end_ns - first.end_ns));
      mixed |= one.thread == other.thread ? apart * 100 > first.end_ns - first.start_ns
                                          : pid_of(rows, one.thread) != pid_of(rows, other.thread);
    }
    if (known.size() < kEnough) known.push_back(one);
  });
  return mixed;
}

// Returns the part of each thread. Processes without one join that whose launches have most of their correlations,
// else the first.
std::vector<uint32_t> parts_of_threads(const FileRows& rows, const Deal& deal) {
  std::vector<uint32_t> out(rows.dictionaries.threads.size(), kNobody);
  for (uint32_t t = 1; t < out.size(); ++t)
    if (const auto it = deal.part_of.find(pid_of(rows, t)); it != deal.part_of.end()) out[t] = it->second;
  std::unordered_map<uint32_t, std::vector<std::pair<int64_t, uint32_t>>> launches;
  std::map<std::string, std::vector<size_t>, std::less<>> votes;
  bool asked = false;
  each_row(rows, [&](const Row& row) { asked |= out[row.thread] == kNobody; });
  each_row(rows, [&](const Row& row) {
    if (asked && out[row.thread] != kNobody && row.correlation != kNoCorrelation)
      launches[row.correlation].emplace_back(row.start_ns, out[row.thread]);
  });
  each_row(rows, [&](const Row& row) {
    const auto it = out[row.thread] == kNobody ? launches.find(row.correlation) : launches.end();
    if (it == launches.end()) return;
    std::vector<size_t>& own = votes[std::string(pid_of(rows, row.thread))];
    own.resize(deal.ranks.size());
    for (const auto& [start_ns, part] : it->second) own[part] += start_ns <= row.start_ns;
  });
  for (uint32_t t = 0; t < out.size(); ++t) {
    if (out[t] != kNobody) continue;
    const auto own = votes.find(pid_of(rows, t));
    out[t] =
        own == votes.end() ? 0 : static_cast<uint32_t>(std::ranges::max_element(own->second) - own->second.begin());
  }
  return out;
}

// Gives each part its rows and what belongs to them.
class Splitter {
 public:
  Splitter(FileRows all, const Deal& deal)
      : all_(std::move(all)), part_of_(parts_of_threads(all_, deal)), out_(deal.ranks.size()) {}

  std::vector<FileRows> run() {
    const Dictionaries& known = all_.dictionaries;
    std::map<std::string, std::set<uint32_t>, std::less<>> parts;  // of a process or label
    for (FileRows& to : out_) {
      to.path = all_.path;
      to.metadata = all_.metadata;
      to.dictionaries.streams = known.streams;
      to.dictionaries.stream_ids = known.stream_ids;
      to.rest.fractional_time = all_.rest.fractional_time;
      to.blocks.emplace_back();
      for (uint32_t id = 0; id < known.names.size(); ++id) to.dictionaries.names.intern(known.names.text(id));
      for (uint32_t id = 0; id < known.categories.size(); ++id)
        to.dictionaries.categories.intern(known.categories.text(id));
    }
    thread_.resize(part_of_.size());
    for (uint32_t t = 1; t < part_of_.size(); ++t) {
      thread_[t] = out_[part_of_[t]].dictionaries.threads.intern(without_label(known.threads.text(t)));
      const std::string_view pid = pid_of(all_, t);
      parts[std::string(pid)].insert(part_of_[t]);
      parts[std::string(merge_label(pid))].insert(part_of_[t]);
    }
    number_events(parts);
    rows_.reserve(all_.row_count);
    for (std::vector<Row>& block : all_.blocks) {
      for (Row& row : block) {
        FileRows& to = out_[part_of_[row.thread]];
        rows_.emplace_back(part_of_[row.thread], static_cast<uint32_t>(to.row_count++));
        row.thread = thread_[row.thread];
        row.file_index = event_[row.file_index];
        to.blocks[0].push_back(row);
      }
      std::vector<Row>().swap(block);
    }
    each_fact_list([&](auto list) { facts(list); });
    facts(&ChunkRows::python), facts(&ChunkRows::exact_starts), facts(&ChunkRows::graph_work);
    lanes(&ChunkRows::memory, &MemoryRecord::lane), lanes(&ChunkRows::marks, &Mark::lane);
    lanes(&ChunkRows::flows, &Flow::thread), lanes(&ChunkRows::launch_flows, &Flow::thread);
    lanes(&ChunkRows::thread_names, &ThreadName::thread);
    for (FileRows& to : out_) {
      for (Mark& mark : to.rest.marks) mark.file_index = event_[mark.file_index];
      for (MemoryRecord& record : to.rest.memory) record.file_index = event_[record.file_index];
    }
    for (const ProcessName& entry : all_.rest.process_names)
      for (const uint32_t p : parts[std::string(known.names.text(entry.pid))])
        out_[p].rest.process_names.push_back(
            {out_[p].dictionaries.names.intern(without_label(known.names.text(entry.pid))), entry.name});
    for (CounterSeries& series : all_.counters) {
      const size_t end = series.name.find(' ', merge_label(series.name).size() + 1);
      const std::set<uint32_t>& of = parts[series.name.substr(0, end)];
      series.name = std::string(without_label(series.name));
      out_[of.empty() ? 0 : *of.begin()].counters.push_back(std::move(series));
    }
    out_[0].rest.diagnostics = std::move(all_.rest.diagnostics);
    return std::move(out_);
  }

 private:
  // Numbers the events of each part as its own file would. Without labels, only slices and marks have an owner.
  void number_events(std::map<std::string, std::set<uint32_t>, std::less<>>& parts) {
    std::vector<uint32_t> owner(static_cast<size_t>(all_.rest.event_count), kNobody);
    const std::vector<uint32_t>& labels = all_.rest.owners;
    for (size_t e = 0; e < labels.size(); ++e)
      if (e > 0 && labels[e] == labels[e - 1]) owner[e] = owner[e - 1];
      else if (const auto& of = parts[std::string(all_.dictionaries.names.text(labels[e]))]; of.size() == 1)
        owner[e] = *of.begin();
    each_row(all_, [&](const Row& row) { owner[row.file_index] = part_of_[row.thread]; });
    for (const Mark& mark : all_.rest.marks) owner[mark.file_index] = part_of_[mark.lane];
    for (const MemoryRecord& record : all_.rest.memory) owner[record.file_index] = part_of_[record.lane];
    uint32_t last = 0;
    event_.reserve(owner.size());
    for (const uint32_t one : owner) {
      last = one == kNobody ? last : one;
      event_.push_back(static_cast<uint32_t>(out_[last].rest.event_count++));
    }
  }

  template <class List> void facts(List list) {
    for (auto& fact : all_.rest.*list) {
      auto& to = out_[rows_[fact.slice].first].rest.*list;
      fact.slice = rows_[fact.slice].second;
      to.push_back(fact);
    }
  }
  template <class Fact> void lanes(std::vector<Fact> ChunkRows::* list, uint32_t Fact::* lane) {
    for (Fact& fact : all_.rest.*list) {
      std::vector<Fact>& to = out_[part_of_[fact.*lane]].rest.*list;
      fact.*lane = thread_[fact.*lane];
      to.push_back(fact);
    }
  }

  FileRows all_;
  std::vector<uint32_t> part_of_;  // by thread
  std::vector<FileRows> out_;
  std::vector<uint32_t> thread_, event_;             // their new numbers
  std::vector<std::pair<uint32_t, uint32_t>> rows_;  // part and new number
};

}  // namespace

Result<std::vector<RankRows>> split_ranks(std::vector<FileRows> blocks) {
  std::vector<RankRows> out;
  for (FileRows& block : blocks) {
    std::optional<Deal> deal = by_labels(block);
    if (!deal) deal = by_names(block);
    if (!deal) deal = by_launches(block);
    if (!deal && mixes_ranks(block)) return input_error("rows.mixed_ranks", {block.path});
    std::vector<FileRows> parts;
    if (deal) parts = Splitter(std::move(block), *deal).run();
    else parts.push_back(std::move(block));
    for (size_t p = 0; p < parts.size(); ++p)
      out.push_back({std::move(parts[p]), deal ? deal->ranks[p] : std::nullopt, false});
  }
  for (RankRows& one : out) one.is_merged = out.size() > 1;
  return out;
}

}  // namespace stageline::rows
