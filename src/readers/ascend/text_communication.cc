#include "readers/ascend/text_communication.h"

#include "base/input.h"
#include "base/json_members.h"
#include "model/message_names.h"
#include "readers/ascend/problems.h"

namespace stageline::ascend {
namespace {

constexpr int kMicroseconds = 3, kMilliseconds = 6;
constexpr double kMegabyte = 1e6;
constexpr std::string_view kTotal = "Total Op Info";

double megabytes(std::string_view text) {
  const std::optional<double> value = parse_double(json_text(text));
  return usable_bytes(value.value_or(-1) * kMegabyte);
}

int64_t milliseconds(std::string_view text) { return decimal_time(json_text(text), kMilliseconds); }

void read_times(std::string_view info, CommunicationRow& row) {
  for (const JsonMember& m : json_members(info)) {
    if (!m.whole) continue;  // the number may be cut
    if (m.key == "Start Timestamp(us)") row.start_ns = decimal_time(json_text(m.value), kMicroseconds);
#define TIME(name, member) \
  if (m.key == name) row.member = milliseconds(m.value);
#include "readers/ascend/communication_times.def"
  }
}

void read_bandwidth(std::string_view info, CommunicationRow& row) {
  double whole = -1, parts = -1;
  std::string of_whole, of_parts;
  for (const JsonMember& m : json_members(info)) {
    const double bytes = m.whole ? megabytes(json_member(m.value, "Transit Size(MB)")) : -1;
    if (bytes < 0) continue;
    const bool is_whole = m.key == "SDMA" || m.key == "RDMA";
    double& sum = is_whole ? whole : parts;
    std::string& of = is_whole ? of_whole : of_parts;
    sum = std::min((sum < 0 ? 0 : sum) + bytes, kMaxBytes);
    if (bytes > 0) append_item(of, m.key, " ");
  }
  row.bytes = whole > 0 || parts < 0 ? whole : parts;
  row.transport = whole > 0 || parts < 0 ? of_whole : of_parts;
}

// Calls visit(step, type, "op@group", value) for everything in a file of steps.
template <class Visit> Status for_entries(const std::string& path, Diagnostics& diagnostics, Visit&& visit) {
  TRY(text, read_all(path, kMaxCommunicationBytes));
  const std::string_view begin = trim(*text);
  if (!begin.starts_with('{'))
    return make_error(ErrorCode::kBadInput, "this is no JSON object of steps", "the profiler writes it anew", {path});
  bool cut = false;
  size_t end = 0;
  for (const JsonMember& step : json_members(begin)) {
    cut |= !step.whole;
    end = step.value.data() + step.value.size() - begin.data();
    for (const JsonMember& type : json_members(step.value))
      for (const JsonMember& entry : json_members(type.value))
        if (entry.key != kTotal) visit(step_number(step.key), type.key, entry.key, entry.value, entry.whole);
  }
  cut |= begin.find('}', end) == std::string_view::npos;
  if (cut) diagnostics.add(problem::ascend_cut_json, {path});
  return {};
}

std::pair<std::string_view, std::string_view> at_sign(std::string_view name) {
  const size_t at = name.find('@');
  return at == std::string_view::npos ? std::pair(name, std::string_view())
                                      : std::pair(name.substr(0, at), name.substr(at + 1));
}

constexpr size_t kMaxRanks = size_t{1} << 20;

std::string last_digits(std::string_view number) {
  return std::string(number.size() > 3 ? number.substr(number.size() - 3) : number);
}

}  // namespace

int64_t step_number(std::string_view text) {
  if (text.starts_with("step")) text.remove_prefix(4);
  const std::optional<int64_t> number = parse_int(trim(text));
  return number && *number >= 0 ? *number : -1;
}

double usable_bytes(double bytes) { return bytes >= 0 && bytes <= kMaxBytes ? bytes : -1; }

int64_t decimal_time(std::string_view text, int unit_ns_log10) {
  const std::optional<int64_t> ns = parse_decimal_ns(trim(text), unit_ns_log10);
  return ns && *ns >= 0 ? *ns : -1;
}

void drop_repeated_links(std::vector<LinkSummary>& links) {
  std::set<std::tuple<int64_t, std::string, std::string, int32_t, int32_t>> seen;
  std::erase_if(links, [&](const LinkSummary& link) {
    return !seen.emplace(link.step, link.op, link.group, link.src_rank, link.dst_rank).second;
  });
}

Status read_communication(const std::string& path, CommunicationSums& out, Diagnostics& diagnostics) {
  return for_entries(path, diagnostics,
                     [&](int64_t step, std::string_view type, std::string_view name, std::string_view value, bool) {
                       CommunicationRow row;
                       const auto [op, group] = at_sign(name);
                       row.op = std::string(op);
                       row.group = std::string(group);
                       row.type = std::string(type);
                       row.step = step;
                       for (const JsonMember& info : json_members(value)) {
                         if (info.key == "Communication Time Info") read_times(info.value, row);
                         if (info.key == "Communication Bandwidth Info") read_bandwidth(info.value, row);
                       }
                       if (row.dur_ns < 0) {
                         diagnostics.add(problem::ascend_communication_time, {path});
                         return;
                       }
                       out.ops.push_back(std::move(row));
                     });
}

Status read_communication_matrix(const std::string& path, CommunicationSums& out, Diagnostics& diagnostics) {
  const auto links_of = [&](int64_t step, std::string_view type, std::string_view name, std::string_view value, bool) {
    const auto [kind, group] = at_sign(name);
    for (const JsonMember& link : json_members(value)) {
      const size_t dash = link.key.find('-');
      const std::optional<int64_t> from = parse_int(link.key.substr(0, dash));
      const std::optional<int64_t> to =
          dash == std::string_view::npos ? std::nullopt : parse_int(link.key.substr(dash + 1));
      LinkSummary row;
      std::string op;
      double bytes = -1;
      int64_t transit = -1;
      for (const JsonMember& m : json_members(link.value)) {
        if (!m.whole) continue;
        if (m.key == "Transport Type") row.transport = json_text(m.value);
        if (m.key == "Transit Size(MB)") bytes = megabytes(m.value);
        if (m.key == "Transit Time(ms)") transit = milliseconds(m.value);
        if (m.key == "Op Name") op = json_text(m.value);
      }
      if (!link.whole || !from || !to || *from < 0 || *to < 0 || *from > INT32_MAX || *to > INT32_MAX || bytes < 0 ||
          transit < 0) {
        diagnostics.add(problem::ascend_link, {path});
        continue;
      }
      row.step = step;
      row.op = std::string(op.empty() ? kind : at_sign(op).first);
      row.group = std::string(group);
      row.type = std::string(type);
      row.src_rank = static_cast<int32_t>(*from);
      row.dst_rank = static_cast<int32_t>(*to);
      row.bytes = bytes;
      row.transit_ns = transit;
      out.links.push_back(std::move(row));
    }
  };
  TRY_OK(for_entries(path, diagnostics, links_of));
  drop_repeated_links(out.links);
  return {};
}

std::optional<OperationName> parse_operation_name(std::string_view name) {
  constexpr std::string_view kLead = "hcom_";
  if (!name.starts_with(kLead)) return std::nullopt;
  name.remove_prefix(kLead.size());
  const size_t cut = name.find("__");
  if (cut == std::string_view::npos || cut == 0) return std::nullopt;
  OperationName out;
  out.kind = name.substr(0, cut);
  const std::vector<std::string_view> numbers = split(name.substr(cut + 2), '_');
  if (numbers.size() < 2 || numbers[0].empty()) return std::nullopt;
  const std::optional<int64_t> seq = parse_int(numbers[1]);
  if (!seq || *seq < 0) return std::nullopt;
  out.digits = numbers[0];
  out.seq = *seq;
  return out;
}

ProcessGroups::ProcessGroups(const std::vector<MetaField>& metadata) {
  for (const MetaField& field : metadata) {
    if (field.key != "parallel_group_info") continue;
    for (const JsonMember& member : json_members(field.json)) {
      ProcessGroup group;
      group.name = json_text("\"" + std::string(member.key) + "\"");
      group.number = hccl_group_digits(group.name);
      group.description = json_text(json_member(member.value, "group_name"));
      for (const JsonMember& rank : json_members(json_member(member.value, "global_ranks"), kMaxRanks)) {
        const std::optional<int64_t> number = json_integer(rank.value);
        group.ranks.push_back(number && *number >= 0 && *number <= INT32_MAX ? static_cast<int32_t>(*number) : -1);
      }
      groups_.push_back(std::move(group));
    }
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    by_text_.emplace(groups_[g].name, g);
    by_text_.emplace(groups_[g].number, g);
    const auto [it, added] = by_digits_.emplace(last_digits(groups_[g].number), g);
    if (!added) it->second = SIZE_MAX;  // two groups share these digits, so they identify neither
  }
}

const ProcessGroup* ProcessGroups::find(std::string_view group) const {
  const auto it = by_text_.find(std::string(group));
  return it == by_text_.end() ? nullptr : &groups_[it->second];
}

const ProcessGroup* ProcessGroups::find_by_digits(std::string_view digits) const {
  const auto it = by_digits_.find(std::string(digits));
  return it == by_digits_.end() || it->second == SIZE_MAX ? nullptr : &groups_[it->second];
}

int64_t make_links_global(const ProcessGroups& groups, int32_t own_rank, std::vector<LinkSummary>& links) {
  std::map<std::string, int32_t> own_place;  // group → this rank's position in it
  for (const LinkSummary& link : links)
    if (link.src_rank == link.dst_rank) own_place.emplace(link.group, link.src_rank);
  int64_t unknown = 0;
  for (LinkSummary& link : links) {
    const ProcessGroup* group = groups.find(link.group);
    const auto own = own_place.find(link.group);
    for (int32_t* rank : {&link.src_rank, &link.dst_rank}) {
      if (group != nullptr && !group->ranks.empty())
        *rank = static_cast<size_t>(*rank) < group->ranks.size() ? group->ranks[*rank] : -1;
      else if (own == own_place.end()) *rank = -1;
      else if (own->second != own_rank) *rank = *rank == own->second ? own_rank : -1;
      unknown += *rank < 0;
    }
    if (group != nullptr) link.group = group->name;
  }
  return unknown;
}

std::vector<MetaField> metadata_of(std::string_view json) {
  std::vector<MetaField> out;
  for (const JsonMember& member : json_members(json)) {
    if (!member.whole) continue;
    std::string value(member.value);
    if (value.starts_with('"')) {
      const std::string inner = json_text(value);
      if (inner.starts_with('{') || inner.starts_with('[')) value = inner;
    }
    out.push_back({json_text("\"" + std::string(member.key) + "\""), std::move(value)});
  }
  return out;
}

}  // namespace stageline::ascend
