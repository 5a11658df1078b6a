#include "readers/ascend/problems.h"
#include "readers/ascend/text_trace.h"

namespace stageline::ascend {
namespace {

// Returns the size of an element by the names of ENUM_HCCL_DATA_TYPE; 0 for other names.
int64_t element_bytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, int64_t> kSizes[] = {
      {"INT8", 1},   {"UINT8", 1}, {"INT16", 2}, {"UINT16", 2}, {"FP16", 2}, {"BFP16", 2},  {"INT32", 4},
      {"UINT32", 4}, {"FP32", 4},  {"INT64", 8}, {"UINT64", 8}, {"FP64", 8}, {"INT128", 16}};
  for (const auto& [name, size] : kSizes)
    if (dtype == name) return size;
  return 0;
}

bool is_send(std::string_view kind) { return kind == "send" || kind == "Send"; }
bool is_receive(std::string_view kind) { return kind == "receive" || kind == "recv" || kind == "Receive"; }

std::string ranks_text(const std::vector<int32_t>& ranks) {
  std::string out = "[";
  for (const int32_t rank : ranks) out += (out.size() > 1 ? ", " : "") + std::to_string(rank);
  return out + "]";
}

class Operations {
 public:
  Operations(const CommunicationSums& sums, const ProcessGroups& groups, PartBuilder& builder)
      : sums_(sums), groups_(groups), builder_(builder) {
    for (size_t s = 0; s < sums.ops.size(); ++s) {
      of_name_[sums.ops[s].op].sums.push_back(s);
      of_step_[key(sums.ops[s].op, sums.ops[s].step)].sums.push_back(s);
    }
    for (const LinkSummary& link : sums.links) {
      if (link.src_rank == link.dst_rank || link.type != "p2p") continue;
      const auto [it, added] = link_of_.try_emplace(link.op, link.src_rank, link.dst_rank);
      if (!added && it->second != std::pair(link.src_rank, link.dst_rank)) it->second = {-1, -1};
    }
  }

  void add(std::vector<OperationRow>& rows) {
    std::vector<bool> used(sums_.ops.size());
    for (OperationRow& row : rows) {
      size_t s = SIZE_MAX;
      if (row.step < 0) {
        s = next(of_name_[row.name], used);
      } else {
        s = next(of_step_[key(row.name, row.step)], used);
        if (s == SIZE_MAX) s = next(of_step_[key(row.name, -1)], used);
      }
      if (s != SIZE_MAX) used[s] = true;
      row.row = add_one(row, s == SIZE_MAX ? nullptr : &sums_.ops[s]);
    }
    int64_t timeless = 0;
    for (size_t s = 0; s < used.size(); ++s) {
      if (used[s]) continue;
      const CommunicationRow& sum = sums_.ops[s];
      int64_t end = 0;
      if (sum.start_ns <= 0 || __builtin_add_overflow(sum.start_ns, sum.dur_ns, &end)) {
        ++timeless;
        continue;
      }
      OperationRow row{.name = sum.op, .step = sum.step, .start_ns = sum.start_ns, .dur_ns = sum.dur_ns};
      add_one(row, &sum);
    }
    builder_.notes.add(problem::ascend_communication_time, {builder_.part.source}, timeless);
  }

 private:
  struct Queue {  // indices of sums, in the file's order
    std::vector<size_t> sums;
    size_t at = 0;
  };
  static std::string key(const std::string& name, int64_t step) { return name + "\n" + std::to_string(step); }
  static size_t next(Queue& queue, const std::vector<bool>& used) {
    while (queue.at < queue.sums.size() && used[queue.sums[queue.at]]) ++queue.at;
    return queue.at < queue.sums.size() ? queue.sums[queue.at] : SIZE_MAX;
  }

  const ProcessGroup* group_of(const OperationName* name, const CommunicationRow* sum) const {
    if (sum != nullptr && !sum->group.empty()) return groups_.find(sum->group);
    return name != nullptr ? groups_.find_by_digits(name->digits) : nullptr;
  }

  uint32_t add_one(const OperationRow& row, const CommunicationRow* sum) {
    const auto name = parse_operation_name(row.name);
    const ProcessGroup* const group = group_of(name ? &*name : nullptr, sum);
    std::string group_name = group != nullptr ? group->name : sum != nullptr ? sum->group : "";
    if (group_name.empty() && name) group_name = "…" + std::string(name->digits);
    const uint32_t lane = builder_.named_stream_lane(
        row.device, communication_lane(group != nullptr ? group->description : "", group_name));
    const uint32_t at =
        builder_.add(lane, RowKind::kCommunication, row.start_ns, row.start_ns + row.dur_ns, builder_.text(row.name));
    if (at == kNoRow) return at;
    CollectiveFact fact{.slice = at,
                        .name = builder_.text(name ? name->kind : std::string_view(row.name)),
                        .dtype = row.dtype,
                        .group = builder_.text(group_name),
                        .seq = name ? name->seq : -1};
    if (group != nullptr) {
      fact.group_description = builder_.text(group->description);
      if (!group->ranks.empty()) fact.group_ranks = builder_.text(ranks_text(group->ranks));
      fact.group_size = group->ranks.size();
    }
    fact.in_elements = fact.out_elements = std::max<int64_t>(row.count, 0);
    if (sum != nullptr && sum->type == "p2p" && sum->bytes >= 0) fact.bytes = static_cast<int64_t>(sum->bytes + 0.5);
    int64_t bytes = 0;
    const int64_t size = element_bytes(builder_.text_of(row.dtype));
    if (fact.bytes < 0 && row.count > 0 && size > 0 && !__builtin_mul_overflow(row.count, size, &bytes))
      fact.bytes = bytes;
    if (name) set_ends(*name, row.name, group, fact);
    builder_.collectives.push_back(fact);
    return at;
  }

  void set_ends(const OperationName& name, const std::string& op, const ProcessGroup* group,
                CollectiveFact& fact) const {
    const bool sends = is_send(name.kind), receives = is_receive(name.kind);
    if (group == nullptr || (!sends && !receives)) return;
    const auto own = std::ranges::find(group->ranks, builder_.part.rank);
    if (own == group->ranks.end()) return;
    const int64_t place = own - group->ranks.begin();
    int64_t other = -1;
    if (const auto link = link_of_.find(op); link != link_of_.end()) {
      const auto [from, to] = link->second;
      if ((sends ? from : to) == place) other = sends ? to : from;
    } else if (group->ranks.size() == 2) {
      other = 1 - place;
    }
    if (other < 0 || static_cast<size_t>(other) >= group->ranks.size()) return;
    const int64_t peer = group->ranks[other];
    fact.peer = other;
    fact.src_rank = sends ? builder_.part.rank : peer;
    fact.dst_rank = sends ? peer : builder_.part.rank;
  }

  const CommunicationSums& sums_;
  const ProcessGroups& groups_;
  PartBuilder& builder_;
  std::unordered_map<std::string, Queue> of_name_, of_step_;
  std::unordered_map<std::string, std::pair<int32_t, int32_t>> link_of_;
};

}  // namespace

void add_operations(std::vector<OperationRow>& rows, const CommunicationSums& sums, const ProcessGroups& groups,
                    PartBuilder& builder) {
  Operations(sums, groups, builder).add(rows);
}

}  // namespace stageline::ascend
