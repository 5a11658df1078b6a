#include "exporters/ascend_db/rank_rows.h"

#include "base/embedded.h"
#include "base/json_writer.h"
#include "model/message_names.h"

namespace stageline::ascend_db {
namespace {

constexpr int64_t kComputeStream = 2;
constexpr int64_t kElementBytes = 2;  // bfloat16

std::string hccl_name(std::string_view kind) {
  return kind == "send"        ? "HcclSend"
         : kind == "receive"   ? "HcclRecv"
         : kind == "allReduce" ? "HcclAllreduce"
                               : "HcclBatchSendRecv";
}

// Returns the text that the profiler itself writes at Level_none. Newer versions escape the quotes and name the peer.
std::string communication_message(const CommunicationOp& op, int32_t me, bool escaped) {
  JsonWriter json;
  json.begin_object().field("streamId", std::to_string(op.stream)).field("count", std::to_string(op.elements));
  json.field("dataType", "bfp16");
  if (escaped && op.transfers.size() == 1 && op.kind != "allReduce") {
    const auto [src, dst] = op.transfers[0];
    src == me ? json.field("destRank", std::to_string(dst)) : json.field("srcRank", std::to_string(src));
  }
  json.field("groupName", op.group->name).field("opName", hccl_name(op.kind)).end_object();
  if (!escaped) return json.take();
  std::string out;
  for (const char c : json.text()) {
    if (c == '"') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

RankRows::RankRows(const SqliteDb& db, const AscendDbOptions& options, RankIdentity me)
    : db_(db), o_(options), me_(me), thread_((me.pid << 32) | me.pid), mstx_(db, "MSTX_EVENTS", 10),
      task_(db, "TASK", 11) {
  if (options.level == AscendLevel::kNone) return;
  work_.emplace(Work{{db, "COMPUTE_TASK_INFO", 13},
                     {db, "COMMUNICATION_OP", 12},
                     {db, "COMMUNICATION_TASK_INFO", 14},
                     {db, "CANN_API", 6},
                     {db, "PYTORCH_API", 11},
                     {db, "CONNECTION_IDS", 2}});
}

int64_t RankRows::task(Span device, int64_t connection, std::string_view type, int64_t stream) {
  const int64_t id = tasks_++;
  task_.integer(own(device.start)).integer(own(device.end)).integer(me_.device).integer(connection).integer(id);
  task_.integer(me_.pid).integer(strings_(type)).integer(kNone32).integer(stream).integer(id % 65535);
  task_.integer(kNone32).next();
  return id;
}

void RankRows::range(Span host, std::string_view message, std::string_view domain, Span device, int64_t stream) {
  const int64_t connection = kFirstMark + marks_++;
  mstx_.integer(own(host.start)).integer(own(host.end)).integer(2).integer(kNone32).integer(kNone32);
  mstx_.integer(strings_(message)).integer(thread_).integer(thread_).integer(strings_(domain));
  mstx_.integer(connection).next();
  task(device, connection, "MsTx", stream);
}

void RankRows::kernel(Span host, const KernelName& name, Span device) {
  computing_.push_back({device.start, device.end});
  if (!work_) return;
  const int64_t connection = ++connections_, launch = launches_++;
  const int64_t id = task(device, connection, name.task_type, kComputeStream);
  Work& w = *work_;
  w.compute.integer(strings_(name.name)).integer(id).integer(24).integer(0).integer(strings_(name.task_core));
  w.compute.integer(strings_(name.op_type)).integer(strings_("ND;ND")).integer(strings_("DT_BF16;DT_BF16"));
  w.compute.integer(strings_(name.shapes)).integer(strings_("ND")).integer(strings_("DT_BF16"));
  w.compute.integer(strings_(name.out_shape)).integer(strings_("N/A")).next();
  // The framework's operator contains the CANN operator, and that contains the launch. Each begins a tenth of the
  // operator later and ends a tenth earlier than the one around it.
  const int64_t tenth = (host.end - host.start) / 10;
  const auto api = [&](Span at, std::string_view text, bool launches) {
    const std::string start = std::to_string(own(at.start)), end = std::to_string(own(at.end));
    w.api.text(start).text(end).integer(thread_);
    launches ? w.api.integer(launch) : w.api.null();
    w.api.integer(strings_(text)).integer(-1).integer(0).null().null().null().integer(kApiOp).next();
  };
  const std::string aclnn(name.name.substr(0, name.name.find('_')));
  api(host, name.framework, false);
  api({host.start + tenth, host.end - tenth}, aclnn, true);
  w.connection.integer(launch).integer(connection).next();
  w.cann.integer(own(host.start + 3 * tenth)).integer(own(host.end - 3 * tenth)).integer(kApiNode).integer(thread_);
  w.cann.integer(connection).integer(strings_("launch")).next();
}

void RankRows::communication(const CommunicationOp& op) {
  const int32_t me = op.group->index_of(me_.rank);
  int64_t* number = nullptr;
  for (auto& [group, count] : numbers_)
    if (group == op.group) number = &count;
  if (!number) number = &numbers_.emplace_back(op.group, 0).second;
  const std::string kind = "hcom_" + std::string(op.kind) + "_";
  const std::string name = kind + "_" + op.group->tag + "_" + std::to_string((*number)++) + "_1";
  communications_.push_back(
      {name, op.kind, op.group, op.device, op.transit_ns, op.elements * kElementBytes, op.step, op.transfers});
  if (!work_) {
    if (o_.level_none_comm != LevelNoneComm::kNo)
      range(op.host, communication_message(op, me, o_.level_none_comm == LevelNoneComm::kEscaped), "communication",
            op.device, op.stream);
    return;
  }
  Work& w = *work_;
  const int64_t connection = ++connections_, id = ops_++;
  w.op.integer(strings_(name)).integer(own(op.device.start)).integer(own(op.device.end)).integer(connection);
  w.op.integer(strings_(op.group->name)).integer(id).integer(0).integer(0).integer(kBfp16);
  w.op.integer(strings_("MESH")).integer(op.elements).integer(strings_(kind)).next();
  w.cann.integer(own(op.host.start)).integer(own(op.host.end)).integer(kApiHccl).integer(thread_).integer(connection);
  w.cann.integer(strings_(kind)).next();
  transfer_rows(op, name, id, connection);
}

// Writes the tasks of an operation: signal the peer, wait for the peer's signal, and move the bytes, with the same
// times as in analysis.db. Below Level1 the profiler records none of them.
void RankRows::transfer_rows(const CommunicationOp& op, const std::string& name, int64_t op_id, int64_t connection) {
  SqliteInsert& row = work_->transfer;
  const auto write = [&](std::string_view type, Span at, int64_t from, int64_t to, int64_t bytes, bool between_hosts) {
    const bool waits = type == "Notify_Wait";
    const int64_t id = task(at, connection, waits ? "Notify Wait" : "SDMA", op.stream);
    row.integer(strings_(name)).integer(id).integer(strings_(type)).integer(0).integer(strings_(op.group->name));
    row.integer(0).integer(kInvalid).integer(from).integer(to).integer(between_hosts ? kRdma : kSdma).integer(bytes);
    row.integer(kBfp16).integer(between_hosts ? kRoceLink : kHccsLink).integer(op_id).next();
  };
  const int64_t me = op.group->index_of(me_.rank);
  if (o_.level != AscendLevel::kLevel1) return write("N/A", op.device, me, kNone32, op.elements * kElementBytes, false);
  const Span whole = op.device;
  const int64_t moves = std::clamp<int64_t>(op.transit_ns, 1, std::max<int64_t>(whole.end - whole.start, 1));
  const Span record{whole.start, whole.start}, wait{whole.start, whole.end - moves}, copy{whole.end - moves, whole.end};
  for (const auto& [src, dst] : op.transfers) {
    const int64_t peer = src == me ? dst : src;
    const int32_t there = op.group->ranks[peer];
    const auto host = [&](int32_t rank) { return (*me_.parts)[rank].machine; };
    const bool apart = host(there) != host(me_.rank);
    write("Notify_Record", record, me, peer, 0, apart);
    write("Notify_Wait", wait, me, peer, 0, apart);
    write(op.kind == "allReduce" ? "Reduce_Inline" : "Memcpy", copy, me, op.kind == "allReduce" ? peer : kNone32,
          op.elements * kElementBytes, apart);
  }
}

Status RankRows::finish(const std::vector<std::pair<std::string, std::string>>& metadata, const std::string& host_name,
                        const std::vector<Span>& steps) {
  SqliteInsert meta(db_, "META_DATA", 2), map(db_, "RANK_DEVICE_MAP", 2), host(db_, "HOST_INFO", 2);
  SqliteInsert npu(db_, "NPU_INFO", 2), session(db_, "SESSION_TIME_INFO", 2), strings(db_, "STRING_IDS", 2);
  for (const auto& [key, json] : metadata) meta.text(key).text(json).next();
  map.integer(me_.rank).integer(me_.device).next();
  const std::string uid = std::to_string(hccl_group_hash(host_name) >> 1);
  host.text(uid).text(host_name).next();
  npu.integer(me_.device).text("Ascend910B").next();
  if (!steps.empty()) session.integer(own(steps.front().start)).integer(own(steps.back().end)).next();
  strings_.write(strings);
  if (o_.step_time) {
    SqliteInsert step(db_, "STEP_TIME", 3);
    for (size_t i = 0; i < steps.size(); ++i)
      step.integer(o_.first_step + static_cast<int64_t>(i))
          .integer(own(steps[i].start))
          .integer(own(steps[i].end))
          .next();
    TRY_OK(step.status());
  }
  for (const SqliteInsert* insert : {&mstx_, &task_, &meta, &map, &host, &npu, &session, &strings})
    TRY_OK(insert->status());
  if (work_)
    for (const SqliteInsert* insert :
         {&work_->compute, &work_->op, &work_->transfer, &work_->cann, &work_->api, &work_->connection})
      TRY_OK(insert->status());
  return db_.run("CREATE INDEX TaskIndex ON TASK (startNs,globalTaskId)");
}

Status create_tables(const SqliteDb& db, AscendLevel level, bool step_time) {
  TRY_OK(db.run(embedded_part("ascend-tables", "always")));
  if (step_time) TRY_OK(db.run(embedded_part("ascend-tables", "steps")));
  if (level != AscendLevel::kNone) TRY_OK(db.run(embedded_part("ascend-tables", "work")));
  return db.run(embedded_part("ascend-tables", "enumerations"));
}

Status create_analysis_tables(const SqliteDb& db, AscendLevel level) {
  TRY_OK(db.run(embedded_part("ascend-tables", "step trace")));
  return level == AscendLevel::kLevel1 ? db.run(embedded_part("ascend-tables", "communication")) : Status{};
}

int64_t Strings::operator()(std::string_view text) {
  const auto [at, fresh] = ids_.try_emplace(std::string(text), static_cast<int64_t>(order_.size()));
  if (fresh) order_.push_back(&at->first);
  return at->second;
}

void Strings::write(SqliteInsert& into) const {
  for (size_t i = 0; i < order_.size(); ++i) into.integer(i).text(*order_[i]).next();
}

}  // namespace stageline::ascend_db
