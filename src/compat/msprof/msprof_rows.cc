#include "compat/msprof/msprof_rows.h"

#include <simdjson.h>

#include "compat/msprof/dualpipev_rows.h"

namespace stageline {
namespace {

std::string metadata_of(const SqliteDb& db, std::string_view key) {
  SqliteRows rows = rows_of(db, "META_DATA", {"name", "value"});
  while (rows.next())
    if (rows.text(0) == key) return std::string(rows.text(1));
  return {};
}

// A JSON object. A quoted text that contains one does not count, since msprof-analyze does not unwrap it.
class JsonObject {
 public:
  explicit JsonObject(const std::string& text) : text_(text) {
    ok_ = parser_.parse(text_).get(object_) == simdjson::SUCCESS;
  }
  bool ok() const { return ok_; }
  bool has(std::string_view key) const { return object_[key].error() == simdjson::SUCCESS; }
  std::optional<int64_t> integer(std::string_view key) const {
    int64_t value = 0;
    if (object_[key].get(value) != simdjson::SUCCESS) return std::nullopt;
    return value;
  }
  std::optional<std::string> text(std::string_view key) const {
    std::string_view value;
    if (object_[key].get(value) != simdjson::SUCCESS) return std::nullopt;
    return std::string(value);
  }

 private:
  simdjson::padded_string text_;
  simdjson::dom::parser parser_;
  simdjson::dom::object object_;
  bool ok_ = false;
};

void read_sizes(const SqliteDb& db, MsprofPlan& plan) {
  int64_t tp = 1, dp = 1;
  const std::string text = metadata_of(db, "distributed_args");
  if (text.empty()) {
    plan.remark = "META_DATA has no distributed_args: one stage of one rank is assumed";
    return;
  }
  const JsonObject args(text);
  plan.lost = !args.ok();
  const auto size = [&](std::string_view key, int64_t& into) {
    if (plan.lost || !args.has(key)) return;
    const auto value = args.integer(key);
    plan.lost = !value || *value <= 0 || *value > INT32_MAX;
    if (!plan.lost) into = *value;
  };
  size("tensor_model_parallel_size", tp);
  size("pipeline_model_parallel_size", plan.stages);
  size("data_parallel_size", dp);
  plan.ranks_per_stage = tp * dp;
  if (plan.lost) plan.remark = "distributed_args of META_DATA holds no sizes: nothing is written";
}

// msprof-analyze keeps a block only when it begins after the last kept block has ended.
void drop_overlapping(std::vector<DeviceRange>& rows) {
  int64_t last_end = -1;
  std::erase_if(rows, [&](const DeviceRange& row) {
    if (row.start_ns < last_end) return true;
    last_end = row.end_ns;
    return false;
  });
}

// Names blocks by position, step by step. A step with another count than the expected one gets no names at all.
void label_by_position(std::vector<DeviceRange> rows, const MsprofPlan& plan, int64_t stage, MsprofRank& out) {
  drop_overlapping(rows);
  std::erase_if(rows, [](const DeviceRange& row) { return !row.has_step; });
  sort_stably(rows, {}, &DeviceRange::step);
  const int64_t expected = dualpipev_row_count(plan.stages, plan.micro_batches, stage);
  StepTasks& blocks = out.tables.blocks;
  std::vector<StepTask> labels;  // name and type of every row of a step
  const uint32_t blank = blocks.name_id("");
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end].step == rows[begin].step) ++end;
    const int64_t count = end - begin;
    if (count == expected && labels.empty())
      for (const DualPipeVRow& row :
           dualpipev_rows(static_cast<int32_t>(plan.stages), static_cast<int32_t>(plan.micro_batches),
                          static_cast<int32_t>(stage)))
        labels.push_back({0, 0, blocks.name_id(row.name()), row.phase});
    for (size_t i = begin; i < end; ++i) {
      const StepTask label = count == expected ? labels[i - begin] : StepTask{0, 0, blank, 0};
      blocks.rows.push_back({rows[i].start_ns, rows[i].end_ns, label.name, label.type});
    }
    if (count == expected) continue;
    out.unlabelled += count;
    if (out.remarks.empty())
      out.remarks.push_back("step " + std::to_string(rows[begin].step) + " has " + std::to_string(count) +
                            " blocks where msprof-analyze expects " + std::to_string(expected) + ": no names");
  }
}

