#include <simdjson.h>

#include "base/hashes.h"
#include "compat/msprof/communication.h"
#include "model/message_names.h"

namespace stageline {
namespace {

constexpr size_t kMaxMarkedOps = 2'000'000;  // at some 250 B each
constexpr int64_t kNoDataType = 65534;       // the value of "N/A" in ENUM_HCCL_DATA_TYPE
constexpr std::string_view kKeys[] = {"\"streamId\":", "\"count\":", "\"dataType\":", "\"groupName\":", "\"opName\":"};

struct Message {
  bool ok = false;
  std::string op, group, data_type, count;
  int64_t peer = -1;
};

std::string text_of(simdjson::dom::object object, std::string_view key) {
  const auto value = object[key];
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  simdjson::dom::element element;
  if (value.get(element) != simdjson::SUCCESS) return {};
  return simdjson::minify(element);
}

Message parse_message(simdjson::dom::parser& parser, std::string_view text) {
  Message message;
  simdjson::dom::object object;
  if (parser.parse(simdjson::padded_string(text)).get(object) != simdjson::SUCCESS) return message;
  message.op = text_of(object, "opName");
  message.group = text_of(object, "groupName");
  message.data_type = text_of(object, "dataType");
  message.count = text_of(object, "count");
  for (const char* key : {"destRank", "srcRank"})
    if (const auto peer = parse_int(text_of(object, key))) message.peer = *peer;
  message.ok = !message.op.empty();
  return message;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\\' || i + 1 == text.size() || text[i + 1] != '"') out += text[i];
  return out;
}

// Returns the name that a Level1 profile has for "HcclSend": "hcom_send".
std::string level1_name(const std::string& op) {
  if (!op.starts_with("Hccl") || op.size() < 5) return op;
  std::string rest = op.substr(4);
  if (rest == "Recv") return "hcom_receive";
  if (rest == "Allreduce") return "hcom_allReduce";
  rest[0] = to_lower(rest.substr(0, 1))[0];
  return "hcom_" + rest;
}

// Returns the messages of communication ranges by their string id.
Result<std::unordered_map<int64_t, Message, SeededHash>> messages_of(const SqliteDb& db) {
  std::unordered_map<int64_t, Message, SeededHash> messages;
  simdjson::dom::parser parser;
  SqliteRows rows = rows_of(db, "STRING_IDS", {"id", "value"});
  while (rows.next()) {
    const std::string_view raw = rows.text(1);
    if (raw.find("groupName") == std::string_view::npos) continue;
    const std::string text = unescaped(raw);
    if (std::all_of(std::begin(kKeys), std::end(kKeys),
                    [&](std::string_view key) { return text.find(key) != std::string::npos; }))
      messages.emplace(rows.integer(0), parse_message(parser, text));
  }
  if (!rows.ok()) return rows.status().error();
  return messages;
}

Result<std::unordered_map<std::string, int64_t>> data_types_of(const SqliteDb& db) {
  std::unordered_map<std::string, int64_t> types;
  SqliteRows rows = rows_of(db, "ENUM_HCCL_DATA_TYPE", {"id", "name"});
  while (rows.next()) types[to_lower(rows.text(1))] = rows.integer(0);
  if (!rows.ok()) return rows.status().error();
  return types;
}

struct RangeMark {
  int64_t connection;
  const Message* message;
};

// Returns the marks of ranges that start within a window and have a message.
Result<std::vector<RangeMark>> marks_of(const SqliteDb& db, const HostWindow& window,
                                        const std::unordered_map<int64_t, Message, SeededHash>& messages) {
  std::vector<RangeMark> marks;
  SqliteRows host = rows_of(db, "MSTX_EVENTS", {"message", "connectionId", "startNs"});
  while (host.next()) {
    const auto message = messages.find(host.integer(0));
    if (message == messages.end() || host.is_null(0) || host.is_null(1)) continue;
    if (host.integer(2) < window.from_ns || host.integer(2) > window.to_ns) continue;
    marks.push_back({host.integer(1), &message->second});
  }
  if (!host.ok()) return host.status().error();
  return marks;
}

using Intervals = std::unordered_map<int64_t, std::vector<std::pair<int64_t, int64_t>>, SeededHash>;

// Returns the times of the tasks that each mark launched, by connectionId.
Result<Intervals> intervals_of(const SqliteDb& db, const std::vector<RangeMark>& marks) {
  Intervals intervals;
  for (const RangeMark& mark : marks) intervals.try_emplace(mark.connection);
  SqliteRows tasks = rows_of(db, "TASK", {"startNs", "endNs", "connectionId"});
  while (tasks.next())
    if (const auto at = intervals.find(tasks.integer(2)); at != intervals.end() && !tasks.is_null(2))
      at->second.emplace_back(tasks.integer(0), tasks.integer(1));
  if (!tasks.ok()) return tasks.status().error();
  return intervals;
}

}  // namespace

Result<MarkedOps> read_marked_ops(const SqliteDb& db, const HostWindow& window, bool as_msprof) {
  MarkedOps out;
  TRY(messages, messages_of(db));
  if (messages->empty()) return out;
  TRY(types, data_types_of(db));
  if (types->empty() && as_msprof) {
    out.lost = "ENUM_HCCL_DATA_TYPE is missing or empty";
    return out;
  }
  TRY(marks, marks_of(db, window, *messages));
  TRY(intervals, intervals_of(db, *marks));
  // The operations of each key (group and type) are numbered by themselves; ids run over the keys in order of their
  // first operation.
  std::map<std::pair<std::string, std::string>, size_t> keys;
  std::vector<std::vector<MarkedOp>> by_key;
  size_t made = 0;
  for (const RangeMark& mark : *marks) {
    const Message& message = *mark.message;
    const auto type = types->find(message.data_type);
    if (as_msprof && (!message.ok || type == types->end())) {
      out.lost = message.ok ? "data type \"" + message.data_type + "\" is not in ENUM_HCCL_DATA_TYPE"
                            : "a message is no JSON object with opName";
      return out;
    }
    if (!message.ok) continue;
    const std::string op = as_msprof ? message.op : level1_name(message.op);
    for (const auto& [start, end] : intervals->at(mark.connection)) {
      const auto [at, fresh] = keys.try_emplace({message.group, op}, by_key.size());
      if (fresh) by_key.emplace_back();
      std::vector<MarkedOp>& ops = by_key[at->second];
      if (++made > kMaxMarkedOps)
        return make_error(ErrorCode::kLimit, "more than " + std::to_string(kMaxMarkedOps) + " communication ranges", "",
                          {db.path()});
      ops.push_back({start, end, mark.connection,
                     op + "__" + hccl_group_id(message.group) + "_" + std::to_string(ops.size()) + "_1", op + "_",
                     message.group, message.count, message.op, type == types->end() ? kNoDataType : type->second,
                     message.peer, 0});
    }
  }
  for (std::vector<MarkedOp>& ops : by_key)
    for (MarkedOp& op : ops) {
      op.op_id = out.ops.size();
      out.ops.push_back(std::move(op));
    }
  sort_stably(out.ops, {}, &MarkedOp::start_ns);
  return out;
}

}  // namespace stageline
