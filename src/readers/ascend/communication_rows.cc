// Reads collectives and transfers between ranks: COMMUNICATION_OP and its tasks, or with Level_none the built-in ranges
// of the mstx domain "communication".
//
// Peers: a task of a send or receive names two ranks of the group, its own and the other. Where all tasks of an
// operation agree, the other is the operation's peer, and `parallel_group_info` makes it a global rank. Databases use
// HCCL's name for a group, and metadata the framework's. Where the names differ and there is only one pipeline group
// with the right own rank, that group is taken, and the notes say so.
#include <cctype>

#include "readers/ascend/db_rows.h"
#include "readers/ascend/problems.h"

namespace stageline::ascend {
namespace {

constexpr int64_t kMaxGroupSize = 1'000'000;

// Returns the bytes of an element by the names of ENUM_HCCL_DATA_TYPE.
int64_t hccl_bytes(std::string_view dtype) {
  std::string upper;
  for (const char c : dtype) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return dtype_bytes(upper);
}

// Returns a plain name: "hcom_allReduce_", "hcom_allReduce__210_0_1" and "HcclAllreduce" → "allReduce"; "HcclRecv" →
// "receive".
std::string plain_name(std::string_view name) {
  if (name.starts_with("hcom_")) {
    name.remove_prefix(5);
    name = name.substr(0, name.find("__"));
    while (name.ends_with("_")) name.remove_suffix(1);
    std::string plain(name);
    if (!plain.empty()) plain[0] = to_lower(plain[0]);
    return plain == "recv" ? "receive" : plain;
  }
  if (name.starts_with("Hccl")) name.remove_prefix(4);
  name = name.substr(0, name.find("__"));
  while (name.ends_with("_")) name.remove_suffix(1);
  const std::string lower = to_lower(name);
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kKnown = {{
#include "readers/ascend/collective_words.def"
  }};
  for (const auto& [from, to] : kKnown)
    if (lower == from) return std::string(to);
  std::string plain(name);
  if (!plain.empty()) plain[0] = to_lower(plain[0]);
  return plain;
}

// Returns the running number in "hcom_send__210_7_1", 7; −1 when there is none.
int64_t running_number(std::string_view name) {
  const size_t at = name.rfind("__");
  if (at == std::string_view::npos) return -1;
  const std::vector<std::string_view> parts = split(name.substr(at + 2), '_');
  if (parts.size() < 2) return -1;
  const auto number = parse_int(parts[1]);
  return number && *number >= 0 ? *number : -1;
}

std::string lane_of_group(const RankDb& rank, uint32_t group) {
  const std::string name(rank.out.text_of(group));
  const auto known = rank.groups.find(name);
  return communication_lane(known == rank.groups.end() ? "" : known->second.description, name);
}
uint32_t group_lane(RankDb& rank, uint32_t group) {
  return rank.out.named_stream_lane(std::max(rank.out.part.device, 0), lane_of_group(rank, group));
}

void read_operations(RankDb& rank) {
  rank.scan("COMMUNICATION_OP",
            {"startNs", "endNs", "opName", "groupName", "connectionId?", "opId?", "dataType?", "count?", "opType?",
             "opConnectionId?", "rankSize?"},
            [&](const SqliteRows& rows) {
              int64_t start = 0, end = 0;
              rank.times(rows, 0, start, end);
              CommOp op{
                  .name = rank.texts.of(rows, 2), .group = rank.texts.of(rows, 3), .type = rank.texts.of(rows, 8)};
              const int64_t connection = rows.integer_or(4, -1);
              op.row = rank.out.add(group_lane(rank, op.group), RowKind::kCommunication, start, end, op.name,
                                    correlation_of(connection));
              if (op.row == kNoRow) return;
              rank.has_ops = true;
              const std::string_view dtype =
                  rows.is_null(6) ? std::string_view() : rank.enum_name("ENUM_HCCL_DATA_TYPE", rows.integer(6));
              op.dtype = rank.out.text(dtype);
              op.bytes_each = hccl_bytes(dtype);
              op.count = rows.integer_or(7, -1);
              if (rows.type(9) == SQLITE_TEXT) op.link = rank.out.text(rows.text(9));
              op.rank_size = static_cast<int32_t>(std::clamp<int64_t>(rows.integer_or(10, -1), -1, kMaxGroupSize));
              const auto index = static_cast<uint32_t>(rank.ops.size());
              rank.op_of_connection.put(connection, index);
              if (!rows.is_null(5)) rank.op_of_id.put(rows.integer(5), index);
              rank.ops.push_back(op);
            });
}

bool names_peer(std::string_view task) { return task == "Notify_Record" || task == "Notify_Wait"; }

void vote(CommOp& op, const TransferInfo& t) {
  if (t.src < 0 || t.dst < 0) return;
  if (op.own < 0) {
    op.own = t.src;
    op.peer = t.dst;
  } else {
    op.disagree |= op.own != t.src || op.peer != t.dst;
  }
}

void read_transfers(RankDb& rank) {
  const auto rank_in_group = [](const SqliteRows& rows, int column) {
    const int64_t value = rows.integer_or(column, -1);
    return value >= 0 && value < kMaxGroupSize ? value : -1;
  };
  rank.scan("COMMUNICATION_TASK_INFO",
            {"globalTaskId", "taskType", "opId?", "groupName?", "planeId?", "notifyId?", "srcRank?", "dstRank?",
             "transportType?", "size?", "linkType?"},
            [&](const SqliteRows& rows) {
              TransferInfo t{.task = rank.texts.of(rows, 1)};
              if (!rows.is_null(2)) t.op = rank.op_of_id.get(rows.integer(2));
              t.group = rank.texts.of(rows, 3);
              t.plane = static_cast<int32_t>(std::clamp<int64_t>(rows.integer_or(4, -1), -1, INT32_MAX));
              t.notify = rows.integer_or(5, -1);
              t.src = rank_in_group(rows, 6);
              t.dst = rank_in_group(rows, 7);
              t.bytes = rows.integer_or(9, -1);
              if (t.op != kNoIndex && rank.ops[t.op].group == t.group && names_peer(rank.out.text_of(t.task)))
                vote(rank.ops[t.op], t);
              if (rank.only_ranges) return;
              if (!rows.is_null(8))
                t.transport = rank.out.text(rank.enum_name("ENUM_HCCL_TRANSPORT_TYPE", rows.integer(8)));
              if (!rows.is_null(10)) t.link = rank.out.text(rank.enum_name("ENUM_HCCL_LINK_TYPE", rows.integer(10)));
              const auto index = static_cast<uint32_t>(rank.transfers.size());
              if (rank.transfer_of_task.put(rows.integer_or(0, -1), index) == index) rank.transfers.push_back(t);
            });
}

bool is_send(std::string_view name) { return name == "send"; }
bool is_receive(std::string_view name) { return name == "receive"; }

// Matches the one group of operations that the metadata does not name with the only pipeline group in which this rank
// has the position that its transfers show.
void match_groups(RankDb& rank) {
  const CommGroup* pipeline = nullptr;
  size_t pipelines = 0;
  for (const auto& [name, group] : rank.groups)
    if (group.description == "pp") pipeline = &group, ++pipelines;
  if (pipelines != 1) return;
  std::map<uint32_t, bool> fits;  // for each group with sends or receives
  for (const CommOp& op : rank.ops) {
    if (op.peer < 0 || op.disagree || rank.groups.count(std::string(rank.out.text_of(op.group))) != 0) continue;
    const std::string name = plain_name(rank.out.text_of(op.type != 0 ? op.type : op.name));
    if (!is_send(name) && !is_receive(name)) continue;
    const int64_t size = pipeline->ranks.size();
    const bool fit = op.peer < size && (op.own < 0 || op.own == pipeline->own_rank);
    const auto [it, added] = fits.try_emplace(op.group, fit);
    it->second &= fit;
  }
  if (fits.size() != 1 || !fits.begin()->second) return;  // with several such groups, neither is certain
  const CommGroup found = *pipeline;
  rank.groups.emplace(std::string(rank.out.text_of(fits.begin()->first)), found);
  rank.out.notes.add(problem::ascend_group_matched, {rank.db.path()});
}

int64_t global_rank(const CommGroup* group, int64_t in_group) {
  return group && in_group >= 0 && in_group < static_cast<int64_t>(group->ranks.size()) ? group->ranks[in_group] : -1;
}

std::string list_of(const std::vector<int32_t>& ranks) {
  std::string out = "[";
  for (size_t i = 0; i < ranks.size(); ++i) out += (i ? ", " : "") + std::to_string(ranks[i]);
  return out + "]";
}

int64_t times_or_unknown(int64_t count, int64_t each) {
  int64_t bytes = 0;
  return count < 0 || each <= 0 || __builtin_mul_overflow(count, each, &bytes) ? -1 : bytes;
}

}  // namespace

void read_communication(RankDb& rank) {
  read_operations(rank);
  read_transfers(rank);
}

void add_range_operation(RankDb& rank, uint32_t range, int64_t device, int64_t start_ns, int64_t end_ns) {
  RangeRow& from = rank.ranges[range];
  const RangeTextInfo& text = rank.range_texts[from.text];
  if (!text.communication || rank.has_ops) return;
  CommOp op{.name = text.name, .group = rank.out.text(text.parsed.member("groupName")), .type = text.name};
  const std::string_view dtype = text.parsed.member("dataType");
  op.dtype = rank.out.text(dtype == "na" ? std::string_view() : dtype);
  op.bytes_each = hccl_bytes(dtype);
  op.count = parse_int(text.parsed.member("count")).value_or(-1);
  for (const std::string_view key : {"srcRank", "destRank", "dstRank"})
    if (const auto peer = parse_int(text.parsed.member(key)); peer && *peer >= 0 && *peer < kMaxGroupSize)
      op.peer = *peer;
  const std::string lane = lane_of_group(rank, op.group);
  op.row = rank.out.add(rank.out.named_stream_lane(std::max<int64_t>(device, 0), lane), RowKind::kCommunication,
                        start_ns, end_ns, op.name);
  if (op.row == kNoRow) return;
  rank.out.pair(from.row, op.row);
  rank.ops.push_back(op);
}

void finish_communication(RankDb& rank) {
  match_groups(rank);
  std::map<uint32_t, std::pair<const CommGroup*, uint32_t>> known;  // text → the group, and the text of its ranks
  const auto group_of = [&](uint32_t text) {
    const auto [it, added] = known.try_emplace(text, nullptr, 0);
    if (added)
      if (const auto found = rank.groups.find(std::string(rank.out.text_of(text))); found != rank.groups.end())
        it->second = {&found->second, rank.out.text(list_of(found->second.ranks))};
    return it->second;
  };
  for (const CommOp& op : rank.ops) {
    const auto [group, ranks] = group_of(op.group);
    CollectiveFact fact{.slice = op.row};
    const std::string name = plain_name(rank.out.text_of(op.type != 0 ? op.type : op.name));
    fact.name = rank.out.text(name);
    fact.dtype = op.dtype;
    fact.group = op.group;
    fact.group_description = group ? rank.out.text(group->description) : 0;
    fact.group_ranks = ranks;
    fact.group_size = group ? static_cast<int64_t>(group->ranks.size()) : std::max(op.rank_size, 0);
    fact.in_elements = fact.out_elements = std::max<int64_t>(op.count, 0);
    fact.bytes = times_or_unknown(op.count, op.bytes_each);
    fact.seq = running_number(rank.out.text_of(op.name));
    fact.comms_id = op.link;
    const bool batch = name == "batchSendRecv";
    if ((batch || is_send(name) || is_receive(name)) && !op.disagree && op.peer >= 0) fact.peer = op.peer;
    if (fact.peer >= 0 && !batch) {
      const int64_t there = global_rank(group, op.peer);
      (is_send(name) ? fact.dst_rank : fact.src_rank) = there;
      if (there >= 0) (is_send(name) ? fact.src_rank : fact.dst_rank) = rank.out.part.rank;
    }
    rank.out.collectives.push_back(fact);
  }
  for (const auto& [row, index] : rank.transfer_rows) {
    const TransferInfo& t = rank.transfers[index];
    const CommGroup* group = group_of(t.group).first;
    TransferFact fact{.slice = row,
                      .op = t.op != kNoIndex ? rank.ops[t.op].row : kNoSliceIndex,
                      .task = t.task,
                      .transport = t.transport,
                      .link = t.link,
                      .bytes = t.bytes,
                      .notify = t.notify,
                      .plane = t.plane,
                      .src_rank = static_cast<int32_t>(group ? global_rank(group, t.src) : t.src),
                      .dst_rank = static_cast<int32_t>(group ? global_rank(group, t.dst) : t.dst)};
    rank.out.transfers.push_back(fact);
  }
}

}  // namespace stageline::ascend
