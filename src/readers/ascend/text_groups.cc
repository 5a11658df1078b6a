#include "readers/ascend/text_groups.h"

#include <algorithm>
#include <map>

#include "base/json_members.h"
#include "base/number.h"
#include "base/text.h"
#include "model/hccl_names.h"

namespace stageline::ascend {
namespace {

constexpr size_t kMaxRanks = size_t{1} << 20;

std::string last_digits(std::string_view number) {
  return std::string(number.size() > 3 ? number.substr(number.size() - 3) : number);
}

}  // namespace

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
      else if (own == own_place.end())
        *rank = -1;
      else if (own->second != own_rank)
        *rank = *rank == own->second ? own_rank : -1;
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
