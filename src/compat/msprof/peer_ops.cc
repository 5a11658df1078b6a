#include "base/hashes.h"
#include "compat/msprof/communication.h"

namespace stageline {
namespace {

struct OpName {
  bool ok = false;
  PeerOp::Kind kind = PeerOp::Kind::kSend;
  std::string_view tag;
};

bool take_digits(std::string_view& text, std::string_view* taken = nullptr) {
  size_t n = 0;
  while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
  if (taken) *taken = text.substr(0, n);
  text.remove_prefix(n);
  return n > 0;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Parses "hcom_send__377_0_1".
OpName parse_name(std::string_view text, bool batches) {
  OpName name;
  if (!take(text, "hcom_")) return name;
  if (take(text, "send") || take(text, "Send")) name.kind = PeerOp::Kind::kSend;
  else if (take(text, "receive") || take(text, "Receive") || take(text, "recv") || take(text, "Recv"))
    name.kind = PeerOp::Kind::kReceive;
  else if (batches && (take(text, "batchSendRecv") || take(text, "BatchSendRecv"))) name.kind = PeerOp::Kind::kBatch;
  else return name;
  name.ok = take(text, "__") && take_digits(text, &name.tag) && take(text, "_") && take_digits(text) &&
            take(text, "_") && take_digits(text) && text.empty();
  return name;
}

struct OpRow {
  int64_t row, name, op, group, connection, start_ns, end_ns;
};

// The sum of the tasks of all operations with one name.
struct Tasks {
  bool seen = false, has_src = false, has_dst = false, one_src = true, one_dst = true;
  int64_t src = -1, dst = -1, start_ns = 0, end_ns = 0, group = 0;
};

void see(int64_t value, bool& has, bool& one, int64_t& kept) {
  if (has && value != kept) one = false;
  if (!has) kept = value;
  has = true;
}

struct Texts {
  std::unordered_map<int64_t, std::string, SeededHash> ops, groups;
  std::unordered_set<int64_t, SeededHash> notify;  // ids of Notify_Record and Notify_Wait
};

Result<Texts> texts_of(const SqliteDb& db, const std::vector<OpRow>& ops, bool batches) {
  Texts texts;
  std::unordered_set<int64_t, SeededHash> names, groups;
  for (const OpRow& op : ops) {
    names.insert(op.name);
    groups.insert(op.group);
  }
  SqliteRows rows = rows_of(db, "STRING_IDS", {"id", "value"});
  while (rows.next()) {
    const int64_t id = rows.integer(0);
    const std::string_view text = rows.text(1);
    if (text == "Notify_Record" || text == "Notify_Wait") texts.notify.insert(id);
    if (groups.count(id)) texts.groups.emplace(id, text);
    if (names.count(id) && parse_name(text, batches).ok) texts.ops.emplace(id, text);
  }
  if (!rows.ok()) return rows.status().error();
  return texts;
}

Result<std::vector<OpRow>> op_rows(const SqliteDb& db) {
  std::vector<OpRow> ops;
  std::string missing;
  rows_of(db, "COMMUNICATION_OP", {"opName", "opId", "groupName", "connectionId", "startNs", "endNs"}, &missing);
  if (!missing.empty()) return ops;
  SqliteRows rows(db, "SELECT rowid,opName,opId,groupName,connectionId,startNs,endNs FROM COMMUNICATION_OP");
  while (rows.next())
    if (!rows.is_null(4))
      ops.push_back({rows.integer(0), rows.integer(1), rows.integer(2), rows.integer(3), rows.integer(4),
                     rows.integer(5), rows.integer(6)});
  if (!rows.ok()) return rows.status().error();
  return ops;
}

// Returns the connections that the host called within the window.
Result<std::unordered_set<int64_t, SeededHash>> called(const SqliteDb& db, const std::vector<OpRow>& ops,
                                                       const HostWindow& window) {
  std::unordered_set<int64_t, SeededHash> wanted, found;
  for (const OpRow& op : ops) wanted.insert(op.connection);
  SqliteRows rows = rows_of(db, "CANN_API", {"connectionId", "startNs"});
  while (rows.next())
    if (!rows.is_null(0) && rows.integer(1) >= window.from_ns && rows.integer(1) <= window.to_ns &&
        wanted.count(rows.integer(0)))
      found.insert(rows.integer(0));
  if (!rows.ok()) return rows.status().error();
  return found;
}

}  // namespace

Result<std::vector<PeerOp>> read_peer_ops(const SqliteDb& db, const HostWindow& window, bool batches) {
  std::vector<PeerOp> out;
  if (!db.has_table("COMMUNICATION_OP") || !db.has_table("COMMUNICATION_TASK_INFO")) return out;
  SqliteRows devices = rows_of(db, "RANK_DEVICE_MAP", {"rankId"});
  if (!devices.next()) return out;
  TRY(ops, op_rows(db));
  TRY(texts, texts_of(db, *ops, batches));
  TRY(calls, called(db, *ops, window));

  std::unordered_map<int64_t, uint32_t, SeededHash> op_of_id;
  for (uint32_t i = 0; i < ops->size(); ++i) {
    const OpRow& op = (*ops)[i];
    if (texts->ops.count(op.name) && texts->groups.count(op.group) && calls->count(op.connection))
      op_of_id.emplace(op.op, i);
  }
  std::unordered_map<int64_t, Tasks, SeededHash> by_name;
  SqliteRows rows = rows_of(db, "COMMUNICATION_TASK_INFO", {"opId", "groupName", "taskType", "srcRank", "dstRank"});
  while (rows.next()) {
    const auto at = op_of_id.find(rows.integer(0));
    if (at == op_of_id.end() || rows.is_null(0) || !texts->notify.count(rows.integer(2))) continue;
    const OpRow& op = (*ops)[at->second];
    if (op.group != rows.integer(1)) continue;
    Tasks& tasks = by_name[op.name];
    if (!tasks.seen) {
      tasks.start_ns = op.start_ns;
      tasks.end_ns = op.end_ns;
      tasks.group = op.group;
    }
    tasks.seen = true;
    if (!rows.is_null(3)) see(rows.integer(3), tasks.has_src, tasks.one_src, tasks.src);
    if (!rows.is_null(4)) see(rows.integer(4), tasks.has_dst, tasks.one_dst, tasks.dst);
  }
  if (!rows.ok()) return rows.status().error();

  std::unordered_map<int64_t, std::vector<int64_t>, SeededHash> rows_of_name;
  for (const OpRow& op : *ops)
    if (by_name.count(op.name)) rows_of_name[op.name].push_back(op.row);
  // Ordered by text, as equal starts are numbered in that order.
  std::vector<std::pair<std::string_view, int64_t>> names;
  for (const auto& [id, tasks] : by_name)
    if (tasks.has_src && tasks.has_dst && tasks.one_src && tasks.one_dst) names.emplace_back(texts->ops.at(id), id);
  std::ranges::sort(names);
  for (const auto& [text, id] : names) {
    const Tasks& tasks = by_name.at(id);
    const OpName name = parse_name(text, batches);
    PeerOp op({name.kind, tasks.src, tasks.dst, tasks.start_ns, tasks.end_ns, std::string(name.tag),
               texts->groups.at(tasks.group), std::move(rows_of_name[id])});
    if (op.kind == PeerOp::Kind::kReceive) std::swap(op.src, op.dst);
    out.push_back(std::move(op));
  }
  sort_stably(out, {}, &PeerOp::start_ns);
  return out;
}

}  // namespace stageline