void label_by_word(const std::vector<DeviceRange>& rows, StepTasks& blocks) {
  const uint32_t names[] = {blocks.name_id("FP"), blocks.name_id("BP")};
  blocks.rows.reserve(rows.size());
  for (const DeviceRange& row : rows) {
    const int type = row.forward ? 0 : 1;
    blocks.rows.push_back({row.start_ns, row.end_ns, names[type], type});
  }
}

Status add_links(const SqliteDb& db, const HostWindow& window, RankTables& tables) {
  TRY(ops, read_peer_ops(db, window, false));
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;  // over all groups, as msprof-analyze counts
  for (const PeerOp& op : *ops) {
    const int64_t k = counts[{op.src, op.dst}]++;
    const std::string link =
        op.tag + "_" + std::to_string(op.src) + "_" + std::to_string(op.dst) + "_" + std::to_string(k);
    for (const int64_t row : op.row_numbers) tables.links.emplace_back(row, link);
  }
  tables.write_links = !ops->empty();
  return {};
}

}  // namespace

MsprofPlan msprof_plan(const SqliteDb& first, bool msmonitor, const MsprofSizes& sizes) {
  MsprofPlan plan;
  const std::string text = metadata_of(first, "pp_info");
  const JsonObject info(text);
  const std::string kind = to_lower(info.ok() ? info.text("pp_type").value_or("") : "");
  plan.dualpipev = kind == "dualpipev" && !msmonitor;
  if (!plan.dualpipev) {
    if (!text.empty() && kind.empty()) plan.remark = "pp_info of META_DATA is not an object with pp_type: FP and BP";
    return plan;
  }
  if (sizes.pp > 0 && sizes.tp > 0 && sizes.dp > 0) {
    plan.stages = sizes.pp;
    plan.ranks_per_stage = int64_t{sizes.tp} * sizes.dp;
  } else {
    read_sizes(first, plan);
  }
  if (info.has("microbatch_num")) {
    const auto m = info.integer("microbatch_num");
    if (!m) {
      plan.lost = true;
      plan.remark = "microbatch_num of pp_info is no whole number: nothing is written";
    } else {
      plan.micro_batches = *m;
    }
  }
  return plan;
}

Result<MsprofRank> msprof_rank(const SqliteDb& db, int32_t rank, const MsprofPlan& plan, const HostWindow& window) {
  MsprofRank out;
  if (!db.has_table("COMMUNICATION_OP")) {
    TRY(ops, read_marked_ops(db, window, true));
    if (!ops->lost.empty()) out.remarks.push_back("no COMMUNICATION_OP: " + ops->lost);
    out.tables.ops = std::move(ops->ops);
    out.tables.write_ops = !out.tables.ops.empty();
  }
  TRY_OK(add_links(db, window, out.tables));
  if (plan.lost) return out;
  TRY(ranges, read_device_ranges(db, window));
  if (ranges->rows.empty()) {
    out.remarks.push_back(ranges->missing.empty() ? "no forward or backward range has a task on the device"
                                                  : "the database has no " + ranges->missing);
    return out;
  }
  if (plan.dualpipev) {
    const int64_t stage = rank < 0 ? plan.stages : rank / plan.ranks_per_stage;
    if (stage >= plan.stages) {
      out.remarks.push_back("msprof-analyze finds no stage for this rank: it deals ranks out in blocks of tp × dp");
      return out;
    }
    label_by_position(std::move(ranges->rows), plan, stage, out);
  } else {
    label_by_word(ranges->rows, out.tables.blocks);
  }
  out.tables.write_blocks = !out.tables.blocks.rows.empty();
  return out;
}

}  // namespace stageline
